//! The cache of names: which addresses are known, for how long, and when a lookup is needed. Pure: answers and the time
//! are arguments.
//!
//! At any time a name is in one of four states: *fresh* (addresses are served), *stale* (addresses are served while one
//! lookup refreshes them, and longer while the name servers fail, RFC 8767), *failed* (the failure is served, RFC
//! 2308), or *pending* (all callers wait for the one lookup in flight).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::later;
use crate::address::Answer;
use crate::error::DnsError;
use crate::time::Time;

/// How names are cached.
///
/// ```
/// use std::time::Duration;
/// use courser::DnsConfig;
///
/// let mut config = DnsConfig { max_ttl: Duration::from_secs(300), ..DnsConfig::default() };
/// config.resolve("example.com", Some(443), ["127.0.0.1".parse().unwrap()]);
/// ```
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// The shortest time for which addresses are used, whatever their time to live. Default 1 s.
    pub min_ttl: Duration,
    /// The longest time for which addresses are used. Default 1 h.
    pub max_ttl: Duration,
    /// The time to live of addresses from a resolver that reports none, like [`SystemResolver`](crate::SystemResolver).
    /// Default 60 s.
    pub default_ttl: Duration,
    /// How long a failure is kept that has no time to live: the servers failed or were silent, or an answer without an
    /// address does not say how long it holds (RFC 9520 §3.2). A resolver that was too busy to ask, or had no
    /// descriptor, is not such a failure. Default 5 s.
    pub negative_ttl: Duration,
    /// The longest time for which a failure is kept; "no such host" has a time to live (RFC 2308 §5). Default 60 s.
    pub max_negative_ttl: Duration,
    /// How long expired addresses are still served while one lookup refreshes them. Default 30 s.
    pub stale_while_refresh: Duration,
    /// How long expired addresses are still served after a failed lookup, except after "no such host" and "no address"
    /// (RFC 8767). Default 1 h.
    pub stale_if_error: Duration,
    /// How many names are kept; the least recently used is dropped first. Names in lookup are not counted. Default
    /// 16,384.
    pub max_entries: NonZeroUsize,
    /// How many addresses of a name are used (the first ones). Default 64.
    pub max_addresses: NonZeroUsize,
    /// Names with fixed addresses, which are not looked up: see [`resolve`](Self::resolve).
    pub overrides: Vec<Override>,
    /// Use addresses of this family only. Default: both.
    pub family: Option<Family>,
}

/// A family of addresses.
///
/// ```
/// use courser::policy::Family;
/// use courser::DnsConfig;
///
/// let config = DnsConfig { family: Some(Family::V4), ..DnsConfig::default() };
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Whether an address belongs to the family.
    pub fn has(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == (self == Self::V4)
    }
}

/// Fixed addresses for a name, like curl's `--resolve`.
///
/// ```
/// use courser::policy::Override;
///
/// let all_ports = Override { host: "Example.com".into(), port: None, addresses: vec!["::1".parse().unwrap()] };
/// let every_host = Override { host: "*".into(), port: Some(443), addresses: vec!["::1".parse().unwrap()] };
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Override {
    /// The name, in any case, with or without a dot at its end; `*` stands for every name.
    pub host: String,
    /// The port; `None` stands for every port.
    pub port: Option<u16>,
    /// The addresses; an empty list means that the name has no address.
    pub addresses: Vec<IpAddr>,
}

impl Default for DnsConfig {
    fn default() -> Self {
        Self {
            min_ttl: Duration::from_secs(1),
            max_ttl: Duration::from_secs(3600),
            default_ttl: Duration::from_secs(60),
            negative_ttl: Duration::from_secs(5),
            max_negative_ttl: Duration::from_secs(60),
            stale_while_refresh: Duration::from_secs(30),
            stale_if_error: Duration::from_secs(3600),
            max_entries: NonZeroUsize::new(16_384).unwrap_or(NonZeroUsize::MIN),
            max_addresses: NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN),
            overrides: Vec::new(),
            family: None,
        }
    }
}

