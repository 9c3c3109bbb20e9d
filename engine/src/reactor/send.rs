//! Sending: the request of a call goes out on its connection, until the whole request is sent or the socket takes no
//! more bytes.

use std::io::{self, IoSlice};

use super::conn::{Conn, ConnState};
use super::meter::Metered;
use super::{ActiveCall, Common};
use crate::error::{ErrorKind, Misuse};
use crate::net::Net;
use crate::policy::later;
use crate::proto::SendStep;
use crate::time::Time;

impl<N: Net> Conn<N> {
    /// Goes on sending, and makes sure that the timer fires in time.
    pub(super) fn send_on<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        self.drive_send(common)?;
        self.arm(common);
        Ok(())
    }

    /// Goes on sending, after the budget of the last iteration was used up.
    pub(super) fn go_on_sending<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        self.send_deferred = false;
        self.send_on(common)
    }

    /// Sends as far as the socket takes bytes.
    pub(super) fn drive_send<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        if self.pipeline.is_some() {
            self.send_pipeline(common)?;
        } else if let ConnState::Busy(call) = self.state {
            if self.exchange.awaits_source() {
                self.wait.since = common.now; // the peer had nothing to wait for
            }
            if let Some(call) = common.calls.get_mut(call)
                && let Err(stop) = self.send(call, &mut common.net, &mut common.buffer, common.now)
            {
                self.stop_sending(common, stop)?;
            }
        }
        Ok(())
    }

    /// Handles a stop of sending.
    #[cold]
    pub(super) fn stop_sending<C>(
        &mut self,
        common: &mut Common<N, C>,
        stop: SendStop,
    ) -> Result<(), ErrorKind> {
        match stop {
            SendStop::Budget => common.left_over.sends.next.push(self.key),
            SendStop::Misuse(misuse) => {
                if let ConnState::Busy(call) = self.state
                    && let Some(call) = common.calls.get_mut(call)
                {
                    common.panic = common.panic.take().or_else(|| call.request.take_panic());
                }
                return Err(misuse.into());
            }
            // The response may have come already: a server that refuses a body sends a response and closes.
            SendStop::Broken => self.drive_read(common)?,
        }
        Ok(())
    }

    /// Sends the request of the call that the connection serves, as far as the socket takes bytes.
    #[inline(always)] // on the path of every call
    pub(super) fn send<C>(
        &mut self,
        call: &mut ActiveCall<C>,
        net: &mut Metered<N>,
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

/// Writes on one connection in one iteration.
pub(super) const WRITES_PER_ITERATION: usize = 16;
