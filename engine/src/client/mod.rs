//! What a user holds: clients, calls and their completions.

mod adaptive;
mod admission;
mod any_host;
mod batch;
mod call_queue;
mod config;
mod connector;
#[cfg(feature = "cookies")]
mod cookies;
mod deliveries;
mod engine;
mod hosts;
#[cfg(feature = "http")]
mod interop;
mod migration;
mod names;
mod observe;
mod one_host;
mod pipeline;
mod progress;
mod readable_bodies;
mod retries;
mod router;
mod sharing;
mod stats;
mod telemetry;
mod throttle;
#[cfg(feature = "tracing")]
mod trace;
mod upstream;

use std::time::{Duration, Instant};

pub use admission::AddressState;
pub use any_host::{Client, ConnectTo};
pub(crate) use batch::Lineup;
pub use batch::{BatchConfig, BatchOrder};
pub use config::{Config, HostConfig};
#[cfg(feature = "cookies")]
pub use cookies::{Cookie, CookieJar, CookieLimits};
pub use engine::{Batch, Body, Engine};
#[cfg(feature = "http")]
pub use interop::ConversionError;
pub(crate) use migration::MigratingCall;
pub use observe::{Observer, ObserverEvent, RetryCause};
pub use one_host::HostClient;
pub use pipeline::{PipelineClient, PipelineConfig, PipelineCounters};
pub(crate) use router::Router;
pub(crate) use stats::Recorder;
pub use stats::{Failures, Histogram, Stats};
pub use upstream::Upstream;

use crate::error::Error;
use crate::net::Address;
use crate::net::tls::{TlsIdentity, TlsInfo};
use crate::policy::{Proxies, Redirects, Retry, Timeouts};
use crate::proto::{Limits, Request, Response};
use crate::reactor::{CallKey, Overrides, Timestamps};
use crate::time::Time;

pub use crate::reactor::Hop;

/// A request on its way to a client: it owns its buffers while it runs, and gives them back in its [`Completion`].
///
/// ```
/// use std::time::Duration;
/// use courser::{Call, Request, Response};
///
/// let call = Call::new(Request::get("/"), Response::new()).tag(7).timeout(Duration::from_secs(2));
/// ```
#[derive(Debug)]
pub struct Call {
    pub(crate) request: Request,
    pub(crate) response: Response,
    pub(crate) tag: u64,
    time: CallTime,
    pub(crate) streaming: bool,
    overrides: Option<Box<Overrides>>,
}

/// How the deadline of a call is given.
#[derive(Clone, Copy, Debug)]
enum CallTime {
    /// [`Timeouts::total`](crate::Timeouts::total) of the client.
    Configured,
    Within(Duration),
    At(Instant),
    /// It has been running before, with another client.
    Running,
}

impl Call {
    /// A call that sends `request` and fills `response`.
    pub fn new(request: Request, response: Response) -> Self {
        Self {
            request,
            response,
            tag: 0,
            time: CallTime::Configured,
            streaming: false,
            overrides: None,
        }
    }

