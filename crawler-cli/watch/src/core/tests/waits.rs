//! Hosts that ask for fewer requests.

use super::HOUR;
use super::world::{Ask, Reaction, World};

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
