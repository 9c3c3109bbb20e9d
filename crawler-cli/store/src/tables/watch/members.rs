//! Makes URLs members of sets, and takes them out again.

use jiff::Timestamp;

use super::bytes::{Watched, beside};
use super::rows::{Rows, UrlRow};
use super::sets::{BY_HAND, Members, SetRow, is_gone};
use crate::sql::{Connection, Optional as _, Statement, params};
use crate::tables::codec::{self, ANSWER_COLUMNS};
use crate::tables::failure::Failure;
use crate::tables::keys::Lookup;
use crate::tables::memory::{Memory, take};
use crate::{Lane, NewUrl, Origin, Reading, Submitted};
use verdict::life::State;
use verdict::life::time::to_millis;

pub(super) fn submit(
    db: &Connection,
    memory: &mut Memory,
    name: &str,
    origin: Origin,
    urls: &[NewUrl],
    now: Timestamp,
) -> Result<Submitted, Failure> {
    let mut set = SetRow::find_or_make(db, name)?;
    let by = match origin {
        Origin::Hand => By::Hand,
        Origin::Source => {
            set.reading = set.reading.max(1);
            By::Reading(set.reading)
        }
    };
    join_all(db, memory, set, by, urls, now)
}

pub(super) fn read(
    db: &Connection,
    memory: &mut Memory,
    reading: &Reading,
    urls: &[NewUrl],
    now: Timestamp,
) -> Result<Submitted, Failure> {
    let set = SetRow::find_or_make(db, &reading.set)?;
    join_all(db, memory, set, By::Reading(reading.number), urls, now)
}

/// Who says that a URL is a member.
#[derive(Clone, Copy)]
enum By {
    Hand,
    Reading(i64),
}

impl By {
    /// The mark of a member that has the mark `old`.
    fn mark(self, old: Option<i64>) -> i64 {
        let old = old.unwrap_or(0);
        match self {
            Self::Hand => old | BY_HAND,
            Self::Reading(reading) => reading << 1 | old & BY_HAND,
        }
    }
}

fn join_all(
    db: &Connection,
    memory: &mut Memory,
    mut set: SetRow,
    by: By,
    urls: &[NewUrl],
    now: Timestamp,
) -> Result<Submitted, Failure> {
    let now = to_millis(now);
    let gone = memory.tally.gone();
    memory.rejects.build(db, gone)?;
    let mut membership = Membership::prepare(db, memory)?;
    let mut finder = Finder::prepare(db)?;
    let mut submitted = Submitted::default();
    let (mut joiner, before) = (Joiner::prepare(db)?, set.clone());
    for (index, url) in urls.iter().enumerate() {
        let (key, known) = finder.find(membership.memory, url.identity())?;
        match known {
            None => {
                let number = joiner.add(&mut membership, key, url, now)?;
                membership.join(&mut set, number, by)?;
                submitted.new += 1;
            }
            Some(number) => {
                submitted.known += 1;
                if membership.rejoin(&mut set, (number, url.identity()), by, now)? {
                    submitted.gone.push(index);
                }
            }
        }
    }
    if set != before {
        set.save(db)?;
    }
    Ok(submitted)
}

/// Finds URLs that are asked, by their texts.
pub(crate) struct Finder<'c> {
    lookup: Lookup<'c>,
    is_same: Statement<'c>,
}

impl<'c> Finder<'c> {
    pub(crate) fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        let is_same = "SELECT 1 FROM url WHERE url = ?1 AND text = ?2 AND host IS NOT NULL";
        Ok(Self {
            lookup: Lookup::prepare(db)?,
            is_same: db.prepare_cached(is_same)?,
        })
    }

    /// The URL with this text, and its key; or the free key for it.
    pub(crate) fn find(
        &mut self,
        memory: &Memory,
        text: &str,
    ) -> Result<(i64, Option<i64>), Failure> {
        let is_same = &mut self.is_same;
        memory.keys.search(&mut self.lookup, text, |url| {
            Ok(is_same.exists(params![url, text])?)
        })
    }
}

/// The statements for new URLs.
struct Joiner<'c> {
    db: &'c Connection,
    insert: Statement<'c>,
}

