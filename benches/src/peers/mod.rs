//! The other clients. Each is used as its documentation recommends for speed, with as few features as possible.
//!
//! The tasks or threads of a client share one run. Only ureq has more than one thread, so there is almost no waiting
//! for the lock, which costs some nanoseconds of the measured microseconds.

pub mod go;
pub mod hyper;
pub mod reqwest;
pub mod ureq;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync;

use crate::load::schedule::{self, Pace};
use crate::measure::{Plan, Record, Run};

/// A run that several tasks or threads report to.
#[derive(Clone, Debug)]
pub struct SharedRun(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    run: Mutex<Run>,
    /// The schedule of an open loop. The worker with the lock waits until the next request is due; the other workers
    /// wait for the lock in order.
    pace: Option<sync::Mutex<Pace>>,
}

impl SharedRun {
    pub(crate) fn new(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let run = Run::new(plan)?;
        let pace = plan
            .rate
            .map(|rate| Pace::new(plan, rate, run.began()).into());
        let run = run.into();
        Ok(Self(Arc::new(Shared { run, pace })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Run> {
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one call after another until the end of the run. `exchange` returns the status.
    pub(crate) fn work<E: fmt::Display>(&self, mut exchange: impl FnMut() -> Result<u16, E>) {
        let mut now = Instant::now();
        while let Some(since) = self.begin(now) {
            now = self.ended(since, exchange());
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

    /// Waits until the next request may start, and returns the time from which its latency counts. `None` at the end of
    /// the run.
    fn begin(&self, now: Instant) -> Option<Instant> {
        let Some(pace) = &self.0.pace else {
            return self.lock().admit(now).then_some(now);
        };
        let mut pace = pace.blocking_lock();
        loop {
            match self.turn(&mut pace) {
                Turn::Over => return None,
                Turn::Due(at) => return Some(at),
                Turn::Wait(Duration::ZERO) => thread::yield_now(),
                Turn::Wait(time) => thread::sleep(time),
            }
        }
    }

    /// [`Self::begin`] for a task.
    pub(crate) async fn begin_async(&self, now: Instant) -> Option<Instant> {
        let Some(pace) = &self.0.pace else {
            return self.lock().admit(now).then_some(now);
        };
        let mut pace = pace.lock().await;
        loop {
            match self.turn(&mut pace) {
                Turn::Over => return None,
                Turn::Due(at) => return Some(at),
                // tokio polls for responses before it resumes this task.
                Turn::Wait(Duration::ZERO) => tokio::task::yield_now().await,
                Turn::Wait(time) => tokio::time::sleep(time).await,
            }
        }
    }

    fn turn(&self, pace: &mut Pace) -> Turn {
        let now = Instant::now();
        if !self.lock().goes_on() {
            return Turn::Over;
        }
        match pace.next(now) {
            None => Turn::Over,
            Some(due) if due > now => Turn::Wait(schedule::sleep(now, due)),
            Some(due) => {
                pace.sent(now);
                Turn::Due(due)
            }
        }
    }

    pub(crate) fn finish(self, client: &str) -> Result<Record, Box<dyn Error>> {
        let Shared { run, pace } = Arc::into_inner(self.0).ok_or("a worker has not ended")?;
        let mut run = run.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(pace) = pace {
            run.followed(pace.into_inner().followed(Instant::now()));
        }
        run.finish(client)
    }
}

/// The next step of a worker in an open loop.
enum Turn {
    /// Start the request that was due at this time.
    Due(Instant),
    /// Check again after this time.
    Wait(Duration),
    Over,
}

/// Runs one worker for each connection of the plan, all on this thread.
pub(crate) fn on_tokio<W: Future<Output = ()> + Send + 'static>(
    plan: &Plan,
    client: &str,
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
    run.finish(client)
}
