//! The end of a hold in the store: the same for the core of the service and for a command without a service.

use jiff::Timestamp;

use store::{Amendment, Change, DueId, HoldEnd, HostId, Lane, StoreError, WatchStore};
use verdict::life::Rules;

/// Takes URLs of a host out of quarantine. They are suspect, and due now; with [`HoldEnd::Confirm`] their evidence goes on
/// as if there had been no guard, otherwise it begins anew. Returns the last one, if there are more: then this is to be
/// called again. With the last ones the hold is forgotten.
pub(super) fn release_piece(
    store: &mut (impl WatchStore + ?Sized),
    rules: &Rules,
    now: Timestamp,
    host: HostId,
    end: HoldEnd,
) -> Result<Option<DueId>, StoreError> {
    let rows = store.due(host, Lane::Held, None, Timestamp::MAX, PIECE)?;
    let last = rows.last().map(|row| row.id);
    let is_full = rows.len() >= PIECE;
    let amendments = rows.into_iter().map(|row| {
        let mut life = row.life;
        let change = match end {
            HoldEnd::Confirm => rules.confirm(now, &mut life),
            HoldEnd::Release => rules.release(now, &mut life),
        };
        let changes = change.map(|change| Change::new(&change, None));
        Amendment {
            id: row.id,
            next: (Lane::of(life.state(), false), now),
            life,
            changes: changes.into_iter().collect(),
        }
    });
    let amendments: Vec<Amendment> = amendments.collect();
    store.amend(&amendments)?;
    if !is_full {
        store.end_hold(host)?;
    }
    Ok(last.filter(|_| is_full))
}

/// Rows that one operation changes, so that other work of the store goes on.
pub(super) const PIECE: usize = 256;
