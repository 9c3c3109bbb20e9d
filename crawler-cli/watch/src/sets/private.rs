//! URLs of sets that are never asked, because their hosts are private addresses. Names of hosts are not looked up: what they
//! mean is known when they are asked.

use std::fmt;
use std::io;

use url::Url;

use super::file;
use crate::config::Source;
use crate::hands::shown_url;
use check::host::is_private_literal;
use jobs::Cancel;

/// The URLs at private addresses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Private {
    /// How many.
    pub urls: u64,
    /// The first one, without a user.
    first: String,
}

impl Private {
    /// Counts the URLs of a source that are at private addresses: those of a file until this is cancelled, or a
    /// sitemap itself.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(source: &Source, cancel: &Cancel) -> io::Result<Self> {
        let mut private = Self::default();
        match source {
            Source::File(path) => return file::private(path, cancel),
            Source::Sitemap(url) => private.look(url.as_str()),
            Source::Submitted => {}
        }
        Ok(private)
    }

    /// Counts a URL if it is at a private address.
    pub(super) fn look(&mut self, url: &str) {
        let Ok(url) = Url::parse(url.trim()) else {
            return;
        };
        if matches!(url.scheme(), "http" | "https") && is_private_literal(&url) {
            self.urls += 1;
            if self.first.is_empty() {
                self.first = shown_url(url.as_str());
            }
        }
    }
}

/// Why nobody asks them.
impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { urls, first } = self;
        let (what, are) = match urls {
            1 => ("URL", "is"),
            _ => ("URLs", "are"),
        };
        write!(
            f,
            "{urls} {what} {are} never asked: private addresses, such as {first}, need limits.allow_private"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_judged_by_their_names() {
        let mut private = Private::default();
        for url in [
            "http://example.com/",
            "http://user:secret@10.0.0.1/a",
            "https://[::1]/",
            "http://localhost:81/",
            "http://169.254.169.254/",
            "https://93.184.216.34/",
            "ftp://10.0.0.1/",
            "10.0.0.1",
        ] {
            private.look(url);
        }
        assert_eq!(private.urls, 4);
        let text = private.to_string();
        assert!(text.starts_with("4 URLs are never asked: "), "{text}");
        assert!(
            text.contains("10.0.0.1/a") && !text.contains("secret"),
            "{text}"
        );
    }
}
