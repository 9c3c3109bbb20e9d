//! Keeps the URLs of a run in memory: the URLs that wait or are asked, with their places, and of all others what was said,
//! in a few bytes. Pure: neither a thread nor a database.
//!
//! Sources are read while few URLs wait. The links of a page cannot wait to be read, because the answers that would make
//! room are behind the page: all of them are taken, up to a limit in bytes. What is beyond the limit is left out, and
//! named.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::urls::{Known, Urls};
use super::{Command, Keeper, Reply};
use crate::record::{Checked, Said};
use crate::run::judge::{Judge, met};
use crate::sources::{self, Next, Problem, ProblemKind};
use plain::origin::root_of;
use plain::random::fresh_seed;
use store::{Completed, Demand, EntryId, HostId, Link, Queued, Target, UrlId};
use verdict::Answer;
use verdict::Reference;

/// The URLs of a run.
pub(in crate::run) struct Memory {
    judge: Judge,
    /// Gives the next batch of the sources; waits for it for no longer than this time. `None`: the sources have ended.
    sources: Option<Sources>,
    /// Of the hashes of URLs.
    seed: u64,
    urls: Urls,
    waiting: Waiting,
    hosts: Hosts,
    replies: VecDeque<Reply>,
    /// What can be reported.
    judged: Vec<Checked>,
    limits: Limits,
    left_out: LeftOut,
    is_done: bool,
}

type Sources = Box<dyn FnMut(Duration) -> Next>;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Sources are read while fewer URLs than this wait or are asked.
    urls: usize,
    /// The largest size of all URLs that wait or are asked, with their places, in bytes.
    bytes: usize,
}

impl Default for Limits {
    /// 16,384 URLs are some 7 MiB, and more than a host answers while the next ones are read. 1 GiB are some three million
    /// URLs.
    fn default() -> Self {
        Self {
            urls: 1 << 14,
            bytes: 1 << 30,
        }
    }
}

/// The links that were left out, because the memory was full.
#[derive(Debug, Default)]
struct LeftOut {
    count: u64,
    /// The source of the first one.
    source: Arc<str>,
}

/// The URLs that wait or are asked, by their places in a list. Places are used again.
#[derive(Default)]
struct Waiting {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// The size of all, in bytes.
    bytes: usize,
    /// The number of the last URL.
    last: i64,
}

/// A URL that waits or is asked.
struct Entry {
    id: UrlId,
    hash: u128,
    host: HostId,
    /// Without a fragment.
    url: Url,
    /// What all places want.
    demand: Demand,
    /// What was said and wanted when the URL was reported, if it was: it is asked once more, because a place wants more.
    before: Option<Box<(Said, Demand)>>,
    /// The places that are not reported. Nearly always there is one.
    first: Option<Place>,
    further: Vec<Place>,
}

/// A place, and how it spells its URL.
struct Place {
    spelling: Box<str>,
    reference: Reference,
}

/// The hosts, and the URLs that wait to be asked at each.
#[derive(Default)]
struct Hosts {
    numbers: HashMap<Box<str>, HostId>,
    /// The last one: most links lead to the host of the link before.
    last: Option<(Box<str>, HostId)>,
    queues: Vec<VecDeque<u32>>,
}

/// What a batch of links leads to.
#[derive(Default)]
struct Batch {
    /// How many URLs joined the queues of hosts.
    queued: Vec<(HostId, u32)>,
    /// What is reported. The places of one spelling are together.
    checked: Vec<Checked>,
    by_spelling: HashMap<Box<str>, usize>,
}

impl Memory {
    pub(in crate::run) fn new(sources: Sources, judge: Judge) -> Self {
        Self {
            judge,
            sources: Some(sources),
            seed: fresh_seed(),
            urls: Urls::new(),
            waiting: Waiting::default(),
            hosts: Hosts::default(),
            replies: VecDeque::new(),
            judged: Vec::new(),
            limits: Limits::default(),
            left_out: LeftOut::default(),
            is_done: false,
        }
    }
}

