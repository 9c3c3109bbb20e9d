//! The event loop: connections, timers and calls in flight, over any [`Net`].
//!
//! The reactor moves bytes and time between the network, the exchanges and the policies, and decides nothing. What
//! needs a decision becomes a [`ReactorEvent`]. The client above takes it with [`Reactor::next_event`] and answers with
//! a command (`start`, `idle`, `close`, ...). A reactor belongs to one thread: there is no lock and no atomic on the
//! path of a request.
//!
//! Reads go to one buffer of the reactor, and from there into the response of the call. A large body of known length
//! goes into the response directly. Idle connections hold no buffer, and the reactor still watches them.

mod body_memory;
mod call;
mod commands;
mod conn;
mod deadlines;
mod event;
mod handshake;
mod key;
mod meter;
mod overrides;
mod pipeline;
mod read;
mod send;
mod slab;
mod spares;
mod timers;
mod token;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use body_memory::BodyMemory;
pub use call::Hop;
pub(crate) use call::{ActiveCall, CallState, HeadState, RedirectState, Timestamps};
use conn::{Conn, ConnState};
pub(crate) use conn::{Endpoints, Opened, PoolSlot, Server};
pub(crate) use event::ReactorEvent;
pub(crate) use handshake::{ProxyMessage, Step};
pub(crate) use key::{CallKey, ConnKey, HostKey, OpeningKey, of};
pub(crate) use meter::ByteRates;
use meter::Metered;
pub(crate) use overrides::Overrides;
use pipeline::Pipeline;
pub(crate) use pipeline::{Batching, GiveUpOutcome};
use read::is_redirection;
pub(crate) use slab::Slab;
use spares::Spares;
use timers::Timers;
pub(crate) use timers::{Armed, TimerOwner};

use crate::error::{ErrorKind, LimitExceeded, PeerFault, Phase, Sent};
use crate::net::{Event, Net, SocketOptions};
use crate::policy::Timeouts;
use crate::policy::queue::Queue;
use crate::proto::{BodyMode, Exchange, Limits, Panic};
use crate::time::Time;

/// The event loop of one client. `C` is what the client keeps of each call.
pub(crate) struct Reactor<N: Net, C> {
    conns: Slab<Conn<N>, of::Conn>,
    polled: Polled,
    pub(crate) common: Common<N, C>,
}

/// What all connections have in common, and work with.
pub(crate) struct Common<N: Net, C> {
    pub(crate) net: Metered<N>,
    calls: Slab<ActiveCall<C>, of::Call>,
    pub(crate) timers: Timers,
    events: VecDeque<ReactorEvent>,
    left_over: LeftOver,
    pub(crate) pipelining: Pipelining,
    buffer: Box<[u8]>,
    /// Idle connections of all hosts, the one idle for longest in front; `None` if the client does not need the order.
    idle_order: Option<Queue<ConnKey>>,
    /// Buffers for the next calls that need some.
    pub(crate) spares: Spares,
    body_memory: BodyMemory,
    now: Time,
    /// The first time at which a wait that begins now can end by a limit of its phase.
    soonest: Time,
    /// What the source of a body has panicked with, until the client raises the panic again.
    panic: Option<Panic>,
    pub(crate) settings: Settings,
}

/// What the network has reported in the last poll.
struct Polled {
    at: Time,
    events: Vec<Event>,
    /// How many of them are handled.
    handled: usize,
    /// After them, the deferred connections go on, and timers fire.
    goes_on: bool,
}

/// What goes beyond the budget of one iteration.
#[derive(Default)]
struct LeftOver {
    /// Connections that have more to read.
    reads: Deferred,
    /// Connections that have more to send.
    sends: Deferred,
}

/// Connections that go on after the events of the next poll.
#[derive(Default)]
struct Deferred {
    next: Vec<ConnKey>,
    /// Those that go on after the events of this poll.
    now: Vec<ConnKey>,
}

/// What connections with several calls have for the next iteration, and for the client.
#[derive(Default)]
pub(crate) struct Pipelining {
    /// Connections whose requests gather before they are sent.
    unflushed: Vec<ConnKey>,
    /// The client has nothing to do with an answered call but to complete it. So the reactor ends the call at once.
    pub(crate) ends_at_once: bool,
    /// The calls that were answered while others on their connections go on. The client takes them before the next event.
    pub(crate) answered: Vec<CallKey>,
    /// A request that was sent behind another one was answered. The client takes this.
    pub(crate) has_pipelined: bool,
}

