//! TOML as far as it can be read, and the places of errors.

use toml::Spanned;
use toml::de::DeTable;

/// A place in a text. Both count from 1; columns are Unicode code points.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// The place of the byte with this index.
    pub(crate) fn of(text: &str, at: usize) -> Self {
        let before = String::from_utf8_lossy(&text.as_bytes()[..at.min(text.len())]);
        let last = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: last.chars().count() + 1,
        }
    }
}

/// The table of a text as far as it can be read, and what is malformed. What is read of a malformed line is a guess.
pub(crate) fn parse(text: &str) -> (Spanned<DeTable<'_>>, Vec<(Position, String)>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let errors = errors.into_iter().map(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (Position::of(text, at), error.message().to_owned())
    });
    let errors = errors.collect();
    (table, errors)
}
