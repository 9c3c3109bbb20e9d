//! Jobs that check a set: its source is read, and all of its URLs become due. The hosts' limits spread the requests.

use super::failure::Failure;
use super::tools::Tools;
use crate::config::Source;
use crate::sets::{ReadError, read_set};
use jobs::Cancel;
use store::Which;

/// Makes all URLs of the set due now, in pieces. If its source cannot be read, those that are known are checked, and the
/// job has failed.
pub(super) fn run(
    set: &str,
    source: &Source,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<String, Failure> {
    let read = match read_set(set, source, tools, cancel) {
        Err(ReadError::Cancelled) => return Err(stopped()),
        read => read,
    };
    let which = Which::Set(set.to_owned());
    let (mut after, mut count) = (None, 0);
    loop {
        let (which, now) = (which.clone(), tools.now());
        let piece = tools.call(move |store| store.make_due(&which, now, after, PIECE));
        let piece = piece.map_err(|error| Failure::retry(error.to_string()))?;
        count += piece.done;
        after = piece.next;
        if after.is_none() {
            break;
        }
        if cancel.is_set() {
            return Err(stopped());
        }
    }
    match read {
        Ok(_) => Ok(format!("{count} URLs are due now")),
        Err(error) => {
            let text = format!("{count} URLs are due now, but the source of {set}: {error}");
            Err(Failure::retry(text))
        }
    }
}

fn stopped() -> Failure {
    Failure::retry("the job was stopped")
}

/// URLs that become due in one transaction.
const PIECE: usize = 2_000;
