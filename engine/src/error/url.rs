//! What is wrong with a URL, and how the text of a URL is shown in an error.

use std::fmt;

/// What is wrong with a URL. Contains nothing of the user information.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum UrlError {
    /// The URL does not begin with `http://` or `https://`, nor with another scheme.
    NoScheme,
    /// The URL has this scheme (in lower case), which is not supported.
    Scheme(Box<str>),
    /// The user information contains a byte that must be percent-encoded (RFC 3986 §3.2.1).
    UserInfo,
    /// There is no host.
    NoHost,
    /// The host contains this byte, which is invalid.
    HostByte(u8),
    /// A label of the host name is empty or longer than 63 bytes, or the name is longer than 253 (RFC 1035 §2.3.4).
    HostName,
    /// The host ends in a number and is not a plain dotted quad: other programs could read it as an address.
    HostNumber,
    /// The text in brackets is not an IPv6 address.
    Ipv6,
    /// The IPv6 address has a zone id, which has no meaning on another host (not in the grammar of RFC 9110 §4.2.1).
    ZoneId,
    /// The host name cannot be converted to ASCII (RFC 5891). Without the feature `idna`, this is every name with other
    /// characters than ASCII.
    Idna,
    /// The port is not a number from 1 to 65535.
    Port,
    /// The URL of a SOCKS proxy has a path.
    ProxyPath,
    /// The URL of an upstream has user information, a path, a query or a fragment.
    NotOrigin,
    /// The URL is not `https`, and the client allows nothing else ([`Config::https_only`](crate::Config::https_only)).
    NotHttps,
    /// The path or the query contains a byte that must be percent-encoded.
    TargetByte {
        /// Offset in the URL.
        at: usize,
        /// The byte.
        byte: u8,
    },
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme => f.write_str("it does not begin with http:// or https://"),
            Self::Scheme(name) if &**name == "https" => {
                f.write_str("https needs the feature tls, which this build does not have")
            }
            Self::Scheme(name) => write!(f, "the scheme {name} is not supported"),
            Self::UserInfo => f.write_str("its user information needs percent-encoding"),
            Self::NoHost => f.write_str("it has no host"),
            Self::HostByte(byte) => write!(f, "invalid byte {byte:#04x} in the host"),
            Self::HostName => f.write_str("a part of the host's name is empty or too long"),
            Self::HostNumber => {
                f.write_str("the host ends in a number and is no address like 127.0.0.1")
            }
            Self::Ipv6 => f.write_str("invalid IPv6 address"),
            Self::ZoneId => f.write_str("the IPv6 address has a zone id"),
            Self::Idna => f.write_str("the host's name is invalid (IDNA)"),
            Self::Port => f.write_str("the port is not a number from 1 to 65535"),
            Self::ProxyPath => f.write_str("it has a path"),
            Self::NotOrigin => f.write_str("it has more than a scheme, a host and a port"),
            Self::NotHttps => f.write_str("only https is allowed"),
            Self::TargetByte { at, byte } => {
                write!(f, "invalid byte {byte:#04x} at offset {at}")
            }
        }
    }
}

impl std::error::Error for UrlError {}

/// The text of a URL for an error message: without anything that could be user information, and cut after
/// [`MAX_SHOWN_CHARS`].
pub(crate) fn redacted(text: &str) -> String {
    // A password without percent-encoding may contain any byte, also `/`. Only the last `@` is certain to be after the
    // password.
    let start = text.find("://").map_or(0, |at| at + 3);
    let mut shown = match text.rfind('@') {
        Some(at) if at >= start => format!("{}***{}", &text[..start], &text[at..]),
        Some(at) => format!("***{}", &text[at..]),
        None => text.to_owned(),
    };
    if let Some((end, _)) = shown.char_indices().nth(MAX_SHOWN_CHARS) {
        shown.truncate(end);
        shown.push_str("...");
    }
    shown
}

/// How many characters of an invalid URL an error message shows.
const MAX_SHOWN_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (text, expected) in [
            ("http://user:secret@h:0/", "http://***@h:0/"),
            ("http://user:sec/r@et@h", "http://***@h"),
            ("user:secret@h", "***@h"),
            ("a@b://x", "***@b://x"),
            ("http://h:0/", "http://h:0/"),
        ] {
            assert_eq!(redacted(text), expected);
        }
        assert_eq!(redacted(&"ä".repeat(300)).chars().count(), 203);
    }
}
