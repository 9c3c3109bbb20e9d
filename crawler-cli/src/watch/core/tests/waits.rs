//! Hosts that ask for fewer requests.

use super::world::{Ask, Reaction, World};
use super::{HOUR, MINUTE};
use crate::check::life::State;

/// The trap: what says "try again at once" is tried again at once, for ever.
#[test]
fn a_short_retry_after_makes_no_check_come_earlier() {
    let mut world = World::new(1, |_: &Ask| Reaction::Busy(0));
    world.submit(0, 1);
    world.run(24 * HOUR);
    let asked = world.asked(0, "/0").len();
    // Checks after 5 and 15 minutes, 1, 6 and 24 hours, each with the retries of a minute.
    assert!((5..=80).contains(&asked), "{asked} requests");
}

#[test]
fn a_long_retry_after_holds_for_all_urls_of_the_host() {
    let mut world = World::new(2, |ask: &Ask| match ask.host {
        0 => Reaction::Busy(6 * 3_600),
        _ => Reaction::Status(200),
    });
    world.submit(0, 50);
    world.submit(1, 50);
    world.run(5 * HOUR);
    assert_eq!(world.count(State::Alive), 50);
    // As many as were under way when the first answer came.
    let first = world.journal().iter().filter(|ask| ask.host == 0).count();
    assert!(first <= 2, "{first} requests");
    world.run(HOUR + 10 * MINUTE);
    let later = world.journal().iter().filter(|ask| ask.host == 0).count();
    assert!((first + 1..=first + 2).contains(&later), "{later} requests");
}
