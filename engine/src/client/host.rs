//! The client of one upstream: a reactor, and a pool that says which connection may serve a call.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::{Call, CallId, CallTime, Completion, HostConfig, Read, Report, Upstream};
use crate::error::{Error, ErrorKind, Misuse, Phase, Sent, TimeLimit};
use crate::net::os::OsNet;
use crate::net::{Net, Waker};
use crate::policy::{
    Checkout, Counters, Dial, FailedAttempt, LatePolicy, Next, Pool, Retry, RoundRobin, SlotId,
    Verdict, is_stale, later,
};
use crate::proto::{BodyMode, CloseReason, Defaults, Request, Response, Reuse};
use crate::reactor::{
    ActiveCall, Armed, Happened, HeadState, Key, Marks, Place, Reactor, Settings,
};

/// A client of one upstream, with a bounded pool of connections.
///
/// It has no thread of its own: the caller's thread drives it, blocking in [`call`](Self::call) or with many calls in
/// flight by [`submit`](Self::submit) and [`wait`](Self::wait). Between two of these nothing moves, so a program that
/// keeps calls in flight should come back often.
///
/// ```
/// use courser::{HostClient, HostConfig, Response};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let address = server.local_addr()?.to_string();
/// # std::thread::spawn(move || { use std::io::*; let mut s = server.accept().unwrap().0; let mut b = [0; 999];
/// #     let _ = s.read(&mut b); s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap(); });
///
/// let mut client = HostClient::new(address.parse()?, HostConfig::default())?;
/// let mut response = Response::new();
/// client.get("/", &mut response)?;
/// assert_eq!((response.status(), response.body()), (200, &b"hi"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HostClient<N: Net = OsNet> {
    reactor: Reactor<N>,
    pool: Pool<Key, Key>,
    upstream: Upstream,
    order: RoundRobin,
    defaults: Defaults,
    retry: Retry,
    late: LatePolicy,
    total: Option<Duration>,
    /// What [`get`](Self::get) sends, for its buffers.
    getter: Option<Request>,
    /// What the caller of a blocking call holds while the client has its buffers.
    placeholder: Option<(Request, Response)>,
    /// Submitted calls that no turn has taken up yet.
    incoming: Vec<(Key, CallTime)>,
    /// Calls that have something for the caller: their end, or the head of a streamed response.
    done: VecDeque<Key>,
    /// Streamed bodies that can be read on and that the caller has not been told of. Invariant: a call is in here
    /// once if it is `told`, else not.
    readable: VecDeque<CallId>,
    /// Connections that speak another protocol now, with the calls that they came from.
    handed_over: Vec<(CallId, N::Stream)>,
    turn_began: Instant,
}

impl HostClient {
    /// A client on the operating system's network.
    ///
    /// # Errors
    /// An upstream without addresses; the system's, when it has no descriptor left for a readiness queue.
    pub fn new(upstream: Upstream, config: HostConfig) -> Result<Self, Error> {
        let net = OsNet::new().map_err(|error| Error::new(error, Phase::Queue, Sent::Nothing))?;
        Self::with_net(upstream, config, net)
    }
}

impl<N: Net> HostClient<N> {
    /// A client on that network.
    ///
    /// # Errors
    /// An upstream without addresses.
    pub fn with_net(upstream: Upstream, config: HostConfig, net: N) -> Result<Self, Error> {
        if upstream.addresses().is_empty() {
            return Err(Error::new(Misuse::NoAddress, Phase::Queue, Sent::Nothing));
        }
        Ok(Self {
            turn_began: net.now(),
            pool: Pool::new(config.pool()),
            order: RoundRobin::default(),
            defaults: Defaults::new(upstream.host(), config.user_agent.as_deref()),
            retry: config.retry,
            late: config.late,
            total: config.timeouts.total,
            getter: None,
            placeholder: None,
            reactor: Reactor::new(
                net,
                Settings {
                    timeouts: config.timeouts,
                    limits: config.limits,
                    socket: config.socket,
                    stream_buffer: config.stream_buffer.max(1),
                },
            ),
            upstream,
            incoming: Vec::new(),
            done: VecDeque::new(),
            readable: VecDeque::new(),
            handed_over: Vec::new(),
        })
    }

