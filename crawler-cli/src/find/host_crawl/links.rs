//! Links that can lead anywhere on the host, and to others: those of web pages, for a search that follows pages and not
//! only listings; the locations of sitemaps; redirects to other hosts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use url::Url;

use super::directories::repeats;
use super::entries::ProbeResult;
use super::messages::{BodyEnd, FetchKind, Reply};
use super::task::{Task, TaskKind, UndecidedEntry};
use super::{Answered, HostCrawl, Item, printable};
use crate::crawl::origin::same_host;
use crate::find::cause::Cause;
use crate::find::expr::{Memo, Verdict};
use crate::find::found::Kind;
use crate::find::link::{Ancestors, Link, LinkKind};
use crate::find::listing::{self, Links, PageError, Shape, SitemapLimits};
use crate::find::path;
use crate::find::policy::Follow;
use crate::find::range::SizeRange;
use crate::find::visitor::{LinkVerdict, Visitor};

/// A URL on this host.
struct Place {
    /// The request target.
    target: String,
    /// The path, canonical.
    canonical: String,
    /// What is the same for all spellings of the URL.
    key: String,
}

impl Place {
    /// Without a query that only sorts a listing.
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

    /// That something was done with it, or will be: a page that was found is not yet one that is read.
    fn mark(&self, kind: LinkKind) -> String {
        match kind {
            LinkKind::Start | LinkKind::Page => format!("page:{}", self.key),
            LinkKind::Sitemap => format!("sitemap:{}", self.key),
            LinkKind::Moved | LinkKind::Directory | LinkKind::File => self.key.clone(),
        }
    }
}

/// That a directory was found; its path alone says that it will be read.
pub(super) fn found(directory: &str) -> String {
    format!("found:{directory}")
}

/// Starts that are no listings.
impl HostCrawl {
    /// Adds a sitemap: what it names at or below its directory belongs to the crawl.
    pub fn add_sitemap(&mut self, target: &str) {
        self.add_root(target);
        if let Some(url) = self.absolute(target) {
            self.add_sitemap_at(&Place::of(&url, Follow::Pages), 0, None);
        }
    }

    /// The same, named by another one or at the end of redirects.
    fn add_sitemap_at(&mut self, place: &Place, depth: u32, chain: Option<Arc<Ancestors>>) {
        self.has_sitemaps = true;
        let start = self.starts.innermost(&place.canonical);
        if self.know(&place.mark(LinkKind::Sitemap)) {
            let target = place.target.clone();
            let task = Task::new(target, TaskKind::Sitemap, start.unwrap_or(0), depth);
            self.queue_first(task.redirected(chain));
        }
    }

    /// Adds what is at or below the directory of a target, but asks for nothing there by itself. Returns the number of
    /// that start.
    pub fn add_root(&mut self, target: &str) -> usize {
        let path = target.split('?').next().unwrap_or(target);
        let mut directory = path::canonical(path);
        directory.truncate(directory.rfind('/').map_or(0, |at| at + 1));
        self.starts.add(&directory)
    }

