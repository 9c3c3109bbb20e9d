//! Connections: what the reactor keeps of each one, from the connect to the close.
//!
//! A method that handles something works with what all connections have in common. If it returns an error, the connection
//! has ended: the reactor closes it.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use super::handshake::Handshakes;
use super::meter::MeteredStream;
use super::pipeline::Pipeline;
use super::read::Look;
use super::spares::Spares;
use super::timers::Timers;
use super::{Armed, CallKey, Common, ConnKey, HostKey, OpeningKey, ReactorEvent, TimerOwner};
use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent};
use crate::net::tls::TlsInfo;
use crate::net::transport::Transport;
use crate::net::{Address, Event, Net};
use crate::policy::SlotId;
use crate::policy::queue::{Queue, Ticket};
use crate::proto::{Exchange, Request, Response};
use crate::time::Time;

pub(super) struct Conn<N: Net> {
    pub(super) key: ConnKey,
    pub(super) stream: Transport<MeteredStream<N::Stream>>,
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
    /// The connection is in `Common::left_over.sends`.
    pub(super) send_deferred: bool,
    /// The peer has closed its side, or the connection has failed.
    pub(super) closed: bool,
    pub(super) write_error: Option<io::Error>,
    /// Only in a client that has several calls on a connection.
    pub(super) pipeline: Option<Box<Pipeline>>,
    pub(super) armed: Armed,
}

impl<N: Net> Conn<N> {
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

    /// Takes the call off the connection, and abandons the answer.
    pub(super) fn drop_answer<C>(&mut self, common: &mut Common<N, C>, until: Time) {
        if let ConnState::Busy(call) = self.state {
            let mut response = common.spares.take_response();
            self.exchange.discard();
            if let Some(call) = common.calls.get_mut(call) {
                response.continue_from(&mut call.response);
            }
            self.state = ConnState::Draining(response, until);
            self.arm_by(self.draining_due(until), &mut common.timers);
        }
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

    /// Makes sure that the timer of a busy connection fires in time.
    #[inline]
    pub(super) fn arm<C>(&mut self, common: &mut Common<N, C>) {
        // Nearly always, the timer of the last idle time fires before any limit of this call.
        if !self.is_armed_by(common.soonest) {
            self.arm_anew(common);
        }
    }

    /// Makes sure that the timer of the connection fires when the present wait ends.
    pub(super) fn arm_anew<C>(&mut self, common: &mut Common<N, C>) {
        if let Some((at, _)) = self.due(common) {
            self.arm_by(at, &mut common.timers);
        }
    }

    /// Makes sure that the timer of the connection fires at that time or before.
    #[inline]
    pub(super) fn arm_by(&mut self, at: Time, timers: &mut Timers) {
        timers.arm(TimerOwner::Conn(self.key), &mut self.armed, at);
    }

    /// Takes an idle connection out of the order of the idle connections.
    #[inline]
    pub(super) fn leave_idle_order(&mut self, order: &mut Option<Queue<ConnKey>>) {
        if let (Some(ticket), Some(order)) = (self.idle_ticket.take(), order) {
            order.remove(ticket);
        }
    }

    /// Handles an event of the network. Returns the end of a response, if that is what the event brings.
    ///
    /// # Errors
    /// Why the connection has ended.
    #[inline(always)] // into its only caller
    pub(super) fn handle_event<C>(
        &mut self,
        common: &mut Common<N, C>,
        event: Event,
    ) -> Result<Option<ReactorEvent>, ErrorKind> {
        self.closed |= event.closed;
        match &self.state {
            ConnState::Busy(_) | ConnState::Draining(..) => {
                let sends = || match &self.pipeline {
                    Some(pipeline) => pipeline.is_stuck(),
                    None => self.exchange.is_sending(),
                };
                if event.writable && sends() {
                    self.send_on(common)?;
                }
                if event.readable {
                    return self.read(common);
                }
            }
            ConnState::Connecting { .. } => self.check_connected(common, event.readable)?,
            ConnState::Idle(_) if event.readable => self.check_idle(common)?,
            ConnState::Handshaking(_) => self.drive_handshakes(common)?,
            ConnState::Idle(_) | ConnState::AwaitingDecision => {}
        }
        Ok(None)
    }

    /// Handles the end of the connect.
    fn check_connected<C>(
        &mut self,
        common: &mut Common<N, C>,
        readable: bool,
    ) -> Result<(), ErrorKind> {
        let ConnState::Connecting {
            opening,
            needs_handshakes,
            ..
        } = self.state
        else {
            return Ok(());
        };
        if !common.net.connected(self.stream.stream())? {
            return Ok(());
        }
        // No call shares the endpoints yet.
        if let Some(endpoints) = Arc::get_mut(&mut self.endpoints) {
            endpoints.local = common.net.local_address(self.stream.stream());
            endpoints.v4 = match (&endpoints.remote, &endpoints.local, &endpoints.server) {
                (
                    &Address::Tcp(SocketAddr::V4(remote)),
                    &Some(Address::Tcp(SocketAddr::V4(local))),
                    Server::Remote,
                ) => Some([remote, local]),
                _ => None,
            };
        }
        // Bytes that came together with the connection cause no event of their own. They are read after the first request
        // is sent, whose answer they are: a server that is full says so at once.
        if readable && !needs_handshakes {
            self.early = true;
            self.defer_read(common);
        }
        self.state = ConnState::AwaitingDecision;
        let conn = self.key;
        let connected = ReactorEvent::Connected { opening, conn };
        common.events.push_back(connected);
        Ok(())
    }

    /// An idle connection ends with any byte from the peer, the end of the stream or an error.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn check_idle<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        match self.look(&mut common.net, &mut common.buffer) {
            Look::Nothing => Ok(()),
            Look::More => {
                self.defer_read(common);
                Ok(())
            }
            Look::Bytes | Look::Ended => Err(PeerFault::Empty.into()),
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

impl ConnState {
    /// Changes the state. Nearly always, nothing is to be freed with the old one.
    #[inline(always)] // on the path of every call
    pub(super) fn change(&mut self, new: Self) {
        match self {
            Self::Busy(_) | Self::Idle(_) | Self::AwaitingDecision => {
                std::mem::forget(std::mem::replace(self, new));
            }
            _ => *self = new,
        }
    }
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

/// The addresses of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    /// The address of the server or of the proxy.
    pub(crate) remote: Address,
    pub(crate) local: Option<Address>,
    pub(crate) server: Server,
    /// The remote and the local address, if this is all that there is to tell.
    pub(crate) v4: Option<[SocketAddrV4; 2]>,
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
