//! The bodies of requests: an object in JSON, of which each wrong field is named.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::Request;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use tokio::sync::OwnedSemaphorePermit;

use super::problem::Problem;
use crate::watch::admin::Site;
use crate::watch::admin::body::{kind_of, read_body};

/// Reads the body of a request. The second value is to be kept until all is done with it.
///
/// # Errors
/// It is of another type, too large, no JSON, or not what is needed.
pub(super) async fn read<T: DeserializeOwned>(
    site: &Site,
    request: Request,
    most: usize,
) -> Result<(T, Option<OwnedSemaphorePermit>), Problem> {
    if kind_of(request.headers()) != Some("application/json") {
        let why = "application/json is needed";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let sent = read_body(site, request, most).await?;
    Ok((parse(&sent.content)?, sent.place))
}

/// # Errors
/// The body is no JSON, or not what is needed.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json);
    let Object(value) = value.map_err(|error| {
        let path: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        let path = path.iter().map(|part| part.trim_matches(['[', ']']));
        problem(&path.collect::<Vec<_>>(), error.inner())
    })?;
    json.end().map_err(|error| problem(&[], &error))?;
    Ok(value)
}

/// An object, and no list of its values, which would do for a struct.
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);

        impl<'de, T: DeserializeOwned> Visitor<'de> for Map<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Map(PhantomData))
    }
}

fn problem(path: &[&str], error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    if !error.is_data() {
        return Problem::new(StatusCode::BAD_REQUEST, format!("no JSON: {text}"));
    }
    // A field that is not known, is missing or comes twice is named by the text alone.
    let of_field = ["unknown field `", "missing field `", "duplicate field `"];
    let named = of_field.iter().find_map(|begin| text.strip_prefix(begin));
    let named = named.and_then(|rest| Some(rest.split_once('`')?.0));
    let parts = path.iter().copied().filter(|part| *part != "?");
    let mut parts: Vec<String> = parts.map(escaped).collect();
    if let Some(field) = named.map(escaped)
        && parts.last() != Some(&field)
    {
        parts.push(field);
    }
    let pointer: String = parts.iter().map(|part| format!("/{part}")).collect();
    Problem::field(&format!("#{pointer}"), text)
}

/// A part of a JSON pointer (RFC 6901 section 3).
fn escaped(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

/// Texts, of which no more than a number are kept.
#[derive(Debug, Default)]
pub(super) struct Texts<const MOST: usize> {
    pub(super) texts: Vec<String>,
    /// Whether there were more.
    pub(super) is_cut: bool,
}

impl<'de, const MOST: usize> Deserialize<'de> for Texts<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seq<const MOST: usize>;

        impl<'de, const MOST: usize> Visitor<'de> for Seq<MOST> {
            type Value = Texts<MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut read = Texts::default();
                while let Some(text) = seq.next_element::<String>()? {
                    match read.texts.len() < MOST {
                        true => read.texts.push(text),
                        false => read.is_cut = true,
                    }
                }
                Ok(read)
            }
        }

        deserializer.deserialize_seq(Seq::<MOST>)
    }
}
