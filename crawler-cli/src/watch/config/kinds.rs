//! The kinds of values: how each is read from TOML and written as TOML.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use courser::Rate;
use toml::Spanned;
use toml::de::DeValue;
use url::Url;

use super::reader::{Key, Kind, Reader};
use crate::check::life::{Intervals, Ladder, Negative, Negatives};
use crate::values;

/// A kind whose values are read as a whole.
pub(super) trait Scalar {
    type Value;
    const ALLOWED: &'static str;

    /// # Errors
    /// What is wrong, for a sentence that ends with what is allowed.
    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<Self::Value, String>;

    /// As TOML; `None` if the key is not set.
    fn show(value: &Self::Value) -> Option<String>;
}

impl<S: Scalar> Kind for S {
    type Value = S::Value;
    const ALLOWED: &'static str = S::ALLOWED;

    fn read(into: &mut S::Value, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        match S::parse(value.get_ref(), reader.folder()) {
            Ok(value) => *into = value,
            Err(why) => reader.wrong(value.span(), &format!("{why}; allowed: {}", S::ALLOWED)),
        }
    }

    fn show(value: &S::Value) -> Option<String> {
        S::show(value)
    }
}

/// A table with rows of its own, such as `{ count = 4, span = "48h" }`.
pub(super) struct Inline<T>(PhantomData<T>);

/// What an [`Inline`] table has.
pub(super) trait Fields: Sized + 'static {
    const KEYS: &'static [Key<Self>];
    const ALLOWED: &'static str;
}

impl<T: Fields> Kind for Inline<T> {
    type Value = T;
    const ALLOWED: &'static str = T::ALLOWED;

    fn read(into: &mut T, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        match value.get_ref().as_table() {
            Some(table) => reader.table(T::KEYS, into, table, value.span()),
            None => reader.wrong(
                value.span(),
                &format!("not a table; allowed: {}", T::ALLOWED),
            ),
        }
    }

    fn show(value: &T) -> Option<String> {
        let keys = T::KEYS.iter().filter_map(|key| {
            let value = (key.show)(value)?;
            Some(format!("{} = {value}", key.name))
        });
        Some(format!("{{ {} }}", keys.collect::<Vec<_>>().join(", ")))
    }
}

/// A kind whose key may be absent.
pub(super) struct Maybe<S>(PhantomData<S>);

impl<S: Scalar> Scalar for Maybe<S> {
    type Value = Option<S::Value>;
    const ALLOWED: &'static str = S::ALLOWED;

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<Option<S::Value>, String> {
        S::parse(value, folder).map(Some)
    }

    fn show(value: &Option<S::Value>) -> Option<String> {
        S::show(value.as_ref()?)
    }
}

/// `true` or `false`.
pub(super) struct Flag;

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
pub(super) struct Count;

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
pub(super) struct Tries;

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
pub(super) struct Most;

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
pub(super) struct Limit;

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
pub(super) struct RateLimit;

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
pub(super) struct ShareLimit;

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
pub(super) struct Share;

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
pub(super) struct MostShare;

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

/// A time, perhaps 0.
pub(super) struct Time;

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
pub(super) struct Interval;

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
pub(super) struct TimeLimit;

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
pub(super) struct ZeroLimit;

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
pub(super) struct TimeRange;

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
pub(super) struct Growing;

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
pub(super) struct Steps;

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

/// What kinds of negative verdicts: statuses, and a missing name.
pub(super) struct Kinds;

impl Scalar for Kinds {
    type Value = Negatives;
    const ALLOWED: &'static str = "a list of 410, 404 and \"nxdomain\"";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Negatives, String> {
        let kind = |value: &Spanned<DeValue<'_>>| {
            let value = value.get_ref();
            if value.as_str() == Some(NXDOMAIN) {
                return Ok(Negative::Nxdomain);
            }
            let status = whole(value, 0, 999).ok();
            let status = status.and_then(|status| u16::try_from(status).ok());
            let kind = status.and_then(Negative::of_status);
            kind.ok_or_else(|| not("410, 404 or \"nxdomain\"", value))
        };
        array(value)?.iter().map(kind).collect()
    }

    fn show(value: &Negatives) -> Option<String> {
        Some(list(value.iter().map(|kind| match kind {
            Negative::Gone => "410".to_owned(),
            Negative::NotFound => "404".to_owned(),
            Negative::Nxdomain => quoted(NXDOMAIN),
        })))
    }
}

/// A text that is not empty and has no control characters.
pub(super) struct Text;

