//! One round of the event loop: submitted calls begin, events are waited for, and each event is processed.

use std::io;
use std::panic::resume_unwind;
use std::time::Duration;

use super::Engine;
use crate::client::connector::{Opened, Opener};
use crate::client::router::Router;
use crate::client::sharing::Sharing;
use crate::client::telemetry::Telemetry;
use crate::client::{CallTime, ObserverEvent};
use crate::net::Net;
use crate::proto::BodyMode;
use crate::reactor::{
    CallKey, CallState, ConnKey, HostKey, OpeningKey, PoolSlot, ProxyMessage, ReactorEvent,
    TimerOwner,
};
use crate::time::Time;

impl<R: Router, N: Net> Engine<R, N> {
    /// Begins the submitted calls. Then, unless `over` is true, waits for events, until that time, and processes them.
    /// Returns whether it did so.
    pub(super) fn iterate(
        &mut self,
        mut until: Option<Time>,
        over: impl Fn(&Self) -> bool,
    ) -> io::Result<bool> {
        let stale = self.reactor.begin_iteration();
        if stale && self.hosts.cap.open() > 0 {
            // Idle connections may have died since the last poll. And calls that end as soon as they begin must not
            // starve the calls that are already in flight.
            self.poll(Some(self.reactor.now()))?;
            if self.is_driven {
                // That poll may have consumed the wake-up for commands that are still in the queue.
                until = Some(self.reactor.now());
            }
        }
        self.begin_incoming();
        self.process_events();
        self.raise_panic();
        if over(self) {
            return Ok(false);
        }
        let polled = self.poll(until);
        if R::Sharing::IS_ON {
            self.reactor.flush();
            self.process_events();
        }
        self.raise_panic();
        polled.map(|()| true)
    }

    /// The end of a time that begins now; `None` if the time has no end.
    pub(super) fn until(&self, timeout: Option<Duration>) -> Option<Time> {
        self.reactor.clock().checked_add(timeout?)
    }

    /// Waits for events until that time, and processes them.
    fn poll(&mut self, until: Option<Time>) -> io::Result<()> {
        let polled = self.reactor.poll(until);
        for opened in self.opener().take_answers() {
            self.opened(Some(opened));
        }
        if self.uploads.are_used() {
            // The calls whose sources have their next pieces go on.
            for call in self.uploads.take_woken() {
                self.reactor.resume_send(call);
            }
        }
        self.process_events();
        polled
    }

    /// Goes on with the panic of the source of a body, now that all events are processed.
    #[inline]
    fn raise_panic(&mut self) {
        if let Some(panic) = self.reactor.take_panic() {
            resume_unwind(panic);
        }
    }

    pub(super) fn begin_incoming(&mut self) {
        while let Some((key, host)) = self.hosts.drop_unused(self.reactor.now()) {
            self.reactor.net.forget(key);
            self.router.forget(&host.name);
        }
        let mut number = 0;
        while let Some((key, time)) = self.queue.submitted(number) {
            self.begin(key, time);
            number += 1;
        }
        self.queue.clear_submitted();
    }

