//! Durable pools over an embedded store.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use courser::Backoff;
use jiff::Timestamp;

use super::source::{Care, Commit, Fed, Step, Stored};
use super::*;
use crate::sqlite::Sqlite;
use crate::{
    DeadLetterFilter, DeadLetterId, Inline, JobCounts, Started, StartedJob, Writer, WriterSettings,
};
use jobs::crew::{Now, Source};
use jobs::decide::Outcome;
use jobs::{Ceiling, CeilingLimits};

const LONG: Duration = Duration::from_secs(600);

fn settings(workers: usize) -> PoolSettings {
    PoolSettings {
        workers: NonZeroUsize::new(workers).expect("not zero"),
        backoff: Backoff::NONE,
        max_attempts: NonZeroU32::new(3).expect("not zero"),
        seed: Some(1),
        ..PoolSettings::default()
    }
}

fn writer() -> Writer {
    let store = Sqlite::temporary().expect("a store");
    Writer::start(store, WriterSettings::default()).expect("a thread")
}

fn text(job: &StartedJob) -> String {
    String::from_utf8_lossy(&job.payload).into_owned()
}

fn letters<H: StoreHandle>(store: &H) -> Vec<(String, String, u32)> {
    let read = store.read(|engine| {
        let mut letters = Vec::new();
        let filter = DeadLetterFilter::default();
        engine.dead_letters(&filter, DeadLetterId::START, &mut |letter| {
            let crate::Subject::Job { payload, .. } = letter.subject else {
                panic!("a job")
            };
            let payload = String::from_utf8_lossy(&payload).into_owned();
            letters.push((payload, letter.letter.reason, letter.letter.attempts));
            ControlFlow::Continue(())
        })?;
        Ok(letters)
    });
    read.expect("the store can be read")
}

#[test]
fn jobs_are_run_once_retried_and_buried() {
    let store = writer();
    let runs: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let of_task = Arc::clone(&runs);
    let task = move |job: &StartedJob, _: &Cancel| {
        let name = text(job);
        *of_task
            .lock()
            .expect("no panic")
            .entry(name.clone())
            .or_default() += 1;
        match &*name {
            "busy" => Err(JobError::retry("503")),
            "panics" => panic!("a panic of the test"),
            "gone" => Err(JobError::fail("404")),
            "second time" if job.failed == 0 => Err(JobError::retry("429")),
            _ => Ok(()),
        }
    };
    let pool = DurablePool::start(store.clone(), "q", settings(3), task).expect("threads");
    let names = ["a", "busy", "panics", "gone", "second time", "b", "a"];
    let jobs = names.map(|name| NewJob::new("another queue", name).with_key(name));
    let stored = pool.submit_all(jobs.into()).expect("stored");
    assert!(matches!(stored[6], Enqueued::Known(id) if id == stored[0].id()));
    let report = pool.shutdown(Drain::Finish, LONG);
    assert_eq!((report.done, report.dead, report.kept), (3, 3, 0));
    assert_eq!(report.left, []);
    let expected = [
        ("a", 1),
        ("b", 1),
        ("busy", 3),
        ("gone", 1),
        ("panics", 3),
        ("second time", 2),
    ];
    let expected = expected.map(|(name, runs)| (name.to_owned(), runs));
    assert_eq!(*runs.lock().expect("no panic"), expected.into());
    let mut letters = letters(&store);
    letters.sort();
    let expected = [
        ("busy", "attempts", 3),
        ("gone", "failed", 1),
        ("panics", "panic", 3),
    ];
    let expected = expected.map(|(name, reason, n)| (name.to_owned(), reason.to_owned(), n));
    assert_eq!(letters, expected);
    let refused = pool.submit(NewJob::new("q", "c")).expect_err("closed");
    assert_eq!(refused.jobs[0].payload, b"c");
}

