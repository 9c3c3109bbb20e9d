//! A receiver over time, on a store in memory.

use serde_json::Value;

use super::*;
use crate::check::life::State;
use crate::store::sqlite::Sqlite;
use crate::store::{Buried, Cursor, JobStore as _, NewDeadLetter, WatchStore as _, Which};
use crate::watch::hooks::fixture::{BROKEN, GONE, at, change, notice, submit};

/// A receiver that everything is posted to.
struct Told {
    store: Sqlite,
    hook: HookState,
    wishes: Wishes,
    pace: Pace,
}

const URL: &str = "http://h.test/0";

impl Told {
    fn new(urls: usize) -> Self {
        let mut store = Sqlite::temporary().expect("memory");
        let urls: Vec<String> = (0..urls)
            .map(|url| format!("http://h.test/{url}"))
            .collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        submit(&mut store, &urls).expect("written");
        Self {
            hook: store.new_hook("ops").expect("readable"),
            store,
            wishes: Wishes {
                topics: Topic::ALL.to_vec(),
                digest_every: Duration::from_secs(60),
                flapping_every: Duration::from_secs(3600),
            },
            pace: Pace::default(),
        }
    }

    /// Looks at what happened.
    fn look(&mut self, second: i64, room: usize) -> Collected {
        let (hook, wishes) = (&self.hook, &self.wishes);
        let collected = collect(&mut self.store, hook, wishes, self.pace, room, at(second));
        collected.expect("readable")
    }

    /// Posts what happened, and returns the types of the messages; a digest with those that it has.
    fn posted(&mut self, second: i64, room: usize) -> Vec<String> {
        let collected = self.look(second, room);
        (self.hook, self.pace) = (collected.hook, collected.pace);
        let bodies = collected.messages.iter().map(|message| {
            let value: Value = serde_json::from_slice(&message.body).expect("JSON");
            assert_eq!(message.receiver, "ops");
            let kind = value["type"].as_str().expect("a type").to_owned();
            match value["data"]["items"].as_array() {
                Some(items) => format!("{kind} {}", items.len()),
                None => kind,
            }
        });
        bodies.collect()
    }

    fn change(&mut self, states: (State, State), second: i64) {
        change(&mut self.store, URL, states, second, false).expect("written");
    }

    fn flap(&mut self, second: i64) {
        change(&mut self.store, URL, BROKEN, second, true).expect("written");
    }
}

#[test]
fn what_happens_is_told_once() {
    let mut told = Told::new(1);
    told.change((State::New, State::Alive), 1);
    assert_eq!(told.posted(1, 16), [""; 0]);
    told.change(BROKEN, 2);
    told.change(GONE, 3);
    notice(&mut told.store, "guard", 4).expect("written");
    notice(&mut told.store, "recheck", 4).expect("written");
    let letter = NewDeadLetter {
        reason: "invalid_url".to_owned(),
        attempts: 1,
        last: String::new(),
        first_at: at(0),
        last_at: at(1),
    };
    let subject = Buried::Text("http://[".to_owned());
    told.store.bury(&subject, &letter).expect("written");
    let kinds = [
        "dead_letter.text",
        "url.broken",
        "url.gone",
        "guard.network",
    ];
    assert_eq!(told.posted(5, 16), kinds);
    assert_eq!(told.posted(6, 16), [""; 0]);
    assert_eq!(told.look(6, 16).next, More::Later);
}

#[test]
fn a_receiver_is_told_what_it_wants() {
    let mut told = Told::new(1);
    told.wishes.topics = vec![Topic::Gone];
    told.change(BROKEN, 1);
    told.change(GONE, 2);
    notice(&mut told.store, "hold", 3).expect("written");
    assert_eq!(told.posted(4, 16), ["url.gone"]);
    told.wishes.topics = vec![Topic::Guard];
    told.change(GONE, 5);
    notice(&mut told.store, "hold", 6).expect("written");
    let collected = told.look(7, 16);
    let body: Value = serde_json::from_slice(&collected.messages[0].body).expect("JSON");
    assert_eq!(body["type"], "guard.host");
    assert_eq!(body["data"]["host"], "http://h.test/");
}

#[test]
fn without_room_nothing_is_told_and_nothing_is_missed() {
    let mut told = Told::new(1);
    for second in 0..3 {
        told.change(BROKEN, second);
    }
    let before = told.hook.clone();
    assert_eq!(told.posted(5, 0), [""; 0]);
    assert_eq!(told.hook, before);
    // One place is enough for all.
    assert_eq!(told.posted(6, 1), ["digest 3"]);
    assert_eq!(told.posted(7, 16), [""; 0]);
}

