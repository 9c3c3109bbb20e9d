//! Reading answers, which come in the order of their requests.

use std::io;

use super::note_front;
use super::requests::Whose;
use crate::error::{ErrorKind, PeerFault};
use crate::net::Net;
use crate::policy::later;
use crate::proto::{CloseReason, Exchange, Response, Reuse, Version};
use crate::reactor::conn::{Conn, State};
use crate::reactor::read::{Progress, taken};
use crate::reactor::{ActiveCall, ConnKey, Happened, Reactor, Settings, Slab, of};
use crate::time::Time;

impl<N: Net> Reactor<N> {
    /// Reads once, and hands out all answers that came.
    #[inline(never)]
    pub(in crate::reactor) fn read_pipe(&mut self, key: ConnKey) -> Result<Progress, ErrorKind> {
        let Some(mut conn) = self.conns.get_mut(key) else {
            return Ok(Progress::Stop);
        };
        let read = conn.stream.read(&mut self.net, &mut self.buffer);
        let (exchange, pipe) = match (&mut conn.state, &mut conn.pipe) {
            (State::Busy(exchange, _) | State::Draining(exchange, ..), Some(pipe)) => {
                (exchange, pipe)
            }
            _ => return Ok(Progress::Stop),
        };
        let Some(n) = taken(read, exchange, &mut conn.write_error)? else {
            return Ok(Progress::Drained);
        };
        if n > 0 && !pipe.is_begun(pipe.front) {
            return Err(PeerFault::Unsolicited.into());
        }
        pipe.tidy();
        let left_nothing = conn.stream.is_drained(&self.net, n, self.buffer.len());
        let progress = match left_nothing && !conn.closed {
            true => Progress::Drained,
            false => Progress::More,
        };
        conn.since = self.now;
        let mut at = 0;
        loop {
            let mut limits = &self.settings.limits;
            let (exchange, response, call) = match &mut conn.state {
                State::Busy(exchange, call_key) => match self.calls.get_mut(*call_key) {
                    Some(call) => {
                        let own = call.overrides.as_deref();
                        limits = own.and_then(|own| own.limits.as_ref()).unwrap_or(limits);
                        if at < n {
                            call.marks.first_byte.get_or_insert(self.now);
                        }
                        let whose = (*call_key, &mut call.marks);
                        (exchange, &mut call.response, Some(whose))
                    }
                    None => return Ok(Progress::Stop),
                },
                State::Draining(exchange, response, _) => (exchange, response, None),
                _ => return Ok(Progress::Stop),
            };
            let used = exchange.handle_own(&self.buffer[at..n], response, limits)?;
            at += used;
            let call = call.map(|(call, marks)| {
                marks.bytes_in += used as u64;
                call
            });
            let Some(reuse) = exchange.done() else {
                return Ok(progress);
            };
            let Some(pipe) = conn.pipe.as_mut().filter(|pipe| !pipe.is_empty()) else {
                self.finish_pipe(key, reuse, at < n, left_nothing);
                return Ok(Progress::Stop);
            };
            if reuse != Reuse::Keep {
                self.finish_pipe(key, reuse, at < n, left_nothing);
                return Ok(Progress::Stop);
            }
            if call.is_some() && response.version() == Version::Http10 {
                self.happened.push_back(Happened::PipeBroken);
            }
            pipe.answered += 1;
            pipe.answered_now += 1;
            let late = conn.advance(&mut self.calls, &mut self.spare, self.now, &self.settings);
            self.happened.push_back(Happened::Answered {
                at: conn.at,
                conn: key,
                call,
            });
            let front_unsent = conn
                .pipe
                .as_ref()
                .is_some_and(|pipe| pipe.is_front_unsent());
            if let Some(response) = late {
                self.put_spare(response);
            }
            if at == n {
                return Ok(progress);
            }
            if front_unsent {
                return Err(PeerFault::Unsolicited.into());
            }
            let Some(same) = self.conns.get_mut(key) else {
                return Ok(Progress::Stop);
            };
            conn = same;
        }
    }

