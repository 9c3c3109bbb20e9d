//! Stories of URLs: when they are asked, what is answered, and the state afterwards.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::guard::Guard;
use crate::{Cause, Class, Verdict};
use plain::random::Random;

/// A URL with its rules.
struct Story {
    rules: Rules,
    record: Record,
    random: Random,
    longest_cleared: Duration,
}

impl Story {
    fn new(rules: Rules) -> Self {
        Self {
            rules,
            record: Record::default(),
            random: Random::new(7),
            longest_cleared: Duration::ZERO,
        }
    }

    /// What is answered: `ok 410 404 nx soft refused 503 403 throttled void`. With `?`, the control does not
    /// agree; with `@self` or `@host`, a guard is on.
    fn answer(&mut self, now: Timestamp, answer: &str) -> Decision {
        let (answer, guard) = match answer.split_once('@') {
            Some((answer, "self")) => (answer, Some(Guard::OwnNetwork)),
            Some((answer, _)) => (answer, Some(Guard::HostFlip)),
            None => (answer, None),
        };
        let is_sure = !answer.ends_with('?');
        let context = Context {
            is_control_fine: is_sure,
            guard: guard.map(|by| Held {
                by,
                until: time::after(now, HOUR),
            }),
            longest_cleared: self.longest_cleared,
            stopped: Duration::ZERO,
        };
        let answered = verdict(answer.trim_end_matches('?'));
        self.rules
            .decide(now, &mut self.record, answered, &context, &mut self.random)
    }

    /// Follows a table: when, what is answered, the state afterwards.
    fn follow(mut self, table: &str) -> Self {
        for line in table.lines().filter(|line| !line.trim().is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            let [when, answer, state] = words[..] else {
                panic!("{line}: not three words");
            };
            let now = at(when);
            match answer {
                "hold" => drop(self.rules.hold(now, &mut self.record, Guard::HostFlip)),
                "release" => drop(self.rules.release(now, &mut self.record)),
                "confirm" => drop(self.rules.confirm(now, &mut self.record)),
                answer => drop(self.answer(now, answer)),
            }
            assert_eq!(self.record.state().name(), state, "{line}");
        }
        self
    }
}

/// Follows a table by the usual rules.
fn follow(table: &str) -> Story {
    Story::new(Rules::default()).follow(table)
}

fn verdict(answer: &str) -> (Verdict, Option<u16>) {
    let failed = Verdict::Failed;
    match answer {
        "ok" => (Verdict::Ok, Some(200)),
        "410" => (failed(Cause::Status410), Some(410)),
        "404" => (failed(Cause::Status404), Some(404)),
        "nx" => (failed(Cause::DnsNxdomain), None),
        "soft" => (failed(Cause::FileMissing), Some(200)),
        "refused" => (failed(Cause::Refused), None),
        "503" => (failed(Cause::Status5xx(503)), Some(503)),
        "403" => (failed(Cause::Blocked), Some(403)),
        "throttled" => (failed(Cause::Throttled), Some(429)),
        "void" => (Verdict::Void(Some(Cause::Status410)), Some(410)),
        _ => panic!("{answer}"),
    }
}

/// A time since the beginning: `3d`, `1d6h`, `0`.
fn at(when: &str) -> Timestamp {
    time::after(Timestamp::UNIX_EPOCH, span(when))
}

fn span(text: &str) -> Duration {
    let (mut sum, mut number) = (Duration::ZERO, 0);
    for letter in text.chars() {
        let unit = match letter {
            's' => Duration::from_secs(1),
            'm' => MINUTE,
            'h' => HOUR,
            'd' => DAY,
            digit => {
                number = number * 10 + digit.to_digit(10).unwrap();
                continue;
            }
        };
        sum += unit * std::mem::take(&mut number);
    }
    sum
}

#[test]
fn a_410_needs_four_negatives_over_48_hours() {
    follow("0 410 SUSPECT\n 1d 410 BROKEN\n 2d 410 BROKEN\n 2d1s 410 GONE");
    follow(
        "0 410 SUSPECT
         1h 410 SUSPECT
         2h 410 SUSPECT
         3h 410 SUSPECT
         1d23h 410 BROKEN
         2d 410 GONE",
    );
}

