//! A worker that shares its store with others asks as long as it has its lease.

use courser::net::Net as _;

use super::world::World;
use super::{HOUR, MINUTE, SECOND, good};
use store::Tenure;

#[test]
fn nothing_is_asked_after_the_end_of_the_lease() {
    let mut world = World::new(1, good);
    world.start();
    let (tenure, end) = (Tenure::ended(), world.net.now() + 5 * SECOND);
    tenure.renew(0, end);
    let watcher = world.watcher.take().unwrap();
    world.watcher = Some(watcher.with_tenure(tenure.clone()));
    // Ten are asked in a second.
    world.submit(0, 200);
    world.run(MINUTE);
    let asked = world.journal();
    assert!((20..=60).contains(&asked.len()), "{}", asked.len());
    // What was sent before the end is on its way for a moment.
    let last = asked.iter().map(|ask| ask.at).max();
    assert!(last.is_some_and(|last| last < end + SECOND));
    // With another lease the worker goes on.
    tenure.renew(0, world.net.now() + HOUR);
    world.run(MINUTE);
    assert_eq!(world.journal().len(), 200);
}
