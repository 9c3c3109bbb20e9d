//! Dead letters.

use super::jobs::{counts, job, keyed, retry, settle, start};
use super::*;

fn letter(reason: &str, seconds: i64) -> NewDeadLetter {
    NewDeadLetter {
        reason: reason.to_owned(),
        attempts: 3,
        last: "GET / HTTP/1.1".to_owned(),
        first_at: at(seconds),
        last_at: at(seconds),
    }
}

fn text(text: &str) -> Buried {
    Buried::Text(text.to_owned())
}

fn found(store: &mut impl JobStore, filter: &DeadLetterFilter) -> Vec<DeadLetter> {
    let mut found = Vec::new();
    store
        .dead_letters(filter, DeadLetterId::START, &mut |letter| {
            found.push(letter);
            ControlFlow::Continue(())
        })
        .expect("readable");
    found
}

fn all(store: &mut impl JobStore) -> Vec<DeadLetter> {
    found(store, &DeadLetterFilter::default())
}

fn reasons(store: &mut impl JobStore) -> Vec<(String, u64)> {
    store.dead_letter_counts().expect("readable")
}

fn count(reason: &str, letters: u64) -> (String, u64) {
    (reason.to_owned(), letters)
}

fn replay(store: &mut impl JobStore, seconds: i64) -> Replayed {
    let filter = DeadLetterFilter::default();
    let replayed = store.replay(&filter, DeadLetterId::START, 100, at(seconds));
    replayed.expect("written")
}

pub(crate) fn the_last_attempt_ends_as_a_dead_letter<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let enqueued = store.enqueue(&[keyed("a", 60)], at(0)).expect("written");
    for attempt in 1..=3 {
        let started = start(&mut store, attempt * 10, 9);
        let settled = settle(
            &mut store,
            &started[0],
            retry(attempt * 10 + 10),
            attempt * 10 + 1,
        );
        assert_eq!(settled.dead.len(), usize::from(attempt == 3));
    }
    assert_eq!(counts(&mut store), (0, 0));
    let [dead] = &all(&mut store)[..] else {
        panic!("one dead letter");
    };
    let subject = Subject::Job {
        id: enqueued[0].id(),
        queue: "mail".to_owned(),
        key: Some("a".to_owned()),
        payload: b"a".to_vec(),
    };
    assert_eq!(dead.subject, subject);
    assert_eq!(
        (&*dead.letter.reason, &*dead.letter.last),
        (ATTEMPTS, "status 503")
    );
    assert_eq!(
        (dead.letter.first_at, dead.letter.last_at),
        (at(11), at(31))
    );
    assert_eq!((dead.letter.attempts, dead.replayed_at), (3, None));
    assert_eq!(reasons(&mut store), [count(ATTEMPTS, 1)]);
    // A job that failed for good needs no further attempt.
    store.enqueue(&[job("2")], at(40)).expect("written");
    let started = start(&mut store, 40, 9);
    let dead = Settled::Dead {
        reason: "delisted".to_owned(),
        last: "404 Not Found".to_owned(),
    };
    assert_eq!(settle(&mut store, &started[0], dead, 41).dead.len(), 1);
    assert_eq!(
        reasons(&mut store),
        [count(ATTEMPTS, 1), count("delisted", 1)]
    );
}

