//! Which worker of a `Shared` client serves which host.

use std::net::IpAddr;

use crate::proto::{Scheme, Url};

/// A number that is equal for all spellings of URLs with the same scheme, host and port. All calls to a host go to one
/// worker by it, so the limits of the host stay exact. Text that is not a URL gets a number, too; the client reports
/// its fault.
pub(crate) fn host_hash(url: &str) -> u64 {
    let Ok(url) = Url::parse(url) else {
        return 0;
    };
    let scheme = match url.scheme() {
        Scheme::Http => 0,
        Scheme::Https => 1,
    };
    let [port_high, port_low] = url.port().to_be_bytes();
    let hash = hash(FNV_OFFSET, [scheme, port_high, port_low]);
    let hash = match url.ip() {
        Some(IpAddr::V4(ip)) => self::hash(hash, ip.octets()),
        Some(IpAddr::V6(ip)) => self::hash(hash, ip.octets()),
        None => self::hash(
            hash,
            url.host().bytes().map(|byte| byte.to_ascii_lowercase()),
        ),
    };
    // The low bits of the sum depend on few bits of the text; after this step they depend on all.
    hash ^ (hash >> 32)
}

fn hash(start: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

/// FNV-1a: short, and spreads well enough. At worst, all hosts go to one worker.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_number() {
        for (url, same) in [
            ("http://h/", "http://h:80/a?b#c"),
            ("http://h", "http://h?q"),
            ("HTTP://Host.Example/", "http://host.example:080"),
            ("https://h/", "https://user:p@h:443/"),
            ("http://[::1]/", "http://[::1]:80"),
            ("http://h:/", "http://h:80/@x:1"),
            ("http://[::1]/", "http://[0:0:0:0:0:0:0:1]/"),
            ("http://b\u{fc}cher.x/", "http://xn--bcher-kva.x/"),
        ] {
            assert_eq!(host_hash(url), host_hash(same), "{url} {same}");
        }
    }

    #[test]
    fn other_hosts_have_others() {
        for (url, other) in [
            ("http://h/", "https://h/"),
            ("http://h/", "http://h:81/"),
            ("http://a.b/", "http://ab/"),
            ("http://[::1]/", "http://[::2]/"),
            ("http://h:80/", "https://h:80/"),
        ] {
            assert_ne!(host_hash(url), host_hash(other), "{url} {other}");
        }
    }

    #[test]
    fn hosts_spread_over_few_threads() {
        let mut counts = [0; 4];
        for host in 0..4000 {
            counts[(host_hash(&format!("http://host-{host}.example/")) % 4) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1200).contains(count)),
            "{counts:?}"
        );
    }
}
