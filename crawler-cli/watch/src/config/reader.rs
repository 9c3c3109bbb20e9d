//! Reads tables by their rows of keys. All that is wrong is collected.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::toml_text::{self, Position};
use plain::text::nearest;

/// One key of a table whose values are collected in `T`.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    /// What the key means, in whole sentences.
    pub(super) doc: &'static str,
    /// The values that are allowed.
    pub(super) allowed: &'static str,
    /// A value for the example, if the key has no default.
    pub(super) sample: &'static str,
    pub(super) is_required: bool,
    pub(super) read: fn(&mut T, &mut Reader<'_>, &Spanned<DeValue<'_>>),
    /// The value as TOML; `None` if the key is not set.
    pub(super) show: fn(&T) -> Option<String>,
}

/// How the values of a key are read and shown.
pub(super) trait Kind {
    type Value;
    /// The values that are allowed, for errors and the example.
    const ALLOWED: &'static str;

    /// Reads a value. What is wrong goes to the reader.
    fn read(into: &mut Self::Value, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>);

    /// The value as TOML; `None` if the key is not set.
    fn show(value: &Self::Value) -> Option<String>;
}

/// A row of a table: the name, the kind, where the value goes, and what the key means.
macro_rules! key {
    ($name:literal, $kind:ty, |$t:ident| $field:expr, $doc:literal $(, $flag:ident $value:expr)*) => {
        Key {
            $($flag: $value,)*
            ..Key {
                name: $name,
                doc: $doc,
                allowed: <$kind as Kind>::ALLOWED,
                sample: "",
                is_required: false,
                read: |$t, reader, value| <$kind as Kind>::read(&mut $field, reader, value),
                show: |$t| <$kind as Kind>::show(&$field),
            }
        }
    };
}
pub(super) use key;

/// What is read.
pub(super) struct Reader<'r> {
    text: &'r str,
    /// The folder of the file.
    folder: &'r Path,
    /// The names of the tables and keys that are being read.
    path: Vec<String>,
    /// Where keys stand, by path.
    places: BTreeMap<String, Position>,
    errors: Vec<ConfigError>,
    /// Lines that are no TOML: what is read of them is a guess.
    malformed: Vec<usize>,
}

impl<'r> Reader<'r> {
    pub(super) fn new(text: &'r str, folder: &'r Path) -> Self {
        Self {
            text,
            folder,
            path: Vec::new(),
            places: BTreeMap::new(),
            errors: Vec::new(),
            malformed: Vec::new(),
        }
    }

