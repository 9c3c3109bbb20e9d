//! CSV (RFC 4180): records with a URL in one of their fields. Every URL has its place in the file, which is why the
//! fields are split here.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use super::ProblemKind;
use super::open::Source;
use super::outlet::{Outlet, Place};
use super::records::{LONGEST_RECORD, Lines, column};
use super::resolve::Resolver;
use super::threads::DEFAULT_FIELD;
use crate::check::links::{Document, Format, Link};

/// Reads the URLs in the column `field`: its name in the first record, or its number from 1. Without a field, this is
/// the column `url`; if there is none, all URLs in all fields are read. Empty fields are ignored.
pub(super) fn read(
    reader: Source,
    max_size: u64,
    field: Option<&str>,
    resolver: &Resolver,
    outlet: &mut Outlet,
) -> io::Result<()> {
    let mut records = Records {
        lines: Lines::new(reader, LONGEST_RECORD, max_size),
        record: Record::default(),
    };
    let Some(first) = records.next(outlet)? else {
        return Ok(());
    };
    let column = match Column::of(first, field) {
        Ok(column) => column,
        Err(detail) => {
            outlet.problem(Some(first.line), ProblemKind::Malformed, detail);
            return Ok(());
        }
    };
    if column.is_data(first) {
        column.read(first, resolver, outlet);
    }
    while let Some(record) = records.next(outlet)? {
        column.read(record, resolver, outlet);
    }
    outlet.end_of_lines();
    Ok(())
}

/// Which fields have URLs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Column {
    /// The field with this index; the first record has names.
    Named(usize),
    /// The field with this index; the first record may have names.
    Numbered(usize),
    /// Any field may hold URLs among other text.
    All,
}

impl Column {
    /// What `field` means if this is the first record.
    fn of(first: &Record, field: Option<&str>) -> Result<Self, String> {
        let names: Vec<Cow<'_, str>> = first.fields().map(|field| field.value).collect();
        let wanted = field.unwrap_or(DEFAULT_FIELD);
        let exact = names.iter().position(|name| *name == wanted);
        let similar = || {
            names
                .iter()
                .position(|name| name.eq_ignore_ascii_case(wanted))
        };
        if let Some(index) = exact.or_else(similar) {
            return Ok(Self::Named(index));
        }
        match field.map(str::parse::<usize>) {
            None => Ok(Self::All),
            Some(Ok(number)) if number > 0 => Ok(Self::Numbered(number - 1)),
            Some(_) => Err(format!(
                "no column {wanted}: there are {}",
                names.join(", ")
            )),
        }
    }

    /// Whether the first record has URLs.
    fn is_data(self, first: &Record) -> bool {
        match self {
            Self::Named(_) => false,
            Self::Numbered(index) => {
                let field = first.fields().nth(index);
                field.is_none_or(|field| url::Url::parse(&field.value).is_ok())
            }
            Self::All => true,
        }
    }

    fn read(self, record: &Record, resolver: &Resolver, outlet: &mut Outlet) {
        match self {
            Self::Named(index) | Self::Numbered(index) => match record.fields().nth(index) {
                None => {
                    let detail = format!("no column {}", index + 1);
                    outlet.line_problem(record.line, ProblemKind::Malformed, detail);
                }
                Some(field) if field.value.is_empty() => {}
                Some(field) => {
                    let (line, column) = record.place(field.at);
                    let place = Place {
                        line,
                        column,
                        text: "",
                    };
                    outlet.add(place, resolver.absolute(&field.value));
                }
            },
            Self::All => {
                for field in record.fields() {
                    urls(record, &field, resolver, outlet);
                }
            }
        }
    }
}

/// Reads all URLs in the text of a field.
fn urls(record: &Record, field: &Field<'_>, resolver: &Resolver, outlet: &mut Outlet) {
    if !field.value.contains("://") {
        return;
    }
    let (line, column) = record.place(field.at);
    let document = Document::new(Format::Text, field.value.as_bytes(), None);
    // Plain text is never malformed.
    let _ = document.read(&mut |link: Link<'_>| {
        let place = Place {
            line: line + link.line - 1,
            column: match link.line {
                1 => column + link.column - 1,
                _ => link.column,
            },
            text: "",
        };
        outlet.add(place, resolver.absolute(&link.url));
    });
}

