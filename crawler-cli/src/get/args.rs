//! What the command line asks for, as the table of options sets it. Nothing is opened or read yet.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use courser::{Family, Override};

/// Everything that was typed on one command line.
#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) global: Global,
    /// The options and URLs between two `--next`. Invariant: each group has a URL.
    pub(crate) groups: Vec<Group>,
}

/// Options that hold for every URL, at any place of the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Global {
    pub(crate) silent: bool,
    pub(crate) show_error: bool,
    pub(crate) verbose: bool,
    pub(crate) timing: bool,
    /// `--rate`: the shortest time between the starts of two transfers.
    pub(crate) interval: Option<Duration>,
}

/// Options that hold for the URLs of one group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) urls: Vec<String>,
    pub(crate) request: RequestArgs,
    pub(crate) reach: Reach,
    /// `-L`
    pub(crate) follows: bool,
    /// `--max-redirs`, if it was given.
    pub(crate) max_redirects: Option<u32>,
    pub(crate) retries: u32,
    pub(crate) max_time: Option<Duration>,
    /// `-o` and `-O`, one for each URL. `None` means `-O`: the last segment of the URL's path.
    pub(crate) outputs: Vec<Option<PathBuf>>,
    pub(crate) include: bool,
    pub(crate) fail: bool,
    pub(crate) max_filesize: Option<u64>,
    /// `-w`, as typed.
    pub(crate) write_out: Option<OsString>,
}

/// Options about the request.
#[derive(Debug, Default)]
pub(crate) struct RequestArgs {
    pub(crate) method: Option<String>,
    /// `-I`
    pub(crate) head_only: bool,
    /// `-H`, as typed.
    pub(crate) headers: Vec<OsString>,
    pub(crate) data: Vec<Data>,
    /// `-T`, one for each URL.
    pub(crate) uploads: Vec<PathBuf>,
    /// `user:password`
    pub(crate) user: Option<String>,
    pub(crate) cookies: Vec<String>,
    pub(crate) range: Option<String>,
    pub(crate) compressed: bool,
}

/// One piece of a request body: text, or `@` and the name of a file.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Data {
    /// `-d`: CR, LF and NUL bytes of a file are removed.
    Ascii(OsString),
    /// `--data-binary`: a file is sent as it is.
    Binary(OsString),
}

/// Options about the way to servers. Groups with equal ones share a client, and so its connections.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Reach {
    pub(crate) family: Option<Family>,
    pub(crate) resolve: Vec<Override>,
    pub(crate) unix_socket: Option<PathBuf>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) proxy: Option<String>,
    pub(crate) noproxy: Option<String>,
    pub(crate) insecure: bool,
    /// `--lenient`
    pub(crate) lenient: bool,
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    /// `-A`: also for proxies. Empty: none is sent.
    pub(crate) user_agent: Option<String>,
}
