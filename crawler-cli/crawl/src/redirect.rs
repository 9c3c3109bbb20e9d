//! Chains of redirects (RFC 9110 §15.4): loops, and what is permanent. What redirects, and where, the engine says.

use std::fmt;

use courser::proto::resolve;
use url::{Position, Url};

use plain::redirect::Redirect;

/// The redirects that were followed from a URL.
///
/// ```
/// use crawl::redirect::Chain;
///
/// let start = "http://example.com/old/page#part".parse()?;
/// let mut chain = Chain::new(&start);
/// chain.follow(301, Some(b"/new/page"), 10, false).expect("a redirect");
/// assert_eq!(chain.moved_to(), Some("http://example.com/new/page"));
/// chain.follow(302, Some(b"/"), 10, false).expect("a redirect");
/// assert_eq!(chain.moved_to(), None);
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chain {
    start: Url,
    /// The URL of the last redirect, without fragment.
    url: Url,
    redirects: Vec<Redirect>,
    /// How many redirects were followed when the last cookie came.
    cookie_at: Option<usize>,
    is_permanent: bool,
}

/// Why a redirect was not followed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NotFollowed {
    /// There is no `Location`.
    NoLocation,
    /// `Location` has this value, which leads to no http or https URL.
    BadLocation(String),
    /// The redirect leads to this URL, which was asked before.
    Loop(String),
    /// There were so many redirects already.
    TooMany(u32),
}

impl fmt::Display for NotFollowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLocation => f.write_str("redirects without a usable Location"),
            Self::BadLocation(value) => {
                write!(
                    f,
                    "redirects to {value:?}, which is no usable http or https URL"
                )
            }
            Self::Loop(url) => write!(f, "redirects to {url} again"),
            Self::TooMany(limit) => write!(f, "more than {limit} redirects"),
        }
    }
}

impl Chain {
    /// No redirects yet.
    pub fn new(start: &Url) -> Self {
        let mut start = start.clone();
        start.set_fragment(None);
        Self {
            url: start.clone(),
            start,
            redirects: Vec::new(),
            cookie_at: None,
            is_permanent: true,
        }
    }

    /// Follows a redirect: the answer with this status and this `Location` to the URL of the chain. At most `limit`
    /// redirects are followed. `may_repeat`: the same URL may have another answer now, because the answer may have
    /// set a cookie.
    ///
    /// # Errors
    /// The redirect cannot be followed, or is not to be followed. A redirect that closes a loop becomes part of the
    /// chain.
    pub fn follow(
        &mut self,
        status: u16,
        location: Option<&[u8]>,
        limit: u32,
        may_repeat: bool,
    ) -> Result<(), NotFollowed> {
        let mut to = target(&self.url, location)?;
        let spelling = String::from(to.clone());
        to.set_fragment(None);
        // What was asked before the last cookie may have another answer with it.
        if may_repeat {
            self.cookie_at = Some(self.redirects.len());
        }
        let since = self.redirects.iter().skip(self.cookie_at.unwrap_or(0));
        let is_start = self.cookie_at.is_none() && to == self.start;
        let is_known = is_start || since.into_iter().any(|old| leads_to(old, &to));
        if !is_known && self.redirects.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(NotFollowed::TooMany(limit));
        }
        self.redirects.push(Redirect {
            status,
            url: spelling,
        });
        if is_known {
            return Err(NotFollowed::Loop(to.into()));
        }
        self.is_permanent &= matches!(status, 301 | 308);
        self.url = to;
        Ok(())
    }

    /// The URL to ask, without fragment.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The redirects, in order.
    pub fn redirects(&self) -> &[Redirect] {
        &self.redirects
    }

    /// Where the URL has moved to, if all redirects were permanent and the last answer is good. With the fragment of the
    /// last redirect that names one.
    pub fn moved_to(&self) -> Option<&str> {
        let last = self.redirects.last()?;
        let has_moved = self.is_permanent && !leads_to(last, &self.start);
        has_moved.then_some(&*last.url)
    }
}

fn leads_to(redirect: &Redirect, url: &Url) -> bool {
    let without = redirect.url.split('#').next();
    without == Some(&url[..Position::AfterQuery])
}

/// The URL to which a `Location` leads, as the engine reads it. User name and password in it are neither used nor shown.
///
/// # Errors
/// There is none, or it leads to no http or https URL.
pub fn target(from: &Url, location: Option<&[u8]>) -> Result<Url, NotFollowed> {
    let location = location.ok_or(NotFollowed::NoLocation)?;
    let resolved = match location.len() {
        ..=LONGEST => resolve(from.as_str(), location).ok(),
        _ => None,
    };
    let target = resolved.filter(|url| url.len() <= LONGEST);
    let target = target.and_then(|url| Url::parse(&url).ok());
    let mut target = target.ok_or_else(|| NotFollowed::BadLocation(excerpt(location)))?;
    // The setters fail only for URLs without a host.
    let _ = target.set_username("");
    let _ = target.set_password(None);
    Ok(target)
}

/// The beginning of a value, for messages.
fn excerpt(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

/// The longest URL, in bytes, to which a redirect is followed.
const LONGEST: usize = 8 * 1024;

/// The most characters of a `Location` in a message.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    /// The chain after these redirects.
    fn chain(start: &str, redirects: &[(u16, &str)]) -> Chain {
        let mut chain = Chain::new(&url(start));
        for (status, location) in redirects {
            chain
                .follow(*status, Some(location.as_bytes()), 10, false)
                .expect("a redirect");
        }
        chain
    }

    #[test]
    fn permanent_only_if_all_were() {
        let moved = |redirects: &[(u16, &str)]| {
            let chain = chain("http://a/x/y", redirects);
            chain.moved_to().map(str::to_owned)
        };
        assert_eq!(moved(&[]), None);
        assert_eq!(moved(&[(301, "/b")]).as_deref(), Some("http://a/b"));
        let across = [(301, "https://b/"), (308, "c#d")];
        assert_eq!(moved(&across).as_deref(), Some("https://b/c#d"));
        for temporary in [302, 303, 307] {
            assert_eq!(moved(&[(301, "/b"), (temporary, "/c")]), None);
            assert_eq!(moved(&[(temporary, "/b"), (301, "/c")]), None);
        }
    }

    #[test]
    fn only_short_http_urls_are_followed_and_without_credentials() {
        let to = |location| {
            let to = target(&url("http://a/b/c?d"), location);
            to.map(String::from)
        };
        assert_eq!(to(None), Err(NotFollowed::NoLocation));
        let secret = to(Some(b"//user:secret@f/\xe9#g"));
        assert_eq!(secret.as_deref(), Ok("http://f/%E9#g"));
        for location in [&b"http://"[..], b"ftp://f/", &[b'a'; LONGEST + 1]] {
            let refused = to(Some(location));
            assert!(matches!(refused, Err(NotFollowed::BadLocation(_))));
        }
    }
}
