//! `-F` and `--form-string`: reads the fields of a form as curl does. [`multipart`](super::multipart) makes the body.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::encoder::Encoder;
use super::exit::{Exit, Failure};
use super::field::{MayHave, Spec};
use super::plan::usage;

/// The options about forms, as typed.
#[derive(Debug, Default)]
pub(crate) struct FormArgs {
    pub(crate) fields: Vec<FieldArg>,
    /// `--form-escape`
    pub(crate) backslashes: bool,
}

/// One field as typed.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum FieldArg {
    /// `-F`
    Field(OsString),
    /// `--form-string`: nothing in the value is special.
    Text(OsString),
}

/// One part of a multipart body.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) name: Option<Vec<u8>>,
    pub(super) filename: Option<Vec<u8>>,
    /// As typed with `;type=`.
    pub(super) content_type: Option<Vec<u8>>,
    /// `;encoder=`
    pub(super) encoder: Option<Encoder>,
    /// Further header lines, without their ends.
    pub(super) headers: Vec<Vec<u8>>,
    pub(super) content: Content,
}

/// The content of a part.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Text(Vec<u8>),
    /// Read when it is sent.
    File(PathBuf),
    /// Stdin, kept in a file without a name: its length is announced, and a redirect may need it again.
    Stdin(Arc<File>),
    Parts(Vec<Part>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(Vec::new())
    }
}

/// Reads the fields, and checks that their files can be read.
///
/// # Errors
/// [`Exit::Usage`] for a field that is not understood, [`Exit::Read`] for a file that cannot be read.
pub(super) fn read_fields(
    typed: &[FieldArg],
    warnings: &mut Vec<String>,
) -> Result<Vec<Part>, Failure> {
    // The whole form, and the groups of parts that `=(` opened and `=)` has not ended.
    let mut open: Vec<Part> = Vec::new();
    let mut form: Vec<Part> = Vec::new();
    for field in typed {
        let part = match read_field(field, warnings)? {
            Field::Open(part) if open.len() == DEEPEST => {
                let name = part.name.unwrap_or_default();
                let name = name.escape_ascii();
                let cause = format_args!("--form {name}=(: more than {DEEPEST} levels of parts");
                return Err(usage(cause));
            }
            Field::Open(part) => {
                open.push(part);
                continue;
            }
            Field::Part(part) => part,
            Field::Close => open
                .pop()
                .ok_or_else(|| usage("--form =): there is no '=(' that it ends"))?,
        };
        add(part, &mut open, &mut form);
    }
    while let Some(part) = open.pop() {
        add(part, &mut open, &mut form);
    }
    Ok(form)
}

/// Adds to the group that was opened last, or else to the form.
fn add(part: Part, open: &mut [Part], form: &mut Vec<Part>) {
    match open.last_mut().map(|group| &mut group.content) {
        Some(Content::Parts(parts)) => parts.push(part),
        _ => form.push(part),
    }
}

enum Field {
    Part(Part),
    /// `name=(`: the parts that follow are parts of this one.
    Open(Part),
    /// `=)`
    Close,
}

fn read_field(typed: &FieldArg, warnings: &mut Vec<String>) -> Result<Field, Failure> {
    let (FieldArg::Field(text) | FieldArg::Text(text)) = typed;
    let text = text.as_bytes();
    let Some(equals) = text.iter().position(|b| *b == b'=') else {
        return Err(usage("--form needs name=value"));
    };
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let shown = match name {
        b"" => "--form".to_owned(),
        name => format!("--form {}", name.escape_ascii()),
    };
    let name = (!name.is_empty()).then(|| name.to_vec());
    let mut whole = |value: &[u8], may| {
        let (spec, _) = Spec::read(value, None, warnings).map_err(|f| f.about(&shown))?;
        Ok::<_, Failure>(spec.restricted(may, warnings))
    };
    let part = match value {
        _ if matches!(typed, FieldArg::Text(_)) => Part {
            content: Content::Text(value.to_vec()),
            ..Part::default()
        },
        [b'(', rest @ ..] => {
            let spec = whole(rest, MayHave::TYPE)?;
            let part = Part {
                name,
                ..spec.part(Content::Parts(Vec::new()))
            };
            return Ok(Field::Open(part));
        }
        [b')'] if name.is_none() => return Ok(Field::Close),
        [b'@', rest @ ..] => files(rest, &shown, warnings)?,
        [b'<', rest @ ..] => {
            let spec = whole(rest, MayHave::ENCODER)?;
            let content = content_of(&spec.value)?;
            spec.part(content)
        }
        value => {
            let spec = whole(value, MayHave::FILENAME)?;
            let content = Content::Text(spec.value.clone());
            spec.part(content)
        }
    };
    Ok(Field::Part(Part { name, ..part }))
}

/// The files after `@`. Several become parts of one part. `shown` names the field.
fn files(mut rest: &[u8], shown: &str, warnings: &mut Vec<String>) -> Result<Part, Failure> {
    let mut parts = Vec::new();
    loop {
        let (spec, after) = Spec::read(rest, Some(b','), warnings).map_err(|f| f.about(shown))?;
        let content = content_of(&spec.value)?;
        let mut part = spec.part(content);
        if part.filename.is_none() {
            let name = Path::new(OsStr::from_bytes(&spec.value)).file_name();
            part.filename = Some(name.unwrap_or_default().as_bytes().to_vec());
        }
        parts.push(part);
        match after {
            [b',', more @ ..] => rest = more,
            _ => break,
        }
    }
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    Ok(Part {
        content: Content::Parts(parts),
        ..Part::default()
    })
}

/// The file with this name; `-` is stdin.
fn content_of(name: &[u8]) -> Result<Content, Failure> {
    let path = PathBuf::from(OsStr::from_bytes(name));
    let read = |error: io::Error| {
        Failure::new(
            Exit::Read,
            "read",
            format_args!("{}: {error}", path.display()),
        )
    };
    if name == b"-" {
        let spool = || {
            let mut file = tempfile::tempfile()?;
            io::copy(&mut io::stdin().lock(), &mut file)?;
            Ok(file)
        };
        return Ok(Content::Stdin(Arc::new(spool().map_err(read)?)));
    }
    let checked = || {
        let metadata = fs::metadata(&path)?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // Opening a pipe would wait for its writer.
        if metadata.is_file() {
            File::open(&path)?;
        }
        Ok(())
    };
    checked().map_err(read)?;
    Ok(Content::File(path))
}

/// The most levels of parts in parts.
const DEEPEST: usize = 32;
