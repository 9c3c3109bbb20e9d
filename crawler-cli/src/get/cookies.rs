//! `-b` and `-c`: cookies as text, from files, and from responses.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use courser::proto::Url;
use courser::{CookieJar, Response};

use super::args::CookieArgs;
use super::redirect::Errand;

/// What the transfers of a group do about cookies.
#[derive(Debug, Default)]
pub(super) struct Cookies {
    /// As typed with `-b`: `a=b; c=d`.
    text: Vec<u8>,
    /// Responses set cookies, and requests have them.
    keep: bool,
    /// `-c`.
    pub(super) save: Option<PathBuf>,
}

impl Cookies {
    /// Reads the files into `jar`. One that cannot be read is as good as an empty one, as in curl: the first run with
    /// `-b jar -c jar` has none.
    pub(super) fn new(args: &CookieArgs, jar: &CookieJar) -> Self {
        let mut cookies = Self {
            keep: args.jar.is_some(),
            save: args.jar.clone().map(PathBuf::from),
            ..Self::default()
        };
        for typed in &args.cookies {
            if typed.as_bytes().contains(&b'=') {
                if !cookies.text.is_empty() {
                    cookies.text.extend_from_slice(b"; ");
                }
                cookies.text.extend(typed.clone().into_vec());
                continue;
            }
            cookies.keep = true;
            if let Ok(text) = fs::read(typed) {
                jar.load(&text);
            }
        }
        cookies
    }

    /// The value of `Cookie`; empty if there is none.
    pub(super) fn header(&self, jar: &CookieJar, errand: &Errand) -> Vec<u8> {
        let mut value = Vec::new();
        if self.keep
            && let Ok(url) = Url::parse(&errand.target.url())
        {
            jar.push_header(&url, &mut value);
        }
        if errand.trusted() && !self.text.is_empty() {
            if !value.is_empty() {
                value.extend_from_slice(b"; ");
            }
            value.extend_from_slice(&self.text);
        }
        value
    }

    /// Takes in what a response sets.
    pub(super) fn store(&self, jar: &CookieJar, errand: &Errand, response: &Response) {
        if self.keep
            && let Ok(url) = Url::parse(&errand.target.url())
        {
            jar.store(&url, response.header_all("set-cookie"));
        }
    }
}
