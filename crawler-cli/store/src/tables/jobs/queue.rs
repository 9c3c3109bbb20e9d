//! Jobs that wait, and those that are started.

use std::time::Duration;

use jiff::Timestamp;

use super::letters::{self, Buried, DeadJob};
use super::memory::Jobs;
use crate::sql::{Connection, Optional as _, Row, Statement, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::memory::take;
use crate::{
    Enqueued, JobCounts, JobId, NewDeadLetter, NewJob, POISON, Poisoned, Started, StartedJob,
};

/// The values of `job.state`.
pub(super) const WAITING: i64 = 0;
pub(super) const STARTED: i64 = 1;
pub(super) const OVER: i64 = 2;

pub(super) fn enqueue(
    db: &Connection,
    jobs: &mut Jobs,
    new: &[NewJob],
    now: Timestamp,
) -> Result<Vec<Enqueued>, Failure> {
    let mut enqueue = Enqueue::prepare(db)?;
    new.iter()
        .map(|job| enqueue.add(db, jobs, job, now, None))
        .collect()
}

/// Stores jobs that wait.
pub(super) struct Enqueue<'c> {
    find: Statement<'c>,
    insert: Statement<'c>,
    forget: Statement<'c>,
}

impl<'c> Enqueue<'c> {
    pub(super) fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        let find = "SELECT job, state, at FROM job WHERE queue = ?1 AND key = ?2";
        let insert = "INSERT INTO job (job, queue, state, at, attempt, spared, max_attempts, stored_at, keep_key, \
             letter, key, payload) VALUES (?1, ?2, 0, ?3, 0, 0, ?4, ?5, ?6, ?7, ?8, ?9)";
        // Two for each one that comes: keys that nobody needs any more do not heap up.
        let forget = "DELETE FROM job WHERE job IN \
             (SELECT job FROM job WHERE queue = ?1 AND state = 2 AND at <= ?2 LIMIT 2)";
        Ok(Self {
            find: db.prepare_cached(find)?,
            insert: db.prepare_cached(insert)?,
            forget: db.prepare_cached(forget)?,
        })
    }

    /// Stores a job, which was this dead letter before.
    pub(super) fn add(
        &mut self,
        db: &Connection,
        jobs: &mut Jobs,
        job: &NewJob,
        now: Timestamp,
        letter: Option<i64>,
    ) -> Result<Enqueued, Failure> {
        let queue = jobs.queue(db, &job.queue)?.id;
        let now = now.as_millisecond();
        if let Some(key) = &job.key {
            let read = |row: Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let known: Option<(i64, i64, i64)> =
                self.find.query_row(params![queue, key], read).optional()?;
            match known {
                // What is replayed is wanted again, although its key is still known.
                Some((id, OVER, until)) if until <= now || letter.is_some() => {
                    db.prepare_cached("DELETE FROM job WHERE job = ?1")?
                        .execute([id])?;
                }
                Some((id, ..)) => return Ok(Enqueued::Known(JobId(id))),
                None => {}
            }
            self.forget.execute([queue, now])?;
        }
        let id = take(&mut jobs.next.job);
        let keep_key = i64::try_from(job.keep_key.as_millis()).unwrap_or(i64::MAX);
        let at = job
            .not_before
            .map_or(now, |at| at.as_millisecond().max(now));
        self.insert.execute(params![
            id,
            queue,
            at,
            job.max_attempts.max(1),
            now,
            keep_key,
            letter,
            job.key,
            job.payload,
        ])?;
        jobs.queue(db, &job.queue)?.count(1, 0);
        Ok(Enqueued::New(JobId(id)))
    }
}

/// Whether nothing of a queue is to be started.
pub(super) fn is_idle(
    db: &Connection,
    jobs: &Jobs,
    name: &str,
    now: Timestamp,
) -> Result<bool, Failure> {
    let Some(queue) = jobs.known(db, name)? else {
        return Ok(true);
    };
    if queue.started > 0 && !jobs.is_recovered(db, queue.id)? {
        return Ok(false);
    }
    if queue.waiting == 0 {
        return Ok(true);
    }
    let ready = "SELECT 1 FROM job WHERE queue = ?1 AND state = 0 AND at <= ?2";
    let is_ready = db
        .prepare_cached(ready)?
        .exists([queue.id, now.as_millisecond()])?;
    Ok(!is_ready)
}

