//! The folder of downloads on the command line: `--download`, `--mirror`, and the options that only make sense with one of
//! them.

use std::num::NonZeroU64;
use std::path::PathBuf;

use super::args::Args;
use crate::cli::parse::UsageError;
use crate::find::{Find, Follow, MostDeleted};
use crate::report::Format;

/// What was typed about downloads.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// The option and its value.
    path: Option<(&'static str, PathBuf)>,
    pub(super) is_dry: bool,
    pub(super) checksums: bool,
    pub(super) most_deleted: Option<MostDeleted>,
    /// Bytes in a second.
    pub(super) limit_rate: Option<NonZeroU64>,
    /// `--links`
    pub(super) follow: Follow,
    pub(super) accepts_pages: bool,
}

impl Folder {
    /// Sets the folder.
    ///
    /// # Errors
    /// The other option has set one.
    pub(super) fn set(&mut self, option: &'static str, path: &str) -> Result<(), String> {
        match &self.path {
            Some((other, _)) if *other != option => {
                Err(format!("not together with {other}: give one of them"))
            }
            Some((_, first)) => Err(format!("the folder is {} already", first.display())),
            None => {
                self.path = Some((option, path.into()));
                Ok(())
            }
        }
    }

    pub(super) fn is_given(&self) -> bool {
        self.path.is_some()
    }

    pub(super) fn is_mirror(&self) -> bool {
        matches!(self.path, Some((MIRROR, _)))
    }

    /// Whether there is more than a plain download.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_mirror()
            && !self.is_dry
            && !self.checksums
            && self.most_deleted.is_none()
            && self.limit_rate.is_none()
    }

    /// An option that is about more than a plain download.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.is_dry, "--dry-run"),
            (self.checksums, "--checksums"),
            (self.most_deleted.is_some(), "--max-delete"),
            (self.is_mirror(), MIRROR),
        ];
        given.iter().find(|(is, _)| *is).map(|(_, option)| *option)
    }
}

impl Args {
    /// Opens the folder.
    ///
    /// # Errors
    /// A combination of options that means nothing, or the folder cannot be opened.
    pub(super) fn open_folder(&mut self) -> Result<(), UsageError> {
        let folder = std::mem::take(&mut self.folder);
        let wrong = |text: String| Err(UsageError(text));
        let is_mirror = folder.is_mirror();
        let given = folder.given();
        if let (Some(option), true) = (given, self.state.is_some()) {
            return wrong(format!(
                "{option}: not together with --state: a run that was interrupted is completed by the same command without it"
            ));
        }
        if folder.is_dry && matches!(self.output.format, Format::Csv | Format::Tree) {
            return wrong("--dry-run: not as CSV or as a tree".to_owned());
        }
        if let (Some((option, _)), true) = (&folder.path, self.may_be_empty) {
            return wrong(format!(
                "{option}: not together with --retry-unread: the names of files depend on the starts of the whole search; the same command as before downloads what is missing"
            ));
        }
        if is_mirror {
            let needs = if folder.follow == Follow::Pages {
                "--links page"
            } else if folder.accepts_pages {
                "--accept-pages"
            } else if self.sitemaps > 0 {
                "--sitemap"
            } else {
                ""
            };
            if !needs.is_empty() {
                return wrong(format!(
                    "--mirror: not together with {needs}: only listings of directories show what is gone"
                ));
            }
        }
        let Some((option, path)) = folder.path else {
            return Ok(());
        };
        let find = std::mem::take(&mut self.find);
        let opened = match folder.is_dry {
            true => find.dry_run(&path),
            false => find.download(&path),
        };
        let named = |error| UsageError(format!("{option} {}: {error}", path.display()));
        self.find = opened.map_err(named)?;
        if is_mirror {
            self.mirror = Some(folder.most_deleted.unwrap_or_default());
        }
        if folder.checksums {
            self.find(Find::checksums);
        }
        if let Some(bytes) = folder.limit_rate {
            self.find(|find| find.limit_rate(bytes));
        }
        self.output.dry_run = folder.is_dry;
        Ok(())
    }
}

/// The option of a mirror.
pub(super) const MIRROR: &str = "--mirror";
