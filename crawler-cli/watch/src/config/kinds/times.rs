//! Times, and lists of times.

use std::path::Path;
use std::time::Duration;

use toml::de::DeValue;

use super::numbers::whole;
use super::{Scalar, array, list, quoted, string};
use plain::values;
use verdict::life::{Intervals, Ladder};

/// A time, perhaps 0.
pub(in crate::config) struct Time;

impl Scalar for Time {
    type Value = Duration;
    const ALLOWED: &'static str =
        "a time such as \"0s\", \"500ms\", \"90s\", \"15m\", \"12h\" or \"7d\"";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Duration, String> {
        time(value)
    }

    fn show(value: &Duration) -> Option<String> {
        Some(time_text(*value))
    }
}

/// A time that is not 0.
pub(in crate::config) struct Interval;

impl Scalar for Interval {
    type Value = Duration;
    const ALLOWED: &'static str =
        "a time such as \"500ms\", \"90s\", \"15m\", \"12h\" or \"7d\", at least \"1ms\"";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Duration, String> {
        interval(value)
    }

    fn show(value: &Duration) -> Option<String> {
        Some(time_text(*value))
    }
}

/// The longest time; 0: no limit.
pub(in crate::config) struct TimeLimit;

impl Scalar for TimeLimit {
    type Value = Option<Duration>;
    const ALLOWED: &'static str =
        "a time such as \"500ms\", \"90s\", \"15m\", \"12h\" or \"7d\", or 0: no limit";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Option<Duration>, String> {
        time(value).map(|time| Some(time).filter(|time| !time.is_zero()))
    }

    fn show(value: &Option<Duration>) -> Option<String> {
        Some(value.map_or_else(|| "0".to_owned(), time_text))
    }
}

/// The same, where zero itself means no limit.
pub(in crate::config) struct ZeroLimit;

impl Scalar for ZeroLimit {
    type Value = Duration;
    const ALLOWED: &'static str = <TimeLimit as Scalar>::ALLOWED;

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Duration, String> {
        time(value)
    }

    fn show(value: &Duration) -> Option<String> {
        <TimeLimit as Scalar>::show(&Some(*value).filter(|time| !time.is_zero()))
    }
}

/// Two times, the shorter one first.
pub(in crate::config) struct TimeRange;

impl Scalar for TimeRange {
    type Value = (Duration, Duration);
    const ALLOWED: &'static str = "two times, the shorter one first, such as [\"1s\", \"6s\"]";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<(Duration, Duration), String> {
        match times(value, time)?.as_slice() {
            [first, longest] if first <= longest => Ok((*first, *longest)),
            [_, _] => Err("the first time is longer than the second".to_owned()),
            _ => Err("not two times".to_owned()),
        }
    }

    fn show((first, longest): &(Duration, Duration)) -> Option<String> {
        Some(list([*first, *longest].map(time_text)))
    }
}

/// Times that grow from the first to the longest.
pub(in crate::config) struct Growing;

impl Scalar for Growing {
    type Value = Intervals;
    const ALLOWED: &'static str = "the first and the longest time, such as [\"7d\", \"90d\"]";

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<Intervals, String> {
        let (first, longest) = TimeRange::parse(value, folder)?;
        match first.is_zero() {
            false => Ok(Intervals { first, longest }),
            true => Err("the first time is 0".to_owned()),
        }
    }

    fn show(value: &Intervals) -> Option<String> {
        Some(list([value.first, value.longest].map(time_text)))
    }
}

/// The times between checks that follow each other.
pub(in crate::config) struct Steps;

impl Scalar for Steps {
    type Value = Ladder;
    const ALLOWED: &'static str =
        "1 to 32 times, of which the last one repeats, such as [\"15m\", \"1h\", \"24h\"]";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Ladder, String> {
        let steps = times(value, interval)?;
        let ladder = Ladder::from_steps(&steps).filter(|_| steps.len() <= 32);
        ladder.ok_or_else(|| format!("{} times", steps.len()))
    }

    fn show(value: &Ladder) -> Option<String> {
        Some(list(value.steps().iter().copied().map(time_text)))
    }
}

fn time(value: &DeValue<'_>) -> Result<Duration, String> {
    if let DeValue::Integer(_) = value {
        return match whole(value, 0, u64::MAX)? {
            0 => Ok(Duration::ZERO),
            number => Err(format!("{number} has no unit, did you mean \"{number}s\"?")),
        };
    }
    let text = string(value)?;
    let has_unit = text == "0" || text.ends_with(|c: char| c.is_ascii_alphabetic());
    let time = values::span(text).ok().filter(|_| has_unit);
    time.ok_or_else(|| format!("{} is no time", quoted(text)))
}

fn interval(value: &DeValue<'_>) -> Result<Duration, String> {
    let time = time(value)?;
    match time >= Duration::from_millis(1) {
        true => Ok(time),
        false => Err("too short".to_owned()),
    }
}

fn times(
    value: &DeValue<'_>,
    read: fn(&DeValue<'_>) -> Result<Duration, String>,
) -> Result<Vec<Duration>, String> {
    array(value)?
        .iter()
        .map(|value| read(value.get_ref()))
        .collect()
}

/// A time in the largest unit that needs no fraction, but hours up to three days.
fn time_text(time: Duration) -> String {
    let millis = time.as_millis();
    let units = [
        ("d", 86_400_000, 4),
        ("h", 3_600_000, 1),
        ("m", 60_000, 1),
        ("s", 1000, 0),
    ];
    let is_whole = time.subsec_nanos().is_multiple_of(1_000_000);
    let fits = |(_, unit, least): &&(&str, u128, u128)| {
        is_whole && millis.is_multiple_of(*unit) && millis / unit >= *least
    };
    let text = match units.iter().find(fits) {
        Some((name, unit, _)) => format!("{}{name}", millis / unit),
        None => format!("{}ms", time.as_secs_f64() * 1000.0),
    };
    quoted(&text)
}