pub(super) fn start(
    db: &Connection,
    jobs: &mut Jobs,
    name: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Started, Failure> {
    let queue = jobs.queue(db, name)?.id;
    let mut started = Started::default();
    if !jobs.is_recovered(db, queue)? {
        started.poisoned = recover(db, jobs, name, queue, now)?;
        jobs.set_recovered(queue);
    }
    let ready = "SELECT job, attempt, spared, max_attempts, stored_at, key, failure, payload FROM job \
         WHERE queue = ?1 AND state = 0 AND at <= ?2 ORDER BY at, job LIMIT ?3";
    let mut ready = db.prepare_cached(ready)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = ready.query([queue, now.as_millisecond(), limit])?;
    while let Some(row) = rows.next()? {
        let (attempt, spared): (u32, u32) = (row.get(1)?, row.get(2)?);
        started.jobs.push(StartedJob {
            id: JobId(row.get(0)?),
            attempt: attempt.saturating_add(1),
            failed: attempt.saturating_sub(spared),
            max_attempts: row.get(3)?,
            stored_at: codec::time(row.get(4)?)?,
            key: row.get(5)?,
            failure: row.get(6)?,
            payload: row.get(7)?,
        });
    }
    drop(rows);
    let update = "UPDATE job SET state = 1, at = ?2, attempt = attempt + 1 WHERE job = ?1";
    let mut update = db.prepare_cached(update)?;
    for job in &started.jobs {
        update.execute([job.id.0, now.as_millisecond()])?;
        jobs.sign(db, job.id.0)?;
    }
    let count = i64::try_from(started.jobs.len()).unwrap_or(i64::MAX);
    jobs.queue(db, name)?.count(-count, count);
    Ok(started)
}

/// Puts back the jobs that a process had started that has ended; what had its last attempt is a dead letter.
fn recover(
    db: &Connection,
    jobs: &mut Jobs,
    name: &str,
    queue: i64,
    now: Timestamp,
) -> Result<Vec<Poisoned>, Failure> {
    let (now_millis, mut poisoned) = (now.as_millisecond(), Vec::new());
    loop {
        let last = format!(
            "SELECT job FROM job WHERE queue = ?1 AND state = 1 AND attempt - spared >= max_attempts{} LIMIT 1",
            jobs.lost()
        );
        let last: Option<i64> = db
            .prepare_cached(&last)?
            .query_row([queue], |row| row.get(0))
            .optional()?;
        let Some(id) = last else {
            break;
        };
        let job = DeadJob::read(db, id)?;
        let letter = NewDeadLetter {
            reason: POISON.to_owned(),
            attempts: job.attempts(),
            last: format!(
                "The process that ran the job ended in attempt {} of {}.",
                job.attempts(),
                job.max_attempts
            ),
            first_at: codec::time(job.first_at.unwrap_or(job.at))?,
            last_at: now,
        };
        let letter = letters::store(db, jobs, &Buried::Job(&job), &letter, job.letter)?;
        end(db, jobs, &job, now_millis)?;
        poisoned.push(Poisoned {
            job: JobId(id),
            letter,
        });
    }
    let back = "UPDATE job SET state = 0, first_at = coalesce(first_at, at), at = CASE WHEN at < ?2 THEN at ELSE ?2 END, failure = NULL \
         WHERE queue = ?1 AND state = 1";
    let back = format!("{back}{}", jobs.lost());
    let back = db.prepare_cached(&back)?.execute([queue, now_millis])?;
    let back = i64::try_from(back).unwrap_or(i64::MAX);
    jobs.queue(db, name)?.count(back, -back);
    Ok(poisoned)
}

/// A started job is over: nothing is left but its key, as long as that is to be known.
pub(super) fn end(
    db: &Connection,
    jobs: &mut Jobs,
    job: &DeadJob,
    now: i64,
) -> Result<(), Failure> {
    if job.key.is_some() && job.keep_key > 0 {
        let until = now.saturating_add(job.keep_key);
        let over = "UPDATE job SET state = 2, at = ?2, failure = NULL, payload = ?3 WHERE job = ?1";
        db.prepare_cached(over)?
            .execute(params![job.id, until, [0u8; 0]])?;
    } else {
        db.prepare_cached("DELETE FROM job WHERE job = ?1")?
            .execute([job.id])?;
    }
    jobs.queue_with(db, job.queue)?.count(0, -1);
    Ok(())
}

pub(super) fn bring_forward(db: &Connection, by: Duration, now: Timestamp) -> Result<(), Failure> {
    let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    let update =
        "UPDATE job SET at = CASE WHEN at > ?1 THEN at - ?1 ELSE 0 END WHERE state = 0 AND at > ?2";
    db.prepare_cached(update)?
        .execute([by, now.as_millisecond()])?;
    Ok(())
}

pub(super) fn counts(db: &Connection, jobs: &Jobs, name: &str) -> Result<JobCounts, Failure> {
    let queue = jobs.known(db, name)?;
    Ok(queue.map_or_else(JobCounts::default, |queue| queue.counts()))
}

pub(super) fn next_at(
    db: &Connection,
    jobs: &Jobs,
    name: &str,
) -> Result<Option<Timestamp>, Failure> {
    let Some(queue) = jobs.known(db, name)? else {
        return Ok(None);
    };
    let first = |state: i64| {
        let first = "SELECT min(at) FROM job WHERE queue = ?1 AND state = ?2";
        db.prepare_cached(first)?
            .query_row([queue.id, state], |row| row.get::<Option<i64>>(0))
    };
    let mut at = first(WAITING)?;
    if queue.started > 0 && !jobs.is_recovered(db, queue.id)? {
        at = at.into_iter().chain(first(STARTED)?).min();
    }
    codec::optional_time(at)
}

pub(super) fn names(db: &Connection) -> Result<Vec<String>, Failure> {
    let mut query = db.prepare_cached("SELECT name FROM job_queue ORDER BY name")?;
    Ok(query.query_all([], |row| row.get(0))?)
}
