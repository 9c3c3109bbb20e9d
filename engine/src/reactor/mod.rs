//! The event loop: connections, timers and calls in flight, over any [`Net`].
//!
//! It moves bytes and time between the network, the exchanges and the policies, and decides nothing: what needs a
//! decision becomes a [`Happened`], which the client above takes with [`Reactor::next`] and answers with a command
//! (`start`, `idle`, `close`, ...). A reactor belongs to one thread; there is no lock and no atomic on the path of a
//! request.
//!
//! Reads go to one buffer of the reactor, and from there into the response of the call; a large body of known length
//! goes into the response directly. Idle connections hold no buffer and stay watched.

mod deadlines;
mod handshake;
mod key;
mod meter;
mod pipeline;
mod read;
mod slab;
mod timers;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use handshake::SetUp;
pub(crate) use handshake::{Said, Step};
pub(crate) use key::{CallKey, ConnKey, HostKey, OpeningKey, of};
pub(crate) use meter::ByteRates;
use meter::{Metered, MeteredStream};
use pipeline::Pipe;
pub(crate) use pipeline::{Batching, GivenUp};
pub(crate) use slab::Slab;

use crate::error::{Error, ErrorKind, Misuse, PeerFault, Phase, Sent, TimeLimit};
use crate::mutation::{self, Mutation};
use crate::net::tls::TlsInfo;
use crate::net::transport::Transport;
use crate::net::{Address, Event, Net, SocketOptions, Token, Waker};
use crate::policy::queue::{Queue, Ticket};
use crate::policy::{Leave, Overrides, SlotId, Timeouts, WaitId, later};
use crate::proto::{BodyMode, Decoder, Exchange, Limits, Request, Response, Reuse, SendStep};
use crate::time::Time;
use timers::Timers;
pub(crate) use timers::{Armed, Owner};

pub(crate) struct Reactor<N: Net> {
    net: Metered<N>,
    conns: Slab<Conn<MeteredStream<N::Stream>>, of::Conn>,
    calls: Slab<ActiveCall, of::Call>,
    timers: Timers,
    events: Vec<Event>,
    happened: VecDeque<Happened>,
    /// Connections that have more to read than one turn allows.
    unread: NextTurn,
    /// Connections that have more to send than one turn allows.
    unsent: NextTurn,
    /// Connections whose requests gather before they go out.
    unflushed: Vec<ConnKey>,
    buffer: Box<[u8]>,
    /// Idle connections of all hosts, the one idle for longest in front, if anybody will ask.
    idle_order: Option<Queue<ConnKey>>,
    /// For late answers of calls whose buffers went back to the caller, and for streamed bodies.
    spare: Vec<Response>,
    /// In place of those that went back to the caller.
    spare_requests: Vec<Request>,
    /// Of streamed bodies: the caller's response is gone when they end.
    #[expect(clippy::vec_box, reason = "a response keeps it in its box")]
    decoders: Vec<Box<Decoder>>,
    now: Time,
    /// No wait that begins now on a connection ends earlier by a limit of its phase.
    soonest: Time,
    polled_at: Time,
    settings: Settings,
}

/// Connections that go on in the next turn.
#[derive(Default)]
struct NextTurn {
    keys: Vec<ConnKey>,
    /// Those of the last turn, emptied: its room is used again.
    spare: Vec<ConnKey>,
}

impl NextTurn {
    fn push(&mut self, key: ConnKey) {
        self.keys.push(key);
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The turn is there: takes those that go on now.
    fn begin(&mut self) -> Vec<ConnKey> {
        std::mem::replace(&mut self.keys, std::mem::take(&mut self.spare))
    }

    fn end(&mut self, mut keys: Vec<ConnKey>) {
        keys.clear();
        self.spare = keys;
    }
}

/// What holds for every call of a reactor.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) socket: SocketOptions,
    pub(crate) stream_buffer: usize,
    /// Whether [`Reactor::oldest_idle`] will be asked for.
    pub(crate) idle_order: bool,
    /// For several calls on a connection at a time.
    pub(crate) batching: Option<Batching>,
    pub(crate) bytes: ByteRates,
}

impl Settings {
    fn drain(&self) -> Duration {
        self.batching
            .map_or(Duration::ZERO, |batching| batching.drain)
    }
}

/// A connection's place: in which pool, and where in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct At {
    pub(crate) host: HostKey,
    pub(crate) slot: SlotId,
}

/// A call from submission to completion.
pub(crate) struct ActiveCall {
    pub(crate) request: Request,
    pub(crate) response: Response,
    pub(crate) tag: u64,
    pub(crate) mode: BodyMode,
    /// Whose pool serves it; `None` before that is known.
    pub(crate) host: Option<HostKey>,
    /// What holds for this call instead of the client's settings.
    pub(crate) overrides: Option<Box<Overrides>>,
    pub(crate) deadline: Option<Time>,
    pub(crate) place: Place,
    /// Once it has ended.
    pub(crate) outcome: Result<(), Error>,
    pub(crate) marks: Marks,
    /// How often its request was begun to be sent.
    pub(crate) attempts: u32,
    /// Which of the calls of its connection it is, if it shares one.
    pub(crate) number: u32,
    /// How many attempts have failed, those that found no connection included.
    pub(crate) failures: u32,
    /// An earlier attempt met a connection that had died.
    pub(crate) stale_before: bool,
    /// What the present attempt was let through with.
    pub(crate) leave: Option<Leave>,
    /// The addresses where it has failed, of those that share the calls: a bit for each.
    pub(crate) tried: u64,
    /// It is nobody's, and asks the address with this number how it is.
    pub(crate) check: Option<u32>,
    /// How far earlier attempts got.
    pub(crate) sent_before: Sent,
    pub(crate) head: HeadState,
    /// The response that is coming is a redirect that will be followed.
    pub(crate) rerouted: bool,
    /// Of a streamed body: how much of the response's body the consumer has taken.
    pub(crate) taken: usize,
    /// Of a streamed body: the consumer has been told that there is something to take.
    pub(crate) told: bool,
    pub(crate) armed: Armed,
}

