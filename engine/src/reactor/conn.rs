//! Connections: what the reactor keeps of each one, from the connect to the close.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::handshake::Handshakes;
use super::meter::MeteredStream;
use super::pipeline::Pipeline;
use super::read::{Look, is_redirection};
use super::spares::Spares;
use super::{Armed, CallKey, ConnKey, HostKey, OpeningKey, Reactor, ReactorEvent, TimerOwner};
use crate::error::{Error, ErrorKind, LimitExceeded, PeerFault, Phase, Sent};
use crate::net::tls::TlsInfo;
use crate::net::transport::Transport;
use crate::net::upgraded::Upgraded;
use crate::net::{Address, Net};
use crate::policy::SlotId;
use crate::policy::queue::Ticket;
use crate::proto::{BodyMode, Exchange, Request, Response};
use crate::time::Time;

pub(super) struct Conn<S> {
    pub(super) stream: Transport<S>,
    pub(super) slot: PoolSlot,
    pub(super) state: ConnState,
    /// The exchange of the call that the connection serves, or of the answer that it drains; else the last one, which is
    /// over.
    pub(super) exchange: Exchange,
    pub(super) endpoints: Arc<Endpoints>,
    /// How the connection was opened, for the report of its first call.
    pub(super) opened: Option<Box<Opened>>,
    /// The entry among the idle connections of all hosts.
    pub(super) idle_ticket: Option<Ticket>,
    /// The connection has been idle or has served before. The peer may have closed it, and the reactor may not know
    /// yet.
    pub(super) reused: bool,
    /// The peer has sent something, or closed its side, before the first request. The connection serves only that one.
    pub(super) early: bool,
    /// The peer may have sent a body after its last response, which must have none.
    pub(super) stray_body: bool,
    pub(super) wait: Wait,
    /// Why reading has paused although there may be more to read.
    pub(super) read_pause: Option<ReadPause>,
    /// The connection is in `Reactor::left_over.sends`.
    pub(super) send_deferred: bool,
    /// The peer has closed its side, or the connection has failed.
    pub(super) closed: bool,
    pub(super) write_error: Option<io::Error>,
    /// Only in a client that has several calls on a connection.
    pub(super) pipeline: Option<Box<Pipeline>>,
    pub(super) armed: Armed,
}

impl<S> Conn<S> {
    /// Whether a look into the socket must precede a request on a connection that has served before: bytes that lie
    /// there would be taken for the answer. A look costs a system call. So only requests that are not idempotent need
    /// one, and requests after a response that a stray body may follow. For others, the events must be enough. A
    /// pipeline looks when it sends the request.
    #[inline]
    pub(super) fn must_look(&self, request: &Request) -> bool {
        let may_look = self.stray_body || !request.was_encoded_idempotent();
        may_look && self.reused && (self.stray_body || self.pipeline.is_none())
    }

    /// Whether the timer of the connection fires before any limit of the present wait. `soonest` is the first time at
    /// which a limit of a phase can be reached.
    #[inline]
    pub(super) fn is_armed_by(&self, soonest: Time) -> bool {
        let soonest = self.wait.deadline.map_or(soonest, |at| at.min(soonest));
        let soonest = match self.state {
            ConnState::Draining(_, until) => soonest.min(until),
            _ => soonest,
        };
        self.armed.is_by(soonest) && self.wait.continue_at.is_none() && !self.wait.has_own_limits
    }

    /// Whether the answer that is next is that of this call.
    #[inline]
    pub(super) fn serves(&self, call: CallKey) -> bool {
        matches!(self.state, ConnState::Busy(front) if front == call)
    }

    /// The exchange is over: the client decides what comes next.
    #[inline]
    pub(super) fn await_decision(&mut self, spares: &mut Spares) {
        if let ConnState::Draining(response, _) =
            std::mem::replace(&mut self.state, ConnState::AwaitingDecision)
        {
            spares.put_response(response);
        }
    }

    /// An error on this connection.
    pub(super) fn error(&self, kind: impl Into<ErrorKind>, phase: Phase, sent: Sent) -> Error {
        Error::new(kind, phase, sent).with_remote(Some(self.endpoints.remote.clone()))
    }
}