#[test]
fn a_404_needs_four_negatives_over_six_days_and_two_long_gaps() {
    follow(
        "0 404 SUSPECT
         1d 404 BROKEN
         3d 404 BROKEN
         5d23h 404 BROKEN
         6d 404 GONE",
    );
    // Five on the first day and one after six days are two looks at the URL, not three.
    follow(
        "0 404 SUSPECT
         1h 404 SUSPECT
         2h 404 SUSPECT
         3h 404 SUSPECT
         6d 404 BROKEN
         8d 404 BROKEN
         9d 404 GONE",
    );
}

#[test]
fn negatives_count_only_while_the_control_is_fine() {
    let story = follow(
        "0 410 SUSPECT
         1d 410? BROKEN
         2d 410? BROKEN
         3d 410 BROKEN
         4d 410? BROKEN
         5d 410 BROKEN",
    );
    assert_eq!(story.record.negatives(), 3);
    follow("0 410? SUSPECT\n 1d 410? BROKEN\n 9d 410? BROKEN\n 90d 410? BROKEN");
}

#[test]
fn of_mixed_causes_the_slower_rule_applies_from_the_first_negative() {
    follow(
        "0 404 SUSPECT
         1d 410 BROKEN
         3d 410 BROKEN
         5d 410 BROKEN
         6d 410 GONE",
    );
    // What failed otherwise before is no part of the span.
    follow(
        "0 refused UNREACHABLE
         5d 410 SUSPECT
         6d 410 BROKEN
         6d1h 410 BROKEN
         6d23h 410 BROKEN
         7d 410 GONE",
    );
}

#[test]
fn failures_of_the_network_never_lead_to_gone() {
    let story = follow(
        "0 refused UNREACHABLE
         1d 503 UNREACHABLE
         2d23h refused UNREACHABLE",
    );
    assert!(!story.rules.is_reported(&story.record));
    let story = story.follow("3d refused UNREACHABLE");
    assert!(story.rules.is_reported(&story.record));
    story.follow("30d refused UNREACHABLE\n 900d 503 UNREACHABLE");
    // They do not clear what speaks against a URL, and do not add to it.
    let story = follow(
        "0 410 SUSPECT
         1d refused SUSPECT
         2d refused SUSPECT
         2d1h 410 BROKEN
         3d refused BROKEN
         9d refused BROKEN",
    );
    assert_eq!(story.record.negatives(), 2);
    // A host that is unreachable after one 404 is reported, too.
    let story = follow("0 404 SUSPECT\n 1h refused SUSPECT\n 3d refused SUSPECT");
    assert!(story.rules.is_reported(&story.record));
}

const GONE: &str = "0 410 SUSPECT\n 1d 410 BROKEN\n 36h 410 BROKEN\n 2d 410 GONE";

#[test]
fn two_ok_at_least_an_hour_apart_bring_a_gone_url_back() {
    follow(GONE).follow("9d ok GONE\n 9d59m ok GONE\n 9d1h ok ALIVE");
    // A negative verdict between them begins the count again; others do not.
    follow(GONE).follow("9d ok GONE\n 10d 410 GONE\n 11d ok GONE\n 12d ok ALIVE");
    follow(GONE).follow("9d ok GONE\n 10d refused GONE\n 11d ok ALIVE");
    let mut story = follow(GONE);
    story.answer(at("9d"), "ok");
    let decision = story.answer(at("10d"), "ok");
    let transition = decision.transition.unwrap();
    assert_eq!(transition.event(), Some("resurrected"));
    assert_eq!(
        (transition.from, transition.to),
        (State::Gone, State::Alive)
    );
    assert_eq!(decision.cleared, Some(10 * DAY));
}

fn prune(story: &mut Story, now: Timestamp, permitted: Result<(), Duration>) -> Decision {
    let (record, random) = (&mut story.record, &mut story.random);
    story.rules.prune(now, record, permitted, random)
}

