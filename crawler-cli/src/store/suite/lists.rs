//! Lists that are read a page at a time.

use super::watch::{Watch, watch};
use super::*;
use crate::check::guard::Hold;

/// The URLs of a list, read in pages of this size. `between` runs before each page but the first.
pub(super) fn listed<S: crate::store::Engine>(
    watch: &mut Watch<S>,
    list: &UrlList,
    limit: usize,
    mut between: impl FnMut(&mut Watch<S>),
) -> Vec<String> {
    let (mut list, mut urls) = (list.clone(), Vec::new());
    loop {
        let page = watch.store.urls(&list, limit).expect("readable");
        assert!(page.rows.len() <= limit);
        urls.extend(page.rows.into_iter().map(|url| url.url));
        list.after = page.next;
        if list.after.is_none() {
            return urls;
        }
        between(watch);
    }
}

fn of_host(host: &str, state: Option<State>) -> UrlList {
    UrlList {
        host: Some(format!("http://{host}/")),
        state,
        ..UrlList::default()
    }
}

fn urls(host: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|n| format!("http://{host}/{n:03}")).collect()
}

impl<S: crate::store::Engine> Watch<S> {
    fn submit_all(&mut self, set: &str, urls: &[String], now: Timestamp) {
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        self.submit(set, &urls, now);
    }

    /// Asks these URLs, and answers with this status.
    fn answer(&mut self, urls: &[String], number: u16, now: Timestamp) {
        let which = Which::Urls(urls.to_vec());
        self.store.make_due(&which, now, None, 0).expect("written");
        let mut due = self.due(Lanes::Schedule, now);
        due.extend(self.due(Lanes::Doubt, now));
        due.retain(|due| urls.contains(&due.url));
        assert_eq!(due.len(), urls.len());
        let judge = |due: &DueUrl| self.judgement(due, number, now);
        let judgements: Vec<Judgement> = due.iter().map(judge).collect();
        self.store.judge(&judgements).expect("written");
    }
}

pub(crate) fn lists_go_on_while_urls_move<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let all = urls("a", 0..40);
    watch.submit_all("docs", &all, at(0));
    watch.answer_all(200, at(1));
    watch.answer(&all[10..30], 410, at(10));
    let of_set = UrlList {
        set: Some("docs".to_owned()),
        ..UrlList::default()
    };
    // From page to page URLs become suspects, or alive again. All others are in the list once.
    for (round, list) in (1..).zip([UrlList::default(), of_host("a", None), of_set]) {
        let mut moved: Vec<String> = Vec::new();
        let found = listed(&mut watch, &list, 7, |watch| {
            let url = all[moved.len() * 11 % 40].clone();
            let status = [200, 410][moved.len() % 2];
            let now = at(round * 100 + moved.len() as i64);
            watch.answer(std::slice::from_ref(&url), status, now);
            moved.push(url);
        });
        assert!(moved.len() >= 5, "{list:?}");
        let is_still = |url: &&String| !moved.contains(url);
        let mut still: Vec<&String> = found.iter().filter(is_still).collect();
        still.sort();
        let expected: Vec<&String> = all.iter().filter(is_still).collect();
        assert_eq!(still, expected, "{list:?}");
    }
    let unknown = UrlList {
        set: Some("other".to_owned()),
        ..UrlList::default()
    };
    for list in [unknown, of_host("other", None)] {
        assert_eq!(listed(&mut watch, &list, 7, |_| {}), [""; 0]);
    }
}

