//! What happens to URLs, for the tests of this folder.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::check::life::State;
use crate::store::{
    Amendment, Change, Engine, Lane, Lanes, NewUrl, Notice, NoticeId, Origin, StoreError,
};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// URLs of one host become members of a set.
pub(super) fn submit(store: &mut dyn Engine, urls: &[&str]) -> Result<(), StoreError> {
    let parse = |url: &&str| NewUrl::parse(url).expect("a URL");
    let urls: Vec<NewUrl> = urls.iter().map(parse).collect();
    store.submit("docs", Origin::Hand, &urls, at(0)).map(drop)
}

/// The state of a URL changes.
pub(super) fn change(
    store: &mut dyn Engine,
    url: &str,
    (from, to): (State, State),
    second: i64,
    is_damped: bool,
) -> Result<(), StoreError> {
    let ready = store.ready(Lanes::Schedule, at(0), &HashSet::new(), 9)?;
    let due = store.due(ready[0].host.id, Lane::Routine, None, at(0), 99_999)?;
    let due = due.into_iter().find(|due| due.url == url).expect("due");
    let change = Change {
        at: at(second),
        from,
        to,
        status: Some(410),
        why: "status_410".to_owned(),
        is_damped,
    };
    let amendment = Amendment {
        next: (due.id.lane, due.id.due),
        id: due.id,
        life: due.life,
        changes: vec![change],
    };
    let stored = store.amend(&[amendment])?.stored;
    assert_eq!(stored, 1);
    Ok(())
}

/// A guard says something.
pub(super) fn notice(
    store: &mut dyn Engine,
    kind: &str,
    second: i64,
) -> Result<NoticeId, StoreError> {
    let host = store.ready(Lanes::Schedule, at(0), &HashSet::new(), 9)?;
    store.note(&Notice {
        at: at(second),
        kind: kind.to_owned(),
        host: host.first().map(|ready| ready.host.id),
        who: None,
        text: "something".to_owned(),
    })
}

pub(super) const BROKEN: (State, State) = (State::Suspect, State::Broken);
pub(super) const GONE: (State, State) = (State::Broken, State::Gone);
