//! The value of a form's field and the keys behind it, as curl reads them: `value;type=x/y;filename="a b"`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::data::read_file;
use super::encoder::Encoder;
use super::exit::{Exit, Failure};
use super::form::{Content, Part};
use super::plan::usage;

/// A value and what follows its semicolons.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Spec {
    pub(super) value: Vec<u8>,
    content_type: Option<Vec<u8>>,
    pub(super) filename: Option<Vec<u8>>,
    encoder: Option<Encoder>,
    headers: Vec<Vec<u8>>,
}

/// What may follow a value.
#[derive(Clone, Copy)]
pub(super) struct MayHave {
    filename: bool,
    encoder: bool,
}

impl MayHave {
    pub(super) const TYPE: Self = Self {
        filename: false,
        encoder: false,
    };
    pub(super) const ENCODER: Self = Self {
        filename: false,
        encoder: true,
    };
    pub(super) const FILENAME: Self = Self {
        filename: true,
        encoder: true,
    };
}

impl Spec {
    /// Reads up to `end`, or to the end of the text. Returns what follows.
    pub(super) fn read<'a>(
        text: &'a [u8],
        end: Option<u8>,
        warnings: &mut Vec<String>,
    ) -> Result<(Self, &'a [u8]), Failure> {
        let mut reader = Reader {
            rest: text,
            end,
            warnings,
        };
        let mut spec = Self {
            value: reader.word(),
            ..Self::default()
        };
        // The content type goes on over its own parameters: the text from where it begins.
        let mut of_type: Option<&[u8]> = None;
        while let [b';', rest @ ..] = reader.rest {
            reader.rest = rest.trim_ascii_start();
            if let Some(begun) = of_type
                && !OTHER_KEYS.iter().any(|key| reader.is_at(key))
            {
                reader.raw_word();
                let typed = &begun[..begun.len() - reader.rest.len()];
                spec.content_type = Some(content_type(typed)?);
                continue;
            }
            of_type = None;
            if reader.take("type=") {
                of_type = Some(reader.rest);
                spec.content_type = Some(content_type(reader.raw_word())?);
            } else if reader.take("filename=") {
                spec.filename = Some(reader.word());
            } else if reader.take("headers=") {
                let of_file = matches!(reader.rest, [b'@' | b'<', ..]);
                reader.rest = &reader.rest[usize::from(of_file)..];
                let typed = reader.word();
                if of_file {
                    spec.headers.extend(headers_of(&typed)?);
                } else {
                    spec.headers.push(typed);
                }
            } else if reader.take("encoder=") {
                spec.encoder = Some(encoder(&reader.word())?);
            } else {
                let unknown = reader.word();
                if !unknown.is_empty() {
                    let unknown = unknown.escape_ascii();
                    let warning = format!("skip unknown form field: {unknown}");
                    reader.warnings.push(warning);
                }
            }
        }
        if spec
            .headers
            .iter()
            .any(|line| line.contains(&b'\n') || line.contains(&b'\r'))
        {
            return Err(usage("a header of a part has a line end"));
        }
        Ok((spec, reader.rest))
    }

    /// Drops what has no meaning for this kind of field.
    pub(super) fn restricted(mut self, may: MayHave, warnings: &mut Vec<String>) -> Self {
        if self.filename.is_some() && !may.filename {
            self.filename = None;
            warnings.push("a file name is not for a field of this kind".into());
        }
        if self.encoder.is_some() && !may.encoder {
            self.encoder = None;
            warnings.push("an encoder is not for a field of this kind".into());
        }
        self
    }

    pub(super) fn part(&self, content: Content) -> Part {
        Part {
            name: None,
            filename: self.filename.clone(),
            content_type: self.content_type.clone(),
            encoder: self.encoder,
            headers: self.headers.clone(),
            content,
        }
    }
}

struct Reader<'a, 'w> {
    rest: &'a [u8],
    /// Ends a word, as `;` does.
    end: Option<u8>,
    warnings: &'w mut Vec<String>,
}

impl<'a> Reader<'a, '_> {
    fn is_at(&self, key: &str) -> bool {
        let start = self.rest.get(..key.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(key.as_bytes()))
    }

    /// Passes over `key`, if it is there.
    fn take(&mut self, key: &str) -> bool {
        let found = self.is_at(key);
        if found {
            self.rest = self.rest[key.len()..].trim_ascii_start();
        }
        found
    }

    /// A word without quotes, with the space around.
    fn raw_word(&mut self) -> &'a [u8] {
        let ends = |b: &u8| *b == b';' || Some(*b) == self.end;
        let end = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// A word, which may be in quotes. In quotes, a backslash stands before a quote or a backslash.
    fn word(&mut self) -> Vec<u8> {
        self.rest = self.rest.trim_ascii_start();
        if let [b'"', quoted @ ..] = self.rest
            && let Some((word, rest)) = unquoted(quoted)
        {
            self.rest = rest;
            let trailing = self.raw_word();
            if !trailing.trim_ascii().is_empty() {
                let warning = "trailing data after quoted form parameter";
                self.warnings.push(warning.into());
            }
            return word;
        }
        self.raw_word().trim_ascii_end().to_vec()
    }
}

/// The text before the closing quote, and what follows. `None` without a closing quote.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [] => return None,
            [b'"', after @ ..] => return Some((word, after)),
            [b'\\', byte @ (b'\\' | b'"'), after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn content_type(typed: &[u8]) -> Result<Vec<u8>, Failure> {
    let typed = typed.trim_ascii();
    let slash = typed.iter().position(|b| *b == b'/');
    let is_type = slash.is_some_and(|at| {
        let minor = typed.get(at + 1);
        at > 0 && !typed[..at].contains(&b' ') && minor.is_some_and(|b| !b" ,;\n".contains(b))
    });
    if !is_type || typed.iter().any(|b| matches!(b, b'\r' | b'\n')) {
        let typed = typed.escape_ascii();
        return Err(usage(format_args!(
            "illegally formatted content type {typed}"
        )));
    }
    Ok(typed.to_vec())
}

fn encoder(typed: &[u8]) -> Result<Encoder, Failure> {
    Encoder::named(typed).ok_or_else(|| {
        let typed = typed.escape_ascii();
        let cause =
            format!("no encoder {typed}; use binary, 8bit, 7bit, base64 or quoted-printable");
        Failure::new(Exit::BadArgument, "options", cause)
    })
}

/// The header lines of a file. Lines that begin with `#` are left out, and a line that begins with space goes on with
/// the line before.
fn headers_of(name: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    let text = read_file(OsStr::from_bytes(name))?;
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for line in text.split(|b| *b == b'\n') {
        let line = line.trim_ascii_end();
        match (line, lines.last_mut()) {
            ([] | [b'#', ..], _) => {}
            ([b' ' | b'\t', more @ ..], Some(last)) => {
                last.push(b' ');
                last.extend_from_slice(more.trim_ascii_start());
            }
            (line, _) => lines.push(line.to_vec()),
        }
    }
    Ok(lines)
}

/// The keys that end a content type.
const OTHER_KEYS: [&str; 3] = ["filename=", "headers=", "encoder="];
