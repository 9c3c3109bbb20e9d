//! The end of a hold while no service runs.

use jiff::Timestamp;

use crate::check::life::Rules;
use crate::store::{Amendment, Change, Guarded, HostId, Lane, StoreError, WatchStore};

/// Ends the hold of a host: each held URL is suspect and due now. `is_confirmed`: its evidence goes on as if there had
/// been no guard; otherwise it begins anew. The hold itself goes last, so that a command that was killed is repeated.
pub(super) fn end_hold(
    store: &mut impl WatchStore,
    rules: &Rules,
    host: HostId,
    is_confirmed: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    loop {
        let held = store.due(host, Lane::Held, None, Timestamp::MAX, PIECE)?;
        if held.is_empty() {
            break;
        }
        let amendments = held.into_iter().map(|url| {
            let mut life = url.life;
            let changed = match is_confirmed {
                true => rules.confirm(now, &mut life),
                false => rules.release(now, &mut life),
            };
            let change = changed.map(|transition| Change {
                at: transition.at,
                from: transition.from,
                to: transition.to,
                status: None,
                why: transition.why.name().into_owned(),
            });
            Amendment {
                id: url.id,
                next: (Lane::of(life.state(), false), now),
                life,
                changes: change.into_iter().collect(),
            }
        });
        let amendments: Vec<Amendment> = amendments.collect();
        if store.amend(&amendments)?.stored == 0 {
            break;
        }
    }
    let mut stops = store.stops(Guarded::Host(host))?;
    stops.end(now);
    store.save_stops(Guarded::Host(host), &stops)?;
    store.end_hold(host)
}

/// How many URLs are changed in one transaction.
const PIECE: usize = 500;
