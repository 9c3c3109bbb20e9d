//! Dead letters.

use std::sync::Arc;

use axum::extract::State as Of;
use axum::http::Uri;
use maud::{Markup, html};

use super::frame::{framed, missing};
use super::pieces::{ROWS, date, facts, href, number, pager, section, table, time, url};
use super::query::Query;
use super::{read, trouble};
use crate::store::{DeadLetter, DeadLetterFilter, DeadLetterId, JobStore as _, Subject};
use crate::watch::admin::Site;
use crate::watch::admin::answer::Answer;
use crate::watch::hands::letters::subject;
use crate::watch::hands::why::Around;
use crate::watch::hands::words::{number as in_words, safe};

pub(super) async fn page(Of(site): Of<Arc<Site>>, uri: Uri) -> Answer {
    let query = Query::of(&uri);
    let before = query
        .number("before")
        .map_or(DeadLetterId::END, DeadLetterId);
    let filter = DeadLetterFilter {
        reason: query.get("reason").map(str::to_owned),
        host: query.get("host").map(str::to_owned),
        queue: query.get("queue").map(str::to_owned),
        ..DeadLetterFilter::default()
    };
    let found = read(&site, None, move |reader, _| {
        let store = reader.store();
        Ok((
            store.dead_letter_counts()?,
            store.letters_before(&filter, before, ROWS)?,
        ))
    });
    match found.await {
        Ok((around, (counts, page))) => {
            let next = page.next.map(|next| next.0.to_string());
            let body = html! {
                (reasons(&query, &counts))
                (section("List", &html! {
                    (list(&around, &page.rows))
                    (pager(&query, "/letters", "before", next.as_deref()))
                }))
            };
            framed(&around, "/letters", "Dead letters", &body)
        }
        Err(error) => trouble(&error),
    }
}

fn reasons(query: &Query, counts: &[(String, u64)]) -> Markup {
    let chosen = query.get("reason");
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    html! {
        nav.choices aria-label="Reasons" {
            a href="/letters" aria-current=[chosen.is_none().then_some("true")] { "All reasons" }
            @for (reason, count) in counts {
                a href=(href("/letters", &[("reason", reason)])) aria-current=[(chosen == Some(reason)).then_some("true")] {
                    (safe(reason)) " " (in_words(*count))
                }
            }
        }
    }
}

fn list(around: &Around, letters: &[DeadLetter]) -> Markup {
    let rows: Vec<Vec<Markup>> = letters
        .iter()
        .map(|letter| {
            let number = letter.id.0.to_string();
            vec![
                html! { a href=(href("/letter", &[("number", &number)])) { (number) } },
                html! { (safe(&letter.letter.reason)) },
                about(&letter.subject),
                html! { (letter.letter.attempts) },
                time(around.now, letter.letter.last_at),
            ]
        })
        .collect();
    let columns = ["#Number", "Reason", "About", "#Attempts", "#Last"];
    table(
        "Dead letters, newest first",
        &columns,
        &rows,
        "There are no dead letters.",
    )
}

fn about(about: &Subject) -> Markup {
    match about {
        Subject::Url { url: at, .. } => url(at),
        other => html! { (subject(other)) },
    }
}

/// One dead letter with its last exchange.
pub(super) async fn one(Of(site): Of<Arc<Site>>, uri: Uri) -> Answer {
    let query = Query::of(&uri);
    let id = DeadLetterId(query.number("number").unwrap_or(0));
    let found = read(&site, None, move |reader, _| reader.store().dead_letter(id));
    match found.await {
        Ok((around, Some(letter))) => {
            let title = format!("Dead letter {}", letter.id.0);
            framed(&around, "/letters", &title, &whole(&around, &letter))
        }
        Ok((around, None)) => missing(
            &around,
            "/letters",
            "There is no dead letter with this number.",
        ),
        Err(error) => trouble(&error),
    }
}

fn whole(around: &Around, letter: &DeadLetter) -> Markup {
    let body = &letter.letter;
    let mut rows = vec![
        ("Reason", html! { (safe(&body.reason)) }),
        ("About", about(&letter.subject)),
        ("Attempts", number(u64::from(body.attempts))),
        ("First", date(around.now, body.first_at)),
        ("Last", date(around.now, body.last_at)),
    ];
    if let Some(at) = letter.replayed_at {
        rows.push(("Replayed", date(around.now, at)));
    }
    let content = match &letter.subject {
        Subject::Job { payload: bytes, .. } | Subject::Message { body: bytes, .. } => Some(bytes),
        Subject::Url { .. } | Subject::Text(_) => None,
    };
    html! {
        (section("About", &facts(&rows)))
        @if let Some(content) = content {
            (section("Content", &html! { pre { (lines(&String::from_utf8_lossy(content))) } }))
        }
        (section("Last exchange", &html! {
            @if body.last.is_empty() { p.empty { "There was none." } } @else { pre { (lines(&body.last)) } }
        }))
    }
}

/// Lines without characters that a terminal acts on.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(safe).collect();
    lines.join("\n")
}
