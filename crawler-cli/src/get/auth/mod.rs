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
