//! What is wrong in a configuration, and where values come from.

use std::fmt;
use std::path::Path;

use crate::terminal;
use crate::toml_text::Position;

/// What is wrong in a configuration.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ConfigError {
    pub(super) place: Place,
    pub(super) why: String,
}

/// Where something stands.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Place {
    /// In the file.
    File(Position),
    /// In the environment variable with this name.
    Variable(String),
}

impl ConfigError {
    /// The line in the file, from 1; `None` for a variable of the environment.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::File(position) => Some(position.line),
            Place::Variable(_) => None,
        }
    }

    /// The column in the file, from 1, in Unicode code points; `None` for a variable of the environment.
    pub fn column(&self) -> Option<usize> {
        match self.place {
            Place::File(position) => Some(position.column),
            Place::Variable(_) => None,
        }
    }

    /// What is wrong. Never has a secret or a URL.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// `FILE:LINE:COLUMN: what is wrong`, safe to show on a terminal.
    pub fn shown(&self, file: &Path) -> String {
        let why = terminal::neutralise(&self.why);
        format!("{}: {why}", self.place.shown(file))
    }
}

/// Without the name of the file.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = terminal::neutralise(&self.why);
        match &self.place {
            Place::File(Position { line, column }) => write!(f, "{line}:{column}: {why}"),
            Place::Variable(name) => write!(f, "{name}: {why}"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Place {
    pub(super) fn shown(&self, file: &Path) -> String {
        match self {
            Self::File(Position { line, column }) => {
                let file = file.display().to_string();
                format!("{}:{line}:{column}", terminal::neutralise(&file))
            }
            Self::Variable(name) => format!("environment variable {name}"),
        }
    }
}