    /// A start of a crawl that follows pages: the page itself.
    pub(super) fn add_page(&mut self, target: &str, chain: Option<Arc<Ancestors>>) {
        let Some(url) = self.absolute(target) else {
            return;
        };
        let place = Place::of(&url, self.policy.follow);
        // After a redirect, what belongs to the search stays what it was.
        let start = match self.starts.innermost(&place.canonical) {
            Some(start) if chain.is_some() => start,
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

    /// Before what was queued so far: the queue is last in, first out, and the first start given goes first.
    pub(super) fn queue_first(&mut self, task: Task) {
        let task = self.journal.written(task);
        self.queue.push_last(task);
    }
}

/// Where links lead to.
impl HostCrawl {
    /// A page, a sitemap or a redirect somewhere leads to this host.
    pub fn add_link(&mut self, now: Instant, link: &Link, visitor: &mut dyn Visitor) {
        let place = Place::of(&link.url, self.policy.follow);
        if matches!(link.kind, LinkKind::Start | LinkKind::Sitemap) {
            return self.add_late(&place, link, visitor);
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
        let task = task.redirected(link.chain.clone());
        let open = UndecidedEntry {
            memo: Memo::new(),
            listing: link.listing,
            size: None,
            modified: link.modified,
        };
        match link.kind {
            LinkKind::Moved => self.enqueue(now, task, &place.canonical, visitor),
            LinkKind::Directory => self.directory(now, task, open, Answered::default(), visitor),
            _ => self.linked(now, task, open, &place, visitor),
        }
    }

    /// A start or a sitemap that something leads to while the crawl goes on.
    fn add_late(&mut self, place: &Place, link: &Link, visitor: &mut dyn Visitor) {
        let limits = self.policy.limits;
        let given_up = self.given_up.clone();
        let cause = if let Some(cause) = &given_up {
            cause
        } else if !self.is_allowed(&place.target) {
            &Cause::Robots
        } else if self.seen.len() >= limits.directories {
            &Cause::TooManyDirectories(limits.directories)
        } else if link.depth > MOST_NESTED {
            &Cause::TooDeep(MOST_NESTED)
        } else if link.kind == LinkKind::Sitemap {
            return self.add_sitemap_at(place, link.depth, link.chain.clone());
        } else {
            return self.add_start_at(&place.target, link.chain.clone());
        };
        self.leave_out_once(&self.url(&place.target), cause, visitor);
    }

    /// Reports a URL that will not be read, once however often something leads there, as long as that can be remembered.
    pub fn leave_out_once(&mut self, url: &str, cause: &Cause, visitor: &mut dyn Visitor) {
        let is_full = self.seen.len() >= self.policy.limits.directories;
        if is_full || self.know(&format!("left:{url}")) {
            self.leave_out(url, cause, visitor);
        }
    }

    /// A page or a file that is found by a link.
    fn linked(
        &mut self,
        now: Instant,
        mut task: Task,
        mut open: UndecidedEntry,
        place: &Place,
        visitor: &mut dyn Visitor,
    ) {
        let is_page = task.kind == TaskKind::Link;
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
        } else if repeats(below) > limits.repeats {
            &Cause::Loop(limits.repeats)
        } else if let Some(cause) = &given_up {
            cause
        } else if is_page && !self.is_allowed(&task.target) {
            &Cause::Robots
        } else if is_page {
            self.mark(&mark);
            task.is_found = !self.know(&place.key);
            task.open = Some(Box::new(open));
            return self.queue(task);
        } else {
            self.know(&mark);
            self.counts.files += 1;
            let item = Item {
                depth: task.depth,
                listing: open.listing,
                modified: self.probes.placed(open.modified),
                ..Item::of(&task.target, Kind::File, task.start)
            };
            if self.look(item, &mut open.memo, visitor) == Verdict::Head {
                task.open = Some(Box::new(open));
                self.ask_about(now, task, visitor);
            }
            return;
        };
        self.leave_out_once(&self.url(&task.target), cause, visitor);
    }

    /// Goes where something leads to, if that belongs to the search.
    fn lead(&mut self, now: Instant, mut link: Link, visitor: &mut dyn Visitor) -> LinkVerdict {
        link.elsewhere = !same_host(&link.url, self.origin());
        let place = Place::of(&link.url, self.policy.follow);
        if !link.elsewhere && self.is_known(&place.mark(link.kind)) {
            return LinkVerdict::Follow;
        }
        let verdict = visitor.link(&link);
        if verdict == LinkVerdict::Follow && !link.elsewhere {
            self.add_link(now, &link, visitor);
        }
        verdict
    }
}

/// Replies.
impl HostCrawl {
    /// What a link leads to.
    pub(super) fn linked_page(
        &mut self,
        now: Instant,
        task: Task,
        reply: &Reply<'_>,
        visitor: &mut dyn Visitor,
    ) {
        let links = match self.read_links(&task, reply) {
            Ok(links) => links,
            Err(cause @ Cause::CutShort(_)) => {
                return self.retry(now, task, cause, visitor);
            }
            Err(cause) => return self.give_up(now, task, &cause, visitor),
        };
        let target = task.target.clone();
        let mut told = ProbeResult::by(reply, FetchKind::Page);
        told.size = Some(SizeRange::exact(reply.body.len() as u64));
        let verdict = self.linked_file(now, task, told, visitor);
        if matches!(verdict, Verdict::Prune | Verdict::Quit) {
            return;
        }
        if links.overlong > 0 {
            let limit = self.policy.limits.page.url_bytes;
            let cause = Cause::OverlongLinks(links.overlong, limit);
            self.unread(&target, &cause, visitor);
        }
        for found in links.urls {
            let kind = match found.is_embedded {
                true => LinkKind::File,
                false => LinkKind::Page,
            };
            let link = Link {
                listing: Some(Shape::Page),
                ..Link::new(found.url, kind)
            };
            self.lead(now, link, visitor);
        }
    }

    /// A link leads to something without links, or that has been read.
    pub(super) fn linked_file(
        &mut self,
        now: Instant,
        mut task: Task,
        told: ProbeResult,
        visitor: &mut dyn Visitor,
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
        self.decide(now, &mut task, kind, told, empty, visitor)
    }

    /// The links of a reply, if it is a page.
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
        listing::links(reply.body, &page, limits).map_err(|error| match error {
            PageError::TooLongLinks => Cause::TooLongLinks(limits.all_urls_bytes),
            PageError::TooManyLinks | PageError::NotAListing => Cause::TooManyLinks(limits.links),
        })
    }

    /// What a link leads to was moved.
    pub(super) fn linked_redirect(
        &mut self,
        now: Instant,
        task: Task,
        reply: &Reply<'_>,
        visitor: &mut dyn Visitor,
    ) {
        let is_start = task.open.is_none();
        let (kind, listing) = match (task.kind, &task.open) {
            (TaskKind::Sitemap, _) => (LinkKind::Sitemap, None),
            (_, None) => (LinkKind::Start, None),
            (_, Some(open)) => (LinkKind::Page, open.listing),
        };
        let to = match self.moved_to(&task, reply.location) {
            Ok(to) => to,
            Err(cause) => return self.give_up(now, task, &cause, visitor),
        };
        if let Err(cause) = self.note_move(&task, &to) {
            return self.give_up(now, task, &cause, visitor);
        }
        let link = Link {
            listing,
            chain: self.chain_of(&task),
            depth: task.depth,
            ..Link::new(to, kind)
        };
        let to = link.url.clone();
        if self.lead(now, link, visitor) == LinkVerdict::Follow {
            self.counts.directories_done += u64::from(task.kind == TaskKind::Link);
        } else if is_start {
            self.give_up(now, task, &Cause::Elsewhere(to.into()), visitor);
        } else {
            // It leads out of the search, but it is there.
            self.linked_file(now, task, ProbeResult::nothing(reply), visitor);
        }
    }

    /// Hands a start or a directory that was moved to another host to whoever searches that one, if it belongs to the
    /// search.
    pub(super) fn moves_elsewhere(
        &self,
        task: &Task,
        location: Option<&[u8]>,
        visitor: &mut dyn Visitor,
    ) -> Result<bool, Cause> {
        let kind = match task.kind {
            TaskKind::Start => LinkKind::Start,
            TaskKind::Directory => LinkKind::Moved,
            _ => return Ok(false),
        };
        let to = self.moved_to(task, location)?;
        let is_directory = kind == LinkKind::Start || to.path().ends_with('/');
        if !is_directory || same_host(&to, self.origin()) {
            return Ok(false);
        }
        let link = Link {
            elsewhere: true,
            chain: self.chain_of(task),
            ..Link::new(to, kind)
        };
        Ok(visitor.link(&link) == LinkVerdict::Follow)
    }

    /// Where a redirect leads to.
    fn moved_to(&self, task: &Task, location: Option<&[u8]>) -> Result<Url, Cause> {
        let limit = self.policy.limits.redirects;
        if task.redirects >= limit {
            return Err(Cause::TooManyRedirects(limit));
        }
        let text = location.and_then(|location| std::str::from_utf8(location).ok());
        let from = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let to = text.and_then(|text| from.join(text).ok());
        let mut to = to.ok_or(Cause::NoLocation)?;
        to.set_fragment(None);
        if to == from || Ancestors::listings(task.above.as_ref()).any(|url| url == hash(&to)) {
            return Err(Cause::RedirectLoop);
        }
        Ok(to)
    }

    /// Two pages that redirect to each other are both known, and so is neither ever found.
    fn note_move(&mut self, task: &Task, to: &Url) -> Result<(), Cause> {
        let from = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let most = self.policy.limits.redirects;
        match self.seen.insert_move(from.as_str(), to.as_str(), most) {
            true => Err(Cause::RedirectLoop),
            false => Ok(()),
        }
    }

    /// The redirects up to this URL, and this one.
    fn chain_of(&self, task: &Task) -> Option<Arc<Ancestors>> {
        let url = self.absolute(&task.target)?;
        let redirected = task.above.clone().filter(|_| task.redirects > 0);
        Some(Arc::new(Ancestors {
            listing: hash(&url),
            next: redirected,
        }))
    }

    /// What a sitemap names.
    pub(super) fn sitemap(
        &mut self,
        now: Instant,
        task: Task,
        reply: &Reply<'_>,
        visitor: &mut dyn Visitor,
    ) {
        let is_framed = reply.end == BodyEnd::Framed;
        let map = match listing::sitemap(reply.body, SitemapLimits::default()) {
            Ok(map) if is_framed || map.ended => map,
            Err(error) if is_framed => {
                return self.give_up(now, task, &Cause::Sitemap(error), visitor);
            }
            // It may come whole next time.
            Ok(_) | Err(_) => {
                return self.retry(now, task, Cause::CutShort(Shape::Sitemap), visitor);
            }
        };
        let (named, mut outside) = (map.pages.len(), 0);
        for located in map.pages {
            let kind = match self.policy.follow {
                Follow::Pages => LinkKind::Page,
                Follow::Listings => {
                    let place = Place::of(&located.url, self.policy.follow);
                    match place.target.ends_with('/') && !place.target.contains('?') {
                        true => LinkKind::Directory,
                        false => LinkKind::File,
                    }
                }
            };
            let link = Link {
                listing: Some(Shape::Sitemap),
                modified: located.modified,
                ..Link::new(located.url, kind)
            };
            let verdict = self.lead(now, link, visitor);
            outside += usize::from(verdict == LinkVerdict::Outside);
        }
        for located in map.sitemaps {
            let link = Link {
                depth: task.depth + 1,
                ..Link::new(located.url, LinkKind::Sitemap)
            };
            let url = link.url.clone();
            if self.lead(now, link, visitor) == LinkVerdict::Outside {
                self.unread(&task.target, &Cause::SitemapElsewhere(url.into()), visitor);
            }
        }
        if map.unusable > 0 {
            self.unread(&task.target, &Cause::BadLocations(map.unusable), visitor);
        }
        if named > 0 && outside == named {
            self.unread(&task.target, &Cause::NothingBelow, visitor);
        }
    }
}

/// Whether a reply is a page with links.
pub(super) fn is_web_page(reply: &Reply<'_>) -> bool {
    match reply.content_type {
        Some(content_type) => listing::is_html_type(content_type),
        None => reply.body.trim_ascii_start().starts_with(b"<"),
    }
}

/// Whether what ends every page is at the end.
fn ends_as_a_page(body: &[u8]) -> bool {
    let end = &body[body.len().saturating_sub(PAGE_END)..];
    end.to_ascii_lowercase()
        .windows(b"</html".len())
        .any(|window| window == b"</html")
}

/// The same for all hosts.
fn hash(url: &Url) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.as_str().hash(&mut hasher);
    hasher.finish()
}

/// How deep sitemaps may name each other; by the protocol, one level.
const MOST_NESTED: u32 = 3;

/// How far from the end of a page its end tag may be.
const PAGE_END: usize = 1024;