pub(crate) fn dead_letters_are_kept_once<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store.add(&[link_to("http://a/1", 1)]).expect("written");
    let url = Buried::Url(UrlId(1));
    let first = store.bury(&url, &letter("protocol", 1)).expect("written");
    let again = store.bury(&url, &letter("protocol", 9)).expect("written");
    assert_eq!(first, again);
    store
        .bury(&url, &letter("redirect_loop", 2))
        .expect("written");
    let text = text("http://[");
    store
        .bury(&text, &letter("invalid_url", 3))
        .expect("written");
    store
        .bury(&text, &letter("invalid_url", 4))
        .expect("written");
    let all = all(&mut store);
    assert_eq!(all.len(), 3);
    assert_eq!(store.letters_of(UrlId(1)).expect("readable"), all[..2]);
    assert_eq!(store.letters_of(UrlId(2)).expect("readable"), []);
    let subject = Subject::Url {
        id: UrlId(1),
        url: "http://a/1".to_owned(),
    };
    assert_eq!(all[0].subject, subject);
    assert_eq!(
        (all[0].letter.first_at, all[0].letter.last_at),
        (at(1), at(9))
    );
    assert_eq!(all[2].subject, Subject::Text("http://[".to_owned()));
    let counted = [
        count("invalid_url", 1),
        count("protocol", 1),
        count("redirect_loop", 1),
    ];
    assert_eq!(reasons(&mut store), counted);
}

pub(crate) fn dead_letters_are_found_by_what_they_are<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    let links = [
        link_to("http://a.example/1", 1),
        link_to("https://B.example:8443/2", 2),
    ];
    store.add(&links).expect("written");
    for (number, seconds) in [(1, 10), (2, 20)] {
        let url = Buried::Url(UrlId(number));
        store
            .bury(&url, &letter("protocol", seconds))
            .expect("written");
    }
    store
        .bury(&text("no"), &letter("invalid_url", 30))
        .expect("written");
    store.enqueue(&[job("1")], at(40)).expect("written");
    let started = start(&mut store, 40, 9);
    let dead = Settled::Dead {
        reason: "delisted".to_owned(),
        last: String::new(),
    };
    settle(&mut store, &started[0], dead, 40);
    let mut ids = |filter: DeadLetterFilter| {
        let found = found(&mut store, &filter);
        found.iter().map(|found| found.id.0).collect::<Vec<_>>()
    };
    let filter = DeadLetterFilter::default;
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(ids(filter()), [1, 2, 3, 4]);
    assert_eq!(
        ids(DeadLetterFilter {
            reason: some("protocol"),
            ..filter()
        }),
        [1, 2]
    );
    assert_eq!(
        ids(DeadLetterFilter {
            host: some("b.example"),
            ..filter()
        }),
        [2]
    );
    assert_eq!(
        ids(DeadLetterFilter {
            host: some("example"),
            ..filter()
        }),
        [0; 0]
    );
    assert_eq!(
        ids(DeadLetterFilter {
            queue: some("mail"),
            ..filter()
        }),
        [4]
    );
    assert_eq!(
        ids(DeadLetterFilter {
            since: Some(at(20)),
            ..filter()
        }),
        [2, 3, 4]
    );
    assert_eq!(
        ids(DeadLetterFilter {
            id: Some(DeadLetterId(3)),
            ..filter()
        }),
        [3]
    );
    let none = store.dead_letter(DeadLetterId(5)).expect("readable");
    assert_eq!(none, None);
    let protocol = DeadLetterFilter {
        reason: some("protocol"),
        ..filter()
    };
    assert_eq!(store.drop_dead_letters(&protocol, 1).expect("written"), 1);
    assert_eq!(store.drop_dead_letters(&protocol, 9).expect("written"), 1);
    assert_eq!(all(&mut store).len(), 2);
    assert_eq!(
        reasons(&mut store),
        [count("delisted", 1), count("invalid_url", 1)]
    );
}

