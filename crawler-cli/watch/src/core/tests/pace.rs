//! How fast hosts are asked beside one another.

use std::time::Duration;

use courser::net::Net as _;

use super::world::{Reaction, World};
use super::{HOUR, MINUTE, SECOND, good};
use crate::core::{HostRule, Limits};
use crate::figures::{Method, Reason as Why};
use store::Which;
use verdict::life::{Profile, State};

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
