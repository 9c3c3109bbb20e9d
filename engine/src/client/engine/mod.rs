//! The operations that all clients share: blocking calls, many calls in flight, and streamed bodies.

#![expect(private_bounds, reason = "the routers are the crate's own")]

mod batch;
mod body;
mod driven;

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;

pub use self::batch::Batch;
pub use self::body::Body;
pub(crate) use self::driven::{BodyEnd, Driven};
use super::adaptive::AdaptiveLimits;
use super::admission::{AddressState, Admission};
use super::call_queue::CallQueue;
use super::calls::Calls;
use super::connector::Connector;
use super::deliveries::Deliveries;
use super::dispatch::Dispatch;
use super::hosts::Hosts;
use super::migration::Migration;
use super::names::Names;
use super::retries::Retries;
use super::router::Router;
use super::send_hook::HookedEncoder;
use super::sharing::Sharing;
use super::stats::Stats;
use super::telemetry::Telemetry;
use super::throttle::Throttling;
use super::uploads::Uploads;
use super::{BodyRead, Call, CallId, Completion, HostConfig, Report, Waited};
use crate::client::progress::{ActiveCall, CallProgress, Reactor};
use crate::error::{Error, ErrorKind, Misuse, Phase, Sent};
use crate::net::os::OsNet;
use crate::net::resolve::Resolver;
use crate::net::{Net, Waker};
use crate::policy::{Caps, Counters, DnsCounters};
use crate::proto::{BodyMode, Request, Response};
use crate::reactor::{ByteRates, CallState, HeadState, Settings};

/// What [`HostClient`](crate::HostClient) and [`Client`](crate::Client) have in common: an event loop, pools of
/// connections, and calls. They differ in the router, which knows the host that serves a call.
///
/// A client has no thread of its own. The caller's thread does the work inside [`call`](Self::call), which blocks, or
/// inside [`wait`](Self::wait), for the calls that [`submit`](Self::submit) took. Calls make no progress between these
/// methods, so a program with calls in flight should call `wait` often.
pub struct Engine<R: Router, N: Net = OsNet> {
    pub(in crate::client) calls: Calls<R, N>,
    spare: SpareBuffers,
}

/// The parts in which the kinds of clients differ.
pub(in crate::client) struct Parts<R: Router> {
    pub(in crate::client) router: R,
    pub(in crate::client) sharing: R::Sharing,
    pub(in crate::client) hosts: Hosts,
    pub(in crate::client) throttle: Throttling,
    /// How names are looked up; `None` for a client without names.
    pub(in crate::client) resolver: Option<Box<dyn Resolver>>,
}

/// Requests and responses that are kept to reuse their buffers.
#[derive(Default)]
struct SpareBuffers {
    /// The request that [`get`](Engine::get) sends.
    getter: Option<Request>,
    /// An empty request and response, which stand in for the caller's while the client works on a blocking call.
    placeholder: Option<(Request, Response)>,
}

impl<R: Router, N: Net> Engine<R, N> {
    /// A client with this router and these hosts.
    ///
    /// # Errors
    /// The network's, when it cannot make a waker for answers of the resolver.
    pub(in crate::client) fn assemble(
        mut parts: Parts<R>,
        config: HostConfig,
        bytes: ByteRates,
        net: N,
    ) -> Result<Self, Error> {
        config.check().map_err(Error::unsent)?;
        let settings = Settings {
            timeouts: config.timeouts.clone(),
            limits: config.limits.clone(),
            held_bytes: config.held_bytes,
            socket: config.socket.clone(),
            ignore_invalid_headers: config.ignore_invalid_headers,
            stream_buffer: config.stream_buffer,
            idle_order: parts.hosts.cap.is_limited(),
            batching: parts.sharing.pipelines().map(|it| it.batching),
            bytes,
        };
        let mut reactor = Reactor::new(net, settings);
        let mut names = None;
        if let Some(resolver) = parts.resolver {
            let waker = reactor.common.net.waker().map_err(Error::unsent)?;
            names = Some(Names::new(config.dns.clone(), resolver, waker));
        }
        let connector = Connector::new(&config, names);
        let hooked = config.send_hook.map(HookedEncoder::new);
        let looks = hooked.as_ref().is_some_and(HookedEncoder::looks_at_answers);
        let dispatch = Dispatch {
            reactor,
            router: parts.router,
            sharing: parts.sharing,
            hosts: parts.hosts,
            throttle: parts.throttle,
            connector,
            hooked: hooked.map(Box::new),
            admission: Admission::new(config.breaker),
            adaptive: AdaptiveLimits(config.adaptive),
            telemetry: Telemetry::new(config.observer, config.stats),
            queue: CallQueue::default(),
            deliveries: Deliveries::default(),
        };
        Ok(Self {
            calls: Calls {
                dispatch,
                timeouts: config.timeouts,
                late: config.late,
                retries: Retries::new(config.retry, config.retry_budget, looks),
                uploads: Uploads::default(),
                migration: Migration::default(),
                is_driven: false,
            },
            spare: SpareBuffers::default(),
        })
    }

