//! Which addresses a crawl may connect to. A page or a redirect can name any host, and a name can stand for any
//! address: without a guard, a server could have the crawler ask the network that it runs in.
//!
//! Addresses of the public internet are free; of all others, only those that the given hosts have: the starts', which
//! somebody chose, and the proxies'. What is judged is the address that is connected to, in each form that IPv6 has for
//! it ([`AddressPolicy::deny_private`]); connections that are used again were judged when they were opened.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use courser::{AddressPolicy, Answer, Reply, Resolver};
use url::Host;

/// Lets a crawl connect to public addresses and to those of the given hosts.
///
/// Its two halves belong to one client: the [`policy`](Self::policy) judges, and the [`resolver`](Self::resolver) tells
/// it what addresses the given names have.
#[derive(Clone, Debug)]
pub struct Guard {
    given: Arc<Mutex<Given>>,
}

/// The given hosts.
#[derive(Debug, Default)]
struct Given {
    names: HashMap<String, Network>,
    /// Addresses that are not public and may be connected to all the same: those that are given themselves, and those
    /// that were learnt, while there are not [`MOST_ADDRESSES`].
    private: HashSet<IpAddr>,
}

/// Where a name belongs, by the first answer for it. A name of the public internet that turns to a private address
/// later is a trick (DNS rebinding); one of our own network may move there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Network {
    Unknown,
    Public,
    Private,
}

impl Guard {
    /// For a crawl that is told to go to these hosts.
    pub fn new<'h>(hosts: impl IntoIterator<Item = Host<&'h str>>) -> Self {
        let mut given = Given::default();
        for host in hosts {
            given.add(host);
        }
        Self {
            given: Arc::new(Mutex::new(given)),
        }
    }

    /// Refuses what is neither public nor an address of a given host.
    pub fn policy(&self) -> AddressPolicy {
        let given = Arc::clone(&self.given);
        let public = AddressPolicy::deny_private();
        AddressPolicy::allow_all().hook(Arc::new(move |ip| {
            public.allows(ip) || lock(&given).private.contains(&ip)
        }))
    }

    /// Asks `inner`, and learns from its answers what addresses the given names have.
    pub fn resolver<R: Resolver>(&self, inner: R) -> impl Resolver + use<R> {
        Learning {
            inner,
            given: Arc::clone(&self.given),
        }
    }
}

impl Given {
    fn add(&mut self, host: Host<&str>) {
        match host {
            Host::Ipv4(ip) => self.private.extend([IpAddr::from(ip)]),
            Host::Ipv6(ip) => self.private.extend([IpAddr::from(ip)]),
            // What the client makes of it without asking anybody (RFC 6761 §6.3).
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
            // Public as soon as any address is, so that a private one beside it is not trusted.
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

struct Learning<R> {
    inner: R,
    given: Arc<Mutex<Given>>,
}

impl<R: Resolver> Resolver for Learning<R> {
    fn lookup(&mut self, name: &str, reply: Reply) {
        let key = canonical(name);
        if !lock(&self.given).names.contains_key(&key) {
            return self.inner.lookup(name, reply);
        }
        let given = Arc::clone(&self.given);
        let learning = Reply::new(move |answer| {
            // Before anybody can connect to what it says.
            lock(&given).learn(&key, &answer);
            reply.answer(answer);
        });
        self.inner.lookup(name, learning);
    }
}

/// No lock is held where anything could panic but for want of memory; the sets are whole at any time.
fn lock(given: &Mutex<Given>) -> MutexGuard<'_, Given> {
    given.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lower case, without the dot of the root.
fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_localhost(name: &str) -> bool {
    let name = canonical(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Private addresses after which none are learnt any more: more than any given names have.
const MOST_ADDRESSES: usize = 4096;

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind as IoKind, Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use courser::{Client, Config, DnsError, ErrorKind, Phase, Redirects, Response};
    use url::Url;

    use super::*;

    /// Answers one name after the other from a script, on the asking thread.
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

    fn scripted(names: &[(&'static str, &[&'static str])]) -> Scripted {
        Scripted(
            names
                .iter()
                .map(|(name, ips)| (*name, ips.to_vec()))
                .collect(),
        )
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
            ("64:ff9b::a00:2", false),
            ("2002:a00:2::1", false),
            ("169.254.169.254", false),
            ("fd00:ec2::254", false),
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

    /// What a resolver that is asked so often for a name lets through.
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
        // A host that is no start.
        assert!(!asked(2, start, "other.test", intranet, "10.0.0.1"));
        // Rebinding, at once or later.
        let rebound = &["93.184.215.14", "10.0.0.1"][..];
        assert!(!asked(2, start, "start.test", rebound, "10.0.0.1"));
        let mixed = &["93.184.215.14 10.0.0.1"][..];
        assert!(!asked(1, start, "start.test", mixed, "10.0.0.1"));
    }

    /// A server at that address, which sends everybody elsewhere, and counts them.
    fn redirecting(ip: &str, to: &str) -> (u16, TcpListener) {
        let listener = TcpListener::bind((ip, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let reply = format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let accepting = listener.try_clone().expect("a handle");
        thread::spawn(move || {
            while let Ok((mut peer, _)) = accepting.accept() {
                let _ = peer.read(&mut [0; 4096]);
                let _ = peer.write_all(reply.as_bytes());
            }
        });
        (port, listener)
    }

    #[test]
    fn nothing_private_is_dialled_but_the_start() {
        let inner = TcpListener::bind("127.0.0.2:0").expect("a free port");
        inner.set_nonblocking(true).expect("an option");
        let port = inner.local_addr().expect("an address").port();
        for (host, denied) in [
            ("inner.test", "127.0.0.2"),
            ("127.0.0.2", "127.0.0.2"),
            ("0x7f.2", "127.0.0.2"),
            ("2130706434", "127.0.0.2"),
            ("[::ffff:127.0.0.2]", "::ffff:127.0.0.2"),
        ] {
            let (at, _server) = redirecting("127.0.0.1", &format!("http://{host}:{port}/"));
            let start = format!("http://start.test:{at}/");
            let guard = guard(&[&start]);
            let mut config = Config {
                addresses: guard.policy(),
                redirects: Redirects::limit(5),
                ..Config::default()
            };
            config.dns.min_ttl = Duration::ZERO;
            let names = scripted(&[
                ("start.test", &["127.0.0.1"]),
                ("inner.test", &["127.0.0.2"]),
            ]);
            let mut client =
                Client::with_resolver(config, guard.resolver(names)).expect("a client");
            let mut response = Response::new();
            let error = client.get(&start, &mut response).expect_err("refused");
            match error.kind() {
                ErrorKind::Denied(ip) => assert_eq!(ip.to_string(), denied, "{host}"),
                _ => panic!("{host}: {error:?}"),
            }
            assert_eq!(error.phase(), Phase::Connect, "{host}");
            let nobody = inner.accept().expect_err("nobody came");
            assert_eq!(nobody.kind(), IoKind::WouldBlock);
        }
    }
}
