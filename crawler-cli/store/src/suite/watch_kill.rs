//! A process that watches URLs is killed at seeded moments, and the next one goes on: nothing is lost, nothing is applied
//! twice, and the counts agree with what is there.

use std::collections::{BTreeMap, HashMap};

use super::kill::{Told, What, say};
use super::watch::Watch;
use super::*;
use plain::random::Random;

/// How many URLs the source of the set has.
const URLS: u32 = 150;

/// What each URL answers, one after the other: each time its state changes.
const ANSWERS: [u16; 3] = [200, 404, 200];

fn url(number: u32) -> String {
    format!("http://host{}/{number}", number % 4)
}

/// Watches until each URL has answered as often as it is to.
pub(super) fn child(store: impl crate::Engine, random: &mut Random) {
    let mut watch = Watch::new(store);
    watch.random = Random::new(random.next_number());
    let mut reading = Some(watch.store.begin_reading("docs", at(0)).expect("written"));
    let mut next = 0;
    loop {
        if let Some(begun) = reading.take() {
            let count = random.next_number() as u32 % 40;
            let batch: Vec<NewUrl> = (next..URLS.min(next + count))
                .map(|number| NewUrl::parse(&url(number)).expect("a URL"))
                .collect();
            watch
                .store
                .read_urls(&begun, &batch, at(0))
                .expect("written");
            next += batch.len() as u32;
            if next < URLS {
                reading = Some(begun);
            } else {
                let swept = watch.store.end_reading(begun, "mark", at(0), 0.5);
                assert_eq!(swept.expect("written"), Swept::Lost(0));
            }
        }
        if !answer_some(&mut watch, random) && reading.is_none() {
            say("end");
            return;
        }
    }
}

/// Returns whether a URL has still to answer.
fn answer_some(watch: &mut Watch<impl crate::Engine>, random: &mut Random) -> bool {
    let lanes = [Lanes::Schedule, Lanes::Doubt];
    let due = lanes
        .into_iter()
        .flat_map(|lanes| watch.due(lanes, Timestamp::MAX));
    let mut due: Vec<DueUrl> = due
        .filter(|due| answers(&due.life) < ANSWERS.len())
        .collect();
    let is_left = !due.is_empty();
    due.truncate(random.next_number() as usize % 20);
    let judgements: Vec<Judgement> = due
        .iter()
        .map(|due| {
            let number = answers(&due.life);
            watch.judgement(due, ANSWERS[number], at(1 + number as i64 * 1_000_000))
        })
        .collect();
    // Some transactions have several changes.
    let is_group = random.next_number().is_multiple_of(3);
    if is_group {
        watch.store.begin_group().expect("begun");
    }
    for judgements in judgements.chunks(7) {
        watch.store.judge(judgements).expect("written");
    }
    if is_group {
        watch.store.end_group().expect("written");
    }
    let said = due.iter().zip(&judgements);
    let said: Vec<String> = said
        .map(|(due, judgement)| format!("{}#{}", due.url, answers(&judgement.life)))
        .collect();
    if !said.is_empty() {
        say(&What::Watch.completed(&said));
    }
    if random.next_number().is_multiple_of(4) {
        let replayed = watch.store.judge(&judgements).expect("written");
        assert_eq!(replayed.stored, 0);
    }
    is_left
}

fn answers(life: &Life) -> usize {
    life.answers().iter().len()
}

/// Checks what holds at any moment. Returns whether all URLs have answered as often as they are to.
pub(super) fn is_over(store: &mut impl crate::Engine, told: &Told, seed: u64) -> bool {
    let mut events_of: HashMap<String, usize> = HashMap::new();
    for event in events(store, Cursor::START) {
        *events_of.entry(event.url).or_default() += 1;
    }
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut counts = WatchCounts::default();
    let visit = &mut |url: WatchedUrl| {
        let (lane, _) = url.due.expect("due");
        assert_eq!(url.sets, 1, "seed {seed}: {}", url.url);
        *counts.states.entry(url.life.state()).or_default() += 1;
        *counts.due.entry(lane).or_default() += 1;
        counts.members += 1;
        known.insert(url.url, answers(&url.life));
        ControlFlow::Continue(())
    };
    store
        .export(&Which::Everything, None, visit)
        .expect("readable");
    counts.hosts = known.len().min(4) as u64;
    assert_eq!(
        store.watch_counts().expect("readable"),
        counts,
        "seed {seed}"
    );
    for (url, answers) in &known {
        let changed = events_of.get(url).copied().unwrap_or(0);
        assert_eq!(changed, *answers, "seed {seed}: {url}");
    }
    for told in &told.completed {
        let (url, number) = told.split_once('#').expect("a number");
        let number: usize = number.parse().expect("a number");
        let stored = known.get(url).copied().unwrap_or(0);
        assert!(stored >= number, "seed {seed}: lost {told}");
    }
    assert_eq!(due_rows(store), counts.due, "seed {seed}");
    known.len() == URLS as usize && known.values().all(|answers| *answers == ANSWERS.len())
}

/// The due rows by lane, by a scan.
fn due_rows(store: &mut impl crate::Engine) -> BTreeMap<Lane, u64> {
    let mut rows: BTreeMap<Lane, u64> = BTreeMap::new();
    for host in 0..4 {
        let host = store
            .host(&format!("http://host{host}/"))
            .expect("readable");
        let Some(host) = host else { continue };
        for lane in Lane::ALL {
            let due = store.due(host.host.id, lane, None, Timestamp::MAX, 1_000);
            for due in due.expect("readable") {
                assert_eq!((due.id.lane, due.id.host), (lane, host.host.id));
                *rows.entry(lane).or_default() += 1;
            }
        }
    }
    rows
}
