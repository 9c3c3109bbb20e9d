//! Jobs, schedules and groups.

use super::*;
use crate::Engine as _;

pub(super) fn job(payload: &str) -> NewJob {
    NewJob::new("mail", payload)
}

pub(super) fn keyed(key: &str, keep: u64) -> NewJob {
    NewJob {
        keep_key: Duration::from_secs(keep),
        ..job(key).with_key(key)
    }
}

pub(super) fn start(store: &mut impl JobStore, seconds: i64, limit: usize) -> Vec<StartedJob> {
    let started = store.start("mail", at(seconds), limit).expect("written");
    assert_eq!(started.poisoned, []);
    started.jobs
}

pub(super) fn settle(
    store: &mut impl JobStore,
    job: &StartedJob,
    settled: Settled,
    seconds: i64,
) -> SettledJobs {
    let settlement = Settlement {
        job: job.id,
        attempt: job.attempt,
        settled,
    };
    store.settle(&[settlement], at(seconds)).expect("written")
}

pub(super) fn retry(seconds: i64) -> Settled {
    Settled::Retry {
        at: at(seconds),
        why: "status 503".to_owned(),
    }
}

fn texts(jobs: &[StartedJob]) -> Vec<&str> {
    jobs.iter()
        .map(|job| std::str::from_utf8(&job.payload).expect("text"))
        .collect()
}

pub(super) fn counts(store: &mut impl JobStore) -> (u64, u64) {
    let counts = store.job_counts("mail").expect("readable");
    (counts.waiting, counts.started)
}

pub(crate) fn jobs_are_handed_out_in_their_order<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let later = NewJob {
        not_before: Some(at(10)),
        ..job("later")
    };
    let other = NewJob::new("other", "of another queue");
    let new = [job("1"), later, job("2"), other, job("3")];
    let enqueued = store.enqueue(&new, at(0)).expect("written");
    assert!(enqueued.windows(2).all(|pair| pair[0].id() < pair[1].id()));
    assert_eq!(counts(&mut store), (4, 0));
    assert_eq!(texts(&start(&mut store, 0, 2)), ["1", "2"]);
    assert_eq!(texts(&start(&mut store, 9, 9)), ["3"]);
    assert_eq!(texts(&start(&mut store, 9, 9)), [""; 0]);
    let started = start(&mut store, 10, 9);
    assert_eq!(texts(&started), ["later"]);
    assert_eq!(started[0].stored_at, at(0));
    assert_eq!((started[0].attempt, started[0].failed), (1, 0));
    assert_eq!(counts(&mut store), (0, 4));
    let names = store.queues().expect("readable");
    assert_eq!(names, ["mail", "other"]);
    assert_eq!(
        texts(&store.start("none", at(0), 9).expect("ok").jobs),
        [""; 0]
    );
}

pub(crate) fn a_job_with_a_known_key_is_stored_once<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let enqueued = store.enqueue(&[keyed("a", 60), keyed("a", 60)], at(0));
    let enqueued = enqueued.expect("written");
    let first = enqueued[0].id();
    assert_eq!(enqueued, [Enqueued::New(first), Enqueued::Known(first)]);
    // Another queue has keys of its own.
    let other = NewJob {
        queue: "other".to_owned(),
        ..keyed("a", 60)
    };
    let other = store.enqueue(&[other], at(0)).expect("written");
    assert!(matches!(other[..], [Enqueued::New(_)]));
}

pub(crate) fn a_schedule_fires_once_for_ever<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let fire = |store: &mut E::Store, scheduled, now| {
        store
            .fire("nightly", at(scheduled), at(now))
            .expect("written")
    };
    assert!(fire(&mut store, 100, 101));
    assert!(!fire(&mut store, 100, 102));
    // The clock went back: what has fired does not fire again.
    assert!(!fire(&mut store, 40, 41));
    assert!(fire(&mut store, 200, 205));
    assert!(store.fire("other", at(40), at(41)).expect("written"));
    let firings = store.firings("nightly", 9).expect("readable");
    let firing = |scheduled, fired| Firing {
        scheduled_at: at(scheduled),
        fired_at: at(fired),
    };
    assert_eq!(firings, [firing(200, 205), firing(100, 101)]);
    for number in 0..200 {
        assert!(fire(&mut store, 300 + number, 600));
    }
    let firings = store.firings("nightly", 1000).expect("readable");
    assert_eq!((firings.len(), firings[0]), (64, firing(499, 600)));
}

