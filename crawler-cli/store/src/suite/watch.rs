//! Tests of watched URLs: due rows and judgements.

use std::collections::HashSet;

use super::*;
use plain::random::Random;
use verdict::life::{Context, Profile, Rules};

/// A watched store whose time goes on as the test says.
pub(super) struct Watch<S> {
    pub(super) store: S,
    pub(super) rules: Rules,
    pub(super) random: Random,
}

pub(super) fn new_urls(urls: &[&str]) -> Vec<NewUrl> {
    let parse = |url: &&str| NewUrl::parse(url).expect("a URL");
    urls.iter().map(parse).collect()
}

impl<S: crate::Engine> Watch<S> {
    pub(super) fn new(store: S) -> Self {
        Self {
            store,
            rules: Profile::Default.rules(),
            random: Random::new(1),
        }
    }

    pub(super) fn submit(&mut self, set: &str, urls: &[&str], now: Timestamp) -> Submitted {
        let urls = new_urls(urls);
        let submitted = self.store.submit(set, Origin::Hand, &urls, now);
        submitted.expect("written")
    }

    /// All that is due in these lanes, by host.
    pub(super) fn due(&mut self, lanes: Lanes, now: Timestamp) -> Vec<DueUrl> {
        let ready = self.store.ready(lanes, now, &HashSet::new(), 1000);
        let mut urls = Vec::new();
        for ready in ready.expect("readable") {
            for &lane in lanes.lanes() {
                let due = self.store.due(ready.host.id, lane, None, now, 1000);
                urls.extend(due.expect("readable"));
            }
        }
        urls
    }

    pub(super) fn due_urls(&mut self, lanes: Lanes, now: Timestamp) -> Vec<String> {
        let due = self.due(lanes, now).into_iter();
        due.map(|due| due.url).collect()
    }

    /// What the status makes of a URL.
    pub(super) fn judgement(&mut self, due: &DueUrl, number: u16, now: Timestamp) -> Judgement {
        judged(due, number, now, &self.rules, &mut self.random)
    }

    /// Answers all that is due with this status.
    pub(super) fn answer_all(&mut self, number: u16, now: Timestamp) -> Vec<Judgement> {
        let mut due = self.due(Lanes::Schedule, now);
        due.extend(self.due(Lanes::Doubt, now));
        let judgements: Vec<Judgement> = due
            .iter()
            .map(|due| self.judgement(due, number, now))
            .collect();
        let completion = self.store.judge(&judgements).expect("written");
        assert_eq!(
            (completion.stored as usize, completion.stale),
            (judgements.len(), 0)
        );
        judgements
    }

    pub(super) fn show(&mut self, url: &str) -> UrlDetail {
        self.store.show(url).expect("readable").expect("known")
    }

    pub(super) fn next(&mut self, url: &str) -> Option<Timestamp> {
        self.show(url).url.due.map(|(_, due)| due)
    }
}

/// What the status makes of a URL that is due.
pub(crate) fn judged(
    due: &DueUrl,
    number: u16,
    now: Timestamp,
    rules: &Rules,
    random: &mut Random,
) -> Judgement {
    let context = Context {
        is_control_fine: true,
        ..Context::default()
    };
    let (mut life, answer) = (due.life.clone(), status(number));
    let verdict = (answer.verdict, answer.status);
    let decision = rules.decide(now, &mut life, verdict, &context, random);
    let change = decision
        .transition
        .map(|change| Change::new(&change, answer.status));
    Judgement {
        id: due.id,
        next: Some((Lane::of(life.state(), false), decision.due)),
        answer: Some(answer),
        changes: change.into_iter().collect(),
        life,
        dead_letter: None,
    }
}

pub(super) fn watch<E: Engine>() -> (E, Watch<E::Store>) {
    let engine = E::new();
    let store = engine.open();
    (engine, Watch::new(store))
}

