//! Who is told of each request, for statistics.

use std::fmt;

use courser::Report;

use crate::check::task::UrlId;

/// Is told of each request to a host. Called for each request: it must be quick.
pub trait Observe: fmt::Debug {
    /// A request is sent: a part of this task, or one that the host itself needs.
    fn sent(&self, task: Option<UrlId>, method: &'static str, purpose: Purpose);

    /// A request has ended, or the head of its answer is there.
    fn ended(&self, report: &Report);
}

/// Why a request is sent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purpose {
    /// A URL is asked for the first time, or a redirect of it is followed.
    First,
    /// A further request of the same attempt, which confirms what the one before said.
    Confirm,
    /// A further attempt.
    Retry,
    /// `robots.txt`
    Robots,
}
