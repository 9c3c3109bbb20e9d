//! Holds of hosts, and confirmations that are cut short.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use courser::net::Net as _;
use jiff::SignedDuration;

use super::world::{Ask, Reaction, World, url};
use super::{HOUR, MINUTE, SECOND};
use crate::core::keeping::HoldChange;
use store::Which;
use verdict::life::{Ladder, Negatives, State};

/// A host of 40 good URLs, and one that is gone. Its good URLs turn to 410, and it is held.
fn held_with_one_gone() -> (World, Rc<Cell<u16>>) {
    let status = Rc::new(Cell::new(200));
    let of_all = Rc::clone(&status);
    let mut world = World::new(1, move |ask: &Ask| match &*ask.path {
        "/" => Reaction::Status(200),
        "/40" if of_all.get() == 200 => Reaction::Status(410),
        _ => Reaction::Status(of_all.get()),
    });
    let rules = &mut world.settings.rules;
    rules.prune_on = Negatives::NONE;
    rules.recheck_410 = Ladder::new(15 * MINUTE, [HOUR]);
    rules.gone_410.span = 2 * HOUR;
    world.submit(0, 41);
    world.run(6 * HOUR);
    assert_eq!(
        (world.count(State::Alive), world.count(State::Gone)),
        (40, 1)
    );
    status.set(410);
    world.recheck(Which::Everything);
    world.run(MINUTE);
    assert_eq!(world.holds().len(), 1);
    (world, status)
}

#[test]
fn what_is_gone_is_asked_in_its_own_time_while_its_host_is_held() {
    let (mut world, status) = held_with_one_gone();
    assert_eq!(world.count(State::Gone), 1);
    let began = world.net.now();
    world.run(8 * HOUR);
    assert_eq!(world.holds().len(), 1);
    let asked = world.asked_since(0, began);
    let asked = asked.iter().filter(|path| *path == "/40").count();
    // Each hour, by HEAD and GET.
    assert!((12..=18).contains(&asked), "{asked}");
    // The host comes back, and so does the URL.
    status.set(204);
    world.run(8 * HOUR);
    assert_eq!(world.holds(), []);
    assert_eq!(world.count(State::Alive), 41);
}

#[test]
fn a_hold_that_ends_lets_the_service_sleep() {
    let (mut world, _) = held_with_one_gone();
    // The end of the hold is being written, by a store that takes its time.
    let held = world.holds()[0].host;
    let watcher = world.watcher.as_mut().unwrap();
    let page = watcher.book.get_mut(held).unwrap();
    page.ending = Some(HoldChange::Release);
    page.is_changing = true;
    // Samples would be due meanwhile.
    let end = world.net.now() + 2 * HOUR;
    let mut steps = 0;
    while world.net.now() < end {
        world.step(SECOND);
        steps += 1;
        assert!(steps < 10_000, "the service spins");
    }
}

/// What may cut a confirmation short.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cut {
    Kill,
    Guard,
}

/// A good URL answers 410 to HEAD, and nothing yet to the request that is slow: its GET, or that for the root.
fn cut_short(cut: Cut, slow: &'static str) {
    let phase = Rc::new(Cell::new(0));
    let now = Rc::clone(&phase);
    let mut world = World::new(1, move |ask: &Ask| {
        let is_slow = ask.head.starts_with(slow);
        match (now.get(), &*ask.path) {
            (0, _) | (2, "/") => Reaction::Status(200),
            (1, _) if is_slow => Reaction::Reset,
            (1, "/") => Reaction::Status(200),
            _ => Reaction::Status(410),
        }
    });
    world.submit(0, 1);
    world.run(MINUTE);
    assert_eq!(world.count(State::Alive), 1);
    phase.set(1);
    world.recheck(Which::Everything);
    let is_asked = |world: &World| {
        let journal = world.journal();
        journal.iter().any(|ask| ask.head.starts_with(slow))
    };
    let end = world.net.now() + MINUTE;
    while !is_asked(&world) {
        assert!(world.net.now() < end, "{:?}", world.journal());
        world.step(Duration::from_millis(10));
    }
    world.step(Duration::from_millis(1));
    phase.set(2);
    match cut {
        Cut::Kill => world.kill(),
        Cut::Guard => {
            world.clock.step(SignedDuration::from_mins(2));
            world.step(Duration::from_millis(1));
            assert_eq!(world.figures().guards.own_network.get(), 1);
        }
    }
    let before = world.detail(0, 0).url;
    let evidence = (
        before.life.state(),
        before.life.first_bad(),
        before.life.negatives(),
    );
    assert_eq!(evidence, (State::Alive, None, 0), "{cut:?} {slow}");
    assert!(before.due.unwrap().1 <= world.now());
    let cut_at = world.now();
    world.run(3 * MINUTE);
    let detail = world.detail(0, 0);
    let life = &detail.url.life;
    assert_eq!(
        (life.state(), life.negatives()),
        (State::Suspect, 1),
        "{cut:?} {slow}"
    );
    assert!(life.first_bad().unwrap() >= cut_at, "{cut:?} {slow}");
    assert_eq!(life.failing_for(), Duration::ZERO);
    assert_eq!(detail.events.len(), 2, "{cut:?} {slow}");
    assert_eq!(world.detail(0, 0).url.url, url(0, 0));
}

#[test]
fn a_confirmation_that_is_cut_short_counts_nothing() {
    for cut in [Cut::Kill, Cut::Guard] {
        cut_short(cut, "GET /0 ");
        cut_short(cut, "HEAD / ");
    }
}
