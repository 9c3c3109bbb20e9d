//! Authentication: which scheme is used with a server or a proxy, and what a request has in `Authorization` or
//! `Proxy-Authorization`. The rules are curl's: one wanted scheme is used at once; several are chosen from by the first
//! response that asks; credentials that were refused are not sent a second time.

mod challenge;
mod digest;
mod keys;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use ring::rand::{SecureRandom as _, SystemRandom};

use challenge::Challenge;
use digest::{Digest, Subject};

pub(super) use keys::{Authorizations, Keys, ProxyKey};

/// A set of authentication schemes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Schemes {
    pub(crate) basic: bool,
    pub(crate) digest: bool,
    pub(crate) bearer: bool,
}

impl Schemes {
    /// `--anyauth`
    pub(crate) const ANY: Self = Self {
        basic: true,
        digest: true,
        bearer: true,
    };

    /// The schemes for a server: Basic if nothing was asked for. A token of `--oauth2-bearer` asks for Bearer.
    pub(super) fn for_server(self, has_token: bool) -> Self {
        let asked = Self {
            bearer: self.bearer || has_token,
            ..self
        };
        let basic = asked.basic || asked == Self::default();
        Self { basic, ..asked }
    }
}

/// `--proxy-anyauth`, `--proxy-digest` and `--proxy-basic`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProxyAuth {
    pub(crate) any: bool,
    pub(crate) digest: bool,
}

impl ProxyAuth {
    /// The schemes for a proxy: one, or all with `--proxy-anyauth`.
    pub(super) fn schemes(self) -> Schemes {
        Schemes {
            basic: self.any || !self.digest,
            digest: self.any || self.digest,
            bearer: false,
        }
    }
}

/// What is sent as proof.
#[derive(Clone, Copy, Default)]
struct Proof<'a> {
    /// `user:password`
    user: Option<&'a [u8]>,
    /// `--oauth2-bearer`
    token: Option<&'a [u8]>,
}

impl Proof<'_> {
    fn is_none(&self) -> bool {
        self.user.is_none() && self.token.is_none()
    }
}

/// The state of authentication with one server or one proxy.
#[derive(Clone, Debug)]
pub(super) struct Auth {
    wanted: Schemes,
    state: State,
    /// Why Digest challenges of the last response were not answered.
    unanswered: Vec<&'static str>,
}

#[derive(Clone, Debug)]
enum State {
    /// Several schemes are wanted: a response that asks decides.
    Undecided,
    Basic,
    Bearer,
    /// Digest was wanted, and no challenge has come.
    AwaitDigest,
    Digest(Digest),
    /// Nothing is sent: a request went through without credentials, or they were refused.
    Ended,
}

impl Auth {
    pub(super) fn new(wanted: Schemes) -> Self {
        let state = match (wanted.basic, wanted.digest, wanted.bearer) {
            (true, false, false) => State::Basic,
            (false, true, false) => State::AwaitDigest,
            (false, false, true) => State::Bearer,
            _ => State::Undecided,
        };
        Self {
            wanted,
            state,
            unanswered: Vec::new(),
        }
    }

