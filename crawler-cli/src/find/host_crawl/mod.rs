//! The state of a crawl of one host: which directories are known, which request is next, what a reply means, when to
//! try again, when all is done. Pure: no socket, no clock; time is an argument and results go to a callback.
//!
//! Invariants: a directory is marked as known when it is queued, so that it is asked for once however many links or
//! redirects lead to it; every request handed out by [`HostCrawl::poll_request`] is answered by one `handle_*` call;
//! every URL that is given up is reported once. What is found does not depend on the order of replies.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use url::Url;

use super::cause::Cause;
use super::expr::{Memo, Verdict};
use super::found::{Kind, Unread};
use super::listing::{self, Entry, EntryKind, Listing, PageError, Shape};
use super::path;
use super::policy::{Follow, Policy};
use super::range::{SizeRange, TimeRange};
use crate::crawl::failure::FailureScope;
use crate::crawl::politeness::Politeness;
use crate::crawl::retry_queue::RetryQueue;

mod entries;
mod journal;
mod links;
mod messages;
mod probes;
mod resume;
mod retries;
mod robots;
mod seen;
mod spelling;
mod starts;
mod task;
#[cfg(test)]
mod tests;

use entries::ProbeResult;
use journal::Journal;
pub use journal::{Change, Place, Saved, Snapshot};
pub use links::{Link, LinkKind};
use links::{found, is_web_page};
pub use messages::{BodyEnd, Counts, Failure, Fetch, FetchId, FetchKind, Finding, Reply};
use probes::{PartialListing, Probes};
use seen::Seen;
use spelling::Spelling;
use starts::Starts;
use task::{Ancestors, Task, TaskKind, UndecidedEntry};

/// The crawl of one host.
#[derive(Debug)]
pub struct HostCrawl {
    spelling: Spelling,
    policy: Policy,
    starts: Starts,
    seen: Seen,
    /// What is ready goes last in, first out: the queue stays as small as the tree is deep times wide.
    queue: RetryQueue<Task>,
    in_flight: HashMap<FetchId, (Task, FetchKind)>,
    politeness: Politeness,
    probes: Probes,
    journal: Journal,
    counts: Counts,
    /// Sitemaps name what listings show, too, so that it has to be known what was found.
    has_sitemaps: bool,
    /// Requests that are made elsewhere wait for robots.txt.
    robots_wanted: bool,
    /// Why the host was given up, and with it what comes back from the disk.
    given_up: Option<Arc<Cause>>,
}

/// Something found, before its URL is spelled out.
#[derive(Clone, Copy)]
struct Item<'a> {
    target: &'a str,
    kind: Kind,
    /// Index of the start.
    start: usize,
    depth: u32,
    listing: Option<Shape>,
    size: Option<SizeRange>,
    modified: Option<TimeRange>,
    asked: bool,
    empty: Option<bool>,
    answered: Answered,
}

impl<'a> Item<'a> {
    /// Of which nothing more is known.
    fn of(target: &'a str, kind: Kind, start: usize) -> Self {
        Self {
            target,
            kind,
            start,
            depth: 0,
            listing: None,
            size: None,
            modified: None,
            asked: false,
            empty: None,
            answered: Answered::default(),
        }
    }
}

/// The request that told of something.
#[derive(Clone, Copy, Debug, Default)]
struct Answered {
    status: Option<u16>,
    attempts: u32,
    took: Duration,
}

impl Answered {
    fn of(now: Instant, task: &Task) -> Self {
        Self {
            status: None,
            attempts: task.attempts.made(),
            took: task.attempts.took(now),
        }
    }
}