/// What holds for every call of a reactor.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) ignore_invalid_headers: bool,
    /// The limit on the bytes of the bodies of all calls.
    pub(crate) held_bytes: Option<u64>,
    pub(crate) socket: SocketOptions,
    pub(crate) stream_buffer: usize,
    /// Whether the client uses [`Reactor::oldest_idle`].
    pub(crate) idle_order: bool,
    /// Only in a client that has several calls on a connection at a time.
    pub(crate) batching: Option<Batching>,
    pub(crate) bytes: ByteRates,
}

impl Settings {
    /// The exchanges of a new connection, before the first begins.
    fn exchange(&self) -> Exchange {
        let mut exchange = Exchange::over();
        exchange.set_stream_buffer(self.stream_buffer);
        if self.ignore_invalid_headers {
            exchange.ignore_invalid_headers();
        }
        exchange
    }

    fn drain(&self) -> Duration {
        self.batching
            .map_or(Duration::ZERO, |batching| batching.drain)
    }
}

impl<N: Net, C> Reactor<N, C> {
    pub(crate) fn new(net: N, settings: Settings) -> Self {
        let now = Time::of(net.now());
        Self {
            conns: Slab::new(),
            polled: Polled {
                at: now,
                events: Vec::new(),
                handled: 0,
                goes_on: false,
            },
            common: Common {
                net: Metered::new(net, settings.bytes),
                calls: Slab::new(),
                timers: Timers::default(),
                events: VecDeque::new(),
                left_over: LeftOver::default(),
                pipelining: Pipelining::default(),
                buffer: vec![0; READ_BUFFER].into_boxed_slice(),
                idle_order: settings.idle_order.then(Queue::new),
                spares: Spares::default(),
                body_memory: BodyMemory::new(settings.held_bytes),
                now,
                soonest: now,
                panic: None,
                settings,
            },
        }
    }

    /// The time of this iteration.
    pub(crate) fn now(&self) -> Time {
        self.common.now
    }

    /// The time now, where the time of the iteration is not exact enough.
    pub(crate) fn clock(&self) -> Time {
        Time::of(self.common.net.now()).max(self.now())
    }

    /// Reads the clock, for a new iteration. True if so much time has passed since the last poll that peers may have
    /// closed idle connections meanwhile.
    pub(crate) fn begin_iteration(&mut self) -> bool {
        self.read_clock();
        self.now().saturating_duration_since(self.polled.at) > STALE_AFTER
    }

    fn read_clock(&mut self) {
        let common = &mut self.common;
        common.now = Time::of(common.net.now());
        let shortest = common.settings.timeouts.shortest();
        let soonest = shortest.and_then(|limit| common.now.checked_add(limit));
        // Without limits, one day: a needless timer once a day costs nothing.
        common.soonest = soonest.unwrap_or(common.now + Duration::from_secs(86_400));
    }

    /// The next event for the client: what is queued first, and then what the next event of the network causes. So the
    /// end of a response, which is nearly all that happens, is handed over without the queue.
    #[inline(always)] // on the path of every call
    pub(crate) fn next_event(&mut self) -> Option<ReactorEvent> {
        loop {
            if let Some(event) = self.common.events.pop_front() {
                return Some(event);
            }
            if let Some(&event) = self.polled.events.get(self.polled.handled) {
                self.polled.handled += 1;
                match self.handle_event(event) {
                    Some(event) if self.common.events.is_empty() => return Some(event),
                    event => self.common.events.extend(event),
                }
            } else if std::mem::take(&mut self.polled.goes_on) {
                self.go_on();
            } else {
                return None;
            }
        }
    }

