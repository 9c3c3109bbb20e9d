//! One attempt at a URL: HEAD first, and every negative answer confirmed by GET.
//!
//! | answer to HEAD | next |
//! |---|---|
//! | 2xx, 304, an accepted status | good |
//! | 401, 407 | `auth` |
//! | 429, and 503 with `Retry-After` | the host is parked; the same request again, which is no further attempt |
//! | 405, 501, every other status of 400 and above, reset, end of the connection, garbage | GET of the first byte |
//! | timeout | the attempt has failed; the next attempt uses GET |
//!
//! | answer to the GET of the first byte | next |
//! |---|---|
//! | 2xx, 304, 416 | good |
//! | 400, 403, 406, 5xx: servers that refuse ranges | GET of the whole |
//!
//! What is bad at the end of redirects of HEAD is asked once more by GET, from the URL itself.
//!
//! All other statuses of a GET are final, except 5xx: those fail the attempt, as do failures of the network.

use super::cause::{Cause, Verdict};
use super::head_facts::HeadFacts;

/// How a URL is asked.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ask {
    /// HEAD.
    Head,
    /// GET with `Range: bytes=0-0`.
    FirstByte,
    /// GET.
    Get,
}

impl Ask {
    /// `HEAD` or `GET`.
    pub fn method(self) -> &'static str {
        match self {
            Self::Head => "HEAD",
            Self::FirstByte | Self::Get => "GET",
        }
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Evidence {
    /// An answer.
    Answer(ResponseFacts),
    /// No answer, for this cause of class [`Network`](super::Class::Network), or
    /// [`DnsNxdomain`](Cause::DnsNxdomain).
    Failure(Cause),
}

/// What matters of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseFacts {
    /// The status.
    pub status: u16,
    /// Whether there is a `Retry-After`.
    pub retry_after: bool,
    /// Whether a bot protection answered instead of the server.
    pub is_blocked: bool,
    /// Whether the user accepts the status.
    pub is_accepted: bool,
}

impl ResponseFacts {
    /// An answer with this status and nothing remarkable.
    pub fn of_status(status: u16) -> Self {
        Self {
            status,
            retry_after: false,
            is_blocked: false,
            is_accepted: false,
        }
    }

    /// Whether the answer asks for fewer requests: 429, and 503 with `Retry-After`.
    pub fn is_throttling(self) -> bool {
        self.status == 429 || self.status == 503 && self.retry_after
    }
}

/// What follows from the answer to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// The verdict.
    Judged(Verdict),
    /// Another request of this attempt, at once.
    Confirm,
    /// The answer is a redirect, to be followed.
    Redirected,
    /// The host asks for fewer requests. The same request after a pause is part of this attempt.
    Parked,
    /// The attempt has failed. Another attempt may succeed.
    Failed(Cause),
}

/// What the requests for one URL say about HEAD at its host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeadVerdict {
    /// HEAD was answered, with no need for a GET.
    Sufficient,
    /// 405 or 501.
    Refused,
    /// HEAD was negative, and so was GET.
    Confirmed,
    /// HEAD was negative, and GET was not.
    Lied,
    /// HEAD was not answered, and neither was GET.
    Unclear,
}

/// One attempt at a URL after the other.
#[derive(Clone, Debug)]
pub struct Attempt {
    ask: Ask,
    /// The requests of this attempt, without those that were parked.
    requests: u8,
    head: Head,
    head_verdict: Option<HeadVerdict>,
    /// Whether a GET of the first byte was refused in this attempt.
    range_refused: bool,
}

/// What HEAD has said about the URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Head {
    /// Nothing, or nothing that matters any more.
    Silent,
    /// Nothing in time, or something negative that GET has to confirm.
    Negative,
}

/// The most requests of one attempt, apart from redirects.
pub const MOST_REQUESTS: u8 = 3;

impl Attempt {
    /// The first attempt, which begins with this request.
    pub fn new(first: Ask) -> Self {
        Self {
            ask: first,
            requests: 0,
            head: Head::Silent,
            head_verdict: None,
            range_refused: false,
        }
    }

    /// Begins a further attempt, after [`Step::Failed`].
    pub fn begin_again(&mut self) {
        self.requests = 0;
        self.range_refused = false;
    }

    /// Begins the next request. Returns how to ask, by what is known about the host now.
    pub fn begin_request(&mut self, facts: &HeadFacts) -> Ask {
        self.ask = facts.adapt(self.ask);
        self.requests += 1;
        self.ask
    }

    /// The request was not sent after all.
    pub fn take_back(&mut self) {
        self.requests = self.requests.saturating_sub(1);
    }

    /// How the URL is asked.
    pub fn ask(&self) -> Ask {
        self.ask
    }

