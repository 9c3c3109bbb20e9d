//! Digest authentication (RFC 7616): what a challenge asks for, and the answer to it. Randomness is an argument.

use std::fmt::Write as _;

use md5::Md5;
use sha2::{Digest as _, Sha256, Sha512_256};

use super::challenge::Challenge;

/// A challenge with what was answered to it so far. `Debug` shows no secret: it has none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Digest {
    realm: Vec<u8>,
    nonce: Vec<u8>,
    opaque: Option<Vec<u8>>,
    /// As in the challenge.
    algorithm: Option<Vec<u8>>,
    hash: Hash,
    /// `-sess`: the secret is bound to the first nonce and cnonce.
    session: bool,
    qop: Option<Qop>,
    /// The user name is sent hashed.
    hides_user: bool,
    /// The previous nonce was too old, and the credentials were right.
    stale: bool,
    /// Requests that were answered with this nonce.
    count: u32,
    /// Nonces before this one that were too old.
    renewals: u32,
}

/// What is answered for.
pub(super) struct Subject<'a> {
    pub(super) method: &'a str,
    /// The request target.
    pub(super) uri: &'a str,
    /// `None` if the body is not in memory.
    pub(super) body: Option<&'a [u8]>,
}

/// What the response protects (RFC 7616 §3.4.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Qop {
    Auth,
    AuthInt,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hash {
    Md5,
    Sha256,
    Sha512_256,
}

impl Digest {
    /// The challenge, if it can be answered: its algorithm is known, and it has a nonce, which may be empty, as in curl.
    ///
    /// # Errors
    /// Why it is not answered.
    pub(super) fn new(challenge: &Challenge) -> Result<Self, &'static str> {
        if let Some(fault) = challenge.fault() {
            return Err(fault);
        }
        let given = |name| challenge.parameter(name);
        let algorithm = given("algorithm");
        let (hash, session) = match algorithm {
            None => (Hash::Md5, false),
            Some(name) => known_algorithm(name).ok_or("its algorithm is not known")?,
        };
        // Others are not to be minded (RFC 7616 §3.3).
        let qop = given("qop").and_then(best_qop);
        if session && qop.is_none() {
            return Err("its algorithm needs a qop, which it lacks");
        }
        let is_true = |name| given(name).is_some_and(|value| value.eq_ignore_ascii_case(b"true"));
        Ok(Self {
            realm: given("realm").unwrap_or_default().to_vec(),
            nonce: given("nonce").ok_or("it has no nonce")?.to_vec(),
            opaque: given("opaque").map(<[u8]>::to_vec),
            algorithm: algorithm.map(<[u8]>::to_vec),
            hash,
            session,
            qop,
            hides_user: is_true("userhash"),
            stale: is_true("stale"),
            count: 0,
            renewals: 0,
        })
    }

    /// This challenge after `old` was answered; `None` if the credentials were refused. A server that calls each nonce too
    /// old, or the same one again, is not answered for ever.
    pub(super) fn after(mut self, old: &Self) -> Option<Self> {
        self.renewals = old.renewals + 1;
        let is_new = self.stale && self.nonce != old.nonce;
        (is_new && self.renewals <= MOST_RENEWALS).then_some(self)
    }

    /// The value of `Authorization` or `Proxy-Authorization` for one request, with its parameters in curl's order.
    /// `user` is `user:password`; `cnonce` is random and has no byte that needs an escape. `None` if the body would have
    /// to be hashed and is not in memory.
    pub(super) fn answer(
        &mut self,
        user: &[u8],
        subject: &Subject<'_>,
        cnonce: &str,
    ) -> Option<Vec<u8>> {
        let colon = user.iter().position(|b| *b == b':').unwrap_or(user.len());
        let (name, password) = (&user[..colon], user.get(colon + 1..).unwrap_or_default());
        let hash = |parts: &[&[u8]]| self.hash.hex(parts);
        let count = self.count.saturating_add(1);
        let nc = format!("{count:08x}");
        let mut secret = hash(&[name, &self.realm, password]);
        if self.session {
            secret = hash(&[secret.as_bytes(), &self.nonce, cnonce.as_bytes()]);
        }
        let (method, uri) = (subject.method.as_bytes(), subject.uri.as_bytes());
        let request = match self.qop {
            Some(Qop::AuthInt) => hash(&[method, uri, hash(&[subject.body?]).as_bytes()]),
            _ => hash(&[method, uri]),
        };
        let (secret, request) = (secret.as_bytes(), request.as_bytes());
        let response = match self.qop {
            None => hash(&[secret, &self.nonce, request]),
            Some(qop) => hash(&[
                secret,
                &self.nonce,
                nc.as_bytes(),
                cnonce.as_bytes(),
                qop.name().as_bytes(),
                request,
            ]),
        };
        let hidden = self.hides_user.then(|| hash(&[name, &self.realm]));
        let name = hidden.as_ref().map_or(name, |hidden| hidden.as_bytes());
        let mut value = b"Digest username=".to_vec();
        push_quoted(name, &mut value);
        for (field, text) in [
            ("realm", &self.realm[..]),
            ("nonce", &self.nonce),
            ("uri", uri),
        ] {
            push_name(field, &mut value);
            push_quoted(text, &mut value);
        }
        if let Some(qop) = self.qop {
            push_name("cnonce", &mut value);
            push_quoted(cnonce.as_bytes(), &mut value);
            value.extend(format!(", nc={nc}, qop={}", qop.name()).into_bytes());
        }
        push_name("response", &mut value);
        push_quoted(response.as_bytes(), &mut value);
        if let Some(opaque) = &self.opaque {
            push_name("opaque", &mut value);
            push_quoted(opaque, &mut value);
        }
        if let Some(algorithm) = &self.algorithm {
            push_name("algorithm", &mut value);
            value.extend_from_slice(algorithm);
        }
        if self.hides_user {
            value.extend_from_slice(b", userhash=true");
        }
        self.count = count;
        Some(value)
    }
}

