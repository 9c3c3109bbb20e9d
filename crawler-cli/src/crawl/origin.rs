//! Which URLs belong to one host: those with the same scheme, host name and port.

use url::Url;

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
}