    // ---- blocking

    /// Gets a target and waits for the response.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn get(&mut self, target: &str, response: &mut Response) -> Result<Report, Error> {
        let mut request = self.getter.take().unwrap_or_default();
        request.set_target(target);
        let outcome = self.call(&mut request, response);
        self.getter = Some(request);
        outcome
    }

    /// Sends a request and waits for the response. Other calls in flight go on meanwhile; their completions are kept
    /// for [`wait`](Self::wait).
    ///
    /// # Errors
    /// Why there is no complete response; `response` then holds what came of it.
    pub fn call(
        &mut self,
        request: &mut Request,
        response: &mut Response,
    ) -> Result<Report, Error> {
        let (_, report) = self.run(request, response, false)?;
        Ok(report)
    }

    /// Sends a request, waits for the head of the response, and gives its body for reading.
    ///
    /// # Errors
    /// Why there is no complete head.
    pub fn open(
        &mut self,
        request: &mut Request,
        response: &mut Response,
    ) -> Result<Body<'_, N>, Error> {
        let (id, _) = self.run(request, response, true)?;
        Ok(Body {
            id,
            client: self,
            end: None,
        })
    }

    fn run(
        &mut self,
        request: &mut Request,
        response: &mut Response,
        streaming: bool,
    ) -> Result<(CallId, Report), Error> {
        let (mut own_request, mut own_response) = self.placeholder.take().unwrap_or_default();
        std::mem::swap(request, &mut own_request);
        std::mem::swap(response, &mut own_response);
        let id = self.submit(Call::new(own_request, own_response).streaming(streaming));
        let position = |client: &Self| client.done.iter().position(|done| *done == id.0);
        loop {
            let at = position(self).and_then(|at| self.done.remove(at));
            if let Some(done) = at.and_then(|key| self.complete(key)) {
                self.placeholder = Some((
                    std::mem::replace(request, done.request),
                    std::mem::replace(response, done.response),
                ));
                return done.outcome.map(|()| (id, done.report));
            }
            if let Err(error) = self.turn(None, |client| position(client).is_some()) {
                self.end_call(id.0, Err(Error::new(error, Phase::Queue, Sent::Nothing)));
            }
        }
    }

    // ---- many in flight

    /// Takes over a call; the next [`wait`](Self::wait) begins it. Whatever happens to it, it completes exactly once.
    pub fn submit(&mut self, call: Call) -> CallId {
        let now = self.reactor.now();
        let key = self.reactor.insert_call(ActiveCall {
            deadline: None,
            place: Place::New,
            request: call.request,
            response: call.response,
            tag: call.tag,
            mode: if call.streaming {
                BodyMode::Stream
            } else {
                BodyMode::Buffer
            },
            marks: Marks::new(now),
            attempts: 0,
            failures: 0,
            stale_before: false,
            sent_before: Sent::Nothing,
            head: HeadState::Awaited,
            taken: 0,
            told: false,
            armed: Armed::default(),
        });
        self.incoming.push((key, call.time));
        CallId(key)
    }

    /// The next completion. Drives the calls until there is one; `None` when `timeout` has passed (`None`: without
    /// limit), nothing is in flight, or there is a [`readable_body`](Self::readable_body), which must be asked for before
    /// this waits again.
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
    /// while let Some(done) = client.wait(None)? {
    ///     println!("{}: {:?} {}", done.tag, done.outcome, done.response.status());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Option<Completion>> {
        if let Some(key) = self.done.pop_front() {
            return Ok(self.complete(key));
        }
        let mut limit = timeout.map(TurnLimit::For);
        loop {
            let turned = self.turn(limit, |client| {
                !client.done.is_empty()
                    || !client.readable.is_empty()
                    || client.reactor.calls() == 0
            });
            if let Some(key) = self.done.pop_front() {
                return Ok(self.complete(key));
            }
            turned?;
            if let Some(TurnLimit::For(timeout)) = limit {
                limit = self.turn_began.checked_add(timeout).map(TurnLimit::Until);
            }
            let over = matches!(limit, Some(TurnLimit::Until(at)) if self.reactor.now() >= at);
            if over || !self.readable.is_empty() || self.reactor.calls() == 0 {
                return Ok(None);
            }
        }
    }

    /// Looks after the connections for that long, calls in flight or not: late answers are drained, idle connections
    /// expire, the minimum idle is kept. A client that is used all the time does not need this.
    ///
    /// # Errors
    /// The system's, when it cannot wait for events at all.
    pub fn maintain(&mut self, time: Duration) -> io::Result<()> {
        self.turn(Some(TurnLimit::For(time)), |_| false)?;
        let until = self.turn_began.checked_add(time);
        while until.is_some_and(|until| self.reactor.now() < until) {
            self.turn(until.map(TurnLimit::Until), |_| false)?;
        }
        Ok(())
    }

    /// Ends a call: one in flight completes with [`ErrorKind::Cancelled`], a streamed body is dropped. False if the
    /// call has completed already, or was never submitted here.
    pub fn cancel(&mut self, id: CallId) -> bool {
        let Some(call) = self.reactor.call(id.0) else {
            return false;
        };
        let error = match (&call.place, call.head) {
            (Place::Ended(_), HeadState::Awaited) => return false,
            (&Place::OnConn(conn), _) => self.reactor.busy_error(conn, ErrorKind::Cancelled),
            (Place::Ended(_), _) => None,
            (Place::New | Place::Waiting { .. }, _) => Some(Error::new(
                ErrorKind::Cancelled,
                Phase::Queue,
                Sent::Nothing,
            )),
        };
        let error =
            error.unwrap_or_else(|| Error::new(ErrorKind::Cancelled, Phase::Body, Sent::Partial));
        self.detach(id.0);
        match self.reactor.call(id.0).map(|call| (call.head, call)) {
            Some((HeadState::Given, _)) => {
                if let Some(call) = self.forget_body(id) {
                    self.reactor.put_spare(call.response);
                }
            }
            Some((HeadState::Ready, call)) => {
                // It completes with the error instead of the head.
                call.head = HeadState::Awaited;
                call.place = Place::Ended(Err(error));
            }
            _ => self.end_call(id.0, Err(error)),
        }
        self.settle();
        true
    }

    /// Calls whose completion [`wait`](Self::wait) has not given yet, and streamed bodies that are not read to their
    /// end.
    pub fn in_flight(&self) -> usize {
        self.reactor.calls()
    }

    /// Connections by state, and calls that wait.
    pub fn counters(&self) -> Counters {
        self.pool.counters()
    }

    /// Closes all idle connections and returns how many they were.
    pub fn close_idle(&mut self) -> usize {
        let mut closed = 0;
        while let Some(conn) = self.pool.any_idle() {
            self.close(conn);
            closed += 1;
        }
        closed
    }

    /// The body source of that call, which had nothing to send, has something again.
    pub fn resume(&mut self, id: CallId) {
        self.reactor.resume_send(id.0);
        self.settle();
    }

    // ---- streamed bodies

    /// Takes bytes of a streamed body; never blocks.
    ///
    /// # Errors
    /// Why the body ended early; there will be no more of it.
    pub fn read_body(&mut self, id: CallId, buf: &mut [u8]) -> Result<Read, Error> {
        let unknown = || Error::new(Misuse::UnknownBody, Phase::Body, Sent::Partial);
        let call = self
            .reactor
            .call(id.0)
            .filter(|call| call.head == HeadState::Given)
            .ok_or_else(unknown)?;
        let waiting = &call.response.body()[call.taken..];
        let n = waiting.len().min(buf.len());
        if n > 0 {
            buf[..n].copy_from_slice(&waiting[..n]);
            call.taken += n;
            // What is taken makes room, at a cost that stays in proportion to it.
            if call.taken >= call.response.body().len().div_ceil(2) {
                call.response.body_buffer().drain(..call.taken);
                call.taken = 0;
                self.reactor.resume_read(id.0);
                self.settle();
            }
            return Ok(Read::Data(n));
        }
        if !matches!(call.place, Place::Ended(_)) {
            return Ok(Read::Pending);
        }
        let call = self.forget_body(id).ok_or_else(unknown)?;
        let report = Report::new(call.marks, call.attempts, self.reactor.now());
        match call.place {
            Place::Ended(Err(error)) => Err(error),
            _ => Ok(Read::End {
                report,
                trailers: call.response,
            }),
        }
    }

    fn has_body_news(&self, id: CallId) -> bool {
        self.reactor.call_ref(id.0).is_none_or(|call| {
            call.taken < call.response.body().len() || matches!(call.place, Place::Ended(_))
        })
    }

    /// The next streamed body that has something new since it was last read to [`Read::Pending`]: data, or its end.
    pub fn readable_body(&mut self) -> Option<CallId> {
        let id = self.readable.pop_front()?;
        if let Some(call) = self.reactor.call(id.0) {
            call.told = false;
        }
        Some(id)
    }

    /// The connection of a call that switched protocols (101) or opened a tunnel (2xx to CONNECT). What the server
    /// had already sent in the new protocol is in the response's body.
    pub fn take_stream(&mut self, id: CallId) -> Option<N::Stream> {
        let at = self.handed_over.iter().position(|(call, _)| *call == id)?;
        Some(self.handed_over.swap_remove(at).1)
    }

    // ---- driven by `Shared`

    /// One turn, which a wake ends early.
    pub(super) fn step(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.turn(timeout.map(TurnLimit::For), |client| {
            !client.done.is_empty() || !client.readable.is_empty()
        })
    }

    /// The next completion, if there is one already.
    pub(super) fn next_done(&mut self) -> Option<Completion> {
        let key = self.done.pop_front()?;
        self.complete(key)
    }

    pub(super) fn waker(&mut self) -> io::Result<Waker> {
        self.reactor.waker()
    }

    /// Closes the connection of a call that switched protocols, if it did.
    pub(super) fn discard_stream(&mut self, id: CallId) {
        if let Some(stream) = self.take_stream(id) {
            self.reactor.close_stream(stream);
        }
    }

    // ---- the turn

    /// Begins what was submitted and, unless it is `over` by then, waits for events and handles them.
    fn turn(&mut self, limit: Option<TurnLimit>, over: impl Fn(&Self) -> bool) -> io::Result<()> {
        let stale = self.reactor.begin_turn();
        self.turn_began = self.reactor.now();
        let until = match limit {
            Some(TurnLimit::For(timeout)) => self.turn_began.checked_add(timeout),
            Some(TurnLimit::Until(at)) => Some(at),
            None => None,
        };
        if stale && self.pool.counters().open > 0 {
            // Idle connections may have died while nobody looked; and a caller whose calls end as soon as they are
            // begun must not keep the others from going on.
            self.reactor.poll(Some(self.reactor.now()))?;
            self.settle();
        }
        self.begin_incoming();
        self.settle();
        if over(self) {
            return Ok(());
        }
        let until = [until, self.pool.poll_timeout()]
            .into_iter()
            .flatten()
            .min();
        let polled = self.reactor.poll(until);
        self.settle();
        polled
    }

    fn begin_incoming(&mut self) {
        for at in 0..self.incoming.len() {
            let (key, time) = self.incoming[at];
            self.begin(key, time);
        }
        self.incoming.clear();
    }

    fn begin(&mut self, key: Key, time: CallTime) {
        let now = self.reactor.now();
        let total = self.total;
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        if !matches!(call.place, Place::New) {
            return; // cancelled before it was begun
        }
        call.marks.begun = now;
        call.deadline = time.expires_at(now, total);
        call.response.clear();
        let checked = call.request.encode(&self.defaults);
        if let Err(misuse) = checked {
            return self.end_call(key, Err(Error::new(misuse, Phase::Queue, Sent::Nothing)));
        }
        if call.is_late(now) {
            let late = Error::new(TimeLimit::Total, Phase::Queue, Sent::Nothing);
            return self.end_call(key, Err(late));
        }
        let reactor = &mut self.reactor;
        let close = |conn| {
            reactor.close(conn);
        };
        match self.pool.checkout(now, key, close) {
            Checkout::Reuse(conn) => self.reactor.start(conn, key),
            Checkout::Wait(id) => self.reactor.wait(key, id),
            Checkout::Full(limit) => {
                self.end_call(key, Err(Error::new(limit, Phase::Queue, Sent::Nothing)));
            }
        }
    }

    /// Decides about everything that has happened, until nothing more has.
    fn settle(&mut self) {
        loop {
            while let Some(happened) = self.reactor.next() {
                self.handle(happened);
            }
            if self.pool.wants_open(self.reactor.now()) {
                self.open_connection();
            } else if let Some(idle) = self.pool.in_the_way() {
                self.close(idle);
            } else {
                return;
            }
        }
    }

    fn open_connection(&mut self) {
        let now = self.reactor.now();
        let dial = self.order.dial(self.upstream.addresses().len(), now);
        let slot = self.pool.opened();
        self.try_addresses(slot, dial);
    }

    /// Connects to the first address, from the dial's on, with which that can be begun at all.
    fn try_addresses(&mut self, slot: SlotId, mut dial: Dial) {
        loop {
            let address = &self.upstream.addresses()[dial.address()];
            let error = match self.reactor.open(slot, dial, address) {
                Ok(conn) => return self.pool.set_conn(slot, conn),
                Err(error) => error,
            };
            if !dial.advance() {
                let error = Error::new(error, Phase::Connect, Sent::Nothing)
                    .with_remote(Some(address.clone()));
                return self.open_failed(slot, error);
            }
        }
    }

    fn open_failed(&mut self, slot: SlotId, error: Error) {
        if let Some(call) = self.pool.open_failed(self.reactor.now(), slot) {
            self.end_attempt(call, error);
        }
    }

    fn handle(&mut self, happened: Happened) {
        match happened {
            Happened::Finished {
                conn,
                call,
                reuse,
                keep_alive,
            } => {
                self.release(conn, call, reuse, keep_alive);
                if let Some(call) = call {
                    self.end_call(call, Ok(()));
                }
            }
            Happened::Connected(conn) => {
                if let Some(slot) = self.reactor.slot(conn) {
                    let random = self.reactor.random();
                    let next = self.pool.connected(self.reactor.now(), slot, random);
                    self.put(conn, next);
                }
            }
            Happened::ConnectFailed {
                slot,
                mut dial,
                error,
            } => {
                if dial.advance() {
                    self.try_addresses(slot, dial);
                } else {
                    self.open_failed(slot, error);
                }
            }
            Happened::Failed { slot, call, error } => {
                self.pool.closed(slot);
                self.end_attempt(call, error);
            }
            Happened::Head(call) => self.head_ready(call),
            Happened::BodyReady(call) => self.tell(call),
            Happened::Lost(slot) => self.pool.lost(self.reactor.now(), slot),
            Happened::IdleDue(conn) => {
                if let Some(slot) = self.reactor.slot(conn) {
                    match self.pool.expired(self.reactor.now(), slot) {
                        Ok(()) => self.close(conn),
                        Err(later) => self.reactor.idle(conn, later),
                    }
                }
            }
            Happened::WaitOver(call, limit) => self.wait_over(call, limit),
            Happened::Late { conn, call, limit } => self.late(conn, call, limit),
        }
    }

    /// A connection has done what it was busy with.
    fn release(
        &mut self,
        conn: Key,
        call: Option<Key>,
        reuse: Reuse,
        keep_alive: Option<Duration>,
    ) {
        let Some(slot) = self.reactor.slot(conn) else {
            return;
        };
        match (reuse, call) {
            (Reuse::Keep, _) => {
                let next = self.pool.released(self.reactor.now(), slot, keep_alive);
                self.put(conn, next);
            }
            (Reuse::Close(CloseReason::HandedOver), Some(call)) => {
                self.pool.closed(slot);
                if let Some(stream) = self.reactor.hand_over(conn) {
                    self.handed_over.push((CallId(call), stream));
                }
            }
            (Reuse::Close(_), _) => self.close(conn),
        }
    }

    /// Puts an available connection where the pool says.
    fn put(&mut self, conn: Key, mut next: Next<Key>) {
        let now = self.reactor.now();
        // A call whose time is over, though its timer has not been handled yet, is not begun any more.
        while let Next::Assign(key) = next
            && let Some(slot) = self.reactor.slot(conn)
            && self.reactor.call(key).is_some_and(|call| call.is_late(now))
        {
            let late = Error::new(TimeLimit::Total, Phase::Queue, Sent::Nothing);
            self.end_call(key, Err(late));
            next = self.pool.declined(now, slot);
        }
        match next {
            Next::Assign(call) => self.reactor.start(conn, call),
            Next::Idle(until) => self.reactor.idle(conn, until),
            // The pool has freed its slot already.
            Next::Close => drop(self.reactor.close(conn)),
        }
    }

    fn close(&mut self, conn: Key) {
        if let Some(slot) = self.reactor.close(conn) {
            self.pool.closed(slot);
        }
    }

    // ---- ends of calls

    /// An attempt has failed: again, or the end of the call.
    fn end_attempt(&mut self, key: Key, error: Error) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        call.failures += 1;
        let late = call.is_late(now);
        let failed = FailedAttempt {
            error: &error,
            request: &call.request,
            attempt: call.failures,
            reused: call.marks.reused,
        };
        if late
            || call.head != HeadState::Awaited
            || self.retry.decide(&failed, call.stale_before) == Verdict::GiveUp
        {
            return self.end_call(key, Err(error));
        }
        call.stale_before |= is_stale(&failed);
        call.sent_before = call.sent_before.max(error.sent());
        call.response.clear();
        let waiting = self.pool.requeue(key);
        self.reactor.wait(key, waiting);
    }

    /// A call has waited for a connection for as long as it may.
    fn wait_over(&mut self, key: Key, limit: TimeLimit) {
        let waiting = self.reactor.call(key).map(|call| &call.place);
        if !matches!(waiting, Some(Place::Waiting { .. })) {
            return; // it got a connection, or ended, since the timer came up
        }
        let connecting = self.pool.any_connecting();
        let phase = match connecting {
            None => Phase::Queue,
            Some(_) => Phase::Connect,
        };
        let remote = connecting
            .and_then(|conn| self.reactor.remote(conn))
            .cloned();
        self.detach(key);
        self.end_call(
            key,
            Err(Error::new(limit, phase, Sent::Nothing).with_remote(remote)),
        );
    }

    /// A call on a connection has run out of time.
    fn late(&mut self, conn: Key, key: Key, limit: TimeLimit) {
        let Some(error) = self.reactor.busy_error(conn, limit.into()) else {
            return;
        };
        let slot = self.reactor.slot(conn);
        match (self.late, slot) {
            (LatePolicy::Drain { up_to }, Some(slot))
                if self.reactor.drain(conn, later(self.reactor.now(), up_to)) =>
            {
                self.pool.draining(slot);
            }
            _ => self.close(conn),
        }
        self.end_attempt(key, error);
    }

    /// Takes a call away from the queue, or from its connection, which is closed.
    fn detach(&mut self, key: Key) {
        match self.reactor.call(key).map(|call| &call.place) {
            Some(&Place::Waiting { id, .. }) => {
                if let Some(surplus) = self.pool.give_up(id) {
                    self.close(surplus);
                }
            }
            Some(&Place::OnConn(conn)) => self.close(conn),
            Some(Place::New | Place::Ended(_)) | None => {}
        }
    }

    /// The head of a streamed response is there: the call completes, its body goes on.
    fn head_ready(&mut self, key: Key) {
        if let Some(call) = self.reactor.call(key)
            && call.head == HeadState::Awaited
        {
            call.head = HeadState::Ready;
            self.done.push_back(key);
        }
    }

    /// The end of a call, or of its streamed body.
    fn end_call(&mut self, key: Key, outcome: Result<(), Error>) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        call.place = Place::Ended(outcome.map_err(|error| error.after(call.sent_before)));
        call.marks.ended = Some(now);
        if call.head == HeadState::Awaited {
            self.done.push_back(key);
        } else {
            self.tell(key);
        }
    }

    /// A streamed body has something new. The caller hears of it once it has the head.
    fn tell(&mut self, key: Key) {
        if let Some(call) = self.reactor.call(key)
            && call.head == HeadState::Given
            && !std::mem::replace(&mut call.told, true)
        {
            self.readable.push_back(CallId(key));
        }
    }

    /// Takes out what a call in `done` has for the caller.
    fn complete(&mut self, key: Key) -> Option<Completion> {
        if self.reactor.call(key)?.head == HeadState::Ready {
            return self.complete_head(key);
        }
        let call = self.reactor.remove_call(key)?;
        let Place::Ended(outcome) = call.place else {
            return None;
        };
        Some(Completion {
            id: CallId(key),
            tag: call.tag,
            outcome,
            request: call.request,
            response: call.response,
            report: Report::new(call.marks, call.attempts, self.reactor.now()),
            body: None,
        })
    }

    fn complete_head(&mut self, key: Key) -> Option<Completion> {
        let now = self.reactor.now();
        let mut response = self.reactor.take_spare();
        let call = self.reactor.call(key)?;
        call.head = HeadState::Given;
        // The caller gets the head; what has come of the body stays here, with a copy of the rest to go on with.
        response.continue_from(&mut call.response);
        std::mem::swap(response.body_buffer(), call.response.body_buffer());
        std::mem::swap(&mut response, &mut call.response);
        let done = Completion {
            id: CallId(key),
            tag: call.tag,
            outcome: Ok(()),
            request: std::mem::take(&mut call.request),
            response,
            report: Report::new(call.marks.clone(), call.attempts, now),
            body: Some(CallId(key)),
        };
        if self.has_body_news(CallId(key)) {
            self.tell(key);
        }
        Some(done)
    }

    /// Nobody will read this body any more.
    fn forget_body(&mut self, id: CallId) -> Option<ActiveCall> {
        let call = self.reactor.remove_call(id.0)?;
        if call.told {
            self.readable.retain(|readable| *readable != id);
        }
        Some(call)
    }
}

