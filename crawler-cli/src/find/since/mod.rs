//! What is new, changed or gone since an earlier run: the listings are compared, entry by entry, with those of that run.
//! Listings with validators are asked for with `If-None-Match` and `If-Modified-Since`; after 304, the entries come from
//! the file. This file decides; [`store`] keeps.
//!
//! An entry is gone only if all of its directory was read in this run without it. What could not be read, or not
//! completely, keeps its old record.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::download::validators;
use super::found::{Change, Found, Kind};
use super::listing::{Directories, Listing, Shape};
use super::path;
use super::range::TimeRange;
use super::visitor::ReadPage;
use row::Row;
pub use store::SinceError;
pub(super) use store::Validators;
use store::{Status, Store};

mod row;
mod store;

/// The record of an earlier run. Clones are the same record.
#[derive(Clone, Debug)]
pub struct Since(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    store: Store,
    /// Why the record cannot be used any more.
    broken: Option<SinceError>,
}

/// What a listing says beside its entries.
#[derive(Deserialize, Serialize)]
struct Head {
    shape: Shape,
    directories: Directories,
    marks_directories: bool,
}

/// An entry that is gone.
#[derive(Debug)]
pub(super) struct Gone {
    url: String,
    path: Vec<u8>,
    name: Vec<u8>,
    row: Row,
    depth: u32,
}

impl Gone {
    /// The entry `row` of the directory at this URL.
    fn of(directory: &str, depth: u32, row: Row) -> Self {
        let url = format!("{directory}{}", row.name.trim_end_matches('?'));
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let target = rest.find('/').map_or("/", |at| &rest[at..]);
        let path = target.trim_end_matches('/');
        let name = path.rsplit('/').next().unwrap_or(path);
        Self {
            path: path::decode(path),
            name: path::decode(name),
            url,
            row,
            depth,
        }
    }

    /// The entry as a finding. `start`: the path of its start.
    pub(super) fn found<'a>(&'a self, start: &'a [u8]) -> Found<'a> {
        let kind = match self.row.name.ends_with('/') {
            true => Kind::Directory,
            false => Kind::File,
        };
        Found {
            url: &self.url,
            path: &self.path,
            name: &self.name,
            kind,
            depth: self.depth,
            start,
            size: self.row.size,
            modified: self.row.modified.map(|time| time.range(None)),
            // Nothing more can become known.
            asked: true,
            empty: (kind == Kind::Directory).then_some(false),
            listing: None,
            status: None,
            attempts: 0,
            took: std::time::Duration::ZERO,
            change: Some(Change::Gone),
        }
    }
}

impl Since {
    /// Opens or creates the file for the search that `identity` describes. The file of another search is refused.
    ///
    /// # Errors
    /// The file cannot be read or written, belongs to another search, or is in use.
    pub fn open(path: &Path, identity: &str) -> Result<Self, SinceError> {
        let store = Store::open(path, identity)?;
        Ok(Self(Arc::new(Mutex::new(Inner {
            store,
            broken: None,
        }))))
    }

