//! Links that may lead anywhere on the host: links of web pages when pages are followed, and redirects to other hosts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use url::Url;

use super::entries::ProbeResult;
use super::messages::{BodyEnd, FetchKind, Reply};
use super::task::{Task, TaskKind, UndecidedEntry};
use super::{HostCrawl, printable};
use crate::cause::Cause;
use crate::expr::Verdict;
use crate::found::{Found, Kind};
use crate::link::{Ancestors, Link, LinkKind};
use crate::policy::Follow;
use crate::visitor::{LinkVerdict, Turn};
use listing::path;
use listing::range::SizeRange;
use listing::{self, Links, PageError, Reference, Shape};
use plain::origin::same_host;

/// The target of a link on this host.
struct LinkTarget {
    /// The request target.
    target: String,
    /// The path, canonical.
    canonical: String,
    /// A key that all spellings of the URL share.
    key: String,
}

impl LinkTarget {
    /// The target of `url`, without a query that only sorts a listing.
    fn of(url: &Url, follow: Follow) -> Self {
        let segments = url.path().split('/').map(path::normalise_segment);
        let segments: Vec<String> = segments.collect();
        let mut target = segments.join("/");
        let canonical = path::canonical(&target);
        let mut key = canonical.clone();
        let matters = |query: &&str| match follow {
            Follow::Listings => !listing::is_sort_query(query),
            Follow::Pages => !listing::is_column_query(query),
        };
        if let Some(query) = url.query().filter(matters) {
            for text in [&mut target, &mut key] {
                text.push('?');
                text.push_str(query);
            }
        }
        Self {
            target,
            canonical,
            key,
        }
    }

    /// The key under which this kind of link is known. To have found a page is not to have read it, so the keys differ.
    fn mark(&self, kind: LinkKind) -> String {
        match kind {
            LinkKind::Start | LinkKind::Page => format!("page:{}", self.key),
            LinkKind::Moved | LinkKind::File => self.key.clone(),
        }
    }
}

/// Starts that are not listings.
impl HostCrawl {
    /// Adds the directory of a target to the starts, without a request for it. Returns the index of the start.
    pub fn add_root(&mut self, target: &str) -> usize {
        let path = target.split('?').next().unwrap_or(target);
        let mut directory = path::canonical(path);
        directory.truncate(directory.rfind('/').map_or(0, |at| at + 1));
        self.starts.add(&directory)
    }

    /// Adds a start of a crawl that follows pages: the page itself.
    pub(super) fn add_page(&mut self, target: &str, chain: Ancestors) {
        let Some(url) = self.absolute(target) else {
            return;
        };
        let place = LinkTarget::of(&url, self.policy.follow);
        // After a redirect, the scope of the search does not change.
        let start = match self.starts.innermost(&place.canonical) {
            Some(start) if chain.iter().next().is_some() => start,
            _ => self.add_root(&place.target),
        };
        if self.mark(&place.mark(LinkKind::Page)) {
            let is_found = !self.know(&place.key);
            let task = Task {
                is_found,
                ..Task::new(place.target, TaskKind::Link, start, 0)
            };
            self.queue_first(task.redirected(chain));
        }
    }

    /// Queues a task after all others. The queue is last in, first out, so the first start given is requested first.
    pub(super) fn queue_first(&mut self, task: Task) {
        let task = self.journal.written(task);
        self.queue.push_last(task);
    }
}

/// Links from pages and redirects.
impl HostCrawl {
    /// Handles a link from a page or a redirect on any host to this host.
    pub fn add_link(&mut self, turn: &mut Turn<'_>, link: &Link) {
        let place = LinkTarget::of(&link.url, self.policy.follow);
        if link.kind == LinkKind::Start {
            return self.add_late(turn, &place, link);
        }
        let Some(start) = self.starts.innermost(&place.canonical) else {
            return;
        };
        let depth = path::depth_below(self.starts.directory(start), &place.canonical);
        if self.policy.max_depth.is_some_and(|max| depth > max) {
            return;
        }
        let kind = match link.kind {
            LinkKind::Page => TaskKind::Link,
            LinkKind::File => TaskKind::File,
            _ => TaskKind::Directory,
        };
        let task = Task::new(place.target.clone(), kind, start, depth);
        let mut task = task.redirected(link.chain.clone());
        task.from.clone_from(&link.from);
        match link.kind {
            LinkKind::Moved => self.enqueue(turn, task, &place.canonical),
            _ => self.linked(turn, task, link.listing, &place),
        }
    }

