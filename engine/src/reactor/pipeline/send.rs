//! Sending of requests that have gathered.

use std::io::{self, IoSlice};
use std::time::Duration;

use super::note_front;
use super::requests::ByteRange;
use crate::error::{ErrorKind, PeerFault};
use crate::net::Net;
use crate::reactor::Common;
use crate::reactor::conn::{Conn, ConnState};
use crate::reactor::read::Look;
use crate::reactor::send::WRITES_PER_ITERATION;

impl<N: Net> Conn<N> {
    /// A request was withdrawn. If it went alone, the requests behind it need not wait for it any more: they are sent at
    /// the end of this iteration at the latest.
    #[cold]
    pub(super) fn flush_if_free<C>(&mut self, common: &mut Common<N, C>, withdrawn: ByteRange) {
        if withdrawn.alone
            && let Some(pipeline) = &mut self.pipeline
            && pipeline.gathers(common.now, Duration::ZERO)
        {
            common.pipelining.unflushed.push(self.key);
        }
    }

    /// Sends the gathered requests, if they have waited long enough or are many enough. True if they still wait.
    pub(in crate::reactor) fn flush<C>(
        &mut self,
        common: &mut Common<N, C>,
    ) -> Result<bool, ErrorKind> {
        let Some(pipeline) = &mut self.pipeline else {
            return Ok(false);
        };
        let may_wait = pipeline.flush_at.is_some_and(|at| at > common.now);
        if may_wait && pipeline.unsent() < WORTH_SENDING && !pipeline.short_write {
            return Ok(true);
        }
        pipeline.flush_at = None;
        if pipeline.is_next_alone() {
            self.check_quiet(common)?;
        }
        self.send_pipeline(common)?;
        Ok(false)
    }

    /// Looks whether a connection without sent requests has bytes, or has ended. Then it fails: those bytes would be taken
    /// for the next answer.
    #[cold]
    fn check_quiet<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        match self.look_behind(&mut common.net, &mut common.buffer) {
            Look::Nothing => Ok(()),
            Look::Bytes | Look::More => Err(PeerFault::Unsolicited.into()),
            Look::Ended => Err(PeerFault::Empty.into()),
        }
    }

    /// Sends what may be sent.
    #[inline(never)]
    pub(in crate::reactor) fn send_pipeline<C>(
        &mut self,
        common: &mut Common<N, C>,
    ) -> Result<(), ErrorKind> {
        for _ in 0..WRITES_PER_ITERATION {
            let Some(pipeline) = &mut self.pipeline else {
                return Ok(());
            };
            pipeline.drop_withdrawn();
            let exchange = &self.exchange;
            if matches!(self.state, ConnState::Busy(_) | ConnState::Draining(..))
                && exchange.has_head()
                && exchange.will_close()
                && !exchange.is_sending()
            {
                return Ok(()); // the server handles no request behind this answer (RFC 9112 §9.6)
            }
            let rest = pipeline.sendable();
            let length = rest.len();
            if length == 0 {
                return Ok(());
            }
            let slices = [IoSlice::new(rest)];
            let wrote = self
                .stream
                .write(&mut common.net, &mut common.buffer, &slices);
            let sent = *wrote.as_ref().unwrap_or(&0) as u64;
            pipeline.committed = pipeline.written + sent + self.stream.uncounted() as u64;
            match wrote {
                Ok(n) => {
                    pipeline.out_at += n;
                    pipeline.written += sent;
                    pipeline.short_write = n < length && !self.stream.has_room();
                    let is_full = pipeline.short_write;
                    let is_all = pipeline.out_at == pipeline.out.len();
                    if is_all {
                        pipeline.out.clear();
                        pipeline.out_at = 0;
                    }
                    self.note_sent(common);
                    if is_all || is_full {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pipeline.short_write = true;
                    return Ok(());
                }
                Err(error) => {
                    // Answers may have come already.
                    self.write_error = Some(error);
                    return self.drive_read(common);
                }
            }
        }
        if !std::mem::replace(&mut self.send_deferred, true) {
            common.left_over.sends.next.push(self.key);
        }
        Ok(())
    }

    fn note_sent<C>(&mut self, common: &mut Common<N, C>) {
        let Some(pipeline) = &mut self.pipeline else {
            return;
        };
        let exchange = &mut self.exchange;
        match self.state {
            ConnState::Busy(call) if exchange.is_sending() => {
                self.wait.since = common.now;
                if note_front(exchange, pipeline)
                    && let Some(call) = common.calls.get_mut(call)
                {
                    let now = Some(common.now);
                    pipeline.front.note_sent(&mut call.timestamps, now);
                }
            }
            ConnState::Draining(..) if exchange.is_sending() => {
                note_front(exchange, pipeline);
            }
            _ => {}
        }
        for queued in pipeline.queued.range_mut(pipeline.sent_whole..) {
            if queued.range.end > pipeline.written {
                break;
            }
            queued.sent_at = Some(common.now);
            pipeline.sent_whole += 1;
        }
        // Now the connection waits for an answer, and that limit may be shorter than the limit for sending.
        self.arm(common);
    }
}

/// Requests that have gathered to this many bytes are sent at once.
const WORTH_SENDING: usize = 16 * 1024;
