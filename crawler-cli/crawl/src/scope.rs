//! Decides which URLs belong to a crawl. Pure.
//!
//! These are the URLs at or below the directory of a start, on its host. Every URL from a page or a redirect
//! is checked here before it is requested.

use std::collections::{HashMap, HashSet};
use std::fmt;

use url::{Host, Url};

use listing::path;

/// The scope of a crawl.
///
/// ```
/// use crawl::scope::{Outside, Scope};
///
/// let mut scope = Scope::new();
/// scope.start(&"http://mirror.example/pub/".parse()?);
/// assert_eq!(scope.judge(&"http://mirror.example/pub/a.iso".parse()?), Ok(()));
/// assert_eq!(scope.judge(&"http://mirror.example/".parse()?), Err(Outside::Above));
/// assert_eq!(scope.judge(&"http://other.example/pub/".parse()?), Err(Outside::Host));
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The directories of the starts on each host, canonical and ending in `/`.
    starts: HashMap<Origin, HashSet<String>>,
}

/// Why a URL is outside the scope.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outside {
    /// Its scheme is neither `http` nor `https`.
    Scheme,
    /// It is on another host.
    Host,
    /// It is on the host of a start, but not below the start.
    Above,
}

impl Scope {
    /// An empty scope.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds everything at or below the directory of this URL: `/a/` for `http://h/a/b.html`. A start with `http` also
    /// covers `https` on the same host, both at their default ports, because many servers redirect to `https`.
    pub fn start(&mut self, url: &Url) {
        let path = path::canonical(url.path());
        if let Some(origin) = origin(url)
            && let Some(directory) = path::directories(&path).next()
        {
            let starts = self.starts.entry(origin).or_default();
            starts.insert(directory.to_owned());
        }
    }

    /// Checks a URL.
    ///
    /// # Errors
    /// Why the URL is outside the scope.
    pub fn judge(&self, url: &Url) -> Result<(), Outside> {
        if !is_web(url) {
            return Err(Outside::Scheme);
        }
        if self.starts_on_host(url).next().is_none() {
            return Err(Outside::Host);
        }
        match self.start_above(url) {
            Some(_) => Ok(()),
            None => Err(Outside::Above),
        }
    }

    /// Like [`judge`](Self::judge), for the target of a redirect of a file: it may be anywhere on the host of a start.
    ///
    /// # Errors
    /// Why the URL is outside the scope.
    pub fn judge_redirect(&self, url: &Url) -> Result<(), Outside> {
        match self.judge(url) {
            Err(Outside::Above) => Ok(()),
            judged => judged,
        }
    }

    /// The directory below which links from a URL in the scope may lead on the same host: the directory of its start,
    /// or `/` on a host without starts.
    pub fn root(&self, url: &Url) -> &str {
        self.start_above(url).unwrap_or("/")
    }

    /// All such directories on the host of a URL in the scope, sorted.
    pub fn roots(&self, url: &Url) -> Vec<&str> {
        let starts = self.starts_on_host(url).flatten();
        let mut roots: Vec<&str> = starts.map(String::as_str).collect();
        if roots.is_empty() {
            roots.push("/");
        }
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// The directory of the innermost start that contains the URL.
    fn start_above(&self, url: &Url) -> Option<&str> {
        let path = path::canonical(url.path());
        if path.split('/').any(|segment| segment == "..") {
            return None;
        }
        let on_host: Vec<_> = self.starts_on_host(url).collect();
        path::directories(&path).find_map(|directory| {
            let mut starts = on_host.iter();
            starts.find_map(|starts| starts.get(directory).map(String::as_str))
        })
    }

    fn starts_on_host(&self, url: &Url) -> impl Iterator<Item = &HashSet<String>> {
        let own = origin(url);
        let plain = match &own {
            Some((scheme, host, Some(443))) if scheme == "https" => {
                Some(("http".to_owned(), host.clone(), Some(80)))
            }
            _ => None,
        };
        let origins = own.into_iter().chain(plain);
        origins.filter_map(|origin| self.starts.get(&origin))
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "neither http nor https",
            Self::Host => "on another host",
            Self::Above => "not below a start",
        })
    }
}

impl std::error::Error for Outside {}

/// Scheme, host and port (the default port of the scheme if the URL has none).
type Origin = (String, Host<String>, Option<u16>);

fn origin(url: &Url) -> Option<Origin> {
    let host = url.host()?.to_owned();
    Some((url.scheme().to_owned(), host, url.port_or_known_default()))
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn scope(start: &str) -> Scope {
        let mut scope = Scope::new();
        scope.start(&url(start));
        scope
    }

    #[test]
    fn a_crawl_stays_below_its_start() {
        const START: &str = "http://h/a%7Eb/c/index.html";
        for (start, link, verdict) in [
            (START, "http://h/a~b/c/", Ok(())),
            (START, "http://H:80/a%7eb/c/d/e?x#y", Ok(())),
            (START, "http://user@h/a~b/c/d", Ok(())),
            (START, "http://h/a~b/c/d/..", Ok(())),
            (START, "http://h/a~b/c", Err(Outside::Above)),
            (START, "http://h/a~b/cd/", Err(Outside::Above)),
            (START, "http://h/a~b/c/%2e%2e/x", Err(Outside::Above)),
            (START, "http://h/A~b/c/", Err(Outside::Above)),
            (START, "http://h:8080/a~b/c/", Err(Outside::Host)),
            (START, "http://h.x/a~b/c/", Err(Outside::Host)),
            (START, "http://h@evil/a~b/c/", Err(Outside::Host)),
            (START, "ftp://h/a~b/c/", Err(Outside::Scheme)),
            (START, "javascript:void(0)", Err(Outside::Scheme)),
            // TLS in place of none is the same host, but not the other way round.
            ("http://h/a/", "https://h/a/b", Ok(())),
            ("http://h/a/", "https://h:444/a/b", Err(Outside::Host)),
            ("https://h/a/", "http://h/a/b", Err(Outside::Host)),
            ("http://h:81/a/", "https://h/a/b", Err(Outside::Host)),
        ] {
            assert_eq!(scope(start).judge(&url(link)), verdict, "{link}");
        }
    }

    #[test]
    fn the_roots_of_a_host_are_those_of_its_starts() {
        let mut scope = scope("http://h/a/");
        scope.start(&url("https://h/b/c/"));
        scope.start(&url("http://h/a/x"));
        for (on, roots) in [
            ("http://h/a/", &["/a/"][..]),
            ("https://h/a/", &["/a/", "/b/c/"]),
            ("http://h:81/", &["/"]),
            ("http://i/x/", &["/"]),
        ] {
            assert_eq!(scope.roots(&url(on)), roots, "{on}");
        }
        assert_eq!(scope.root(&url("https://h/a/x/y")), "/a/");
        assert_eq!(scope.root(&url("http://i/a/")), "/");
    }
}