    /// Adds a start that is found during the crawl.
    fn add_late(&mut self, turn: &mut Turn<'_>, place: &LinkTarget, link: &Link) {
        let limits = self.policy.limits;
        let given_up = self.given_up.clone();
        let cause = if let Some(cause) = &given_up {
            cause
        } else if !self.is_allowed(&place.target) {
            &Cause::Robots
        } else if self.seen.len() >= limits.directories {
            &Cause::TooManyDirectories(limits.directories)
        } else {
            return self.add_start_at(&place.target, link.chain.clone());
        };
        self.leave_out_once(turn, &self.url(&place.target), cause);
    }

    /// Reports once that a URL will not be read, however many links lead there. Without room to remember it, reports
    /// each.
    pub fn leave_out_once(&mut self, turn: &mut Turn<'_>, url: &str, cause: &Cause) {
        let is_full = self.seen.len() >= self.policy.limits.directories;
        if is_full || self.know(&format!("left:{url}")) {
            self.leave_out(turn, url, cause);
        }
    }

    /// Handles a page or a file found by a link.
    fn linked(
        &mut self,
        turn: &mut Turn<'_>,
        mut task: Task,
        listing: Option<Shape>,
        place: &LinkTarget,
    ) {
        let is_page = task.kind == TaskKind::Link;
        let mut open = UndecidedEntry {
            listing,
            ..UndecidedEntry::default()
        };
        let mark = match is_page {
            true => place.mark(LinkKind::Page),
            false => place.mark(LinkKind::File),
        };
        if self.is_known(&mark) {
            return;
        }
        let limits = self.policy.limits;
        let given_up = self.given_up.clone().filter(|_| is_page);
        let below = &task.target[..task.target.find('?').unwrap_or(task.target.len())];
        let cause = if self.seen.len() >= limits.directories {
            &Cause::TooManyDirectories(limits.directories)
        } else if task.depth > limits.depth {
            &Cause::TooDeep(limits.depth)
        } else if path::repeats(below) > limits.repeats {
            &Cause::Loop(limits.repeats)
        } else if let Some(cause) = &given_up {
            cause
        } else if is_page && !self.is_allowed(&task.target) {
            &Cause::Robots
        } else if is_page && self.linked_pages >= limits.linked_pages {
            // The first one is named; with all others, the list could be without end.
            if self.know("left:pages") {
                let cause = Cause::TooManyLinkedPages(limits.linked_pages);
                self.unread(turn, &task.target, &cause);
            }
            return;
        } else if is_page {
            self.linked_pages += 1;
            self.mark(&mark);
            task.is_found = !self.know(&place.key);
            task.open = Some(Box::new(open));
            return self.queue(task);
        } else {
            self.know(&mark);
            self.counts.files += 1;
            let found = Found {
                listing,
                ..Found::new(Kind::File, task.depth)
            };
            let memo = &mut open.memo;
            if self.look(turn, &task.target, task.start, found, memo) == Verdict::Head {
                task.open = Some(Box::new(open));
                self.ask_about(turn, task);
            }
            return;
        };
        self.leave_out_once(turn, &self.url(&task.target), cause);
    }

    /// Handles a link that was found, if its target belongs to the search. Returns the visitor's decision.
    fn lead(&mut self, turn: &mut Turn<'_>, mut link: Link) -> LinkVerdict {
        link.elsewhere = !same_host(&link.url, self.origin());
        let place = LinkTarget::of(&link.url, self.policy.follow);
        if !link.elsewhere && self.is_known(&place.mark(link.kind)) {
            return LinkVerdict::Follow;
        }
        let verdict = turn.visitor.link(&link);
        if verdict == LinkVerdict::Follow && !link.elsewhere {
            self.add_link(turn, &link);
        }
        verdict
    }
}

