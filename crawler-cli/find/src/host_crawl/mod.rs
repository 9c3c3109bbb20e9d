//! The crawl of one host: which directories are known, which request is next, what a reply means, when to retry, and
//! when the crawl is done. Pure: no socket, no clock; time is an argument and results go to a [`Visitor`](super::Visitor).
//!
//! Invariants: a directory is marked as known when it is queued, so it is requested once, however many links or
//! redirects lead to it. Every request from [`HostCrawl::poll_request`] is answered by one `handle_*` call. Every URL
//! that is given up is reported once. The results do not depend on the order of replies.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use courser::proto::is_redirect;
use url::Url;

use super::cause::{Cause, Failure};
use super::expr::{Memo, Verdict};
use super::found::{Found, Unread};
use super::link::Ancestors;
use super::policy::{Follow, Policy};
use super::visitor::Turn;
use crawl::failure::FailureScope;
use crawl::politeness::Politeness;
use crawl::retry::Failed;
use crawl::retry_queue::RetryQueue;
use crawl::work::RequestId;
use listing;
use listing::path;
use plain::random::seed_of_host;

mod directories;
mod entries;
mod files;
mod gates;
mod journal;
mod links;
mod messages;
mod probes;
mod redirects;
mod resume;
mod retries;
mod robots;
mod seen;
mod spelling;
mod starts;
mod streams;
mod task;
#[cfg(test)]
mod tests;
mod trials;

use entries::ProbeResult;
pub(super) use files::FileEnd;
use journal::Journal;
pub use journal::{Change, KeptCrawl, ListingProgress, Snapshot};
use links::is_web_page;
pub(super) use messages::http_date;
pub use messages::{BodyEnd, ContentRange, Counts, Fetch, FetchKind, Reply};
use probes::Probes;
use seen::Seen;
use spelling::Spelling;
use starts::Starts;
use task::{Task, TaskKind};
use trials::Trials;

/// The crawl of one host.
#[derive(Debug)]
pub struct HostCrawl {
    spelling: Spelling,
    policy: Policy,
    starts: Starts,
    seen: Seen,
    /// Ready tasks are taken last in, first out: the queue holds at most about depth times width of the tree.
    queue: RetryQueue<Task>,
    /// Files to download, the first one first.
    files: RetryQueue<Task>,
    in_flight: HashMap<RequestId, (Task, FetchKind)>,
    /// The bodies that arrive, with the statuses of their replies.
    streams: HashMap<RequestId, (u16, Vec<u8>)>,
    politeness: Politeness,
    probes: Probes,
    journal: Journal,
    counts: Counts,
    trials: Trials,
    /// Pages that links led to.
    linked_pages: u64,
    /// Why the host was given up. Tasks that come back from the disk later are given up for the same cause.
    given_up: Option<Arc<Cause>>,
}

impl HostCrawl {
    /// The crawl of the host of `origin`. Path and query of `origin` do not matter.
    pub fn new(origin: &Url, mut policy: Policy) -> Self {
        let seed = &mut policy.host.seed;
        *seed = seed.map(|seed| seed_of_host(seed, origin.as_str()));
        Self {
            spelling: Spelling::of(origin),
            starts: Starts::default(),
            seen: Seen::new(),
            queue: RetryQueue::default(),
            files: RetryQueue::default(),
            in_flight: HashMap::new(),
            streams: HashMap::new(),
            politeness: Politeness::new(&policy.host),
            probes: Probes::new(),
            journal: Journal::default(),
            counts: Counts::default(),
            trials: Trials::default(),
            linked_pages: 0,
            given_up: None,
            policy,
        }
    }

    /// Adds a start, unless it was added before.
    ///
    /// A start inside the tree of another start keeps depth 0, and everything below belongs to it alone.
    ///
    /// A start with a query is the listing of the directory in its path.
    pub fn add_start(&mut self, target: &str) {
        self.add_start_at(target, Ancestors::default());
    }

