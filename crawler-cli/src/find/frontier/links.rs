//! Links that can lead anywhere on the host, and to others: those of web pages, for a search that follows pages and not
//! only listings; the locations of sitemaps; redirects to other hosts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use url::Url;

use super::inspect::Told;
use super::messages::{Ask, BodyEnd, Kind, Reply};
use super::task::{Above, Open, Task, TaskKind};
use super::{Answered, Cause, Finding, Follow, Frontier, Item, Sink, Start, printable, repeats};
use crate::find::expr::{Memo, Verdict};
use crate::find::listing::{self, Links, PageError, Shape, SitemapLimits};
use crate::find::path;
use crate::find::range::{ListedTime, SizeRange};

/// A URL that something leads to.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where.
    pub url: Url,
    /// What is to be done there.
    pub kind: LinkKind,
    /// Whether it is on another host, so that whoever searches that one is to be told.
    pub elsewhere: bool,
    /// What named it, if it is to be found by that.
    pub(super) listing: Option<Shape>,
    /// When it changed last, if that was said.
    pub(super) modified: Option<ListedTime>,
    /// The URLs that redirected to it, one to the other.
    pub(super) chain: Option<Arc<Above>>,
}

/// What is to be done with a [`Link`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkKind {
    /// A start was moved there.
    Start,
    /// A directory was moved there: it is read, and not found once more.
    Moved,
    /// A directory to find and to read.
    Directory,
    /// Something to find, which may be a page with links of its own.
    Page,
    /// A file to find.
    File,
    /// A list of pages, which is not found itself.
    Sitemap,
}

