//! A call that is awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Refused;
use super::slot::Slot;
use super::thread::{Command, Workers};
use crate::client::Completion;

/// A call on its way: a future, for any executor, of its completion. Dropping it before its end cancels the call.
///
/// It borrows nothing, so it can be spawned. Made by [`Shared::send`](crate::Shared::send), which has an example.
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

    /// A handle on the call, unless it is over.
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
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let completion = match std::mem::replace(&mut self.0, State::Over) {
            State::Running(ticket) => match ticket.slot.poll(context) {
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

/// A handle on a call that was given to a [`Shared`](crate::Shared) client. Dropping it does nothing.
///
/// ```
/// # fn example(client: &courser::Shared<courser::HostClient>) -> Result<(), courser::Refused> {
/// use courser::{Call, Request, Response};
///
/// let (sender, arrived) = courser::completions();
/// let ticket = client.submit(Call::new(Request::get("/slow"), Response::new()), &sender)?;
/// ticket.cancel();
/// let done = arrived.wait(None).unwrap(); // it completes in any case, cancelled or not
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(super) slot: Arc<Slot>,
    pub(super) workers: Arc<Workers>,
}

impl Ticket {
    /// Ends the call: it completes with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), unless it is over by
    /// then.
    pub fn cancel(&self) {
        self.workers.cancel(&self.slot);
    }

    /// The body source of the call, which had nothing to send, has something again.
    pub fn resume(&self) {
        let resume = Command::Resume(Arc::clone(&self.slot));
        self.workers.send(self.slot.home(), resume);
    }
}
