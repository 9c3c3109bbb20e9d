//! How sources are read.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Url;

use crate::select::Selection;

/// How sources are read.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The base of relative links in files. Without a base, relative links are looked up on the disk.
    pub base_url: Option<Url>,
    /// The folder that links beginning with `/` start from, in files. With a folder, they are looked up on the disk even
    /// if there is a base.
    pub root_dir: Option<PathBuf>,
    /// The field of JSON lines that has the URL, with dots between the names of nested ones. Default: `url`.
    pub field: String,
    /// Which URLs are checked, and what they are replaced with.
    pub selection: Arc<Selection>,
    /// Whether the fragments of links to files are checked.
    pub fragments: bool,
    /// Whether hidden files are read in folders. Default: no.
    pub hidden: bool,
    /// Whether `.gitignore`, `.ignore` and git's own exclude files are obeyed in folders. Default: yes.
    pub ignore_files: bool,
    /// The longest document in bytes, unpacked. Default: 256 MiB. Lists of URLs are read line by line and have no limit.
    pub max_size: u64,
    /// Files that are not read in folders, such as the reports that the check itself writes there. Default: none.
    pub left_out: Vec<FileId>,
}

/// A file, whatever the path that leads to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    /// The file at this path; `None` if there is none that can be looked at.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        Some(Self {
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            base_url: None,
            root_dir: None,
            field: "url".to_owned(),
            selection: Arc::default(),
            fragments: false,
            hidden: false,
            ignore_files: true,
            max_size: 256 << 20,
            left_out: Vec::new(),
        }
    }
}
