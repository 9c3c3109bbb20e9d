//! The commands of the client: what it has decided about calls and connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::conn::{Conn, ConnState, ReadPause, Wait};
use super::{
    ActiveCall, Armed, CallKey, CallState, ConnKey, Endpoints, Opened, OpeningKey, PoolSlot,
    Reactor, Server, Step, TimerOwner, token,
};
use crate::error::{Phase, Shortage};
use crate::net::transport::Transport;
use crate::net::upgraded::Upgraded;
use crate::net::{Address, Net};
use crate::policy::WaitId;
use crate::proto::BodyMode;
use crate::time::Time;

impl<N: Net, C> Reactor<N, C> {
    // ---- calls

    #[inline]
    pub(crate) fn insert_call(&mut self, make: impl FnOnce() -> ActiveCall<C>) -> CallKey {
        self.common.calls.insert(make)
    }

    pub(crate) fn call(&mut self, call: CallKey) -> Option<&mut ActiveCall<C>> {
        self.common.calls.get_mut(call)
    }

    pub(crate) fn call_ref(&self, call: CallKey) -> Option<&ActiveCall<C>> {
        self.common.calls.get(call)
    }

    #[inline]
    pub(crate) fn remove_call(&mut self, key: CallKey) -> Option<ActiveCall<C>> {
        let common = &mut self.common;
        if common.body_memory.is_used()
            && let Some(call) = common.calls.get_mut(key)
        {
            common.body_memory.set(&mut call.held, 0);
        }
        common.calls.remove(key)
    }

    pub(crate) fn calls(&self) -> usize {
        self.common.calls.len()
    }

    /// Notes that a call waits for a connection from now on.
    pub(crate) fn wait(&mut self, key: CallKey, id: WaitId) {
        let common = &mut self.common;
        let Some(call) = common.calls.get_mut(key) else {
            return;
        };
        let since = common.now;
        call.state = CallState::Waiting { id, since };
        call.timestamps.reused = false;
        let timeouts = call.timeouts(&common.settings);
        let due = timeouts.due(Phase::Queue, since, call.deadline);
        if let Some((at, _)) = due {
            let owner = TimerOwner::Call(key);
            common.timers.arm(owner, &mut call.armed, at);
        }
    }

    /// Sets another deadline of a call that has a connection.
    pub(crate) fn set_deadline(&mut self, key: CallKey, deadline: Option<Time>) {
        let Some(call) = self.common.calls.get_mut(key) else {
            return;
        };
        call.deadline = deadline;
        if let CallState::OnConn(key) = call.state
            && let Some(conn) = self.conns.get_mut(key)
        {
            conn.wait.deadline = deadline;
            conn.arm(&mut self.common);
        }
    }

    /// Lets a call wait for its next attempt.
    pub(crate) fn pause(&mut self, key: CallKey, until: Time, fresh: bool) {
        if let Some(call) = self.common.calls.get_mut(key) {
            call.state = CallState::Pausing { until, fresh };
            let owner = TimerOwner::Call(key);
            self.common.timers.arm(owner, &mut call.armed, until);
        }
    }

    // ---- opening

