//! Which proxies are used and which authorities are trusted, by curl's rules: options come before variables of the
//! environment, which `var` is.

use std::path::PathBuf;

use courser::{PemOrDer, Proxies, TlsConfig, TlsRoots};

/// The proxies: an option takes the place of its variables, even if it is empty.
///
/// # Errors
/// One of them is no proxy; the text says which.
pub(crate) fn proxies(
    proxy: Option<&str>,
    no_proxy: Option<&str>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Proxies, String> {
    let proxies = Proxies::from_vars(|name| match (name, proxy, no_proxy) {
        ("all_proxy", Some(proxy), _) => Some(proxy.to_owned()),
        ("no_proxy", _, Some(list)) => Some(list.to_owned()),
        ("http_proxy" | "HTTP_PROXY" | "https_proxy" | "HTTPS_PROXY" | "ALL_PROXY", Some(_), _)
        | ("NO_PROXY", _, Some(_)) => None,
        _ => var(name),
    });
    proxies.map_err(|error| match proxy {
        Some(_) => format!("-x: {error}"),
        None => format!("the environment: {error}"),
    })
}

/// The configuration with the authorities that a variable names, unless it has its own. True: it is those of a
/// variable.
pub(crate) fn with_authorities(
    mut tls: TlsConfig,
    var: impl Fn(&str) -> Option<String>,
) -> (TlsConfig, bool) {
    let bundle = ["CURL_CA_BUNDLE", "SSL_CERT_FILE"]
        .into_iter()
        .filter_map(var)
        .find(|path| !path.is_empty())
        .filter(|_| tls.roots != TlsRoots::None);
    let is_of_variable = bundle.is_some();
    if let Some(bundle) = bundle {
        trust_only(&mut tls, PathBuf::from(bundle));
    }
    (tls, is_of_variable)
}

/// Trusts the authorities in this file alone.
pub(crate) fn trust_only(tls: &mut TlsConfig, file: PathBuf) {
    tls.roots = TlsRoots::None;
    tls.extra_roots = vec![PemOrDer::File(file)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_none() {
        let vars = |name: &str| match name {
            "CURL_CA_BUNDLE" => Some(String::new()),
            "SSL_CERT_FILE" => Some("own.pem".to_owned()),
            _ => None,
        };
        let (tls, is_of_variable) = with_authorities(TlsConfig::default(), vars);
        assert!(is_of_variable);
        let own =
            |root: &PemOrDer| matches!(root, PemOrDer::File(path) if path.ends_with("own.pem"));
        assert!(tls.extra_roots.iter().all(own) && tls.extra_roots.len() == 1);
    }

    #[test]
    fn proxies_come_from_the_options_and_else_from_the_environment() {
        let vars = |name: &str| match name {
            "http_proxy" => Some("env:1".to_owned()),
            "NO_PROXY" => Some("direct.example".to_owned()),
            _ => None,
        };
        for (proxy, no_proxy, expected) in [
            // For http, for https, and for http to direct.example.
            (None, None, [Some("env"), None, None]),
            (Some("own"), None, [Some("own"), Some("own"), None]),
            (Some(""), None, [None; 3]),
            (Some("own"), Some(""), [Some("own"); 3]),
            (None, Some("h.example"), [None, None, Some("env")]),
            (Some("own"), Some("*"), [None; 3]),
        ] {
            let proxies = proxies(proxy, no_proxy, vars).expect("valid");
            let picked = [
                "http://h.example/",
                "https://h.example/",
                "http://direct.example/",
            ]
            .map(|url| {
                let url = courser::proto::Url::parse(url).expect("valid");
                proxies.pick(&url).map(|proxy| proxy.host().to_owned())
            });
            let picked = picked.each_ref().map(Option::as_deref);
            assert_eq!(picked, expected, "{proxy:?} {no_proxy:?}");
        }
        let bad = proxies(None, None, |_| Some("ftp://u:secret@p".to_owned()));
        let message = bad.map(|_| ()).expect_err("no proxy");
        assert!(message.starts_with("the environment: "), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
}
