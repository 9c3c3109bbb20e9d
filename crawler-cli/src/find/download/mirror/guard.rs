//! Whether a mirror may delete what is gone on the server: a pure decision about numbers. A server that lists nothing for
//! an afternoon must not empty a mirror.

use std::fmt;
use std::str::FromStr;

use crate::find::summary::Ending;

/// The most files that a run may delete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MostDeleted {
    /// This many files.
    Files(u64),
    /// So many percent of the files known before, rounded up; but with less than 100, never all of them.
    Percent(u8),
}

impl Default for MostDeleted {
    fn default() -> Self {
        Self::Percent(10)
    }
}

impl MostDeleted {
    /// The number of files that may be deleted if so many are known.
    fn of(self, known: u64) -> u64 {
        match self {
            Self::Files(most) => most,
            Self::Percent(100..) => known,
            Self::Percent(share) => {
                // The share is less than `known`, so that it fits again.
                let share = (u128::from(known) * u128::from(share)).div_ceil(100);
                let most = u64::try_from(share).unwrap_or(u64::MAX);
                most.min(known.saturating_sub(1))
            }
        }
    }
}

impl FromStr for MostDeleted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_number)
        };
        let read = match text.strip_suffix('%') {
            Some(share) => number(share)
                .filter(|share| *share <= 100)
                .and_then(|share| u8::try_from(share).ok())
                .map(Self::Percent),
            None => number(text).map(Self::Files),
        };
        read.ok_or_else(|| "neither a number of files nor a share such as 10%".to_owned())
    }
}

impl fmt::Display for MostDeleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(most) => write!(f, "{most}"),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

/// How a run went, as far as deletions depend on that.
#[derive(Clone, Debug)]
pub(in crate::find) struct Outcome {
    pub(in crate::find) ending: Ending,
    /// URLs that were not read or not downloaded.
    pub(in crate::find) unread: u64,
    /// Why the record of the mirror is not to be trusted.
    pub(in crate::find) record: Option<String>,
}

/// The files of the record that the run was about.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Census {
    /// Files that earlier runs have put there.
    pub(super) known: u64,
    /// Those of them that are gone on the server.
    pub(super) gone: u64,
}

/// Why nothing is deleted, although files are gone on the server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// This many URLs were not read or not downloaded.
    Unread(u64),
    /// The search ended early.
    Interrupted,
    /// More files would be deleted than the limit allows.
    TooMany {
        /// Files that would be deleted.
        gone: u64,
        /// Files known before.
        known: u64,
        /// The limit.
        most: MostDeleted,
    },
    /// The record of the mirror could not be read or written.
    Record(String),
    /// Before that became clear, so many files were deleted that were in the way of other ones, and nothing else.
    Late(u64, Box<Refusal>),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(1, why) => write!(
                f,
                "1 file in the way of another was deleted, and nothing else: {}",
                Why(why)
            ),
            Self::Late(files, why) => write!(
                f,
                "{files} files in the way of others were deleted, and nothing else: {}",
                Why(why)
            ),
            why => write!(f, "nothing was deleted: {}", Why(why)),
        }
    }
}

/// The reason alone.
struct Why<'a>(&'a Refusal);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Refusal::Unread(1) => f.write_str("1 URL could not be read or downloaded"),
            Refusal::Unread(unread) => write!(f, "{unread} URLs could not be read or downloaded"),
            Refusal::Interrupted => f.write_str("the search ended early"),
            Refusal::TooMany { gone, known, most } => write!(
                f,
                "{gone} of {known} known files are gone on the server, more than --max-delete {most} allows"
            ),
            Refusal::Record(error) => write!(f, "the record of the mirror cannot be used: {error}"),
            Refusal::Late(_, why) => Why(why).fmt(f),
        }
    }
}

/// Decides whether the files that are gone may be deleted.
///
/// # Errors
/// Why not.
pub(super) fn judge(outcome: &Outcome, census: Census, most: MostDeleted) -> Result<(), Refusal> {
    let Census { known, gone } = census;
    if let Some(error) = &outcome.record {
        return Err(Refusal::Record(error.clone()));
    }
    if outcome.ending != Ending::Finished {
        return Err(Refusal::Interrupted);
    }
    if outcome.unread > 0 {
        return Err(Refusal::Unread(outcome.unread));
    }
    match gone > most.of(known) {
        true => Err(Refusal::TooMany { gone, known, most }),
        false => Ok(()),
    }
}
