//! Random changes of a store, compared with a model in memory.

use proptest::prelude::*;

use super::*;

pub(crate) fn agrees_with_the_model<E: Engine>() {
    for_random_steps(step(), 40, |steps| {
        let (_engine, mut store) = begun::<E>();
        let mut model = Model::default();
        for step in steps {
            step.apply(&mut store, &mut model);
            model.compare(&mut store);
        }
    });
}

/// A change.
#[derive(Clone, Debug)]
enum Step {
    Add(Vec<Added>),
    Complete(Vec<Done>),
    /// The last completion again.
    Replay,
    NextRun,
}

/// A link: to one of these URLs, in one of three spellings. Those from `LOCAL` on are local.
#[derive(Clone, Debug)]
struct Added {
    url: usize,
    spelling: u8,
    demand: Demand,
}

/// An entry that is completed: its place in all queues.
#[derive(Clone, Debug)]
struct Done {
    place: usize,
    status: u16,
    reuses: bool,
    /// Meets nothing but a bare request.
    meets_less: bool,
    links: Vec<Added>,
}

const URLS: usize = 12;
const LOCAL: usize = 10;

fn step() -> impl Strategy<Value = Step> {
    let links = || proptest::collection::vec(added(), 0..8);
    let done = (
        0..20usize,
        200..206u16,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        proptest::collection::vec(added(), 0..2),
    );
    let done = done.prop_map(|(place, status, reuses, meets_less, links)| Done {
        place,
        status,
        reuses,
        meets_less,
        links,
    });
    prop_oneof![
        6 => links().prop_map(Step::Add),
        6 => proptest::collection::vec(done, 0..6).prop_map(Step::Complete),
        2 => Just(Step::Replay),
        1 => Just(Step::NextRun),
    ]
}

fn added() -> impl Strategy<Value = Added> {
    let demand = (any::<bool>(), any::<bool>(), any::<bool>(), 0..3u16);
    let demand = demand.prop_map(|(given, private, links, depth)| Demand {
        given,
        private,
        links,
        depth,
    });
    (0..URLS, 0..3u8, demand).prop_map(|(url, spelling, demand)| Added {
        url,
        spelling,
        demand,
    })
}

impl Added {
    fn text(&self) -> String {
        match self.url {
            LOCAL.. => format!("file:///{}", self.url),
            _ => format!("http://{}/{}", host(self.url), self.url),
        }
    }

    fn spelling(&self) -> String {
        match self.spelling {
            // A local spelling is a URL of its own.
            _ if self.url >= LOCAL => self.text(),
            0 => self.text(),
            number => format!("{}#{number}", self.text()),
        }
    }

    fn link(&self, line: u32) -> Link {
        match self.url {
            LOCAL.. => local_link(&self.spelling(), line, Cause::FileMissing),
            _ => spelled(
                wanted_link(&self.text(), line, self.demand),
                &self.spelling(),
            ),
        }
    }
}

fn host(url: usize) -> &'static str {
    ["a", "b", "c"][url % 3]
}

/// What a store is: as simple as can be.
#[derive(Default)]
struct Model {
    urls: Vec<ModelUrl>,
    /// Spellings with their URLs and lines, in the order of the first ones.
    spellings: Vec<(String, usize, Vec<u32>)>,
    /// URLs, in the order in which they were queued.
    queue: Vec<usize>,
    run: u32,
    lines: u32,
    events: usize,
    last: Vec<Completed>,
}

#[derive(Default)]
struct ModelUrl {
    number: usize,
    demand: Option<Demand>,
    /// The run, what was met, the status.
    answer: Option<(u32, Demand, Option<u16>)>,
}

impl Model {
    fn url(&mut self, number: usize) -> &mut ModelUrl {
        let known = self.urls.iter().position(|url| url.number == number);
        let place = known.unwrap_or_else(|| {
            self.urls.push(ModelUrl {
                number,
                ..ModelUrl::default()
            });
            self.urls.len() - 1
        });
        &mut self.urls[place]
    }

    fn add(&mut self, added: &Added) -> Link {
        self.lines += 1;
        let (line, run) = (self.lines, self.run);
        let spelling = added.spelling();
        match self.spellings.iter_mut().find(|known| known.0 == spelling) {
            Some((_, _, lines)) => lines.push(line),
            None => self.spellings.push((spelling, added.url, vec![line])),
        }
        let is_queued = self.queue.contains(&added.url);
        let url = self.url(added.url);
        if added.url >= LOCAL {
            url.answer = Some((run, added.demand, None));
        } else {
            let wanted = url
                .demand
                .map_or(added.demand, |demand| demand.join(added.demand));
            url.demand = Some(wanted);
            let met = url
                .answer
                .filter(|answer| answer.0 == run)
                .map(|answer| answer.1);
            if !is_queued && !met.is_some_and(|met| wanted.is_met_by(met)) {
                self.queue.push(added.url);
            }
        }
        added.link(line)
    }

