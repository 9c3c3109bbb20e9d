//! The state of a crawl of one host: which directories are known, which request is next, what a reply means, when to
//! try again, when all is done. Pure: no socket, no clock; time is an argument and results go to a callback.
//!
//! Invariants: a directory is marked as known when it is queued, so that it is asked for once however many links or
//! redirects lead to it; every request handed out by [`Frontier::poll_request`] is answered by one `handle_*` call;
//! every URL that is given up is reported once. What is found does not depend on the order of replies.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;
use std::mem;
use std::time::{Duration, Instant};

use url::Url;

use super::listing::{self, Entry, EntryKind, Listing, Shape};
use super::path;
use super::range::{SizeRange, TimeRange};

mod cause;
mod messages;
mod policy;
#[cfg(test)]
mod tests;

pub use cause::Cause;
pub use messages::{
    Ask, Blame, BodyEnd, Counts, Failure, Fetch, FetchId, Finding, Found, Kind, Reply, Unread,
};
pub use policy::{Limits, Policy};

/// The crawl of one host.
#[derive(Debug)]
pub struct Frontier {
    /// Scheme and authority; the path is `/`.
    origin: Url,
    policy: Policy,
    starts: Vec<Start>,
    /// Fingerprints of the canonical paths of all directories that were ever queued.
    known: HashSet<u128>,
    hashers: [RandomState; 2],
    /// Last in, first out: the queue stays as small as the tree is deep times wide.
    ready: Vec<Task>,
    /// What failed, by when it may be tried again; the number tells apart what is due at one instant.
    postponed: BTreeMap<(Instant, u64), Task>,
    in_flight: HashMap<FetchId, Task>,
    next_number: u64,
    /// Nothing is sent before: the server asked for it, or is not there. Stays when it has passed.
    paused_until: Option<Instant>,
    /// Requests that may be under way at a time, once the host has asked for less. Halved by each pause that it asks
    /// for, one more after [`GOOD_REPLIES`] replies in a row without complaint.
    window: usize,
    good_replies: u32,
    /// A reply has come, ever.
    has_replied: bool,
    /// Pauses since the last reply because the host was away.
    absences: u32,
    counts: Counts,
}

/// Where a crawl begins.
#[derive(Debug)]
struct Start {
    /// The directory's canonical path, ending in `/`.
    directory: String,
}

/// One URL to ask for.
#[derive(Debug)]
struct Task {
    /// The path, percent-encoded. Ends in `/` when it is a directory.
    target: String,
    kind: TaskKind,
    /// Index of the innermost start that holds it.
    start: usize,
    depth: u32,
    attempts: u32,
    redirects: u32,
    /// When the last request was handed out.
    sent_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TaskKind {
    /// A start, whose existence nothing has shown yet. As it was given, with or without a final `/`.
    Start,
    /// A directory.
    Directory,
    /// A name that may be one, listed by a page of this shape.
    Unknown(Shape),
}

impl Task {
    fn new(target: String, kind: TaskKind, start: usize, depth: u32) -> Self {
        Self {
            target,
            kind,
            start,
            depth,
            attempts: 0,
            redirects: 0,
            sent_at: None,
        }
    }

    fn ask(&self) -> Ask {
        if self.target.ends_with('/') {
            Ask::List
        } else {
            Ask::Probe
        }
    }
}

/// Something found, before its URL is spelled out.
struct Item<'a> {
    target: &'a str,
    kind: Kind,
    /// Index of the start.
    start: usize,
    depth: u32,
    listing: Option<Shape>,
    size: Option<SizeRange>,
    modified: Option<TimeRange>,
}

impl<'a> Item<'a> {
    /// What no page has listed.
    fn start(target: &'a str, kind: Kind, start: usize) -> Self {
        Self {
            target,
            kind,
            start,
            depth: 0,
            listing: None,
            size: None,
            modified: None,
        }
    }
}

