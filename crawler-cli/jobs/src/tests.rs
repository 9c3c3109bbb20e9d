//! Pools, with real threads.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::settings::settings;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_job_beyond_its_time_limit_is_cancelled_and_replaced() {
    let (freed, may_return) = mpsc::channel::<()>();
    let may_return = Mutex::new(may_return);
    let (seen, reasons) = mpsc::channel();
    let (began, has_begun) = mpsc::channel();
    let mut settings = settings(1, 10);
    settings.time_limit = Some(Duration::from_millis(20));
    settings.max_attempts = NonZeroU32::MIN;
    settings.replacements = 1;
    let task = move |job: &&'static str, cancel: &Cancel| {
        if *job == "hangs" {
            assert!(cancel.wait(LONG));
            seen.send(cancel.reason()).expect("a receiver");
            // Ignores the wish to end.
            let _ = may_return.lock().expect("no panic").recv();
        } else {
            began.send(*job).expect("a receiver");
        }
        Ok(())
    };
    let pool = WorkerPool::new(settings, task).expect("threads");
    pool.submit("hangs").expect("open");
    assert_eq!(reasons.recv(), Ok(Some(CancelReason::TimeLimit)));
    // The replacement works on. On a busy machine its job may be beyond the time limit as well.
    pool.submit("quick").expect("open");
    assert_eq!(has_begun.recv(), Ok("quick"));
    let report = pool.shutdown(Drain::Finish, LONG);
    assert_eq!(report.done + report.dead, 2);
    assert!(report.stuck >= 1 && !pool.stuck().is_empty());
    let letters = pool.dead_letters().take();
    assert_eq!(
        (*letters[0].job, letters[0].reason),
        ("hangs", DeadReason::TimeLimit)
    );
    // Its result comes too late.
    freed.send(()).expect("a receiver");
    while pool.counts().stuck > 0 {
        std::thread::yield_now();
    }
    assert!(pool.counts().late >= 1);
    assert_eq!(pool.counts().done, report.done);
}

#[test]
fn a_stuck_thread_works_on_when_it_had_no_replacement() {
    let (freed, may_return) = mpsc::channel::<()>();
    let may_return = Mutex::new(may_return);
    let (began, has_begun) = mpsc::channel();
    let mut settings = settings(1, 10);
    settings.time_limit = Some(Duration::from_millis(20));
    settings.max_attempts = NonZeroU32::MIN;
    settings.replacements = 0;
    let task = move |job: &&'static str, _: &Cancel| {
        match *job {
            "hangs" => drop(may_return.lock().expect("no panic").recv()),
            job => began.send(job).expect("a receiver"),
        }
        Ok(())
    };
    let pool = WorkerPool::new(settings, task).expect("threads");
    pool.submit("hangs").expect("open");
    pool.submit("waits").expect("open");
    while pool.counts().stuck == 0 {
        std::thread::yield_now();
    }
    assert_eq!((pool.counts().workers, pool.counts().queued), (0, 1));
    freed.send(()).expect("a receiver");
    assert_eq!(has_begun.recv(), Ok("waits"));
    // On a busy machine this job may be beyond the time limit as well.
    let report = pool.shutdown(Drain::Finish, LONG);
    assert_eq!(report.done + report.dead, 2);
}

/// A task that tells when a job has begun, and waits at the gate.
fn waiting_at(
    gate: &Arc<Mutex<()>>,
) -> (
    impl Fn(&u32, &Cancel) -> Result<(), JobError> + Send + Sync + use<>,
    mpsc::Receiver<()>,
) {
    let gate = Arc::clone(gate);
    let (begun, has_begun) = mpsc::channel();
    let task = move |_: &u32, _: &Cancel| {
        let _ = begun.send(());
        drop(gate.lock());
        Ok(())
    };
    (task, has_begun)
}