    /// Adds a start at the end of a chain of redirects.
    fn add_start_at(&mut self, target: &str, chain: Ancestors) {
        if self.policy.follow == Follow::Pages {
            return self.add_page(target, chain);
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let target: Vec<String> = path.split('/').map(path::normalise_segment).collect();
        let target = target.join("/");
        let mut directory = path::canonical(&target);
        if !directory.ends_with('/') {
            directory.push('/');
        }
        let start = self.add_root(&directory);
        if self.starts.mark_found(start) {
            return;
        }
        let was_listed = !self.mark(&directory);
        if was_listed && chain.iter().next().is_some() {
            return;
        }
        let mut task = Task::new(target, TaskKind::Start, start, 0).redirected(chain);
        if let Some(query) = query {
            task.path = Some(directory.clone());
            task.target = format!("{}?{query}", task.target);
        }
        self.queue_first(task);
    }

    /// The next request; `None` if none may be sent at `now`.
    pub fn poll_request(&mut self, now: Instant) -> Option<Fetch<'_>> {
        if !self.politeness.may_send(now) {
            return None;
        }
        let task = self.next_task(now)?;
        let kind = task.fetch_kind(self.probes.uses_head());
        let id = self.send(now, task, kind);
        let (task, _) = self.in_flight.get(&id)?;
        Some(Fetch {
            id,
            kind,
            target: task.next_target(),
        })
    }

    /// The request for a task is sent.
    pub(super) fn send(&mut self, now: Instant, mut task: Task, kind: FetchKind) -> RequestId {
        self.politeness.handle_sent(now);
        task.attempts.handle_sent(now);
        self.counts.requests += 1;
        self.counts.retries += u64::from(task.attempts.is_repeated());
        let id = RequestId(self.journal.number());
        self.in_flight.insert(id, (task, kind));
        id
    }

