//! Which message of a receiver is sent next. Pure.
//!
//! Messages are sent in the order in which they were posted. A receiver that fails is asked with its first message alone,
//! and all others wait behind it: a receiver that is down costs one request at a time. A message that the receiver refuses
//! as such does not keep the others from being sent.

use std::collections::HashSet;

use jiff::Timestamp;

use super::backoff::is_due;
use crate::store::{Message, MessageId};

/// What is to be done for a receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// The message with this index is sent.
    Send(usize),
    /// Nothing before this time.
    Wait(Timestamp),
    /// There is no message.
    Nothing,
}

/// What is next. `outbox` is in the order in which the messages were posted; the receiver refused those in `refused`.
/// `is_hurried`: an operator wants no wait.
pub(super) fn next(
    outbox: &[Message],
    refused: &HashSet<MessageId>,
    now: Timestamp,
    is_hurried: bool,
) -> Next {
    let mut until: Option<Timestamp> = None;
    for (index, message) in outbox.iter().enumerate() {
        if is_hurried || is_due(message.next_at, now) {
            return Next::Send(index);
        }
        let earliest = until.map_or(message.next_at, |until| until.min(message.next_at));
        until = Some(earliest);
        if !refused.contains(&message.id) {
            break;
        }
    }
    until.map_or(Next::Nothing, Next::Wait)
}