#[test]
fn many_come_in_digests() {
    let mut told = Told::new(1);
    for second in 0..6 {
        told.change(BROKEN, second);
    }
    assert_eq!(told.posted(100, 16), ["digest 6"]);
    for second in 100..105 {
        told.change(GONE, second);
        assert_eq!(told.posted(second, 16), ["url.gone"], "{second}");
    }
    told.change(GONE, 105);
    let waiting = told.look(105, 16);
    assert_eq!(
        (waiting.messages.len(), waiting.next),
        (0, More::At(at(160)))
    );
    assert_eq!(waiting.hook, told.hook);
    told.change(GONE, 106);
    assert_eq!(told.posted(159, 16), [""; 0]);
    assert_eq!(told.posted(160, 16), ["url.gone", "url.gone"]);
    // A clock that is set back keeps nothing from being told.
    (0..9).for_each(|_| told.change(GONE, 7));
    assert_eq!(told.posted(7, 16), ["digest 9"]);
}

#[test]
fn a_flood_comes_in_full_digests_at_once() {
    let mut told = Told::new(1);
    (0..MOST_ITEMS + 7).for_each(|_| told.change(BROKEN, 1));
    let first = told.look(1, 16);
    assert_eq!(first.next, More::Now);
    assert_eq!(told.posted(1, 16), [format!("digest {MOST_ITEMS}")]);
    assert_eq!(told.posted(1, 16), [""; 0]);
    assert_eq!(told.posted(61, 16), ["digest 7"]);
}

#[test]
fn a_url_that_flaps_comes_in_a_digest_an_hour() {
    let mut told = Told::new(1);
    told.flap(1);
    told.change(GONE, 2);
    assert_eq!(told.posted(2, 16), ["url.gone", "digest 1"]);
    told.flap(3);
    told.flap(4);
    let collected = told.look(5, 16);
    assert_eq!(collected.messages, []);
    assert_eq!(collected.next, More::Later, "other things are told");
    assert_eq!(told.posted(3601, 16), [""; 0]);
    assert_eq!(told.posted(3602, 16), ["digest 2"]);
    assert_eq!(told.posted(9999, 16), [""; 0]);
    told.flap(9999);
    // The clock was set back.
    assert_eq!(told.posted(3000, 16), ["digest 1"]);
}

#[test]
fn what_was_forgotten_before_it_was_told_is_counted() {
    let mut told = Told::new(2);
    for second in 0..3 {
        told.change(BROKEN, second);
    }
    let which = Which::Urls(vec![URL.to_owned()]);
    let withdrawn = told.store.withdraw(None, &which, at(3), None, 9);
    withdrawn.expect("written");
    assert_eq!(told.store.expire(at(9), 9).expect("written"), 1);
    assert_eq!(told.look(9, 16).lost, 0, "not before something follows");
    change(&mut told.store, "http://h.test/1", GONE, 10, false).expect("written");
    let collected = told.look(10, 16);
    assert_eq!(collected.lost, 3);
    assert_eq!(told.posted(10, 16), ["events.lost", "url.gone"]);
    assert_eq!(told.hook.events, Cursor(4));
    // Whoever is not told of URLs misses nothing.
    told.hook.events = Cursor::START;
    told.wishes.topics = vec![Topic::Guard];
    assert_eq!(told.look(11, 16).lost, 0);
}

#[test]
fn what_a_restore_left_out_was_not_forgotten() {
    let mut told = Told::new(1);
    told.change(BROKEN, 1);
    told.hook.events = Cursor(told.hook.events.0 - SKIPPED);
    assert_eq!(told.posted(1, 16), ["url.broken"]);
}

#[test]
fn what_was_forgotten_before_a_receiver_was_known_is_not_counted() {
    let mut told = Told::new(2);
    told.change(BROKEN, 1);
    let which = Which::Urls(vec![URL.to_owned()]);
    let withdrawn = told.store.withdraw(None, &which, at(2), None, 9);
    withdrawn.expect("written");
    assert_eq!(told.store.expire(at(9), 9).expect("written"), 1);
    told.hook = told.store.new_hook("ops").expect("readable");
    change(&mut told.store, "http://h.test/1", GONE, 10, false).expect("written");
    assert_eq!(told.posted(10, 16), ["url.gone"]);
}