    pub(super) fn begin(&mut self, key: CallKey, time: CallTime) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        if !call.is_new() {
            return; // cancelled before the call began
        }
        let streams = call.request.has_stream();
        if !matches!(time, CallTime::Running) {
            call.timestamps.begun = now;
            let timeouts = call.own_timeouts().unwrap_or(&self.rules.timeouts);
            let total = match call.mode {
                BodyMode::Stream => {
                    let until_head = timeouts.until_head();
                    call.client.has_own_deadline = !matches!(time, CallTime::Configured);
                    until_head
                }
                BodyMode::Buffer | BodyMode::Discard => timeouts.total,
            };
            call.deadline = time.expires_at(now, total);
            call.response.clear();
            call.request.reset();
        }
        if self.telemetry.observes() {
            self.notify(key, Telemetry::call_begun);
        }
        if streams && !self.prepare_source(key) {
            return;
        }
        self.send(key);
    }

    /// Tells the source of a body whom it wakes, or whether it may have no bytes for a while. If there is no waker, the call
    /// ends, and this returns false.
    #[cold]
    fn prepare_source(&mut self, key: CallKey) -> bool {
        if let Some(call) = self.reactor.call(key)
            && !call.request.has_waking_source()
        {
            let may_block = !call.client.is_awaited;
            call.request.set_source_may_block(may_block);
            return true;
        }
        let reactor = &mut self.reactor;
        match self.uploads.waker(key, || reactor.net.waker()) {
            Ok(waker) => {
                if let Some(call) = self.reactor.call(key) {
                    call.request.set_source_waker(waker);
                }
                true
            }
            Err(error) => {
                self.refuse(key, error);
                false
            }
        }
    }

    /// Processes events, queued calls and touched hosts until none is left.
    pub(super) fn process_events(&mut self) {
        loop {
            if R::Sharing::IS_ON {
                self.end_answered();
            }
            if let Some(event) = self.reactor.next_event() {
                self.handle(event);
                continue;
            }
            if let Some(key) = self.queue.next_further() {
                if self.reactor.call(key).is_some_and(|call| call.is_new()) {
                    self.send(key);
                }
                continue;
            }
            // A host without any connection comes before hosts that want more.
            let room = !self.hosts.cap.is_full()
                || self.reactor.oldest_idle().is_some() && self.hosts.cap.gains_by_closing();
            let next = room
                .then(|| self.hosts.next_without_connection())
                .flatten()
                .or_else(|| self.hosts.next_touched())
                .or_else(|| room.then(|| self.hosts.next_wanting_more()).flatten());
            match next {
                Some(host) => self.service_host(host),
                None if self.throttle.take_due() => self.serve_fair_queue(None),
                None => return,
            }
        }
    }

    /// Services a host: begins its waiting calls, opens the connections that the host needs, and sets its timer.
    pub(super) fn service_host(&mut self, key: HostKey) {
        let now = self.reactor.now();
        if self.hosts.get_ref(key).is_some_and(|host| host.leaving) {
            return self.service_leaving(key);
        }
        let throttled = self.hosts.is_throttled();
        if throttled {
            self.begin_waiting(key);
        }
        loop {
            let is_full = self.hosts.cap.is_full();
            let Some(host) = self.hosts.get(key) else {
                break;
            };
            // A connection that is only kept warm takes no room from other hosts.
            let wants_open = host.pool.wants_open(now) && !(is_full && host.pool.only_warms());
            if wants_open && (!throttled || self.throttle.may_open(now, key, &mut self.hosts)) {
                if !is_full {
                    let opened = self.opener().open(key);
                    self.opened(opened);
                } else if let Some(idle) = self.replaceable_idle() {
                    self.close(idle);
                } else if R::Sharing::IS_ON {
                    self.hosts.want(key);
                    self.share_connections(key);
                    break;
                } else if let Some(call) = self.hosts.get(key).and_then(|host| host.pool.refuse()) {
                    let full = self.hosts.cap.full_error();
                    self.refuse(call, full);
                } else {
                    self.hosts.want(key);
                    break;
                }
            } else if let Some(idle) = self.hosts.get(key).and_then(|host| host.pool.in_the_way()) {
                self.close(idle);
            } else {
                break;
            }
        }
        let Some(host) = self.hosts.get(key) else {
            return;
        };
        // A time in the past needs no timer: the host waits for room under the cap, or in the fair queue.
        let mut at = host.pool.poll_timeout().filter(|at| *at > now);
        if throttled {
            at = at.into_iter().chain(self.keep_back(key)).min();
        }
        if self.hosts.set_timer(key, at)
            && let Some(at) = at
        {
            self.opener().set_timer(TimerOwner::Host(key), at);
        }
        if !(R::KEEPS_HOSTS || throttled && self.counts_until(key).is_some()) {
            self.hosts.note_unused(now, key);
        }
    }

    /// An idle connection that can be closed to make room for another one.
    fn replaceable_idle(&self) -> Option<ConnKey> {
        match self.hosts.cap.gains_by_closing() {
            true => self.oldest_idle(),
            false => None,
        }
    }

    /// The connection that has been idle for longest. Without a cap over all hosts, the client keeps no order, and this is
    /// any idle connection.
    pub(super) fn oldest_idle(&self) -> Option<ConnKey> {
        match self.hosts.cap.is_limited() {
            true => self.reactor.oldest_idle(),
            false => self.reactor.idle_conns().first().copied(),
        }
    }

    pub(super) fn handle(&mut self, event: ReactorEvent) {
        match event {
            ReactorEvent::Finished {
                conn,
                call,
                reuse,
                keep_alive,
            } => {
                // If the connection no longer exists, the end of its call has closed it.
                if self.release(conn, call, reuse, keep_alive)
                    && let Some(call) = call
                {
                    self.answered(call);
                }
            }
            ReactorEvent::Connected { opening, conn } => {
                let opened = self.opener().attempt_succeeded(opening, conn);
                self.opened(opened);
            }
            ReactorEvent::Ready { opening, conn } => {
                let opened = self.opener().ready(opening, conn);
                self.opened(opened);
            }
            ReactorEvent::Tunnel { endpoints, message } => {
                let remote = &endpoints.remote;
                self.telemetry.notify(|| match &message {
                    ProxyMessage::Request(head) => ObserverEvent::Tunnelling { remote, head },
                    ProxyMessage::Answer(status, head) => ObserverEvent::TunnelAnswered {
                        remote,
                        status: *status,
                        head,
                    },
                });
            }
            ReactorEvent::HandshakeFailed { opening, error } => {
                self.telemetry
                    .notify(|| ObserverEvent::ConnectFailed { error: &error });
                let opened = self.opener().handshake_failed(opening, error);
                self.opened(opened);
            }
            ReactorEvent::ConnectFailed {
                opening,
                conn,
                error,
            } => {
                let opened = self.opener().attempt_failed(opening, conn, error);
                self.opened(opened);
            }
            ReactorEvent::Answered {
                slot,
                conn,
                responses,
            } => self.pipeline_answered(slot, conn, responses),
            ReactorEvent::Unanswered { call, sent, error } => self.unanswered(call, sent, error),
            ReactorEvent::PipeliningBroken => self.pipelining_broken(false),
            ReactorEvent::PipeliningDoubted => self.pipelining_broken(true),
            ReactorEvent::Failed { slot, call, error } => {
                self.slot_freed(slot);
                self.end_attempt(call, error);
            }
            ReactorEvent::Head(call) => self.handle_head(call),
            ReactorEvent::BodyReady(call) => self.notify_readable(call),
            ReactorEvent::Lost(slot) => {
                self.pipeline_ended(slot);
                let now = self.reactor.now();
                if let Some(host) = self.hosts.get(slot.host) {
                    host.pool.lost(now, slot.id);
                    self.hosts.touch(slot.host);
                }
            }
            ReactorEvent::IdleDue(conn) => {
                let now = self.reactor.now();
                if let Some(slot) = self.reactor.slot(conn)
                    && let Some(host) = self.hosts.get(slot.host)
                {
                    match host.pool.expired(now, slot.id) {
                        Ok(()) => self.close(conn),
                        Err(later) => self.reactor.idle(conn, later),
                    }
                }
            }
            ReactorEvent::WaitOver(call, limit) => self.wait_over(call, limit),
            ReactorEvent::PauseOver(call) => self.pause_over(call),
            ReactorEvent::TimedOut { conn, call, limit } => self.late(conn, call, limit),
            ReactorEvent::Timer(TimerOwner::Opening(opening)) => self.opening_due(opening),
            ReactorEvent::Timer(TimerOwner::FairQueue) => self.throttle.timer_fired(),
            ReactorEvent::Timer(TimerOwner::Shortage) => {
                self.hosts.cap.timer_fired(self.reactor.now());
            }
            ReactorEvent::Timer(TimerOwner::Host(host)) => {
                self.hosts.set_timer(host, None);
                self.hosts.touch(host);
            }
            ReactorEvent::Timer(TimerOwner::Conn(_) | TimerOwner::Call(_)) => {}
        }
    }

    /// Ends the calls that were answered while other calls on their connections go on.
    fn end_answered(&mut self) {
        if std::mem::take(&mut self.reactor.pipelining.has_pipelined)
            && let Some(pipelines) = self.sharing.pipelines()
        {
            pipelines.loads.trust();
        }
        let (now, is_plain) = (self.reactor.now(), self.ends_at_once());
        let mut number = 0;
        // The calls stay in the list, so that a panic in a user's callback does not lose them.
        while let Some(&key) = self.reactor.pipelining.answered.get(number) {
            number += 1;
            let call = self.reactor.call(key);
            let Some(call) = call.filter(|call| matches!(call.state, CallState::OnConn(_))) else {
                continue;
            };
            if is_plain {
                call.end(now, Ok(()));
                self.deliveries.done.push_back(key);
            } else {
                self.answered(key);
            }
        }
        self.reactor.pipelining.answered.clear();
    }

    /// A call has its answer from its connection.
    #[inline]
    fn answered(&mut self, key: CallKey) {
        if self.rules.adaptive.is_on() {
            self.note_latency(key);
        }
        self.finish(key);
    }

    /// The timer of an opening has fired.
    pub(super) fn opening_due(&mut self, key: OpeningKey) {
        let slow = self.opener().slow_host(key);
        let opened = self.opener().opening_due(key);
        self.opened(opened);
        if let Some(host) = slow {
            self.move_waiting(host);
        }
    }

    /// An opening may have ended.
    pub(super) fn opened(&mut self, opened: Option<Opened>) {
        match opened {
            None => {}
            Some(Opened::Ready { slot, conn }) => self.opening_ready(slot, conn),
            Some(Opened::Failed { call, error }) => {
                if let Some(call) = self.reactor.call(call) {
                    call.timestamps.attempts += 1;
                }
                self.end_attempt(call, error);
            }
            Some(Opened::Resolved(addresses)) => self.set_addresses(&addresses),
        }
    }

    /// A new connection is ready: the oldest waiting call gets it, if that call may begin now; else it becomes idle.
    pub(super) fn opening_ready(&mut self, slot: PoolSlot, conn: ConnKey) {
        let (now, random) = (self.reactor.now(), self.reactor.net.random());
        if let Some(host) = self.hosts.get(slot.host) {
            host.pool.set_conn(slot.id, conn);
            let next = host.pool.connected(now, slot.id, random);
            if host.throttle.is_on() {
                return self.opened_throttled(slot.host, conn, next);
            }
            self.hosts.touch(slot.host);
            self.put(conn, next);
        }
    }

    /// The connector, and the parts of the engine that it works on.
    pub(super) fn opener(&mut self) -> Opener<'_, N> {
        Opener {
            connector: &mut self.connector,
            reactor: &mut self.reactor,
            hosts: &mut self.hosts,
            throttle: &self.throttle,
            telemetry: &self.telemetry,
        }
    }
}
