//! The fingerprints of the files that were read, so that only what was checked is edited.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::check::links::Format;

/// The files whose links were read, with a fingerprint of each. Clones share one collection: one goes into
/// [`SourceOptions`](super::SourceOptions), another into [`Fixer`](crate::check::fix::Fixer).
#[derive(Clone, Debug, Default)]
pub struct Originals(Arc<Mutex<HashMap<Arc<str>, Original>>>);

/// A file as it was when its links were read.
#[derive(Clone, Debug)]
pub(in crate::check) struct Original {
    pub(in crate::check) path: PathBuf,
    pub(in crate::check) format: Format,
    /// xxh3-128 of all bytes.
    pub(in crate::check) hash: u128,
}

impl Originals {
    pub(super) fn keep(&self, source: &Arc<str>, original: Original) {
        let mut originals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        originals.insert(source.clone(), original);
    }

    /// The file with this name in reports. `None` for what is no document that can be edited: standard input, pages,
    /// compressed files, records.
    pub(in crate::check) fn find(&self, source: &str) -> Option<Original> {
        let originals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        originals.get(source).cloned()
    }
}