impl<'c> Joiner<'c> {
    fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        let insert = "INSERT INTO url (url, host, link, entry, demand, text, sets, spelling, watched) \
             VALUES (?1, ?2, 0, 0, 0, ?3, 1, ?4, ?5)";
        Ok(Self {
            db,
            insert: db.prepare_cached(insert)?,
        })
    }

    /// Stores a URL that was never seen, and that is now in one set.
    fn add(
        &mut self,
        membership: &mut Membership<'c>,
        key: i64,
        new: &NewUrl,
        now: Timestamp,
    ) -> Result<i64, Failure> {
        let Memory {
            next,
            hosts,
            tally,
            keys,
            ..
        } = &mut *membership.memory;
        let url = take(&mut next.url);
        let host = hosts.number(self.db, &mut next.host, new.url())?;
        let watched = Watched::new(now);
        let spelling = (new.spelling() != new.identity()).then(|| new.spelling());
        let bytes = watched.to_bytes(beside(0, None));
        self.insert
            .execute(params![url, host, new.identity(), spelling, bytes])?;
        keys.insert(key, url);
        tally.state(watched.life.state(), 1);
        tally.url(host, 1);
        if let Some(due) = watched.due {
            membership.rows.add_due(tally, host, due, url)?;
        }
        Ok(url)
    }
}

/// What makes URLs members of sets, and takes them out.
pub(super) struct Membership<'c> {
    db: &'c Connection,
    memory: &'c mut Memory,
    rows: Rows<'c>,
    members: Members<'c>,
    count: Statement<'c>,
    come: Statement<'c>,
    go: Statement<'c>,
}

impl<'c> Membership<'c> {
    pub(super) fn prepare(db: &'c Connection, memory: &'c mut Memory) -> Result<Self, Failure> {
        memory.tally.settle(db)?;
        Ok(Self {
            db,
            memory,
            rows: Rows::prepare(db)?,
            members: Members::prepare(db)?,
            count: db.prepare_cached("UPDATE url SET sets = ?2 WHERE url = ?1")?,
            come: db.prepare_cached("UPDATE url SET sets = 1, left_at = NULL WHERE url = ?1")?,
            go: db.prepare_cached(
                "UPDATE url SET sets = 0, left_at = ?2, trouble = NULL WHERE url = ?1",
            )?,
        })
    }

    /// A new URL, which counts its set already, becomes a member.
    fn join(&mut self, set: &mut SetRow, url: i64, by: By) -> Result<(), Failure> {
        self.memory.tally.member(set.number, State::New, 1);
        self.members.store(set, url, None, by.mark(None))
    }

    /// A known URL becomes a member, or remains one. Returns whether it is gone or pruned.
    fn rejoin(
        &mut self,
        set: &mut SetRow,
        (url, text): (i64, &str),
        by: By,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        let mark = self.members.mark(set, url)?;
        self.members.store(set, url, mark, by.mark(mark))?;
        if mark.is_some() {
            return self.is_rejected(url, text);
        }
        let (row, is_kept) = match self.rows.read(url)? {
            Some(row) => {
                let is_kept = row.sets == 0;
                (row, is_kept)
            }
            None => {
                let row = self.unwatched(url, now)?;
                if is_gone(row.state()) {
                    self.memory.rejects.insert_late(text);
                }
                (row, false)
            }
        };
        self.memory.tally.member(set.number, row.state(), 1);
        let is_rejected = is_gone(row.state());
        if row.sets > 0 {
            self.count.execute([url, row.sets + 1])?;
            return Ok(is_rejected);
        }
        self.memory.tally.kept(-i64::from(is_kept));
        self.enter(row, now)?;
        Ok(is_rejected)
    }

    /// Whether a member is gone or pruned. The filter spares most others the look at their rows.
    fn is_rejected(&mut self, url: i64, text: &str) -> Result<bool, Failure> {
        if !self.memory.rejects.may_have(text) {
            return Ok(false);
        }
        let row = self.rows.read(url)?;
        let is_rejected = row.is_some_and(|row| is_gone(row.state()));
        if !is_rejected {
            self.memory.rejects.was_wrong();
        }
        Ok(is_rejected)
    }

    /// A URL comes into its first set. It is due as before, or at once.
    fn enter(&mut self, mut row: UrlRow, now: Timestamp) -> Result<(), Failure> {
        let state = row.state();
        row.sets = 1;
        self.memory.tally.state(state, 1);
        self.memory.tally.url(row.host, 1);
        self.memory.tally.private(&row.watched, 1);
        self.come.execute([row.url])?;
        let due = match row.watched.due {
            Some((Lane::Held, due)) if !self.is_held(row.host)? => (Lane::of(state, false), due),
            Some(due) => due,
            None => (Lane::of(state, false), now),
        };
        self.rows.schedule(&mut self.memory.tally, row, due)
    }

