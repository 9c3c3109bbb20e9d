//! Reading of pipelined answers, which come in the order of their requests.

use std::time::Duration;

use super::note_front;
use super::requests::ResponseOwner;
use crate::error::{ErrorKind, PeerFault};
use crate::net::Net;
use crate::policy::later;
use crate::proto::{CloseReason, Reuse, Version};
use crate::reactor::body_memory::UNCOUNTED;
use crate::reactor::conn::{Conn, ConnState};
use crate::reactor::read::{Look, Progress, taken};
use crate::reactor::{Common, ReactorEvent};
use crate::time::Time;

impl<N: Net> Conn<N> {
    /// Reads once, and reports all answers that came.
    #[inline(never)]
    pub(in crate::reactor) fn read_pipeline<C>(
        &mut self,
        common: &mut Common<N, C>,
    ) -> Result<Progress, ErrorKind> {
        let read = self.stream.read(&mut common.net, &mut common.buffer);
        let exchange = &mut self.exchange;
        let pipeline = match (&self.state, &mut self.pipeline) {
            (ConnState::Busy(_) | ConnState::Draining(..), Some(pipeline)) => pipeline,
            _ => return Ok(Progress::Stop),
        };
        let Some(n) = taken(read, exchange, &mut self.write_error)? else {
            return Ok(Progress::without_bytes(&self.stream, exchange));
        };
        if n > 0 && !pipeline.is_begun(pipeline.front) && !self.early {
            return Err(PeerFault::Unsolicited.into());
        }
        pipeline.drop_withdrawn();
        let left_nothing = self.stream.is_drained(&common.net, n, common.buffer.len());
        let progress = match left_nothing && !self.closed {
            true => Progress::Drained,
            false => Progress::before_more(&self.stream, exchange),
        };
        self.wait.since = common.now;
        let (slot, was_behind) = (self.slot, pipeline.was_front_behind);
        let mut responses = 0;
        let taken = self.take_answers(common, n, &mut responses);
        // Of several answers in one read, all but the first are to requests that were sent behind another.
        let all = responses + usize::from(matches!(taken, Ok(Some(_))));
        common.pipelining.has_pipelined |= all > usize::from(!was_behind);
        if responses > 0 {
            common.events.push_back(ReactorEvent::Answered {
                slot,
                conn: self.key,
                responses,
            });
        }
        Ok(match taken? {
            Some(Last { reuse, surplus }) => {
                self.finish_pipeline(common, reuse, surplus, left_nothing)
            }
            None => progress,
        })
    }

    /// Takes the answers out of `n` bytes that were read, and counts those behind which others are awaited. Returns the
    /// last answer of the connection.
    #[inline(always)] // into its only caller
    fn take_answers<C>(
        &mut self,
        common: &mut Common<N, C>,
        n: usize,
        responses: &mut usize,
    ) -> Result<Option<Last>, ErrorKind> {
        let mut at = 0;
        loop {
            let mut limits = &common.settings.limits;
            let exchange = &mut self.exchange;
            let (response, call) = match &mut self.state {
                ConnState::Busy(call_key) => match common.calls.get_mut(*call_key) {
                    Some(call) => {
                        let own = call.overrides.as_deref();
                        limits = own.and_then(|own| own.limits.as_ref()).unwrap_or(limits);
                        if at < n {
                            call.timestamps.first_byte.get_or_insert(common.now);
                        }
                        let owner = (*call_key, &mut call.timestamps, &mut call.held);
                        (&mut call.response, Some(owner))
                    }
                    None => return Ok(None),
                },
                ConnState::Draining(response, _) => (response, None),
                _ => return Ok(None),
            };
            let used = match exchange.handle_own(&common.buffer[at..n], response, limits) {
                Ok(used) => used,
                // A body where none may be, behind the answer before: the request of this call has no answer.
                Err(ErrorKind::Peer(PeerFault::BadStatusLine))
                    if self.stray_body && response.interim().next().is_none() =>
                {
                    exchange.disown_received();
                    return Err(PeerFault::Unsolicited.into());
                }
                Err(kind) => return Err(kind),
            };
            at += used;
            let call = match call {
                Some((call, timestamps, held)) => {
                    timestamps.bytes_in += used as u64;
                    if response.body().len() > UNCOUNTED {
                        common.body_memory.grow(held, response.body_buffer())?;
                    }
                    Some(call)
                }
                None => None,
            };
            let Some(reuse) = exchange.done() else {
                return Ok(None);
            };
            let surplus = at < n;
            let Some(pipeline) = self
                .pipeline
                .as_mut()
                .filter(|pipeline| reuse == Reuse::Keep && !pipeline.queued.is_empty())
            else {
                return Ok(Some(Last { reuse, surplus }));
            };
            if let Some(key) = call {
                if response.version() == Version::Http10 {
                    common.events.push_back(ReactorEvent::PipeliningBroken);
                }
                if common.pipelining.ends_at_once
                    && let Some(call) = common.calls.get_mut(key)
                {
                    call.end(common.now, Ok(()));
                }
                common.pipelining.answered.push(key);
            }
            *responses += 1;
            pipeline.answered += 1;
            self.advance(common);
            let Some(pipeline) = &mut self.pipeline else {
                return Ok(None);
            };
            let front_unsent = pipeline.is_front_unsent();
            if front_unsent && pipeline.gathers(common.now, Duration::ZERO) {
                common.pipelining.unflushed.push(self.key); // the request may have waited for this answer
            }
            if !surplus {
                return Ok(None);
            }
            if front_unsent {
                return Err(PeerFault::Unsolicited.into());
            }
        }
    }

