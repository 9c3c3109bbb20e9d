//! Options of curl 7.88 that `get` does not have, and what to do instead.

/// What is said about an option of curl that `get` does not have. `word` has its dashes, and may be a letter.
pub(super) fn about(word: &str) -> Option<&'static str> {
    let name = match word.strip_prefix("--") {
        Some(name) => name.split('=').next().unwrap_or(name),
        None => long_name(word.strip_prefix('-')?)?,
    };
    let has = |name: &str| {
        let mut groups = GROUPS.iter();
        groups.find(|(_, names)| names.split_whitespace().any(|other| other == name))
    };
    // `--no-` stands before any switch.
    let found = has(name).or_else(|| has(name.strip_prefix("no-")?));
    found.map(|(instead, _)| *instead)
}

/// The long name of an option of one letter.
fn long_name(letter: &str) -> Option<&'static str> {
    let (_, name) = LETTERS.iter().find(|(short, _)| *short == letter)?;
    Some(name)
}

const LETTERS: [(&str, &str); 9] = [
    ("2", "sslv2"),
    ("3", "sslv3"),
    ("a", "append"),
    ("B", "use-ascii"),
    ("M", "manual"),
    ("P", "ftp-port"),
    ("Q", "quote"),
    ("l", "list-only"),
    ("t", "telnet-option"),
];

/// What to do instead, and the options that this is for.
const GROUPS: &[(&str, &str)] = &[
    (
        "it is for other protocols than HTTP",
        "append compressed-ssh crlf disable-eprt disable-epsv ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method \
         ftp-pasv ftp-port ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control hostpubmd5 hostpubsha256 krb \
         list-only login-options mail-auth mail-from mail-rcpt mail-rcpt-allowfails metalink pubkey quote sasl-authzid sasl-ir \
         service-name ssl ssl-reqd telnet-option tftp-blksize tftp-no-options use-ascii",
    ),
    ("requests are HTTP/1.1", "alt-svc http0.9 no-npn npn"),
    (
        "authentication is --basic, --digest or --oauth2-bearer; -H 'Authorization: ...' sends other credentials",
        "aws-sigv4 delegation negotiate ntlm ntlm-wb proxy-negotiate \
         proxy-ntlm proxy-service-name",
    ),
    (
        "TLS 1.2 and 1.3 are there, with the ciphers of rustls; see --tlsv1.2, --tlsv1.3 and --tls-max",
        "cert-status egd-file engine false-start proxy-ssl-allow-beast \
         proxy-ssl-auto-client-cert proxy-tlsauthtype proxy-tlspassword proxy-tlsuser random-file \
         ssl-allow-beast ssl-auto-client-cert ssl-revoke-best-effort sslv2 sslv3 tlsauthtype \
         tlspassword tlsuser",
    ),
    (
        "crawler-cli find URL --download DIR fetches many files, and keeps what is known of them",
        "xattr",
    ),
    ("output has no colours", "styled-output"),
    ("-v shows what is sent and received", "libcurl"),
    ("--help has all options", "manual"),
    (
        "--resolve and --connect-to say where to connect, --interface from where, and --dns-servers whom to ask",
        "dns-interface dns-ipv4-addr dns-ipv6-addr doh-cert-status doh-insecure doh-url haproxy-protocol",
    ),
    (
        "-x takes http, https, socks5 and socks5h proxies",
        "preproxy proxy1.0 socks4 socks4a socks5-basic socks5-gssapi socks5-gssapi-nec socks5-gssapi-service",
    ),
    (
        "the first data of a connection is sent once the connection is there",
        "tcp-fastopen",
    ),
    ("there is nothing in its place", "hsts tr-encoding"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::get::Args;
    use crate::cli::parse::options;

    #[test]
    fn an_option_is_either_there_or_told_about() {
        for (_, names) in GROUPS {
            for name in names.split_whitespace() {
                let word = format!("--{name}");
                let mut rows = options::<Args>();
                assert!(!rows.any(|row| row.is_named(word.as_bytes())), "{word}");
            }
        }
        for word in ["--quote", "-Q", "--quote=a", "--tr-encoding"] {
            assert!(about(word).is_some(), "{word}");
        }
        for word in ["--foo", "--no-foo", "-é", "--", "-"] {
            assert_eq!(about(word), None, "{word}");
        }
    }
}