/// Where results go, and where it is said what is to happen to them. The verdict on what is unread has no meaning.
type Sink<'s> = &'s mut dyn FnMut(Finding<'_>) -> Verdict;

impl HostCrawl {
    /// The crawl of the host of `origin`; only its scheme, host and port matter.
    pub fn new(origin: &Url, policy: Policy) -> Self {
        Self {
            spelling: Spelling::of(origin),
            starts: Starts::default(),
            seen: Seen::new(),
            queue: RetryQueue::default(),
            in_flight: HashMap::new(),
            politeness: Politeness::new(&policy.host),
            probes: Probes::new(),
            journal: Journal::default(),
            counts: Counts::default(),
            has_sitemaps: false,
            robots_wanted: false,
            given_up: None,
            policy,
        }
    }

    /// Adds a start. One that is already there is not added again.
    ///
    /// A start inside the tree of another one keeps its own depth 0, and what is below it belongs to it alone.
    ///
    /// With a query, it is the listing of the directory of its path.
    pub fn add_start(&mut self, target: &str) {
        self.add_start_at(target, None);
    }

    /// The same at the end of a chain of redirects.
    fn add_start_at(&mut self, target: &str, chain: Option<Arc<Ancestors>>) {
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
        if was_listed && chain.is_some() {
            return;
        }
        let mut task = Task::new(target, TaskKind::Start, start, 0).redirected(chain);
        if let Some(query) = query {
            task.path = Some(directory.clone());
            task.target = format!("{}?{query}", task.target);
        }
        self.queue_first(task);
    }

    /// The next request, if one may be sent at `now`.
    pub fn poll_request(&mut self, now: Instant) -> Option<Fetch<'_>> {
        if !self.politeness.may_send(now) {
            return None;
        }
        let mut task = self.next_task(now)?;
        self.politeness.handle_sent(now);
        task.attempts.handle_sent(now);
        self.counts.requests += 1;
        self.counts.retries += u64::from(task.attempts.is_repeated());
        let id = FetchId(self.journal.number());
        let fetch = task.fetch_kind(self.probes.uses_head(), self.policy.dav);
        let (task, fetch) = self
            .in_flight
            .entry(id)
            .insert_entry((task, fetch))
            .into_mut();
        Some(Fetch {
            id,
            kind: *fetch,
            target: &task.target,
        })
    }

    /// When to call [`poll_request`](Self::poll_request), which has just had nothing, again although no reply came.
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

    /// Whether nothing is left to ask or to wait for.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty()
            && self.in_flight.is_empty()
            && self.probes.is_empty()
            && !self.journal.is_spilled()
    }

    /// Whose crawl it is: a URL with the path `/`.
    pub fn origin(&self) -> &Url {
        self.spelling.origin()
    }

    /// How far the crawl is.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A response arrived whole.
    pub fn handle_reply(&mut self, now: Instant, id: FetchId, reply: &Reply<'_>, sink: Sink<'_>) {
        let Some((task, fetch)) = self.in_flight.remove(&id) else {
            return;
        };
        self.politeness.handle_over();
        self.journal.begin(task.number);
        if !matches!(reply.status, 429 | 503) {
            self.politeness.handle_answer(now);
        }
        match (reply.status, fetch) {
            (429 | 503, _) => self.throttled(now, task, reply, sink),
            (_, FetchKind::Robots) => self.robots_reply(now, task, reply, sink),
            (
                500..,
                FetchKind::List
                | FetchKind::Properties
                | FetchKind::First
                | FetchKind::Page
                | FetchKind::Sitemap,
            ) => {
                self.retry(now, task, Cause::Status(reply.status), sink);
            }
            (301 | 302 | 303 | 307 | 308, _) => self.redirect(now, task, reply, sink),
            // There are links in it.
            (200..=299, FetchKind::Probe | FetchKind::First)
                if task.kind == TaskKind::Link && is_web_page(reply) =>
            {
                self.probes.note_head(fetch);
                self.queue(Task {
                    is_page: true,
                    ..task
                });
            }
            (200..=299, FetchKind::Probe | FetchKind::First) => {
                self.probes.handle_answer(&task, fetch);
                self.exists(now, task, ProbeResult::by(reply, fetch), sink);
            }
            (200 | 203, FetchKind::List) | (207, FetchKind::Properties) => {
                self.page(now, task, reply, sink)
            }
            (200 | 203, FetchKind::Page) => self.linked_page(now, task, reply, sink),
            (200 | 203, FetchKind::Sitemap) => self.sitemap(now, task, reply, sink),
            // Gone, and no server confuses that.
            (410, _) => self.give_up(now, task, &Cause::Status(410), sink),
            (status @ (401 | 403 | 404), FetchKind::Probe) if self.probes.trusts_refusals() => {
                self.give_up(now, task, &Cause::Status(status), sink);
            }
            // Many a server knows no `HEAD`, and says so in all kinds of ways.
            (_, FetchKind::Probe) => self.queue(Task {
                by_get: true,
                ..task
            }),
            // Nothing to take a part of.
            (416, FetchKind::First) => self.exists(now, task, ProbeResult::nothing(reply), sink),
            (status, _) => self.give_up(now, task, &Cause::Status(status), sink),
        }
        self.journal.end();
        self.resume(now, sink);
    }

    /// Nothing can be fetched any more: everything that is known and not yet read is given up for this cause.
    pub fn abandon(&mut self, now: Instant, cause: &Cause, sink: Sink<'_>) {
        for (task, _) in mem::take(&mut self.in_flight).into_values() {
            self.politeness.handle_over();
            self.journal.forget(task.number);
            self.give_up(now, task, cause, sink);
        }
        self.give_up_waiting(now, cause, sink);
    }

    /// A request failed without a whole response.
    pub fn handle_failure(&mut self, now: Instant, id: FetchId, failure: Failure, sink: Sink<'_>) {
        let Some((task, _)) = self.in_flight.remove(&id) else {
            return;
        };
        self.politeness.handle_over();
        self.journal.begin(task.number);
        match failure.scope {
            FailureScope::Final => self.give_up(now, task, &failure.cause, sink),
            FailureScope::Request => {
                self.retry(now, task, failure.cause, sink);
            }
            FailureScope::HostFinal if !self.politeness.has_replied() => {
                self.give_up_all(now, task, failure.cause, sink);
            }
            FailureScope::Host | FailureScope::HostFinal => {
                self.absent(now, task, failure.cause, sink)
            }
        }
        self.journal.end();
        self.resume(now, sink);
    }
}