    /// Handles the last answer: no request follows, or the connection ends after this answer.
    fn finish_pipeline<C>(
        &mut self,
        common: &mut Common<N, C>,
        reuse: Reuse,
        surplus: bool,
        left_nothing: bool,
    ) -> Progress {
        let behind = match reuse {
            // The last read filled the buffer: only another read shows whether more bytes follow.
            Reuse::Keep if !surplus && !left_nothing => {
                self.look_behind(&mut common.net, &mut common.buffer)
            }
            _ => Look::Nothing,
        };
        let Some(pipeline) = &mut self.pipeline else {
            return Progress::Stop;
        };
        let reuse = match reuse {
            Reuse::Keep if surplus => Reuse::Close(CloseReason::Surplus),
            Reuse::Keep if matches!(behind, Look::Bytes | Look::More) => {
                Reuse::Close(CloseReason::Surplus)
            }
            Reuse::Keep if behind == Look::Ended => Reuse::Close(CloseReason::PeerClosed),
            Reuse::Keep if left_nothing && self.closed => Reuse::Close(CloseReason::PeerClosed),
            reuse => reuse,
        };
        let version = match &self.state {
            ConnState::Busy(call) => common.calls.get(*call).map(|call| call.response.version()),
            ConnState::Draining(response, _) => Some(response.version()),
            _ => None,
        };
        pipeline.answered += 1;
        let sent_queued = pipeline
            .queued
            .front()
            .is_some_and(|b| pipeline.is_begun(b.range));
        let broken = match reuse {
            Reuse::Close(CloseReason::Surplus) => pipeline.answered > 1,
            Reuse::Close(CloseReason::RequestSaidClose) => false,
            // HTTP/1.0 does not say what a server does with further requests.
            Reuse::Close(_) if version == Some(Version::Http10) => sent_queued,
            Reuse::Close(CloseReason::ResponseSaidClose) => {
                pipeline.closed_by_answer = true;
                sent_queued && pipeline.answered == 1
            }
            Reuse::Close(_) => sent_queued && pipeline.answered == 1,
            Reuse::Keep => {
                pipeline.out.shrink_to(MOST_KEPT);
                false
            }
        };
        if broken {
            common.events.push_back(ReactorEvent::PipeliningBroken);
        }
        Progress::Complete(reuse, true)
    }

    /// Moves the first queued request to the front.
    #[inline(always)] // on the path of every answer
    pub(super) fn advance<C>(&mut self, common: &mut Common<N, C>) {
        if let ConnState::Draining(..) = self.state {
            self.await_decision(&mut common.spares);
        }
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let Some(next) = pipeline.queued.pop_front() else {
            return;
        };
        pipeline.was_front_behind = pipeline.sent_whole > 0;
        pipeline.sent_whole -= usize::from(pipeline.was_front_behind);
        pipeline.set_front(next.range);
        self.wait.since = common.now;
        self.reused = true;
        self.stray_body = self.exchange.may_have_stray_body();
        match next.owner {
            ResponseOwner::Call(call_key) => match common.calls.get_mut(call_key) {
                Some(call) => {
                    call.timestamps.in_front = Some(common.now);
                    next.range.note_sent(&mut call.timestamps, next.sent_at);
                    self.wait.has_own_limits =
                        call.overrides.is_some() || self.wait.first_byte_limit.is_some();
                    self.state.change(ConnState::Busy(call_key));
                    self.exchange.begin(&call.request, call.mode);
                }
                None => self.state = ConnState::AwaitingDecision,
            },
            ResponseOwner::Abandoned(exchange) => {
                let until = later(common.now, common.settings.drain());
                self.state = ConnState::Draining(common.spares.take_response(), until);
                self.exchange = *exchange;
            }
            // Never the case: withdrawn requests are dropped before answers are read, and when the front gives up.
            ResponseOwner::Withdrawn => self.state = ConnState::AwaitingDecision,
        }
        note_front(&mut self.exchange, pipeline);
    }

    /// When the timer of a draining connection must fire: at `until`, or before at the deadline of a queued call.
    pub(in crate::reactor) fn draining_due(&self, until: Time) -> Time {
        let others = self
            .pipeline
            .as_ref()
            .is_some_and(|pipeline| !pipeline.queued.is_empty());
        let deadline = self.wait.deadline.filter(|_| others);
        deadline.map_or(until, |deadline| deadline.min(until))
    }
}

/// An answer behind which none is awaited, or with which the connection ends.
struct Last {
    reuse: Reuse,
    /// More bytes have come with it.
    surplus: bool,
}

/// The largest buffer for requests that an idle connection keeps.
const MOST_KEPT: usize = 64 * 1024;
