//! Connecting: from the start of a connection until the connection is up.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::conn::{Conn, ConnState, ReadPause, Wait};
use super::{
    Armed, ConnKey, Endpoints, OpeningKey, PoolSlot, Reactor, ReactorEvent, Server, TimerOwner,
    token,
};
use crate::error::{Phase, Sent, Shortage};
use crate::net::transport::Transport;
use crate::net::{Address, Net};
use crate::time::Time;

impl<N: Net, C> Reactor<N, C> {
    /// Starts to connect to an address, as part of an opening.
    pub(crate) fn connect(
        &mut self,
        slot: PoolSlot,
        opening: OpeningKey,
        address: &Address,
        server: Server,
        needs_handshakes: bool,
    ) -> io::Result<ConnKey> {
        let token = token::of_key(self.conns.next_key()).ok_or(Shortage::Memory)?;
        let stream = self
            .net
            .connect_for(slot.host, token, address, &self.settings.socket)?;
        Ok(self.conns.insert(Conn {
            stream: Transport::new(stream),
            slot,
            state: ConnState::Connecting {
                opening,
                due: None,
                needs_handshakes,
            },
            exchange: self.settings.exchange(),
            endpoints: Arc::new(Endpoints {
                remote: address.clone(),
                local: None,
                server,
            }),
            opened: None,
            idle_ticket: None,
            reused: false,
            early: false,
            stray_body: false,
            wait: Wait {
                since: self.now,
                deadline: None,
                continue_at: None,
                first_byte_limit: None,
                has_own_limits: false,
            },
            read_pause: None,
            closed: false,
            write_error: None,
            send_deferred: false,
            pipeline: None,
            armed: Armed::default(),
        }))
    }

    /// If the connection is not up by that time, its opening gets an event.
    pub(crate) fn set_connect_due(&mut self, key: ConnKey, at: Time) {
        if let Some(conn) = self.conns.get_mut(key)
            && let ConnState::Connecting { due, .. } = &mut conn.state
        {
            *due = Some(at);
            self.timers.arm(TimerOwner::Conn(key), &mut conn.armed, at);
        }
    }

    pub(super) fn check_connected(&mut self, key: ConnKey, readable: bool) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match self.net.connected(conn.stream.stream()) {
            Ok(false) => {}
            Ok(true) => {
                let ConnState::Connecting {
                    opening,
                    needs_handshakes,
                    ..
                } = conn.state
                else {
                    return;
                };
                // No call shares the endpoints yet.
                if let Some(endpoints) = Arc::get_mut(&mut conn.endpoints) {
                    endpoints.local = self.net.local_address(conn.stream.stream());
                }
                // Bytes that came together with the connection cause no event of their own. They are read after the
                // first request is sent, whose answer they are: a server that is full says so at once.
                if readable && !needs_handshakes {
                    conn.early = true;
                    conn.read_pause = Some(ReadPause::Budget);
                    self.left_over.reads.next.push(key);
                }
                conn.state = ConnState::AwaitingDecision;
                self.reactor_events
                    .push_back(ReactorEvent::Connected { opening, conn: key });
            }
            Err(error) => {
                let Some(conn) = self.remove_conn(key) else {
                    return;
                };
                if let ConnState::Connecting { opening, .. } = conn.state {
                    self.reactor_events.push_back(ReactorEvent::ConnectFailed {
                        opening,
                        conn: key,
                        error: conn.error(error, Phase::Connect, Sent::Nothing),
                    });
                }
                conn.stream.close(&mut self.net);
            }
        }
    }

    /// Notes how long the lookup and the connect took.
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
}
