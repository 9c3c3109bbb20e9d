//! Random changes of watched URLs, compared with a model in memory.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;

use super::watch::{Watch, new_urls};
use super::*;

pub(crate) fn watching_agrees_with_the_model<E: Engine>() {
    for_random_steps(step(), 40, |steps| {
        let engine = E::new();
        let mut watch = Watch::new(engine.open());
        let mut model = Model::default();
        for (number, step) in (1..).zip(steps) {
            model.now = at(number * 1_000);
            step.apply(&mut watch, &mut model);
            model.compare(&mut watch);
        }
        model.compare_troubles(&mut watch);
    });
}

/// A status after which a URL waits for an operator.
const WAITS: u16 = 299;

const URLS: usize = 9;
const SETS: usize = 3;

/// A change.
#[derive(Clone, Debug)]
enum Step {
    Submit {
        set: usize,
        urls: Vec<usize>,
    },
    Read {
        set: usize,
        urls: Vec<usize>,
        ends: bool,
    },
    Sweep,
    Withdraw {
        set: Option<usize>,
        which: Meant,
    },
    /// Answers some of the URLs, wherever they are due: index and status.
    Judge(Vec<(usize, u16)>),
    Replay,
    MakeDue(Meant),
    Expire,
}

#[derive(Clone, Debug)]
enum Meant {
    Urls(Vec<usize>),
    Host(usize),
    Set(usize),
    State(State),
    All,
}

fn step() -> impl Strategy<Value = Step> {
    let urls = || proptest::collection::vec(0..URLS, 0..6);
    let set = || 0..SETS;
    let status = prop_oneof![
        4 => Just(200u16), 3 => Just(410), 2 => Just(404), 2 => Just(503), 1 => Just(WAITS)
    ];
    prop_oneof![
        4 => (set(), urls()).prop_map(|(set, urls)| Step::Submit { set, urls }),
        3 => (set(), urls(), prop::bool::weighted(0.8))
            .prop_map(|(set, urls, ends)| Step::Read { set, urls, ends }),
        2 => Just(Step::Sweep),
        3 => (proptest::option::of(set()), meant())
            .prop_map(|(set, which)| Step::Withdraw { set, which }),
        8 => proptest::collection::vec((0..URLS, status), 0..8).prop_map(Step::Judge),
        2 => Just(Step::Replay),
        2 => meant().prop_map(Step::MakeDue),
        1 => Just(Step::Expire),
    ]
}

fn meant() -> impl Strategy<Value = Meant> {
    prop_oneof![
        4 => proptest::collection::vec(0..URLS, 0..4).prop_map(Meant::Urls),
        1 => (0..3usize).prop_map(Meant::Host),
        1 => (0..SETS).prop_map(Meant::Set),
        1 => prop_oneof![Just(State::New), Just(State::Alive), Just(State::Suspect)]
            .prop_map(Meant::State),
        1 => Just(Meant::All),
    ]
}

fn url(number: usize) -> String {
    format!("http://host{}/{number}", number % 3)
}

fn set_name(number: usize) -> String {
    format!("set{number}")
}

impl Meant {
    fn which(&self) -> Which {
        match self {
            Self::Urls(urls) => Which::Urls(urls.iter().map(|&number| url(number)).collect()),
            Self::Host(host) => Which::Host(format!("http://host{host}/")),
            Self::Set(set) => Which::Set(set_name(*set)),
            Self::State(state) => Which::State(*state),
            Self::All => Which::Everything,
        }
    }

    fn has(&self, number: usize, model: &Model) -> bool {
        let known = model.urls.get(&number);
        match self {
            Self::Urls(urls) => urls.contains(&number),
            Self::Host(host) => number % 3 == *host,
            Self::Set(set) => known.is_some_and(|known| known.sets.contains_key(set)),
            Self::State(state) => known.is_some_and(|known| known.life.state() == *state),
            Self::All => true,
        }
    }
}

/// What a store is: as simple as can be.
#[derive(Default)]
struct Model {
    now: Timestamp,
    urls: BTreeMap<usize, ModelUrl>,
    sets: BTreeMap<usize, ModelSet>,
    events: usize,
    last: Vec<Judgement>,
}

