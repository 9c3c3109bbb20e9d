//! The thread that owns the store: adds what the sources say, hands out URLs to ask, stores answers in groups, and reads
//! back what is to be reported: a URL when it is judged, and places that are found later when they are found.
//!
//! The thread that asks never waits for the disk. Its commands are as many as its tasks; what comes back is bounded, so
//! that a slow reader of the results slows down everything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, never, select, unbounded};
use jiff::Timestamp;

use super::{Command, Keeper, Reply};
use crate::record::{Checked, Said};
use crate::run::judge::Judge;
use crate::sources::{Batch, Batches};
use store::{Added, Completed, Link, LinkId, Record, Selection, Store, StoreError, UrlId};
use verdict::Reference;

/// The thread, as others see it. When dropped, what was answered is stored.
#[derive(Debug)]
pub(in crate::run) struct Stored {
    /// `None`: no more commands come.
    commands: Option<Sender<Command>>,
    replies: Receiver<Reply>,
    thread: Option<JoinHandle<()>>,
}

impl Stored {
    /// Starts the thread. `identity`: what is checked. An interrupted run is continued only if the text is the same.
    pub(in crate::run) fn start(
        store: impl Store + 'static,
        sources: Batches,
        identity: String,
        judge: Judge,
    ) -> Self {
        let (commands, of_commands) = unbounded();
        let (replies, of_replies) = bounded(REPLIES);
        let work = move || {
            let mut thread = KeeperThread {
                store,
                identity,
                judge,
                sources,
                replies,
                has_sources: true,
                waiting: Vec::new(),
                oldest: None,
                left: 0,
                reported: Reported::default(),
                unsettled: HashSet::new(),
                later: HashMap::new(),
            };
            if let Err(Stop::Failed(error)) = thread.run(&of_commands) {
                // If nobody listens any more, the run was stopped.
                let _ = thread.replies.send(Reply::Failed(error));
            }
        };
        Self {
            commands: Some(commands),
            replies: of_replies,
            thread: Some(thread::spawn(work)),
        }
    }
}

impl Keeper for Stored {
    fn send(&mut self, command: Command) {
        if let Some(commands) = &self.commands {
            // A keeper that failed says so in its replies.
            let _ = commands.send(command);
        }
    }

    fn next(&mut self) -> Option<Reply> {
        self.replies.try_recv().ok()
    }

