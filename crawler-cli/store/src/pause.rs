//! What operators have paused.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// What can be paused.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everything.
    All,
    /// A host: the URL of its root, `https://example.com/`.
    Host(String),
}

/// Something that an operator has paused: it is not asked until it is resumed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pause {
    /// What.
    pub what: Scope,
    /// Since when.
    pub since: Timestamp,
    /// By whom.
    pub who: String,
}

/// What an engine that keeps pauses can do.
///
/// ```
/// use store::sqlite::Sqlite;
/// use store::{Pause, PauseStore, Scope};
/// use jiff::Timestamp;
///
/// let mut store = Sqlite::temporary()?;
/// let host = Scope::Host("https://example.com/".into());
/// let pause = Pause { what: host.clone(), since: Timestamp::UNIX_EPOCH, who: "me".into() };
/// assert!(store.pause(&pause)?);
/// assert_eq!(store.pauses()?, [pause]);
/// assert!(store.resume(&host)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait PauseStore: Send {
    /// All pauses, in the order of what is paused.
    ///
    /// # Errors
    /// The store cannot be read.
    fn pauses(&mut self) -> Result<Vec<Pause>, StoreError>;

    /// Keeps a pause. `false`: it is paused already, and nothing is changed.
    ///
    /// # Errors
    /// The store cannot be written.
    fn pause(&mut self, pause: &Pause) -> Result<bool, StoreError>;

    /// Forgets a pause. `false`: it is not paused.
    ///
    /// # Errors
    /// The store cannot be written.
    fn resume(&mut self, what: &Scope) -> Result<bool, StoreError>;
}
