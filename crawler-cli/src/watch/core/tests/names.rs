//! Names that do not exist count when a second resolver agrees.

use jiff::SignedDuration;

use super::world::{World, url};
use super::{HOUR, MINUTE, SECOND, good};
use crate::check::life::State;
use crate::store::Which;

/// A world whose second host has lost its name.
fn lost() -> World {
    let mut world = World::new(2, good);
    world.submit(1, 2);
    world.run(MINUTE);
    assert_eq!(world.count(State::Alive), 2);
    // Until no connection is left.
    world.run(HOUR);
    world.site.borrow_mut().names = 1;
    world
}

#[test]
fn a_name_counts_only_when_the_second_resolver_has_answered_in_time() {
    let mut world = lost();
    world.recheck(Which::Urls(vec![url(1, 0)]));
    world.run(5 * MINUTE);
    // The second resolver hangs: the URL is not lost, and nothing speaks against it that could end in GONE.
    assert_eq!(world.second.asked(), ["h1.test"]);
    let detail = world.detail(1, 0).url;
    assert_eq!(detail.life.negatives(), 0);
    let (_, due) = detail.due.unwrap();
    assert!(due > world.now(), "it is judged, and asked again");
    assert!(due.duration_since(world.now()) < SignedDuration::from_hours(2));
    // An answer that comes too late counts nothing, also not later.
    world.second.agree();
    world.run(MINUTE);
    assert_eq!(world.detail(1, 0).url.life.negatives(), 0);
    // From now on the second resolver is there in time.
    let until = world.now() + SignedDuration::from_hours(10);
    while world.now() < until {
        world.run(10 * SECOND);
        world.second.agree();
    }
    let life = world.detail(1, 0).url.life;
    assert!((1..=3).contains(&life.negatives()), "{life:?}");
}

#[test]
fn names_that_the_second_resolver_does_not_answer_leave_room_for_others() {
    let mut world = lost();
    for _ in 0..5 {
        world.recheck(Which::Everything);
        world.run(HOUR);
    }
    // One question at a time about a name, and none that waits for ever.
    let watcher = world.watcher.as_ref().unwrap();
    assert!(!watcher.second.waits_for("h1.test"));
    assert!(world.second.asked().len() >= 5);
    assert_eq!(world.detail(1, 0).url.life.negatives(), 0);
}