impl Qop {
    fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::AuthInt => "auth-int",
        }
    }
}

impl Hash {
    /// The hash of the parts with colons between them, in hexadecimal digits.
    fn hex(self, parts: &[&[u8]]) -> String {
        let text = parts.join(&b':');
        match self {
            Self::Md5 => hex(&Md5::digest(&text)),
            Self::Sha256 => hex(&Sha256::digest(&text)),
            Self::Sha512_256 => hex(&Sha512_256::digest(&text)),
        }
    }
}

/// The hash of an algorithm of the registry, and whether it is one for sessions.
fn known_algorithm(name: &[u8]) -> Option<(Hash, bool)> {
    let name = name.to_ascii_lowercase();
    let (hash, session) = match name.strip_suffix(b"-sess") {
        Some(hash) => (hash, true),
        None => (&name[..], false),
    };
    let hash = match hash {
        b"md5" => Hash::Md5,
        b"sha-256" => Hash::Sha256,
        b"sha-512-256" => Hash::Sha512_256,
        _ => return None,
    };
    Some((hash, session))
}

/// `auth` if the list has it, or else `auth-int`.
fn best_qop(list: &[u8]) -> Option<Qop> {
    let has = |name: &[u8]| {
        let mut names = list.split(|b| *b == b',');
        names.any(|n| n.trim_ascii().eq_ignore_ascii_case(name))
    };
    match (has(b"auth"), has(b"auth-int")) {
        (true, _) => Some(Qop::Auth),
        (false, true) => Some(Qop::AuthInt),
        (false, false) => None,
    }
}

fn push_name(name: &str, value: &mut Vec<u8>) {
    value.extend_from_slice(b", ");
    value.extend_from_slice(name.as_bytes());
    value.push(b'=');
}

