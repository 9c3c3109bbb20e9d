//! The event loop: connections, timers and calls in flight, over any [`Net`].
//!
//! It moves bytes and time between the network, the exchanges and the policies, and decides nothing: what needs a
//! decision becomes a [`Happened`], which the client above takes with [`Reactor::next`] and answers with a command
//! (`start`, `idle`, `close`, ...). A reactor belongs to one thread; there is no lock and no atomic on the path of a
//! request.
//!
//! Reads go to one buffer of the reactor, and from there into the response of the call; a large body of known length
//! goes into the response directly. Idle connections hold no buffer and stay watched.

mod slab;
mod timers;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

pub(crate) use slab::{Key, Slab};

use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent, TimeLimit};
use crate::net::{Address, Event, Net, SocketOptions, Token, Waker};
use crate::policy::{Dial, SlotId, Timeouts, WaitId, later};
use crate::proto::{BodyMode, CloseReason, Exchange, Limits, Request, Response, Reuse, SendStep};
pub(crate) use timers::Armed;
use timers::{Owner, Timers};

pub(crate) struct Reactor<N: Net> {
    net: N,
    conns: Slab<Conn<N::Stream>>,
    calls: Slab<ActiveCall>,
    timers: Timers,
    events: Vec<Event>,
    happened: VecDeque<Happened>,
    /// Connections that have more to read than one turn allows.
    unread: Vec<Key>,
    buffer: Box<[u8]>,
    /// For late answers of calls whose buffers went back to the caller, and for streamed bodies.
    spare: Vec<Response>,
    now: Instant,
    /// No wait that begins now on a connection ends earlier by a limit of its phase.
    soonest: Instant,
    polled_at: Instant,
    settings: Settings,
}

/// What holds for every call of a reactor.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) socket: SocketOptions,
    pub(crate) stream_buffer: usize,
}

/// A call from submission to completion.
pub(crate) struct ActiveCall {
    pub(crate) request: Request,
    pub(crate) response: Response,
    pub(crate) tag: u64,
    pub(crate) mode: BodyMode,
    pub(crate) deadline: Option<Instant>,
    pub(crate) place: Place,
    pub(crate) marks: Marks,
    /// How often its request was begun to be sent.
    pub(crate) attempts: u32,
    /// How many attempts have failed, those that found no connection included.
    pub(crate) failures: u32,
    /// An earlier attempt met a connection that had died.
    pub(crate) stale_before: bool,
    /// How far earlier attempts got.
    pub(crate) sent_before: Sent,
    pub(crate) head: HeadState,
    /// Of a streamed body: how much of the response's body the consumer has taken.
    pub(crate) taken: usize,
    /// Of a streamed body: the consumer has been told that there is something to take.
    pub(crate) told: bool,
    pub(crate) armed: Armed,
}

impl ActiveCall {
    /// Whether its deadline has passed.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// Where a call is.
#[derive(Debug)]
pub(crate) enum Place {
    /// Submitted, and not yet taken up.
    New,
    Waiting {
        id: WaitId,
        since: Instant,
    },
    OnConn(Key),
    /// It is over; the caller may not have taken the completion, or all of a streamed body.
    Ended(Result<(), Error>),
}

/// The head of a streamed response. For a buffered call, always `Awaited`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HeadState {
    Awaited,
    /// It is there, and the caller has not taken it.
    Ready,
    Given,
}

/// When a call passed its stations, and on which connection.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    pub(crate) begun: Instant,
    pub(crate) assigned: Option<Instant>,
    pub(crate) sent: Option<Instant>,
    pub(crate) first_byte: Option<Instant>,
    pub(crate) ended: Option<Instant>,
    pub(crate) connect: Option<Duration>,
    pub(crate) reused: bool,
    pub(crate) remote: Option<Address>,
    pub(crate) local: Option<Address>,
}

