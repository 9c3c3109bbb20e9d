//! The other clients, each used in the way its documentation recommends for speed, with as few features as it allows.
//!
//! A run is shared by the tasks or threads of a client. Only ureq has more than one thread, so the lock is hardly
//! ever waited for, and costs some nanoseconds of the microseconds that are measured.

pub mod hyper;
pub mod reqwest;
pub mod ureq;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::measure::{Plan, Record, Run};

/// A run that several tasks or threads report to.
#[derive(Clone, Debug)]
pub struct SharedRun(Arc<Mutex<Run>>);

impl SharedRun {
    pub(crate) fn new(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        Ok(Self(Arc::new(Mutex::new(Run::new(plan)?))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one call after another until the run is over; `exchange` returns the status.
    pub(crate) fn work<E: fmt::Display>(&self, mut exchange: impl FnMut() -> Result<u16, E>) {
        let mut now = Instant::now();
        while self.lock().admit(now) {
            let sent = now;
            let outcome = exchange();
            now = Instant::now();
            match outcome {
                Ok(status) => self.lock().answered(status, sent, now),
                Err(error) => self.lock().failed(&error),
            }
        }
    }

    pub(crate) fn finish(self, client: &str) -> Result<Record, Box<dyn Error>> {
        let run = Arc::into_inner(self.0).ok_or("a worker has not ended")?;
        run.into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .finish(client)
    }
}

/// Runs as many workers as the plan has connections, all on this thread.
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
