//! Which addresses a crawl may connect to. A page or a redirect can name any host, and a name can resolve to any
//! address: without this guard, a server could direct the crawler to the private network that it runs in.
//!
//! Public addresses are allowed. Other addresses are allowed only if they belong to the given hosts: the starts. The
//! address of each new connection is checked, in every form that IPv6 has for it ([`AddressPolicy::deny_private`]). A
//! reused connection was checked when it was opened.
//!
//! A proxy may have any address; the rules hold for the addresses that it is asked for. Names that an HTTP or SOCKS5h
//! proxy looks up cannot be checked.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use courser::{AddressPolicy, Answer, Reply, Resolver};
use url::Host;

/// Allows connections to public addresses and to the addresses of the given hosts.
///
/// Both halves belong to the same client: the [`policy`](Self::policy) checks addresses, and the
/// [`resolver`](Self::resolver) records the addresses of the given names.
#[derive(Clone, Debug)]
pub struct Guard {
    given: Arc<Mutex<GivenHosts>>,
}

/// The given hosts.
#[derive(Debug, Default)]
struct GivenHosts {
    names: HashMap<String, Network>,
    /// Private addresses that are allowed: those given as literals, and those learnt from lookups. At most
    /// [`MOST_ADDRESSES`] are learnt.
    private: HashSet<IpAddr>,
}

/// The network of a name, by its first lookup. A public name that resolves to a private address later is an attack (DNS
/// rebinding); a private name may move within the private network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Network {
    Unknown,
    Public,
    Private,
}

impl Guard {
    /// A guard for a crawl that was given these hosts.
    pub fn new<'h>(hosts: impl IntoIterator<Item = Host<&'h str>>) -> Self {
        let mut given = GivenHosts::default();
        for host in hosts {
            given.add(host);
        }
        Self {
            given: Arc::new(Mutex::new(given)),
        }
    }

    /// Denies private addresses that belong to no given host.
    pub fn policy(&self) -> AddressPolicy {
        let given = Arc::clone(&self.given);
        let public = AddressPolicy::deny_private();
        AddressPolicy::allow_all().hook(Arc::new(move |ip| {
            public.allows(ip) || lock(&given).private.contains(&ip)
        }))
    }

    /// Looks up names with `inner` and records the addresses of the given names.
    pub fn resolver<R: Resolver>(&self, inner: R) -> impl Resolver + use<R> {
        LearningResolver {
            inner,
            given: Arc::clone(&self.given),
        }
    }
}

impl GivenHosts {
    fn add(&mut self, host: Host<&str>) {
        match host {
            Host::Ipv4(ip) => self.private.extend([IpAddr::from(ip)]),
            Host::Ipv6(ip) => self.private.extend([IpAddr::from(ip)]),
            // The client resolves these names itself (RFC 6761 §6.3).
            Host::Domain(name) if is_localhost(name) => {
                let ips: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                self.private.extend(ips);
            }
            Host::Domain(name) => {
                self.names.insert(canonical(name), Network::Unknown);
            }
        }
    }

    fn grant(&mut self, ips: impl IntoIterator<Item = IpAddr>) {
        let room = MOST_ADDRESSES.saturating_sub(self.private.len());
        self.private.extend(ips.into_iter().take(room));
    }

    fn learn(&mut self, name: &str, answer: &Answer) {
        let (Some(network), Ok(ips)) = (self.names.get_mut(name), &answer.addresses) else {
            return;
        };
        let public = AddressPolicy::deny_private();
        let (public, private): (Vec<IpAddr>, Vec<IpAddr>) =
            ips.iter().partition(|ip| public.allows(**ip));
        if *network == Network::Unknown && !ips.is_empty() {
            // One public address makes the name public, so that a private address beside it is denied.
            *network = if public.is_empty() {
                Network::Private
            } else {
                Network::Public
            };
        }
        if *network == Network::Private {
            self.grant(private);
        }
    }
}

struct LearningResolver<R> {
    inner: R,
    given: Arc<Mutex<GivenHosts>>,
}

impl<R: Resolver> Resolver for LearningResolver<R> {
    fn lookup(&mut self, name: &str, reply: Reply) {
        let key = canonical(name);
        if !lock(&self.given).names.contains_key(&key) {
            return self.inner.lookup(name, reply);
        }
        let given = Arc::clone(&self.given);
        let learning = Reply::new(move |answer| {
            // Recorded before the client receives the addresses and can connect.
            lock(&given).learn(&key, &answer);
            reply.answer(answer);
        });
        self.inner.lookup(name, learning);
    }

    fn cancel(&mut self, name: &str) {
        self.inner.cancel(name);
    }
}

