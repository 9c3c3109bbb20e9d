//! Tests of what guards leave in the store, and of what they need from it.

use std::collections::HashSet;

use super::watch::{Watch, watch};
use super::*;
use crate::HoldEnd;
use verdict::guard::{Guard, Hold, Stops};

pub(crate) fn holds_survive<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1", "http://a/2", "http://b/1"], at(0));
    watch.answer_all(200, at(1));
    watch
        .store
        .make_due(&Which::Host("http://a/".into()), at(2), None, 10)
        .expect("written");
    watch.answer_all(404, at(2));
    let next = watch
        .next("http://a/1")
        .max(watch.next("http://a/2"))
        .expect("due");
    let suspects = watch.due(Lanes::Doubt, next);
    assert_eq!(suspects.len(), 2);
    let host = suspects[0].id.host;
    let hold = HostHold {
        host,
        root: "http://a/".to_owned(),
        hold: Hold {
            since: at(3),
            sampled_at: Some(at(4)),
            was_sample_good: true,
        },
        held: 2,
        ending: None,
    };
    watch.store.save_hold(&hold).expect("written");
    let amend = |watch: &mut Watch<E::Store>, due: &DueUrl, lane, when, is_held: bool| {
        let (mut life, rules) = (due.life.clone(), watch.rules.clone());
        let change = match is_held {
            true => rules.hold(at(5), &mut life, Guard::HostFlip),
            false => rules.release(at(6), &mut life),
        };
        let change = change.expect("a change");
        let changes = vec![Change::new(&change, None)];
        Amendment {
            id: due.id,
            life,
            changes,
            next: (lane, when),
        }
    };
    let amendments: Vec<Amendment> = suspects
        .iter()
        .map(|due| amend(&mut watch, due, Lane::Held, at(9_000), true))
        .collect();
    let stored = watch.store.amend(&amendments).expect("written");
    assert_eq!((stored.stored, stored.stale), (2, 0));
    assert_eq!(watch.store.amend(&amendments).expect("written").stale, 2);
    assert_eq!(
        watch.store.holds().expect("readable"),
        std::slice::from_ref(&hold)
    );
    // Nobody asks them by time, nor can they be made due.
    for lanes in [Lanes::Schedule, Lanes::Doubt] {
        let due = watch.due_urls(lanes, at(10_000));
        assert!(!due.iter().any(|url| url.contains("//a/")), "{due:?}");
    }
    let made = watch
        .store
        .make_due(&Which::Host("http://a/".into()), at(6), None, 10);
    assert_eq!(made.expect("written").done, 0);
    let held = watch
        .store
        .host("http://a/")
        .expect("readable")
        .expect("known");
    assert_eq!((held.urls, held.held, held.next), (2, 2, None));
    // The end: all of them are due at once, exactly.
    let ending = HostHold {
        ending: Some(HoldEnd::Confirm),
        ..hold
    };
    watch.store.save_hold(&ending).expect("written");
    assert_eq!(watch.store.holds().expect("readable"), [ending]);
    let held = watch
        .store
        .due(host, Lane::Held, None, Timestamp::MAX, 10)
        .expect("readable");
    assert_eq!(held.len(), 2);
    assert!(
        held.iter()
            .all(|due| due.life.state() == State::Quarantined && due.id.due == at(9_000))
    );
    let amendments: Vec<Amendment> = held
        .iter()
        .map(|due| amend(&mut watch, due, Lane::Doubt, at(6), false))
        .collect();
    watch.store.amend(&amendments).expect("written");
    watch.store.end_hold(host).expect("written");
    assert_eq!(watch.store.holds().expect("readable"), []);
    assert_eq!(watch.due(Lanes::Doubt, at(6)).len(), 2);
    let states: Vec<State> = watch
        .show("http://a/1")
        .events
        .iter()
        .map(|event| event.to)
        .collect();
    assert_eq!(
        states,
        [
            State::Alive,
            State::Suspect,
            State::Quarantined,
            State::Suspect
        ]
    );
}

pub(crate) fn what_returns_after_a_hold_is_not_held<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1"], at(0));
    watch.answer_all(404, at(1));
    let next = watch.next("http://a/1").expect("due");
    let due = watch.due(Lanes::Doubt, next).remove(0);
    let mut life = due.life.clone();
    watch.rules.hold(at(2), &mut life, Guard::HostFlip);
    let next = (Lane::Held, at(9_000));
    let amendment = Amendment {
        id: due.id,
        life,
        changes: Vec::new(),
        next,
    };
    watch.store.amend(&[amendment]).expect("written");
    watch
        .store
        .withdraw(None, &Which::Everything, at(3), None, 10)
        .expect("written");
    // The hold ended meanwhile.
    watch.submit("docs", &["http://a/1"], at(4));
    assert_eq!(
        watch.show("http://a/1").url.due,
        Some((Lane::Doubt, at(9_000)))
    );
    assert_eq!(
        watch
            .store
            .host("http://a/")
            .expect("readable")
            .expect("known")
            .held,
        0
    );
}

