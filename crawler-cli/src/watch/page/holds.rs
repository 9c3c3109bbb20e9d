//! Hosts that are held.

use maud::{Markup, html};

use super::asked::Asked;
use super::deeds::Deed;
use super::frame::framed;
use super::pieces::{ROWS, date, host, number, pager, section, table, time};
use super::{read, trouble};
use crate::store::{HostHold, HostId, WatchStore as _};
use crate::watch::admin::answer::Answer;
use crate::watch::hands::why::Around;

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let after = query.number("after").map(HostId);
    let found = read(&asked.site, None, move |reader, _| {
        reader.store().holds_after(after, ROWS + 1)
    });
    match found.await {
        Ok((around, mut holds)) => {
            let more = holds.len() > ROWS;
            holds.truncate(ROWS);
            let next = holds
                .last()
                .filter(|_| more)
                .map(|hold| hold.host.0.to_string());
            let body = section(
                "Held hosts",
                &html! {
                    p {
                        "Many URLs of these hosts turned negative at once. Only samples of them are asked, and nothing of them is "
                        "reported or pruned, until samples are good again, or an operator decides."
                    }
                    (table("Holds", &["Host", "Since", "#URLs", "Last sample", ""], &rows(&asked, &around, &holds), "No host is held."))
                    (pager(query, "/holds", "after", next.as_deref()))
                },
            );
            framed(&asked, &around, "/holds", "Holds", &body)
        }
        Err(error) => trouble(&error),
    }
}

fn rows(asked: &Asked, around: &Around, holds: &[HostHold]) -> Vec<Vec<Markup>> {
    let rows = holds.iter().map(|held| {
        let sample = match (held.ending, held.hold.sampled_at) {
            (Some(_), _) => html! { "the hold is ending" },
            (None, None) => html! { "none yet" },
            (None, Some(at)) => {
                let word = if held.hold.was_sample_good {
                    "good, "
                } else {
                    "bad, "
                };
                html! { (word) (time(around.now, at)) }
            }
        };
        vec![
            host(&held.root),
            date(around.now, held.hold.since),
            number(held.held),
            sample,
            deeds(asked, held),
        ]
    });
    rows.collect()
}

/// What can be done with a hold that is not ending.
pub(super) fn deeds(asked: &Asked, held: &HostHold) -> Markup {
    let host = [("host", &*held.root)];
    html! {
        @if held.ending.is_none() {
            div.deeds { (asked.button(Deed::Release, &host)) (asked.button(Deed::Confirm, &host)) }
        }
    }
}