impl ActiveCall {
    /// A call that nothing has been done for.
    #[inline(always)] // it is made where it stays
    pub(crate) fn new(now: Time, request: Request, response: Response) -> Self {
        Self {
            request,
            response,
            tag: 0,
            mode: BodyMode::Buffer,
            host: None,
            overrides: None,
            deadline: None,
            place: Place::New,
            outcome: Ok(()),
            marks: Marks::new(now),
            attempts: 0,
            number: 0,
            failures: 0,
            stale_before: false,
            leave: None,
            tried: 0,
            check: None,
            sent_before: Sent::Nothing,
            head: HeadState::Awaited,
            rerouted: false,
            taken: 0,
            told: false,
            armed: Armed::default(),
        }
    }

    /// Whether its deadline has passed.
    pub(crate) fn is_late(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    pub(crate) fn end(&mut self, outcome: Result<(), Error>) {
        self.place = Place::Ended;
        self.outcome = outcome;
    }

    /// Whether it is to be sent, for the first time or to where it has been redirected.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.place, Place::New)
    }

    /// Whether it has a limit on the wait for the first byte instead of the client's, as a health check has.
    pub(crate) fn has_own_first_byte(&self) -> bool {
        let own = self.overrides.as_deref();
        let own = own.and_then(|own| own.timeouts.as_ref());
        self.check.is_some() || own.is_some_and(|own| own.first_byte.is_some())
    }

    fn timeouts<'a>(&'a self, settings: &'a Settings) -> &'a Timeouts {
        let own = self.overrides.as_deref();
        own.and_then(|own| own.timeouts.as_ref())
            .unwrap_or(&settings.timeouts)
    }
}

/// Where a call is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Submitted, and not yet taken up.
    New,
    Waiting {
        id: WaitId,
        since: Time,
    },
    OnConn(ConnKey),
    /// Until its next attempt; that takes a new connection if it is `fresh`.
    Pausing {
        until: Time,
        fresh: bool,
    },
    /// It is over; the caller may not have taken the completion, or all of a streamed body.
    Ended,
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
    pub(crate) begun: Time,
    hops: Hops,
    pub(crate) assigned: Option<Time>,
    pub(crate) sent: Option<Time>,
    /// Its answer was the next one on its connection; `None` if it was so from the beginning.
    pub(crate) in_front: Option<Time>,
    pub(crate) first_byte: Option<Time>,
    pub(crate) ended: Option<Time>,
    /// How the connection was opened; `None` if it was open before.
    pub(crate) opened: Option<Box<Opened>>,
    /// Bytes of HTTP sent and received, all attempts together.
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) reused: bool,
    /// It waited for something else than a connection.
    pub(crate) held: bool,
    /// Of the connection; `None` if there was none.
    pub(crate) ends: Option<Arc<Ends>>,
}

/// The addresses of a connection, which its calls share: they would be a third of what a call moves.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) remote: Address,
    pub(crate) local: Option<Address>,
}

impl Marks {
    pub(crate) fn new(begun: Time) -> Self {
        Self {
            begun,
            hops: Hops::default(),
            assigned: None,
            sent: None,
            in_front: None,
            first_byte: None,
            ended: None,
            opened: None,
            bytes_out: 0,
            bytes_in: 0,
            reused: false,
            held: false,
            ends: None,
        }
    }

    /// The redirects that were followed.
    pub(crate) fn hops(&self) -> &[Hop] {
        self.hops.0.as_deref().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn add_hop(&mut self, hop: Hop) {
        self.hops.0.get_or_insert_default().push(hop);
    }

    /// The call has a connection.
    #[inline]
    fn begin_attempt(&mut self, now: Time, reused: bool, ends: &Arc<Ends>) {
        self.assigned = Some(now);
        self.sent = None;
        self.in_front = None;
        self.first_byte = None;
        self.reused = reused;
        self.ends = Some(Arc::clone(ends));
    }
}

/// Most calls follow none: eight bytes of a call, which moves three times, instead of 24.
#[derive(Clone, Debug, Default)]
#[expect(clippy::box_collection, reason = "for the sake of its size")]
struct Hops(Option<Box<Vec<Hop>>>);

/// A redirect that was followed.
///
/// ```
/// # fn example(report: &courser::Report) {
/// for hop in report.redirects() {
///     println!("{} to {}", hop.status, hop.url);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Hop {
    /// The status of the response that redirected.
    pub status: u16,
    /// Where to.
    pub url: Box<str>,
}