/// The present wait of a connection, and what may end this wait.
pub(super) struct Wait {
    /// When the wait began, or made progress last.
    pub(super) since: Time,
    /// The deadline of the call that the connection serves.
    pub(super) deadline: Option<Time>,
    /// When a body that is held back for `100 Continue` is sent without that answer.
    pub(super) continue_at: Option<Time>,
    /// The adaptive limit of the host on the wait for a first byte.
    pub(super) first_byte_limit: Option<Duration>,
    /// The call, or the host, may have limits other than the client's.
    pub(super) has_own_limits: bool,
}

pub(super) enum ConnState {
    Connecting {
        opening: OpeningKey,
        /// If the connection is not up at this time, its opening gets an event.
        due: Option<Time>,
        /// Handshakes follow. They decide whether the peer may send bytes first.
        needs_handshakes: bool,
    },
    /// In the handshakes with proxies, or in the TLS handshake.
    Handshaking(Box<Handshakes>),
    /// An event about the connection waits for the client, which decides what comes next.
    AwaitingDecision,
    /// In the pool, until that time.
    Idle(Time),
    Busy(CallKey),
    /// Reads the rest of an abandoned answer, until that time.
    Draining(Response, Time),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadPause {
    /// Until the consumer of a streamed body has taken a part of it.
    Consumer,
    /// Until the next iteration: the budget of this one is used up.
    Budget,
}

/// The slot of a connection: the host whose pool has the slot, and which one of that pool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PoolSlot {
    pub(crate) host: HostKey,
    pub(crate) id: SlotId,
}

/// The addresses of a connection. Its calls share them: a copy in each call would be a third of the call's size.
#[derive(Debug)]
pub(crate) struct Endpoints {
    /// The address of the server or of the proxy.
    pub(crate) remote: Address,
    pub(crate) local: Option<Address>,
    pub(crate) server: Server,
}

/// Where the server of a connection is.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// It is the remote end of the connection.
    Remote,
    /// Behind a proxy, at this address if that is known.
    Behind(Option<Address>),
}

/// How long the steps of an opening took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened {
    /// The lookup of the name; `None` if there was no name to look up.
    pub(crate) resolve: Option<Duration>,
    /// The connect, until an address was reached.
    pub(crate) connect: Duration,
    /// The handshakes with proxies.
    pub(crate) proxy: Option<Duration>,
    /// The TLS handshake with the server.
    pub(crate) tls: Option<Duration>,
    /// What TLS has agreed on.
    pub(crate) tls_info: Option<TlsInfo>,
    /// The status and the head of the proxy's answer to CONNECT.
    pub(crate) proxy_answer: Option<(u16, Box<[u8]>)>,
}

impl<N: Net, C> Reactor<N, C> {
    /// The connection that has been idle for longest.
    pub(crate) fn oldest_idle(&self) -> Option<ConnKey> {
        self.idle_order.as_ref()?.front()
    }

    /// All idle connections.
    pub(crate) fn idle_conns(&self) -> Vec<ConnKey> {
        self.conns
            .keys_of(|conn| matches!(conn.state, ConnState::Idle(_)))
    }

    pub(crate) fn remote(&self, conn: ConnKey) -> Option<&Address> {
        self.conns.get(conn).map(|conn| &conn.endpoints.remote)
    }

    /// Whether a connection has been idle or has served before.
    pub(crate) fn has_served(&self, conn: ConnKey) -> bool {
        self.conns.get(conn).is_some_and(|conn| conn.reused)
    }

    pub(crate) fn local(&self, conn: ConnKey) -> Option<&Address> {
        self.conns.get(conn)?.endpoints.local.as_ref()
    }

    pub(crate) fn opened(&self, conn: ConnKey) -> Option<&Opened> {
        self.conns.get(conn)?.opened.as_deref()
    }

    pub(crate) fn slot(&self, conn: ConnKey) -> Option<PoolSlot> {
        self.conns.get(conn).map(|conn| conn.slot)
    }

    /// Limits the waits for a first byte on a connection, unless the call has a limit of its own.
    pub(crate) fn set_first_byte_limit(&mut self, conn: ConnKey, limit: Duration) {
        if let Some(conn) = self.conns.get_mut(conn) {
            conn.wait.first_byte_limit = Some(limit);
        }
    }

