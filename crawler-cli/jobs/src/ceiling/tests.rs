//! Ceilings beside what a receiver sees.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;

fn ceiling(concurrency: usize, count: u64, per: Duration, burst: u64) -> Ceiling {
    Ceiling::new(CeilingLimits {
        concurrency: NonZeroUsize::new(concurrency),
        rate: Some(Rate {
            count: NonZeroU64::new(count).expect("not zero"),
            per,
            burst: NonZeroU64::new(burst).expect("not zero"),
        }),
    })
}

const MS: Duration = Duration::from_millis(1);

proptest! {
    /// Several callers; each request takes some time to arrive and some time to be answered. In no window does the
    /// receiver see more than allowed, and no more are under way.
    #[test]
    fn no_window_is_over_the_rate_at_the_receiver(
        (count, burst, concurrency) in (1u64..12, 1u64..12, 1usize..8),
        requests in prop::collection::vec((0u64..40, 0u64..80, 0u64..80, any::<bool>()), 1..150),
    ) {
        let per = MS * 100;
        let ceiling = ceiling(concurrency, count, per, burst);
        let start = Instant::now();
        let mut now = start;
        let mut arrivals = Vec::new();
        let mut number = 0u32;
        // By the time: whether the head is here or the exchange is over.
        let mut under_way: BTreeMap<(Instant, u32, bool), Option<Permit>> = BTreeMap::new();
        let mut permits: BTreeMap<u32, Permit> = BTreeMap::new();
        let handle_until = |now: Instant, under_way: &mut BTreeMap<_, Option<Permit>>, permits: &mut BTreeMap<u32, Permit>| {
            while let Some(entry) = under_way.first_entry() {
                let (at, number, is_over) = *entry.key();
                if at > now {
                    break;
                }
                if let Some(permit) = entry.remove() {
                    permits.insert(number, permit);
                }
                match is_over {
                    true => drop(permits.remove(&number).map(|permit| permit.release(at))),
                    false => permits.get_mut(&number).into_iter().for_each(|permit| permit.arrived(at)),
                }
            }
        };
        for (pause, travel, answer, has_body) in requests {
            now += MS * u32::try_from(pause).expect("small");
            let permit = loop {
                handle_until(now, &mut under_way, &mut permits);
                match ceiling.try_acquire(now) {
                    Ok(permit) => break permit,
                    Err(Until::Time(at)) => {
                        prop_assert!(at > now);
                        now = at;
                    }
                    Err(Until::Released) => {
                        let next = under_way.keys().next().expect("somebody holds a permit").0;
                        now = next.max(now);
                    }
                }
            };
            prop_assert!(ceiling.under_way() <= concurrency);
            number += 1;
            let arrived = now + MS * u32::try_from(travel).expect("small");
            let head = arrived + MS * u32::try_from(answer).expect("small");
            arrivals.push(arrived);
            let end = head + if has_body { per * 5 } else { Duration::ZERO };
            under_way.insert((head, number, false), Some(permit));
            under_way.insert((end, number, true), None);
        }
        arrivals.sort_unstable();
        for (at, first) in arrivals.iter().enumerate() {
            let in_window = arrivals[at..].iter().take_while(|time| **time < *first + per).count();
            prop_assert!(in_window as u64 <= count, "{} of {} in a window", in_window, count);
        }
    }
}

#[test]
fn unused_permits_cost_nothing() {
    let ceiling = ceiling(1, 10, MS * 1000, 1);
    let now = Instant::now();
    for _ in 0..100 {
        let permit = ceiling.try_acquire(now).expect("free");
        permit.give_back_unused();
    }
    assert_eq!(ceiling.under_way(), 0);
    ceiling.try_acquire(now).expect("free").release(now);
    assert_eq!(
        ceiling.try_acquire(now).expect_err("one in 100 ms"),
        Until::Time(now + MS * 100)
    );
}

#[test]
fn limits_can_change_while_requests_are_under_way() {
    let ceiling = ceiling(2, 10, MS * 1000, 10);
    let now = Instant::now();
    let first = ceiling.try_acquire(now).expect("free");
    let second = ceiling.try_acquire(now).expect("free");
    assert_eq!(ceiling.try_acquire(now).expect_err("two"), Until::Released);
    ceiling.set_limits(CeilingLimits {
        concurrency: NonZeroUsize::new(3),
        rate: None,
    });
    let third = ceiling.try_acquire(now).expect("three");
    first.release(now);
    second.release(now);
    third.release(now);
    assert_eq!(ceiling.under_way(), 0);
    ceiling.set_limits(CeilingLimits::default());
    let all: Vec<_> = (0..1000).map(|_| ceiling.try_acquire(now)).collect();
    assert!(all.iter().all(Result::is_ok));
}

#[test]
fn rates_beyond_all_reason_need_little_memory() {
    let ceiling = ceiling(1, u64::MAX, Duration::from_secs(1), u64::MAX);
    let start = Instant::now();
    for number in 0..20_000 {
        let now = start + Duration::from_nanos(number);
        if let Ok(permit) = ceiling.try_acquire(now) {
            permit.release(now);
        }
    }
    let state = lock(&ceiling.0);
    let window = state.window.as_ref().expect("a rate");
    assert!(window.arrived.len() as u64 <= LONGEST_WINDOW);
}

/// A caller that was told to come in an hour keeps no thread waiting for an hour when the limits are wider.
#[test]
fn a_turn_ends_with_the_limits_that_it_was_of() {
    let hour = MS * 3_600_000;
    let ceiling = ceiling(1, 1, hour, 1);
    let start = Instant::now();
    assert_eq!(lock(&ceiling.0).take_waiting(start), Ok(()));
    drop(ceiling.permit(start));
    assert!(matches!(ceiling.try_acquire(start), Err(Until::Time(_))));
    ceiling.set_limits(CeilingLimits::default());
    let mut state = lock(&ceiling.0);
    assert_eq!(state.take_waiting(start + MS), Ok(()));
}

/// Each of the two finds room whenever it asks. A thread that is quicker has every second permit, and no more.
#[test]
fn threads_that_wait_and_callers_that_do_not_take_turns() {
    let ceiling = ceiling(1, 1_000, MS * 1_000, 1_000);
    let start = Instant::now();
    let mut state = lock(&ceiling.0);
    let place = state.enter(&ceiling);
    assert_eq!(state.take_waiting(start), Ok(()));
    assert_eq!(state.take_trying(start), Err(Until::Released));
    let give_back = |state: &mut State, now| {
        state.under_way -= 1;
        state.open -= 1;
        if let Some(window) = &mut state.window {
            window.handle_arrived(now);
        }
    };
    for step in 1..50 {
        let now = start + MS * step * 10;
        give_back(&mut state, now);
        assert!(matches!(state.take_waiting(now), Err(Until::Time(_))));
        assert_eq!(state.take_trying(now), Ok(()));
        give_back(&mut state, now);
        assert_eq!(state.take_trying(now), Err(Until::Released));
        assert_eq!(state.take_waiting(now), Ok(()));
        assert_eq!(state.take_trying(now), Err(Until::Released));
    }
    // One that does not come back loses its turn.
    let now = start + MS * 490;
    give_back(&mut state, now);
    assert_eq!(
        state.take_waiting(now),
        Err(Until::Time(now + ASK_AGAIN + TURN))
    );
    assert_eq!(state.take_waiting(now + ASK_AGAIN + TURN), Ok(()));
    drop(state);
    drop(place);
}
