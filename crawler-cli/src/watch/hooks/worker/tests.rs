//! A receiver over days: the time is a number, and a closure answers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::store::sqlite::Sqlite;
use crate::store::{DeadLetter, DeadLetterFilter, DeadLetterId, WriterSettings};
use crate::watch::config::Topic;
use crate::watch::hooks::fixture::{BROKEN, GONE, at, change, submit};
use crate::watch::hooks::settle;

const URL: &str = "http://h.test/0";

/// A service with one receiver, whose clock the test sets.
struct World {
    _folder: tempfile::TempDir,
    worker: Worker,
    /// The numbers and the types of the messages that were sent.
    sent: Vec<(String, String)>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("watch.db");
        let engine = Sqlite::open(&file).expect("a store");
        let store = Writer::start(engine, WriterSettings::default()).expect("a thread");
        store
            .call(|engine| submit(engine, &[URL]))
            .expect("written");
        let addresses = BTreeMap::from([("ops".to_owned(), "1".to_owned())]);
        let mut states = store
            .call(move |engine| settle(engine, &addresses))
            .expect("written");
        let mut reader = Reader::open(&file).expect("a store");
        let store_id = reader.store().store_id().expect("readable");
        let shared = Shared {
            is_shared: false,
            store,
            reader: Arc::new(Mutex::new(reader)),
            board: Arc::default(),
            store_id,
            cancel: Cancel::new(),
        };
        let target = Target {
            url: "http://receiver.test/hush".parse().expect("a URL"),
            secret: None,
            timeout: Duration::from_secs(20),
            allow_private: false,
            user_agent: String::new(),
        };
        let wishes = Wishes {
            topics: Topic::ALL.to_vec(),
            digest_every: Duration::from_secs(60),
            flapping_every: Duration::from_secs(3600),
        };
        let state = states.pop().expect("the receiver");
        Self {
            worker: Worker::new(shared, state, (target, wishes), 1),
            _folder: folder,
            sent: Vec::new(),
        }
    }

    fn store(&self) -> &Writer {
        &self.worker.shared.store
    }

    /// The process was killed, and another one goes on.
    fn restart(&mut self) {
        let saved = self.hook();
        let (target, wishes) = (self.worker.target.clone(), self.worker.wishes.clone());
        self.worker = Worker::new(self.worker.shared.clone(), saved, (target, wishes), 2);
    }

    fn hook(&self) -> HookState {
        let hook = self.store().read(|engine| engine.hook("ops"));
        hook.expect("readable").expect("known")
    }

    fn happens(&self, second: i64) {
        self.store()
            .call(move |engine| change(engine, URL, GONE, second, false))
            .expect("written");
    }

    /// Turns until nothing is left to do at this time, and returns when the next turn is.
    fn run(&mut self, second: i64, answer: &mut dyn FnMut(&str) -> Sent) -> Timestamp {
        loop {
            let sent = &mut self.sent;
            let turn = self.worker.turn(at(second), &mut |id, body| {
                let value: Value = serde_json::from_slice(body).expect("JSON");
                let kind = value["type"].as_str().expect("a type").to_owned();
                sent.push((id.to_owned(), kind));
                answer(id)
            });
            if let Turn::At(at) = turn.expect("stored") {
                return at;
            }
        }
    }

    fn waiting(&self) -> u64 {
        let waiting = self.store().read(|engine| engine.outbox_waiting("ops", 99));
        waiting.expect("readable")
    }

    fn letters(&self) -> Vec<DeadLetter> {
        let letters = self.store().read(|engine| {
            let filter = DeadLetterFilter::default();
            engine.letters_before(&filter, DeadLetterId::END, 99)
        });
        letters.expect("readable").rows
    }
}

fn failed() -> Sent {
    Sent::Failed(Failed {
        why: "HTTP 500".to_owned(),
        ..Failed::default()
    })
}

fn good(_: &str) -> Sent {
    Sent::Delivered(204)
}