/// RFC 9110 §5.6.4.
fn push_quoted(text: &[u8], value: &mut Vec<u8>) {
    value.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            value.push(b'\\');
        }
        value.push(*byte);
    }
    value.push(b'"');
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// How often in a row a nonce may be too old.
const MOST_RENEWALS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::super::challenge::read;
    use super::*;

    fn digest(field: &str) -> Result<Digest, &'static str> {
        Digest::new(&read([field.as_bytes()].into_iter())[0])
    }

    fn answer(digest: &mut Digest, user: &str, body: Option<&[u8]>, cnonce: &str) -> String {
        let subject = Subject {
            method: "GET",
            uri: "/dir/index.html",
            body,
        };
        let answer = digest.answer(user.as_bytes(), &subject, cnonce).unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// RFC 7616 §3.9.1.
    #[test]
    fn the_examples_of_the_standard() {
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (
                "SHA-256",
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let field = format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={algorithm}, \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            );
            let mut digest = digest(&field).unwrap();
            let value = answer(&mut digest, "Mufasa:Circle of Life", None, cnonce);
            assert_eq!(
                value,
                format!(
                    "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", \
                     nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", uri=\"/dir/index.html\", \
                     cnonce=\"{cnonce}\", nc=00000001, qop=auth, response=\"{response}\", \
                     opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", algorithm={algorithm}"
                )
            );
            let again = answer(&mut digest, "Mufasa:Circle of Life", None, cnonce);
            assert!(again.contains("nc=00000002") && !again.contains(response));
        }
    }

    /// The request of RFC 7616 §3.9.2. The example itself was made with another hash than SHA-512-256 (erratum 4897), so
    /// the values are those that Python's hashlib gives.
    #[test]
    fn a_hidden_user_name() {
        let field = "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, \
                     nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", \
                     opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\", charset=UTF-8, userhash=true";
        let mut digest = digest(field).unwrap();
        let subject = Subject {
            method: "GET",
            uri: "/doe.json",
            body: None,
        };
        let user = "J\u{e4}s\u{f8}n Doe:Secret, or not?";
        let cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm";
        let value = digest.answer(user.as_bytes(), &subject, cnonce).unwrap();
        let value = String::from_utf8(value).unwrap();
        let name = "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b";
        assert!(
            value.starts_with(&format!("Digest username=\"{name}\"")),
            "{value}"
        );
        let response = "7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c";
        assert!(value.contains(response), "{value}");
        assert!(value.ends_with(", userhash=true"), "{value}");
    }

    /// RFC 2069, as in its errata: without qop.
    #[test]
    fn without_quality_of_protection() {
        let mut digest = digest(
            "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"",
        )
        .unwrap();
        let value = answer(&mut digest, "Mufasa:CircleOfLife", None, "x");
        assert_eq!(
            value,
            "Digest username=\"Mufasa\", realm=\"testrealm@host.com\", \
             nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", uri=\"/dir/index.html\", \
             response=\"1949323746fe6a43ef61f9606e7febea\""
        );
    }

    #[test]
    fn bodies_are_hashed_if_the_server_insists() {
        let field = "Digest realm=r, nonce=n, qop=auth-int";
        let value = |body: &[u8]| answer(&mut digest(field).unwrap(), "u:p", Some(body), "c");
        assert!(value(b"").contains("qop=auth-int"));
        assert_ne!(value(b""), value(b"x"));
        let subject = Subject {
            method: "PUT",
            uri: "/",
            body: None,
        };
        assert_eq!(digest(field).unwrap().answer(b"u:p", &subject, "c"), None);
    }

    #[test]
    fn sessions_depend_on_the_first_nonces() {
        let of = |algorithm: &str, cnonce: &str| {
            let field = format!("Digest realm=r, nonce=n, qop=auth, algorithm={algorithm}");
            let value = answer(&mut digest(&field).unwrap(), "u:p", None, cnonce);
            let at = value.find("response=").unwrap();
            value[at + 10..].split('"').next().unwrap().to_owned()
        };
        // As curl 7.88 answers.
        let by_hand = |session: bool| {
            let md5 = |text: &str| hex(&Md5::digest(text));
            let mut secret = md5("u:r:p");
            if session {
                secret = md5(&format!("{secret}:n:c"));
            }
            let request = md5("GET:/dir/index.html");
            md5(&format!("{secret}:n:00000001:c:auth:{request}"))
        };
        assert_eq!(of("MD5-sess", "c"), by_hand(true));
        assert_eq!(of("md5", "c"), by_hand(false));
        assert_ne!(of("SHA-256-sess", "c"), of("SHA-256", "c"));
    }

    #[test]
    fn names_are_quoted() {
        let mut digest = digest("Digest realm=\"a\\\"b\\\\\", nonce=n").unwrap();
        let value = answer(&mut digest, "u\"v:p", None, "c");
        assert!(value.starts_with("Digest username=\"u\\\"v\", realm=\"a\\\"b\\\\\", "));
    }

    #[test]
    fn challenges_without_an_answer() {
        for (field, why) in [
            ("Digest realm=r", "it has no nonce"),
            (
                "Digest realm=r, nonce=n, algorithm=SHA-3",
                "its algorithm is not known",
            ),
            (
                "Digest realm=r, nonce=n, algorithm=MD5-sess",
                "its algorithm needs a qop, which it lacks",
            ),
            (
                "Digest realm=r, nonce=n, nonce=m",
                "a parameter is there twice",
            ),
        ] {
            assert_eq!(digest(field), Err(why), "{field}");
        }
        // As in curl, empty values are values.
        let mut empty = digest("Digest realm=r, nonce=, opaque=, qop=auth").unwrap();
        let value = answer(&mut empty, "u:p", None, "c");
        assert!(
            value.contains("nonce=\"\"") && value.ends_with("opaque=\"\""),
            "{value}"
        );
        assert!(digest("Digest nonce=n, stale=TRUE").unwrap().stale);
        assert!(!digest("Digest nonce=n, stale=false").unwrap().stale);
    }
}
