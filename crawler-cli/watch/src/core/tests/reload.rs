//! Guards follow their configuration while the core runs.

use super::bad_days::switched;
use super::world::{Reaction, World};
use super::{HOUR, MINUTE, SECOND};
use crate::core::GuardRules;
use crate::figures::{Method, Reason as Why};
use store::Which;
use verdict::life::State;

/// As SIGHUP does.
fn reload(world: &mut World, change: impl FnOnce(&mut GuardRules)) {
    let watcher = world.watcher.as_mut().unwrap();
    let mut settings = watcher.settings().clone();
    change(&mut settings.guards);
    watcher.set_settings(settings);
}

#[test]
fn the_budget_of_pruning_can_be_set() {
    let mut world = World::new(1, |ask| match &*ask.path {
        "/" => Reaction::Status(200),
        _ => Reaction::Status(410),
    });
    world.settings.guards.budget.all = 0.0;
    world.settings.guards.budget.host = 0.0;
    world.submit(0, 30);
    world.run(MINUTE);
    reload(&mut world, |guards| *guards = GuardRules::default());
    for _ in 0..24 * 8 {
        world.run(HOUR);
        if world.count(State::Pruned) > 0 {
            break;
        }
    }
    world.run(12 * HOUR);
    assert_eq!(world.count(State::Pruned), 10);
    // Back to no limit, which holds as soon as they are asked again.
    reload(&mut world, |guards| {
        guards.budget.all = 0.0;
        guards.budget.host = 0.0;
    });
    world.recheck(Which::Everything);
    world.run(HOUR);
    let pruned = world.count(State::Pruned);
    assert!(pruned > 10, "{pruned}");
}

#[test]
fn the_flip_of_a_host_that_is_being_asked_can_be_set() {
    let (mut world, now) = switched(1);
    world.settings.guards.flip.share = 1.0;
    world.submit(0, 40);
    world.run(MINUTE);
    world.recheck(Which::Everything);
    world.run(SECOND);
    reload(&mut world, |guards| *guards = GuardRules::default());
    now.set(Reaction::Status(410));
    world.run(MINUTE);
    assert_eq!(world.holds().len(), 1);
    assert!(world.count(State::Quarantined) > 20);
    // The longest hold is that of the new rules.
    reload(&mut world, |guards| guards.flip.max_hold = HOUR);
    world.run(2 * HOUR);
    assert_eq!(world.holds(), []);
}

#[test]
fn canaries_can_be_named() {
    let (mut world, now) = switched(6);
    for host in 0..4 {
        world.submit(host, 4);
    }
    world.run(MINUTE);
    reload(&mut world, |guards| {
        let canary = |host| format!("http://h{host}.test/canary").parse().unwrap();
        guards.canaries = vec![canary(4), canary(5)];
    });
    now.set(Reaction::Reset);
    world.recheck(Which::Everything);
    world.run(5 * MINUTE);
    let requests = &world.figures().requests;
    assert!(requests.count(Method::Head, Why::Canary) > 0);
    assert_eq!(world.figures().guards.own_network.get(), 1);
    assert_eq!(world.count(State::Alive), 16);
}