    /// Waits for network events, but no longer than until `until` or the next timer. [`next_event`](Self::next_event)
    /// then handles them, and the timers.
    pub(crate) fn poll(&mut self, until: Option<Time>) -> io::Result<()> {
        if self.polled.goes_on {
            // A panic in a user's callback, or a poll that failed, has left some of the last poll.
            let left = std::iter::from_fn(|| self.next_event()).collect();
            self.common.events = left;
        }
        self.flush();
        let until = until.into_iter().chain(self.next_due()).min();
        let timeout = until.map(|at| at.saturating_duration_since(self.now()));
        self.polled.events.clear();
        (self.polled.handled, self.polled.goes_on) = (0, true);
        let LeftOver { reads, sends } = &mut self.common.left_over;
        for deferred in [reads, sends] {
            std::mem::swap(&mut deferred.next, &mut deferred.now);
        }
        let polled = self.common.net.poll(&mut self.polled.events, timeout);
        self.read_clock();
        self.polled.at = self.now();
        polled
    }

    /// Handles an event of the network. Returns the end of a response, if that is what the event brings.
    #[inline(always)] // into its only caller
    fn handle_event(&mut self, event: Event) -> Option<ReactorEvent> {
        let key = token::key_of(event.token, &self.conns)?;
        let conn = self.conns.get_mut(key)?;
        match conn.handle_event(&mut self.common, event) {
            Ok(event) => event,
            Err(kind) => {
                self.fail(key, kind);
                None
            }
        }
    }

    /// Goes on with what the last iteration has left, and handles the timers.
    fn go_on(&mut self) {
        let mut unread = std::mem::take(&mut self.common.left_over.reads.now);
        for key in unread.drain(..) {
            self.drive(key, Conn::read_on);
        }
        self.common.left_over.reads.now = unread; // with its memory
        let mut unsent = std::mem::take(&mut self.common.left_over.sends.now);
        for key in unsent.drain(..) {
            self.drive(key, Conn::go_on_sending);
        }
        self.common.left_over.sends.now = unsent; // with its memory
        self.handle_timers();
    }

    fn handle_timers(&mut self) {
        loop {
            let (conns, calls) = (&self.conns, &self.common.calls);
            let owners = conns.len() + calls.len();
            let armed = |owner: TimerOwner| match owner {
                TimerOwner::Conn(key) => conns.get(key).map(|conn| conn.armed),
                TimerOwner::Call(key) => calls.get(key).map(|call| call.armed),
                _ => None, // the client's
            };
            match self.common.timers.pop(self.common.now, owners, armed) {
                Some(TimerOwner::Conn(key)) => self.drive(key, Conn::handle_timer),
                Some(TimerOwner::Call(key)) => self.common.handle_call_timer(key),
                Some(owner) => self.common.events.push_back(ReactorEvent::Timer(owner)),
                None => return,
            }
        }
    }

    /// Sends the gathered requests of each connection that has waited long enough or has gathered enough.
    pub(crate) fn flush(&mut self) {
        if self.common.pipelining.unflushed.is_empty() {
            return;
        }
        let mut keys = std::mem::take(&mut self.common.pipelining.unflushed);
        keys.retain(|&key| {
            let mut waits = false;
            self.drive(key, |conn, common| {
                waits = conn.flush(common)?;
                Ok(())
            });
            waits
        });
        keys.append(&mut self.common.pipelining.unflushed);
        self.common.pipelining.unflushed = keys;
    }

    /// When a poll ends, even if the network has no event.
    fn next_due(&self) -> Option<Time> {
        let LeftOver { reads, sends } = &self.common.left_over;
        if !reads.next.is_empty() || !sends.next.is_empty() {
            return Some(self.now());
        }
        // When the next gathered requests must be sent.
        let unflushed = self.common.pipelining.unflushed.iter();
        let flush = unflushed.filter_map(|key| self.conns.get(*key)?.pipeline.as_ref()?.flush_at);
        self.common.timers.next().into_iter().chain(flush).min()
    }

    /// When the next poll should begin, even if the network's [descriptor](Net::descriptor) does not become readable.
    pub(crate) fn next_poll(&mut self) -> Option<Time> {
        if self.polled.events.len() >= FULL_POLL {
            // There may be more events, which the descriptor does not announce again.
            return Some(self.now());
        }
        let resume = self.common.net.next_resume().map(Time::of);
        self.next_due().into_iter().chain(resume).min()
    }

    /// A panic of the source of a body, since the last call of this method. Its call has failed.
    #[inline]
    pub(crate) fn take_panic(&mut self) -> Option<Panic> {
        self.common.panic.take()
    }

