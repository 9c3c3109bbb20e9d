//! Tokens: what opens the service to those who reach it over HTTP. The store has their hashes alone.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};

use crate::store::StoredToken;

/// A new token: it is shown once, and kept by its owner alone.
#[derive(Clone, Eq, PartialEq)]
pub struct NewToken {
    /// The part that names it.
    pub id: String,
    /// The whole token.
    pub text: String,
}

impl NewToken {
    /// Makes a token of the system's random numbers.
    ///
    /// ```
    /// use crawler_cli::watch::tokens::{NewToken, hash_of};
    ///
    /// let token = NewToken::make()?;
    /// assert_eq!(token.text.len(), 8 + 8 + 1 + 43);
    /// assert_ne!(hash_of(&token.text), hash_of(&NewToken::make()?.text));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn make() -> io::Result<Self> {
        let mut random = [0; ID + SECRET];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| io::Error::other("the system has no random numbers"))?;
        let (id, secret) = random.split_at(ID);
        let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
        let id: String = id.iter().map(letter).collect();
        let secret = BASE64_URL_SAFE_NO_PAD.encode(secret);
        Ok(Self {
            text: format!("{PREFIX}{id}_{secret}"),
            id,
        })
    }
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewToken({})", self.id)
    }
}

/// The hash of a token, as the store keeps it.
pub fn hash_of(token: &str) -> Vec<u8> {
    let hash = digest::digest(&digest::SHA256, token.as_bytes());
    hash.as_ref().to_vec()
}

/// The tokens of the store, in memory: no request waits for the store to be let in.
#[derive(Debug, Default)]
pub struct Tokens {
    held: RwLock<Vec<StoredToken>>,
    turn: Mutex<()>,
}

/// Who has a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// The part that names the token.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// Whether it allows changes.
    pub may_write: bool,
}

impl Tokens {
    /// How many tokens a store has at most.
    pub const MOST: usize = 100;

    /// These tokens.
    pub fn new(tokens: Vec<StoredToken>) -> Self {
        Self {
            held: RwLock::new(tokens),
            turn: Mutex::default(),
        }
    }

    /// One thread at a time changes tokens, from the look at what holds until it has told here what the store has. So
    /// nothing older is told after something newer: a token that was removed would hold again.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these hold. For who has the [`turn`](Self::turn).
    pub fn set(&self, tokens: Vec<StoredToken>) {
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Whether there is none. Then everyone who reaches the service is let in.
    pub fn is_empty(&self) -> bool {
        self.with(<[_]>::is_empty)
    }

    /// Whether there is one besides that of this name.
    pub fn has_another(&self, name: &str) -> bool {
        self.with(|tokens| tokens.iter().any(|token| token.name != name))
    }

    /// Who has this token, if it holds. The hashes are compared by their codes under a key that nobody knows, so that the
    /// time of the comparison tells nothing.
    pub fn holder(&self, token: &str, now: Timestamp, key: &hmac::Key) -> Option<Holder> {
        let (id, _) = token.strip_prefix(PREFIX)?.split_once('_')?;
        let given = hash_of(token);
        self.find(id, now, |stored| {
            let code = hmac::sign(key, &stored.hash);
            hmac::verify(key, &given, code.as_ref()).is_ok()
        })
    }

    /// Who has the token of this name part, if it still holds.
    pub fn holder_by_id(&self, id: &str, now: Timestamp) -> Option<Holder> {
        self.find(id, now, |_| true)
    }

    fn find(
        &self,
        id: &str,
        now: Timestamp,
        is_it: impl Fn(&StoredToken) -> bool,
    ) -> Option<Holder> {
        self.with(|tokens| {
            let token = tokens.iter().find(|token| token.id == id)?;
            let holds = token.expires_at.is_none_or(|end| end > now);
            (holds && is_it(token)).then(|| Holder {
                id: token.id.clone(),
                name: token.name.clone(),
                may_write: token.may_write,
            })
        })
    }

    fn with<T>(&self, ask: impl FnOnce(&[StoredToken]) -> T) -> T {
        ask(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }
}

const PREFIX: &str = "courser_";
/// The letters of the part that names a token.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// How long that part is.
pub(super) const ID: usize = 8;
/// Random bytes of the secret part.
const SECRET: usize = 32;