impl DnsConfig {
    /// Gives `host` fixed addresses, on one port or on all. A later entry takes precedence over an earlier one, a name
    /// over `*`, and a port over all ports.
    pub fn resolve(
        &mut self,
        host: impl Into<String>,
        port: Option<u16>,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> &mut Self {
        self.overrides.push(Override {
            host: host.into(),
            port,
            addresses: addresses.into_iter().collect(),
        });
        self
    }

    /// Whether an address is of the right family.
    fn uses(&self, ip: IpAddr) -> bool {
        self.family.is_none_or(|family| family.has(ip))
    }
}

/// Counters of the cache of names.
///
/// ```
/// let counters = courser::policy::DnsCounters::default();
/// assert_eq!(counters.hits + counters.misses, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct DnsCounters {
    /// Lookups that were answered from fresh addresses.
    pub hits: u64,
    /// Lookups that found nothing in the cache and asked the resolver.
    pub misses: u64,
    /// Lookups that joined a question in flight.
    pub joined: u64,
    /// Lookups that were answered from stale addresses.
    pub stale: u64,
    /// Lookups that were answered from a cached failure.
    pub negative_hits: u64,
    /// Questions to the resolver, also those that refresh addresses.
    pub asked: u64,
    /// Questions that were answered with a failure.
    pub failed: u64,
    /// Questions that were cancelled because no call waited for the answer any more.
    pub cancelled: u64,
    /// Names that were dropped to make room for others.
    pub evicted: u64,
    /// Questions in flight.
    pub in_flight: usize,
    /// Names in the cache: with addresses, failed, in lookup or with a cancelled lookup.
    pub entries: usize,
}

/// The addresses of a name, at least one, or why there is none.
pub(crate) type Found = Result<Arc<[IpAddr]>, DnsError>;

/// The cache.
#[derive(Debug)]
pub(crate) struct NameCache {
    config: DnsConfig,
    /// By name in lower case. A name with a dot at its end is another name, since the search list does not apply to it.
    /// Boxed, because a table with many insertions and removals has more than twice the room that it needs.
    entries: HashMap<Arc<str>, Box<Entry>>,
    /// Names without a question in flight, by the number of their last use. Invariant: exactly the `entries` with
    /// `asking` empty, under their `used`.
    idle: BTreeMap<u64, Arc<str>>,
    /// The number of the last use, and of the last question, which is a use.
    uses: u64,
    counters: DnsCounters,
}

#[derive(Debug, Default)]
struct Entry {
    known: Option<Known>,
    /// The last failure, until the next answer. Invariant: together with `known`, it is a failure of the servers, not
    /// of the name.
    failed: Option<Failed>,
    /// The number of the question in flight.
    asking: Option<u64>,
    used: u64,
}

/// A question to the resolver.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Question {
    pub(crate) name: Arc<str>,
    /// Tells this question from earlier ones about the name, which were cancelled.
    pub(crate) number: u64,
}

#[derive(Debug)]
struct Known {
    addresses: Arc<[IpAddr]>,
    fresh_until: Time,
}

#[derive(Debug)]
struct Failed {
    error: DnsError,
    until: Time,
}

impl NameCache {
    pub(crate) fn new(config: DnsConfig) -> Self {
        Self {
            config,
            entries: HashMap::new(),
            idle: BTreeMap::new(),
            uses: 0,
            counters: DnsCounters::default(),
        }
    }

    /// What is known without a question: overrides, IP addresses, `localhost`, and names that are not valid.
    pub(crate) fn fixed(&self, host: &str, port: u16) -> Option<Found> {
        let overridden = self.overridden(host, port).map(Into::into);
        let Some(addresses) = overridden.or_else(|| literal(host)) else {
            return (!is_name(host)).then_some(Err(DnsError::InvalidName));
        };
        let usable = addresses.iter().filter(|ip| self.config.uses(**ip));
        let usable: Arc<[IpAddr]> = usable.copied().collect();
        Some(match usable.is_empty() {
            true => Err(DnsError::NoAddresses),
            false => Ok(usable),
        })
    }