impl Scalar for Text {
    type Value = String;
    const ALLOWED: &'static str = "a text without control characters";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<String, String> {
        let text = string(value)?;
        match text {
            "" => Err("empty".to_owned()),
            text if text.chars().any(char::is_control) => Err("has control characters".to_owned()),
            text => Ok(text.to_owned()),
        }
    }

    fn show(value: &String) -> Option<String> {
        Some(quoted(value)).filter(|_| !value.is_empty())
    }
}

/// The name of a set or a schedule.
pub(super) struct Name;

impl Scalar for Name {
    type Value = String;
    const ALLOWED: &'static str = "1 to 100 letters, digits and . _ -";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<String, String> {
        let name = string(value)?;
        let fits = |c: char| c.is_alphanumeric() || "._-".contains(c);
        match !name.is_empty() && name.chars().count() <= 100 && name.chars().all(fits) {
            true => Ok(name.to_owned()),
            false => Err(format!("{} is no name", quoted(name))),
        }
    }

    fn show(value: &String) -> Option<String> {
        <Text as Scalar>::show(value)
    }
}

/// Texts of any characters but NUL.
pub(super) struct Words;

impl Scalar for Words {
    type Value = Vec<String>;
    const ALLOWED: &'static str = "a list of texts";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Vec<String>, String> {
        let word = |value: &Spanned<DeValue<'_>>| match string(value.get_ref())? {
            word if word.contains('\0') => Err("a text has a NUL character".to_owned()),
            word => Ok(word.to_owned()),
        };
        array(value)?.iter().map(word).collect()
    }

    fn show(value: &Vec<String>) -> Option<String> {
        Some(list(value.iter().map(|word| quoted(word))))
    }
}

/// A file or folder.
pub(super) struct FilePath;

impl Scalar for FilePath {
    type Value = PathBuf;
    const ALLOWED: &'static str = "a path, relative to the folder of the configuration";

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<PathBuf, String> {
        match string(value)? {
            "" => Err("empty".to_owned()),
            text if text.contains('\0') => Err("has a NUL character".to_owned()),
            text => Ok(folder.join(text)),
        }
    }

    fn show(value: &PathBuf) -> Option<String> {
        Some(quoted(&value.display().to_string()))
    }
}

/// The store: `sqlite:FILE`.
pub(super) struct StoreUrl;

impl Scalar for StoreUrl {
    type Value = PathBuf;
    const ALLOWED: &'static str = "\"sqlite:FILE\"";

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<PathBuf, String> {
        let url = string(value)?;
        // The text is not repeated: it may have a password.
        if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            return Err("this version keeps everything in SQLite".to_owned());
        }
        let Some(file) = url.strip_prefix("sqlite:") else {
            return Err("not the URL of a store".to_owned());
        };
        let file = file.strip_prefix("//").unwrap_or(file);
        match file {
            "" | ":memory:" => Err("a store needs a file".to_owned()),
            file if file.contains('\0') => Err("has a NUL character".to_owned()),
            file => Ok(folder.join(file)),
        }
    }

    fn show(value: &PathBuf) -> Option<String> {
        Some(quoted(&format!("sqlite:{}", value.display())))
    }
}

/// The share of the hosts: number and count.
pub(super) struct Shard;

impl Scalar for Shard {
    type Value = (u32, u32);
    const ALLOWED: &'static str = "\"1/1\"; several fleets need PostgreSQL";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<(u32, u32), String> {
        let text = string(value)?;
        let part = |text| values::number::<u32>(text).ok().filter(|part| *part > 0);
        let parts = text.split_once('/');
        let parts = parts.and_then(|(number, count)| Some((part(number)?, part(count)?)));
        match parts {
            Some((1, 1)) => Ok((1, 1)),
            Some((number, count)) if number <= count => Err("SQLite serves one fleet".to_owned()),
            _ => Err(format!("{} is no share", quoted(text))),
        }
    }

    fn show((number, count): &(u32, u32)) -> Option<String> {
        Some(quoted(&format!("{number}/{count}")))
    }
}

/// An address with a port.
pub(super) struct Address;

impl Scalar for Address {
    type Value = SocketAddr;
    const ALLOWED: &'static str =
        "an address and a port, such as \"127.0.0.1:9400\" or \"[::1]:0\"; port 0: any free port";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<SocketAddr, String> {
        let text = string(value)?;
        // The usual name for a loopback address is understood.
        let text = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        let address = text.parse();
        address.map_err(|_| format!("{} is no address", quoted(&text)))
    }

    fn show(value: &SocketAddr) -> Option<String> {
        Some(quoted(&value.to_string()))
    }
}

/// A URL that is asked.
pub(super) struct WebUrl;

impl Scalar for WebUrl {
    type Value = Url;
    const ALLOWED: &'static str = "an http or https URL without credentials";

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Url, String> {
        web_url(string(value)?)
    }