#[test]
fn a_full_queue_refuses_or_waits() {
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().expect("no panic");
    let (task, has_begun) = waiting_at(&gate);
    let pool = WorkerPool::new(settings(1, 2), task).expect("threads");
    pool.submit(0).expect("open");
    has_begun.recv().expect("a job");
    pool.submit(1).expect("open");
    pool.submit(2).expect("open");
    let full = |job| Refused {
        job,
        why: Refusal::Full,
    };
    assert_eq!(pool.try_submit(3), Err(full(3)));
    assert_eq!(
        pool.submit_timeout(4, Duration::from_millis(1)),
        Err(full(4))
    );
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| pool.submit(5));
        drop(held);
        assert_eq!(waits.join().expect("no panic"), Ok(()));
    });
    assert_eq!(pool.shutdown(Drain::Finish, LONG).done, 4);
}

#[test]
fn nobody_waits_for_room_in_a_pool_that_has_ended() {
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().expect("no panic");
    let (task, has_begun) = waiting_at(&gate);
    let pool = WorkerPool::new(settings(1, 1), task).expect("threads");
    pool.submit(0).expect("open");
    has_begun.recv().expect("a job");
    pool.submit(1).expect("open");
    let closed = |job| Refused {
        job,
        why: Refusal::Closed,
    };
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| pool.submit(2));
        pool.shutdown(Drain::Persist, Duration::ZERO);
        assert_eq!(waits.join().expect("no panic"), Err(closed(2)));
    });
    assert_eq!(pool.submit(3), Err(closed(3)));
    drop(held);
}

#[test]
fn a_shutdown_says_what_was_left() {
    let (begun, has_begun) = mpsc::channel();
    let task = move |job: &u32, cancel: &Cancel| {
        let _ = begun.send(());
        cancel.wait(LONG);
        match job {
            0 => Ok(()),
            _ => Err(JobError::retry("busy")),
        }
    };
    let pool = WorkerPool::new(settings(1, 10), task).expect("threads");
    (0..3).for_each(|job| pool.submit(job).expect("open"));
    has_begun.recv().expect("a job");
    let report = pool.shutdown(Drain::Finish, Duration::ZERO);
    let jobs = |jobs: &[Unfinished<u32>]| jobs.iter().map(|job| *job.job).collect::<Vec<_>>();
    assert_eq!(
        (jobs(&report.left), jobs(&report.kept)),
        (vec![0], vec![1, 2])
    );
    assert_eq!((report.left[0].attempts, report.kept[0].attempts), (1, 0));
    assert!(!report.is_complete());
    // Nothing is left for a second shutdown.
    assert!(pool.shutdown(Drain::Persist, LONG).is_complete());
}

#[test]
fn a_pool_that_is_dropped_makes_dead_letters_of_its_jobs() {
    let letters = DeadLetterQueue::default();
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().expect("no panic");
    let (task, has_begun) = waiting_at(&gate);
    let pool = WorkerPool::with_dead_letters(settings(1, 10), task, letters.clone());
    let pool = pool.expect("threads");
    (0..3).for_each(|job| pool.submit(job).expect("open"));
    has_begun.recv().expect("a job");
    drop(pool);
    drop(held);
    let letters = letters.take();
    let jobs: Vec<_> = letters.iter().map(|letter| *letter.job).collect();
    assert_eq!(jobs, [0, 1, 2]);
    assert!(
        letters
            .iter()
            .all(|letter| letter.reason == DeadReason::Abandoned)
    );
}

/// A worker has taken the job and waits for a permit that does not come.
#[test]
fn a_job_that_waits_for_a_permit_at_the_end_is_not_lost() {
    let ceiling = Ceiling::new(CeilingLimits {
        concurrency: NonZeroUsize::new(1),
        rate: None,
    });
    let _permit = ceiling.try_acquire(Instant::now()).expect("free");
    let waiting = |letters: &DeadLetterQueue<u32>| {
        let mut settings = settings(1, 1);
        settings.ceiling = Some(ceiling.clone());
        let task = |_: &u32, _: &Cancel| Ok(());
        let pool = WorkerPool::with_dead_letters(settings, task, letters.clone());
        let pool = pool.expect("threads");
        pool.submit(7).expect("open");
        while pool.counts().queued > 0 {
            std::thread::yield_now();
        }
        pool
    };
    let letters = DeadLetterQueue::default();
    for drain in [Drain::Finish, Drain::Persist] {
        let report = waiting(&letters).shutdown(drain, Duration::from_millis(1));
        let kept: Vec<_> = report.kept.iter().map(|kept| *kept.job).collect();
        assert_eq!((kept, report.left.len()), (vec![7], 0), "{drain:?}");
    }
    assert!(letters.is_empty());
    drop(waiting(&letters));
    let letters = letters.take();
    let abandoned: Vec<_> = letters
        .iter()
        .map(|letter| (*letter.job, letter.reason))
        .collect();
    assert_eq!(abandoned, [(7, DeadReason::Abandoned)]);
}

