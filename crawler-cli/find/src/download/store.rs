//! What the downloads of all hosts share: the directory, its rules, and the names that are taken. From the look at the disk
//! before the request for a file, over the bytes that arrive, to the final name.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;

use url::Url;

use super::answer::{Answer, Note, judge};
use super::disk::{Partial, Root};
use super::names::{Base, Name};
use super::wanted::Wanted;
use crate::cause::Cause;
use crate::fault::Fault;
use crate::found::{How, Saved};
use crate::host_crawl::{FileEnd as End, Reply};
use crate::visitor::Visitor;
use crawl::failure::FailureScope;
use crawl::file_names::fnv1a;
use crawl::redirect::Chain;
use crawl::retry::Failed;
use crawl::scope::Scope;
use listing;
use listing::range::SizeRange;

/// What the downloads of all hosts share.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) root: Root,
    /// Files that differ from the server's are replaced.
    pub(crate) overwrite: bool,
    /// TLS cannot be used, so that redirects to https are not followed.
    pub(crate) refuses_tls: bool,
    /// The base of file names, if there is exactly one start.
    pub(crate) base: Option<Base>,
    /// The URLs to which redirects may lead.
    pub(crate) scope: Scope,
    pub(crate) most_redirects: u32,
    /// The names used in this run: the hash of each name, and that of its URL.
    claims: HashMap<u64, u64>,
    /// A write has failed in a way that all others will.
    is_full: bool,
}

/// A request for a file.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(super) name: Name,
    /// Before the head of the response: only if the rest of the file was requested.
    pub(super) partial: Option<Partial>,
}

impl Flight {
    /// If the rest of the file is requested: its offset, and the note that describes the file.
    pub(super) fn rest(&self) -> Option<(u64, &Note)> {
        self.partial.as_ref()?.rest()
    }

    /// The size of the file by the head of the response, else by the listing, and whether it is by the head.
    fn announced(&self, wanted: &Wanted) -> (Option<SizeRange>, bool) {
        let note = self
            .partial
            .as_ref()
            .and_then(|partial| partial.note.as_ref());
        let own = note.and_then(|note| note.length).map(SizeRange::exact);
        (own.or(wanted.size), own.is_some())
    }
}

impl Store {
    /// Files go below this directory, and nothing is replaced.
    pub(crate) fn new(root: Root) -> Self {
        Self {
            root,
            overwrite: false,
            refuses_tls: false,
            base: None,
            scope: Scope::new(),
            most_redirects: 0,
            claims: HashMap::new(),
            is_full: false,
        }
    }

    /// Whether the disk is full: the run is to end.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Looks at what is on the disk. Returns the request for the file, or for its rest.
    pub(super) fn prepare(&mut self, wanted: &Wanted) -> Result<Flight, End> {
        let name = Name::of(&wanted.url, self.base.as_ref());
        let path = self.root.path_of(&name);
        // The first URL that has a path keeps it.
        let own = fnv1a(wanted.url.as_bytes());
        let taken = fnv1a(path.as_os_str().as_bytes());
        if *self.claims.entry(taken).or_insert(own) != own {
            return Err(Cause::Download(Fault::NameTaken(path)).into());
        }
        let existing = self.root.existing(&name);
        let existing = existing.map_err(|error| self.failed(&name, error))?;
        if let Some(found) = existing.filter(|found| wanted.is_as_listed(*found)) {
            return Err(End::Saved(How::Kept, found.length));
        }
        let mut partial = None;
        if existing.is_none() || self.overwrite {
            let found = self.root.find_partial(&name, &wanted.url);
            partial = found.map_err(|error| self.failed(&name, error))?;
        }
        Ok(Flight { name, partial })
    }

    /// The head of a response. `Ok`: its body is wanted.
    pub(crate) fn handle_head(
        &mut self,
        wanted: &mut Wanted,
        flight: &mut Flight,
        head: &Reply<'_>,
    ) -> Result<(), End> {
        match judge(head, flight.rest()) {
            Answer::Body { at, length } => self.begin(wanted, flight, head, at, length),
            Answer::StartOver => {
                if let Some(partial) = &mut flight.partial {
                    let cleared = partial.clear();
                    cleared.map_err(|error| self.failed(&flight.name, error))?;
                }
                Err(End::Again)
            }
            Answer::Complete => self.place(flight),
            Answer::Redirect => {
                self.follow(wanted, head)?;
                Err(End::Again)
            }
            Answer::Later => {
                let failed = Failed::of_status(head.status, head.retry_after, head.date);
                Err(End::Failed(failed, Cause::Status(head.status)))
            }
            Answer::Refused => Err(Cause::Status(head.status).into()),
        }
    }

