//! The answer to the request for a file: whether it is the file, where it may be redirected to, and how its bytes go to the
//! partial file.

use url::Url;

use super::answer::Head;
use super::place;
use super::store::Store;
use super::task::{ActiveDownload, Task};
use crate::find::cause::Cause;
use crate::find::fault::Fault;
use crate::find::range::SizeRange;
use crate::find::{listing, path};

/// Prepares the file for a body that starts at offset `at`.
pub(super) fn begin(
    flight: &mut ActiveDownload,
    head: &Head<'_>,
    at: u64,
    length: Option<u64>,
    store: &mut Store,
) -> Result<(), Cause> {
    let task = &flight.task;
    if let Some(coding) = head.coding
        && !is_own_coding(coding, task.name.file())
    {
        return Err(Cause::Encoded(coding.escape_ascii().to_string()));
    }
    if let (true, Some(size), Some(length)) = (store.rules.strict_sizes, task.wanted.size, length)
        && !(size.lo..=size.hi).contains(&length)
    {
        return Err(wrong_length(size, length));
    }
    let is_listed = || length.is_some() && task.wanted.size.and_then(SizeRange::known) == length;
    if let Some(to) = &task.location
        && head.is_page()
        && !is_listed()
        && !listing::has_page_extension(&task.wanted.url)
    {
        return Err(Cause::Download(Fault::Page(to.to_string())));
    }
    if at == 0 {
        flight.begun_at = 0;
        let note = head.note(&task.wanted.url);
        match &mut flight.partial {
            Some(partial) => {
                let begun = partial.start_over(note);
                begun.map_err(|error| store.failed(&task.name, error))?;
            }
            None => {
                let partial = store.to.root.create(&task.name, note);
                let partial = partial.map_err(|error| store.not_opened(&task.name, error))?;
                flight.partial = Some(Box::new(partial));
            }
        }
    }
    flight.length = length;
    flight.modified = head.modified();
    flight.etag = head.tag();
    flight.date = head.date_text();
    place::begin_sum(flight).map_err(|error| store.failed(&flight.task.name, error))
}

/// Appends bytes to the partial file. Returns why the download cannot continue, if it cannot.
pub(super) fn append(
    flight: &mut ActiveDownload,
    bytes: &[u8],
    store: &mut Store,
) -> Option<Cause> {
    let partial = flight.partial.as_mut()?;
    let came = partial.length() + bytes.len() as u64;
    // Without a length of its own, an answer could go on for ever.
    let needs_size = store.rules.strict_sizes || flight.length.is_none();
    if needs_size && let Some(size) = flight.task.wanted.size.filter(|size| came > size.hi) {
        return Some(wrong_length(size, came));
    }
    let written = partial.write(bytes);
    if let Some(sum) = &mut flight.sum {
        sum.update(bytes);
    }
    written
        .err()
        .map(|error| store.failed(&flight.task.name, error))
}

pub(super) fn redirect_target(
    task: &Task,
    location: Option<&[u8]>,
    store: &Store,
) -> Result<Url, Cause> {
    let reference = location.and_then(|location| str::from_utf8(location).ok());
    let from = match &task.location {
        Some(location) => Ok(location.clone()),
        None => Url::parse(&task.wanted.url),
    };
    let from = from.map_err(|_| Cause::NoLocation)?;
    let to = reference.and_then(|reference| from.join(reference).ok());
    let mut to = to.ok_or(Cause::NoLocation)?;
    to.set_fragment(None);
    path::forget_credentials(&mut to);
    if let Err(why) = store.scope.judge_redirect(&to) {
        return Err(Cause::Download(Fault::Outside(to.into(), why)));
    }
    if store.rules.refuses_tls && to.scheme() == "https" {
        let text = "the file redirects to https, and the authorities for TLS cannot be read";
        return Err(Cause::Transfer(text.into()));
    }
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(Cause::Download(Fault::Unsafe(to.into())));
    }
    Ok(to)
}

/// Whether a content coding is that of the file itself: some servers send `gzip` for `x.tar.gz`. A coding that was
/// applied only for the transfer would yield another file.
pub(super) fn is_own_coding(coding: &[u8], name: &[u8]) -> bool {
    let suffixes: &[&[u8]] = match coding.to_ascii_lowercase().as_slice() {
        b"identity" | b"" => return true,
        b"gzip" | b"x-gzip" => &[b"gz", b"tgz", b"svgz", b"taz"],
        b"compress" | b"x-compress" => &[b"Z", b"taZ"],
        b"br" => &[b"br"],
        b"zstd" => &[b"zst", b"tzst"],
        b"x-bzip2" | b"bzip2" => &[b"bz2", b"tbz2", b"tbz"],
        b"x-xz" | b"xz" => &[b"xz", b"txz"],
        _ => &[],
    };
    let extension = name.rsplit(|&byte| byte == b'.').next();
    extension.is_some_and(|extension| suffixes.contains(&extension))
}

pub(super) fn wrong_length(announced: SizeRange, received: u64) -> Cause {
    Cause::Download(Fault::Length {
        announced,
        received,
    })
}
