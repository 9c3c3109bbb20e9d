//! How fast hosts are asked beside one another.

use std::time::Duration;

use courser::net::Net as _;
use jiff::SignedDuration;

use super::world::{Reaction, World};
use super::{HOUR, MINUTE, SECOND, good};
use crate::check::life::{Profile, State};
use crate::store::Which;
use crate::watch::core::{HostRule, Limits};
use crate::watch::figures::{Method, Reason as Why};

#[test]
fn a_busy_host_keeps_its_rate_and_holds_up_no_other() {
    let mut world = World::new(51, good);
    let mut rule = HostRule::new("h0.test".parse().unwrap());
    rule.rate = Some(Limits::rate(1.0));
    world.settings.hosts = vec![rule];
    world.submit(0, 5_000);
    world.run(30 * SECOND);
    for host in 1..51 {
        world.submit(host, 20);
    }
    let submitted = world.net.now();
    // 20 URLs and robots.txt at 10 a second.
    world.run(5 * SECOND);
    for host in 1..51 {
        assert_eq!(world.asked_since(host, submitted).len(), 20, "{host}");
    }
    // Once more, after an hour in which the busy host went on.
    world.run(HOUR);
    for host in 1..51 {
        world.recheck(Which::Host(format!("http://h{host}.test/")));
    }
    let again = world.net.now();
    world.run(5 * SECOND);
    for host in 1..51 {
        assert_eq!(world.asked_since(host, again).len(), 20, "{host}");
    }
    let journal = world.journal().into_iter();
    let busy: Vec<_> = journal
        .filter(|ask| ask.host == 0)
        .map(|ask| ask.at)
        .collect();
    assert!((3_600..=3_700).contains(&busy.len()), "{}", busy.len());
    for window in busy.windows(11) {
        let took = window[10].saturating_duration_since(window[0]);
        assert!(took >= Duration::from_millis(9_900), "{took:?}");
    }
}

#[test]
fn the_eager_profile_takes_slow_servers_for_alive() {
    let slow = |ask: &super::world::Ask| {
        Reaction::Slow(Duration::from_millis(900) * (ask.host as u32 + 1))
    };
    let mut world = World::new(5, slow);
    world.settings.rules = Profile::Eager.rules();
    world.settings.limits.adaptive_timeout = Profile::Eager.adaptive_timeout();
    for host in 0..5 {
        world.submit(host, 20);
    }
    world.run(5 * MINUTE);
    for round in 1..=3 {
        assert_eq!(world.count(State::Alive), 100, "{round}");
        for (host, path) in (0..5).flat_map(|host| (0..20).map(move |path| (host, path))) {
            let detail = world.detail(host, path);
            let life = detail.url.life;
            assert_eq!(
                (life.first_bad(), life.failures()),
                (None, 0),
                "{host} {path}"
            );
            assert_eq!(detail.events.len(), 1);
        }
        world.recheck(Which::Everything);
        world.run(5 * MINUTE);
    }
    let requests = &world.figures().requests;
    let retried =
        requests.count(Method::Get, Why::Retry) + requests.count(Method::Head, Why::Retry);
    assert!(retried > 0, "the first wait is too short for these servers");
}

#[test]
fn a_clock_that_is_set_back_doubles_intervals_and_changes_no_rate() {
    let mut world = World::new(2, |ask| match (ask.host, &*ask.path) {
        (0, "/0") => Reaction::Status(404),
        (1, "/99") => Reaction::Slow(HOUR),
        _ => Reaction::Status(200),
    });
    world.settings.limits.timeout = 2 * HOUR;
    world.submit(0, 1);
    world.run(MINUTE);
    assert_eq!(world.count(State::Suspect), 1);
    let back = world.net.now();
    world.clock.step(SignedDuration::from_hours(-24));
    world.run(MINUTE);
    assert_eq!(world.asked_since(0, back), Vec::<String>::new());
    world.submit(1, 100);
    let end = world.net.now() + 45 * MINUTE;
    let mut steps = 0;
    while world.net.now() < end {
        world.step(MINUTE);
        steps += 1;
        assert!(steps < 10_000, "the service spins");
    }
    // Due after 12 to 18 minutes of the slow clock, and in one of the next cycles.
    assert_eq!(world.asked_since(0, back), ["/0", "/0"]);
    let journal = world.journal().into_iter();
    let asked: Vec<_> = journal
        .filter(|ask| ask.host == 1)
        .map(|ask| ask.at)
        .collect();
    assert!(asked.len() >= 100, "{}", asked.len());
    for window in asked.windows(11) {
        let took = window[10].saturating_duration_since(window[0]);
        assert!(took >= Duration::from_millis(990), "{took:?}");
    }
    // A request is still in flight. The end is by the time that no one can set.
    let began = world.net.now();
    let watcher = world.watcher.as_mut().unwrap();
    let is_done = watcher.drain(began + 10 * SECOND).unwrap();
    let took = world.net.now().saturating_duration_since(began);
    assert!(
        !is_done && took >= 10 * SECOND && took < 11 * SECOND,
        "{took:?}"
    );
}
