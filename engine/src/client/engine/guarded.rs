//! Attempts that the breaker of their host must allow.

use super::Engine;
use crate::client::router::Router;
use crate::client::{CallId, Moment};
use crate::error::{Error, ErrorKind, Phase, Sent};
use crate::mutation::{self, Mutation};
use crate::net::Net;
use crate::policy::{Breaker, BreakerState, Health, health_of};
use crate::reactor::Key;

impl<R: Router, N: Net> Engine<R, N> {
    /// Whether attempts must be allowed at all.
    #[inline]
    pub(super) fn guards(&self) -> bool {
        self.breaker.is_some()
    }

    /// Whether an attempt of a call may begin now. If not, the call has failed.
    #[cold]
    pub(super) fn admits(&mut self, key: Key) -> bool {
        let now = self.reactor.now().instant();
        let (Some(config), Some(call)) = (&self.breaker, self.reactor.call(key)) else {
            return true;
        };
        let Some(host) = self.hosts.get(call.host) else {
            return true;
        };
        let new = || Box::new(Breaker::new(config.clone()));
        match host.breaker.get_or_insert_with(new).admit(now) {
            Ok(pass) => {
                call.pass = Some(pass);
                true
            }
            Err(_) if mutation::on(Mutation::IgnoredBreaker) => true,
            Err(until) => {
                let open = ErrorKind::BreakerOpen(until);
                self.end_call(key, Err(Error::new(open, Phase::Queue, Sent::Nothing)));
                false
            }
        }
    }

    /// Tells the breaker how an attempt ended; an answer by its status.
    #[cold]
    pub(super) fn note_health(&mut self, key: Key, error: Option<&Error>) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        let (Some(pass), Some(host)) = (call.pass.take(), self.hosts.get(call.host)) else {
            return;
        };
        let Some(breaker) = &mut host.breaker else {
            return;
        };
        let health = match error {
            Some(error) => health_of(error),
            None => breaker.judge(call.response.status()),
        };
        let tag = call.tag;
        if let Some(state) = breaker.record(now.instant(), pass, health) {
            self.tell_of_breaker(key, tag, state);
        }
    }

    /// An attempt has ended that says nothing about the host.
    #[cold]
    pub(super) fn give_pass_back(&mut self, key: Key) {
        let now = self.reactor.now();
        if let Some(call) = self.reactor.call(key)
            && let Some(pass) = call.pass.take()
            && let Some(host) = self.hosts.get(call.host)
            && let Some(breaker) = &mut host.breaker
        {
            breaker.record(now.instant(), pass, Health::Unknown);
        }
    }

    fn tell_of_breaker(&self, key: Key, tag: u64, state: BreakerState) {
        if let Some(observer) = &self.observer {
            observer.tell(&Moment::Breaker {
                call: CallId(key),
                tag,
                state,
            });
        }
    }
}
