//! Numbers, shares and truth values.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::time::Duration;

use courser::Rate;
use toml::de::DeValue;

use super::{Scalar, not};

/// `true` or `false`.
pub(in crate::config) struct Flag;

impl Scalar for Flag {
    type Value = bool;
    const ALLOWED: &'static str = "true or false";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<bool, String> {
        value.as_bool().ok_or_else(|| not("a truth value", value))
    }

    fn show(value: &bool) -> Option<String> {
        Some(value.to_string())
    }
}

/// A number of things, of which there is at least one.
pub(in crate::config) struct Count;

impl Scalar for Count {
    type Value = u32;
    const ALLOWED: &'static str = "1 to 1000000";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<u32, String> {
        whole(value, 1, MOST).map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn show(value: &u32) -> Option<String> {
        Some(value.to_string())
    }
}

/// How often something is tried, at least once.
pub(in crate::config) struct Tries;

impl Scalar for Tries {
    type Value = NonZeroU32;
    const ALLOWED: &'static str = "1 to 100";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<NonZeroU32, String> {
        let tries = whole(value, 1, 100)?;
        Ok(u32::try_from(tries)
            .ok()
            .and_then(NonZeroU32::new)
            .unwrap_or(NonZeroU32::MIN))
    }

    fn show(value: &NonZeroU32) -> Option<String> {
        Some(value.to_string())
    }
}

/// The most of something, at least 1.
pub(in crate::config) struct Most;

impl Scalar for Most {
    type Value = NonZeroUsize;
    const ALLOWED: &'static str = "1 to 10000";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<NonZeroUsize, String> {
        let most = usize::try_from(whole(value, 1, 10_000)?).ok();
        Ok(most
            .and_then(NonZeroUsize::new)
            .unwrap_or(NonZeroUsize::MIN))
    }

    fn show(value: &NonZeroUsize) -> Option<String> {
        Some(value.to_string())
    }
}

/// The most of something; 0: no limit.
pub(in crate::config) struct Limit;

impl Scalar for Limit {
    type Value = Option<NonZeroUsize>;
    const ALLOWED: &'static str = "1 to 1000000, or 0: no limit";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Option<NonZeroUsize>, String> {
        let most = usize::try_from(whole(value, 0, MOST)?);
        Ok(most.ok().and_then(NonZeroUsize::new))
    }

    fn show(value: &Option<NonZeroUsize>) -> Option<String> {
        Some(value.map_or(0, NonZeroUsize::get).to_string())
    }
}

/// A rate in requests a second; 0: no limit.
pub(in crate::config) struct RateLimit;

impl Scalar for RateLimit {
    type Value = Option<Rate>;
    const ALLOWED: &'static str = "requests a second, from 0.00001 to 1000000, or 0: no limit";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Option<Rate>, String> {
        let rate = number(value)?;
        if rate == 0.0 {
            return Ok(None);
        }
        if !(0.00001..=1e6).contains(&rate) {
            return Err("out of range".to_owned());
        }
        let whole = (rate.fract() == 0.0).then_some(rate as u64);
        Ok(Some(match whole.and_then(NonZeroU64::new) {
            Some(count) => Rate::per_second(count),
            None => Rate::every(Duration::from_secs_f64(1.0 / rate)),
        }))
    }

    fn show(value: &Option<Rate>) -> Option<String> {
        let rate = value.map_or(0.0, |rate| {
            let per = rate.per.as_secs_f64();
            // Times are whole nanoseconds: what was 0.3 is not exactly 0.3 any more.
            let exact = rate.count.get() as f64 / per;
            (exact * 1e5).round() / 1e5
        });
        Some(float(rate))
    }
}

/// A share that means no limit when it is 0.
pub(in crate::config) struct ShareLimit;

impl Scalar for ShareLimit {
    type Value = f64;
    const ALLOWED: &'static str = "a share from 0 to 1; 0: no limit";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<f64, String> {
        share(value)
    }

    fn show(value: &f64) -> Option<String> {
        Some(float(*value))
    }
}

/// A share that is a threshold.
pub(in crate::config) struct Share;

impl Scalar for Share {
    type Value = f64;
    const ALLOWED: &'static str = "a share from 0 to 1";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<f64, String> {
        share(value)
    }

    fn show(value: &f64) -> Option<String> {
        Some(float(*value))
    }
}

/// The largest share; 0: no limit.
pub(in crate::config) struct MostShare;

impl Scalar for MostShare {
    type Value = Option<f64>;
    const ALLOWED: &'static str = <ShareLimit as Scalar>::ALLOWED;

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Option<f64>, String> {
        share(value).map(|share| Some(share).filter(|share| *share > 0.0))
    }

    fn show(value: &Option<f64>) -> Option<String> {
        Some(float(value.unwrap_or(0.0)))
    }
}

pub(super) fn whole(value: &DeValue<'_>, least: u64, most: u64) -> Result<u64, String> {
    let integer = value
        .as_integer()
        .ok_or_else(|| not("a whole number", value))?;
    let number = i128::from_str_radix(integer.as_str(), integer.radix());
    let number = number.ok().and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{integer} is out of range"))
}

fn number(value: &DeValue<'_>) -> Result<f64, String> {
    let number = match value {
        DeValue::Integer(_) => whole(value, 0, u64::MAX)? as f64,
        DeValue::Float(float) => {
            let number = float.as_str().parse::<f64>().ok();
            number.ok_or_else(|| not("a number", value))?
        }
        _ => return Err(not("a number", value)),
    };
    let is_sensible = number.is_finite() && number >= 0.0;
    is_sensible
        .then_some(number)
        .ok_or_else(|| "out of range".to_owned())
}

fn share(value: &DeValue<'_>) -> Result<f64, String> {
    let share = number(value)?;
    (share <= 1.0)
        .then_some(share)
        .ok_or_else(|| format!("{share} is out of range"))
}

fn float(number: f64) -> String {
    // `{:?}` keeps the point, which makes the number a float in TOML.
    format!("{number:?}")
}

const MOST: u64 = 1_000_000;
