//! The flaws of a published pool for nightly fetching, each as a test that this pool passes and a pool with the flaw
//! does not.
//!
//! The published pool is written down here with one flaw at a time: a channel of jobs, a channel that ends the workers,
//! and a count of workers to wait for.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use courser::{Backoff, Rate};
use jiff::{SignedDuration, Timestamp};

use super::*;

/// How long the flawed pool is waited for: its failure is that it never ends.
const SHORT: Duration = Duration::from_millis(100);
/// How long this pool is waited for. It is over long before.
const LONG: Duration = Duration::from_secs(600);

/// What the tests ask of a pool of the numbers of jobs.
trait Pool: Send + Sync + 'static {
    fn submit(&self, job: u64) -> bool;
    /// Ends the pool. Returns the jobs that were not run.
    fn end(&self, drain: Drain) -> Vec<u64>;
    /// The jobs that failed for good.
    fn failed(&self) -> Vec<u64>;
    fn workers(&self) -> usize;
}

type Task = fn(u64) -> Result<(), JobError>;

impl Pool for WorkerPool<u64> {
    fn submit(&self, job: u64) -> bool {
        WorkerPool::submit(self, job).is_ok()
    }

    fn end(&self, drain: Drain) -> Vec<u64> {
        let report = self.shutdown(drain, LONG);
        report.kept.into_iter().map(|kept| *kept.job).collect()
    }

    fn failed(&self) -> Vec<u64> {
        let letters = self.dead_letters().take().into_iter();
        letters.map(|letter| *letter.job).collect()
    }

    fn workers(&self) -> usize {
        self.counts().workers
    }
}

fn ours(workers: usize, task: Task) -> Arc<dyn Pool> {
    let settings = PoolSettings {
        workers: NonZeroUsize::new(workers).expect("not zero"),
        queue: NonZeroUsize::new(4).expect("not zero"),
        backoff: Backoff::NONE,
        ..PoolSettings::default()
    };
    let pool = WorkerPool::new(settings, move |job: &u64, _: &Cancel| task(*job));
    Arc::new(pool.expect("threads"))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Flaw {
    /// A failed job is logged, and that is all.
    FailuresAreLogged,
    /// A worker that is told to end leaves what is queued.
    QueueIsLeft,
    /// The count of workers is never brought down.
    WaitGroupIsHeld,
    /// Nobody catches a panic.
    PanicsKill,
    /// The channel is not closed when the workers end.
    SubmitBlocks,
}

/// The published pool.
struct Flawed {
    flaw: Flaw,
    jobs: Mutex<Option<crossbeam_channel::Sender<u64>>>,
    queued: crossbeam_channel::Receiver<u64>,
    quit: crossbeam_channel::Sender<()>,
    workers: Mutex<Vec<thread::JoinHandle<()>>>,
    failed: Arc<Mutex<Vec<u64>>>,
}

fn flawed(flaw: Flaw, workers: usize, task: Task) -> Arc<dyn Pool> {
    let (jobs, queued) = crossbeam_channel::bounded::<u64>(4);
    let (quit, ended) = crossbeam_channel::bounded::<()>(workers);
    let failed = Arc::new(Mutex::new(Vec::new()));
    let workers = (0..workers).map(|_| {
        let (queued, ended, failed) = (queued.clone(), ended.clone(), Arc::clone(&failed));
        thread::spawn(move || {
            let run = |job| {
                let result = match flaw {
                    Flaw::PanicsKill => task(job),
                    _ => catch_unwind(|| task(job)).unwrap_or(Ok(())),
                };
                if result.is_err() && flaw != Flaw::FailuresAreLogged {
                    failed.lock().expect("no panic").push(job);
                }
            };
            loop {
                crossbeam_channel::select_biased! {
                    recv(ended) -> _ => break,
                    recv(queued) -> job => match job {
                        Ok(job) => run(job),
                        Err(_) => break,
                    },
                }
            }
            if flaw != Flaw::QueueIsLeft && flaw != Flaw::SubmitBlocks {
                while let Ok(job) = queued.try_recv() {
                    run(job);
                }
            }
            if flaw == Flaw::WaitGroupIsHeld {
                loop {
                    thread::park();
                }
            }
        })
    });
    let workers = Mutex::new(workers.collect());
    Arc::new(Flawed {
        flaw,
        jobs: Mutex::new(Some(jobs)),
        queued,
        quit,
        workers,
        failed,
    })
}

impl Pool for Flawed {
    fn submit(&self, job: u64) -> bool {
        let jobs = self.jobs.lock().expect("no panic").clone();
        jobs.is_some_and(|jobs| jobs.send(job).is_ok())
    }

    fn end(&self, _: Drain) -> Vec<u64> {
        if self.flaw != Flaw::SubmitBlocks {
            *self.jobs.lock().expect("no panic") = None;
        }
        let workers = std::mem::take(&mut *self.workers.lock().expect("no panic"));
        for _ in &workers {
            let _ = self.quit.try_send(());
        }
        for worker in workers {
            let _ = worker.join();
        }
        match self.flaw {
            // What is in the channel is dropped with the channel.
            Flaw::QueueIsLeft => Vec::new(),
            _ => self.queued.try_iter().collect(),
        }
    }

    fn failed(&self) -> Vec<u64> {
        std::mem::take(&mut self.failed.lock().expect("no panic"))
    }

    fn workers(&self) -> usize {
        let workers = self.workers.lock().expect("no panic");
        workers
            .iter()
            .filter(|worker| !worker.is_finished())
            .count()
    }
}

/// Whether the action ends within this time.
fn ends(patience: Duration, action: impl FnOnce() + Send + 'static) -> bool {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        action();
        let _ = done.send(());
    });
    ended.recv_timeout(patience).is_ok()
}

