//! What operators have paused is not asked.
use std::sync::mpsc::sync_channel;

use courser::Rate;

use super::world::{Reaction, World};
use super::{MINUTE, SECOND, good};
use crate::control::CoreMessage;
use crate::core::{HostRule, Limit, Reason};
use store::{Pause, Scope, StoreHandle as _};
use verdict::life::State;

/// Pauses something in the store, or resumes it.
fn pause(world: &World, what: Scope, is_paused: bool) {
    let pause = Pause {
        what,
        since: world.now(),
        who: "me".to_owned(),
    };
    let change = world.store.call(move |engine| match is_paused {
        true => engine.pause(&pause),
        false => engine.resume(&pause.what),
    });
    assert!(change.unwrap());
}

fn host(root: &str) -> Scope {
    Scope::Host(root.to_owned())
}

#[test]
fn a_paused_host_is_not_asked() {
    let mut world = World::new(2, good);
    world.start();
    pause(&world, host("http://h0.test/"), true);
    world.tell(CoreMessage::LookAgain);
    world.submit(0, 20);
    world.submit(1, 20);
    world.run(2 * MINUTE);
    assert_eq!(world.why(0), [Reason::Paused]);
    assert_eq!(world.why(1), []);
    let asked: Vec<usize> = world.journal().iter().map(|ask| ask.host).collect();
    assert_eq!(asked, [1; 20]);
    pause(&world, host("http://h0.test/"), false);
    world.tell(CoreMessage::LookAgain);
    world.run(MINUTE);
    assert_eq!(world.journal().len(), 40);
}

#[test]
fn a_host_that_asks_to_wait_keeps_its_urls_due_and_is_left_alone() {
    let mut asked = 0;
    let mut world = World::new(1, move |_| {
        asked += 1;
        match asked {
            5 => Reaction::Busy(600),
            _ => Reaction::Status(200),
        }
    });
    world.submit(0, 100);
    world.run(10 * SECOND);
    let journal = world.journal();
    // One more may have been in flight.
    assert!((5..=6).contains(&journal.len()), "{}", journal.len());
    let end = journal[4].at + 600 * SECOND;
    world.run(9 * MINUTE);
    assert_eq!(world.journal().len(), journal.len());
    assert_eq!(world.why(0), [Reason::BackOff]);
    let watcher = world.watcher.as_mut().unwrap();
    let read = watcher.asking.fleet().buffered() + watcher.asking.under_way();
    assert_eq!(read, 0, "what was read is recalled");
    let now = world.now();
    let due = (0..100).filter(|path| world.detail(0, *path).url.due.unwrap().1 <= now);
    assert!(due.count() >= 94);
    world.run(2 * MINUTE);
    assert_eq!(world.count(State::Alive), 100);
    let after: Vec<_> = world.journal()[journal.len()..]
        .iter()
        .map(|ask| ask.at)
        .collect();
    assert!(
        after[0] >= end && after[0] < end + 5 * SECOND,
        "{:?}",
        after[0] - end
    );
    // All but the one that was answered by 429 are asked once.
    assert!((95..=96).contains(&after.len()), "{}", after.len());
}

#[test]
fn an_operator_is_told_how_hosts_wait() {
    let mut world = World::new(2, good);
    let mut rule = HostRule::new("h1.test".parse().unwrap());
    rule.rate = Some(Limit::At(Rate::every(10 * SECOND)));
    world.settings.hosts = vec![rule];
    world.start();
    pause(&world, host("http://h0.test/"), true);
    world.submit(0, 1);
    world.submit(1, 5);
    world.run(15 * SECOND);
    let mut reason = |host: &str| {
        let (answer, answered) = sync_channel(1);
        let host = Some(host.to_owned());
        world.tell(CoreMessage::Status { host, answer });
        world.run(SECOND);
        let host = answered.recv().unwrap().host.unwrap();
        host.waits.first().map(|waits| waits.reason)
    };
    assert_eq!(reason("http://h0.test/"), Some(Reason::Paused));
    assert_eq!(reason("http://h1.test/"), Some(Reason::Rate));
    assert_eq!(reason("http://h9.test/"), None);
}

#[test]
fn a_pause_of_which_the_core_was_not_told_holds() {
    let mut world = World::new(1, good);
    world.submit(0, 2_000);
    world.run(MINUTE);
    pause(&world, Scope::All, true);
    world.run(MINUTE);
    let asked = world.journal().len();
    assert!(asked < 1_500, "{asked}");
    assert_eq!(world.why(0)[0], Reason::Paused);
    // Nor does a start forget it.
    world.kill();
    world.run(10 * MINUTE);
    assert_eq!(world.journal().len(), asked);
    // The order in which the core is told of changes does not count.
    pause(&world, Scope::All, false);
    pause(&world, Scope::All, true);
    world.tell(CoreMessage::LookAgain);
    world.tell(CoreMessage::LookAgain);
    world.run(MINUTE);
    assert_eq!(world.journal().len(), asked);
    pause(&world, Scope::All, false);
    world.run(10 * MINUTE);
    assert_eq!(world.count(State::Alive), 2_000);
}
