//! What a verdict says about the way to its host.

use crate::{Cause, Verdict};

/// Whether a host could be reached.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reach {
    /// The host answered, with whatever status.
    Answered,
    /// There was no answer, in a way that a failure of the own network can cause.
    Failed,
}

impl Reach {
    /// What a verdict says; `None` if it says nothing, as when the host was not asked.
    ///
    /// Certificates that are wrong count as failures: a portal that wants a login shows them for every host, and a clock
    /// that is wrong makes all of them expire.
    pub fn of(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Ok => Some(Self::Answered),
            Verdict::Failed(cause) => Self::of_cause(cause),
            Verdict::Void(_) => None,
        }
    }

    fn of_cause(cause: Cause) -> Option<Self> {
        match cause {
            Cause::Refused
            | Cause::Unreachable
            | Cause::Reset
            | Cause::ConnectTimeout
            | Cause::FirstByteTimeout
            | Cause::Timeout
            | Cause::TlsExpired
            | Cause::TlsNotYetValid
            | Cause::TlsName
            | Cause::TlsUntrusted
            | Cause::Tls
            | Cause::DnsServfail => Some(Self::Failed),
            Cause::Status404
            | Cause::Status410
            | Cause::Status5xx(_)
            | Cause::Status4xx(_)
            | Cause::Truncated
            | Cause::Protocol
            | Cause::RedirectLoop
            | Cause::TooManyRedirects
            | Cause::Auth
            | Cause::Blocked
            | Cause::Throttled
            | Cause::FragmentMissing => Some(Self::Answered),
            Cause::DnsNxdomain
            | Cause::Robots
            | Cause::PrivateAddress
            | Cause::FileMissing
            | Cause::InvalidUrl => None,
        }
    }
}