impl Keeper for Memory {
    fn send(&mut self, command: Command) {
        match command {
            Command::Take { host, limit, .. } => {
                let queued = self.take(host, limit);
                self.replies.push_back(Reply::Taken {
                    host,
                    limit,
                    queued,
                });
            }
            Command::Complete(completed) => {
                let mut batch = Batch::default();
                for completed in completed {
                    self.complete(completed, &mut batch);
                }
                self.say(batch);
            }
            // Nothing is kept for another run.
            Command::SaveHosts(_) => {}
            Command::End => self.replies.push_back(Reply::Ended),
        }
    }

    fn next(&mut self) -> Option<Reply> {
        if !self.judged.is_empty() {
            return Some(Reply::Judged(self.take_judged()));
        }
        let is_over = self.sources.is_none() && self.waiting.len() == 0;
        if is_over && self.replies.is_empty() && !std::mem::replace(&mut self.is_done, true) {
            self.replies.extend(self.left_out.sum());
            self.replies.push_back(Reply::Done);
        }
        self.replies.pop_front()
    }

    fn wait(&mut self, time: Duration) -> Option<Reply> {
        let reply = self.next();
        if reply.is_some() {
            return reply;
        }
        match self.has_room() {
            true => _ = self.read(time),
            false => std::thread::sleep(time),
        }
        self.next()
    }

    fn take_judged(&mut self) -> Vec<Checked> {
        std::mem::take(&mut self.judged)
    }

    fn read_some(&mut self) -> bool {
        self.read(Duration::ZERO)
    }
}

/// Sources.
impl Memory {
    /// Reads a batch of the sources, if there is room. Returns whether there may be more at once.
    fn read(&mut self, wait: Duration) -> bool {
        if !self.has_room() {
            return false;
        }
        match self.sources.as_mut().map(|next| next(wait)) {
            Some(Next::Batch(mut batch)) => {
                let links = std::mem::take(&mut batch.links);
                if !batch.is_empty() {
                    self.replies.push_back(Reply::Source(batch));
                }
                self.add_all(links);
                self.has_room()
            }
            Some(Next::Nothing) => false,
            Some(Next::End) | None => {
                self.sources = None;
                self.replies.push_back(Reply::AllRead);
                false
            }
        }
    }

    fn has_room(&self) -> bool {
        self.sources.is_some()
            && self.waiting.len() < self.limits.urls
            && self.waiting.bytes < self.limits.bytes
    }
}

/// Links.
impl Memory {
    fn add_all(&mut self, links: Vec<Link>) {
        let mut batch = Batch::default();
        for link in links {
            self.add(link, &mut batch);
        }
        self.say(batch);
    }

    fn say(&mut self, mut batch: Batch) {
        self.judged.append(&mut batch.checked);
        if !batch.queued.is_empty() {
            self.replies.push_back(Reply::Queued(batch.queued));
        }
    }

    fn add(&mut self, link: Link, batch: &mut Batch) {
        let place = Place {
            spelling: link.spelling,
            reference: link.reference,
        };
        match link.target {
            Target::Ask(url, demand) => {
                let hash = self.hash(&url[..Position::AfterQuery], false);
                match self.urls.get(hash) {
                    None => self.queue(hash, url, demand, None, Some(place), batch),
                    Some(Known::Waiting(at)) => self.add_place(at, demand, place, batch),
                    Some(Known::Said(said, known)) => {
                        self.add_known(hash, url, (said, known), demand, place, batch);
                    }
                }
            }
            Target::Local(verdict, detail) => {
                let hash = self.hash(&place.spelling, true);
                match self.urls.get(hash) {
                    Some(Known::Said(said, _)) => batch.add_late(place, said),
                    Some(Known::Waiting(_)) => {}
                    None => {
                        let answer = Answer {
                            detail,
                            ..Answer::of(verdict)
                        };
                        let said = batch.add_new(&self.judge, answer, place);
                        let known = Known::Said(said, Demand::default());
                        self.urls.add(hash, known);
                    }
                }
            }
        }
    }

