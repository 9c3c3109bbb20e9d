//! Sending requests that have gathered.

use std::io::{self, IoSlice};

use super::note_front;
use super::requests::Whose;
use crate::net::Net;
use crate::policy::later;
use crate::reactor::conn::State;
use crate::reactor::send::WRITES_PER_TURN;
use crate::reactor::{ConnKey, Reactor};
use crate::time::Time;

impl<N: Net> Reactor<N> {
    pub(super) fn plan_flush(&mut self, key: ConnKey) {
        let Some(batching) = self.settings.batching else {
            return;
        };
        if let Some(pipe) = self.conns.get_mut(key).and_then(|conn| conn.pipe.as_mut())
            && pipe.flush_at.is_none()
        {
            pipe.flush_at = Some(later(self.now, batching.max_delay));
            self.unflushed.push(key);
        }
    }

    /// Sends what has gathered, where it has waited for long enough.
    pub(crate) fn flush(&mut self) {
        if self.unflushed.is_empty() {
            return;
        }
        let mut keys = std::mem::take(&mut self.unflushed);
        keys.retain(|&key| {
            let Some(pipe) = self.conns.get_mut(key).and_then(|conn| conn.pipe.as_mut()) else {
                return false;
            };
            let in_time = pipe.flush_at.is_some_and(|at| at > self.now);
            if in_time && pipe.unsent() < WORTH_SENDING && !pipe.short {
                return true;
            }
            pipe.flush_at = None;
            self.send_pipe(key);
            false
        });
        keys.append(&mut self.unflushed);
        self.unflushed = keys;
    }

    /// When the next gathered requests must go out.
    pub(in crate::reactor) fn flush_due(&self) -> Option<Time> {
        let due = self.unflushed.iter();
        due.filter_map(|key| self.conns.get(*key)?.pipe.as_ref()?.flush_at)
            .min()
    }

    #[inline(never)]
    pub(in crate::reactor) fn send_pipe(&mut self, key: ConnKey) {
        for _ in 0..WRITES_PER_TURN {
            let Some(conn) = self.conns.get_mut(key) else {
                return;
            };
            let Some(pipe) = conn.pipe.as_mut().filter(|pipe| pipe.has_unsent()) else {
                return;
            };
            pipe.tidy();
            if let State::Busy(exchange, _) | State::Draining(exchange, ..) = &conn.state
                && exchange.has_head()
                && exchange.will_close()
                && !exchange.is_sending()
            {
                return; // nothing behind this answer will be looked at (RFC 9112 §9.6)
            }
            let rest = &pipe.out[pipe.out_at..];
            let length = rest.len();
            let slices = [IoSlice::new(rest)];
            match conn.stream.write(&mut self.net, &mut self.buffer, &slices) {
                Ok(n) => {
                    pipe.out_at += n;
                    pipe.written += n as u64;
                    pipe.short = n < length;
                    if n == length {
                        pipe.out.clear();
                        pipe.out_at = 0;
                    }
                    self.note_sent(key);
                    if n < length {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pipe.short = true;
                    return;
                }
                Err(error) => {
                    // Answers may be there already.
                    conn.write_error = Some(error);
                    return self.drive_read(key);
                }
            }
        }
        if let Some(conn) = self.conns.get_mut(key)
            && !std::mem::replace(&mut conn.unsent, true)
        {
            self.unsent.push(key);
        }
    }

    fn note_sent(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let Some(pipe) = &mut conn.pipe else {
            return;
        };
        match &mut conn.state {
            State::Busy(exchange, call) if exchange.is_sending() => {
                conn.since = self.now;
                let whole = note_front(exchange, pipe);
                if whole && let Some(call) = self.calls.get_mut(*call) {
                    call.marks.sent = Some(self.now);
                    call.marks.bytes_out += pipe.front.end - pipe.front.start;
                }
            }
            State::Draining(exchange, ..) if exchange.is_sending() => {
                note_front(exchange, pipe);
            }
            _ => {}
        }
        while let Some(behind) = pipe.behind.get(pipe.sent_whole)
            && behind.span.end <= pipe.written
        {
            if let Whose::Call(call) = behind.whose
                && let Some(call) = self.calls.get_mut(call)
            {
                call.marks.sent = Some(self.now);
                call.marks.bytes_out += behind.span.end - behind.span.start;
            }
            pipe.sent_whole += 1;
        }
        // Now it waits for an answer, perhaps for less time than for room to send.
        self.arm_conn(key);
    }
}

/// What has gathered to this many bytes waits no longer.
const WORTH_SENDING: usize = 16 * 1024;
