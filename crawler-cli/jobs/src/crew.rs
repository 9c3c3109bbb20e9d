//! The threads of a pool: workers that take jobs from a source and settle them there, and a keeper that watches the
//! clock. What a job is, and what follows an attempt, is the business of the [`Source`].
//!
//! One lock guards all of the state, and nothing of the user runs under the lock: neither the task, nor the sink of
//! dead letters, nor a destructor of a job.

mod state;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::decide::Outcome;
use super::pool::Drain;
use super::settings::PoolSettings;
use super::task::JobError;
use crate::ceiling::Ceiling;
use crate::sync::{Condvar, Mutex, MutexGuard, lock, thread};
use crate::{Cancel, CancelReason};
use state::{Begun, Closing, Runs, Threads, earlier};
pub use state::{Now, Source, State};

/// The workers and the keeper of a source.
pub struct Crew<S: Source>(Arc<Inner<S>>);

type Task<P> = dyn Fn(&P, &Cancel) -> Result<(), JobError> + Send + Sync;
type Finish<A> = dyn Fn(A) + Send + Sync;

struct Inner<S: Source> {
    state: Mutex<State<S>>,
    /// Something is to be done for a worker.
    work: Condvar,
    /// There is room for a submitted job.
    room: Condvar,
    /// The keeper has to look at the clock again.
    tick: Condvar,
    /// A job of a closing pool has ended.
    ended: Condvar,
    task: Box<Task<S::Payload>>,
    finish: Box<Finish<S::After>>,
    ceiling: Option<Ceiling>,
    /// Set when no further job is to begin.
    stop: Cancel,
    settings: PoolSettings,
}

/// What a crew that was shut down leaves.
pub struct Rest<J> {
    /// Jobs whose attempt had not ended at the deadline.
    pub left: Vec<J>,
}

impl<S: Source> Crew<S> {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(
        settings: PoolSettings,
        source: S,
        task: Box<Task<S::Payload>>,
        finish: Box<Finish<S::After>>,
    ) -> io::Result<Self> {
        let inner = Arc::new(Inner {
            state: Mutex::new(State {
                source,
                runs: Runs::new(),
                threads: Threads::default(),
                closing: None,
                is_over: false,
                keeper_at: None,
                in_burial: 0,
                before_permit: 0,
                submitters: 0,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            tick: Condvar::new(),
            ended: Condvar::new(),
            task,
            finish,
            ceiling: settings.ceiling.clone(),
            stop: Cancel::new(),
            settings,
        });
        let crew = Self(inner);
        let started = crew.0.spawn_all();
        if started.is_err() {
            // Those that were started end.
            crew.end();
        }
        started.map(|()| crew)
    }

    pub fn lock(&self) -> MutexGuard<'_, State<S>> {
        lock(&self.0.state)
    }

    /// The name of the pool.
    pub fn name(&self) -> &str {
        &self.0.settings.name
    }

    /// Waits until a job may come in, and locks the state. `None` at the end of the time.
    ///
    /// # Errors
    /// The pool is closed.
    pub fn wait_for_room(
        &self,
        end: Option<Instant>,
    ) -> Result<Option<MutexGuard<'_, State<S>>>, Closed> {
        let mut state = self.lock();
        loop {
            if state.closing.is_some() {
                return Err(Closed);
            }
            if state.source.has_room() {
                return Ok(Some(state));
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                return Ok(None);
            }
            state.submitters += 1;
            state = wait_until(&self.0.room, state, end);
            state.submitters -= 1;
        }
    }

    /// A job came in.
    pub(crate) fn handle_job(&self, mut state: MutexGuard<'_, State<S>>) {
        let is_idle = state.threads.wake_one();
        // Who waits for room was woken for one job, and there may be room for more.
        let is_awaited = state.submitters > 0 && state.source.has_room();
        drop(state);
        if is_idle {
            self.0.work.notify_one();
        }
        if is_awaited {
            self.0.room.notify_one();
        }
    }

    /// The source got so many jobs that can be run, or maybe has no more.
    pub fn handle_jobs(&self, mut state: MutexGuard<'_, State<S>>, count: usize) {
        let woken = (0..count).take_while(|_| state.threads.wake_one()).count();
        let is_closing = state.closing.is_some();
        let is_awaited = state.submitters > 0 && state.source.has_room();
        drop(state);
        (0..woken).for_each(|_| self.0.work.notify_one());
        if is_awaited {
            self.0.room.notify_all();
        }
        if is_closing {
            self.0.ended.notify_all();
        }
    }