    /// When to call [`poll_request`](Self::poll_request) again after it returned `None`, if no reply comes before.
    /// `None`: only a reply can change anything.
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        if !self.politeness.has_room() {
            return None;
        }
        let due = match self.has_ready() {
            true => None,
            false => Some(self.queue.next_due()?),
        };
        self.politeness.next_at(now).into_iter().chain(due).max()
    }

    /// Whether there is nothing left to request or to wait for.
    pub fn is_done(&self) -> bool {
        self.has_read_all() && !self.has_files()
    }

    /// Whether there is nothing left but files to download.
    pub fn has_read_all(&self) -> bool {
        let mut in_flight = self.in_flight.values();
        self.queue.is_empty()
            && in_flight.all(|(_, kind)| *kind == FetchKind::File)
            && self.probes.is_empty()
            && self.journal.spilled() == 0
    }

    /// The URL of the host, with the path `/`.
    pub fn origin(&self) -> &Url {
        self.spelling.origin()
    }

    /// The progress of the crawl.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A complete response arrived.
    pub fn handle_reply(&mut self, turn: &mut Turn<'_>, id: RequestId, reply: &Reply<'_>) {
        let Some((mut task, fetch)) = self.in_flight.remove(&id) else {
            return;
        };
        // Many servers do not support `HEAD`, and answer it with various statuses, or not at all.
        let is_refused = reply.status >= 300 && !is_redirect(reply.status);
        task.by_get |= fetch == FetchKind::Probe && is_refused && reply.status != 429;
        self.politeness.handle_over();
        let outer = self.journal.begin(task.number);
        if !matches!(reply.status, 429 | 503) {
            self.politeness.handle_answer(turn.now);
        }
        match (reply.status, fetch) {
            (429 | 503, _) => self.throttled(turn, task, reply),
            (..500, _) if task.gate.is_some() => self.gate_reply(turn, task, reply),
            (..500, _) if task.kind == TaskKind::Trial => self.tried(turn, task, reply),
            (_, FetchKind::Robots) => self.robots_reply(turn, task, reply),
            (500.., FetchKind::List | FetchKind::First | FetchKind::Page) => {
                self.retry(turn, task, Cause::Status(reply.status));
            }
            (status, _) if is_redirect(status) => self.redirect(turn, task, reply),
            // The response is a page with links, which GET will read.
            (200..=299, FetchKind::Probe | FetchKind::First)
                if task.kind == TaskKind::Link && is_web_page(reply) =>
            {
                self.queue(Task {
                    is_page: true,
                    ..task
                });
            }
            (200..=299, FetchKind::Probe | FetchKind::First) => {
                self.probes.handle_answer(&task);
                self.exists(turn, task, ProbeResult::by(reply, fetch));
            }
            (200 | 203, FetchKind::List) => self.page(turn, task, reply),
            (200 | 203, FetchKind::Page) => self.linked_page(turn, task, reply),
            // The server waited too long for the request (RFC 9110 §15.5.9), or is a cache, which answers 410 for
            // minutes while it is purged.
            (status @ (408 | 410), _) => self.retry(turn, task, Cause::Status(status)),
            (_, FetchKind::Probe) => self.queue(task),
            // An empty file has no first byte.
            (416, FetchKind::First) => self.exists(turn, task, ProbeResult::nothing(reply)),
            (status, _) => self.give_up(turn, task, &Cause::Status(status)),
        }
        self.journal.end(outer);
        self.resume(turn);
    }

    /// Nothing more can be fetched: gives up everything that is known and not yet read, for this cause.
    pub fn abandon(&mut self, turn: &mut Turn<'_>, cause: &Cause) {
        self.streams.clear();
        for (task, _) in mem::take(&mut self.in_flight).into_values() {
            self.politeness.handle_over();
            self.journal.forget(task.number);
            self.give_up(turn, task, cause);
        }
        self.give_up_waiting(turn, cause);
    }

    /// Tells the URLs of everything in memory that is known and not yet read to its end.
    pub fn tell_unasked(&self, tell: &mut dyn FnMut(&str)) {
        let in_flight = self.in_flight.values().map(|(task, _)| task);
        let waiting = self.queue.ready().chain(self.queue.postponed());
        let files = self.files.ready().chain(self.files.postponed());
        let asked = waiting.chain(files).chain(in_flight);
        let asked = asked.filter(|task| !matches!(task.kind, TaskKind::Robots | TaskKind::Trial));
        let held = self.trials.held().chain(self.probes.held());
        for task in asked.chain(held) {
            match task.kind {
                // No search can start in the middle of a listing.
                TaskKind::Page => tell(&self.url(&listing::first_page(&task.target))),
                _ => tell(&self.url(&task.target)),
            }
        }
    }

    /// A request failed without a complete response.
    pub fn handle_failure(&mut self, turn: &mut Turn<'_>, id: RequestId, failure: Failure) {
        self.streams.remove(&id);
        let Some((mut task, fetch)) = self.in_flight.remove(&id) else {
            return;
        };
        let (is_head, scope) = (fetch == FetchKind::Probe, failure.scope);
        task.by_get |= is_head && matches!(scope, FailureScope::Request | FailureScope::Final);
        self.politeness.handle_over();
        let outer = self.journal.begin(task.number);
        let failed = Failed::new(failure.cause.class(), scope);
        match scope {
            FailureScope::Final if is_head => self.queue(task),
            _ => self.failed(turn, task, failed, failure.cause),
        }
        self.journal.end(outer);
        self.resume(turn);
    }
}

/// The choice of the next task.
impl HostCrawl {
    /// Whether [`next_task`](Self::next_task) would return a ready task, apart from postponed ones.
    fn has_ready(&self) -> bool {
        match self.probes.is_clogged() {
            _ if self.asks_nothing_new() => false,
            true => self.queue.ready().any(|task| task.kind == TaskKind::File),
            false => self.queue.ready().len() > 0,
        }
    }

    /// Whether only postponed tasks may be requested.
    fn asks_nothing_new(&self) -> bool {
        self.awaits_robots() || self.queue.postponed().len() >= MOST_POSTPONED
    }