#[test]
fn a_receiver_that_is_down_for_a_day_costs_little_and_misses_nothing() {
    let mut world = World::new();
    let day = 24 * 3600;
    let (mut now, mut next_event) = (1, 1);
    while now < day {
        while next_event <= now {
            world.happens(next_event);
            next_event += 300;
        }
        let next = world.run(now, &mut |_| failed()).as_second();
        assert!(world.waiting() <= MOST_WAITING as u64);
        now = next.max(now + 1).min(next_event);
    }
    let events = (next_event - 1) / 300;
    assert!(world.sent.len() <= 8, "{:?}", world.sent);
    // All of them are asked with the first message.
    assert!(world.sent.iter().all(|sent| sent == &world.sent[0]));
    world.sent.clear();
    let mut told = 0;
    let mut last = 0;
    let store = world.store().clone();
    for hour in 24..60 {
        let mut take = |id: &str| {
            let number: i64 = id
                .rsplit('_')
                .next()
                .expect("a number")
                .parse()
                .expect("a number");
            let body = store
                .read(move |engine| engine.outbox("ops", 99))
                .expect("readable");
            let message = body.into_iter().find(|message| message.id.0 == number);
            let body = message.expect("it waits").message.body;
            let value: Value = serde_json::from_slice(&body).expect("JSON");
            let one = [value.clone()];
            let items = value["data"]["items"]
                .as_array()
                .map_or(&one[..], Vec::as_slice);
            for item in items {
                let cursor = item["data"]["cursor"].as_i64().expect("a cursor");
                assert!(cursor > last, "in order and once: {cursor} after {last}");
                last = cursor;
                told += 1;
            }
            Sent::Delivered(200)
        };
        world.run(hour * 3600, &mut take);
    }
    assert_eq!(told, events);
    assert_eq!((world.waiting(), world.letters().len()), (0, 0));
}

#[test]
fn a_message_that_is_never_taken_becomes_a_dead_letter_that_is_told_once() {
    let mut world = World::new();
    world.happens(1);
    let mut now = 1;
    while world.letters().is_empty() {
        now = world.run(now, &mut |_| failed()).as_second().max(now + 1);
        assert!(now < 80 * 3600, "{:?}", world.sent);
    }
    assert!(
        now > 60 * 3600 && world.sent.len() == 10,
        "{now} {}",
        world.sent.len()
    );
    assert!(world.sent.iter().all(|sent| sent == &world.sent[0]));
    let letter = world.letters().remove(0);
    assert_eq!(letter.letter.reason, UNDELIVERABLE);
    assert_eq!(letter.letter.attempts, 10);
    assert!(letter.letter.last.contains("HTTP 500") && !letter.letter.last.contains("hush"));
    // The receiver is told that it missed something; that it does not take this either is told nobody.
    world.sent.clear();
    for hour in 80..400 {
        world.run(hour * 3600, &mut |_| failed());
    }
    assert_eq!(world.letters().len(), 2);
    assert!(
        world
            .sent
            .iter()
            .all(|(_, kind)| kind == "dead_letter.webhook")
    );
    assert_eq!((world.sent.len(), world.waiting()), (10, 0));
    // What is replayed is sent.
    world.sent.clear();
    let replayed = world.store().call(|engine| {
        let filter = DeadLetterFilter::default();
        engine.replay(&filter, DeadLetterId::START, 9, at(400 * 3600))
    });
    assert_eq!(replayed.expect("written").count, 2);
    world.run(400 * 3600, &mut good);
    let kinds: Vec<&str> = world.sent.iter().map(|(_, kind)| kind.as_str()).collect();
    assert_eq!(kinds, ["url.gone", "dead_letter.webhook"]);
}

#[test]
fn a_process_that_is_killed_between_loses_nothing() {
    let mut world = World::new();
    world.happens(1);
    // Collected and stored, and not sent.
    assert_eq!(
        world.worker.collect(at(1), 16).expect("stored"),
        More::Later
    );
    world.restart();
    world.run(2, &mut |_| failed());
    // Sent, and failed: the same number is sent again, and not before its time.
    world.restart();
    world.run(3, &mut good);
    assert_eq!(world.sent.len(), 1);
    world.happens(4);
    world.run(9, &mut good);
    let kinds: Vec<&str> = world.sent.iter().map(|(_, kind)| kind.as_str()).collect();
    assert_eq!(kinds, ["url.gone"; 3]);
    assert_eq!(world.sent[0], world.sent[1]);
    assert_ne!(world.sent[1].0, world.sent[2].0);
    world.restart();
    world.run(10, &mut good);
    assert_eq!(world.sent.len(), 3);
}

#[test]
fn a_clock_that_is_set_back_keeps_nothing_waiting() {
    let mut world = World::new();
    let year = 365 * 24 * 3600;
    world.happens(year);
    world.run(year, &mut |_| failed());
    world.run(5, &mut good);
    assert_eq!((world.sent.len(), world.waiting()), (2, 0));
    world.happens(6);
    world.run(7, &mut good);
    assert_eq!(world.sent.len(), 3);
}

#[test]
fn what_happens_while_a_url_flaps_is_told_at_once() {
    let mut world = World::new();
    for second in [1, 3] {
        let flaps = move |engine: &mut dyn Engine| change(engine, URL, BROKEN, second, true);
        world.store().call(flaps).expect("written");
        world.run(second, &mut good);
    }
    world.happens(5);
    world.run(5, &mut good);
    world.run(3605, &mut good);
    let kinds: Vec<&str> = world.sent.iter().map(|(_, kind)| kind.as_str()).collect();
    assert_eq!(kinds, ["digest", "url.gone", "digest"]);
}

