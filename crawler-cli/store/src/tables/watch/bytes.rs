//! What is known about a watched URL, as bytes: a row of 10^7 has to be small. The bytes have room to grow, so that most
//! completions write a row of the same size, in its place.

use std::time::Duration;

use jiff::Timestamp;

use crate::Lane;
use crate::tables::codec;
use crate::tables::failure::Failure;
use plain::leb128::{Reader, Writer, unzigzag, zigzag};
use verdict::Answer;
use verdict::life::Record as Life;
use verdict::{Cause, Verdict};

/// What is known about a watched URL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Watched {
    /// When the URL was first submitted.
    pub added: Timestamp,
    /// Its due row. A URL that left its last set has none; this says which one it had.
    pub due: Option<(Lane, Timestamp)>,
    pub life: Life,
    pub answer: Option<Answer>,
}

impl Watched {
    /// A URL that was submitted for the first time, and is due at once.
    pub(crate) fn new(now: Timestamp) -> Self {
        let life = Life::default();
        Self {
            added: now,
            due: Some((Lane::of(life.state(), false), now)),
            life,
            answer: None,
        }
    }

    /// Whether the last answer was that the host has a private address, which is not asked.
    pub(crate) fn is_private(&self) -> bool {
        let cause = self
            .answer
            .as_ref()
            .and_then(|answer| answer.verdict.cause());
        cause == Some(Cause::PrivateAddress)
    }

    /// The bytes. `beside` is how many bytes the other columns take that change with these.
    pub(crate) fn to_bytes(&self, beside: usize) -> Vec<u8> {
        let mut writer = Writer {
            bytes: Vec::with_capacity(2 * ROOM),
        };
        let lane = self.due.map_or(0, |(lane, _)| lane.code() + 1);
        let has_answer = u8::from(self.answer.is_some());
        writer.byte(VERSION);
        writer.byte(has_answer << 4 | lane);
        let added = self.added.as_millisecond();
        writer.signed(added);
        writer.slice(&self.life.to_bytes());
        let base = base(&self.life, added);
        if let Some((_, due)) = self.due {
            writer.signed(due.as_millisecond().saturating_sub(base));
        }
        if let Some(answer) = &self.answer {
            write_answer(&mut writer, answer, base);
        }
        let length = (writer.bytes.len() + beside).max(ROOM);
        let length = length.next_multiple_of(STEP) - beside;
        writer.bytes.resize(length, 0);
        writer.bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Failure> {
        let damaged = || Failure::Damaged("what is known about a watched URL".to_owned());
        let mut reader = Reader::new(bytes);
        let read = read(&mut reader)?.ok_or_else(damaged)?;
        // The rest is the room to grow.
        match reader.rest.iter().all(|&byte| byte == 0) {
            true => Ok(read),
            false => Err(damaged()),
        }
    }
}

fn read(reader: &mut Reader<'_>) -> Result<Option<Watched>, Failure> {
    let (Some(VERSION), Some(marks), Some(added)) = (reader.byte(), reader.byte(), reader.signed())
    else {
        return Ok(None);
    };
    let lane = match marks & 0xF {
        0 => None,
        code => match Lane::from_code(code - 1) {
            None => return Ok(None),
            lane => lane,
        },
    };
    let Some(life) = reader.slice() else {
        return Ok(None);
    };
    let life = codec::life(life)?;
    let base = base(&life, added);
    let due = match lane {
        None => None,
        Some(lane) => match reader.signed() {
            None => return Ok(None),
            Some(wait) => Some((lane, codec::time(base.saturating_add(wait))?)),
        },
    };
    let answer = match marks >> 4 {
        0 => None,
        _ => match read_answer(reader, base)? {
            None => return Ok(None),
            answer => answer,
        },
    };
    Ok(Some(Watched {
        added: codec::time(added)?,
        due,
        life,
        answer,
    }))
}

/// What times are relative to, so that most of them are short: the last check.
fn base(life: &Life, added: i64) -> i64 {
    life.last_at().map_or(added, Timestamp::as_millisecond)
}

/// The method and the kind of the verdict, a mask of the parts that follow, and these.
fn write_answer(writer: &mut Writer, answer: &Answer, base: i64) {
    let kind = match answer.verdict {
        Verdict::Ok => 0,
        Verdict::Failed(_) => 1,
        Verdict::Void(None) => 2,
        Verdict::Void(Some(_)) => 3,
    };
    let method = METHODS.iter().position(|method| *method == answer.method);
    writer.byte((method.unwrap_or(0) as u8) << 2 | kind);
    let redirects = codec::redirects_text(&answer.redirects);
    let numbers = [
        answer.status.map(u64::from),
        answer
            .latency
            .map(|latency| u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)),
        answer
            .checked_at
            .map(|at| zigzag(at.as_millisecond().saturating_sub(base))),
    ];
    let address = answer.address.map(codec::address_bytes);
    let slices = [
        address.as_deref(),
        answer.detail.as_deref().map(str::as_bytes),
        answer.moved_to.as_deref().map(str::as_bytes),
        answer.final_url.as_deref().map(str::as_bytes),
        redirects.as_deref().map(str::as_bytes),
    ];
    let are_there = numbers.iter().map(Option::is_some);
    let are_there = are_there.chain(slices.iter().map(Option::is_some));
    let mask = are_there.enumerate().fold(0, |mask, (place, is_there)| {
        mask | u8::from(is_there) << place
    });
    writer.byte(mask);
    if let Some(cause) = answer.verdict.cause() {
        writer.number(codec::cause_number(cause));
    }
    writer.number(u64::from(answer.attempts));
    numbers
        .into_iter()
        .flatten()
        .for_each(|number| writer.number(number));
    slices
        .into_iter()
        .flatten()
        .for_each(|slice| writer.slice(slice));
}