    /// The same wishes, for another server.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.wanted)
    }

    /// The value of `Authorization` or `Proxy-Authorization`; `None` if the request has none.
    fn value(&mut self, proof: Proof<'_>, subject: &Subject<'_>) -> Option<Vec<u8>> {
        match &mut self.state {
            State::Basic => proof.user.map(basic),
            State::Bearer => proof.token.map(|token| [b"Bearer ", token].concat()),
            State::Digest(digest) => digest.answer(proof.user?, subject, &cnonce()),
            State::Undecided | State::AwaitDigest | State::Ended => None,
        }
    }

    /// Whether a request with a body is sent without it first, because the server is sure to ask for Digest.
    fn awaits_challenge(&self, proof: Proof<'_>) -> bool {
        matches!(self.state, State::AwaitDigest) && proof.user.is_some()
    }

    /// The server or the proxy asked for credentials (401, 407) with the challenges in these fields. Returns whether
    /// the request is to be sent again.
    fn refused<'a>(&mut self, proof: Proof<'_>, fields: impl Iterator<Item = &'a [u8]>) -> bool {
        if proof.is_none() || matches!(self.state, State::Ended) {
            return false;
        }
        let challenges = challenge::read(fields);
        let digests = challenges.iter().filter(|c| c.scheme == "digest");
        let digests: Vec<_> = digests.map(Digest::new).collect();
        if self.wanted.digest && proof.user.is_some() {
            self.unanswered = digests
                .iter()
                .filter_map(|d| d.as_ref().err())
                .copied()
                .collect();
        }
        // The server's order is its preference (RFC 7616 §3.7).
        let digest = digests.into_iter().find_map(Result::ok);
        let next = self.next_state(proof, &challenges, digest);
        let again = !matches!(next, State::Ended);
        self.state = next;
        again
    }

    /// Why Digest challenges were not answered. Each is told once.
    pub(super) fn take_unanswered(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.unanswered)
    }

    /// A request without its body was answered as if it needed no credentials. Returns whether it is to be sent again,
    /// now with the body.
    fn was_not_needed(&mut self, proof: Proof<'_>) -> bool {
        let awaited = self.awaits_challenge(proof);
        if awaited {
            self.state = State::Ended;
        }
        awaited
    }

    /// The strongest scheme that is wanted, asked for and not refused yet. `digest` is the challenge that can be answered.
    fn next_state(
        &self,
        proof: Proof<'_>,
        challenges: &[Challenge],
        digest: Option<Digest>,
    ) -> State {
        let asks = |scheme: &str| challenges.iter().any(|c| c.scheme == scheme);
        match self.state {
            State::Basic if asks("basic") => return State::Ended,
            State::Bearer if asks("bearer") => return State::Ended,
            _ => {}
        }
        if self.wanted.bearer && proof.token.is_some() && asks("bearer") {
            return State::Bearer;
        }
        if self.wanted.digest && proof.user.is_some() && asks("digest") {
            return match (digest, &self.state) {
                (None, _) => State::Ended,
                (Some(new), State::Digest(old)) => {
                    new.after(old).map_or(State::Ended, State::Digest)
                }
                (Some(new), _) => State::Digest(new),
            };
        }
        if self.wanted.basic && proof.user.is_some() && asks("basic") {
            return State::Basic;
        }
        State::Ended
    }
}

/// The values of the fields with this name in a head.
fn fields_of<'a>(head: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let lines = head.split(|b| *b == b'\n').skip(1);
    lines.filter_map(move |line| {
        let colon = line.iter().position(|b| *b == b':')?;
        let named = line[..colon].eq_ignore_ascii_case(name.as_bytes());
        named.then(|| line[colon + 1..].trim_ascii())
    })
}

/// The value of `Authorization` for `user:password` (RFC 7617).
fn basic(user: &[u8]) -> Vec<u8> {
    format!("Basic {}", BASE64_STANDARD.encode(user)).into_bytes()
}

