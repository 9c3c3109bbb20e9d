//! The kinds of values: how each is read from TOML and written as TOML.

mod choices;
mod numbers;
mod texts;
mod times;
mod urls;

use std::marker::PhantomData;
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Key, Kind, Reader};

pub(super) use choices::{Choice, Kinds, Named};
pub(super) use numbers::{
    Count, Flag, Limit, Most, MostShare, RateLimit, Share, ShareLimit, Tries,
};
pub(super) use texts::{Address, FilePath, HostNames, Name, StoreUrl, Text, Words};
pub(super) use times::{Growing, Interval, Steps, Time, TimeLimit, TimeRange, ZeroLimit};
pub(super) use urls::{WebUrl, WebUrls, web_url};

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

fn string<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| not("a text", value))
}

fn array<'v, 'd>(value: &'v DeValue<'d>) -> Result<&'v [Spanned<DeValue<'d>>], String> {
    let array = value.as_array().ok_or_else(|| not("a list", value))?;
    Ok(array)
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
