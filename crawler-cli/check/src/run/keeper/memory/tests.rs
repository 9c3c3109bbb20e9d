use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use store::Store as _;
use store::sqlite::Sqlite;
use verdict::{Cause, Verdict};

/// The user names it.
const GIVEN: Demand = Demand {
    given: true,
    private: true,
    links: false,
    depth: 0,
};

/// A public page refers to it.
const FOUND: Demand = Demand {
    given: false,
    private: false,
    links: false,
    depth: 1,
};

fn judge() -> Judge {
    Judge {
        tolerance: crate::checker::Tolerance::default(),
        rules: None,
    }
}

/// A keeper without sources.
fn memory() -> Memory {
    Memory::new(Box::new(|_| Next::End), judge())
}

fn link(url: &str, line: u32, demand: Demand) -> Link {
    let asked = Url::parse(url).expect("a URL");
    Link {
        spelling: url.into(),
        target: Target::Ask(asked, demand),
        reference: Reference {
            source: "list".into(),
            line: Some(line),
            column: None,
            written: None,
            text: String::new(),
        },
        is_in_page: false,
    }
}

fn local(spelling: &str, line: u32) -> Link {
    let verdict = Verdict::Failed(Cause::FileMissing);
    Link {
        spelling: spelling.into(),
        target: Target::Local(verdict, Some("no such file".to_owned())),
        ..link("http://a/", line, GIVEN)
    }
}

/// What is said: the URL, the verdict, the lines of its places, and whether it was reported before.
type Line = (String, Verdict, Vec<u32>, bool);

fn lines(memory: &mut Memory) -> Vec<Line> {
    let judged = memory.take_judged().into_iter();
    let lines = judged.map(|checked| {
        let places = checked.references.iter().filter_map(|place| place.line);
        (
            checked.url,
            checked.answer.verdict,
            places.collect(),
            checked.before.is_some(),
        )
    });
    lines.collect()
}

fn line(url: &str, verdict: Verdict, places: &[u32], is_again: bool) -> Line {
    (url.to_owned(), verdict, places.to_vec(), is_again)
}

/// Takes all URLs of all hosts.
fn take_all(memory: &mut Memory) -> Vec<Queued> {
    let hosts = 0..memory.hosts.queues.len() as i64;
    hosts
        .flat_map(|host| memory.take(HostId(host), usize::MAX))
        .collect()
}

fn answered(queued: &Queued, verdict: Verdict) -> Completed {
    Completed {
        demand: met(queued.demand, verdict),
        ..Completed::new(queued, Answer::of(verdict))
    }
}

/// Answers all URLs that wait.
fn answer_all(memory: &mut Memory, verdict: Verdict) -> Vec<Queued> {
    let queued = take_all(memory);
    let completed = queued.iter().map(|queued| answered(queued, verdict));
    memory.send(Command::Complete(completed.collect()));
    queued
}

/// What is wrong, in words.
fn problems(memory: &mut Memory) -> Vec<(ProblemKind, String)> {
    let mut found = Vec::new();
    while let Some(reply) = memory.next() {
        if let Reply::Source(batch) = reply {
            let problems = batch.problems.into_iter();
            found.extend(problems.map(|problem| (problem.kind, problem.detail)));
        }
    }
    found
}
const ROBOTS: Verdict = Verdict::Failed(Cause::Robots);

#[test]
fn what_is_local_is_said_at_once() {
    let mut memory = memory();
    let missing = Verdict::Failed(Cause::FileMissing);
    memory.add_all(vec![local("x.md", 1), local("y.md", 2), local("x.md", 3)]);
    let expected = [
        line("x.md", missing, &[1, 3], false),
        line("y.md", missing, &[2], false),
    ];
    assert_eq!(lines(&mut memory), expected);
    // The same text as a URL that is asked is another URL.
    memory.add_all(vec![
        local("x.md", 4),
        local("http://a/1", 5),
        link("http://a/1", 6, GIVEN),
    ]);
    let expected = [
        line("x.md", missing, &[4], true),
        line("http://a/1", missing, &[5], false),
    ];
    assert_eq!(lines(&mut memory), expected);
    assert_eq!(take_all(&mut memory).len(), 1);
}