pub(crate) fn siblings_are_alive<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit(
        "docs",
        &["http://a/1", "http://a/2", "http://a/3", "http://b/1"],
        at(0),
    );
    watch.answer_all(200, at(1));
    watch.submit("docs", &["http://a/new"], at(2));
    watch
        .store
        .make_due(&Which::Urls(vec!["http://a/3".into()]), at(2), None, 10)
        .expect("written");
    let due = watch.due(Lanes::Schedule, at(2));
    let bad = due
        .iter()
        .find(|due| due.url == "http://a/3")
        .expect("due")
        .clone();
    let judgement = watch.judgement(&bad, 404, at(2));
    watch.store.judge(&[judgement]).expect("written");
    let host = bad.id.host;
    let siblings = watch
        .store
        .alive_siblings(host, &HashSet::new(), 20)
        .expect("readable");
    let mut urls: Vec<&str> = siblings.iter().map(|due| &*due.url).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["http://a/1", "http://a/2"]);
    let except = HashSet::from([siblings[0].id.url]);
    let others = watch
        .store
        .alive_siblings(host, &except, 20)
        .expect("readable");
    assert_eq!((others.len(), others[0].id), (1, siblings[1].id));
    assert_eq!(
        watch
            .store
            .alive_siblings(host, &HashSet::new(), 1)
            .expect("readable")
            .len(),
        1
    );
    // A sibling is judged before it is due.
    let judgement = watch.judgement(&siblings[0], 200, at(3));
    assert_eq!(watch.store.judge(&[judgement]).expect("written").stored, 1);
}

pub(crate) fn times_of_guards_are_kept<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let store = &mut watch.store;
    let (own, host) = (Guarded::OwnNetwork, Guarded::Host(HostId(1)));
    assert_eq!(store.stops(own).expect("readable"), Stops::default());
    let mut stops = Stops::default();
    stops.begin(at(0));
    stops.end(at(5));
    stops.begin(at(5));
    store.save_stops(own, &stops).expect("written");
    store.save_stops(host, &Stops::default()).expect("written");
    assert_eq!(store.stops(own).expect("readable"), stops);
    stops.end(at(9));
    store.save_stops(own, &stops).expect("written");
    assert_eq!(store.stops(own).expect("readable"), stops);
    assert_eq!(store.stops(host).expect("readable"), Stops::default());
}

pub(crate) fn cycles_and_notices_are_kept<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let store = &mut watch.store;
    let first = store.begin_cycle(at(0)).expect("written");
    let counts = CycleCounts {
        asked: 5,
        alive: 1,
        in_doubt: 2,
        worse: 1,
        void: 1,
    };
    store.end_cycle(first, &counts, at(1)).expect("written");
    let second = store.begin_cycle(at(2)).expect("written");
    let cycles = store.cycles(10).expect("readable");
    assert_eq!(
        cycles.iter().map(|cycle| cycle.id).collect::<Vec<_>>(),
        [second, first]
    );
    assert_eq!(
        (cycles[0].ended, cycles[1].ended, cycles[1].counts),
        (None, Some(at(1)), counts)
    );
    assert_eq!(store.cycles(1).expect("readable").len(), 1);
    let notice = |text: &str| Notice {
        at: at(3),
        kind: "hold".to_owned(),
        host: None,
        who: Some("operator".to_owned()),
        text: text.to_owned(),
    };
    let first = store.note(&notice("one")).expect("written");
    store.note(&notice("two")).expect("written");
    let all = store.notices(NoticeId::START, 10).expect("readable");
    assert_eq!((all.len(), &all[0]), (2, &(first, notice("one"))));
    assert_eq!(store.notices(first, 10).expect("readable")[0].1.text, "two");
}

pub(crate) fn what_was_last_is_read_first<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    for text in ["0", "1", "2"] {
        let notice = Notice {
            at: at(0),
            kind: "hold".to_owned(),
            host: None,
            who: None,
            text: text.to_owned(),
        };
        watch.store.note(&notice).expect("written");
    }
    let last = watch
        .store
        .notices_before(NoticeId::END, 2)
        .expect("readable");
    let texts: Vec<&str> = last.iter().map(|(_, notice)| &*notice.text).collect();
    assert_eq!(texts, ["2", "1"]);
    let before = watch.store.notices_before(last[1].0, 2).expect("readable");
    assert_eq!((before.len(), &*before[0].1.text), (1, "0"));

    watch.submit("docs", &["http://a/1", "http://b/1", "http://b/2"], at(0));
    watch.answer_all(200, at(1));
    let all = events(&mut watch.store, Cursor::START);
    let mut latest = watch.store.events_before(Cursor::END, 2).expect("readable");
    let rest = watch
        .store
        .events_before(latest[1].cursor, 2)
        .expect("readable");
    latest.extend(rest);
    latest.reverse();
    assert_eq!((latest.len(), latest), (3, all));

    // What was pruned, with its host.
    let due = watch.due(Lanes::Schedule, at(10_000_000));
    let mut hosts = Vec::new();
    for (second, (due, to)) in
        (100..).zip(due.iter().zip([State::Gone, State::Pruned, State::Pruned]))
    {
        let mut judgement = watch.judgement(due, 410, at(second));
        judgement.changes[0].to = to;
        watch.store.judge(&[judgement]).expect("written");
        hosts.push(due.id.host);
    }
    let pruned = [(at(101), hosts[1]), (at(102), hosts[2])];
    let store = &mut watch.store;
    assert_eq!(store.pruned(at(101), 9).expect("readable"), pruned);
    assert_eq!(store.pruned(at(102), 9).expect("readable"), pruned[1..]);
    assert_eq!(store.pruned(at(0), 1).expect("readable"), pruned[1..]);
}
