//! What happens when a call gets an answer, a redirect or an error, and how the call completes.

use std::time::Duration;

use super::Calls;
use crate::client::progress::ActiveCall;
use crate::client::router::{Reroute, Router};
use crate::client::{CallId, Completion, ObserverEvent, Report};
use crate::error::{Error, ErrorKind, Phase, Sent};
use crate::net::Net;
use crate::policy::later;
use crate::proto::{BodyMode, without_userinfo};
use crate::reactor::{CallKey, CallState, HeadState, Hop, RedirectState};

impl<R: Router, N: Net> Calls<R, N> {
    /// Whether calls end as soon as they are answered, and nothing else is to be done then.
    #[inline]
    pub(super) fn ends_at_once(&self) -> bool {
        R::KEEPS_HOSTS
            && !(self.retries.looks_at_answers()
                || self.dispatch.telemetry.wants_ends()
                || self.dispatch.admission.is_on()
                || self.dispatch.adaptive.is_on())
    }

    /// A response is complete: the call ends, or follows a redirect.
    pub(super) fn finish(&mut self, key: CallKey) {
        if self.dispatch.telemetry.observes()
            && let Some(call) = self.dispatch.reactor.call_ref(key)
            && call.mode == BodyMode::Buffer
            && !call.redirect.is_followed()
        {
            self.dispatch.telemetry.head(key, call);
        }
        if self.retries.looks_at_answers() && self.answer_is_repeated(key) {
            return;
        }
        if R::KEEPS_HOSTS {
            return self.dispatch.end_call(key, Ok(()));
        }
        let Some(call) = self.dispatch.reactor.call(key) else {
            return;
        };
        if matches!(call.state, CallState::Ended) {
            return; // the head of the same response has ended the call
        }
        if call.redirect.is_followed() {
            return self.follow(key);
        }
        if call.head != HeadState::Awaited || call.redirect == RedirectState::Delivered {
            return self.dispatch.end_call(key, Ok(()));
        }
        match self.dispatch.router.reroute(call) {
            Ok(Reroute::Stay) => self.dispatch.end_call(key, Ok(())),
            Ok(Reroute::To) => self.follow(key),
            Err(kind) => self.refuse_redirect(key, kind),
        }
    }

    /// The head of a streamed response, or of a redirection, has arrived. The caller of a streamed call gets the head,
    /// unless it is a redirect to follow: then the body is discarded.
    pub(super) fn handle_head(&mut self, key: CallKey) {
        let reactor = &mut self.dispatch.reactor;
        let (now, random) = (reactor.now(), reactor.common.net.random());
        // A connection that fails reports the head a second time.
        let call = reactor.call_ref(key);
        let Some(call) = call.filter(|call| call.is_undecided()) else {
            return;
        };
        // A part of the body of a redirection may have come. If the redirect is followed, a buffered call does not wait
        // for the whole body; else the complete answer decides.
        let is_buffered = call.mode == BodyMode::Buffer;
        let retries = &self.retries;
        if is_buffered && (R::KEEPS_HOSTS || retries.after_answer(call, now, random).is_some()) {
            return;
        }
        if !is_buffered {
            self.dispatch.telemetry.head(key, call);
            if self.retries.looks_at_answers() && self.answer_is_repeated(key) {
                return;
            }
        }
        let Some(call) = self.dispatch.reactor.call(key) else {
            return;
        };
        let rerouted = self.dispatch.router.reroute(call);
        if is_buffered && !matches!(rerouted, Ok(Reroute::Stay)) {
            self.dispatch.telemetry.head(key, call);
        }
        match rerouted {
            Ok(Reroute::Stay) if is_buffered => call.redirect = RedirectState::Delivered,
            // The call completes, and its body continues.
            Ok(Reroute::Stay) => {
                call.head = HeadState::Ready;
                if !call.client.has_own_deadline {
                    let timeouts = call.own_timeouts().unwrap_or(&self.timeouts);
                    let total = timeouts.total_streamed;
                    let deadline = total.and_then(|total| call.timestamps.begun.checked_add(total));
                    self.dispatch.reactor.set_deadline(key, deadline);
                }
                self.dispatch.deliveries.done.push_back(key);
            }
            Ok(Reroute::To) => self.leave_redirect(key),
            Err(kind) => {
                self.dispatch.detach(key);
                self.refuse_redirect(key, kind);
            }
        }
    }

    /// Goes on to the target of a redirect whose body may not be complete. A short rest of the body is read first, so
    /// that the connection can serve again.
    fn leave_redirect(&mut self, key: CallKey) {
        let reactor = &mut self.dispatch.reactor;
        let until = later(reactor.now(), LONGEST_DISCARD);
        if !reactor.discard_rest(key, WORTH_DISCARDING, until) {
            self.dispatch.detach(key);
            self.follow(key);
        } else if let Some(call) = reactor.call(key) {
            call.redirect = RedirectState::Followed;
        }
    }

    /// Ends a call whose redirect cannot be followed.
    fn refuse_redirect(&mut self, key: CallKey, kind: ErrorKind) {
        let call = self.dispatch.reactor.call_ref(key);
        let remote = call.and_then(|call| Some(call.timestamps.endpoints()?.remote));
        let error = Error::new(kind, Phase::Head, Sent::ReplyBegun).with_remote(remote);
        self.dispatch.fail(key, error);
    }

