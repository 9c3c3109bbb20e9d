//! How values are kept in columns.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

use super::failure::Failure;
use crate::sql::{self, Row};
use crate::{Demand, Episode};
use plain::redirect::Redirect;
use verdict::Answer;
use verdict::life::{Record as Life, State};
use verdict::{Cause, Class, Verdict};

pub(crate) fn time(millis: i64) -> Result<Timestamp, Failure> {
    Timestamp::from_millisecond(millis).map_err(|_| Failure::Damaged(format!("time {millis}")))
}

pub(crate) fn optional_time(millis: Option<i64>) -> Result<Option<Timestamp>, Failure> {
    millis.map(time).transpose()
}

/// Three bits, and the depth.
pub(super) fn demand_number(demand: Demand) -> i64 {
    let bits = [demand.given, demand.private, demand.links];
    let mut number = i64::from(demand.depth) << bits.len();
    for (place, bit) in bits.into_iter().enumerate() {
        number |= i64::from(bit) << place;
    }
    number
}

pub(super) fn demand(number: i64) -> Result<Demand, Failure> {
    let damaged = |_| Failure::Damaged(format!("demand {number}"));
    Ok(Demand {
        given: number & 1 != 0,
        private: number & 2 != 0,
        links: number & 4 != 0,
        depth: u16::try_from(number >> 3).map_err(damaged)?,
    })
}

/// The name of a cause with the number of its status.
pub(super) fn cause_name(cause: Cause) -> std::borrow::Cow<'static, str> {
    match cause {
        Cause::Status4xx(status) => format!("status_{status}").into(),
        cause => cause.name(),
    }
}

/// The causes whose names have no number in them that varies. The order is part of the format.
pub(super) const CAUSES: [Cause; 27] = [
    Cause::Status404,
    Cause::Status410,
    Cause::DnsNxdomain,
    Cause::Refused,
    Cause::Reset,
    Cause::ConnectTimeout,
    Cause::FirstByteTimeout,
    Cause::Timeout,
    Cause::TlsExpired,
    Cause::TlsName,
    Cause::TlsUntrusted,
    Cause::Tls,
    Cause::DnsServfail,
    Cause::Truncated,
    Cause::Protocol,
    Cause::RedirectLoop,
    Cause::TooManyRedirects,
    Cause::Auth,
    Cause::Blocked,
    Cause::Throttled,
    Cause::Robots,
    Cause::PrivateAddress,
    Cause::FragmentMissing,
    Cause::FileMissing,
    Cause::InvalidUrl,
    Cause::Unreachable,
    Cause::TlsNotYetValid,
];

fn cause(name: &str) -> Option<Cause> {
    if let Some(cause) = CAUSES.into_iter().find(|cause| cause.name() == name) {
        return Some(cause);
    }
    let status: u16 = name.strip_prefix("status_")?.parse().ok()?;
    match status {
        400..=499 => Some(Cause::Status4xx(status)),
        500..=599 => Some(Cause::Status5xx(status)),
        _ => None,
    }
}

/// The number of a cause: the status, or the place in [`CAUSES`].
pub(super) fn cause_number(cause: Cause) -> u64 {
    match cause {
        Cause::Status4xx(status) | Cause::Status5xx(status) => u64::from(status),
        cause => CAUSES.iter().position(|known| *known == cause).unwrap_or(0) as u64,
    }
}

/// The cause with this number.
pub(super) fn cause_of_number(number: u64) -> Option<Cause> {
    match u16::try_from(number).ok()? {
        status @ 400..=499 => Some(Cause::Status4xx(status)),
        status @ 500..=599 => Some(Cause::Status5xx(status)),
        place => CAUSES.get(usize::from(place)).copied(),
    }
}

/// The verdict with these names of its class and cause.
pub(super) fn verdict(class: &str, name: Option<&str>) -> Result<Verdict, Failure> {
    let damaged = || Failure::Damaged(format!("verdict {class} {}", name.unwrap_or("")));
    let cause = match name {
        Some(name) => Some(cause(name).ok_or_else(damaged)?),
        None => None,
    };
    match cause {
        cause if class == Class::Void.name() => Ok(Verdict::Void(cause)),
        Some(cause) if class == cause.class().name() => Ok(Verdict::Failed(cause)),
        None if class == Class::Ok.name() => Ok(Verdict::Ok),
        _ => Err(damaged()),
    }
}

pub(super) fn state(name: &str) -> Result<State, Failure> {
    let known = State::ALL.into_iter().find(|state| state.name() == name);
    known.ok_or_else(|| Failure::Damaged(format!("state {name}")))
}

pub(super) fn life(bytes: &[u8]) -> Result<Life, Failure> {
    Life::from_bytes(bytes).map_err(|error| Failure::Damaged(error.to_string()))
}

pub(super) fn method(name: &str) -> Option<&'static str> {
    ["HEAD", "GET"].into_iter().find(|known| *known == name)
}

/// An IPv4 address is 4 bytes, an IPv6 address 16.
pub(super) fn address_bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(super) fn address(bytes: &[u8]) -> Result<IpAddr, Failure> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| v6())
        .map_err(|_| Failure::Damaged(format!("an address of {} bytes", bytes.len())))
}