    /// The requests of this attempt, without those that were parked.
    pub fn requests(&self) -> u8 {
        self.requests
    }

    /// Whether a GET of the first byte was refused in this attempt, and not the GET of the whole.
    pub fn is_range_refused(&self) -> bool {
        self.range_refused
    }

    /// What the requests say about HEAD, once that is known.
    pub fn take_head_verdict(&mut self) -> Option<HeadVerdict> {
        self.head_verdict.take()
    }

    /// The answer or failure of the request.
    pub fn handle(&mut self, evidence: Evidence) -> Step {
        let step = match (self.ask, evidence) {
            (_, Evidence::Answer(answer)) if answer.is_throttling() && !answer.is_accepted => {
                self.requests = self.requests.saturating_sub(1);
                return Step::Parked;
            }
            (Ask::Head, evidence) => return self.handle_head(evidence),
            (Ask::FirstByte, Evidence::Answer(answer)) if refuses_range(answer) => {
                self.ask = Ask::Get;
                self.range_refused = true;
                return Step::Confirm;
            }
            (Ask::FirstByte, Evidence::Answer(ResponseFacts { status: 416, .. })) => {
                Step::Judged(Verdict::Ok)
            }
            (_, Evidence::Answer(answer)) => judge(answer),
            (_, Evidence::Failure(cause)) => failed(cause),
        };
        self.note_get(step);
        step
    }

    fn handle_head(&mut self, evidence: Evidence) -> Step {
        let step = match evidence {
            Evidence::Answer(answer) => match (answer.status, judge(answer)) {
                (_, step @ (Step::Judged(Verdict::Ok) | Step::Redirected)) => step,
                (401 | 407, step) => step,
                (405 | 501, _) => {
                    self.head_verdict = Some(HeadVerdict::Refused);
                    self.ask = Ask::FirstByte;
                    return Step::Confirm;
                }
                (300.., _) => return self.confirm(),
                (_, step) => step,
            },
            Evidence::Failure(Cause::Reset | Cause::Truncated | Cause::Protocol) => {
                return self.confirm();
            }
            Evidence::Failure(cause) => {
                if matches!(cause, Cause::FirstByteTimeout | Cause::Timeout) {
                    self.head = Head::Negative;
                    self.ask = Ask::FirstByte;
                }
                return failed(cause);
            }
        };
        self.head_verdict = Some(HeadVerdict::Sufficient);
        step
    }

    /// HEAD was negative.
    fn confirm(&mut self) -> Step {
        self.head = Head::Negative;
        self.ask = Ask::FirstByte;
        Step::Confirm
    }

    /// A GET is decided.
    fn note_get(&mut self, step: Step) {
        if !matches!(step, Step::Judged(Verdict::Ok) | Step::Redirected) {
            self.range_refused = false;
        }
        if self.head == Head::Silent || matches!(step, Step::Failed(_)) {
            return;
        }
        self.head = Head::Silent;
        self.head_verdict = Some(match step {
            Step::Judged(Verdict::Ok) | Step::Redirected => HeadVerdict::Lied,
            _ => HeadVerdict::Confirmed,
        });
    }
}

/// Whether the answer to a GET of the first byte may only mean that the server refuses ranges.
fn refuses_range(answer: ResponseFacts) -> bool {
    matches!(answer.status, 400 | 403 | 406 | 500..=599) && !answer.is_accepted
}

/// What an answer means, whatever the request was.
fn judge(answer: ResponseFacts) -> Step {
    if answer.is_accepted {
        return Step::Judged(Verdict::Ok);
    }
    if answer.is_blocked {
        return Step::Judged(Verdict::Failed(Cause::Blocked));
    }
    let cause = match answer.status {
        200..=299 | 304 => return Step::Judged(Verdict::Ok),
        // 300 leaves the choice to the user; 305 and 306 are withdrawn (RFC 9110 §15.4).
        301 | 302 | 303 | 307 | 308 => return Step::Redirected,
        401 | 407 => Cause::Auth,
        403 | 451 | 999 => Cause::Blocked,
        404 => Cause::Status404,
        410 => Cause::Status410,
        status @ 400..=499 => Cause::Status4xx(status),
        status @ 500..=599 => return Step::Failed(Cause::Status5xx(status)),
        // No status of RFC 9110.
        _ => Cause::Protocol,
    };
    Step::Judged(Verdict::Failed(cause))
}

/// A failure of the network can pass. The other failures cannot.
fn failed(cause: Cause) -> Step {
    match cause.class() {
        super::Class::Network => Step::Failed(cause),
        _ => Step::Judged(Verdict::Failed(cause)),
    }
}

#[cfg(test)]
mod tests;