    fn next_task(&mut self, now: Instant) -> Option<Task> {
        let wants_robots = !self.is_done();
        // robots.txt is the first request, so there are no postponed tasks yet.
        if wants_robots && self.politeness.take_robots_request() {
            return Some(Task::new("/robots.txt".into(), TaskKind::Robots, 0, 0));
        }
        // Postponed tasks go first: the time for their retries is limited.
        if let Some(task) = self.queue.pop_due(now) {
            return Some(task);
        }
        match self.probes.is_clogged() {
            _ if self.asks_nothing_new() => None,
            true => self
                .queue
                .pop_ready_where(|task| task.kind == TaskKind::File),
            false => self.queue.pop_ready(),
        }
    }
}

/// Reports and bookkeeping.
impl HostCrawl {
    /// Queues a task as the next one.
    fn queue(&mut self, task: Task) {
        let task = self.journal.written(task);
        self.queue.push_next(task);
    }

    /// Passes an entry to the expression. `target` is its request target, `start` the index of its start.
    fn look(
        &mut self,
        turn: &mut Turn<'_>,
        target: &str,
        start: usize,
        found: Found<'_>,
        memo: &mut Memo,
    ) -> Verdict {
        let start = self.starts.path(start);
        let found = self.spelling.spelled(target, Found { start, ..found });
        turn.visitor.found(&found, memo)
    }

    fn give_up(&mut self, turn: &mut Turn<'_>, task: Task, cause: &Cause) {
        match task.kind {
            TaskKind::Robots => {
                let cause = Cause::RobotsUnread(cause.to_string());
                return self.give_up_rest(turn, cause);
            }
            TaskKind::Trial => return self.untried(turn, task.number),
            TaskKind::Wanted => {
                self.journal.fail(&task);
                return turn.visitor.not_downloaded(&self.url(&task.target), cause);
            }
            kind => self.counts.directories_done += u64::from(kind.is_of_directory()),
        }
        let url = self.url(&task.target);
        let waits = task.kind == TaskKind::File && task.open.is_some() && cause.may_pass();
        if waits && self.journal.fail_undecided(&task) {
            self.probes.handle_decided();
            return self.leave_out_from(turn, &url, cause, task.from.as_deref());
        }
        self.journal.fail(&task);
        self.leave_out_from(turn, &url, cause, task.from.as_deref());
        self.close(turn, task);
    }

    fn unread(&mut self, turn: &mut Turn<'_>, target: &str, cause: &Cause) {
        let url = self.url(target);
        self.leave_out(turn, &url, cause);
    }

    /// Reports a URL, perhaps of another host, that will not be read.
    pub fn leave_out(&mut self, turn: &mut Turn<'_>, url: &str, cause: &Cause) {
        self.leave_out_from(turn, url, cause, None);
    }

    /// Reports a URL that a link of the page `from` leads to.
    fn leave_out_from(
        &mut self,
        turn: &mut Turn<'_>,
        url: &str,
        cause: &Cause,
        from: Option<&str>,
    ) {
        self.counts.unread += 1;
        turn.visitor.unread(Unread { url, cause, from });
    }

    fn absolute(&self, target: &str) -> Option<Url> {
        self.spelling.parsed(target)
    }

    fn url(&self, target: &str) -> String {
        self.spelling.url(target)
    }

    /// Counts a directory (or page) to read. Returns whether it is new.
    fn mark(&mut self, canonical: &str) -> bool {
        let is_new = self.know(canonical);
        self.counts.directories += u64::from(is_new);
        is_new
    }

    /// Marks a key as known. Returns whether it is new.
    fn know(&mut self, key: &str) -> bool {
        let fingerprint = self.seen.insert(key);
        if let Some(fingerprint) = fingerprint {
            self.journal.note_known(fingerprint);
        }
        fingerprint.is_some()
    }

    fn is_known(&self, key: &str) -> bool {
        self.seen.contains(key)
    }
}

/// The largest number of postponed tasks before no new URLs are requested. Otherwise, if all requests fail, all tasks
/// would gather in memory.
const MOST_POSTPONED: usize = 10_000;

/// A header value, escaped for a message.
fn printable(value: &[u8]) -> String {
    value.escape_ascii().to_string()
}
