//! Errors of downloads, in addition to the errors that any URL can have.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use crawl::scope::Outside;
use listing::range::SizeRange;

/// The reason why a file was not downloaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// This file could not be created, written or renamed.
    File(PathBuf, io::Error),
    /// Something with this path exists and is not the file of the server, or cannot be compared with it.
    Exists(PathBuf),
    /// Another URL of this run has the same path on this file system.
    NameTaken(PathBuf),
    /// Another process is downloading to this path.
    InUse(PathBuf),
    /// The size differs from the size in the listing or in the head of the response.
    Length {
        /// The announced size, in bytes.
        announced: SizeRange,
        /// The size that was received, or is about to be received, in bytes.
        received: u64,
    },
    /// A redirect to this URL, which is outside the crawl.
    Outside(String, Outside),
    /// A redirect from `https` to this URL with another scheme.
    Unsafe(String),
    /// A redirect to this URL, which is an HTML page, and not of the size that the listing gives: a login form, for example.
    Page(String),
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
            Self::Length {
                announced,
                received,
            } => match announced.known() {
                Some(announced) => {
                    write!(f, "the size should be {announced} bytes, not {received}")
                }
                None => write!(
                    f,
                    "the size should be from {} to {} bytes, not {received}",
                    announced.lo, announced.hi
                ),
            },
            Self::Outside(url, why) => write!(f, "redirects to {url}, which is {why}"),
            Self::Unsafe(url) => write!(f, "redirects from https to {url}"),
            Self::Page(url) => write!(
                f,
                "redirects to {url}, an HTML page that no size in the listing speaks for"
            ),
        }
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` already shows the error of the system.
            Self::File(_, error) => error.source(),
            _ => None,
        }
    }
}