/// Where results go.
type Sink<'s> = &'s mut dyn FnMut(Finding<'_>);

impl Frontier {
    /// The crawl of the host of `origin`; only its scheme, host and port matter.
    pub fn new(origin: &Url, policy: Policy) -> Self {
        let mut origin = origin.clone();
        origin.set_path("/");
        origin.set_query(None);
        origin.set_fragment(None);
        Self {
            origin,
            policy,
            starts: Vec::new(),
            known: HashSet::new(),
            hashers: [RandomState::new(), RandomState::new()],
            ready: Vec::new(),
            postponed: BTreeMap::new(),
            in_flight: HashMap::new(),
            next_number: 0,
            paused_until: None,
            window: usize::MAX,
            good_replies: 0,
            has_replied: false,
            absences: 0,
            counts: Counts::default(),
        }
    }

    /// Adds a start before the crawl begins. One that is already there is not added again.
    ///
    /// A start inside the tree of another one keeps its own depth 0, and what is below it belongs to it alone.
    pub fn add_start(&mut self, path: &str) {
        let target: Vec<String> = path.split('/').map(path::normalise_segment).collect();
        let target = target.join("/");
        let mut directory = path::canonical(&target);
        if !directory.ends_with('/') {
            directory.push('/');
        }
        if self.starts.iter().any(|start| start.directory == directory) {
            return;
        }
        self.mark(&directory);
        // The queue is last in, first out; the first start given goes first.
        self.ready
            .insert(0, Task::new(target, TaskKind::Start, self.starts.len(), 0));
        self.starts.push(Start { directory });
    }

    /// The next request, if one may be sent at `now`.
    pub fn poll_request(&mut self, now: Instant) -> Option<Fetch<'_>> {
        let is_paused = self.paused_until.is_some_and(|until| now < until);
        if is_paused || self.in_flight.len() >= self.window {
            return None;
        }
        let mut task = self.next_task(now)?;
        task.attempts += 1;
        task.sent_at = Some(now);
        self.counts.requests += 1;
        self.counts.retries += u64::from(task.attempts > 1);
        let id = FetchId(self.number());
        let task = self.in_flight.entry(id).insert_entry(task).into_mut();
        Some(Fetch {
            id,
            ask: task.ask(),
            target: &task.target,
        })
    }

    /// When to call [`poll_request`](Self::poll_request), which has just had nothing, again although no reply came.
    /// `None`: only a reply can change anything.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.in_flight.len() >= self.window {
            return None;
        }
        if !self.ready.is_empty() {
            return self.paused_until;
        }
        let (&(due, _), _) = self.postponed.first_key_value()?;
        Some(self.paused_until.map_or(due, |until| until.max(due)))
    }

    /// Nothing is to be sent to the host before; it may have passed.
    pub fn held_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Sends nothing before: the host asked for a pause in reply to a request that was not made here.
    pub fn hold(&mut self, until: Instant) {
        self.paused_until = self.paused_until.max(Some(until));
    }

    /// Whether nothing is left to ask or to wait for.
    pub fn is_done(&self) -> bool {
        self.ready.is_empty() && self.postponed.is_empty() && self.in_flight.is_empty()
    }

    /// How far the crawl is.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A response arrived whole.
    pub fn handle_reply(&mut self, now: Instant, id: FetchId, reply: &Reply<'_>, sink: Sink<'_>) {
        let Some(task) = self.in_flight.remove(&id) else {
            return;
        };
        self.has_replied = true;
        self.absences = 0;
        if !matches!(reply.status, 429 | 503) {
            self.widen();
        }
        match reply.status {
            429 | 503 => {
                let wait = self.wait_asked_for(&task, reply);
                self.throttle(now, &task, wait);
                self.retry(now, task, Cause::Status(reply.status), wait, sink);
            }
            500.. => {
                let wait = self.back_off(task.attempts);
                self.retry(now, task, Cause::Status(reply.status), wait, sink);
            }
            301 | 302 | 303 | 307 | 308 => self.redirect(task, reply, sink),
            200..=299 if task.ask() == Ask::Probe => self.file(&task, sink),
            200 | 203 => self.page(now, task, reply, sink),
            status => self.give_up(&task, &Cause::Status(status), sink),
        }
    }

    /// Nothing can be fetched any more: everything that is known and not yet read is given up for this cause.
    pub fn abandon(&mut self, cause: &Cause, sink: Sink<'_>) {
        for task in mem::take(&mut self.in_flight).into_values() {
            self.give_up(&task, cause, sink);
        }
        self.give_up_waiting(cause, sink);
    }

    /// A request failed without a whole response.
    pub fn handle_failure(&mut self, now: Instant, id: FetchId, failure: Failure, sink: Sink<'_>) {
        let Some(task) = self.in_flight.remove(&id) else {
            return;
        };
        match failure.blame {
            Blame::Final => self.give_up(&task, &failure.cause, sink),
            Blame::Request => {
                let wait = self.back_off(task.attempts);
                self.retry(now, task, failure.cause, wait, sink);
            }
            Blame::HostFinal if !self.has_replied => {
                self.give_up(&task, &failure.cause, sink);
                self.give_up_waiting(&failure.cause, sink);
            }
            Blame::Host | Blame::HostFinal => self.absent(now, task, failure.cause, sink),
        }
    }
}

