//! One or some of a few names.

use std::marker::PhantomData;
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use super::numbers::whole;
use super::{Scalar, array, list, not, quoted, string};
use verdict::life::{Negative, Negatives};

/// What kinds of negative verdicts: statuses, and a missing name.
pub(in crate::config) struct Kinds;

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

/// One of some names.
pub(in crate::config) struct Choice<E>(PhantomData<E>);

/// A value with a name.
pub(in crate::config) trait Named: Copy + PartialEq + 'static {
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

fn named<E: Named>(text: &str) -> Result<E, String> {
    let known = E::NAMES.iter().find(|(name, _)| *name == text);
    known.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = E::NAMES.iter().map(|(name, _)| *name).collect();
        match plain::text::nearest(text, &names) {
            Some(near) => format!("{} is unknown, did you mean {near}?", quoted(text)),
            None => format!("{} is unknown", quoted(text)),
        }
    })
}

fn name_of<E: Named>(value: E) -> &'static str {
    let known = E::NAMES.iter().find(|(_, known)| *known == value);
    known.map_or("", |(name, _)| name)
}

const NXDOMAIN: &str = "nxdomain";
