//! The thread that owns the store: adds what the sources say, hands out URLs to ask, stores answers in groups, and reads
//! back what is to be reported.
//!
//! The thread that asks never waits for the disk. Its commands are as many as its tasks; what comes back is bounded, so
//! that a slow reader of the results slows down everything.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, never, select, unbounded};
use jiff::Timestamp;

use super::feeder::Fed;
use super::judge::Judge;
use crate::check::record::Checked;
use crate::check::sources::Problem;
use crate::store::{
    Added, Completed, EntryId, Host, HostFacts, HostId, Link, LinkId, Queued, Record, Selection,
    Store, StoreError,
};

/// The thread, as others see it. When dropped, what was answered is stored.
#[derive(Debug)]
pub(super) struct Keeper {
    /// `None`: no more commands come.
    commands: Option<Sender<Command>>,
    replies: Receiver<Reply>,
    thread: Option<JoinHandle<()>>,
}

/// What the keeper is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Read the next entries of a host's queue: [`Reply::Taken`].
    Take {
        host: HostId,
        after: EntryId,
        limit: usize,
    },
    /// Store what was answered.
    Complete(Vec<Completed>),
    /// Store what was learned about hosts.
    SaveHosts(Vec<(HostId, HostFacts)>),
    /// End the run, all of which was reported: [`Reply::Ended`]. A run that is not ended is continued by the next one.
    End,
}

/// What the keeper says.
#[derive(Debug)]
pub(super) enum Reply {
    /// The run began. Entries of an interrupted run may wait.
    Began { is_resumed: bool },
    /// Hosts that have URLs to ask.
    Hosts(Vec<Host>),
    /// Entries joined the queues of hosts.
    Queued(Vec<(HostId, u32)>),
    /// The next entries of a host's queue; fewer than the limit if there are no more.
    Taken {
        host: HostId,
        limit: usize,
        queued: Vec<Queued>,
    },
    /// What sources said beside places.
    Source {
        problems: Vec<Problem>,
        unsupported: u64,
        excluded: u64,
    },
    /// URLs that are judged.
    Judged(Vec<Checked>),
    /// The sources have ended, and nothing is left to ask or to report.
    Done,
    /// The run has ended.
    Ended,
    /// The store failed. Nothing more is stored.
    Failed(StoreError),
}

/// How the run is kept and reported.
#[derive(Debug)]
pub(super) struct Settings {
    /// What is checked: an interrupted run is continued only if the text is the same.
    pub(super) identity: String,
    pub(super) judge: Judge,
    /// Whether the sources have pages, so that places come from answers, too.
    pub(super) has_pages: bool,
    /// Whether answers are read again after they were reported: by another run, or for further links to their pages.
    pub(super) needs_answers: bool,
    /// Whether URLs are reported as soon as they are judged, although further places may come.
    pub(super) at_once: bool,
}

impl Keeper {
    /// Starts the thread.
    pub(super) fn start(
        store: impl Store + 'static,
        sources: Receiver<Fed>,
        settings: Settings,
    ) -> Self {
        let (commands, of_commands) = unbounded();
        let (replies, of_replies) = bounded(REPLIES);
        let work = move || {
            let mut thread = KeeperThread {
                store,
                settings,
                sources,
                replies,
                waiting: Vec::new(),
                oldest: None,
                left: 0,
                phase: Phase::Open,
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

    /// Gives a command.
    pub(super) fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A keeper that failed says so in its replies.
            let _ = commands.send(command);
        }
    }

    /// The next reply, if there is one.
    pub(super) fn next(&self) -> Option<Reply> {
        self.replies.try_recv().ok()
    }

    /// The next reply. Waits for this time.
    pub(super) fn wait(&self, time: Duration) -> Option<Reply> {
        self.replies.recv_timeout(time).ok()
    }
}

impl Drop for Keeper {
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
    settings: Settings,
    /// `never` when they have ended.
    sources: Receiver<Fed>,
    replies: Sender<Reply>,
    /// Answers that are not stored yet.
    waiting: Vec<Completed>,
    /// When the first of them came.
    oldest: Option<Instant>,
    /// Entries in all queues.
    left: u64,
    phase: Phase,
}

/// How far the reporting is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Further places may come from sources.
    Open,
    /// Further places may come from pages.
    Pages,
    /// No further place can come. What was judged before is being reported: links up to this one were.
    Backlog(LinkId),
    /// What is judged is reported at once.
    Closed,
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
            if self.is_due() {
                self.flush()?;
            } else if let Phase::Backlog(after) = self.phase {
                self.report_backlog(after)?;
            } else {
                self.wait(commands)?;
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
        let run = self
            .store
            .begin_run(&self.settings.identity, Timestamp::now())?;
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
        Ok(())
    }