/// How long the steps of an opening took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    /// Looking up the name; `None` if there was none to look up.
    pub(crate) resolve: Option<Duration>,
    /// Until an address was reached.
    pub(crate) connect: Duration,
    /// The handshakes with proxies.
    pub(crate) proxy: Option<Duration>,
    /// The TLS handshake with the server.
    pub(crate) tls: Option<Duration>,
    /// What that has agreed on.
    pub(crate) tls_info: Option<TlsInfo>,
    /// The status and the head of the proxy's answer to CONNECT.
    pub(crate) proxy_answer: Option<(u16, Box<[u8]>)>,
}

struct Conn<S> {
    stream: Transport<S>,
    at: At,
    state: State,
    ends: Arc<Ends>,
    /// For the first call.
    opened: Option<Box<Opened>>,
    /// Its place among the idle connections of all hosts.
    idle_ticket: Option<Ticket>,
    /// It has been idle or has served before, so that it may have died unseen.
    kept: bool,
    /// When the present wait began or made progress last.
    since: Time,
    /// Of a held-back body: when to send it unasked.
    continue_at: Option<Time>,
    /// Of the call that it serves.
    deadline: Option<Time>,
    /// That call, or its host, may have limits of its own.
    hurried: bool,
    /// The longest wait for a first byte, by what is usual for the host.
    patience: Option<Duration>,
    /// Reading has stopped although there may be more: the consumer is behind, or the turn was long enough.
    unread: Option<Unread>,
    /// When it is up, handshakes follow, and they judge what the peer says before it is asked.
    set_up: bool,
    /// It is in `Reactor::unsent`.
    unsent: bool,
    /// The peer has closed its side, or the connection has failed.
    closed: bool,
    write_error: Option<io::Error>,
    /// Of a client that has several calls on a connection.
    pipe: Option<Box<Pipe>>,
    armed: Armed,
}

