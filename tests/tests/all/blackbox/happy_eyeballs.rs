//! The race over the addresses of a name (RFC 8305 §5), with what it costs told by the engine's own times and by the
//! observer. 127.0.0.0/8 is all ours: a server, a port that refuses and a black hole can share one port.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser::{
    Call, Client, Config, DnsError, ErrorKind, Observer, ObserverEvent, Phase, Reply, Request,
    Resolver, Response, Sent, TimeLimit,
};
use tests::clients::{any_config, assert_none_left, named_client, run_any};
use tests::script::{
    Behaviour, BlackHole, PATIENCE, SYN_SENT, Server, connection, eventually, on_one_port,
    sockets_to,
};

use super::{CLOSING, OK};

struct Nobody;

impl Resolver for Nobody {
    fn lookup(&mut self, _: &str, reply: Reply) {
        reply.answer(courser::Answer::failed(DnsError::NotFound));
    }
}

/// What stands at an address.
enum At {
    Answering(Server),
    Silent(#[expect(dead_code, reason = "it only has to live")] BlackHole),
    Nothing,
}

/// For each of these, one address 127.0.0.n, all with one port.
fn place(kinds: &[char]) -> (u16, Vec<At>) {
    let ips: Vec<String> = (1..=kinds.len()).map(|n| format!("127.0.0.{n}")).collect();
    let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
    let all = on_one_port(&ips, |at| {
        let IpAddr::V4(ip) = at.ip() else {
            return Err(std::io::ErrorKind::Unsupported.into());
        };
        let closing = || Behaviour::Every(connection().request().send(CLOSING).close());
        Ok(match kinds[usize::from(ip.octets()[3]) - 1] {
            's' => (at, At::Answering(Server::start_at(at, closing())?)),
            'o' => {
                let open = Behaviour::Every(connection().always(OK));
                (at, At::Answering(Server::start_at(at, open)?))
            }
            'b' => (at, At::Silent(BlackHole::at(at)?)),
            _ => (at, At::Nothing),
        })
    });
    (all[0].0.port(), all.into_iter().map(|(_, at)| at).collect())
}

fn servers(all: &[At]) -> impl Iterator<Item = &Server> {
    all.iter().filter_map(|at| match at {
        At::Answering(server) => Some(server),
        At::Silent(_) | At::Nothing => None,
    })
}

/// The addresses that were tried, in their order.
#[derive(Clone, Default)]
struct Tried(Arc<Mutex<Vec<String>>>);

impl Tried {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn observer(&self) -> Observer {
        let tried = self.0.clone();
        Observer::new(move |event| {
            if let ObserverEvent::Connecting { remote } = event {
                let ip = remote.ip().map(|ip| ip.to_string());
                tried.lock().unwrap().push(ip.unwrap_or_default());
            }
        })
    }
}

/// A client that knows `many.test` under 127.0.0.1 to 127.0.0.n.
fn client_of(count: u8, change: impl FnOnce(&mut Config)) -> (Client, Tried) {
    let tried = Tried::default();
    let mut config = any_config();
    let ips = (1..=count).map(|n| IpAddr::from([127, 0, 0, n]));
    config.host.dns.resolve("many.test", None, ips);
    config.host.observer = Some(tried.observer());
    change(&mut config);
    (named_client(config, Nobody), tried)
}

fn url(port: u16) -> String {
    format!("http://many.test:{port}/")
}

/// Longer than any test: the next address is tried only when the one before has failed.
const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(30);

#[test]
fn an_address_that_refuses_costs_no_delay() {
    let (port, _all) = place(&['-', 's']);
    let (mut client, tried) = client_of(2, |config| config.host.attempt_delay = NEVER);
    let report = client.get(&url(port), &mut Response::new()).unwrap();
    assert_eq!(tried.take(), ["127.0.0.1", "127.0.0.2"]);
    assert_eq!(
        report.remote().unwrap().to_string(),
        format!("127.0.0.2:{port}")
    );
    assert_eq!(client.counters().opened, 1);
    // The failure is remembered: the next three openings do not try this address first, though it would be next.
    for _ in 0..3 {
        client.get(&url(port), &mut Response::new()).unwrap();
    }
    assert_eq!(tried.take(), ["127.0.0.2"; 3]);
    assert_none_left(client, []);
}

#[test]
fn a_black_hole_costs_the_delay_and_is_tried_last_then() {
    let (port, _all) = place(&['b', 's']);
    let (mut client, tried) = client_of(2, |config| config.host.attempt_delay = SOON);
    let report = client.get(&url(port), &mut Response::new()).unwrap();
    let connect = report.timings().connect.unwrap();
    assert!(connect >= SOON, "{connect:?}");
    assert_eq!(tried.take(), ["127.0.0.1", "127.0.0.2"]);
    for _ in 0..3 {
        client.get(&url(port), &mut Response::new()).unwrap();
    }
    assert_eq!(tried.take(), ["127.0.0.2"; 3]);
    assert_none_left(client, []);
}

#[test]
fn after_its_time_an_address_gets_another_chance() {
    let (port, _all) = place(&['-', 's']);
    let (mut client, tried) = client_of(2, |config| {
        config.host.attempt_delay = NEVER;
        config.host.avoid_failed = Duration::ZERO;
    });
    for _ in 0..4 {
        client.get(&url(port), &mut Response::new()).unwrap();
    }
    // In turn: each other time it is the first.
    let [no, yes] = ["127.0.0.1", "127.0.0.2"];
    assert_eq!(tried.take(), [no, yes, yes, no, yes, yes]);
}

#[test]
fn losers_are_closed() {
    let (port, all) = place(&['b', 'o']);
    let (mut client, tried) = client_of(2, |config| config.host.attempt_delay = SOON);
    client.get(&url(port), &mut Response::new()).unwrap();
    assert_eq!(tried.take(), ["127.0.0.1", "127.0.0.2"]);
    let counters = client.counters();
    assert_eq!(
        (counters.open, counters.idle, counters.connecting),
        (1, 1, 0)
    );
    // No socket of this process waits for the hole any more.
    assert_eq!(sockets_to(([127, 0, 0, 1], port).into(), SYN_SENT), 0);
    assert_none_left(client, servers(&all));
}

#[test]
fn a_call_that_ends_takes_its_attempts_along() {
    let (port, _all) = place(&['b', 'b']);
    let (mut client, tried) = client_of(2, |config| config.host.attempt_delay = SOON);
    let id = client.submit(Call::new(Request::get(url(port)), Response::new()));
    eventually("both are tried", || {
        assert!(client.wait(Some(SOON)).unwrap().is_none());
        sockets_to(([127, 0, 0, 2], port).into(), SYN_SENT) > 0
    });
    assert_eq!(tried.take(), ["127.0.0.1", "127.0.0.2"]);
    assert_eq!(client.counters().connecting, 2);
    assert!(client.cancel(id));
    let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
    assert!(matches!(
        done.outcome.unwrap_err().kind(),
        ErrorKind::Cancelled
    ));
    for n in 1..=2 {
        assert_eq!(sockets_to(([127, 0, 0, n], port).into(), SYN_SENT), 0);
    }
    assert_none_left(client, []);
}

#[test]
fn all_refuse() {
    let (port, _all) = place(&['-', '-', '-']);
    let (mut client, tried) = client_of(3, |config| config.host.attempt_delay = NEVER);
    let error = client.get(&url(port), &mut Response::new()).unwrap_err();
    let ErrorKind::Io(io) = error.kind() else {
        panic!("{error:?}");
    };
    assert_eq!(io.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::Connect, Sent::Nothing)
    );
    // The last one that was tried.
    assert_eq!(
        error.remote().unwrap().to_string(),
        format!("127.0.0.3:{port}")
    );
    assert_eq!(tried.take(), ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    // With all of them bad, all are tried again.
    client.get(&url(port), &mut Response::new()).unwrap_err();
    assert_eq!(tried.take().len(), 3);
    assert_none_left(client, []);
}

#[test]
fn the_limit_on_connecting_is_over_all_addresses() {
    let (port, _all) = place(&['b', 'b', 'b']);
    let limit = 40 * SOON;
    let (mut client, tried) = client_of(3, |config| {
        config.host.attempt_delay = SOON;
        config.host.timeouts.connect = Some(limit);
    });
    let began = Instant::now();
    let error = client.get(&url(port), &mut Response::new()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Connect)),
        "{error:?}"
    );
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::Connect, Sent::Nothing)
    );
    assert!(began.elapsed() >= limit);
    assert!(tried.take().len() >= 2);
    // The call's deadline goes before.
    let call = Call::new(Request::get(url(port)), Response::new()).timeout(2 * SOON);
    let error = run_any(&mut client, [call]).remove(0).outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
        "{error:?}"
    );
    assert_eq!(error.phase(), Phase::Connect);
    assert_none_left(client, []);
}

