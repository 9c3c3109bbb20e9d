//! The own network fails, or may have failed.

use std::cell::Cell;
use std::rc::Rc;

use courser::net::Net as _;
use jiff::SignedDuration;

use super::world::{Ask, Reaction, World};
use super::{HOUR, MINUTE, SECOND};
use crate::core::Reason;
use store::Which;
use verdict::life::State;

/// Enough hosts for the guard to go on without canaries, all alive. They do what the cell says.
fn alive() -> (World, Rc<Cell<Reaction>>) {
    let now = Rc::new(Cell::new(Reaction::Status(200)));
    let reaction = Rc::clone(&now);
    let mut world = World::new(HOSTS, move |_: &Ask| reaction.get());
    for host in 0..HOSTS {
        world.submit(host, URLS);
    }
    world.run(MINUTE);
    assert_eq!(world.count(State::Alive), ALL);
    (world, now)
}

/// No evidence is kept against any URL.
fn assert_innocent(world: &World) {
    assert_eq!(world.count(State::Alive), ALL);
    for (host, path) in (0..HOSTS).flat_map(|host| (0..URLS).map(move |path| (host, path))) {
        let life = world.detail(host, path).url.life;
        assert_eq!(
            (life.first_bad(), life.failures()),
            (None, 0),
            "{host} {path}"
        );
    }
}

#[test]
fn hosts_that_all_fail_mean_the_own_network_without_canaries() {
    let (mut world, now) = alive();
    now.set(Reaction::Reset);
    world.recheck(Which::Everything);
    world.run(2 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 1);
    assert!(world.why(0).contains(&Reason::OwnNetwork));
    let began = world.net.now();
    world.run(18 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 1);
    assert_innocent(&world);
    // Rounds of five URLs, each asked up to three times.
    let asked: usize = (0..HOSTS)
        .map(|host| world.asked_since(host, began).len())
        .sum();
    assert!((5..600).contains(&asked), "{asked}");
    now.set(Reaction::Status(200));
    let again = world.net.now();
    world.run(10 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 0);
    let told = world.notices("guard");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("hosts fail, and answered before"),
        "{told:?}"
    );
    assert_eq!(told[1], "the own network works again");
    assert_innocent(&world);
    for host in 0..HOSTS {
        let mut asked = world.asked_since(host, again);
        asked.sort();
        asked.dedup();
        assert_eq!(asked.len(), URLS, "{host}");
        assert_eq!(world.why(host), []);
    }
}

#[test]
fn a_name_server_that_knows_no_names_does_not_end_the_outage() {
    let (mut world, now) = alive();
    now.set(Reaction::Reset);
    world.recheck(Which::Everything);
    world.run(2 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 1);
    // What a portal that wants a login does.
    world.site.borrow_mut().names = 0;
    for _ in 0..30 {
        world.run(MINUTE);
        assert_eq!(world.figures().guards.own_network.get(), 1);
    }
    assert_innocent(&world);
    world.site.borrow_mut().names = HOSTS;
    now.set(Reaction::Status(200));
    world.run(30 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 0);
    assert_innocent(&world);
}

#[test]
fn hosts_that_died_do_not_keep_the_guard_on_for_ever() {
    let (mut world, now) = alive();
    now.set(Reaction::Reset);
    world.recheck(Which::Everything);
    world.run(2 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 1);
    let mut dead: Vec<usize> = Vec::new();
    for ask in world.journal().into_iter().rev() {
        if !dead.contains(&ask.host) && dead.len() < 10 {
            dead.push(ask.host);
        }
    }
    // Ten of them do not come back, among them those of the last rounds.
    let (back, stay) = (Rc::clone(&now), dead.clone());
    world.site.borrow_mut().script = Box::new(move |ask| match stay.contains(&ask.host) {
        true => Reaction::Reset,
        false => back.get(),
    });
    now.set(Reaction::Status(200));
    world.run(2 * HOUR);
    assert_eq!(world.figures().guards.own_network.get(), 0);
    for host in 0..HOSTS {
        let life = world.detail(host, 0).url.life;
        assert_eq!(life.first_bad().is_some(), dead.contains(&host), "{host}");
    }
}

#[test]
fn one_dead_host_does_not_outvote_the_few_that_have_something_due() {
    let (mut world, now) = alive();
    let back = Rc::clone(&now);
    world.site.borrow_mut().script = Box::new(move |ask| match ask.host {
        0 => Reaction::Reset,
        _ => back.get(),
    });
    world.recheck(Which::Host("http://h0.test/".to_owned()));
    world.clock.step(SignedDuration::from_hours(1));
    world.run(SECOND);
    assert_eq!(world.figures().guards.own_network.get(), 1);
    for host in 1..HOSTS {
        world.recheck(Which::Urls(vec![format!("http://h{host}.test/0")]));
        world.run(2 * MINUTE);
    }
    assert_eq!(world.figures().guards.own_network.get(), 0);
    // When all fail, the one that is known as dead does not speak for the network.
    now.set(Reaction::Reset);
    world.recheck(Which::Everything);
    world.run(HOUR);
    assert_eq!(world.figures().guards.own_network.get(), 1);
}

#[test]
fn hosts_that_die_together_turn_the_guard_on_once() {
    let (mut world, now) = alive();
    let back = Rc::clone(&now);
    world.site.borrow_mut().script = Box::new(move |ask| match ask.host < DEAD {
        true => Reaction::Reset,
        false => back.get(),
    });
    for _ in 0..6 {
        world.recheck(Which::Everything);
        world.run(HOUR);
    }
    assert_eq!(world.figures().guards.own_network.get(), 0);
    let told = world.notices("guard");
    assert_eq!(told.len(), 2, "{told:?}");
    for host in 0..HOSTS {
        let life = world.detail(host, 0).url.life;
        assert_eq!(life.first_bad().is_some(), host < DEAD, "{host}");
    }
    // They come back, and the network fails later: they are as good as others to tell.
    world.site.borrow_mut().script = Box::new(move |_| now.get());
    world.recheck(Which::Everything);
    world.run(HOUR);
    assert_eq!(world.count(State::Alive), ALL);
    world.site.borrow_mut().script = Box::new(|_| Reaction::Reset);
    world.recheck(Which::Everything);
    world.run(2 * MINUTE);
    assert_eq!(world.figures().guards.own_network.get(), 1);
}

/// Enough for the guard to go on.
const DEAD: usize = 22;
const HOSTS: usize = 30;
const URLS: usize = 4;
const ALL: u64 = (HOSTS * URLS) as u64;
