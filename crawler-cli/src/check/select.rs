//! Which URLs are checked, and what they are replaced with: `--include`, `--exclude`, `--scheme` and `--remap`. The rules
//! are those of lychee.

use regex::Regex;
use url::Url;

/// Which URLs are checked. The default checks all URLs that can be.
///
/// - A URL is remapped first: the first rule whose pattern matches replaces each match.
/// - With schemes, URLs of other schemes are left out.
/// - A URL that an include pattern matches is checked, even if an exclude pattern matches, too.
/// - A URL that an exclude pattern matches is left out.
/// - With include patterns alone, URLs that none of them matches are left out.
///
/// Patterns are searched anywhere in the URL as it is asked, fragment included.
///
/// ```
/// use crawler_cli::check::select::{Remap, Selection};
/// use regex::Regex;
/// use url::Url;
///
/// let selection = Selection {
///     exclude: vec![Regex::new(r"/drafts/")?],
///     remap: vec![r"https://example\.com(.*) http://127.0.0.1:8000$1".parse()?],
///     ..Selection::default()
/// };
/// let url = selection.remapped(Url::parse("https://example.com/a")?)?;
/// assert_eq!(url.as_str(), "http://127.0.0.1:8000/a");
/// assert!(selection.checks(&url));
/// assert!(!selection.checks(&Url::parse("https://example.com/drafts/1")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// What is checked in any case; without exclude patterns, nothing else is.
    pub include: Vec<Regex>,
    /// What is not checked.
    pub exclude: Vec<Regex>,
    /// The schemes that are checked, in lower case. Empty: `http`, `https` and `file`.
    pub schemes: Vec<String>,
    /// What URLs are replaced with before they are asked. They are reported as they were given.
    pub remap: Vec<Remap>,
}

/// A rule of `--remap`: a pattern, and what replaces each match.
#[derive(Clone, Debug)]
pub struct Remap {
    pattern: Regex,
    replacement: String,
}

/// A URL cannot be asked, because `--remap` makes something of it that is no URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RemapError {
    /// What the rule makes of the URL.
    pub text: String,
    /// Why this is no URL.
    pub error: url::ParseError,
}

impl Selection {
    /// The URL that is asked instead of `url`: `url` itself, unless a rule of `--remap` matches.
    ///
    /// # Errors
    /// The rule makes something of the URL that is no URL.
    pub fn remapped(&self, url: Url) -> Result<Url, RemapError> {
        let applies = |remap: &&Remap| remap.pattern.is_match(url.as_str());
        let Some(remap) = self.remap.iter().find(applies) else {
            return Ok(url);
        };
        let text = remap
            .pattern
            .replace_all(url.as_str(), remap.replacement.as_str());
        Url::parse(&text).map_err(|error| RemapError {
            text: text.clone().into_owned(),
            error,
        })
    }

    /// Whether this URL, after [`remapped`](Self::remapped), is checked.
    pub fn checks(&self, url: &Url) -> bool {
        let scheme_is_checked =
            self.schemes.is_empty() || self.schemes.iter().any(|scheme| scheme == url.scheme());
        scheme_is_checked && self.checks_text(url.as_str())
    }

    /// Whether what is no valid URL is reported.
    pub fn checks_text(&self, text: &str) -> bool {
        let matches = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(text));
        match (self.include.is_empty(), self.exclude.is_empty()) {
            (true, true) => true,
            (false, true) => matches(&self.include),
            (_, false) => matches(&self.include) || !matches(&self.exclude),
        }
    }
}

impl std::str::FromStr for Remap {
    type Err = String;

    /// Reads `PATTERN REPLACEMENT`, with blanks between them. `$1` or `${name}` in the replacement is a group of the
    /// pattern.
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[pattern, replacement] = words.as_slice() else {
            return Err("not a pattern and a replacement with a blank between them".to_owned());
        };
        Ok(Self {
            pattern: Regex::new(pattern).map_err(|error| error.to_string())?,
            replacement: replacement.to_owned(),
        })
    }
}

impl std::fmt::Display for RemapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--remap makes {} of it: {}", self.text, self.error)
    }
}

impl std::error::Error for RemapError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Regex> {
        let compile = |text: &&str| Regex::new(text).expect("valid");
        texts.iter().map(compile).collect()
    }

    fn url(text: &str) -> Url {
        Url::parse(text).expect("valid")
    }

    #[test]
    fn include_and_exclude_work_as_in_lychee() {
        // Include patterns, exclude patterns, and which of the URLs a and b are checked.
        let table: [(&[&str], &[&str], &str); 6] = [
            (&[], &[], "ab"),
            (&["/a"], &[], "a"),
            (&[], &["/a"], "b"),
            (&["/a"], &["/a", "/b"], "a"),
            (&["/a"], &["/c"], "ab"),
            (&["/a"], &["."], "a"),
        ];
        for (include, exclude, checked) in table {
            let selection = Selection {
                include: patterns(include),
                exclude: patterns(exclude),
                ..Selection::default()
            };
            for name in ["a", "b"] {
                let checks = selection.checks(&url(&format!("http://x/{name}")));
                assert_eq!(checks, checked.contains(name), "{include:?} {exclude:?}");
            }
        }
    }

    #[test]
    fn other_schemes_are_left_out() {
        let selection = Selection {
            schemes: vec!["https".to_owned()],
            ..Selection::default()
        };
        assert!(selection.checks(&url("HTTPS://x/")));
        assert!(!selection.checks(&url("http://x/")));
        assert!(!selection.checks(&url("file:///x")));
    }
}