/// Replies.
impl HostCrawl {
    /// A directory's page, presumably.
    fn page(&mut self, now: Instant, task: Task, reply: &Reply<'_>, sink: Sink<'_>) {
        match self.read_page(&task, reply) {
            Ok(listing) => self.listed(
                now,
                task,
                listing,
                ProbeResult::by(reply, FetchKind::List),
                sink,
            ),
            // What was cut may come whole next time.
            Err(cause @ Cause::CutShort(_)) => {
                self.retry(now, task, cause, sink);
            }
            Err(cause) => self.give_up(now, task, &cause, sink),
        }
    }

    fn read_page(&self, task: &Task, reply: &Reply<'_>) -> Result<Listing, Cause> {
        if let Some(coding) = reply.content_encoding
            && !coding.eq_ignore_ascii_case(b"identity")
        {
            return Err(Cause::Encoded(printable(coding)));
        }
        if let Some(content_type) = reply.content_type
            && !listing::is_listing_type(content_type)
        {
            return Err(Cause::NotHtml(printable(content_type)));
        }
        let limits = self.policy.limits.page;
        let page = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let mut listing =
            listing::parse(reply.body, reply.content_type, &page, limits).map_err(|error| {
                match error {
                    PageError::TooManyLinks | PageError::TooLongLinks => {
                        Cause::TooManyLinks(limits.links)
                    }
                    PageError::NotAListing => {
                        Cause::NotHtml(printable(reply.content_type.unwrap_or(b"not known")))
                    }
                }
            })?;
        listing.next = listing.next.or_else(|| {
            let next = std::str::from_utf8(reply.next?).ok()?;
            listing::next_page(&page.join(next).ok()?, &page)
        });
        // A known server always ends its page; of an unknown one only the framing tells.
        let whole =
            listing.ended || (listing.shape == Shape::Generic && reply.end == BodyEnd::Framed);
        if whole {
            Ok(listing)
        } else {
            Err(Cause::CutShort(listing.shape))
        }
    }

