//! Calls spread over several addresses: which address gets a call, and where calls go when an address fails.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::error::DnsError;
use courser::net::sim::{Link, Peer, Probability, ScriptedAnswer, SimNet, SimServer};
use courser::net::{Address, Net as _};
use courser::policy::{BalanceConfig, BreakerConfig, RetryOn, RetryRule, RetryVia, Statuses};
use courser::{
    Answer, Backoff, Call, ErrorKind, HostClient, HostConfig, Observer, ObserverEvent, Request,
    Response, Retry, Upstream,
};

use super::{MS, rest, silent};

const SECOND: Duration = Duration::from_secs(1);

/// What a backend does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BackendAction {
    Answer,
    After(Duration),
    Status(u16),
    Reset,
}

/// A server whose behaviour can be changed, and that counts its requests.
#[derive(Clone)]
struct Backend(Arc<Mutex<(BackendAction, usize)>>);

impl Backend {
    fn set(&self, does: BackendAction) {
        self.0.lock().unwrap().0 = does;
    }

    /// Requests since the last call of this method.
    fn requests(&self) -> usize {
        std::mem::take(&mut self.0.lock().unwrap().1)
    }
}

impl SimServer for Backend {
    fn on_data(&mut self, peer: &mut Peer<'_>, _: &[u8]) {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        let mut answer = |status| {
            peer.send(format!(
                "HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nhi"
            ));
        };
        match state.0 {
            BackendAction::Answer => answer(200),
            BackendAction::Status(status) => answer(status),
            BackendAction::After(time) => {
                peer.wait(time);
                peer.send("HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nhi");
            }
            BackendAction::Reset => peer.reset(),
        }
    }
}

struct World {
    net: SimNet,
    backends: Vec<Backend>,
    events: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new(count: u8) -> Self {
        let world = Self {
            net: SimNet::new(1),
            backends: (0..count)
                .map(|_| Backend(Arc::new(Mutex::new((BackendAction::Answer, 0)))))
                .collect(),
            events: Arc::default(),
        };
        for at in 0..count {
            world.set_link(at, Link::default());
        }
        world
    }

    fn address(at: u8) -> std::net::SocketAddr {
        ([10, 0, 0, at], 80).into()
    }

    /// Sets what becomes of new connections to an address.
    fn set_link(&self, at: u8, link: Link) {
        let backend = self.backends[usize::from(at)].clone();
        self.net
            .listen(Address::Tcp(Self::address(at)), link, backend);
    }

    /// Removes the server of an address and breaks its connections.
    fn kill(&self, at: u8) {
        self.backends[usize::from(at)].set(BackendAction::Reset);
        self.set_link(at, refused());
    }

    fn revive(&self, at: u8) {
        self.backends[usize::from(at)].set(BackendAction::Answer);
        self.set_link(at, Link::default());
    }

    fn upstream(&self) -> Upstream {
        Upstream::tcp((0..self.backends.len() as u8).map(Self::address))
    }

    fn client(&self, balance: BalanceConfig, config: HostConfig) -> HostClient<SimNet> {
        let events = Arc::clone(&self.events);
        let config = HostConfig {
            balance: Some(balance),
            random_start: false,
            observer: Some(Observer::new(move |event| {
                if let ObserverEvent::Ejected { remote, .. } = event {
                    events.lock().unwrap().push(format!("{remote} out"));
                }
            })),
            ..config
        };
        HostClient::with_net(self.upstream(), config, self.net.clone()).unwrap()
    }

    fn requests(&self) -> Vec<usize> {
        self.backends.iter().map(Backend::requests).collect()
    }

    fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

fn refused() -> Link {
    let mut link = Link::default();
    link.faults.refused = Probability::ALWAYS;
    link
}

fn get(client: &mut HostClient<SimNet>) -> u16 {
    let mut response = Response::new();
    client.get("/", &mut response).unwrap();
    response.status()
}

fn post() -> Request {
    Request::post("/", "x")
}

#[test]
fn unsent_calls_fail_over_at_once_with_any_method() {
    let world = World::new(3);
    world.kill(1);
    let mut client = world.client(BalanceConfig::default(), HostConfig::default());
    let began = world.net.now();
    let mut response = Response::new();
    for _ in 0..30 {
        assert_eq!(get(&mut client), 200);
        client.call(&mut post(), &mut response).unwrap();
    }
    assert_eq!(world.requests()[1], 0);
    // Five round trips for nothing, one for each call, and two connects.
    assert_eq!(world.net.now() - began, (5 + 60 + 2) * 2 * MS);
    assert_eq!(world.events(), ["10.0.0.1:80 out"]);
    let out: Vec<_> = client
        .addresses()
        .map(|a| a.ejected_until.is_some())
        .collect();
    assert_eq!(out, [false, true, false]);
    // After its time, the address gets its share again.
    world.revive(1);
    world.net.advance(11 * SECOND);
    let _ = world.requests();
    for _ in 0..30 {
        get(&mut client);
    }
    assert_eq!(world.requests(), [10; 3]);
}

#[test]
fn a_call_that_waits_for_an_unreachable_address_fails_over() {
    let world = World::new(2);
    world.set_link(0, silent());
    let mut client = world.client(BalanceConfig::default(), HostConfig::default());
    for _ in 0..20 {
        let report = client.call(&mut post(), &mut Response::new()).unwrap();
        let took = report.timings().total;
        assert!(took <= 254 * MS, "{took:?}");
    }
    assert_eq!(world.requests(), [0, 20]);
    assert_eq!(world.events(), ["10.0.0.0:80 out"]);
    // A call waits for the only address.
    let world = World::new(2);
    world.set_link(0, silent());
    world.set_link(1, silent());
    let mut client = world.client(BalanceConfig::default(), HostConfig::default());
    let began = world.net.now();
    client.get("/", &mut Response::new()).unwrap_err();
    assert!(world.net.now() - began > SECOND);
    client.close_idle();
    assert_eq!(client.in_flight(), 0);
}

#[test]
fn a_distant_address_is_reached_and_used_later() {
    let world = World::new(2);
    let far = Link {
        latency: 200 * MS..=200 * MS,
        ..Link::default()
    };
    world.set_link(0, far);
    let mut client = world.client(BalanceConfig::default(), HostConfig::default());
    for _ in 0..10 {
        get(&mut client);
    }
    let requests = world.requests();
    assert!(requests[0] >= 3, "{requests:?}");
}

#[test]
fn each_address_has_a_breaker() {
    let world = World::new(2);
    let config = HostConfig {
        breaker: Some(BreakerConfig {
            consecutive: NonZeroU32::new(3),
            ..BreakerConfig::default()
        }),
        ..HostConfig::default()
    };
    let balance = BalanceConfig {
        eject_after: None,
        ..BalanceConfig::default()
    };
    let mut client = world.client(balance, config);
    world.backends[0].set(BackendAction::Status(503));
    let statuses: Vec<_> = (0..20).map(|_| get(&mut client)).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 3);
    assert_eq!(world.requests(), [3, 17]);
    world.backends[1].set(BackendAction::Status(503));
    for _ in 0..3 {
        assert_eq!(get(&mut client), 503);
    }
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert_kind!(error, ErrorKind::BreakerOpen(until) if *until > world.net.now());
    assert_eq!(world.requests(), [0, 3]);
    assert!(client.addresses().all(|address| address.in_flight == 0));
    world.revive(0);
    world.net.advance(5 * SECOND);
    assert_eq!(get(&mut client), 200);
}

#[test]
fn a_rule_may_send_a_call_to_another_address_without_balance_too() {
    let world = World::new(2);
    let rule = RetryRule {
        backoff: Backoff::NONE,
        via: RetryVia::OtherAddress,
        ..RetryRule::new(RetryOn::Status(Statuses::none().and(503..=503)))
    };
    let config = HostConfig {
        retry: Retry {
            rules: vec![rule],
            ..Retry::default()
        },
        ..HostConfig::default()
    };
    for sick in 0..2 {
        world.backends[sick].set(BackendAction::Status(503));
        let net = world.net.clone();
        let mut client = HostClient::with_net(world.upstream(), config.clone(), net).unwrap();
        for _ in 0..6 {
            assert_eq!(get(&mut client), 200);
        }
        let requests = world.requests();
        assert!(requests[sick] <= 1, "{requests:?}");
        world.backends[sick].set(BackendAction::Answer);
    }
}

// ---- the addresses of a name

/// What the name resolves to: the last parts of addresses, or nothing if the lookup fails.
type Zone = Arc<Mutex<Vec<u8>>>;

