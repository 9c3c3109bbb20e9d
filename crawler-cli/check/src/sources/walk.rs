//! The files of a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, Error, WalkBuilder};

use super::{Problem, ProblemKind};
use crate::links::Format;

/// All files below a folder that can have URLs, in the order of their names. Symbolic links are not followed; FIFOs,
/// sockets and devices are left out.
pub(super) fn files(
    folder: &Path,
    hidden: bool,
    ignore_files: bool,
) -> impl Iterator<Item = Result<(PathBuf, Format), Problem>> {
    let walk = WalkBuilder::new(folder)
        .standard_filters(ignore_files)
        .hidden(!hidden)
        // A folder of documents need not be a repository to have a .gitignore.
        .require_git(false)
        .sort_by_file_name(|a, b| a.cmp(b))
        .build();
    let folder = folder.to_owned();
    walk.filter_map(move |entry| match entry {
        Ok(entry) => file(entry).map(Ok),
        Err(error) => Some(Err(problem(&folder, &error))),
    })
}

fn file(entry: DirEntry) -> Option<(PathBuf, Format)> {
    let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
    let path = is_file.then(|| entry.into_path())?;
    let format = Format::of_path(&path)?;
    Some((path, format))
}

fn problem(folder: &Path, error: &Error) -> Problem {
    let (mut path, mut inner) = (folder, error);
    loop {
        inner = match inner {
            Error::WithPath { path: at, err } => {
                path = at;
                err
            }
            Error::WithDepth { err, .. } | Error::WithLineNumber { err, .. } => err,
            _ => break,
        };
    }
    let source: Arc<str> = path.to_string_lossy().into();
    Problem {
        source,
        line: None,
        kind: ProblemKind::Unreadable,
        detail: format!("cannot be read: {inner}"),
    }
}
