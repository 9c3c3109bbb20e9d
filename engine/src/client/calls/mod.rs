//! The calls of a client, from their beginning to their end: an attempt of a call comes to an answer, a redirect, an error
//! or a time limit, and then the call ends, goes on, or is tried again.
//!
//! All of this happens in rounds of the event loop: submitted calls begin, events are waited for, and each event is
//! processed.

mod answers;
mod attempts;

use std::io;
use std::panic::resume_unwind;
use std::time::Duration;

use super::connector::Opened;
use super::dispatch::Dispatch;
use super::migration::Migration;
use super::progress::ActiveCall;
use super::retries::Retries;
use super::router::Router;
use super::sharing::Sharing;
use super::uploads::Uploads;
use super::{CallTime, ObserverEvent};
use crate::net::Net;
use crate::policy::{LatePolicy, Timeouts};
use crate::proto::BodyMode;
use crate::reactor::{CallKey, CallState, OpeningKey, ProxyMessage, ReactorEvent, TimerOwner};
use crate::time::Time;

/// The calls, what they get connections from, and the rules for calls that have none of their own.
pub(super) struct Calls<R: Router, N: Net> {
    pub(super) dispatch: Dispatch<R, N>,
    pub(super) timeouts: Timeouts,
    pub(super) late: LatePolicy,
    pub(super) retries: Retries,
    pub(super) uploads: Uploads,
    pub(super) migration: Migration,
    /// Commands come from other threads, and the driver reads them after each iteration.
    pub(super) is_driven: bool,
}