pub(crate) fn new_urls_are_due_at_once<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    assert_eq!(
        watch.store.next_due(Lanes::Schedule).expect("readable"),
        None
    );
    let submitted = watch.submit(
        "docs",
        &["http://a/1", "http://b/2", "http://a/1#part"],
        at(5),
    );
    assert_eq!(
        (submitted.new, submitted.known, submitted.gone),
        (2, 1, vec![])
    );
    assert_eq!(
        watch.store.next_due(Lanes::Schedule).expect("readable"),
        Some(at(5))
    );
    assert!(watch.due(Lanes::Schedule, at(4)).is_empty());
    assert!(watch.due(Lanes::Doubt, at(9)).is_empty());
    let due = watch.due(Lanes::Schedule, at(5));
    let urls: Vec<&str> = due.iter().map(|due| &*due.url).collect();
    assert_eq!(urls, ["http://a/1", "http://b/2"]);
    assert!(
        due.iter()
            .all(|due| due.life == Life::default() && due.added == at(5))
    );
    let ready = watch
        .store
        .ready(Lanes::Schedule, at(5), &HashSet::new(), 10);
    let ready = ready.expect("readable");
    assert_eq!(
        (&*ready[0].host.root, ready[0].next, ready[0].urls),
        ("http://a/", at(5), 1)
    );
    // Hosts that are being asked are left out.
    let except = ready[..1].iter().map(|ready| ready.host.id).collect();
    let rest = watch
        .store
        .ready(Lanes::Schedule, at(5), &except, 10)
        .expect("readable");
    assert_eq!((rest.len(), &*rest[0].host.root), (1, "http://b/"));
    // A lane is read on from any row.
    let after = Some((due[0].id.due, due[0].id.url));
    let (host, until) = (due[0].id.host, Timestamp::MAX);
    let rest = watch
        .store
        .due(host, Lane::Routine, after, until, 10)
        .expect("readable");
    assert!(rest.is_empty());
}

pub(crate) fn a_judgement_that_is_replayed_changes_nothing<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1"], at(0));
    let first = watch.answer_all(404, at(1));
    let replayed = watch.store.judge(&first).expect("written");
    assert_eq!((replayed.stored, replayed.stale), (0, 1));
    let next = watch.next("http://a/1").expect("due");
    watch.answer_all(200, next);
    // Also when others came between.
    let replayed = watch.store.judge(&first).expect("written");
    assert_eq!((replayed.stored, replayed.stale), (0, 1));
    let detail = watch.show("http://a/1");
    assert_eq!(detail.url.life.state(), State::Alive);
    let states: Vec<State> = detail.events.iter().map(|event| event.to).collect();
    assert_eq!(states, [State::Suspect, State::Alive]);
    assert_eq!(events(&mut watch.store, Cursor::START).len(), 2);
}

pub(crate) fn judgements_about_withdrawn_urls_are_stale<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1"], at(0));
    let due = watch.due(Lanes::Schedule, at(0));
    let judgement = watch.judgement(&due[0], 200, at(1));
    watch
        .store
        .withdraw(None, &Which::Everything, at(1), None, 10)
        .expect("written");
    assert_eq!(watch.store.judge(&[judgement]).expect("written").stale, 1);
    assert_eq!(watch.show("http://a/1").url.answer, None);
}

pub(crate) fn what_is_gone_is_said_when_it_is_submitted_again<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1", "http://a/2"], at(0));
    let mut now = at(0);
    while watch.show("http://a/1").url.life.state() != State::Gone {
        watch.answer_all(410, now);
        now = watch
            .next("http://a/1")
            .max(watch.next("http://a/2"))
            .expect("due");
    }
    let again = watch.submit("other", &["http://a/9", "http://a/1"], now);
    assert_eq!((again.new, again.known, again.gone), (1, 1, vec![1]));
    assert_eq!(watch.show("http://a/1").sets, ["docs", "other"]);
    let counts = watch.store.watch_counts().expect("readable");
    assert_eq!(counts.due.get(&Lane::Gone), Some(&2));
}

