//! Runs.

use jiff::Timestamp;

/// A run: one check of a list of URLs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Run {
    /// Its number: 1 is the first one of the store.
    pub number: i64,
    /// When it began.
    pub began: Timestamp,
    /// Whether it was interrupted and is continued.
    pub is_resumed: bool,
}