    /// Waits for a command, for a source, or until answers have to be stored.
    fn wait(&mut self, commands: &Receiver<Command>) -> Outcome {
        let until = self.oldest.map(|oldest| oldest + GROUP_TIME);
        let time = until.map_or(LONGEST_WAIT, |until| {
            until.saturating_duration_since(Instant::now())
        });
        select! {
            recv(commands) -> command => match command {
                Ok(command) => self.handle(command),
                // The loop notices it.
                Err(_) => Ok(()),
            },
            recv(self.sources) -> fed => match fed {
                Ok(fed) => self.add(fed),
                Err(_) => self.end_sources(),
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
    fn add(&mut self, fed: Fed) -> Outcome {
        if !fed.links.is_empty() {
            let added = self.store.add(&fed.links)?;
            self.announce(&added)?;
            if self.settings.at_once {
                self.report_late(&added, &fed.links)?;
            }
        }
        if fed.problems.is_empty() && fed.unsupported == 0 && fed.excluded == 0 {
            return Ok(());
        }
        self.reply(Reply::Source {
            problems: fed.problems,
            unsupported: fed.unsupported,
            excluded: fed.excluded,
        })
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

    fn end_sources(&mut self) -> Outcome {
        self.sources = never();
        self.phase = Phase::Pages;
        self.flush()
    }

    /// Whether the run is over.
    fn is_done(&self) -> bool {
        self.phase == Phase::Closed && self.left == 0 && self.waiting.is_empty()
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
        if self.phase == Phase::Closed && !self.settings.needs_answers {
            self.left = self.left.saturating_sub(completed.len() as u64);
            return self.report_unstored(completed);
        }
        if !completed.is_empty() {
            let added = self.store.complete(&completed)?;
            self.left = self.left.saturating_sub(completed.len() as u64);
            self.announce(&added)?;
            self.report(&completed, &added)?;
        }
        if self.phase == Phase::Pages && !self.pages_are_left() {
            self.phase = match self.settings.at_once {
                true => Phase::Closed,
                false => Phase::Backlog(LinkId::START),
            };
        }
        Ok(())
    }

    fn pages_are_left(&self) -> bool {
        self.settings.has_pages && self.left > 0 && self.store.has_pages_left()
    }

    fn report(&mut self, completed: &[Completed], added: &Added) -> Outcome {
        let is_reported = |link: LinkId| match self.phase {
            Phase::Open | Phase::Pages => self.settings.at_once,
            Phase::Backlog(after) => link <= after,
            Phase::Closed => true,
        };
        if self.settings.at_once || !matches!(self.phase, Phase::Open | Phase::Pages) {
            let ids: Vec<_> = completed.iter().map(|completed| completed.id).collect();
            let mut found = Found::new(&self.settings.judge, &self.replies);
            self.store
                .records_of(&ids, &mut |record| match is_reported(record.link) {
                    true => found.add(record),
                    false => ControlFlow::Continue(()),
                })?;
            found.end()?;
        }
        if self.settings.at_once {
            let links: Vec<Link> = completed
                .iter()
                .flat_map(|completed| &completed.links)
                .cloned()
                .collect();
            self.report_late(added, &links)?;
        }
        Ok(())
    }

    /// Reports answers that are not stored, because nobody will read them again.
    fn report_unstored(&mut self, completed: Vec<Completed>) -> Outcome {
        let ids: Vec<_> = completed.iter().map(|completed| completed.id).collect();
        let answers = completed.into_iter();
        let answers = answers.filter_map(|completed| Some((completed.id, completed.judged?.0)));
        let answers: HashMap<_, _> = answers.collect();
        let mut found = Found::new(&self.settings.judge, &self.replies);
        self.store.records_of(&ids, &mut |mut record| {
            record.answer = answers.get(&record.id).cloned();
            found.add(record)
        })?;
        found.end()
    }

    /// Reports new places that refer to URLs which were reported before.
    fn report_late(&mut self, added: &Added, links: &[Link]) -> Outcome {
        if added.judged.is_empty() {
            return Ok(());
        }
        let mut found = Found::new(&self.settings.judge, &self.replies);
        for judged in &added.judged {
            let Some(link) = links.get(judged.index) else {
                continue;
            };
            if let Some(mut record) = self.store.record(judged.link)? {
                record.references = vec![link.reference.clone()];
                if found.add(record).is_break() {
                    break;
                }
            }
        }
        found.end()
    }

    /// Reports some of what was judged before the last place was known.
    fn report_backlog(&mut self, after: LinkId) -> Outcome {
        let mut last = None;
        let mut count = 0;
        let mut found = Found::new(&self.settings.judge, &self.replies);
        self.store
            .records(after, Selection::Judged, &mut |record| {
                last = Some(record.link);
                count += 1;
                found.add(record)?;
                match count < AT_ONCE {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })?;
        found.end()?;
        self.phase = match last {
            Some(last) if count == AT_ONCE => Phase::Backlog(last),
            _ => Phase::Closed,
        };
        Ok(())
    }
}

/// Gathers judged URLs and sends them.
struct Found<'a> {
    judge: &'a Judge,
    replies: &'a Sender<Reply>,
    found: Vec<Checked>,
    is_stopped: bool,
}

impl<'a> Found<'a> {
    fn new(judge: &'a Judge, replies: &'a Sender<Reply>) -> Self {
        Self {
            judge,
            replies,
            found: Vec::new(),
            is_stopped: false,
        }
    }

    fn add(&mut self, record: Record) -> ControlFlow<()> {
        self.found.extend(self.judge.checked(record));
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

/// The longest time that an answer waits for its transaction.
const GROUP_TIME: Duration = Duration::from_millis(50);

/// The longest wait without anything to do.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Replies that wait to be handled.
const REPLIES: usize = 32;
