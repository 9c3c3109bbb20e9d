//! Connections: what the reactor keeps of each one, from the connect to the close.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::handshake::Handshakes;
use super::meter::MeteredStream;
use super::pipeline::Pipeline;
use super::{Armed, CallKey, ConnKey, HostKey, OpeningKey, Reactor, ReactorEvent, TimerOwner};
use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent};
use crate::mutation::{self, Mutation};
use crate::net::tls::TlsInfo;
use crate::net::transport::Transport;
use crate::net::{Address, Net};
use crate::policy::SlotId;
use crate::policy::queue::Ticket;
use crate::proto::{BodyMode, Exchange, Response};
use crate::time::Time;

pub(super) struct Conn<S> {
    pub(super) stream: Transport<S>,
    pub(super) slot: PoolSlot,
    pub(super) state: ConnState,
    pub(super) endpoints: Arc<Endpoints>,
    /// For the first call.
    pub(super) opened: Option<Box<Opened>>,
    /// Its place among the idle connections of all hosts.
    pub(super) idle_ticket: Option<Ticket>,
    /// It has been idle or has served before, so that it may have died unseen.
    pub(super) reused: bool,
    /// When the present wait began or made progress last.
    pub(super) since: Time,
    /// Of a held-back body: when to send it unasked.
    pub(super) continue_at: Option<Time>,
    /// Of the call that it serves.
    pub(super) deadline: Option<Time>,
    /// That call, or its host, may have limits of its own.
    pub(super) has_own_limits: bool,
    /// The longest wait for a first byte, by what is usual for the host.
    pub(super) first_byte_limit: Option<Duration>,
    /// Reading has stopped although there may be more: the consumer is behind, or the turn was long enough.
    pub(super) read_pause: Option<ReadPause>,
    /// When it is up, handshakes follow, and they judge what the peer says before it is asked.
    pub(super) needs_handshakes: bool,
    /// It is in `Reactor::unsent`.
    pub(super) send_deferred: bool,
    /// The peer has closed its side, or the connection has failed.
    pub(super) closed: bool,
    pub(super) write_error: Option<io::Error>,
    /// Of a client that has several calls on a connection.
    pub(super) pipeline: Option<Box<Pipeline>>,
    pub(super) armed: Armed,
}

impl<S> Conn<S> {
    /// Whether it wakes up before any limit of its present wait can be reached, of those that begin now or have begun.
    #[inline]
    pub(super) fn is_armed_by(&self, soonest: Time) -> bool {
        let soonest = self.deadline.map_or(soonest, |at| at.min(soonest));
        let soonest = match self.state {
            ConnState::Draining(_, _, until) => soonest.min(until),
            _ => soonest,
        };
        self.armed.is_by(soonest) && self.continue_at.is_none() && !self.has_own_limits
    }
}

pub(super) enum ConnState {
    /// For an opening, which is to hear of it at that time if it is not up by then.
    Connecting(OpeningKey, Option<Time>),
    /// In the handshakes with proxies and in TLS's.
    Handshaking(Box<Handshakes>),
    /// Between two states, until the client has decided.
    AwaitingDecision,
    Idle(Time),
    Busy(Exchange, CallKey),
    Draining(Exchange, Response, Time),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadPause {
    /// Until the consumer has taken some.
    Consumer,
    /// Until the next turn.
    Budget,
}

/// A connection's place: in which pool, and where in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PoolSlot {
    pub(crate) host: HostKey,
    pub(crate) id: SlotId,
}

/// The addresses of a connection, which its calls share: they would be a third of what a call moves.
#[derive(Debug)]
pub(crate) struct Endpoints {
    pub(crate) remote: Address,
    pub(crate) local: Option<Address>,
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

impl<N: Net> Reactor<N> {
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

    /// Whether a connection has been kept idle or has served before.
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

    /// Limits waits for first bytes on a connection, unless the call has a limit of its own.
    pub(crate) fn set_first_byte_limit(&mut self, conn: ConnKey, limit: Duration) {
        if let Some(conn) = self.conns.get_mut(conn) {
            conn.first_byte_limit = Some(limit);
        }
    }

    /// Leaves a connection idle until then, watched.
    pub(crate) fn idle(&mut self, key: ConnKey, until: Time) {
        if let Some(conn) = self.conns.get_mut(key) {
            conn.state = ConnState::Idle(until);
            if !std::mem::replace(&mut conn.reused, true) {
                conn.opened = None; // its first call will not have opened it
            }
            if let (None, Some(order)) = (conn.idle_ticket, &mut self.idle_order) {
                conn.idle_ticket = Some(order.push_back(key));
            }
            self.timers
                .arm(TimerOwner::Conn(key), &mut conn.armed, until);
            // What came along with the connection: a call may come for it before the next turn looks.
            if conn.read_pause == Some(ReadPause::Budget) {
                self.check_idle(key);
            }
        }
    }