pub(crate) fn schedules_keep_what_changed<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let unknown = ScheduleState {
        name: "nightly".to_owned(),
        ..ScheduleState::default()
    };
    assert_eq!(store.schedule("nightly").expect("readable"), unknown);
    let change = ScheduleChange {
        next: Some(Some(at(5))),
        missed: 2,
        ..ScheduleChange::default()
    };
    store.update_schedule("nightly", &change).expect("written");
    store.fire("nightly", at(5), at(6)).expect("written");
    let change = ScheduleChange {
        succeeded: Some(at(7)),
        missed: 1,
        overlapped: 4,
        paused: Some(true),
        ..ScheduleChange::default()
    };
    store.update_schedule("nightly", &change).expect("written");
    let expected = ScheduleState {
        last_fired: Some(at(5)),
        last_success: Some(at(7)),
        next: Some(at(5)),
        missed: 3,
        overlapped: 4,
        is_paused: true,
        ..unknown
    };
    assert_eq!(store.schedules().expect("readable"), [expected]);
    let never = ScheduleChange {
        next: Some(None),
        ..ScheduleChange::default()
    };
    store.update_schedule("nightly", &never).expect("written");
    assert_eq!(store.schedule("nightly").expect("readable").next, None);
    store.forget_schedule("nightly").expect("written");
    assert_eq!(store.schedules().expect("readable"), []);
    assert_eq!(store.firings("nightly", 9).expect("readable"), []);
}

/// Two changes of a group are stored together, or not at all.
pub(crate) fn a_group_is_stored_or_not<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    store.begin_group().expect("begun");
    store.enqueue(&[job("1")], at(0)).expect("written");
    assert!(store.fire("nightly", at(0), at(0)).expect("written"));
    assert_eq!(counts(&mut store), (1, 0), "the group sees its changes");
    store.end_group().expect("stored");
    assert_eq!(counts(&mut store), (1, 0));
    // A group without changes, and none at all.
    store.begin_group().expect("begun");
    store.end_group().expect("stored");
    store.abandon_group();
    assert!(!store.fire("nightly", at(0), at(0)).expect("written"));
}

pub(crate) fn jobs_of_a_process_that_ended_are_started_again<E: Durable>() {
    let engine = E::new();
    let mut store = engine.open();
    let once = NewJob {
        max_attempts: 2,
        ..job("1")
    };
    store
        .enqueue(&[once, job("2"), job("3")], at(0))
        .expect("written");
    let first = start(&mut store, 0, 2);
    settle(&mut store, &first[1], Settled::Done, 1);
    drop(store);
    let mut store = engine.open();
    assert_eq!(store.next_job_at("mail").expect("readable"), Some(at(0)));
    let started = start(&mut store, 5, 9);
    assert_eq!(texts(&started), ["1", "3"]);
    assert_eq!((started[0].attempt, started[0].failed), (2, 1));
    assert_eq!(counts(&mut store), (0, 2));
    // What the process before would have said is late.
    assert_eq!(settle(&mut store, &first[0], Settled::Done, 6).stale, 1);
    // What this process has started is not started again.
    assert_eq!(texts(&start(&mut store, 99, 9)), [""; 0]);
}

pub(crate) fn a_job_that_ends_its_process_is_poison<E: Durable>() {
    let engine = E::new();
    let mut store = engine.open();
    let later = NewJob {
        not_before: Some(at(9)),
        ..job("2")
    };
    let enqueued = store.enqueue(&[job("1"), later], at(0)).expect("written");
    for attempt in 1..=3 {
        let started = start(&mut store, attempt, 1);
        assert_eq!(texts(&started), ["1"]);
        drop(store);
        store = engine.open();
    }
    let started = store.start("mail", at(9), 9).expect("written");
    assert_eq!(texts(&started.jobs), ["2"]);
    let [poisoned] = started.poisoned[..] else {
        panic!("{:?}", started.poisoned);
    };
    assert_eq!(poisoned.job, enqueued[0].id());
    let letter = store
        .dead_letter(poisoned.letter)
        .expect("readable")
        .expect("kept");
    assert_eq!(letter.letter.reason, POISON);
    assert_eq!((letter.letter.attempts, letter.letter.first_at), (3, at(1)));
    assert_eq!(
        letter.letter.last,
        "The process that ran the job ended in attempt 3 of 3."
    );
    assert_eq!(counts(&mut store), (0, 1));
}
