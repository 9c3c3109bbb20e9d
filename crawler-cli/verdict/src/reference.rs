//! Where a URL is named.

use std::sync::Arc;

/// A place that refers to a URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// The file, as given on the command line with what is below it; or the URL of the page. `-` is standard input.
    pub source: Arc<str>,
    /// The line, from 1. `None` if the URL was given on the command line.
    pub line: Option<u32>,
    /// The column in Unicode code points, from 1: the first character of the attribute's raw value (HTML), of the link's
    /// `[`, `!` or `<` (Markdown), or of the URL.
    pub column: Option<u32>,
    /// The link as written, if it is resolved against a base and means a file of this machine.
    pub written: Option<String>,
    /// The text of the link; empty if there is none.
    pub text: String,
}
