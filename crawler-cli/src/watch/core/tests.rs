//! The core on a simulated network with a virtual clock.

mod world;

use std::time::Duration;

use jiff::SignedDuration;

use self::world::{Reaction, World};
use crate::check::life::State;
use crate::crawl::identity::Identity;
use crate::store::Lane;
use crate::watch::core::{HostRule, Limits, Reason};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

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
fn requests_keep_to_the_rate_of_their_host() {
    let mut world = World::new(2, good);
    let mut rule = HostRule::new("h1.test".parse().unwrap());
    rule.rate = Some(Limits::rate(0.5));
    let mut identity = Identity::default();
    identity.header("X-Mine", b"yes").unwrap();
    rule.identity = identity;
    world.settings.hosts = vec![rule];
    world.submit(0, 50);
    world.submit(1, 50);
    world.run(21 * SECOND);
    let of = |host| {
        world
            .journal()
            .into_iter()
            .filter(move |ask| ask.host == host)
    };
    assert_eq!(of(0).count(), 50);
    assert!((8..=12).contains(&of(1).count()), "{}", of(1).count());
    assert!(of(1).all(|ask| ask.head.contains("X-Mine: yes")));
    assert!(!of(0).any(|ask| ask.head.contains("X-Mine")));
    let root = "http://h1.test/".parse().unwrap();
    let why = world.watcher.as_mut().unwrap().why(&root);
    assert_eq!(why[0].reason, Reason::Rate);
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