    /// What is judged without being asked is another URL than one with the same text that is asked.
    fn hash(&self, text: &str, is_local: bool) -> u128 {
        xxh3_128_with_seed(text.as_bytes(), self.seed ^ u64::from(is_local))
    }

    /// A place of a URL that waits or is asked.
    fn add_place(&mut self, at: u32, demand: Demand, place: Place, batch: &mut Batch) {
        let is_full = self.waiting.bytes + place.bytes() > self.limits.bytes;
        let Some(entry) = self.waiting.get_mut(at) else {
            return;
        };
        // If it is being asked, its completion sees what is wanted.
        entry.demand = entry.demand.join(demand);
        match entry.before.as_deref() {
            Some((said, known)) if demand.is_met_by(met(*known, said.verdict)) => {
                batch.add_late(place, *said);
            }
            _ if is_full => self.leave_out(&place),
            _ => self.waiting.add_place(at, place),
        }
    }

    /// A place of a URL that was reported. If more is wanted than was met, the URL is asked once more.
    fn add_known(
        &mut self,
        hash: u128,
        url: Url,
        before: (Said, Demand),
        demand: Demand,
        place: Place,
        batch: &mut Batch,
    ) {
        let (said, known) = before;
        let (wanted, was_met) = (known.join(demand), met(known, said.verdict));
        let place = match demand.is_met_by(was_met) {
            true => {
                batch.add_late(place, said);
                None
            }
            false => Some(place),
        };
        if wanted.is_met_by(was_met) {
            return self.urls.insert(hash, Known::Said(said, wanted));
        }
        self.queue(hash, url, wanted, Some(Box::new(before)), place, batch);
    }

    /// A URL is to be asked. `before`: if it was reported, what was said and wanted. `place`: the place that wants it.
    fn queue(
        &mut self,
        hash: u128,
        mut url: Url,
        demand: Demand,
        before: Option<Box<(Said, Demand)>>,
        place: Option<Place>,
        batch: &mut Batch,
    ) {
        let host = self.hosts.number(&url);
        url.set_fragment(None);
        let entry = Entry {
            id: UrlId(0),
            hash,
            host,
            url,
            demand,
            before,
            first: None,
            further: Vec::new(),
        };
        let size = entry.bytes() + place.as_ref().map_or(0, Place::bytes);
        if self.waiting.bytes + size > self.limits.bytes {
            if let Some(place) = place {
                self.leave_out(&place);
            }
            return;
        }
        let is_new = entry.before.is_none();
        let Some(at) = self.waiting.insert(entry) else {
            return;
        };
        if let Some(place) = place {
            self.waiting.add_place(at, place);
        }
        match is_new {
            true => self.urls.add(hash, Known::Waiting(at)),
            false => self.urls.insert(hash, Known::Waiting(at)),
        }
        self.hosts.push(host, at);
        batch.note_queued(host);
    }

    fn leave_out(&mut self, place: &Place) {
        let source = &place.reference.source;
        if self.left_out.count == 0 {
            self.left_out.source = Arc::clone(source);
            let mib = self.limits.bytes >> 20;
            let problem = Problem {
                source: Arc::clone(source),
                line: place.reference.line,
                kind: ProblemKind::Cut,
                detail: format!(
                    "more than {mib} MiB of URLs wait to be asked: this link and further ones are left out"
                ),
            };
            self.replies.push_back(of_problem(problem));
        }
        self.left_out.count += 1;
    }
}

impl LeftOut {
    /// How many links were left out, unless the first one was all.
    fn sum(&self) -> Option<Reply> {
        (self.count > 1).then(|| {
            of_problem(Problem {
                source: Arc::clone(&self.source),
                line: None,
                kind: ProblemKind::Note,
                detail: format!("{} links were left out in all", self.count),
            })
        })
    }
}

