//! The rows of watched URLs, and their due rows. All changes of them are here, so that rows and counts agree.

use jiff::Timestamp;

use super::batch::{self, missing};
use super::bytes::{Watched, beside};
use super::sets::is_gone;
use super::tally::Tally;
use crate::sql::{Connection, Statement, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::memory::Memory;
use crate::tables::write::Events;
use crate::{Change, DueId, Lane};
use verdict::Answer;
use verdict::life::time::to_millis;
use verdict::life::{Record as Life, State};

/// A row of `url` that is or was watched.
#[derive(Debug)]
pub(super) struct UrlRow {
    pub(super) url: i64,
    pub(super) host: i64,
    pub(super) sets: i64,
    /// The number of its last change of state; 0 if there is none.
    pub(super) event: i64,
    pub(super) watched: Watched,
    /// As it is stored.
    pub(super) trouble: Option<u8>,
}

impl UrlRow {
    /// What `trouble` has to be: the code of the state, unless the URL is in no set or due in the lane of good URLs.
    pub(super) fn new_trouble(&self) -> Option<u8> {
        let is_routine = matches!(self.watched.due, Some((Lane::Routine, _)));
        (self.sets > 0 && !is_routine).then(|| self.state().code())
    }

    pub(super) fn state(&self) -> State {
        self.watched.life.state()
    }
}

/// The statements that change rows of watched URLs.
pub(super) struct Rows<'c> {
    select: Statement<'c>,
    update: Statement<'c>,
    update_trouble: Statement<'c>,
    insert_due: Statement<'c>,
    delete_due: Statement<'c>,
    events: Events<'c>,
    text: Statement<'c>,
}

/// What an answer, or a change without an answer, does to a URL.
pub(super) struct Outcome<'a> {
    pub(super) id: DueId,
    pub(super) life: &'a Life,
    /// `None` keeps the last answer.
    pub(super) answer: Option<&'a Answer>,
    pub(super) changes: &'a [Change],
    pub(super) next: Option<(Lane, Timestamp)>,
}

impl<'c> Rows<'c> {
    pub(super) fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        Ok(Self {
            select: db.prepare_cached(
                "SELECT host, sets, event, watched, trouble FROM url WHERE url = ?1 AND watched IS NOT NULL",
            )?,
            update: db.prepare_cached("UPDATE url SET event = ?2, watched = ?3 WHERE url = ?1")?,
            update_trouble: db.prepare_cached(
                "UPDATE url SET event = ?2, watched = ?3, trouble = ?4 WHERE url = ?1",
            )?,
            insert_due: db.prepare_cached(
                "INSERT INTO due (host, lane, due_at, url) VALUES (?1, ?2, ?3, ?4)",
            )?,
            delete_due: db.prepare_cached(
                "DELETE FROM due WHERE host = ?1 AND lane = ?2 AND due_at = ?3 AND url = ?4",
            )?,
            events: Events::prepare(db)?,
            text: db.prepare_cached("SELECT text FROM url WHERE url = ?1")?,
        })
    }

    /// The row of a URL; `None` if it was never watched.
    pub(super) fn read(&mut self, url: i64) -> Result<Option<UrlRow>, Failure> {
        let mut rows = self.select.query([url])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let watched = codec::blob(row, 3)?.unwrap_or_default();
        Ok(Some(UrlRow {
            url,
            host: row.get(0)?,
            sets: row.get(1)?,
            event: row.get(2)?,
            watched: Watched::from_bytes(watched)?,
            trouble: row.get(4)?,
        }))
    }

    /// Stores an outcome, if the due row is there.
    pub(super) fn finish(
        &mut self,
        memory: &mut Memory,
        outcome: &Outcome<'_>,
    ) -> Result<bool, Failure> {
        let DueId {
            host,
            lane,
            due,
            url,
        } = outcome.id;
        if !self.remove_due(&mut memory.tally, host.0, (lane, due), url.0)? {
            return Ok(false);
        }
        let mut row = self.read(url.0)?.ok_or_else(|| missing(url.0))?;
        self.apply(memory, &mut row, outcome)?;
        if let Some(due) = outcome.next {
            self.add_due(&mut memory.tally, row.host, due, row.url)?;
        }
        self.write(&row)?;
        Ok(true)
    }

    /// Stores outcomes whose due rows are there. Returns for each whether it was.
    pub(super) fn finish_all(
        &mut self,
        db: &Connection,
        memory: &mut Memory,
        outcomes: &[Outcome<'_>],
    ) -> Result<Vec<bool>, Failure> {
        match db.is_shared() {
            true => batch::finish(self, db, memory, outcomes),
            false => outcomes
                .iter()
                .map(|outcome| self.finish(memory, outcome))
                .collect(),
        }
    }

    /// Makes of a row what it is after an outcome, and stores the changes of state.
    pub(super) fn apply(
        &mut self,
        memory: &mut Memory,
        row: &mut UrlRow,
        outcome: &Outcome<'_>,
    ) -> Result<(), Failure> {
        memory
            .tally
            .moved(row.url, row.state(), outcome.life.state());
        memory.tally.private(&row.watched, -1);
        if is_gone(outcome.life.state()) && !is_gone(row.state()) {
            self.text.query_row([row.url], |row| {
                memory.rejects.insert(row.get_str(0)?);
                Ok(())
            })?;
        }
        row.watched.life = outcome.life.clone();
        row.watched.due = outcome.next.map(|(lane, due)| (lane, to_millis(due)));
        if let Some(answer) = outcome.answer {
            row.watched.answer = Some(answer.clone());
        }
        memory.tally.private(&row.watched, 1);
        let next = &mut memory.next.event;
        row.event = self
            .events
            .store(next, row.url, row.event, outcome.changes)?;
        Ok(())
    }

    /// Makes a URL without due row due then.
    pub(super) fn schedule(
        &mut self,
        tally: &mut Tally,
        mut row: UrlRow,
        (lane, due): (Lane, Timestamp),
    ) -> Result<(), Failure> {
        row.watched.due = Some((lane, to_millis(due)));
        self.add_due(tally, row.host, (lane, due), row.url)?;
        self.write(&row)
    }

    /// Writes what is known about a URL. `trouble` is written only if it changes: that costs a row of an index.
    fn write(&mut self, row: &UrlRow) -> Result<(), Failure> {
        let trouble = row.new_trouble();
        let bytes = row.watched.to_bytes(beside(row.event, trouble));
        match trouble == row.trouble {
            true => self.update.execute(params![row.url, row.event, bytes])?,
            false => (self.update_trouble).execute(params![row.url, row.event, bytes, trouble])?,
        };
        Ok(())
    }

    pub(super) fn add_due(
        &mut self,
        tally: &mut Tally,
        host: i64,
        (lane, due): (Lane, Timestamp),
        url: i64,
    ) -> Result<(), Failure> {
        self.insert_due
            .execute(params![host, lane.code(), due.as_millisecond(), url])?;
        tally.due(host, lane, 1);
        Ok(())
    }

    /// Removes exactly this due row. Returns whether it was there.
    pub(super) fn remove_due(
        &mut self,
        tally: &mut Tally,
        host: i64,
        (lane, due): (Lane, Timestamp),
        url: i64,
    ) -> Result<bool, Failure> {
        let row = params![host, lane.code(), due.as_millisecond(), url];
        let was_there = self.delete_due.execute(row)? > 0;
        if was_there {
            tally.due(host, lane, -1);
        }
        Ok(was_there)
    }
}
