//! The changes of hosts as statements, in the transaction that the next commit ends.

use rusqlite::{Connection, Params, params};

use super::{signed, text};
use crate::host_crawl::{Change, HostCrawl};

/// Writes a change of a host crawl.
pub(super) fn write(db: &Connection, host: i64, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::Begun => Ok(()),
        Change::Queued(number, task) => {
            let insert = "INSERT INTO queued (host, number, task) VALUES (?1, ?2, ?3)";
            execute(db, insert, params![host, signed(*number), task])
        }
        Change::Done(number) => {
            let row = [host, signed(*number)];
            execute(
                db,
                "DELETE FROM queued WHERE host = ?1 AND number = ?2",
                row,
            )?;
            execute(db, "DELETE FROM held WHERE host = ?1 AND number = ?2", row)
        }
        Change::Listing(number, Some(listing), place) => {
            let insert = "INSERT INTO held (host, number, listing, place) VALUES (?1, ?2, ?3, ?4)";
            let row = params![host, signed(*number), listing, text(place)];
            execute(db, insert, row)
        }
        Change::Listing(number, None, place) => {
            let update = "UPDATE held SET place = ?3 WHERE host = ?1 AND number = ?2";
            execute(db, update, params![host, signed(*number), text(place)])
        }
        Change::Wanted(number, task) | Change::Failed(number, task) => {
            let insert = "INSERT INTO queued (host, number, task, spilled) VALUES (?1, ?2, ?3, ?4)";
            let spilled = match change {
                Change::Failed(..) => FAILED,
                _ => WANTED,
            };
            execute(db, insert, params![host, signed(*number), task, spilled])
        }
        Change::Known(fingerprint) => {
            let insert =
                "INSERT INTO known (host, directory) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            execute(db, insert, params![host, fingerprint.to_le_bytes()])
        }
    }
}

/// Writes how far a host is, and which of its tasks are in the database only.
pub(super) fn write_host(
    db: &Connection,
    host: i64,
    crawl: &HostCrawl,
    spilled: &[u64],
) -> rusqlite::Result<()> {
    for number in spilled {
        let update = "UPDATE queued SET spilled = 1 WHERE host = ?1 AND number = ?2";
        execute(db, update, [host, signed(*number)])?;
    }
    let replace = "INSERT OR REPLACE INTO host (host, origin, summit) VALUES (?1, ?2, ?3)";
    let row = params![host, crawl.origin().as_str(), text(&crawl.snapshot())];
    execute(db, replace, row)
}

pub(super) fn execute(db: &Connection, statement: &str, row: impl Params) -> rusqlite::Result<()> {
    db.prepare_cached(statement)?.execute(row).map(drop)
}

/// In the column `spilled`: a task that a later run does again, and a file to download.
pub(super) const FAILED: i64 = 2;
pub(super) const WANTED: i64 = 3;