impl<S> Conn<S> {
    /// Sends what the call that it serves has to send, as far as the socket takes it.
    #[inline(always)] // in the path of every call
    fn send<N: Net<Stream = S>>(
        &mut self,
        call: &mut ActiveCall,
        net: &mut N,
        scratch: &mut [u8],
        now: Time,
    ) -> Result<(), Stop> {
        let State::Busy(exchange, _) = &mut self.state else {
            return Ok(());
        };
        for _ in 0..WRITES_PER_TURN {
            let parts = match exchange.poll_send(&mut call.request) {
                Ok(SendStep::Write(parts)) => parts,
                Ok(SendStep::AwaitContinue(wait)) => {
                    self.continue_at.get_or_insert(later(now, wait));
                    return Ok(());
                }
                Ok(SendStep::AwaitSource) => return Ok(()),
                Ok(SendStep::Done) => {
                    call.marks.sent = Some(now);
                    self.since = now;
                    return Ok(());
                }
                Err(misuse) => return Err(Stop::Misuse(misuse)),
            };
            let length = parts[0].len() + parts[1].len();
            let slices = [IoSlice::new(parts[0]), IoSlice::new(parts[1])];
            let used = if parts[1].is_empty() { 1 } else { 2 };
            match self.stream.write(net, scratch, &slices[..used]) {
                Ok(n) => {
                    exchange.handle_sent(n);
                    call.marks.bytes_out += n as u64;
                    self.since = now;
                    if n < length {
                        return Ok(());
                    }
                    if !exchange.is_sending() {
                        call.marks.sent = Some(now);
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    self.write_error = Some(error);
                    return Err(Stop::Broken);
                }
            }
        }
        if std::mem::replace(&mut self.unsent, true) {
            return Ok(());
        }
        Err(Stop::Turn)
    }

    /// Whether it wakes up before any limit of its present wait can be reached, of those that begin now or have begun.
    #[inline]
    fn is_armed_by(&self, soonest: Time) -> bool {
        let soonest = self.deadline.map_or(soonest, |at| at.min(soonest));
        let soonest = match self.state {
            State::Draining(_, _, until) => soonest.min(until),
            _ => soonest,
        };
        self.armed.is_by(soonest) && self.continue_at.is_none() && !self.hurried
    }
}

/// Why sending has stopped, other than to wait.
enum Stop {
    /// Others have their turn now.
    Turn,
    Misuse(Misuse),
    /// A write has failed; the connection keeps the error.
    Broken,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unread {
    /// Until the consumer has taken some.
    Consumer,
    /// Until the next turn.
    Turn,
}

enum State {
    /// For an opening, which is to hear of it at that time if it is not up by then.
    Connecting(OpeningKey, Option<Time>),
    /// In the handshakes with proxies and in TLS's.
    SettingUp(Box<SetUp>),
    /// Between two states, until the client has decided.
    Settled,
    Idle(Time),
    Busy(Exchange, CallKey),
    Draining(Exchange, Response, Time),
}

/// Something that the client must decide about.
#[derive(Debug)]
pub(crate) enum Happened {
    /// A connection of that opening is up.
    Connected { opening: OpeningKey, conn: ConnKey },
    /// A connection of that opening has done its handshakes.
    Ready { opening: OpeningKey, conn: ConnKey },
    /// Somebody said something about a tunnel.
    Tunnel { ends: Arc<Ends>, said: Said },
    /// A handshake failed; the connection is gone.
    SetUpFailed { opening: OpeningKey, error: Error },
    /// An address was not reached; the connection is gone.
    ConnectFailed {
        opening: OpeningKey,
        conn: ConnKey,
        error: Error,
    },
    /// A response is complete: a call's, or the late one that the connection was draining. `keep_alive` is the
    /// server's own limit on idleness.
    Finished {
        conn: ConnKey,
        call: Option<CallKey>,
        reuse: Reuse,
        keep_alive: Option<Duration>,
    },
    /// A call is answered, unless nobody waited for it, and others on its connection go on.
    Answered {
        at: At,
        conn: ConnKey,
        call: Option<CallKey>,
    },
    /// A call's connection is gone before its answer was next. Without an error, its request was not looked at,
    /// however much of it was sent.
    Unanswered {
        call: CallKey,
        sent: Sent,
        error: Option<Error>,
    },
    /// The server does not cope with several requests at a time.
    PipeBroken,
    /// A call failed; its connection is gone.
    Failed { at: At, call: CallKey, error: Error },
    /// The head of a streamed response is there.
    Head(CallKey),
    /// A consumer that had taken everything can go on.
    BodyReady(CallKey),
    /// An idle or draining connection is gone.
    Lost(At),
    /// A connection has been idle for as long as it was told.
    IdleDue(ConnKey),
    /// A call has waited for as long as it may.
    WaitOver(CallKey, TimeLimit),
    /// A call's next attempt is due.
    PauseOver(CallKey),
    /// A call on a connection has run out of time.
    Late {
        conn: ConnKey,
        call: CallKey,
        limit: TimeLimit,
    },
    /// A time has come that the client asked for.
    Alarm(Owner),
}

impl<N: Net> Reactor<N> {
    pub(crate) fn new(net: N, settings: Settings) -> Self {
        let now = Time::of(net.now());
        Self {
            net: Metered::new(net, settings.bytes),
            conns: Slab::new(),
            calls: Slab::new(),
            timers: Timers::default(),
            events: Vec::new(),
            happened: VecDeque::new(),
            unread: NextTurn::default(),
            unsent: NextTurn::default(),
            unflushed: Vec::new(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            idle_order: settings.idle_order.then(Queue::new),
            spare: Vec::new(),
            spare_requests: Vec::new(),
            decoders: Vec::new(),
            now,
            soonest: now,
            polled_at: now,
            settings,
        }
    }

    /// From now on, connections have several calls at a time.
    pub(crate) fn set_batching(&mut self, batching: Batching) {
        self.settings.batching = Some(batching);
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The time now, where that of the turn is not exact enough.
    pub(crate) fn clock(&self) -> Time {
        Time::of(self.net.now()).max(self.now)
    }

    /// Reads the clock, for a new turn; tells whether so much time has passed since the last poll that idle
    /// connections may have died unseen.
    pub(crate) fn begin_turn(&mut self) -> bool {
        self.read_clock();
        self.now.saturating_duration_since(self.polled_at) > STALE_AFTER
    }

    fn read_clock(&mut self) {
        self.now = Time::of(self.net.now());
        let shortest = self.settings.timeouts.shortest();
        let soonest = shortest.and_then(|limit| self.now.checked_add(limit));
        // Without limits, a day: a timer that comes up once a day for nothing costs nothing.
        self.soonest = soonest.unwrap_or(self.now + Duration::from_secs(86_400));
    }

    pub(crate) fn random(&mut self) -> u64 {
        self.net.random()
    }

    pub(crate) fn waker(&mut self) -> io::Result<Waker> {
        self.net.waker()
    }

    pub(crate) fn next(&mut self) -> Option<Happened> {
        self.happened.pop_front()
    }

    // ---- calls

    #[inline]
    pub(crate) fn insert_call(&mut self, call: ActiveCall) -> CallKey {
        self.calls.insert(call)
    }

    pub(crate) fn call(&mut self, call: CallKey) -> Option<&mut ActiveCall> {
        self.calls.get_mut(call)
    }

    pub(crate) fn call_ref(&self, call: CallKey) -> Option<&ActiveCall> {
        self.calls.get(call)
    }

    #[inline]
    pub(crate) fn remove_call(&mut self, call: CallKey) -> Option<ActiveCall> {
        self.calls.remove(call)
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// A call waits for a connection from now on.
    pub(crate) fn wait(&mut self, key: CallKey, id: WaitId) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        call.place = Place::Waiting {
            id,
            since: self.now,
        };
        call.marks.reused = false;
        let timeouts = call.timeouts(&self.settings);
        let due = timeouts.due(Phase::Queue, self.now, call.deadline);
        if let Some((at, _)) = due {
            self.timers.arm(Owner::Call(key), &mut call.armed, at);
        }
    }

    /// A call waits for its next attempt.
    pub(crate) fn pause(&mut self, key: CallKey, until: Time, fresh: bool) {
        if let Some(call) = self.calls.get_mut(key) {
            call.place = Place::Pausing { until, fresh };
            self.timers.arm(Owner::Call(key), &mut call.armed, until);
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

    pub(crate) fn take_spare_request(&mut self) -> Request {
        self.spare_requests.pop().unwrap_or_default()
    }

    /// Takes back what a call with a streamed body had.
    pub(crate) fn put_streamed(&mut self, request: Request, response: &mut Response) {
        if self.spare_requests.len() < MOST_SPARE {
            self.spare_requests.push(request);
        }
        if self.decoders.len() < MOST_DECODERS
            && let Some(decoder) = response
                .decoder()
                .take_if(|decoder| decoder.idle_memory() <= MOST_DECODER)
        {
            self.decoders.push(decoder);
        }
    }

    // ---- connections

    /// Begins to connect to an address, as part of an opening. `set_up`: handshakes follow.
    pub(crate) fn connect(
        &mut self,
        at: At,
        opening: OpeningKey,
        address: &Address,
        set_up: bool,
    ) -> io::Result<ConnKey> {
        let token = Token(self.conns.next_key().to_bits() as usize);
        let stream = self
            .net
            .connect_for(at.host, token, address, &self.settings.socket)?;
        Ok(self.conns.insert(Conn {
            stream: Transport::new(stream),
            at,
            state: State::Connecting(opening, None),
            ends: Arc::new(Ends {
                remote: address.clone(),
                local: None,
            }),
            opened: None,
            idle_ticket: None,
            kept: false,
            since: self.now,
            continue_at: None,
            deadline: None,
            hurried: false,
            patience: None,
            unread: None,
            set_up,
            closed: false,
            write_error: None,
            unsent: false,
            pipe: None,
            armed: Armed::default(),
        }))
    }

    /// When the opening of a connection that is not up yet is to hear of it.
    pub(crate) fn set_connect_due(&mut self, key: ConnKey, at: Time) {
        if let Some(conn) = self.conns.get_mut(key)
            && let State::Connecting(_, due) = &mut conn.state
        {
            *due = Some(at);
            self.timers.arm(Owner::Conn(key), &mut conn.armed, at);
        }
    }

    /// Tells the client at that time.
    pub(crate) fn alarm(&mut self, owner: Owner, at: Time) {
        self.timers.alarm(owner, at);
    }

    /// Forgets alarms that do not count any more, if there are many more than so many owners can have.
    pub(crate) fn tidy_alarms(&mut self, owners: usize, counts: impl FnMut(Owner, Time) -> bool) {
        if self.timers.has_old_alarms(owners) {
            self.timers.tidy_alarms(counts);
        }
    }

    /// Notes how a connection was opened.
    pub(crate) fn set_opened(
        &mut self,
        conn: ConnKey,
        resolve: Option<Duration>,
        connect: Duration,
    ) {
        if let Some(conn) = self.conns.get_mut(conn) {
            let opened = conn.opened.get_or_insert_default();
            opened.resolve = resolve;
            opened.connect = connect;
        }
    }

    /// The connection that has been idle for longest.
    pub(crate) fn oldest_idle(&self) -> Option<ConnKey> {
        self.idle_order.as_ref()?.front()
    }

    /// All idle connections.
    pub(crate) fn idle_conns(&self) -> Vec<ConnKey> {
        self.conns
            .keys_of(|conn| matches!(conn.state, State::Idle(_)))
    }

    pub(crate) fn remote(&self, conn: ConnKey) -> Option<&Address> {
        self.conns.get(conn).map(|conn| &conn.ends.remote)
    }

    /// Whether a connection has been kept idle or has served before.
    pub(crate) fn has_served(&self, conn: ConnKey) -> bool {
        self.conns.get(conn).is_some_and(|conn| conn.kept)
    }

    pub(crate) fn local(&self, conn: ConnKey) -> Option<&Address> {
        self.conns.get(conn)?.ends.local.as_ref()
    }

    pub(crate) fn opened(&self, conn: ConnKey) -> Option<&Opened> {
        self.conns.get(conn)?.opened.as_deref()
    }

    pub(crate) fn place(&self, conn: ConnKey) -> Option<At> {
        self.conns.get(conn).map(|conn| conn.at)
    }

    /// Limits waits for first bytes on a connection, unless the call has a limit of its own.
    pub(crate) fn set_patience(&mut self, conn: ConnKey, limit: Duration) {
        if let Some(conn) = self.conns.get_mut(conn) {
            conn.patience = Some(limit);
        }
    }

    /// Gives a connection to a call and begins to send the request.
    pub(crate) fn start(&mut self, conn_key: ConnKey, call_key: CallKey) {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get_mut(call_key))
        else {
            return;
        };
        call.place = Place::OnConn(conn_key);
        call.attempts += 1;
        let marks = &mut call.marks;
        marks.begin_attempt(self.now, conn.kept, &conn.ends);
        if !conn.kept {
            marks.opened = conn.opened.take();
        } else if marks.opened.is_some() {
            marks.opened = None; // of an earlier attempt
        }
        if let (Some(ticket), Some(order)) = (conn.idle_ticket.take(), &mut self.idle_order) {
            order.remove(ticket);
        }
        conn.kept = true;
        conn.since = self.now;
        conn.continue_at = None;
        conn.deadline = call.deadline;
        conn.hurried = call.overrides.is_some() || conn.patience.is_some();
        conn.state = State::Busy(Exchange::new(&call.request, call.mode), call_key);
        if let (BodyMode::Stream, State::Busy(exchange, _)) = (call.mode, &mut conn.state) {
            exchange.set_stream_buffer(self.settings.stream_buffer);
            let decoder = call.response.decoder();
            if decoder.is_none() {
                *decoder = self.decoders.pop();
            }
        }
        if self.settings.batching.is_some() {
            return self.start_pipe(conn_key, call_key);
        }
        match conn.send(call, &mut self.net, &mut self.buffer, self.now) {
            Ok(()) if conn.is_armed_by(self.soonest) => {}
            Ok(()) => self.arm_conn(conn_key),
            Err(stop) => {
                self.stop_sending(conn_key, stop);
                self.arm_conn(conn_key);
            }
        }
    }

    /// Leaves a connection idle until then, watched.
    pub(crate) fn idle(&mut self, key: ConnKey, until: Time) {
        if let Some(conn) = self.conns.get_mut(key) {
            conn.state = State::Idle(until);
            if !std::mem::replace(&mut conn.kept, true) {
                conn.opened = None; // its first call will not have opened it
            }
            if let (None, Some(order)) = (conn.idle_ticket, &mut self.idle_order) {
                conn.idle_ticket = Some(order.push_back(key));
            }
            self.timers.arm(Owner::Conn(key), &mut conn.armed, until);
            // What came along with the connection: a call may come for it before the next turn looks.
            if conn.unread == Some(Unread::Turn) {
                self.check_idle(key);
            }
        }
    }

    /// Takes the call off a connection that goes on to await its answer and drops it; false if it cannot, because
    /// part of the request is unsent.
    pub(crate) fn drain(&mut self, key: ConnKey, until: Time) -> bool {
        let Some(conn) = self.conns.get(key) else {
            return false;
        };
        let State::Busy(exchange, _) = &conn.state else {
            return false;
        };
        if exchange.is_sending() || conn.unread == Some(Unread::Consumer) {
            return false;
        }
        self.drop_answer(key, until);
        true
    }

    /// Takes the call off a connection; its answer is dropped when it comes.
    fn drop_answer(&mut self, key: ConnKey, until: Time) {
        let mut response = self.take_spare();
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match std::mem::replace(&mut conn.state, State::Settled) {
            State::Busy(mut exchange, call) => {
                exchange.discard();
                if let Some(call) = self.calls.get_mut(call) {
                    response.continue_from(&mut call.response);
                }
                conn.state = State::Draining(exchange, response, until);
                let due = conn.draining_due(until);
                self.timers.arm(Owner::Conn(key), &mut conn.armed, due);
            }
            other => conn.state = other,
        }
    }

    pub(crate) fn close(&mut self, key: ConnKey) -> Option<At> {
        let conn = self.remove_conn(key)?;
        conn.stream.close(&mut self.net);
        if let State::Draining(_, response, _) = conn.state {
            self.put_spare(response);
        }
        self.disband(conn.pipe, &conn.ends.remote);
        Some(conn.at)
    }

    fn remove_conn(&mut self, key: ConnKey) -> Option<Conn<MeteredStream<N::Stream>>> {
        let mut conn = self.conns.remove(key)?;
        if let (Some(ticket), Some(order)) = (conn.idle_ticket.take(), &mut self.idle_order) {
            order.remove(ticket);
        }
        Some(conn)
    }

    /// The error of the call on that connection, ended for that cause where it is.
    pub(crate) fn busy_error(&self, key: ConnKey, kind: ErrorKind) -> Option<Error> {
        let conn = self.conns.get(key)?;
        match &conn.state {
            State::Busy(exchange, _) => Some(
                Error::new(kind, exchange.phase(), exchange.sent())
                    .with_remote(Some(conn.ends.remote.clone())),
            ),
            _ => None,
        }
    }

    /// Takes a connection out of the engine, for another protocol. One with TLS is closed: its session is ours.
    pub(crate) fn hand_over(&mut self, key: ConnKey) -> Option<N::Stream> {
        let conn = self.remove_conn(key)?;
        if !conn.stream.is_plain() {
            conn.stream.close(&mut self.net);
            return None;
        }
        Some(self.net.release(conn.stream.into_stream()))
    }

    /// A body's source that had nothing has something again.
    pub(crate) fn resume_send(&mut self, call: CallKey) {
        if let Some(Place::OnConn(conn)) = self.calls.get(call).map(|call| call.place) {
            self.drive_send(conn);
            self.arm_conn(conn);
        }
    }

    /// The consumer of a streamed body has taken what there was: reading goes on.
    pub(crate) fn resume_read(&mut self, call: CallKey) {
        let Some(call) = self.calls.get(call) else {
            return;
        };
        let Place::OnConn(key) = call.place else {
            return;
        };
        if let Some(conn) = self.conns.get_mut(key)
            && conn.unread == Some(Unread::Consumer)
            && call.response.body().len() - call.taken < self.settings.stream_buffer
        {
            conn.unread = None;
            conn.since = self.now;
            self.drive_read(key);
        }
    }

    /// Drops what is still to come of a response that the caller does not get, if it is no more than `most` bytes;
    /// else false. When it is complete, [`Happened::Finished`] tells as ever, and [`Happened::Failed`] when
    /// the connection fails, or has failed already.
    pub(crate) fn discard_rest(&mut self, call_key: CallKey, most: u64) -> bool {
        let Some(call) = self.calls.get_mut(call_key) else {
            return false;
        };
        let Place::OnConn(key) = call.place else {
            return false;
        };
        let Some(conn) = self.conns.get_mut(key) else {
            return true;
        };
        let State::Busy(exchange, _) = &mut conn.state else {
            return true;
        };
        if exchange.body_left().is_none_or(|left| left > most) {
            return false;
        }
        exchange.discard();
        call.response.body_buffer().clear();
        self.resume_read(call_key);
        true
    }

    pub(crate) fn close_stream(&mut self, stream: N::Stream) {
        self.net.inner().close(stream);
    }

    // ---- the turn

    /// Waits for events until `until` at the latest, and for no longer than the next timer; then handles all events
    /// and timers.
    pub(crate) fn poll(&mut self, until: Option<Time>) -> io::Result<()> {
        self.flush();
        let mut until = [until, self.timers.next()].into_iter().flatten().min();
        if !self.unflushed.is_empty() {
            until = until.into_iter().chain(self.flush_due()).min();
        }
        if !self.unread.is_empty() || !self.unsent.is_empty() {
            until = Some(self.now);
        }
        let timeout = until.map(|at| at.saturating_duration_since(self.now));
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let unread = self.unread.begin();
        let unsent = self.unsent.begin();
        let polled = self.net.poll(&mut events, timeout);
        self.read_clock();
        self.polled_at = self.now;
        for event in &events {
            self.handle_event(event);
        }
        self.events = events;
        self.read_on(unread);
        for &key in &unsent {
            if let Some(conn) = self.conns.get_mut(key) {
                conn.unsent = false;
            }
            self.drive_send(key);
            self.arm_conn(key);
        }
        self.unsent.end(unsent);
        self.handle_timers();
        polled
    }

    fn handle_event(&mut self, event: &Event) {
        let Some(key) = ConnKey::from_bits(event.token.0 as u64) else {
            return;
        };
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        conn.closed |= event.closed;
        match &conn.state {
            State::Busy(..) | State::Draining(..) if conn.pipe.is_some() => {
                if event.writable && conn.pipe.as_ref().is_some_and(|pipe| pipe.is_stuck()) {
                    self.send_pipe(key);
                }
                if event.readable {
                    self.drive_read(key);
                }
            }
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
            State::SettingUp(_) => self.drive_set_up(key),
            State::Draining(..) | State::Idle(_) | State::Settled => {}
        }
    }

    fn check_connected(&mut self, key: ConnKey, readable: bool) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match self.net.connected(conn.stream.stream()) {
            Ok(false) => {}
            Ok(true) => {
                let State::Connecting(opening, _) = conn.state else {
                    return;
                };
                // No call has it yet.
                if let Some(ends) = Arc::get_mut(&mut conn.ends) {
                    ends.local = self.net.local_address(conn.stream.stream());
                }
                // This event is over: nothing else will tell of what came along with the connection.
                if readable && !conn.set_up {
                    self.net.set_free(true);
                    let read = conn.stream.read(&mut self.net, &mut self.buffer);
                    self.net.set_free(false);
                    match read {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Ok(1..) => return self.connect_failed(key, PeerFault::Unsolicited.into()),
                        Ok(0) | Err(_) => {
                            conn.unread = Some(Unread::Turn);
                            self.unread.push(key);
                        }
                    }
                }
                conn.state = State::Settled;
                self.happened
                    .push_back(Happened::Connected { opening, conn: key });
            }
            Err(error) => self.connect_failed(key, error.into()),
        }
    }

    fn connect_failed(&mut self, key: ConnKey, kind: ErrorKind) {
        let Some(conn) = self.remove_conn(key) else {
            return;
        };
        conn.stream.close(&mut self.net);
        if let State::Connecting(opening, _) = conn.state {
            self.happened.push_back(Happened::ConnectFailed {
                opening,
                conn: key,
                error: Error::new(kind, Phase::Connect, Sent::Nothing)
                    .with_remote(Some(conn.ends.remote.clone())),
            });
        }
    }

    /// Begins the handshakes of a connection that is up.
    pub(crate) fn set_up(&mut self, key: ConnKey, opening: OpeningKey, steps: Arc<[Step]>) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let mut set_up = Box::new(SetUp::new(opening, steps, self.now));
        let begun = set_up.begin(&mut conn.stream);
        conn.state = State::SettingUp(set_up);
        match begun {
            Ok(()) => self.drive_set_up(key),
            Err(kind) => self.fail(key, kind),
        }
    }

    fn drive_set_up(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let State::SettingUp(set_up) = &mut conn.state else {
            return;
        };
        let driven = set_up.drive(&mut conn.stream, &mut self.net, &mut self.buffer, self.now);
        for said in set_up.news() {
            let ends = Arc::clone(&conn.ends);
            self.happened.push_back(Happened::Tunnel { ends, said });
        }
        match driven {
            Ok(true) => {
                let opening = set_up.opening;
                let opened = conn.opened.get_or_insert_default();
                set_up.note(opened);
                opened.tls_info = conn.stream.info();
                conn.state = State::Settled;
                // What came behind the last byte of the handshake has no event of its own any more.
                conn.unread = Some(Unread::Turn);
                self.unread.push(key);
                self.happened
                    .push_back(Happened::Ready { opening, conn: key });
            }
            Ok(false) => self.arm_handshake(key),
            Err(kind) => self.fail(key, kind),
        }
    }

    fn arm_handshake(&mut self, key: ConnKey) {
        let due = self.conns.get(key).and_then(|conn| self.conn_due(conn));
        if let (Some((at, _)), Some(conn)) = (due, self.conns.get_mut(key)) {
            self.timers.arm(Owner::Conn(key), &mut conn.armed, at);
        }
    }

    /// What a connection in its handshakes waits for.
    pub(crate) fn set_up_phase(&self, key: ConnKey) -> Option<Phase> {
        match &self.conns.get(key)?.state {
            State::SettingUp(set_up) => Some(set_up.phase()),
            _ => None,
        }
    }

    /// Any byte, the end of the stream or an error on an idle connection ends it.
    fn check_idle(&mut self, key: ConnKey) {
        if mutation::on(Mutation::StaleReuse) {
            return;
        }
        match self.read_freely(key) {
            None => {}
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => {
                if let Some(at) = self.close(key) {
                    self.happened.push_back(Happened::Lost(at));
                }
            }
        }
    }

    /// Reads what there is whatever the rates, as it only matters that there is something.
    fn read_freely(&mut self, key: ConnKey) -> Option<io::Result<usize>> {
        let conn = self.conns.get_mut(key)?;
        self.net.set_free(true);
        let read = conn.stream.read(&mut self.net, &mut self.buffer);
        self.net.set_free(false);
        Some(read)
    }

    /// Until when the bytes of a host count.
    pub(crate) fn bytes_count_until(&self, host: HostKey) -> Option<Time> {
        self.net.counts_until(host, self.now)
    }

    /// A host is gone.
    pub(crate) fn forget_host(&mut self, host: HostKey) {
        self.net.forget(host);
    }

    fn drive_send(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        if conn.pipe.is_some() {
            return self.send_pipe(key);
        }
        let State::Busy(_, call_key) = conn.state else {
            return;
        };
        let Some(call) = self.calls.get_mut(call_key) else {
            return;
        };
        let sending = conn.send(call, &mut self.net, &mut self.buffer, self.now);
        if let Err(stop) = sending {
            self.stop_sending(key, stop);
        }
    }

    /// Sending has not just come to a wait.
    #[cold]
    fn stop_sending(&mut self, key: ConnKey, stop: Stop) {
        match stop {
            Stop::Turn => self.unsent.push(key),
            Stop::Misuse(misuse) => self.fail(key, misuse.into()),
            // The response may be there already: a server that refuses a body answers and closes.
            Stop::Broken => self.drive_read(key),
        }
    }

    fn fail(&mut self, key: ConnKey, kind: ErrorKind) {
        let Some(mut conn) = self.remove_conn(key) else {
            return;
        };
        conn.stream.close(&mut self.net);
        let pipe = conn.pipe.take();
        if pipe.as_ref().is_some_and(|pipe| pipe.is_broken_by(&kind)) {
            self.happened.push_back(Happened::PipeBroken);
        }
        match conn.state {
            State::Busy(_, call) if pipe.as_ref().is_some_and(|pipe| pipe.is_front_unsent()) => {
                self.happened.push_back(Happened::Lost(conn.at));
                // A connection that never served counts as an attempt, or there would be no end of them.
                let never_served = pipe.as_ref().is_some_and(|pipe| !pipe.has_served());
                let error = never_served.then(|| {
                    Error::new(kind, Phase::Send, Sent::Nothing)
                        .with_remote(Some(conn.ends.remote.clone()))
                });
                self.happened.push_back(Happened::Unanswered {
                    call,
                    sent: Sent::Nothing,
                    error,
                });
            }
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
                    .with_remote(Some(conn.ends.remote.clone()));
                self.happened.push_back(Happened::Failed {
                    at: conn.at,
                    call,
                    error,
                });
            }
            State::Draining(_, response, _) => {
                self.put_spare(response);
                self.happened.push_back(Happened::Lost(conn.at));
            }
            State::SettingUp(set_up) => {
                let error = Error::new(kind, set_up.phase(), Sent::Nothing)
                    .with_remote(Some(conn.ends.remote.clone()));
                self.happened.push_back(Happened::SetUpFailed {
                    opening: set_up.opening,
                    error,
                });
            }
            State::Connecting(..) | State::Settled | State::Idle(_) => {
                self.happened.push_back(Happened::Lost(conn.at));
            }
        }
        self.disband(pipe, &conn.ends.remote);
    }
}

impl<N: Net> Drop for Reactor<N> {
    fn drop(&mut self) {
        for conn in self.conns.drain() {
            conn.stream.close(&mut self.net);
        }
    }
}

/// What one read takes at most, but for large bodies. Holds a small answer, and a full socket buffer of most servers.
const READ_BUFFER: usize = crate::net::tls::GOOD_BUFFER;

/// Writes on one connection before the others have their turn.
const WRITES_PER_TURN: usize = 16;

/// Spare responses kept for the next late answer or streamed body.
const MOST_SPARE: usize = 16;

/// The memory of a decoder that is kept for the next streamed body.
const MOST_DECODER: usize = 4 * 1024 * 1024;

/// Decoders kept for the next streamed body.
const MOST_DECODERS: usize = 4;

/// After so long without a poll, idle connections are looked at before one is used.
const STALE_AFTER: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// A call moves when it is taken up and when it completes, and up to this size that is done without a loop.
    #[test]
    fn a_call_is_small() {
        assert!(
            size_of::<ActiveCall>() <= 256,
            "{}",
            size_of::<ActiveCall>()
        );
    }
}
