//! Schedules: the next firings by zone and when the clocks change, and what is decided about them.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn schedule(cron: &str, timezone: &str) -> Schedule {
    let settings = ScheduleSettings {
        cron: cron.to_owned(),
        timezone: timezone.to_owned(),
        ..ScheduleSettings::default()
    };
    Schedule::new("nightly", "store", &settings).expect("a schedule")
}

fn firings(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = schedule(cron, zone);
    let zone = TimeZone::get(zone).expect("a zone");
    let firings = schedule.next_firings(at(after), count).into_iter();
    let local = firings.map(|at| at.to_zoned(zone.clone()));
    local
        .map(|at| at.strftime("%d %H:%M:%S %:z").to_string())
        .collect()
}

#[test]
fn five_fields_or_six() {
    let after = "2026-01-01T00:00:00Z";
    for (cron, expected) in [
        ("15 2 * * *", ["01 02:15:00 +00:00", "02 02:15:00 +00:00"]),
        (
            "0 0 */2 * * *",
            ["01 02:00:00 +00:00", "01 04:00:00 +00:00"],
        ),
        (
            "*/20 * * * * *",
            ["01 00:00:20 +00:00", "01 00:00:40 +00:00"],
        ),
        ("@daily", ["02 00:00:00 +00:00", "03 00:00:00 +00:00"]),
        (
            "0 12 * * MON#2",
            ["12 12:00:00 +00:00", "09 12:00:00 +00:00"],
        ),
        ("0 0 L * *", ["31 00:00:00 +00:00", "28 00:00:00 +00:00"]),
    ] {
        assert_eq!(firings(cron, "UTC", after, 2), expected, "{cron}");
    }
}

#[test]
fn a_fixed_time_fires_once_when_the_clocks_change() {
    for (zone, cron, after, expected) in [
        // From 02:00 to 03:00, and back from 03:00 to 02:00.
        (
            "Europe/Zurich",
            "30 2 * * *",
            "2026-03-28T12:00:00Z",
            ["29 03:00:00 +02:00", "30 02:30:00 +02:00"],
        ),
        (
            "Europe/Zurich",
            "30 2 * * *",
            "2026-10-24T12:00:00Z",
            ["25 02:30:00 +02:00", "26 02:30:00 +01:00"],
        ),
        (
            "America/New_York",
            "30 2 * * *",
            "2026-03-07T12:00:00Z",
            ["08 03:00:00 -04:00", "09 02:30:00 -04:00"],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T12:00:00Z",
            ["01 01:30:00 -04:00", "02 01:30:00 -05:00"],
        ),
        // Half an hour: from 02:00 to 02:30, and back from 02:00 to 01:30.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T12:00:00Z",
            ["04 02:30:00 +11:00", "05 02:15:00 +11:00"],
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2026-04-04T12:00:00Z",
            ["05 01:45:00 +11:00", "06 01:45:00 +10:30"],
        ),
    ] {
        assert_eq!(
            firings(cron, zone, after, 2),
            expected,
            "{cron} {zone} {after}"
        );
    }
}

#[test]
fn what_runs_each_half_hour_follows_elapsed_time() {
    let cron = "*/30 * * * *";
    for (zone, after) in [
        ("Europe/Zurich", "2026-03-29T00:00:00Z"),
        ("Europe/Zurich", "2026-10-25T00:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T12:00:00Z"),
    ] {
        let schedule = schedule(cron, zone);
        let all = schedule.next_firings(at(after), 12);
        let steps = all.windows(2).map(|pair| pair[1].duration_since(pair[0]));
        assert!(
            steps
                .into_iter()
                .all(|step| step == SignedDuration::from_mins(30)),
            "{all:?}"
        );
    }
}

#[test]
fn a_leap_day_on_a_monday_is_found() {
    let all = schedule("0 0 29 2 +MON", "UTC").next_firings(at("2026-01-01T00:00:00Z"), 2);
    assert_eq!(
        all,
        [at("2044-02-29T00:00:00Z"), at("2072-02-29T00:00:00Z")]
    );
}

