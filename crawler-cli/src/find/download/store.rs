//! What the downloads of all hosts share: the directory, its rules, and the names that are taken. From the look at the disk
//! before the request for a file, over the bytes that arrive, to the final name.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use url::Url;

use super::answer::{Asked, Note, modified, wrong_length};
use super::disk::{Partial, Root};
use super::names::{Base, Name};
use super::seconds;
use super::task::{Flight, Step, Task};
use crate::crawl::file_names::fnv1a;
use crate::find::cause::Cause;
use crate::find::fault::Fault;
use crate::find::found::How;
use crate::find::host_crawl::{Counts, Reply};
use crate::find::range::SizeRange;
use crate::find::scope::Scope;
use crate::find::{listing, path};

/// What the downloads of all hosts share.
#[derive(Debug)]
pub(in crate::find) struct Store {
    pub(super) root: Root,
    /// Files that differ from the server's are replaced.
    pub(in crate::find) overwrite: bool,
    /// TLS cannot be used, so that redirects to https are not followed.
    pub(in crate::find) refuses_tls: bool,
    /// The base of file names, if there is exactly one start.
    pub(super) base: Option<Base>,
    /// The URLs to which redirects may lead.
    scope: Scope,
    /// The names used in this run: the hash of each name, and that of its URL.
    claims: HashMap<u64, u64>,
    /// A write has failed in a way that all others will.
    is_full: bool,
    pub(in crate::find) tally: Tally,
}

/// The progress that the next run continues.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(in crate::find) struct Tally {
    pub(in crate::find) counts: DownloadCounts,
    pub(super) requests: u64,
    /// Requests that were repetitions.
    pub(super) retries: u64,
}

impl Tally {
    /// The requests for files.
    pub(in crate::find) fn requests(&self) -> Counts {
        Counts {
            requests: self.requests,
            retries: self.retries,
            unread: self.counts.failed,
            ..Counts::default()
        }
    }
}

/// The progress of downloads.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DownloadCounts {
    /// Files to download.
    pub wanted: u64,
    /// Files downloaded, in one piece or resumed.
    pub saved: u64,
    /// Downloaded files that were resumed after an interruption, in this run or an earlier one.
    pub resumed: u64,
    /// Files that existed already.
    pub kept: u64,
    /// Files given up, each reported as unread.
    pub failed: u64,
    /// Files being downloaded.
    pub under_way: u64,
    /// Bytes written.
    pub bytes: u64,
}

impl DownloadCounts {
    /// Files that are complete on disk or given up.
    pub fn over(&self) -> u64 {
        self.saved + self.kept + self.failed
    }
}

/// The result of preparing a file.
pub(super) enum Prepared {
    Ask(Asked, Option<Box<Partial>>),
    /// The file exists, with this length in bytes.
    Kept(u64),
    /// The file was added before.
    Repeated,
}

impl Store {
    /// Files go below this directory.
    pub(in crate::find) fn new(root: Root, base: Option<Base>, scope: Scope) -> Self {
        Self {
            root,
            overwrite: false,
            refuses_tls: false,
            base,
            scope,
            claims: HashMap::new(),
            is_full: false,
            tally: Tally::default(),
        }
    }

    /// Continues an earlier run, whose files are [restored](super::Downloads::restore) after this.
    pub(in crate::find) fn resume(&mut self, tally: Tally) {
        self.tally = tally;
        self.tally.counts.wanted = tally.counts.over();
    }

    /// Whether the disk is full: the run is to end.
    pub(in crate::find) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes the name of a file, and looks at what is on the disk.
    pub(super) fn prepare(&mut self, task: &mut Task) -> Result<Prepared, Cause> {
        if task.step == Step::Begin {
            let url = fnv1a(task.wanted.url.as_bytes());
            if let Some(first) = self.claims.get(&task.name.fingerprint()) {
                let path = self.root.path_of(&task.name);
                return match *first == url {
                    true => Ok(Prepared::Repeated),
                    false => Err(Cause::Download(Fault::NameTaken(path))),
                };
            }
            self.claims.insert(task.name.fingerprint(), url);
            let existing = self.root.existing(&task.name);
            task.existing = existing.map_err(|error| self.failed(&task.name, error))?;
            let listed = task
                .existing
                .filter(|found| task.wanted.is_as_listed(*found));
            if let Some(found) = listed {
                return Ok(Prepared::Kept(found.length));
            }
            task.step = Step::Fetch;
        }
        let may_resume = task.existing.is_none() || self.overwrite;
        if task.step == Step::FetchWhole || !may_resume {
            return Ok(Prepared::Ask(Asked::Whole, None));
        }
        let partial = self.root.find_partial(&task.name, &task.wanted.url);
        let partial = partial.map_err(|error| self.failed(&task.name, error))?;
        let rest = partial.as_ref().and_then(|partial| partial.rest());
        let asked = match rest {
            Some((at, note)) => Asked::Rest(at, note.clone()),
            None => Asked::Whole,
        };
        Ok(Prepared::Ask(asked, partial.map(Box::new)))
    }

