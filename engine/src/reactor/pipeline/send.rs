//! Sending of requests that have gathered.

use std::io::{self, IoSlice};
use std::time::Duration;

use super::note_front;
use super::requests::{ByteRange, ResponseOwner};
use crate::error::PeerFault;
use crate::net::Net;
use crate::reactor::conn::ConnState;
use crate::reactor::read::Look;
use crate::reactor::send::WRITES_PER_ITERATION;
use crate::reactor::{CallKey, ConnKey, Reactor};
use crate::time::Time;

impl<N: Net, C> Reactor<N, C> {
    /// A request was withdrawn. If it went alone, the requests behind it need not wait for it any more: they are sent at
    /// the end of this iteration at the latest.
    #[cold]
    pub(super) fn flush_if_free(&mut self, key: ConnKey, withdrawn: ByteRange) {
        if withdrawn.alone
            && let Some(conn) = self.conns.get_mut(key)
            && let Some(pipeline) = &mut conn.pipeline
            && pipeline.gathers(self.now, Duration::ZERO)
        {
            self.pipelining.unflushed.push(key);
        }
    }

    /// Sends the gathered requests of each connection that has waited long enough or has gathered enough.
    pub(crate) fn flush(&mut self) {
        if self.pipelining.unflushed.is_empty() {
            return;
        }
        let mut keys = std::mem::take(&mut self.pipelining.unflushed);
        keys.retain(|&key| {
            let Some(pipeline) = self
                .conns
                .get_mut(key)
                .and_then(|conn| conn.pipeline.as_mut())
            else {
                return false;
            };
            let may_wait = pipeline.flush_at.is_some_and(|at| at > self.now);
            if may_wait && pipeline.unsent() < WORTH_SENDING && !pipeline.short_write {
                return true;
            }
            pipeline.flush_at = None;
            if !pipeline.is_next_alone() || self.is_quiet(key) {
                self.send_pipeline(key);
            }
            false
        });
        keys.append(&mut self.pipelining.unflushed);
        self.pipelining.unflushed = keys;
    }

    /// Looks whether a connection without sent requests has bytes, or has ended. Then it fails: those bytes would be taken
    /// for the next answer.
    #[cold]
    fn is_quiet(&mut self, key: ConnKey) -> bool {
        let fault = match self.look_behind(key) {
            Look::Nothing => return true,
            Look::Bytes | Look::More => PeerFault::Unsolicited,
            Look::Ended => PeerFault::Empty,
        };
        self.fail(key, fault.into());
        false
    }

    /// When the next gathered requests must be sent.
    pub(in crate::reactor) fn flush_due(&self) -> Option<Time> {
        let due = self.pipelining.unflushed.iter();
        due.filter_map(|key| self.conns.get(*key)?.pipeline.as_ref()?.flush_at)
            .min()
    }

    #[inline(never)]
    pub(in crate::reactor) fn send_pipeline(&mut self, key: ConnKey) {
        for _ in 0..WRITES_PER_ITERATION {
            let Some(conn) = self.conns.get_mut(key) else {
                return;
            };
            let Some(pipeline) = &mut conn.pipeline else {
                return;
            };
            pipeline.drop_withdrawn();
            let exchange = &conn.exchange;
            if matches!(conn.state, ConnState::Busy(_) | ConnState::Draining(..))
                && exchange.has_head()
                && exchange.will_close()
                && !exchange.is_sending()
            {
                return; // the server handles no request behind this answer (RFC 9112 §9.6)
            }
            let rest = pipeline.sendable();
            let length = rest.len();
            if length == 0 {
                return;
            }
            let slices = [IoSlice::new(rest)];
            let wrote = conn.stream.write(&mut self.net, &mut self.buffer, &slices);
            let sent = *wrote.as_ref().unwrap_or(&0) as u64;
            pipeline.committed = pipeline.written + sent + conn.stream.uncounted() as u64;
            match wrote {
                Ok(n) => {
                    pipeline.out_at += n;
                    pipeline.written += sent;
                    pipeline.short_write = n < length && !conn.stream.has_room();
                    let is_full = pipeline.short_write;
                    let is_all = pipeline.out_at == pipeline.out.len();
                    if is_all {
                        pipeline.out.clear();
                        pipeline.out_at = 0;
                    }
                    self.note_sent(key);
                    if is_all || is_full {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pipeline.short_write = true;
                    return;
                }
                Err(error) => {
                    // Answers may have come already.
                    conn.write_error = Some(error);
                    return self.drive_read(key);
                }
            }
        }
        if let Some(conn) = self.conns.get_mut(key)
            && !std::mem::replace(&mut conn.send_deferred, true)
        {
            self.left_over.sends.next.push(key);
        }
    }

    fn note_sent(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let Some(pipeline) = &mut conn.pipeline else {
            return;
        };
        let mut note_call = |call: CallKey, range: ByteRange| {
            if let Some(call) = self.calls.get_mut(call) {
                call.timestamps.sent = Some(self.now);
                call.timestamps.bytes_out += range.end - range.start;
            }
        };
        let exchange = &mut conn.exchange;
        match conn.state {
            ConnState::Busy(call) if exchange.is_sending() => {
                conn.wait.since = self.now;
                if note_front(exchange, pipeline) {
                    note_call(call, pipeline.front);
                }
            }
            ConnState::Draining(..) if exchange.is_sending() => {
                note_front(exchange, pipeline);
            }
            _ => {}
        }
        for queued in pipeline.queued.range(pipeline.sent_whole..) {
            if queued.range.end > pipeline.written {
                break;
            }
            if let ResponseOwner::Call(call) = queued.owner {
                note_call(call, queued.range);
            }
            pipeline.sent_whole += 1;
        }
        // Now the connection waits for an answer, and that limit may be shorter than the limit for sending.
        self.arm_conn(key);
    }
}

/// Requests that have gathered to this many bytes are sent at once.
const WORTH_SENDING: usize = 16 * 1024;
