//! `--config FILE`, which all verbs of `watch` have.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crate::cli::find::read_for_job;
use crate::cli::option::{Opt, file};
use crate::cli::parse::UsageError;
use crate::find::Find;
use crate::watch::config::{JobConfig, Loaded};
use crate::watch::work::read_find;

/// The arguments of a verb that reads the configuration.
pub(crate) trait HasConfig: 'static {
    /// The file that was named.
    fn config(&mut self) -> &mut ConfigFile;
}

/// The file of the configuration, as the command line names it.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    named: Option<PathBuf>,
}

impl ConfigFile {
    /// The file: what was named, or `watch.toml` in the working folder.
    ///
    /// # Errors
    /// No file was named, and there is none in the working folder.
    pub(crate) fn path(&self) -> Result<PathBuf, UsageError> {
        if let Some(path) = &self.named {
            return Ok(path.clone());
        }
        let usual = Path::new(USUAL);
        // A file that cannot be read is wrong, not absent.
        match usual.symlink_metadata() {
            Ok(_) => Ok(usual.to_owned()),
            Err(_) => Err(UsageError(format!(
                "no --config FILE, and there is no {USUAL} in this folder; 'crawler-cli watch config example > {USUAL}' writes one"
            ))),
        }
    }
}

/// Reads the configuration of a service, with the arguments of its `find` jobs.
///
/// # Errors
/// Everything that is wrong, one in a line, safe to show on a terminal.
pub(super) fn load(file: &Path) -> Result<Loaded, String> {
    Loaded::read(file)?.check_jobs(|job| match job {
        JobConfig::Find { args, .. } => read_find(read_for_job, Find::new(), args).err(),
        _ => None,
    })
}

/// The row, for the arguments `A` of a verb.
pub(crate) struct ConfigRows<A>(PhantomData<A>);

impl<A: HasConfig> ConfigRows<A> {
    pub(crate) const ALL: &'static [Opt<A>] =
        &[
            Opt::bytes(&["--config"], &[file("FILE")], |args: &mut A, value| {
                args.config().named = Some(value.into());
                Ok(())
            })
            .short("the configuration")
            .long("The file with the configuration of the service, which also names the store.")
            .default("watch.toml, if there is one in the working folder"),
        ];
}

/// The file that is taken when none is named.
const USUAL: &str = "watch.toml";
