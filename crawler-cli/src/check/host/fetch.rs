//! The requests of a host's work, and those that are in flight.

use super::body::BodyStart;
use super::reply::Reply;
use super::robots::RobotsFetch;
use super::url_check::UrlCheck;
use crate::crawl::retry_queue::Attempts;
use crate::crawl::robots::Access;
use crate::crawl::work::RequestId;

/// Something to request.
#[derive(Debug)]
pub(super) enum Fetch {
    Url(Box<UrlCheck>),
    Robots(Box<RobotsFetch>),
}

impl Fetch {
    pub(super) fn attempts(&mut self) -> &mut Attempts {
        match self {
            Self::Url(check) => &mut check.attempts,
            Self::Robots(fetch) => &mut fetch.attempts,
        }
    }

    /// Whether the body of the answer with this head is wanted. Then it is expected.
    pub(super) fn wants(&mut self, reply: &Reply<'_>) -> bool {
        match self {
            Self::Url(check) => check.expect_body(reply),
            Self::Robots(robots) => {
                robots.content_type = reply.content_type();
                robots.access(reply.answer.status) == Access::Parse
            }
        }
    }

    /// The body that is being read.
    pub(super) fn body(&mut self) -> Option<&mut BodyStart> {
        match self {
            Self::Url(check) => check.body.as_mut().map(|body| &mut body.start),
            Self::Robots(robots) => Some(&mut robots.body),
        }
    }

    /// The attempts, if they are those of a URL to check.
    pub(super) fn url_attempts(&self) -> Option<&Attempts> {
        match self {
            Self::Url(check) => Some(&check.attempts),
            Self::Robots(_) => None,
        }
    }
}

/// The requests in flight. Their places are used again.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    places: Vec<Option<Fetch>>,
    free: Vec<usize>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, fetch: Fetch) -> RequestId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(fetch);
        RequestId(place as u64)
    }

    pub(super) fn get(&mut self, id: RequestId) -> Option<&mut Fetch> {
        self.places.get_mut(id.0 as usize)?.as_mut()
    }

    /// The request has ended.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<Fetch> {
        let place = id.0 as usize;
        let fetch = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        Some(fetch)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Fetch> {
        self.places.iter().flatten()
    }
}
