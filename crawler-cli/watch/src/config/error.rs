//! What is wrong in a configuration, and where values come from.

use std::fmt;
use std::path::Path;

use crate::config::toml_text::Position;
use plain::terminal;

/// What is wrong in a configuration.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ConfigError {
    pub(super) place: Position,
    pub(super) why: String,
}

impl ConfigError {
    /// The line in the file, from 1.
    pub fn line(&self) -> usize {
        self.place.line
    }

    /// The column in the file, from 1, in Unicode code points.
    pub fn column(&self) -> usize {
        self.place.column
    }

    /// What is wrong. Never has a secret or a URL.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// `FILE:LINE:COLUMN: what is wrong`, safe to show on a terminal.
    pub fn shown(&self, file: &Path) -> String {
        let why = terminal::neutralise(&self.why);
        format!("{}: {why}", shown(self.place, file))
    }
}

/// Without the name of the file.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.place;
        write!(f, "{line}:{column}: {}", terminal::neutralise(&self.why))
    }
}

impl std::error::Error for ConfigError {}

/// `FILE:LINE:COLUMN`
pub(super) fn shown(Position { line, column }: Position, file: &Path) -> String {
    let file = file.display().to_string();
    format!("{}:{line}:{column}", terminal::neutralise(&file))
}
