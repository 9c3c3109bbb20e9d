//! Attempts that end without a result for the caller: by an error, by a time limit, or by an answer that is retried.

use std::time::Duration;

use super::Calls;
use super::answers::tell_url;
use crate::client::RetryCause;
use crate::client::progress::ActiveCall;
use crate::client::router::Router;
use crate::client::sharing::Sharing;
use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent, TimeLimit};
use crate::net::Net;
use crate::policy::{LatePolicy, RetryVia, Verdict, later};
use crate::proto::BodyMode;
use crate::reactor::{CallKey, CallState, ConnKey, HeadState, HostKey, RedirectState};

impl<R: Router, N: Net> Calls<R, N> {
    /// An attempt has failed: the call is tried again, or ends.
    pub(super) fn end_attempt(&mut self, key: CallKey, error: Error) {
        let is_misframed = matches!(
            error.kind(),
            ErrorKind::Peer(
                PeerFault::BadContentLength
                    | PeerFault::ConflictingContentLength
                    | PeerFault::UnsupportedTransferEncoding
            )
        );
        let reactor = &mut self.dispatch.reactor;
        let (now, random) = (reactor.now(), reactor.common.net.random());
        let Some(call) = reactor.call(key) else {
            return;
        };
        if !is_misframed {
            note_head(&mut self.dispatch.router, call);
        }
        if matches!(call.state, CallState::Ended | CallState::Pausing { .. }) {
            return; // the head of the same response has ended the call, or made it pause
        }
        let late = call.is_late(now);
        if call.redirect.is_followed() && !late {
            return self.follow(key); // only the body of a redirect was missing
        }
        call.client.failures += 1;
        call.redirect = RedirectState::Undecided;
        if late || call.head != HeadState::Awaited {
            return self.dispatch.fail(key, error);
        }
        let cause = RetryCause::Failure(&error);
        let retries = &self.retries;
        match retries.after_failure(call, &error, R::Sharing::IS_ON, now, random) {
            Verdict::AtOnce => {
                self.note_retry(key, cause, Duration::ZERO);
                self.dispatch.requeue(key);
            }
            _ if self.fails_over(key, &error) => {
                self.dispatch.note_health(key, Some(&error));
                self.note_retry(key, cause, Duration::ZERO);
                if error.sent() == Sent::Nothing {
                    self.dispatch.send_again(key);
                } else {
                    // An idle connection to the other address may be dead as well.
                    self.dispatch.requeue(key);
                }
            }
            Verdict::After { pause, via } if self.pause(key, cause, pause, via) => {}
            Verdict::After { .. } | Verdict::GiveUp => self.dispatch.fail(key, error),
        }
    }

    /// A call is tried again, after this pause.
    fn note_retry(&mut self, key: CallKey, cause: RetryCause<'_>, pause: Duration) {
        if let Some(call) = self.dispatch.reactor.call(key) {
            let sent = match cause {
                RetryCause::Failure(error) => error.sent(),
                RetryCause::Status(_) => Sent::ReplyBegun,
            };
            call.client.sent_before = call.client.sent_before.max(sent);
            call.response.clear();
            self.dispatch.telemetry.retrying(key, call, cause, pause);
        }
    }

    /// Whether a call that has failed goes on at another address at once.
    fn fails_over(&mut self, key: CallKey, error: &Error) -> bool {
        let Some(call) = self.dispatch.reactor.call_ref(key) else {
            return false;
        };
        let max_attempts = self.retries.max_attempts(call);
        let admission = &self.dispatch.admission;
        admission.may_fail_over(call, error, max_attempts)
            && (error.sent() == Sent::Nothing || self.withdraw(call.host))
    }

    /// Takes a retry from the budget of a host; false if the budget is used up.
    fn withdraw(&mut self, host: Option<HostKey>) -> bool {
        let leader = host.map(|host| self.dispatch.admission.leader(host));
        let host = leader.and_then(|leader| self.dispatch.hosts.get(leader));
        self.retries.withdraw(host, self.dispatch.reactor.now())
    }

    /// Examines an answer as the settings require: the send hook may send the call once more because of status 401, and
    /// the rules may retry it because of any status. True if so, and the caller does not get the answer.
    #[cold]
    pub(super) fn answer_is_repeated(&mut self, key: CallKey) -> bool {
        let reactor = &mut self.dispatch.reactor;
        let (now, random) = (reactor.now(), reactor.common.net.random());
        let Some(call) = reactor.call(key) else {
            return false;
        };
        tell_url::<R>(call);
        if matches!(call.state, CallState::Ended)
            || call.redirect.is_followed()
            || call.head != HeadState::Awaited
        {
            return false;
        }
        let hooked = self.dispatch.hooked.as_deref();
        let is_hooked = !call.client.reauthorized
            && hooked.is_some_and(|hooked| hooked.repeats(&call.request, &call.response));
        let after = match is_hooked {
            true => None,
            false => self.retries.after_answer(call, now, random),
        };
        if !is_hooked && after.is_none() {
            return false;
        }
        note_head(&mut self.dispatch.router, call);
        call.redirect = RedirectState::Undecided;
        let (conn, cause) = (incomplete(call), RetryCause::Status(call.response.status()));
        match after {
            Some((pause, via)) => {
                call.client.failures += 1;
                if !self.pause(key, cause, pause, via) {
                    return false;
                }
            }
            None => {
                call.client.reauthorized = true;
                self.dispatch.note_health(key, None);
                self.note_retry(key, cause, Duration::ZERO);
                self.dispatch.send_again(key);
            }
        }
        if let Some(conn) = conn {
            self.dispatch.close(conn);
        }
        true
    }

