//! What all pages have around them.

use axum::http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::asked::Asked;
use super::assets::{ICON, SCRIPT, STYLE};
use crate::check::life::time::between;
use crate::report::page::head;
use crate::watch::admin::answer::{Answer, typed};
use crate::watch::hands::why::{Around, general};
use crate::watch::hands::words::{count, span, stamp};

/// A page. `here` is the path of the page in the navigation.
pub(super) fn framed(
    asked: &Asked,
    around: &Around,
    here: &str,
    title: &str,
    body: &Markup,
) -> Answer {
    let said = asked.said.as_ref();
    // What has become of a form is the first that a screen reader says.
    let whole_title = match said {
        Some(said) => format!("{} – {title}", said.text),
        None => title.to_owned(),
    };
    let body = html! {
        body {
            a.skip href="#main" { "To the content" }
            header.top {
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
            (now(asked, around))
            main id="main" tabindex="-1" {
                @if let Some(said) = said {
                    p data-own class=(if said.is_done { "said good" } else { "said bad" }) role="status" {
                        b { (if said.is_done { "Done. " } else { "Not done. " }) } (said.text)
                    }
                }
                h1 class=[(title.len() > LONG).then_some("long")] { (title) }
                (body)
            }
            footer { p { "As of " time datetime=(around.now) { (stamp(around.now)) } " · all times are UTC" } }
        }
    };
    let script = html! { script src=(SCRIPT.path) defer {} };
    whole(StatusCode::OK, &whole_title, &script, &body)
}

/// A page about something that is not there.
pub(super) fn missing(asked: &Asked, around: &Around, here: &str, why: &str) -> Answer {
    let body = html! { section { p.empty { (why) } } };
    let mut answer = framed(asked, around, here, "Not found", &body);
    *answer.status_mut() = StatusCode::NOT_FOUND;
    answer
}

/// A page without navigation: the login, or a refusal.
pub(in crate::watch) fn bare(status: StatusCode, title: &str, body: &Markup) -> Answer {
    let body = html! {
        body.bare {
            main id="main" {
                p.brand { "courser" }
                h1 { (title) }
                (body)
            }
        }
    };
    whole(status, title, &html! {}, &body)
}

fn whole(status: StatusCode, title: &str, more: &Markup, body: &Markup) -> Answer {
    let files = html! {
        link rel="stylesheet" href=(STYLE.path);
        link rel="icon" type="image/svg+xml" href=(ICON.path);
        (more)
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("{title} – courser"), &files))
            (body)
        }
    };
    typed(status, "text/html; charset=utf-8", page.into_string())
}

/// Who is logged in.
fn visitor(asked: &Asked) -> Markup {
    html! {
        @if asked.site.has_tokens() {
            form.visitor method="post" action="/logout" {
                input type="hidden" name="csrf" value=(asked.visitor.csrf);
                span.soft { (asked.visitor.who) @if !asked.visitor.may_write { ", may only read" } }
                button { "Log out" }
            }
        }
    }
}

/// Whether anything is asked, and whether the page is shown anew.
fn now(asked: &Asked, around: &Around) -> Markup {
    let reasons = general(around);
    let reasons: Vec<&str> = reasons.iter().map(|reason| &*reason.text).collect();
    html! {
        section.now aria-label="The service" {
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
            p id="refresh" data-own { a href=(asked.here) { "Load again" } }
            (visitor(asked))
        }
    }
}

/// A title that is longer, such as that of a URL, is shown in smaller print.
const LONG: usize = 90;
const PAGES: [(&str, &str); 10] = [
    ("/", "Overview"),
    ("/urls", "URLs"),
    ("/hosts", "Hosts"),
    ("/changes", "Changes"),
    ("/holds", "Holds"),
    ("/letters", "Dead letters"),
    ("/schedules", "Schedules"),
    ("/webhooks", "Webhooks"),
    ("/config", "Configuration"),
    ("/log", "Log"),
];