#[test]
fn a_failed_job_is_kept_for_inspection() {
    let is_kept = |pool: Arc<dyn Pool>| {
        assert!(pool.submit(7));
        pool.end(Drain::Finish);
        pool.failed() == [7]
    };
    let task: Task = |_| Err(JobError::retry("503"));
    assert!(is_kept(ours(1, task)));
    assert!(!is_kept(flawed(Flaw::FailuresAreLogged, 1, task)));
}

#[test]
fn what_is_queued_at_the_end_is_run_or_given_back() {
    static RUN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    static GATE: Mutex<()> = Mutex::new(());
    let task: Task = |job| {
        drop(GATE.lock());
        RUN.lock().expect("no panic").push(job);
        Ok(())
    };
    let is_whole = |pool: Arc<dyn Pool>, drain| {
        let gate = GATE.lock();
        assert!((0..4).all(|job| pool.submit(job)));
        let (begun, has_begun) = mpsc::channel();
        let ending = thread::spawn(move || {
            let _ = begun.send(());
            pool.end(drain)
        });
        let _ = has_begun.recv();
        drop(gate);
        let mut all = ending.join().expect("no panic");
        all.append(&mut RUN.lock().expect("no panic"));
        all.sort_unstable();
        all == [0, 1, 2, 3]
    };
    for drain in [Drain::Finish, Drain::Persist] {
        assert!(is_whole(ours(1, task), drain));
    }
    // Its workers choose between the next job and the end; here they always choose the end.
    let lost = (0..100).any(|_| !is_whole(flawed(Flaw::QueueIsLeft, 1, task), Drain::Finish));
    assert!(lost);
}

#[test]
fn the_end_is_not_waited_for_for_ever() {
    let ends_soon = |pool: Arc<dyn Pool>, patience| {
        assert!(pool.submit(1));
        ends(patience, move || drop(pool.end(Drain::Finish)))
    };
    let task: Task = |_| Ok(());
    assert!(ends_soon(ours(2, task), LONG));
    assert!(!ends_soon(flawed(Flaw::WaitGroupIsHeld, 2, task), SHORT));
}

#[test]
fn a_task_that_panics_costs_no_worker() {
    let survives = |pool: Arc<dyn Pool>, patience| {
        // More panics than workers; then the queue must still move on.
        let moves_on = {
            let pool = Arc::clone(&pool);
            ends(patience, move || {
                (0..20).for_each(|job| assert!(pool.submit(job)))
            })
        };
        moves_on && pool.workers() == 2
    };
    let task: Task = |job| match job {
        0..4 => panic!("a panic of the test"),
        _ => Ok(()),
    };
    assert!(survives(ours(2, task), LONG));
    assert!(!survives(flawed(Flaw::PanicsKill, 2, task), SHORT));
}

#[test]
fn nobody_waits_for_room_in_a_pool_that_has_ended() {
    let is_refused = |pool: Arc<dyn Pool>, patience| {
        pool.end(Drain::Finish);
        ends(patience, move || while pool.submit(1) {})
    };
    let task: Task = |_| Ok(());
    assert!(is_refused(ours(1, task), LONG));
    assert!(!is_refused(flawed(Flaw::SubmitBlocks, 1, task), SHORT));
}