    /// The queue as it is read: by host, in the order in which the hosts were first seen.
    fn read_queue(&self) -> Vec<usize> {
        let mut hosts: Vec<&str> = Vec::new();
        for url in self.urls.iter().filter(|url| url.number < LOCAL) {
            let name = host(url.number);
            if !hosts.contains(&name) {
                hosts.push(name);
            }
        }
        let mut read = self.queue.clone();
        read.sort_by_key(|url| hosts.iter().position(|name| *name == host(*url)));
        read
    }

    fn complete(&mut self, queued: &Queued, url: usize, done: &Done) -> Completed {
        let run = self.run;
        self.queue.retain(|other| *other != url);
        let met = if done.meets_less {
            Demand::default()
        } else {
            queued.demand
        };
        let known = self.url(url);
        let reuses = done.reuses && known.answer.is_some();
        let status_of_answer = match known.answer {
            Some((_, _, status)) if reuses => status,
            _ => Some(done.status),
        };
        known.answer = Some((run, met, status_of_answer));
        if known.demand.is_some_and(|demand| !demand.is_met_by(met)) {
            self.queue.push(url);
        }
        self.events += 1;
        let links = done.links.iter().map(|added| self.add(added)).collect();
        let change = Change {
            at: at(0),
            from: State::New,
            to: State::Alive,
            status: None,
            why: String::new(),
        };
        Completed {
            demand: met,
            judged: (!reuses).then(|| (status(done.status), None)),
            changes: vec![change],
            links,
            ..Completed::new(queued, status(done.status))
        }
    }

    fn compare(&self, store: &mut impl Store) {
        let urls: Vec<String> = self
            .read_queue()
            .into_iter()
            .map(|url| {
                Added {
                    url,
                    spelling: 0,
                    demand: Demand::default(),
                }
                .text()
            })
            .collect();
        let queued = queued(store);
        assert_eq!(
            queued
                .iter()
                .map(|queued| queued.url.to_string())
                .collect::<Vec<_>>(),
            urls
        );
        let demands = |url: usize| {
            self.urls
                .iter()
                .find(|known| known.number == url)
                .and_then(|known| known.demand)
        };
        let demands: Vec<Demand> = self.read_queue().into_iter().filter_map(demands).collect();
        assert_eq!(
            queued
                .iter()
                .map(|queued| queued.demand)
                .collect::<Vec<_>>(),
            demands
        );
        let expected: Vec<_> = self
            .spellings
            .iter()
            .map(|(spelling, url, lines)| {
                let known = self.urls.iter().find(|known| known.number == *url);
                let answer = known
                    .and_then(|known| known.answer)
                    .filter(|answer| answer.0 == self.run);
                (
                    spelling.clone(),
                    answer.and_then(|answer| answer.2),
                    lines.clone(),
                )
            })
            .collect();
        assert_eq!(records(store, Selection::All), expected);
        let counts = store.counts().expect("readable");
        assert_eq!(counts.queued as usize, self.queue.len());
        let judged = self
            .urls
            .iter()
            .filter(|url| url.answer.is_some_and(|answer| answer.0 == self.run));
        assert_eq!(
            counts.classes.values().sum::<u64>() as usize,
            judged.count()
        );
        assert_eq!(events(store, Cursor::START).len(), self.events);
    }
}

impl Step {
    fn apply(self, store: &mut impl Store, model: &mut Model) {
        match self {
            Self::Add(links) => {
                let links: Vec<Link> = links.iter().map(|added| model.add(added)).collect();
                store.add(&links).expect("written");
            }
            Self::Complete(done) => {
                let (entries, urls) = (queued(store), model.read_queue());
                let mut completed: Vec<Completed> = Vec::new();
                for done in done {
                    let Some((queued, url)) = entries.get(done.place).zip(urls.get(done.place))
                    else {
                        continue;
                    };
                    if completed.iter().all(|other| other.entry != queued.entry) {
                        completed.push(model.complete(queued, *url, &done));
                    }
                }
                store.complete(&completed).expect("written");
                model.last = completed;
            }
            Self::Replay => {
                let added = store.complete(&model.last).expect("written");
                assert!(added.queued.is_empty() && added.judged.is_empty());
            }
            Self::NextRun => {
                store.end_run(at(1)).expect("written");
                store.begin_run("test", at(2)).expect("written");
                model.run += 1;
                model.spellings.clear();
                model.queue.clear();
                for url in &mut model.urls {
                    url.demand = None;
                }
            }
        }
    }
}
