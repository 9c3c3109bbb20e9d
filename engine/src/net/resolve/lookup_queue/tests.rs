//! Lookups by name, in virtual milliseconds.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

struct World {
    queue: LookupQueue<u32>,
    start: Time,
    asked: u32,
}

impl World {
    fn new(in_flight: usize, waiting: usize) -> Self {
        let limits = LookupLimits {
            in_flight,
            waiting,
            time: Some(Duration::from_secs(10)),
            can_stop: true,
        };
        Self {
            queue: LookupQueue::new(limits),
            start: Time::of(Instant::now()),
            asked: 0,
        }
    }

    fn at(&self, millis: u64) -> Time {
        self.start + Duration::from_millis(millis)
    }

    fn ask(&mut self, millis: u64, name: &str) -> bool {
        self.asked += 1;
        let (now, reply) = (self.at(millis), self.asked);
        let asked = self.queue.ask(now, name, reply);
        self.check();
        asked.is_ok()
    }

    /// What happens until the queue waits: `"+name"` starts, `"-name"` is stopped, `"!name"` fails.
    fn steps(&mut self, millis: u64) -> String {
        let mut all = Vec::new();
        loop {
            let step = self.queue.poll(self.at(millis));
            self.check();
            match step {
                Step::Start { name, instead_of } => {
                    all.extend(instead_of.map(|stopped| format!("-{stopped}")));
                    all.push(format!("+{name}"));
                }
                Step::Fail { name, error, .. } => all.push(format!("!{name} {error:?}")),
                Step::Wait(until) => {
                    assert!(
                        until.is_none_or(|until| until > self.at(millis)),
                        "it spins"
                    );
                    return all.join(" ");
                }
            }
        }
    }

    fn check(&self) {
        let queue = &self.queue;
        let zones = || queue.zones.values();
        let waiting: usize = zones().map(|zone| zone.waiting.len()).sum();
        let in_flight: usize = zones().map(|zone| zone.in_flight.len()).sum();
        assert_eq!(waiting, queue.waiting);
        assert_eq!(in_flight, queue.in_flight.len());
        assert_eq!(waiting + in_flight, queue.lookups.len());
        assert_eq!(queue.ends.len(), queue.lookups.len());
        assert!(in_flight <= queue.limits.in_flight);
        for (name, zone) in &queue.zones {
            assert!(!zone.waiting.is_empty() || !zone.in_flight.is_empty());
            assert_eq!(zone.turn.is_some(), !zone.waiting.is_empty());
            let turn = zone.turn.map(|turn| &queue.turns[&turn]);
            assert!(turn.is_none_or(|turn| turn == name));
        }
        let turns = zones().filter(|zone| zone.turn.is_some()).count();
        assert_eq!(turns, queue.turns.len());
    }
}