impl<R: Router, N: Net> Calls<R, N> {
    /// Begins the submitted calls. Then, unless `over` is true, waits for events, until that time, and processes them.
    /// Returns whether it did so.
    #[inline]
    pub(super) fn iterate(
        &mut self,
        mut until: Option<Time>,
        over: impl Fn(&Self) -> bool,
    ) -> io::Result<bool> {
        let stale = self.dispatch.reactor.begin_iteration();
        if R::Sharing::IS_ON {
            self.end_answered(); // those that a panic in a user's callback has left
            self.dispatch.reactor.common.pipelining.ends_at_once = self.ends_at_once();
        }
        if stale && self.dispatch.hosts.cap.open() > 0 {
            // Idle connections may have died since the last poll. And calls that end as soon as they begin must not
            // starve the calls that are already in flight.
            self.poll(Some(self.dispatch.reactor.now()))?;
            if self.is_driven {
                // That poll may have consumed the wake-up for commands that are still in the queue.
                until = Some(self.dispatch.reactor.now());
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
            self.dispatch.reactor.flush();
            self.process_events();
        }
        self.raise_panic();
        polled.map(|()| true)
    }

    /// The end of a time that begins now; `None` if the time has no end.
    pub(super) fn until(&self, timeout: Option<Duration>) -> Option<Time> {
        timeout.and_then(|timeout| self.dispatch.reactor.clock().checked_add(timeout))
    }

    /// Waits for events until that time, and processes them.
    fn poll(&mut self, until: Option<Time>) -> io::Result<()> {
        let polled = self.dispatch.reactor.poll(until);
        for opened in self.dispatch.opener().take_answers() {
            self.opened(Some(opened));
        }
        if self.uploads.are_used() {
            // The calls whose sources have their next pieces go on.
            for call in self.uploads.take_woken() {
                self.dispatch.reactor.resume_send(call);
            }
        }
        self.process_events();
        polled
    }

    /// Goes on with the panic of the source of a body, now that all events are processed.
    #[inline]
    fn raise_panic(&mut self) {
        if let Some(panic) = self.dispatch.reactor.take_panic() {
            resume_unwind(panic);
        }
    }

    #[inline]
    fn begin_incoming(&mut self) {
        while let Some((key, host)) = self.dispatch.hosts.drop_unused(self.dispatch.reactor.now()) {
            self.dispatch.reactor.common.net.forget(key);
            self.dispatch.router.forget(&host.name);
        }
        let mut number = 0;
        while let Some((key, time)) = self.dispatch.queue.submitted(number) {
            self.begin(key, time);
            number += 1;
        }
        self.dispatch.queue.clear_submitted();
    }

    #[inline]
    fn begin(&mut self, key: CallKey, time: CallTime) {
        let now = self.dispatch.reactor.now();
        let Some(call) = self.dispatch.reactor.call(key) else {
            return;
        };
        if !call.is_new() {
            return; // cancelled before the call began
        }
        if !matches!(time, CallTime::Running) {
            call.timestamps.begun = now;
            let timeouts = call.own_timeouts().unwrap_or(&self.timeouts);
            let total = match call.mode {
                BodyMode::Stream => timeouts.until_head(),
                BodyMode::Buffer | BodyMode::Discard => timeouts.total,
            };
            call.client.has_own_deadline = !matches!(time, CallTime::Configured);
            call.deadline = time.expires_at(now, total);
            call.response.clear();
            call.request.reset();
        }
        let streams = call.request.has_stream();
        if self.dispatch.telemetry.observes() {
            self.dispatch.telemetry.call_begun(key, call);
        }
        if streams && !self.prepare_source(key) {
            return;
        }
        self.dispatch.send(key);
    }

    /// Tells the source of a body whom it wakes, or whether it may have no bytes for a while. If there is no waker, the call
    /// ends, and this returns false.
    #[cold]
    fn prepare_source(&mut self, key: CallKey) -> bool {
        if let Some(call) = self.dispatch.reactor.call(key)
            && !call.request.has_waking_source()
        {
            call.request.set_source_may_block(!call.client.is_awaited);
            return true;
        }
        match self
            .uploads
            .waker(key, &mut self.dispatch.reactor.common.net)
        {
            Ok(waker) => {
                if let Some(call) = self.dispatch.reactor.call(key) {
                    call.request.set_source_waker(waker);
                }
                true
            }
            Err(error) => {
                self.dispatch.refuse(key, error);
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
            if let Some(event) = self.dispatch.reactor.next_event() {
                self.handle(event);
                continue;
            }
            if let Some(key) = self.dispatch.queue.next_further() {
                let call = self.dispatch.reactor.call_ref(key);
                if call.is_some_and(ActiveCall::is_new) {
                    self.dispatch.send(key);
                }
                continue;
            }
            match self.dispatch.next_host() {
                Some(host) => {
                    let mut failed = self.dispatch.service_host(host);
                    while let Some((call, error)) = failed {
                        self.end_attempt(call, error);
                        failed = self.dispatch.open_wanted(host);
                    }
                }
                None if self.dispatch.throttle.take_due() => self.dispatch.serve_fair_queue(None),
                None => return,
            }
        }
    }

    fn handle(&mut self, event: ReactorEvent) {
        match event {
            ReactorEvent::Finished {
                conn,
                call,
                reuse,
                keep_alive,
            } => {
                // If the connection no longer exists, the end of its call has closed it.
                if self.dispatch.release(conn, call, reuse, keep_alive)
                    && let Some(call) = call
                {
                    self.answered(call);
                }
            }
            ReactorEvent::Connected { opening, conn } => {
                let opened = self.dispatch.opener().attempt_succeeded(opening, conn);
                self.opened(opened);
            }
            ReactorEvent::Ready { opening, conn } => {
                let opened = self.dispatch.opener().ready(opening, conn);
                self.opened(opened);
            }
            ReactorEvent::Tunnel { endpoints, message } => {
                let remote = &endpoints.remote;
                self.dispatch.telemetry.notify(|| match &message {
                    ProxyMessage::Request(head) => ObserverEvent::Tunnelling { remote, head },
                    ProxyMessage::Answer(status, head) => ObserverEvent::TunnelAnswered {
                        remote,
                        status: *status,
                        head,
                    },
                });
            }
            ReactorEvent::HandshakeFailed { opening, error } => {
                let telemetry = &self.dispatch.telemetry;
                telemetry.notify(|| ObserverEvent::ConnectFailed { error: &error });
                let opened = self.dispatch.opener().handshake_failed(opening, error);
                self.opened(opened);
            }
            ReactorEvent::ConnectFailed {
                opening,
                conn,
                error,
            } => {
                let opened = self.dispatch.opener().attempt_failed(opening, conn, error);
                self.opened(opened);
            }
            ReactorEvent::Answered {
                slot,
                conn,
                responses,
            } => self.dispatch.pipeline_answered(slot, conn, responses),
            ReactorEvent::Unanswered { call, sent, error } => self.unanswered(call, sent, error),
            ReactorEvent::PipeliningBroken => self.dispatch.pipelining_broken(false),
            ReactorEvent::PipeliningDoubted => self.dispatch.pipelining_broken(true),
            ReactorEvent::Failed { slot, call, error } => {
                self.dispatch.slot_freed(slot);
                self.end_attempt(call, error);
            }
            ReactorEvent::Head(call) => self.handle_head(call),
            ReactorEvent::BodyReady(call) => self.dispatch.notify_readable(call),
            ReactorEvent::Lost(slot) => self.dispatch.lost(slot),
            ReactorEvent::IdleDue(conn) => self.dispatch.idle_due(conn),
            ReactorEvent::WaitOver(call, limit) => self.wait_over(call, limit),
            ReactorEvent::PauseOver(call) => self.pause_over(call),
            ReactorEvent::TimedOut { conn, call, limit } => self.late(conn, call, limit),
            ReactorEvent::Timer(TimerOwner::Opening(opening)) => self.opening_due(opening),
            ReactorEvent::Timer(TimerOwner::FairQueue) => self.dispatch.throttle.timer_fired(),
            ReactorEvent::Timer(TimerOwner::Shortage) => {
                let now = self.dispatch.reactor.now();
                self.dispatch.hosts.cap.timer_fired(now);
            }
            ReactorEvent::Timer(TimerOwner::Host(host)) => {
                self.dispatch.hosts.set_timer(host, None);
                self.dispatch.hosts.touch(host);
            }
            ReactorEvent::Timer(TimerOwner::Conn(_) | TimerOwner::Call(_)) => {}
        }
    }

    /// Ends the calls that were answered while other calls on their connections go on.
    fn end_answered(&mut self) {
        if std::mem::take(&mut self.dispatch.reactor.common.pipelining.has_pipelined)
            && let Some(pipelines) = self.dispatch.sharing.pipelines()
        {
            pipelines.loads.trust();
        }
        let pipelining = &mut self.dispatch.reactor.common.pipelining;
        if pipelining.ends_at_once {
            self.dispatch.deliveries.done.extend(&pipelining.answered);
            return pipelining.answered.clear();
        }
        let mut number = 0;
        // The calls stay in the list, so that a panic in a user's callback does not lose them.
        while let Some(&key) = self.dispatch.reactor.common.pipelining.answered.get(number) {
            number += 1;
            let call = self.dispatch.reactor.call_ref(key);
            if call.is_some_and(|call| matches!(call.state, CallState::OnConn(_))) {
                self.answered(key);
            }
        }
        self.dispatch.reactor.common.pipelining.answered.clear();
    }

    /// A call has its answer from its connection.
    #[inline]
    fn answered(&mut self, key: CallKey) {
        if self.dispatch.adaptive.is_on() {
            self.note_latency(key);
        }
        self.finish(key);
    }

    /// An opening may have ended.
    fn opened(&mut self, opened: Option<Opened>) {
        if let Some((call, error)) = self.dispatch.opened(opened) {
            self.end_attempt(call, error);
        }
    }

    /// The timer of an opening has fired.
    fn opening_due(&mut self, key: OpeningKey) {
        let slow = self.dispatch.opener().slow_host(key);
        let opened = self.dispatch.opener().opening_due(key);
        self.opened(opened);
        if let Some(host) = slow {
            self.dispatch.move_waiting(host);
        }
    }
}
