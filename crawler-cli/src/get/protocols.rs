//! `--proto`, `--proto-redir` and `--proto-default`: which protocols URLs may have.

use super::exit::{Exit, Failure};

/// The options of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProtocolArgs {
    /// `--proto`; `None`: all.
    pub(crate) allowed: Option<Protocols>,
    /// `--proto-redir`; `None`: [`Protocols::of_redirects`].
    pub(crate) redirects: Option<Protocols>,
    /// `--proto-default`
    pub(crate) default: Option<&'static str>,
}

/// A set of curl's protocols: bit n is `NAMES[n]`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Protocols(u32);

impl ProtocolArgs {
    /// # Errors
    /// A URL with this scheme may not be fetched. As in curl, the URL of a redirect has to be in both lists.
    pub(super) fn check(&self, scheme: &str, is_redirect: bool) -> Result<(), Failure> {
        let everywhere = self.allowed.unwrap_or(Protocols::ALL);
        let here = self.redirects.unwrap_or(Protocols::of_redirects());
        let (list, option) = match (everywhere.has(scheme), is_redirect && !here.has(scheme)) {
            (false, _) => (self.allowed.is_some(), "--proto"),
            (true, true) => (self.redirects.is_some(), "--proto-redir"),
            (true, false) => return Ok(()),
        };
        let by = if list { option } else { "a redirect" };
        let cause = format!("protocol \"{scheme}\" is not allowed by {by}");
        Err(Failure::new(Exit::UnsupportedProtocol, "URL", cause))
    }
}

impl Protocols {
    pub(crate) const ALL: Self = Self((1 << NAMES.len()) - 1);

    /// Where redirects may lead without `--proto-redir`.
    pub(crate) fn of_redirects() -> Self {
        let names = ["http", "https", "ftp", "ftps"];
        Self(
            names
                .into_iter()
                .filter_map(bit)
                .fold(0, |set, bit| set | bit),
        )
    }

    /// This set, changed by a list: `name` and `+name` allow, `-name` denies, `=name` allows this one alone; `all` is a
    /// name. Calls `unknown` for each name that is none of curl's.
    ///
    /// # Errors
    /// A part of the list is no name.
    pub(crate) fn changed(self, list: &str, mut unknown: impl FnMut(&str)) -> Result<Self, String> {
        let mut set = self.0;
        for part in list.split(',').filter(|part| !part.is_empty()) {
            let name = part.trim_start_matches(['=', '+', '-']);
            let signs = &part[..part.len() - name.len()];
            if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                return Err("expected a list such as =https or http,-ftp".to_owned());
            }
            let named = match name {
                _ if name.eq_ignore_ascii_case("all") => Some(Self::ALL.0),
                _ => bit(name),
            };
            if named.is_none() {
                unknown(name);
            }
            match (signs.chars().next_back(), named) {
                (Some('='), named) => set = named.unwrap_or(0),
                (Some('-'), Some(named)) => set &= !named,
                (_, named) => set |= named.unwrap_or(0),
            }
        }
        Ok(Self(set))
    }

    /// curl's name for a protocol.
    pub(crate) fn known(name: &str) -> Option<&'static str> {
        let mut names = NAMES.iter().copied();
        names.find(|known| known.eq_ignore_ascii_case(name))
    }

    fn has(self, name: &str) -> bool {
        bit(name).is_some_and(|bit| self.0 & bit != 0)
    }
}

fn bit(name: &str) -> Option<u32> {
    let place = NAMES.iter().position(|n| n.eq_ignore_ascii_case(name))?;
    Some(1 << place)
}

/// The protocols that curl knows.
const NAMES: [&str; 26] = [
    "dict", "file", "ftp", "ftps", "gopher", "gophers", "http", "https", "imap", "imaps", "ldap",
    "ldaps", "mqtt", "pop3", "pop3s", "rtmp", "rtsp", "scp", "sftp", "smb", "smbs", "smtp",
    "smtps", "telnet", "tftp", "ws",
];
