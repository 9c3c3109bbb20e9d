//! What the downloads of all hosts share: the directory, its rules, the names that are taken, and what is known about the
//! files of a mirror and about checksums.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::checks::Checks;
use super::disk::{Claims, Existing, PartialFileError, Root};
use super::mirror::{About, Mirror, MirrorEvent, MostDeleted, Outcome, RecordError, Sighting};
use super::names::{Base, Name};
use super::{DownloadCounts, seconds};
use crate::find::cause::Cause;
use crate::find::fault::Fault;
use crate::find::scope::Scope;

/// The directory of downloads.
#[derive(Clone, Debug)]
pub(in crate::find) struct Destination {
    pub(super) root: Root,
}

impl Destination {
    pub(in crate::find) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Root::open(path)?,
        })
    }

    /// Opens the directory for a dry run, in which nothing is written. It may not exist.
    pub(in crate::find) fn look_at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Root::look_at(path)?,
        })
    }

    /// Whether the directory is not the mirror of another search.
    ///
    /// # Errors
    /// It is.
    pub(in crate::find) fn check_mirror(
        &self,
        about: &About,
        dry: bool,
    ) -> Result<(), RecordError> {
        Mirror::check_search(self.root.path(), about, dry)
    }
}

/// Which files are taken, and which are replaced.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::find) struct FileRules {
    /// Files that differ from the server's are replaced.
    pub(in crate::find) overwrite: bool,
    /// A file of another size than in the listing is not taken.
    pub(in crate::find) strict_sizes: bool,
    /// Files are compared with the checksums beside them.
    pub(in crate::find) checksums: bool,
    /// Nothing is written: what would be done is told.
    pub(in crate::find) dry: bool,
    /// TLS cannot be used, so that redirects to https are not followed.
    pub(in crate::find) refuses_tls: bool,
}

/// What the downloads of all hosts share.
#[derive(Debug)]
pub(in crate::find) struct Store {
    pub(super) to: Destination,
    pub(super) rules: FileRules,
    /// The base of file names, if there is exactly one start.
    pub(super) base: Option<Base>,
    /// The URLs to which redirects may lead.
    pub(super) scope: Scope,
    pub(super) claims: Claims,
    pub(super) checks: Checks,
    /// What is recorded of the files, if those that are gone on the server are deleted.
    pub(super) mirror: Option<Mirror>,
    /// The error after which no file can be written, such as a full disk.
    pub(super) broken: Option<io::ErrorKind>,
}

impl Store {
    pub(in crate::find) fn new(
        to: Destination,
        rules: FileRules,
        base: Option<Base>,
        scope: Scope,
    ) -> Self {
        Self {
            to,
            rules,
            base,
            scope,
            claims: Claims::default(),
            checks: Checks::default(),
            mirror: None,
            broken: None,
        }
    }

    /// Makes the directory a mirror, and opens its record.
    ///
    /// # Errors
    /// The record cannot be opened, or is that of another search.
    pub(in crate::find) fn mirror(
        &mut self,
        about: &About,
        most: MostDeleted,
    ) -> Result<(), RecordError> {
        let folder = self.to.root.path();
        self.mirror = Some(Mirror::open(folder, about, most, self.rules.dry)?);
        Ok(())
    }

    /// Whether [sightings](Self::note) are needed.
    pub(in crate::find) fn takes_notes(&self) -> bool {
        self.mirror.is_some() || self.rules.checksums
    }

    /// Notes what was seen of a server.
    pub(in crate::find) fn note(&mut self, sighting: Sighting, url: &str) {
        if let Some(mirror) = &mut self.mirror {
            mirror.note(&self.to.root, self.base.as_ref(), sighting, url);
        }
        if self.rules.checksums && matches!(sighting, Sighting::File | Sighting::Name) {
            self.checks.note(url);
        }
    }

    /// Whether it is still open what is deleted.
    pub(in crate::find) fn is_unsettled(&self) -> bool {
        self.mirror
            .as_ref()
            .is_some_and(|mirror| !mirror.is_settled())
    }

    /// Deletes what is gone on the server, at the end of a run with this outcome. While files wait, whose keys are given,
    /// only what is in their way.
    pub(in crate::find) fn settle(
        &mut self,
        outcome: Outcome,
        waiting: &BTreeSet<Vec<u8>>,
        tell: &mut dyn FnMut(MirrorEvent<'_>),
    ) {
        if let Some(mirror) = &mut self.mirror {
            mirror.settle(&self.to.root, outcome, waiting, self.rules.dry, tell);
        }
    }

    /// Adds the numbers of deletions.
    pub(in crate::find) fn count(&self, counts: DownloadCounts) -> DownloadCounts {
        let deletions = self
            .mirror
            .as_ref()
            .map(Mirror::deletions)
            .unwrap_or_default();
        DownloadCounts {
            deleted: deletions.deleted,
            not_deleted: deletions.refused,
            ..counts
        }
    }

    /// Whether a file with this name, length and time exists.
    pub(super) fn has_same(&self, name: &Name, length: u64, modified: Option<SystemTime>) -> bool {
        let Ok(Existing::File(existing)) = self.to.root.existing(name) else {
            return false;
        };
        let modified = modified.and_then(seconds);
        existing.length == length && modified.is_none_or(|modified| modified == existing.modified)
    }

    pub(super) fn failed(&mut self, name: &Name, error: io::Error) -> Cause {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        if matches!(
            error.kind(),
            StorageFull | QuotaExceeded | ReadOnlyFilesystem
        ) {
            self.broken = Some(error.kind());
        }
        let path = self.to.root.path_of(name);
        Cause::Download(match error.kind() {
            io::ErrorKind::AlreadyExists => Fault::Exists(path),
            _ => Fault::File(path, error),
        })
    }

    pub(super) fn not_opened(&mut self, name: &Name, error: PartialFileError) -> Cause {
        match error {
            PartialFileError::InUse => Cause::Download(Fault::InUse(self.to.root.path_of(name))),
            PartialFileError::Failed(error) => self.failed(name, error),
        }
    }
}
