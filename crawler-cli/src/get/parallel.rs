//! `-Z`: transfers at the same time. Each runs on a thread of its own, as it does alone; the engine's client serves all
//! of them, with its limits on connections. Errors and `-w` are printed by the main thread, one transfer at a time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::exit::{Exit, Failure};
use super::facts::Facts;
use super::meter::{Moved, PARALLEL_HEADER, Snapshot, per_second};
use super::plan::HiArgs;
use super::pool::Pool;
use super::progress::{Counts, Progress, View, draw};
use super::rate::Pacer;
use super::transfer::{Session, SharedState};
use super::{settle, verdict};

/// Runs all transfers, at most as many at a time as `--parallel-max`. The exit code is that of the transfer that failed
/// last; with `--fail-early`, of the one that failed first.
pub(super) fn transfer_all(args: &HiArgs) -> Exit {
    let global = &args.global;
    let shared = SharedState {
        pool: Some(Arc::new(Pool::new(global.verbose))),
        ..SharedState::default()
    };
    let most = global.parallel.most.unwrap_or(USUALLY_AT_ONCE);
    let jobs = Jobs {
        args,
        begun: AtomicUsize::new(0),
        ended: AtomicUsize::new(0),
        stop: Arc::new(AtomicBool::new(false)),
        pacer: Mutex::default(),
        counts: args.transfers.iter().map(|_| Arc::default()).collect(),
    };
    let (sender, results) = channel();
    thread::scope(|scope| {
        for _ in 0..most.min(args.transfers.len()) {
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
        let mut meter = args
            .shows_progress(&args.transfers)
            .then(|| Meter::new(&jobs));
        let mut exit = Exit::Ok;
        let mut first = None;
        loop {
            let limit = meter.as_ref().map_or(Duration::MAX, |_| UPDATE);
            let (number, facts, outcome) = match results.recv_timeout(limit) {
                Ok(done) => done,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(meter) = &mut meter {
                        meter.update();
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let outcome = settle(args, &args.transfers[number], &facts, outcome);
            let (code, ends) = verdict(args, &outcome);
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

/// The transfers that are to run.
struct Jobs<'a> {
    args: &'a HiArgs,
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// No further transfer begins, and those that run end.
    stop: Arc<AtomicBool>,
    pacer: Mutex<Pacer>,
    /// By transfer.
    counts: Vec<Arc<Counts>>,
}

impl Jobs<'_> {
    /// Runs the next transfer. `None` if there is none.
    fn next(&self, session: &mut Session) -> Option<(usize, Facts, Result<(), Failure>)> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let transfer = self.args.transfers.get(number)?;
        if let Some(rate) = self.args.global.rate {
            let mut pacer = self.pacer.lock().unwrap_or_else(PoisonError::into_inner);
            let delay = pacer.delay(rate, Instant::now());
            drop(pacer);
            thread::sleep(delay);
        }
        let view = View::Joint(Arc::clone(&self.stop));
        let mut progress = Progress::new(view, transfer.options.slow, Instant::now());
        progress.count_in(Arc::clone(&self.counts[number]));
        let (facts, outcome) = session.run(transfer, number, progress);
        self.ended.fetch_add(1, Ordering::Relaxed);
        // At once, so that this thread begins no other transfer.
        if verdict(self.args, &outcome).1 {
            self.stop.store(true, Ordering::Relaxed);
        }
        Some((number, facts, outcome))
    }

    fn snapshot(&self) -> Snapshot {
        let mut all = Snapshot::default();
        let add = |sum: &mut Moved, moved: Moved| {
            sum.now = sum.now.saturating_add(moved.now);
            let total = moved.total.filter(|total| *total > 0);
            sum.total = match (sum.total, total) {
                (Some(sum), Some(total)) => Some(sum.saturating_add(total)),
                (sum, total) => sum.or(total),
            };
        };
        for counts in &self.counts {
            let one = counts.snapshot();
            add(&mut all.download, one.download);
            add(&mut all.upload, one.upload);
        }
        all
    }
}

/// The meter of all transfers.
struct Meter<'a> {
    jobs: &'a Jobs<'a>,
    since: Instant,
    /// The time and the bytes of the update before.
    last: (Instant, u64),
}

impl<'a> Meter<'a> {
    fn new(jobs: &'a Jobs<'a>) -> Self {
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
        let begun = begun.min(self.jobs.counts.len());
        let live = begun.saturating_sub(self.jobs.ended.load(Ordering::Relaxed));
        draw(&format!("\r{}", snapshot.parallel_row(begun, live)));
    }
}

/// Transfers at a time without `--parallel-max`, as in curl.
const USUALLY_AT_ONCE: usize = 50;

/// The time between two lines of the meter.
const UPDATE: Duration = Duration::from_millis(500);
