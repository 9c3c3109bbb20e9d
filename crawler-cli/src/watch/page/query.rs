//! The part of a URL after the question mark, links with one, and the search.

use axum::http::Uri;
use maud::html;
use url::form_urlencoded::{Serializer, parse};

use super::asked::Asked;
use super::frame::framed;
use super::pieces::{href, section};
use super::{read, trouble};
use crate::watch::admin::answer::{Answer, see_other};
use crate::watch::hands::words;

/// The fields of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(parse(query.as_bytes()).into_owned().take(MOST).collect())
    }

    /// A field, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(field, _)| field == name);
        field
            .map(|(_, value)| &**value)
            .filter(|value| !value.is_empty())
    }

    /// A field that is a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// A page with this query, but for one field.
    pub(super) fn with(&self, path: &str, name: &str, value: &str) -> String {
        let mut fields = self.others(name);
        fields.append_pair(name, value);
        format!("{path}?{}", fields.finish())
    }

    /// A page with this query, without one field.
    pub(super) fn without(&self, path: &str, name: &str) -> String {
        let fields = self.others(name).finish();
        match fields.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{fields}"),
        }
    }

    fn others(&self, name: &str) -> Serializer<'static, String> {
        let others = self.0.iter().filter(|(field, _)| field != name);
        let mut fields = Serializer::new(String::new());
        fields.extend_pairs(others.filter(|(_, value)| !value.is_empty()));
        fields
    }

    /// With a page to come back to, if there is none yet.
    pub(super) fn or_back(mut self, back: &str) -> Self {
        if self.get("back").is_none() {
            self.0.push(("back".to_owned(), back.to_owned()));
        }
        self
    }

    /// All fields, in their order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.0.iter();
        fields.map(|(name, value)| (&**name, &**value))
    }
}

impl From<&[(&str, &str)]> for Query {
    fn from(fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter();
        Self(
            fields
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }
}

/// Goes to the URL or the host that is meant.
pub(super) async fn search(asked: Asked) -> Answer {
    let meant = asked.query.get("q").unwrap_or_default().trim().to_owned();
    let name = meant.clone();
    let found = read(&asked.site, None, move |reader, _| {
        let is_url = reader.host_of(&name)?.is_some();
        Ok((is_url, reader.roots(&name)?))
    });
    let (around, (is_url, roots)) = match found.await {
        Ok(found) => found,
        Err(error) => return trouble(&error),
    };
    match (is_url, &*roots) {
        (true, _) => see_other(&href("/url", &[("url", &meant)])),
        (false, [root]) => see_other(&href("/host", &[("root", root)])),
        (false, roots) if !roots.is_empty() => see_other(&href("/hosts", &[("name", &meant)])),
        _ => {
            let body = section(
                "Not found",
                &html! {
                    p { "The store knows no URL and no host " b { (words::url(&meant)) } "." }
                    p {
                        "A URL is written as it was added, a host by its whole name. "
                        a href=(href("/hosts", &[("name", &meant)])) { "Hosts whose names begin so" }
                    }
                },
            );
            framed(&asked, &around, "", "Search", &body)
        }
    }
}

/// How many fields are read.
const MOST: usize = 32;