const TTL: Duration = Duration::from_secs(5);

impl World {
    /// A client of `api.sim`, whose addresses are in the zone. Lookups take 3 ms.
    fn named_client(
        &self,
        zone: &[u8],
        balance: BalanceConfig,
        config: HostConfig,
    ) -> (HostClient<SimNet>, Zone) {
        let zone: Zone = Arc::new(Mutex::new(zone.to_vec()));
        let answers = Arc::clone(&zone);
        let resolver = self.net.resolver(move |_, name| {
            assert_eq!(name, "api.sim");
            let zone = answers.lock().unwrap();
            let ips = zone.iter().map(|at| World::address(*at).ip());
            let answer = match zone.is_empty() {
                false => Answer::found(ips, TTL),
                true => Answer::failed(DnsError::ServerFailure(2)),
            };
            ScriptedAnswer::After(3 * MS, answer)
        });
        let config = HostConfig {
            balance: Some(balance),
            random_start: false,
            ..config
        };
        let upstream = "http://api.sim".parse().unwrap();
        let client =
            HostClient::with_net_and_resolver(upstream, config, self.net.clone(), resolver);
        (client.unwrap(), zone)
    }
}

/// The last parts of the client's addresses, in order.
fn addresses(client: &HostClient<SimNet>) -> Vec<String> {
    let mut all: Vec<_> = client
        .addresses()
        .map(|state| state.remote.to_string())
        .collect();
    all.sort();
    all
}

#[test]
fn calls_of_a_vanished_address_end_as_usual_or_go_elsewhere() {
    let world = World::new(2);
    let config = HostConfig {
        max_connections: 3.try_into().unwrap(),
        ..HostConfig::default()
    };
    let (mut client, zone) = world.named_client(&[0], BalanceConfig::default(), config);
    assert_eq!(get(&mut client), 200);
    let submit = |client: &mut HostClient<SimNet>, tag: u64| {
        client.submit(Call::new(Request::get("/"), Response::new()).tag(tag));
    };
    // Three calls are in flight, and two wait for their connections.
    world.backends[0].set(BackendAction::After(20 * SECOND));
    (0..5).for_each(|tag| submit(&mut client, tag));
    assert!(client.wait(Some(SECOND)).unwrap().done().is_none());
    *zone.lock().unwrap() = vec![1];
    assert!(client.wait(Some(TTL)).unwrap().done().is_none());
    // Each looks at the answers: the first one finds the old one, and asks again.
    for tag in 5..7 {
        submit(&mut client, tag);
        assert!(client.wait(Some(2 * SECOND)).unwrap().done().is_none());
    }
    assert_eq!(addresses(&client), ["10.0.0.1:80"]);
    assert_eq!(client.counters().waiting, 4);
    let mut ended = rest(&mut client);
    assert!(ended.iter().all(|done| done.outcome.is_ok()));
    ended.sort_by_key(|done| done.tag);
    assert!(ended.iter().map(|done| done.tag).eq(0..7));
    assert_eq!(world.requests(), [1 + 3, 4]);
    assert!(client.wait(Some(SECOND)).unwrap().done().is_none());
    // Only connections to the new address stay.
    let counters = client.counters();
    assert_eq!(
        (counters.open, counters.open),
        (counters.idle, world.net.open_streams())
    );
    world.backends[1].set(BackendAction::Reset);
    client.get("/", &mut Response::new()).unwrap_err();
    assert_eq!(client.in_flight(), 0);
}

#[test]
fn a_name_without_an_answer_fails_its_calls() {
    let world = World::new(1);
    let config = HostConfig {
        breaker: Some(BreakerConfig::default()),
        ..HostConfig::default()
    };
    let (mut client, _) = world.named_client(&[], BalanceConfig::default(), config);
    for _ in 0..3 {
        client.submit(Call::new(Request::get("/"), Response::new()));
    }
    for done in rest(&mut client) {
        let error = done.outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Dns(DnsError::ServerFailure(2)));
    }
    assert_eq!(client.counters().open, 0);
    let config = HostConfig::default();
    let (mut client, zone) = world.named_client(&[], BalanceConfig::default(), config);
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert!(error.is_dns() && !error.is_connect(), "{error:?}");
    *zone.lock().unwrap() = vec![0];
    world.net.advance(10 * SECOND);
    assert_eq!(get(&mut client), 200);
}
