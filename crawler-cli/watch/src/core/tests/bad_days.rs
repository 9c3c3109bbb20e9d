//! Guards, and what hosts do on bad days.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use jiff::SignedDuration;

use super::world::{Ask, Reaction, World, url};
use super::{HOUR, MINUTE, SECOND};
use crate::core::Reason;
use store::Which;
use verdict::life::State;

/// Hosts that answer 200 until they are told to do something else. Their home pages are always fine.
pub(super) fn switched(hosts: usize) -> (World, Rc<Cell<Reaction>>) {
    let now = Rc::new(Cell::new(Reaction::Status(200)));
    let reaction = Rc::clone(&now);
    let world = World::new(hosts, move |ask: &Ask| match (&*ask.path, reaction.get()) {
        ("/", Reaction::Status(_)) => Reaction::Status(200),
        (_, reaction) => reaction,
    });
    (world, now)
}

/// A host that was good and turned to 410 as a whole.
pub(super) fn flipped() -> (World, Rc<Cell<Reaction>>) {
    let (mut world, now) = switched(1);
    world.submit(0, 40);
    world.run(MINUTE);
    assert_eq!(world.count(State::Alive), 40);
    now.set(Reaction::Status(410));
    world.recheck(Which::Urls(vec![url(0, 0)]));
    world.run(MINUTE);
    let held = world.count(State::Quarantined);
    // The first one, and 20 siblings.
    assert!((2..=21).contains(&held), "{held}");
    assert_eq!(world.count(State::Suspect), 0);
    assert_eq!(world.holds().len(), 1);
    assert!(world.why(0).contains(&Reason::Held));
    (world, now)
}

#[test]
fn a_410_leads_to_pruned_and_back() {
    let (mut world, now) = switched(1);
    world.submit(0, 1);
    world.run(MINUTE);
    now.set(Reaction::Status(410));
    world.recheck(Which::Everything);
    world.run(8 * 24 * HOUR);
    assert_eq!(world.count(State::Pruned), 1);
    now.set(Reaction::Status(200));
    for _ in 0..3 {
        // What was rejected is asked like everything else.
        world.recheck(Which::Everything);
        world.run(3 * HOUR);
    }
    let states: Vec<State> = world.detail(0, 0).events.iter().map(|it| it.to).collect();
    let expected = [
        State::Alive,
        State::Suspect,
        State::Broken,
        State::Gone,
        State::Pruned,
        State::Alive,
    ];
    assert_eq!(states, expected);
    assert_eq!(world.figures().changes.false_prunes.get(), 1);
}

#[test]
fn the_budget_of_pruning_outlasts_the_process() {
    let mut world = World::new(1, |ask| match &*ask.path {
        "/" => Reaction::Status(200),
        _ => Reaction::Status(410),
    });
    world.submit(0, 15);
    let mut first = None;
    for hour in 0..24 * 8 {
        world.run(HOUR);
        let pruned = world.count(State::Pruned);
        if pruned == 0 {
            continue;
        }
        let first = *first.get_or_insert(hour);
        world.kill();
        if hour < first + 23 {
            assert!(pruned <= 10, "{pruned}");
        }
        if pruned == 15 {
            return;
        }
    }
    panic!("{} were pruned", world.count(State::Pruned));
}

#[test]
fn hosts_that_are_slow_are_alive_and_all_are_asked_at_a_time() {
    let hosts = 300;
    let slow = Duration::from_secs(5);
    let mut world = World::new(hosts, move |_| Reaction::Slow(slow));
    for host in 0..hosts {
        world.submit(host, 2);
    }
    let (mut most, end) = (0, world.now() + SignedDuration::from_mins(2));
    while world.now() < end {
        world.step(SECOND);
        most = most.max(world.figures().requests.in_flight.get());
    }
    // However many CPUs there are.
    assert!(most >= 250, "{most}");
    assert_eq!(world.count(State::Alive), 2 * hosts as u64);
}

#[test]
fn what_is_due_does_not_wait_in_memory_as_a_whole() {
    let mut world = World::new(1, |_| Reaction::Status(200));
    world.submit(0, 10_000);
    for _ in 0..50 {
        world.step(SECOND);
        let watcher = world.watcher.as_mut().unwrap();
        let read = watcher.asking.fleet().buffered() + watcher.asking.under_way();
        assert!(read <= 4_096, "{read}");
    }
}
