//! Directories: reading the replies that list them, and deciding which listed directories are read.

use super::entries::ProbeResult;
use super::messages::{BodyEnd, FetchKind, Reply};
use super::probes::PartialListing;
use super::task::{Task, TaskKind, UndecidedEntry};
use super::{HostCrawl, printable};
use crate::cause::Cause;
use crate::expr::Verdict;
use crate::found::{Found, Kind};
use crate::visitor::Turn;
use listing::path;
use listing::{self, Entry, EntryKind, Listing, PageError, Shape};

impl HostCrawl {
    /// Handles the reply to the request for a directory.
    pub(super) fn page(&mut self, turn: &mut Turn<'_>, task: Task, reply: &Reply<'_>) {
        match self.read_page(&task, reply) {
            Ok(listing) => self.listed(turn, task, listing, reply),
            // An incomplete page may arrive complete next time.
            Err(cause @ Cause::CutShort(_)) => {
                self.retry(turn, task, cause);
            }
            Err(cause) => self.give_up(turn, task, &cause),
        }
    }

    pub(super) fn read_page(&self, task: &Task, reply: &Reply<'_>) -> Result<Listing, Cause> {
        Self::check_head(reply)?;
        let limits = self.policy.limits.page;
        let page = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let listing =
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
        self.check_listing(task, reply, listing)
    }

    /// Whether a reply with this head can be a listing.
    fn check_head(reply: &Reply<'_>) -> Result<(), Cause> {
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
        Ok(())
    }

    /// Whether what was read is a whole listing.
    fn check_listing(
        &self,
        task: &Task,
        reply: &Reply<'_>,
        mut listing: Listing,
    ) -> Result<Listing, Cause> {
        let page = self.absolute(&task.target).ok_or(Cause::NoLocation)?;
        let linked = reply.next.and_then(|next| str::from_utf8(next).ok());
        if listing.next.is_none()
            && let Some(next) = linked.and_then(|next| page.join(next).ok())
        {
            listing.next = listing::next_page(&next, &page);
            if listing.next.is_none() {
                listing.leave_out_next(&next, &page);
            }
        }
        // Known servers end every page with a marker. For an unknown server that does not, the framing shows the end.
        let needs_no_end =
            listing.shape == Shape::Generic && (!listing.promises_end || self.policy.accept_pages);
        let whole = listing.ended || (needs_no_end && reply.end == BodyEnd::Framed);
        if !whole {
            return Err(Cause::CutShort(listing.shape));
        }
        match listing.doubt.take_if(|_| !self.policy.accept_pages) {
            Some(page) => Err(Cause::WebPage(Box::new(page))),
            None => Ok(listing),
        }
    }

    /// Handles the listing of a directory.
    fn listed(&mut self, turn: &mut Turn<'_>, mut task: Task, listing: Listing, reply: &Reply<'_>) {
        let is_empty = listing.entries.is_empty();
        if task.kind == TaskKind::Start || task.open.is_some() {
            let empty = is_empty && listing.overlong.is_empty();
            let verdict = self.decide(
                turn,
                &mut task,
                Kind::Directory,
                ProbeResult::by(reply, FetchKind::List),
                Some(empty),
            );
            if matches!(verdict, Verdict::Prune | Verdict::Quit) {
                return self.counts.directories_done += 1;
            }
        }
        if self.policy.max_depth.is_some_and(|max| task.depth >= max) {
            return self.counts.directories_done += 1;
        }
        let own = (!is_empty).then(|| self.seen.listing(&listing.entries));
        let has_parts = task.kind == TaskKind::Page || listing.next.is_some();
        if has_parts
            && let Some(own) = own
            && !self.seen.insert_part(task.directory(), own)
        {
            // The server knows nothing of further pages, or goes round in a circle.
            return self.unread(turn, &task.target, &Cause::NoProgress);
        }
        let limit = self.policy.limits.page.url_bytes;
        for cause in [
            Cause::OverlongLinks(listing.overlong, limit),
            Cause::LeftOut(listing.left_out),
            Cause::Nameless(listing.nameless),
            Cause::Outside(listing.outside),
        ] {
            if cause.left_out().is_some_and(|names| !names.is_empty()) {
                self.unread(turn, &task.target, &cause);
            }
        }
        if listing.stops {
            self.unread(turn, &task.target, &Cause::NoProgress);
        }
        task.empty_pages = match is_empty {
            true => task.empty_pages + 1,
            false => 0,
        };
        if let Some(path) = &listing.directory {
            // The listing names its directory, which may differ from the requested path.
            task.path = Some(path.clone());
        }
        if let Some(next) = listing.next {
            let must_go_on = matches!(listing.shape, Shape::S3 | Shape::Azure);
            self.next_page(turn, &task, &next, must_go_on);
        }
        let mut repeats = None;
        if let Some(own) = own {
            let same = task.above.iter().filter(|above| *above == own);
            // Listings that have only names may be equal by chance.
            let dated = |entry: &Entry| entry.kind == EntryKind::File && entry.modified.is_some();
            let most = match listing.entries.iter().any(dated) {
                true => self.policy.limits.same_listings,
                false => self.policy.limits.repeats,
            };
            if same.count() > most {
                repeats = Some(own);
            }
            task.above.push(own);
        }
        let held = PartialListing {
            task,
            shape: listing.shape,
            directories: listing.directories,
            entries: listing.entries.into(),
            memo: None,
            written: None,
        };
        match repeats {
            None => self.entries(turn, held),
            Some(own) => self.try_loop(turn, held, own),
        }
    }

