//! How a file gets its place on disk: what is there already, whether that is the server's file, and the last steps from
//! the complete partial file to its name.

use std::time::SystemTime;

use super::answer::{Head, Validator};
use super::disk::{Existing, FileMetadata};
use super::mirror::{Known, Put};
use super::sums::{Sum, Summing, text_of};
use super::{ActiveDownload, Step, Store, Task};
use crate::find::cause::Cause;
use crate::find::fault::Fault;
use crate::find::found::How;

/// What is on disk under the name of a file.
pub(super) enum Looked {
    /// The next step.
    Go(Step),
    /// The server's file, of this length.
    Kept(u64),
    /// Something that may be deleted later in this run.
    Blocked,
}

/// Looks at what is on disk.
pub(super) fn look(task: &mut Task, store: &mut Store) -> Result<Looked, Cause> {
    let exists = |store: &Store, task: &Task| {
        let path = store.to.root.path_of(&task.name);
        Err(Cause::Download(Fault::Exists(path)))
    };
    match store.to.root.existing(&task.name) {
        Ok(Existing::Nothing) => Ok(Looked::Go(Step::Fetch)),
        Ok(Existing::File(found)) if task.wanted.is_as_listed(found) => {
            Ok(Looked::Kept(found.length))
        }
        Ok(Existing::File(found)) => {
            task.known = store.known(task, found).map(Box::new);
            let root = &store.to.root;
            // An update of the file was interrupted.
            let has_begun = task.known.is_some()
                && matches!(root.find_partial(&task.name, &task.wanted.url), Ok(Some(_)));
            Ok(Looked::Go(match has_begun {
                true => Step::Fetch,
                false => Step::Compare(found),
            }))
        }
        Ok(Existing::Directory) if store.is_blocked(task) => Ok(Looked::Blocked),
        Ok(Existing::Directory | Existing::Other) => exists(store, task),
        // A file is where a directory of the path should be.
        Err(_) if store.is_blocked(task) => Ok(Looked::Blocked),
        Err(error) => Err(store.failed(&task.name, error)),
    }
}

impl Store {
    /// What the mirror knows about the existing file, if an earlier run has put it there.
    fn known(&mut self, task: &Task, found: FileMetadata) -> Option<Known> {
        let root = &self.to.root;
        self.mirror.as_mut()?.known(root, &task.name, found)
    }

    /// Whether something of an earlier run is in the way of a file.
    fn is_blocked(&mut self, task: &Task) -> bool {
        let root = &self.to.root;
        let mirror = self.mirror.as_mut();
        mirror.is_some_and(|mirror| mirror.is_blocked(root, &task.name))
    }
}

/// Whether the server can be asked if its file is still the existing one.
pub(super) fn has_validators(task: &Task, found: FileMetadata) -> bool {
    let known = task.known.as_ref();
    known.is_some_and(|known| {
        known.describes(found) && (known.etag.is_some() || known.date.is_some())
    })
}

/// Whether a body that was sent in spite of validators is that of the known file: not all servers compare.
pub(super) fn is_known(flight: &ActiveDownload, head: &Head<'_>, length: Option<u64>) -> bool {
    let (Some(known), Step::Compare(found)) = (&flight.task.known, flight.task.step) else {
        return false;
    };
    let same_length = length.is_none_or(|length| length == found.length);
    let same_tag = known.etag == head.tag();
    let same_date = known.date == head.date_text();
    let is_told = known.etag.is_some() || (known.date.is_some() && length.is_some());
    same_length && same_tag && same_date && is_told
}

/// Begins the checksum of a file, with what is there of it.
pub(super) fn begin_sum(flight: &mut ActiveDownload) -> std::io::Result<()> {
    flight.sum = None;
    if let (Some(Some(_)), Some(partial)) = (&flight.task.sum, &flight.partial) {
        let mut sum = Summing::new();
        partial.sum(&mut sum)?;
        flight.sum = Some(sum);
    }
    Ok(())
}

/// A file that has its name.
pub(super) struct Placed {
    pub(super) length: u64,
    pub(super) how: How,
}

/// Gives a complete file its name.
///
/// # Errors
/// The checksum is wrong, or the file cannot be renamed.
pub(super) fn place(flight: &mut ActiveDownload, store: &mut Store) -> Result<Placed, Cause> {
    if let Some(Some(listed)) = flight.task.sum {
        check(flight, listed, store)?;
    }
    let Some(partial) = &mut flight.partial else {
        return Err(store.failed(&flight.task.name, std::io::ErrorKind::NotFound.into()));
    };
    let length = partial.length();
    let how = match flight.begun_at {
        0 => How::Fetched,
        at => How::Resumed(at),
    };
    let modified = flight
        .modified
        .or_else(|| partial.note().and_then(|note| note.modified()));
    match rename(flight, modified, store) {
        Ok(()) => Ok(Placed { length, how }),
        // Another process was faster.
        Err(_) if store.has_same(&flight.task.name, length, modified) => {
            if let Some(partial) = flight.partial.take() {
                partial.discard();
            }
            let how = How::Kept;
            Ok(Placed { length, how })
        }
        Err(error) => Err(store.failed(&flight.task.name, error)),
    }
}

/// Compares the checksum with that in the list.
fn check(flight: &mut ActiveDownload, listed: Sum, store: &mut Store) -> Result<(), Cause> {
    let name = &flight.task.name;
    let Some(partial) = &mut flight.partial else {
        return Ok(());
    };
    let sum = match flight.sum.take() {
        Some(sum) => Ok(sum),
        // All of the file was there already.
        None => {
            let mut sum = Summing::new();
            partial.sum(&mut sum).map(|()| sum)
        }
    };
    let sum = sum.map_err(|error| store.failed(name, error))?.finish();
    if sum == listed {
        return Ok(());
    }
    let kept = partial
        .set_aside()
        .map_err(|error| store.failed(name, error))?;
    Err(Cause::Download(Fault::Checksum {
        kept: store.to.root.path_of(&name.beside(kept)),
        listed: text_of(&listed),
        received: text_of(&sum),
    }))
}

/// Renames a complete file. What a mirror puts there is recorded first.
fn rename(
    flight: &mut ActiveDownload,
    modified: Option<SystemTime>,
    store: &mut Store,
) -> std::io::Result<()> {
    let Some(partial) = &mut flight.partial else {
        return Err(std::io::ErrorKind::NotFound.into());
    };
    let (name, root) = (&flight.task.name, &store.to.root);
    let file = partial.date(modified)?;
    let Some(mirror) = &mut store.mirror else {
        return partial.finish(store.rules.overwrite);
    };
    let before = match root.existing(name) {
        Ok(Existing::File(found)) => mirror.known(root, name, found).map(|_| found),
        _ => None,
    };
    // After all of the file was there, the answer had no validators.
    let (etag, date) = match (&flight.etag, &flight.date, partial.note()) {
        (None, None, Some(note)) => match &note.validator {
            Validator::Tag(tag) => (Some(tag.as_str()), None),
            Validator::Date(date) => (None, Some(date.as_str())),
        },
        (etag, date, _) => (etag.as_deref(), date.as_deref()),
    };
    let put = Put {
        url: &flight.task.wanted.url,
        file,
        before,
        etag,
        date,
    };
    mirror.put(root, name, put)?;
    let renamed = partial.finish(store.rules.overwrite || before.is_some());
    if renamed.is_err() && before.is_none() {
        mirror.forget(root, name);
    }
    renamed
}