    // ---- blocking

    /// Gets a target and waits for the response.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn get(&mut self, target: &str, response: &mut Response) -> Result<Report, Error> {
        let mut request = self.spare.getter.take().unwrap_or_default();
        request.set_target(target);
        let outcome = self.call(&mut request, response);
        self.spare.getter = Some(request);
        outcome
    }

    /// Sends a request and waits for the response. Other calls in flight go on meanwhile; their completions are kept
    /// for [`wait`](Self::wait).
    ///
    /// # Errors
    /// Why there is no complete response; `response` then holds the part that arrived.
    pub fn call(
        &mut self,
        request: &mut Request,
        response: &mut Response,
    ) -> Result<Report, Error> {
        let (_, report) = self.run(request, response, false)?;
        Ok(report)
    }

    fn run(
        &mut self,
        request: &mut Request,
        response: &mut Response,
        streaming: bool,
    ) -> Result<(CallId, Report), Error> {
        let (mut own_request, mut own_response) = self.spare.placeholder.take().unwrap_or_default();
        std::mem::swap(request, &mut own_request);
        std::mem::swap(response, &mut own_response);
        let call = Call::new(own_request, own_response).streaming(streaming);
        let id = self.submit(call.awaited());
        let done = self.await_call(id, Some((&mut *request, &mut *response)));
        self.spare.placeholder = Some((
            std::mem::replace(request, done.request),
            std::mem::replace(response, done.response),
        ));
        done.outcome.map(|()| (done.id, done.report))
    }

    /// Sends a call with its own deadline, limits and other settings, and waits for its completion. Other calls in
    /// flight go on meanwhile; their completions are kept for [`wait`](Self::wait). Of a streaming call, the body is then
    /// read by [`read_body`](Self::read_body).
    ///
    /// ```
    /// # fn example(client: &mut courser::HostClient) -> Result<(), courser::Error> {
    /// use std::time::Duration;
    /// use courser::{Call, Request, Response};
    ///
    /// let call = Call::new(Request::get("/"), Response::new()).timeout(Duration::from_secs(5));
    /// let done = client.perform(call);
    /// done.outcome?;
    /// println!("{} bytes", done.response.body().len());
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn perform(&mut self, call: Call) -> Completion {
        let id = self.submit(call.awaited());
        self.await_call(id, None)
    }

    /// Waits for the completion of a call, whose buffers these are if the caller has kept them.
    #[inline]
    fn await_call(
        &mut self,
        id: CallId,
        buffers: Option<(&mut Request, &mut Response)>,
    ) -> Completion {
        let mut awaiting = Awaiting {
            client: self,
            id,
            buffers,
            has_completed: false,
        };
        let client = &mut *awaiting.client;
        loop {
            if client.calls.dispatch.deliveries.take_done(id.0)
                && let Some(done) = client.calls.complete(id.0)
            {
                awaiting.has_completed = true;
                return done;
            }
            let over = |calls: &Calls<R, N>| calls.dispatch.deliveries.done.contains(&id.0);
            if let Err(error) = client.calls.iterate(None, over) {
                client.calls.dispatch.detach(id.0);
                client.calls.dispatch.refuse(id.0, error);
            }
        }
    }

    // ---- many in flight

    /// Takes over a call, which the next [`wait`](Self::wait) begins. Every call completes exactly once.
    pub fn submit(&mut self, call: Call) -> CallId {
        let now = self.calls.dispatch.reactor.now();
        let client = CallProgress {
            is_awaited: call.is_awaited,
            ..CallProgress::default()
        };
        self.calls.retries.note_overrides(call.overrides.as_deref());
        let time = call.time;
        let key = self.calls.dispatch.reactor.insert_call(|| {
            let mut active = ActiveCall::new(now, call.request, call.response);
            active.tag = call.tag;
            active.overrides = call.overrides;
            if call.streaming {
                active.mode = BodyMode::Stream;
            }
            active.client = client;
            active
        });
        self.calls.dispatch.queue.submit(key, time);
        CallId(key)
    }

    /// Drives the calls until one completes, and returns its completion; or says why there is none.
    ///
    /// # Errors
    /// The system's, when it cannot wait for events at all.
    ///
    /// ```
    /// # fn example(client: &mut courser::HostClient) -> std::io::Result<()> {
    /// use courser::{Call, Request, Response};
    /// for number in 0..100 {
    ///     client.submit(Call::new(Request::get(format!("/{number}")), Response::new()).tag(number));
    /// }
    /// while let Some(done) = client.wait(None)?.done() {
    ///     println!("{}: {:?} {}", done.tag, done.outcome, done.response.status());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Waited> {
        if let Some(key) = self.calls.dispatch.deliveries.done.pop_front()
            && let Some(done) = self.calls.complete(key)
        {
            return Ok(Waited::Done(done));
        }
        let until = self.calls.until(timeout);
        loop {
            let iterated = self.calls.iterate(until, |calls| {
                !calls.dispatch.deliveries.is_empty() || calls.dispatch.reactor.calls() == 0
            });
            if let Some(done) = self.next_done() {
                return Ok(Waited::Done(done));
            }
            iterated?;
            let over = until.is_some_and(|at| self.calls.dispatch.reactor.now() >= at);
            match self.in_flight() {
                _ if !self.calls.dispatch.deliveries.is_empty() => return Ok(Waited::Readable),
                0 => return Ok(Waited::Idle),
                _ if over => return Ok(Waited::TimedOut),
                _ => {}
            }
        }
    }

    /// The next completion that is already available, without an iteration, a system call or a look at the clock. One
    /// [`wait`](Self::wait) may find many completions: it returns the first, and this method returns the others.
    ///
    /// ```
    /// # fn example(client: &mut courser::HostClient) -> std::io::Result<()> {
    /// while let Some(first) = client.wait(None)?.done() {
    ///     let mut next = Some(first);
    ///     while let Some(done) = next {
    ///         println!("{}: {}", done.tag, done.response.status());
    ///         next = client.next_done();
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn next_done(&mut self) -> Option<Completion> {
        let key = self.calls.dispatch.deliveries.done.pop_front()?;
        self.calls.complete(key)
    }

    /// Waits at most `timeout` (`None`: without limit) for the next completion, with or without calls in flight, until the
    /// [`waker`](Self::waker) is used. May return `None` earlier. For a thread that also has other work, which other threads
    /// announce.
    ///
    /// ```
    /// use std::time::Duration;
    /// use courser::{Client, Config};
    ///
    /// let mut client = Client::new(Config::default())?;
    /// let waker = client.waker()?;
    /// std::thread::spawn(move || waker.wake());
    /// // Without a call, `wait` would return at once.
    /// assert!(client.wait_or_wake(Some(Duration::from_secs(60)))?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The system's, when it cannot wait for events at all.
    pub fn wait_or_wake(&mut self, timeout: Option<Duration>) -> io::Result<Option<Completion>> {
        if let Some(done) = self.next_done() {
            return Ok(Some(done));
        }
        // A wake that comes during the poll before the wait must not be lost.
        let was_driven = std::mem::replace(&mut self.calls.is_driven, true);
        let iterated = self.calls.iterate(self.calls.until(timeout), |calls| {
            !calls.dispatch.deliveries.is_empty()
        });
        self.calls.is_driven = was_driven;
        let done = self.next_done();
        if done.is_none() {
            iterated?;
        }
        Ok(done)
    }

    /// A handle that ends a [`wait_or_wake`](Self::wait_or_wake) early, from any thread: the running one, or else the next
    /// one.
    ///
    /// # Errors
    /// The system's, when it has no descriptor left for the first handle.
    pub fn waker(&mut self) -> io::Result<Waker> {
        self.calls.dispatch.reactor.common.net.waker()
    }

    /// The monotonic time of the client's network, which may be simulated.
    pub fn now(&self) -> Instant {
        self.calls.dispatch.reactor.common.net.now()
    }

    /// Maintains the connections for this time, with or without calls in flight: late answers are drained, idle
    /// connections expire, and the minimum of idle connections is kept. A client that is always in use does not need
    /// it.
    ///
    /// # Errors
    /// The system's, when it cannot wait for events at all.
    pub fn maintain(&mut self, time: Duration) -> io::Result<()> {
        let until = self.calls.until(Some(time));
        self.calls.iterate(until, |_| false)?;
        while until.is_some_and(|until| self.calls.dispatch.reactor.now() < until) {
            self.calls.iterate(until, |_| false)?;
        }
        Ok(())
    }

    /// Ends a call: a call in flight completes with [`ErrorKind::Cancelled`], and a streamed body is dropped. False if
    /// the call has already completed, or was never submitted to this client.
    pub fn cancel(&mut self, id: CallId) -> bool {
        let dispatch = &mut self.calls.dispatch;
        let now = dispatch.reactor.now();
        let Some(call) = dispatch.reactor.call(id.0) else {
            return false;
        };
        let error = match (call.state, call.head) {
            (CallState::Ended, HeadState::Awaited) => return false,
            (CallState::OnConn(conn), _) => {
                let reactor = &dispatch.reactor;
                reactor.error_on(conn, id.0, ErrorKind::Cancelled)
            }
            (CallState::Ended, _) => None,
            (CallState::New | CallState::Waiting { .. } | CallState::Pausing { .. }, _) => {
                Some(Error::unsent(ErrorKind::Cancelled))
            }
        };
        let error = error
            .unwrap_or_else(|| Error::new(ErrorKind::Cancelled, Phase::Body, Sent::ReplyBegun));
        dispatch.detach(id.0);
        dispatch.give_permit_back(id.0);
        match dispatch.reactor.call(id.0) {
            Some(call) if call.head != HeadState::Awaited => {
                // If its head was not taken, the call completes with the error instead.
                let head = std::mem::replace(&mut call.head, HeadState::Awaited);
                let was_over = matches!(call.state, CallState::Ended);
                call.end(now, Err(error));
                if !was_over {
                    dispatch.telemetry.call_ended(id.0, call);
                }
                if head == HeadState::Given
                    && let Some(call) = self.calls.forget_body(id)
                {
                    let spares = &mut self.calls.dispatch.reactor.common.spares;
                    spares.put_response(call.response);
                }
            }
            _ => dispatch.fail(id.0, error),
        }
        self.calls.process_events();
        true
    }

    /// The number of calls whose completion has not been taken yet, and of streamed bodies that have not been read to
    /// their end.
    pub fn in_flight(&self) -> usize {
        self.calls.dispatch.reactor.calls()
    }

    /// How many connections are in each state, and how many calls wait.
    pub fn counters(&self) -> Counters {
        self.calls.dispatch.hosts.counters()
    }

    /// Statistics of the calls so far, if [`HostConfig::stats`] is on; else only the number of calls in flight.
    ///
    /// ```
    /// # fn example(upstream: courser::Upstream) -> Result<(), courser::Error> {
    /// use courser::{HostClient, HostConfig, Response};
    ///
    /// let config = HostConfig { stats: true, ..HostConfig::default() };
    /// let mut client = HostClient::new(upstream, config)?;
    /// client.get("/", &mut Response::new())?;
    /// println!("{:?}", client.stats().total);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> Stats {
        Stats {
            in_flight: self.in_flight(),
            ..self.calls.dispatch.telemetry.stats()
        }
    }

    /// Counters of the cache of names. All zero for a client of known addresses.
    pub fn dns_counters(&self) -> DnsCounters {
        let names = self.calls.dispatch.connector.names.as_ref();
        names.map(Names::counters).unwrap_or_default()
    }

    /// Forgets the addresses of a name. Open connections stay open.
    pub fn flush_name(&mut self, name: &str) {
        if let Some(names) = &mut self.calls.dispatch.connector.names {
            names.flush(name);
        }
    }

    /// Forgets the addresses of all names, and which addresses have failed.
    pub fn flush_names(&mut self) {
        self.calls.dispatch.connector.avoided.clear();
        if let Some(names) = &mut self.calls.dispatch.connector.names {
            names.flush_all();
        }
    }

    /// The state of each address of a client with [`HostConfig::balance`](crate::HostConfig::balance). Other clients
    /// have none.
    pub fn addresses(&self) -> impl Iterator<Item = AddressState> {
        let dispatch = &self.calls.dispatch;
        dispatch.admission.addresses(&dispatch.hosts)
    }

    /// Changes limits while the client runs. Calls that wait get connections at once when a limit is raised. Connections
    /// above a limit that is lowered end: idle ones at once, the others after their next answer. Calls that wait already
    /// go on waiting.
    ///
    /// # Errors
    /// [`Misuse::Unsupported`] for a total of a client of one upstream.
    pub fn set_caps(&mut self, caps: &Caps) -> Result<(), Error> {
        let mut caps = *caps;
        if R::KEEPS_HOSTS {
            if caps.total_connections.is_some() {
                let misuse = Misuse::Unsupported("total_connections");
                return Err(Error::unsent(misuse));
            }
            // The addresses of an upstream share the limit of its host.
            caps.total_connections = caps.max_connections;
        }
        let dispatch = &mut self.calls.dispatch;
        dispatch.hosts.set_caps(&caps);
        dispatch.admission.share_min_idle(&mut dispatch.hosts);
        dispatch.close_surplus();
        self.calls.process_events();
        Ok(())
    }

    /// Closes all idle connections and returns their number.
    pub fn close_idle(&mut self) -> usize {
        let idle = self.calls.dispatch.reactor.idle_conns();
        for &conn in &idle {
            self.calls.dispatch.close(conn);
        }
        idle.len()
    }

    /// Continues to send the body of a request, after its source had no bytes and now has some again.
    pub fn resume(&mut self, id: CallId) {
        self.calls.dispatch.reactor.resume_send(id.0);
        self.calls.process_events();
    }

    // ---- streamed bodies

    /// Takes bytes of a streamed body; never blocks.
    ///
    /// # Errors
    /// Why the body ended early; no more bytes follow.
    pub fn read_body(&mut self, id: CallId, buf: &mut [u8]) -> Result<BodyRead, Error> {
        let unknown = || Error::new(Misuse::UnknownBody, Phase::Body, Sent::ReplyBegun);
        let call = self.calls.dispatch.reactor.call(id.0);
        let call = call.filter(|call| call.head == HeadState::Given);
        let call = call.ok_or_else(unknown)?;
        let waiting = &call.response.body()[call.taken..];
        let n = waiting.len().min(buf.len());
        if !waiting.is_empty() {
            buf[..n].copy_from_slice(&waiting[..n]);
            call.taken += n;
            // The taken half is removed, so that the cost stays in proportion to the bytes taken.
            if call.taken >= call.response.body().len().div_ceil(2) {
                call.response.body_buffer().drain(..call.taken);
                call.taken = 0;
                self.calls.dispatch.reactor.resume_read(id.0);
                self.calls.process_events();
            }
            return Ok(BodyRead::Data(n));
        }
        if !matches!(call.state, CallState::Ended) {
            return Ok(BodyRead::Pending);
        }
        let mut call = self.calls.forget_body(id).ok_or_else(unknown)?;
        let reactor = &mut self.calls.dispatch.reactor;
        let report = Report::new(call.timestamps, reactor.now());
        reactor.common.spares.take_back_decoder(&mut call.response);
        let request = match call.client.keeps_request {
            true => Some(call.request),
            false => {
                reactor.common.spares.put_request(call.request);
                None
            }
        };
        call.outcome?;
        Ok(BodyRead::End {
            report,
            trailers: call.response,
            request,
        })
    }

    /// Like [`read_body`](Self::read_body), but moves all bytes that have arrived to `chunk`, without a copy. `chunk` is
    /// empty if the result is not [`BodyRead::Data`].
    ///
    /// The memory of the bytes that were in `chunk` is used for the next chunk, unless there is a clone of them. So a
    /// caller that passes the same variable again and again causes no allocation of a buffer for each chunk.
    ///
    /// # Errors
    /// Why the body ended early; no more bytes follow.
    pub fn read_chunk(&mut self, id: CallId, chunk: &mut Bytes) -> Result<BodyRead, Error> {
        let mut arrived = memory_of(std::mem::take(chunk));
        let read = self.take_arrived(id, &mut arrived);
        *chunk = arrived.into();
        read
    }

    /// Swaps all bytes of a streamed body that have arrived into an empty vector.
    fn take_arrived(&mut self, id: CallId, chunk: &mut Vec<u8>) -> Result<BodyRead, Error> {
        let call = self.calls.dispatch.reactor.call(id.0);
        if let Some(call) = call.filter(|call| call.head == HeadState::Given)
            && call.taken < call.response.body().len()
        {
            std::mem::swap(call.response.body_buffer(), chunk);
            // Taken by `read_body`.
            chunk.drain(..std::mem::take(&mut call.taken));
            self.calls.dispatch.reactor.resume_read(id.0);
            self.calls.process_events();
            return Ok(BodyRead::Data(chunk.len()));
        }
        self.read_body(id, &mut [0; 1])
    }

    /// The next streamed body with data or an end that arrived since the last read returned [`BodyRead::Pending`].
    pub fn readable_body(&mut self) -> Option<CallId> {
        let dispatch = &mut self.calls.dispatch;
        let readable = &mut dispatch.deliveries.readable;
        let id = readable.pop(|id| dispatch.reactor.call_ref(id.0).is_some())?;
        if let Some(call) = dispatch.reactor.call(id.0) {
            call.notified = false;
        }
        Some(id)
    }
}