#[test]
fn a_receiver_that_wants_no_more_is_left_alone_until_it_is_resumed() {
    let mut world = World::new();
    world.happens(1);
    assert_eq!(world.run(1, &mut |_| Sent::Gone), Timestamp::MAX);
    assert_eq!((world.waiting(), world.letters().len()), (1, 0));
    for day in 1..9 {
        world.happens(day * 24 * 3600);
        world.run(day * 24 * 3600, &mut good);
    }
    world.restart();
    world.run(10 * 24 * 3600, &mut good);
    assert_eq!((world.sent.len(), world.waiting()), (1, 1));
    let notices = world
        .store()
        .read(|engine| engine.notices_before(crate::store::NoticeId::END, 9));
    let notices = notices.expect("readable");
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].1.text.contains("webhook resume ops") && !notices[0].1.text.contains("hush")
    );
    // The same address stays stopped; another one is asked.
    let addresses = |address: &str| BTreeMap::from([("ops".to_owned(), address.to_owned())]);
    for (address, is_stopped) in [("1", true), ("2", false)] {
        let addresses = addresses(address);
        let settled = world.store().call(move |engine| settle(engine, &addresses));
        assert_eq!(settled.expect("written")[0].stopped.is_some(), is_stopped);
    }
    world.restart();
    world.run(11 * 24 * 3600, &mut good);
    assert_eq!(world.waiting(), 0);
    let kinds: Vec<&str> = world
        .sent
        .iter()
        .skip(1)
        .map(|(_, kind)| kind.as_str())
        .collect();
    assert_eq!(kinds, ["url.gone", "digest"]);
}

#[test]
fn a_receiver_that_moves_while_its_old_address_is_asked_is_not_stopped() {
    let mut world = World::new();
    world.happens(1);
    let store = world.store().clone();
    let mut is_first = true;
    world.run(1, &mut |_| {
        if !std::mem::take(&mut is_first) {
            return Sent::Delivered(200);
        }
        let addresses = BTreeMap::from([("ops".to_owned(), "2".to_owned())]);
        let settled = store.call(move |engine| settle(engine, &addresses));
        assert_eq!(settled.expect("written").len(), 1);
        Sent::Gone
    });
    let hook = world.hook();
    assert_eq!((hook.address.as_str(), hook.stopped), ("2", None));
    assert_eq!((world.sent.len(), world.waiting()), (2, 0));
}

#[test]
fn what_was_taken_after_all_is_refused_no_more() {
    let mut world = World::new();
    world.happens(1);
    world.happens(2);
    let refused = |_: &str| {
        Sent::Failed(Failed {
            is_refused: true,
            ..Failed::default()
        })
    };
    world.run(3, &mut { refused });
    assert_eq!(world.worker.refused.len(), 2);
    let mut is_first = true;
    world.run(604, &mut |id| match std::mem::take(&mut is_first) {
        true => Sent::Delivered(200),
        false => refused(id),
    });
    assert_eq!((world.worker.refused.len(), world.waiting()), (1, 1));
}

#[test]
fn a_refused_message_keeps_no_other_from_being_sent() {
    let mut world = World::new();
    world.happens(1);
    world.happens(2);
    let mut is_first = true;
    world.run(3, &mut |_| match std::mem::take(&mut is_first) {
        true => Sent::Failed(Failed {
            is_refused: true,
            asked: Some(Duration::from_secs(600)),
            ..Failed::default()
        }),
        false => Sent::Delivered(200),
    });
    assert_eq!((world.sent.len(), world.waiting()), (2, 1));
    assert!(world.run(4, &mut good) >= at(603));
    world.run(604, &mut good);
    assert_eq!(world.waiting(), 0);
}

#[test]
fn a_receiver_that_is_forgotten_is_forgotten_with_its_messages() {
    let mut world = World::new();
    world.happens(1);
    world.run(1, &mut |_| failed());
    let settled = world
        .store()
        .call(|engine| settle(engine, &BTreeMap::new()));
    assert_eq!(settled.expect("written"), []);
    assert_eq!(world.waiting(), 0);
    // Its thread has not heard of that yet.
    world
        .store()
        .call(|engine| change(engine, URL, BROKEN, 2, false))
        .expect("written");
    assert!(
        !world
            .worker
            .post(world.collected(3), at(3))
            .expect("stored")
    );
    assert_eq!(world.waiting(), 0);
}

impl World {
    fn collected(&self, second: i64) -> Collected {
        let worker = &self.worker;
        let mut reader = worker.shared.reader.lock().expect("no panic");
        let collected = collect(
            reader.store(),
            &worker.hook,
            &worker.wishes,
            worker.pace,
            16,
            at(second),
        );
        collected.expect("readable")
    }
}
