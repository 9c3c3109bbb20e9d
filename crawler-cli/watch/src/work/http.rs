//! How jobs and sets ask servers: one request after the other on one thread, each under the ceiling of its host, which the
//! checks of the host share.
//!
//! Redirects are requests of their own: each waits for the ceiling of the host that it leads to, and gets the headers and
//! credentials of that host alone.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use courser::proto::is_redirect;
use courser::{
    BodyRead, Call, CallId, Client, Error, Limits, Rate, Request, Response, Timeouts, Waited,
};
use url::Url;

use crate::core::Settings;
use crawl::politeness::retry_after;
use crawl::redirect::{Chain, NotFollowed};
use crawl::transfer::Transfer;
use jobs::{Cancel, CeilingLimits, Ceilings, HostCeilings};
use plain::origin::root_of;

/// How jobs and sets reach servers: limits, addresses, identities and the ceilings of the hosts.
///
/// ```
/// use std::time::Duration;
/// use watch::work::Http;
///
/// let http = Http::default().timeout(Duration::from_secs(5)).allow_private();
/// # drop(http);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Http {
    transfer: Transfer,
    parked: Parked,
    /// For hosts without a ceiling of their own.
    each_host: HostCeilings,
}

/// Hosts that asked to wait, and until when. All threads share what one of them was told.
#[derive(Clone, Debug, Default)]
struct Parked(Arc<Mutex<HashMap<Url, Instant>>>);

impl Parked {
    fn park(&self, root: &Url, wait: Duration) {
        let now = Instant::now();
        let Some(until) = now.checked_add(wait.min(LONGEST_PARKED)) else {
            return;
        };
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= MOST_PARKED {
            hosts.retain(|_, until| *until > now);
        }
        if hosts.len() < MOST_PARKED {
            let entry = hosts.entry(root.clone()).or_insert(until);
            *entry = until.max(*entry);
        }
    }

    /// How long the host wants no requests.
    fn wait_of(&self, root: &Url) -> Option<Duration> {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = hosts.get(root)?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            hosts.remove(root);
            return None;
        }
        Some(left)
    }
}

impl Http {
    /// The longest time to the first byte of an answer, and between two parts of a body. Default 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.transfer.timeout = timeout;
        self
    }

    /// Allows private addresses. Default: denied.
    pub fn allow_private(mut self) -> Self {
        self.transfer.allow_private = true;
        self
    }

    /// The `User-Agent` of requests.
    pub fn user_agent(mut self, text: &str) -> Self {
        self.transfer.user_agent = text.to_owned();
        self
    }

    /// The ceilings of the hosts that have one: shared with all that ask these hosts.
    pub fn ceilings(mut self, ceilings: Ceilings) -> Self {
        self.transfer.ceilings = ceilings;
        self
    }

    /// What each host without a ceiling allows all jobs together. Default: no limit.
    pub fn each_host(mut self, limits: CeilingLimits) -> Self {
        self.each_host = HostCeilings::new(limits);
        self
    }

    /// The same with changed settings: hosts that asked to wait are waited for, and what is under way counts for the
    /// ceilings of its hosts.
    pub(super) fn reloaded(&self, settings: &Settings) -> Self {
        let new = Self::from(settings);
        self.each_host.set_limits(new.each_host.limits());
        Self {
            transfer: new.transfer,
            parked: self.parked.clone(),
            each_host: self.each_host.clone(),
        }
    }

    pub fn transfer(&self) -> &Transfer {
        &self.transfer
    }

    /// Whether hosts may have private addresses.
    pub(crate) fn allows_private(&self) -> bool {
        self.transfer.allow_private
    }

    /// The rate of hosts without a ceiling.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.each_host.limits().rate
    }

    /// A client for one thread.
    pub fn agent(&self) -> Result<Agent, HttpError> {
        Ok(Agent {
            client: self.transfer.client(&[]).map_err(HttpError::Transfer)?,
            transfer: self.transfer.clone(),
            parked: self.parked.clone(),
            each_host: self.each_host.clone(),
            buffer: vec![0; BUFFER],
        })
    }
}

/// What holds for checks holds for jobs, and both share the ceilings of [`HostRule`](crate::core::HostRule)s.
impl From<&Settings> for Http {
    fn from(settings: &Settings) -> Self {
        let limits = &settings.limits;
        let http = Self {
            transfer: Transfer {
                // What a check does not wait for, a job may.
                adaptive: None,
                breaker: None,
                ..settings.transfer()
            },
            ..Self::default()
        };
        http.each_host(CeilingLimits {
            concurrency: limits.per_host_connections.at(),
            rate: limits.per_host_rate.at(),
        })
    }
}

