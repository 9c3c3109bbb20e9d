//! Rates of requests and of bytes to the millisecond of virtual time. That no window has more than allowed is in
//! `engine/src/policy/rate.rs`, `engine/src/reactor/meter.rs` and `engine/tests/sim/watch.rs`.

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::error::TimeLimit;
use courser::net::Net as _;
use courser::net::sim::{Peer, SimNet};
use courser::{
    Config, ErrorKind, HostClient, HostConfig, Observer, ObserverEvent, Phase, Rate, Request,
    Response,
};

use super::{MS, Script, call, client_of, host_client, near, next, place, rest, silent};

/// Listens at the first `hosts` places, and notes when requests come, in milliseconds.
fn listen(net: &SimNet, hosts: u8) -> Rc<RefCell<Vec<u128>>> {
    let (times, began) = (Rc::<RefCell<Vec<_>>>::default(), net.now());
    for host in 1..=hosts {
        let times = Rc::clone(&times);
        let script = move |peer: &mut Peer<'_>, _: &[u8]| {
            times.borrow_mut().push((peer.now() - began).as_millis());
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        };
        net.listen(place(host), near(), Script(script));
    }
    times
}

fn rate(count: u64, per: Duration, burst: u64) -> Rate {
    let number = |n| NonZeroU64::new(n).unwrap();
    Rate {
        count: number(count),
        per,
        burst: number(burst),
    }
}

#[test]
fn a_call_that_waits_for_a_rate_holds_no_connection_and_is_counted() {
    let net = SimNet::new(1);
    let held = Arc::new(Mutex::new(Vec::new()));
    let times = listen(&net, 1);
    let config = HostConfig {
        min_delay: Some(10_000 * MS),
        observer: Some(Observer::new({
            let held = Arc::clone(&held);
            move |event| {
                if let ObserverEvent::Held { tag, .. } = event {
                    held.lock().unwrap().push(*tag);
                }
            }
        })),
        ..HostConfig::default()
    };
    let mut client = host_client(&net, config);
    for tag in 1..=2 {
        client.submit(call("/").tag(tag));
    }
    let first = next(&mut client);
    assert!(!first.report.held());
    // Its connection has expired meanwhile, and no new one is opened before its time.
    assert!(client.wait(Some(9999 * MS)).unwrap().done().is_none());
    let counters = client.counters();
    assert_eq!((counters.open, counters.waiting), (0, 1));
    let done = next(&mut client);
    assert!(done.report.held() && !done.report.reused());
    assert_eq!(done.report.timings().queued, Some(10_000 * MS));
    assert_eq!(*times.borrow(), [0, 10_000]);
    assert_eq!(client.counters().opened, 2);
    assert_eq!(*held.lock().unwrap(), [2]);
}

