//! What a program does at each host of its crawl: the trait that the [`Scheduler`](super::scheduler::Scheduler) drives.
//!
//! Each request that [`poll_request`](HostWork::poll_request) hands out is answered by one `handle_reply` or
//! `handle_failure`; a request whose body is streamed by one `handle_head`, and if its body is wanted by one `handle_end`
//! after all `handle_data`, or by `handle_failure` at any time.

use std::time::Instant;

use courser::{Error, Request, Response, Timeouts};

use super::calls::Calls;
use super::politeness::Politeness;
use super::stats::Stats;

/// The work at one host.
pub trait HostWork {
    /// What the work at all hosts has in common.
    type Shared<'s>;

    /// Where it is counted what requests cost.
    fn stats<'a>(shared: &'a mut Self::Shared<'_>) -> &'a mut Stats;

    /// Writes the next request into `request`, which is empty, if one may be sent at `now`.
    fn poll_request(
        &mut self,
        now: Instant,
        request: &mut Request,
        shared: &mut Self::Shared<'_>,
    ) -> Option<Submission>;

    /// When to call [`poll_request`](Self::poll_request), which has just had nothing, again although nothing came.
    /// `None`: only an answer can change anything.
    fn poll_timeout(&mut self, now: Instant, shared: &Self::Shared<'_>) -> Option<Instant>;

    /// A response came whole.
    fn handle_reply(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Self::Shared<'_>,
        calls: &mut Calls,
    );

    /// A request, or a body that is wanted, failed.
    fn handle_failure(
        &mut self,
        now: Instant,
        id: RequestId,
        error: Error,
        shared: &mut Self::Shared<'_>,
        calls: &mut Calls,
    );

    /// The head of a response came whose body is streamed.
    fn handle_head(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Self::Shared<'_>,
    ) -> Body;

    /// More of a body that is wanted. If it is not any more, the rest of it is not either.
    fn handle_data(&mut self, id: RequestId, bytes: &[u8], shared: &mut Self::Shared<'_>) -> Body;

    /// A body that is wanted has come to its end.
    fn handle_end(&mut self, now: Instant, id: RequestId, shared: &mut Self::Shared<'_>);

    /// How the host is asked.
    fn politeness(&mut self) -> &mut Politeness;

    /// Whether nothing is left to ask or to wait for.
    fn is_done(&self) -> bool;
}

/// How a request is sent.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Names the request.
    pub id: RequestId,
    /// In place of the client's.
    pub timeouts: Option<Timeouts>,
    /// Whether the body is handed over as it comes.
    pub streaming: bool,
}

/// Names a request to one host. Less than 2^40.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(pub u64);

/// What is done with the body of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Body {
    /// Its bytes are handed in, and then its end or its failure.
    Wanted,
    /// Nothing more is to be said of it.
    Unwanted,
}