    /// Queues a further page of the same directory, named by a page. `must_go_on`: the page says that more entries follow;
    /// the last page of others may name an earlier one.
    pub(super) fn next_page(
        &mut self,
        turn: &mut Turn<'_>,
        task: &Task,
        target: &str,
        must_go_on: bool,
    ) {
        let cause = if !self.is_allowed(target) {
            Cause::Robots
        } else if !self.seen.insert_page(target) {
            if !must_go_on {
                return;
            }
            Cause::NoProgress
        } else if task.empty_pages > MOST_EMPTY_PAGES {
            Cause::NoProgress
        } else if self.seen.pages() > self.policy.limits.pages {
            Cause::TooManyPages(self.policy.limits.pages)
        } else {
            return self.queue(Task {
                path: Some(task.directory().to_owned()),
                above: task.above.clone(),
                empty_pages: task.empty_pages,
                ..Task::new(target.to_owned(), TaskKind::Page, task.start, task.depth)
            });
        };
        self.unread(turn, target, &cause);
    }

    /// Handles a listed directory: reports it, and queues it if it should be read and is new. `found`: what the request
    /// says that led to it.
    pub(super) fn directory(
        &mut self,
        turn: &mut Turn<'_>,
        mut task: Task,
        mut open: UndecidedEntry,
        found: Found<'_>,
    ) {
        let canonical = path::canonical(task.directory());
        if self.starts.is_found_at(&canonical) {
            return;
        }
        let found = Found {
            listing: open.listing,
            modified: self.probes.placed(open.modified),
            ..found
        };
        match self.look(turn, task.directory(), task.start, found, &mut open.memo) {
            // Marks it as known, so that no redirect leads there either.
            Verdict::Prune | Verdict::Quit => {
                self.know(&canonical);
                return;
            }
            Verdict::Go | Verdict::Undecided => {}
            // Reading a directory costs the server no more than a HEAD, and answers all questions.
            Verdict::Head | Verdict::List => task.open = Some(Box::new(open)),
        }
        self.enqueue(turn, task, &canonical);
    }

    pub(super) fn enqueue(&mut self, turn: &mut Turn<'_>, task: Task, canonical: &str) {
        if self.policy.max_depth.is_some_and(|max| task.depth >= max) && task.open.is_none() {
            self.counts.directories += 1;
            self.counts.directories_done += 1;
            return;
        }
        let limits = self.policy.limits;
        let directory = self.starts.directory(task.start);
        let below = canonical.strip_prefix(directory).unwrap_or(canonical);
        let cause = if self.is_known(canonical) {
            return self.close(turn, task);
        } else if !self.is_allowed(&task.target) {
            Cause::Robots
        } else if task.depth > limits.depth {
            Cause::TooDeep(limits.depth)
        } else if path::repeats(below) > limits.repeats {
            Cause::Loop(limits.repeats)
        } else if self.seen.len() >= limits.directories {
            Cause::TooManyDirectories(limits.directories)
        } else {
            self.mark(canonical);
            let Some(cause) = self.given_up.clone() else {
                return self.queue(task);
            };
            return self.give_up(turn, task, &cause);
        };
        self.unread(turn, &task.target, &cause);
        self.close(turn, task);
    }

    /// The task will not be requested: the expression decides with what is known.
    pub(super) fn close(&mut self, turn: &mut Turn<'_>, mut task: Task) {
        // A link does not prove that its target exists.
        if task.open.is_some() && task.kind != TaskKind::Link {
            let kind = match task.kind {
                TaskKind::File => Kind::File,
                _ => Kind::Directory,
            };
            self.decide(turn, &mut task, kind, ProbeResult::default(), Some(false));
        }
    }
}

/// So many pages in a row of one directory may have no entries: a bucket skips what it has deleted.
const MOST_EMPTY_PAGES: u32 = 100;
