//! Which hosts a store is for, when one database is not enough.

use std::fmt;
use std::str::FromStr;

/// A share of all hosts: those of one database out of several. A store takes the URLs of these hosts alone.
///
/// The shard of a host depends on its name alone, not on scheme and port: the 64-bit FNV-1a hash of the name, modulo the
/// number of shards. So each of `n` shards `k/n` is the union of `k/2n` and `(k+n)/2n`.
///
/// ```
/// use crawler_cli::store::Shard;
///
/// let shard: Shard = "3/3".parse()?;
/// assert!(shard.has("https://example.com:8443/a"));
/// assert!(Shard::ALL.has("https://example.com/"));
/// assert!(!"1/3".parse::<Shard>()?.has("http://example.com/"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    /// From 1.
    number: u32,
    count: u32,
}

impl Shard {
    /// All hosts.
    pub const ALL: Self = Self {
        number: 1,
        count: 1,
    };

    /// Shard `number`, from 1, of `count`; `None` if there is no such shard.
    pub fn new(number: u32, count: u32) -> Option<Self> {
        (1..=count)
            .contains(&number)
            .then_some(Self { number, count })
    }

    /// Its number, from 1, and how many there are.
    pub fn parts(self) -> (u32, u32) {
        (self.number, self.count)
    }

    /// Whether the host of this URL is in the shard. The URL is as [`NewUrl`](super::NewUrl) spells it.
    pub fn has(self, url: &str) -> bool {
        self.count == 1 || hash(host(url)) % u64::from(self.count) == u64::from(self.number - 1)
    }

    /// Whether all hosts of this shard are in the other one.
    pub fn is_within(self, other: Self) -> bool {
        self.count.is_multiple_of(other.count)
            && (self.number - 1) % other.count == other.number - 1
    }
}

/// The name or the address of the host, without a port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rfind(':') {
        Some(colon) if !authority.ends_with(']') => &authority[..colon],
        _ => authority,
    }
}

/// FNV-1a. What is stored depends on it: it never changes.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl FromStr for Shard {
    type Err = String;

    /// `3/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let part = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| is_plain)
        };
        let shard = text.split_once('/').and_then(|(number, count)| {
            let (number, count) = (part(number)?, part(count)?);
            Self::new(number, count)
        });
        shard.ok_or_else(|| format!("{text:?} is no share"))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}