/// Replies.
impl HostCrawl {
    /// Handles the reply for the target of a link.
    pub(super) fn linked_page(&mut self, turn: &mut Turn<'_>, task: Task, reply: &Reply<'_>) {
        let links = match self.read_links(&task, reply) {
            Ok(links) => links,
            Err(cause @ Cause::CutShort(_)) => {
                return self.retry(turn, task, cause);
            }
            Err(cause) => return self.give_up(turn, task, &cause),
        };
        let target = task.target.clone();
        let mut probed = ProbeResult::by(reply, FetchKind::Page);
        probed.size = Some(SizeRange::exact(reply.body.len() as u64));
        let verdict = self.linked_file(turn, task, probed);
        if matches!(verdict, Verdict::Prune | Verdict::Quit) {
            return;
        }
        if !links.overlong.is_empty() {
            let limit = self.policy.limits.page.url_bytes;
            let cause = Cause::OverlongLinks(links.overlong, limit);
            self.unread(turn, &target, &cause);
        }
        let leaves_out =
            |link: &Reference| (links.is_nofollow || link.is_nofollow) && !link.is_embedded;
        let followed: Vec<Reference> = links
            .urls
            .into_iter()
            .filter(|link| !leaves_out(link))
            .collect();
        let from: Option<Arc<str>> = self.absolute(&target).map(|url| url.as_str().into());
        for found in followed {
            let kind = match found.is_embedded {
                true => LinkKind::File,
                false => LinkKind::Page,
            };
            let link = Link {
                listing: Some(Shape::Page),
                from: from.clone(),
                ..Link::new(found.url, kind)
            };
            self.lead(turn, link);
        }
    }

    /// Handles the target of a link: one without links, or whose links were read.
    pub(super) fn linked_file(
        &mut self,
        turn: &mut Turn<'_>,
        mut task: Task,
        probed: ProbeResult,
    ) -> Verdict {
        let kind = match task.target.ends_with('/') && !task.target.contains('?') {
            true => Kind::Directory,
            false => Kind::File,
        };
        self.counts.directories_done += 1;
        if task.is_found {
            return Verdict::Go;
        }
        self.counts.files += u64::from(kind == Kind::File);
        let empty = (kind == Kind::Directory).then_some(false);
        self.decide(turn, &mut task, kind, probed, empty)
    }

    /// The links of a reply; none if it is not a web page.
    fn read_links(&self, task: &Task, reply: &Reply<'_>) -> Result<Links, Cause> {
        if !is_web_page(reply) {
            return Ok(Links::default());
        }
        if let Some(coding) = reply.content_encoding
            && !coding.eq_ignore_ascii_case(b"identity")
        {
            return Err(Cause::Encoded(printable(coding)));
        }
        if reply.end == BodyEnd::Closed && !ends_as_a_page(reply.body) {
            return Err(Cause::CutShort(Shape::Page));
        }
        let limits = self.policy.limits.page;
        let page = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        listing::links(reply.body, reply.content_type, &page, limits).map_err(|error| match error {
            PageError::TooLongLinks => Cause::TooLongLinks(limits.all_urls_bytes),
            PageError::TooManyLinks | PageError::NotAListing => Cause::TooManyLinks(limits.links),
        })
    }

