//! Which thread serves which host.

#![allow(dead_code)] // until there is a client of several hosts

/// A number that is the same for all URLs of one scheme, host and port, whichever way they are written; with it, all
/// calls to a host meet on one thread, and its caps stay exact. What is no URL gets a number too: the client will say
/// what is wrong with it.
pub(super) fn host_hash(url: &str) -> u64 {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host_port = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    // The colons of an IPv6 address stand in brackets.
    let colon = host_port
        .rfind(':')
        .filter(|colon| host_port.rfind(']').is_none_or(|bracket| bracket < *colon));
    let (host, port) = match colon {
        Some(colon) => (&host_port[..colon], &host_port[colon + 1..]),
        None => (host_port, ""),
    };
    let port = match (port.trim_start_matches('0'), port) {
        (_, "") if scheme.eq_ignore_ascii_case("https") => "443",
        (_, "") => "80",
        (digits, _) => digits,
    };
    let parts = [scheme.as_bytes(), host.as_bytes(), port.as_bytes()];
    let mut hash = FNV_OFFSET;
    for part in parts {
        for byte in part.iter().map(u8::to_ascii_lowercase).chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
    }
    // The low bits of the sum depend on few bits of the text; these depend on all.
    hash ^ (hash >> 32)
}

/// FNV-1a: short, and good enough for spreading. A crowd of hosts that all go to one thread is no worse than one
/// thread for all.
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
