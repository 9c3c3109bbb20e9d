//! What all readers of TOML files share: the places of errors, and names that are nearly right.

use toml::Spanned;
use toml::de::DeTable;

/// A place in a text. Both count from 1; columns are Unicode code points.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
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

/// The name that a misspelled one is for.
pub(crate) fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    similar::get_close_matches(name, names, 1, SIMILAR)
        .first()
        .copied()
}

/// How similar a name has to be to be offered, from 0 to 1.
const SIMILAR: f32 = 0.6;