/// What became of jobs when the pool was shut down is as if they had not begun.
#[test]
fn what_did_not_run_stays_in_the_store() {
    let store = writer();
    let (begun, has_begun) = mpsc::sync_channel(100);
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().expect("no panic");
    let of_task = Arc::clone(&gate);
    let task = move |_: &StartedJob, _: &Cancel| {
        begun.send(()).expect("a receiver");
        drop(of_task.lock());
        Ok(())
    };
    let pool = DurablePool::start(store.clone(), "q", settings(1), task).expect("threads");
    let jobs = (0..10).map(|n| NewJob::new("q", n.to_string()));
    pool.submit_all(jobs.collect()).expect("stored");
    has_begun.recv().expect("a job");
    let ending = std::thread::spawn(move || {
        let report = pool.shutdown(Drain::Persist, LONG);
        (report, pool)
    });
    drop(held);
    let (report, pool) = ending.join().expect("no panic");
    assert!(report.done >= 1, "{report:?}");
    assert_eq!(report.done + report.kept, 10, "{report:?}");
    drop(pool);
    let counts = store.read(|engine| engine.job_counts("q")).expect("read");
    assert_eq!((counts.waiting, counts.started), (report.kept, 0));
    // The next pool goes on, and no attempt was lost.
    let (seen, attempts) = mpsc::channel();
    let task = move |job: &StartedJob, _: &Cancel| {
        seen.send(job.failed).expect("a receiver");
        Ok(())
    };
    let pool = DurablePool::start(store, "q", settings(2), task).expect("threads");
    let kept = report.kept;
    let report = pool.shutdown(Drain::Finish, LONG);
    assert_eq!((report.done, report.kept), (kept, 0));
    drop(pool);
    assert!(attempts.iter().all(|failed| failed == 0));
}

/// A process that is killed by a job, again and again: the job becomes a dead letter, and no other one does.
#[test]
fn a_job_that_kills_its_process_is_the_only_one_that_dies() {
    for (poison, workers) in [(0, 1), (5, 4), (39, 4)] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("jobs.db");
        let open = || Inline::new(Sqlite::open(&path).expect("a store"));
        let jobs: Vec<_> = (0..40)
            .map(|n: u32| NewJob::new("q", n.to_string()))
            .collect();
        open()
            .call(move |engine| engine.enqueue(&jobs, Timestamp::now()))
            .expect("stored");
        let mut done = Vec::new();
        let mut deaths = 0;
        // The store is opened again as by another process.
        while !run_until_death(&open(), workers, poison, &mut done) {
            deaths += 1;
            assert!(deaths <= 3, "after {done:?}");
        }
        assert_eq!(deaths, 3);
        done.sort_unstable();
        let expected: Vec<_> = (0..40).filter(|n| *n != poison).collect();
        assert_eq!(done, expected);
        let poison = (poison.to_string(), "poison".to_owned(), 3);
        assert_eq!(letters(&open()), [poison]);
    }
}

/// Runs the jobs of a store as a pool would, with many jobs held ready, until the poison begins. Returns whether all
/// ended before.
fn run_until_death(
    store: &Inline<Sqlite>,
    workers: usize,
    poison: u32,
    done: &mut Vec<u32>,
) -> bool {
    let mut source = Stored::new(&settings(workers), NonZeroU64::MAX);
    let mut running: Vec<Arc<StartedJob>> = Vec::new();
    loop {
        while running.len() < workers {
            let Some(job) = source.take(Instant::now()) else {
                break;
            };
            running.push(job);
        }
        let number = |job: &StartedJob| text(job).parse::<u32>().expect("a number");
        if running.iter().any(|job| number(job) == poison) {
            return false;
        }
        // The one that began last ends first.
        if let Some(job) = running.pop() {
            done.push(number(&job));
            source.settle(job, Outcome::Done, Now::read());
        }
        let Step::Commit(commit) = source.next_step(Instant::now(), None) else {
            if running.is_empty() {
                return true;
            }
            continue;
        };
        let limit = commit.limit;
        let fed = store.call(move |engine| {
            let now = Timestamp::now();
            engine.settle(&commit.news.settled, now)?;
            engine.requeue(&commit.news.put_back)?;
            Ok(Fed {
                started: engine.start("q", now, limit)?,
                next_at: engine.next_job_at("q")?,
                counts: engine.job_counts("q")?,
            })
        });
        source.handle_fed(Now::read(), limit, fed.expect("stored"));
    }
}

#[test]
fn more_jobs_are_held_while_workers_wait_for_the_store() {
    let mut source = Stored::new(&settings(2), NonZeroU64::MAX);
    let mut next = 0;
    let mut limits = Vec::new();
    for _ in 0..30 {
        let Step::Commit(commit) = source.next_step(Instant::now(), None) else {
            panic!("the store has more")
        };
        limits.push(commit.limit);
        let jobs = (0..commit.limit).map(|_| {
            next += 1;
            job(next, 0)
        });
        let fed = fed(jobs.collect());
        source.handle_fed(Now::read(), commit.limit, fed);
        // Workers that are faster than the store.
        while let Some(job) = source.take(Instant::now()) {
            source.settle(job, Outcome::Done, Now::read());
        }
    }
    assert_eq!(limits[0], 1);
    assert_eq!(limits.last(), Some(&1024));
}