impl Link {
    fn new(url: Url, kind: LinkKind) -> Self {
        Self {
            url,
            kind,
            elsewhere: false,
            listing: None,
            modified: None,
            chain: None,
        }
    }
}

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
    fn of(url: &Url) -> Self {
        let segments = url.path().split('/').map(path::normalise_segment);
        let segments: Vec<String> = segments.collect();
        let mut target = segments.join("/");
        let canonical = path::canonical(&target);
        let mut key = canonical.clone();
        if let Some(query) = url.query().filter(|query| !listing::is_sort_query(query)) {
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
}

/// Starts that are no listings.
impl Frontier {
    /// Adds a sitemap: what it names at or below its directory belongs to the crawl.
    pub fn add_sitemap(&mut self, target: &str) {
        let start = self.add_root(target);
        if self.know(target) {
            let task = Task::new(target.to_owned(), TaskKind::Sitemap, start, 0);
            self.queue_first(task);
        }
    }

    /// Adds what is at or below the directory of a target, but asks for nothing there by itself. Tells which start that
    /// is.
    pub fn add_root(&mut self, target: &str) -> usize {
        let path = target.split('?').next().unwrap_or(target);
        let mut directory = path::canonical(path);
        directory.truncate(directory.rfind('/').map_or(0, |at| at + 1));
        match self.start_at.get(directory.as_str()) {
            Some(&start) => start,
            None => self.note_start(directory, false),
        }
    }

    /// One more start, which is not there yet.
    pub(super) fn note_start(&mut self, directory: String, is_found: bool) -> usize {
        let path = path::decode(&directory);
        let directory: Arc<str> = directory.into();
        let number = self.starts.len();
        self.start_at.insert(Arc::clone(&directory), number);
        self.starts.push(Start {
            directory,
            path,
            is_found,
        });
        number
    }

    /// A start of a crawl that follows pages: the page itself.
    pub(super) fn add_page(&mut self, place: &str, chain: Option<Arc<Above>>) {
        let Ok(url) = self.origin.join(place) else {
            return;
        };
        let place = Place::of(&url);
        let start = self.add_root(&place.target);
        if self.mark(&place.key) {
            let task = Task::new(place.target, TaskKind::Link, start, 0);
            self.queue_first(task.redirected(chain));
        }
    }

    /// Before what was queued so far: the queue is last in, first out, and the first start given goes first.
    pub(super) fn queue_first(&mut self, task: Task) {
        let task = self.written(task);
        self.ready.push_front(task);
    }
}

/// Where links lead to.
impl Frontier {
    /// A page, a sitemap or a redirect somewhere leads to this host.
    pub fn add_link(&mut self, now: Instant, link: &Link, sink: Sink<'_>) {
        let place = Place::of(&link.url);
        if let Some(cause) = self
            .given_up
            .clone()
            .filter(|_| link.kind != LinkKind::File)
        {
            // Once, however many pages lead there.
            if self.know(&place.key) {
                self.unread(&place.target, &cause, sink);
            }
            return;
        }
        let is_start = matches!(link.kind, LinkKind::Start | LinkKind::Sitemap);
        if is_start && !self.is_allowed(&place.target) {
            return self.unread(&place.target, &Cause::Robots, sink);
        }
        match link.kind {
            LinkKind::Start => return self.add_start_at(&place.target, link.chain.clone()),
            LinkKind::Sitemap => return self.add_sitemap(&place.target),
            LinkKind::Moved | LinkKind::Directory | LinkKind::Page | LinkKind::File => {}
        }
        let Some(start) = self.innermost_start(&place.canonical) else {
            return;
        };
        let depth = path::depth_below(&self.starts[start].directory, &place.canonical);
        if self.policy.max_depth.is_some_and(|max| depth > max) {
            return;
        }
        let kind = match link.kind {
            LinkKind::Page => TaskKind::Link,
            LinkKind::File => TaskKind::File,
            _ => TaskKind::Directory,
        };
        let task = Task::new(place.target, kind, start, depth).redirected(link.chain.clone());
        let open = Open {
            memo: Memo::new(),
            listing: link.listing,
            size: None,
            modified: link.modified,
        };
        match link.kind {
            LinkKind::Moved => self.enqueue(now, task, &place.canonical, sink),
            LinkKind::Directory => self.directory(now, task, open, Answered::default(), sink),
            _ => self.linked(now, task, open, &place.key, sink),
        }
    }

    /// A page or a file that is found by a link.
    fn linked(&mut self, now: Instant, mut task: Task, mut open: Open, key: &str, sink: Sink<'_>) {
        if self.is_known(key) {
            return;
        }
        let limits = self.policy.limits;
        let is_page = task.kind == TaskKind::Link;
        let below = &task.target[..task.target.find('?').unwrap_or(task.target.len())];
        let cause = if self.known.len() >= limits.directories {
            Cause::TooManyDirectories(limits.directories)
        } else if task.depth > limits.depth {
            Cause::TooDeep(limits.depth)
        } else if repeats(below) > limits.repeats {
            Cause::Loop(limits.repeats)
        } else if is_page && !self.is_allowed(&task.target) {
            Cause::Robots
        } else if is_page {
            self.mark(key);
            task.open = Some(Box::new(open));
            return self.queue(task);
        } else {
            self.know(key);
            self.counts.files += 1;
            let item = Item {
                depth: task.depth,
                listing: open.listing,
                modified: self.placed(open.modified),
                ..Item::of(&task.target, Kind::File, task.start)
            };
            if self.look(item, &mut open.memo, sink) == Verdict::Head {
                task.open = Some(Box::new(open));
                self.ask_about(now, task, sink);
            }
            return;
        };
        // Once, however many pages lead there.
        if self.known.len() < limits.directories {
            self.know(key);
        }
        self.unread(&task.target, &cause, sink);
    }

    /// Follows a link of this host, if that belongs to the search. Tells whether it does.
    fn lead(&mut self, now: Instant, mut link: Link, sink: Sink<'_>) -> bool {
        link.elsewhere = !crate::find::same_host(&link.url, &self.origin);
        if !link.elsewhere && self.is_known(&Place::of(&link.url).key) {
            return true;
        }
        let follows = sink(Finding::Link(&link)) == Verdict::Go;
        if follows && !link.elsewhere {
            self.add_link(now, &link, sink);
        }
        follows
    }
}

/// Replies.
impl Frontier {
    /// What a link leads to.
    pub(super) fn linked_page(
        &mut self,
        now: Instant,
        task: Task,
        reply: &Reply<'_>,
        sink: Sink<'_>,
    ) {
        let links = match self.read_links(&task, reply) {
            Ok(links) => links,
            Err(cause @ Cause::CutShort(_)) => {
                let wait = self.policy.back_off(task.attempts);
                return self.retry(now, task, cause, wait, sink);
            }
            Err(cause) => return self.give_up(now, task, &cause, sink),
        };
        let target = task.target.clone();
        let mut told = Told::by(reply, Ask::Page);
        told.size = Some(SizeRange::exact(reply.body.len() as u64));
        if self.linked_file(now, task, told, sink) != Verdict::Go {
            return;
        }
        if links.overlong > 0 {
            let limit = self.policy.limits.page.url_bytes;
            let cause = Cause::OverlongLinks(links.overlong, limit);
            self.unread(&target, &cause, sink);
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
            self.lead(now, link, sink);
        }
    }

    /// A link leads to something without links, or that has been read.
    pub(super) fn linked_file(
        &mut self,
        now: Instant,
        mut task: Task,
        told: Told,
        sink: Sink<'_>,
    ) -> Verdict {
        let kind = match task.target.ends_with('/') && !task.target.contains('?') {
            true => Kind::Directory,
            false => Kind::File,
        };
        self.counts.directories_done += 1;
        self.counts.files += u64::from(kind == Kind::File);
        self.settle(now, &mut task, kind, told, None, sink)
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
        let page = self.origin.join(&task.target);
        let page = page.map_err(|_| Cause::NoLocation)?;
        listing::links(reply.body, &page, limits).map_err(|error| match error {
            PageError::TooManyLinks | PageError::NotAListing => Cause::TooManyLinks(limits.links),
        })
    }

    /// What a link leads to was moved.
    pub(super) fn linked_redirect(
        &mut self,
        now: Instant,
        task: Task,
        reply: &Reply<'_>,
        sink: Sink<'_>,
    ) {
        let is_start = task.open.is_none();
        let (kind, listing) = match (task.kind, &task.open) {
            (TaskKind::Sitemap, _) => (LinkKind::Sitemap, None),
            (_, None) => (LinkKind::Start, None),
            (_, Some(open)) => (LinkKind::Page, open.listing),
        };
        let to = match self.moved_to(&task, reply.location) {
            Ok(to) => to,
            Err(cause) => return self.give_up(now, task, &cause, sink),
        };
        let link = Link {
            listing,
            chain: self.chain_of(&task),
            ..Link::new(to, kind)
        };
        let to = link.url.clone();
        if self.lead(now, link, sink) {
            self.counts.directories_done += u64::from(task.kind == TaskKind::Link);
        } else if is_start {
            self.give_up(now, task, &Cause::Elsewhere(to.into()), sink);
        } else {
            // It leads out of the search, but it is there.
            self.linked_file(now, task, Told::nothing(reply), sink);
        }
    }

    /// Hands a start or a directory that was moved to another host to whoever searches that one, if it belongs to the
    /// search.
    pub(super) fn moves_elsewhere(
        &self,
        task: &Task,
        location: Option<&[u8]>,
        sink: Sink<'_>,
    ) -> Result<bool, Cause> {
        let kind = match task.kind {
            TaskKind::Start => LinkKind::Start,
            TaskKind::Directory => LinkKind::Moved,
            _ => return Ok(false),
        };
        let to = self.moved_to(task, location)?;
        let is_directory = kind == LinkKind::Start || to.path().ends_with('/');
        if !is_directory || crate::find::same_host(&to, &self.origin) {
            return Ok(false);
        }
        let link = Link {
            elsewhere: true,
            chain: self.chain_of(task),
            ..Link::new(to, kind)
        };
        Ok(sink(Finding::Link(&link)) == Verdict::Go)
    }

    /// Where a redirect leads to.
    fn moved_to(&self, task: &Task, location: Option<&[u8]>) -> Result<Url, Cause> {
        let limit = self.policy.limits.redirects;
        if task.redirects >= limit {
            return Err(Cause::TooManyRedirects(limit));
        }
        let text = location.and_then(|location| std::str::from_utf8(location).ok());
        let from = self.origin.join(&task.target);
        let from = from.map_err(|_| Cause::NoLocation)?;
        let to = text.and_then(|text| from.join(text).ok());
        let mut to = to.ok_or(Cause::NoLocation)?;
        to.set_fragment(None);
        if to == from || Above::listings(task.above.as_ref()).any(|url| url == hash(&to)) {
            return Err(Cause::RedirectLoop);
        }
        Ok(to)
    }

    /// The redirects up to this URL, and this one.
    fn chain_of(&self, task: &Task) -> Option<Arc<Above>> {
        let url = self.origin.join(&task.target).ok()?;
        let redirected = task.above.clone().filter(|_| task.redirects > 0);
        Some(Arc::new(Above {
            listing: hash(&url),
            next: redirected,
        }))
    }

    /// What a sitemap names.
    pub(super) fn sitemap(&mut self, now: Instant, task: Task, reply: &Reply<'_>, sink: Sink<'_>) {
        let is_framed = reply.end == BodyEnd::Framed;
        let map = match listing::sitemap(reply.body, SitemapLimits::default()) {
            Ok(map) if is_framed || map.ended => map,
            Err(error) if is_framed => {
                return self.give_up(now, task, &Cause::Sitemap(error), sink);
            }
            // It may come whole next time.
            Ok(_) | Err(_) => {
                let wait = self.policy.back_off(task.attempts);
                return self.retry(now, task, Cause::CutShort(Shape::Sitemap), wait, sink);
            }
        };
        let named = map.pages.len();
        let mut inside = 0;
        for located in map.pages {
            let kind = match self.policy.follow {
                Follow::Pages => LinkKind::Page,
                Follow::Listings if located.url.query().is_some() => LinkKind::File,
                Follow::Listings if located.url.path().ends_with('/') => LinkKind::Directory,
                Follow::Listings => LinkKind::File,
            };
            let link = Link {
                listing: Some(Shape::Sitemap),
                modified: located.modified,
                ..Link::new(located.url, kind)
            };
            inside += usize::from(self.lead(now, link, sink));
        }
        for located in map.sitemaps {
            let link = Link::new(located.url, LinkKind::Sitemap);
            let url = link.url.clone();
            if !self.lead(now, link, sink) {
                self.unread(&task.target, &Cause::SitemapElsewhere(url.into()), sink);
            }
        }
        if map.unusable > 0 {
            self.unread(&task.target, &Cause::BadLocations(map.unusable), sink);
        }
        if named > 0 && inside == 0 {
            self.unread(&task.target, &Cause::NothingBelow, sink);
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

/// How far from the end of a page its end tag may be.
const PAGE_END: usize = 1024;
