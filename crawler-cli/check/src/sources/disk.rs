//! Links to files: whether the file is there, and whether it has what the fragment names.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use percent_encoding::percent_decode_str;
use url::Url;

use super::open::opened;
use crate::links::{Anchors, Document, Format, Link, Visitor};
use verdict::{Cause, Verdict};

/// Looks up links on the disk.
#[derive(Debug)]
pub(super) struct Disk {
    /// The anchors of documents, if fragments are checked.
    known: Option<Mutex<Known>>,
    max_size: u64,
}

/// The anchors of documents. `None`: a file without anchors to check.
#[derive(Debug, Default)]
struct Known {
    documents: HashMap<PathBuf, Option<Arc<Anchors>>>,
    /// The number of documents and of their anchors.
    size: usize,
}

impl Disk {
    pub(super) fn new(fragments: bool, max_size: u64) -> Self {
        Self {
            known: fragments.then(Mutex::default),
            max_size,
        }
    }

    /// Judges a URL with the scheme `file`. The query is ignored.
    pub(super) fn judge(&self, url: &Url) -> (Verdict, Option<String>) {
        let missing = |why: String| (Verdict::Failed(Cause::FileMissing), Some(why));
        let Ok(mut path) = url.to_file_path() else {
            return missing("the URL means no file of this machine".to_owned());
        };
        match fs::metadata(&path) {
            // What a browser or a server shows for a folder.
            Ok(metadata) if metadata.is_dir() => path.push("index.html"),
            Ok(_) => {}
            Err(error) => return missing(why(&error)),
        }
        match url.fragment() {
            Some(fragment) if !self.has(path, fragment) => {
                let name = percent_decode_str(fragment).decode_utf8_lossy();
                let why = format!("the file has no heading or anchor {name}");
                (Verdict::Failed(Cause::FragmentMissing), Some(why))
            }
            _ => (Verdict::Ok, None),
        }
    }

    /// Whether a file has what a fragment names. Files that are no Markdown or HTML have everything, and so have those
    /// that cannot be read, because this is said where they are a source.
    fn has(&self, path: PathBuf, fragment: &str) -> bool {
        let Some(known) = &self.known else {
            return true;
        };
        let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = lock().documents.get(&path).cloned();
        let anchors = found.unwrap_or_else(|| {
            let anchors = self.read(&path).ok().flatten().map(Arc::new);
            lock().keep(path, anchors.clone());
            anchors
        });
        anchors.is_none_or(|anchors| anchors.has(fragment))
    }

    fn read(&self, path: &Path) -> io::Result<Option<Anchors>> {
        let Some(format @ (Format::Markdown | Format::Html)) = Format::of_path(path) else {
            return Ok(None);
        };
        // To open a FIFO would wait for its writer.
        if !fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let reader = opened(File::open(path)?)?;
        reader
            .take(self.max_size.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.max_size {
            return Ok(None);
        }
        let mut gathered = Gathered(Anchors::new(format));
        // Only XML can be malformed.
        let _ = Document::new(format, &bytes, None).read(&mut gathered);
        Ok(Some(gathered.0))
    }
}

impl Known {
    fn keep(&mut self, path: PathBuf, anchors: Option<Arc<Anchors>>) {
        if self.size > MOST {
            *self = Self::default();
        }
        self.size += 1 + anchors.as_ref().map_or(0, |anchors| anchors.len());
        self.documents.insert(path, anchors);
    }
}

/// Gets the anchors of a document.
struct Gathered(Anchors);

impl Visitor for Gathered {
    fn link(&mut self, _link: Link<'_>) {}

    fn wants_anchors(&self) -> bool {
        true
    }

    fn anchor(&mut self, anchor: &str) {
        self.0.insert(anchor);
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

/// Most documents and anchors that are kept, apart from those of the last document. Then all are forgotten.
const MOST: usize = 1_000_000;
