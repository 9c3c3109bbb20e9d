//! The thread between a durable pool and its store: tells the store how attempts ended, and gets the next jobs, both
//! with one commit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use jiff::Timestamp;

use super::source::{Commit, Fed, Step, Stored};
use crate::{Started, StoreError, StoreErrorKind, StoreHandle};
use jobs::crew::{Crew, Now};
use jobs::sync::thread;

/// What the thread needs.
pub(super) struct Feeder<H> {
    crew: Crew<Stored>,
    store: H,
    queue: Arc<str>,
    has_ended: Arc<AtomicBool>,
}

impl<H: StoreHandle + Clone + Send + Sync + 'static> Feeder<H> {
    pub(super) fn new(crew: Crew<Stored>, store: H, queue: &str) -> Self {
        Self {
            crew,
            store,
            queue: queue.into(),
            has_ended: Arc::default(),
        }
    }

    /// Starts the thread. The receiver gets a message when it ends.
    pub(super) fn start(&self) -> io::Result<Receiver<()>> {
        let (ended, has_ended) = bounded(1);
        let feeder = Self {
            crew: self.crew.clone(),
            store: self.store.clone(),
            queue: Arc::clone(&self.queue),
            has_ended: Arc::clone(&self.has_ended),
        };
        let name = format!("{}-feeder", self.crew.name());
        thread::Builder::new()
            .name(name)
            .spawn(move || feeder.run(&ended))?;
        Ok(has_ended)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    fn run(&self, ended: &Sender<()>) {
        loop {
            let step = {
                let mut state = self.crew.lock();
                let drain = state.drain();
                let step = state.source.next_step(Instant::now(), drain);
                if matches!(step, Step::Wait(_)) {
                    // The pool may have been waiting for the end of the last commit.
                    self.crew.handle_jobs(state, 0);
                }
                step
            };
            match step {
                Step::Wait(None) => thread::park(),
                Step::Wait(Some(at)) => {
                    thread::park_timeout(at.saturating_duration_since(Instant::now()));
                }
                Step::Commit(commit) => {
                    let is_last = commit.is_last;
                    if self.commit(commit) && is_last {
                        break;
                    }
                }
            }
        }
        self.has_ended.store(true, Ordering::SeqCst);
        // Nobody listens any more if the pool was dropped.
        let _ = ended.try_send(());
    }

    /// Returns whether the feeder can end after a last commit.
    fn commit(&self, commit: Commit) -> bool {
        let limit = commit.limit;
        let result = self.ask_store(commit.clone());
        let now = Now::read();
        let mut state = self.crew.lock();
        match result {
            Ok(fed) => {
                let count = state.source.handle_fed(now, limit, fed);
                self.crew.handle_jobs(state, count);
                true
            }
            Err(error) => {
                let is_closed = matches!(error.kind(), StoreErrorKind::Closed);
                state
                    .source
                    .handle_trouble(now.clock, commit, error.to_string());
                drop(state);
                if !is_closed {
                    thread::park_timeout(PAUSE);
                }
                is_closed
            }
        }
    }

    fn ask_store(&self, commit: Commit) -> Result<Fed, StoreError> {
        let queue = Arc::clone(&self.queue);
        self.store.insist(move |engine| {
            let now = Timestamp::now();
            if !commit.news.settled.is_empty() {
                engine.settle(&commit.news.settled, now)?;
            }
            if !commit.news.put_back.is_empty() {
                engine.requeue(&commit.news.put_back)?;
            }
            let started = match commit.limit {
                0 => Started::default(),
                limit => engine.start(&queue, now, limit)?,
            };
            Ok(Fed {
                started,
                next_at: engine.next_job_at(&queue)?,
                counts: engine.job_counts(&queue)?,
            })
        })
    }
}

/// The pause after a failure of the store.
const PAUSE: Duration = Duration::from_millis(500);