    /// Replaces the record by what the search has seen, all at once. Without this, the record stays as it was.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn commit(&self) -> Result<(), SinceError> {
        let mut inner = self.lock();
        if let Some(error) = inner.broken.take() {
            return Err(error);
        }
        let committed = inner.store.commit();
        committed.map_err(|error| inner.store.error(error))
    }

    /// The validators with which the listing at this URL is asked for.
    pub(super) fn validators(&self, url: &str) -> Validators {
        self.with(|store| store.validators(url)).unwrap_or_default()
    }

    /// The listing at this URL as it was read last, if it has validators.
    pub(super) fn stored(&self, url: &str) -> Option<Listing> {
        let (head, rows) = self.with(|store| store.listing(url)).flatten()?;
        let head: Head = serde_json::from_str(&head).ok()?;
        Some(Listing::unchanged(
            head.shape,
            rows.into_iter().map(Row::entry).collect(),
            head.directories,
            head.marks_directories,
        ))
    }

    /// Compares a page of a listing with the record, or a part of the page. At the end of the last page, calls `tell` for
    /// each entry that is gone.
    pub(super) fn read(&self, page: &ReadPage<'_>, tell: &mut dyn FnMut(&Gone)) {
        if !page.end.is_some_and(|end| end.unchanged) {
            self.with(|store| compare(store, page, tell));
        }
    }

    /// How an entry compares with the record. `None`: it has not changed.
    pub(super) fn change(&self, found: &Found<'_>) -> Option<Change> {
        let body = found.url.strip_suffix('/').unwrap_or(found.url);
        let at = body.rfind('/').map_or(0, |at| at + 1);
        let (directory, name) = found.url.split_at(at);
        let status = self.with(|store| {
            // The listing may not have shown what it is.
            let unknown = format!("{}?", name.trim_end_matches('/'));
            for name in [name, &unknown] {
                if let Some(status) = store.status(directory, name)? {
                    return Ok(status);
                }
            }
            // No listing has it: a start.
            let row = Row {
                name: String::new(),
                size: found.size,
                modified: None,
            };
            let time = |time: TimeRange| format!("{} {}", time.lo, time.hi);
            let text = match found.kind {
                Kind::Directory => String::new(),
                Kind::File => format!(
                    "{} {}",
                    row.text(),
                    found.modified.map_or(String::new(), time)
                ),
            };
            let starts = store.directory(STARTS)?;
            store.note(starts, found.url, &text)
        });
        match status {
            Some(Status::Same) => None,
            Some(Status::Changed) => Some(Change::Changed),
            // With a record that cannot be used, everything counts as new.
            Some(Status::New) | None => Some(Change::New),
        }
    }

    /// Forgets an entry that was found, but not dealt with: it is new for the next run.
    pub(super) fn forget(&self, url: &str) {
        if let Some(at) = url.rfind('/').filter(|at| at + 1 < url.len()) {
            let (directory, name) = url.split_at(at + 1);
            self.with(|store| {
                store.forget(directory, name)?;
                store.forget(directory, &format!("{name}?"))
            });
        }
    }

    /// Forgets what this run has noted as new or changed in a directory, because it was not found: the next run does.
    pub(super) fn lose(&self, directory: &str) {
        self.with(|store| store.lose(directory));
    }

    fn with<T>(&self, run: impl FnOnce(&Store) -> rusqlite::Result<T>) -> Option<T> {
        let mut inner = self.lock();
        if inner.broken.is_some() {
            return None;
        }
        match run(&inner.store) {
            Ok(value) => Some(value),
            Err(error) => {
                inner.broken = Some(inner.store.error(error));
                None
            }
        }
    }

    /// A panic of another thread leaves nothing half done: the file has transactions.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn compare(
    store: &Store,
    page: &ReadPage<'_>,
    tell: &mut dyn FnMut(&Gone),
) -> rusqlite::Result<()> {
    let directory = store.directory(page.directory)?;
    for entry in page.entries {
        let row = Row::of(entry);
        store.note(directory, &row.name, &row.text())?;
    }
    let Some(end) = page.end else {
        return Ok(());
    };
    if end.leaves_out {
        store.note_broken(directory)?;
    }
    let is_whole = !end.has_next && !store.is_broken(directory)?;
    // A listing of several pages has no validators of its own.
    let kept = match is_whole && end.is_alone {
        true => {
            let (etag, date) = validators(end.etag.as_deref(), end.last_modified.as_deref());
            Validators { etag, date }
        }
        false => Validators::default(),
    };
    let head = Head {
        shape: end.shape,
        directories: end.directories.clone(),
        marks_directories: end.marks_directories,
    };
    // Serialisation cannot fail: there are no maps.
    let head = serde_json::to_string(&head).unwrap_or_default();
    store.keep(directory, &kept, &head)?;
    if !is_whole {
        return Ok(());
    }
    store.each_missing(directory, &mut |row| {
        if !has_other_form(store, page.directory, &row.name)? {
            let gone = Gone::of(page.directory, page.depth + 1, row);
            tell_below(store, &gone, tell)?;
            tell(&gone);
        }
        Ok(())
    })?;
    store.remove_missing(directory)
}

/// Whether a name is listed now in another form, because the server began or ceased to mark directories.
fn has_other_form(store: &Store, directory: &str, name: &str) -> rusqlite::Result<bool> {
    let others = match name.strip_suffix('?') {
        Some(open) => [open.to_owned(), format!("{open}/")],
        None => [format!("{}?", name.trim_end_matches('/')), String::new()],
    };
    for other in others {
        if store.status(directory, &other)? == Some(Status::New) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells and forgets what is below a directory that is gone.
fn tell_below(store: &Store, gone: &Gone, tell: &mut dyn FnMut(&Gone)) -> rusqlite::Result<()> {
    if !gone.url.ends_with('/') {
        return Ok(());
    }
    for (below, url) in store.below(&gone.url)? {
        let deeper = url[gone.url.len()..].matches('/').count();
        let depth = gone.depth + 1 + u32::try_from(deeper).unwrap_or(u32::MAX);
        store.each_missing(below, &mut |row| {
            tell(&Gone::of(&url, depth, row));
            Ok(())
        })?;
        store.remove_missing(below)?;
        store.remove_directory(below)?;
    }
    Ok(())
}

/// The directory of the starts: no URL is empty.
const STARTS: &str = "";