    /// The table of the whole file.
    pub(super) fn root(&mut self) -> Spanned<DeTable<'r>> {
        let (table, errors) = toml_text::parse(self.text);
        for (place, why) in errors {
            self.malformed.push(place.line);
            self.errors.push(ConfigError { place, why });
        }
        table
    }

    /// Reads the table `name`.
    pub(super) fn section<T>(
        &mut self,
        name: &str,
        keys: &'static [Key<T>],
        into: &mut T,
        table: Option<&DeTable<'_>>,
    ) {
        self.path.push(name.to_owned());
        // In the order of the rows: a profile comes before what differs from the profile.
        for key in keys {
            if let Some((span, value)) = table.and_then(|table| find(table, key.name)) {
                self.key(key, into, span, value);
            }
        }
        if let Some(table) = table {
            self.unknown(table, &names(keys));
        }
        self.path.pop();
    }

    /// Reads a table of a list.
    pub(super) fn table<T>(
        &mut self,
        keys: &'static [Key<T>],
        into: &mut T,
        table: &DeTable<'_>,
        span: Range<usize>,
    ) {
        for key in keys {
            match find(table, key.name) {
                Some((span, value)) => self.key(key, into, span, value),
                None if key.is_required => {
                    let why = format!("{} is missing; allowed: {}", key.name, key.allowed);
                    self.wrong(span.clone(), &why);
                }
                None => {}
            }
        }
        self.unknown(table, &names(keys));
    }

    fn key<T>(
        &mut self,
        key: &Key<T>,
        into: &mut T,
        span: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) {
        self.path.push(key.name.to_owned());
        self.note(&span);
        (key.read)(into, self, value);
        self.path.pop();
    }

    /// Runs `read` for the part `name` of what is being read.
    pub(super) fn within(&mut self, name: String, read: impl FnOnce(&mut Self)) {
        self.path.push(name);
        read(self);
        self.path.pop();
    }

    /// Notes where the thing that is being read stands.
    pub(super) fn note(&mut self, span: &Range<usize>) {
        let place = self.place(span);
        self.places.insert(self.path.join("."), place);
    }

    fn place(&self, span: &Range<usize>) -> Position {
        Position::of(self.text, span.start)
    }

    /// What is being read is wrong.
    pub(super) fn wrong(&mut self, span: Range<usize>, why: &str) {
        let place = self.place(&span);
        if !self.malformed.contains(&place.line) {
            let why = format!("{}: {why}", self.path.join("."));
            self.errors.push(ConfigError { place, why });
        }
    }

    /// A key that was read before is wrong.
    pub(super) fn contradiction(&mut self, path: &str, why: &str) {
        // A key that is not set is wrong only beside another one, which the message names.
        let default = Position { line: 1, column: 1 };
        let place = self.places.get(path).copied().unwrap_or(default);
        let why = format!("{path}: {why}");
        self.errors.push(ConfigError { place, why });
    }

    /// Tells of tables that are unknown, and of keys outside of tables.
    pub(super) fn unknown_tables(&mut self, root: &DeTable<'_>, names: &[&str]) {
        for (key, value) in root {
            let name: &str = key.get_ref().as_ref();
            if names.contains(&name) {
                continue;
            }
            let is_table = value.get_ref().is_table() || value.get_ref().is_array();
            let elsewhere = super::tables::tables_with(name);
            let why = match (nearest(name, names), elsewhere.as_slice()) {
                (_, [table, ..]) if !is_table => {
                    format!("a key outside of a table; it belongs into {table}")
                }
                (Some(near), _) => format!("there is no such table; did you mean {near}?"),
                (None, _) => format!("there is no such table; there are {}", names.join(", ")),
            };
            let span = key.span();
            self.within(name.to_owned(), |reader| reader.wrong(span, &why));
        }
    }

    /// Tells of the keys that no row has.
    pub(super) fn unknown(&mut self, table: &DeTable<'_>, names: &[&str]) {
        for (key, _) in table {
            let name: &str = key.get_ref().as_ref();
            if !names.contains(&name) {
                let elsewhere = super::tables::tables_with(name);
                let why = match (nearest(name, names), elsewhere.as_slice()) {
                    (Some(near), _) => format!("there is no such key; did you mean {near}?"),
                    (None, [table, ..]) => {
                        format!("there is no such key here; it is one of {table}")
                    }
                    (None, []) => format!("there is no such key; there are {}", names.join(", ")),
                };
                let span = key.span();
                self.within(name.to_owned(), |reader| reader.wrong(span, &why));
            }
        }
    }

    /// Whether nothing was wrong so far.
    pub(super) fn is_good(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether a key with this path was set.
    pub(super) fn is_set(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    pub(super) fn folder(&self) -> &'r Path {
        self.folder
    }

    /// The places of keys, or all errors in the order of the file.
    pub(super) fn finish(mut self) -> Result<BTreeMap<String, Position>, Vec<ConfigError>> {
        if self.errors.is_empty() {
            return Ok(self.places);
        }
        self.errors.sort();
        self.errors.dedup();
        Err(self.errors)
    }
}

fn find<'t, 'd>(
    table: &'t DeTable<'d>,
    name: &str,
) -> Option<(Range<usize>, &'t Spanned<DeValue<'d>>)> {
    let (key, value) = table.get_key_value(name)?;
    Some((key.span(), value))
}

fn names<T>(keys: &'static [Key<T>]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}
