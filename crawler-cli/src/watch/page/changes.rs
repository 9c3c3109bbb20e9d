//! Changes of state, newest first.

use maud::{Markup, html};

use super::asked::Asked;
use super::frame::framed;
use super::pieces::{ROWS, change, date, pager, section, state_field, state_named, table, url};
use super::{read, trouble};
use crate::check::life::State;
use crate::store::{Cursor, Event, LOOKS, StoreError, WatchStore};
use crate::watch::admin::answer::Answer;
use crate::watch::hands::why::Around;
use crate::watch::hands::words::safe;

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let before = Cursor(query.number("before").unwrap_or(i64::MAX));
    let to = query.get("to").and_then(state_named);
    let found = read(&asked.site, None, move |reader, _| {
        some(reader.store(), before, to)
    });
    match found.await {
        Ok((around, (events, next))) => {
            let next = next.map(|next| next.0.to_string());
            let body = html! {
                (filter(to))
                (section("List", &html! {
                    (list(&around, &events))
                    (pager(query, "/changes", "before", next.as_deref()))
                }))
            };
            framed(&asked, &around, "/changes", "Changes", &body)
        }
        Err(error) => trouble(&error),
    }
}

/// Some changes before a place, and where to go on.
fn some(
    store: &mut dyn WatchStore,
    mut before: Cursor,
    to: Option<State>,
) -> Result<(Vec<Event>, Option<Cursor>), StoreError> {
    let mut found = Vec::new();
    for _ in 0..LOOKS / LOOK {
        let events = store.events_before(before, LOOK)?;
        let is_last = events.len() < LOOK;
        for event in events {
            before = event.cursor;
            if to.is_none_or(|to| to == event.to) {
                found.push(event);
            }
            if found.len() == ROWS {
                return Ok((found, Some(before)));
            }
        }
        if is_last {
            return Ok((found, None));
        }
    }
    Ok((found, Some(before)))
}

fn filter(to: Option<State>) -> Markup {
    html! {
        form.filter method="get" action="/changes" {
            (state_field("To", "to", to))
            button { "Show" }
        }
    }
}

/// Changes of URLs.
pub(super) fn list(around: &Around, events: &[Event]) -> Markup {
    let rows: Vec<Vec<Markup>> = events
        .iter()
        .map(|event| {
            vec![
                date(around.now, event.at),
                change(event.from, event.to),
                url(&event.url),
                html! { @if let Some(status) = event.status { (status) } },
                html! { (safe(&event.why)) },
            ]
        })
        .collect();
    let columns = ["When", "Change", "URL", "#Status", "Why"];
    table(
        "Changes of state, newest first",
        &columns,
        &rows,
        "There are no such changes.",
    )
}

/// How many changes are read at once.
const LOOK: usize = 500;
