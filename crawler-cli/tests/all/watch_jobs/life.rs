//! What becomes of jobs that fail, hang, panic or are interrupted, and when schedules fire.

use super::*;

#[test]
fn a_drain_keeps_jobs_that_run_and_does_not_count_their_attempt() {
    let service = Service::new();
    let is_first = AtomicBool::new(true);
    let server = Script::start(move |_| match is_first.swap(false, Ordering::SeqCst) {
        true => Answer::Stall,
        false => a_map().into(),
    });
    let mut job = schedule("long", reading(&server));
    job.max_attempts = NonZeroU32::MIN;
    let planner = service.planner(vec![job.clone()]);
    service.run(&planner, "long", 1);
    until("the job runs", || !server.requests().is_empty());
    let drained = planner.drain(Duration::from_secs(600));
    assert_eq!((drained.kept, drained.left), (1, 0));
    assert_eq!(service.state("long").last_success, None);
    assert_eq!(service.busy(&queue_of("long")), 1);
    let planner = service.planner(vec![job]);
    until("a success", || service.state("long").last_success.is_some());
    assert_eq!(service.letters().len(), 0);
    drop(planner);
}

#[test]
fn firings_that_were_missed_are_made_up_for_once() {
    let service = Service::new();
    let store = service.store.clone();
    let last: Timestamp = "2020-01-01T00:00:00Z".parse().expect("a time");
    let next: Timestamp = "2021-01-01T00:00:00Z".parse().expect("a time");
    let fired = store.call(move |store| {
        for name in ["once", "skip"] {
            store.fire(name, last, last)?;
            let change = ScheduleChange {
                next: Some(Some(next)),
                ..ScheduleChange::default()
            };
            store.update_schedule(name, &change)?;
        }
        Ok(())
    });
    fired.expect("writable");
    let years = u64::try_from(Timestamp::now().to_zoned(TimeZone::UTC).year() - 2020);
    let years = years.expect("after 2020");
    let (server, skipped) = (map_server(), map_server());
    let mut skip = schedule("skip", reading(&skipped));
    skip.catch_up = CatchUp::Skip;
    let planner = service.planner(vec![schedule("once", reading(&server)), skip]);
    until("one has run", || {
        service.state("once").last_success.is_some()
    });
    until("the other was counted", || {
        service.state("skip").missed == years
    });
    assert_eq!(service.state("once").missed, years - 1);
    drop(planner);
    // A restart makes up for nothing again.
    let planner = service.planner(vec![schedule("once", reading(&server))]);
    service.run(&planner, "once", 2);
    until("two runs", || server.requests().len() == 2);
    until("the run has ended", || service.busy(&queue_of("once")) == 0);
    drop(planner);
    assert_eq!((server.requests().len(), skipped.requests().len()), (2, 0));
}

#[test]
fn a_paused_schedule_does_not_fire() {
    let (service, server) = (Service::new(), map_server());
    let next: Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
    let set = |paused: bool| {
        let change = ScheduleChange {
            next: Some(Some(next)),
            paused: Some(paused),
            ..ScheduleChange::default()
        };
        let done = service
            .store
            .call(move |store| store.update_schedule("nightly", &change));
        done.expect("writable");
    };
    set(true);
    let job = schedule("nightly", reading(&server));
    let planner = service.planner(vec![job]);
    planner.look();
    service.run(&planner, "nightly", 2);
    until("a success", || {
        service.state("nightly").last_success.is_some()
    });
    assert_eq!(service.state("nightly").last_fired, None);
    set(false);
    planner.look();
    until("it fires", || service.state("nightly").last_fired.is_some());
}
