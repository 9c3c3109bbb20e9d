//! `file://` URLs: local files, read and written as curl does (RFC 8089).

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use percent_encoding::percent_decode;

use super::exit::{Exit, Failure};
use super::facts::Facts;
use super::files::{FileId, same_file};
use super::pipe::{not_opened, open_to_read, open_to_write};
use super::plan::Transfer;
use super::response::Output;
use super::upload::OpenUpload;

/// The path in a `file:` URL; `None` if the URL has another scheme.
pub(super) fn path_of(typed: &[u8]) -> Option<Result<PathBuf, Failure>> {
    let (scheme, rest) = typed.split_at_checked(5)?;
    scheme
        .eq_ignore_ascii_case(b"file:")
        .then(|| read_path(rest))
}

fn read_path(rest: &[u8]) -> Result<PathBuf, Failure> {
    let wrong = |cause| Failure::new(Exit::MalformedUrl, "URL", cause);
    let path = match rest.strip_prefix(b"//") {
        None => rest,
        Some(rest) => {
            let slash = rest.iter().position(|b| *b == b'/');
            let (host, path) = rest.split_at(slash.unwrap_or(rest.len()));
            let is_here = |name: &[u8]| host.eq_ignore_ascii_case(name);
            if !["", "localhost", "127.0.0.1"]
                .iter()
                .any(|name| is_here(name.as_bytes()))
            {
                return Err(wrong("a file URL with a host other than localhost"));
            }
            path
        }
    };
    let end = path.iter().position(|b| matches!(b, b'?' | b'#'));
    let path: Vec<u8> = percent_decode(&path[..end.unwrap_or(path.len())]).collect();
    if !path.starts_with(b"/") {
        return Err(wrong("a file URL without a path"));
    }
    if path.contains(&0) {
        return Err(wrong("a NUL in the path of a file URL"));
    }
    Ok(OsString::from_vec(path).into())
}

/// Writes the file to the output. `resume_at` is the first byte that is wanted (`-C`). Returns whether the output
/// remains as it is, because the file has not changed (`-z`).
pub(super) fn fetch(
    transfer: &Transfer,
    path: &Path,
    resume_at: u64,
    output: &mut Output<'_>,
    facts: &mut Facts,
) -> Result<bool, Failure> {
    let failed = |error: io::Error| not_opened(Exit::FileNotRead, "read", path, &error);
    let request = &transfer.options.request;
    let mut file = open_to_read(path, output.sink.deadline()).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let modified = metadata.modified().ok();
    if request.condition.is_some_and(|c| c.is_unmet(modified)) {
        return Ok(true);
    }
    let size = metadata.len();
    let head = heads(size, modified);
    facts.headers.clone_from(&head);
    let lines = head
        .iter()
        .map(|(name, value)| [name.as_bytes(), b": ", value, b"\r\n"].concat());
    let mut text = lines.collect::<Vec<_>>().concat();
    if !request.head_only {
        text.extend_from_slice(b"\r\n");
    }
    output.sink.copies(&file)?;
    output.write_head(&text)?;
    if request.head_only {
        return Ok(false);
    }
    let (from, most) = match request.range() {
        Some(range) if resume_at == 0 => bounds(range, size)?,
        _ => (resume_at, u64::MAX),
    };
    if from > size && metadata.is_file() {
        let cause = format_args!("{}: there is no byte {from}", path.display());
        return Err(Failure::new(Exit::BadResume, "read", cause));
    }
    if from > 0 {
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
    }
    let mut file = file.take(most);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(false),
            count => output.piece(&buffer[..count])?,
        }
    }
}

fn heads(size: u64, modified: Option<std::time::SystemTime>) -> Vec<(String, Vec<u8>)> {
    let mut head = vec![
        ("Content-Length".to_owned(), size.to_string().into_bytes()),
        ("Accept-ranges".to_owned(), b"bytes".to_vec()),
    ];
    if let Some(modified) = modified {
        let date = httpdate::fmt_http_date(modified).into_bytes();
        head.push(("Last-Modified".to_owned(), date));
    }
    head
}

/// The first byte of the first range of `-r`, and how many bytes there are at most.
fn bounds(range: &[u8], size: u64) -> Result<(u64, u64), Failure> {
    let wrong = || {
        let range = range.escape_ascii();
        Failure::new(
            Exit::Range,
            "options",
            format_args!("-r {range}: no range of bytes"),
        )
    };
    let short = || {
        let cause = format!("-r {}: the file is shorter", range.escape_ascii());
        Failure::new(Exit::BadResume, "read", cause)
    };
    let first = range.split(|b| *b == b',').next().unwrap_or_default();
    let text = std::str::from_utf8(first).map_err(|_| wrong())?.trim();
    let (from, to) = text.split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    match (from, to) {
        ("", last) => {
            let from = size.checked_sub(number(last)?);
            Ok((from.ok_or_else(short)?, u64::MAX))
        }
        (from, "") => Ok((number(from)?, u64::MAX)),
        (from, to) => {
            let (from, to) = (number(from)?, number(to)?);
            let most = to.checked_sub(from).ok_or_else(wrong)?;
            Ok((from, most.saturating_add(1)))
        }
    }
}

/// `-T`: writes the upload to the file. A path that ends in `/` gets the name of the upload.
pub(super) fn store(
    transfer: &Transfer,
    path: &Path,
    upload: OpenUpload,
    name: Option<&std::ffi::OsStr>,
    deadline: Option<Instant>,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let mut path = path.to_owned();
    if path.as_os_str().as_encoded_bytes().ends_with(b"/")
        && let Some(name) = name
    {
        path.push(name);
    }
    let failed = |error: io::Error| not_opened(Exit::Write, "write", &path, &error);
    let mode = transfer.options.files.mode.unwrap_or(USUAL_MODE);
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(mode);
    let mut file = open_to_write(&path, &options, deadline).map_err(failed)?;
    if let Some(place) = FileId::of(&file) {
        if upload.id() == Some(place) {
            return Err(same_file(&path));
        }
        file.set_len(0).map_err(failed)?;
    }
    facts.upload_bytes = io::copy(&mut upload.reader(), &mut file).map_err(failed)?;
    Ok(())
}

/// curl's mode for new files.
const USUAL_MODE: u32 = 0o644;
