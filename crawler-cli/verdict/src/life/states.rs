//! The states of a URL's life, and the changes between them.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::Verdict;
use crate::guard::Guard;

/// What all checks of a URL together say about it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum State {
    /// Not judged yet. Behaves as [`Alive`](Self::Alive) when the URL turns negative.
    #[default]
    New,
    /// The last judgement was good.
    Alive,
    /// A check was negative or soft; too little evidence to report the URL.
    Suspect,
    /// Negative or soft for long enough to be reported.
    Broken,
    /// The server could not be reached, or failed.
    Unreachable,
    /// In doubt while a guard is on: the clock of the evidence is stopped.
    Quarantined,
    /// Negative for so long that the resource is gone.
    Gone,
    /// Gone and removed: a tombstone, which is asked again now and then for ever.
    Pruned,
}

impl State {
    /// All states, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::New,
        Self::Alive,
        Self::Suspect,
        Self::Broken,
        Self::Unreachable,
        Self::Quarantined,
        Self::Gone,
        Self::Pruned,
    ];

    /// The name in JSON output: `NEW`, `ALIVE` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::Alive => "ALIVE",
            Self::Suspect => "SUSPECT",
            Self::Broken => "BROKEN",
            Self::Unreachable => "UNREACHABLE",
            Self::Quarantined => "QUARANTINED",
            Self::Gone => "GONE",
            Self::Pruned => "PRUNED",
        }
    }

    /// The number in the store: 0 for [`New`](Self::New), then in the order of [`ALL`](Self::ALL).
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The state with this number in the store.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Whether the URL was good when it was last judged: such URLs are the siblings that a host is tested with.
    pub fn is_alive(self) -> bool {
        self == Self::Alive
    }
}

/// A change of state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transition {
    /// When it happened.
    pub at: Timestamp,
    /// The state before.
    pub from: State,
    /// The state after; never the same.
    pub to: State,
    /// What caused it.
    pub why: Why,
    /// Whether the URL is flapping: messages about it belong into one digest. The transition itself is not affected.
    pub is_damped: bool,
}

impl Transition {
    /// The name of the event, for those that people want to hear of: `broken`, `gone`, `pruned`, `resurrected`.
    pub fn event(&self) -> Option<&'static str> {
        event_of(self.from, self.to)
    }
}

/// The name of the event of a change between these states; see [`Transition::event`].
pub fn event_of(from: State, to: State) -> Option<&'static str> {
    match (from, to) {
        (State::Gone | State::Pruned, State::Alive) => Some("resurrected"),
        (_, State::Broken) => Some("broken"),
        (_, State::Gone) => Some("gone"),
        (_, State::Pruned) => Some("pruned"),
        _ => None,
    }
}

/// What caused a change of state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// A verdict.
    Verdict(Verdict),
    /// A guard is on.
    Held(Guard),
    /// The guard is off again.
    Released,
    /// The grace is over, and the budget allowed the removal.
    GraceOver,
}

impl Why {
    /// One word: the cause of the verdict, `ok`, `void`, `held_self`, `held_host`, `released`, `grace_over`.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Verdict(verdict) => match verdict.cause() {
                Some(cause) => cause.name(),
                None => Cow::Borrowed(verdict.class().name()),
            },
            Self::Held(Guard::OwnNetwork) => Cow::Borrowed("held_self"),
            Self::Held(Guard::HostFlip) => Cow::Borrowed("held_host"),
            Self::Released => Cow::Borrowed("released"),
            Self::GraceOver => Cow::Borrowed("grace_over"),
        }
    }
}

/// Why a URL could not be judged lately, while it keeps its state.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Flag {
    /// The host refuses to show the resource: authentication, bot protection, robots.txt and the like.
    Blocked,
    /// The host asked for fewer requests (429, or 503 with `Retry-After`).
    Throttled,
}

impl Flag {
    /// The name in JSON output: `blocked` or `throttled`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Throttled => "throttled",
        }
    }
}

/// What a URL that is gone waits for before it is pruned.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum PruneWait {
    /// The grace after it was found to be gone.
    Grace,
    /// The budget of the host or of all URLs.
    Budget,
}

impl PruneWait {
    /// The name in JSON output (`prune_waits`): `grace` or `budget`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grace => "grace",
            Self::Budget => "budget",
        }
    }
}