#[test]
fn the_end_of_the_calendar_is_no_loop() {
    for cron in ["0 0 1 1 *", "* * * * * *"] {
        let late = Timestamp::MAX - SignedDuration::from_secs(5);
        let schedule = schedule(cron, "Europe/Zurich");
        assert!(schedule.next_firings(late, 100).len() < 10);
        let runs = ScheduleRuns::since(late);
        let _ = schedule.poll(&runs, Timestamp::MAX);
    }
}

#[test]
fn expressions_that_mean_nothing_or_never_fire_are_errors() {
    for cron in [
        "",
        "* * * *",
        "* * * * * * *",
        "61 * * * *",
        "0 0 31 2 *",
        "0 , * * *",
    ] {
        let settings = ScheduleSettings {
            cron: cron.to_owned(),
            ..ScheduleSettings::default()
        };
        let bad = Schedule::new("n", "s", &settings);
        assert!(matches!(bad, Err(BadSchedule::Expression(_))), "{cron}");
    }
}

#[test]
fn unknown_time_zones_are_errors() {
    let settings = ScheduleSettings {
        cron: "@daily".to_owned(),
        timezone: "Europe/Zürich".to_owned(),
        ..ScheduleSettings::default()
    };
    let bad = Schedule::new("n", "s", &settings).expect_err("no such zone");
    assert!(bad.to_string().contains("Europe/Zürich"), "{bad}");
}

#[test]
fn missed_firings_are_counted_and_run_once() {
    let schedule = schedule("* * * * *", "Europe/Zurich");
    let start = at("2020-01-01T00:00:00Z");
    let runs = ScheduleRuns::since(start);
    let now = start + SignedDuration::from_hours(24);
    let Decision::Fire(firing) = schedule.poll(&runs, now) else {
        panic!("a run")
    };
    let all = 24 * 60;
    assert_eq!((firing.scheduled_at, firing.missed), (now, all - 1));
    // Not more than so many are counted, but the last one is found.
    let now = start + SignedDuration::from_hours(100 * 24);
    let Decision::Fire(firing) = schedule.poll(&runs, now) else {
        panic!("a run")
    };
    assert_eq!((firing.scheduled_at, firing.missed), (now, 100_000));
}

#[test]
fn missed_firings_are_left_out_if_told() {
    let settings = ScheduleSettings {
        cron: "0 * * * *".to_owned(),
        catch_up: CatchUp::Skip,
        ..ScheduleSettings::default()
    };
    let schedule = Schedule::new("n", "s", &settings).expect("a schedule");
    let start = at("2026-01-01T00:30:00Z");
    let mut runs = ScheduleRuns::since(start);
    let decision = schedule.poll(&runs, at("2026-01-01T05:30:00Z"));
    let Decision::Skip(firing, SkipReason::Late) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(
        (firing.scheduled_at, firing.missed),
        (at("2026-01-01T05:00:00Z"), 4)
    );
    runs.handle(&decision);
    assert_eq!(runs.missed, 5);
    // A firing that is a moment late is not missed.
    let decision = schedule.poll(&runs, at("2026-01-01T06:00:01Z"));
    assert!(
        matches!(decision, Decision::Fire(Firing { missed: 0, .. })),
        "{decision:?}"
    );
}