#[test]
fn zones() {
    for (name, zone) in [
        ("example.com", "example.com"),
        ("a.b.example.com.", "example.com"),
        ("www.example.co.uk", "example.co.uk"),
        ("example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("a.b.com.br", "b.com.br"),
        ("a.b.com.info", "com.info"),
        ("a.t.co", "t.co"),
        ("a.io.de", "io.de"),
        ("db", ""),
        ("db.", ""),
    ] {
        assert_eq!(zone_of(name), zone, "{name}");
    }
}

#[test]
fn a_zone_takes_no_more_slots_than_are_free() {
    let mut world = World::new(8, 100);
    for n in 0..10 {
        world.ask(0, &format!("n{n}.slow.test"));
    }
    let started = "+n0.slow.test +n1.slow.test +n2.slow.test +n3.slow.test";
    assert_eq!(world.steps(0), started);
    // Each further zone finds a slot, until all are taken.
    for n in 0..5 {
        world.ask(1, &format!("z{n}.test"));
    }
    assert_eq!(world.steps(1), "+z0.test +z1.test +z2.test +z3.test");
    // A slot that is free goes to the zone without one.
    assert_eq!(world.queue.finish("n0.slow.test"), [1]);
    assert_eq!(world.steps(2), "+z4.test");
}

#[test]
fn zones_take_turns_and_lookups_of_a_zone_keep_their_order() {
    let mut world = World::new(1, 100);
    for name in ["1.a.test", "2.a.test", "3.a.test", "1.b.test", "2.b.test"] {
        world.ask(0, name);
    }
    for name in ["1.a.test", "1.b.test", "2.a.test", "2.b.test", "3.a.test"] {
        assert_eq!(world.steps(0), format!("+{name}"));
        world.queue.finish(name);
    }
    assert!(world.queue.lookups.is_empty() && world.queue.zones.is_empty());
}

#[test]
fn a_lookup_gives_its_slot_when_its_slice_is_over_and_gets_a_longer_one() {
    let mut world = World::new(1, 100);
    world.ask(0, "a.test");
    assert_eq!(world.steps(0), "+a.test");
    // While no other lookup waits, there is no end of the slice.
    assert_eq!(world.steps(5_000), "");
    world.ask(5_000, "b.test");
    assert_eq!(world.steps(5_000), "-a.test +b.test");
    assert_eq!(world.steps(5_249), "");
    assert_eq!(world.steps(5_250), "-b.test +a.test");
    assert_eq!(world.steps(5_749), "");
    assert_eq!(world.steps(5_750), "-a.test +b.test");
    assert_eq!(world.steps(6_250), "-b.test +a.test");
    assert_eq!(world.steps(7_250), "-a.test +b.test");
    assert_eq!(world.steps(8_250), "-b.test +a.test");
    // An answer that arrives after all is one.
    assert_eq!(world.queue.finish("b.test"), [2]);
    assert_eq!(world.steps(9_999), "");
    assert_eq!(world.steps(10_000), "!a.test Timeout");
}

#[test]
fn a_zone_with_slots_replaces_its_own_lookups_only() {
    let mut world = World::new(4, 100);
    for name in ["1.a.test", "2.a.test", "3.a.test", "b.test", "c.test"] {
        world.ask(0, name);
    }
    assert_eq!(world.steps(0), "+1.a.test +b.test +c.test");
    world.ask(0, "d.test");
    assert_eq!(world.steps(0), "+d.test");
    assert_eq!(world.steps(250), "-1.a.test +2.a.test");
    world.ask(300, "e.test");
    assert_eq!(world.steps(300), "-b.test +e.test");
}

#[test]
fn lookups_without_a_caller_give_way_first() {
    let mut world = World::new(2, 100);
    for name in ["a.test", "b.test", "c.test", "d.test"] {
        world.ask(0, name);
    }
    assert_eq!(world.steps(0), "+a.test +b.test");
    // In the queue: gone. In flight: its slot goes to the next lookup at once.
    assert_eq!(world.queue.cancel("c.test"), [3]);
    assert_eq!(world.queue.cancel("b.test"), [0; 0]);
    assert_eq!(world.steps(0), "-b.test +d.test");
    // While nothing waits, the lookup goes on, and a new caller joins.
    assert_eq!(world.queue.cancel("d.test"), [0; 0]);
    assert_eq!(world.steps(100), "");
    world.ask(200, "d.test");
    world.ask(200, "e.test");
    assert_eq!(world.steps(200), "");
    assert_eq!(world.steps(250), "-a.test +e.test");
    assert_eq!(world.queue.finish("d.test"), [5]);
    assert_eq!(world.queue.cancel("unknown.test"), [0; 0]);
}

#[test]
fn the_queue_is_bounded_and_no_lookup_stays_for_ever() {
    let mut world = World::new(1, 5);
    assert!(world.ask(0, "a.test"));
    assert_eq!(world.steps(0), "+a.test");
    // One zone leaves places for the others.
    assert!(world.ask(0, "b.a.test"));
    assert!(world.ask(0, "c.a.test"));
    assert!(world.ask(0, "d.a.test"));
    let refused = world.queue.ask(world.start, "e.a.test", 9);
    assert_eq!(refused, Err((9, DnsError::QueueFull(5))));
    assert!(world.ask(0, "e.test"));
    assert!(world.ask(0, "f.test"));
    assert!(!world.ask(0, "g.test"));
    assert!(world.ask(0, "c.a.test"), "joins");
    world.queue.limits.can_stop = false;
    let ends = "!a.test Timeout !b.a.test NotAsked !c.a.test NotAsked !d.a.test NotAsked !e.test NotAsked !f.test NotAsked";
    assert_eq!(world.steps(10_000), ends);
    assert!(world.queue.lookups.is_empty() && world.queue.zones.is_empty());

    world.ask(0, "a.test");
    world.ask(0, "b.test");
    assert_eq!(world.steps(0), "+a.test");
    assert_eq!(world.queue.take_waiting(), [world.asked]);
    assert_eq!(world.steps(0), "");
}

proptest! {
    /// Whatever happens, the bookkeeping holds, the queue never spins, and each lookup ends.
    #[test]
    fn all_lookups_end(
        in_flight in 1usize..6,
        can_stop: bool,
        program in prop::collection::vec((0u8..5, 0u8..12, 0u64..400), 0..200),
    ) {
        let mut world = World::new(in_flight, 8);
        world.queue.limits.can_stop = can_stop;
        let mut now = 0;
        for (operation, pick, pause) in program {
            let name = format!("n{}.z{}.test", pick / 3, pick % 3);
            match operation {
                0 | 1 => drop(world.ask(now, &name)),
                2 => drop(world.queue.cancel(&name)),
                3 => drop(world.queue.finish(&name)),
                _ => now += pause,
            }
            world.check();
            world.steps(now);
        }
        world.steps(now + 10_000);
        prop_assert!(world.queue.lookups.is_empty() && world.queue.zones.is_empty());
        prop_assert!(world.queue.turns.is_empty() && world.queue.ends.is_empty());
    }
}

#[test]
fn callers_that_come_and_go_leave_no_replies() {
    let mut world = World::new(2, 8);
    world.ask(0, "a.test");
    assert_eq!(world.steps(0), "+a.test");
    for caller in 2..100 {
        assert!(world.queue.cancel("a.test").is_empty());
        let gone = world.queue.ask(world.start, "a.test", caller);
        assert_eq!(gone, Ok(vec![caller - 1]));
    }
    assert_eq!(world.queue.finish("a.test"), [99]);
}