/// Replies.
impl Frontier {
    /// A directory's page, presumably.
    fn page(&mut self, now: Instant, task: Task, reply: &Reply<'_>, sink: Sink<'_>) {
        match self.read_page(&task, reply) {
            Ok(listing) => {
                if task.kind == TaskKind::Start {
                    self.found(Item::start(&task.target, Kind::Directory, task.start), sink);
                }
                self.listed(&task, listing, sink);
            }
            // What was cut may come whole next time.
            Err(cause @ Cause::CutShort(_)) => {
                let wait = self.back_off(task.attempts);
                self.retry(now, task, cause, wait, sink);
            }
            Err(cause) => self.give_up(&task, &cause, sink),
        }
    }

    fn read_page(&self, task: &Task, reply: &Reply<'_>) -> Result<Listing, Cause> {
        if let Some(coding) = reply.content_encoding
            && !coding.eq_ignore_ascii_case(b"identity")
        {
            return Err(Cause::Encoded(printable(coding)));
        }
        if let Some(content_type) = reply.content_type
            && !is_html(content_type)
        {
            return Err(Cause::NotHtml(printable(content_type)));
        }
        let limits = self.policy.limits.page;
        let mut page = self.origin.clone();
        page.set_path(&task.target);
        let listing = listing::parse(reply.body, &page, limits)
            .map_err(|_| Cause::TooManyLinks(limits.links))?;
        // A known server always ends its page; of an unknown one only the framing tells.
        let whole =
            listing.ended || (listing.shape == Shape::Generic && reply.end == BodyEnd::Framed);
        if whole {
            Ok(listing)
        } else {
            Err(Cause::CutShort(listing.shape))
        }
    }

    /// The entries of a directory.
    fn listed(&mut self, task: &Task, listing: Listing, sink: Sink<'_>) {
        if self.policy.max_depth.is_none_or(|max| task.depth < max) {
            for entry in listing.entries {
                self.entry(task, entry, listing.shape, sink);
            }
            if listing.overlong > 0 {
                let limit = self.policy.limits.page.url_bytes;
                let cause = Cause::OverlongLinks(listing.overlong, limit);
                self.unread(&task.target, &cause, sink);
            }
        }
        self.counts.directories_done += 1;
    }

    fn entry(&mut self, parent: &Task, entry: Entry, shape: Shape, sink: Sink<'_>) {
        let mut target = format!("{}{}", parent.target, entry.segment);
        let depth = parent.depth + 1;
        match entry.kind {
            EntryKind::Directory => {
                target.push('/');
                let modified = entry.modified.map(|time| time.range(None));
                self.directory(target, parent.start, depth, shape, modified, sink);
            }
            EntryKind::Unknown => {
                let limit = self.policy.limits.directories;
                if self.ready.len() >= limit {
                    self.unread(&target, &Cause::TooManyDirectories(limit), sink);
                } else {
                    let kind = TaskKind::Unknown(shape);
                    let task = Task::new(target, kind, parent.start, depth);
                    self.ready.push(task);
                }
            }
            EntryKind::File => {
                let item = Item {
                    target: &target,
                    kind: Kind::File,
                    start: parent.start,
                    depth,
                    listing: Some(shape),
                    size: entry.size,
                    modified: entry.modified.map(|time| time.range(None)),
                };
                self.found(item, sink);
            }
        }
    }

