//! `-Z`: transfers at the same time. Each runs on a thread of its own, as it does alone; the engine's client serves all
//! of them, with its limits on connections. Errors and `-w` are printed for one transfer at a time, before its thread
//! begins the next one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::exit::{Exit, Failure};
use super::meter::{Moved, PARALLEL_HEADER, Snapshot, per_second};
use super::plan::{HiArgs, Transfer};
use super::pool::Pool;
use super::progress::{Counts, Progress, View, draw};
use super::rate::Pacer;
use super::show::Trace;
use super::transfer::{Session, SharedState};
use super::{not_begun, settle, verdict};

/// Runs all transfers, at most as many at a time as `--parallel-max`. The exit code is that of the transfer that failed
/// last; with `--fail-early`, of the one that failed first.
pub(super) fn transfer_all(args: &HiArgs, trace: &Trace) -> Exit {
    let global = &args.global;
    let shared = SharedState {
        pool: Some(Arc::new(Pool::new(trace.clone()))),
        ..SharedState::default()
    };
    let most = global.parallel.most.unwrap_or(USUALLY_AT_ONCE);
    let count = args.count();
    let jobs = Jobs {
        args,
        waiting: Mutex::new(Box::new(args.transfers())),
        begun: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        stop: Arc::new(AtomicBool::new(false)),
        pacer: Mutex::default(),
        moved: Mutex::default(),
        verdicts: Mutex::default(),
    };
    // Nothing is sent: the end of the last thread disconnects the channel.
    let (running, ends) = channel::<()>();
    thread::scope(|scope| {
        for _ in 0..most.min(usize::try_from(count).unwrap_or(usize::MAX)) {
            let (shared, running, jobs) = (shared.clone(), running.clone(), &jobs);
            scope.spawn(move || {
                let jar = args.jar.clone();
                let mut session = Session::new(trace.clone(), global.silent, jar, shared);
                while jobs.run_next(&mut session) {}
                drop(running);
            });
        }
        drop(running);
        let mut meter = args.shows_joint_progress().then(|| Meter::new(&jobs));
        let limit = meter.as_ref().map_or(Duration::MAX, |_| UPDATE);
        while ends.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            if let Some(meter) = &mut meter {
                meter.update();
            }
        }
        if let Some(meter) = &mut meter {
            meter.end();
        }
    });
    let verdicts = lock(&jobs.verdicts);
    verdicts.ending.unwrap_or(verdicts.last)
}

/// The exit codes of the transfers so far.
#[derive(Default)]
struct Verdicts {
    /// Of the failure that came last.
    last: Exit,
    /// Of the failure that ended all transfers.
    ending: Option<Exit>,
}

/// The transfers that have not begun, with the numbers of their URLs.
type Waiting<'a> = Box<dyn Iterator<Item = (usize, Result<Transfer, Failure>)> + Send + 'a>;

/// The transfers that are to run.
struct Jobs<'a> {
    args: &'a HiArgs,
    waiting: Mutex<Waiting<'a>>,
    begun: AtomicU64,
    ended: AtomicU64,
    /// No further transfer begins, and those that run end.
    stop: Arc<AtomicBool>,
    pacer: Mutex<Pacer>,
    moved: Mutex<AllMoved>,
    verdicts: Mutex<Verdicts>,
}

/// What transfers have moved.
#[derive(Default)]
struct AllMoved {
    /// All that have ended, together.
    ended: Snapshot,
    running: Vec<Arc<Counts>>,
}