impl Marks {
    pub(crate) fn new(begun: Instant) -> Self {
        Self {
            begun,
            assigned: None,
            sent: None,
            first_byte: None,
            ended: None,
            connect: None,
            reused: false,
            remote: None,
            local: None,
        }
    }
}

struct Conn<S> {
    stream: S,
    slot: SlotId,
    state: State,
    remote: Address,
    local: Option<Address>,
    /// How long the opening took.
    connect: Duration,
    /// It has been idle or has served before, so that it may have died unseen.
    kept: bool,
    /// When the present wait began or made progress last.
    since: Instant,
    /// Of a held-back body: when to send it unasked.
    continue_at: Option<Instant>,
    /// Of the call that it serves.
    deadline: Option<Instant>,
    /// Reading has stopped although there may be more: the consumer is behind, or the turn was long enough.
    unread: Option<Unread>,
    /// The peer has closed its side, or the connection has failed.
    closed: bool,
    write_error: Option<io::Error>,
    armed: Armed,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unread {
    /// Until the consumer has taken some.
    Consumer,
    /// Until the next turn.
    Turn,
}

enum State {
    Connecting(Dial, Option<Instant>),
    /// Between two states, until the client has decided.
    Settled,
    Idle(Instant),
    Busy(Exchange, Key),
    Draining(Exchange, Response, Instant),
}

/// Something that the client must decide about.
#[derive(Debug)]
pub(crate) enum Happened {
    /// A connection is up.
    Connected(Key),
    /// An address was not reached; the connection is gone.
    ConnectFailed {
        slot: SlotId,
        dial: Dial,
        error: Error,
    },
    /// A response is complete: a call's, or the late one that the connection was draining. `keep_alive` is the
    /// server's own limit on idleness.
    Finished {
        conn: Key,
        call: Option<Key>,
        reuse: Reuse,
        keep_alive: Option<Duration>,
    },
    /// A call failed; its connection is gone.
    Failed {
        slot: SlotId,
        call: Key,
        error: Error,
    },
    /// The head of a streamed response is there.
    Head(Key),
    /// A consumer that had taken everything can go on.
    BodyReady(Key),
    /// An idle or draining connection is gone.
    Lost(SlotId),
    /// A connection has been idle for as long as it was told.
    IdleDue(Key),
    /// A call has waited for as long as it may.
    WaitOver(Key, TimeLimit),
    /// A call on a connection has run out of time.
    Late {
        conn: Key,
        call: Key,
        limit: TimeLimit,
    },
}

impl<N: Net> Reactor<N> {
    pub(crate) fn new(net: N, settings: Settings) -> Self {
        let now = net.now();
        Self {
            net,
            conns: Slab::new(),
            calls: Slab::new(),
            timers: Timers::default(),
            events: Vec::new(),
            happened: VecDeque::new(),
            unread: Vec::new(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            spare: Vec::new(),
            now,
            soonest: now,
            polled_at: now,
            settings,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Reads the clock, for a new turn; tells whether so much time has passed since the last poll that idle
    /// connections may have died unseen.
    pub(crate) fn begin_turn(&mut self) -> bool {
        self.read_clock();
        self.now.saturating_duration_since(self.polled_at) > STALE_AFTER
    }

    fn read_clock(&mut self) {
        self.now = self.net.now();
        let shortest = self.settings.timeouts.shortest();
        let soonest = shortest.and_then(|limit| self.now.checked_add(limit));
        // Without limits, a day: a timer that comes up once a day for nothing costs nothing.
        self.soonest = soonest.unwrap_or(self.now + Duration::from_secs(86_400));
    }

    pub(crate) fn waker(&mut self) -> io::Result<Waker> {
        self.net.waker()
    }

    pub(crate) fn random(&mut self) -> u64 {
        self.net.random()
    }

    pub(crate) fn next(&mut self) -> Option<Happened> {
        self.happened.pop_front()
    }

    // ---- calls

    pub(crate) fn insert_call(&mut self, call: ActiveCall) -> Key {
        self.calls.insert(call)
    }

    pub(crate) fn call(&mut self, call: Key) -> Option<&mut ActiveCall> {
        self.calls.get_mut(call)
    }

    pub(crate) fn call_ref(&self, call: Key) -> Option<&ActiveCall> {
        self.calls.get(call)
    }

    pub(crate) fn remove_call(&mut self, call: Key) -> Option<ActiveCall> {
        self.calls.remove(call)
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// A call waits for a connection from now on.
    pub(crate) fn wait(&mut self, key: Key, id: WaitId) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        call.place = Place::Waiting {
            id,
            since: self.now,
        };
        call.marks.reused = false;
        let due = self
            .settings
            .timeouts
            .due(Phase::Queue, self.now, call.deadline);
        if let Some((at, _)) = due {
            self.timers.arm(Owner::Call(key), &mut call.armed, at);
        }
    }

    pub(crate) fn take_spare(&mut self) -> Response {
        self.spare.pop().unwrap_or_default()
    }

    pub(crate) fn put_spare(&mut self, mut response: Response) {
        if self.spare.len() < MOST_SPARE {
            response.clear();
            self.spare.push(response);
        }
    }

    // ---- connections

    /// Begins to connect to an address.
    pub(crate) fn open(&mut self, slot: SlotId, dial: Dial, address: &Address) -> io::Result<Key> {
        let key = self.conns.next_key();
        let token = Token(key.to_bits() as usize);
        let stream = self.net.connect(token, address, &self.settings.socket)?;
        let due = dial.due(self.now, self.settings.timeouts.connect);
        let mut armed = Armed::default();
        if let Some(due) = due {
            self.timers.arm(Owner::Conn(key), &mut armed, due);
        }
        self.conns.insert(Conn {
            stream,
            slot,
            state: State::Connecting(dial, due),
            remote: address.clone(),
            local: None,
            connect: Duration::ZERO,
            kept: false,
            since: self.now,
            continue_at: None,
            deadline: None,
            unread: None,
            closed: false,
            write_error: None,
            armed,
        });
        Ok(key)
    }

    pub(crate) fn remote(&self, conn: Key) -> Option<&Address> {
        self.conns.get(conn).map(|conn| &conn.remote)
    }

    pub(crate) fn slot(&self, conn: Key) -> Option<SlotId> {
        self.conns.get(conn).map(|conn| conn.slot)
    }

    /// Gives a connection to a call and begins to send the request.
    pub(crate) fn start(&mut self, conn_key: Key, call_key: Key) {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get_mut(call_key))
        else {
            return;
        };
        call.place = Place::OnConn(conn_key);
        call.attempts += 1;
        let marks = &mut call.marks;
        marks.assigned = Some(self.now);
        marks.reused = conn.kept;
        marks.connect = (!conn.kept).then_some(conn.connect);
        marks.remote = Some(conn.remote.clone());
        marks.local = conn.local.clone();
        conn.kept = true;
        conn.since = self.now;
        conn.continue_at = None;
        conn.deadline = call.deadline;
        conn.state = State::Busy(Exchange::new(&call.request, call.mode), call_key);
        self.drive_send(conn_key);
        self.arm_conn(conn_key);
    }

    /// Leaves a connection idle until then, watched.
    pub(crate) fn idle(&mut self, key: Key, until: Instant) {
        if let Some(conn) = self.conns.get_mut(key) {
            conn.state = State::Idle(until);
            conn.kept = true;
            self.timers.arm(Owner::Conn(key), &mut conn.armed, until);
        }
    }

    /// Takes the call off a connection that goes on to await its answer and drops it; false if it cannot, because
    /// part of the request is unsent.
    pub(crate) fn drain(&mut self, key: Key, until: Instant) -> bool {
        let Some(conn) = self.conns.get_mut(key) else {
            return false;
        };
        if conn.unread == Some(Unread::Consumer) {
            return false;
        }
        match std::mem::replace(&mut conn.state, State::Settled) {
            State::Busy(mut exchange, call) if !exchange.is_sending() => {
                exchange.discard();
                let mut response = self.spare.pop().unwrap_or_default();
                if let Some(call) = self.calls.get_mut(call) {
                    response.continue_from(&mut call.response);
                }
                conn.state = State::Draining(exchange, response, until);
                self.timers.arm(Owner::Conn(key), &mut conn.armed, until);
                true
            }
            other => {
                conn.state = other;
                false
            }
        }
    }

    pub(crate) fn close(&mut self, key: Key) -> Option<SlotId> {
        let conn = self.conns.remove(key)?;
        self.net.close(conn.stream);
        if let State::Draining(_, response, _) = conn.state {
            self.put_spare(response);
        }
        Some(conn.slot)
    }

    /// The error of the call on that connection, ended for that cause where it is.
    pub(crate) fn busy_error(&self, key: Key, kind: ErrorKind) -> Option<Error> {
        let conn = self.conns.get(key)?;
        match &conn.state {
            State::Busy(exchange, _) => Some(
                Error::new(kind, exchange.phase(), exchange.sent())
                    .with_remote(Some(conn.remote.clone())),
            ),
            _ => None,
        }
    }

    /// Takes a connection out of the engine, for another protocol.
    pub(crate) fn hand_over(&mut self, key: Key) -> Option<N::Stream> {
        self.conns.remove(key).map(|conn| conn.stream)
    }

    /// A body's source that had nothing has something again.
    pub(crate) fn resume_send(&mut self, call: Key) {
        if let Some(&Place::OnConn(conn)) = self.calls.get(call).map(|call| &call.place) {
            self.drive_send(conn);
            self.arm_conn(conn);
        }
    }

    /// The consumer of a streamed body has taken what there was: reading goes on.
    pub(crate) fn resume_read(&mut self, call: Key) {
        let Some(&Place::OnConn(key)) = self.calls.get(call).map(|call| &call.place) else {
            return;
        };
        if let Some(conn) = self.conns.get_mut(key)
            && conn.unread == Some(Unread::Consumer)
        {
            conn.unread = None;
            conn.since = self.now;
            self.drive_read(key);
        }
    }

    pub(crate) fn close_stream(&mut self, stream: N::Stream) {
        self.net.close(stream);
    }

    // ---- the turn

    /// Waits for events until `until` at the latest, and for no longer than the next timer; then handles all events
    /// and timers.
    pub(crate) fn poll(&mut self, until: Option<Instant>) -> io::Result<()> {
        let mut until = [until, self.timers.next()].into_iter().flatten().min();
        if !self.unread.is_empty() {
            until = Some(self.now);
        }
        let timeout = until.map(|at| at.saturating_duration_since(self.now));
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let unread = std::mem::take(&mut self.unread);
        let polled = self.net.poll(&mut events, timeout);
        self.read_clock();
        self.polled_at = self.now;
        for event in &events {
            self.handle_event(event);
        }
        self.events = events;
        self.read_on(unread);
        self.handle_timers();
        polled
    }

    fn handle_event(&mut self, event: &Event) {
        let key = Key::from_bits(event.token.0 as u64);
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        conn.closed |= event.closed;
        match &conn.state {
            State::Busy(exchange, _) => {
                if event.writable && exchange.is_sending() {
                    self.drive_send(key);
                    self.arm_conn(key);
                }
                if event.readable {
                    self.drive_read(key);
                }
            }
            State::Draining(..) if event.readable => self.drive_read(key),
            State::Connecting(..) => self.check_connected(key, event.readable),
            State::Idle(_) if event.readable => self.check_idle(key),
            State::Draining(..) | State::Idle(_) | State::Settled => {}
        }
    }

    fn check_connected(&mut self, key: Key, readable: bool) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match self.net.connected(&conn.stream) {
            Ok(false) => {}
            Ok(true) => {
                if let State::Connecting(dial, _) = &conn.state {
                    conn.connect = self.now.saturating_duration_since(dial.began());
                }
                conn.local = self.net.local_address(&conn.stream);
                // This event is over: nothing else will tell of what came along with the connection.
                if readable {
                    match self.net.read(&mut conn.stream, &mut self.buffer) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Ok(1..) => return self.connect_failed(key, PeerFault::Unsolicited.into()),
                        Ok(0) | Err(_) => {
                            conn.unread = Some(Unread::Turn);
                            self.unread.push(key);
                        }
                    }
                }
                conn.state = State::Settled;
                self.happened.push_back(Happened::Connected(key));
            }
            Err(error) => self.connect_failed(key, error.into()),
        }
    }

