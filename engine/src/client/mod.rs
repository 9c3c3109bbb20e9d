//! The types for users: clients, calls and completions.

mod adaptive;
mod admission;
mod any_host;
mod batch;
#[cfg(any(feature = "futures", feature = "http-body"))]
mod bodies;
mod body_channel;
mod call_queue;
mod calls;
mod config;
mod connector;
#[cfg(feature = "cookies")]
mod cookies;
mod deliveries;
mod dispatch;
mod engine;
mod hosts;
mod http_client;
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
mod route;
mod router;
mod send_hook;
mod sharing;
mod stats;
mod telemetry;
mod throttle;
#[cfg(feature = "tracing")]
mod trace;
mod upgrade;
mod uploads;
mod upstream;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use admission::AddressState;
pub use any_host::Client;
pub use batch::{BatchConfig, BatchOrder};
pub(crate) use batch::{Flow, Lineup, Runner};
pub use body_channel::{BodyClosed, BodySender};
pub use config::{Config, HostConfig, PipelineConfig};
#[cfg(feature = "cookies")]
pub use cookies::{Cookie, CookieJar, CookieLimits};
pub use engine::{Batch, Body, Engine};
pub(crate) use engine::{BodyEnd, Driven, memory_of};
pub use http_client::HttpClient;
#[cfg(feature = "http")]
pub use interop::ConversionError;
pub(crate) use migration::MigratingCall;
pub use observe::{Observer, ObserverEvent, RetryCause};
pub use one_host::HostClient;
pub use pipeline::PipelineClient;
pub use route::{Destination, Route};
pub(crate) use router::Router;
pub use send_hook::{Outgoing, SendHook};
pub use sharing::PipelineCounters;
pub(crate) use stats::Recorder;
pub use stats::{Failures, Histogram, Stats};
pub use upstream::Upstream;

use crate::error::Error;
use crate::net::Address;
use crate::net::tls::{TlsIdentity, TlsInfo};
use crate::policy::{AddressPolicy, Proxies, Redirects, Retry, Timeouts};
use crate::proto::{Limits, Request, Response};
use crate::reactor::{CallKey, Overrides, Server, Timestamps};
use crate::time::Time;

pub use crate::reactor::Hop;

/// A request for a client, with its settings. A call owns its buffers while it runs, and the [`Completion`] returns
/// them.
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
    /// The caller waits for the completion, so that nobody can resume the call.
    is_awaited: bool,
    overrides: Option<Box<Overrides>>,
}

/// How the deadline of a call is given.
#[derive(Clone, Copy, Debug)]
enum CallTime {
    /// The totals of [`Timeouts`](crate::Timeouts).
    Configured,
    Within(Duration),
    At(Instant),
    /// The call has begun in another client, and keeps its deadline.
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
            is_awaited: false,
            overrides: None,
        }
    }

    /// Gives the call a number of the caller's choice, which its completion returns.
    pub fn tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// Limits the time of the whole call, with a streamed body, from the moment when the client begins it, instead of the
    /// client's total timeouts.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.time = CallTime::Within(timeout);
        self
    }

    /// Ends the call, with a streamed body, at this time at the latest, instead of the client's total timeouts.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.time = CallTime::At(deadline);
        self
    }

    /// Completes the call when the head of the response has arrived. The caller reads the body with
    /// [`read_body`](HostClient::read_body). If the head comes before the whole request was sent, the rest is sent until
    /// the response is complete. Then the completion has an empty request, and [`BodyRead::End`] has the request of the call
    /// (a [`Shared`](crate::Shared) client drops it).
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Time limits for this call, instead of the client's. The totals count if the call has no [`timeout`](Self::timeout)
    /// and no [`deadline`](Self::deadline). The limits of name lookups, connecting and handshakes count for a connection that
    /// is opened for this call. While the call waits for a connection that is opened for another one,
    /// [`Timeouts::queue`] and the totals count.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.own().timeouts = Some(timeouts);
        self
    }

    /// Limits on the response, instead of the client's.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.own().limits = Some(limits);
        self
    }

    /// When this call is tried again, instead of the client's rule.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.own().retry = Some(retry);
        self
    }

    /// Whether redirects are followed, instead of the client's rule. Only for [`Client`]: other clients refuse the call.
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.own().redirects = Some(redirects);
        self
    }

    /// Which proxies are used, instead of the client's. Only for [`Client`]: other clients refuse the call. The call
    /// shares connections only with calls that have a clone of the same value.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.own().proxies = Some(proxies);
        self
    }

    /// The TLS settings and the client certificate for servers, instead of the client's; TLS with proxies does not
    /// change. Only for [`Client`]: other clients refuse the call. The call shares connections and TLS sessions only
    /// with calls that have a clone of the same identity.
    pub fn tls(mut self, identity: TlsIdentity) -> Self {
        self.own().tls = Some(identity);
        self
    }

    /// Which addresses of servers may be connected to, instead of [`HostConfig::addresses`]. Only for [`Client`]: other
    /// clients refuse the call. The call shares connections only with calls that have a clone of the same `Arc`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use courser::{AddressPolicy, Call, Client, Config, ErrorKind, Request, Response};
    ///
    /// let public = Arc::new(AddressPolicy::deny_private());
    /// let request = Request::get("http://127.0.0.1:1/");
    /// let mut client = Client::new(Config::default())?;
    /// client.submit(Call::new(request, Response::new()).addresses(public));
    /// let done = client.wait(None)?.done().expect("a completion");
    /// assert!(matches!(done.outcome.unwrap_err().kind(), ErrorKind::Denied(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn addresses(mut self, allowed: Arc<AddressPolicy>) -> Self {
        self.own().addresses = Some(allowed);
        self
    }

    /// Neither sends cookies of the client's jar nor stores cookies in it.
    #[cfg(feature = "cookies")]
    pub fn without_cookies(mut self) -> Self {
        self.own().without_cookies = true;
        self
    }

    /// The call of a caller that waits for the completion. Nobody can resume such a call.
    #[inline]
    pub(crate) fn awaited(mut self) -> Self {
        self.is_awaited = true;
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

/// The id of a call, unique within its client.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallId(pub(crate) CallKey);

impl CallId {
    /// The id of a call that no client has begun.
    pub(crate) const UNBEGUN: Self = Self(CallKey::UNBEGUN);

    /// The place of the call among the calls that the client has at the same time.
    pub(crate) fn index(self) -> usize {
        self.0.index()
    }
}

/// How a call ended, with the buffers of the call. A streaming call completes when the head of its response has
/// arrived.
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
    /// The request, which can be used again; empty if it is still being sent ([`Call::streaming`]).
    pub request: Request,
    /// The response. After a failure, the part of the response that arrived.
    pub response: Response,
    /// Timings, addresses and other facts about the call.
    pub report: Report,
}