#[test]
fn a_limit_shorter_than_the_delay_leaves_each_address_its_turn() {
    let (port, all) = place(&['b', 'b', 'o']);
    let (mut client, tried) = client_of(3, |config| {
        config.host.attempt_delay = NEVER;
        config.host.timeouts.connect = Some(100 * SOON);
    });
    client.get(&url(port), &mut Response::new()).unwrap();
    assert_eq!(tried.take(), ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    assert_none_left(client, servers(&all));
}

#[test]
fn caps_hold_while_addresses_are_raced() {
    let (port, all) = place(&['b', 'o']);
    for (per_host, total) in [(1, 100), (2, 100), (100, 1), (100, 2), (3, 5)] {
        let cap = per_host.min(total);
        let (mut client, _) = client_of(2, |config| {
            config.host.attempt_delay = SOON;
            config.host.max_connections = NonZeroUsize::new(per_host).unwrap();
            config.max_connections = NonZeroUsize::new(total).unwrap();
        });
        let count = 30;
        for _ in 0..count {
            client.submit(Call::new(Request::get(url(port)), Response::new()));
        }
        let mut completed = 0;
        while client.in_flight() > 0 {
            let done = client.wait(Some(Duration::from_millis(1))).unwrap();
            let counters = client.counters();
            assert!(
                counters.open <= cap,
                "{counters:?} with {per_host} and {total}"
            );
            if let Some(done) = done {
                done.outcome.unwrap();
                completed += 1;
            }
        }
        assert_eq!(completed, count);
        eventually("what was begun is there", || {
            client.maintain(Duration::from_millis(1)).unwrap();
            assert!(client.counters().open <= cap);
            client.counters().connecting == 0
        });
        assert_none_left(client, servers(&all));
    }
}