/// The data is valid after every statement, so it stays valid if another thread panics with the lock held.
fn lock(given: &Mutex<GivenHosts>) -> MutexGuard<'_, GivenHosts> {
    given.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In lower case, without the final dot.
fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_localhost(name: &str) -> bool {
    let name = canonical(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// The largest number of private addresses; more than any set of given names has.
const MOST_ADDRESSES: usize = 4096;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use courser::error::DnsError;
    use url::Url;

    use super::*;

    /// Answers lookups of each name from a script, one answer after the other, on the calling thread.
    struct Scripted(HashMap<&'static str, Vec<&'static str>>);

    impl Resolver for Scripted {
        fn lookup(&mut self, name: &str, reply: Reply) {
            let answers = self.0.get_mut(name.trim_end_matches('.'));
            let answer = answers
                .filter(|left| !left.is_empty())
                .map(|left| left.remove(0));
            reply.answer(match answer {
                Some(ips) => {
                    let ips = ips.split(' ').map(|ip| ip.parse().expect("an address"));
                    Answer::found(ips, Duration::ZERO)
                }
                None => Answer::failed(DnsError::NotFound),
            });
        }
    }

    fn guard(starts: &[&str]) -> Guard {
        let urls: Vec<Url> = starts
            .iter()
            .map(|url| url.parse().expect("a URL"))
            .collect();
        Guard::new(urls.iter().filter_map(Url::host))
    }

    fn allows(guard: &Guard, ip: &str) -> bool {
        guard.policy().allows(ip.parse().expect("an address"))
    }

    #[test]
    fn addresses_that_were_given_are_free_and_no_other_private_ones() {
        let of_v4 = guard(&["http://0x7f.1/", "http://10.1:8080/pub/"]);
        for (ip, free) in [
            ("127.0.0.1", true),
            ("10.0.0.1", true),
            ("127.0.0.2", false),
            ("10.0.0.2", false),
            ("::1", false),
            ("::ffff:10.0.0.2", false),
            ("169.254.169.254", false),
            ("93.184.215.14", true),
            ("2606:2800:21f::1", true),
        ] {
            assert_eq!(allows(&of_v4, ip), free, "{ip}");
        }
        for start in [
            "http://localhost/",
            "http://a.LocalHost.:80/",
            "http://[::1]/",
        ] {
            assert!(allows(&guard(&[start]), "::1"), "{start}");
            assert!(!allows(&guard(&[start]), "::2"), "{start}");
        }
    }

    #[test]
    fn any_number_of_addresses_can_be_given() {
        let starts: Vec<String> = (0..=MOST_ADDRESSES)
            .map(|i| format!("http://10.0.{}.{}/", i / 256, i % 256))
            .collect();
        let starts: Vec<&str> = starts.iter().map(String::as_str).collect();
        let guard = guard(&starts);
        assert!(allows(&guard, "10.0.0.0") && allows(&guard, "10.0.16.0"));
        assert!(!allows(&guard, "10.0.16.1"));
    }

    /// Whether the guard allows an address after this number of lookups.
    fn asked(
        times: usize,
        starts: &[&str],
        name: &str,
        answers: &[&'static str],
        ip: &str,
    ) -> bool {
        let guard = guard(starts);
        let names = HashMap::from([
            ("start.test", answers.to_vec()),
            ("other.test", answers.to_vec()),
        ]);
        let mut resolver = guard.resolver(Scripted(names));
        for _ in 0..times {
            resolver.lookup(name, Reply::new(drop));
        }
        allows(&guard, ip)
    }

    #[test]
    fn the_first_answer_tells_where_a_start_belongs() {
        let start = &["http://Start.test/"][..];
        let intranet = &["10.0.0.1 fd00::1", "10.0.0.2"][..];
        assert!(!asked(0, start, "start.test", intranet, "10.0.0.1"));
        assert!(asked(1, start, "start.test", intranet, "10.0.0.1"));
        assert!(asked(1, start, "start.test.", intranet, "fd00::1"));
        assert!(!asked(1, start, "start.test", intranet, "10.0.0.2"));
        assert!(asked(2, start, "start.test", intranet, "10.0.0.2"));
        // A host that was not given.
        assert!(!asked(2, start, "other.test", intranet, "10.0.0.1"));
        // DNS rebinding, immediately or later.
        let rebound = &["93.184.215.14", "10.0.0.1"][..];
        assert!(!asked(2, start, "start.test", rebound, "10.0.0.1"));
        let mixed = &["93.184.215.14 10.0.0.1"][..];
        assert!(!asked(1, start, "start.test", mixed, "10.0.0.1"));
    }
}
