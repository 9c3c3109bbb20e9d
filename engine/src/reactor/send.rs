//! Sending: the request of a call goes out on its connection, until the whole request is sent or the socket takes no
//! more bytes.

use std::io::{self, IoSlice};

use super::conn::{Conn, ConnState};
use super::{ActiveCall, CallKey, CallState, ConnKey, Reactor};
use crate::error::Misuse;
use crate::net::Net;
use crate::policy::later;
use crate::proto::SendStep;
use crate::time::Time;

impl<S> Conn<S> {
    /// Sends the request of the call that the connection serves, as far as the socket takes bytes.
    #[inline(always)] // on the path of every call
    pub(super) fn send<N: Net<Stream = S>, C>(
        &mut self,
        call: &mut ActiveCall<C>,
        net: &mut N,
        scratch: &mut [u8],
        now: Time,
    ) -> Result<(), SendStop> {
        let exchange = &mut self.exchange;
        for _ in 0..WRITES_PER_ITERATION {
            let parts = match exchange.poll_send(&mut call.request) {
                Ok(SendStep::Write(parts)) => parts,
                Ok(SendStep::AwaitContinue(wait)) => {
                    self.wait.continue_at.get_or_insert(later(now, wait));
                    return Ok(());
                }
                Ok(SendStep::AwaitSource) => return Ok(()),
                Ok(SendStep::Done) => {
                    call.timestamps.sent = Some(now);
                    self.wait.since = now;
                    return Ok(());
                }
                Err(misuse) => return Err(SendStop::Misuse(misuse)),
            };
            let length = parts[0].len() + parts[1].len();
            let slices = [IoSlice::new(parts[0]), IoSlice::new(parts[1])];
            let used = if parts[1].is_empty() { 1 } else { 2 };
            match self.stream.write(net, scratch, &slices[..used]) {
                Ok(n) => {
                    exchange.handle_sent(n);
                    call.timestamps.bytes_out += n as u64;
                    self.wait.since = now;
                    if n < length && !self.stream.has_room() {
                        return Ok(());
                    }
                    if !exchange.is_sending() {
                        call.timestamps.sent = Some(now);
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    self.write_error = Some(error);
                    return Err(SendStop::Broken);
                }
            }
        }
        if std::mem::replace(&mut self.send_deferred, true) {
            return Ok(());
        }
        Err(SendStop::Budget)
    }
}

/// Why sending has stopped, other than to wait for the socket or for the body.
pub(super) enum SendStop {
    /// The budget of this iteration is used up.
    Budget,
    Misuse(Misuse),
    /// A write has failed. The connection keeps the error.
    Broken,
}

impl<N: Net, C> Reactor<N, C> {
    /// Goes on sending, after the source of a body has got more bytes.
    pub(crate) fn resume_send(&mut self, call: CallKey) {
        if let Some(CallState::OnConn(conn)) = self.calls.get(call).map(|call| call.state) {
            self.drive_send(conn);
            self.arm_conn(conn);
        }
    }

    pub(super) fn drive_send(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        if conn.pipeline.is_some() {
            return self.send_pipeline(key);
        }
        let ConnState::Busy(call_key) = conn.state else {
            return;
        };
        if conn.exchange.awaits_source() {
            conn.wait.since = self.now; // the peer had nothing to wait for
        }
        let Some(call) = self.calls.get_mut(call_key) else {
            return;
        };
        let sending = conn.send(call, &mut self.net, &mut self.buffer, self.now);
        if let Err(stop) = sending {
            self.stop_sending(key, stop);
        }
    }

    /// Handles a stop of sending.
    #[cold]
    pub(super) fn stop_sending(&mut self, key: ConnKey, stop: SendStop) {
        match stop {
            SendStop::Budget => self.left_over.sends.next.push(key),
            SendStop::Misuse(misuse) => {
                if let Some(conn) = self.conns.get(key)
                    && let ConnState::Busy(call) = conn.state
                    && let Some(call) = self.calls.get_mut(call)
                {
                    self.panic = self.panic.take().or_else(|| call.request.take_panic());
                }
                self.fail(key, misuse.into());
            }
            // The response may have come already: a server that refuses a body sends a response and closes.
            SendStop::Broken => self.drive_read(key),
        }
    }
}

/// Writes on one connection in one iteration.
pub(super) const WRITES_PER_ITERATION: usize = 16;