#[test]
fn what_is_gone_is_pruned_after_its_grace_if_the_budget_allows() {
    let mut story = follow(GONE);
    let early = story.answer(at("2d23h"), "410");
    assert!(!early.is_to_prune);
    assert_eq!(story.record.prune_waits(), Some(PruneWait::Grace));
    let decision = story.answer(at("3d"), "410");
    assert!(decision.is_to_prune);

    let waits = prune(&mut story, at("3d"), Err(DAY));
    assert_eq!(waits.transition, None);
    assert_eq!(story.record.prune_waits(), Some(PruneWait::Budget));
    assert!((at("4d")..at("5d")).contains(&waits.due));

    assert!(story.answer(at("4d"), "410").is_to_prune);
    let pruned = prune(&mut story, at("4d"), Ok(()));
    assert_eq!(pruned.transition.unwrap().event(), Some("pruned"));
    assert_eq!(story.record.prune_waits(), None);
    story.follow("400d 410 PRUNED\n 500d ok PRUNED\n 501d ok ALIVE");
}

#[test]
fn only_a_negative_answer_that_prunes_prunes_and_no_guard() {
    let answers = "404 soft refused 503 403 throttled ok void 410@host 410@self";
    for answer in answers.split(' ') {
        let mut story = follow(GONE);
        assert!(!story.answer(at("30d"), answer).is_to_prune, "{answer}");
        assert_eq!(story.record.state(), State::Gone, "{answer}");
    }
    let mut story = follow("0 404 SUSPECT\n 3d 404 BROKEN\n 4d 404 BROKEN\n 6d 404 GONE");
    assert_eq!(story.record.prune_waits(), None);
    assert!(!story.answer(at("30d"), "404").is_to_prune);
}

#[test]
fn what_says_nothing_keeps_the_state_and_sets_a_flag() {
    for (before, state) in [
        ("", "NEW"),
        ("0 ok ALIVE", "ALIVE"),
        ("0 404 SUSPECT", "SUSPECT"),
        ("0 refused UNREACHABLE", "UNREACHABLE"),
        (GONE, "GONE"),
    ] {
        let story = follow(before).follow(&format!("3d 403 {state}\n 4d 403 {state}"));
        assert_eq!(story.record.flag(), Some((Flag::Blocked, at("3d"))));
        let story = story.follow(&format!("5d throttled {state}"));
        assert_eq!(story.record.flag(), Some((Flag::Throttled, at("5d"))));
        let held = if state == "SUSPECT" {
            "QUARANTINED"
        } else {
            state
        };
        let mut story = story.follow(&format!("6d void {held}"));
        assert_eq!(story.record.flag(), Some((Flag::Throttled, at("5d"))));
        story.answer(at("7d"), "ok");
        assert_eq!(story.record.flag(), None);
    }
}

#[test]
fn a_flip_of_the_host_quarantines_and_evidence_begins_anew_afterwards() {
    let story = follow(
        "0    410      SUSPECT
         1d   410      BROKEN
         36h  hold     QUARANTINED
         2d   410@host QUARANTINED
         9d   410@host QUARANTINED
         10d  release  SUSPECT",
    );
    assert_eq!(story.record.first_bad(), Some(at("10d")));
    assert_eq!(story.record.negatives(), 0);
    story.follow(
        "10d1m 410 SUSPECT\n 11d1m 410 BROKEN\n 11d2m 410 BROKEN\n 12d 410 BROKEN\n 12d1m 410 GONE",
    );
    // What turns negative while the host is held is held, too; what is good is good.
    follow("0 ok ALIVE\n 1d 404@host QUARANTINED\n 2d ok@host ALIVE");
    follow("0 ok ALIVE\n 1d soft@host QUARANTINED\n 2d 404 SUSPECT");
    follow("0 ok ALIVE\n 1d refused@host ALIVE");
    follow("0 ok ALIVE\n 1d 404@host QUARANTINED\n 2d refused UNREACHABLE");
}

#[test]
fn an_operator_can_say_that_a_hold_was_wrong() {
    let story = follow("0 410 SUSPECT\n 1h hold QUARANTINED\n 2h confirm SUSPECT");
    assert_eq!(story.record.first_bad(), Some(at("0")));
    assert_eq!(story.record.negatives(), 1);
}

#[test]
fn a_host_whose_outages_are_long_gets_twice_the_time() {
    let mut story = Story::new(Rules::default());
    story.longest_cleared = 5 * DAY;
    story.follow("0 410 SUSPECT\n 1d 410 BROKEN\n 2d 410 BROKEN\n 9d 410 BROKEN\n 10d 410 GONE");
    let mut story = Story::new(Rules::default());
    story.longest_cleared = HOUR;
    story.follow(GONE);
}

