//! Parsers of the system's files `resolv.conf` (resolv.conf(5)) and `hosts` (hosts(5)). The resolver reads the files.
//! A line that is not understood does not spoil the others.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::SplitAsciiWhitespace;
use std::time::Duration;

use super::NameServers;

/// Reads `resolv.conf` like the C library: the last `search` or `domain` line counts, the first three servers are used,
/// values are capped, and lines that it does not understand are ignored. `search` is the search list of a file without
/// such lines. Domains are in lower case, without a dot at the end. Without a `nameserver` line, the server is that of this
/// machine. Unlike the C library, the same does not hold if there are such lines and none is usable: that is an error.
/// `index_of` gives the index of a network interface. The interfaces that the file names (`fe80::1%eth0`) are added to
/// `interfaces`, with their indices.
pub(super) fn name_servers(
    text: &[u8],
    search: Vec<String>,
    index_of: &dyn Fn(&str) -> Option<u32>,
    interfaces: &mut Vec<(Box<str>, Option<u32>)>,
) -> Result<NameServers, String> {
    let mut conf = NameServers::new([]);
    conf.search = search;
    let mut unusable = None;
    // Comments stand at the start of a line; some files have them after a value, too.
    for (number, mut words) in lines(text, &['#', ';']).enumerate() {
        match words.next() {
            Some("nameserver") => {
                let value = words.next().unwrap_or_default();
                let scope = |name: &str| {
                    let index = index_of(name);
                    interfaces.push((name.into(), index));
                    index
                };
                match server(value, scope) {
                    Some(server) => conf.servers.push(server),
                    None => {
                        let why = || format!("line {}: {value:?} is not usable", number + 1);
                        unusable.get_or_insert_with(why);
                    }
                }
            }
            Some("domain") => conf.search = words.take(1).map(domain).collect(),
            Some("search") => conf.search = words.map(domain).collect(),
            Some("options") => words.for_each(|word| set_option(&mut conf, word)),
            _ => {}
        }
    }
    conf.servers.truncate(MAX_SERVERS);
    conf.search.retain(|domain| !domain.is_empty());
    conf.search.truncate(MAX_SEARCH);
    if conf.servers.is_empty() {
        conf.servers.push((Ipv4Addr::LOCALHOST, DNS_PORT).into());
        return unusable.map_or(Ok(conf), Err);
    }
    Ok(conf)
}

fn set_option(conf: &mut NameServers, word: &str) {
    let (name, value) = word.split_once(':').unwrap_or((word, ""));
    let number = |cap: u64| value.parse::<u64>().ok().map(|n| n.min(cap));
    match name {
        "ndots" => conf.ndots = number(15).map_or(conf.ndots, |n| n as usize),
        "timeout" => {
            conf.timeout = number(30).map_or(conf.timeout, |n| Duration::from_secs(n.max(1)));
        }
        "attempts" => conf.attempts = number(5).map_or(conf.attempts, |n| n.max(1) as usize),
        "rotate" => conf.rotate = true,
        _ => {}
    }
}

/// An IP address, perhaps with a scope: the interface of a link-local address, by name or index (RFC 4007 §11).
fn server(value: &str, index_of: impl FnOnce(&str) -> Option<u32>) -> Option<SocketAddr> {
    let Some((ip, scope)) = value.split_once('%') else {
        return Some(SocketAddr::new(value.parse().ok()?, DNS_PORT));
    };
    let ip: Ipv6Addr = ip.parse().ok()?;
    let scope = scope.parse().ok().or_else(|| index_of(scope))?;
    Some(SocketAddrV6::new(ip, DNS_PORT, 0, scope).into())
}

/// The index of a network interface of this machine.
pub(super) fn interface_index(name: &str) -> Option<u32> {
    // A name is a directory here: it must not lead elsewhere.
    if name.contains('/') || name.starts_with('.') {
        return None;
    }
    let index = fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).ok()?;
    index.trim().parse().ok()
}

/// The words of each line, without its comment. A line that is not UTF-8 has none.
fn lines<'a>(
    text: &'a [u8],
    comment: &'static [char],
) -> impl Iterator<Item = SplitAsciiWhitespace<'a>> {
    text.split(|byte| *byte == b'\n').map(move |line| {
        let line = std::str::from_utf8(line).unwrap_or_default();
        let line = line.split(comment).next().unwrap_or_default();
        line.split_ascii_whitespace()
    })
}

fn domain(word: &str) -> String {
    word.strip_suffix('.').unwrap_or(word).to_ascii_lowercase()
}

/// The addresses in a `hosts` file, by names in lower case without a dot at the end.
pub(super) fn hosts(text: &[u8]) -> HashMap<Box<str>, Vec<IpAddr>> {
    let mut hosts = HashMap::<_, Vec<IpAddr>>::new();
    for mut words in lines(text, &['#']) {
        let Some(ip) = words.next().and_then(|word| word.parse().ok()) else {
            continue;
        };
        for name in words {
            let addresses = hosts.entry(domain(name).into()).or_default();
            if !addresses.contains(&ip) {
                addresses.push(ip);
            }
        }
    }
    hosts
}