/// `None` if the bytes are damaged.
fn read_answer(reader: &mut Reader<'_>, base: i64) -> Result<Option<Answer>, Failure> {
    let (Some(kind), Some(mask)) = (reader.byte(), reader.byte()) else {
        return Ok(None);
    };
    let cause = match kind & 3 {
        0 | 2 => None,
        _ => match reader.number().and_then(codec::cause_of_number) {
            None => return Ok(None),
            cause => cause,
        },
    };
    let verdict = match (kind & 3, cause) {
        (1, Some(cause)) => Verdict::Failed(cause),
        (2 | 3, cause) => Verdict::Void(cause),
        _ => Verdict::Ok,
    };
    let Some(attempts) = reader
        .number()
        .and_then(|number| u32::try_from(number).ok())
    else {
        return Ok(None);
    };
    let Some(([status, latency, checked_at], slices)) = parts(reader, mask) else {
        return Ok(None);
    };
    let [address, texts @ ..] = slices;
    let texts = texts.map(|text| text.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
    let [detail, moved_to, final_url, redirects] = texts;
    let checked_at = checked_at.map(|after| codec::time(base.saturating_add(unzigzag(after))));
    Ok(Some(Answer {
        verdict,
        detail,
        status: status.and_then(|status| u16::try_from(status).ok()),
        method: METHODS.get(usize::from(kind >> 2)).copied().flatten(),
        moved_to,
        final_url,
        redirects: codec::redirects(redirects.as_deref())?,
        attempts,
        latency: latency.map(Duration::from_micros),
        address: address.map(codec::address).transpose()?,
        checked_at: checked_at.transpose()?,
    }))
}

/// The optional numbers and slices of an answer; `None` if the bytes are damaged.
#[expect(
    clippy::type_complexity,
    reason = "two lists, each with one kind of parts"
)]
fn parts<'a>(
    reader: &mut Reader<'a>,
    mask: u8,
) -> Option<([Option<u64>; 3], [Option<&'a [u8]>; 5])> {
    let is_there = |place: usize| mask & 1 << place != 0;
    let (mut numbers, mut slices) = ([None; 3], [None; 5]);
    for (place, number) in numbers.iter_mut().enumerate() {
        if is_there(place) {
            *number = Some(reader.number()?);
        }
    }
    for (place, slice) in slices.iter_mut().enumerate() {
        if is_there(3 + place) {
            *slice = Some(reader.slice()?);
        }
    }
    Some((numbers, slices))
}

/// How many bytes the columns take that change with the bytes: the number of the last change of state, and `trouble` with
/// its place in the header of the row. The rows of stores that had no such column are still written in their places.
pub(crate) fn beside(event: i64, trouble: Option<u8>) -> usize {
    width(event) + 1 + trouble.map_or(0, |code| width(code.into()))
}

/// How many bytes an integer takes in a row (SQLite file format, section 2.1).
fn width(number: i64) -> usize {
    match number {
        0 | 1 => 0,
        -0x80..=0x7F => 1,
        -0x8000..=0x7FFF => 2,
        -0x80_0000..=0x7F_FFFF => 3,
        -0x8000_0000..=0x7FFF_FFFF => 4,
        -0x8000_0000_0000..=0x7FFF_FFFF_FFFF => 6,
        _ => 8,
    }
}

const VERSION: u8 = 1;

const METHODS: [Option<&str>; 3] = [None, Some("HEAD"), Some("GET")];

/// The bytes of a URL that has been alive for long, with an answer from an IPv4 address without redirects, and of its last
/// event's number. A new URL has the room at once.
const ROOM: usize = 56;

/// If the bytes need more room, they get some more.
const STEP: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use plain::random::Random;
    use plain::redirect::Redirect;
    use verdict::Cause;
    use verdict::life::{Context, Profile, State};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_760_000_000 + second).expect("in range")
    }

    fn answer(status: u16) -> Answer {
        Answer {
            status: Some(status),
            method: Some("HEAD"),
            attempts: 1,
            latency: Some(Duration::from_micros(30_000)),
            address: Some("192.0.2.1".parse().expect("an address")),
            checked_at: Some(at(60)),
            ..Answer::of(Verdict::Ok)
        }
    }

    fn round(watched: &Watched) {
        for beside in [0, 4] {
            let bytes = watched.to_bytes(beside);
            assert_eq!((bytes.len() + beside) % STEP, 0);
            let read = Watched::from_bytes(&bytes).expect("readable");
            assert_eq!(read, *watched);
        }
    }

    #[test]
    fn what_is_known_is_read_as_it_was_written() {
        let mut watched = Watched::new(at(0));
        round(&watched);
        let mut verdicts = vec![Verdict::Ok, Verdict::Void(None)];
        for cause in codec::CAUSES
            .into_iter()
            .chain([Cause::Status4xx(418), Cause::Status5xx(503)])
        {
            verdicts.extend([Verdict::Failed(cause), Verdict::Void(Some(cause))]);
        }
        for verdict in verdicts {
            watched.answer = Some(Answer::of(verdict));
            round(&watched);
        }
        watched.due = None;
        watched.answer = Some(Answer {
            detail: Some("überlastet".to_owned()),
            moved_to: Some("http://a/new".to_owned()),
            final_url: Some("http://a/newer".to_owned()),
            redirects: vec![Redirect {
                status: 301,
                url: "http://a/new".to_owned(),
            }],
            method: Some("GET"),
            address: Some("::1".parse().expect("an address")),
            checked_at: Some(at(-5)),
            ..answer(200)
        });
        round(&watched);
    }

    #[test]
    fn a_url_that_stays_alive_keeps_its_size() {
        let (rules, mut random) = (Profile::Default.rules(), Random::new(1));
        let mut watched = Watched::new(at(0));
        let mut now = at(0);
        assert_eq!(watched.to_bytes(0).len(), ROOM);
        for _ in 0..100 {
            let context = Context {
                is_control_fine: true,
                ..Context::default()
            };
            let decision = rules.decide(
                now,
                &mut watched.life,
                (Verdict::Ok, Some(200)),
                &context,
                &mut random,
            );
            watched.answer = Some(Answer {
                checked_at: Some(now),
                ..answer(200)
            });
            now = decision.due;
            watched.due = Some((Lane::Routine, now));
            assert_eq!(watched.life.state(), State::Alive);
            assert_eq!(watched.to_bytes(width(10_000_000)).len(), ROOM - 4);
        }
    }

    #[test]
    fn damage_is_found() {
        let mut watched = Watched::new(at(0));
        watched.answer = Some(answer(200));
        let bytes = watched.to_bytes(0);
        for length in 0..30 {
            assert!(Watched::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        let mut other = bytes.clone();
        other[0] = 2;
        assert!(Watched::from_bytes(&other).is_err());
        let mut longer = bytes;
        longer.push(1);
        assert!(Watched::from_bytes(&longer).is_err());
    }
}
