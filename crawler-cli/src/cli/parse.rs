//! The parser of all command lines. It finds the row of each option and calls what the row sets. The commands differ
//! in their [`Syntax`]: `get` reads options as curl does, `find` as find(1) does.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::vec;

use super::option::{Opt, Section, Set, Show};

/// The arguments of one command.
pub(crate) trait CommandLine: Sized + 'static {
    const SYNTAX: Syntax;
    /// The options, in the order of the help text.
    const TABLE: &'static [Section<Self>];

    /// Notes that an option was typed, by the last of its names in the table.
    fn note(&mut self, option: &'static str) {
        let _ = option;
    }

    /// Takes an argument that is no option.
    ///
    /// # Errors
    /// The argument means nothing here.
    fn operand(&mut self, operand: OsString) -> Result<(), UsageError>;

    /// Takes `word` if it is part of an expression, and the words that belong to it from `rest`. `false`: the word is
    /// none of the expression, and nothing was taken.
    ///
    /// # Errors
    /// The word is part of an expression, but not of a valid one.
    fn word(
        &mut self,
        word: &OsStr,
        rest: &mut dyn Iterator<Item = OsString>,
    ) -> Result<bool, UsageError> {
        let _ = (word, rest);
        Ok(false)
    }
}

/// How options are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syntax {
    /// After one dash stand options of one letter, the last perhaps with its value: `-sSo file`, `-XPOST`. Without
    /// this, one dash is as good as two (`-name`), and only a number may follow its letter at once (`-j8`).
    pub(crate) bundles: bool,
    /// `-` alone is an operand.
    pub(crate) dash: bool,
    /// `--name=value`
    pub(crate) equals: Equals,
    /// `--no-name` switches `--name` off.
    pub(crate) negation: bool,
}

/// What `=` may follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Equals {
    Nothing,
    /// The name of an option with a value, after two dashes.
    Options,
}

impl Syntax {
    pub(crate) const CURL: Self = Self {
        bundles: true,
        dash: false,
        equals: Equals::Nothing,
        negation: true,
    };
    pub(crate) const FIND: Self = Self {
        bundles: false,
        dash: true,
        equals: Equals::Options,
        negation: false,
    };
}

/// What is wrong with a command line. The text is what the user reads.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct UsageError(pub(crate) String);

impl<E: std::error::Error> From<E> for UsageError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Reads `words` into `args`. Returns the text that the user asked for, if any; what stands after that option is not
/// read.
///
/// # Errors
/// The first argument that means nothing.
pub(crate) fn parse<A: CommandLine>(
    args: &mut A,
    words: Vec<OsString>,
) -> Result<Option<Show>, UsageError> {
    let mut parser = Parser {
        args,
        words: words.into_iter(),
        only_operands: false,
    };
    while let Some(word) = parser.words.next() {
        if let Some(show) = parser.word(word)? {
            return Ok(Some(show));
        }
    }
    Ok(None)
}

/// All options of a command.
pub(crate) fn options<A: CommandLine>() -> impl Iterator<Item = &'static Opt<A>> {
    let sections = A::TABLE.iter();
    sections.flat_map(|section| section.options.iter().copied().flatten())
}

struct Parser<'a, A> {
    args: &'a mut A,
    /// The words that are not read yet.
    words: vec::IntoIter<OsString>,
    /// `--` was read.
    only_operands: bool,
}

type Step = Result<Option<Show>, UsageError>;