#[test]
fn sources_are_read_while_few_urls_are_under_way() {
    // A source that never ends: each batch has four URLs.
    let batches = Rc::new(Cell::new(0));
    let counted = Rc::clone(&batches);
    let next = move |_| {
        counted.set(counted.get() + 1);
        let given = |n| link(&format!("http://a/{}/{n}", counted.get()), 1, GIVEN);
        Next::Batch(sources::Batch {
            links: (0..4).map(given).collect(),
            ..sources::Batch::default()
        })
    };
    let mut memory = Memory::new(Box::new(next), judge());
    memory.limits.urls = 10;
    while memory.read(Duration::ZERO) {}
    assert_eq!((batches.get(), memory.waiting.len()), (3, 12));
    // What is being asked counts, too.
    let taken = take_all(&mut memory);
    assert!(!memory.read(Duration::ZERO));
    let completed: Vec<_> = taken
        .iter()
        .take(3)
        .map(|it| answered(it, Verdict::Ok))
        .collect();
    memory.send(Command::Complete(completed));
    while memory.read(Duration::ZERO) {}
    assert_eq!((batches.get(), memory.waiting.len()), (4, 13));
    // The links of a page are taken nevertheless.
    let page = Completed {
        links: (0..50)
            .map(|n| link(&format!("http://b/{n}"), n, FOUND))
            .collect(),
        ..answered(&taken[3], Verdict::Ok)
    };
    memory.send(Command::Complete(vec![page]));
    assert_eq!((batches.get(), memory.waiting.len()), (4, 62));
}

#[test]
fn what_does_not_fit_is_left_out_and_named() {
    let mut memory = memory();
    memory.limits.bytes = 20 * size_of::<Option<Entry>>();
    let links = |host: &str, count| {
        let urls = (1..=count).map(|n| link(&format!("http://{host}/{n}"), n, FOUND));
        urls.collect::<Vec<_>>()
    };
    memory.add_all(links("a", 30));
    let count = memory.waiting.len();
    assert!((10..20).contains(&count) && memory.waiting.bytes <= memory.limits.bytes);
    // Neither is there room for many places of the URLs that wait.
    memory.add_all((31..=60).map(|n| link("http://a/1", n, GIVEN)).collect());
    assert!(memory.waiting.bytes <= memory.limits.bytes);
    let found = problems(&mut memory);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].0 == ProblemKind::Cut && found[0].1.contains("left out"),
        "{found:?}"
    );
    assert_eq!(answer_all(&mut memory, Verdict::Ok).len(), count);
    let said = lines(&mut memory);
    let places: usize = said.iter().map(|line| line.2.len()).sum();
    assert!(places < 30, "{said:?}");
    // There is room again for what was left out.
    memory.add_all(vec![link("http://a/30", 1, FOUND)]);
    assert_eq!(answer_all(&mut memory, Verdict::Ok).len(), 1);
    assert!(!memory.read(Duration::ZERO));
    lines(&mut memory);
    let expected = format!("{} links were left out in all", 60 - places);
    assert_eq!(problems(&mut memory), [(ProblemKind::Note, expected)]);
}

/// A step of [`the_same_is_asked_as_with_a_store`].
#[derive(Clone, Debug)]
enum Step {
    Add(Vec<(u8, Demand)>),
    /// Takes all that waits.
    Take,
    /// Answers one of the URLs that were taken, with links.
    Answer(usize, bool, Vec<(u8, Demand)>),
}

fn step() -> impl Strategy<Value = Step> {
    let demand = (any::<bool>(), any::<bool>(), any::<bool>(), 0..3u16);
    let demand = demand.prop_map(|(given, private, links, depth)| Demand {
        given,
        private,
        links,
        depth,
    });
    let links = proptest::collection::vec((0..6u8, demand), 0..5);
    prop_oneof![
        3 => links.clone().prop_map(Step::Add),
        2 => Just(Step::Take),
        4 => (0..6usize, any::<bool>(), links)
            .prop_map(|(at, is_robots, links)| Step::Answer(at, is_robots, links)),
    ]
}