#[test]
fn a_run_that_goes_on_forbids_queues_or_allows_the_next() {
    let decide = |overlap, runs: &ScheduleRuns, now| {
        let settings = ScheduleSettings {
            cron: "0 * * * *".to_owned(),
            overlap,
            ..ScheduleSettings::default()
        };
        let schedule = Schedule::new("n", "s", &settings).expect("a schedule");
        schedule.poll(runs, at(now))
    };
    let (one, two, three) = (
        "2026-01-01T01:00:00Z",
        "2026-01-01T02:00:00Z",
        "2026-01-01T03:00:00Z",
    );
    for overlap in [Overlap::Forbid, Overlap::QueueOne, Overlap::Allow] {
        let mut runs = ScheduleRuns::since(at("2026-01-01T00:30:00Z"));
        let first = decide(overlap, &runs, one);
        assert!(matches!(first, Decision::Fire(_)));
        runs.handle(&first);
        let second = decide(overlap, &runs, two);
        runs.handle(&second);
        let third = decide(overlap, &runs, three);
        runs.handle(&third);
        match overlap {
            Overlap::Forbid => {
                assert!(matches!(second, Decision::Skip(_, SkipReason::Overlap)));
                assert_eq!((runs.running, runs.missed), (1, 2));
                runs.handle_end();
                assert!(matches!(
                    decide(overlap, &runs, three),
                    Decision::Wait { .. }
                ));
            }
            Overlap::QueueOne => {
                assert!(matches!(second, Decision::Queue(_)));
                assert!(matches!(third, Decision::Skip(_, SkipReason::Overlap)));
                runs.handle_end();
                let queued = decide(overlap, &runs, three);
                let scheduled_at = at(two);
                assert_eq!(
                    queued,
                    Decision::Fire(Firing {
                        scheduled_at,
                        missed: 0
                    })
                );
                runs.handle(&queued);
                assert_eq!((runs.running, runs.queued, runs.missed), (1, None, 1));
                assert_eq!(runs.decided, at(three));
            }
            Overlap::Allow => assert_eq!((runs.running, runs.missed), (3, 0)),
        }
    }
}

#[test]
fn the_jitter_is_the_same_after_a_restart_and_differs_between_stores() {
    let settings = ScheduleSettings {
        cron: "0 2 * * *".to_owned(),
        jitter: Duration::from_secs(300),
        ..ScheduleSettings::default()
    };
    let start = at("2026-01-01T00:00:00Z");
    let due = |name: &str, store: &str| {
        let schedule = Schedule::new(name, store, &settings).expect("a schedule");
        match schedule.poll(&ScheduleRuns::since(start), start) {
            Decision::Wait { until } => until.expect("a time"),
            other => panic!("{other:?}"),
        }
    };
    let delays: Vec<_> = (0..20)
        .map(|store| {
            let store = store.to_string();
            assert_eq!(due("a", &store), due("a", &store));
            due("a", &store).duration_since(at("2026-01-01T02:00:00Z"))
        })
        .collect();
    let limits = SignedDuration::ZERO..SignedDuration::from_secs(300);
    assert!(
        delays.iter().all(|delay| limits.contains(delay)),
        "{delays:?}"
    );
    assert!(delays.iter().any(|delay| *delay != delays[0]));
    assert_ne!(due("a", "x"), due("b", "x"));
}

#[test]
fn a_clock_that_is_set_back_a_day_repeats_nothing() {
    let schedule = schedule("0 * * * *", "UTC");
    let start = at("2026-01-02T00:30:00Z");
    let mut runs = ScheduleRuns::since(start);
    let mut fired = Vec::new();
    let mut poll = |now: Timestamp| {
        let decision = schedule.poll(&runs, now);
        runs.handle(&decision);
        if let Decision::Fire(firing) = decision {
            fired.push(firing.scheduled_at);
            runs.handle_end();
        }
    };
    let hour = SignedDuration::from_hours(1);
    (0..5).for_each(|n| poll(start + hour * n));
    // A day back, and then as long as it takes.
    let back = start - hour * 20;
    (0..48).for_each(|n| poll(back + hour * n));
    // A day forward: what was left out runs once.
    poll(back + hour * 72);
    assert!(fired.windows(2).all(|pair| pair[0] < pair[1]), "{fired:?}");
    assert_eq!(fired.len(), 4 + 24 + 1 - 1);
}

#[test]
fn a_clock_that_was_years_ahead_does_not_stop_the_schedule() {
    let schedule = schedule("0 * * * *", "UTC");
    let runs = ScheduleRuns::since(at("2036-01-01T00:00:00Z"));
    let decision = schedule.poll(&runs, at("2026-01-01T00:30:00Z"));
    let until = Some(at("2026-01-01T01:00:00Z"));
    assert_eq!(decision, Decision::Wait { until });
}