pub(crate) fn what_is_wrong_with_a_host_comes_first<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let (a, b) = (urls("a", 0..6), urls("b", 0..3));
    watch.submit_all("docs", &a, at(0));
    watch.submit_all("docs", &b, at(1));
    watch.answer_all(200, at(10));
    watch.answer(&a[4..6], 410, at(20));
    watch.answer(&a[2..3], 410, at(30));
    watch.answer(&b, 410, at(40));
    let suspects = listed(&mut watch, &of_host("a", Some(State::Suspect)), 1, |_| {});
    assert_eq!(suspects, [&a[2..3], &a[4..6]].concat());
    let all = listed(&mut watch, &of_host("a", None), 2, |_| {});
    assert_eq!((all.len(), &all[..3]), (6, &suspects[..]));
    let due: Vec<Option<Timestamp>> = all[3..].iter().map(|url| watch.next(url)).collect();
    assert!(due.is_sorted());
    let alive = listed(&mut watch, &of_host("a", Some(State::Alive)), 2, |_| {});
    assert_eq!(alive, all[3..]);
    // What waits for an operator has no due row, but is no less there.
    let due = watch.due(Lanes::Schedule, at(1_000_000));
    let waits = due.iter().find(|due| due.url == a[0]).expect("due");
    let mut judgement = watch.judgement(waits, 200, at(50));
    judgement.next = None;
    watch.store.judge(&[judgement]).expect("written");
    let all = listed(&mut watch, &of_host("a", None), 2, |_| {});
    assert_eq!((all.len(), &*all[3]), (6, &*a[0]));

    let host = |watch: &mut Watch<E::Store>, root: &str| {
        let host = watch.store.host(root).expect("readable");
        host.expect("known").host.id
    };
    let (of_a, of_b) = (host(&mut watch, "http://a/"), host(&mut watch, "http://b/"));
    let mut troubles = |host, limit| {
        let troubles = watch.store.troubles(host, limit).expect("readable");
        troubles.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(troubles(of_a, 1_000), [(State::Suspect, 3)]);
    assert_eq!(troubles(of_a, 2), [(State::Suspect, 2)]);
    assert_eq!(troubles(of_b, 1_000), [(State::Suspect, 3)]);
    // What left its last set is in no list.
    let which = Which::Urls(vec![b[0].clone()]);
    let withdrawn = watch.store.withdraw(None, &which, at(60), None, 0);
    assert_eq!(withdrawn.expect("written").done, 1);
    let mut found = listed(&mut watch, &of_host("b", None), 9, |_| {});
    found.sort();
    assert_eq!(found, b[1..]);
    let troubles = watch.store.troubles(of_b, 1_000).expect("readable");
    assert_eq!(troubles[&State::Suspect], 2);
    watch.submit_all("docs", &b[..1], at(70));
    let found = listed(&mut watch, &of_host("b", Some(State::Suspect)), 9, |_| {});
    assert_eq!(found, b);
}

pub(crate) fn a_page_looks_at_few_rows<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let all = urls("a", 0..LOOKS + 2);
    watch.submit_all("docs", &all, at(0));
    watch.submit_all("few", &all[LOOKS + 1..], at(0));
    let list = UrlList {
        set: Some("few".to_owned()),
        ..of_host("a", None)
    };
    let first = watch.store.urls(&list, 10).expect("readable");
    assert_eq!(first.rows.len(), 0);
    assert!(first.next.is_some());
    assert_eq!(listed(&mut watch, &list, 10, |_| {}), all[LOOKS + 1..]);
}

pub(crate) fn hosts_are_listed_by_name_and_by_time<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let hosts = [
        "https://b.test/",
        "http://a.test/",
        "http://b.test:81/",
        "https://a.test/",
        "http://c.test/",
    ];
    for (hour, host) in (1..).zip(hosts) {
        watch.submit("docs", &[host], at(hour * 3600));
    }
    watch.submit("other", &["http://ab.test/"], at(0));
    let withdrawn = Which::Set("other".to_owned());
    watch
        .store
        .withdraw(None, &withdrawn, at(0), None, 9)
        .expect("written");
    let mut listed = |list: HostList, limit| {
        let (mut next, mut roots) = (Some(list), Vec::new());
        while let Some(list) = next {
            let page = watch.store.hosts(&list, limit).expect("readable");
            assert!(page.rows.len() <= limit);
            roots.extend(page.rows.into_iter().map(|detail| detail.host.root));
            next = page.next;
        }
        roots
    };
    let named = |prefix: &str| HostList::Named {
        prefix: prefix.to_owned(),
        after: None,
    };
    let by_name = [hosts[3], hosts[0], hosts[1], hosts[2], hosts[4]];
    for limit in 1..6 {
        assert_eq!(listed(named(""), limit), by_name);
        assert_eq!(listed(named("B"), limit), [hosts[0], hosts[2]]);
        assert_eq!(listed(named("b.test:"), limit), [hosts[2]]);
        assert_eq!(listed(named("d"), limit), [""; 0]);
        assert_eq!(listed(HostList::Waiting { after: None }, limit), hosts);
    }
}