    fn overridden(&self, host: &str, port: u16) -> Option<&[IpAddr]> {
        let host = without_last_dot(host);
        let rank = |entry: &Override| {
            let named = without_last_dot(&entry.host).eq_ignore_ascii_case(host);
            let fits = (named || entry.host == "*") && entry.port.is_none_or(|p| p == port);
            fits.then_some((named, entry.port.is_some()))
        };
        // `max_by_key` returns the last of equal elements.
        let best = self.config.overrides.iter().max_by_key(|&e| rank(e))?;
        rank(best).map(|_| best.addresses.as_slice())
    }

    /// What is known about `name`. With it, the question that the caller must ask the resolver now; its answer goes to
    /// [`handle_answer`](Self::handle_answer).
    pub(crate) fn lookup(&mut self, now: Time, name: &str) -> (Option<Found>, Option<Question>) {
        let key = self.key(name);
        let config = &self.config;
        let entry = self.entries.entry(key.clone()).or_default();
        let remembered = entry.failed.as_ref().filter(|failed| now < failed.until);
        let stale_for = match (&entry.failed, remembered) {
            (_, Some(_)) => config.stale_if_error,
            // After a failure, no call waits for the next question while old addresses may be used.
            (Some(_), None) => config.stale_if_error.max(config.stale_while_refresh),
            (None, None) => config.stale_while_refresh,
        };
        let usable = |for_longer| {
            let known = entry.known.as_ref()?;
            let is_usable = now < later(known.fresh_until, for_longer);
            is_usable.then(|| known.addresses.clone())
        };
        let counters = &mut self.counters;
        let (found, counter, ask) = match (usable(Duration::ZERO), usable(stale_for), remembered) {
            (Some(fresh), _, _) => (Some(Ok(fresh)), &mut counters.hits, false),
            // If the name servers failed recently, they are not asked for some time.
            (_, Some(stale), None) => (Some(Ok(stale)), &mut counters.stale, true),
            (_, Some(stale), Some(_)) => (Some(Ok(stale)), &mut counters.stale, false),
            (_, _, Some(failed)) => {
                let found = Some(Err(failed.error.clone()));
                (found, &mut counters.negative_hits, false)
            }
            _ if entry.asking.is_none() => (None, &mut counters.misses, true),
            _ => (None, &mut counters.joined, false),
        };
        *counter += 1;
        let ask = ask && entry.asking.is_none();
        let question = self.touch(&key, ask);
        self.make_room();
        let question = question.map(|number| Question { name: key, number });
        (found, question)
    }

    /// Takes the resolver's answer. Returns the result for the calls that wait for the name: addresses (old ones if the
    /// servers fail), or the failure. `None`: the question was cancelled, and the answer is of no use.
    pub(crate) fn handle_answer(
        &mut self,
        now: Time,
        question: &Question,
        answer: Answer,
    ) -> Option<Found> {
        let key = self.key(&question.name);
        let config = &self.config;
        let entry = self.entries.get_mut(&key)?;
        let is_current = entry.asking == Some(question.number);
        let is_fresh = |known: &Known| now < known.fresh_until;
        if !is_current && (answer.addresses.is_err() || entry.known.as_ref().is_some_and(is_fresh))
        {
            return None;
        }
        let outcome = answer.addresses.and_then(|mut addresses| {
            let mut seen = HashSet::new();
            addresses.retain(|ip| config.uses(*ip) && seen.insert(*ip));
            addresses.truncate(config.max_addresses.get());
            match addresses.is_empty() {
                true => Err(DnsError::NoAddresses),
                false => Ok(addresses),
            }
        });
        let found = match outcome {
            Ok(addresses) => {
                let ttl = answer.ttl.unwrap_or(config.default_ttl);
                let addresses: Arc<[IpAddr]> = addresses.into();
                entry.failed = None;
                entry.known = Some(Known {
                    addresses: addresses.clone(),
                    // Not `clamp`, which panics if the bounds are reversed.
                    fresh_until: later(now, ttl.min(config.max_ttl).max(config.min_ttl)),
                });
                Ok(addresses)
            }
            Err(error) => {
                self.counters.failed += 1;
                let ttl = answer.ttl.unwrap_or(config.negative_ttl);
                let until = later(now, ttl.min(config.max_negative_ttl));
                if !error.is_overload() {
                    let error = error.clone();
                    entry.failed = Some(Failed { error, until });
                }
                // If the name does not exist any more, its addresses are dropped; they stay only if the servers fail.
                let bound = config.stale_if_error;
                let usable = |k: &Known| !error.is_negative() && now < later(k.fresh_until, bound);
                entry.known = entry.known.take().filter(usable);
                match &entry.known {
                    Some(known) => Ok(known.addresses.clone()),
                    None => Err(error),
                }
            }
        };
        if is_current {
            self.end_question(&key);
        }
        Some(found)
    }

