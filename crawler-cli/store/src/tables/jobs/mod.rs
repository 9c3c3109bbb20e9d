//! Jobs, dead letters and schedules in the database.

pub(crate) mod letters;
pub(super) mod memory;
pub(super) mod queue;
pub(super) mod schedules;
mod settle;

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;

use super::failure::Failure;
use super::{Database, Durability};
use crate::{
    Buried, DeadLetter, DeadLetterFilter, DeadLetterId, Enqueued, Firing, JobCounts, JobId,
    JobStore, NewDeadLetter, NewJob, Replayed, ScheduleChange, ScheduleState, SettledJobs,
    Settlement, Started, StoreError, UrlId,
};

impl JobStore for Database {
    fn enqueue(&mut self, jobs: &[NewJob], now: Timestamp) -> Result<Vec<Enqueued>, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            queue::enqueue(db, &mut memory.jobs, jobs, now)
        })
    }

    fn start(&mut self, queue: &str, now: Timestamp, limit: usize) -> Result<Started, StoreError> {
        self.recall()?;
        // A queue without work costs no transaction.
        let is_idle = queue::is_idle(&self.db, &self.memory.jobs, queue, now);
        if self.read(is_idle)? {
            return Ok(Started::default());
        }
        self.change(Durability::Synced, |db, memory| {
            queue::start(db, &mut memory.jobs, queue, now, limit)
        })
    }

    fn settle(
        &mut self,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<SettledJobs, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            settle::settle(db, &mut memory.jobs, settlements, now)
        })
    }

    fn requeue(&mut self, jobs: &[(JobId, u32)]) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, memory| {
            settle::requeue(db, &mut memory.jobs, jobs)
        })
    }

    fn bring_jobs_forward(&mut self, by: Duration, now: Timestamp) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, _| {
            queue::bring_forward(db, by, now)
        })
    }

    fn job_counts(&mut self, queue: &str) -> Result<JobCounts, StoreError> {
        self.recall()?;
        self.read(queue::counts(&self.db, &self.memory.jobs, queue))
    }

    fn next_job_at(&mut self, queue: &str) -> Result<Option<Timestamp>, StoreError> {
        self.recall()?;
        self.read(queue::next_at(&self.db, &self.memory.jobs, queue))
    }

    fn queues(&mut self) -> Result<Vec<String>, StoreError> {
        self.read(queue::names(&self.db))
    }

    fn bury(
        &mut self,
        subject: &Buried,
        letter: &NewDeadLetter,
    ) -> Result<DeadLetterId, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            letters::bury(db, &mut memory.jobs, subject, letter)
        })
    }

    fn dead_letters(
        &mut self,
        filter: &DeadLetterFilter,
        after: DeadLetterId,
        visit: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.read(letters::visit(&self.db, filter, after, visit))
    }

    fn dead_letter(&mut self, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.read(letters::one(&self.db, id))
    }

    fn letters_of(&mut self, url: UrlId) -> Result<Vec<DeadLetter>, StoreError> {
        self.read(letters::of(&self.db, url))
    }

    fn dead_letter_counts(&mut self) -> Result<Vec<(String, u64)>, StoreError> {
        self.read(letters::counts(&self.db))
    }

    fn replay(
        &mut self,
        filter: &DeadLetterFilter,
        after: DeadLetterId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Replayed, StoreError> {
        self.change(Durability::Synced, |db, memory| {
            letters::replay(db, memory, filter, after, limit, now)
        })
    }

    fn drop_dead_letters(
        &mut self,
        filter: &DeadLetterFilter,
        limit: usize,
    ) -> Result<u64, StoreError> {
        self.change(Durability::Synced, |db, _| {
            letters::forget(db, filter, limit)
        })
    }

    fn expire_dead_letters(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.change(Durability::Synced, |db, _| {
            letters::expire(db, before, limit)
        })
    }

    fn schedule(&mut self, name: &str) -> Result<ScheduleState, StoreError> {
        self.read(schedules::one(&self.db, name))
    }

    fn schedules(&mut self) -> Result<Vec<ScheduleState>, StoreError> {
        self.read(schedules::all(&self.db))
    }

    fn fire(
        &mut self,
        name: &str,
        scheduled_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.change(Durability::Synced, |db, _| {
            schedules::fire(db, name, scheduled_at, now)
        })
    }

    fn update_schedule(&mut self, name: &str, change: &ScheduleChange) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, _| {
            schedules::update(db, name, change)
        })
    }

    fn forget_schedule(&mut self, name: &str) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, _| schedules::forget(db, name))
    }

    fn firings(&mut self, name: &str, limit: usize) -> Result<Vec<Firing>, StoreError> {
        self.read(schedules::firings(&self.db, name, limit))
    }

    fn store_id(&mut self) -> Result<String, StoreError> {
        let id = self
            .db
            .query_row("SELECT id FROM store", [], |row| row.get(0));
        self.read(id.map_err(Failure::from))
    }
}