    /// Prepares the file for a body that starts at offset `at`. Returns the length of the existing file if that is the same.
    pub(super) fn begin(
        &mut self,
        flight: &mut Flight,
        head: &Reply<'_>,
        at: u64,
        length: Option<u64>,
    ) -> Result<Option<u64>, Cause> {
        let task = &flight.task;
        if let Some(coding) = head.content_encoding
            && !is_own_coding(coding, task.name.file())
        {
            return Err(Cause::Encoded(coding.escape_ascii().to_string()));
        }
        let is_listed =
            || length.is_some() && task.wanted.size.and_then(SizeRange::known) == length;
        if let Some(to) = &task.location
            && head.content_type.is_some_and(listing::is_html)
            && !is_listed()
            && !listing::has_page_extension(&task.wanted.url)
        {
            return Err(Cause::Download(Fault::Page(to.to_string())));
        }
        if let Some(existing) = task.existing.filter(|_| at == 0) {
            if task.is_same(existing, length, modified(head).and_then(seconds)) {
                return Ok(Some(existing.length));
            }
            if !self.overwrite {
                return Err(self.failed(&task.name, ErrorKind::AlreadyExists.into()));
            }
        }
        if at == 0 {
            flight.begun_at = 0;
            let note = Note::of(head, &task.wanted.url);
            let begun = match &mut flight.partial {
                Some(partial) => partial.start_over(note),
                None => self.root.create(&task.name, note).map(|partial| {
                    flight.partial = Some(Box::new(partial));
                }),
            };
            begun.map_err(|error| self.failed(&task.name, error))?;
        }
        flight.length = length;
        flight.modified = modified(head);
        Ok(None)
    }

    /// Appends bytes to the partial file.
    pub(super) fn append(&mut self, flight: &mut Flight, bytes: &[u8]) -> Result<(), Cause> {
        let came = flight.came() + bytes.len() as u64;
        // Without a length of its own, an answer could go on for ever.
        let hint = flight.task.wanted.size.filter(|_| flight.length.is_none());
        if let Some(size) = hint.filter(|size| came > size.hi) {
            return Err(wrong_length(size, came));
        }
        // A part without a Content-Length can be longer than its range.
        if let Some(length) = flight.length.filter(|length| came > *length) {
            if let Some(partial) = &mut flight.partial {
                partial.discard();
            }
            return Err(wrong_length(SizeRange::exact(length), came));
        }
        let partial = flight.partial.as_mut();
        let written = partial.map_or(Ok(()), |partial| partial.write(bytes));
        written.map_err(|error| self.failed(&flight.task.name, error))
    }

    /// Gives a complete file its name.
    pub(super) fn place(&mut self, flight: &mut Flight) -> Result<How, Cause> {
        let name = &flight.task.name;
        let Some(partial) = &mut flight.partial else {
            return Err(self.failed(name, ErrorKind::NotFound.into()));
        };
        let noted = partial.note().and_then(|note| note.modified());
        let modified = flight.modified.or(noted);
        match partial.finish(modified, self.overwrite) {
            Ok(()) if flight.begun_at == 0 => Ok(How::Fetched),
            Ok(()) => Ok(How::Resumed(flight.begun_at)),
            // Another process was faster.
            Err(_) if self.has_same(name, partial.length(), modified) => {
                partial.discard();
                Ok(How::Kept)
            }
            Err(error) => Err(self.failed(name, error)),
        }
    }

    /// Whether a file with this name, length and time exists.
    fn has_same(&self, name: &Name, length: u64, modified: Option<SystemTime>) -> bool {
        let Ok(Some(existing)) = self.root.existing(name) else {
            return false;
        };
        let modified = modified.and_then(seconds);
        existing.length == length && modified.is_none_or(|modified| modified == existing.modified)
    }

    /// Where a file is redirected to.
    pub(super) fn redirect_target(
        &self,
        task: &Task,
        location: Option<&[u8]>,
    ) -> Result<Url, Cause> {
        let reference = location.and_then(|location| str::from_utf8(location).ok());
        let from = Url::parse(task.url()).map_err(|_| Cause::NoLocation)?;
        let to = reference.and_then(|reference| from.join(reference).ok());
        let mut to = to.ok_or(Cause::NoLocation)?;
        to.set_fragment(None);
        path::forget_credentials(&mut to);
        if let Err(why) = self.scope.judge_redirect(&to) {
            return Err(Cause::Download(Fault::Outside(to.into(), why)));
        }
        if self.refuses_tls && to.scheme() == "https" {
            let text = "the file redirects to https, and the authorities for TLS cannot be read";
            return Err(Cause::Transfer(text.into()));
        }
        if from.scheme() == "https" && to.scheme() != "https" {
            return Err(Cause::Download(Fault::Unsafe(to.into())));
        }
        Ok(to)
    }

    pub(super) fn failed(&mut self, name: &Name, error: io::Error) -> Cause {
        use ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let kind = error.kind();
        self.is_full |= matches!(kind, StorageFull | QuotaExceeded | ReadOnlyFilesystem);
        let path = self.root.path_of(name);
        Cause::Download(match kind {
            ErrorKind::AlreadyExists => Fault::Exists(path),
            ErrorKind::WouldBlock => Fault::InUse(path),
            _ => Fault::File(path, error),
        })
    }
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