    /// The last answer is there, or one after which there will be no more.
    fn finish_pipe(&mut self, key: ConnKey, reuse: Reuse, surplus: bool, left_nothing: bool) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let Some(pipe) = &mut conn.pipe else {
            return;
        };
        let reuse = match reuse {
            Reuse::Keep if surplus => Reuse::Close(CloseReason::Surplus),
            // The last read was filled: only another one can tell.
            Reuse::Keep if !left_nothing => {
                self.net.set_free(true);
                let read = conn.stream.read(&mut self.net, &mut self.buffer);
                self.net.set_free(false);
                match read {
                    Ok(1..) => Reuse::Close(CloseReason::Surplus),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Reuse::Keep,
                    Ok(0) | Err(_) => Reuse::Close(CloseReason::PeerClosed),
                }
            }
            Reuse::Keep if conn.closed => Reuse::Close(CloseReason::PeerClosed),
            reuse => reuse,
        };
        let version = match &conn.state {
            State::Busy(_, call) => self.calls.get(*call).map(|call| call.response.version()),
            State::Draining(_, response, _) => Some(response.version()),
            _ => None,
        };
        pipe.answered += 1;
        pipe.answered_now += 1;
        let sent_behind = pipe.behind.front().is_some_and(|b| pipe.is_begun(b.span));
        let broken = match reuse {
            Reuse::Close(CloseReason::Surplus) => pipe.answered > 1,
            Reuse::Close(CloseReason::RequestSaidClose) => false,
            // HTTP/1.0 promises nothing about what is behind.
            Reuse::Close(_) if version == Some(Version::Http10) => sent_behind,
            Reuse::Close(CloseReason::ResponseSaidClose) => {
                pipe.disowned = true;
                sent_behind && pipe.answered == 1
            }
            Reuse::Close(_) => sent_behind && pipe.answered == 1,
            Reuse::Keep => {
                pipe.out.shrink_to(MOST_KEPT);
                false
            }
        };
        if broken {
            self.happened.push_back(Happened::PipeBroken);
        }
        self.finish(key, true, reuse);
    }
}

impl<S> Conn<S> {
    /// The first of those behind comes to the front, in place of a call, or of a late answer, whose response is
    /// returned.
    #[inline]
    pub(super) fn advance(
        &mut self,
        calls: &mut Slab<ActiveCall, of::Call>,
        spare: &mut Vec<Response>,
        now: Time,
        settings: &Settings,
    ) -> Option<Response> {
        let pipe = self.pipe.as_mut()?;
        let next = pipe.behind.pop_front()?;
        pipe.sent_whole = pipe.sent_whole.saturating_sub(1);
        pipe.front = next.span;
        self.since = now;
        self.kept = true;
        let late = match self.state {
            State::Draining(..) => std::mem::replace(&mut self.state, State::Settled),
            _ => State::Settled,
        };
        match next.whose {
            Whose::Call(call_key) => match calls.get_mut(call_key) {
                Some(call) => {
                    call.marks.in_front = Some(now);
                    self.hurried = call.overrides.is_some() || self.patience.is_some();
                    self.state = State::Busy(Exchange::new(&call.request, call.mode), call_key);
                }
                None => self.state = State::Settled,
            },
            Whose::Nobodys(exchange) => {
                let until = later(now, settings.drain());
                self.state = State::Draining(*exchange, spare.pop().unwrap_or_default(), until);
            }
            // Not in front: none are left where answers are read, nor where the front gives up.
            Whose::Withdrawn => self.state = State::Settled,
        }
        if let State::Busy(exchange, _) | State::Draining(exchange, ..) = &mut self.state {
            note_front(exchange, pipe);
        }
        match late {
            State::Draining(_, response, _) => Some(response),
            _ => None,
        }
    }

    /// When a connection whose answer nobody waits for is looked at: calls behind that may have deadlines before.
    pub(in crate::reactor) fn draining_due(&self, until: Time) -> Time {
        let others = self.pipe.as_ref().is_some_and(|pipe| !pipe.is_empty());
        let deadline = self.deadline.filter(|_| others);
        deadline.map_or(until, |deadline| deadline.min(until))
    }
}

/// The most that an idle connection keeps of the room for its requests.
const MOST_KEPT: usize = 64 * 1024;
