//! The life of the service: it starts its parts, drives the core on this thread, reads its configuration again when it is
//! told to, and drains when it is to end.
//!
//! The loop of the core is what health checks and the watchdog of the service manager see: if it is stuck, they notice.

mod ahead;
mod facts;
mod files;
mod notify;
mod private;
mod reload;
mod service;
mod settings;

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::config::Loaded;
use super::log;
use super::work::FindReader;
use service::Service;
use store::{StoreError, StoreErrorKind};

/// What signals ask for. Who handles the signals sets these.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The service is to drain and end.
    pub end: Arc<AtomicBool>,
    /// The service is to read its configuration again.
    pub reload: Arc<AtomicBool>,
}

/// Why the service did not start, or ended.
#[derive(Debug)]
pub enum Failure {
    /// The store cannot be used.
    Store(StoreError),
    /// Something else of the machine: what, and why not.
    Start(String),
    /// What was left at the end could not be stored. It is done again at the next start.
    NotStored(StoreError),
}

impl Failure {
    /// Whether another configuration is needed, rather than another try.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Store(error) => !matches!(
                error.kind(),
                StoreErrorKind::Full
                    | StoreErrorKind::Disk(_)
                    | StoreErrorKind::Database(_)
                    | StoreErrorKind::Damaged(_)
            ),
            Self::Start(_) | Self::NotStored(_) => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f)?,
            Self::Start(why) => return f.write_str(why),
            Self::NotStored(error) => return write!(f, "not everything could be stored: {error}"),
        }
        let Self::Store(error) = self else {
            return Ok(());
        };
        match error.kind() {
            StoreErrorKind::InUse(_) => f.write_str(
                "; another service or a command runs on it: end that one, or name another file in store.url",
            ),
            StoreErrorKind::Version(..) => {
                f.write_str("; run the program of that version, or restore a backup")
            }
            StoreErrorKind::Damaged(_) => {
                f.write_str("; restore a backup with 'crawler-cli watch db restore'")
            }
            StoreErrorKind::NetworkFileSystem(_) => {
                f.write_str("; name a file on a disk of this machine in store.url")
            }
            StoreErrorKind::ReadOnly => f.write_str(NEEDS_TO_WRITE),
            StoreErrorKind::Io(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                f.write_str(NEEDS_TO_WRITE)
            }
            StoreErrorKind::Full => f.write_str("; make room on the disk"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// Runs the service until a signal ends it. `read` reads the configuration again. The first line on `out` says where the
/// service listens.
///
/// # Errors
/// The service cannot start, or could not store what was left at its end.
pub fn run(
    loaded: Loaded,
    read: &mut dyn FnMut() -> Result<Loaded, String>,
    find: FindReader,
    signals: &Signals,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    log::start(loaded.config.log);
    let mut service = Service::start(loaded, find, out)?;
    service.run(read, signals);
    service.end()
}

const NEEDS_TO_WRITE: &str = "; the service needs to write it and its folder";