/// A nonce of the client: 144 random bits. Without any randomness it is constant, which only weakens the protection
/// against a server that chooses its nonces (RFC 7616 §5.8).
fn cnonce() -> String {
    let mut bytes = [0; 18];
    // The system's generator does not fail once it has started.
    let _ = SystemRandom::new().fill(&mut bytes);
    BASE64_STANDARD_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Proof<'_> = Proof {
        user: Some(b"u:p"),
        token: None,
    };
    const GET: Subject<'_> = Subject {
        method: "GET",
        uri: "/",
        body: None,
    };

    fn scheme(auth: &mut Auth, proof: Proof<'_>) -> Option<String> {
        let value = String::from_utf8(auth.value(proof, &GET)?).unwrap();
        Some(value.split(' ').next().unwrap().to_owned())
    }

    fn asked(auth: &mut Auth, proof: Proof<'_>, field: &str) -> bool {
        auth.refused(proof, [field.as_bytes()].into_iter())
    }

    #[test]
    fn one_scheme_is_used_at_once() {
        let wanted = Schemes::default().for_server(false);
        let mut auth = Auth::new(wanted);
        assert_eq!(scheme(&mut auth, USER).as_deref(), Some("Basic"));
        assert_eq!(scheme(&mut auth, Proof::default()), None);
        assert!(!asked(&mut auth, USER, "Basic realm=x"));
        assert_eq!(scheme(&mut auth, USER), None, "refused once");
    }

    #[test]
    fn digest_waits_for_its_challenge() {
        let wanted = Schemes {
            digest: true,
            ..Schemes::default()
        };
        let mut auth = Auth::new(wanted.for_server(false));
        assert_eq!(scheme(&mut auth, USER), None);
        assert!(auth.awaits_challenge(USER) && !auth.awaits_challenge(Proof::default()));
        assert!(!asked(&mut auth.clone(), USER, "Basic realm=x"));
        assert!(!asked(&mut auth.clone(), USER, "Digest realm=x"));
        assert!(asked(
            &mut auth,
            USER,
            "Basic realm=x, Digest realm=r, nonce=n"
        ));
        assert_eq!(scheme(&mut auth, USER).as_deref(), Some("Digest"));
        assert!(asked(
            &mut auth,
            USER,
            "Digest realm=r, nonce=m, stale=true"
        ));
        assert!(!asked(&mut auth, USER, "Digest realm=r, nonce=o"));
        for endless in ["nonce=same", "nonce=n"] {
            let mut auth = Auth::new(wanted.for_server(false));
            let times = (0..100).take_while(|number| {
                let nonce = match endless {
                    "nonce=n" => format!("nonce=n{number}"),
                    same => same.to_owned(),
                };
                asked(
                    &mut auth,
                    USER,
                    &format!("Digest realm=r, {nonce}, stale=true"),
                )
            });
            assert!(times.count() < 10, "{endless}");
        }
        let mut other = auth.anew();
        assert!(other.was_not_needed(USER));
        assert!(!asked(&mut other, USER, "Digest realm=r, nonce=n"));
    }

    #[test]
    fn the_first_digest_that_is_known_is_answered() {
        let mut auth = Auth::new(Schemes::ANY);
        let field =
            "Digest nonce=a, algorithm=NEW, Digest nonce=b, algorithm=SHA-256, Digest nonce=c";
        assert!(asked(&mut auth, USER, field));
        let value = String::from_utf8(auth.value(USER, &GET).unwrap()).unwrap();
        assert!(value.contains("nonce=\"b\"") && value.contains("algorithm=SHA-256"));
    }

    #[test]
    fn any_takes_the_strongest_that_is_offered() {
        let token = Proof {
            token: Some(b"t"),
            ..USER
        };
        for (proof, field, expected) in [
            (USER, "Basic realm=x", Some("Basic")),
            (
                USER,
                "Basic realm=x, Digest realm=r, nonce=n",
                Some("Digest"),
            ),
            (USER, "Bearer realm=x, Basic realm=x", Some("Basic")),
            (token, "Bearer realm=x, Basic realm=x", Some("Bearer")),
            (USER, "Negotiate", None),
            (USER, "", None),
            (Proof::default(), "Basic realm=x", None),
        ] {
            let mut auth = Auth::new(Schemes::ANY);
            assert_eq!(scheme(&mut auth, proof), None);
            assert_eq!(
                asked(&mut auth, proof, field),
                expected.is_some(),
                "{field}"
            );
            assert_eq!(scheme(&mut auth, proof).as_deref(), expected, "{field}");
        }
    }

    #[test]
    fn fields_of_a_head() {
        let head = b"HTTP/1.1 407 X\r\nA: b\r\nproxy-authenticate: Basic\r\nProxy-Authenticate:Digest \r\n\r\n";
        let fields: Vec<_> = fields_of(head, "Proxy-Authenticate").collect();
        assert_eq!(fields, [&b"Basic"[..], b"Digest"]);
    }

    #[test]
    fn nonces_differ() {
        assert_ne!(cnonce(), cnonce());
        assert_eq!(cnonce().len(), 24);
    }
}
