//! What the work at a host reads from the head of a response.

use std::time::Duration;

use courser::Response;

use super::policy::Policy;
use crate::check::verdict::{Answer, blocked_by};
use crate::crawl::politeness;
use crate::crawl::retry::Failed;

/// The head of a response.
#[derive(Debug)]
pub(super) struct Reply<'r> {
    pub(super) answer: Answer,
    pub(super) location: Option<&'r [u8]>,
    /// The wait in `Retry-After`, in an answer that asks for fewer requests.
    pub(super) retry_after: Option<Duration>,
    retry_after_value: Option<&'r [u8]>,
    date: Option<&'r [u8]>,
    /// The header field of a bot protection.
    pub(super) blocked_by: Option<String>,
    response: &'r Response,
}

impl<'r> Reply<'r> {
    pub(super) fn of(response: &'r Response, policy: &Policy) -> Self {
        let status = response.status();
        let blocked_by = blocked_by(response);
        let mut reply = Self {
            answer: Answer {
                is_blocked: blocked_by.is_some(),
                is_accepted: policy.accept.contains(status),
                ..Answer::of_status(status)
            },
            location: None,
            retry_after: None,
            retry_after_value: None,
            date: None,
            blocked_by,
            response,
        };
        match status {
            300..=399 => {
                // Several that differ lead nowhere, and an empty one is none.
                let mut values = response.header_all("location");
                let first = values.next().filter(|value| !value.trim_ascii().is_empty());
                reply.location = first.filter(|first| values.all(|value| value == *first));
            }
            429 | 503 => {
                reply.retry_after_value = response.header("retry-after");
                reply.date = response.header("date");
                reply.answer.retry_after = reply.retry_after_value.is_some();
                let wait = |value| politeness::retry_after(value, reply.date);
                reply.retry_after = reply.retry_after_value.and_then(wait);
            }
            _ => {}
        }
        reply
    }

    /// The values of `Set-Cookie`.
    pub(super) fn cookies(&self) -> impl Iterator<Item = &'r [u8]> {
        self.response.header_all("set-cookie")
    }

    pub(super) fn content_type(&self) -> Option<String> {
        let value = self.response.header("content-type")?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// The answer as a refusal.
    pub(super) fn failed(&self) -> Failed {
        Failed::of_status(self.answer.status, self.retry_after_value, self.date)
    }
}
