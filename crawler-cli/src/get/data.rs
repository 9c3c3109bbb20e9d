//! Request bodies of `-d` and its variants, and queries of `-G` and `--url-query`, typed or read from files.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use percent_encoding::percent_encode;

use super::args::Data;
use super::exit::{Exit, Failure};
use super::target::UNRESERVED;

/// All pieces of data, joined by `&` (`--json`: by nothing); `None` if there are no pieces.
pub(super) fn read_body(data: &[Data]) -> Result<Option<Vec<u8>>, Failure> {
    let mut body: Option<Vec<u8>> = None;
    for piece in data {
        let joined = matches!(piece, Data::Json(_));
        let piece = match piece {
            Data::Ascii(typed) => typed_or_file(typed, FileText::WithoutLineEnds)?,
            Data::Binary(typed) | Data::Json(typed) => typed_or_file(typed, FileText::AsIs)?,
            Data::Raw(typed) => typed.as_bytes().to_vec(),
            Data::Encoded(typed) => encoded(typed.as_bytes())?,
        };
        match &mut body {
            Some(body) => {
                if !joined {
                    body.push(b'&');
                }
                body.extend(piece);
            }
            None => body = Some(piece),
        }
    }
    Ok(body)
}

/// What is added to the query of each URL: the data of `-G`, and then each `--url-query`; `None` if there is nothing.
pub(super) fn read_query(
    data: Option<Vec<u8>>,
    typed: &[OsString],
) -> Result<Option<Vec<u8>>, Failure> {
    let mut pieces: Vec<Vec<u8>> = data.into_iter().collect();
    for typed in typed {
        pieces.push(match typed.as_bytes().strip_prefix(b"+") {
            Some(as_is) => as_is.to_vec(),
            None => encoded(typed.as_bytes())?,
        });
    }
    Ok((!pieces.is_empty()).then(|| pieces.join(&b'&')))
}

/// The forms of `--data-urlencode`: `text`, `=text`, `name=text`, `@file` and `name@file`. All but the name is encoded.
fn encoded(typed: &[u8]) -> Result<Vec<u8>, Failure> {
    let mark = typed.iter().position(|b| *b == b'=');
    let mark = mark.or_else(|| typed.iter().position(|b| *b == b'@'));
    let (name, text) = match mark {
        None => (&[][..], typed.to_vec()),
        Some(at) if typed[at] == b'=' => (&typed[..at], typed[at + 1..].to_vec()),
        Some(at) => (
            &typed[..at],
            read_file(OsStr::from_bytes(&typed[at + 1..]))?,
        ),
    };
    let mut piece = name.to_vec();
    if !name.is_empty() {
        piece.push(b'=');
    }
    // A space is a plus sign in a form (the URL standard, application/x-www-form-urlencoded).
    let text = percent_encode(&text, UNRESERVED).to_string();
    piece.extend(text.replace("%20", "+").into_bytes());
    Ok(piece)
}

/// Which bytes of a file named by `@` are used.
#[derive(Clone, Copy)]
pub(super) enum FileText {
    AsIs,
    /// All but CR, LF and NUL.
    WithoutLineEnds,
}

/// The typed bytes, or the content of the file in `@name`.
pub(super) fn typed_or_file(typed: &OsStr, keep: FileText) -> Result<Vec<u8>, Failure> {
    let Some(file) = typed.as_bytes().strip_prefix(b"@") else {
        return Ok(typed.as_bytes().to_vec());
    };
    let mut bytes = read_file(OsStr::from_bytes(file))?;
    if matches!(keep, FileText::WithoutLineEnds) {
        bytes.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
    }
    Ok(bytes)
}

/// Reads a whole file; `-` is stdin.
pub(super) fn read_file(name: &OsStr) -> Result<Vec<u8>, Failure> {
    let read = if name == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(name)
    };
    read.map_err(|error| {
        let name = Path::new(name).display();
        Failure::new(Exit::Read, "read", format_args!("{name}: {error}"))
    })
}
