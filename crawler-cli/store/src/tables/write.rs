//! What changes the store.

mod add;
mod begin;

use super::codec;
use super::failure::Failure;
use super::memory::{Memory, take};
use crate::sql::{self, Connection, Optional as _, Statement, params};
use crate::{Added, Change, Completed, Demand, HostFacts, HostId, Link};
use add::Adder;
pub(super) use begin::{begin_run, end_run};
use verdict::Answer;
use verdict::life::Record as Life;

pub(super) fn add(
    db: &Connection,
    memory: &mut Memory,
    run: i64,
    links: &[Link],
) -> Result<Added, Failure> {
    let mut adder = Adder::prepare(db, memory, run)?;
    for link in links {
        adder.add(link)?;
    }
    adder.finish()
}

pub(super) fn complete(
    db: &Connection,
    memory: &mut Memory,
    run: i64,
    completed: &[Completed],
) -> Result<Added, Failure> {
    let mut events = Events::prepare(db)?;
    let mut dequeue = db.prepare_cached("DELETE FROM queue WHERE host = ?1 AND entry = ?2")?;
    let mut adder = Adder::prepare(db, memory, run)?;
    for completed in completed {
        // A replay finds no entry.
        if dequeue.execute(params![completed.host.0, completed.entry.0])? == 0 {
            continue;
        }
        match &completed.judged {
            Some((answer, life)) => {
                let answers = &mut adder.answers;
                answers.store(completed.id.0, completed.demand, answer, life.as_ref())?;
            }
            None => adder.answers.reuse(completed.id.0, completed.demand)?,
        }
        events.note(adder.next_event(), completed)?;
        adder.leave(completed)?;
        for link in &completed.links {
            adder.add(link)?;
        }
    }
    adder.finish()
}

pub(super) fn save_hosts(db: &Connection, hosts: &[(HostId, HostFacts)]) -> Result<(), Failure> {
    let update = "UPDATE host SET no_head_until = ?2, head_lies_until = ?3, answered_at = ?4, control_at = ?5, \
         control_status = ?6, episodes = ?7 WHERE host = ?1";
    let mut update = db.prepare_cached(update)?;
    for (host, facts) in hosts {
        let millis = |time: Option<jiff::Timestamp>| time.map(|time| time.as_millisecond());
        update.execute(params![
            host.0,
            millis(facts.no_head_until),
            millis(facts.head_lies_until),
            millis(facts.answered_at),
            millis(facts.control.map(|control| control.at)),
            facts.control.and_then(|control| control.status),
            codec::episodes_text(&facts.episodes),
        ])?;
    }
    Ok(())
}

/// The statements that store answers.
struct Answers<'c> {
    run: i64,
    replace: Statement<'c>,
    reuse: Statement<'c>,
}

impl<'c> Answers<'c> {
    fn prepare(db: &'c Connection, run: i64) -> Result<Self, Failure> {
        let values = [
            "run",
            "demand",
            "class",
            "cause",
            "status",
            "method",
            "attempts",
            "latency_us",
            "checked_at",
            "address",
            "detail",
            "moved_to",
            "final_url",
            "redirects",
            "state",
            "life",
            "reused",
        ];
        let replace = sql::upsert("answer", &["url"], &values);
        let reuse = "UPDATE answer SET run = ?2, demand = ?3, reused = 1 WHERE url = ?1";
        Ok(Self {
            run,
            replace: db.prepare_cached(&replace)?,
            reuse: db.prepare_cached(reuse)?,
        })
    }

    fn store(
        &mut self,
        url: i64,
        demand: Demand,
        answer: &Answer,
        life: Option<&Life>,
    ) -> Result<(), Failure> {
        let latency = answer
            .latency
            .map(|latency| i64::try_from(latency.as_micros()).unwrap_or(i64::MAX));
        self.replace.execute(params![
            url,
            self.run,
            codec::demand_number(demand),
            answer.verdict.class().name(),
            answer.verdict.cause().map(codec::cause_name),
            answer.status,
            answer.method,
            answer.attempts,
            latency,
            answer.checked_at.map(|time| time.as_millisecond()),
            answer.address.map(codec::address_bytes),
            answer.detail,
            answer.moved_to,
            answer.final_url,
            codec::redirects_text(&answer.redirects),
            life.map(|life| life.state().name()),
            life.map(Life::to_bytes),
            false,
        ])?;
        Ok(())
    }

    fn reuse(&mut self, url: i64, demand: Demand) -> Result<(), Failure> {
        let demand = codec::demand_number(demand);
        self.reuse.execute(params![url, self.run, demand])?;
        Ok(())
    }
}

/// The statements that store changes of state.
pub(super) struct Events<'c> {
    insert: Statement<'c>,
    last: Statement<'c>,
    set_last: Statement<'c>,
}

impl<'c> Events<'c> {
    pub(super) fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        let insert = "INSERT INTO event (cursor, at, url, prev, from_state, to_state, status, why) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        Ok(Self {
            insert: db.prepare_cached(insert)?,
            last: db.prepare_cached("SELECT event FROM url WHERE url = ?1")?,
            set_last: db.prepare_cached("UPDATE url SET event = ?2 WHERE url = ?1")?,
        })
    }

    /// Stores the changes of a URL in a run.
    fn note(&mut self, next: &mut i64, completed: &Completed) -> Result<(), Failure> {
        if completed.changes.is_empty() {
            return Ok(());
        }
        let url = completed.id.0;
        let prev = self.last.query_row([url], |row| row.get(0))?;
        let last = self.store(next, url, prev, &completed.changes)?;
        self.set_last.execute([url, last])?;
        Ok(())
    }

    /// Stores changes of a URL whose last one has the number `prev`. Returns the number of its last one now, which the
    /// caller stores with the URL.
    pub(super) fn store(
        &mut self,
        next: &mut i64,
        url: i64,
        prev: i64,
        changes: &[Change],
    ) -> Result<i64, Failure> {
        let mut last = prev;
        for change in changes {
            let cursor = take(next);
            self.insert.execute(params![
                cursor,
                change.at.as_millisecond(),
                url,
                last,
                change.from.name(),
                change.to.name(),
                change.status,
                change.why,
            ])?;
            last = cursor;
        }
        Ok(last)
    }
}

/// The demand of the answer that a URL has in this run, if it has one.
fn answered(statement: &mut Statement<'_>, url: i64, run: i64) -> Result<Option<Demand>, Failure> {
    let demand: Option<i64> = statement
        .query_row([url, run], |row| row.get(0))
        .optional()?;
    demand.map(codec::demand).transpose()
}