#[test]
fn panics_of_destructors_and_sinks_cost_no_worker() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("a panic of the test");
        }
    }
    let sink = |letter: DeadLetter<(u32, Option<Bad>)>| {
        std::mem::forget(letter);
        panic!("a panic of the test");
    };
    let task = |job: &(u32, Option<Bad>), _: &Cancel| match job.0 {
        0 => std::panic::panic_any(Bad),
        1 => Err(JobError::fail("no")),
        _ => Ok(()),
    };
    let mut settings = settings(1, 10);
    settings.max_attempts = NonZeroU32::MIN;
    let pool = WorkerPool::with_dead_letters(settings, task, sink).expect("threads");
    for job in [(0, None), (1, None), (2, Some(Bad)), (3, None)] {
        assert!(pool.submit(job).is_ok());
    }
    let report = pool.shutdown(Drain::Finish, LONG);
    assert_eq!((report.done, report.dead), (2, 2));
    assert_eq!(pool.counts().lost_letters, 2);
}

#[test]
fn a_retry_waits_without_a_worker() {
    let (ran, runs) = mpsc::channel();
    let task = move |job: &&'static str, _: &Cancel| {
        ran.send(*job).expect("a receiver");
        match *job {
            "busy" => Err(JobError::retry_after(LONG, "429")),
            _ => Ok(()),
        }
    };
    let pool = WorkerPool::new(settings(1, 10), task).expect("threads");
    pool.submit("busy").expect("open");
    pool.submit("other").expect("open");
    let order = [runs.recv(), runs.recv()];
    assert_eq!(order, [Ok("busy"), Ok("other")]);
    let report = pool.shutdown(Drain::Persist, LONG);
    let kept: Vec<_> = report.kept.iter().map(|kept| *kept.job).collect();
    assert_eq!((report.done, kept), (1, vec!["busy"]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Each job that was taken ends in exactly one place, whatever its task does.
    #[test]
    fn each_job_ends_in_one_place(
        workers in 1usize..4, queue in 1usize..6, drain in prop::sample::select(vec![Drain::Finish, Drain::Persist]),
        jobs in prop::collection::vec(0u8..5, 0..60),
    ) {
        let done: Arc<Mutex<Vec<usize>>> = Arc::default();
        let of_task = Arc::clone(&done);
        let task = move |(number, kind): &(usize, u8), _: &Cancel| match kind {
            0 => Err(JobError::fail("no")),
            1 => Err(JobError::retry("busy")),
            2 => panic!("a panic of the test"),
            _ => {
                of_task.lock().expect("no panic").push(*number);
                Ok(())
            }
        };
        let pool = WorkerPool::new(settings(workers, queue), task).expect("threads");
        for job in jobs.iter().copied().enumerate() {
            pool.submit(job).expect("open");
        }
        let report = pool.shutdown(drain, LONG);
        let letters = pool.dead_letters().take();
        prop_assert_eq!(report.dead as usize, letters.len());
        prop_assert!(report.left.is_empty());
        prop_assert!(drain == Drain::Persist || report.kept.is_empty());
        let mut all = std::mem::take(&mut *done.lock().expect("no panic"));
        prop_assert_eq!(report.done as usize, all.len());
        all.extend(letters.iter().map(|letter| letter.job.0));
        all.extend(report.kept.iter().map(|kept| kept.job.0));
        all.sort_unstable();
        prop_assert_eq!(all, (0..jobs.len()).collect::<Vec<_>>());
    }
}
