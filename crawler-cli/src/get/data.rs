//! Request bodies of `-d` and its variants, typed or read from files.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::args::Data;
use super::exit::{Exit, Failure};

/// All pieces of data, joined by `&` (`--json`: by nothing); `None` if there are no pieces.
pub(super) fn read_body(data: &[Data]) -> Result<Option<Vec<u8>>, Failure> {
    let mut body: Option<Vec<u8>> = None;
    for piece in data {
        let joined = matches!(piece, Data::Json(_));
        let piece = match piece {
            Data::Ascii(typed) => typed_or_file(typed, FileText::WithoutLineEnds)?,
            Data::Binary(typed) | Data::Json(typed) => typed_or_file(typed, FileText::AsIs)?,
            Data::Raw(typed) => typed.as_bytes().to_vec(),
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