fn of_problem(problem: Problem) -> Reply {
    Reply::Source(sources::Batch {
        problems: vec![problem],
        ..sources::Batch::default()
    })
}

/// What is asked.
impl Memory {
    /// Takes URLs out of the queue of a host. They stay among those that wait or are asked.
    fn take(&mut self, host: HostId, limit: usize) -> Vec<Queued> {
        let mut taken = Vec::new();
        while taken.len() < limit
            && let Some(at) = self.hosts.pop(host)
        {
            let Some(entry) = self.waiting.get_mut(at) else {
                continue;
            };
            taken.push(Queued {
                entry: EntryId(i64::from(at)),
                host,
                id: entry.id,
                url: entry.url.clone(),
                demand: entry.demand,
                past: None,
            });
        }
        taken
    }

    fn complete(&mut self, completed: Completed, batch: &mut Batch) {
        let at = u32::try_from(completed.entry.0).unwrap_or(u32::MAX);
        let entry = self.waiting.get_mut(at);
        let Some(entry) = entry.filter(|entry| entry.id == completed.id) else {
            return;
        };
        if !entry.demand.is_met_by(completed.demand) {
            // This answer is not the last word.
            let host = entry.host;
            self.hosts.push(host, at);
            batch.note_queued(host);
        } else if let Some((answer, _)) = completed.judged
            && let Some(entry) = self.waiting.remove(at)
        {
            let (hash, demand) = (entry.hash, entry.demand);
            let said = batch.report(&self.judge, entry, answer);
            self.urls.insert(hash, Known::Said(said, demand));
        }
        for link in completed.links {
            self.add(link, batch);
        }
    }
}

impl Waiting {
    /// URLs that wait or are asked.
    fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Adds a URL. Returns its place; `None` if there is no number for it.
    fn insert(&mut self, mut entry: Entry) -> Option<u32> {
        self.last += 1;
        entry.id = UrlId(self.last);
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                // The limit in bytes comes first.
                let at = u32::try_from(self.entries.len()).ok()?;
                self.entries.push(None);
                at
            }
        };
        self.bytes += entry.bytes();
        self.entries[at as usize] = Some(entry);
        Some(at)
    }

    fn get_mut(&mut self, at: u32) -> Option<&mut Entry> {
        self.entries.get_mut(at as usize)?.as_mut()
    }

    fn add_place(&mut self, at: u32, place: Place) {
        let size = place.bytes();
        let Some(entry) = self.get_mut(at) else {
            return;
        };
        match entry.first {
            None => entry.first = Some(place),
            Some(_) => entry.further.push(place),
        }
        self.bytes += size;
    }

    fn remove(&mut self, at: u32) -> Option<Entry> {
        let entry = self.entries.get_mut(at as usize)?.take()?;
        self.free.push(at);
        let places = entry.first.iter().chain(&entry.further);
        self.bytes -= entry.bytes() + places.map(Place::bytes).sum::<usize>();
        Some(entry)
    }
}

impl Entry {
    /// The size without places.
    fn bytes(&self) -> usize {
        size_of::<Option<Self>>() + self.url.as_str().len()
    }
}

impl Place {
    fn bytes(&self) -> usize {
        let written = self.reference.written.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.spelling.len() + self.reference.text.len() + written
    }
}

impl Hosts {
    /// The number of the host of a URL.
    fn number(&mut self, url: &Url) -> HostId {
        let has_user = !url.username().is_empty() || url.password().is_some();
        let plain;
        let root = match has_user {
            true => {
                plain = root_of(url);
                &plain[..Position::BeforePath]
            }
            false => &url[..Position::BeforePath],
        };
        if let Some((last, number)) = &self.last
            && **last == *root
        {
            return *number;
        }
        let number = match self.numbers.get(root) {
            Some(&number) => number,
            None => {
                let number = HostId(self.queues.len() as i64);
                self.queues.push(VecDeque::new());
                self.numbers.insert(root.into(), number);
                number
            }
        };
        self.last = Some((root.into(), number));
        number
    }

