//! Links to files: whether the file is there, and whether it has what the fragment names.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::open::{Kind, Opened};
use crate::check::links::{Anchors, Document, Format, Fragment, Link, Visitor};
use crate::check::{Cause, Verdict};

/// Looks up links on the disk.
pub(super) struct Disk {
    /// The anchors of documents, if fragments are checked.
    anchors: Option<Mutex<Known>>,
    max_size: u64,
}

/// The anchors of the documents that were read last. `None`: a file without anchors to check.
#[derive(Default)]
struct Known {
    documents: HashMap<PathBuf, Option<Arc<Anchors>>>,
    /// The documents, oldest first, with the number of their anchors.
    order: VecDeque<(PathBuf, usize)>,
    /// The number of all anchors.
    count: usize,
}

impl Disk {
    pub(super) fn new(fragments: bool, max_size: u64) -> Self {
        Self {
            anchors: fragments.then(Mutex::default),
            max_size,
        }
    }

    /// Judges a URL with the scheme `file`. The query is ignored.
    pub(super) fn judge(&self, url: &Url) -> (Verdict, Option<String>) {
        let missing = |why: String| (Verdict::Failed(Cause::FileMissing), Some(why));
        let Ok(path) = url.to_file_path() else {
            return missing("the URL means no file of this machine".to_owned());
        };
        let is_file = match fs::metadata(&path) {
            Ok(metadata) => metadata.is_file(),
            Err(error) => return missing(why(&error)),
        };
        let fragment = url.fragment().filter(|_| is_file);
        match fragment {
            Some(fragment) if !self.has(path, fragment) => {
                let name = match Fragment::of(fragment) {
                    Fragment::Name(name) => name,
                    _ => fragment.into(),
                };
                let why = format!("the file has no heading or anchor {name}");
                (Verdict::Failed(Cause::FragmentMissing), Some(why))
            }
            _ => (Verdict::Ok, None),
        }
    }

    /// Whether a file has what a fragment names. Files that are no Markdown or HTML have everything, and so have those
    /// that cannot be read, because this is said where they are a source.
    fn has(&self, path: PathBuf, fragment: &str) -> bool {
        let Some(known) = &self.anchors else {
            return true;
        };
        let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = lock().documents.get(&path).cloned();
        let anchors = match found {
            Some(anchors) => anchors,
            None => {
                let (anchors, count) = self.read(&path).unwrap_or((None, 0));
                lock().keep(path, anchors.clone(), count);
                anchors
            }
        };
        anchors.is_none_or(|anchors| anchors.has(fragment))
    }

    fn read(&self, path: &Path) -> io::Result<(Option<Arc<Anchors>>, usize)> {
        let format = match Kind::of_path(path) {
            Some(Kind::Document(format @ (Format::Markdown | Format::Html))) => format,
            _ => return Ok((None, 0)),
        };
        let mut bytes = Vec::new();
        let reader = Opened::new(File::open(path)?)?.reader;
        reader.take(self.max_size + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.max_size {
            return Ok((None, 0));
        }
        let mut gathered = Gathered {
            anchors: Anchors::new(format),
            count: 0,
        };
        // Only XML can be malformed.
        let _ = Document::new(format, &bytes, None).read(&mut gathered);
        Ok((Some(Arc::new(gathered.anchors)), gathered.count))
    }
}

impl Known {
    fn keep(&mut self, path: PathBuf, anchors: Option<Arc<Anchors>>, count: usize) {
        if self.documents.insert(path.clone(), anchors).is_some() {
            // Another thread was faster.
            return;
        }
        self.order.push_back((path, count));
        self.count += count;
        while self.order.len() > DOCUMENTS || (self.count > ANCHORS && self.order.len() > 1) {
            let Some((oldest, count)) = self.order.pop_front() else {
                return;
            };
            self.documents.remove(&oldest);
            self.count -= count;
        }
    }
}

/// Gets the anchors of a document.
struct Gathered {
    anchors: Anchors,
    count: usize,
}

impl Visitor for Gathered {
    fn link(&mut self, _link: Link<'_>) {}

    fn wants_anchors(&self) -> bool {
        true
    }

    fn anchor(&mut self, anchor: &str) {
        self.count += 1;
        self.anchors.insert(anchor);
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            "there is no such file".to_owned()
        }
        _ => format!("the file cannot be looked at: {error}"),
    }
}

/// Most documents whose anchors are kept.
const DOCUMENTS: usize = 4096;
/// Most anchors that are kept, apart from those of one document.
const ANCHORS: usize = 1_000_000;