impl Jobs<'_> {
    /// Runs the next transfer. False if there is none.
    fn run_next(&self, session: &mut Session) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        let Some((urlnum, transfer)) = lock(&self.waiting).next() else {
            return false;
        };
        let transfer = match transfer {
            Ok(transfer) => transfer,
            Err(failure) => {
                let mut verdicts = lock(&self.verdicts);
                let code = not_begun(self.args, &failure);
                self.note(&mut verdicts, code, true);
                return false;
            }
        };
        self.begun.fetch_add(1, Ordering::Relaxed);
        if let Some(rate) = self.args.global.rate {
            let delay = lock(&self.pacer).delay(rate, Instant::now());
            thread::sleep(delay);
        }
        let view = View::Joint(Arc::clone(&self.stop));
        let mut progress = Progress::new(view, transfer.options.slow, Instant::now());
        let counts: Arc<Counts> = Arc::default();
        progress.count_in(Arc::clone(&counts));
        lock(&self.moved).running.push(Arc::clone(&counts));
        let (facts, outcome) = session.run(&transfer, urlnum, progress);
        let mut moved = lock(&self.moved);
        moved.running.retain(|other| !Arc::ptr_eq(other, &counts));
        add(&mut moved.ended, &counts);
        drop(moved);
        self.ended.fetch_add(1, Ordering::Relaxed);
        let mut verdicts = lock(&self.verdicts);
        let outcome = settle(self.args, &transfer, &facts, outcome);
        let (code, ends) = verdict(self.args, &outcome);
        self.note(&mut verdicts, code, ends);
        true
    }

    /// Notes how a transfer has ended, and whether all others end with it.
    fn note(&self, verdicts: &mut Verdicts, code: Exit, ends: bool) {
        if code != Exit::Ok {
            verdicts.last = code;
        }
        if ends {
            verdicts.ending.get_or_insert(code);
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn snapshot(&self) -> Snapshot {
        let moved = lock(&self.moved);
        let mut all = moved.ended;
        for counts in &moved.running {
            add(&mut all, counts);
        }
        all
    }
}

/// Adds what one transfer has moved.
fn add(all: &mut Snapshot, counts: &Counts) {
    let add = |sum: &mut Moved, moved: Moved| {
        sum.now = sum.now.saturating_add(moved.now);
        let total = moved.total.filter(|total| *total > 0);
        sum.total = match (sum.total, total) {
            (Some(sum), Some(total)) => Some(sum.saturating_add(total)),
            (sum, total) => sum.or(total),
        };
    };
    let one = counts.snapshot();
    add(&mut all.download, one.download);
    add(&mut all.upload, one.upload);
}

/// The meter of all transfers.
struct Meter<'m, 'a> {
    jobs: &'m Jobs<'a>,
    since: Instant,
    /// The time and the bytes of the update before.
    last: (Instant, u64),
}

impl<'m, 'a> Meter<'m, 'a> {
    fn new(jobs: &'m Jobs<'a>) -> Self {
        let now = Instant::now();
        draw(PARALLEL_HEADER);
        Self {
            jobs,
            since: now,
            last: (now, 0),
        }
    }

    fn update(&mut self) {
        let now = Instant::now();
        let mut snapshot = self.jobs.snapshot();
        let moved = snapshot.download.now.saturating_add(snapshot.upload.now);
        let (then, before) = self.last;
        snapshot.spent = now.duration_since(self.since);
        snapshot.current = per_second(moved.saturating_sub(before), now.duration_since(then));
        self.last = (now, moved);
        self.draw(&snapshot);
    }

    fn end(&mut self) {
        let mut snapshot = self.jobs.snapshot();
        snapshot.spent = self.since.elapsed();
        let moved = snapshot.download.now.saturating_add(snapshot.upload.now);
        snapshot.current = per_second(moved, snapshot.spent);
        self.draw(&snapshot);
        draw("\n");
    }

    fn draw(&self, snapshot: &Snapshot) {
        let begun = self.jobs.begun.load(Ordering::Relaxed);
        let live = begun.saturating_sub(self.jobs.ended.load(Ordering::Relaxed));
        draw(&format!("\r{}", snapshot.parallel_row(begun, live)));
    }
}

/// What the locks hold is whole at any time, also after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Transfers at a time without `--parallel-max`, as in curl.
const USUALLY_AT_ONCE: usize = 50;

/// The time between two lines of the meter.
const UPDATE: Duration = Duration::from_millis(500);
