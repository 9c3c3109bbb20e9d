//! What operators have paused is not asked.

use std::collections::HashSet;

use super::world::World;
use super::{MINUTE, SECOND, good};
use crate::watch::control::CoreMessage;
use crate::watch::core::Reason;

fn paused(everything: bool, host: Option<&str>) -> CoreMessage {
    let hosts: HashSet<_> = host.into_iter().map(|host| host.parse().unwrap()).collect();
    CoreMessage::Paused { everything, hosts }
}

#[test]
fn a_paused_host_is_not_asked() {
    let mut world = World::new(2, good);
    world.start();
    world.tell(paused(false, Some("http://h0.test/")));
    world.submit(0, 20);
    world.submit(1, 20);
    world.run(2 * MINUTE);
    assert_eq!(world.why(0), [Reason::Paused]);
    assert_eq!(world.why(1), []);
    let asked: Vec<usize> = world.journal().iter().map(|ask| ask.host).collect();
    assert_eq!(asked, [1; 20]);
    world.tell(paused(false, None));
    world.run(MINUTE);
    assert_eq!(world.journal().len(), 40);
}

#[test]
fn everything_stops_when_it_is_paused_and_goes_on_where_it_was() {
    let mut world = World::new(1, good);
    world.submit(0, 200);
    world.run(3 * SECOND);
    let before = world.journal().len();
    assert!((10..60).contains(&before), "{before}");
    world.tell(paused(true, None));
    world.run(10 * MINUTE);
    let asked = world.journal().len();
    // Two connections.
    assert!(asked <= before + 2, "{asked} {before}");
    assert_eq!(world.why(0)[0], Reason::Paused);
    world.tell(paused(false, None));
    world.run(MINUTE);
    for path in 0..200 {
        assert_eq!(world.asked(0, &format!("/{path}")).len(), 1, "{path}");
    }
}