    /// Tries a call again after a pause; false if the deadline or the retry budget does not allow that.
    fn pause(
        &mut self,
        key: CallKey,
        cause: RetryCause<'_>,
        pause: Duration,
        via: RetryVia,
    ) -> bool {
        let now = self.dispatch.reactor.now();
        let Some(call) = self.dispatch.reactor.call(key) else {
            return false;
        };
        let (error, remote) = match cause {
            RetryCause::Failure(error) => (Some(error), error.remote().cloned()),
            RetryCause::Status(_) => (None, call.timestamps.endpoints().map(|it| it.remote)),
        };
        let host = call.host;
        let until = later(now, pause);
        if call.deadline.is_some_and(|deadline| deadline <= until) || !self.withdraw(host) {
            return false;
        }
        self.dispatch.note_health(key, error);
        if via == RetryVia::OtherAddress
            && let Some(remote) = remote
        {
            self.dispatch.connector.avoided.note_failed(now, &remote);
        }
        self.note_retry(key, cause, pause);
        let reactor = &mut self.dispatch.reactor;
        reactor.pause(key, until, via != RetryVia::Any);
        true
    }

    /// The pause before a call's next attempt is over.
    pub(super) fn pause_over(&mut self, key: CallKey) {
        let Some(call) = self.dispatch.reactor.call(key) else {
            return;
        };
        let CallState::Pausing { fresh, .. } = call.state else {
            return; // cancelled
        };
        let host = call.host.and_then(|host| self.dispatch.hosts.get(host));
        if fresh && !R::Sharing::IS_ON && host.is_some() {
            self.dispatch.requeue(key);
        } else {
            self.dispatch.send_again(key);
        }
    }

    /// The connection of a call has ended while the answer to an earlier call was still awaited.
    pub(super) fn unanswered(&mut self, key: CallKey, sent: Sent, error: Option<Error>) {
        if let Some(pipelines) = self.dispatch.sharing.pipelines() {
            pipelines.unanswered += 1;
        }
        if let Some(error) = error {
            self.end_attempt(key, error);
        } else if let Some(call) = self.dispatch.reactor.call(key)
            && matches!(call.state, CallState::OnConn(_))
        {
            call.client.sent_before = call.client.sent_before.max(sent);
            self.dispatch.put_back(key, false);
        }
    }

    /// A call has reached the limit of its wait for a connection.
    pub(super) fn wait_over(&mut self, key: CallKey, limit: TimeLimit) {
        let host = match self.dispatch.reactor.call(key) {
            Some(call) if matches!(call.state, CallState::Waiting { .. }) => call.host,
            _ => return, // the call got a connection, or ended, after the timer had fired
        };
        let host = host.and_then(|host| self.dispatch.hosts.get(host));
        let opening = host.and_then(|host| host.pool.any_connecting());
        let (reactor, connector) = (&self.dispatch.reactor, &self.dispatch.connector);
        let (phase, remote) = opening.map_or((Phase::Queue, None), |opening| {
            connector.waits_for(reactor, opening)
        });
        self.dispatch.detach(key);
        let error = Error::new(limit, phase, Sent::Nothing).with_remote(remote);
        self.dispatch.fail(key, error);
    }

    /// A call on a connection has reached a time limit.
    pub(super) fn late(&mut self, conn: ConnKey, key: CallKey, limit: TimeLimit) {
        let now = self.dispatch.reactor.now();
        let in_time = |call: &ActiveCall| !call.is_late(now) && !call.redirect.is_followed();
        if limit == TimeLimit::Total && self.dispatch.reactor.call_ref(key).is_some_and(in_time) {
            return; // the head of a streamed response came in time, and another deadline counts from then on
        }
        let Some(error) = self.dispatch.reactor.error_on(conn, key, limit.into()) else {
            return;
        };
        if self.dispatch.adaptive.is_on()
            && matches!(limit, TimeLimit::FirstByte | TimeLimit::Adaptive)
        {
            // Late attempts count too, so the limit grows when the host becomes slower than the limit.
            self.note_latency(key);
        }
        if limit == TimeLimit::Adaptive {
            self.dispatch.telemetry.adaptive_timeout();
        }
        if R::Sharing::IS_ON {
            self.dispatch.leave_pipeline(conn, key);
            return self.end_attempt(key, error);
        }
        let dispatch = &mut self.dispatch;
        let slot = dispatch.reactor.slot(conn);
        let host = slot.and_then(|slot| Some((dispatch.hosts.get(slot.host)?, slot.id)));
        match (self.late, host) {
            (LatePolicy::Drain { up_to }, Some((host, slot)))
                if dispatch.reactor.drain(conn, later(now, up_to)) =>
            {
                host.pool.draining(slot);
            }
            _ => dispatch.close(conn),
        }
        self.end_attempt(key, error);
    }

    /// Counts how long an attempt waited for the first byte, for the adaptive limit.
    #[cold]
    pub(super) fn note_latency(&mut self, key: CallKey) {
        let now = self.dispatch.reactor.now();
        if let Some(call) = self.dispatch.reactor.call_ref(key)
            && let Some(host) = call.host.and_then(|host| self.dispatch.hosts.get(host))
        {
            self.dispatch.adaptive.attempt_ended(call, host, now);
        }
    }
}

/// Lets the router examine the head of an answer that is incomplete, or that the call does not take. Other heads are
/// examined when it is decided whether they are redirects. A head that was refused for its framing says nothing.
fn note_head(router: &mut impl Router, call: &ActiveCall) {
    if call.is_undecided() && call.response.status() > 0 {
        router.note_head(call);
    }
}

/// The connection of a call whose answer may be incomplete, because it is streamed. The rest is not worth the wait.
fn incomplete(call: &ActiveCall) -> Option<ConnKey> {
    match call.state {
        CallState::OnConn(conn) if call.mode == BodyMode::Stream => Some(conn),
        _ => None,
    }
}