    /// A directory that its parent lists: reported, and queued if it is to be read and was not before.
    fn directory(
        &mut self,
        target: String,
        start: usize,
        depth: u32,
        shape: Shape,
        modified: Option<TimeRange>,
        sink: Sink<'_>,
    ) {
        let canonical = path::canonical(&target);
        if self.starts.iter().any(|start| start.directory == canonical) {
            return;
        }
        let item = Item {
            target: &target,
            kind: Kind::Directory,
            start,
            depth,
            listing: Some(shape),
            size: None,
            modified,
        };
        self.found(item, sink);
        let task = Task::new(target, TaskKind::Directory, start, depth);
        self.enqueue(task, &canonical, sink);
    }

    fn enqueue(&mut self, task: Task, canonical: &str, sink: Sink<'_>) {
        if self.policy.max_depth.is_some_and(|max| task.depth >= max) {
            return;
        }
        if self.is_known(canonical) {
            return;
        }
        let limits = self.policy.limits;
        let below = &canonical[self.starts[task.start].directory.len()..];
        if task.depth > limits.depth {
            self.unread(&task.target, &Cause::TooDeep(limits.depth), sink);
        } else if repeats(below) > limits.repeats {
            self.unread(&task.target, &Cause::Loop(limits.repeats), sink);
        } else if self.known.len() >= limits.directories {
            self.unread(
                &task.target,
                &Cause::TooManyDirectories(limits.directories),
                sink,
            );
        } else {
            self.mark(canonical);
            self.ready.push(task);
        }
    }

    /// A name of unknown type that answered by itself.
    fn file(&mut self, task: &Task, sink: Sink<'_>) {
        let listing = match task.kind {
            TaskKind::Unknown(shape) => Some(shape),
            TaskKind::Start | TaskKind::Directory => None,
        };
        let item = Item {
            depth: task.depth,
            listing,
            ..Item::start(&task.target, Kind::File, task.start)
        };
        self.found(item, sink);
        if task.kind == TaskKind::Start {
            self.counts.directories_done += 1;
        }
    }

    fn redirect(&mut self, task: Task, reply: &Reply<'_>, sink: Sink<'_>) {
        let target = match self.redirect_target(&task, reply.location) {
            Ok(target) => target,
            // A name that leads elsewhere is no directory here, but it is there.
            Err(Cause::Elsewhere(_)) if matches!(task.kind, TaskKind::Unknown(_)) => {
                return self.file(&task, sink);
            }
            Err(cause) => return self.give_up(&task, &cause, sink),
        };
        let canonical = path::canonical(&target);
        if let TaskKind::Unknown(shape) = task.kind {
            return if canonical == format!("{}/", path::canonical(&task.target)) {
                self.directory(target, task.start, task.depth, shape, None, sink);
            } else {
                self.file(&task, sink);
            };
        }
        if task.kind == TaskKind::Start && canonical == self.starts[task.start].directory {
            // The start was given without its final slash.
            return self.ready.push(Task {
                redirects: task.redirects + 1,
                ..Task::new(target, TaskKind::Start, task.start, 0)
            });
        }
        if task.kind == TaskKind::Start {
            let directory = self.starts[task.start].directory.clone();
            self.found(Item::start(&directory, Kind::Directory, task.start), sink);
        }
        self.counts.directories_done += 1;
        let Some(start) = self.innermost_start(&canonical) else {
            return;
        };
        let depth = path::depth_below(&self.starts[start].directory, &canonical);
        let next = Task {
            redirects: task.redirects + 1,
            ..Task::new(target, TaskKind::Directory, start, depth)
        };
        self.enqueue(next, &canonical, sink);
    }