pub(crate) fn what_is_written_late_is_due_nevertheless<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1", "http://a/2", "http://a/3"], at(0));
    let due = watch.due(Lanes::Schedule, at(0));
    // Somebody has looked at all that is due until then.
    let until = at(10_000);
    assert!(watch.due(Lanes::Doubt, until).is_empty());
    let mut judgements = Vec::new();
    for due in &due {
        let mut judgement = watch.judgement(due, 410, at(1));
        judgement.next = Some((Lane::Doubt, at(50)));
        judgements.push(judgement);
    }
    watch.store.judge(&judgements).expect("written");
    assert_eq!(watch.due(Lanes::Doubt, until).len(), 3);
    // And piece by piece, none twice and none left out.
    let (mut after, mut read) = (None, Vec::new());
    loop {
        let piece = watch
            .store
            .due(due[0].id.host, Lane::Doubt, after, until, 1);
        let Some(row) = piece.expect("readable").pop() else {
            break;
        };
        after = Some((row.id.due, row.id.url));
        read.push(row.url);
    }
    assert_eq!(read, ["http://a/1", "http://a/2", "http://a/3"]);
}

pub(crate) fn what_a_clock_that_was_ahead_left_is_due_now<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1", "http://a/2", "http://b/1"], at(0));
    let soon = watch.due(Lanes::Schedule, at(0)).remove(0);
    let judgement = watch.judgement(&soon, 200, at(1));
    watch.store.judge(&[judgement]).expect("written");
    let usual = watch.next(&soon.url).expect("due");
    // A clock that was ahead.
    let year = 400 * 86_400;
    for due in watch.due(Lanes::Schedule, at(0)) {
        let judgement = watch.judgement(&due, 200, at(year));
        watch.store.judge(&[judgement]).expect("written");
    }
    let (mut done, mut after) = (0, None);
    loop {
        let piece = watch.store.bring_forward(at(2), after, 2);
        let piece = piece.expect("written");
        done += piece.done;
        after = piece.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(done, 2);
    assert_eq!(watch.next(&soon.url), Some(usual));
    assert_eq!(watch.due(Lanes::Schedule, at(2)).len(), 2);
}

pub(crate) fn urls_at_private_addresses_are_counted_and_made_due<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    watch.submit("docs", &["http://a/1", "http://a/2", "http://b/1"], at(0));
    let mut judgements = Vec::new();
    for due in watch.due(Lanes::Schedule, at(0)) {
        let mut judgement = watch.judgement(&due, 200, at(1));
        if due.url.starts_with("http://a/") {
            let private = Verdict::Failed(Cause::PrivateAddress);
            judgement.answer.as_mut().expect("an answer").verdict = private;
        }
        judgements.push(judgement);
    }
    watch.store.judge(&judgements).expect("written");
    let counted =
        |watch: &mut Watch<E::Store>| watch.store.watch_counts().expect("readable").private;
    assert_eq!(counted(&mut watch), 2);
    let which = Which::Urls(vec!["http://a/2".into()]);
    let withdrawn = watch.store.withdraw(None, &which, at(2), None, 10);
    assert_eq!(
        (withdrawn.expect("written").done, counted(&mut watch)),
        (1, 1)
    );
    watch.submit("docs", &["http://a/2"], at(2));
    assert_eq!(counted(&mut watch), 2);
    let made = watch.store.make_due(&Which::Private, at(3), None, 10);
    assert_eq!(made.expect("written").done, 2);
    assert_eq!(
        watch.due_urls(Lanes::Schedule, at(3)),
        ["http://a/1", "http://a/2"]
    );
    watch.answer_all(200, at(3));
    assert_eq!(counted(&mut watch), 0);
}

pub(crate) fn a_clock_that_jumps_hides_nothing<E: Engine>() {
    let (_engine, mut watch) = watch::<E>();
    let day = 86_400;
    watch.submit("docs", &["http://a/1"], at(day));
    // The clock is set back by a day: the URL is due when the time comes again, or when it is made due.
    assert!(watch.due(Lanes::Schedule, at(0)).is_empty());
    assert_eq!(watch.due(Lanes::Schedule, at(day)).len(), 1);
    let made = watch
        .store
        .make_due(&Which::Everything, at(1), None, 10)
        .expect("written");
    assert_eq!((made.done, watch.due(Lanes::Schedule, at(1)).len()), (1, 1));
    // A judgement from before its due time is stored.
    watch.answer_all(200, at(1));
    let due = watch.next("http://a/1").expect("due");
    assert!(due > at(1));
}
