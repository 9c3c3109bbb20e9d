//! Records as bytes for the store: a version, then numbers in LEB128. A URL that is alive takes some 30 bytes.
//!
//! Times are milliseconds before the last check, so that most of them are short.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::super::evidence::{Evidence, Negatives, Streak};
use super::super::states::{Flag, PruneWait, State};
use super::{Answer, Answers, KEPT_RETURNS, Record};
use crate::check::guard::Guard;
use crate::check::verdict::Class;

impl Record {
    /// The record for the store.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer {
            bytes: vec![VERSION, self.state.code()],
            last_at: self.last_at.map_or(0, Timestamp::as_millisecond),
        };
        writer.marks(self);
        writer.bytes.push(self.evidence.kinds.bits());
        for time in self.times() {
            writer.time(time);
        }
        for number in self.numbers() {
            writer.number(number);
        }
        writer.number(self.returns.len() as u64);
        for &at in &self.returns {
            writer.time(Some(at));
        }
        writer.number(self.answers.iter().len() as u64);
        for answer in self.answers.iter() {
            let status = u64::from(answer.status.unwrap_or(0));
            writer.number(status << 3 | code_of_class(answer.class));
        }
        writer.bytes
    }

    /// The record from the store. Times are exact to the millisecond.
    ///
    /// # Errors
    /// If the bytes are no record of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let [VERSION, state, rest @ ..] = bytes else {
            return Err(RecordError(()));
        };
        let mut reader = Reader { rest, last_at: 0 };
        let record = reader.record(*state).ok_or(RecordError(()))?;
        match reader.rest {
            [] => Ok(record),
            _ => Err(RecordError(())),
        }
    }

    /// All single times but the first, `last_at`, in the order of the format.
    fn times(&self) -> [Option<Timestamp>; 9] {
        let evidence = &self.evidence;
        [
            self.last_ok,
            evidence.first_bad,
            evidence.last_bad,
            evidence.claims.first,
            evidence.negatives.first,
            evidence.gap_from,
            self.gone_at,
            self.ok_at,
            self.flag.map(|(_, since)| since),
        ]
    }

    fn numbers(&self) -> [u64; 7] {
        let millis = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        [
            millis,
            u64::from(self.step),
            u64::from(self.failures),
            u64::from(self.evidence.claims.count),
            u64::from(self.evidence.negatives.count),
            u64::from(self.evidence.gaps),
            u64::from(self.oks),
        ]
    }
}

/// Bytes that are no record: written by another version, or damaged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecordError(());

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the record of a URL is damaged, or of another version")
    }
}

impl Error for RecordError {}

struct Writer {
    bytes: Vec<u8>,
    /// Milliseconds since 1970.
    last_at: i64,
}

impl Writer {
    /// What fits in one byte together, and the time of the last check.
    fn marks(&mut self, record: &Record) {
        let flag = match record.flag {
            None => 0,
            Some((Flag::Blocked, _)) => 1,
            Some((Flag::Throttled, _)) => 2,
        };
        let held_by = match record.held_by {
            None => 0,
            Some(Guard::OwnNetwork) => 1,
            Some(Guard::HostFlip) => 2,
        };
        let prune_waits = match record.prune_waits {
            None => 0,
            Some(PruneWait::Grace) => 1,
            Some(PruneWait::Budget) => 2,
        };
        let was_asked = u8::from(record.last_at.is_some());
        self.bytes
            .push(was_asked << 6 | prune_waits << 4 | held_by << 2 | flag);
        if record.last_at.is_some() {
            self.number(zigzag(self.last_at));
        }
    }