    fn queue(&mut self, host: HostId) -> Option<&mut VecDeque<u32>> {
        self.queues.get_mut(usize::try_from(host.0).ok()?)
    }

    fn push(&mut self, host: HostId, at: u32) {
        if let Some(queue) = self.queue(host) {
            queue.push_back(at);
        }
    }

    fn pop(&mut self, host: HostId) -> Option<u32> {
        let queue = self.queue(host)?;
        let at = queue.pop_front();
        if queue.is_empty() {
            // A host that was large once does not keep the room.
            *queue = VecDeque::new();
        }
        at
    }
}

impl Batch {
    fn note_queued(&mut self, host: HostId) {
        match self.queued.last_mut() {
            Some((last, count)) if *last == host => *count += 1,
            _ => self.queued.push((host, 1)),
        }
    }

    /// A URL that is judged without being asked.
    fn add_new(&mut self, judge: &Judge, answer: Answer, place: Place) -> Said {
        let spelling = place.spelling.to_string();
        let checked = judge.answered(answer, spelling, vec![place.reference]);
        let said = checked.said();
        self.by_spelling.insert(place.spelling, self.checked.len());
        self.checked.push(checked);
        said
    }

    /// A place of a URL that was reported.
    fn add_late(&mut self, place: Place, said: Said) {
        if let Some(&at) = self.by_spelling.get(&place.spelling)
            && self.checked[at].answer.verdict == said.verdict
        {
            return self.checked[at].references.push(place.reference);
        }
        let spelling = place.spelling.to_string();
        self.by_spelling.insert(place.spelling, self.checked.len());
        let references = vec![place.reference];
        self.checked
            .push(Checked::again(spelling, said, said, references));
    }

    /// Reports a URL that was asked, in each of its spellings. Returns what is said about it.
    fn report(&mut self, judge: &Judge, entry: Entry, answer: Answer) -> Said {
        let mut spellings = by_spelling(entry.first, entry.further).into_iter();
        // Without a place, those that wanted the URL were reported before.
        let whole = || (entry.url.into(), Vec::new());
        let (spelling, references) = spellings.next().unwrap_or_else(whole);
        let first = judge.answered(answer, spelling, references);
        let said = first.said();
        let others = spellings.map(|(url, references)| Checked {
            url,
            references,
            ..first.clone()
        });
        let others: Vec<Checked> = others.map(Checked::further).collect();
        let Some(before) = entry.before else {
            self.checked.push(first);
            self.checked.extend(others);
            return said;
        };
        // All is said about another verdict, and summaries count the change once.
        let first = Checked {
            before: Some(before.0),
            ..first
        };
        for checked in std::iter::once(first).chain(others) {
            if checked.is_news() {
                self.checked.push(checked);
            } else if !checked.references.is_empty() {
                let again = Checked::again(checked.url, said, said, checked.references);
                self.checked.push(again);
            }
        }
        said
    }
}

/// The places by their spellings, in the order in which they were found.
fn by_spelling(first: Option<Place>, further: Vec<Place>) -> Vec<(String, Vec<Reference>)> {
    let Some(first) = first else {
        return Vec::new();
    };
    let mut found = vec![(first.spelling.into_string(), vec![first.reference])];
    let mut numbers = HashMap::new();
    for place in further {
        if *found[0].0 == *place.spelling {
            found[0].1.push(place.reference);
            continue;
        }
        let number = *numbers.entry(place.spelling.clone()).or_insert(found.len());
        if number == found.len() {
            found.push((place.spelling.into_string(), Vec::new()));
        }
        found[number].1.push(place.reference);
    }
    found
}

#[cfg(test)]
mod tests;
