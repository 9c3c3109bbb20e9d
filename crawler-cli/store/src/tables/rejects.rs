//! The rejected-URL filter of a store: what is inserted, when it is built again, and what it is worth.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::codec;
use super::failure::Failure;
use super::watch::{Watched, is_gone};
use crate::Cursor;
use crate::rejected::REJECTED;
use crate::rejected::{Covered, Rejected, key_of};
use crate::sql::{Connection, Optional as _, Row};
use plain::files::beside;

/// What the rejected-URL filter has answered, for submitted URLs that were members of their sets already.
#[derive(Debug, Default)]
pub struct RejectedFigures {
    /// How often the filter said that a URL may be rejected, so that the row of the URL was read.
    pub hits: AtomicU64,
    /// How often the row then said that the URL is not rejected.
    pub false_positives: AtomicU64,
    /// How often the filter said that a URL is not rejected, so that no row was read.
    pub misses: AtomicU64,
}

/// The filter of a store.
#[derive(Debug)]
pub(crate) struct Rejects {
    filter: Rejected,
    /// The filter that is being built from the rows, and the last one that it has.
    next: Option<(Rejected, i64)>,
    /// Empty if there is no file.
    database: PathBuf,
    is_read_only: bool,
    /// Insertions that the file does not have.
    unsaved: u64,
    figures: Arc<RejectedFigures>,
}

/// How many rows are read for the next filter with each batch of URLs.
const PIECE: i64 = 20_000;
/// With so many insertions the file is written again.
const UNSAVED: u64 = 1024;

impl Default for Rejects {
    fn default() -> Self {
        Self {
            filter: Rejected::everything(),
            next: Some((Rejected::with_room(0), 0)),
            database: PathBuf::new(),
            is_read_only: false,
            unsaved: 0,
            figures: Arc::default(),
        }
    }
}

impl Rejects {
    /// Reads the file of the filter, and what was rejected since the file was written. If there is any doubt about the
    /// file, the filter says yes to everything until it is built again.
    pub(super) fn open(
        db: &Connection,
        database: &Path,
        is_read_only: bool,
    ) -> Result<Self, Failure> {
        let mut rejects = Self {
            database: database.to_owned(),
            is_read_only,
            ..Self::default()
        };
        let Some((filter, covered)) = Rejected::load(database) else {
            return Ok(rejects);
        };
        if covered != covered_by(db, Some(covered.cursor))? {
            return Ok(rejects);
        }
        (rejects.filter, rejects.next) = (filter, None);
        rejects.catch_up(db, Cursor(covered.cursor))?;
        Ok(rejects)
    }

    /// Goes on to what was rejected after this change of state.
    pub(super) fn catch_up(&mut self, db: &Connection, after: Cursor) -> Result<(), Failure> {
        let since = "SELECT u.text FROM event e JOIN url u ON u.url = e.url \
             WHERE e.cursor > ?1 AND e.to_state IN ('GONE', 'PRUNED')";
        let mut since = db.prepare_cached(since)?;
        let mut rows = since.stream([after.0])?;
        while let Some(row) = rows.next()? {
            self.insert(row.get_str(0)?);
        }
        Ok(())
    }

    pub(super) fn figures(&self) -> Arc<RejectedFigures> {
        Arc::clone(&self.figures)
    }

    /// A URL is rejected from now on.
    pub(super) fn insert(&mut self, url: &str) {
        let key = key_of(url);
        self.filter.insert(key);
        if let Some((next, _)) = &mut self.next {
            next.insert(key);
        }
        self.unsaved += 1;
    }

    /// A URL that is rejected, although none of its changes is after those that the file has: the file is in doubt.
    pub(super) fn insert_late(&mut self, url: &str) {
        self.insert(url);
        if !self.database.as_os_str().is_empty() {
            // If it stays, the worst is that the URL is not told as gone after a crash.
            let _ = fs::remove_file(beside(&self.database, REJECTED));
        }
        self.unsaved += UNSAVED;
    }