    /// No call waits for the answer to the question in flight. Returns whether there is a question; its answer may
    /// still come.
    pub(crate) fn cancel(&mut self, name: &str) -> bool {
        let key = self.key(name);
        let ended = self.end_question(&key);
        self.counters.cancelled += u64::from(ended);
        ended
    }

    fn end_question(&mut self, key: &Arc<str>) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        if entry.asking.take().is_none() {
            return false;
        }
        self.idle.insert(entry.used, key.clone());
        self.make_room();
        true
    }

    /// Removes what is known about `name`. A question in flight continues.
    pub(crate) fn flush(&mut self, name: &str) {
        let key = self.key(name);
        match self.entries.get_mut(&key) {
            Some(entry) if entry.asking.is_some() => entry.forget(),
            Some(entry) => {
                self.idle.remove(&entry.used);
                self.entries.remove(&key);
            }
            None => {}
        }
    }

    /// Removes what is known about all names. Questions in flight continue.
    pub(crate) fn flush_all(&mut self) {
        self.idle.clear();
        self.entries.retain(|_, entry| entry.asking.is_some());
        self.entries.values_mut().for_each(|entry| entry.forget());
    }

    pub(crate) fn counters(&self) -> DnsCounters {
        DnsCounters {
            in_flight: self.entries.len() - self.idle.len(),
            entries: self.entries.len(),
            ..self.counters
        }
    }

    /// The key of a name, shared with its entry if there is one.
    fn key(&self, name: &str) -> Arc<str> {
        let lower = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => name.to_ascii_lowercase().into(),
            false => std::borrow::Cow::Borrowed(name),
        };
        match self.entries.get_key_value(&*lower) {
            Some((key, _)) => key.clone(),
            None => lower.into(),
        }
    }

    /// Records a use of the name, and the start of a question if `ask`. Returns the number of this question.
    fn touch(&mut self, key: &Arc<str>, ask: bool) -> Option<u64> {
        let entry = self.entries.get_mut(key)?;
        self.idle.remove(&entry.used);
        self.uses += 1;
        entry.used = self.uses;
        if ask {
            entry.asking = Some(self.uses);
            self.counters.asked += 1;
        }
        if entry.asking.is_none() {
            self.idle.insert(entry.used, key.clone());
        }
        entry.asking.filter(|_| ask)
    }

    fn make_room(&mut self) {
        while self.idle.len() > self.config.max_entries.get() {
            let Some((_, oldest)) = self.idle.pop_first() else {
                return;
            };
            self.entries.remove(&oldest);
            self.counters.evicted += 1;
        }
    }
}

impl Entry {
    fn forget(&mut self) {
        self.known = None;
        self.failed = None;
    }
}

/// The addresses that the host itself gives: an IP address, or `localhost` and the names below it (RFC 6761 §6.3).
pub(crate) fn literal(host: &str) -> Option<Arc<[IpAddr]>> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .map_or_else(|| host.parse().ok(), |v6| v6.parse().ok().map(IpAddr::V6));
    if let Some(ip) = bare {
        return Some([ip].into());
    }
    let name = without_last_dot(host);
    let last_label = name.rsplit('.').next().unwrap_or(name);
    if !last_label.eq_ignore_ascii_case("localhost") || !is_name(name) {
        return None;
    }
    Some([Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()].into())
}

/// Whether the name is valid in DNS: labels of 1 to 63 letters, digits, `-` and `_`, 253 bytes in all (RFC 1035
/// §2.3.4). Names in other scripts come in the `xn--` form (RFC 5890).
fn is_name(host: &str) -> bool {
    let name = without_last_dot(host);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn without_last_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

#[cfg(test)]
mod tests;
