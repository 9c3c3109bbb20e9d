//! A clock that was ahead: URLs that were asked meanwhile would wait for as long as it was wrong.

use std::io;
use std::sync::Arc;
use std::thread;

use jiff::{SignedDuration, Timestamp};

use crate::work::Tools;
use store::{Cursor, StoreError, StoreHandle as _};

/// Has URLs asked again that were asked at times which are still to come. Looks at them on a thread of its own, and only if
/// the store has such times.
///
/// # Errors
/// The system has no further thread.
pub(super) fn ask_again(tools: &Arc<Tools>) -> io::Result<()> {
    let now = tools.now();
    let last = match last(tools) {
        Ok(Some(last)) if last.duration_since(now) > LEAST => last,
        Ok(_) => return Ok(()),
        Err(error) => {
            tracing::error!("the times in the store cannot be read: {error}");
            return Ok(());
        }
    };
    let tools = Arc::clone(tools);
    let thread = thread::Builder::new().name("clock".to_owned());
    thread.spawn(move || match bring_forward(&tools, now) {
        Ok(0) => {}
        Ok(count) => tools.note(
            "clock",
            &format!("the clock was ahead, until {last:.0}: URLs that were asked then ({count}) are asked again"),
        ),
        Err(error) => tracing::error!("URLs that a clock ahead made due later: {error}"),
    })?;
    Ok(())
}

/// The last time that the store has of what is done all the time.
fn last(tools: &Tools) -> Result<Option<Timestamp>, StoreError> {
    tools.store().read(|store| {
        let cycle = store.cycles(1)?.first().map(|cycle| cycle.began);
        let change = store.events_before(Cursor::END, 1)?;
        Ok(cycle.max(change.first().map(|change| change.at)))
    })
}

fn bring_forward(tools: &Tools, now: Timestamp) -> Result<u64, StoreError> {
    let (mut count, mut after) = (0, None);
    loop {
        let piece = tools.call(move |store| store.bring_forward(now, after, PIECE))?;
        count += piece.done;
        after = piece.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

/// A clock that was ahead by less does no harm.
const LEAST: SignedDuration = SignedDuration::from_hours(1);

/// How many URLs are looked at in one transaction.
const PIECE: usize = 2_000;
