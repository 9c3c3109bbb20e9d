//! The work that a program does at each host of its crawl: the trait that the
//! [`Scheduler`](super::scheduler::Scheduler) drives.
//!
//! Each request from [`poll_request`](HostWork::poll_request) is answered by one call of `handle_reply` or
//! `handle_failure`. A request with a streamed body is answered by one `handle_head`; if its body is wanted,
//! `handle_data` for each part and one `handle_end` follow, or `handle_failure` at any point.

use std::sync::Arc;
use std::time::Instant;

use courser::{AddressPolicy, Error, Report, Request, Response, Timeouts};

use super::calls::Drive;
use super::politeness::Politeness;
use super::stats::Stats;

/// The work at one host.
pub trait HostWork {
    /// What the work of all hosts shares.
    type Shared<'s>;

    /// The statistics of the crawl.
    fn stats<'a>(shared: &'a mut Self::Shared<'_>) -> &'a mut Stats;

    /// Writes the next request into the empty `request`; `None` if no request may be sent at `now`.
    fn poll_request(
        &mut self,
        now: Instant,
        request: &mut Request,
        shared: &mut Self::Shared<'_>,
    ) -> Option<Submission>;

    /// When to call [`poll_request`](Self::poll_request) again after it returned `None`, if no answer comes before.
    /// `None`: only an answer can change anything.
    fn poll_timeout(&mut self, now: Instant, shared: &Self::Shared<'_>) -> Option<Instant>;

    /// How the exchange went whose reply, failure or head is handled next.
    fn handle_report(&mut self, _id: RequestId, _report: &Report, _shared: &mut Self::Shared<'_>) {}

    /// A complete response arrived.
    fn handle_reply(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Self::Shared<'_>,
        calls: &mut dyn Drive,
    );

    /// A request failed, or a body that is wanted. `part`: what arrived of a response without a streamed body.
    fn handle_failure(
        &mut self,
        now: Instant,
        id: RequestId,
        error: Error,
        part: Option<&Response>,
        shared: &mut Self::Shared<'_>,
        calls: &mut dyn Drive,
    );

    /// The head of a response with a streamed body arrived. Returns whether the body is wanted.
    fn handle_head(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Self::Shared<'_>,
    ) -> Body;

    /// A part of a wanted body arrived. Returns whether the rest is wanted.
    fn handle_data(
        &mut self,
        now: Instant,
        id: RequestId,
        bytes: &[u8],
        shared: &mut Self::Shared<'_>,
    ) -> Body;

    /// Asked now and then about each body that is wanted, because a peer can send what is no body for a long time.
    /// Returns whether the rest is still wanted. If not, the request has failed, and the connection is closed.
    fn handle_quiet(
        &mut self,
        _now: Instant,
        _id: RequestId,
        _shared: &mut Self::Shared<'_>,
    ) -> Body {
        Body::Wanted
    }

    /// A wanted body has ended.
    fn handle_end(&mut self, now: Instant, id: RequestId, shared: &mut Self::Shared<'_>);

    /// The politeness towards the host.
    fn politeness(&mut self) -> &mut Politeness;

    /// Whether there is nothing left to request or to wait for.
    fn is_done(&self) -> bool;
}

/// How a request is sent.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Identifies the request at its host.
    pub id: RequestId,
    /// Replaces the client's timeouts.
    pub timeouts: Option<Timeouts>,
    /// Replaces the client's rules for the addresses of servers.
    pub addresses: Option<Arc<AddressPolicy>>,
    /// Whether the body is passed on while it arrives.
    pub streaming: bool,
}

/// Identifies a request to one host. Less than 2^40.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(pub u64);

/// What to do with the body of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Body {
    /// Its parts are passed on, then its end or its failure.
    Wanted,
    /// The body is not passed on.
    Unwanted,
}