    /// Where a redirect leads, as a path, if the crawl may go there.
    fn redirect_target(&self, task: &Task, location: Option<&[u8]>) -> Result<String, Cause> {
        let location = location.ok_or(Cause::NoLocation)?;
        if task.redirects >= self.policy.limits.redirects {
            return Err(Cause::TooManyRedirects(self.policy.limits.redirects));
        }
        let mut page = self.origin.clone();
        page.set_path(&task.target);
        let reference = std::str::from_utf8(location).map_err(|_| Cause::NoLocation)?;
        let to = page.join(reference).map_err(|_| Cause::NoLocation)?;
        let same_host = to.origin() == self.origin.origin();
        let plain = to.query().is_none_or(listing::is_sort_query);
        let segments: Vec<String> = to.path().split('/').map(path::normalise_segment).collect();
        let target = segments.join("/");
        let canonical = path::canonical(&target);
        if !same_host || !plain || self.innermost_start(&canonical).is_none() {
            return Err(Cause::Elsewhere(to.into()));
        }
        if !target.ends_with('/') {
            return Err(Cause::Elsewhere(to.into()));
        }
        if canonical == path::canonical(&task.target) {
            return Err(Cause::RedirectLoop);
        }
        Ok(target)
    }
}

/// Attempts and pauses.
impl Frontier {
    /// Tries again after `wait`, or gives up when that was the last attempt.
    fn retry(&mut self, now: Instant, task: Task, cause: Cause, wait: Duration, sink: Sink<'_>) {
        if task.attempts >= self.policy.attempts.get() {
            return self.give_up(&task, &cause, sink);
        }
        let number = self.number();
        self.postponed.insert((now + wait, number), task);
    }

    /// The host could not be reached. Everything pauses; one pause counts once, however many requests failed by the
    /// same absence. When it has lasted as many pauses as a request has attempts, everything is given up.
    fn absent(&mut self, now: Instant, task: Task, cause: Cause, sink: Sink<'_>) {
        if self.is_news(&task) {
            self.absences += 1;
            let wait = self.back_off(self.absences);
            self.pause(now, wait);
        }
        if self.absences < self.policy.attempts.get() {
            return self.retry(now, task, cause, Duration::ZERO, sink);
        }
        self.give_up(&task, &cause, sink);
        self.give_up_waiting(&cause, sink);
    }

    fn give_up_waiting(&mut self, cause: &Cause, sink: Sink<'_>) {
        let ready = mem::take(&mut self.ready);
        let postponed = mem::take(&mut self.postponed);
        for task in ready.into_iter().chain(postponed.into_values()) {
            self.give_up(&task, cause, sink);
        }
    }

    /// The host asked for less. Its complaints about requests from before the pause are one with the complaint that
    /// began it.
    fn throttle(&mut self, now: Instant, task: &Task, wait: Duration) {
        if self.is_news(task) {
            let under_way = self.in_flight.len() + 1;
            self.window = (self.window.min(under_way) / 2).max(1);
        }
        self.good_replies = 0;
        self.pause(now, wait);
    }

    fn widen(&mut self) {
        self.good_replies += 1;
        if self.good_replies >= GOOD_REPLIES {
            self.good_replies = 0;
            self.window = self.window.saturating_add(1);
        }
    }

    /// Whether the request was sent after the last pause, so that its failure says something new about the host.
    fn is_news(&self, task: &Task) -> bool {
        self.paused_until
            .is_none_or(|until| task.sent_at >= Some(until))
    }

    fn pause(&mut self, now: Instant, wait: Duration) {
        self.paused_until = self.paused_until.max(Some(now + wait));
    }

    /// The pause after the `attempt`-th attempt.
    fn back_off(&self, attempt: u32) -> Duration {
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
        self.policy
            .first_pause
            .saturating_mul(doubled)
            .min(self.policy.longest_pause)
    }

    /// What `Retry-After` says, or else the usual pause.
    fn wait_asked_for(&self, task: &Task, reply: &Reply<'_>) -> Duration {
        reply
            .retry_after
            .and_then(|value| parse_retry_after(value, reply.date))
            .unwrap_or_else(|| self.back_off(task.attempts))
            .min(self.policy.longest_pause)
    }

