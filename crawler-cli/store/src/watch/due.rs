//! Due rows: which URL is to be asked when, and what is stored when it was asked.

use jiff::Timestamp;

use crate::{Change, Host, HostId, NewDeadLetter, UrlId};
use verdict::Answer;
use verdict::life::{Record as Life, State};

/// Where a due row waits. Each lane of a host is read on its own, earliest first.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Lane {
    /// URLs that are new or alive.
    Routine,
    /// URLs that are broken or unreachable.
    Trouble,
    /// URLs that are gone or pruned.
    Gone,
    /// URLs that are suspect, or quarantined by a guard that is off: what reconciling takes.
    Doubt,
    /// URLs that are quarantined while a guard is on.
    Held,
}

impl Lane {
    /// All lanes, in the order of their codes.
    pub const ALL: [Self; 5] = [
        Self::Routine,
        Self::Trouble,
        Self::Gone,
        Self::Doubt,
        Self::Held,
    ];

    /// The lane of a URL with this state. `is_held`: a guard is on for the URL.
    pub fn of(state: State, is_held: bool) -> Self {
        match state {
            State::New | State::Alive => Self::Routine,
            State::Broken | State::Unreachable => Self::Trouble,
            State::Gone | State::Pruned => Self::Gone,
            State::Quarantined if is_held => Self::Held,
            State::Suspect | State::Quarantined => Self::Doubt,
        }
    }

    /// The number in the store: 0 for [`Routine`](Self::Routine), then in the order of [`ALL`](Self::ALL).
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The lane with this number in the store.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// The lanes that are read together. No one reads [`Lane::Held`] by time: samples are taken from it, and the end of the
/// hold moves its rows to another lane.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lanes {
    /// What is asked by its own schedule: [`Lane::Routine`], [`Lane::Trouble`] and [`Lane::Gone`].
    Schedule,
    /// What a reconcile cycle takes: [`Lane::Doubt`].
    Doubt,
}

impl Lanes {
    /// The lanes.
    pub fn lanes(self) -> &'static [Lane] {
        match self {
            Self::Schedule => &[Lane::Routine, Lane::Trouble, Lane::Gone],
            Self::Doubt => &[Lane::Doubt],
        }
    }
}

/// The identity of a due row. A completion removes exactly this row, so that a replay changes nothing.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DueId {
    /// The host.
    pub host: HostId,
    /// The lane.
    pub lane: Lane,
    /// When the URL is due, to the millisecond.
    pub due: Timestamp,
    /// The URL.
    pub url: UrlId,
}

/// A URL that waits in a lane of its host.
#[derive(Clone, Debug)]
pub struct DueUrl {
    /// The due row.
    pub id: DueId,
    /// The URL, without fragment.
    pub url: String,
    /// Its life until now.
    pub life: Life,
    /// When the URL was first submitted.
    pub added: Timestamp,
}

/// A host with a due row.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The host, and what is known about it.
    pub host: Host,
    /// When its first row of these lanes is due; may be in the past.
    pub next: Timestamp,
    /// How many of its URLs are in a set: for the prune budget.
    pub urls: u64,
}

/// A URL that was asked.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The due row that the URL was asked for.
    pub id: DueId,
    /// What was answered; `None` keeps the last answer (the verdict is void).
    pub answer: Option<Answer>,
    /// The URL's life after the answer.
    pub life: Life,
    /// The changes of state, in order.
    pub changes: Vec<Change>,
    /// When the URL is due next, and in which lane. `None`: not before an operator wants it, by
    /// [`make_due`](super::WatchStore::make_due).
    ///
    /// The engine moves the time back by less than 1 % of the wait from the last check ([`aligned`]).
    pub next: Option<(Lane, Timestamp)>,
    /// What a human has to look at.
    pub dead_letter: Option<NewDeadLetter>,
}

/// A change of a URL's life without an answer: a hold began or ended, the budget allows a removal.
#[derive(Clone, Debug)]
pub struct Amendment {
    /// The due row.
    pub id: DueId,
    /// The URL's life after the change.
    pub life: Life,
    /// The changes of state, in order.
    pub changes: Vec<Change>,
    /// When the URL is due, and in which lane: exactly then.
    pub next: (Lane, Timestamp),
}

/// What became of judgements or amendments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Completion {
    /// How many are stored.
    pub stored: u64,
    /// How many were ignored, because their due rows are not there (any more): they were completed before, the URL was
    /// withdrawn, or the row was moved.
    pub stale: u64,
}

/// When a URL of a host is due that was asked at `asked` and is to be asked at `due`: a little later, by less than 1 % of
/// the wait. Many URLs of a host then share few times, so that an engine writes their due rows side by side. Hosts have
/// different times. Waits below 10 seconds are not changed.
pub fn aligned(host: HostId, asked: Timestamp, due: Timestamp) -> Timestamp {
    let (asked, millis) = (asked.as_millisecond(), due.as_millisecond());
    let wait = millis.saturating_sub(asked);
    if wait < LEAST_ALIGNED {
        return due;
    }
    // A power of two, so that waits of about the same length have the same times.
    let step = 1i64 << (wait.ilog2() - STEPS);
    let phase = (host.0.wrapping_mul(SCATTER) as u64 >> 1) as i64 % step;
    let late = (phase - millis).rem_euclid(step);
    Timestamp::from_millisecond(millis + late).unwrap_or(due)
}

/// Shorter waits, in milliseconds, are not aligned.
const LEAST_ALIGNED: i64 = 10_000;

/// A wait of 2^n has 2^7 times.
const STEPS: u32 = 7;

/// Makes numbers that follow one another differ in all bits (Knuth, The Art of Computer Programming, volume 3, 6.4).
const SCATTER: i64 = 0x9E37_79B9_7F4A_7C15_u64 as i64;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_760_000_000_000 + millis).expect("in range")
    }

    #[test]
    fn codes_of_lanes_are_read_as_they_were_written() {
        for (code, lane) in Lane::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(lane.code()), code);
            assert_eq!(Lane::from_code(lane.code()), Some(lane));
        }
        assert_eq!(Lane::from_code(5), None);
    }

    #[test]
    fn a_url_waits_in_the_lane_of_its_state() {
        for state in State::ALL {
            let is_in_doubt = matches!(state, State::Suspect | State::Quarantined);
            assert_eq!(Lane::of(state, false) == Lane::Doubt, is_in_doubt);
            let is_held = Lane::of(state, true) == Lane::Held;
            assert_eq!(is_held, state == State::Quarantined);
        }
    }

    #[test]
    fn aligned_times_are_a_little_later_and_few() {
        let day = 86_400_000;
        let times = |host| {
            let mut times: Vec<Timestamp> = (day * 6..day * 7)
                .step_by(1_000)
                .map(|wait| aligned(HostId(host), at(0), at(wait)))
                .collect();
            times.dedup();
            times
        };
        // A step is 2^28 / 2^7 or 2^29 / 2^7 milliseconds: 35 or 70 minutes.
        assert!((20..43).contains(&times(1).len()), "{}", times(1).len());
        assert_ne!(times(1), times(2));
        for wait in [0, 1, 9_999, 10_000, 60_000, 900_000, day, 90 * day] {
            let due = aligned(HostId(7), at(0), at(wait));
            let late = due.as_millisecond() - at(wait).as_millisecond();
            assert!(late >= 0 && late * 100 <= wait, "{wait} {late}");
        }
        assert_eq!(aligned(HostId(7), at(5), at(0)), at(0));
        assert_eq!(aligned(HostId(7), at(5), Timestamp::MAX), Timestamp::MAX);
    }
}