#[derive(Default)]
struct ModelSet {
    reading: u32,
    complete: u32,
    /// How many members from the source there were when the reading began.
    had: usize,
    is_to_sweep: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct ModelUrl {
    life: Life,
    due: Option<(Lane, Timestamp)>,
    status: Option<u16>,
    /// By set: the last reading that had the URL, and whether it was added by hand.
    sets: BTreeMap<usize, (u32, bool)>,
    left_at: Option<Timestamp>,
    events: usize,
}

impl ModelUrl {
    fn leave(&mut self, set: usize, now: Timestamp) {
        if self.sets.remove(&set).is_some() && self.sets.is_empty() {
            self.left_at = Some(now);
        }
    }
}

impl Model {
    fn join(&mut self, set: usize, number: usize, reading: Option<u32>) {
        let now = self.now;
        let new = ModelUrl {
            due: Some((Lane::Routine, now)),
            ..ModelUrl::default()
        };
        let url = self.urls.entry(number).or_insert(new);
        if url.sets.is_empty() {
            url.due = url.due.or(Some((Lane::of(url.life.state(), false), now)));
        }
        let member = url.sets.entry(set).or_insert((0, false));
        match reading {
            Some(reading) => member.0 = reading,
            None => member.1 = true,
        }
        url.left_at = None;
    }

    fn members_of_source(&self, set: usize) -> usize {
        let members = self.urls.values().filter_map(|url| url.sets.get(&set));
        members.filter(|member| member.0 > 0).count()
    }

    fn read(&mut self, set: usize, urls: &[usize], ends: bool) -> Option<Swept> {
        let had = self.members_of_source(set);
        let state = self.sets.entry(set).or_default();
        state.reading += 1;
        state.had = had;
        let reading = state.reading;
        for &number in urls {
            self.join(set, number, Some(reading));
        }
        if !ends {
            return None;
        }
        let members = self.urls.values().filter_map(|url| url.sets.get(&set));
        let lost = members
            .filter(|member| (1..reading).contains(&member.0))
            .count();
        if lost * 2 > had {
            return Some(Swept::Refused {
                lost: lost as u64,
                members: had as u64,
            });
        }
        let state = self.sets.entry(set).or_default();
        state.complete = reading;
        state.is_to_sweep = lost > 0;
        Some(Swept::Lost(lost as u64))
    }

