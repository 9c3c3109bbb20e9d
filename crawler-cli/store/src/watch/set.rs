//! URL sets: what is to be watched, and who says so.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use url::{Position, Url};

use crate::UrlId;
use verdict::life::State;

/// Who made a URL a member of a set.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Origin {
    /// The source of the set, which is read again: what the source does not have any more leaves the set.
    Source,
    /// An operator or a program: the URL stays until it is withdrawn.
    Hand,
}

/// A URL that is to be watched.
///
/// ```
/// use store::{NewUrl, Refused};
///
/// let url = NewUrl::parse("HTTP://Example.com/a#part")?;
/// assert_eq!(url.identity(), "http://example.com/a");
/// assert_eq!(url.spelling(), "HTTP://Example.com/a");
/// assert_eq!(NewUrl::parse("mailto:me@example.com"), Err(Refused::Scheme));
/// # Ok::<(), Refused>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewUrl {
    url: Url,
    /// `None` if it is the identity.
    spelling: Option<Box<str>>,
}

impl NewUrl {
    /// The longest URL, in bytes. Servers need not take longer ones than 8,000 bytes (RFC 9110 section 4.1); some do.
    pub const LONGEST: usize = 16 * 1024;

    /// Reads a URL as it was given. Blanks around it are ignored.
    ///
    /// # Errors
    /// The URL cannot be watched.
    pub fn parse(given: &str) -> Result<Self, Refused> {
        let given = given.trim();
        if given.len() > Self::LONGEST {
            return Err(Refused::TooLong);
        }
        let url = Url::parse(given).map_err(|_| Refused::Invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme);
        }
        let spelling = given.split('#').next().unwrap_or(given);
        let is_same = spelling == &url[..Position::AfterQuery];
        let spelling = (!is_same).then(|| spelling.into());
        Ok(Self { url, spelling })
    }

    /// The URL, whose fragment does not matter.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The text that tells it from other URLs: normalized (WHATWG URL), without fragment.
    pub fn identity(&self) -> &str {
        &self.url[..Position::AfterQuery]
    }

    /// How it is printed: as it was given, without fragment.
    pub fn spelling(&self) -> &str {
        self.spelling.as_deref().unwrap_or_else(|| self.identity())
    }
}

impl From<Url> for NewUrl {
    fn from(url: Url) -> Self {
        Self {
            url,
            spelling: None,
        }
    }
}

/// Why a URL cannot be watched.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Refused {
    /// The text is no URL.
    Invalid,
    /// The scheme is not `http` or `https`.
    Scheme,
    /// The URL is longer than [`NewUrl::LONGEST`].
    TooLong,
}

impl Refused {
    /// The reason of a dead letter: `invalid_url`, `scheme` or `too_long`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid_url",
            Self::Scheme => "scheme",
            Self::TooLong => "too_long",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => f.write_str("not a URL"),
            Self::Scheme => f.write_str("the scheme is not http or https"),
            Self::TooLong => write!(f, "longer than {} bytes", NewUrl::LONGEST),
        }
    }
}

impl std::error::Error for Refused {}

/// What became of URLs that were submitted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Submitted {
    /// How many were never seen before; they are due at once.
    pub new: u64,
    /// How many were known. Those that were in no set are due as they were before they left the last one.
    pub known: u64,
    /// The indices of those among the known that are gone or pruned: they are members, but they are asked only as often as
    /// such URLs are.
    pub gone: Vec<usize>,
}

impl Submitted {
    /// Counts the URLs of the next batch, whose indices begin at `from`.
    pub fn join(&mut self, next: Self, from: usize) {
        self.new += next.new;
        self.known += next.known;
        self.gone
            .extend(next.gone.into_iter().map(|index| from + index));
    }
}

/// A set.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SetInfo {
    /// The name.
    pub name: String,
    /// How many URLs are members, those that are to leave included.
    pub members: u64,
    /// The members by their states.
    pub states: BTreeMap<State, u64>,
    /// When the source was last read to its end.
    pub read_at: Option<Timestamp>,
    /// What the source was then: the caller's fingerprint of it.
    pub mark: Option<String>,
    /// Whether members that the source does not have any more are still to leave
    /// ([`sweep`](super::WatchStore::sweep)).
    pub has_lost: bool,
    /// Of how many members how many were missing in the last reading that was not believed: the first number of the
    /// second. `None`: a later one was.
    pub refused: Option<(u64, u64)>,
}

/// What became of a reading that was refused, from [`accept`](super::WatchStore::accept).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Accepted {
    /// It is believed: this many URLs leave the set by [`sweep`](super::WatchStore::sweep).
    Lost(u64),
    /// A later reading has begun, and has not ended.
    Later,
    /// None was refused.
    Nothing,
}

/// A reading of the source of a set, from [`begin_reading`](super::WatchStore::begin_reading).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reading {
    /// The name of the set.
    pub set: String,
    /// The number of the reading, from 1. Only the last reading that began counts.
    pub number: i64,
}

/// What the end of a reading means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Swept {
    /// The source does not have this many URLs any more; [`sweep`](super::WatchStore::sweep) removes them from the set.
    Lost(u64),
    /// The source does not have `lost` of the `members` that it had: more than is believed. All stay members, and the
    /// mark of the set stays, so that the source is read again.
    Refused {
        /// How many URLs the source does not have any more.
        lost: u64,
        /// How many it had before.
        members: u64,
    },
    /// Another reading of the set began later.
    Overtaken,
}

/// Which URLs are meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Which {
    /// These. Those that the store does not know are left out.
    Urls(Vec<String>),
    /// Those of a host: the URL of its root, `https://example.com/`.
    Host(String),
    /// The members of a set.
    Set(String),
    /// Those with this state.
    State(State),
    /// Those whose last answer was that their host has a private address, which is not asked.
    Private,
    /// All.
    Everything,
}

/// A piece of a long change.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Piece {
    /// How many URLs were changed.
    pub done: u64,
    /// Where the next piece begins; `None` if this was the last one.
    pub next: Option<UrlId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_watched_is_refused() {
        let long = format!("http://a/{}", "x".repeat(NewUrl::LONGEST));
        let table = [
            ("", Refused::Invalid),
            ("a/b", Refused::Invalid),
            ("http://", Refused::Invalid),
            ("ftp://a/", Refused::Scheme),
            ("javascript:void(0)", Refused::Scheme),
            (&*long, Refused::TooLong),
        ];
        for (given, refused) in table {
            assert_eq!(NewUrl::parse(given), Err(refused), "{given}");
        }
    }

    #[test]
    fn spellings_are_kept_as_they_were_given() {
        let table = [
            ("http://a/x", "http://a/x", "http://a/x"),
            (" http://a/x\r\n", "http://a/x", "http://a/x"),
            ("http://a", "http://a/", "http://a"),
            ("http://A:80/%7e?q#f", "http://a/%7e?q", "http://A:80/%7e?q"),
        ];
        for (given, identity, spelling) in table {
            let url = NewUrl::parse(given).expect("a URL");
            assert_eq!((url.identity(), url.spelling()), (identity, spelling));
        }
    }
}
