//! What the engine keeps in memory of jobs: the next numbers, and the queues.

use std::collections::{HashMap, HashSet};

use crate::JobCounts;
use crate::sql::{Connection, Optional as _, params};
use crate::tables::codec;
use crate::tables::failure::Failure;

/// What the engine keeps in memory of jobs.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(super) next: Next,
    /// As they are stored.
    stored: Next,
    queues: HashMap<Box<str>, Queue>,
    /// The number of this worker, if it is in a fleet.
    worker: Option<i64>,
    /// The queues whose jobs of processes that have ended were handed out again.
    recovered: HashSet<i64>,
    /// Those of them that were added in this transaction.
    recovered_now: Vec<i64>,
}

/// The numbers that come next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Next {
    pub(super) job: i64,
    pub(super) letter: i64,
}

/// A queue of jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) id: i64,
    pub(super) waiting: i64,
    pub(super) started: i64,
    /// Whether the counts differ from those that are stored.
    is_changed: bool,
}

impl Queue {
    /// A queue whose counts are to be stored.
    pub(super) fn count(&mut self, waiting: i64, started: i64) {
        self.waiting += waiting;
        self.started += started;
        self.is_changed = true;
    }

    pub(super) fn counts(&self) -> JobCounts {
        JobCounts {
            waiting: codec::count(self.waiting),
            started: codec::count(self.started),
        }
    }
}

/// How many queues are kept in memory.
const MOST: usize = 4096;

impl Jobs {
    pub(crate) fn load(db: &Connection) -> Result<Self, Failure> {
        let next = |name: &str| {
            let query = "SELECT next FROM number WHERE name = ?1";
            db.query_row(query, [name], |row| row.get::<i64>(0))
        };
        let next = Next {
            job: next("job")?,
            letter: next("letter")?,
        };
        Ok(Self {
            next,
            stored: next,
            ..Self::default()
        })
    }

    /// Back to what is stored, after a transaction that failed.
    pub(crate) fn reload(mut self, db: &Connection) -> Result<Self, Failure> {
        for queue in self.recovered_now.drain(..) {
            self.recovered.remove(&queue);
        }
        Ok(Self {
            recovered: self.recovered,
            worker: self.worker,
            ..Self::load(db)?
        })
    }

    /// Stores the numbers and the counts with the transaction.
    pub(crate) fn save(&mut self, db: &Connection) -> Result<(), Failure> {
        let numbers = [
            ("job", self.next.job, self.stored.job),
            ("letter", self.next.letter, self.stored.letter),
        ];
        for (name, next, stored) in numbers {
            if next != stored {
                db.prepare_cached("UPDATE number SET next = ?2 WHERE name = ?1")?
                    .execute(params![name, next])?;
            }
        }
        self.stored = self.next;
        for queue in self.queues.values_mut().filter(|queue| queue.is_changed) {
            let update = "UPDATE job_queue SET waiting = ?2, started = ?3 WHERE queue = ?1";
            db.prepare_cached(update)?
                .execute([queue.id, queue.waiting, queue.started])?;
            queue.is_changed = false;
        }
        Ok(())
    }

    /// The transaction is stored.
    pub(crate) fn commit(&mut self) {
        self.recovered_now.clear();
        if self.queues.len() > MOST {
            self.queues.clear();
        }
    }

    /// A queue, as it is now; `None` if there is none with this name.
    pub(super) fn known(&self, db: &Connection, name: &str) -> Result<Option<Queue>, Failure> {
        if let Some(queue) = self.queues.get(name) {
            return Ok(Some(*queue));
        }
        let query = "SELECT queue, waiting, started FROM job_queue WHERE name = ?1";
        let queue = db.prepare_cached(query)?.query_row([name], |row| {
            Ok(Queue {
                id: row.get(0)?,
                waiting: row.get(1)?,
                started: row.get(2)?,
                is_changed: false,
            })
        });
        Ok(queue.optional()?)
    }

    /// A queue, to change it. Makes it if there is none.
    pub(super) fn queue(&mut self, db: &Connection, name: &str) -> Result<&mut Queue, Failure> {
        if !self.queues.contains_key(name) {
            let queue = match self.known(db, name)? {
                Some(queue) => queue,
                None => {
                    let insert = "INSERT INTO job_queue (name) VALUES (?1) RETURNING queue";
                    Queue {
                        id: db.query_row(insert, [name], |row| row.get(0))?,
                        waiting: 0,
                        started: 0,
                        is_changed: false,
                    }
                }
            };
            self.queues.insert(name.into(), queue);
        }
        let missing = || Failure::Damaged(format!("queue {name} is missing"));
        self.queues.get_mut(name).ok_or_else(missing)
    }

    /// The queue with this number, to change it.
    pub(super) fn queue_with(&mut self, db: &Connection, id: i64) -> Result<&mut Queue, Failure> {
        let known = self.queues.iter().find(|(_, queue)| queue.id == id);
        let name = match known {
            Some((name, _)) => name.clone(),
            None => db
                .prepare_cached("SELECT name FROM job_queue WHERE queue = ?1")?
                .query_row([id], |row| row.get::<String>(0))?
                .into_boxed_str(),
        };
        self.queue(db, &name)
    }

    /// Whether no job of the queue was started by a process that has ended, as far as that is known.
    pub(super) fn is_recovered(&self, db: &Connection, queue: i64) -> Result<bool, Failure> {
        if self.worker.is_none() {
            return Ok(self.recovered.contains(&queue));
        }
        let lost = format!(
            "SELECT 1 FROM job WHERE queue = ?1 AND state = 1{} LIMIT 1",
            self.lost()
        );
        Ok(!db.prepare_cached(&lost)?.exists([queue])?)
    }

    /// The condition for a job that was started by a process that has ended. A process without a fleet has the store for
    /// itself: at its start, all others have ended.
    pub(super) fn lost(&self) -> &'static str {
        match self.worker {
            None => "",
            Some(_) => {
                " AND (job.worker IS NULL OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.worker = job.worker))"
            }
        }
    }

    /// This worker starts jobs from now on.
    pub(crate) fn set_worker(&mut self, worker: i64) {
        self.worker = Some(worker);
    }

    /// Notes that this worker has started a job.
    pub(super) fn sign(&self, db: &Connection, job: i64) -> Result<(), Failure> {
        if let Some(worker) = self.worker {
            db.prepare_cached("UPDATE job SET worker = ?2 WHERE job = ?1")?
                .execute([job, worker])?;
        }
        Ok(())
    }

    pub(super) fn set_recovered(&mut self, queue: i64) {
        if self.recovered.insert(queue) {
            self.recovered_now.push(queue);
        }
    }
}