impl Completion {
    /// The body of a streaming call. The caller must read it to its end, or cancel the call.
    pub fn streamed(&self) -> Option<CallId> {
        self.report.timestamps.is_streamed.then_some(self.id)
    }

    /// The response, or why there is no complete one.
    ///
    /// ```
    /// # fn example(client: &mut courser::HostClient) -> Result<(), courser::Error> {
    /// use courser::{Call, Request, Response};
    ///
    /// let response = client.perform(Call::new(Request::get("/"), Response::new())).into_result()?;
    /// println!("{}", response.status());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The error of the [`outcome`](Self::outcome). The part of the response that arrived is dropped.
    pub fn into_result(self) -> Result<Response, Error> {
        self.outcome.map(|()| self.response)
    }

    /// The completion of a call that no client has begun, or whose client has ended. The buffers may be lost.
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
            report: Report::new(Timestamps::new(now), now),
        }
    }

    pub(crate) fn unbegun(call: Call, error: Error) -> Self {
        Self::failed(call.tag, error, Some((call.request, call.response)))
    }
}

/// Timings of a call, and facts about its connection.
///
/// ```
/// # fn example(client: &mut courser::HostClient) -> Result<(), courser::Error> {
/// let report = client.get("/", &mut courser::Response::new())?;
/// println!("{:?} after {} attempts, reused: {}", report.timings().total, report.attempts(), report.reused());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Report {
    timestamps: Timestamps,
}

impl Report {
    /// The report at this time of a call that has ended, or goes on.
    #[inline(always)] // so that the report is constructed in its final place
    pub(crate) fn new(mut timestamps: Timestamps, now: Time) -> Self {
        timestamps.ended.get_or_insert(now);
        Self { timestamps }
    }

    /// Times since the call began.
    pub fn timings(&self) -> Timings {
        Timings::of(&self.timestamps)
    }

    /// The followed redirects, in order. [`Response::url`] is where they led.
    pub fn redirects(&self) -> &[Hop] {
        self.timestamps.hops()
    }

    /// Whether the last attempt ran on a connection that had been kept idle or had served before.
    pub fn reused(&self) -> bool {
        self.timestamps.reused
    }

    /// Whether the call waited for a rate ([`HostConfig::rate`], [`Config::rate`]), and not only for a connection.
    pub fn held(&self) -> bool {
        self.timestamps.held
    }

    /// The number of attempts: how often the call got a connection, or one could not be opened.
    pub fn attempts(&self) -> u32 {
        self.timestamps.attempts
    }

    /// The result of the TLS handshake, if the connection has TLS and this call is the first one on it.
    pub fn tls(&self) -> Option<&TlsInfo> {
        self.timestamps.opened()?.tls_info.as_ref()
    }

    /// The status of the proxy's answer to CONNECT, if this call is the first one on a connection that has a tunnel.
    pub fn proxy_status(&self) -> Option<u16> {
        let answer = self.timestamps.opened()?.proxy_answer.as_ref()?;
        Some(answer.0)
    }

    /// The head of the proxy's answer to CONNECT, if this call is the first one on a connection that has a tunnel.
    pub fn proxy_head(&self) -> Option<&[u8]> {
        let answer = self.timestamps.opened()?.proxy_answer.as_ref()?;
        Some(&answer.1)
    }