/// The client of one thread.
pub struct Agent {
    client: Client,
    transfer: Transfer,
    parked: Parked,
    each_host: HostCeilings,
    buffer: Vec<u8>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'w> {
    pub url: &'w Url,
    /// What an earlier answer said about its version: a server without a newer one answers 304.
    pub(crate) known: &'w Validators,
    /// Largest body in bytes, also after decoding.
    pub(crate) most_bytes: u64,
    /// How long the answer with its body may take, from the request on.
    pub longest: Option<Duration>,
}

/// What identifies the version of a representation (RFC 9110 §8.8).
#[derive(Clone, Debug, Default, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Validators {
    /// `ETag`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// `Last-Modified`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

impl Validators {
    fn of(response: &Response) -> Self {
        let text = |name| {
            let value = std::str::from_utf8(response.header(name)?.trim_ascii()).ok()?;
            // They are sent back: a value that no header can have is not kept.
            let is_sendable = value.len() <= LONGEST_VALIDATOR && !value.contains(char::is_control);
            is_sendable.then(|| value.to_owned())
        };
        Self {
            etag: text("ETag"),
            modified: text("Last-Modified"),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.etag.is_none() && self.modified.is_none()
    }

    fn write(&self, request: &mut Request) {
        if let Some(etag) = &self.etag {
            request.add_header("If-None-Match", etag);
        }
        // A server that knows the tag ignores the date (RFC 9110 §13.1.3).
        if let Some(modified) = &self.modified {
            request.add_header("If-Modified-Since", modified);
        }
    }
}

/// An answer. The body of a 200 was passed on.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub(crate) validators: Validators,
    pub retry_after: Option<Duration>,
    pub content_type: Option<String>,
    /// Where the redirects ended.
    pub url: Url,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum HttpError {
    Cancelled,
    /// The host asked to wait this long, and nothing was sent.
    Parked(Duration),
    Transfer(Error),
    /// The body could not be stored.
    Sink(io::Error),
    /// The system failed.
    Os(io::Error),
    NotFollowed(NotFollowed),
}

impl Agent {
    /// Asks for a URL, follows redirects, and passes the body of a 200 to `sink`.
    pub fn get(
        &mut self,
        wanted: Wanted<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Reply, HttpError> {
        let mut chain = Chain::new(wanted.url);
        loop {
            match self.exchange(chain.url(), wanted, cancel, sink)? {
                Step::Done(reply) => return Ok(reply),
                Step::Redirect(status, location) => chain
                    .follow(status, location.as_deref(), MOST_REDIRECTS, false)
                    .map_err(HttpError::NotFollowed)?,
            }
        }
    }

    fn exchange(
        &mut self,
        url: &Url,
        wanted: Wanted<'_>,
        cancel: &Cancel,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Step, HttpError> {
        let root = root_of(url);
        let ceiling = match self.transfer.ceilings.of(&root) {
            Some(ceiling) => ceiling,
            None => self.each_host.of(&root),
        };
        let permit = ceiling.acquire(cancel);
        let mut permit = permit.map_err(|_| HttpError::Cancelled)?;
        if let Some(wait) = self.parked.wait_of(&root) {
            return Err(HttpError::Parked(wait));
        }
        let identity = self.transfer.identities.of(&root);
        let mut request = Request::get(url.as_str());
        wanted.known.write(&mut request);
        identity.write(&mut request);
        let limits = Limits {
            body_bytes: Some(wanted.most_bytes),
            decoded_bytes: Some(wanted.most_bytes),
            ..Limits::default()
        };
        let timeouts = Timeouts {
            first_byte: Some(self.transfer.timeout),
            between_bytes: Some(self.transfer.timeout),
            total_streamed: wanted.longest,
            ..Timeouts::none()
        };
        let call = Call::new(request, Response::new())
            .streaming(true)
            .limits(limits)
            .timeouts(timeouts);
        let call = self.client.submit(identity.sign(call));
        let (body, response) = self.head(call, cancel)?;
        permit.arrived(Instant::now());
        let step = step(url, &response);
        if let Step::Done(reply) = &step
            && matches!(reply.status, 429 | 503)
            && let Some(wait) = reply.retry_after
        {
            self.parked.park(&root, wait);
        }
        if let Some(body) = body {
            let is_wanted = matches!(&step, Step::Done(reply) if reply.status == 200);
            let outcome = match is_wanted {
                true => self.body(body, cancel, sink),
                false => Ok(()),
            };
            self.client.cancel(body);
            outcome?;
        }
        Ok(step)
    }

    /// Waits for the head of the response.
    fn head(
        &mut self,
        call: CallId,
        cancel: &Cancel,
    ) -> Result<(Option<CallId>, Response), HttpError> {
        let mut is_cancelled = false;
        loop {
            if let Waited::Done(done) = self.client.wait(Some(MOMENT)).map_err(HttpError::Os)? {
                let body = done.streamed();
                if is_cancelled {
                    if let Some(body) = body {
                        self.client.cancel(body);
                    }
                    return Err(HttpError::Cancelled);
                }
                done.outcome.map_err(HttpError::Transfer)?;
                return Ok((body, done.response));
            }
            if !is_cancelled && cancel.is_set() {
                is_cancelled = true;
                self.client.cancel(call);
            }
        }
    }

    fn body(
        &mut self,
        body: CallId,
        cancel: &Cancel,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), HttpError> {
        loop {
            let read = self.client.read_body(body, &mut self.buffer);
            match read.map_err(HttpError::Transfer)? {
                BodyRead::Data(length) => sink(&self.buffer[..length]).map_err(HttpError::Sink)?,
                BodyRead::End { .. } => return Ok(()),
                BodyRead::Pending => {
                    let _ = self.client.wait(Some(MOMENT)).map_err(HttpError::Os)?;
                    // Only notes which bodies can be read: this is the only one.
                    let _ = self.client.readable_body();
                }
            }
            if cancel.is_set() {
                return Err(HttpError::Cancelled);
            }
        }
    }
}

enum Step {
    Done(Reply),
    /// The status, and the value of `Location`.
    Redirect(u16, Option<Vec<u8>>),
}

fn step(url: &Url, response: &Response) -> Step {
    let status = response.status();
    if is_redirect(status) {
        let location = response.location().ok().flatten();
        return Step::Redirect(status, location.map(<[u8]>::to_vec));
    }
    let wait = response.header("Retry-After");
    Step::Done(Reply {
        status,
        validators: Validators::of(response),
        retry_after: wait.and_then(|wait| retry_after(wait, response.header("Date"))),
        content_type: response
            .header("Content-Type")
            .map(|value| String::from_utf8_lossy(value).into_owned()),
        url: url.clone(),
    })
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("stopped"),
            Self::Parked(wait) => write!(f, "the host wants no requests for {wait:.1?}"),
            Self::Transfer(error) => error.fmt(f),
            Self::Sink(error) => write!(f, "the body cannot be stored: {error}"),
            Self::Os(error) => write!(f, "the client cannot wait: {error}"),
            Self::NotFollowed(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for HttpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Transfer(error) => Some(error),
            Self::Sink(error) | Self::Os(error) => Some(error),
            _ => None,
        }
    }
}

/// Redirects that are followed, as everywhere in this crate.
const MOST_REDIRECTS: u32 = 10;
/// How long a stop may go unnoticed.
const MOMENT: Duration = Duration::from_millis(100);
const BUFFER: usize = 64 << 10;
/// The longest `Retry-After` that holds a host.
const LONGEST_PARKED: Duration = Duration::from_secs(86_400);
/// Most hosts that are held at a time.
const MOST_PARKED: usize = 10_000;
/// Longest `ETag` or `Last-Modified` that is kept, in bytes.
const LONGEST_VALIDATOR: usize = 1024;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::core::Limit;

    #[test]
    fn a_changed_configuration_forgets_no_host() {
        let root = Url::parse("http://h.test/").expect("a URL");
        let mut settings = Settings::default();
        let http = Http::from(&settings);
        http.parked.park(&root, Duration::from_secs(600));
        let permit = http.each_host.of(&root).try_acquire(Instant::now());
        let rate = Rate::per_second(NonZeroU64::new(7).expect("not zero"));
        settings.limits.per_host_rate = Limit::At(rate);
        let reloaded = http.reloaded(&settings);
        assert!(reloaded.parked.wait_of(&root).is_some());
        let ceiling = reloaded.each_host.of(&root);
        assert_eq!(ceiling.under_way(), 1);
        assert_eq!(ceiling.limits().rate, Some(rate));
        drop(permit);
        assert_eq!(ceiling.under_way(), 0);
    }
}