    /// Sends a call to the target of its redirect.
    pub(super) fn follow(&mut self, key: CallKey) {
        self.dispatch.note_health(key, None);
        let Some(call) = self.dispatch.reactor.call(key) else {
            return;
        };
        let (tag, url) = (call.tag, shown(call.request.url()));
        call.timestamps.add_hop(Hop {
            status: call.response.status(),
            url: url.as_str().into(),
        });
        let telemetry = &self.dispatch.telemetry;
        telemetry.notify(|| ObserverEvent::Redirected {
            call: CallId(key),
            tag,
            url: &url,
        });
        call.state = CallState::New;
        call.redirect = RedirectState::Undecided;
        call.client.stale_before = false;
        call.client.reauthorized = false;
        // The request that was redirected may have had its effect.
        call.client.sent_before = Sent::ReplyBegun;
        call.response.clear();
        match self.migration.elsewhere(call.request.url()) {
            None => self.dispatch.queue.send_further(key),
            Some(owner) => {
                if let Some(call) = self.dispatch.reactor.remove_call(key) {
                    let call_id = CallId(key);
                    telemetry.notify(|| ObserverEvent::HandedOver { call: call_id, tag });
                    self.migration.push(call_id, owner, call);
                }
            }
        }
    }

    /// Makes the completion of a call that was in `done`.
    #[inline(always)] // so that the completion is constructed in its final place
    pub(in crate::client) fn complete(&mut self, key: CallKey) -> Option<Completion> {
        let call = self.dispatch.reactor.call(key)?;
        if call.head == HeadState::Ready {
            return self.complete_head(key);
        }
        tell_url::<R>(call);
        if let Some(overrides) = call.overrides.take() {
            drop(overrides);
        }
        let call = self.dispatch.reactor.remove_call(key)?;
        // Nothing is left there. So no code that could free it follows the move of the call, which is one move then.
        std::mem::forget(call.overrides);
        Some(Completion {
            id: CallId(key),
            tag: call.tag,
            outcome: call.outcome,
            request: call.request,
            response: call.response,
            report: Report::new(call.timestamps, self.dispatch.reactor.now()),
        })
    }

    fn complete_head(&mut self, key: CallKey) -> Option<Completion> {
        let reactor = &mut self.dispatch.reactor;
        let mut response = reactor.common.spares.take_response();
        let mut request = reactor.common.spares.take_request();
        let (now, keeps_request) = (reactor.now(), reactor.is_sending(key));
        let call = reactor.call(key)?;
        tell_url::<R>(call);
        call.head = HeadState::Given;
        call.client.keeps_request = keeps_request;
        if !keeps_request {
            // An error of the body says where the call went.
            request.set_target(call.request.url());
            std::mem::swap(&mut request, &mut call.request);
        }
        // The caller gets the head; what has come of the body stays here, with a copy of the rest to go on with.
        response.continue_from(&mut call.response);
        std::mem::swap(response.body_buffer(), call.response.body_buffer());
        std::mem::swap(&mut response, &mut call.response);
        let mut timestamps = call.timestamps.clone();
        timestamps.is_streamed = true;
        let done = Completion {
            id: CallId(key),
            tag: call.tag,
            outcome: Ok(()),
            request,
            response,
            report: Report::new(timestamps, now),
        };
        if self.has_body_news(CallId(key)) {
            self.dispatch.notify_readable(key);
        }
        Some(done)
    }

    /// Whether a streamed body has data, or has ended.
    pub(in crate::client) fn has_body_news(&self, id: CallId) -> bool {
        self.dispatch.reactor.call_ref(id.0).is_none_or(|call| {
            call.taken < call.response.body().len() || matches!(call.state, CallState::Ended)
        })
    }

    /// Removes a streamed body: the caller has read all of it, or will not read the rest.
    pub(in crate::client) fn forget_body(&mut self, id: CallId) -> Option<ActiveCall> {
        let call = self.dispatch.reactor.remove_call(id.0)?;
        if call.notified {
            let (reactor, readable) = (
                &self.dispatch.reactor,
                &mut self.dispatch.deliveries.readable,
            );
            readable.forget(|id| reactor.call_ref(id.0).is_some());
        }
        Some(call)
    }
}

/// Tells the response of a call the URL that it came from, of a client whose requests have URLs.
#[inline]
pub(super) fn tell_url<R: Router>(call: &mut ActiveCall) {
    if !R::KEEPS_HOSTS && call.response.status() != 0 {
        call.response.set_url(call.request.url());
    }
}

/// A URL without user information, with its fragment.
fn shown(url: &str) -> String {
    let at = url.find('#').unwrap_or(url.len());
    let (url, fragment) = url.split_at(at);
    format!("{}{fragment}", without_userinfo(url))
}

/// The most bytes of a redirect's body that are read to keep the connection.
const WORTH_DISCARDING: u64 = 64 * 1024;

/// How long that may take. A new connection would take about as long on a slow link.
const LONGEST_DISCARD: Duration = Duration::from_millis(500);
