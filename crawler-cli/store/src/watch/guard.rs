//! What guards leave in the store: holds, the times in which a guard was on, cycles of reconciling, and notices.

use jiff::Timestamp;

use crate::HostId;
use verdict::guard::Hold;

/// A host that is held.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostHold {
    /// The host.
    pub host: HostId,
    /// The URL of its root. Not stored with the hold.
    pub root: String,
    /// The hold.
    pub hold: Hold,
    /// How many URLs of the host are in [`Lane::Held`](super::Lane::Held). Not stored with the hold.
    pub held: u64,
    /// The hold is over, and its URLs are still to be moved to another lane: how it ends.
    pub ending: Option<HoldEnd>,
}

/// How a hold ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldEnd {
    /// The URLs begin as suspects.
    Release,
    /// An operator says that the URLs are gone: they go on as they were.
    Confirm,
}

impl HoldEnd {
    /// The number in stores. It never changes. 0 is no end.
    pub fn code(self) -> u8 {
        match self {
            Self::Release => 1,
            Self::Confirm => 2,
        }
    }

    /// From the number in stores.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Release, Self::Confirm]
            .into_iter()
            .find(|end| end.code() == code)
    }
}

/// Whose times of a guard are meant.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Guarded {
    /// The own network.
    OwnNetwork,
    /// A host.
    Host(HostId),
}

/// The number of a cycle of reconciling.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CycleId(pub i64);

/// What a cycle of reconciling has found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CycleCounts {
    /// How many URLs were asked.
    pub asked: u64,
    /// How many of them are alive.
    pub alive: u64,
    /// How many are still in doubt.
    pub in_doubt: u64,
    /// How many are broken or gone.
    pub worse: u64,
    /// How many verdicts were taken while a guard was on, or were not given at all.
    pub void: u64,
}

/// A cycle of reconciling.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cycle {
    /// Its number.
    pub id: CycleId,
    /// When it began.
    pub began: Timestamp,
    /// When it ended; `None` for one that is under way, or was interrupted.
    pub ended: Option<Timestamp>,
    /// What it found.
    pub counts: CycleCounts,
}

/// The number of a notice. Later notices have larger numbers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NoticeId(pub i64);

impl NoticeId {
    /// Before the first notice.
    pub const START: Self = Self(0);

    /// After the last notice, and after all that are to come.
    pub const END: Self = Self(i64::MAX);
}

/// What an operator should know: a guard went on or off, an alarm, a deed of an operator.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Notice {
    /// When.
    pub at: Timestamp,
    /// One of few words: `guard`, `hold`, `release`, `disk_full`.
    pub kind: String,
    /// The host, if there is one.
    pub host: Option<HostId>,
    /// Who did it; `None` for the program itself.
    pub who: Option<String>,
    /// What happened, in words.
    pub text: String,
}