    /// Starts to connect to an address, as part of an opening.
    pub(crate) fn connect(
        &mut self,
        slot: PoolSlot,
        opening: OpeningKey,
        address: &Address,
        server: Server,
        needs_handshakes: bool,
    ) -> io::Result<ConnKey> {
        let (key, common) = (self.conns.next_key(), &mut self.common);
        let token = token::of_key(key).ok_or(Shortage::Memory)?;
        let socket = &common.settings.socket;
        let stream = common.net.connect_for(slot.host, token, address, socket)?;
        Ok(self.conns.insert(|| Conn {
            key,
            stream: Transport::new(stream),
            slot,
            state: ConnState::Connecting {
                opening,
                due: None,
                needs_handshakes,
            },
            exchange: common.settings.exchange(),
            endpoints: Arc::new(Endpoints {
                remote: address.clone(),
                local: None,
                server,
                v4: None,
            }),
            opened: None,
            idle_ticket: None,
            reused: false,
            early: false,
            stray_body: false,
            wait: Wait {
                since: common.now,
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
            conn.arm_by(at, &mut self.common.timers);
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

    /// Begins the handshakes of a connection that is up.
    pub(crate) fn begin_handshakes(
        &mut self,
        key: ConnKey,
        opening: OpeningKey,
        steps: Arc<[Step]>,
        limit: Option<Duration>,
    ) {
        self.drive(key, |conn, common| {
            conn.begin_handshakes(common, opening, steps, limit)
        });
    }

    /// The phase of a connection that is in its handshakes.
    pub(crate) fn handshake_phase(&self, key: ConnKey) -> Option<Phase> {
        match &self.conns.get(key)?.state {
            ConnState::Handshaking(handshakes) => Some(handshakes.phase()),
            _ => None,
        }
    }

    // ---- calls on connections

    /// Gives a connection to a call, and begins to send the request. False if a look has shown that the connection cannot
    /// serve; nothing has changed then.
    #[inline(always)] // on the path of every call
    pub(crate) fn start(&mut self, conn_key: ConnKey, call_key: CallKey) -> bool {
        let common = &mut self.common;
        let (Some(conn), Some(call)) =
            (self.conns.get_mut(conn_key), common.calls.get_mut(call_key))
        else {
            return true;
        };
        if conn.must_look(&call.request) && conn.has_more(&mut common.net, &mut common.buffer) {
            return false;
        }
        call.state = CallState::OnConn(conn_key);
        let timestamps = &mut call.timestamps;
        timestamps.begin_attempt(common.now, conn.reused, &conn.endpoints);
        timestamps.set_opened(conn.opened.take().filter(|_| !conn.reused));
        conn.leave_idle_order(&mut common.idle_order);
        conn.reused = true;
        conn.wait.since = common.now;
        conn.wait.continue_at = None;
        conn.wait.deadline = call.deadline;
        conn.wait.has_own_limits = call.overrides.is_some() || conn.wait.first_byte_limit.is_some();
        conn.state.change(ConnState::Busy(call_key));
        conn.exchange.begin(&call.request, call.mode);
        if conn.early {
            conn.exchange.expect_early();
        }
        if call.mode == BodyMode::Stream {
            common.spares.lend_decoder(&mut call.response);
        }
        if common.settings.batching.is_some() {
            conn.start_pipeline(common, call_key);
            return true;
        }
        let sent = conn.send(call, &mut common.net, &mut common.buffer, common.now);
        match sent.or_else(|stop| conn.stop_sending(common, stop)) {
            Ok(()) => conn.arm(common),
            Err(kind) => self.fail(conn_key, kind),
        }
        true
    }

    /// Limits the waits for a first byte on a connection, unless the call has a limit of its own.
    pub(crate) fn set_first_byte_limit(&mut self, conn: ConnKey, limit: Duration) {
        if let Some(conn) = self.conns.get_mut(conn) {
            conn.wait.first_byte_limit = Some(limit);
        }
    }

    /// Whether a part of the request of a call is still to be sent, although its head may have come.
    pub(crate) fn is_sending(&self, call_key: CallKey) -> bool {
        let Some(CallState::OnConn(key)) = self.call_ref(call_key).map(|call| call.state) else {
            return false;
        };
        let conn = self.conns.get(key);
        conn.is_some_and(|conn| conn.serves(call_key) && conn.exchange.is_sending())
    }

    /// Goes on sending, after the source of a body has got more bytes.
    pub(crate) fn resume_send(&mut self, call: CallKey) {
        if let Some(CallState::OnConn(conn)) = self.call_ref(call).map(|call| call.state) {
            self.drive(conn, Conn::send_on);
        }
    }

    /// Goes on reading, after the consumer of a streamed body has taken bytes.
    pub(crate) fn resume_read(&mut self, call: CallKey) {
        let common = &mut self.common;
        let Some(call) = common.calls.get_mut(call) else {
            return;
        };
        let CallState::OnConn(key) = call.state else {
            return;
        };
        let waiting = call.response.body().len() - call.taken;
        common.body_memory.set_waiting(&mut call.held, waiting);
        if let Some(conn) = self.conns.get_mut(key)
            && conn.read_pause == Some(ReadPause::Consumer)
            && waiting < common.settings.stream_buffer
        {
            conn.read_pause = None;
            conn.wait.since = common.now;
            self.drive(key, Conn::drive_read);
        }
    }

    /// Takes the call off a connection, which then drains the abandoned answer. False if the connection cannot drain: a
    /// part of the request is unsent, or reading has paused for the consumer of a streamed body.
    pub(crate) fn drain(&mut self, key: ConnKey, until: Time) -> bool {
        let can_drain = |conn: &&mut Conn<N>| {
            matches!(conn.state, ConnState::Busy(_))
                && !conn.exchange.is_sending()
                && conn.read_pause != Some(ReadPause::Consumer)
        };
        let conn = self.conns.get_mut(key).filter(can_drain);
        conn.map(|conn| conn.drop_answer(&mut self.common, until))
            .is_some()
    }

    /// Drops the rest of a response that the caller does not get. False if the rest may be more than `most` bytes, or
    /// the connection closes anyway. The end of the response, or of the time until `until`, is reported by
    /// `ReactorEvent::Finished`, `Failed` or `TimedOut`, as for any other response. A connection that has failed already
    /// reports `Failed`, too.
    pub(crate) fn discard_rest(&mut self, call_key: CallKey, most: u64, until: Time) -> bool {
        let Some(call) = self.common.calls.get_mut(call_key) else {
            return false;
        };
        let CallState::OnConn(key) = call.state else {
            return false;
        };
        let Some(conn) = self.conns.get_mut(key) else {
            return true;
        };
        match conn.state {
            ConnState::Busy(_) if conn.exchange.discard_within(most) => {}
            ConnState::Busy(_) => return false,
            _ => return true,
        }
        let deadline = conn.wait.deadline;
        conn.wait.deadline = Some(deadline.map_or(until, |deadline| deadline.min(until)));
        call.response.body_buffer().clear();
        conn.arm(&mut self.common);
        self.resume_read(call_key);
        true
    }

    // ---- connections

    /// The connection that has been idle for longest.
    pub(crate) fn oldest_idle(&self) -> Option<ConnKey> {
        self.common.idle_order.as_ref()?.front()
    }

    /// All idle connections.
    pub(crate) fn idle_conns(&self) -> Vec<ConnKey> {
        self.conns
            .keys_of(|conn| matches!(conn.state, ConnState::Idle(_)))
    }

    pub(crate) fn slot(&self, conn: ConnKey) -> Option<PoolSlot> {
        self.conns.get(conn).map(|conn| conn.slot)
    }

    pub(crate) fn remote(&self, conn: ConnKey) -> Option<&Address> {
        self.conns.get(conn).map(|conn| &conn.endpoints.remote)
    }

    pub(crate) fn local(&self, conn: ConnKey) -> Option<&Address> {
        self.conns.get(conn)?.endpoints.local.as_ref()
    }

    pub(crate) fn opened(&self, conn: ConnKey) -> Option<&Opened> {
        self.conns.get(conn)?.opened.as_deref()
    }

    /// Whether a connection has been idle or has served before.
    pub(crate) fn has_served(&self, conn: ConnKey) -> bool {
        self.conns.get(conn).is_some_and(|conn| conn.reused)
    }

    /// Leaves a connection idle until that time. The reactor still watches the connection.
    pub(crate) fn idle(&mut self, key: ConnKey, until: Time) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        conn.state.change(ConnState::Idle(until));
        // What comes from now on is no answer.
        conn.early = false;
        if !std::mem::replace(&mut conn.reused, true) {
            conn.opened = None; // only the report of a call that waited for the opening has it
        }
        if let (None, Some(order)) = (conn.idle_ticket, &mut self.common.idle_order) {
            conn.idle_ticket = Some(order.push_back(key));
        }
        conn.arm_by(until, &mut self.common.timers);
        // The peer may have sent something already. Look now: a call may get the connection before the next iteration.
        if conn.read_pause == Some(ReadPause::Budget) {
            self.drive(key, Conn::check_idle);
        }
    }

    pub(crate) fn close(&mut self, key: ConnKey) -> Option<PoolSlot> {
        let conn = self.remove_conn(key)?;
        let common = &mut self.common;
        conn.stream.close(&mut common.net);
        if let ConnState::Draining(response, _) = conn.state {
            common.spares.put_response(response);
        }
        common.report_unanswered(conn.pipeline, &conn.endpoints.remote);
        Some(conn.slot)
    }

    /// Takes a connection out of the engine, for another protocol, and gives it to the caller in the response.
    pub(crate) fn hand_over(&mut self, key: ConnKey, call: CallKey) {
        let conn = self.remove_conn(key);
        let net = &mut self.common.net;
        let transport = conn.and_then(|conn| conn.stream.map(|stream| net.release(stream)));
        if let (Some(transport), Some(call)) = (transport, self.call(call)) {
            let early = std::mem::take(call.response.body_buffer());
            let upgraded = Upgraded::new(transport, early);
            call.response.set_switched(Box::new(upgraded));
        }
    }
}
