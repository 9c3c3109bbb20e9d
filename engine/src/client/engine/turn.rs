//! The turn: what was submitted is begun, events are waited for, and everything that happened is decided about.

use std::io;
use std::time::Duration;

use super::{Engine, Traveller};
use crate::client::connector::{Connector, Context, Opened};
use crate::client::router::{Reroute, Router};
use crate::client::telemetry::Telemetry;
use crate::client::{CallId, CallTime, Completion, ObserverEvent, Report, RetryCause};
use crate::error::{Error, ErrorKind, LimitExceeded, Phase, Sent, TimeLimit};
use crate::mutation::{self, Mutation};
use crate::net::Net;
use crate::policy::room;
use crate::policy::{Checkout, LatePolicy, Next, RetryVia, Verdict, later};
use crate::proto::{BodyMode, CloseReason, Reuse, Url};
use crate::reactor::{
    ActiveCall, CallKey, CallState, ConnKey, HeadState, Hop, HostKey, OpeningKey, PoolSlot,
    ProxyMessage, ReactorEvent, TimerOwner,
};
use crate::time::Time;

impl<R: Router, N: Net> Engine<R, N> {
    // ---- the turn

    /// Begins what was submitted and, unless it is `over` by then, waits for events and handles them.
    pub(super) fn turn(
        &mut self,
        limit: Option<TurnLimit>,
        over: impl Fn(&Self) -> bool,
    ) -> io::Result<()> {
        let stale = self.reactor.begin_iteration();
        self.turn_began = self.reactor.now();
        let mut until = match limit {
            Some(TurnLimit::For(timeout)) => self.turn_began.checked_add(timeout),
            Some(TurnLimit::Until(at)) => Some(at),
            None => None,
        };
        if stale && self.hosts.open() > 0 {
            // Idle connections may have died while nobody looked; and a caller whose calls end as soon as they are
            // begun must not keep the others from going on.
            self.reactor.poll(Some(self.reactor.now()))?;
            self.take_answers();
            self.settle();
            if self.driven {
                // That poll may have taken a wake for commands that nobody has looked at yet.
                until = Some(self.reactor.now());
            }
        }
        self.begin_incoming();
        self.settle();
        if over(self) {
            return Ok(());
        }
        let polled = self.reactor.poll(until);
        self.take_answers();
        self.settle();
        if R::PIPELINES {
            self.reactor.flush();
            self.settle();
        }
        polled
    }

    fn begin_incoming(&mut self) {
        while let Some((key, host)) = self.hosts.drop_unused(self.reactor.now()) {
            self.reactor.forget_host(key);
            self.router.forget(&host.name);
        }
        for at in 0..self.incoming.len() {
            let (key, time) = self.incoming[at];
            self.begin(key, time);
        }
        // As many may come with the next turn.
        let usual = self.incoming.len().max(room::KEPT);
        self.incoming.clear();
        self.incoming.shrink_to(usual);
    }