    /// Leaves a connection idle until that time. The reactor still watches the connection.
    pub(crate) fn idle(&mut self, key: ConnKey, until: Time) {
        if let Some(conn) = self.conns.get_mut(key) {
            conn.state = ConnState::Idle(until);
            // What comes from now on is no answer.
            conn.early = false;
            if !std::mem::replace(&mut conn.reused, true) {
                conn.opened = None; // only the report of a call that waited for the opening has it
            }
            if let (None, Some(order)) = (conn.idle_ticket, &mut self.idle_order) {
                conn.idle_ticket = Some(order.push_back(key));
            }
            self.timers
                .arm(TimerOwner::Conn(key), &mut conn.armed, until);
            // The peer may have sent something already. Look now: a call may get the connection before the next
            // iteration.
            if conn.read_pause == Some(ReadPause::Budget) {
                self.check_idle(key);
            }
        }
    }

    /// An idle connection ends with any byte from the peer, the end of the stream or an error.
    pub(super) fn check_idle(&mut self, key: ConnKey) {
        match self.look(key) {
            None | Some(Look::Nothing) => {}
            Some(Look::More) => self.defer_read(key),
            Some(Look::Bytes | Look::Ended) => {
                if let Some(slot) = self.close(key) {
                    self.reactor_events.push_back(ReactorEvent::Lost(slot));
                }
            }
        }
    }

    pub(crate) fn close(&mut self, key: ConnKey) -> Option<PoolSlot> {
        let conn = self.remove_conn(key)?;
        conn.stream.close(&mut self.net);
        if let ConnState::Draining(response, _) = conn.state {
            self.spares.put_response(response);
        }
        self.report_unanswered(conn.pipeline, &conn.endpoints.remote);
        Some(conn.slot)
    }

    /// Takes a connection out of the engine, for another protocol, and gives it to the caller in the response.
    pub(crate) fn hand_over(&mut self, key: ConnKey, call: CallKey) {
        let conn = self.remove_conn(key);
        let transport = conn.and_then(|conn| conn.stream.map(|stream| self.net.release(stream)));
        if let (Some(transport), Some(call)) = (transport, self.call(call)) {
            let early = std::mem::take(call.response.body_buffer());
            let upgraded = Upgraded::new(transport, early);
            call.response.set_switched(Box::new(upgraded));
        }
    }

    /// Closes a connection because of an error, and reports what that means for its calls.
    pub(super) fn fail(&mut self, key: ConnKey, kind: ErrorKind) {
        let Some(mut conn) = self.remove_conn(key) else {
            return;
        };
        let state = std::mem::replace(&mut conn.state, ConnState::AwaitingDecision);
        let pipeline = conn.pipeline.as_deref();
        if pipeline.is_some_and(|pipeline| pipeline.is_broken_by(&kind)) {
            self.reactor_events.push_back(match kind {
                ErrorKind::Timeout(_) => ReactorEvent::PipeliningDoubted,
                _ => ReactorEvent::PipeliningBroken,
            });
        }
        let event = match state {
            ConnState::Busy(call) if pipeline.is_some_and(Pipeline::is_front_unsent) => {
                self.reactor_events.push_back(ReactorEvent::Lost(conn.slot));
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
                    BodyMode::Buffer | BodyMode::Discard => self
                        .calls
                        .get(call)
                        .is_some_and(|call| is_redirection(&call.response)),
                };
                if has_head && is_wanted {
                    self.reactor_events.push_back(ReactorEvent::Head(call));
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
                self.spares.put_response(response);
                ReactorEvent::Lost(conn.slot)
            }
            ConnState::Connecting { .. } | ConnState::AwaitingDecision | ConnState::Idle(_) => {
                ReactorEvent::Lost(conn.slot)
            }
        };
        self.reactor_events.push_back(event);
        conn.stream.close(&mut self.net);
        self.report_unanswered(conn.pipeline, &conn.endpoints.remote);
    }

    pub(super) fn remove_conn(&mut self, key: ConnKey) -> Option<Conn<MeteredStream<N::Stream>>> {
        let mut conn = self.conns.remove(key)?;
        if let (Some(ticket), Some(order)) = (conn.idle_ticket.take(), &mut self.idle_order) {
            order.remove(ticket);
        }
        Some(conn)
    }
}