    fn next_task(&mut self, now: Instant) -> Option<Task> {
        if let Some(task) = self.ready.pop() {
            return Some(task);
        }
        let (&(due, _), _) = self.postponed.first_key_value()?;
        if due > now {
            return None;
        }
        self.postponed.pop_first().map(|(_, task)| task)
    }
}

/// Reports and bookkeeping.
impl Frontier {
    fn found(&mut self, item: Item<'_>, sink: Sink<'_>) {
        let Item { target, kind, .. } = item;
        self.counts.files += u64::from(kind == Kind::File);
        let trimmed = match target.strip_suffix('/') {
            Some("") | None => target,
            Some(trimmed) => trimmed,
        };
        let path = path::decode(trimmed);
        let name = match path::split_last(trimmed) {
            Some((_, segment, _)) => path::decode(segment),
            None => b"/".to_vec(),
        };
        sink(Finding::Found(Found {
            url: &self.url(target),
            path: &path,
            name: &name,
            kind,
            depth: item.depth,
            start: &path::decode(&self.starts[item.start].directory),
            size: item.size,
            modified: item.modified,
            asked: false,
            empty: None,
            listing: item.listing,
        }));
    }

    fn give_up(&mut self, task: &Task, cause: &Cause, sink: Sink<'_>) {
        if !matches!(task.kind, TaskKind::Unknown(_)) {
            self.counts.directories_done += 1;
        }
        self.unread(&task.target, cause, sink);
    }

    fn unread(&mut self, target: &str, cause: &Cause, sink: Sink<'_>) {
        self.counts.unread += 1;
        sink(Finding::Unread(Unread {
            url: &self.url(target),
            cause,
        }));
    }

    fn url(&self, target: &str) -> String {
        format!("{}{}", self.origin.as_str().trim_end_matches('/'), target)
    }

    fn innermost_start(&self, canonical: &str) -> Option<usize> {
        let holding = self.starts.iter().enumerate();
        holding
            .filter(|(_, start)| canonical.starts_with(&start.directory))
            .max_by_key(|(_, start)| start.directory.len())
            .map(|(index, _)| index)
    }

    fn mark(&mut self, canonical: &str) {
        let fingerprint = self.fingerprint(canonical);
        self.known.insert(fingerprint);
        self.counts.directories += 1;
    }

    fn is_known(&self, canonical: &str) -> bool {
        self.known.contains(&self.fingerprint(canonical))
    }

    /// 128 bits of two keyed hashes: no two of even 10^9 paths will ever share one.
    fn fingerprint(&self, canonical: &str) -> u128 {
        let [high, low] = &self.hashers;
        (u128::from(high.hash_one(canonical)) << 64) | u128::from(low.hash_one(canonical))
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

/// Replies in a row after which a host that had asked for less is tried with one more request at a time. So many that
/// no URL is likely to use up its attempts by this trial.
const GOOD_REPLIES: u32 = 100;

/// How often the most frequent segment of a path occurs in it.
fn repeats(path: &str) -> usize {
    let mut segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    segments.sort_unstable();
    segments
        .chunk_by(|a, b| a == b)
        .map(<[_]>::len)
        .max()
        .unwrap_or(0)
}

/// `Retry-After` (RFC 9110 §10.2.3): seconds, or a date, which only the server's own `Date` makes a span of time.
pub(super) fn parse_retry_after(value: &[u8], date: Option<&[u8]>) -> Option<Duration> {
    let date = date.and_then(|date| std::str::from_utf8(date.trim_ascii()).ok());
    let now = date.and_then(|date| httpdate::parse_http_date(date).ok());
    courser::retry_after(value, now)
}

fn is_html(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&b| b == b';').next().unwrap_or(b"");
    let essence = essence.trim_ascii();
    essence.is_empty()
        || essence.eq_ignore_ascii_case(b"text/html")
        || essence.eq_ignore_ascii_case(b"application/xhtml+xml")
}

/// A header's value for a message.
fn printable(value: &[u8]) -> String {
    value.escape_ascii().to_string()
}
