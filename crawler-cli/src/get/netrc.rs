//! `-n`, `--netrc-file` and `--netrc-optional`: user names and passwords from a file, by the host of each request.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use super::exit::{Exit, Failure};
use super::redirect::Hop;
use crate::crawl::netrc::{self, Entry};

/// The options of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetrcArgs {
    /// `-n`: the file counts more than the password of a URL.
    pub(crate) on: bool,
    /// `--netrc-optional`: a password of a URL counts more than the file.
    pub(crate) optional: bool,
    pub(crate) file: Option<OsString>,
}

/// The entries of the file; none without the options.
#[derive(Default)]
pub(super) struct Netrc {
    entries: Vec<Entry>,
    optional: bool,
    is_used: bool,
}

impl Netrc {
    /// Reads the file. As in curl, a file that is missing counts as empty; for one that was named, there is a warning.
    ///
    /// # Errors
    /// [`Exit::Read`] if the file is not in the format.
    pub(super) fn new(args: &NetrcArgs, warnings: &mut Vec<String>) -> Result<Self, Failure> {
        if !args.on && !args.optional && args.file.is_none() {
            return Ok(Self::default());
        }
        let path = match &args.file {
            Some(path) => Some(PathBuf::from(path)),
            None => env::home_dir().map(|home| home.join(".netrc")),
        };
        let mut text = Vec::new();
        let read = path.as_ref().map_or(Ok(0), |path| {
            File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)
        });
        if let (Err(error), Some(named)) = (read, &args.file) {
            let named = named.display();
            warnings.push(format!("--netrc-file {named}: {error}; it counts as empty"));
        }
        let name = path.unwrap_or_default();
        let failed = |why: &str| {
            let cause = format!("{}: {why}", name.display());
            Failure::new(Exit::Read, "netrc file", cause)
        };
        if text.len() as u64 > LONGEST {
            return Err(failed("more than 1 MiB"));
        }
        let text = String::from_utf8(text).map_err(|_| failed("not UTF-8"))?;
        Ok(Self {
            entries: netrc::read(&text).map_err(|why| failed(&why))?,
            optional: args.optional,
            is_used: true,
        })
    }

    /// Gives a request the credentials for its host, unless `-u` has set some. They are for this host alone, so that
    /// they may be sent after a redirect, too.
    pub(super) fn amend(&self, hop: &mut Hop) {
        if !self.is_used {
            return;
        }
        let (user, password) = match &hop.target.user {
            None => (None, &[][..]),
            Some(own) => {
                let colon = own.iter().position(|b| *b == b':').unwrap_or(own.len());
                (
                    Some(&own[..colon]),
                    own.get(colon + 1..).unwrap_or_default(),
                )
            }
        };
        if self.optional && !password.is_empty() {
            return;
        }
        let host = hop.target.host.to_string().to_ascii_lowercase();
        // A password is sent only with its own name.
        let fits = |entry: &&Entry| {
            entry
                .machine
                .as_ref()
                .is_none_or(|machine| *machine == host)
                && user.is_none_or(|user| user == entry.login.as_bytes())
        };
        let found = self.entries.iter().find(fits);
        // Without an entry that fits, what the URL has stays.
        if let Some(entry) = found {
            let user = user.unwrap_or(entry.login.as_bytes());
            hop.user = Some([user, b":", entry.password.as_bytes()].concat());
        }
    }
}

impl std::fmt::Debug for Netrc {
    /// Without passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Netrc({} entries)", self.entries.len())
    }
}

/// Bytes in a file.
const LONGEST: u64 = 1024 * 1024;