    /// A directory was read.
    fn listed(
        &mut self,
        now: Instant,
        mut task: Task,
        listing: Listing,
        told: ProbeResult,
        sink: Sink<'_>,
    ) {
        if task.kind == TaskKind::Start || task.open.is_some() {
            let empty = listing.entries.is_empty() && listing.overlong == 0;
            let verdict = self.decide(now, &mut task, Kind::Directory, told, Some(empty), sink);
            if matches!(verdict, Verdict::Prune | Verdict::Quit) {
                return self.counts.directories_done += 1;
            }
        }
        if self.policy.max_depth.is_some_and(|max| task.depth >= max) {
            return self.counts.directories_done += 1;
        }
        if listing.overlong > 0 {
            let limit = self.policy.limits.page.url_bytes;
            let cause = Cause::OverlongLinks(listing.overlong, limit);
            self.unread(&task.target, &cause, sink);
        }
        if listing.nameless > 0 {
            self.unread(&task.target, &Cause::Nameless(listing.nameless), sink);
        }
        if let Some(path) = &listing.directory {
            // What is listed is there, and not where it was asked for.
            task.path = Some(path.clone());
        }
        if let Some(next) = &listing.next {
            self.next_page(&task, next, sink);
        }
        if !listing.entries.is_empty() {
            let own = self.seen.listing(&listing);
            let same = Ancestors::listings(task.above.as_ref()).filter(|above| *above == own);
            // Names alone may well be the same.
            let dated = |entry: &Entry| entry.kind == EntryKind::File && entry.modified.is_some();
            let most = match listing.entries.iter().any(dated) {
                true => self.policy.limits.same_listings,
                false => self.policy.limits.repeats,
            };
            if same.count() > most {
                self.counts.directories_done += 1;
                return self.unread(&task.target, &Cause::SameListing, sink);
            }
            task.above = Some(Arc::new(Ancestors {
                listing: own,
                next: task.above.take(),
            }));
        }
        let held = PartialListing {
            task,
            shape: listing.shape,
            directories: listing.directories,
            entries_len: listing.entries.len(),
            entries: listing.entries.into_iter(),
            is_written: false,
            first: None,
        };
        self.entries(now, held, sink);
    }

    /// A page that says where more of its directory's entries are.
    fn next_page(&mut self, task: &Task, target: &str, sink: Sink<'_>) {
        let cause = if !self.is_allowed(target) {
            Cause::Robots
        } else if !self.seen.insert_page(target) {
            return; // two pages that name each other
        } else if self.seen.pages() > self.policy.limits.pages {
            Cause::TooManyPages(self.policy.limits.pages)
        } else {
            return self.queue(Task {
                path: Some(task.directory().to_owned()),
                above: task.above.clone(),
                ..Task::new(target.to_owned(), TaskKind::Page, task.start, task.depth)
            });
        };
        self.unread(target, &cause, sink);
    }

    /// A directory that its parent lists: reported, and queued if it is to be read and was not before.
    fn directory(
        &mut self,
        now: Instant,
        mut task: Task,
        mut open: UndecidedEntry,
        answered: Answered,
        sink: Sink<'_>,
    ) {
        let canonical = path::canonical(task.directory());
        if self.starts.is_found_at(&canonical) {
            return;
        }
        if self.has_sitemaps && !self.know(&found(&canonical)) {
            return self.enqueue(now, task, &canonical, sink);
        }
        let item = Item {
            depth: task.depth,
            listing: open.listing,
            modified: self.probes.placed(open.modified),
            answered,
            ..Item::of(task.directory(), Kind::Directory, task.start)
        };
        match self.look(item, &mut open.memo, sink) {
            // No redirect shall lead there, either.
            Verdict::Prune | Verdict::Quit => {
                self.know(&canonical);
                return;
            }
            Verdict::Go => {}
            // A directory is not asked about, but read: that costs its server no more, and tells all there is to know.
            Verdict::Head | Verdict::List => task.open = Some(Box::new(open)),
        }
        self.enqueue(now, task, &canonical, sink);
    }

    fn enqueue(&mut self, now: Instant, task: Task, canonical: &str, sink: Sink<'_>) {
        if self.policy.max_depth.is_some_and(|max| task.depth >= max) && task.open.is_none() {
            self.counts.directories += 1;
            self.counts.directories_done += 1;
            return;
        }
        let limits = self.policy.limits;
        let directory = self.starts.directory(task.start);
        let below = canonical.strip_prefix(directory).unwrap_or(canonical);
        let cause = if self.is_known(canonical) {
            return self.close(now, task, sink);
        } else if !self.is_allowed(&task.target) {
            Cause::Robots
        } else if task.depth > limits.depth {
            Cause::TooDeep(limits.depth)
        } else if repeats(below) > limits.repeats {
            Cause::Loop(limits.repeats)
        } else if self.seen.len() >= limits.directories {
            Cause::TooManyDirectories(limits.directories)
        } else {
            self.mark(canonical);
            let Some(cause) = self.given_up.clone() else {
                return self.queue(task);
            };
            return self.give_up(now, task, &cause, sink);
        };
        self.unread(&task.target, &cause, sink);
        self.close(now, task, sink);
    }

