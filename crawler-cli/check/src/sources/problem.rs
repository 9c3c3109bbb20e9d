//! What is wrong with a source.

use std::fmt;
use std::sync::Arc;

/// What went wrong with a source. The rest of the sources is read nevertheless.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The file or folder, as a [`Reference`](verdict::Reference) names its source; `-` is standard input.
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