#[test]
fn what_a_host_taught_is_forgotten_after_90_days() {
    let mut cleared = Cleared::default();
    assert_eq!(cleared.longest(at("0")), Duration::ZERO);
    cleared.note(at("0"), 9 * DAY);
    cleared.note(at("10d"), HOUR);
    cleared.note(at("20d"), 2 * DAY);
    cleared.note(at("21d"), DAY);
    assert_eq!(cleared.longest(at("90d")), 9 * DAY);
    assert_eq!(cleared.longest(at("91d")), 2 * DAY);
    assert_eq!(cleared.longest(at("110d1h")), DAY);
    assert_eq!(cleared.longest(at("112d")), Duration::ZERO);
    assert_eq!(Cleared::from_episodes(cleared.episodes()), cleared);
    for hour in 0..1_000 {
        cleared.note(at("200d"), (2_000 - hour) * HOUR);
    }
    assert_eq!(cleared.episodes().count(), Cleared::MOST);
}

#[test]
fn more_than_three_returns_in_30_days_are_flapping_and_change_no_threshold() {
    let mut story = Story::new(Rules::default());
    for (day, is_damped) in [(1, false), (2, false), (3, false), (4, true)] {
        story.answer(time::after(at("0"), day * DAY), "410");
        let back = story.answer(time::after(at("12h"), day * DAY), "ok");
        assert_eq!(back.transition.unwrap().is_damped, is_damped, "{day}");
    }
    assert!(story.record.is_flapping(at("31d"), &story.rules));
    assert!(!story.record.is_flapping(at("32d"), &story.rules));
    let story = story.follow("5d 410 SUSPECT\n 6d 410 BROKEN\n 6d12h 410 BROKEN\n 7d 410 GONE");
    // A guard's quarantine is not the URL's flapping.
    let mut other = Story::new(story.rules);
    for day in 1..20 {
        other.answer(time::after(at("0"), day * DAY), "410@host");
        other.answer(time::after(at("12h"), day * DAY), "ok");
    }
    assert!(!other.record.is_flapping(at("20d"), &other.rules));
}

#[test]
fn a_failure_is_reported_at_once_or_after_the_time_that_was_asked_for() {
    for answer in ["410", "404", "soft", "refused"] {
        let mut story = Story::new(Rules::at_once());
        story.answer(at("0"), answer);
        assert!(story.rules.is_reported(&story.record), "{answer}");
        story.answer(at("1h"), "ok");
        assert!(!story.rules.is_reported(&story.record));
    }
    Story::new(Rules::at_once())
        .follow("0 410 BROKEN\n 1d 410 BROKEN\n 36h 410 BROKEN\n 2d 410 GONE");

    let rules = Rules {
        fail_after: Some(3 * DAY),
        ..Rules::at_once()
    };
    for answer in ["404", "soft", "refused"] {
        let mut story = Story::new(rules.clone());
        let reported = |story: &Story| story.rules.is_reported(&story.record);
        for (day, is_reported) in [(0, false), (1, false), (2, false), (3, true), (4, true)] {
            story.answer(time::after(at("0"), day * DAY), answer);
            assert_eq!(reported(&story), is_reported, "{answer} {day}");
            let left = story.rules.reported_in(&story.record);
            let expected = (!is_reported).then(|| (3 - day) * DAY);
            assert_eq!(left.filter(|left| !left.is_zero()), expected, "{answer}");
        }
        // What says nothing about the URL does not add to the time.
        let mut story = Story::new(rules.clone());
        story.answer(at("0"), answer);
        story.answer(at("9d"), "403");
        assert!(!reported(&story));
    }
}

