//! `-Z`: transfers at the same time. Each runs on a thread of its own, as it does alone; the engine's client serves all
//! of them, with its limits on connections. Errors and `-w` are printed by the main thread, one transfer at a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::exit::{Exit, Failure};
use super::facts::Facts;
use super::meter::{Moved, PARALLEL_HEADER, Snapshot, per_second};
use super::plan::{HiArgs, Transfer};
use super::pool::Pool;
use super::progress::{Counts, Progress, View, draw};
use super::rate::Pacer;
use super::transfer::{Session, SharedState};
use super::{not_begun, settle, verdict};

/// Runs all transfers, at most as many at a time as `--parallel-max`. The exit code is that of the transfer that failed
/// last; with `--fail-early`, of the one that failed first.
pub(super) fn transfer_all(args: &HiArgs) -> Exit {
    let global = &args.global;
    let shared = SharedState {
        pool: Some(Arc::new(Pool::new(global.verbose))),
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
    };
    let (sender, results) = channel();
    thread::scope(|scope| {
        for _ in 0..most.min(usize::try_from(count).unwrap_or(usize::MAX)) {
            let (shared, sender, jobs) = (shared.clone(), sender.clone(), &jobs);
            scope.spawn(move || {
                let jar = args.jar.clone();
                let mut session = Session::new(global.verbose, global.silent, jar, shared);
                while let Some(done) = jobs.next(&mut session) {
                    // The main thread receives until all senders are gone.
                    let _ = sender.send(done);
                }
            });
        }
        drop(sender);
        let mut meter = args.shows_joint_progress().then(|| Meter::new(&jobs));
        let mut exit = Exit::Ok;
        let mut first = None;
        loop {
            let limit = meter.as_ref().map_or(Duration::MAX, |_| UPDATE);
            let done = match results.recv_timeout(limit) {
                Ok(done) => done,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(meter) = &mut meter {
                        meter.update();
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let (code, ends) = match *done {
                Done::Ended(transfer, facts, outcome) => {
                    let outcome = settle(args, &transfer, &facts, outcome);
                    verdict(args, &outcome)
                }
                Done::NotBegun(failure) => (not_begun(args, &failure), true),
            };
            if code != Exit::Ok {
                exit = code;
            }
            if ends {
                first.get_or_insert(code);
                jobs.stop.store(true, Ordering::Relaxed);
            }
        }
        if let Some(meter) = &mut meter {
            meter.end();
        }
        first.unwrap_or(exit)
    })
}

/// What became of a transfer.
enum Done {
    Ended(Transfer, Facts, Result<(), Failure>),
    NotBegun(Failure),
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
}

/// What transfers have moved.
#[derive(Default)]
struct AllMoved {
    /// All that have ended, together.
    ended: Snapshot,
    running: Vec<Arc<Counts>>,
}

impl Jobs<'_> {
    /// Runs the next transfer. `None` if there is none.
    fn next(&self, session: &mut Session) -> Option<Box<Done>> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let (urlnum, transfer) = lock(&self.waiting).next()?;
        let transfer = match transfer {
            Ok(transfer) => transfer,
            Err(failure) => {
                self.stop.store(true, Ordering::Relaxed);
                return Some(Box::new(Done::NotBegun(failure)));
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
        // At once, so that this thread begins no other transfer.
        if verdict(self.args, &outcome).1 {
            self.stop.store(true, Ordering::Relaxed);
        }
        Some(Box::new(Done::Ended(transfer, facts, outcome)))
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

/// A panic of another thread ends the program.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Transfers at a time without `--parallel-max`, as in curl.
const USUALLY_AT_ONCE: usize = 50;

/// The time between two lines of the meter.
const UPDATE: Duration = Duration::from_millis(500);