    /// Whether a URL that is a member may be rejected: its row is to be read.
    pub(super) fn may_have(&self, url: &str) -> bool {
        let may_have = self.filter.may_have(key_of(url));
        let count = match may_have {
            true => &self.figures.hits,
            false => &self.figures.misses,
        };
        count.fetch_add(1, Ordering::Relaxed);
        may_have
    }

    /// The row of a URL that may have been rejected says that it is not.
    pub(super) fn was_wrong(&self) {
        self.figures.false_positives.fetch_add(1, Ordering::Relaxed);
    }

    /// Goes on to build the filter, if it is to be built; to be called with each batch of URLs. `rejected` is how many
    /// URLs are rejected, about.
    pub(super) fn build(&mut self, db: &Connection, rejected: u64) -> Result<(), Failure> {
        if self.next.is_none() && self.filter.is_full() {
            self.next = Some((Rejected::with_room(rejected.saturating_mul(2)), 0));
        }
        let Some((next, after)) = &mut self.next else {
            return Ok(());
        };
        if *after == 0 {
            *next = Rejected::with_room(rejected.saturating_mul(2));
        }
        let urls = "SELECT url, text, watched FROM url WHERE url > ?1 ORDER BY url LIMIT ?2";
        let mut urls = db.prepare_cached(urls)?;
        let mut rows = urls.query([*after, PIECE])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            (*after, count) = (row.get(0)?, count + 1);
            let Some(watched) = codec::blob(row, 2)? else {
                continue;
            };
            if is_gone(Watched::from_bytes(watched)?.life.state()) {
                next.insert(key_of(row.get_str(1)?));
            }
        }
        if count < PIECE
            && let Some((next, _)) = self.next.take()
        {
            self.filter = next;
            self.unsaved += UNSAVED;
        }
        Ok(())
    }

    /// The transaction is stored: writes the file now and then. A file that cannot be written is left in doubt.
    pub(super) fn commit(&mut self, db: &Connection) {
        let has_file = !self.database.as_os_str().is_empty() && !self.is_read_only;
        if self.unsaved < UNSAVED || !has_file || self.next.is_some() {
            return;
        }
        self.unsaved = 0;
        let covered = covered_by(db, None);
        let saved = covered.map(|covered| self.filter.save(&self.database, covered));
        if !matches!(saved, Ok(Ok(()))) {
            // The old file is still right: it is read with the changes since.
            self.unsaved = UNSAVED / 2;
        }
    }
}