    /// It will not be asked for; what the expression has left open is decided as it is.
    fn close(&mut self, now: Instant, mut task: Task, sink: Sink<'_>) {
        // A link alone is no sign that there is something.
        if task.open.is_some() && task.kind != TaskKind::Link {
            let kind = match task.kind {
                TaskKind::File => Kind::File,
                _ => Kind::Directory,
            };
            self.decide(
                now,
                &mut task,
                kind,
                ProbeResult::default(),
                Some(false),
                sink,
            );
        }
    }

    /// The server has answered for what is no directory.
    fn exists(&mut self, now: Instant, task: Task, told: ProbeResult, sink: Sink<'_>) {
        match task.kind {
            TaskKind::File => self.inspected(now, task, told, sink),
            TaskKind::Link => {
                self.linked_file(now, task, told, sink);
            }
            _ => self.name(now, task, told, sink),
        }
    }

    /// A name of unknown type that answered by itself.
    fn name(&mut self, now: Instant, mut task: Task, told: ProbeResult, sink: Sink<'_>) {
        self.counts.files += 1;
        self.decide(now, &mut task, Kind::File, told, None, sink);
        if task.kind == TaskKind::Start {
            self.counts.directories_done += 1;
        }
    }

    fn redirect(&mut self, now: Instant, mut task: Task, reply: &Reply<'_>, sink: Sink<'_>) {
        if matches!(task.kind, TaskKind::Link | TaskKind::Sitemap) {
            return self.linked_redirect(now, task, reply, sink);
        }
        let named = matches!(task.kind, TaskKind::Unknown(_) | TaskKind::File);
        let told = ProbeResult::nothing(reply);
        let target = match self.redirect_target(&task, reply.location) {
            Ok(target) => target,
            // A name that leads elsewhere is no directory here, but it is there.
            Err(Cause::Elsewhere(_)) if named => return self.exists(now, task, told, sink),
            Err(cause @ Cause::Elsewhere(_)) => {
                return match self.moves_elsewhere(&task, reply.location, sink) {
                    Ok(true) => self.moved(now, task, sink),
                    Ok(false) => self.give_up(now, task, &cause, sink),
                    Err(cause) => self.give_up(now, task, &cause, sink),
                };
            }
            Err(cause) => return self.give_up(now, task, &cause, sink),
        };
        let canonical = path::canonical(&target);
        if named {
            let is_same = canonical == format!("{}/", path::canonical(&task.target));
            if !is_same || self.policy.follow == Follow::Pages {
                return self.exists(now, task, told, sink);
            }
            let open = task.open.take();
            if task.kind == TaskKind::File {
                // Its listing was wrong about it.
                self.probes.handle_decided();
                self.counts.files -= 1;
            }
            let open = match open {
                Some(open) => *open,
                None => UndecidedEntry {
                    memo: Memo::new(),
                    listing: task.shape(),
                    size: None,
                    modified: None,
                },
            };
            let answered = Answered::of(now, &task);
            let mut directory = Task::new(target, TaskKind::Directory, task.start, task.depth);
            directory.above = task.above;
            return self.directory(now, directory, open, answered, sink);
        }
        if task.kind == TaskKind::Start && canonical == self.starts.directory(task.start) {
            // The start was given without its final slash.
            let start = Task {
                redirects: task.redirects + 1,
                ..Task::new(target, TaskKind::Start, task.start, 0)
            };
            return match self.is_allowed(&start.target) {
                true => self.queue(start),
                false => self.give_up(now, start, &Cause::Robots, sink),
            };
        }
        if task.kind == TaskKind::Start || task.open.is_some() {
            let told = ProbeResult::default();
            let verdict = self.decide(now, &mut task, Kind::Directory, told, Some(false), sink);
            if matches!(verdict, Verdict::Prune | Verdict::Quit) {
                return self.counts.directories_done += 1;
            }
        }
        self.counts.directories_done += 1;
        let Some(start) = self.starts.innermost(&canonical) else {
            return;
        };
        let depth = path::depth_below(self.starts.directory(start), &canonical);
        let next = Task {
            redirects: task.redirects + 1,
            ..Task::new(target, TaskKind::Directory, start, depth)
        };
        self.enqueue(now, next, &canonical, sink);
    }

    /// A start or a directory is searched elsewhere.
    fn moved(&mut self, now: Instant, mut task: Task, sink: Sink<'_>) {
        self.counts.directories_done += 1;
        if task.open.is_some() {
            let told = ProbeResult::default();
            self.decide(now, &mut task, Kind::Directory, told, Some(false), sink);
        }
    }

