//! Which worker of a `Shared` client serves which host.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::proto::Url;

/// A number that is equal for all spellings of URLs with the same scheme, host and port. All calls to a host go to one
/// worker by it, so the limits of the host stay exact. Text that is not a URL gets a number, too; the client reports
/// its fault.
pub(crate) fn host_hash(url: &str) -> u64 {
    let Ok(url) = Url::parse(url) else {
        return 0;
    };
    // Without keys of its own, so that all threads get the same number.
    let mut hasher = DefaultHasher::new();
    (url.scheme(), url.port(), url.ip()).hash(&mut hasher);
    if url.ip().is_none() {
        for byte in url.host().bytes() {
            hasher.write_u8(byte.to_ascii_lowercase());
        }
    }
    hasher.finish()
}

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
