//! Hosts that are held: how a hold begins and ends.

use super::bad_days::{flipped, switched};
use super::world::{Reaction, World, url};
use super::{HOUR, MINUTE, SECOND};
use crate::control::{By, Command, HoldDeed, Reply, Schedules, perform};
use crate::core::keeping::Failed;
use crate::hold::release_piece;
use store::{HoldEnd, Scope, StoreError, StoreErrorKind, StoreHandle as _, Which};
use verdict::life::State;

#[test]
fn a_host_that_was_small_when_it_was_first_asked_is_held_like_others() {
    let (mut world, now) = switched(1);
    world.submit(0, 1);
    world.step(SECOND);
    world.step(SECOND);
    // From now on, something of the host is due all the time.
    world.submit(0, 300);
    world.run(15 * SECOND);
    let alive = world.count(State::Alive);
    assert!((100..250).contains(&alive), "{alive}");
    now.set(Reaction::Status(410));
    world.recheck(Which::Urls((0..100).map(|path| url(0, path)).collect()));
    world.run(MINUTE);
    assert_eq!(world.holds().len(), 1);
    assert!(world.count(State::Quarantined) > 20);
}

/// Has the store perform a command, without a word to the core.
fn command(world: &World, command: Command) -> Reply {
    let by = By {
        who: "me".to_owned(),
        now: world.now(),
    };
    let schedules = Schedules::default();
    let performed = world
        .store
        .call(move |engine| perform(engine, &command, &by, &schedules));
    performed.unwrap().reply
}

fn end(deed: HoldDeed) -> Command {
    Command::Hold {
        host: "http://h0.test/".to_owned(),
        deed,
    }
}

#[test]
fn the_end_of_a_hold_is_kept_if_the_process_ends_or_the_core_is_not_told() {
    for is_killed in [true, false] {
        let (mut world, _) = flipped();
        command(&world, end(HoldDeed::Confirm));
        // Until the core has seen to the rows, the command can be given again, but no other one.
        let again = command(&world, end(HoldDeed::Confirm));
        assert!(matches!(again, Reply::Count { .. }));
        let other = command(&world, end(HoldDeed::Release));
        assert!(matches!(other, Reply::Refused(_)));
        if is_killed {
            world.kill();
        }
        world.run(2 * MINUTE);
        assert_eq!(world.holds(), [], "{is_killed}");
        assert_eq!(world.count(State::Quarantined), 0);
    }
}

#[test]
fn a_sample_does_not_undo_what_an_operator_has_ended() {
    let (mut world, _) = flipped();
    // Nothing is asked but the sample that is under way.
    for _ in 0..600 {
        world.step(SECOND);
        let watcher = world.watcher.as_mut().unwrap();
        if watcher.asking.under_way() > 0 {
            break;
        }
    }
    command(&world, end(HoldDeed::Release));
    world.step(SECOND);
    assert!(world.holds().iter().all(|hold| hold.ending.is_some()));
    world.kill();
    world.run(MINUTE);
    assert_eq!(world.holds(), []);
}

#[test]
fn a_hold_that_could_not_be_written_is_written_again() {
    let (mut world, _) = flipped();
    let held = world.count(State::Quarantined);
    let (now, host) = (world.now(), world.holds()[0].host);
    let rules = world.settings.rules.clone();
    // As if the rows had not been written.
    let released = world
        .store
        .call(move |engine| release_piece(engine, &rules, now, host, HoldEnd::Release));
    assert!(released.unwrap().is_none());
    assert_eq!(world.count(State::Quarantined), 0);
    let error = StoreError::new(
        std::path::Path::new("db"),
        StoreErrorKind::Disk("broken".to_owned()),
    );
    let watcher = world.watcher.as_mut().unwrap();
    watcher.handle_failed(now, Failed::Piece(host), &error);
    world.step(SECOND);
    assert_eq!(world.count(State::Quarantined), held);
    assert_eq!(world.count(State::Suspect), 0);
}

#[test]
fn doubtful_urls_that_are_late_are_counted() {
    let (mut world, now) = switched(1);
    world.submit(0, 10);
    world.run(MINUTE);
    now.set(Reaction::Status(410));
    world.recheck(Which::Everything);
    world.run(MINUTE);
    assert_eq!(world.count(State::Suspect), 10);
    let what = Scope::All;
    command(&world, Command::Pause { what });
    world.run(4 * HOUR);
    let staleness = world.figures().backlog.staleness.get();
    assert!(staleness > 0.1, "{staleness}");
}
