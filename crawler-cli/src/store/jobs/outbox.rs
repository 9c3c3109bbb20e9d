//! Messages that wait to be sent to others.

use jiff::Timestamp;

/// The number of a message. No number is used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessageId(pub i64);

/// A message that is to be sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewMessage {
    /// To whom: the name of a receiver.
    pub receiver: String,
    /// What the message is about.
    pub topic: String,
    /// What is sent, in the caller's encoding.
    pub body: Vec<u8>,
}

/// A message of the outbox.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// Its number.
    pub id: MessageId,
    /// The message.
    pub message: NewMessage,
    /// When it was posted.
    pub posted_at: Timestamp,
    /// When it is to be sent.
    pub next_at: Timestamp,
    /// How often it was sent without success.
    pub attempts: u32,
}

/// What became of the sending of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// The message.
    pub message: MessageId,
    /// How often it had been sent without success before.
    pub attempts: u32,
    /// What became of it.
    pub delivered: Delivered,
}

/// How the sending of a message ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Delivered {
    /// The receiver has it.
    Sent,
    /// It is to be sent again at this time or later.
    Retry(Timestamp),
    /// It cannot be delivered, and becomes a dead letter.
    Dead {
        /// The reason of the dead letter.
        reason: String,
        /// The last exchange. What exceeds [`LAST_EXCHANGE`](super::LAST_EXCHANGE) is cut.
        last: String,
    },
}
