//! The rows of a command's option table. One row describes one option: its names, its values, its help text and what
//! it sets. The parser, the help texts, the man page and the completions are all made from these rows, so that they
//! cannot disagree.

use std::ffi::OsString;

/// One option of a command whose arguments are collected in `A`, or one word of an expression.
pub(crate) struct Opt<A: 'static> {
    pub(crate) row: Row,
    pub(crate) set: Set<A>,
}

/// What the texts say about an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The spellings of the option, dashes included.
    pub(crate) names: &'static [&'static str],
    pub(crate) values: &'static [Value],
    /// What the option does, in one line of at most 60 characters.
    pub(crate) short: &'static str,
    /// The full description, for `--help` and the man page: one paragraph in each line. Empty if `short` says all.
    pub(crate) long: &'static str,
    /// The value that holds without the option; empty if there is none.
    pub(crate) default: &'static str,
    /// Environment variables that are used without the option.
    pub(crate) env: &'static [&'static str],
}

/// A value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub(crate) name: &'static str,
    pub(crate) hint: Hint,
}

/// What a shell can offer for a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hint {
    Nothing,
    File,
    OneOf(&'static [&'static str]),
}

/// What an option does to the arguments `A`. An error says what is wrong with the value; the parser adds the option
/// and the value.
pub(crate) enum Set<A> {
    /// An option without a value.
    Flag(fn(&mut A)),
    /// An option without a value that can also be switched off.
    Switch(fn(&mut A, bool)),
    /// An option with a value of any bytes.
    Bytes(fn(&mut A, OsString) -> Result<(), String>),
    /// An option with a value that is text.
    Text(fn(&mut A, &str) -> Result<(), String>),
    /// An option with a text that may take further values.
    Texts(fn(&mut A, &str, Next<'_>) -> Result<(), String>),
    /// A word of an expression. The parser of expressions reads the word; the row is for the texts.
    Word,
    /// `--`: all arguments after it are operands.
    Operands,
    /// An option that prints a text instead of running the command.
    Show(Show),
}

/// Takes another value, if there is one.
pub(crate) type Next<'n> = &'n mut dyn FnMut() -> Option<String>;

/// The texts about a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Show {
    ShortHelp,
    LongHelp,
    Man,
    Version,
}

/// Options under one heading of the help text.
pub(crate) struct Section<A: 'static> {
    pub(crate) heading: &'static str,
    /// Several slices, because some options belong to one command and some are shared.
    pub(crate) options: &'static [&'static [Opt<A>]],
}

impl<A> Opt<A> {
    pub(crate) const fn flag(names: &'static [&'static str], set: fn(&mut A)) -> Self {
        Self::new(names, &[], Set::Flag(set))
    }

    pub(crate) const fn switch(names: &'static [&'static str], set: fn(&mut A, bool)) -> Self {
        Self::new(names, &[], Set::Switch(set))
    }

    pub(crate) const fn bytes(
        names: &'static [&'static str],
        values: &'static [Value],
        set: fn(&mut A, OsString) -> Result<(), String>,
    ) -> Self {
        Self::new(names, values, Set::Bytes(set))
    }

    pub(crate) const fn text(
        names: &'static [&'static str],
        values: &'static [Value],
        set: fn(&mut A, &str) -> Result<(), String>,
    ) -> Self {
        Self::new(names, values, Set::Text(set))
    }

    pub(crate) const fn show(names: &'static [&'static str], show: Show) -> Self {
        Self::new(names, &[], Set::Show(show))
    }

    pub(crate) const fn new(
        names: &'static [&'static str],
        values: &'static [Value],
        set: Set<A>,
    ) -> Self {
        let row = Row {
            names,
            values,
            short: "",
            long: "",
            default: "",
            env: &[],
        };
        Self { row, set }
    }

    /// Sets the one line about the option.
    pub(crate) const fn short(mut self, text: &'static str) -> Self {
        self.row.short = text;
        self
    }

    /// Sets the full description.
    pub(crate) const fn long(mut self, text: &'static str) -> Self {
        self.row.long = text;
        self
    }

    pub(crate) const fn default(mut self, value: &'static str) -> Self {
        self.row.default = value;
        self
    }

    pub(crate) const fn env(mut self, variables: &'static [&'static str]) -> Self {
        self.row.env = variables;
        self
    }

    /// Whether one of the names is spelled so.
    pub(super) fn is_named(&self, name: &[u8]) -> bool {
        self.row.names.iter().any(|n| n.as_bytes() == name)
    }

    pub(super) fn takes_value(&self) -> bool {
        !self.row.values.is_empty()
    }
}

impl Row {
    /// `-x, --proxy URL`
    pub(crate) fn signature(&self) -> String {
        let mut text = self.names.join(", ");
        for value in self.values {
            text.push(' ');
            text.push_str(value.name);
        }
        text
    }
}

pub(crate) const fn any(name: &'static str) -> Value {
    Value {
        name,
        hint: Hint::Nothing,
    }
}

pub(crate) const fn file(name: &'static str) -> Value {
    Value {
        name,
        hint: Hint::File,
    }
}

pub(crate) const fn one_of(name: &'static str, values: &'static [&'static str]) -> Value {
    Value {
        name,
        hint: Hint::OneOf(values),
    }
}
