//! Those who are told of changes.

use jiff::Timestamp;
use maud::{Markup, html};

use super::asked::Asked;
use super::frame::framed;
use super::pieces::{number, section, table, time};
use super::{read, trouble};
use crate::watch::admin::answer::Answer;
use crate::watch::hands::webhooks::{condition, waiting};
use crate::watch::hands::words::safe;
use crate::watch::hooks::HookStatus;

pub(super) async fn page(asked: Asked) -> Answer {
    let found = read(&asked.site, None, |reader, around| {
        reader.hooks(&around.live)
    });
    match found.await {
        Ok((around, hooks)) => {
            let body = section("List", &list(around.now, &hooks));
            framed(&asked, &around, "/webhooks", "Webhooks", &body)
        }
        Err(error) => trouble(&error),
    }
}

fn list(now: Timestamp, hooks: &[HookStatus]) -> Markup {
    let rows = hooks.iter().map(|hook| {
        vec![
            html! { (safe(&hook.name)) },
            html! { @if let Some(origin) = &hook.origin { code { (safe(origin)) } } },
            html! { (condition(hook, now)) },
            html! { (waiting(hook, now)) },
            html! { @match &hook.last {
                Some(last) => { (safe(&last.answer)) " (" (time(now, last.at)) ")" },
                None => "not asked yet",
            } },
            number(hook.delivered),
        ]
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    let columns = [
        "Name",
        "Receiver",
        "State",
        "Messages",
        "Last answer",
        "#Delivered",
    ];
    table(
        "Webhooks",
        &columns,
        &rows,
        "The configuration has no webhooks.",
    )
}
