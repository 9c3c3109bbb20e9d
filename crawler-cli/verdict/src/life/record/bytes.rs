//! Records as bytes for the store: a version, then numbers in LEB128. A URL that has been alive for long takes some 20
//! bytes.
//!
//! Times are milliseconds before the last check, so that most of them are short. Of the times and numbers that most
//! records do not have, a mask says which ones follow; version 1 wrote a zero for each. Equal answers that follow one
//! another are written once with their number; version 1 wrote each.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::super::evidence::{Evidence, Negatives, Streak};
use super::super::states::{Flag, PruneWait, State};
use super::{Answer, Answers, KEPT_RETURNS, Record};
use crate::Class;
use crate::guard::Guard;
use plain::leb128;

impl Record {
    /// The record for the store.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer {
            bytes: leb128::Writer::default(),
            last_at: self.last_at.map_or(0, Timestamp::as_millisecond),
        };
        writer.bytes.byte(VERSION);
        writer.bytes.byte(self.state.code());
        writer.marks(self);
        writer.bytes.byte(self.evidence.kinds.bits());
        writer.times_and_numbers(&self.times(), &self.numbers());
        writer.bytes.number(self.returns.len() as u64);
        for &at in &self.returns {
            writer.time(at);
        }
        writer.answers(&self.answers);
        writer.bytes.bytes
    }

    /// The record from the store. Times are exact to the millisecond.
    ///
    /// # Errors
    /// If the bytes are no record of a version that is known.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let [version @ 1..=VERSION, state, rest @ ..] = bytes else {
            return Err(RecordError(()));
        };
        let mut reader = Reader {
            version: *version,
            bytes: leb128::Reader::new(rest),
            last_at: 0,
        };
        let record = reader.record(*state).ok_or(RecordError(()))?;
        match reader.bytes.rest {
            [] => Ok(record),
            _ => Err(RecordError(())),
        }
    }

    /// All single times but the first, `last_at`, in the order of the format.
    fn times(&self) -> [Option<Timestamp>; TIMES] {
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

    fn numbers(&self) -> [u64; NUMBERS] {
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
    bytes: leb128::Writer,
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
            .byte(was_asked << 6 | prune_waits << 4 | held_by << 2 | flag);
        if record.last_at.is_some() {
            self.bytes.signed(self.last_at);
        }
    }

    /// A mask of those that are there, then these.
    fn times_and_numbers(&mut self, times: &[Option<Timestamp>], numbers: &[u64]) {
        let are_there = times.iter().map(Option::is_some);
        let are_there = are_there.chain(numbers.iter().map(|&number| number != 0));
        let mask = are_there.enumerate().fold(0, |mask, (place, is_there)| {
            mask | u16::from(is_there) << place
        });
        let [low, high] = mask.to_le_bytes();
        self.bytes.byte(low);
        self.bytes.byte(high);
        for &time in times.iter().flatten() {
            self.time(time);
        }
        for &number in numbers.iter().filter(|&&number| number != 0) {
            self.bytes.number(number);
        }
    }

    fn time(&mut self, at: Timestamp) {
        self.bytes.signed(self.last_at - at.as_millisecond());
    }

    /// How many there are, then each with the number of those that follow it and are the same.
    fn answers(&mut self, answers: &Answers) {
        self.bytes.number(answers.iter().len() as u64);
        let mut answers = answers.iter().peekable();
        while let Some(answer) = answers.next() {
            let mut same = 0;
            while answers.next_if_eq(&answer).is_some() {
                same += 1;
            }
            let status = u64::from(answer.status.unwrap_or(0));
            self.bytes.number(status << 3 | code_of_class(answer.class));
            self.bytes.number(same);
        }
    }
}

/// Each method returns `None` if the bytes are damaged.
struct Reader<'a> {
    version: u8,
    bytes: leb128::Reader<'a>,
    last_at: i64,
}

impl Reader<'_> {
    fn record(&mut self, state: u8) -> Option<Record> {
        let state = State::from_code(state)?;
        let marks = self.bytes.byte()?;
        let mut last_at = None;
        if marks >> 6 != 0 {
            self.last_at = self.bytes.signed()?;
            last_at = Some(Timestamp::from_millisecond(self.last_at).ok()?);
        }
        let kinds = Negatives::from_bits(self.bytes.byte()?);
        let (times, numbers) = self.times_and_numbers()?;
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

    fn times_and_numbers(&mut self) -> Option<([Option<Timestamp>; TIMES], [u64; NUMBERS])> {
        let mask = match self.version {
            1 => u16::MAX,
            _ => u16::from_le_bytes([self.bytes.byte()?, self.bytes.byte()?]),
        };
        let is_there = |place: usize| mask & 1 << place != 0;
        let mut times = [None; TIMES];
        for (place, time) in times.iter_mut().enumerate() {
            if is_there(place) {
                *time = self.time()?;
            }
        }
        let mut numbers = [0; NUMBERS];
        for (place, number) in numbers.iter_mut().enumerate() {
            if is_there(TIMES + place) {
                *number = self.bytes.number()?;
            }
        }
        Some((times, numbers))
    }

    fn returns(&mut self) -> Option<Vec<Timestamp>> {
        let count = usize::try_from(self.bytes.number()?).ok()?;
        if count > KEPT_RETURNS {
            return None;
        }
        (0..count).map(|_| self.time()?).collect()
    }

    fn answers(&mut self) -> Option<Answers> {
        let count = self.bytes.number()?;
        if count > Answers::MOST as u64 {
            return None;
        }
        let mut left = count;
        let mut answers = Answers::default();
        while left > 0 {
            let code = self.bytes.number()?;
            let status = u16::try_from(code >> 3).ok()?;
            let answer = Answer {
                class: class_of_code(code & 7)?,
                status: (1..=Answer::MOST).contains(&status).then_some(status),
            };
            let same = match self.version {
                1 => 0,
                _ => self.bytes.number()?,
            };
            left = left.checked_sub(same.checked_add(1)?)?;
            (0..=same).for_each(|_| answers.push(answer));
        }
        Some(answers)
    }

    fn time(&mut self) -> Option<Option<Timestamp>> {
        let before = match self.version {
            // Zero is no time, so that a time is one more than its distance to the last check.
            1 => match self.bytes.number()?.checked_sub(1) {
                None => return Some(None),
                Some(distance) => leb128::unzigzag(distance),
            },
            _ => self.bytes.signed()?,
        };
        let millis = self.last_at.checked_sub(before)?;
        Some(Some(Timestamp::from_millisecond(millis).ok()?))
    }
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
const VERSION: u8 = 2;

/// How many single times a record has beside the last check, and how many numbers. Together they fit in a mask.
const TIMES: usize = 9;
const NUMBERS: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_760_000_000 + second).expect("in range")
    }

    #[test]
    fn a_url_that_is_alive_for_long_takes_few_bytes() {
        let mut record = Record {
            state: State::Alive,
            last_at: Some(at(0)),
            last_ok: Some(at(0)),
            interval: Duration::from_secs(90 * 86_400),
            ..Record::default()
        };
        for _ in 0..8 {
            record.answers.push(Answer {
                class: Class::Ok,
                status: Some(200),
            });
        }
        assert_eq!(record.to_bytes().len(), 23);
    }
}