impl<R: Router + 'static, N: Net + 'static> Engine<R, N> {
    /// Sends a request, waits for the head of the response, and returns the body to be read. If the head comes before the
    /// whole request was sent, the rest is sent while the body is read. Then `request` is left empty, and
    /// [`Body::take_request`] returns it at the end.
    ///
    /// # Errors
    /// Why there is no complete head.
    pub fn open(
        &mut self,
        request: &mut Request,
        response: &mut Response,
    ) -> Result<Body<'_, Self>, Error> {
        let (id, _) = self.run(request, response, true)?;
        Ok(Body::new(self, id))
    }

    /// As [`open`](Self::open), for a call with settings of its own. The completion has the head of the response, and the
    /// report also if there is no body because the call has failed.
    ///
    /// ```
    /// # fn example(client: &mut courser::HostClient) -> Result<(), courser::Error> {
    /// use std::time::Duration;
    /// use courser::{Call, Request, Response};
    ///
    /// let call = Call::new(Request::get("/"), Response::new()).timeout(Duration::from_secs(60));
    /// let (done, body) = client.open_call(call);
    /// match body {
    ///     Some(mut body) => while let Some(bytes) = body.chunk()? {
    ///         println!("{} bytes of {:?}", bytes.len(), done.response.url());
    ///     },
    ///     None => println!("{:?} after {} attempts", done.outcome, done.report.attempts()),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn open_call(&mut self, call: Call) -> (Completion, Option<Body<'_, Self>>) {
        let done = self.perform(call.streaming(true));
        let body = done.streamed().map(|id| Body::new(self, id));
        (done, body)
    }
}

