//! URLs. Errors do not repeat them: a URL may have credentials.

use std::path::Path;

use toml::de::DeValue;
use url::Url;

use super::{Scalar, list, quoted, string};

/// A URL that is asked.
pub(in crate::config) struct WebUrl;

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
pub(in crate::config) struct WebUrls;

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

/// A URL that may be asked. Errors do not repeat the text: it may have credentials.
pub(in crate::config) fn web_url(text: &str) -> Result<Url, String> {
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
