//! The configuration that holds, with the origin of each value.

use maud::{Markup, html};

use super::asked::Asked;
use super::frame::framed;
use super::pieces::{date, section};
use super::{read, trouble};
use crate::watch::admin::answer::Answer;
use crate::watch::config::Reload;
use crate::watch::hands::why::Around;
use crate::watch::hands::words::safe;

pub(super) async fn page(asked: Asked) -> Answer {
    let shown = asked.site.current.get().shown(true);
    let reload = asked.site.current.reload();
    match read(&asked.site, None, |_, _| Ok(())).await {
        Ok((around, ())) => {
            let body = html! {
                (section("Last change", &last(&around, reload.as_ref())))
                (section("Values", &values(&shown)))
            };
            framed(&asked, &around, "/config", "Configuration", &body)
        }
        Err(error) => trouble(&error),
    }
}

fn last(around: &Around, reload: Option<&Reload>) -> Markup {
    let Some(reload) = reload else {
        return html! { p.empty { "The configuration has not been read again since the service started." } };
    };
    html! {
        p { "Read again " (date(around.now, reload.at)) }
        @match &reload.result {
            Ok(keys) if keys.is_empty() => p { "Nothing had changed." },
            Ok(keys) => p { "Changed: " (safe(&keys.join(", "))) },
            Err(why) => {
                p.bad { "Nothing was applied:" }
                pre { @for line in why.lines() { (safe(line)) "\n" } }
            }
        }
    }
}

/// The lines of a configuration: keys with values and origins, and the names of their tables.
fn values(shown: &str) -> Markup {
    html! {
        table {
            caption { "Keys, values and where they come from" }
            thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } th scope="col" { "Origin" } } }
            tbody {
                @for line in shown.lines().filter(|line| !line.trim().is_empty()) {
                    @match line.split_once(" = ") {
                        None => tr.head { th scope="colgroup" colspan="3" { (safe(line)) } },
                        Some((key, rest)) => {
                            @let (value, origin) = rest.rsplit_once("  # ").unwrap_or((rest, ""));
                            tr {
                                th scope="row" { (safe(key)) }
                                td { code { (safe(value)) } }
                                td class=(if origin == "default" { "soft" } else { "set" }) { (safe(origin)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
