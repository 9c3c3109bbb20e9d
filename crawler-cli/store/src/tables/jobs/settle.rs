//! What became of attempts.

use jiff::Timestamp;

use super::letters::{self, Buried, DeadJob};
use super::memory::Jobs;
use super::queue;
use crate::sql::{self, Connection, Optional as _, Statement, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::{ATTEMPTS, JobId, NewDeadLetter, Settled, SettledJobs, Settlement};

pub(super) fn settle(
    db: &Connection,
    jobs: &mut Jobs,
    settlements: &[Settlement],
    now: Timestamp,
) -> Result<SettledJobs, Failure> {
    let mut statements = Statements::prepare(db)?;
    let mut settled = SettledJobs::default();
    for settlement in settlements {
        let Some(row) = statements.find(settlement.job, settlement.attempt)? else {
            settled.stale += 1;
            continue;
        };
        let id = settlement.job;
        match &settlement.settled {
            Settled::Done if row.keeps_nothing => {
                statements.delete.execute([id.0])?;
                jobs.queue_with(db, row.queue)?.count(0, -1);
            }
            Settled::Done => {
                let job = DeadJob::read(db, id.0)?;
                queue::end(db, jobs, &job, now.as_millisecond())?;
            }
            Settled::Retry { at, why } if !row.is_last => {
                let now = now.as_millisecond();
                statements
                    .retry
                    .execute(params![id.0, at.as_millisecond(), why, now])?;
                jobs.queue_with(db, row.queue)?.count(1, -1);
            }
            Settled::Retry { why, .. } => {
                let letter = die(db, jobs, id, ATTEMPTS, why, now)?;
                settled.dead.push((id, letter));
            }
            Settled::Dead { reason, last } => {
                let letter = die(db, jobs, id, reason, last, now)?;
                settled.dead.push((id, letter));
            }
            Settled::Postponed { at } => {
                let at = at.as_millisecond();
                statements.spare.execute(params![id.0, at])?;
                jobs.queue_with(db, row.queue)?.count(1, -1);
            }
        }
    }
    Ok(settled)
}

pub(super) fn requeue(
    db: &Connection,
    jobs: &mut Jobs,
    started: &[(JobId, u32)],
) -> Result<(), Failure> {
    let mut statements = Statements::prepare(db)?;
    for &(id, attempt) in started {
        if let Some(row) = statements.find(id, attempt)? {
            // Its place is where it was: before what was stored later.
            statements.spare.execute(params![id.0, None::<i64>])?;
            jobs.queue_with(db, row.queue)?.count(1, -1);
        }
    }
    Ok(())
}

/// Moves a started job to the dead letters.
fn die(
    db: &Connection,
    jobs: &mut Jobs,
    id: JobId,
    reason: &str,
    last: &str,
    now: Timestamp,
) -> Result<crate::DeadLetterId, Failure> {
    let job = DeadJob::read(db, id.0)?;
    let letter = NewDeadLetter {
        reason: reason.to_owned(),
        attempts: job.attempts(),
        last: last.to_owned(),
        first_at: job.first_at.map_or(Ok(now), codec::time)?,
        last_at: now,
    };
    let letter = letters::store(db, jobs, &Buried::Job(&job), &letter, job.letter)?;
    queue::end(db, jobs, &job, now.as_millisecond())?;
    Ok(letter)
}

struct Statements<'c> {
    find: Statement<'c>,
    delete: Statement<'c>,
    retry: Statement<'c>,
    spare: Statement<'c>,
}

/// What has to be known of a started job before an attempt is settled.
struct Row {
    queue: i64,
    keeps_nothing: bool,
    is_last: bool,
}

impl<'c> Statements<'c> {
    fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        let find = "SELECT queue, key IS NULL OR keep_key = 0, attempt - spared >= max_attempts FROM job \
             WHERE job = ?1 AND state = 1 AND attempt = ?2";
        let retry = "UPDATE job SET state = 0, at = ?2, failure = ?3, first_at = coalesce(first_at, ?4) WHERE job = ?1";
        let spare = "UPDATE job SET state = 0, at = coalesce(?2, CASE WHEN at < stored_at THEN at ELSE stored_at END), spared = spared + 1 WHERE job = ?1";
        Ok(Self {
            find: db.prepare_cached(find)?,
            delete: db.prepare_cached("DELETE FROM job WHERE job = ?1")?,
            retry: db.prepare_cached(retry)?,
            spare: db.prepare_cached(spare)?,
        })
    }

    /// The job, if this is its attempt and is not settled.
    fn find(&mut self, job: JobId, attempt: u32) -> Result<Option<Row>, Failure> {
        let read = |row: sql::Row<'_>| {
            Ok(Row {
                queue: row.get(0)?,
                keeps_nothing: row.get(1)?,
                is_last: row.get(2)?,
            })
        };
        let row = self.find.query_row([job.0, i64::from(attempt)], read);
        Ok(row.optional()?)
    }
}
