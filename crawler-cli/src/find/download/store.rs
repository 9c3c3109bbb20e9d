//! What the downloads of all hosts share: the directory, its rules, and the names that are taken. From the look at the disk
//! before the request for a file, over the bytes that arrive, to the final name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};
use url::Url;

use super::answer::{Answer, Note, judge};
use super::disk::{Partial, Root};
use super::names::{Base, Name};
use super::task::{Flight, Task};
use crate::crawl::failure::FailureScope;
use crate::crawl::file_names::fnv1a;
use crate::crawl::redirect::Chain;
use crate::crawl::retry::Failed;
use crate::find::cause::Cause;
use crate::find::fault::Fault;
use crate::find::found::How;
use crate::find::host_crawl::Reply;
use crate::find::listing;
use crate::find::range::SizeRange;
use crate::find::scope::Scope;

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
    most_redirects: u32,
    /// The names used in this run: the hash of each name, and that of its URL.
    claims: HashMap<u64, u64>,
    /// A write has failed in a way that all others will.
    is_full: bool,
    pub(in crate::find) counts: DownloadCounts,
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
    /// Requests handed out.
    pub requests: u64,
    /// Requests that were repetitions.
    pub retries: u64,
}

impl DownloadCounts {
    /// Files that are complete on disk or given up.
    pub fn over(&self) -> u64 {
        self.saved + self.kept + self.failed
    }
}

/// What is done before the request for a file.
pub(super) enum Prepared {
    /// Request the file, or the rest of this partial file.
    Ask(Option<Partial>),
    /// The file exists, with this length in bytes.
    Kept(u64),
}

/// How a request for a file ends.
pub(super) enum End {
    /// The file is complete on disk, with this length in bytes.
    Saved(How, u64),
    /// Another request is needed at once.
    Again,
    /// The request failed; another attempt may not.
    Failed(Failed, Cause),
}

impl Store {
    /// Files go below this directory.
    pub(in crate::find) fn new(
        root: Root,
        base: Option<Base>,
        scope: Scope,
        most_redirects: u32,
    ) -> Self {
        Self {
            root,
            overwrite: false,
            refuses_tls: false,
            base,
            scope,
            most_redirects,
            claims: HashMap::new(),
            is_full: false,
            counts: DownloadCounts::default(),
        }
    }

    /// Continues an earlier run, whose unfinished files are [added](super::Downloads::add) after this.
    pub(in crate::find) fn resume(&mut self, counts: DownloadCounts) {
        self.counts = counts;
        self.counts.wanted = counts.over();
    }

    /// Whether the disk is full: the run is to end.
    pub(in crate::find) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Gives a name to the first URL that claims it. Returns whether this URL has not claimed the name before.
    pub(super) fn claim(&mut self, name: &Name, url: &str) -> bool {
        let url = fnv1a(url.as_bytes());
        match self.claims.entry(name.fingerprint()) {
            Entry::Occupied(first) => *first.get() != url,
            Entry::Vacant(free) => {
                free.insert(url);
                true
            }
        }
    }

    /// Looks at what is on the disk.
    pub(super) fn prepare(&mut self, task: &Task) -> Result<Prepared, Cause> {
        let (name, url) = (&task.name, &task.wanted.url);
        if self.claims.get(&name.fingerprint()) != Some(&fnv1a(url.as_bytes())) {
            let path = self.root.path_of(name);
            return Err(Cause::Download(Fault::NameTaken(path)));
        }
        let existing = self.root.existing(name);
        let existing = existing.map_err(|error| self.failed(name, error))?;
        if let Some(found) = existing.filter(|found| task.wanted.is_as_listed(*found)) {
            return Ok(Prepared::Kept(found.length));
        }
        if existing.is_some() && !self.overwrite {
            return Ok(Prepared::Ask(None));
        }
        let partial = self.root.find_partial(name, url);
        let partial = partial.map_err(|error| self.failed(name, error))?;
        Ok(Prepared::Ask(partial))
    }

    /// The head of a response. `None`: its body is wanted.
    pub(super) fn handle_head(
        &mut self,
        flight: &mut Flight,
        head: &Reply<'_>,
    ) -> Result<Option<End>, Cause> {
        Ok(Some(match judge(head, flight.rest()) {
            Answer::Body { at, length } => {
                let kept = self.begin(flight, head, at, length)?;
                return Ok(kept.map(|length| End::Saved(How::Kept, length)));
            }
            Answer::StartOver => {
                if let Some(partial) = &mut flight.partial {
                    let cleared = partial.clear();
                    cleared.map_err(|error| self.failed(&flight.task.name, error))?;
                }
                End::Again
            }
            Answer::Complete => self.place(flight)?,
            Answer::Redirect => {
                self.follow(&mut flight.task, head)?;
                End::Again
            }
            Answer::Later => {
                let failed = Failed::of_status(head.status, head.retry_after, head.date);
                End::Failed(failed, Cause::Status(head.status))
            }
            Answer::Refused => return Err(Cause::Status(head.status)),
        }))
    }