    fn show(value: &Url) -> Option<String> {
        Some(quoted(value.as_str()))
    }
}

/// URLs that are asked.
pub(super) struct WebUrls;

impl Scalar for WebUrls {
    type Value = Vec<Url>;
    const ALLOWED: &'static str = "a list of http or https URLs without credentials";

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<Vec<Url>, String> {
        // The text is not repeated: it may have credentials.
        let urls = value.as_array().ok_or("not a list")?.iter();
        urls.map(|url| WebUrl::parse(url.get_ref(), folder))
            .collect()
    }

    fn show(value: &Vec<Url>) -> Option<String> {
        Some(list(value.iter().map(|url| quoted(url.as_str()))))
    }
}

/// A URL that gets messages. What comes after the host is often secret, and is not shown.
pub(super) struct Hook;

impl Scalar for Hook {
    type Value = Option<Url>;
    const ALLOWED: &'static str = <WebUrl as Scalar>::ALLOWED;

    fn parse(value: &DeValue<'_>, folder: &Path) -> Result<Option<Url>, String> {
        WebUrl::parse(value, folder).map(Some)
    }

    fn show(value: &Option<Url>) -> Option<String> {
        let origin = value.as_ref()?.origin().ascii_serialization();
        Some(quoted(&format!("{origin}/...")))
    }
}

/// One of some names.
pub(super) struct Choice<E>(PhantomData<E>);

/// A value with a name.
pub(super) trait Named: Copy + PartialEq + 'static {
    const NAMES: &'static [(&'static str, Self)];
    const ALLOWED: &'static str;
}

impl<E: Named> Scalar for Choice<E> {
    type Value = E;
    const ALLOWED: &'static str = E::ALLOWED;

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<E, String> {
        named(string(value)?)
    }

    fn show(value: &E) -> Option<String> {
        Some(quoted(name_of(*value)))
    }
}

/// Some of some names.
pub(super) struct Choices<E>(PhantomData<E>);

impl<E: Named> Scalar for Choices<E> {
    type Value = Vec<E>;
    const ALLOWED: &'static str = E::ALLOWED;

    fn parse(value: &DeValue<'_>, _: &Path) -> Result<Vec<E>, String> {
        let names = array(value)?.iter();
        names.map(|name| named(string(name.get_ref())?)).collect()
    }

    fn show(value: &Vec<E>) -> Option<String> {
        Some(list(value.iter().map(|value| quoted(name_of(*value)))))
    }
}

fn named<E: Named>(text: &str) -> Result<E, String> {
    let known = E::NAMES.iter().find(|(name, _)| *name == text);
    known.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = E::NAMES.iter().map(|(name, _)| *name).collect();
        match crate::toml_text::nearest(text, &names) {
            Some(near) => format!("{} is unknown, did you mean {near}?", quoted(text)),
            None => format!("{} is unknown", quoted(text)),
        }
    })
}

fn name_of<E: Named>(value: E) -> &'static str {
    let known = E::NAMES.iter().find(|(_, known)| *known == value);
    known.map_or("", |(name, _)| name)
}

/// A URL that may be asked. Errors do not repeat the text: it may have credentials.
pub(super) fn web_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("no URL ({error})"))?;
    match url.scheme() {
        "http" | "https" => {}
        scheme => return Err(format!("the scheme {scheme}")),
    }
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(url),
        false => Err("a URL with credentials; they belong into auth_file of [[host]]".to_owned()),
    }
}

fn string<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| not("a text", value))
}

fn array<'v, 'd>(value: &'v DeValue<'d>) -> Result<&'v [Spanned<DeValue<'d>>], String> {
    let array = value.as_array().ok_or_else(|| not("a list", value))?;
    Ok(array)
}

fn whole(value: &DeValue<'_>, least: u64, most: u64) -> Result<u64, String> {
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

/// The value is of another type.
fn not(expected: &str, value: &DeValue<'_>) -> String {
    let is = match value {
        DeValue::String(text) => return format!("{} is not {expected}", quoted(text)),
        DeValue::Integer(number) => return format!("{number} is not {expected}"),
        DeValue::Float(number) => return format!("{number} is not {expected}"),
        DeValue::Boolean(value) => return format!("{value} is not {expected}"),
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("{is} is not {expected}")
}

/// A text as TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<_> = values.into_iter().collect();
    format!("[{}]", values.join(", "))
}

fn float(number: f64) -> String {
    // `{:?}` keeps the point, which makes the number a float in TOML.
    format!("{number:?}")
}

/// A time in the largest unit that needs no fraction, but hours up to three days.
pub(super) fn time_text(time: Duration) -> String {
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

const MOST: u64 = 1_000_000;
const NXDOMAIN: &str = "nxdomain";
