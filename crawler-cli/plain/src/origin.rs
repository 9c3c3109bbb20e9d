//! Which URLs belong to one host: those with the same scheme, host name and port.

use url::{Host, Url};

/// The URL of the host's root: the path `/`, and neither credentials, query nor fragment.
pub fn root_of(url: &Url) -> Url {
    let mut root = url.clone();
    // The setters fail only for a URL without a host.
    let _ = root.set_username("");
    let _ = root.set_password(None);
    root.set_path("/");
    root.set_query(None);
    root.set_fragment(None);
    root
}

/// Whether two URLs belong to one host.
pub fn same_host(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host() == b.host()
        && a.port_or_known_default() == b.port_or_known_default()
}

/// Whether a URL leads to this machine, by its name or address.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        // RFC 6761 §6.3
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_apart_by_scheme_name_and_port() {
        let roots = [
            ("http://b/1", "http://b/"),
            ("HTTP://B:80/3?q#f", "http://b/"),
            ("http://user:word@b/", "http://b/"),
            ("https://b/4", "https://b/"),
            ("http://b:8080/5", "http://b:8080/"),
        ];
        for (url, root) in roots {
            let url = Url::parse(url).expect("valid");
            assert_eq!(root_of(&url).as_str(), root);
            let root = Url::parse(root).expect("valid");
            assert!(same_host(&url, &root));
        }
    }

    #[test]
    fn this_machine_has_several_names() {
        for (url, expected) in [
            ("http://localhost:8080/", true),
            ("http://LOCALHOST./", true),
            ("http://docs.localhost/", true),
            ("http://127.1/", true),
            ("https://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://10.0.0.1/", false),
            ("http://notlocalhost/", false),
            ("http://localhost.example/", false),
            ("mailto:a@localhost", false),
        ] {
            let url = Url::parse(url).expect("valid");
            assert_eq!(is_loopback(&url), expected, "{url}");
        }
    }
}
