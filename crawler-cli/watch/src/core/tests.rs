//! The core on a simulated network with a virtual clock.

mod bad_days;
mod flips;
mod holds;
mod leases;
mod letters;
mod outages;
mod pace;
mod pauses;
mod reload;
mod waits;
mod world;

use std::time::Duration;

use jiff::SignedDuration;

use self::world::{Reaction, World};
use crate::figures::{Method, Phase, Reason as Why, quantile};
use store::{Lane, Which};
use verdict::life::State;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn good(_: &world::Ask) -> Reaction {
    Reaction::Status(200)
}

#[test]
fn due_urls_are_asked_once_and_stored() {
    let mut world = World::new(3, good);
    for host in 0..3 {
        world.submit(host, 20);
    }
    world.run(MINUTE);
    assert_eq!(world.count(State::Alive), 60);
    for host in 0..3 {
        for path in 0..20 {
            assert_eq!(world.asked(host, &format!("/{path}")).len(), 1);
        }
    }
    let detail = world.detail(0, 0).url;
    let (lane, due) = detail.due.unwrap();
    assert_eq!(lane, Lane::Routine);
    assert!(
        due.duration_since(world.now()) > SignedDuration::from_hours(12),
        "{due}"
    );
    assert_eq!(detail.answer.unwrap().status, Some(200));
    let figures = world.watcher.as_ref().unwrap().figures();
    assert_eq!(
        (figures.results.total(), figures.keeping.stored.get()),
        (60, 60)
    );
}

#[test]
fn what_a_command_changes_is_counted_soon() {
    let mut world = World::new(1, good);
    world.submit(0, 3);
    // Nothing is due for days: URLs are counted once a minute.
    world.run(HOUR);
    for seconds in [1, 20, 59] {
        let broken = seconds % 2 == 1;
        world.site.borrow_mut().script = Box::new(move |_| match broken {
            true => Reaction::Status(404),
            false => Reaction::Status(200),
        });
        world.run(SECOND * seconds);
        world.recheck(Which::Everything);
        // Three URLs at the rate of the host, and the count.
        world.run(SECOND * 20);
        let urls = |state| world.figures().backlog.urls(state).get();
        let alive = if broken { 0 } else { 3 };
        assert_eq!(urls(State::Alive), alive, "{seconds}");
        assert_eq!(urls(State::Suspect), 3 - alive, "{seconds}");
        world.run(HOUR);
    }
}

#[test]
fn requests_are_counted() {
    let mut world = World::new(1, |ask| match &*ask.path {
        "/0" => Reaction::Status(404),
        "/1" => Reaction::Slow(SECOND / 2),
        _ => Reaction::Status(200),
    });
    world.submit(0, 30);
    world.run(MINUTE);
    let requests = &world.figures().requests;
    let count = |method, reason| requests.count(method, reason);
    assert_eq!(count(Method::Head, Why::First), 30);
    assert_eq!(count(Method::Get, Why::Confirm), 1);
    // The home page tells whether a negative answer counts.
    let control = Method::ALL.map(|method| count(method, Why::Control));
    assert_eq!(control.iter().sum::<u64>(), 1);
    assert_eq!(count(Method::Get, Why::Robots), 1);
    let all = Method::ALL.map(|method| Why::ALL.map(|reason| count(method, reason)));
    let all: u64 = all.iter().flatten().sum();
    // robots.txt is not in the journal.
    assert_eq!(all, world.journal().len() as u64 + 1);
    let requests = &world.figures().requests;
    assert_eq!(requests.phase(Phase::Total).count(), all);
    assert_eq!(requests.phase(Phase::FirstByte).count(), all);
    let opened = requests.phase(Phase::Connect).count();
    assert!((1..=2).contains(&opened), "{opened}");
    assert_eq!(requests.reused.get(), all - opened);
    let times: Vec<_> = requests.phase(Phase::FirstByte).buckets().collect();
    assert!(quantile(&times, 1.0) >= SECOND / 2);
    // 30 URLs at 10 a second, and then nothing to do.
    let limited = world.figures().backlog.host_limited.get();
    assert!((1_000_000..10_000_000).contains(&limited), "{limited}");
}

#[test]
fn a_kill_at_any_step_loses_nothing() {
    let mut world = World::new(4, |ask| match ask.path.ends_with('3') {
        true => Reaction::Status(404),
        false => Reaction::Status(200),
    });
    for host in 0..4 {
        world.submit(host, 30);
    }
    for kill in 0..60_u32 {
        for _ in 0..kill % 7 {
            world.step(SECOND / 2);
        }
        world.kill();
    }
    world.run(2 * MINUTE);
    assert_eq!(world.count(State::Alive), 4 * 27);
    assert_eq!(world.count(State::Suspect), 4 * 3);
}