#[test]
fn eager_counts_404_as_alive_and_prunes_once_410_spans_48_hours() {
    Story::new(Profile::Eager.rules()).follow("0 404 ALIVE\n 1d 410 SUSPECT\n 25h 404 ALIVE");
    let mut story = Story::new(Profile::Eager.rules());
    let (mut now, mut asked) = (at("0"), 0);
    story.answer(now, "ok");
    let began = at("1d");
    now = began;
    loop {
        let decision = story.answer(now, "410");
        asked += 1;
        if decision.is_to_prune {
            break;
        }
        let pause = time::between(now, decision.due);
        assert!((12 * MINUTE..=18 * MINUTE).contains(&pause), "{pause:?}");
        now = decision.due;
    }
    assert!((2 * DAY..2 * DAY + 18 * MINUTE).contains(&time::between(began, now)));
    assert!(asked > 100);
    assert!(prune(&mut story, now, Ok(())).transition.is_some());
    assert_eq!(
        Profile::Eager.adaptive_timeout(),
        Some(Duration::from_millis(800))
    );
}

/// Asks whenever the URL is due, and checks the times between: each within `share` of what the table says.
fn check_pauses(story: &mut Story, from: Timestamp, answer: &str, share: f64, pauses: &str) {
    let mut now = from;
    for (number, expected) in pauses.split(' ').enumerate() {
        let due = story.answer(now, answer).due;
        let pause = time::between(now, due).as_secs_f64() / span(expected).as_secs_f64();
        assert!(
            (pause - 1.0).abs() <= share + 1e-6,
            "{answer} {number}: {pause} × {expected}"
        );
        now = due;
    }
}

#[test]
fn checks_follow_the_ladder_of_their_cause() {
    for (answer, share, pauses) in [
        ("404", 0.2, "15m 1h 6h 1d 3d"),
        ("soft", 0.2, "15m 1h 6h 1d 3d 3d 3d"),
        ("410", 0.2, "15m 1h 6h 1d 2d"),
        ("nx", 0.2, "1h 6h 1d 2d 2d"),
        ("refused", 0.2, "5m 15m 1h 6h 1d 1d 1d 1d 1d 1d 1d 7d 7d"),
        ("throttled", 0.2, "5m 15m 1h 6h 1d"),
        ("403", 0.1, "7d 7d 7d"),
    ] {
        for seed in 0..20 {
            let mut story = Story::new(Rules::default());
            story.random = Random::new(seed);
            check_pauses(&mut story, at("0"), answer, share, pauses);
        }
    }
}

#[test]
fn a_check_out_of_turn_does_not_delay_the_independent_ones() {
    for seed in 0..100 {
        let mut story = Story::new(Rules::default())
            .follow("0 404 SUSPECT\n 1h 404 SUSPECT\n 2h 404 SUSPECT\n 3h 404 SUSPECT");
        story.random = Random::new(seed);
        let mut now = story.answer(at("71h"), "404").due;
        assert!((at("72h")..=at("6d")).contains(&now));
        while story.record.state() != State::Gone {
            assert!(
                now <= time::after(at("6d"), span("72h") * 6 / 5),
                "seed {seed}"
            );
            now = story.answer(now, "404").due;
        }
    }
}

#[test]
fn what_is_alive_is_asked_less_and_less_often_and_soon_after_a_recovery() {
    let mut story = Story::new(Rules::default());
    let first = story.answer(at("0"), "ok").due;
    assert!((at("1d")..=at("7d")).contains(&first));
    // 7 days × 1.5, and so on, up to 90 days.
    let pauses = "10d12h 15d18h 23d15h 35d10h30m 53d3h45m 79d17h37m30s 90d 90d";
    check_pauses(&mut story, first, "ok", 0.1, pauses);
    let mut story = follow("0 ok ALIVE\n 7d 404 SUSPECT");
    check_pauses(&mut story, at("8d"), "ok", 0.1, "1d 36h 54h");
}

#[test]
fn what_is_gone_is_asked_for_ever() {
    let mut story = follow("0 404 SUSPECT\n 3d 404 BROKEN\n 4d 404 BROKEN");
    let pauses = "14d 30d 60d 90d 180d 180d 180d";
    check_pauses(&mut story, at("6d"), "404", 0.1, &format!("7d {pauses}"));
    let mut story = follow(GONE);
    let due = prune(&mut story, at("3d"), Ok(())).due;
    check_pauses(&mut story, due, "410", 0.1, pauses);
    // A first good answer is confirmed soon.
    let mut story = follow(GONE);
    let due = story.answer(at("9d"), "ok").due;
    assert!((at("9d1h")..=at("9d72m")).contains(&due));
}