    fn is_held(&self, host: i64) -> Result<bool, Failure> {
        let mut query = self
            .db
            .prepare_cached("SELECT 1 FROM hold WHERE host = ?1")?;
        Ok(query.exists([host])?)
    }

    /// A URL that was never watched, with what a run has learned about it.
    fn unwatched(&mut self, url: i64, now: Timestamp) -> Result<UrlRow, Failure> {
        let mut query = self
            .db
            .prepare_cached("SELECT host, event FROM url WHERE url = ?1")?;
        let (host, event) = query.query_row([url], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let query = format!("SELECT {ANSWER_COLUMNS} FROM answer a WHERE a.url = ?1");
        let mut query = self.db.prepare_cached(&query)?;
        let mut rows = query.query([url])?;
        let stored = match rows.next()? {
            Some(row) => codec::answer(row, 0)?,
            None => None,
        };
        let mut watched = Watched::new(now);
        watched.due = None;
        if let Some(stored) = stored {
            watched.life = stored.life.unwrap_or_default();
            watched.answer = Some(stored.answer);
        }
        Ok(UrlRow {
            url,
            host,
            sets: 0,
            event,
            watched,
            trouble: None,
        })
    }

    /// Takes a URL out of a set. Returns whether it was a member.
    pub(super) fn leave(
        &mut self,
        set: &mut SetRow,
        url: i64,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        let Some(mark) = self.members.mark(set, url)? else {
            return Ok(false);
        };
        self.members.delete(set, url, mark)?;
        let Some(row) = self.rows.read(url)? else {
            return Err(Failure::Damaged(format!(
                "URL {url} is in a set, but not watched"
            )));
        };
        self.memory.tally.member(set.number, row.state(), -1);
        match row.sets {
            ..=1 => self.leave_last(&row, now)?,
            sets => {
                self.count.execute([url, sets - 1])?;
            }
        }
        Ok(true)
    }

    /// A URL in no set is not asked any more.
    fn leave_last(&mut self, row: &UrlRow, now: Timestamp) -> Result<(), Failure> {
        let tally = &mut self.memory.tally;
        if let Some(due) = row.watched.due {
            self.rows.remove_due(tally, row.host, due, row.url)?;
        }
        tally.state(row.state(), -1);
        tally.url(row.host, -1);
        tally.private(&row.watched, -1);
        tally.kept(1);
        self.go.execute([row.url, now.as_millisecond()])?;
        Ok(())
    }
}

/// Looks at up to `limit` members of sets whose sources have lost some. Returns whether there are more to look at.
pub(super) fn sweep(
    db: &Connection,
    memory: &mut Memory,
    now: Timestamp,
    limit: usize,
) -> Result<bool, Failure> {
    let mut membership = Membership::prepare(db, memory)?;
    let mut left = limit;
    for mut set in SetRow::all(db)? {
        let Some(after) = set.swept else { continue };
        if left == 0 {
            return Ok(true);
        }
        let members = members_after(db, &set, after, left)?;
        set.swept = match members.last() {
            Some(&(last, _)) if members.len() == left => Some(last),
            _ => None,
        };
        left -= members.len();
        for (url, mark) in members {
            match set.is_lost(mark) {
                false => {}
                true if mark & BY_HAND != 0 => {
                    membership
                        .members
                        .store(&mut set, url, Some(mark), BY_HAND)?;
                }
                true => {
                    membership.leave(&mut set, url, now)?;
                }
            }
        }
        set.save(db)?;
    }
    Ok(SetRow::all(db)?.iter().any(|set| set.swept.is_some()))
}

/// Members of a set with their marks.
fn members_after(
    db: &Connection,
    set: &SetRow,
    after: i64,
    limit: usize,
) -> Result<Vec<(i64, i64)>, Failure> {
    let query =
        "SELECT url, mark FROM member WHERE set_number = ?1 AND url > ?2 ORDER BY url LIMIT ?3";
    let mut query = db.prepare_cached(query)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let range = [set.number, after, limit];
    Ok(query.query_all(range, |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// The number of a host with this root.
pub(super) fn host_with_root(db: &Connection, root: &str) -> Result<Option<i64>, Failure> {
    let mut query = db.prepare_cached("SELECT host FROM host WHERE root = ?1")?;
    Ok(query.query_row([root], |row| row.get(0)).optional()?)
}