impl<N: Net> Drop for HostClient<N> {
    fn drop(&mut self) {
        for (_, stream) in self.handed_over.drain(..) {
            self.reactor.close_stream(stream);
        }
    }
}

/// How long a turn may wait for events.
#[derive(Clone, Copy)]
enum TurnLimit {
    /// From the beginning of the turn.
    For(Duration),
    Until(Instant),
}

/// The body of a response, read while it comes. Dropping it before its end closes the connection.
///
/// ```
/// # fn example(client: &mut courser::HostClient) -> Result<(), Box<dyn std::error::Error>> {
/// let (mut request, mut response) = (courser::Request::get("/large.iso"), courser::Response::new());
/// let mut body = client.open(&mut request, &mut response)?;
/// std::io::copy(&mut body, &mut std::io::sink())?;
/// let report = body.finish()?;
/// println!("{:?}", report.timings().total);
/// # Ok(()) }
/// ```
pub struct Body<'a, N: Net = OsNet> {
    client: &'a mut HostClient<N>,
    id: CallId,
    end: Option<(Report, Response)>,
}

impl<N: Net> Body<'_, N> {
    /// Waits for bytes and takes them; 0 is the end (or an empty `buf`).
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn read_some(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        while self.end.is_none() && !buf.is_empty() {
            match self.client.read_body(self.id, buf)? {
                Read::Data(n) => return Ok(n),
                Read::Pending => {
                    let id = self.id;
                    let turned = self.client.turn(None, |client| client.has_body_news(id));
                    turned.map_err(|error| Error::new(error, Phase::Body, Sent::Partial))?;
                }
                Read::End { report, trailers } => self.end = Some((report, trailers)),
            }
        }
        Ok(0)
    }

    /// Reads what is left, drops it, and tells how the call went.
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn finish(mut self) -> Result<Report, Error> {
        let mut rest = [0; 8192];
        loop {
            if let Some((report, _)) = self.end.take() {
                return Ok(report);
            }
            self.read_some(&mut rest)?;
        }
    }

    /// The trailers, once the end has been read.
    pub fn trailers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.end
            .iter()
            .flat_map(|(_, response)| response.trailers())
    }

    /// The call's name, for [`HostClient::take_stream`].
    pub fn id(&self) -> CallId {
        self.id
    }
}

impl<N: Net> io::Read for Body<'_, N> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_some(buf)?)
    }
}

impl<N: Net> Drop for Body<'_, N> {
    fn drop(&mut self) {
        self.client.cancel(self.id);
    }
}
