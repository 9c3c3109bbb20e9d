//! What the texts say about one command: its purpose, its options, its exit statuses and its examples.

use super::option::{Row, Section};
use super::parse::CommandLine;

/// The manual of a command, as data. [`help`](super::help), [`man`](super::man) and
/// [`completions`](super::completions) write texts from it.
pub(crate) struct Manual {
    pub(crate) name: &'static str,
    /// What the command does, as a phrase without a full stop.
    pub(crate) about: &'static str,
    /// What stands after the name of the command: a line for each way to call it.
    pub(crate) usage: &'static str,
    /// One paragraph in each line.
    pub(crate) description: &'static str,
    pub(crate) sections: Vec<(&'static str, Vec<Row>)>,
    /// Further headings, each with paragraphs.
    pub(crate) notes: &'static [(&'static str, &'static str)],
    /// Exit statuses and what they mean.
    pub(crate) statuses: &'static [(&'static str, &'static str)],
    /// Command lines, each with what it is for.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    pub(crate) see_also: &'static [&'static str],
    /// The operands that a shell can offer.
    pub(crate) operands: &'static [&'static str],
    /// Whether operands can be files.
    pub(crate) takes_files: bool,
}

impl Manual {
    /// A manual that has the options of a command and no text yet.
    pub(crate) fn of<A: CommandLine>(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            usage: "[OPTION...]",
            description: "",
            sections: A::TABLE.iter().map(section).collect(),
            notes: &[],
            statuses: &[],
            examples: &[],
            see_also: &[],
            operands: &[],
            takes_files: false,
        }
    }

    /// The ways to call the command.
    pub(crate) fn usages(&self) -> impl Iterator<Item = &'static str> {
        self.usage.lines()
    }

    /// All rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|(_, rows)| rows)
    }
}

/// What a `TIME` in the texts is.
pub(crate) const TIMES: (&str, &str) = (
    "Times",
    "A TIME is a number, perhaps with a fraction, and a unit: ms, s, m, h or d. Without a unit, it is in seconds.",
);

fn section<A>(section: &Section<A>) -> (&'static str, Vec<Row>) {
    let options = section.options.iter().copied().flatten();
    (section.heading, options.map(|option| option.row).collect())
}