    /// Bytes of HTTP sent, all attempts together.
    pub fn bytes_out(&self) -> u64 {
        self.timestamps.bytes_out
    }

    /// Bytes of HTTP received, all attempts together.
    pub fn bytes_in(&self) -> u64 {
        self.timestamps.bytes_in
    }

    /// The address of the server; `None` when the call had no connection. Behind a [proxy](Self::proxy), the address is known
    /// only if this client has looked it up for the proxy.
    pub fn remote(&self) -> Option<Address> {
        let endpoints = self.timestamps.endpoints()?;
        match endpoints.server {
            Server::Remote => Some(endpoints.remote),
            Server::Behind(address) => address,
        }
    }

    /// The address of the proxy; `None` when the call had no connection, or one without a proxy.
    pub fn proxy(&self) -> Option<Address> {
        let endpoints = self.timestamps.endpoints()?;
        matches!(endpoints.server, Server::Behind(_)).then_some(endpoints.remote)
    }

    /// The local address of the connection.
    pub fn local(&self) -> Option<Address> {
        self.timestamps.endpoints()?.local
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |address: Option<Address>| address.map(|address| address.to_string());
        f.debug_struct("Report")
            .field("timings", &self.timings())
            .field("attempts", &self.attempts())
            .field("redirects", &self.redirects())
            .field("reused", &self.reused())
            .field("remote", &shown(self.remote()))
            .field("proxy", &shown(self.proxy()))
            .field("local", &shown(self.local()))
            .field("tls", &self.tls())
            .field("bytes_out", &self.bytes_out())
            .field("bytes_in", &self.bytes_in())
            .finish_non_exhaustive()
    }
}

/// Times of a call, of the last attempt if there were several. Each `Until` counts from the beginning of the call.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Until the call had a connection.
    pub queued: Option<Duration>,
    /// How long the name lookups of the connection took. `resolve`, `connect`, `proxy` and `tls` are `None` if the
    /// connection was open before this call, or if the step was not needed.
    pub resolve: Option<Duration>,
    /// How long it then took to reach an address.
    pub connect: Option<Duration>,
    /// How long the handshakes with proxies then took.
    pub proxy: Option<Duration>,
    /// How long the TLS handshake with the server then took.
    pub tls: Option<Duration>,
    /// Until the whole request was sent.
    pub sent: Option<Duration>,
    /// Until the answer of this call was the next one on the connection; `None` if it was the next one from the start.
    /// Before that time, a call of a [`PipelineClient`] waits for the answers to earlier calls.
    pub in_front: Option<Duration>,
    /// Until the first byte of the response.
    pub first_byte: Option<Duration>,
    /// Until the end of the call; in the completion of a streaming call, until the completion.
    pub total: Duration,
}

impl Timings {
    fn of(timestamps: &Timestamps) -> Self {
        let begun = timestamps.begun;
        let opened = timestamps.opened();
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
            total: since(timestamps.ended).unwrap_or_default(),
        }
    }
}

/// What [`HostClient::wait`] has waited for.
///
/// ```
/// # use courser::{BodyRead, Waited};
/// # fn example(client: &mut courser::HostClient, buffer: &mut [u8]) -> Result<(), Box<dyn std::error::Error>> {
/// // Buffered and streaming calls, until all are over.
/// loop {
///     match client.wait(None)? {
///         Waited::Done(done) => println!("{:?}", done.outcome), // the body of a streaming call begins
///         Waited::Readable => while let Some(body) = client.readable_body() {
///             while let BodyRead::Data(bytes) = client.read_body(body, buffer)? {
///                 println!("{bytes} bytes");
///             }
///         },
///         Waited::TimedOut | Waited::Idle => break,
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "it may be a completion"]
pub enum Waited {
    /// A call has completed.
    Done(Completion),
    /// There is a [readable body](HostClient::readable_body), which the caller must take before `wait` waits again.
    Readable,
    /// The time has passed.
    TimedOut,
    /// No call is in flight.
    Idle,
}

impl Waited {
    /// The completion, if a call has completed. `while let Some(done) = client.wait(None)?.done()` ends at
    /// [`Readable`](Self::Readable) with calls in flight, so it is only for clients without streaming calls.
    pub fn done(self) -> Option<Completion> {
        match self {
            Self::Done(done) => Some(done),
            Self::Readable | Self::TimedOut | Self::Idle => None,
        }
    }
}

/// The result of [`HostClient::read_body`].
#[derive(Debug)]
pub enum BodyRead {
    /// This many bytes were read, at least one if the buffer has room for one.
    Data(usize),
    /// No bytes are available yet.
    Pending,
    /// The body is complete.
    End {
        /// The report of the call; `total` counts until the end of the body.
        report: Report,
        /// A response that holds only the trailers, if there were any.
        trailers: Response,
        /// The request, if the head came before the whole request was sent: its completion had an empty request.
        request: Option<Request>,
    },
}
