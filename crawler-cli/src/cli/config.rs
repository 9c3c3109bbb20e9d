//! Options in a file: TOML whose keys are the names of options without the dashes.
//! option table of the command, so that every option can stand in a file.
//!
//! A flag takes `true` or `false`, an option with a value takes a text or a number, and an array stands for an option
//! that is given several times. An option with several values takes an array of these, or an array of such arrays.
//! Relative paths are relative to the folder of the file.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::DeValue;

use super::option::{Hint, Opt, Set};
use super::parse::{CommandLine, UsageError, options, set};
use crate::terminal;
use crate::toml_text::{self, Position};

/// Sets the options that the file at `path` names. `excluded` are long names that make no sense in a file.
///
/// # Errors
/// The file cannot be read, or something in it is wrong: all that is wrong, each with its line and column, one in a
/// line.
pub(crate) fn read<A: CommandLine>(
    args: &mut A,
    path: &Path,
    excluded: &[&str],
) -> Result<(), UsageError> {
    let name = path.display().to_string();
    let name = terminal::neutralise(&name);
    let text = fs::read(path).map_err(|error| UsageError(format!("{name}: {error}")))?;
    let text = String::from_utf8(text).map_err(|_| UsageError(format!("{name}: not UTF-8")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut file = File {
        args,
        folder,
        excluded,
        errors: Vec::new(),
    };
    file.read(&text);
    let mut errors = file.errors;
    if errors.is_empty() {
        return Ok(());
    }
    errors.sort();
    let lines = errors.iter().map(|error| {
        let Wrong { place, why } = error;
        let Position { line, column } = place;
        format!("{name}:{line}:{column}: {}", terminal::neutralise(why))
    });
    Err(UsageError(lines.collect::<Vec<_>>().join("\n")))
}

/// A file that is read.
struct File<'f, A> {
    args: &'f mut A,
    /// Its folder.
    folder: &'f Path,
    excluded: &'f [&'f str],
    errors: Vec<Wrong>,
}

/// What is wrong at a place.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Wrong {
    place: Position,
    why: String,
}

impl<A: CommandLine> File<'_, A> {
    fn read(&mut self, text: &str) {
        let (table, malformed) = toml_text::parse(text);
        let lines: Vec<usize> = malformed.iter().map(|(place, _)| place.line).collect();
        let malformed = malformed
            .into_iter()
            .map(|(place, why)| Wrong { place, why });
        self.errors.extend(malformed);
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            if let Err((span, why)) = self.entry(key, value) {
                let place = Position::of(text, span.start);
                // What is read of a malformed line is a guess.
                if !lines.contains(&place.line) {
                    self.errors.push(Wrong { place, why });
                }
            }
        }
    }

    fn entry(
        &mut self,
        key: &Spanned<impl AsRef<str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), (Range<usize>, String)> {
        let name = key.get_ref().as_ref().replace('_', "-");
        let Some(option) = self.option(&name) else {
            let why = self.unknown(key.get_ref().as_ref(), &name);
            return Err((key.span(), why));
        };
        let uses = uses(option, value).map_err(|why| (value.span(), format!("{name}: {why}")))?;
        for values in uses {
            let values = self.values(option, values);
            set(self.args, option, &name, values).map_err(|error| (value.span(), error.0))?;
        }
        Ok(())
    }

    /// The option with this name: a long one, or the letter of a short one.
    fn option(&self, name: &str) -> Option<&'static Opt<A>> {
        // An option such as -j has no long name.
        let dashes = if name.len() == 1 { "-" } else { "--" };
        let long = format!("{dashes}{name}");
        let is_settable = |option: &&Opt<A>| {
            !self.excluded.contains(&long.as_str())
                && !matches!(option.set, Set::Word | Set::Operands | Set::Show(_))
        };
        let option = options::<A>().find(|option| option.is_named(long.as_bytes()));
        option.filter(is_settable)
    }

    fn unknown(&self, key: &str, name: &str) -> String {
        let names = options::<A>().flat_map(|option| option.row.names);
        let names = names.filter_map(|name| name.strip_prefix("--"));
        let names: Vec<&str> = names.filter(|name| self.option(name).is_some()).collect();
        match toml_text::nearest(name, &names) {
            Some(near) => format!("{key}: there is no such option; did you mean {near}?"),
            None => format!("{key}: there is no such option"),
        }
    }

    /// The values as they would be typed.
    fn values(&self, option: &Opt<A>, values: Vec<String>) -> Vec<OsString> {
        let mut kinds = option.row.values.iter();
        let values = values.into_iter().map(|value| {
            let is_file = kinds
                .next()
                .is_some_and(|kind| matches!(kind.hint, Hint::File));
            match is_file && value != "-" {
                true => self.folder.join(value).into(),
                false => value.into(),
            }
        });
        values.collect()
    }
}

/// The values of each use of the option that a value of TOML stands for.
fn uses<A>(option: &Opt<A>, value: &Spanned<DeValue<'_>>) -> Result<Vec<Vec<String>>, String> {
    let value = value.get_ref();
    if !option.takes_value() {
        return match (value.as_bool(), &option.set) {
            (Some(true), _) => Ok(vec![vec![]]),
            // An option without a value is off unless it is given.
            (Some(false), _) => Ok(vec![]),
            (None, _) => Err("neither true nor false".to_owned()),
        };
    }
    let several = option.row.values.len() > 1;
    let one = |value: &Spanned<DeValue<'_>>| match value.get_ref().as_array() {
        Some(values) if several => values.iter().map(|value| scalar(value.get_ref())).collect(),
        _ => scalar(value.get_ref()).map(|text| vec![text]),
    };
    match value.as_array() {
        None => Ok(vec![vec![scalar(value)?]]),
        Some(values) if several && !values.iter().any(|value| value.get_ref().is_array()) => {
            let values = values.iter().map(|value| scalar(value.get_ref()));
            Ok(vec![values.collect::<Result<_, _>>()?])
        }
        Some(values) => values.iter().map(one).collect(),
    }
}

/// The text of a value.
fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|error| error.to_string()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Datetime(time) => Ok(time.to_string()),
        DeValue::Boolean(_) => Err("needs a value, not true or false".to_owned()),
        DeValue::Array(_) => Err("an array within an array".to_owned()),
        DeValue::Table(_) => Err("an option, not a table".to_owned()),
    }
}