    /// Handles a redirect of the target of a link.
    pub(super) fn linked_redirect(
        &mut self,
        turn: &mut Turn<'_>,
        task: Task,
        to: &Url,
        reply: &Reply<'_>,
    ) {
        let is_start = task.open.is_none();
        let (kind, listing) = match &task.open {
            None => (LinkKind::Start, None),
            Some(open) => (LinkKind::Page, open.listing),
        };
        let to = match self.moved_to(&task, to) {
            Ok(to) => to,
            Err(Cause::RedirectLoop) if let Some(page) = self.page_behind(&task, to, reply) => {
                return self.queue(page);
            }
            Err(Cause::RedirectLoop) if self.is_gate(reply) => {
                return self.queue(task.followed());
            }
            Err(cause) => return self.give_up(turn, task, &cause),
        };
        if task.is_past_gate && same_host(&to, self.origin()) {
            return self.give_up(turn, task, &Cause::RedirectLoop);
        }
        if let Err(cause) = self.note_move(&task, &to) {
            return self.give_up(turn, task, &cause);
        }
        let link = Link {
            listing,
            chain: self.chain_of(&task),
            ..Link::new(to, kind)
        };
        let to = link.url.clone();
        if self.lead(turn, link) == LinkVerdict::Follow {
            self.counts.directories_done += 1;
        } else if is_start {
            self.give_up(turn, task, &Cause::Elsewhere(to.into()));
        } else {
            // The target is outside the search, but it exists.
            self.linked_file(turn, task, ProbeResult::nothing(reply));
        }
    }

    /// Passes a start or a directory that redirects to another host to the visitor. Returns whether it belongs to the
    /// search there.
    pub(super) fn moves_elsewhere(
        &self,
        turn: &mut Turn<'_>,
        task: &Task,
        to: &Url,
    ) -> Result<bool, Cause> {
        let kind = match task.kind {
            TaskKind::Start => LinkKind::Start,
            TaskKind::Directory => LinkKind::Moved,
            _ => return Ok(false),
        };
        let to = self.moved_to(task, to)?;
        let is_directory = kind == LinkKind::Start || to.path().ends_with('/');
        if !is_directory || same_host(&to, self.origin()) {
            return Ok(false);
        }
        let link = Link {
            elsewhere: true,
            chain: self.chain_of(task),
            ..Link::new(to, kind)
        };
        Ok(turn.visitor.link(&link) == LinkVerdict::Follow)
    }

    /// The URL without a fragment to which a redirect leads, unless the chain was there before.
    fn moved_to(&self, task: &Task, to: &Url) -> Result<Url, Cause> {
        let mut to = to.clone();
        to.set_fragment(None);
        if Some(&to) == self.absolute(&task.target).as_ref()
            || task.above.iter().any(|url| url == hash(&to))
        {
            return Err(Cause::RedirectLoop);
        }
        Ok(to)
    }

    /// Records a redirect. Two pages that redirect to each other are an error: both are known, so neither would be
    /// reported.
    fn note_move(&mut self, task: &Task, to: &Url) -> Result<(), Cause> {
        let from = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let most = self.policy.limits.redirects;
        match self.seen.insert_move(from.as_str(), to.as_str(), most) {
            true => Err(Cause::RedirectLoop),
            false => Ok(()),
        }
    }

    /// The chain of redirects up to and including this URL.
    pub(super) fn chain_of(&self, task: &Task) -> Ancestors {
        let mut chain = match task.redirects {
            0 => Ancestors::default(),
            _ => task.above.clone(),
        };
        if let Some(url) = self.absolute(&task.target) {
            chain.push(hash(&url));
        }
        chain
    }
}

/// Whether a reply is a web page.
pub(super) fn is_web_page(reply: &Reply<'_>) -> bool {
    match reply.content_type {
        Some(content_type) => listing::is_html(content_type),
        None => reply.body.trim_ascii_start().starts_with(b"<"),
    }
}

/// Whether the end tag of a page is near the end.
fn ends_as_a_page(body: &[u8]) -> bool {
    let end = &body[body.len().saturating_sub(PAGE_END)..];
    end.to_ascii_lowercase()
        .windows(b"</html".len())
        .any(|window| window == b"</html")
}

/// A hash with the same keys for all hosts.
fn hash(url: &Url) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.as_str().hash(&mut hasher);
    hasher.finish()
}

/// The largest distance in bytes between the end tag and the end of a page.
const PAGE_END: usize = 1024;