#[test]
fn a_host_that_comes_late_gets_its_turn_and_one_that_is_not_there_takes_none() {
    let net = SimNet::new(1);
    let config = Config {
        rate: Some(rate(10, 1000 * MS, 1)),
        host: HostConfig {
            min_delay: Some(1000 * MS),
            ..HostConfig::default()
        },
        ..Config::default()
    };
    let times = listen(&net, 30);
    net.listen(place(31), silent(), Script(|_: &mut Peer<'_>, _: &[u8]| {}));
    let mut client = client_of(&net, config);
    client.submit(call("http://31.sim/").tag(31));
    for host in 1..=20 {
        for _ in 0..10 {
            client.submit(call(format!("http://{host}.sim/")).tag(host));
        }
    }
    let began = net.now();
    while net.now() < began + 5000 * MS {
        client.wait(Some(100 * MS)).unwrap().done();
    }
    let submitted = net.now();
    client.submit(call("http://25.sim/").tag(25));
    let mut failed = 0;
    while let Some(done) = client.wait(None).unwrap().done() {
        match done.outcome {
            Ok(()) if done.tag == 25 => {
                // A round for its connection, and one for its request.
                assert!(net.now() - submitted <= 4200 * MS);
            }
            Ok(()) => {}
            Err(error) => {
                assert_eq!((done.tag, error.phase()), (31, Phase::Connect));
                failed += 1;
            }
        }
    }
    assert_eq!((failed, times.borrow().len()), (1, 201));
    // The whole rate is used while there are enough hosts.
    assert!(
        times.borrow()[..190]
            .iter()
            .copied()
            .eq((0..190).map(|n| n * 100))
    );
}

#[test]
fn a_host_is_not_forgotten_before_its_time() {
    let net = SimNet::new(1);
    let config = Config {
        host: HostConfig {
            min_delay: Some(60_000 * MS),
            ..HostConfig::default()
        },
        ..Config::default()
    };
    let times = listen(&net, 1);
    let mut client = client_of(&net, config);
    let mut response = Response::new();
    client.get("http://1.sim/", &mut response).unwrap();
    client.maintain(30_000 * MS).unwrap();
    // Two thousand other hosts do not displace it.
    for port in 1000..3000 {
        client.submit(call(format!("http://1.sim:{port}/")));
    }
    rest(&mut client);
    let done = client.perform(call("http://1.sim/").timeout(60_000 * MS));
    done.outcome.unwrap();
    assert_eq!(*times.borrow(), [0, 60_000]);
    client.maintain(80_000 * MS).unwrap();
    client.maintain(MS).unwrap();
    assert_eq!(client.hosts(), 0);
}

// ---- bytes

/// Answers a GET of `/n` with n bytes, and a complete POST of n bytes to `/n` with an empty body.
fn bulk_client(net: &SimNet, config: HostConfig) -> HostClient<SimNet> {
    let mut missing = 0;
    let script = move |peer: &mut Peer<'_>, data: &[u8]| {
        let text = String::from_utf8_lossy(data);
        if missing > 0 {
            missing -= data.len();
        } else {
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let length = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
            if head.starts_with("GET") {
                peer.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
                ));
                return peer.send(vec![b'x'; length]);
            }
            missing = length - body.len();
        }
        if missing == 0 {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    };
    net.listen(place(1), near(), Script(script));
    host_client(net, config)
}

#[test]
fn bodies_go_at_their_rate_in_each_direction() {
    for (out, length, slow) in [
        (false, 200_000, rate(10_000, 1000 * MS, 1)),
        (true, 300_000, rate(100_000, 1000 * MS, 20_000)),
    ] {
        let net = SimNet::new(1);
        let mut config = HostConfig {
            bytes_in: Some(slow).filter(|_| !out),
            bytes_out: Some(slow).filter(|_| out),
            ..HostConfig::default()
        };
        // The peer is not late while the client does not read or write.
        config.timeouts.between_bytes = Some(MS);
        config.timeouts.first_byte = Some(MS);
        config.timeouts.write = Some(MS);
        let mut client = bulk_client(&net, config);
        let (began, mut response) = (net.now(), Response::new());
        let target = format!("/{length}");
        let mut request = match out {
            true => Request::post(target, vec![b'x'; length]),
            false => Request::get(target),
        };
        client.call(&mut request, &mut response).unwrap();
        assert_eq!(response.body().len(), if out { 0 } else { length });
        // All but the first buffer at the rate, to within a piece of 20 ms.
        let first = slow.burst.get().max(16_384);
        let due = (length as u64 - first) * 1000 / slow.count.get();
        let took = (net.now() - began).as_millis();
        assert!(took.abs_diff(due.into()) < 30, "{took} ms");
        assert!(net.calls() < 2500, "no busy loop: {}", net.calls());
    }
}

#[test]
fn the_deadline_holds_while_bytes_are_held_back() {
    let net = SimNet::new(1);
    let config = HostConfig {
        bytes_in: Some(rate(1000, 1000 * MS, 1)),
        ..HostConfig::default()
    };
    let mut client = bulk_client(&net, config);
    let began = net.now();
    let done = client.perform(call("/100000").timeout(2345 * MS));
    let error = done.outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Timeout(TimeLimit::Total));
    assert_eq!(net.now() - began, 2345 * MS);
    // What was read counts for the calls that come later, and they get what is left.
    let (before, mut response) = (net.now(), Response::new());
    client.get("/1000", &mut response).unwrap();
    assert!(net.now() - before <= 1200 * MS, "{:?}", net.now() - before);
}
