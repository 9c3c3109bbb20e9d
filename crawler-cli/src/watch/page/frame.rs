//! What all pages have around them.

use axum::http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::style;
use crate::check::life::time::between;
use crate::watch::admin::answer::{Answer, typed};
use crate::watch::hands::why::{Around, general};
use crate::watch::hands::words::{count, span, stamp};

/// A page. `here` is the path of the page in the navigation.
pub(super) fn framed(around: &Around, here: &str, title: &str, body: &Markup) -> Answer {
    with_status(StatusCode::OK, around, here, title, body)
}

/// A page about something that is not there.
pub(super) fn missing(around: &Around, here: &str, why: &str) -> Answer {
    let body = html! { section { p.empty { (why) } } };
    with_status(StatusCode::NOT_FOUND, around, here, "Not found", &body)
}

fn with_status(
    status: StatusCode,
    around: &Around,
    here: &str,
    title: &str,
    body: &Markup,
) -> Answer {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – courser" }
                link rel="stylesheet" href=(*style::PATH);
            }
            body {
                a.skip href="#main" { "To the content" }
                div.top {
                    span.brand { "courser" }
                    nav aria-label="Pages" {
                        @for (path, name) in PAGES {
                            a href=(path) aria-current=[(path == here).then_some("page")] { (name) }
                        }
                    }
                    form.search role="search" method="get" action="/search" {
                        input type="search" name="q" aria-label="URL or host" placeholder="URL or host" required;
                        button { "Search" }
                    }
                }
                (now(around))
                main id="main" tabindex="-1" {
                    h1 { (title) }
                    (body)
                }
                footer { p { "As of " time datetime=(around.now) { (stamp(around.now)) } } }
            }
        }
    };
    typed(status, "text/html; charset=utf-8", page.into_string())
}

/// Whether anything is asked.
fn now(around: &Around) -> Markup {
    let reasons = general(around);
    let reasons: Vec<&str> = reasons.iter().map(|reason| &*reason.text).collect();
    html! {
        div.now id="now" data-live {
            p role="status" class=(if reasons.is_empty() { "is-good" } else { "is-bad" }) {
                @if reasons.is_empty() { "Asking" } @else { "Not asking: " (reasons.join("; ")) }
            }
            @if let Some(live) = around.live.running() {
                p.soft {
                    @if let Some(core) = &live.core {
                        (count(core.under_way, "URL", "URLs")) " under way · "
                    }
                    "up for " (span(between(live.since, around.now))) " · version " (live.version)
                }
            }
        }
    }
}

const PAGES: [(&str, &str); 9] = [
    ("/", "Overview"),
    ("/urls", "URLs"),
    ("/hosts", "Hosts"),
    ("/changes", "Changes"),
    ("/holds", "Holds"),
    ("/letters", "Dead letters"),
    ("/schedules", "Schedules"),
    ("/config", "Configuration"),
    ("/log", "Log"),
];
