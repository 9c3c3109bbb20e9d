//! Basic authentication (RFC 7617) from the user information of a URL (RFC 3986 §3.2.1): percent-decoding and base64.
//! Which request or proxy gets the credentials is decided by the callers.

use std::fmt;
use std::io::Write as _;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;

/// A user name and a password, both percent-decoded. `Debug` shows neither.
///
/// ```
/// use courser::proto::Credentials;
///
/// let credentials = Credentials::from_userinfo("user:p%40ss");
/// assert_eq!(credentials.password(), b"p@ss");
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Credentials {
    user: Box<[u8]>,
    password: Box<[u8]>,
}

impl Credentials {
    /// Takes a user name and a password as they are, without decoding.
    pub fn new(user: impl Into<Vec<u8>>, password: impl Into<Vec<u8>>) -> Self {
        Self {
            user: user.into().into(),
            password: password.into().into(),
        }
    }

    /// Reads `user:password` and decodes its percent-encoding. Without a colon, the password is empty.
    pub fn from_userinfo(userinfo: &str) -> Self {
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        Self {
            user: percent_decoded(user).collect(),
            password: percent_decoded(password).collect(),
        }
    }

    /// The user name.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// The password.
    pub fn password(&self) -> &[u8] {
        &self.password
    }

    /// Appends the value of an `Authorization` or `Proxy-Authorization` header: `Basic` and the base64 of
    /// `user:password`.
    pub fn push_basic(&self, out: &mut Vec<u8>) {
        let parts = [&*self.user, b":", &*self.password];
        push_value(parts.into_iter().flatten().copied(), out);
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(***)")
    }
}

/// Appends the value of `Authorization` for the user information of a URL. Allocates only what `out` needs to grow.
///
/// ```
/// let mut value = Vec::new();
/// courser::proto::push_basic("Aladdin:open%20sesame", &mut value);
/// assert_eq!(value, b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
/// ```
pub fn push_basic(userinfo: &str, out: &mut Vec<u8>) {
    // The first colon separates user and password. User information without a colon gets one at its end (RFC 7617 §2).
    let colon = if userinfo.contains(':') { "" } else { ":" };
    push_value(percent_decoded(userinfo).chain(colon.bytes()), out);
}

fn push_value(bytes: impl Iterator<Item = u8>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Basic ");
    let mut encoder = EncoderWriter::new(out, &STANDARD);
    for byte in bytes {
        // A vector takes all bytes; dropping the encoder writes the last ones.
        let _ = encoder.write_all(&[byte]);
    }
}

/// Decodes percent-encoding: `%41` becomes `A`. A `%` without two hexadecimal digits stays as it is.
pub(crate) fn percent_decoded(text: &str) -> impl Iterator<Item = u8> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        rest = after;
        if first == b'%'
            && let [high, low, after @ ..] = after
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            rest = after;
            return Some(high << 4 | low);
        }
        Some(first)
    })
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    #[test]
    fn percent_decoding() {
        let decoded = |text| percent_decoded(text).collect::<Vec<_>>();
        for (text, expected) in [
            ("", &b""[..]),
            ("abc", b"abc"),
            ("%41%6a%6A", b"Ajj"),
            ("%00%ff", b"\0\xff"),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%4g%+1%%41", b"%4g%+1%A"),
            ("%2541", b"%41"),
            ("ä+", "ä+".as_bytes()),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }

    #[test]
    fn basic_value_at_every_length() {
        for length in 0..200 {
            let password: String = ('a'..='z').cycle().take(length).collect();
            let mut direct = b"x".to_vec();
            push_basic(&format!("u%3a:{password}"), &mut direct);
            let expected = format!("xBasic {}", STANDARD.encode(format!("u::{password}")));
            assert_eq!(String::from_utf8(direct.clone()).unwrap(), expected);
            let mut owned = b"x".to_vec();
            Credentials::from_userinfo(&format!("u%3a:{password}")).push_basic(&mut owned);
            assert_eq!(owned, direct);
        }
        let mut value = Vec::new();
        push_basic("user", &mut value);
        assert_eq!(value, b"Basic dXNlcjo=");
    }

    #[test]
    fn debug_shows_neither_user_nor_password() {
        let credentials = Credentials::new("user", "secret");
        assert_eq!(format!("{credentials:?}"), "Credentials(***)");
    }
}
