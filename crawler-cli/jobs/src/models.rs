//! The hand-offs between the threads of a pool, in very many orders of execution:
//! `cargo test -p crawler-cli --lib --features models models::`. The pool, its crew, ceilings and wishes to end are the
//! real ones. If a thread waits for ever, shuttle reports a deadlock. A run that fails prints how to replay it.
//!
//! Shuttle's clock does not move: limits of time are tested elsewhere.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use super::*;
use crate::settings::settings;

/// Each model runs in so many random orders, and in as many orders that switch threads at few points only.
const RUNS: usize = 1_000;
/// The number of these points.
const DEPTH: usize = 3;
/// Long enough for everything that happens in a model.
const LONG: Duration = Duration::from_secs(3600);

fn check(model: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(model, RUNS);
    shuttle::check_pct(model, RUNS, DEPTH);
}

#[test]
fn a_full_queue_loses_nothing() {
    check(|| {
        let done = Arc::new(AtomicUsize::new(0));
        let of_task = Arc::clone(&done);
        let task = move |add: &usize, _: &Cancel| {
            of_task.fetch_add(*add, Ordering::SeqCst);
            Ok(())
        };
        let pool = Arc::new(WorkerPool::new(settings(2, 1), task).expect("threads"));
        let others = [1, 10].map(|add| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || (0..2).for_each(|_| pool.submit(add).expect("open")))
        });
        pool.submit(100).expect("open");
        others
            .into_iter()
            .for_each(|other| other.join().expect("no panic"));
        let report = pool.shutdown(Drain::Finish, LONG);
        assert!(report.is_complete());
        assert_eq!((report.done, done.load(Ordering::SeqCst)), (5, 122));
    });
}

#[test]
fn each_job_is_done_or_given_back_when_the_pool_ends() {
    for drain in [Drain::Finish, Drain::Persist] {
        let model = move || {
            let pool = WorkerPool::new(settings(1, 1), |_: &usize, _: &Cancel| Ok(()));
            let pool = Arc::new(pool.expect("threads"));
            let submitters = [1, 2].map(|job| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || pool.submit(job).is_ok())
            });
            let report = pool.shutdown(drain, LONG);
            let taken = submitters.map(|submitter| submitter.join().expect("no panic"));
            let taken = taken.into_iter().filter(|taken| *taken).count();
            assert!(report.left.is_empty());
            assert_eq!(report.done as usize + report.kept.len(), taken);
            assert_eq!(pool.submit(3).expect_err("closed").why, Refusal::Closed);
        };
        check(model);
    }
}

#[test]
fn a_job_is_tried_again_until_its_attempts_are_used_up() {
    check(|| {
        let mut settings = settings(2, 2);
        settings.max_attempts = NonZeroU32::new(2).expect("not zero");
        let task = |job: &usize, _: &Cancel| match job {
            0 => Err(JobError::retry("busy")),
            1 => panic!("a panic of the test"),
            _ => Ok(()),
        };
        let pool = WorkerPool::new(settings, task).expect("threads");
        for job in [0, 1, 2] {
            pool.submit(job).expect("open");
        }
        let report = pool.shutdown(Drain::Finish, LONG);
        assert!(report.is_complete());
        assert_eq!((report.done, report.dead), (1, 2));
        let letters = pool.dead_letters().take();
        assert!(letters.iter().all(|letter| letter.attempts == 2));
    });
}

#[test]
fn a_ceiling_is_kept_and_wakes_those_who_wait() {
    check(|| {
        let ceiling = Ceiling::new(CeilingLimits {
            concurrency: NonZeroUsize::new(1),
            rate: None,
        });
        let running = Arc::new(AtomicUsize::new(0));
        let pools = [1, 2].map(|workers| {
            let mut settings = settings(workers, 2);
            settings.ceiling = Some(ceiling.clone());
            let running = Arc::clone(&running);
            let task = move |_: &usize, _: &Cancel| {
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            };
            WorkerPool::new(settings, task).expect("threads")
        });
        for pool in &pools {
            (0..2).for_each(|job| pool.submit(job).expect("open"));
        }
        for pool in pools {
            assert_eq!(pool.shutdown(Drain::Finish, LONG).done, 2);
        }
        assert_eq!(ceiling.under_way(), 0);
    });
}

#[test]
fn a_shutdown_wakes_a_worker_that_waits_for_a_permit() {
    check(|| {
        let ceiling = Ceiling::new(CeilingLimits {
            concurrency: NonZeroUsize::new(1),
            rate: None,
        });
        let permit = ceiling.try_acquire(Instant::now()).expect("free");
        let mut settings = settings(1, 2);
        settings.ceiling = Some(ceiling.clone());
        let pool = WorkerPool::new(settings, |_: &usize, _: &Cancel| Ok(())).expect("threads");
        pool.submit(1).expect("open");
        let report = pool.shutdown(Drain::Persist, LONG);
        assert_eq!((report.done, report.kept.len()), (0, 1));
        drop(permit);
    });
}

#[test]
fn a_wish_to_end_wakes_who_waits_for_a_permit() {
    check(|| {
        let ceiling = Ceiling::new(CeilingLimits {
            concurrency: NonZeroUsize::new(1),
            rate: None,
        });
        let cancel = Cancel::new();
        let first = ceiling.try_acquire(Instant::now()).expect("free");
        let cancelled = {
            let (ceiling, cancel) = (ceiling.clone(), cancel.clone());
            thread::spawn(move || ceiling.acquire(&cancel).is_ok())
        };
        let patient = {
            let ceiling = ceiling.clone();
            thread::spawn(move || ceiling.acquire(&Cancel::new()).is_ok())
        };
        cancel.set(CancelReason::Shutdown);
        drop(first);
        // Whoever was first, the other one is not forgotten.
        cancelled.join().expect("no panic");
        assert!(patient.join().expect("no panic"));
        assert_eq!(ceiling.under_way(), 0);
    });
}
