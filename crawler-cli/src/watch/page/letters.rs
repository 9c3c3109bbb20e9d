//! Dead letters.

use maud::{Markup, html};

use super::asked::Asked;
use super::deeds::Deed;
use super::frame::{framed, missing};
use super::pieces::{ROWS, date, facts, href, number, pager, section, table, time, url};
use super::query::Query;
use super::{read, trouble};
use crate::store::{DeadLetter, DeadLetterFilter, DeadLetterId, JobStore as _, Subject};
use crate::watch::admin::answer::Answer;
use crate::watch::hands::letters::subject;
use crate::watch::hands::why::Around;
use crate::watch::hands::words::{number as in_words, safe};

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let before = query
        .number("before")
        .map_or(DeadLetterId::END, DeadLetterId);
    let filter = DeadLetterFilter {
        reason: query.get("reason").map(str::to_owned),
        host: query.get("host").map(str::to_owned),
        queue: query.get("queue").map(str::to_owned),
        ..DeadLetterFilter::default()
    };
    let found = read(&asked.site, None, move |reader, _| {
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
                (reasons(query, &counts))
                (of_reason(&asked, &counts))
                (section("List", &html! {
                    (list(&asked, &around, &page.rows))
                    (pager(query, "/letters", "before", next.as_deref()))
                }))
            };
            framed(&asked, &around, "/letters", "Dead letters", &body)
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

/// What can be done with all that have the reason that is shown.
fn of_reason(asked: &Asked, counts: &[(String, u64)]) -> Markup {
    let chosen = asked.query.get("reason");
    let all = counts
        .iter()
        .find(|(reason, count)| chosen == Some(reason) && *count > 0);
    html! {
        @if let Some((reason, count)) = all {
            div.deeds {
                span { "All " (in_words(*count)) " with this reason:" }
                (asked.button(Deed::Replay, &[("reason", reason)]))
                (asked.button(Deed::Drop, &[("reason", reason), ("back", "/letters")]))
            }
        }
    }
}

/// What can be done with one, whose number is given. `back`: where to go on if it is dropped.
fn deeds(asked: &Asked, number: &str, back: &str) -> Markup {
    html! {
        div.deeds {
            (asked.button(Deed::Replay, &[("number", number)]))
            (asked.button(Deed::Drop, &[("number", number), ("back", back)]))
        }
    }
}

/// Dead letters, with what can be done with each.
pub(super) fn list(asked: &Asked, around: &Around, letters: &[DeadLetter]) -> Markup {
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
                match letter.replayed_at {
                    Some(at) => html! { "replayed " (time(around.now, at)) },
                    None => deeds(asked, &number, &asked.here),
                },
            ]
        })
        .collect();
    let columns = ["#Number", "Reason", "About", "#Attempts", "#Last", ""];
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
pub(super) async fn one(asked: Asked) -> Answer {
    let query = &asked.query;
    let id = DeadLetterId(query.number("number").unwrap_or(0));
    let found = read(&asked.site, None, move |reader, _| {
        reader.store().dead_letter(id)
    });
    match found.await {
        Ok((around, Some(letter))) => {
            let title = format!("Dead letter {}", letter.id.0);
            framed(
                &asked,
                &around,
                "/letters",
                &title,
                &whole(&asked, &around, &letter),
            )
        }
        Ok((around, None)) => missing(
            &asked,
            &around,
            "/letters",
            "There is no dead letter with this number.",
        ),
        Err(error) => trouble(&error),
    }
}

fn whole(asked: &Asked, around: &Around, letter: &DeadLetter) -> Markup {
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
        @if letter.replayed_at.is_none() {
            // After it is dropped, there is no page of it.
            (deeds(asked, &letter.id.0.to_string(), "/letters"))
        }
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
