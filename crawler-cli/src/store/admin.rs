//! What the operator's page and the API keep: tokens, samples of figures, and answers to requests that may come again.

use jiff::Timestamp;

use super::StoreError;

/// A token that opens the page and the API. The token itself is not stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredToken {
    /// The part of the token that names it. No two tokens have the same.
    pub id: String,
    /// What the operator calls it. No two tokens have the same.
    pub name: String,
    /// The hash of the whole token.
    pub hash: Vec<u8>,
    /// Whether it allows changes.
    pub may_write: bool,
    /// When it was made.
    pub made_at: Timestamp,
    /// When it ends; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// Who made it.
    pub made_by: String,
}

/// The answer to a request with a key: the same request with the same key gets it again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Remembered {
    /// The hash of the request.
    pub request: Vec<u8>,
    /// The status of the answer.
    pub status: u16,
    /// Its body.
    pub answer: String,
    /// When the request was done.
    pub at: Timestamp,
}

/// What an engine that keeps things for the operator's page and the API can do.
///
/// ```
/// use crawler_cli::store::sqlite::Sqlite;
/// use crawler_cli::store::{AdminStore, StoredToken};
/// use jiff::Timestamp;
///
/// let mut store = Sqlite::temporary()?;
/// let token = StoredToken {
///     id: "k3v7m2qa".into(),
///     name: "prometheus".into(),
///     hash: vec![7; 32],
///     may_write: false,
///     made_at: Timestamp::UNIX_EPOCH,
///     expires_at: None,
///     made_by: "me".into(),
/// };
/// assert!(store.save_token(&token)?);
/// assert_eq!(store.tokens()?, [token]);
/// assert!(store.remove_token("prometheus")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AdminStore: Send {
    /// All tokens, in the order of their names.
    ///
    /// # Errors
    /// The store cannot be read.
    fn tokens(&mut self) -> Result<Vec<StoredToken>, StoreError>;

    /// Keeps a token. `false`: there is one with its name or id, and nothing is changed.
    ///
    /// # Errors
    /// The store cannot be written.
    fn save_token(&mut self, token: &StoredToken) -> Result<bool, StoreError>;

    /// Forgets the token with this name. `false`: there is none.
    ///
    /// # Errors
    /// The store cannot be written.
    fn remove_token(&mut self, name: &str) -> Result<bool, StoreError>;

    /// Keeps a sample, in the caller's encoding, in the place of another one of the same time. Those that are older by
    /// [`SAMPLES_LAST`] are forgotten.
    ///
    /// # Errors
    /// The store cannot be written.
    fn save_sample(&mut self, at: Timestamp, data: &str) -> Result<(), StoreError>;

    /// The samples of this time and later, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn samples(&mut self, since: Timestamp) -> Result<Vec<(Timestamp, String)>, StoreError>;

    /// Keeps the answer to a request with this key, in the place of an earlier one.
    ///
    /// # Errors
    /// The store cannot be written.
    fn remember(&mut self, key: &str, answer: &Remembered) -> Result<(), StoreError>;

    /// The answer to the request with this key; `None` if there was none.
    ///
    /// # Errors
    /// The store cannot be read.
    fn remembered(&mut self, key: &str) -> Result<Option<Remembered>, StoreError>;

    /// Counts the answers to requests whose keys begin so, up to `most`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn count_remembered(&mut self, prefix: &str, most: usize) -> Result<usize, StoreError>;

    /// Forgets up to `limit` answers from before this time, oldest first, and tells how many.
    ///
    /// # Errors
    /// The store cannot be written.
    fn forget_remembered(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// How long samples are kept.
pub const SAMPLES_LAST: jiff::SignedDuration = jiff::SignedDuration::from_hours(400 * 24);