    fn wait(&mut self, time: Duration) -> Option<Reply> {
        self.replies.recv_timeout(time).ok()
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.commands = None;
        // The thread may be about to send: its last replies are not needed.
        while self.replies.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct KeeperThread<S> {
    store: S,
    identity: String,
    judge: Judge,
    sources: Batches,
    replies: Sender<Reply>,
    has_sources: bool,
    /// Answers that are not stored yet.
    waiting: Vec<Completed>,
    /// When the first of them came.
    oldest: Option<Instant>,
    /// Entries in all queues.
    left: u64,
    reported: Reported,
    /// URLs that were answered, and are asked once more before they are reported.
    unsettled: HashSet<UrlId>,
    /// Places of URLs that were reported and are asked again, because these places want more. At most [`MOST_LATER`]
    /// URLs.
    later: HashMap<UrlId, Vec<Place>>,
}

/// A place, and how it spells its URL.
type Place = (LinkId, Reference);

/// The URLs that were reported. The numbers of URLs are dense: a bit for each.
#[derive(Debug, Default)]
struct Reported(Vec<u64>);

impl Reported {
    fn has(&self, id: UrlId) -> bool {
        let (word, bit) = Self::place(id);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Returns whether the URL is new.
    fn insert(&mut self, id: UrlId) -> bool {
        let (word, bit) = Self::place(id);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    fn place(id: UrlId) -> (usize, u64) {
        let number = usize::try_from(id.0).unwrap_or(0);
        (number / 64, 1 << (number % 64))
    }
}

/// Why the thread ends.
enum Stop {
    /// Nobody listens any more.
    Stopped,
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

type Outcome<T = ()> = Result<T, Stop>;

impl<S: Store> KeeperThread<S> {
    fn run(&mut self, commands: &Receiver<Command>) -> Outcome {
        self.begin()?;
        while !self.is_done() {
            // Hosts come first: they wait for URLs, sources only for room.
            match commands.try_recv() {
                Ok(command) => {
                    self.handle(command)?;
                    continue;
                }
                Err(error) if error.is_disconnected() => {
                    self.flush()?;
                    return Ok(());
                }
                Err(_) => {}
            }
            match self.is_due() {
                true => self.flush()?,
                false => self.wait(commands)?,
            }
        }
        self.reply(Reply::Done)?;
        // Without a command to end, the reports are incomplete.
        while let Ok(command) = commands.recv() {
            self.handle(command)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Outcome {
        let run = self.store.begin_run(&self.identity, Timestamp::now())?;
        self.left = self.store.counts()?.queued;
        self.reply(Reply::Began {
            is_resumed: run.is_resumed,
        })?;
        if self.left > 0 {
            let mut hosts = Vec::new();
            self.store.waiting_hosts(&mut |host| {
                hosts.push(host);
                ControlFlow::Continue(())
            })?;
            self.reply(Reply::Hosts(hosts))?;
        }
        match run.is_resumed {
            true => self.report_resumed(),
            false => Ok(()),
        }
    }

    /// Waits for a command, for a source, or until answers have to be stored.
    fn wait(&mut self, commands: &Receiver<Command>) -> Outcome {
        let until = self.oldest.map(|oldest| oldest + GROUP_TIME);
        let time = until.map_or(LONGEST_WAIT, |until| {
            until.saturating_duration_since(Instant::now())
        });
        let sources = match self.has_sources {
            true => self.sources.receiver().clone(),
            false => never(),
        };
        select! {
            recv(commands) -> command => match command {
                Ok(command) => self.handle(command),
                // The loop notices it.
                Err(_) => Ok(()),
            },
            recv(sources) -> batch => match batch {
                Ok(batch) => self.add(batch),
                Err(_) => {
                    self.has_sources = false;
                    self.reply(Reply::AllRead)
                }
            },
            default(time) => Ok(()),
        }
    }

    fn handle(&mut self, command: Command) -> Outcome {
        match command {
            Command::Take { host, after, limit } => {
                let queued = self.store.take(host, after, limit)?;
                self.reply(Reply::Taken {
                    host,
                    limit,
                    queued,
                })
            }
            Command::Complete(completed) => {
                self.oldest.get_or_insert_with(Instant::now);
                self.waiting.extend(completed);
                Ok(())
            }
            Command::SaveHosts(hosts) => Ok(self.store.save_hosts(&hosts)?),
            Command::End => {
                self.store.end_run(Timestamp::now())?;
                self.reply(Reply::Ended)
            }
        }
    }

    fn reply(&self, reply: Reply) -> Outcome {
        self.replies.send(reply).map_err(|_| Stop::Stopped)
    }
}

/// Sources.
impl<S: Store> KeeperThread<S> {
    fn add(&mut self, mut batch: Batch) -> Outcome {
        let links = std::mem::take(&mut batch.links);
        if !links.is_empty() {
            let added = self.store.add(&links)?;
            self.announce(&added)?;
            self.report(&[], &added, &links.iter().collect::<Vec<_>>())?;
        }
        match batch.is_empty() {
            true => Ok(()),
            false => self.reply(Reply::Source(batch)),
        }
    }

    fn announce(&mut self, added: &Added) -> Outcome {
        if !added.new_hosts.is_empty() {
            self.reply(Reply::Hosts(added.new_hosts.clone()))?;
        }
        if !added.queued.is_empty() {
            self.left += added
                .queued
                .iter()
                .map(|(_, count)| u64::from(*count))
                .sum::<u64>();
            self.reply(Reply::Queued(added.queued.clone()))?;
        }
        Ok(())
    }

    /// Whether the run is over.
    fn is_done(&self) -> bool {
        !self.has_sources && self.left == 0 && self.waiting.is_empty()
    }
}

/// Answers.
impl<S: Store> KeeperThread<S> {
    /// Whether it is time to store the answers: there are many, they are old, or no other can come before they are stored.
    fn is_due(&self) -> bool {
        let count = self.waiting.len();
        let is_old = |oldest: Instant| oldest.elapsed() >= GROUP_TIME;
        count >= GROUP
            || (count > 0 && count as u64 >= self.left)
            || self.oldest.is_some_and(is_old)
    }

    /// Stores the answers in one transaction, then reports them.
    fn flush(&mut self) -> Outcome {
        self.oldest = None;
        let completed = std::mem::take(&mut self.waiting);
        if completed.is_empty() {
            return Ok(());
        }
        let mut ids: Vec<UrlId> = completed.iter().map(|completed| completed.id).collect();
        let again = ids.iter().copied().filter(|&id| self.reported.has(id));
        let before = self.said(&again.collect::<Vec<_>>())?;
        let added = self.store.complete(&completed)?;
        self.left = self.left.saturating_sub(completed.len() as u64);
        self.announce(&added)?;
        // The answer to a URL that is asked once more is not the last word.
        self.unsettled.extend(&added.again);
        ids.retain(|id| !added.again.contains(id));
        for id in &ids {
            self.unsettled.remove(id);
            if let Some(before) = before.get(id) {
                self.report_again(*id, before)?;
            }
        }
        let links: Vec<&Link> = completed.iter().flat_map(|it| &it.links).collect();
        self.report(&ids, &added, &links)
    }

    /// Reports these URLs, unless they were, and what was added: URLs that were judged without being asked, and places of
    /// URLs that were reported before.
    fn report(&mut self, ids: &[UrlId], added: &Added, links: &[&Link]) -> Outcome {
        let judged = added.judged.iter();
        let judged = judged.filter_map(|judged| Some((judged, *links.get(judged.index)?)));
        let (mut new, mut late) = (Vec::new(), BTreeMap::<LinkId, Vec<Reference>>::new());
        for &id in ids {
            if self.reported.insert(id) {
                new.push(id);
            }
        }
        // The records of new URLs have all of their places.
        let mut whole: HashSet<UrlId> = new.iter().copied().collect();
        for (judged, link) in judged {
            let id = judged.id;
            let reference = || link.reference.clone();
            if self.reported.has(id) && !whole.contains(&id) {
                match judged.is_met || !self.has_room_for_later(id) {
                    true => late.entry(judged.link).or_default().push(reference()),
                    false => {
                        let later = self.later.entry(id).or_default();
                        later.push((judged.link, reference()));
                    }
                }
            } else if judged.is_met && !self.unsettled.contains(&id) && self.reported.insert(id) {
                whole.insert(id);
                new.push(id);
            }
        }
        self.report_new(&new)?;
        self.report_late(late)
    }

    /// Whether the place of a URL that is asked again can wait for the answer. If not, it is reported with the last one.
    fn has_room_for_later(&self, id: UrlId) -> bool {
        self.later.len() < MOST_LATER || self.later.contains_key(&id)
    }

    /// What is said about URLs.
    fn said(&mut self, ids: &[UrlId]) -> Outcome<HashMap<UrlId, Said>> {
        let mut said = HashMap::new();
        let judge = &self.judge;
        self.store.records_of(ids, &mut |record| {
            let id = record.id;
            if let Some(checked) = judge.checked(record) {
                said.entry(id).or_insert_with(|| checked.said());
            }
            ControlFlow::Continue(())
        })?;
        Ok(said)
    }

    /// Reports URLs for the first time, each in all of its spellings.
    fn report_new(&mut self, ids: &[UrlId]) -> Outcome {
        let mut found = Found::new(&self.judge, &self.replies);
        self.store
            .records_of(ids, &mut |record| found.add(record))?;
        found.end()
    }

    /// Reports the places that waited for a further answer to a URL.
    fn report_again(&mut self, id: UrlId, before: &Said) -> Outcome {
        let Some(&now) = self.said(&[id])?.get(&id) else {
            return Ok(());
        };
        let mut late = BTreeMap::<LinkId, Vec<Reference>>::new();
        for (link, reference) in self.later.remove(&id).unwrap_or_default() {
            late.entry(link).or_default().push(reference);
        }
        if late.is_empty() && now.verdict == before.verdict {
            return Ok(());
        }
        let (mut found, mut first) = (Vec::new(), None);
        self.store.records_of(&[id], &mut |record| {
            match late.remove(&record.link) {
                Some(references) => found.push(Record {
                    references,
                    ..record
                }),
                None => _ = first.get_or_insert(record),
            }
            ControlFlow::Continue(())
        })?;
        if found.is_empty() {
            found.extend(first.map(|record| Record {
                references: Vec::new(),
                ..record
            }));
        }
        let mut before = *before;
        let judge = &self.judge;
        let found = found.into_iter().filter_map(|record| {
            let checked = judge.checked(record)?;
            let before = std::mem::replace(&mut before, now);
            let changed = Checked {
                before: Some(before),
                ..checked
            };
            // All is said about another verdict, and summaries count the change once.
            Some(match changed.is_news() {
                true => changed,
                false => Checked::again(changed.url, now, before, changed.references),
            })
        });
        let found = found.collect();
        self.reply(Reply::Judged(found))
    }

    /// Reports new places of URLs that were reported before, by spelling.
    fn report_late(&mut self, late: BTreeMap<LinkId, Vec<Reference>>) -> Outcome {
        let mut judged = Vec::new();
        for (link, references) in late {
            let record = self.store.record(link)?;
            if let Some(checked) = record.and_then(|record| self.judge.checked(record)) {
                let said = checked.said();
                judged.push(Checked::again(checked.url, said, said, references));
            }
        }
        match judged.is_empty() {
            true => Ok(()),
            false => self.reply(Reply::Judged(judged)),
        }
    }

    /// Reports what an interrupted run had judged, and where its pages refer to it.
    fn report_resumed(&mut self) -> Outcome {
        let mut found = Found::new(&self.judge, &self.replies);
        let reported = &mut self.reported;
        self.store.records(
            LinkId::START,
            Selection::Judged,
            &mut |record| match reported.insert(record.id) {
                true => found.add(record),
                false => found.add_spelling(record),
            },
        )?;
        found.end()
    }
}

/// Gathers judged URLs and sends them.
struct Found<'a> {
    judge: &'a Judge,
    replies: &'a Sender<Reply>,
    found: Vec<Checked>,
    /// The last URL: its other spellings follow.
    last: Option<UrlId>,
    is_stopped: bool,
}

impl<'a> Found<'a> {
    fn new(judge: &'a Judge, replies: &'a Sender<Reply>) -> Self {
        Self {
            judge,
            replies,
            found: Vec::new(),
            last: None,
            is_stopped: false,
        }
    }

    /// Adds a URL, or another spelling of the last one.
    fn add(&mut self, record: Record) -> ControlFlow<()> {
        if self.last.replace(record.id) == Some(record.id) {
            return self.add_spelling(record);
        }
        let checked = self.judge.checked(record);
        self.push(checked)
    }

    /// Adds another spelling of a URL that is reported already.
    fn add_spelling(&mut self, record: Record) -> ControlFlow<()> {
        let checked = self.judge.checked(record).map(Checked::further);
        self.push(checked)
    }

    fn push(&mut self, checked: Option<Checked>) -> ControlFlow<()> {
        self.found.extend(checked);
        if self.found.len() >= AT_ONCE {
            self.send();
        }
        match self.is_stopped {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn send(&mut self) {
        let found = std::mem::take(&mut self.found);
        self.is_stopped |= self.replies.send(Reply::Judged(found)).is_err();
    }

    fn end(mut self) -> Outcome {
        if !self.found.is_empty() {
            self.send();
        }
        match self.is_stopped {
            true => Err(Stop::Stopped),
            false => Ok(()),
        }
    }
}

/// The largest number of answers in one transaction, and of records in one reply.
const GROUP: usize = 512;
const AT_ONCE: usize = 256;

/// The largest number of URLs whose places wait for a further answer.
const MOST_LATER: usize = 10_000;

/// The longest time that an answer waits for its transaction.
const GROUP_TIME: Duration = Duration::from_millis(50);

/// The longest wait without anything to do.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Replies that wait to be handled.
const REPLIES: usize = 32;
