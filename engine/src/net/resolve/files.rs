//! Parsers of the system's files `resolv.conf` (resolv.conf(5)) and `hosts` (hosts(5)). The resolver reads the files.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The content of `resolv.conf`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ResolvConf {
    pub(super) servers: Vec<SocketAddr>,
    /// In lower case, without a dot at the end. `None` if the file has neither `search` nor `domain`.
    pub(super) search: Option<Vec<String>>,
    pub(super) ndots: usize,
    pub(super) timeout: Duration,
    pub(super) attempts: usize,
    pub(super) rotate: bool,
}

impl Default for ResolvConf {
    /// The defaults of the manual page.
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            search: None,
            ndots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
            rotate: false,
        }
    }
}

impl ResolvConf {
    /// Reads the file like the C library: the last `search` or `domain` line counts, at most three servers are used,
    /// values are capped, and unknown lines are ignored. Unlike the C library, a `nameserver` without a valid address
    /// is an error, and so is a file without a `nameserver`: no other server shall be asked by mistake.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let mut conf = Self::default();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            // Comments stand at the start of a line; some files have them after a value, too.
            let Ok(line) = std::str::from_utf8(line) else {
                continue;
            };
            let line = line.split(['#', ';']).next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let value = words.next().unwrap_or_default();
                    let ip = value
                        .parse()
                        .map_err(|_| format!("line {}: {value:?} is not an address", index + 1))?;
                    conf.servers.push(SocketAddr::new(ip, DNS_PORT));
                }
                Some("domain") => conf.search = Some(words.take(1).map(domain).collect()),
                Some("search") => conf.search = Some(words.map(domain).collect()),
                Some("options") => words.for_each(|word| conf.option(word)),
                _ => {}
            }
        }
        conf.servers.truncate(MAX_SERVERS);
        for search in conf.search.iter_mut() {
            search.retain(|domain| !domain.is_empty());
            search.truncate(MAX_SEARCH);
        }
        match conf.servers.is_empty() {
            true => Err("the file has no nameserver".to_owned()),
            false => Ok(conf),
        }
    }

    fn option(&mut self, word: &str) {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let number = |cap: u64| value.parse::<u64>().ok().map(|n| n.min(cap));
        match name {
            "ndots" => self.ndots = number(15).map_or(self.ndots, |n| n as usize),
            "timeout" => {
                self.timeout = number(30).map_or(self.timeout, |n| Duration::from_secs(n.max(1)));
            }
            "attempts" => self.attempts = number(5).map_or(self.attempts, |n| n.max(1) as usize),
            "rotate" => self.rotate = true,
            _ => {}
        }
    }
}

fn domain(word: &str) -> String {
    word.strip_suffix('.').unwrap_or(word).to_ascii_lowercase()
}

/// The content of a `hosts` file.
#[derive(Debug, Default)]
pub(super) struct HostsFile {
    by_name: HashMap<Box<str>, Vec<IpAddr>>,
}

impl HostsFile {
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut hosts = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else {
                continue;
            };
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            let Some(ip) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
                continue;
            };
            for name in words {
                let addresses = hosts.by_name.entry(domain(name).into()).or_default();
                if !addresses.contains(&ip) {
                    addresses.push(ip);
                }
            }
        }
        hosts
    }

    /// The addresses of a name in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&[IpAddr]> {
        let name = name.strip_suffix('.').unwrap_or(name);
        self.by_name.get(name).map(Vec::as_slice)
    }
}

const DNS_PORT: u16 = 53;
/// `MAXNS` of the C library.
const MAX_SERVERS: usize = 3;
/// The C library has no limit any more. Each domain costs one query for a name that does not exist.
const MAX_SEARCH: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolv_conf() {
        let conf = ResolvConf::parse(
            b"# made by hand\n; also\nnameserver 10.0.0.1 # first\nnameserver\t::1\n\
              domain first.example\nsearch Corp.Example. other.example\n\
              options ndots:2 timeout:99 attempts:0 rotate edns0 unknown:1\nsortlist 1.2.3.4\n\xff\xfe\n",
        );
        let expected = ResolvConf {
            servers: vec!["10.0.0.1:53".parse().unwrap(), "[::1]:53".parse().unwrap()],
            search: Some(vec!["corp.example".into(), "other.example".into()]),
            ndots: 2,
            timeout: Duration::from_secs(30),
            attempts: 1,
            rotate: true,
        };
        assert_eq!(conf, Ok(expected));

        let parse = |text: &str| ResolvConf::parse(text.as_bytes());
        let four = "nameserver 1.1.1.1\n".to_owned() + &"nameserver 2.2.2.2\n".repeat(3);
        let conf = parse(&four).unwrap();
        assert_eq!(conf.servers.len(), 3);
        assert_eq!((conf.ndots, conf.attempts, conf.search), (1, 2, None));
        assert_eq!(
            parse("search\nnameserver ::1").unwrap().search,
            Some(vec![])
        );
        assert_eq!(parse("options ndots:x\nnameserver ::1").unwrap().ndots, 1);
        for (text, error) in [
            ("", "the file has no nameserver"),
            ("#nameserver 1.1.1.1\n", "the file has no nameserver"),
            (
                "nameserver 1.1.1.1\nnameserver 1.1.1.300\n",
                "line 2: \"1.1.1.300\" is not an address",
            ),
            ("nameserver\n", "line 1: \"\" is not an address"),
            (
                "nameserver fe80::1%eth0",
                "line 1: \"fe80::1%eth0\" is not an address",
            ),
        ] {
            assert_eq!(parse(text), Err(error.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn hosts() {
        let hosts = HostsFile::parse(
            b"127.0.0.1 localhost\n::1 localhost\n10.0.0.1\tDB.Internal db # both\n10.0.0.1 db\n\
              # 1.1.1.1 off\nnonsense db\nfe80::1%lo db\n10.0.0.2",
        );
        let get = |name: &str| {
            hosts
                .get(name)
                .map(|all| all.iter().map(IpAddr::to_string).collect())
        };
        let list = |all: &[&str]| Some(all.iter().map(|s| s.to_string()).collect::<Vec<_>>());
        assert_eq!(get("localhost"), list(&["127.0.0.1", "::1"]));
        assert_eq!(get("db.internal"), list(&["10.0.0.1"]));
        assert_eq!(get("db."), list(&["10.0.0.1"]));
        assert_eq!(get("off"), None);
    }
}