#[test]
fn a_second_pool_is_a_pool_of_its_own() {
    fn is_own(start: fn(usize) -> Arc<dyn Pool>) -> bool {
        let pools = [1, 3].map(start);
        pools[0].workers() == 1 && pools[1].workers() == 3
    }
    fn singleton(workers: usize) -> Arc<dyn Pool> {
        static POOL: OnceLock<Arc<dyn Pool>> = OnceLock::new();
        Arc::clone(POOL.get_or_init(|| ours(workers, |_| Ok(()))))
    }
    assert!(is_own(|workers| ours(workers, |_| Ok(()))));
    assert!(!is_own(singleton));
}

#[test]
fn a_rate_is_no_number_of_workers() {
    /// How many requests of 10 ms begin in a second, if `may_begin` says when.
    fn in_a_second(mut may_begin: impl FnMut(Instant) -> bool) -> usize {
        let start = Instant::now();
        let times = (0..1000).map(|ms| start + Duration::from_millis(ms));
        times.filter(|now| may_begin(*now)).count()
    }
    // Two pools of two workers under one ceiling.
    let ceiling = Ceiling::new(CeilingLimits {
        concurrency: NonZeroUsize::new(4),
        rate: Some(Rate::per_second(
            std::num::NonZeroU64::new(10).expect("not zero"),
        )),
    });
    let mut pools = [ceiling.clone(), ceiling].into_iter().cycle();
    let begun = in_a_second(|now| {
        let permit = pools.next().map(|ceiling| ceiling.try_acquire(now));
        match permit {
            Some(Ok(permit)) => {
                permit.release(now + Duration::from_millis(10));
                true
            }
            _ => false,
        }
    });
    assert!((9..=10).contains(&begun), "{begun}");
    // Four workers, each of which begins a request when the one before has ended.
    let mut workers = [None::<Instant>; 4];
    let begun = in_a_second(|now| {
        let free = |worker: &&mut Option<Instant>| worker.is_none_or(|end| end <= now);
        let Some(worker) = workers.iter_mut().find(free) else {
            return false;
        };
        *worker = Some(now + Duration::from_millis(10));
        true
    });
    assert!(begun > 100, "{begun}");
}

#[test]
fn runs_that_last_longer_than_their_period_do_not_pile_up() {
    /// The largest number of runs at a time, of a job each minute that takes two and a half.
    fn at_a_time(mut begins: impl FnMut(Timestamp, u32) -> bool) -> usize {
        let start: Timestamp = "2026-01-01T00:00:30Z".parse().expect("a time");
        let mut ends = Vec::new();
        let mut most = 0;
        for second in 0..3600 {
            let now = start + SignedDuration::from_secs(second);
            ends.retain(|end| *end > now);
            let running = u32::try_from(ends.len()).expect("few");
            if begins(now, running) {
                ends.push(now + SignedDuration::from_secs(150));
            }
            most = most.max(ends.len());
        }
        most
    }
    let each_minute = |overlap| {
        let settings = ScheduleSettings {
            cron: "* * * * *".to_owned(),
            overlap,
            ..ScheduleSettings::default()
        };
        let schedule = Schedule::new("n", "s", &settings).expect("a schedule");
        let mut runs = None;
        move |now, running| {
            let runs = runs.get_or_insert_with(|| ScheduleRuns::since(now));
            runs.running = running;
            let decision = schedule.poll(runs, now);
            runs.handle(&decision);
            matches!(decision, Decision::Fire(_))
        }
    };
    assert_eq!(at_a_time(each_minute(Overlap::Forbid)), 1);
    assert_eq!(at_a_time(each_minute(Overlap::QueueOne)), 1);
    // The published trigger begins a run whenever its time comes.
    let each_time = |now: Timestamp, _| now.as_second() % 60 == 0;
    assert!(at_a_time(each_time) > 1);
    assert!(at_a_time(each_minute(Overlap::Allow)) > 1);
}

#[test]
fn a_bad_expression_is_an_error() {
    /// Whether the caller goes on, with an error.
    fn is_told(parse: impl Fn(&str) -> Result<(), String>) -> bool {
        let texts = ["0 0 */2 * * * * *", "61 * * * *", "0 0 31 2 *", ""];
        let told = |text| catch_unwind(AssertUnwindSafe(|| parse(text)));
        texts
            .into_iter()
            .all(|text| matches!(told(text), Ok(Err(_))))
    }
    assert!(is_told(|text| match text.parse::<Expression>() {
        Ok(_) => Ok(()),
        Err(bad) => Err(bad.to_string()),
    }));
    // The published library ends the process; here a panic stands for that.
    assert!(!is_told(|text| match text.parse::<Expression>() {
        Ok(_) => Ok(()),
        Err(bad) => panic!("fatal: {bad}"),
    }));
}