#[test]
fn the_first_checks_of_a_host_are_spread_over_its_interval() {
    let mut story = Story::new(Rules::default());
    let mut days = [0; 7];
    for _ in 0..7_000 {
        story.record = Record::default();
        let due = story.answer(at("0"), "ok").due;
        days[(time::between(at("0"), due).as_secs() / DAY.as_secs()).min(6) as usize] += 1;
    }
    assert_eq!(days[0], 0);
    assert!(
        days[1..].iter().all(|count| (1_000..1_350).contains(count)),
        "{days:?}"
    );
}

#[test]
fn cycles_of_reconciling_follow_each_other() {
    let reconcile = Reconcile::default();
    let mut random = Random::new(7);
    for _ in 0..1_000 {
        let next = reconcile.next(at("0"), at("5s"), &mut random);
        assert!((at("31s")..=at("36s")).contains(&next));
        // A cycle that lasts longer than the interval delays the next one.
        assert_eq!(reconcile.next(at("0"), at("2m"), &mut random), at("2m"));
    }
}

#[test]
fn the_last_eight_answers_are_kept() {
    let mut story = Story::new(Rules::default());
    let answers = "410 ok 404 refused 403 soft throttled 503 void ok";
    for (day, answer) in answers.split(' ').enumerate() {
        story.answer(time::after(at("0"), day as u32 * DAY), answer);
    }
    let kept = story.record.answers();
    let statuses: Vec<_> = kept
        .iter()
        .map(|answer| answer.status.unwrap_or(0))
        .collect();
    assert_eq!(statuses, [200, 404, 0, 403, 200, 429, 503, 200]);
    assert_eq!(kept.last().map(|answer| answer.class), Some(Class::Ok));
}

#[test]
fn records_of_other_versions_and_damaged_ones_are_refused() {
    let bytes = follow(GONE).record.to_bytes();
    for length in 0..bytes.len() {
        assert!(Record::from_bytes(&bytes[..length]).is_err(), "{length}");
    }
    let mut other = bytes.clone();
    other[0] += 1;
    assert!(Record::from_bytes(&other).is_err());
    let mut longer = bytes;
    longer.push(0);
    assert!(Record::from_bytes(&longer).is_err());
}

/// Answers, and the minutes before each.
fn answers() -> impl Strategy<Value = Vec<(&'static str, u32)>> {
    let all = "410 404 nx ok soft refused 503 403 throttled void 410? 404?";
    let any = proptest::sample::select(all.split(' ').collect::<Vec<_>>());
    proptest::collection::vec((any, 0..10_000u32), 1..60)
}

proptest! {
    /// Only negative verdicts lead to GONE, one good verdict clears what is not gone, a decision says what changed, and
    /// the record survives the store.
    #[test]
    fn any_answers_keep_to_the_rules(
        profile in proptest::sample::select(&Profile::ALL[..]),
        answers in answers(),
    ) {
        let mut story = Story::new(profile.rules());
        let mut now = at("0");
        for (answer, minutes) in answers {
            now = time::after(now, minutes * MINUTE);
            let before = story.record.state();
            let decision = story.answer(now, answer);
            assert!(decision.due >= now);
            assert!(time::between(now, decision.due) <= 198 * DAY);
            let state = story.record.state();
            assert_eq!(decision.transition.map_or(before, |transition| transition.to), state);
            assert_eq!(decision.transition.is_some(), before != state);
            let is_gone = |state| matches!(state, State::Gone | State::Pruned);
            if is_gone(state) && !is_gone(before) {
                assert!(["410", "404", "nx"].contains(&answer));
                assert!(story.record.negatives() >= 4);
            }
            if answer == "ok" && !is_gone(before) {
                assert_eq!((state, story.record.first_bad()), (State::Alive, None));
            }
            if decision.is_to_prune {
                assert_eq!(state, State::Gone);
                prune(&mut story, now, Ok(()));
            }
            let bytes = story.record.to_bytes();
            assert!(bytes.len() <= 200, "{}", bytes.len());
            assert_eq!(Record::from_bytes(&bytes).as_ref(), Ok(&story.record));
        }
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        drop(Record::from_bytes(&bytes));
        if let [version, ..] = &mut bytes[..] {
            *version = 1;
        }
        if let Ok(record) = Record::from_bytes(&bytes) {
            prop_assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(record));
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