pub(crate) fn a_replay_is_done_once<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let once = |job: NewJob| NewJob {
        max_attempts: 1,
        ..job
    };
    let new = [once(keyed("a", 60)), once(job("b"))];
    store.enqueue(&new, at(0)).expect("written");
    for started in start(&mut store, 0, 9) {
        settle(&mut store, &started, retry(5), 1);
    }
    store
        .bury(&text("no"), &letter("invalid_url", 1))
        .expect("written");
    let letters: Vec<DeadLetterId> = all(&mut store).iter().map(|letter| letter.id).collect();
    // In pieces.
    let filter = DeadLetterFilter::default();
    let first = store
        .replay(&filter, DeadLetterId::START, 1, at(10))
        .expect("written");
    assert_eq!((first.count, first.next), (1, Some(letters[0])));
    assert_eq!(counts(&mut store), (1, 0));
    let rest = replay(&mut store, 10);
    assert_eq!((rest.count, rest.passed, rest.next), (1, 1, None));
    assert_eq!(replay(&mut store, 11).count, 0, "once");
    assert_eq!(reasons(&mut store), [count("invalid_url", 1)]);
    assert_eq!(all(&mut store).len(), 1);
    let replayed = store
        .dead_letter(letters[0])
        .expect("readable")
        .expect("kept");
    assert_eq!(replayed.replayed_at, Some(at(10)));
    // Both have all of their attempts, and are the same dead letters when they fail again.
    let started = start(&mut store, 20, 9);
    assert_eq!(started.len(), 2);
    for started in &started {
        assert_eq!((started.attempt, started.max_attempts), (1, 1));
        settle(&mut store, started, retry(30), 21);
    }
    let again: Vec<DeadLetterId> = all(&mut store).iter().map(|letter| letter.id).collect();
    assert_eq!(again, letters);
    assert_eq!(
        reasons(&mut store),
        [count(ATTEMPTS, 2), count("invalid_url", 1)]
    );
    // A job that waits already is not stored again.
    assert_eq!(replay(&mut store, 30).count, 2);
    let known = store
        .enqueue(&[once(keyed("a", 60))], at(31))
        .expect("written");
    assert!(matches!(known[..], [Enqueued::Known(_)]));
    assert_eq!(counts(&mut store), (2, 0));
}

pub(crate) fn a_dead_letter_has_the_last_job_of_its_key<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    for (seconds, payload, max_attempts) in [(0, "first", 1), (10, "second", 2)] {
        let new = NewJob {
            max_attempts,
            ..job(payload).with_key("AAPL")
        };
        store.enqueue(&[new], at(seconds)).expect("written");
        let started = start(&mut store, seconds, 9);
        let dead = Settled::Dead {
            reason: format!("{payload} delisted"),
            last: String::new(),
        };
        settle(&mut store, &started[0], dead, seconds);
    }
    assert_eq!(reasons(&mut store), [count("second delisted", 1)]);
    assert_eq!(all(&mut store)[0].times, 2);
    assert_eq!(replay(&mut store, 20).count, 1);
    let started = start(&mut store, 20, 9);
    assert_eq!(started[0].payload, b"second");
    assert_eq!(started[0].max_attempts, 2);
}

pub(crate) fn old_dead_letters_are_dropped_but_those_of_urls<E: Engine>() {
    let (_engine, mut store) = begun::<E>();
    store
        .add(&[link_to("http://a.example/1", 1)])
        .expect("written");
    let url = Buried::Url(UrlId(1));
    store.bury(&url, &letter("protocol", 1)).expect("written");
    for (name, seconds) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        let buried = store.bury(&text(name), &letter("invalid_url", seconds));
        buried.expect("written");
    }
    let mut expire = |limit| store.expire_dead_letters(at(4), limit).expect("written");
    assert_eq!([expire(2), expire(2), expire(2)], [2, 1, 0]);
    assert_eq!(
        reasons(&mut store),
        [count("invalid_url", 1), count("protocol", 1)]
    );
}

pub(crate) fn the_last_exchange_is_cut<E: Engine>() {
    let engine = E::new();
    let mut store = engine.open();
    let long = NewDeadLetter {
        last: "a".to_owned() + &"é".repeat(5000),
        ..letter("protocol", 1)
    };
    let id = store.bury(&text("x"), &long).expect("written");
    let kept = store.dead_letter(id).expect("readable").expect("kept");
    assert_eq!(kept.letter.last.len(), LAST_EXCHANGE - 1);
    assert!(long.last.starts_with(&kept.letter.last));
}