/// NULL if there are none, else JSON: `[[301,"https://…"],…]`.
pub(super) fn redirects_text(redirects: &[Redirect]) -> Option<String> {
    if redirects.is_empty() {
        return None;
    }
    let pairs: Vec<(u16, &str)> = redirects
        .iter()
        .map(|redirect| (redirect.status, redirect.url.as_str()))
        .collect();
    serde_json::to_string(&pairs).ok()
}

pub(super) fn redirects(text: Option<&str>) -> Result<Vec<Redirect>, Failure> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let pairs: Vec<(u16, String)> = json(text)?;
    let redirect = |(status, url)| Redirect { status, url };
    Ok(pairs.into_iter().map(redirect).collect())
}

/// NULL if there are none, else JSON: pairs of when it ended and how long it lasted, in milliseconds.
pub(super) fn episodes_text(episodes: &[Episode]) -> Option<String> {
    if episodes.is_empty() {
        return None;
    }
    let millis = |episode: &Episode| {
        let length = u64::try_from(episode.length.as_millis()).unwrap_or(u64::MAX);
        (episode.ended.as_millisecond(), length)
    };
    let pairs: Vec<(i64, u64)> = episodes.iter().map(millis).collect();
    serde_json::to_string(&pairs).ok()
}

pub(super) fn episodes(text: Option<&str>) -> Result<Vec<Episode>, Failure> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let pairs: Vec<(i64, u64)> = json(text)?;
    let episode = |(ended, length)| {
        Ok(Episode {
            ended: time(ended)?,
            length: Duration::from_millis(length),
        })
    };
    pairs.into_iter().map(episode).collect()
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|_| Failure::Damaged(text.to_owned()))
}

/// SQLite's integers are signed; a negative count does not occur.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A count for SQLite.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The columns of `answer` that [`answer`] reads, in its order.
pub(super) const ANSWER_COLUMNS: &str = "a.class, a.cause, a.status, a.method, a.attempts, a.latency_us, a.checked_at, \
     a.address, a.detail, a.moved_to, a.final_url, a.redirects, a.life, a.run, a.reused";

/// A row of `answer`.
pub(super) struct StoredAnswer {
    pub(super) answer: Answer,
    pub(super) life: Option<Life>,
    pub(super) run: i64,
    pub(super) is_reused: bool,
}

/// Reads [`ANSWER_COLUMNS`] from this column on. `None` if there is no row.
pub(super) fn answer(row: Row<'_>, from: usize) -> Result<Option<StoredAnswer>, Failure> {
    let Some(class) = text(row, from)? else {
        return Ok(None);
    };
    let latency: Option<i64> = row.get(from + 5)?;
    let answer = Answer {
        verdict: verdict(class, text(row, from + 1)?)?,
        status: row.get(from + 2)?,
        method: text(row, from + 3)?.and_then(method),
        attempts: row.get(from + 4)?,
        latency: latency.map(|micros| Duration::from_micros(count(micros))),
        checked_at: optional_time(row.get(from + 6)?)?,
        address: blob(row, from + 7)?.map(address).transpose()?,
        detail: row.get(from + 8)?,
        moved_to: row.get(from + 9)?,
        final_url: row.get(from + 10)?,
        redirects: redirects(text(row, from + 11)?)?,
    };
    Ok(Some(StoredAnswer {
        answer,
        life: blob(row, from + 12)?.map(life).transpose()?,
        run: row.get(from + 13)?,
        is_reused: row.get(from + 14)?,
    }))
}

/// The text of a column, not copied; `None` for NULL.
pub(crate) fn text<'a>(row: Row<'a>, column: usize) -> Result<Option<&'a str>, Failure> {
    let wrong = |error| sql::Error::Value(column, error);
    Ok(row.get_ref(column)?.as_str_or_null().map_err(wrong)?)
}

pub(crate) fn blob<'a>(row: Row<'a>, column: usize) -> Result<Option<&'a [u8]>, Failure> {
    let wrong = |error| sql::Error::Value(column, error);
    Ok(row.get_ref(column)?.as_blob_or_null().map_err(wrong)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_as_they_were_written() {
        let mut causes = CAUSES.to_vec();
        causes.extend([400, 405, 418, 499].map(Cause::Status4xx));
        causes.extend([500, 503, 599].map(Cause::Status5xx));
        let mut verdicts = vec![Verdict::Ok, Verdict::Void(None)];
        verdicts.extend(causes.iter().copied().map(Verdict::Failed));
        verdicts.extend(causes.into_iter().map(|cause| Verdict::Void(Some(cause))));
        for expected in verdicts {
            let name = expected.cause().map(cause_name);
            let read = verdict(expected.class().name(), name.as_deref());
            assert_eq!(read.ok(), Some(expected));
        }
    }

    #[test]
    fn other_verdicts_are_damage() {
        for (class, name) in [
            ("ok", Some("status_404")),
            ("neg", None),
            ("neg", Some("status_503")),
            ("net", Some("status_200")),
            ("good", None),
        ] {
            assert!(verdict(class, name).is_err(), "{class} {name:?}");
        }
    }

    #[test]
    fn demands_are_read_as_they_were_written() {
        for bits in 0..8u16 {
            for depth in [0, 1, u16::MAX] {
                let expected = Demand {
                    given: bits & 1 != 0,
                    private: bits & 2 != 0,
                    links: bits & 4 != 0,
                    depth,
                };
                assert_eq!(demand(demand_number(expected)).ok(), Some(expected));
            }
        }
        assert!(demand(-1).is_err() && demand(1 << 19).is_err());
    }
}