pub(crate) fn holds_notices_and_changes_are_read_in_pages<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    assert_eq!(watch.store.last_cursor().expect("readable"), Cursor::START);
    for host in ["a", "b", "c"] {
        watch.submit_all("docs", &urls(host, 0..2), at(0));
    }
    let judgements = watch.answer_all(200, at(1));
    let hosts: Vec<HostId> = judgements.iter().map(|judged| judged.id.host).collect();
    let store = &mut watch.store;
    for (second, host) in (0..).zip([hosts[4], hosts[0], hosts[2]]) {
        let hold = HostHold {
            host,
            root: String::new(),
            hold: Hold {
                since: at(second),
                sampled_at: None,
                was_sample_good: false,
            },
            held: 0,
            ending: None,
        };
        store.save_hold(&hold).expect("written");
        store
            .note(&Notice {
                at: at(second),
                kind: "hold".to_owned(),
                host: Some(host),
                who: None,
                text: second.to_string(),
            })
            .expect("written");
    }
    let all = store.holds().expect("readable");
    let first = store.holds_after(None, 2).expect("readable");
    let rest = store.holds_after(Some(first[1].host), 2).expect("readable");
    assert_eq!((first.len(), [first, rest].concat()), (2, all));

    let last = store.notices_before(NoticeId::END, 2).expect("readable");
    let texts: Vec<&str> = last.iter().map(|(_, notice)| &*notice.text).collect();
    assert_eq!(texts, ["2", "1"]);
    let before = store.notices_before(last[1].0, 2).expect("readable");
    assert_eq!((before.len(), &*before[0].1.text), (1, "0"));

    let all = events(store, Cursor::START);
    assert_eq!(store.last_cursor().expect("readable"), all[5].cursor);
    let mut latest = store.events_before(Cursor::END, 4).expect("readable");
    latest.extend(store.events_before(latest[3].cursor, 4).expect("readable"));
    latest.reverse();
    assert_eq!(latest, all);
    assert_eq!(store.damped_events(Cursor::START, 9).expect("readable"), []);

    // The changes of URLs that were flapping are found among all others.
    let due = watch.due(Lanes::Schedule, at(10_000_000));
    let judgements: Vec<Judgement> = (0..)
        .zip(&due)
        .map(|(number, due)| {
            let mut judgement = watch.judgement(due, 410, at(10));
            judgement.changes[0].is_damped = number % 2 == 1;
            judgement
        })
        .collect();
    watch.store.judge(&judgements).expect("written");
    let mut damped = events(&mut watch.store, all[5].cursor);
    assert_eq!(damped.len(), 6);
    damped.retain(|event| event.is_damped);
    assert_eq!(damped.len(), 3);
    // What was pruned, with its host.
    let due = watch.due(Lanes::Doubt, at(20_000_000));
    let states = [State::Gone, State::Pruned, State::Pruned];
    let mut hosts = Vec::new();
    for (second, (due, to)) in due.iter().zip(states).enumerate() {
        let mut judgement = watch.judgement(due, 410, at(100 + second as i64));
        let mut change = judgements[0].changes[0].clone();
        (change.at, change.from, change.to) = (at(100 + second as i64), State::Suspect, to);
        judgement.changes = vec![change];
        watch.store.judge(&[judgement]).expect("written");
        hosts.push(due.id.host);
    }
    let pruned = [(at(101), hosts[1]), (at(102), hosts[2])];
    let store = &mut watch.store;
    assert_eq!(store.pruned(at(101), 9).expect("readable"), pruned);
    assert_eq!(store.pruned(at(102), 9).expect("readable"), pruned[1..]);
    assert_eq!(store.pruned(at(0), 1).expect("readable"), pruned[1..]);
    let found = store.damped_events(Cursor::START, 2).expect("readable");
    assert_eq!(found, damped[..2]);
    let rest = store.damped_events(found[1].cursor, 2).expect("readable");
    assert_eq!(rest, damped[2..]);
}
