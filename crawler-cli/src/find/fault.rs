//! Why a file was not downloaded, beyond what can go wrong with any URL.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::range::SizeRange;
use super::scope::Outside;

/// Why a file was not downloaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// It could not be created, written or named.
    File(PathBuf, io::Error),
    /// There is something of that name that is not the server's file, or cannot be compared with it.
    Exists(PathBuf),
    /// Another URL has that name: both are written alike on this file system.
    NameTaken(PathBuf),
    /// Another process is downloading it.
    InUse(PathBuf),
    /// The listing or the head of the answer said another size than came.
    Length {
        /// The size that was said.
        said: SizeRange,
        /// What came, or was about to come.
        came: u64,
    },
    /// A redirect to this URL, which the crawl may not go to.
    Outside(String, Outside),
    /// A redirect from `https` to this URL, which is not.
    Unsafe(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::Exists(path) => write!(
                f,
                "{} exists and differs from the server's file; it was left as it is",
                path.display()
            ),
            Self::NameTaken(path) => write!(
                f,
                "not downloaded: another URL is written to {} as well",
                path.display()
            ),
            Self::InUse(path) => {
                write!(f, "another process is downloading {}", path.display())
            }
            Self::Length { said, came } => match said.known() {
                Some(said) => write!(f, "the size should be {said} bytes, not {came}"),
                None => write!(
                    f,
                    "the size should be from {} to {} bytes, not {came}",
                    said.lo, said.hi
                ),
            },
            Self::Outside(url, why) => write!(f, "redirects to {url}, which is {why}"),
            Self::Unsafe(url) => write!(f, "redirects from https to {url}"),
        }
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` says what the system's error says.
            Self::File(_, error) => error.source(),
            _ => None,
        }
    }
}