/// Ends a blocking call, and gives the caller its buffers back, if foreign code panics meanwhile: a source of a body, an
/// observer.
struct Awaiting<'a, R: Router, N: Net> {
    client: &'a mut Engine<R, N>,
    id: CallId,
    buffers: Option<(&'a mut Request, &'a mut Response)>,
    has_completed: bool,
}

impl<R: Router, N: Net> Drop for Awaiting<'_, R, N> {
    #[inline]
    fn drop(&mut self) {
        if !self.has_completed {
            self.client.abandon(self.id, self.buffers.take());
        }
    }
}

impl<R: Router, N: Net> Engine<R, N> {
    #[cold]
    fn abandon(&mut self, id: CallId, buffers: Option<(&mut Request, &mut Response)>) {
        let dispatch = &mut self.calls.dispatch;
        let call = dispatch.reactor.call_ref(id.0);
        if call.is_some_and(|call| !matches!(call.state, CallState::Ended)) {
            dispatch.detach(id.0);
            let error = Error::new(ErrorKind::Cancelled, Phase::Queue, Sent::ReplyBegun);
            dispatch.fail(id.0, error);
        }
        dispatch.deliveries.take_done(id.0);
        if let (Some(call), Some(buffers)) = (dispatch.reactor.remove_call(id.0), buffers) {
            (*buffers.0, *buffers.1) = (call.request, call.response);
        }
    }
}

/// An empty vector with the memory of these bytes, if there is no clone of them.
pub(crate) fn memory_of(bytes: Bytes) -> Vec<u8> {
    if !bytes.is_unique() {
        return Vec::new();
    }
    let mut memory = Vec::from(bytes);
    memory.clear();
    memory
}