const DNS_PORT: u16 = 53;
/// `MAXNS` of the C library.
const MAX_SERVERS: usize = 3;
/// The C library has no limit any more. Each domain costs one query for a name that does not exist.
const MAX_SEARCH: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<NameServers, String> {
        name_servers(text, vec!["host.test".into()], &index_of, &mut Vec::new())
    }

    fn index_of(name: &str) -> Option<u32> {
        (name == "eth0").then_some(7)
    }

    fn servers(text: &str) -> Vec<String> {
        let conf = parse(text.as_bytes()).unwrap();
        conf.servers.iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn resolv_conf() {
        let conf = parse(
            b"# made by hand\n; also\nnameserver 10.0.0.1 # first\nnameserver\t::1\r\n\
              domain first.example\nsearch Corp.Example. other.example\r\n\
              options ndots:2 timeout:99 attempts:0 rotate edns0 unknown:1\r\nsortlist 1.2.3.4\n\xff\xfe\n",
        );
        let expected = NameServers {
            servers: vec!["10.0.0.1:53".parse().unwrap(), "[::1]:53".parse().unwrap()],
            search: vec!["corp.example".into(), "other.example".into()],
            ndots: 2,
            timeout: Duration::from_secs(30),
            attempts: 1,
            rotate: true,
        };
        assert_eq!(conf, Ok(expected));
        let conf = parse(b"nameserver 1.1.1.1").unwrap();
        assert_eq!((conf.ndots, conf.attempts), (1, 2));
        assert_eq!(conf.search, ["host.test"]);
        let conf = parse(b"search\noptions ndots:x timeout attempts:-1").unwrap();
        assert_eq!((conf.ndots, conf.attempts, conf.search), (1, 2, vec![]));
    }

    #[test]
    fn unusable_name_servers_are_skipped_while_one_is_left() {
        let four = "nameserver ::1\n".to_owned() + &"nameserver 2.2.2.2\n".repeat(3);
        assert_eq!(servers(&four), ["[::1]:53", "2.2.2.2:53", "2.2.2.2:53"]);
        assert_eq!(
            servers(
                "nameserver fe80::1%wlan0\nnameserver\nnameserver 1.1.1.300\nnameserver 1.1.1.1:53\n\
                 nameserver [::1]\nnameserver 10.0.0.1%eth0\nnameserver dns.example\nnameserver fe80::1%\n\
                 nameserver 9.9.9.9\nnameserver fe80::1%eth0\nnameserver fe80::2%3\nnameserver 8.8.8.8"
            ),
            ["9.9.9.9:53", "[fe80::1%7]:53", "[fe80::2%3]:53"]
        );
        // None in the file: the server of this machine.
        for text in [
            "",
            "#nameserver 1.1.1.1\n",
            "nameservers 1.1.1.1\n",
            "search a.example",
        ] {
            assert_eq!(servers(text), ["127.0.0.1:53"], "{text:?}");
        }
        for (text, error) in [
            ("nameserver\n", "line 1: \"\" is not usable"),
            (
                "\nnameserver fe80::1%wlan0\nnameserver x",
                "line 2: \"fe80::1%wlan0\" is not usable",
            ),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(error.to_owned()), "{text:?}");
        }
        let mut interfaces = Vec::new();
        let text = b"nameserver fe80::1%wlan0\nnameserver fe80::1%eth0";
        assert!(name_servers(text, Vec::new(), &index_of, &mut interfaces).is_ok());
        assert_eq!(
            interfaces,
            [("wlan0".into(), None), ("eth0".into(), Some(7))]
        );
    }

    #[test]
    fn interfaces_of_this_machine() {
        for name in ["nonexistent0", "", "../lo", ".", "lo/../lo"] {
            assert_eq!(interface_index(name), None, "{name:?}");
        }
        #[cfg(target_os = "linux")]
        assert_eq!(interface_index("lo"), Some(1));
    }

    #[test]
    fn names_of_hosts() {
        let hosts = hosts(
            b"127.0.0.1 localhost\n::1 localhost\n10.0.0.1\tDB.Internal db # both\r\n10.0.0.1 db\n\
              # 1.1.1.1 off\nnonsense db\nfe80::1%lo db\n\xff\xfe 1.1.1.1 off\n10.0.0.2",
        );
        let get = |name: &str| {
            hosts
                .get(name)
                .map(|all| all.iter().map(IpAddr::to_string).collect())
        };
        let list = |all: &[&str]| Some(all.iter().map(|s| s.to_string()).collect::<Vec<_>>());
        assert_eq!(get("localhost"), list(&["127.0.0.1", "::1"]));
        assert_eq!(get("db.internal"), list(&["10.0.0.1"]));
        assert_eq!(get("db"), list(&["10.0.0.1"]));
        assert_eq!(get("off"), None);
    }
}
