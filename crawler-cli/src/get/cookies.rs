//! `-b` and `-c`: cookies given as text, cookies of responses, and cookie files. The rules of RFC 6265 (domain, path, expiry) are the engine's: [`CookieJar`].

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use courser::proto::Url;
use courser::{CookieJar, Response};

use super::args::CookieArgs;
use super::redirect::Hop;
use crate::crawl::cookie_file;

/// The cookie options of one group.
#[derive(Debug, Default)]
pub(super) struct Cookies {
    /// As typed with `-b`: `a=b; c=d`.
    text: Vec<u8>,
    /// Whether the jar stores the cookies of responses and adds its cookies to requests (a `-b` file or `-c` was
    /// given).
    keep: bool,
    /// `-c`: the file to write.
    pub(super) save: Option<PathBuf>,
}

impl Cookies {
    /// Reads the cookie files into `jar`. A file that cannot be read counts as empty, as in curl: before the first run
    /// with `-b jar -c jar` the file does not exist.
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
                match args.junk_session {
                    true => cookie_file::load_lasting(jar, &text),
                    false => cookie_file::load(jar, &text),
                };
            }
        }
        cookies
    }

    /// The value of the `Cookie` header; empty if there is no cookie to send.
    pub(super) fn header(&self, jar: &CookieJar, hop: &Hop) -> Vec<u8> {
        let mut value = Vec::new();
        if self.keep
            && let Ok(url) = Url::parse(&hop.target.url())
        {
            jar.push_header(&url, &mut value);
        }
        if hop.trusted() && !self.text.is_empty() {
            if !value.is_empty() {
                value.extend_from_slice(b"; ");
            }
            value.extend_from_slice(&self.text);
        }
        value
    }

    /// Stores the cookies that a response sets.
    pub(super) fn store(&self, jar: &CookieJar, hop: &Hop, response: &Response) {
        if self.keep
            && let Ok(url) = Url::parse(&hop.target.url())
        {
            jar.store(&url, response.header_all("set-cookie"));
        }
    }
}
