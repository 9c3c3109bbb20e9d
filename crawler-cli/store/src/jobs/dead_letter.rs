//! Dead letters: what needs a human or a change of a rule.

use jiff::Timestamp;

use super::job::JobId;
use crate::UrlId;

/// How many bytes of the last exchange a dead letter keeps.
pub const LAST_EXCHANGE: usize = 4096;

/// The number of a dead letter. No number is used twice.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeadLetterId(pub i64);

impl DeadLetterId {
    /// Before the first dead letter.
    pub const START: Self = Self(0);

    /// After the last dead letter, and after all that are to come.
    pub const END: Self = Self(i64::MAX);
}

/// What a dead letter says about its subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewDeadLetter {
    /// One of few words, by which dead letters are counted: `invalid_url`, `redirect_loop`.
    pub reason: String,
    /// How many attempts there were.
    pub attempts: u32,
    /// The last exchange: the request line, the status line, header fields, errors, times. What exceeds
    /// [`LAST_EXCHANGE`] is cut.
    pub last: String,
    /// When the subject failed first.
    pub first_at: Timestamp,
    /// When it failed last.
    pub last_at: Timestamp,
}

/// What a caller can store a dead letter of. A job becomes a dead letter when it is settled.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Buried {
    /// A URL of the store.
    Url(UrlId),
    /// A text that could not become a URL.
    Text(String),
}

/// What failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Subject {
    /// A URL of the store.
    Url {
        /// Its number.
        id: UrlId,
        /// The URL.
        url: String,
    },
    /// A text that could not become a URL.
    Text(String),
    /// A job.
    Job {
        /// Its number.
        id: JobId,
        /// The queue in which it was.
        queue: String,
        /// Its key.
        key: Option<String>,
        /// What it was about.
        payload: Vec<u8>,
    },
}

/// A dead letter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeadLetter {
    /// Its number.
    pub id: DeadLetterId,
    /// What failed.
    pub subject: Subject,
    /// Why, and when.
    pub letter: NewDeadLetter,
    /// How often the subject has failed for good. A job with a key has one dead letter for all jobs of its queue with that
    /// key; a URL and a text have one for each reason.
    pub times: u32,
    /// When it was replayed, if the subject has not failed again since.
    pub replayed_at: Option<Timestamp>,
}

/// Which dead letters: those that pass all that is given.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeadLetterFilter {
    /// This one alone.
    pub id: Option<DeadLetterId>,
    /// With this reason.
    pub reason: Option<String>,
    /// Of URLs of the host with this name, on any port.
    pub host: Option<String>,
    /// Of jobs of this queue.
    pub queue: Option<String>,
    /// Whose subjects failed then or later.
    pub since: Option<Timestamp>,
    /// Also those that were replayed.
    pub with_replayed: bool,
}

/// What a replay has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Replayed {
    /// How many dead letters were replayed.
    pub count: u64,
    /// How many were passed over: URLs in no set, texts that are no URLs.
    pub passed: u64,
    /// Go on after this one; `None` if no further dead letter passes the filter.
    pub next: Option<DeadLetterId>,
}
