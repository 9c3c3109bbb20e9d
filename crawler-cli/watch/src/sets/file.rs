//! Sets in files.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use xxhash_rust::xxh3::Xxh3;

use super::intake::ReadingInto;
use super::private::Private;
use super::{ReadError, SetRead};
use crate::work::Tools;
use check::sources::{Batch, Batches, Input, List, Next, ProblemKind, SourceOptions, start};
use jobs::Cancel;

/// Reads a file into a set, unless it has not changed.
pub(super) fn read(
    set: &str,
    path: &Path,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<SetRead, ReadError> {
    let failed = |error: io::Error| ReadError::Source(format!("{}: {error}", path.display()));
    let before = Fingerprint::of(path, tools.now()).map_err(failed)?;
    let known = tools
        .mark_of(set)?
        .and_then(|mark| Fingerprint::parse(&mark));
    if known.is_some_and(|known| known.is_surely(&before)) {
        return Ok(SetRead::unchanged());
    }
    let hash = hash(path, cancel).map_err(failed)?;
    if cancel.is_set() {
        return Err(ReadError::Cancelled);
    }
    let before = before.with(hash);
    if known.is_some_and(|known| known.hash == before.hash) {
        return Ok(SetRead::unchanged());
    }
    let mut reading = ReadingInto::begin(set, tools, cancel)?;
    let mut batches = start(vec![input(path)], SourceOptions::default());
    let mut last = None;
    let taken = take_all(
        &mut batches,
        is_sitemap(path),
        &mut last,
        &mut reading,
        cancel,
    );
    let after = Fingerprint::of(path, tools.now()).map_err(failed)?;
    let is_whole = after.is_file_of(&before);
    if let (true, Some((url, line))) = (is_whole, last) {
        reading.add(&url, line)?;
    }
    if let Err(error) = taken {
        reading.abandon()?;
        return Err(error);
    }
    if !is_whole {
        reading.abandon()?;
        let text = format!("{}: changed while it was read", path.display());
        return Err(ReadError::Source(text));
    }
    reading.complete(before.to_string())
}

/// A URL and its line.
type Entry = (Box<str>, Option<u32>);

/// Passes on what the file has until its end, but for the last URL: if the file was cut meanwhile, the URL is cut, too.
fn take_all(
    batches: &mut Batches,
    is_sitemap: bool,
    last: &mut Option<Entry>,
    reading: &mut ReadingInto<'_>,
    cancel: &Cancel,
) -> Result<(), ReadError> {
    let mut fault = None;
    loop {
        match batches.next(MOMENT) {
            Next::Batch(batch) => fault = fault.or(take(batch, is_sitemap, last, reading)?),
            Next::Nothing if cancel.is_set() => return Err(ReadError::Cancelled),
            Next::Nothing => {}
            Next::End => break,
        }
    }
    fault.map_or(Ok(()), |fault| Err(ReadError::Source(fault)))
}

/// Passes on a batch. Returns why the file is incomplete.
fn take(
    batch: Batch,
    is_sitemap: bool,
    last: &mut Option<Entry>,
    reading: &mut ReadingInto<'_>,
) -> Result<Option<String>, ReadError> {
    for link in &batch.links {
        // What is no URL, or a file on the disk, is refused and named by the intake.
        let entry = (link.spelling.clone(), link.reference.line);
        if let Some((url, line)) = last.replace(entry) {
            reading.add(&url, line)?;
        }
    }
    reading.refuse_unnamed(batch.unsupported + batch.excluded);
    let mut fault = None;
    let mut named = 0;
    for problem in &batch.problems {
        let is_line = matches!(problem.kind, ProblemKind::Malformed | ProblemKind::TooLong)
            && problem.line.is_some();
        if is_line {
            named += 1;
            reading.refuse(problem.line, &problem.detail);
        } else if problem.kind != ProblemKind::Note
            && (is_sitemap || problem.kind != ProblemKind::Malformed)
        {
            fault.get_or_insert_with(|| problem.to_string());
        }
    }
    reading.refuse_unnamed(batch.wrong_lines.saturating_sub(named));
    Ok(fault)
}

/// Counts the URLs of a file whose host is a private address by its name alone. What is no URL is left out.
pub(super) fn private(path: &Path, cancel: &Cancel) -> io::Result<Private> {
    let file = Fingerprint::of(path, Timestamp::now())?;
    let mut private = Private::default();
    if file.size == 0 {
        return Ok(private);
    }
    let mut batches = start(vec![input(path)], SourceOptions::default());
    loop {
        match batches.next(MOMENT) {
            Next::Batch(batch) => {
                for link in &batch.links {
                    private.look(&link.spelling);
                }
            }
            Next::Nothing if !cancel.is_set() => {}
            Next::Nothing | Next::End => return Ok(private),
        }
    }
}

fn input(path: &Path) -> Input {
    match is_sitemap(path) {
        true => Input::Path(path.to_owned()),
        false => Input::List(List::File(path.to_owned())),
    }
}

/// Whether the name ends with `.xml`, or `.xml.gz`.
fn is_sitemap(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).ends_with(".xml")
}

/// The version of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Fingerprint {
    size: u64,
    /// In nanoseconds since 1970.
    modified: i128,
    /// A later change may have the same time, because the file was read at once.
    is_recent: bool,
    file: u64,
    hash: u128,
}

impl Fingerprint {
    fn of(path: &Path, now: Timestamp) -> io::Result<Self> {
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if !metadata.is_file() {
            // To open a pipe waits for its writer, for ever if there is none; a device may have no end.
            return Err(io::Error::other("not a regular file"));
        }
        let modified = modified(&metadata);
        let is_recent = now.as_nanosecond() - modified < RECENT.as_nanos() as i128;
        Ok(Self {
            size: metadata.len(),
            modified,
            is_recent,
            file: metadata.ino(),
            hash: 0,
        })
    }

    fn with(self, hash: u128) -> Self {
        Self { hash, ..self }
    }

    /// Whether a file cannot have changed, without a look at its content.
    fn is_surely(&self, file: &Self) -> bool {
        !self.is_recent && self.is_file_of(file)
    }

    /// Whether size, time and number are those of this file.
    fn is_file_of(&self, file: &Self) -> bool {
        (self.size, self.modified, self.file) == (file.size, file.modified, file.file)
    }

    fn parse(mark: &str) -> Option<Self> {
        let mut parts = mark.strip_prefix("file ")?.split(' ');
        let mut next = || parts.next();
        Some(Self {
            size: next()?.parse().ok()?,
            modified: next()?.parse().ok()?,
            is_recent: false,
            file: next()?.parse().ok()?,
            hash: u128::from_str_radix(next()?, 16).ok()?,
        })
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            size,
            modified,
            is_recent,
            file,
            hash,
        } = self;
        // 0 is the time of no file that is read.
        let modified = if *is_recent { 0 } else { *modified };
        write!(f, "file {size} {modified} {file} {hash:x}")
    }
}

fn modified(metadata: &Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}

fn hash(path: &Path, cancel: &Cancel) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; 64 << 10];
    while !cancel.is_set() {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => hash.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hash.digest128())
}

/// How long a stop may go unnoticed.
const MOMENT: Duration = Duration::from_millis(100);
/// The times of files are as coarse as this.
const RECENT: Duration = Duration::from_secs(2);