    /// Any byte, the end of the stream or an error on an idle connection ends it.
    pub(super) fn check_idle(&mut self, key: ConnKey) {
        if mutation::on(Mutation::StaleReuse) {
            return;
        }
        match self.read_freely(key) {
            None => {}
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => {
                if let Some(slot) = self.close(key) {
                    self.reactor_events.push_back(ReactorEvent::Lost(slot));
                }
            }
        }
    }

    pub(crate) fn close(&mut self, key: ConnKey) -> Option<PoolSlot> {
        let conn = self.remove_conn(key)?;
        conn.stream.close(&mut self.net);
        if let ConnState::Draining(_, response, _) = conn.state {
            self.put_spare(response);
        }
        self.report_unanswered(conn.pipeline, &conn.endpoints.remote);
        Some(conn.slot)
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

    pub(crate) fn close_stream(&mut self, stream: N::Stream) {
        self.net.inner().close(stream);
    }

    pub(super) fn fail(&mut self, key: ConnKey, kind: ErrorKind) {
        let Some(mut conn) = self.remove_conn(key) else {
            return;
        };
        conn.stream.close(&mut self.net);
        let pipeline = conn.pipeline.take();
        if pipeline
            .as_ref()
            .is_some_and(|pipeline| pipeline.is_broken_by(&kind))
        {
            self.reactor_events
                .push_back(ReactorEvent::PipeliningBroken);
        }
        match conn.state {
            ConnState::Busy(_, call)
                if pipeline
                    .as_ref()
                    .is_some_and(|pipeline| pipeline.is_front_unsent()) =>
            {
                self.reactor_events.push_back(ReactorEvent::Lost(conn.slot));
                // A connection that never served counts as an attempt, or there would be no end of them.
                let never_served = pipeline
                    .as_ref()
                    .is_some_and(|pipeline| !pipeline.has_served());
                let error = never_served.then(|| {
                    Error::new(kind, Phase::Send, Sent::Nothing)
                        .with_remote(Some(conn.endpoints.remote.clone()))
                });
                self.reactor_events.push_back(ReactorEvent::Unanswered {
                    call,
                    sent: Sent::Nothing,
                    error,
                });
            }
            ConnState::Busy(exchange, call) => {
                // The head counts, whether or not the fault came in the same read.
                if exchange.has_head() && exchange.mode() == BodyMode::Stream {
                    self.reactor_events.push_back(ReactorEvent::Head(call));
                }
                // A write error is the cause of the end that followed it.
                let kind = match (conn.write_error.take(), kind) {
                    (Some(error), ErrorKind::Io(_) | ErrorKind::Peer(PeerFault::Empty)) => {
                        error.into()
                    }
                    (_, kind) => kind,
                };
                let error = Error::new(kind, exchange.phase(), exchange.sent())
                    .with_remote(Some(conn.endpoints.remote.clone()));
                self.reactor_events.push_back(ReactorEvent::Failed {
                    slot: conn.slot,
                    call,
                    error,
                });
            }
            ConnState::Draining(_, response, _) => {
                self.put_spare(response);
                self.reactor_events.push_back(ReactorEvent::Lost(conn.slot));
            }
            ConnState::Handshaking(handshakes) => {
                let error = Error::new(kind, handshakes.phase(), Sent::Nothing)
                    .with_remote(Some(conn.endpoints.remote.clone()));
                self.reactor_events
                    .push_back(ReactorEvent::HandshakeFailed {
                        opening: handshakes.opening,
                        error,
                    });
            }
            ConnState::Connecting(..) | ConnState::AwaitingDecision | ConnState::Idle(_) => {
                self.reactor_events.push_back(ReactorEvent::Lost(conn.slot));
            }
        }
        self.report_unanswered(pipeline, &conn.endpoints.remote);
    }

    pub(super) fn remove_conn(&mut self, key: ConnKey) -> Option<Conn<MeteredStream<N::Stream>>> {
        let mut conn = self.conns.remove(key)?;
        if let (Some(ticket), Some(order)) = (conn.idle_ticket.take(), &mut self.idle_order) {
            order.remove(ticket);
        }
        Some(conn)
    }
}