    fn begin(&mut self, key: CallKey, time: CallTime) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        if !call.is_new() {
            return; // cancelled before it was begun
        }
        if !matches!(time, CallTime::Running) {
            call.timestamps.begun = now;
            let own = call
                .overrides
                .as_deref()
                .and_then(|own| own.timeouts.as_ref());
            let total = own.unwrap_or(&self.timeouts).total;
            call.deadline = time.expires_at(now, total);
            call.response.clear();
            call.request.reset();
        }
        if self.telemetry.observes() {
            self.notify(key, Telemetry::call_begun);
        }
        self.send(key);
    }

    /// Gives the observer an event of a call.
    #[cold]
    fn notify(&self, key: CallKey, event: fn(&Telemetry, CallKey, &ActiveCall)) {
        if let Some(call) = self.reactor.call_ref(key) {
            event(&self.telemetry, key, call);
        }
    }

    /// Finds the host of a call and a connection, or queues it.
    fn send(&mut self, key: CallKey) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        if call.is_late(now) {
            let late = Error::new(TimeLimit::Total, Phase::Queue, Sent::Nothing);
            return self.end_call(key, Err(late));
        }
        let routed = self.router.route(
            &mut call.request,
            call.overrides.as_deref(),
            &mut self.hosts,
            &self.pool,
        );
        let host_key = match routed {
            Ok(host) => host,
            Err(kind) => {
                return self.end_call(key, Err(Error::new(kind, Phase::Queue, Sent::Nothing)));
            }
        };
        let Some(host) = self.hosts.get(host_key) else {
            return;
        };
        call.host = Some(host_key);
        if let Err(misuse) = call.request.encode(&host.defaults) {
            return self.end_call(key, Err(Error::new(misuse, Phase::Queue, Sent::Nothing)));
        }
        self.retries.note_request(host, call);
        let host_key = match self.admission.is_on() {
            false => host_key,
            true => match self.admit(key) {
                Some(admitted) => admitted,
                None => return,
            },
        };
        let Some(host) = self.hosts.get(host_key) else {
            return;
        };
        if R::PIPELINES {
            return self.send_piped(host_key, key);
        }
        if host.gate.is_some() {
            return self.send_gated(host_key, key);
        }
        let mut closed = false;
        let reactor = &mut self.reactor;
        let close = |conn| {
            closed = true;
            reactor.close(conn);
        };
        let checkout = host.pool.checkout(now, key, close);
        if !R::KEEPS_HOSTS {
            self.hosts.use_host(host_key);
        }
        match checkout {
            Checkout::Reuse(conn) => {
                self.start(conn, key);
                if !closed && !self.pool.keeps_warm() {
                    return;
                }
            }
            Checkout::Wait(id) => self.reactor.wait(key, id),
            Checkout::Full(limit) => {
                self.end_call(key, Err(Error::new(limit, Phase::Queue, Sent::Nothing)));
            }
        }
        self.hosts.touch(host_key);
    }

    /// Gives a connection to a call.
    #[inline]
    pub(super) fn start(&mut self, conn: ConnKey, key: CallKey) {
        if self.telemetry.observes() {
            self.notify_sending(conn, key);
        }
        if self.adaptive.is_on() {
            self.set_first_byte_limit(conn);
        }
        self.reactor.start(conn, key);
        if R::PIPELINES {
            self.pipe_begun(conn, key);
        }
    }

    #[cold]
    pub(super) fn notify_sending(&self, conn: ConnKey, key: CallKey) {
        if let (Some(call), Some(remote)) = (self.reactor.call_ref(key), self.reactor.remote(conn))
        {
            let reused = self.reactor.has_served(conn);
            self.telemetry.sending(key, call, remote, reused);
        }
    }

    /// The parts that a connection is opened with.
    fn opening_parts(&mut self) -> (&mut Connector, Context<'_, N>) {
        let cx = Context {
            reactor: &mut self.reactor,
            hosts: &mut self.hosts,
            telemetry: &self.telemetry,
        };
        (&mut self.connector, cx)
    }

    /// An opening may have ended.
    fn opened(&mut self, opened: Option<Opened>) {
        match opened {
            None => {}
            Some(Opened::Ready { slot, conn }) => self.opening_ready(slot, conn),
            Some(Opened::Failed { call, error }) => self.end_attempt(call, error),
        }
    }

    /// A new connection can be used: it goes to the call that waits, if that may begin now, or becomes idle.
    fn opening_ready(&mut self, slot: PoolSlot, conn: ConnKey) {
        let (now, random) = (self.reactor.now(), self.reactor.random());
        if let Some(host) = self.hosts.get(slot.host) {
            host.pool.set_conn(slot.id, conn);
            let next = host.pool.connected(now, slot.id, random);
            if host.gate.is_some() {
                return self.opened_gated(slot.host, conn, next);
            }
            self.hosts.touch(slot.host);
            self.put(conn, next);
        }
    }

    /// Takes in what the resolver has answered.
    fn take_answers(&mut self) {
        let (connector, mut cx) = self.opening_parts();
        for opened in connector.take_answers(&mut cx) {
            self.opened(Some(opened));
        }
    }

    /// The time has come that an opening was waiting for.
    fn opening_due(&mut self, key: OpeningKey) {
        let now = self.reactor.now();
        let slow = self.connector.slow_host(now, key);
        let (connector, mut cx) = self.opening_parts();
        let opened = connector.opening_due(&mut cx, key);
        self.opened(opened);
        if let Some(host) = slow {
            self.move_waiting(host);
        }
    }

    pub(super) fn set_timer(&mut self, owner: TimerOwner, at: Time) {
        self.connector
            .set_timer(&mut self.reactor, &self.hosts, owner, at);
    }

    /// Decides about everything that has happened, until nothing more has.
    pub(super) fn settle(&mut self) {
        loop {
            while let Some(event) = self.reactor.next_event() {
                self.handle(event);
            }
            if let Some(key) = self.following.pop_front() {
                if self.reactor.call(key).is_some_and(|call| call.is_new()) {
                    self.send(key);
                }
                continue;
            }
            // Whoever has no connection at all comes before those who want more.
            let room = !self.hosts.is_full() || self.reactor.oldest_idle().is_some();
            let next = room
                .then(|| self.hosts.next_starving())
                .flatten()
                .or_else(|| self.hosts.next_touched())
                .or_else(|| room.then(|| self.hosts.next_hungry()).flatten());
            match next {
                Some(host) => self.look_after(host),
                None if self.hosts.turns_are_due() => self.take_turns(None),
                None => return,
            }
        }
    }

    /// Opens the connections that a host needs.
    fn look_after(&mut self, key: HostKey) {
        let now = self.reactor.now();
        let gated = self.hosts.is_gated();
        if gated {
            self.begin_waiting(key);
        }
        if self.admission.balances() {
            self.begin_health_check(key);
        }
        loop {
            let is_full = self.hosts.is_full();
            let Some(host) = self.hosts.get(key) else {
                break;
            };
            // What is only kept warm takes no room from others.
            let wants_open = host.pool.wants_open(now) && !(is_full && host.pool.only_warms());
            if wants_open && (!gated || self.hosts.may_open(now, key)) {
                if !is_full {
                    let (connector, mut cx) = self.opening_parts();
                    let opened = connector.open(&mut cx, key);
                    self.opened(opened);
                } else if let Some(idle) = self.reactor.oldest_idle() {
                    self.close(idle);
                } else if let Some(call) = self.hosts.get(key).and_then(|host| host.pool.refuse()) {
                    let full = LimitExceeded::Connections(self.hosts.most_open());
                    self.end_call(call, Err(Error::new(full, Phase::Queue, Sent::Nothing)));
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
        // What is due already waits for room, or for its turn.
        let mut at = host.pool.poll_timeout().filter(|at| *at > now);
        at = at.into_iter().chain(self.admission.next_check(key)).min();
        if gated {
            at = at.into_iter().chain(self.keep_back(key)).min();
        }
        if self.hosts.set_alarm(key, at)
            && let Some(at) = at
        {
            self.set_timer(TimerOwner::Host(key), at);
        }
        if !(R::KEEPS_HOSTS || gated && self.must_keep(key)) {
            self.hosts.note_unused(now, key);
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
                // One that is gone was closed when its call was disposed of.
                if self.release(conn, call, reuse, keep_alive)
                    && let Some(call) = call
                {
                    if self.adaptive.is_on() {
                        self.note_latency(call);
                    }
                    self.finish(call);
                }
            }
            ReactorEvent::Connected { opening, conn } => {
                let (connector, mut cx) = self.opening_parts();
                let opened = connector.attempt_succeeded(&mut cx, opening, conn);
                self.opened(opened);
            }
            ReactorEvent::Ready { opening, conn } => {
                let (connector, mut cx) = self.opening_parts();
                let opened = connector.ready(&mut cx, opening, conn);
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
                let (connector, mut cx) = self.opening_parts();
                let opened = connector.handshake_failed(&mut cx, opening, error);
                self.opened(opened);
            }
            ReactorEvent::ConnectFailed {
                opening,
                conn,
                error,
            } => {
                let (connector, mut cx) = self.opening_parts();
                let opened = connector.attempt_failed(&mut cx, opening, conn, error);
                self.opened(opened);
            }
            ReactorEvent::Answered { slot, conn, call } => {
                if let Some(key) = call
                    && let Some(call) = self.reactor.call_ref(key)
                    && matches!(call.state, CallState::OnConn(_))
                {
                    if self.adaptive.is_on() {
                        self.note_latency(key);
                    }
                    self.finish(key);
                }
                self.pipe_answered(slot, conn);
            }
            ReactorEvent::Unanswered { call, sent, error } => self.unanswered(call, sent, error),
            ReactorEvent::PipeliningBroken => self.pipe_broken(),
            ReactorEvent::Failed { slot, call, error } => {
                self.pipe_ended(slot);
                if let Some(host) = self.hosts.get(slot.host) {
                    host.pool.closed(slot.id);
                    self.hosts.touch(slot.host);
                }
                self.end_attempt(call, error);
            }
            ReactorEvent::Head(call) => self.handle_head(call),
            ReactorEvent::BodyReady(call) => self.tell(call),
            ReactorEvent::Lost(slot) => {
                self.pipe_ended(slot);
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
                        Ok(()) if mutation::on(Mutation::SpinningTimer) => {
                            self.reactor.idle(conn, now);
                        }
                        Ok(()) => self.close(conn),
                        Err(later) => self.reactor.idle(conn, later),
                    }
                }
            }
            ReactorEvent::WaitOver(call, limit) => self.wait_over(call, limit),
            ReactorEvent::PauseOver(call) => self.pause_over(call),
            ReactorEvent::TimedOut { conn, call, limit } => self.late(conn, call, limit),
            ReactorEvent::Timer(TimerOwner::Opening(opening)) => self.opening_due(opening),
            ReactorEvent::Timer(TimerOwner::FairQueue) => self.hosts.turns_come(),
            ReactorEvent::Timer(TimerOwner::Host(host)) => {
                self.hosts.set_alarm(host, None);
                self.hosts.touch(host);
            }
            ReactorEvent::Timer(TimerOwner::Conn(_) | TimerOwner::Call(_)) => {}
        }
    }

    /// A connection has done what it was busy with; false if it is gone.
    fn release(
        &mut self,
        conn: ConnKey,
        call: Option<CallKey>,
        reuse: Reuse,
        keep_alive: Option<Duration>,
    ) -> bool {
        let Some(slot) = self.reactor.slot(conn) else {
            return false;
        };
        self.pipe_ended(slot);
        let reuse = match reuse {
            Reuse::Close(CloseReason::ResponseSaidClose)
                if mutation::on(Mutation::ReuseAfterClose) =>
            {
                Reuse::Keep
            }
            reuse => reuse,
        };
        match (reuse, call) {
            (Reuse::Keep, _) => {
                let now = self.reactor.now();
                if self.hosts.must_yield() {
                    self.close(conn);
                    return true;
                }
                let full = self.hosts.is_full();
                if let Some(host) = self.hosts.get(slot.host) {
                    if full && host.pool.needs_fresh() {
                        // The oldest waiter cannot use this connection, and there is no room for one that it can.
                        self.close(conn);
                        return true;
                    }
                    let next = host.pool.released(now, slot.id, keep_alive);
                    let gated = host.gate.is_some();
                    match next {
                        Next::Idle(until) => {
                            self.reactor.idle(conn, until);
                            if gated {
                                self.hosts.touch(slot.host);
                            }
                        }
                        next => self.put(conn, next),
                    }
                }
            }
            (Reuse::Close(CloseReason::HandedOver), Some(call)) => {
                if let Some(host) = self.hosts.get(slot.host) {
                    host.pool.closed(slot.id);
                    self.hosts.touch(slot.host);
                }
                if let Some(stream) = self.reactor.hand_over(conn) {
                    self.handed_over.push((CallId(call), stream));
                }
            }
            (Reuse::Close(_), _) => self.close(conn),
        }
        true
    }

    /// Puts an available connection where its pool says.
    pub(super) fn put(&mut self, conn: ConnKey, mut next: Next<CallKey>) {
        let now = self.reactor.now();
        // A call whose time is over, though its timer has not been handled yet, is not begun any more.
        while let Next::Assign(key) = next
            && let Some(slot) = self.reactor.slot(conn)
            && self
                .reactor
                .call_ref(key)
                .is_none_or(|call| call.is_late(now))
        {
            let late = Error::new(TimeLimit::Total, Phase::Queue, Sent::Nothing);
            self.end_call(key, Err(late));
            let Some(host) = self.hosts.get(slot.host) else {
                return;
            };
            next = host.pool.declined(now, slot.id);
        }
        match next {
            Next::Assign(call) => self.start(conn, call),
            Next::Idle(until) => self.reactor.idle(conn, until),
            // The pool has freed its slot already.
            Next::Close => {
                if let Some(slot) = self.reactor.close(conn) {
                    self.hosts.touch(slot.host);
                }
            }
        }
    }

    pub(super) fn close(&mut self, conn: ConnKey) {
        if let Some(slot) = self.reactor.close(conn) {
            self.pipe_ended(slot);
            if let Some(host) = self.hosts.get(slot.host) {
                host.pool.closed(slot.id);
            }
            self.hosts.touch(slot.host);
        }
    }

    // ---- permits, limits and health checks

    /// Gets a permit for an attempt of a call, and returns the host that it goes to. If there is none, the call has
    /// failed.
    #[cold]
    fn admit(&mut self, key: CallKey) -> Option<HostKey> {
        let (now, random) = (self.reactor.now(), self.reactor.random());
        let call = self.reactor.call(key)?;
        match self.admission.admit(call, &mut self.hosts, now, random) {
            Ok(()) => call.host,
            Err(until) => {
                let open = ErrorKind::BreakerOpen(until);
                self.end_call(key, Err(Error::new(open, Phase::Queue, Sent::Nothing)));
                None
            }
        }
    }

    /// An attempt has ended that says nothing about the host.
    pub(super) fn give_permit_back(&mut self, key: CallKey) {
        let now = self.reactor.now();
        if self.admission.is_on()
            && let Some(call) = self.reactor.call(key)
        {
            self.admission
                .give_back(call, now, &mut self.hosts, &self.telemetry);
        }
    }

    /// An attempt has ended: by an answer, whose status counts, or by an error.
    fn note_health(&mut self, key: CallKey, error: Option<&Error>) {
        let now = self.reactor.now();
        if self.admission.is_on()
            && let Some(call) = self.reactor.call(key)
        {
            self.admission
                .attempt_ended(key, call, error, now, &mut self.hosts, &self.telemetry);
        }
    }

    /// Begins the health check of a host, if it is time for it.
    fn begin_health_check(&mut self, host: HostKey) {
        if let Some(call) = self.admission.begin_check(host, self.reactor.now()) {
            let key = self.reactor.insert_call(call);
            self.following.push_back(key);
        }
    }

    /// If a call is a health check, takes the call out and notes how it ended.
    fn end_health_check(&mut self, key: CallKey, error: Option<&Error>) -> bool {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call_ref(key) else {
            return false;
        };
        let checked = self
            .admission
            .end_check(call, error, now, &self.hosts, &self.telemetry);
        let Some(host) = checked else {
            return false;
        };
        if let Some(call) = self.reactor.remove_call(key) {
            self.reactor.put_spare(call.response);
        }
        self.hosts.touch(host);
        true
    }

    /// An opening to one of several addresses takes long: calls that wait for it go elsewhere, if there are others.
    fn move_waiting(&mut self, host_key: HostKey) {
        let now = self.reactor.now();
        let slow = self
            .admission
            .note_slow(host_key, now, &self.hosts, &self.telemetry);
        let Some(here) = slow else {
            return;
        };
        // All of them first: where no other address may be tried, a call comes back to where it was.
        let mut waiting = Vec::new();
        if let Some(host) = self.hosts.get(host_key) {
            waiting.extend(std::iter::from_fn(|| host.pool.oldest_waiter()));
        }
        let mut staying = Vec::new();
        for key in waiting {
            let Some(call) = self.reactor.call(key) else {
                continue;
            };
            let fresh = matches!(call.state, CallState::Waiting { id, .. } if id.is_fresh());
            let tried = call.tried | here;
            if call.check.is_none() && self.admission.has_other(tried) {
                call.tried = tried;
                self.give_permit_back(key);
                match fresh {
                    true => self.requeue(key),
                    false => self.send_again(key),
                }
            } else {
                staying.push((key, fresh));
            }
        }
        // In the order in which they were: calls that need a new connection from the back, the others from the front.
        let (fresh, others): (Vec<_>, Vec<_>) = staying.into_iter().partition(|(_, fresh)| *fresh);
        for (key, fresh) in fresh.into_iter().chain(others.into_iter().rev()) {
            if let Some(host) = self.hosts.get(host_key) {
                let waiting = match fresh {
                    true => host.pool.requeue(key),
                    false => host.pool.put_back(key),
                };
                self.reactor.wait(key, waiting);
            }
        }
        self.hosts.touch(host_key);
    }

    /// Limits the wait for the first byte on a connection that is about to get a call.
    #[cold]
    pub(super) fn set_first_byte_limit(&mut self, conn: ConnKey) {
        if let Some(slot) = self.reactor.slot(conn)
            && let Some(host) = self.hosts.get(slot.host)
            && let Some(limit) = self.adaptive.limit(host)
        {
            self.reactor.set_first_byte_limit(conn, limit);
            self.telemetry.first_byte_limit(limit);
        }
    }

    /// An attempt is over whose wait for the first byte may tell what is usual.
    #[cold]
    fn note_latency(&mut self, key: CallKey) {
        let now = self.reactor.now();
        if let Some(call) = self.reactor.call_ref(key)
            && let Some(host) = call.host.and_then(|host| self.hosts.get(host))
        {
            self.adaptive.attempt_ended(call, host, now);
        }
    }

    // ---- ends of calls

    /// Whether an answer is looked at before its call ends: for another attempt, or for how many requests may be in
    /// flight.
    #[inline]
    fn looks_at_answers(&self) -> bool {
        self.retries.repeats_answers() || self.follows_load
    }

    /// A response is complete: the call's end, or a redirect.
    fn finish(&mut self, key: CallKey) {
        if self.telemetry.observes()
            && self
                .reactor
                .call_ref(key)
                .is_some_and(|call| call.mode == BodyMode::Buffer)
        {
            self.notify(key, Telemetry::head);
        }
        if self.looks_at_answers() && self.takes_back(key) {
            return;
        }
        if R::KEEPS_HOSTS {
            return self.end_call_as(key, Ok(()));
        }
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        if matches!(call.state, CallState::Ended) {
            return; // by the head of the same response
        }
        if call.rerouted {
            return self.follow(key);
        }
        if call.head != HeadState::Awaited {
            return self.end_call_as(key, Ok(()));
        }
        match self.reroute(key) {
            Ok(Reroute::Stay) => self.end_call_as(key, Ok(())),
            Ok(Reroute::To) => self.follow(key),
            Err(kind) => {
                self.end_call(key, Err(Error::new(kind, Phase::Body, Sent::Partial)));
            }
        }
    }

    /// The head of a streamed response is there: the caller's, or a redirect's, whose body nobody wants.
    fn handle_head(&mut self, key: CallKey) {
        // A connection that fails tells of the head again.
        let is_news = self.reactor.call_ref(key).is_some_and(|call| {
            call.head == HeadState::Awaited
                && !call.rerouted
                && !matches!(call.state, CallState::Ended | CallState::Pausing { .. })
        });
        if !is_news {
            return;
        }
        if self.telemetry.observes() {
            self.notify(key, Telemetry::head);
        }
        if self.looks_at_answers() && self.takes_back(key) {
            return;
        }
        if R::KEEPS_HOSTS {
            return self.head_ready(key);
        }
        match self.reroute(key) {
            Ok(Reroute::Stay) => self.head_ready(key),
            Ok(Reroute::To) if self.reactor.discard_rest(key, WORTH_DISCARDING) => {
                if let Some(call) = self.reactor.call(key) {
                    call.rerouted = true;
                }
            }
            Ok(Reroute::To) => {
                self.detach(key);
                self.follow(key);
            }
            Err(kind) => {
                self.detach(key);
                self.end_call(key, Err(Error::new(kind, Phase::Body, Sent::Partial)));
            }
        }
    }

    fn reroute(&mut self, key: CallKey) -> Result<Reroute, ErrorKind> {
        let Some(call) = self.reactor.call(key) else {
            return Ok(Reroute::Stay);
        };
        let own = call.overrides.as_deref();
        let followed = call.timestamps.hops().len() as u32;
        self.router
            .reroute(&mut call.request, &call.response, followed, own)
    }

    /// Sends a call to where it has been redirected.
    fn follow(&mut self, key: CallKey) {
        self.note_health(key, None);
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        call.timestamps.add_hop(Hop {
            status: call.response.status(),
            url: shown(call.request.url()).into(),
        });
        if self.telemetry.observes() {
            let url = shown(call.request.url());
            self.telemetry.notify(|| ObserverEvent::Redirected {
                call: CallId(key),
                tag: call.tag,
                url: &url,
            });
        }
        call.state = CallState::New;
        call.rerouted = false;
        call.stale_before = false;
        call.failures = 0;
        call.sent_before = Sent::Nothing;
        call.response.clear();
        let call = self.reactor.call_ref(key);
        match call.and_then(|call| self.elsewhere(call.request.url())) {
            // Not at once: connections that look idle may be dead, and the word of it on the way.
            None => self.following.push_back(key),
            Some(owner) => {
                if let Some(call) = self.reactor.remove_call(key) {
                    self.telemetry.notify(|| ObserverEvent::HandedOver {
                        call: CallId(key),
                        tag: call.tag,
                    });
                    let traveller = Traveller(Box::new(call));
                    self.leaving.push((CallId(key), owner, traveller));
                }
            }
        }
    }

    /// An attempt has failed: again, or the end of the call.
    pub(super) fn end_attempt(&mut self, key: CallKey, error: Error) {
        if self.follows_load {
            self.note_load(key, Some(&error));
        }
        let (now, random) = (self.reactor.now(), self.reactor.random());
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        if matches!(call.state, CallState::Ended | CallState::Pausing { .. }) {
            return; // ended, or to be tried again, by the head of the same response
        }
        let late = call.is_late(now);
        if call.rerouted && !late {
            return self.follow(key); // only a body that nobody wants was missing
        }
        call.failures += 1;
        if late || call.head != HeadState::Awaited {
            return self.end_call(key, Err(error));
        }
        let verdict = self
            .retries
            .after_failure(call, &error, R::PIPELINES, now, random);
        match verdict {
            Verdict::AtOnce => {
                self.note_again(key, &error);
                self.requeue(key);
            }
            _ if self.admission.balances() && self.fails_over(key, &error) => {
                self.note_health(key, Some(&error));
                self.note_again(key, &error);
                if error.sent() == Sent::Nothing {
                    self.send_again(key);
                } else {
                    // One that is idle there may be dead as well.
                    self.requeue(key);
                }
            }
            Verdict::After { pause, via }
                if self.pause(key, RetryCause::Failure(&error), pause, via) => {}
            Verdict::After { .. } | Verdict::GiveUp => self.end_call(key, Err(error)),
        }
    }

    /// A call is tried again at once.
    fn note_again(&mut self, key: CallKey, error: &Error) {
        if let Some(call) = self.reactor.call(key) {
            call.sent_before = call.sent_before.max(error.sent());
            call.response.clear();
        }
        self.notify_retry(key, RetryCause::Failure(error), Duration::ZERO);
    }

    /// Tries a call again on any connection.
    pub(super) fn send_again(&mut self, key: CallKey) {
        if let Some(call) = self.reactor.call(key) {
            call.state = CallState::New;
            self.following.push_back(key);
        }
    }

    /// Tries a call again on a new connection.
    pub(super) fn requeue(&mut self, key: CallKey) {
        let host_key = match self.admission.is_on() {
            false => self.reactor.call_ref(key).and_then(|call| call.host),
            true => {
                self.give_permit_back(key);
                self.admit(key)
            }
        };
        let Some(host_key) = host_key else {
            return;
        };
        // It may have had nothing to do while the call paused.
        self.hosts.use_host(host_key);
        if let Some(host) = self.hosts.get(host_key) {
            let waiting = host.pool.requeue(key);
            let held = host.gate.is_some() && !host.pool.has_room();
            self.reactor.wait(key, waiting);
            self.hosts.touch(host_key);
            if held {
                self.note_held(key);
            }
        }
    }

    /// Tries a call again after a pause; false if there is no time for it, or no budget.
    fn pause(
        &mut self,
        key: CallKey,
        cause: RetryCause<'_>,
        pause: Duration,
        via: RetryVia,
    ) -> bool {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return false;
        };
        let host = call.host;
        let Some(until) = self.retries.pause_until(call, pause, now) else {
            return false;
        };
        if host.is_some_and(|host| !self.withdraw(host)) {
            return false;
        }
        self.note_health(
            key,
            match cause {
                RetryCause::Failure(error) => Some(error),
                RetryCause::Status(_) => None,
            },
        );
        let Some(call) = self.reactor.call(key) else {
            return false;
        };
        let (sent, remote) = match cause {
            RetryCause::Failure(error) => (error.sent(), error.remote()),
            RetryCause::Status(_) => {
                let endpoints = call.timestamps.endpoints.as_deref();
                (Sent::Partial, endpoints.map(|endpoints| &endpoints.remote))
            }
        };
        if via == RetryVia::OtherAddress
            && let Some(remote) = remote
        {
            self.connector.note_failed(now, remote);
        }
        call.sent_before = call.sent_before.max(sent);
        call.response.clear();
        self.notify_retry(key, cause, pause);
        self.reactor.pause(key, until, via != RetryVia::Any);
        true
    }

    /// Takes a retry from the budget of a call's host; false if there is none left.
    pub(super) fn withdraw(&mut self, host: HostKey) -> bool {
        let leader = self.admission.leader(host);
        self.retries
            .withdraw(self.hosts.get(leader), self.reactor.now())
    }

    /// Whether a call that has failed goes on at another address at once.
    fn fails_over(&mut self, key: CallKey, error: &Error) -> bool {
        let Some(call) = self.reactor.call_ref(key) else {
            return false;
        };
        let max_attempts = self.retries.max_attempts(call);
        self.admission.may_fail_over(call, error, max_attempts)
            && (error.sent() == Sent::Nothing || call.host.is_none_or(|host| self.withdraw(host)))
    }

    /// The pause before a call's next attempt is over.
    fn pause_over(&mut self, key: CallKey) {
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        let CallState::Pausing { fresh, .. } = call.state else {
            return; // cancelled
        };
        let host = call.host.and_then(|host| self.hosts.get(host));
        if fresh && !R::PIPELINES && host.is_some() {
            self.requeue(key);
        } else {
            self.send_again(key);
        }
    }

    fn notify_retry(&self, key: CallKey, cause: RetryCause<'_>, pause: Duration) {
        if let Some(call) = self.reactor.call_ref(key) {
            self.telemetry.retrying(key, call, cause, pause);
        }
    }

    /// Whether an answer is repeated rather than given to the caller; if so, that is begun.
    #[cold]
    pub(super) fn repeats_answer(&mut self, key: CallKey) -> bool {
        let (now, random) = (self.reactor.now(), self.reactor.random());
        let Some(call) = self.reactor.call(key) else {
            return false;
        };
        if matches!(call.state, CallState::Ended)
            || call.rerouted
            || call.head != HeadState::Awaited
        {
            return false;
        }
        let Some((pause, via)) = self.retries.after_answer(call, now, random) else {
            return false;
        };
        call.failures += 1;
        let status = RetryCause::Status(call.response.status());
        // A streamed answer may be still coming, and is not worth waiting for; any other has come.
        let conn = match call.state {
            CallState::OnConn(conn) if call.mode == BodyMode::Stream => Some(conn),
            _ => None,
        };
        let again = self.pause(key, status, pause, via);
        if let Some(conn) = conn.filter(|_| again) {
            self.close(conn);
        }
        again
    }

    /// A call has waited for a connection for as long as it may.
    fn wait_over(&mut self, key: CallKey, limit: TimeLimit) {
        let host = match self.reactor.call(key) {
            Some(call) if matches!(call.state, CallState::Waiting { .. }) => call.host,
            _ => return, // it got a connection, or ended, since the timer came up
        };
        let host = host.and_then(|host| self.hosts.get(host));
        let opening = host.and_then(|host| host.pool.any_connecting());
        let (phase, remote) = opening.map_or((Phase::Queue, None), |opening| {
            self.connector.waits_for(&self.reactor, opening)
        });
        self.detach(key);
        self.end_call(
            key,
            Err(Error::new(limit, phase, Sent::Nothing).with_remote(remote)),
        );
    }

    /// A call on a connection has run out of time.
    fn late(&mut self, conn: ConnKey, key: CallKey, limit: TimeLimit) {
        let Some(error) = self.error_on(conn, key, limit.into()) else {
            return;
        };
        if self.adaptive.is_on() && matches!(limit, TimeLimit::FirstByte | TimeLimit::Adaptive) {
            // So the limit grows when the host has become slower than it.
            self.note_latency(key);
        }
        if limit == TimeLimit::Adaptive {
            self.telemetry.adaptive_timeout();
        }
        if R::PIPELINES {
            self.leave_pipe(conn, key);
            return self.end_attempt(key, error);
        }
        if mutation::on(Mutation::CrossedAnswer) {
            self.release(conn, None, Reuse::Keep, None);
            return self.end_attempt(key, error);
        }
        let slot = self.reactor.slot(conn);
        let host = slot.and_then(|slot| Some((self.hosts.get(slot.host)?, slot.id)));
        match (self.late, host) {
            (LatePolicy::Drain { up_to }, Some((host, slot)))
                if self.reactor.drain(conn, later(self.reactor.now(), up_to)) =>
            {
                host.pool.draining(slot);
            }
            _ => self.close(conn),
        }
        self.end_attempt(key, error);
    }

    /// Takes a call away from the queue, or from its connection, which is closed.
    pub(super) fn detach(&mut self, key: CallKey) {
        let call = self.reactor.call_ref(key);
        match call.map(|call| call.state) {
            Some(CallState::Waiting { .. }) if mutation::on(Mutation::SentAfterCancel) => {}
            Some(CallState::Waiting { id, .. }) => {
                let Some(host_key) = call.and_then(|call| call.host) else {
                    return;
                };
                let host = self.hosts.get(host_key);
                if let Some(opening) = host.and_then(|host| host.pool.give_up(id)) {
                    let (connector, mut cx) = self.opening_parts();
                    connector.cancel(&mut cx, opening);
                }
                self.hosts.touch(host_key);
            }
            Some(CallState::OnConn(conn)) if R::PIPELINES => self.leave_pipe(conn, key),
            Some(CallState::OnConn(conn)) => self.close(conn),
            Some(CallState::New | CallState::Pausing { .. } | CallState::Ended) | None => {}
        }
    }

    /// The head of a streamed response is there: the call completes, its body goes on.
    fn head_ready(&mut self, key: CallKey) {
        if let Some(call) = self.reactor.call(key)
            && call.head == HeadState::Awaited
        {
            call.head = HeadState::Ready;
            self.done.push_back(key);
        }
    }

    /// The end of a call, or of its streamed body.
    pub(super) fn end_call(&mut self, key: CallKey, outcome: Result<(), Error>) {
        self.end_call_as(key, outcome);
    }

    #[inline(always)] // most end well, which leaves little of it
    fn end_call_as(&mut self, key: CallKey, outcome: Result<(), Error>) {
        if self.admission.is_on() {
            let error = outcome.as_ref().err();
            self.note_health(key, error);
            if self.end_health_check(key, error) {
                return;
            }
        }
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        call.end(outcome.map_err(|error| error.after(call.sent_before)));
        call.timestamps.ended = Some(now);
        let head = call.head;
        if self.telemetry.wants_ends() {
            self.note_end(key);
        }
        if head == HeadState::Awaited {
            self.done.push_back(key);
        } else {
            self.tell(key);
        }
    }

    /// Tells those who want to know that a call, or its streamed body, has ended.
    #[cold]
    pub(super) fn note_end(&self, key: CallKey) {
        if let Some(call) = self.reactor.call_ref(key) {
            self.telemetry.call_ended(key, call, self.reactor.now());
        }
    }

    /// A streamed body has something new. The caller hears of it once it has the head.
    pub(super) fn tell(&mut self, key: CallKey) {
        if let Some(call) = self.reactor.call(key)
            && call.head == HeadState::Given
            && !std::mem::replace(&mut call.notified, true)
        {
            self.readable.push(CallId(key));
        }
    }

    /// Takes out what a call in `done` has for the caller.
    pub(super) fn complete(&mut self, key: CallKey) -> Option<Completion> {
        if self.reactor.call(key)?.head == HeadState::Ready {
            return self.complete_head(key);
        }
        let call = self.reactor.remove_call(key)?;
        Some(Completion {
            id: CallId(key),
            tag: call.tag,
            outcome: call.outcome,
            request: call.request,
            response: call.response,
            report: Report::new(call.timestamps, call.attempts, self.reactor.now()),
            body: None,
        })
    }

    fn complete_head(&mut self, key: CallKey) -> Option<Completion> {
        let now = self.reactor.now();
        let mut response = self.reactor.take_spare();
        let request = self.reactor.take_spare_request();
        let call = self.reactor.call(key)?;
        call.head = match mutation::on(Mutation::CompletedTwice) {
            true => HeadState::Awaited,
            false => HeadState::Given,
        };
        // The caller gets the head; what has come of the body stays here, with a copy of the rest to go on with.
        response.continue_from(&mut call.response);
        std::mem::swap(response.body_buffer(), call.response.body_buffer());
        std::mem::swap(&mut response, &mut call.response);
        let done = Completion {
            id: CallId(key),
            tag: call.tag,
            outcome: Ok(()),
            request: std::mem::replace(&mut call.request, request),
            response,
            report: Report::new(call.timestamps.clone(), call.attempts, now),
            body: Some(CallId(key)),
        };
        if self.has_body_news(CallId(key)) {
            self.tell(key);
        }
        Some(done)
    }

    /// Nobody will read this body any more.
    pub(super) fn forget_body(&mut self, id: CallId) -> Option<ActiveCall> {
        let call = self.reactor.remove_call(id.0)?;
        if call.notified {
            let reactor = &self.reactor;
            self.readable.forget(|id| reactor.call_ref(id.0).is_some());
        }
        Some(call)
    }
}

/// A URL without user information.
fn shown(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.to_string())
}

/// Of a redirect's body: the most that is read for the sake of the connection.
const WORTH_DISCARDING: u64 = 64 * 1024;

/// How long a turn may wait for events.
#[derive(Clone, Copy)]
pub(super) enum TurnLimit {
    /// From the beginning of the turn.
    For(Duration),
    Until(Time),
}
