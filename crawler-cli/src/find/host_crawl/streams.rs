//! Bodies that are read while they arrive: listings that are too large for memory, and robots.txt, of which a part is
//! enough (RFC 9309 §2.5).
//!
//! Nearly all listings come as one reply, which needs no copy. A listing that exceeds a limit of such a reply is requested
//! once more, as a stream.

use std::collections::HashMap;
use std::time::Instant;

use courser::{Error, ErrorKind, LimitExceeded, Phase};

use super::HostCrawl;
use super::messages::{FetchId, FetchKind, KeptHead, Reply};
use super::task::{Task, TaskKind};
use crate::crawl::robots::{Access, READ};
use crate::find::cause::{Cause, Failure};
use crate::find::listing::{Listing, ListingStream, PageError, StreamError};
use crate::find::visitor::Visitor;

/// The bodies that arrive.
#[derive(Debug, Default)]
pub(super) struct Streams(HashMap<FetchId, Arriving>);

#[derive(Debug)]
struct Arriving {
    head: KeptHead,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Robots(Vec<u8>),
    Listing(Box<ListingStream>),
}

impl Streams {
    /// The body will not arrive.
    pub(super) fn forget(&mut self, id: FetchId) {
        self.0.remove(&id);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl HostCrawl {
    /// The head of a reply to a request that is [read while it arrives](super::Fetch::is_streamed). Returns whether the
    /// body is wanted; without the body, the reply was handled.
    pub fn handle_head(
        &mut self,
        now: Instant,
        id: FetchId,
        reply: &Reply<'_>,
        visitor: &mut dyn Visitor,
    ) -> bool {
        let body = match self.in_flight.get(&id) {
            Some((task, FetchKind::Robots)) => {
                let access = Access::of_status(reply.status, task.redirects);
                (access == Access::Parse).then(|| Body::Robots(Vec::new()))
            }
            Some((task, FetchKind::List)) if matches!(reply.status, 200 | 203) => {
                let limits = self.policy.limits.page;
                let page = self.absolute(&task.target);
                let page = page.filter(|_| Self::check_head(reply).is_ok());
                page.map(|page| {
                    Body::Listing(Box::new(ListingStream::new(
                        &page,
                        reply.content_type,
                        limits,
                    )))
                })
            }
            _ => None,
        };
        let Some(body) = body else {
            self.handle_reply(now, id, reply, visitor);
            return false;
        };
        let head = KeptHead::of(reply);
        self.streams.0.insert(id, Arriving { head, body });
        true
    }

    /// A part of a wanted body arrived. Returns whether the rest is wanted; without the rest, the reply was handled.
    pub fn handle_data(
        &mut self,
        now: Instant,
        id: FetchId,
        bytes: &[u8],
        visitor: &mut dyn Visitor,
    ) -> bool {
        let Some(arriving) = self.streams.0.get_mut(&id) else {
            return false;
        };
        match &mut arriving.body {
            Body::Robots(body) => {
                // One byte more shows that the file is cut.
                let room = (READ + 1).saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if body.len() > READ {
                    self.handle_end(now, id, visitor);
                    return false;
                }
                true
            }
            Body::Listing(listing) => {
                let fed = listing.feed(bytes);
                let Err(error) = fed else {
                    return true;
                };
                if let Some(arriving) = self.streams.0.remove(&id) {
                    self.streamed(now, id, &arriving.head, Err(error), visitor);
                }
                false
            }
        }
    }

    /// A wanted body has ended.
    pub fn handle_end(&mut self, now: Instant, id: FetchId, visitor: &mut dyn Visitor) {
        let Some(Arriving { head, body }) = self.streams.0.remove(&id) else {
            return;
        };
        match body {
            Body::Robots(body) => self.handle_reply(now, id, &head.reply(&body), visitor),
            Body::Listing(listing) => self.streamed(now, id, &head, listing.finish(), visitor),
        }
    }

    /// A listing was read as a stream.
    fn streamed(
        &mut self,
        now: Instant,
        id: FetchId,
        head: &KeptHead,
        listing: Result<Listing, StreamError>,
        visitor: &mut dyn Visitor,
    ) {
        let Some((task, _)) = self.in_flight.remove(&id) else {
            return;
        };
        self.politeness.handle_over();
        self.politeness.handle_answer(now);
        self.journal.begin(task.number);
        let reply = head.reply(b"");
        let read = match listing {
            Ok(listing) => self.check_listing(&task, &reply, listing),
            Err(StreamError::Page(PageError::NotAListing)) => Err(Self::no_listing(&reply)),
            Err(error) => Err(Cause::Stream(error)),
        };
        self.handle_listing(now, task, read, &reply, visitor);
        self.journal.end();
        self.resume(now, visitor);
    }

    /// Whether a listing that could not be read as one reply is requested as a stream. Such a listing is too large, or it
    /// needs more time.
    pub(super) fn may_stream(&self, task: &Task, fetch: FetchKind, failure: &Failure) -> bool {
        let Cause::Transfer(error) = &failure.cause else {
            return false;
        };
        let Some(error) = error.downcast_ref::<Error>() else {
            return false;
        };
        let is_too_large = match error.kind() {
            ErrorKind::Limit(LimitExceeded::BodyBytes(n) | LimitExceeded::DecodedBytes(n)) => {
                self.policy.limits.page.streamed_bytes > *n
            }
            ErrorKind::Limit(LimitExceeded::HeldBytes(_)) => true,
            ErrorKind::Timeout(_) => error.phase() == Phase::Body,
            _ => false,
        };
        is_too_large && self.is_streamable(task, fetch)
    }

    /// Whether the task can be requested as a stream, and was not yet.
    pub(super) fn is_streamable(&self, task: &Task, fetch: FetchKind) -> bool {
        fetch == FetchKind::List && !task.is_streamed && task.kind != TaskKind::Trial
    }

    /// Requests a listing once more, as a stream.
    pub(super) fn stream(&mut self, mut task: Task) {
        task.is_streamed = true;
        task.attempts.discount();
        self.queue(task);
    }
}