    /// Lets no job in any more, ends what runs as `drain` says, and waits for that at most until `end`. Then the
    /// threads end.
    pub fn shut_down(&self, drain: Drain, end: Option<Instant>) -> Rest<S::Job> {
        let mut state = self.lock();
        state.closing = Some(Closing { drain, end });
        if drain == Drain::Persist {
            self.0.stop.set(CancelReason::Shutdown);
        }
        self.0.room.notify_all();
        self.0.work.notify_all();
        while !state.is_quiet() && end.is_none_or(|end| Instant::now() < end) {
            state = wait_until(&self.0.ended, state, end);
        }
        let left = std::mem::take(&mut state.runs.running);
        for run in left.values() {
            run.cancel.set(CancelReason::Shutdown);
        }
        state.is_over = true;
        self.0.stop.set(CancelReason::Shutdown);
        // Who waits for a permit wakes at once and gives the job back.
        while state.before_permit > 0 {
            state = wait_until(&self.0.ended, state, None);
        }
        drop(state);
        self.end();
        Rest {
            left: left.into_values().map(|run| run.job).collect(),
        }
    }

    fn end(&self) {
        lock(&self.0.state).is_over = true;
        self.0.stop.set(CancelReason::Shutdown);
        self.0.room.notify_all();
        self.0.work.notify_all();
        self.0.tick.notify_all();
        self.0.ended.notify_all();
    }
}

/// The pool takes no jobs any more.
#[derive(Debug)]
pub struct Closed;

/// The threads.
impl<S: Source> Inner<S> {
    /// Starts the workers and the keeper.
    fn spawn_all(self: &Arc<Self>) -> io::Result<()> {
        self.spawn_missing(&mut lock(&self.state))?;
        let inner = Arc::clone(self);
        let name = format!("{}-keeper", self.settings.name);
        let keeper = thread::Builder::new().name(name);
        keeper.spawn(move || inner.keep()).map(drop)
    }

    /// Starts the workers that are missing, as far as replacements are allowed.
    fn spawn_missing(self: &Arc<Self>, state: &mut State<S>) -> io::Result<()> {
        let wanted = self.settings.workers.get();
        let most = wanted.saturating_add(self.settings.replacements);
        while !state.is_over
            && state.threads.workers < wanted
            && state.threads.workers + state.runs.stuck.len() < most
        {
            let inner = Arc::clone(self);
            let worker = thread::Builder::new().name(self.settings.name.clone());
            worker.spawn(move || inner.work())?;
            state.threads.workers += 1;
        }
        Ok(())
    }

    /// A worker.
    fn work(self: Arc<Self>) {
        while let Some(begun) = self.next_run() {
            let outcome = run(&*self.task, &begun.payload, &begun.cancel);
            drop(begun.permit);
            let goes_on = self.handle_outcome(begun.id, outcome);
            drop_quietly(begun.payload);
            if !goes_on {
                return;
            }
        }
    }

    /// Waits for a job, and for a permit if there is a ceiling. `None` if the worker shall end.
    fn next_run(&self) -> Option<Begun<S::Payload>> {
        let mut state = lock(&self.state);
        loop {
            if state.is_over {
                state.threads.workers -= 1;
                return None;
            }
            let Some(job) = state.take(Instant::now()) else {
                state = self.wait_for_work(state);
                continue;
            };
            let is_awaited = state.submitters > 0 && state.source.has_room();
            let Some(ceiling) = &self.ceiling else {
                let begun = state.begin(job, None, self.settings.time_limit);
                self.watch_clock(&mut state);
                drop(state);
                if is_awaited {
                    self.room.notify_one();
                }
                return Some(begun);
            };
            state.before_permit += 1;
            drop(state);
            if is_awaited {
                self.room.notify_one();
            }
            let permit = ceiling.acquire(&self.stop);
            state = lock(&self.state);
            state.before_permit -= 1;
            match permit {
                Ok(permit) if !self.stop.is_set() => {
                    let begun = state.begin(job, Some(permit), self.settings.time_limit);
                    self.watch_clock(&mut state);
                    return Some(begun);
                }
                _ => {
                    state.source.put_back(job);
                    self.note_end(&state);
                }
            }
        }
    }