    /// Gives the call a number of the caller's, which comes back in its completion.
    pub fn tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// Limits the whole call, from when the client takes it up, instead of the client's total timeout.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.time = CallTime::Within(timeout);
        self
    }

    /// Ends the call at that time at the latest, instead of by the client's total timeout.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.time = CallTime::At(deadline);
        self
    }

    /// Completes the call when the head of the response is there, and leaves the body to
    /// [`read_body`](HostClient::read_body).
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Limits in time for this call instead of the client's; `total` counts if no [`timeout`](Self::timeout) and no
    /// [`deadline`](Self::deadline) is given. Name, connection and handshakes keep the client's limits: they are not
    /// one call's own.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.own().timeouts = Some(timeouts);
        self
    }

    /// Limits on the response instead of the client's.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.own().limits = Some(limits);
        self
    }

    /// When this call is tried again, instead of the client's rule.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.own().retry = Some(retry);
        self
    }

    /// Whether redirects are followed, instead of the client's rule. Only for [`Client`].
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.own().redirects = Some(redirects);
        self
    }

    /// Which proxies are used, instead of the client's. Only for [`Client`]. Connections are shared with the calls that
    /// are given a clone of the same value, and with no others.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.own().proxies = Some(proxies);
        self
    }

    /// How servers are spoken to over TLS, and who we are to them, instead of the client's way; proxies are not
    /// concerned. Only for [`Client`]. Connections and sessions are shared with the calls that are given a clone of
    /// the same identity, and with no others.
    pub fn tls(mut self, identity: TlsIdentity) -> Self {
        self.own().tls = Some(identity);
        self
    }

    /// Leaves the client's cookies alone: none is sent, and none is kept.
    #[cfg(feature = "cookies")]
    pub fn without_cookies(mut self) -> Self {
        self.own().without_cookies = true;
        self
    }

    fn own(&mut self) -> &mut Overrides {
        self.overrides.get_or_insert_default()
    }
}

impl CallTime {
    #[inline]
    fn expires_at(self, now: Time, total: Option<Duration>) -> Option<Time> {
        match self {
            Self::Configured => total.and_then(|total| now.checked_add(total)),
            Self::Within(timeout) => now.checked_add(timeout),
            Self::At(deadline) => Some(Time::of(deadline)),
            Self::Running => None,
        }
    }
}

/// Names a call within its client.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallId(pub(crate) CallKey);

impl CallId {
    /// Of a call that no client has taken up.
    pub(crate) const UNBEGUN: Self = Self(CallKey::UNBEGUN);

    /// Its place among the calls that a client has at a time.
    pub(crate) fn index(self) -> usize {
        self.0.index()
    }
}

/// A call that is over, or, if it is a streaming one, whose response has begun.
///
/// Each submitted call completes exactly once.
#[derive(Debug)]
pub struct Completion {
    /// The call.
    pub id: CallId,
    /// The number that the caller gave it.
    pub tag: u64,
    /// Whether the response is complete (or, for a streaming call, its head).
    pub outcome: Result<(), Error>,
    /// The request, for using again.
    pub request: Request,
    /// The response. After a failure, what came of it.
    pub response: Response,
    /// When what happened, and where.
    pub report: Report,
    /// Of a streaming call whose head is there: the body is to be read, or the call cancelled.
    pub body: Option<CallId>,
}

impl Completion {
    /// Of a call that no client has taken up, or whose client is gone, perhaps with its buffers.
    pub(crate) fn failed(tag: u64, error: Error, buffers: Option<(Request, Response)>) -> Self {
        let (request, mut response) = buffers.unwrap_or_default();
        response.clear();
        let now = Time::of(Instant::now());
        Self {
            id: CallId::UNBEGUN,
            tag,
            outcome: Err(error),
            request,
            response,
            report: Report::new(Timestamps::new(now), 0, now),
            body: None,
        }
    }

    pub(crate) fn unbegun(call: Call, error: Error) -> Self {
        Self::failed(call.tag, error, Some((call.request, call.response)))
    }
}

/// When what happened to a call, and on which connection.
///
/// ```
/// # fn example(client: &mut courser::HostClient) -> Result<(), courser::Error> {
/// let report = client.get("/", &mut courser::Response::new())?;
/// println!("{:?} after {} attempts, reused: {}", report.timings().total, report.attempts(), report.reused());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    timestamps: Timestamps,
    attempts: u32,
    now: Time,
}

impl Report {
    pub(crate) fn new(timestamps: Timestamps, attempts: u32, now: Time) -> Self {
        Self {
            timestamps,
            attempts,
            now,
        }
    }

    /// Times since the client took up the call.
    pub fn timings(&self) -> Timings {
        Timings::of(&self.timestamps, self.now)
    }

