//! Calls that are awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Refused;
use super::slot::Slot;
use super::thread::{Command, Workers};
use crate::client::Completion;

/// A call in flight: a future, for any executor, of the completion. Dropping the future before it is ready cancels the
/// call.
///
/// The future borrows nothing, so it can be spawned. Made by [`Shared::send`](crate::Shared::send), which has an
/// example.
#[derive(Debug)]
#[must_use = "dropping it cancels the call"]
pub struct Sending(State);

#[derive(Debug)]
enum State {
    Running(Ticket),
    Refused(Refused),
    Over,
}

impl Sending {
    pub(super) fn new(begun: Result<Ticket, Refused>) -> Self {
        Self(match begun {
            Ok(ticket) => State::Running(ticket),
            Err(refused) => State::Refused(refused),
        })
    }

    /// A handle on the call, unless the call has ended.
    pub fn ticket(&self) -> Option<Ticket> {
        match &self.0 {
            State::Running(ticket) => Some(ticket.clone()),
            State::Refused(_) | State::Over => None,
        }
    }
}

impl Future for Sending {
    type Output = Completion;

    /// # Panics
    /// If the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let completion = match std::mem::replace(&mut self.0, State::Over) {
            State::Running(ticket) => match ticket
                .slot
                .poll_for(context, |state| state.completion.take())
            {
                Poll::Ready(completion) => completion,
                Poll::Pending => {
                    self.0 = State::Running(ticket);
                    return Poll::Pending;
                }
            },
            State::Refused(refused) => refused.into_completion(),
            State::Over => panic!("polled again after it was ready"),
        };
        Poll::Ready(completion)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let State::Running(ticket) = &self.0 {
            ticket.cancel();
        }
    }
}

/// A handle on a call that was given to a [`Shared`](crate::Shared) client. Dropping the handle has no effect on the
/// call.
///
/// ```
/// # fn example(client: &courser::Shared<courser::HostClient>) -> Result<(), courser::shared::Refused> {
/// use courser::{Call, Request, Response};
///
/// let (sender, arrived) = courser::shared::completions();
/// let ticket = client.submit(Call::new(Request::get("/slow"), Response::new()), &sender)?;
/// ticket.cancel();
/// let done = arrived.wait(None).unwrap(); // the call completes in any case, cancelled or not
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(super) slot: Arc<Slot>,
    pub(super) workers: Arc<Workers>,
}

impl Ticket {
    /// Ends the call. The call completes with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), unless it has
    /// ended before.
    pub fn cancel(&self) {
        self.workers.cancel(&self.slot);
    }

    /// Goes on sending, after the body source of the call has got more bytes.
    pub fn resume(&self) {
        let resume = Command::Resume(Arc::clone(&self.slot));
        self.workers.send(self.slot.worker(), resume);
    }
}