    /// 0 for no time, so that a time is one more than its distance to the last check.
    fn time(&mut self, at: Option<Timestamp>) {
        self.number(at.map_or(0, |at| {
            zigzag(self.last_at - at.as_millisecond()).saturating_add(1)
        }));
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// Each method returns `None` if the bytes are damaged.
struct Reader<'a> {
    rest: &'a [u8],
    last_at: i64,
}

impl Reader<'_> {
    fn record(&mut self, state: u8) -> Option<Record> {
        let state = State::from_code(state)?;
        let marks = self.byte()?;
        let mut last_at = None;
        if marks >> 6 != 0 {
            self.last_at = unzigzag(self.number()?);
            last_at = Some(Timestamp::from_millisecond(self.last_at).ok()?);
        }
        let kinds = Negatives::from_bits(self.byte()?);
        let times = self.times()?;
        let numbers = self.numbers()?;
        let [
            last_ok,
            first_bad,
            last_bad,
            claimed,
            negative,
            gap_from,
            gone_at,
            ok_at,
            flagged,
        ] = times;
        let [interval, step, failures, claims, negatives, gaps, oks] = numbers;
        let streak = |count, first| {
            Some(Streak {
                count: u32::try_from(count).ok()?,
                first,
            })
        };
        Some(Record {
            state,
            evidence: Evidence {
                first_bad,
                last_bad,
                claims: streak(claims, claimed)?,
                negatives: streak(negatives, negative)?,
                kinds,
                gaps: u32::try_from(gaps).ok()?,
                gap_from,
            },
            last_at,
            last_ok,
            interval: Duration::from_millis(interval),
            step: u32::try_from(step).ok()?,
            failures: u32::try_from(failures).ok()?,
            flag: match (marks & 3, flagged) {
                (0, None) => None,
                (1, Some(since)) => Some((Flag::Blocked, since)),
                (2, Some(since)) => Some((Flag::Throttled, since)),
                _ => return None,
            },
            held_by: match marks >> 2 & 3 {
                0 => None,
                1 => Some(Guard::OwnNetwork),
                2 => Some(Guard::HostFlip),
                _ => return None,
            },
            gone_at,
            prune_waits: match marks >> 4 & 3 {
                0 => None,
                1 => Some(PruneWait::Grace),
                2 => Some(PruneWait::Budget),
                _ => return None,
            },
            oks: u32::try_from(oks).ok()?,
            ok_at,
            returns: self.returns()?,
            answers: self.answers()?,
        })
    }

    fn times<const N: usize>(&mut self) -> Option<[Option<Timestamp>; N]> {
        let mut times = [None; N];
        for time in &mut times {
            *time = self.time()?;
        }
        Some(times)
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Some(numbers)
    }

    fn returns(&mut self) -> Option<Vec<Timestamp>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > KEPT_RETURNS {
            return None;
        }
        (0..count).map(|_| self.time()?).collect()
    }

    fn answers(&mut self) -> Option<Answers> {
        let count = self.number()?;
        if count > Answers::MOST as u64 {
            return None;
        }
        let mut answers = Answers::default();
        for _ in 0..count {
            let code = self.number()?;
            let status = u16::try_from(code >> 3).ok()?;
            answers.push(Answer {
                class: class_of_code(code & 7)?,
                status: (1..=Answer::MOST).contains(&status).then_some(status),
            });
        }
        Some(answers)
    }

    fn time(&mut self) -> Option<Option<Timestamp>> {
        let Some(distance) = self.number()?.checked_sub(1) else {
            return Some(None);
        };
        let millis = self.last_at.checked_sub(unzigzag(distance))?;
        Some(Some(Timestamp::from_millisecond(millis).ok()?))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }
}

/// Small numbers of either sign become small numbers.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn code_of_class(class: Class) -> u64 {
    match class {
        Class::Ok => 0,
        Class::Negative => 1,
        Class::Network => 2,
        Class::Unknown => 3,
        Class::Soft => 4,
        Class::Void => 5,
    }
}

fn class_of_code(code: u64) -> Option<Class> {
    Class::ALL
        .into_iter()
        .find(|class| code_of_class(*class) == code)
}

/// The first byte of a record.
const VERSION: u8 = 1;
