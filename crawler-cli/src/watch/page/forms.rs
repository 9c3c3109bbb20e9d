//! The forms of the pages: their buttons, the page that asks before what cannot be undone, and how they are performed. After
//! a form its page is shown again, with what has become of it.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use maud::{Markup, html};
use tokio::time::timeout;

use super::asked::{Asked, SAID};
use super::deeds::{Deed, said};
use super::frame::{bare, framed};
use super::query::Query;
use super::{in_words, read, trouble};
use crate::watch::admin::answer::{Answer, Refused, see_other};
use crate::watch::admin::body::{Form, checked_back, form};
use crate::watch::admin::once::Said;
use crate::watch::admin::{Site, Visitor};
use crate::watch::control::Reply;
use crate::watch::hands::words;

impl Asked {
    /// A button that has something done to what the fields name, for those who may. What cannot be undone is asked about
    /// first. There is none if the fields would show a password, or have characters that cannot be shown.
    pub(super) fn button(&self, deed: Deed, fields: &[(&str, &str)]) -> Markup {
        let is_shown = |(_, value): &(&str, &str)| words::url(value) == *value;
        html! {
            @if self.visitor.may_write && fields.iter().all(is_shown) {
                @if deed.is_asked() {
                    @let query = Query::from(fields).or_back(&self.here);
                    @let path = query.without(&format!("/do/{}", deed.name()), SAID);
                    a.button href=(path) aria-label=(name_of(deed, fields)) { (deed.label()) "…" }
                } @else {
                    (self.form(deed, fields, &html! {}))
                }
            }
        }
    }

    /// A form with these fields, which are not shown, and `more`.
    pub(super) fn form(&self, deed: Deed, fields: &[(&str, &str)], more: &Markup) -> Markup {
        let has_back = fields.iter().any(|(name, _)| *name == "back");
        html! {
            form.deed method="post" action={ "/do/" (deed.name()) } {
                input type="hidden" name="csrf" value=(self.visitor.csrf);
                input type="hidden" name="number-of-form" value=(self.site.once.number());
                @if !has_back { input type="hidden" name="back" value=(self.here); }
                @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                (more)
                button aria-label=(name_of(deed, fields)) { (deed.label()) @if deed.is_of_all(fields) { " everything" } }
            }
        }
    }
}

/// What a screen reader calls a button: there are many with the same words.
fn name_of(deed: Deed, fields: &[(&str, &str)]) -> String {
    let of = fields.iter().find(|(name, _)| *name != "back");
    match of {
        Some((_, value)) => format!("{} {}", deed.label(), words::url(value)),
        None if deed.is_of_all(fields) => format!("{} everything", deed.label()),
        None => deed.label().to_owned(),
    }
}

/// Asks whether something shall be done that cannot be undone. What else a link of others could name here is not asked: its
/// fields are not all shown.
pub(super) async fn question(asked: Asked, Path(name): Path<String>) -> Answer {
    let Some(deed) = Deed::named(&name).filter(|deed| deed.is_asked()) else {
        return nothing();
    };
    let (around, ()) = match read(&asked.site, None, |_, _| Ok(())).await {
        Ok(found) => found,
        Err(error) => return trouble(&error),
    };
    let fields: Vec<(&str, &str)> = asked.query.fields().collect();
    let what: Vec<String> = fields.iter().filter_map(|field| in_full(*field)).collect();
    let back = checked_back(asked.query.get("back").unwrap_or_default());
    let body = html! {
        section {
            p.what { (what.join(", ")) }
            p { (deed.explained()) }
            @if asked.visitor.may_write {
                div.deeds {
                    (asked.form(deed, &fields, &html! {}))
                    a.button href=(back) { "Cancel" }
                }
            } @else {
                p.bad { "The token allows no changes." }
            }
        }
    };
    let title = format!("{}?", deed.label());
    framed(&asked, &around, "", &title, &body)
}

/// What a field means, for one who is asked about it.
fn in_full((name, value): (&str, &str)) -> Option<String> {
    let value = words::url(value);
    Some(match name {
        "url" => value,
        "number" => format!("Dead letter {value}"),
        "reason" => format!("All dead letters with the reason {value}"),
        "host" => format!("The host {value}"),
        "schedule" => format!("The schedule {value}"),
        _ => return None,
    })
}

/// Performs a form, and goes back to its page.
pub(super) async fn perform(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Answer {
    let Some(deed) = Deed::named(&name) else {
        return nothing();
    };
    let form = match form(&site, request).await {
        Ok(form) => Arc::new(form),
        Err(refused) => return shown(&refused),
    };
    let Ok(number) = form.get("number-of-form").parse() else {
        let why = "the form has no number";
        return shown(&Refused::new(StatusCode::BAD_REQUEST, why));
    };
    let who = visitor.who;
    let performed = perform_all(Arc::clone(&site), who.clone(), deed, Arc::clone(&form));
    site.once.perform(&who, number, performed).await;
    see_other(&said_at(form.back(), number))
}

/// A page that tells the outcome of the form with a number. The number is the first field: it comes before one that the page
/// has already, and no fragment hides it.
fn said_at(back: &str, number: u64) -> String {
    let page = back.split('#').next().unwrap_or_default();
    match page.split_once('?') {
        Some((path, query)) => format!("{path}?{SAID}={number}&{query}"),
        None => format!("{page}?{SAID}={number}"),
    }
}

/// What takes long goes on after the answer.
async fn perform_all(site: Arc<Site>, who: String, deed: Deed, form: Arc<Form>) -> Said {
    let pieces = tokio::spawn(perform_pieces(site, who, deed, form));
    match timeout(PATIENCE, pieces).await {
        Ok(Ok(said)) => said,
        Ok(Err(_)) => said(false, "It has failed: the log says why".to_owned()),
        Err(_) => said(
            true,
            "There is much to do: it goes on in the background".to_owned(),
        ),
    }
}

async fn perform_pieces(site: Arc<Site>, who: String, deed: Deed, form: Arc<Form>) -> Said {
    let (mut changed, mut passed, mut after) = (0, 0, None);
    loop {
        let command = match deed.command(&form, after) {
            Ok(command) => command,
            Err(why) => return said(false, format!("Nothing was changed: {why}")),
        };
        let reply = match site.perform(who.clone(), command).await {
            Ok(reply) => reply,
            Err(error) if after.is_none() => {
                return said(false, format!("Nothing was changed: {}", in_words(&error)));
            }
            Err(error) => {
                return said(false, format!("Only a part was done: {}", in_words(&error)));
            }
        };
        if let Reply::Count {
            count,
            passed: more,
            after: next,
        } = reply
        {
            changed += count;
            passed += more;
            after = next;
        }
        if after.is_none() || !matches!(reply, Reply::Count { .. }) {
            return deed.outcome(&form, reply, changed, passed);
        }
    }
}

fn nothing() -> Answer {
    shown(&Refused::new(
        StatusCode::NOT_FOUND,
        "there is nothing here",
    ))
}

/// A refusal, for a person.
fn shown(refused: &Refused) -> Answer {
    let body = html! {
        section {
            p.bad role="alert" { "Nothing was changed: " (refused.why) }
            p { a href="/" { "To the overview" } }
        }
    };
    bare(refused.status, "Refused", &body)
}

/// How long the page waits for what is done in pieces.
const PATIENCE: Duration = Duration::from_secs(10);
