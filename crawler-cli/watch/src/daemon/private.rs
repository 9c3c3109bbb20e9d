//! URLs at private addresses, which are asked only with `limits.allow_private`: how many there are is said at the start, and
//! once the key allows them they are due at once.

use std::io;
use std::sync::Arc;
use std::thread;

use crate::work::Tools;
use plain::text;
use store::{StoreError, StoreHandle as _, Which};

/// Says how many URLs of the store are not asked, or has them asked now, on a thread of its own.
///
/// # Errors
/// The system has no further thread.
pub(super) fn look(tools: &Arc<Tools>) -> io::Result<()> {
    let private = match tools
        .store()
        .read(|store| Ok(store.watch_counts()?.private))
    {
        Ok(0) => return Ok(()),
        Ok(private) => private,
        Err(error) => {
            tracing::error!("the counts in the store cannot be read: {error}");
            return Ok(());
        }
    };
    if !tools.http().allows_private() {
        let urls = text::count(private, "URL", "URLs");
        tracing::warn!(
            "{urls} at private addresses, which are never asked without limits.allow_private"
        );
        return Ok(());
    }
    let tools = Arc::clone(tools);
    let thread = thread::Builder::new().name("private".to_owned());
    thread.spawn(move || match make_due(&tools) {
        Ok(0) => {}
        Ok(count) => {
            let urls = text::count(count, "URL", "URLs");
            let text = format!("limits.allow_private: {urls} at private addresses are asked now");
            tools.note("private", &text);
        }
        Err(error) => tracing::error!("URLs at private addresses: {error}"),
    })?;
    Ok(())
}

fn make_due(tools: &Tools) -> Result<u64, StoreError> {
    let (now, mut count, mut after) = (tools.now(), 0, None);
    loop {
        let piece = tools.call(move |store| store.make_due(&Which::Private, now, after, PIECE))?;
        count += piece.done;
        after = piece.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

/// How many URLs are looked at in one transaction.
const PIECE: usize = 2_000;
