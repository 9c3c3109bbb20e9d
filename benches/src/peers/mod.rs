//! The other clients. Each is used as its documentation recommends for speed, with as few features as possible.
//!
//! The tasks or threads of a client share one run. Only ureq has more than one thread, so there is almost no waiting
//! for the lock, which costs some nanoseconds of the measured microseconds.

pub mod go;
pub mod hyper;
pub mod reqwest;
pub mod ureq;
pub(crate) mod wrk;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use crate::measure::{Plan, Record, Run, sleep};

/// A run that several tasks or threads report to.
#[derive(Clone, Debug)]
pub struct SharedRun(Arc<Mutex<Run>>);

impl SharedRun {
    pub(crate) fn new(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        Ok(Self(Arc::new(Run::new(plan)?.into())))
    }

    fn lock(&self) -> MutexGuard<'_, Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one call after another until the end of the run. `exchange` returns the status.
    pub(crate) fn work<E: fmt::Display>(&self, mut exchange: impl FnMut() -> Result<u16, E>) {
        let mut now = Instant::now();
        loop {
            let Some(due) = self.lock().claim(now) else {
                return;
            };
            thread::sleep(due.saturating_duration_since(now));
            now = self.ended(due, exchange());
        }
    }

    /// Reports the status or the error of a request. Returns the current time.
    pub(crate) fn ended<E: fmt::Display>(
        &self,
        since: Instant,
        outcome: Result<u16, E>,
    ) -> Instant {
        let now = Instant::now();
        match outcome {
            Ok(status) => self.lock().answered(status, since, now),
            Err(error) => self.lock().failed(&error),
        }
        now
    }

    /// Waits until the next request is due, and returns the time from which its latency counts. `None` at the end of the
    /// run.
    pub(crate) async fn begin(&self, now: Instant) -> Option<Instant> {
        let due = self.lock().claim(now)?;
        if due > now {
            tokio::time::sleep(sleep(now, due)).await;
        }
        while due > now && due > Instant::now() {
            // tokio polls for responses before it resumes this task.
            tokio::task::yield_now().await;
        }
        Some(due)
    }

    pub(crate) fn finish(self) -> Result<Record, Box<dyn Error>> {
        let run = Arc::into_inner(self.0).ok_or("a worker has not ended")?;
        run.into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .finish()
    }
}

/// Runs one worker for each connection of the plan, all on this thread.
pub(crate) fn on_tokio<W: Future<Output = ()> + Send + 'static>(
    plan: &Plan,
    worker: impl Fn(SharedRun) -> W,
) -> Result<Record, Box<dyn Error>> {
    let run = SharedRun::new(plan)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let spawn = |_| tokio::spawn(worker(run.clone()));
        let workers: Vec<_> = (0..plan.connections).map(spawn).collect();
        for worker in workers {
            worker.await?;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    drop(runtime);
    run.finish()
}