/// The records of a source.
struct Records {
    lines: Lines,
    record: Record,
}

/// A record: one line, or several if a quoted field has line ends.
#[derive(Debug, Default)]
struct Record {
    /// The number of the first line.
    line: u32,
    text: String,
    fields: Vec<Range<usize>>,
}

/// A field of a record.
struct Field<'r> {
    /// Without quotes and blanks around it.
    value: Cow<'r, str>,
    /// Where the value begins in the record.
    at: usize,
}

impl Records {
    /// The next record that is not blank. A record whose quotes are not closed is reported.
    fn next(&mut self, outlet: &mut Outlet) -> io::Result<Option<&Record>> {
        let record = &mut self.record;
        loop {
            let Some((line, text)) = self.lines.next(outlet)? else {
                return Ok(None);
            };
            if text.trim_ascii().is_empty() {
                continue;
            }
            record.line = line;
            record.text.clear();
            record.text.push_str(&String::from_utf8_lossy(text));
            let mut state = Splitter::new(&mut record.fields);
            let mut done = state.split(&record.text, 0);
            while !done && record.text.len() <= LONGEST_RECORD {
                let Some((_, text)) = self.lines.next(outlet)? else {
                    break;
                };
                let from = record.text.len();
                record.text.push('\n');
                record.text.push_str(&String::from_utf8_lossy(text));
                done = state.split(&record.text, from);
            }
            if done {
                return Ok(Some(&self.record));
            }
            let detail = "a quoted field does not end".to_owned();
            outlet.line_problem(line, ProblemKind::Malformed, detail);
        }
    }
}

/// Splits a record into fields, piece by piece.
struct Splitter<'f> {
    fields: &'f mut Vec<Range<usize>>,
    start: usize,
    is_quoted: bool,
}

impl<'f> Splitter<'f> {
    fn new(fields: &'f mut Vec<Range<usize>>) -> Self {
        fields.clear();
        Self {
            fields,
            start: 0,
            is_quoted: false,
        }
    }

    /// Goes on at `from`. Returns whether the record ends here. `""` within quotes ends and begins a quoted part, which
    /// is the same as going on.
    fn split(&mut self, text: &str, from: usize) -> bool {
        for (at, byte) in text.bytes().enumerate().skip(from) {
            match byte {
                b'"' if self.is_quoted => self.is_quoted = false,
                b'"' if text[self.start..at].trim().is_empty() || text[..at].ends_with('"') => {
                    self.is_quoted = true;
                }
                b',' if !self.is_quoted => {
                    self.fields.push(self.start..at);
                    self.start = at + 1;
                }
                _ => {}
            }
        }
        if !self.is_quoted {
            self.fields.push(self.start..text.len());
        }
        !self.is_quoted
    }
}

impl Record {
    fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|range| {
            let text = &self.text[range.clone()];
            let mut at = range.start + (text.len() - text.trim_start().len());
            let mut value = Cow::Borrowed(text.trim());
            let quoted = value.strip_prefix('"').map(str::len);
            if let Some(length) = quoted {
                at += 1;
                let inner = &self.text[at..at + length];
                let inner = inner.strip_suffix('"').unwrap_or(inner);
                at += inner.len() - inner.trim_start().len();
                value = match inner.contains("\"\"") {
                    true => Cow::Owned(inner.trim().replace("\"\"", "\"")),
                    false => Cow::Borrowed(inner.trim()),
                };
            }
            Field { value, at }
        })
    }

    /// The line and the column of a byte of the record.
    fn place(&self, at: usize) -> (u32, u32) {
        let before = &self.text.as_bytes()[..at];
        let lines = memchr::memchr_iter(b'\n', before).count();
        let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
        let line = self
            .line
            .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        (line, column(&before[start..], before.len() - start))
    }
}