    /// Lets a connection go on. If it has ended, it is closed.
    fn drive(
        &mut self,
        key: ConnKey,
        go_on: impl FnOnce(&mut Conn<N>, &mut Common<N, C>) -> Result<(), ErrorKind>,
    ) {
        if let Some(conn) = self.conns.get_mut(key)
            && let Err(kind) = go_on(conn, &mut self.common)
        {
            self.fail(key, kind);
        }
    }

    /// Closes a connection because of an error, and reports what that means for its calls.
    #[cold]
    fn fail(&mut self, key: ConnKey, kind: ErrorKind) {
        let Some(mut conn) = self.remove_conn(key) else {
            return;
        };
        let common = &mut self.common;
        let state = std::mem::replace(&mut conn.state, ConnState::AwaitingDecision);
        let pipeline = conn.pipeline.as_deref();
        if pipeline.is_some_and(|pipeline| pipeline.is_broken_by(&kind)) {
            common.events.push_back(match kind {
                ErrorKind::Timeout(_) => ReactorEvent::PipeliningDoubted,
                _ => ReactorEvent::PipeliningBroken,
            });
        }
        let event = match state {
            ConnState::Busy(call) if pipeline.is_some_and(Pipeline::is_front_unsent) => {
                common.events.push_back(ReactorEvent::Lost(conn.slot));
                // A connection that never served counts as an attempt, or the attempts would never end.
                let never_served = pipeline.is_some_and(|pipeline| !pipeline.has_served());
                ReactorEvent::Unanswered {
                    call,
                    sent: Sent::Nothing,
                    error: never_served.then(|| conn.error(kind, Phase::Send, Sent::Nothing)),
                }
            }
            ConnState::Busy(call) => {
                let exchange = &conn.exchange;
                // The head is reported even if the error came in the same read. The framing of a head with a body that
                // is too long is sound.
                let has_head = exchange.has_head()
                    || matches!(kind, ErrorKind::Limit(LimitExceeded::BodyBytes(_)));
                let is_wanted = match exchange.mode() {
                    BodyMode::Stream => true,
                    BodyMode::Buffer | BodyMode::Discard => common
                        .calls
                        .get(call)
                        .is_some_and(|call| is_redirection(&call.response)),
                };
                if has_head && is_wanted {
                    common.events.push_back(ReactorEvent::Head(call));
                }
                // A write error is the cause of the end that followed it.
                let kind = match (conn.write_error.take(), kind) {
                    (Some(error), ErrorKind::Io(_) | ErrorKind::Peer(PeerFault::Empty)) => {
                        error.into()
                    }
                    (_, kind) => kind,
                };
                ReactorEvent::Failed {
                    slot: conn.slot,
                    call,
                    error: conn.error(kind, conn.exchange.phase(), conn.exchange.sent()),
                }
            }
            ConnState::Handshaking(handshakes) => ReactorEvent::HandshakeFailed {
                opening: handshakes.opening,
                error: conn.error(kind, handshakes.phase(), Sent::Nothing),
            },
            ConnState::Draining(response, _) => {
                common.spares.put_response(response);
                ReactorEvent::Lost(conn.slot)
            }
            ConnState::Connecting { opening, .. } => ReactorEvent::ConnectFailed {
                opening,
                conn: key,
                error: conn.error(kind, Phase::Connect, Sent::Nothing),
            },
            ConnState::AwaitingDecision | ConnState::Idle(_) => ReactorEvent::Lost(conn.slot),
        };
        common.events.push_back(event);
        conn.stream.close(&mut common.net);
        common.report_unanswered(conn.pipeline, &conn.endpoints.remote);
    }

    fn remove_conn(&mut self, key: ConnKey) -> Option<Conn<N>> {
        let mut conn = self.conns.remove(key)?;
        conn.leave_idle_order(&mut self.common.idle_order);
        Some(conn)
    }
}

impl<N: Net, C> Drop for Reactor<N, C> {
    fn drop(&mut self) {
        for conn in self.conns.drain() {
            conn.stream.close(&mut self.common.net);
        }
    }
}

/// The most that one read takes, except for large bodies. The buffer has room for a small response, and for what most
/// servers send at once.
const READ_BUFFER: usize = crate::net::tls::GOOD_BUFFER;

/// After so long without a poll, idle connections are checked before one is used.
const STALE_AFTER: Duration = Duration::from_millis(1);
/// A poll that returns fewer events has returned all.
const FULL_POLL: usize = 1_000;