    /// The redirects that were followed, in their order. Empty if the response came from the request's own URL.
    pub fn redirects(&self) -> &[Hop] {
        self.timestamps.hops()
    }

    /// Whether the last attempt ran on a connection that had been kept idle or had served before.
    pub fn reused(&self) -> bool {
        self.timestamps.reused
    }

    /// Whether it waited for a rate ([`HostConfig::rate`], [`Config::rate`]) or until fewer requests were in flight
    /// ([`HostConfig::concurrency`]), and not just for a connection.
    pub fn held(&self) -> bool {
        self.timestamps.held
    }

    /// How often the request was begun to be sent.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// What TLS has agreed on, if this call is the first one on its connection and that has TLS.
    pub fn tls(&self) -> Option<&TlsInfo> {
        self.timestamps.opened.as_ref()?.tls_info.as_ref()
    }

    /// The status of the proxy's answer to CONNECT, if this call is the first one on a connection that has a tunnel.
    pub fn proxy_status(&self) -> Option<u16> {
        let answer = self.timestamps.opened.as_ref()?.proxy_answer.as_ref()?;
        Some(answer.0)
    }

    /// Bytes of HTTP sent, all attempts together.
    pub fn bytes_out(&self) -> u64 {
        self.timestamps.bytes_out
    }

    /// Bytes of HTTP received, all attempts together.
    pub fn bytes_in(&self) -> u64 {
        self.timestamps.bytes_in
    }

    /// The address of the server; `None` when the call had no connection.
    pub fn remote(&self) -> Option<&Address> {
        self.timestamps
            .endpoints
            .as_deref()
            .map(|endpoints| &endpoints.remote)
    }

    /// Our address on that connection.
    pub fn local(&self) -> Option<&Address> {
        self.timestamps.endpoints.as_deref()?.local.as_ref()
    }
}

/// Times since the client took up a call; of the last attempt, if there were several.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Until it had a connection.
    pub queued: Option<Duration>,
    /// Opening that connection: looking up the name. `None`, as the next three, if it was open before, or if there was
    /// nothing of the kind to do.
    pub resolve: Option<Duration>,
    /// Then reaching one of its addresses.
    pub connect: Option<Duration>,
    /// Then the handshakes with proxies.
    pub proxy: Option<Duration>,
    /// Then the TLS handshake with the server.
    pub tls: Option<Duration>,
    /// Until the request was sent whole.
    pub sent: Option<Duration>,
    /// Until its answer was the next one on its connection; `None` if it was so at once. Before this, a
    /// [`PipelineClient`]'s call waits for the answers of others.
    pub in_front: Option<Duration>,
    /// Until the first byte of the response.
    pub first_byte: Option<Duration>,
    /// Until the end, or, for a streaming call whose head is there, until now.
    pub total: Duration,
}

impl Timings {
    fn of(timestamps: &Timestamps, now: Time) -> Self {
        let begun = timestamps.begun;
        let opened = timestamps.opened.as_deref();
        let since = |at: Option<Time>| at.map(|at| at.saturating_duration_since(begun));
        Self {
            queued: since(timestamps.assigned),
            resolve: opened.and_then(|opened| opened.resolve),
            connect: opened.map(|opened| opened.connect),
            proxy: opened.and_then(|opened| opened.proxy),
            tls: opened.and_then(|opened| opened.tls),
            sent: since(timestamps.sent),
            in_front: since(timestamps.in_front),
            first_byte: since(timestamps.first_byte),
            total: timestamps
                .ended
                .unwrap_or(now)
                .saturating_duration_since(begun),
        }
    }
}

/// What [`HostClient::read_body`] found.
#[derive(Debug)]
pub enum Read {
    /// So many bytes, at least one.
    Data(usize),
    /// Nothing just now.
    Pending,
    /// The body is complete, and this response holds its trailers.
    End {
        /// When what happened; `total` is until the end of the body.
        report: Report,
        /// The response's trailers, if there were any; nothing else of the response.
        trailers: Response,
    },
}