    /// Where a redirect leads, as a path, if the crawl may go there.
    fn redirect_target(&self, task: &Task, location: Option<&[u8]>) -> Result<String, Cause> {
        let location = location.ok_or(Cause::NoLocation)?;
        if task.redirects >= self.policy.limits.redirects {
            return Err(Cause::TooManyRedirects(self.policy.limits.redirects));
        }
        let page = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let reference = std::str::from_utf8(location).map_err(|_| Cause::NoLocation)?;
        let to = page.join(reference).map_err(|_| Cause::NoLocation)?;
        let same_host = to.origin() == self.origin().origin();
        let plain = to.query().is_none_or(listing::is_sort_query);
        let segments: Vec<String> = to.path().split('/').map(path::normalise_segment).collect();
        let target = segments.join("/");
        let canonical = path::canonical(&target);
        if !same_host || !plain || self.starts.innermost(&canonical).is_none() {
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

/// What is next.
impl HostCrawl {
    /// Whether [`next_task`](Self::next_task) has something although nothing that was postponed is due.
    fn has_ready(&self) -> bool {
        match self.probes.is_clogged() {
            _ if self.asks_nothing_new() => false,
            true => self.queue.ready().any(|task| task.kind == TaskKind::File),
            false => self.has_any_ready(),
        }
    }

    fn has_any_ready(&self) -> bool {
        self.queue.ready().len() > 0
    }

    /// Whether nothing may be asked for but what waits to be asked for again.
    fn asks_nothing_new(&self) -> bool {
        self.awaits_robots() || self.queue.postponed().len() >= MOST_POSTPONED
    }

    fn next_task(&mut self, now: Instant) -> Option<Task> {
        let wants_robots = self.robots_wanted || !self.is_done();
        // Nothing else was asked for yet, so that nothing else is postponed.
        if wants_robots && self.politeness.take_robots_request() {
            return Some(Task::new("/robots.txt".into(), TaskKind::Robots, 0, 0));
        }
        // What has waited long enough goes first: its time runs.
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
    /// To be asked for, as soon as may be.
    fn queue(&mut self, task: Task) {
        let task = self.journal.written(task);
        self.queue.push_next(task);
    }

    /// Has the expression look at something.
    fn look(&mut self, item: Item<'_>, memo: &mut Memo, sink: Sink<'_>) -> Verdict {
        let start = self.starts.path(item.start);
        sink(Finding::Found(self.spelling.found(&item, start), memo))
    }

    fn give_up(&mut self, now: Instant, task: Task, cause: &Cause, sink: Sink<'_>) {
        match task.kind {
            TaskKind::Robots => {
                let cause = Cause::RobotsUnread(cause.to_string());
                return self.give_up_rest(now, cause, sink);
            }
            TaskKind::Start | TaskKind::Directory | TaskKind::Link => {
                self.counts.directories_done += 1;
            }
            TaskKind::Page | TaskKind::Unknown(_) | TaskKind::File | TaskKind::Sitemap => {}
        }
        self.unread(&task.target, cause, sink);
        self.close(now, task, sink);
    }

    fn unread(&mut self, target: &str, cause: &Cause, sink: Sink<'_>) {
        let url = self.url(target);
        self.leave_out(&url, cause, sink);
    }

    /// Reports a URL, perhaps of another host, that will not be read.
    pub fn leave_out(&mut self, url: &str, cause: &Cause, sink: Sink<'_>) {
        self.counts.unread += 1;
        sink(Finding::Unread(Unread { url, cause }));
    }

    fn absolute(&self, target: &str) -> Option<Url> {
        self.spelling.parsed(target)
    }

    fn url(&self, target: &str) -> String {
        self.spelling.url(target)
    }

    /// Adds one to the directories, or pages, to read. Tells whether it is new.
    fn mark(&mut self, canonical: &str) -> bool {
        let is_new = self.know(canonical);
        self.counts.directories += u64::from(is_new);
        is_new
    }

    /// Notes that this was seen. Returns whether it is new.
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

/// URLs that may wait to be asked for again before no further ones are asked for: where all fail, they would all end up
/// in memory.
const MOST_POSTPONED: usize = 10_000;

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

/// A header's value for a message.
fn printable(value: &[u8]) -> String {
    value.escape_ascii().to_string()
}