    /// Prepares the file for a body that starts at offset `at`, unless the existing file is the same.
    fn begin(
        &mut self,
        wanted: &Wanted,
        flight: &mut Flight,
        head: &Reply<'_>,
        at: u64,
        length: Option<u64>,
    ) -> Result<(), End> {
        let name = &flight.name;
        if let Some(coding) = head.content_encoding
            && !is_own_coding(coding, name.file())
        {
            return Err(Cause::Encoded(coding.escape_ascii().to_string()).into());
        }
        let is_listed = || length.is_some() && wanted.size.and_then(SizeRange::known) == length;
        if wanted.chain.is_some()
            && head.content_type.is_some_and(listing::is_html)
            && !is_listed()
            && !listing::has_page_extension(&wanted.url)
        {
            return Err(Cause::Download(Fault::Page(wanted.asked().to_owned())).into());
        }
        if let Some(partial) = flight.partial.as_mut().filter(|_| at > 0) {
            if let Some(note) = &mut partial.note {
                (note.length, note.modified) = (length, head.modified().or(note.modified));
            }
            return Ok(());
        }
        let note = Note::of(head, &wanted.url);
        let existing = self.root.existing(name);
        if let Some(found) = existing.map_err(|error| self.failed(name, error))? {
            if wanted.is_same(found, &note) {
                return Err(End::Saved(How::Kept, found.length));
            }
            if !self.overwrite {
                return Err(self.failed(name, ErrorKind::AlreadyExists.into()).into());
            }
        }
        // The file is locked as long as it is open.
        drop(flight.partial.take());
        let partial = self.root.create(name, note);
        flight.partial = Some(partial.map_err(|error| self.failed(name, error))?);
        Ok(())
    }

    /// Appends bytes to the partial file. `Ok`: more are wanted.
    pub(crate) fn append(
        &mut self,
        wanted: &Wanted,
        flight: &mut Flight,
        bytes: &[u8],
    ) -> Result<(), End> {
        let (announced, is_own) = flight.announced(wanted);
        let Some(partial) = &mut flight.partial else {
            return Ok(());
        };
        let came = partial.length + bytes.len() as u64;
        // An answer without a length of its own, and a part without a Content-Length, could go on for ever.
        if let Some(announced) = announced.filter(|size| came > size.hi) {
            if is_own {
                partial.note = None;
            }
            return Err(wrong_length(announced, came).into());
        }
        let written = partial.write(bytes);
        Ok(written.map_err(|error| self.failed(&flight.name, error))?)
    }

    /// The end of a wanted body.
    pub(crate) fn handle_end(&mut self, wanted: &Wanted, flight: &mut Flight) -> Result<(), End> {
        let came = flight.partial.as_ref().map_or(0, |partial| partial.length);
        match flight.announced(wanted) {
            // A server may send less than was asked for (RFC 9110 §15.3.7).
            (Some(length), true) if came < length.lo => {
                let cause = wrong_length(length, came);
                let failed = Failed::new(cause.class(), FailureScope::Request);
                Err(End::Failed(failed, cause))
            }
            // Without a length of its own, only the listing can show that an answer is cut.
            (Some(listed), false) if came < listed.lo => Err(wrong_length(listed, came).into()),
            _ => self.place(flight),
        }
    }

    /// Gives a complete file its name.
    fn place(&mut self, flight: &mut Flight) -> Result<(), End> {
        let name = &flight.name;
        let Some(partial) = &mut flight.partial else {
            return Err(self.failed(name, ErrorKind::NotFound.into()).into());
        };
        let finished = partial.finish(self.overwrite);
        finished.map_err(|error| self.failed(name, error))?;
        let how = match partial.begun_at {
            0 => How::Fetched,
            begun_at => How::Resumed(begun_at),
        };
        Err(End::Saved(how, partial.length))
    }

    /// Reports a file that is complete.
    pub(super) fn report(&self, wanted: &Wanted, end: &End, visitor: &mut dyn Visitor) {
        if let End::Saved(how, length) = *end {
            let name = Name::of(&wanted.url, self.base.as_ref());
            visitor.downloaded(Saved {
                url: &wanted.url,
                file: &self.root.path_of(&name),
                length,
                how,
                listed: wanted.size.filter(|size| !size.contains(length)),
            });
        }
    }

    /// Follows a redirect, if it leads to where the file may be.
    fn follow(&self, wanted: &mut Wanted, head: &Reply<'_>) -> Result<(), Cause> {
        let from = Url::parse(wanted.asked()).map_err(|_| Cause::NoLocation)?;
        let chain = wanted
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