    /// Prepares the file for a body that starts at offset `at`. Returns the length of the existing file if that is the same.
    fn begin(
        &mut self,
        flight: &mut Flight,
        head: &Reply<'_>,
        at: u64,
        length: Option<u64>,
    ) -> Result<Option<u64>, Cause> {
        let (wanted, name) = (&flight.task.wanted, &flight.task.name);
        if let Some(coding) = head.content_encoding
            && !is_own_coding(coding, name.file())
        {
            return Err(Cause::Encoded(coding.escape_ascii().to_string()));
        }
        let is_listed = || length.is_some() && wanted.size.and_then(SizeRange::known) == length;
        if let Some(chain) = &flight.task.chain
            && head.content_type.is_some_and(listing::is_html)
            && !is_listed()
            && !listing::has_page_extension(&wanted.url)
        {
            return Err(Cause::Download(Fault::Page(chain.url().to_string())));
        }
        if let Some(partial) = flight.partial.as_mut().filter(|_| at > 0) {
            partial.handle_part(length, head.modified());
            return Ok(None);
        }
        let note = Note::of(head, &wanted.url);
        let existing = self.root.existing(name);
        if let Some(found) = existing.map_err(|error| self.failed(name, error))? {
            if wanted.is_same(found, &note) {
                return Ok(Some(found.length));
            }
            if !self.overwrite {
                return Err(self.failed(name, ErrorKind::AlreadyExists.into()));
            }
        }
        let begun = match &mut flight.partial {
            Some(partial) => partial.start_over(note),
            None => self.root.create(name, note).map(|partial| {
                flight.partial = Some(partial);
            }),
        };
        begun.map_err(|error| self.failed(name, error))?;
        Ok(None)
    }

    /// Appends bytes to the partial file.
    pub(super) fn append(&mut self, flight: &mut Flight, bytes: &[u8]) -> Result<(), Cause> {
        let (announced, length) = (flight.announced(), flight.length());
        let Some(partial) = &mut flight.partial else {
            return Ok(());
        };
        let came = partial.length + bytes.len() as u64;
        // An answer without a length of its own, and a part without a Content-Length, could go on for ever.
        if let Some(announced) = announced.filter(|size| came > size.hi) {
            if length.is_some() {
                partial.discard();
            }
            return Err(wrong_length(announced, came));
        }
        let written = partial.write(bytes);
        written.map_err(|error| self.failed(&flight.task.name, error))?;
        self.counts.bytes += bytes.len() as u64;
        Ok(())
    }

    /// The end of a wanted body.
    pub(super) fn handle_end(&mut self, flight: &mut Flight) -> Result<End, Cause> {
        let came = flight.came();
        let Some(announced) = flight.announced().filter(|size| came < size.lo) else {
            return self.place(flight);
        };
        let cause = wrong_length(announced, came);
        match flight.length() {
            // A server may send less than was asked for (RFC 9110 §15.3.7).
            Some(_) => {
                let failed = Failed::new(cause.class(), FailureScope::Request);
                Ok(End::Failed(failed, cause))
            }
            // Without a length of its own, only the listing can show that an answer is cut.
            None => Err(cause),
        }
    }

    /// Gives a complete file its name.
    fn place(&mut self, flight: &mut Flight) -> Result<End, Cause> {
        let (wanted, name) = (&flight.task.wanted, &flight.task.name);
        let Some(partial) = &mut flight.partial else {
            return Err(self.failed(name, ErrorKind::NotFound.into()));
        };
        partial.handle_part(Some(partial.length), None);
        let how = match partial.finish(self.overwrite) {
            Ok(()) if partial.begun_at == 0 => How::Fetched,
            Ok(()) => How::Resumed(partial.begun_at),
            Err(error) => {
                let existing = self
                    .root
                    .existing(name)
                    .ok()
                    .flatten()
                    .zip(partial.note.as_ref());
                if !existing.is_some_and(|(found, note)| wanted.is_same(found, note)) {
                    return Err(self.failed(name, error));
                }
                // Another process was faster.
                partial.discard();
                How::Kept
            }
        };
        Ok(End::Saved(how, partial.length))
    }

    /// Follows a redirect, if it leads to where the file may be.
    fn follow(&self, task: &mut Task, head: &Reply<'_>) -> Result<(), Cause> {
        let from = Url::parse(task.url()).map_err(|_| Cause::NoLocation)?;
        let chain = task
            .chain
            .get_or_insert_with(|| Box::new(Chain::new(&from)));
        chain
            .follow(head.status, head.location, self.most_redirects, true)
            .map_err(Cause::NotFollowed)?;
        let to = chain.url();
        if let Err(why) = self.scope.judge_redirect(to) {
            return Err(Cause::Download(Fault::Outside(to.to_string(), why)));
        }
        if self.refuses_tls && to.scheme() == "https" {
            let text = "the file redirects to https, and the authorities for TLS cannot be read";
            return Err(Cause::Transfer(text.into()));
        }
        if from.scheme() == "https" && to.scheme() != "https" {
            return Err(Cause::Download(Fault::Unsafe(to.to_string())));
        }
        Ok(())
    }

    /// The cause for an error of this file. Notes that the disk is full.
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

fn wrong_length(announced: SizeRange, received: u64) -> Cause {
    Cause::Download(Fault::Length {
        announced,
        received,
    })
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
