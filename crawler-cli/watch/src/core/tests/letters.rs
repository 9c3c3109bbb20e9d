//! Dead letters of URLs.

use super::good;
use super::world::World;
use super::{HOUR, MINUTE, SECOND};
use crate::core::flow::invalid;
use plain::redirect::Redirect;
use store::{DeadLetterFilter, DueUrl, Lane, StoreHandle as _};
use verdict::{Cause, Verdict};

/// A host of which something is due, and a URL of the host that is not.
fn asked() -> (World, DueUrl) {
    let mut world = World::new(1, good);
    world.submit(0, 1);
    world.run(MINUTE);
    let host = world.detail(0, 0).host.id;
    let rows = world
        .store
        .read(move |engine| engine.due(host, Lane::Routine, None, jiff::Timestamp::MAX, 10));
    let due = rows.unwrap().remove(0);
    world.submit(0, 20);
    world.step(SECOND);
    world.step(SECOND);
    (world, due)
}

fn letters(world: &World) -> Vec<(String, u64)> {
    let counts = world.store.read(|engine| engine.dead_letter_counts());
    counts.unwrap()
}

#[test]
fn what_is_no_url_is_looked_at_again_whatever_becomes_of_its_letter() {
    let (mut world, due) = asked();
    let (now, outcome) = (world.now(), invalid(&due));
    let watcher = world.watcher.as_mut().unwrap();
    watcher.decide(now, due, outcome);
    world.run(SECOND);
    assert_eq!(letters(&world), [("invalid_url".to_owned(), 1)]);
    assert!(world.detail(0, 0).url.due.is_some());
    // Without its letter, nothing is left that waits for an operator.
    let dropped = world
        .store
        .call(|engine| engine.drop_dead_letters(&DeadLetterFilter::default(), 10));
    assert_eq!(dropped.unwrap(), 1);
    let before = world.asked(0, "/0").len();
    world.run(26 * HOUR);
    assert!(world.asked(0, "/0").len() > before);
}

#[test]
fn where_a_server_leads_is_no_fault_of_the_url() {
    let (mut world, due) = asked();
    let (now, mut outcome) = (world.now(), invalid(&due));
    outcome.answer.redirects.push(Redirect {
        status: 302,
        url: "http://a..test/".into(),
    });
    let watcher = world.watcher.as_mut().unwrap();
    watcher.decide(now, due, outcome);
    world.run(SECOND);
    assert_eq!(letters(&world), []);
    let url = world.detail(0, 0).url;
    assert_eq!(
        url.answer.unwrap().verdict,
        Verdict::Failed(Cause::Protocol)
    );
    assert!(url.due.is_some());
}