/// The change of state with this cursor, or the last one.
fn covered_by(db: &Connection, cursor: Option<i64>) -> Result<Covered, Failure> {
    let query = "SELECT cursor, at || ' ' || url || ' ' || to_state FROM event \
         WHERE CAST(?1 AS BIGINT) IS NULL OR cursor = ?1 ORDER BY cursor DESC LIMIT 1";
    let read = |row: Row<'_>| Ok((row.get(0)?, row.get::<String>(1)?));
    let found = db
        .prepare_cached(query)?
        .query_row([cursor], read)
        .optional()?;
    Ok(
        found.map_or_else(Covered::default, |(cursor, change)| Covered {
            cursor,
            change: xxh3_64(change.as_bytes()),
        }),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use jiff::Timestamp;

    use super::*;
    use crate::sqlite::Sqlite;
    use crate::suite::judged;
    use crate::{DueUrl, Judgement, Lanes, NewUrl, Origin, WatchStore as _};
    use plain::random::Random;
    use verdict::life::Profile;

    const URLS: usize = 40;

    fn is_built(store: &Sqlite) -> bool {
        !store.memory.rejects.filter.is_everything()
    }

    fn start() -> Timestamp {
        Timestamp::from_second(1_760_000_000).expect("in range")
    }

    /// Submits all URLs, and returns the indices of those that are rejected.
    fn submit(store: &mut Sqlite) -> Vec<usize> {
        let urls: Vec<NewUrl> = (0..URLS)
            .map(|number| NewUrl::parse(&format!("http://a/{number}")).expect("a URL"))
            .collect();
        let submitted = store.submit("docs", Origin::Hand, &urls, start());
        submitted.expect("written").gone
    }

    /// Every third URL is gone for good.
    fn is_gone(url: &str) -> bool {
        let number = url
            .rsplit('/')
            .next()
            .and_then(|number| number.parse().ok());
        number.is_some_and(|number: usize| number.is_multiple_of(3))
    }

    fn answered(due: &DueUrl, now: Timestamp) -> Judgement {
        let status = if is_gone(&due.url) { 410 } else { 200 };
        let rules = Profile::Default.rules();
        judged(due, status, now, &rules, &mut Random::new(7))
    }

    /// Asks all URLs for six days.
    fn ask(store: &mut Sqlite) {
        for hours in (0..144).step_by(3) {
            let now = start() + jiff::SignedDuration::from_hours(hours);
            let all = [Lanes::Schedule, Lanes::Doubt].into_iter();
            let lanes =
                all.flat_map(|lanes| lanes.lanes().iter().copied().map(move |lane| (lanes, lane)));
            for (lanes, lane) in lanes {
                let ready = store
                    .ready(lanes, now, &HashSet::new(), 1)
                    .expect("readable");
                let Some(ready) = ready.first() else {
                    continue;
                };
                let due = store
                    .due(ready.host.id, lane, None, now, URLS)
                    .expect("readable");
                let judgements: Vec<Judgement> = due.iter().map(|due| answered(due, now)).collect();
                store.judge(&judgements).expect("written");
            }
        }
    }

    fn expected() -> Vec<usize> {
        (0..URLS).step_by(3).collect()
    }

    fn counts(store: &Sqlite) -> (u64, u64, u64) {
        let figures = store.rejected_figures();
        let RejectedFigures {
            hits,
            false_positives,
            misses,
        } = &*figures;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(hits), read(false_positives), read(misses))
    }

    #[test]
    fn a_filter_that_says_yes_to_everything_gives_the_same() {
        let mut honest = Sqlite::temporary().expect("memory");
        let mut yes = Sqlite::temporary().expect("memory");
        for store in [&mut honest, &mut yes] {
            assert_eq!(submit(store), [0; 0]);
            ask(store);
        }
        yes.memory.rejects.filter = Rejected::everything();
        yes.memory.rejects.next = None;
        assert_eq!(submit(&mut honest), expected());
        assert_eq!(submit(&mut yes), expected());
        let (all, gone) = (URLS as u64, expected().len() as u64);
        assert_eq!(counts(&honest), (gone, 0, all - gone));
        assert_eq!(counts(&yes), (all, all - gone, 0));
    }

    #[test]
    fn the_filter_is_read_again_or_built_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("watch.db");
        let file = folder.path().join("watch.db-rejected");
        let mut store = Sqlite::open(&path).expect("a store");
        submit(&mut store);
        assert!(is_built(&store) && file.exists());
        ask(&mut store);
        drop(store);
        // The file is older than the changes: what was rejected since is read from them.
        let mut store = Sqlite::open(&path).expect("a store");
        assert!(is_built(&store));
        assert_eq!(submit(&mut store), expected());
        assert_eq!(counts(&store), (expected().len() as u64, 0, 26));
        drop(store);
        for doubt in ["missing", "damaged", "of another store"] {
            match doubt {
                "missing" => fs::remove_file(&file).expect("removed"),
                "damaged" => fs::write(&file, "no filter").expect("written"),
                _ => {
                    let covered = Covered {
                        cursor: 3,
                        change: 7,
                    };
                    let other = Rejected::with_room(0).save(&path, covered);
                    other.expect("written");
                }
            }
            let mut store = Sqlite::open(&path).expect("a store");
            assert!(!is_built(&store), "{doubt}");
            assert_eq!(submit(&mut store), expected(), "{doubt}");
            assert!(is_built(&store), "{doubt}");
            drop(store);
            let mut store = Sqlite::open(&path).expect("a store");
            assert_eq!(submit(&mut store), expected(), "{doubt}");
            assert_eq!(counts(&store), (expected().len() as u64, 0, 26), "{doubt}");
        }
    }
}
