//! What a mirror is about: the starts of its search, and what decides which files it finds. The record of a mirror belongs
//! to one search: what another one does not list is not gone.

use std::fmt;

use url::Url;

/// What decides which files a search finds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::find) struct About {
    /// The starts, sorted, with blanks between.
    pub(super) starts: String,
    /// The expression and the options.
    pub(super) words: String,
}

impl About {
    pub(in crate::find) fn new(starts: &[Url], words: &str) -> Self {
        let mut starts: Vec<&str> = starts.iter().map(Url::as_str).collect();
        starts.sort_unstable();
        starts.dedup();
        Self {
            starts: starts.join(" "),
            words: words.to_owned(),
        }
    }
}

/// The search of the record and that of the command, which differ.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) recorded: About,
    pub(super) given: About,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recorded, given } = self;
        f.write_str("the mirror of another search")?;
        let parts = [
            ("start", &recorded.starts, &given.starts),
            ("expression", &recorded.words, &given.words),
        ];
        for (what, recorded, given) in parts {
            if recorded != given {
                write!(
                    f,
                    "; its {what} is {}, not {}",
                    Shown(recorded),
                    Shown(given)
                )?;
            }
        }
        write!(f, "; {REMEDY}")
    }
}

/// What to do with a record that cannot be used.
pub(super) const REMEDY: &str = "give another folder, or remove this file: the files that are in the folder then are never deleted";

/// A text of any length for a message.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LONGEST) {
            _ if self.0.is_empty() => f.write_str("(none)"),
            Some((end, _)) => write!(f, "{}…", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}

/// The most characters of a text in a message.
const LONGEST: usize = 500;
