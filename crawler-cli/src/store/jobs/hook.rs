//! Receivers of webhooks.

use jiff::Timestamp;

use super::Turn;
use crate::store::{Cursor, NoticeId};

/// How far a receiver has been told: messages about everything until here are in the outbox, or were sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HookState {
    /// Its name.
    pub receiver: String,
    /// Tells its address from others, in the caller's encoding: one that has stopped may go on at another address.
    pub address: String,
    /// The last change of state that was looked at.
    pub events: Cursor,
    /// The last change of a flapping URL that a digest has.
    pub damped: Cursor,
    /// When the last digest of flapping URLs was posted.
    pub damped_at: Option<Timestamp>,
    /// The last notice that was looked at.
    pub notices: NoticeId,
    /// The last dead letter that was looked at.
    pub letters: Turn,
    /// The receiver wants no more: since when, and why.
    pub stopped: Option<(Timestamp, String)>,
}