    fn sweep(&mut self) {
        let now = self.now;
        for (&number, set) in self.sets.iter_mut().filter(|(_, set)| set.is_to_sweep) {
            set.is_to_sweep = false;
            for url in self.urls.values_mut() {
                match url.sets.get_mut(&number) {
                    Some((reading, is_by_hand)) if (1..set.complete).contains(reading) => {
                        *reading = 0;
                        if !*is_by_hand {
                            url.leave(number, now);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The numbers of the URLs that are meant.
    fn meant(&self, meant: &Meant) -> Vec<usize> {
        let known = self.urls.keys().copied();
        known.filter(|&number| meant.has(number, self)).collect()
    }

    fn withdraw(&mut self, set: Option<usize>, which: &Meant) -> u64 {
        let now = self.now;
        let mut done = 0;
        for number in self.meant(which) {
            let Some(url) = self.urls.get_mut(&number) else {
                continue;
            };
            let before = url.sets.len();
            match set {
                Some(set) => url.leave(set, now),
                None => (0..SETS).for_each(|set| url.leave(set, now)),
            }
            done += u64::from(url.sets.len() < before);
        }
        done
    }

    fn make_due(&mut self, which: &Meant) -> u64 {
        let now = self.now;
        let mut done = 0;
        for number in self.meant(which) {
            let Some(url) = self.urls.get_mut(&number) else {
                continue;
            };
            if url.sets.is_empty() || url.due.is_some_and(|(_, due)| due <= now) {
                continue;
            }
            url.due = Some((Lane::of(url.life.state(), false), now));
            done += 1;
        }
        done
    }

    fn judge(&mut self, number: usize, judgement: &Judgement) {
        let Some(url) = self.urls.get_mut(&number) else {
            return;
        };
        let due = judgement
            .next
            .map(|(lane, due)| (lane, aligned(judgement.id.host, self.now, due)));
        url.life = judgement.life.clone();
        url.due = due;
        url.status = judgement.answer.as_ref().and_then(|answer| answer.status);
        url.events += judgement.changes.len();
        self.events += judgement.changes.len();
    }

    /// All URLs leave that are in no set since before now.
    fn expire(&mut self) -> u64 {
        let before = self.urls.len();
        let now = self.now;
        let mut events = 0;
        self.urls.retain(|_, url| {
            let stays = url.left_at.is_none_or(|left| left >= now);
            events += if stays { 0 } else { url.events };
            stays
        });
        self.events -= events;
        (before - self.urls.len()) as u64
    }

    fn compare(&self, watch: &mut Watch<impl crate::Engine>) {
        for number in 0..URLS {
            let detail = watch.store.show(&url(number)).expect("readable");
            let found = detail.as_ref().map(|detail| ModelUrl {
                life: detail.url.life.clone(),
                due: detail.url.due,
                status: detail.url.answer.as_ref().and_then(|answer| answer.status),
                left_at: detail.url.left_at,
                events: detail.events.len(),
                sets: BTreeMap::new(),
            });
            let expected = self.urls.get(&number).map(|url| ModelUrl {
                due: url.due.filter(|_| !url.sets.is_empty()),
                sets: BTreeMap::new(),
                ..url.clone()
            });
            assert_eq!(found, expected, "URL {number}");
            let sets: BTreeSet<String> =
                detail.into_iter().flat_map(|detail| detail.sets).collect();
            let known = self.urls.get(&number);
            let expected = known.into_iter().flat_map(|url| url.sets.keys());
            assert_eq!(
                sets,
                expected.map(|&set| set_name(set)).collect::<BTreeSet<_>>()
            );
        }
        self.compare_counts(watch);
        self.compare_due(watch);
        assert_eq!(events(&mut watch.store, Cursor::START).len(), self.events);
    }

    fn in_sets(&self) -> impl Iterator<Item = (usize, &ModelUrl)> {
        let urls = self.urls.iter().map(|(&number, url)| (number, url));
        urls.filter(|(_, url)| !url.sets.is_empty())
    }

    fn compare_counts(&self, watch: &mut Watch<impl crate::Engine>) {
        let mut expected = WatchCounts::default();
        let mut hosts: BTreeMap<usize, u64> = BTreeMap::new();
        for (number, url) in self.in_sets() {
            *expected.states.entry(url.life.state()).or_default() += 1;
            if let Some((lane, _)) = url.due {
                *expected.due.entry(lane).or_default() += 1;
            }
            expected.members += url.sets.len() as u64;
            *hosts.entry(number % 3).or_default() += 1;
        }
        expected.kept = (self.urls.len() - self.in_sets().count()) as u64;
        expected.hosts = hosts.len() as u64;
        assert_eq!(watch.store.watch_counts().expect("readable"), expected);
        for host in 0..3 {
            let root = format!("http://host{host}/");
            let found = watch.store.host(&root).expect("readable");
            let found = found.map_or(0, |found| found.urls);
            assert_eq!(found, hosts.get(&host).copied().unwrap_or(0));
        }
        let sets = watch.store.sets().expect("readable");
        for set in 0..SETS {
            let mut expected: BTreeMap<State, u64> = BTreeMap::new();
            for url in self.urls.values() {
                if url.sets.contains_key(&set) {
                    *expected.entry(url.life.state()).or_default() += 1;
                }
            }
            let name = set_name(set);
            let found = sets.iter().find(|found| found.name == name);
            let (members, states) = found
                .map(|found| (found.members, found.states.clone()))
                .unwrap_or_default();
            assert_eq!(members, expected.values().sum::<u64>());
            assert_eq!(states, expected);
        }
    }

    fn compare_troubles(&self, watch: &mut Watch<impl crate::Engine>) {
        for state in State::ALL {
            if matches!(state, State::New | State::Alive) {
                continue;
            }
            let mut expected: Vec<String> = (self.in_sets())
                .filter(|(_, url)| url.life.state() == state)
                .map(|(number, _)| url(number))
                .collect();
            expected.sort();
            let found = watch.store.in_trouble(state, usize::MAX).expect("readable");
            let mut found: Vec<String> = found.into_iter().map(|url| url.url).collect();
            found.sort();
            assert_eq!(found, expected, "{state:?}");
            let one = watch.store.in_trouble(state, 1).expect("readable");
            assert_eq!(one.len(), expected.len().min(1));
        }
    }

    fn compare_due(&self, watch: &mut Watch<impl crate::Engine>) {
        for lanes in [Lanes::Schedule, Lanes::Doubt] {
            let is_in = |lane: &Lane| lanes.lanes().contains(lane);
            let mut expected: Vec<(Timestamp, String)> = (self.in_sets())
                .filter_map(|(number, model)| Some((number, model.due?)))
                .filter(|(_, (lane, _))| is_in(lane))
                .map(|(number, (_, due))| (due, url(number)))
                .collect();
            expected.sort();
            let mut found: Vec<(Timestamp, String)> = watch
                .due(lanes, Timestamp::MAX)
                .into_iter()
                .map(|due| (due.id.due, due.url))
                .collect();
            found.sort();
            assert_eq!(found, expected);
            let first = expected.first().map(|(due, _)| *due);
            assert_eq!(watch.store.next_due(lanes).expect("readable"), first);
            let overdue = expected.iter().filter(|(due, _)| *due < self.now).count();
            let found = watch
                .store
                .overdue(lanes, self.now, 1_000)
                .expect("readable");
            assert_eq!(found, overdue as u64);
        }
    }
}

impl Step {
    fn apply(self, watch: &mut Watch<impl crate::Engine>, model: &mut Model) {
        let now = model.now;
        let texts = |urls: &[usize]| -> Vec<NewUrl> {
            let urls: Vec<String> = urls.iter().map(|&number| url(number)).collect();
            new_urls(&urls.iter().map(String::as_str).collect::<Vec<_>>())
        };
        match self {
            Self::Submit { set, urls } => {
                let store = &mut watch.store;
                let submitted = store.submit(&set_name(set), Origin::Hand, &texts(&urls), now);
                let distinct: HashSet<usize> = urls.iter().copied().collect();
                let new = distinct
                    .iter()
                    .filter(|number| !model.urls.contains_key(number));
                assert_eq!(submitted.expect("written").new, new.count() as u64);
                urls.iter()
                    .for_each(|&number| model.join(set, number, None));
            }
            Self::Read { set, urls, ends } => {
                let name = set_name(set);
                let reading = watch.store.begin_reading(&name, now).expect("written");
                watch
                    .store
                    .read_urls(&reading, &texts(&urls), now)
                    .expect("written");
                let expected = model.read(set, &urls, ends);
                if ends {
                    let swept = watch.store.end_reading(reading, "mark", now, 0.5);
                    assert_eq!(swept.ok(), expected);
                }
            }
            Self::Sweep => {
                while watch.store.sweep(now, 2).expect("written") {}
                model.sweep();
            }
            Self::Withdraw { set, which } => {
                let name = set.map(set_name);
                let expected = model.withdraw(set, &which);
                let done = pieces(|after| {
                    let store = &mut watch.store;
                    store
                        .withdraw(name.as_deref(), &which.which(), now, after, 3)
                        .expect("written")
                });
                assert_eq!(done, expected);
            }
            Self::Judge(answers) => {
                let due: Vec<DueUrl> = [Lanes::Schedule, Lanes::Doubt]
                    .into_iter()
                    .flat_map(|lanes| watch.due(lanes, Timestamp::MAX))
                    .collect();
                let mut judged = HashSet::new();
                let mut judgements = Vec::new();
                for (number, status) in answers {
                    let Some(due) = due.iter().find(|due| due.url == url(number)) else {
                        continue;
                    };
                    if judged.insert(number) {
                        let mut judgement = watch.judgement(due, status, now);
                        judgement.next = judgement.next.filter(|_| status != WAITS);
                        model.judge(number, &judgement);
                        judgements.push(judgement);
                    }
                }
                let completion = watch.store.judge(&judgements).expect("written");
                assert_eq!(
                    (completion.stored, completion.stale),
                    (judgements.len() as u64, 0)
                );
                model.last = judgements;
            }
            Self::Replay => {
                let completion = watch.store.judge(&model.last).expect("written");
                assert_eq!(completion.stored, 0);
            }
            Self::MakeDue(which) => {
                let expected = model.make_due(&which);
                let done = pieces(|after| {
                    let store = &mut watch.store;
                    store
                        .make_due(&which.which(), now, after, 3)
                        .expect("written")
                });
                assert_eq!(done, expected);
            }
            Self::Expire => {
                let mut done = 0;
                loop {
                    let piece = watch.store.expire(now, 2).expect("written");
                    done += piece;
                    if piece < 2 {
                        break;
                    }
                }
                assert_eq!(done, model.expire());
            }
        }
    }
}

/// Does all pieces of a change, and adds up what they did.
fn pieces(mut piece: impl FnMut(Option<UrlId>) -> Piece) -> u64 {
    let (mut done, mut after) = (0, None);
    loop {
        let next = piece(after);
        done += next.done;
        after = next.next;
        if after.is_none() {
            return done;
        }
    }
}
