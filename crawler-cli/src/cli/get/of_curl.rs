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

const LETTERS: [(&str, &str); 18] = [
    ("#", "progress-bar"),
    ("0", "http1.0"),
    ("1", "tlsv1"),
    ("2", "sslv2"),
    ("3", "sslv3"),
    ("a", "append"),
    ("B", "use-ascii"),
    ("K", "config"),
    ("M", "manual"),
    ("P", "ftp-port"),
    ("Q", "quote"),
    ("Y", "speed-limit"),
    ("Z", "parallel"),
    ("l", "list-only"),
    ("n", "netrc"),
    ("q", "disable"),
    ("t", "telnet-option"),
    ("y", "speed-time"),
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
    (
        "requests are HTTP/1.1",
        "alt-svc http0.9 http1.0 http2 http2-prior-knowledge http3 http3-only no-alpn no-npn alpn npn",
    ),
    (
        "-u is Basic authentication, and --oauth2-bearer or -H 'Authorization: ...' sends other credentials",
        "anyauth aws-sigv4 basic delegation digest negotiate ntlm ntlm-wb proxy-anyauth proxy-basic proxy-digest proxy-negotiate \
         proxy-ntlm proxy-service-name",
    ),
    (
        "TLS 1.2 and 1.3 are there, with the ciphers of rustls; see --tlsv1.2, --tlsv1.3 and --tls-max",
        "cert-status ciphers curves egd-file engine false-start no-sessionid sessionid proxy-ciphers proxy-ssl-allow-beast \
         proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-tlsv1 random-file \
         ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-revoke-best-effort sslv2 sslv3 tls13-ciphers tlsauthtype \
         tlspassword tlsuser tlsv1 tlsv1.0 tlsv1.1",
    ),
    (
        "certificates and keys are PEM files without a passphrase, and --cacert names a file",
        "capath cert-type key-type pass proxy-capath proxy-cert-type proxy-key-type proxy-pass pinnedpubkey proxy-pinnedpubkey",
    ),
    (
        "crawler-cli find URL --download DIR fetches many files at once, and keeps what is known of them",
        "parallel parallel-immediate parallel-max xattr",
    ),
    (
        "-u gives the credentials; crawler-cli find has --netrc and --netrc-file",
        "netrc netrc-file netrc-optional",
    ),
    (
        "no file of options is read; write the options into the command",
        "config disable",
    ),
    (
        "--max-time and --connect-timeout limit the time; the rate is not limited",
        "expect100-timeout happy-eyeballs-timeout-ms limit-rate speed-limit speed-time",
    ),
    (
        "there is no progress meter",
        "no-progress-meter progress-meter progress-bar styled-output",
    ),
    (
        "-v shows what is sent and received",
        "libcurl trace trace-ascii trace-time",
    ),
    ("--help has all options", "manual"),
    (
        "--resolve and --connect-to say where to connect",
        "abstract-unix-socket dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-cert-status doh-insecure doh-url \
         haproxy-protocol interface local-port",
    ),
    (
        "-x takes http, https, socks5 and socks5h proxies",
        "preproxy proxy1.0 socks4 socks4a socks5-basic socks5-gssapi socks5-gssapi-nec socks5-gssapi-service",
    ),
    (
        "only http and https URLs are read",
        "disallow-username-in-url proto proto-default proto-redir",
    ),
    (
        "connections are as the engine makes them",
        "keepalive-time no-keepalive keepalive tcp-fastopen tcp-nodelay",
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
        for word in ["--quote", "-Q", "--quote=a", "--no-keepalive"] {
            assert!(about(word).is_some(), "{word}");
        }
        for word in ["--foo", "--no-foo", "-é", "--", "-"] {
            assert_eq!(about(word), None, "{word}");
        }
    }
}