    fn connect_failed(&mut self, key: Key, kind: ErrorKind) {
        let Some(conn) = self.conns.remove(key) else {
            return;
        };
        self.net.close(conn.stream);
        if let State::Connecting(dial, _) = conn.state {
            self.happened.push_back(Happened::ConnectFailed {
                slot: conn.slot,
                dial,
                error: Error::new(kind, Phase::Connect, Sent::Nothing)
                    .with_remote(Some(conn.remote)),
            });
        }
    }

    /// Any byte, the end of the stream or an error on an idle connection ends it.
    fn check_idle(&mut self, key: Key) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match self.net.read(&mut conn.stream, &mut self.buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => {
                if let Some(slot) = self.close(key) {
                    self.happened.push_back(Happened::Lost(slot));
                }
            }
        }
    }

    fn drive_send(&mut self, key: Key) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let State::Busy(exchange, call_key) = &mut conn.state else {
            return;
        };
        let call_key = *call_key;
        let Some(call) = self.calls.get_mut(call_key) else {
            return;
        };
        loop {
            let parts = match exchange.poll_send(&mut call.request) {
                Ok(SendStep::Write(parts)) => parts,
                Ok(SendStep::AwaitContinue(wait)) => {
                    conn.continue_at.get_or_insert(later(self.now, wait));
                    return;
                }
                Ok(SendStep::AwaitSource) => return,
                Ok(SendStep::Done) => {
                    call.marks.sent = Some(self.now);
                    conn.since = self.now;
                    return;
                }
                Err(misuse) => return self.fail(key, misuse.into()),
            };
            let length = parts[0].len() + parts[1].len();
            let slices = [IoSlice::new(parts[0]), IoSlice::new(parts[1])];
            let used = if parts[1].is_empty() { 1 } else { 2 };
            match self.net.write(&mut conn.stream, &slices[..used]) {
                Ok(n) => {
                    exchange.handle_sent(n);
                    conn.since = self.now;
                    if n < length {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // The response may be there already: a server that refuses a body answers and closes.
                    conn.write_error = Some(error);
                    return self.drive_read(key);
                }
            }
        }
    }

