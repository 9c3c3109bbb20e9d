//! Guards, and what hosts do on bad days.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use jiff::SignedDuration;

use super::world::{Ask, Reaction, World, url};
use super::{HOUR, MINUTE, SECOND};
use crate::check::life::State;
use crate::check::verdict::{Cause, Verdict};
use crate::store::{Lane, Which};
use crate::watch::core::Reason;
use crate::watch::figures::{Method, Reason as Why};

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
fn a_host_that_flips_is_held_and_released_by_samples() {
    let (mut world, now) = flipped();
    let held = world.count(State::Quarantined);
    world.recheck(Which::Host("http://h0.test/".to_owned()));
    world.run(HOUR);
    assert!(world.count(State::Quarantined) >= held);
    // The hold outlasts the process.
    world.kill();
    world.run(HOUR);
    assert_eq!(world.holds().len(), 1);
    assert_eq!(world.count(State::Broken) + world.count(State::Gone), 0);
    now.set(Reaction::Status(200));
    world.run(6 * HOUR);
    assert_eq!(world.holds(), []);
    world.run(24 * HOUR);
    assert_eq!(world.count(State::Alive), 40);
}

#[test]
fn a_hold_does_not_last_for_ever() {
    let (mut world, _) = flipped();
    world.kill();
    world.settings.guards.flip.max_hold = 2 * HOUR;
    world.run(3 * HOUR);
    assert_eq!(world.holds(), []);
    assert_eq!(world.count(State::Quarantined), 0);
    assert!(world.count(State::Suspect) > 0);
}

fn cut_off(mut world: World, now: &Cell<Reaction>, hosts: usize) -> World {
    for host in 0..hosts {
        world.submit(host, 4);
    }
    world.run(MINUTE);
    let all = 4 * hosts as u64;
    assert_eq!(world.count(State::Alive), all);
    now.set(Reaction::Reset);
    world.recheck(Which::Everything);
    world.run(5 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 1);
    assert!(world.why(0).contains(&Reason::OwnNetwork));
    assert!(world.figures().guards.void.get() > 0);
    assert_eq!(world.count(State::Alive), all);
    let before = world.journal().len();
    world.run(10 * MINUTE);
    let asked = world.journal().len() - before;
    assert!(asked < 2_000, "{asked}");
    now.set(Reaction::Status(200));
    world.run(HOUR);
    assert_eq!(world.figures().guards.own_network.get(), 0);
    assert_eq!(world.count(State::Alive), all);
    for host in 0..hosts {
        assert_eq!(world.why(host), []);
        let detail = world.detail(host, 3).url;
        assert_eq!(detail.answer.unwrap().status, Some(200));
        assert!(detail.due.unwrap().1 > world.now());
    }
    world
}

#[test]
fn canaries_tell_that_the_own_network_fails() {
    let (mut world, now) = switched(6);
    let canary = |host| format!("http://h{host}.test/canary").parse().unwrap();
    world.settings.guards.canaries = vec![canary(4), canary(5)];
    let world = cut_off(world, &now, 4);
    let requests = &world.figures().requests;
    assert!(requests.count(Method::Head, Why::Canary) > 3);
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
fn what_says_nothing_is_asked_again_and_its_cause_is_kept() {
    let (mut world, now) = switched(1);
    for (reaction, cause) in [
        (Reaction::Status(403), Cause::Blocked),
        (Reaction::Slow(100 * SECOND), Cause::Timeout),
        (Reaction::Reset, Cause::Reset),
    ] {
        now.set(reaction);
        world.submit(0, 1);
        world.recheck(Which::Everything);
        world.run(30 * MINUTE);
        let detail = world.detail(0, 0).url;
        let found = detail.answer.unwrap().verdict;
        let is_it = match cause {
            Cause::Timeout => matches!(
                found,
                Verdict::Failed(Cause::Timeout | Cause::FirstByteTimeout)
            ),
            cause => found == Verdict::Failed(cause),
        };
        assert!(is_it, "{found:?} {reaction:?}");
        let (lane, _) = detail.due.unwrap();
        assert!(matches!(lane, Lane::Routine | Lane::Trouble));
    }
    now.set(Reaction::Status(200));
    world.run(2 * 24 * HOUR);
    assert_eq!(world.detail(0, 0).url.life.state(), State::Alive);
}

#[test]
fn a_404_is_not_alive() {
    let (mut world, now) = switched(1);
    now.set(Reaction::Status(404));
    world.submit(0, 1);
    world.run(MINUTE);
    assert_eq!(world.count(State::Suspect), 1);
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
