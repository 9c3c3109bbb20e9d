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
