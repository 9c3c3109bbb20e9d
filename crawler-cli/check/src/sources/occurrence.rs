//! What a source refers to, and what is wrong with a source.

use std::fmt;
use std::sync::Arc;

use url::Url;

use verdict::{Reference, Verdict};

/// A place that refers to a URL.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// The URL as given, or as resolved against its base, fragment included.
    pub spelling: Box<str>,
    /// What is to be asked, or what is known already.
    pub target: Target,
    /// The place.
    pub reference: Reference,
    /// Whether the URL was named by the user, a list of URLs or a local file: `Disallow` of robots.txt does not apply,
    /// and a private address may be asked.
    pub given: bool,
}

/// What a reference means.
#[derive(Clone, Debug)]
pub enum Target {
    /// A URL with the scheme http or https, to be asked. [`Selection`](crate::select::Selection) was applied.
    Ask(Url),
    /// Judged without a request: a file on the disk, or a URL that is not valid. The text says more about the cause.
    Local(Verdict, Option<String>),
}

/// What went wrong with a source. The rest of the sources is read nevertheless.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The file or folder, as a [`Reference`] names its source; `-` is standard input.
    pub source: Arc<str>,
    /// The line, from 1, if the problem has one.
    pub line: Option<u32>,
    /// What went wrong.
    pub kind: ProblemKind,
    /// What went wrong, in words.
    pub detail: String,
}

/// Kinds of [`Problem`]s.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ProblemKind {
    /// The file or folder cannot be read.
    Unreadable,
    /// The file ends too early: a sitemap or gzip data that is cut.
    Cut,
    /// The file, unpacked if it is compressed, or one of its lines is longer than the limit.
    TooLong,
    /// A line is not what it should be: not JSON, or without the field that has the URL.
    Malformed,
    /// Something is strange, and nothing is missing.
    Note,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.source, self.detail),
            None => write!(f, "{}: {}", self.source, self.detail),
        }
    }
}
