//! The folder of downloads on the command line: `--download`, and what only makes sense with it.

use std::num::NonZeroU64;
use std::path::PathBuf;

use super::args::Args;
use crate::cli::parse::UsageError;
use crate::find::Follow;

/// What was typed about downloads.
#[derive(Debug, Default)]
pub(super) struct Folder {
    path: Option<PathBuf>,
    /// Bytes in a second.
    pub(super) limit_rate: Option<NonZeroU64>,
    /// `--links`
    pub(super) follow: Follow,
}

impl Folder {
    /// Sets the folder.
    ///
    /// # Errors
    /// There is one.
    pub(super) fn set(&mut self, path: &str) -> Result<(), String> {
        match &self.path {
            Some(first) => Err(format!("the folder is {} already", first.display())),
            None => {
                self.path = Some(path.into());
                Ok(())
            }
        }
    }

    pub(super) fn is_given(&self) -> bool {
        self.path.is_some()
    }
}

impl Args {
    /// Opens the folder.
    ///
    /// # Errors
    /// A combination of options that means nothing, or the folder cannot be opened.
    pub(super) fn open_folder(&mut self) -> Result<(), UsageError> {
        let Some(path) = self.folder.path.take() else {
            return Ok(());
        };
        if self.has_unread {
            let text = "--download: not with starts that --unread has written: the names of files depend on the starts of the whole search; the same command as before downloads what is missing";
            return Err(UsageError(text.to_owned()));
        }
        let named = |error| UsageError(format!("--download {}: {error}", path.display()));
        self.find = std::mem::take(&mut self.find)
            .download(&path)
            .map_err(named)?;
        if let Some(bytes) = self.folder.limit_rate {
            self.find(|find| find.limit_rate(bytes));
        }
        Ok(())
    }
}