    fn wait_for_work<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<S>>,
    ) -> MutexGuard<'a, State<S>> {
        state.threads.idle += 1;
        self.watch_clock(&mut state);
        let mut state = wait_until(&self.work, state, None);
        state.threads.handle_wake();
        state
    }

    /// Settles a run. Returns whether the worker goes on.
    fn handle_outcome(&self, id: u64, outcome: Outcome) -> bool {
        let mut state = lock(&self.state);
        let Some(run) = state.runs.running.remove(&id) else {
            return self.handle_late(state, id);
        };
        let after = state.settle(run.job, outcome, Now::read());
        self.watch_clock(&mut state);
        self.note_end(&state);
        drop(state);
        self.finish(after);
        true
    }

    /// The task of a run that was over has returned. Its thread works on if its replacement did not start.
    fn handle_late(&self, mut state: MutexGuard<'_, State<S>>, id: u64) -> bool {
        state.runs.counts.late += 1;
        if state.runs.stuck.remove(&id).is_none() {
            // A run that was left at the shutdown.
            state.threads.workers -= 1;
            return false;
        }
        let goes_on = !state.is_over && state.threads.workers < self.settings.workers.get();
        state.threads.workers += usize::from(goes_on);
        goes_on
    }

    /// The keeper: ends runs at their time limit, and wakes workers for jobs whose time has come.
    fn keep(self: Arc<Self>) {
        let mut state = lock(&self.state);
        while !state.is_over {
            let now = Now::read();
            let afters = state.expire(now);
            // Without a replacement the pool has fewer workers until a stuck task returns, and says so in its counts.
            let _ = self.spawn_missing(&mut state);
            let is_due = state
                .source
                .poll_timeout()
                .is_some_and(|due| due <= now.clock);
            let is_idle = is_due && state.threads.wake_one();
            if !afters.is_empty() || is_idle {
                self.note_end(&state);
                drop(state);
                if is_idle {
                    self.work.notify_one();
                }
                afters
                    .into_iter()
                    .for_each(|after| self.finish(Some(after)));
                state = lock(&self.state);
                continue;
            }
            state.keeper_at = state.next_tick(now.clock);
            let next = state.keeper_at;
            state = wait_until(&self.tick, state, next);
            state.keeper_at = None;
        }
    }

    /// Wakes the keeper if something is to be done earlier than it knows.
    fn watch_clock(&self, state: &mut State<S>) {
        let due = match state.threads.idle {
            // Workers that are busy look for jobs that are due when they take the next one.
            0 => None,
            _ => state.source.poll_timeout(),
        };
        let deadline = state.runs.first_deadline();
        let Some(next) = earlier(due, deadline) else {
            return;
        };
        if state.keeper_at.is_none_or(|at| next < at) {
            state.keeper_at = Some(next);
            self.tick.notify_one();
        }
    }

    fn note_end(&self, state: &State<S>) {
        if state.closing.is_some() {
            self.ended.notify_all();
        }
    }

    /// Does what follows an attempt, without the lock.
    fn finish(&self, after: Option<S::After>) {
        let Some(after) = after else { return };
        let result = catch_unwind(AssertUnwindSafe(|| (self.finish)(after)));
        let mut state = lock(&self.state);
        state.in_burial -= 1;
        state.runs.counts.lost_letters += u64::from(result.is_err());
        self.note_end(&state);
        drop(state);
        if let Err(payload) = result {
            drop_quietly(payload);
        }
    }
}

impl<S: Source> Clone for Crew<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Runs the task and catches its panic.
fn run<P>(task: &Task<P>, payload: &P, cancel: &Cancel) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| task(payload, cancel))) {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(error)) => Outcome::Failed(error),
        Err(payload) => {
            let message = message_of(&*payload).to_owned();
            drop_quietly(payload);
            Outcome::Panicked(message)
        }
    }
}

/// Drops a value of the user; a panic in its destructor must not end the thread.
fn drop_quietly<V>(value: V) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // A destructor that panics again is not tried a third time.
        std::mem::forget(payload);
    }
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

fn wait_until<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    end: Option<Instant>,
) -> MutexGuard<'a, T> {
    match end {
        None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(end) => {
            let longest = end.saturating_duration_since(Instant::now());
            condvar
                .wait_timeout(guard, longest)
                .unwrap_or_else(PoisonError::into_inner)
                .0
        }
    }
}
