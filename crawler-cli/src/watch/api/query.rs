//! The query of a request, and the places in lists that it names.

use std::str::FromStr;

use axum::http::Uri;
use jiff::Timestamp;
use url::{Url, form_urlencoded};

use super::problem::Problem;
use crate::check::life::State;
use crate::store::{UrlId, UrlKey};
use crate::watch::hands::root_of;

/// The parameters of a query, each at most once.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query that has no other parameters than these.
    ///
    /// # Errors
    /// It has another one, or one twice.
    pub(super) fn read(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let mut read: Vec<(String, String)> = Vec::new();
        let parameters = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        for (name, value) in parameters {
            if !known.contains(&&*name) {
                let known = match known.is_empty() {
                    true => "there are none here".to_owned(),
                    false => format!("there are: {}", known.join(", ")),
                };
                return Err(Problem::parameter(&name, &format!("unknown; {known}")));
            }
            if read.iter().any(|(other, _)| *other == name) {
                return Err(Problem::parameter(&name, "given twice"));
            }
            read.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(read))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let mut parameters = self.0.iter();
        parameters
            .find(|(other, _)| other == name)
            .map(|(_, value)| &**value)
    }

    /// # Errors
    /// There is no such parameter.
    pub(super) fn needed(&self, name: &str) -> Result<&str, Problem> {
        self.text(name)
            .ok_or_else(|| Problem::parameter(name, "is needed"))
    }

    /// # Errors
    /// It is not what it should be.
    pub(super) fn parsed<T: FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, Problem> {
        let text = self.text(name).map(str::parse);
        text.transpose()
            .map_err(|_| Problem::parameter(name, &format!("{what} is needed")))
    }

    /// # Errors
    /// It is not what it should be, as `read` says.
    pub(super) fn read_by<T>(
        &self,
        name: &str,
        read: fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Problem> {
        let wrong = |text, why| Problem::parameter(name, &format!("{text:?}: {why}"));
        let text = self.text(name);
        text.map(|text| read(text).map_err(|why| wrong(text, why)))
            .transpose()
    }

    /// How many rows are wished.
    ///
    /// # Errors
    /// None, or too many.
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        match self.parsed("limit", NUMBER)? {
            None => Ok(LIMIT),
            Some(limit) if (1..=MOST).contains(&limit) => Ok(limit),
            Some(_) => {
                let why = format!("1 to {MOST}");
                Err(Problem::parameter("limit", &why))
            }
        }
    }

    /// The place after which a log is read: a number that is not negative.
    ///
    /// # Errors
    /// It is no such number.
    pub(super) fn after(&self) -> Result<Option<i64>, Problem> {
        match self.parsed("after", NUMBER)? {
            Some(after) if after < 0 => Err(Problem::parameter("after", "is negative")),
            after => Ok(after),
        }
    }

    /// # Errors
    /// There is no such state.
    pub(super) fn state(&self) -> Result<Option<State>, Problem> {
        let Some(name) = self.text("state") else {
            return Ok(None);
        };
        let is_it = |state: &State| state.name().eq_ignore_ascii_case(name);
        let state = State::ALL.into_iter().find(is_it);
        let known = || State::ALL.map(State::name).join(", ");
        let unknown = || Problem::parameter("state", &format!("there are: {}", known()));
        Ok(Some(state.ok_or_else(unknown)?))
    }

    /// The root of the host of a URL.
    ///
    /// # Errors
    /// It is no URL with a host.
    pub(super) fn root(&self, name: &str) -> Result<Option<String>, Problem> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        match url {
            Some(url) => Ok(Some(root_of(&url))),
            None => Err(Problem::parameter(
                name,
                "a URL such as https://example.com/ is needed",
            )),
        }
    }

    /// A place in a list of URLs.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn url_key(&self) -> Result<Option<UrlKey>, Problem> {
        let key = self.text("after").map(|text| {
            read_key(text).ok_or_else(|| {
                Problem::parameter("after", "'next' of an answer of this list is needed")
            })
        });
        key.transpose()
    }
}

/// How a place in a list of URLs is written. Clients take it as it is.
pub(super) fn written_key(key: UrlKey) -> String {
    match key {
        UrlKey::Number(url) => url.0.to_string(),
        UrlKey::OfState(state, url) => format!("{}.{}", state.name(), url.0),
        UrlKey::Due(at, url) => format!("{}.{}", at.as_millisecond(), url.0),
    }
}

fn read_key(text: &str) -> Option<UrlKey> {
    let Some((place, number)) = text.split_once('.') else {
        return Some(UrlKey::Number(UrlId(text.parse().ok()?)));
    };
    let url = UrlId(number.parse().ok()?);
    if let Ok(at) = place.parse() {
        return Some(UrlKey::Due(Timestamp::from_millisecond(at).ok()?, url));
    }
    let state = State::ALL.into_iter().find(|state| state.name() == place)?;
    Some(UrlKey::OfState(state, url))
}

/// A number, in words.
pub(super) const NUMBER: &str = "a number";
/// How many rows a page has if the client does not say.
const LIMIT: usize = 100;
/// The most rows of a page.
const MOST: usize = 1_000;