#[test]
fn a_suspect_runs_alone() {
    let mut source = Stored::new(&settings(4), NonZeroU64::MAX);
    let limit = |source: &mut Stored| match source.next_step(Instant::now(), None) {
        Step::Commit(commit) => Some(commit),
        Step::Wait(_) => None,
    };
    // Interrupted once: beside others, but one by one.
    assert_eq!(limit(&mut source).map(|commit| commit.limit), Some(1));
    assert_eq!(source.handle_fed(Now::read(), 1, fed(vec![job(1, 1)])), 1);
    let first = source.take(Instant::now()).expect("a job");
    assert_eq!(limit(&mut source).map(|commit| commit.limit), Some(1));
    // Interrupted twice: goes back until nothing else runs.
    assert_eq!(source.handle_fed(Now::read(), 1, fed(vec![job(2, 2)])), 0);
    let commit = limit(&mut source).expect("news");
    assert_eq!((commit.limit, commit.news.put_back.len()), (0, 1));
    source.handle_fed(Now::read(), 0, fed(Vec::new()));
    assert!(limit(&mut source).is_none());
    source.settle(first, Outcome::Done, Now::read());
    assert_eq!(limit(&mut source).map(|commit| commit.limit), Some(1));
    assert_eq!(source.handle_fed(Now::read(), 1, fed(vec![job(2, 2)])), 1);
    let suspect = source.take(Instant::now()).expect("a job");
    assert!(limit(&mut source).is_none());
    source.settle(suspect, Outcome::Done, Now::read());
    assert_eq!(limit(&mut source).map(|commit| commit.limit), Some(1));
    // The first one that nothing happened to ends the care.
    assert_eq!(source.handle_fed(Now::read(), 1, fed(vec![job(3, 0)])), 1);
    assert_eq!(source.supply.care, Care::None);
}

/// A job is stored while the store is asked for jobs: the answer says nothing about it.
#[test]
fn a_job_that_comes_during_a_commit_is_asked_for_at_once() {
    let mut source = Stored::new(&settings(1), NonZeroU64::MAX);
    let Step::Commit(commit) = source.next_step(Instant::now(), None) else {
        panic!("the store is asked first")
    };
    source.reserve(1);
    source.handle_enqueued(1, true);
    let nothing = Fed {
        next_at: None,
        ..fed(Vec::new())
    };
    source.handle_fed(Now::read(), commit.limit, nothing);
    assert_eq!(source.waiting(), 1);
    let step = source.next_step(Instant::now(), Some(Drain::Finish));
    assert!(
        matches!(step, Step::Commit(Commit { limit: 1, .. })),
        "{step:?}"
    );
    assert!(source.has_work_until(None));
}

/// A worker has taken the job and waits for a permit that does not come.
#[test]
fn a_job_that_waits_for_a_permit_at_the_end_stays_in_the_store() {
    for drain in [Drain::Finish, Drain::Persist] {
        let store = writer();
        let ceiling = Ceiling::new(CeilingLimits {
            concurrency: NonZeroUsize::new(1),
            rate: None,
        });
        let permit = ceiling.try_acquire(Instant::now()).expect("free");
        let mut settings = settings(1);
        settings.ceiling = Some(ceiling.clone());
        let pool = DurablePool::start(store.clone(), "q", settings, |_: &_, _: &_| Ok(()));
        let pool = pool.expect("threads");
        pool.submit(NewJob::new("q", "job")).expect("stored");
        while pool.crew.lock().source.in_hand == 0 {
            std::thread::yield_now();
        }
        let report = pool.shutdown(drain, Duration::from_millis(1));
        assert_eq!((report.done, report.kept), (0, 1), "{drain:?}");
        assert_eq!((report.left, report.unsaved), (Vec::new(), 0), "{drain:?}");
        let started = store.call(|engine| engine.start("q", Timestamp::now(), 9));
        let started = started.expect("started");
        assert_eq!(started.jobs.len(), 1, "{drain:?}");
        assert_eq!(started.jobs[0].failed, 0, "{drain:?}");
        drop(permit);
    }
}

fn job(id: i64, failed: u32) -> StartedJob {
    StartedJob {
        id: crate::JobId(id),
        key: None,
        payload: Vec::new(),
        attempt: failed + 1,
        failed,
        max_attempts: 3,
        stored_at: Timestamp::UNIX_EPOCH,
        failure: None,
    }
}

/// A store that always has more.
fn fed(jobs: Vec<StartedJob>) -> Fed {
    Fed {
        started: Started {
            jobs,
            poisoned: Vec::new(),
        },
        next_at: Some(Timestamp::UNIX_EPOCH),
        counts: JobCounts::default(),
    }
}