/// What is to be asked, and with what demand, is what a store says.
#[test]
fn the_same_is_asked_as_with_a_store() {
    let config = Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let steps = proptest::collection::vec(step(), 1..40);
    let agreed = TestRunner::new(config).run(&steps, |steps| {
        let mut both = Both::new();
        for step in steps {
            both.apply(step);
        }
        both.finish();
        Ok(())
    });
    if let Err(error) = agreed {
        panic!("{error}");
    }
}

/// A keeper in memory and a store.
struct Both {
    memory: Memory,
    store: Sqlite,
    /// What was taken and not answered.
    taken: BTreeMap<String, (Queued, Queued)>,
    places: u32,
    /// The lines of places that were reported.
    reported: Vec<u32>,
    /// URLs that were counted.
    urls: u32,
}

impl Both {
    fn new() -> Self {
        let mut store = Sqlite::temporary().expect("a store");
        store
            .begin_run("test", Timestamp::UNIX_EPOCH)
            .expect("begun");
        Self {
            memory: memory(),
            store,
            taken: BTreeMap::new(),
            places: 0,
            reported: Vec::new(),
            urls: 0,
        }
    }

    fn links(&mut self, links: &[(u8, Demand)]) -> Vec<Link> {
        let links = links.iter().map(|&(url, demand)| {
            self.places += 1;
            link(&format!("http://a/{url}"), self.places, demand)
        });
        links.collect()
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Add(links) => {
                let links = self.links(&links);
                self.store.add(&links).expect("added");
                self.memory.add_all(links);
            }
            Step::Take => self.take(),
            Step::Answer(at, is_robots, links) => {
                let Some(url) = self.taken.keys().nth(at).cloned() else {
                    return;
                };
                let Some((ours, of_store)) = self.taken.remove(&url) else {
                    return;
                };
                let verdict = if is_robots { ROBOTS } else { Verdict::Ok };
                let links = self.links(&links);
                let completed = |queued: &Queued| Completed {
                    links: links.clone(),
                    ..answered(queued, verdict)
                };
                self.store
                    .complete(&[completed(&of_store)])
                    .expect("stored");
                self.memory.send(Command::Complete(vec![completed(&ours)]));
            }
        }
        for checked in self.memory.take_judged() {
            self.urls += u32::from(checked.before.is_none());
            let lines = checked.references.iter().filter_map(|place| place.line);
            self.reported.extend(lines);
        }
    }

    /// Takes what waits: a store still has what was taken before.
    fn take(&mut self) {
        let ours = take_all(&mut self.memory);
        let of_store = self.store.take(HostId(1), EntryId::START, usize::MAX);
        let mut of_store: BTreeMap<_, _> = of_store
            .expect("read")
            .into_iter()
            .map(|queued| (queued.url.to_string(), queued))
            .collect();
        of_store.retain(|url, _| !self.taken.contains_key(url));
        for queued in ours {
            let other = of_store
                .remove(queued.url.as_str())
                .expect("in the store, too");
            assert_eq!(queued.demand, other.demand, "{}", queued.url);
            let url = queued.url.to_string();
            self.taken.insert(url, (queued, other));
        }
        assert!(of_store.is_empty(), "{of_store:?}");
    }

    /// Each place is reported once, and each URL is counted once.
    fn finish(mut self) {
        loop {
            self.take();
            if self.taken.is_empty() {
                break;
            }
            self.apply(Step::Answer(0, false, Vec::new()));
        }
        self.reported.sort_unstable();
        assert_eq!(self.reported, (1..=self.places).collect::<Vec<_>>());
        let urls: u64 = self.store.counts().expect("read").classes.values().sum();
        assert_eq!(u64::from(self.urls), urls);
    }
}
