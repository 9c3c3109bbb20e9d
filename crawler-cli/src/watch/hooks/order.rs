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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewMessage;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    /// Messages with these times, numbered from 1.
    fn outbox(times: &[i64]) -> Vec<Message> {
        let message = |(number, &time): (i64, &i64)| Message {
            id: MessageId(number),
            message: NewMessage {
                receiver: "ops".to_owned(),
                topic: "url.gone".to_owned(),
                body: Vec::new(),
            },
            posted_at: at(0),
            next_at: at(time),
            attempts: 0,
        };
        (1..).zip(times).map(message).collect()
    }

    #[test]
    fn a_failed_message_keeps_those_after_it_unless_it_was_refused() {
        use Next::{Nothing, Send, Wait};
        for (times, refused, now, expected) in [
            (&[][..], &[][..], 9, Nothing),
            (&[0, 0], &[], 9, Send(0)),
            // The receiver failed: all wait for the first one.
            (&[20, 0, 0], &[], 9, Wait(at(20))),
            (&[20, 0, 0], &[], 20, Send(0)),
            // The receiver does not want the first one.
            (&[20, 0, 0], &[1], 9, Send(1)),
            (&[20, 15, 0], &[1], 9, Wait(at(15))),
            (&[20, 15, 0], &[1, 2], 9, Send(2)),
            (&[20, 15], &[1, 2], 9, Wait(at(15))),
            (&[12, 15], &[1], 12, Send(0)),
            // The clock was set back.
            (&[1_000_000], &[], 9, Send(0)),
        ] {
            let refused = refused.iter().map(|number| MessageId(*number)).collect();
            let found = next(&outbox(times), &refused, at(now), false);
            assert_eq!(found, expected, "{times:?} {refused:?} {now}");
        }
        let hurried = next(&outbox(&[20]), &HashSet::new(), at(9), true);
        assert_eq!(hurried, Send(0));
    }
}
