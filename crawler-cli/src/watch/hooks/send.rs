//! How a message is sent: one POST with the project's own engine, without redirects, and within one time limit. Nothing that
//! a receiver answers can take more than a few kilobytes or more than this time.

use std::time::Duration;

use courser::{Call, CallId, Client, Error, Limits, Read, Request, Response, Timeouts};
use jiff::Timestamp;
use url::Url;

use super::sign::Secret;
use crate::crawl::politeness::retry_after;
use crate::crawl::transfer::Transfer;
use crate::jobs::Cancel;
use crate::report::describe;

/// Where messages go, and how.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) secret: Option<Secret>,
    pub(super) timeout: Duration,
    pub(super) allow_private: bool,
    pub(super) user_agent: String,
}

/// What became of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Sent {
    /// The receiver has it.
    Delivered(u16),
    /// The receiver wants no messages any more.
    Gone,
    /// The receiver does not have it.
    Failed(Failed),
    /// The service ends; the receiver may have it.
    Stopped,
}

/// Why a message was not delivered.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Failed {
    /// In a few words, without anything that the receiver wrote.
    pub(super) why: String,
    /// The begin of what the receiver wrote.
    pub(super) answer: String,
    /// The receiver refuses this message; it may take others.
    pub(super) is_refused: bool,
    /// How long the receiver wants to be left alone.
    pub(super) asked: Option<Duration>,
}

/// A connection to a receiver.
pub(super) struct Connection {
    client: Client,
    target: Target,
}

impl Connection {
    /// Nothing is dialled yet.
    pub(super) fn new(target: Target) -> Result<Self, Error> {
        let transfer = Transfer {
            timeout: target.timeout,
            max_body: MOST_READ,
            user_agent: target.user_agent.clone(),
            allow_private: target.allow_private,
            ..Transfer::default()
        };
        // None is given: a private address needs to be allowed, whoever wrote it down.
        let client = transfer.client(&[])?;
        Ok(Self { client, target })
    }

    /// Sends a message. `id` is the same each time that the message is sent.
    pub(super) fn send(&mut self, id: &str, body: &[u8], now: Timestamp, cancel: &Cancel) -> Sent {
        let call = self.client.submit(self.call(id, body, now));
        match self.answer(call, cancel) {
            Ok(sent) => sent,
            Err(why) => Sent::Failed(Failed {
                why,
                ..Failed::default()
            }),
        }
    }

    fn call(&self, id: &str, body: &[u8], now: Timestamp) -> Call {
        let mut request = Request::post(self.target.url.as_str(), body.to_vec());
        let seconds = now.as_second();
        request
            .header("Content-Type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds.to_string());
        if let Some(secret) = &self.target.secret {
            request.header("webhook-signature", secret.sign(id, seconds, body));
        }
        let limits = Limits {
            body_bytes: Some(MOST_READ),
            decoded_bytes: Some(MOST_READ),
            ..Limits::default()
        };
        let limit = Some(self.target.timeout);
        let timeouts = Timeouts {
            total: limit,
            total_streamed: limit,
            ..Timeouts::none()
        };
        Call::new(request, Response::new())
            .streaming(true)
            .limits(limits)
            .timeouts(timeouts)
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Why there is none.
    fn answer(&mut self, call: CallId, cancel: &Cancel) -> Result<Sent, String> {
        let mut is_cancelled = false;
        loop {
            let done = self.client.wait(Some(MOMENT));
            if let Some(done) = done.map_err(|error| error.to_string())? {
                if is_cancelled {
                    return Ok(Sent::Stopped);
                }
                done.outcome.map_err(|error| describe(&error))?;
                let answer = match done.body {
                    Some(body) => self.begin_of(body, cancel),
                    None => String::new(),
                };
                return Ok(judged(&done.response, answer));
            }
            if !is_cancelled && cancel.is_set() {
                is_cancelled = true;
                self.client.cancel(call);
            }
        }
    }

    /// The begin of a body. The rest is not read.
    fn begin_of(&mut self, body: CallId, cancel: &Cancel) -> String {
        let mut begin = vec![0; KEPT];
        let mut length = 0;
        while length < KEPT && !cancel.is_set() {
            match self.client.read_body(body, &mut begin[length..]) {
                Ok(Read::Data(more)) => length += more,
                Ok(Read::Pending) if self.client.wait(Some(MOMENT)).is_ok() => {
                    // Only notes which bodies can be read: this is the only one.
                    let _ = self.client.readable_body();
                }
                // The status was read: what is wrong with the body changes nothing.
                Ok(Read::Pending | Read::End { .. }) | Err(_) => break,
            }
        }
        self.client.cancel(body);
        String::from_utf8_lossy(&begin[..length]).into_owned()
    }
}

fn judged(response: &Response, answer: String) -> Sent {
    let status = response.status();
    let why = match status {
        200..=299 => return Sent::Delivered(status),
        410 => return Sent::Gone,
        300..=399 => format!("HTTP {status}: redirects are not followed"),
        _ => format!("HTTP {status}"),
    };
    let asked = response.header("Retry-After");
    Sent::Failed(Failed {
        why,
        answer,
        is_refused: REFUSALS.contains(&status),
        asked: asked.and_then(|asked| retry_after(asked, response.header("Date"))),
    })
}

/// Statuses that are about the message, and not about the receiver.
const REFUSALS: &[u16] = &[400, 409, 413, 415, 422, 431];
/// How long a stop may go unnoticed.
const MOMENT: Duration = Duration::from_millis(100);
/// How much of a body is kept, in bytes.
const KEPT: usize = 1024;
/// How much of a body the engine takes, in bytes.
const MOST_READ: u64 = 64 << 10;