impl<A: CommandLine> Parser<'_, A> {
    fn word(&mut self, word: OsString) -> Step {
        if self.only_operands {
            return self.args.operand(word).map(|()| None);
        }
        if self.args.word(&word, &mut self.words)? {
            return Ok(None);
        }
        match word.as_bytes() {
            b"-" if !A::SYNTAX.dash => Err(unknown(b"-")),
            [b'-', letters @ ..] if A::SYNTAX.bundles && !letters.starts_with(b"-") => {
                match letters.is_empty() {
                    true => self.args.operand(word).map(|()| None),
                    false => self.bundle(letters),
                }
            }
            [b'-', _, ..] => self.name(word.as_bytes()),
            _ => self.args.operand(word).map(|()| None),
        }
    }

    /// A whole word that is the name of an option, perhaps with its value.
    fn name(&mut self, word: &[u8]) -> Step {
        if let Some(option) = find::<A>(word) {
            return self.apply(option, &shown(word), None, true);
        }
        if A::SYNTAX.negation
            && let Some(name) = word.strip_prefix(b"--no-")
            && let Some(option) = find::<A>(&[b"--", name].concat())
        {
            return match option.set {
                Set::Switch(_) => self.apply(option, &shown(word), None, false),
                _ => Err(wrong(&shown(word), "this option has no --no- form")),
            };
        }
        let attached = match word.iter().position(|&b| b == b'=') {
            Some(at) if A::SYNTAX.equals != Equals::Nothing && word.starts_with(b"--") => {
                Some((&word[..at], &word[at + 1..]))
            }
            _ if !A::SYNTAX.bundles && word.get(2).is_some_and(u8::is_ascii_digit) => {
                Some(word.split_at(2))
            }
            _ => None,
        };
        let (name, value) = attached.ok_or_else(|| unknown(word))?;
        let option = find::<A>(name).filter(|option| takes_attached::<A>(option));
        let option = option.ok_or_else(|| unknown(word))?;
        self.apply(option, &shown(name), Some(value), true)
    }

    /// Letters after one dash: options without values, and at most one with a value, which is the rest of the word or
    /// the next word.
    fn bundle(&mut self, letters: &[u8]) -> Step {
        for (at, &letter) in letters.iter().enumerate() {
            let name = [b'-', letter];
            let option = find::<A>(&name).ok_or_else(|| unknown(&name))?;
            let rest = &letters[at + 1..];
            if option.takes_value() {
                let attached = (!rest.is_empty()).then_some(rest);
                return self.apply(option, &shown(&name), attached, true);
            }
            if let Some(show) = self.apply(option, &shown(&name), None, true)? {
                return Ok(Some(show));
            }
        }
        Ok(None)
    }

    fn apply(&mut self, option: &Opt<A>, typed: &str, attached: Option<&[u8]>, on: bool) -> Step {
        let attached = attached.map(OsStr::from_bytes);
        if let Some(name) = option.row.names.last() {
            self.args.note(name);
        }
        match option.set {
            Set::Flag(set) => set(self.args),
            Set::Switch(set) => set(self.args, on),
            Set::Bytes(set) => {
                let value = self.value(typed, attached)?;
                let typed = with_value(option, typed, &value.to_string_lossy());
                set(self.args, value).map_err(|why| wrong(&typed, &why))?;
            }
            Set::Text(set) => {
                let value = text(self.value(typed, attached)?)?;
                set(self.args, &value)
                    .map_err(|why| wrong(&with_value(option, typed, &value), &why))?;
            }
            Set::Texts(set) => {
                let value = text(self.value(typed, attached)?)?;
                let mut next = || self.words.next().and_then(|word| word.into_string().ok());
                set(self.args, &value, &mut next)
                    .map_err(|why| wrong(&format!("{typed} {value}"), &why))?;
            }
            Set::Word => return Err(unknown(typed.as_bytes())),
            Set::Operands => self.only_operands = true,
            Set::Show(show) => return Ok(Some(show)),
        }
        Ok(None)
    }

    /// The value that is attached to an option, or else the next word.
    fn value(&mut self, typed: &str, attached: Option<&OsStr>) -> Result<OsString, UsageError> {
        let value = attached.map(OsStr::to_owned).or_else(|| self.words.next());
        value.ok_or_else(|| UsageError(format!("{typed} needs a value")))
    }
}

fn find<A: CommandLine>(name: &[u8]) -> Option<&'static Opt<A>> {
    options::<A>().find(|option| option.is_named(name))
}

/// Whether a value may stand in the same word as the name of the option.
fn takes_attached<A: CommandLine>(option: &Opt<A>) -> bool {
    match option.set {
        Set::Word | Set::Switch(_) => false,
        _ => option.takes_value(),
    }
}

fn unknown(word: &[u8]) -> UsageError {
    UsageError(format!("option {}: is unknown", shown(word)))
}

/// An option with its value, which is left out if it may be a credential.
fn with_value<A: CommandLine>(option: &Opt<A>, typed: &str, value: &str) -> String {
    let is = |name: &[u8]| option.is_named(name);
    let is_secret = match value.as_bytes() {
        [b'@', ..] => false,
        value if is(b"--cookie") => value.contains(&b'='),
        _ => SECRET.iter().any(|name| is(name)),
    };
    match is_secret {
        true => typed.to_owned(),
        false => format!("{typed} {value}"),
    }
}

/// Options whose values hold credentials, or may.
const SECRET: [&[u8]; 2] = [b"--user", b"--header"];

fn wrong(typed: &str, why: &str) -> UsageError {
    UsageError(format!("{typed}: {why}"))
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// # Errors
/// The word is not UTF-8.
pub(crate) fn text(word: OsString) -> Result<String, UsageError> {
    let lossy = |word: OsString| UsageError(format!("{}: not UTF-8", word.to_string_lossy()));
    word.into_string().map_err(lossy)
}