    /// Reads until there is nothing more, the response is complete, or it is somebody else's turn.
    fn drive_read(&mut self, key: Key) {
        for _ in 0..READS_PER_TURN {
            match self.read_once(key) {
                Ok(Progress::More) => {}
                Ok(Progress::Drained) => {
                    self.check_write_error(key);
                    return self.arm_conn(key);
                }
                Ok(Progress::Stop) => return,
                Err(kind) => return self.fail(key, kind),
            }
        }
        if let Some(conn) = self.conns.get_mut(key)
            && conn.unread.is_none()
        {
            conn.unread = Some(Unread::Turn);
            self.unread.push(key);
            self.arm_conn(key);
        }
    }

    fn read_once(&mut self, key: Key) -> Result<Progress, ErrorKind> {
        let Some(conn) = self.conns.get_mut(key) else {
            return Ok(Progress::Stop);
        };
        if conn.unread == Some(Unread::Consumer) {
            return Ok(Progress::Stop);
        }
        let (exchange, mut call, response) = match &mut conn.state {
            State::Busy(exchange, call_key) => match self.calls.get_mut(*call_key) {
                Some(call) => (exchange, Some(&mut call.marks), &mut call.response),
                None => return Ok(Progress::Stop),
            },
            State::Draining(exchange, response, _) => (exchange, None, response),
            State::Connecting(..) | State::Settled | State::Idle(_) => return Ok(Progress::Stop),
        };
        let had_head = exchange.has_head();
        let (read, room) = match exchange.body_left() {
            Some(left) if left >= DIRECT_READ => {
                let body = response.body_buffer();
                let room = left.min(body.len().clamp(READ_BUFFER, MOST_DIRECT) as u64) as usize;
                // One byte more: a body that ends the input then leaves room, which proves that nothing follows it.
                body.reserve_exact(room + 1);
                let room = body.capacity() - body.len();
                let read = self.net.read_append(&mut conn.stream, body);
                if let Ok(n @ 1..) = read {
                    exchange.handle_body_appended(n, response);
                }
                (read, room)
            }
            _ => {
                let read = self.net.read(&mut conn.stream, &mut self.buffer);
                if let Ok(n @ 1..) = read {
                    if let Some(marks) = &mut call {
                        marks.first_byte.get_or_insert(self.now);
                    }
                    let input = &self.buffer[..n];
                    let used = exchange.handle_read(input, response, &self.settings.limits)?;
                    if exchange.done() == Some(Reuse::Close(CloseReason::HandedOver)) {
                        response.body_buffer().extend_from_slice(&input[used..]);
                    }
                }
                (read, self.buffer.len())
            }
        };
        let n = match read {
            Ok(0) => {
                // The system tells of a reset once, and the write has heard it: this end proves nothing.
                if let Some(error) = conn.write_error.take() {
                    return Err(error.into());
                }
                exchange.handle_eof()?;
                0
            }
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Progress::Drained);
            }
            Err(error) => return Err(error.into()),
        };
        conn.since = self.now;
        let closed = conn.closed;
        if let Some(reuse) = exchange.done() {
            let reuse = match reuse {
                Reuse::Keep if n == room && self.has_more(key) => {
                    Reuse::Close(CloseReason::Surplus)
                }
                Reuse::Keep if closed => Reuse::Close(CloseReason::PeerClosed),
                reuse => reuse,
            };
            self.finish(key, had_head, reuse);
            return Ok(Progress::Stop);
        }
        if conn.continue_at.is_some() && !exchange.awaits_continue() {
            conn.continue_at = None;
            self.drive_send(key);
        }
        if self.must_pause(key, had_head) {
            return Ok(Progress::Stop);
        }
        // After a read that left room, nothing is waiting: what comes now is a new event.
        let drained = n < room && !closed;
        Ok(if drained {
            Progress::Drained
        } else {
            Progress::More
        })
    }

    /// Whether something follows a response that filled the last read: its event is over, so only a read can tell.
    fn has_more(&mut self, key: Key) -> bool {
        self.conns.get_mut(key).is_some_and(|conn| {
            let read = self.net.read(&mut conn.stream, &mut self.buffer);
            !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
        })
    }

    /// The response is complete.
    fn finish(&mut self, key: Key, had_head: bool, reuse: Reuse) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let (exchange, call) = match &mut conn.state {
            State::Busy(exchange, call) => (exchange, Some(*call)),
            State::Draining(exchange, _, _) => (exchange, None),
            State::Connecting(..) | State::Settled | State::Idle(_) => return,
        };
        if let Some(call) = call
            && !had_head
            && exchange.mode() == BodyMode::Stream
        {
            self.happened.push_back(Happened::Head(call));
        }
        self.happened.push_back(Happened::Finished {
            conn: key,
            call,
            reuse,
            keep_alive: exchange.keep_alive_timeout(),
        });
        if call.is_some() {
            conn.state = State::Settled;
        } else if let State::Draining(_, response, _) =
            std::mem::replace(&mut conn.state, State::Settled)
        {
            self.put_spare(response);
        }
    }

    /// Tells the consumer of a streamed body what there is; true if reading must pause until it has taken some.
    fn must_pause(&mut self, key: Key, had_head: bool) -> bool {
        let Some(conn) = self.conns.get_mut(key) else {
            return true;
        };
        let State::Busy(exchange, call_key) = &mut conn.state else {
            return false;
        };
        let call_key = *call_key;
        let Some(call) = self.calls.get(call_key) else {
            return true;
        };
        if call.mode != BodyMode::Stream || !exchange.has_head() {
            return false;
        }
        exchange.stop_sending();
        let waiting = call.response.body().len() - call.taken;
        let pause = waiting >= self.settings.stream_buffer;
        if pause {
            conn.unread = Some(Unread::Consumer);
        }
        if !had_head {
            self.happened.push_back(Happened::Head(call_key));
        } else if !call.told {
            self.happened.push_back(Happened::BodyReady(call_key));
        }
        pause
    }

    /// A write had failed, and no complete response was there to explain it.
    fn check_write_error(&mut self, key: Key) {
        if let Some(conn) = self.conns.get_mut(key)
            && let Some(error) = conn.write_error.take()
        {
            self.fail(key, error.into());
        }
    }

    fn fail(&mut self, key: Key, kind: ErrorKind) {
        let Some(mut conn) = self.conns.remove(key) else {
            return;
        };
        self.net.close(conn.stream);
        match conn.state {
            State::Busy(exchange, call) => {
                // The head counts, whether or not the fault came in the same read.
                if exchange.has_head() && exchange.mode() == BodyMode::Stream {
                    self.happened.push_back(Happened::Head(call));
                }
                // A write error is the cause of the end that followed it.
                let kind = match (conn.write_error.take(), kind) {
                    (Some(error), ErrorKind::Io(_) | ErrorKind::Peer(PeerFault::Empty)) => {
                        error.into()
                    }
                    (_, kind) => kind,
                };
                let error = Error::new(kind, exchange.phase(), exchange.sent())
                    .with_remote(Some(conn.remote));
                self.happened.push_back(Happened::Failed {
                    slot: conn.slot,
                    call,
                    error,
                });
            }
            State::Draining(_, response, _) => {
                self.put_spare(response);
                self.happened.push_back(Happened::Lost(conn.slot));
            }
            State::Connecting(..) | State::Settled | State::Idle(_) => {
                self.happened.push_back(Happened::Lost(conn.slot));
            }
        }
    }

    /// Goes on with connections that had used up their part of the last turn.
    fn read_on(&mut self, mut keys: Vec<Key>) {
        for key in keys.drain(..) {
            if let Some(conn) = self.conns.get_mut(key)
                && conn.unread == Some(Unread::Turn)
            {
                conn.unread = None;
                match conn.state {
                    State::Idle(_) => self.check_idle(key),
                    _ => self.drive_read(key),
                }
            }
        }
        keys.append(&mut self.unread);
        self.unread = keys;
    }

    // ---- time

    /// When the present wait of a connection ends, and by which limit.
    fn conn_due(&self, conn: &Conn<N::Stream>) -> Option<(Instant, Option<TimeLimit>)> {
        match &conn.state {
            State::Connecting(_, due) => due.map(|at| (at, Some(TimeLimit::Connect))),
            State::Idle(until) | State::Draining(_, _, until) => Some((*until, None)),
            State::Settled => None,
            State::Busy(exchange, _) => {
                let deadline = conn.deadline;
                let timed = match (conn.unread, conn.continue_at) {
                    // The peer is not to blame for the consumer's pace.
                    (Some(Unread::Consumer), _) => deadline.map(|at| (at, TimeLimit::Total)),
                    _ => self
                        .settings
                        .timeouts
                        .due(exchange.phase(), conn.since, deadline),
                };
                let timed = timed.map(|(at, limit)| (at, Some(limit)));
                let proceed = conn.continue_at.map(|at| (at, None));
                match (timed, proceed) {
                    (Some(timed), Some(proceed)) if proceed.0 < timed.0 => Some(proceed),
                    (timed, proceed) => timed.or(proceed),
                }
            }
        }
    }

    /// Sees to it that a busy connection wakes up in time.
    fn arm_conn(&mut self, key: Key) {
        let Some(conn) = self.conns.get(key) else {
            return;
        };
        let soonest = conn
            .deadline
            .map_or(self.soonest, |at| at.min(self.soonest));
        if conn.armed.is_by(soonest) && conn.continue_at.is_none() {
            return; // nearly always: the last idle time ends before this call's limits
        }
        if let Some((at, _)) = self.conn_due(conn)
            && let Some(conn) = self.conns.get_mut(key)
        {
            self.timers.arm(Owner::Conn(key), &mut conn.armed, at);
        }
    }

    fn handle_timers(&mut self) {
        let owners = self.conns.len() + self.calls.len();
        loop {
            let (conns, calls) = (&self.conns, &self.calls);
            let claim = |owner: Owner| match owner {
                Owner::Conn(key) => conns.get(key).map(|conn| conn.armed),
                Owner::Call(key) => calls.get(key).map(|call| call.armed),
            };
            self.timers.tidy(owners, claim);
            match self.timers.pop(self.now, claim) {
                Some(Owner::Conn(key)) => self.handle_conn_timer(key),
                Some(Owner::Call(key)) => self.handle_call_timer(key),
                None => return,
            }
        }
    }

    fn handle_call_timer(&mut self, key: Key) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        call.armed = Armed::default();
        let Place::Waiting { since, .. } = call.place else {
            return;
        };
        match self
            .settings
            .timeouts
            .due(Phase::Queue, since, call.deadline)
        {
            Some((at, limit)) if at <= self.now => {
                self.happened.push_back(Happened::WaitOver(key, limit));
            }
            Some((at, _)) => self.timers.arm(Owner::Call(key), &mut call.armed, at),
            None => {}
        }
    }

    fn handle_conn_timer(&mut self, key: Key) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        conn.armed = Armed::default();
        let Some((at, limit)) = self.conns.get(key).and_then(|conn| self.conn_due(conn)) else {
            return;
        };
        if at > self.now {
            return self.arm_conn(key);
        }
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match (&mut conn.state, limit) {
            (State::Connecting(..), _) => {
                self.connect_failed(key, TimeLimit::Connect.into());
            }
            (State::Idle(_), _) => self.happened.push_back(Happened::IdleDue(key)),
            (State::Draining(..), _) => self.fail(key, TimeLimit::Total.into()),
            (State::Busy(_, call), Some(limit)) => {
                let call = *call;
                self.happened.push_back(Happened::Late {
                    conn: key,
                    call,
                    limit,
                });
            }
            (State::Busy(exchange, _), None) => {
                exchange.handle_continue_timeout();
                conn.continue_at = None;
                self.drive_send(key);
                self.arm_conn(key);
            }
            (State::Settled, _) => {}
        }
    }
}

impl<N: Net> Drop for Reactor<N> {
    fn drop(&mut self) {
        for conn in self.conns.drain() {
            self.net.close(conn.stream);
        }
    }
}

#[derive(Debug)]
enum Progress {
    /// There may be more to read.
    More,
    /// Nothing more is waiting.
    Drained,
    /// The response is complete, or reading must pause.
    Stop,
}

/// What one read takes at most, but for large bodies. Holds a small answer, and a full socket buffer of most servers.
const READ_BUFFER: usize = 64 * 1024;

/// Bodies with at least this much to come are read into the response directly.
const DIRECT_READ: u64 = 16 * 1024;

/// The most that one direct read makes room for.
const MOST_DIRECT: usize = 1024 * 1024;

/// Reads on one connection before the others have their turn.
const READS_PER_TURN: usize = 16;

/// Spare responses kept for the next late answer or streamed body.
const MOST_SPARE: usize = 16;

/// After so long without a poll, idle connections are looked at before one is used.
const STALE_AFTER: Duration = Duration::from_millis(1);
