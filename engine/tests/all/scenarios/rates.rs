//! Rates of requests and of bytes, as the servers see them, to the millisecond of virtual time: no window has more than
//! allowed.

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser::net::Net as _;
use courser::net::sim::{Peer, SimNet, SimServer, Trace};
use courser::{
    Call, Client, Config, ErrorKind, HostClient, HostConfig, LimitExceeded, Observer,
    ObserverEvent, Phase, Rate, Request, Response, TimeLimit, WaitPolicy,
};

use super::{MS, near, numbered, place, silent, upstream};

/// What the servers of a network received: when, and for which host.
#[derive(Clone)]
struct Log {
    began: Instant,
    came: Rc<RefCell<Vec<(Duration, u8)>>>,
}

impl Log {
    fn new(net: &SimNet) -> Self {
        Self {
            began: net.now(),
            came: Rc::default(),
        }
    }

    /// When each request came, in milliseconds.
    fn times(&self) -> Vec<u128> {
        let came = self.came.borrow();
        came.iter().map(|(at, _)| at.as_millis()).collect()
    }

    /// No window has more than the rate allows, in the requests to this host or to all.
    fn keeps(&self, rate: Rate, host: Option<u8>) {
        let came = self.came.borrow();
        let of_host = came
            .iter()
            .filter(|(_, to)| host.is_none_or(|host| host == *to));
        let at: Vec<u128> = of_host.map(|(at, _)| at.as_nanos()).collect();
        let (count, per) = (u128::from(rate.count.get()), rate.per.as_nanos());
        for from in 0..at.len() {
            for to in from..at.len() {
                let (sum, window) = ((to - from + 1) as u128, at[to] - at[from]);
                let most = u128::from(rate.burst.get()) * per + window * count;
                assert!(sum * per <= most, "{sum} in {window} ns: {rate:?}");
            }
        }
    }
}

/// Answers each request.
#[derive(Clone)]
struct Server {
    log: Log,
    host: u8,
    /// The beginning of a request that comes in pieces.
    rest: Rc<RefCell<std::collections::HashMap<u64, Vec<u8>>>>,
}

impl Server {
    fn new(log: &Log, host: u8) -> Self {
        Self {
            log: log.clone(),
            host,
            rest: Rc::default(),
        }
    }
}

impl SimServer for Server {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let mut all = self.rest.borrow_mut();
        let rest = all.entry(peer.connection()).or_default();
        for byte in data {
            if rest.is_empty() {
                // The time of the first byte counts.
                let at = peer.now() - self.log.began;
                self.log.came.borrow_mut().push((at, self.host));
            }
            rest.push(*byte);
            if rest.ends_with(b"\r\n\r\n") {
                rest.clear();
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
            }
        }
    }
}

fn rate(count: u64, per: Duration, burst: u64) -> Rate {
    let number = |n| NonZeroU64::new(n).unwrap();
    Rate {
        count: number(count),
        per,
        burst: number(burst),
    }
}

/// A client of one server that answers at once.
fn host_client(net: &SimNet, config: HostConfig) -> (HostClient<SimNet>, Log) {
    let log = Log::new(net);
    net.listen(place(1), near(), Server::new(&log, 1));
    let client = HostClient::with_net(upstream(), config, net.clone()).unwrap();
    (client, log)
}

/// A client of the hosts `1.sim` to `n.sim`.
fn client_of(net: &SimNet, hosts: u8, config: Config) -> (Client<SimNet>, Log) {
    let log = Log::new(net);
    for host in 1..=hosts {
        net.listen(place(host), near(), Server::new(&log, host));
    }
    let client = Client::with_net(config, net.clone(), numbered(net)).unwrap();
    (client, log)
}

fn get(path: &str) -> Call {
    Call::new(Request::get(path), Response::new())
}

/// Waits for all calls, which must succeed. Returns their tags in the order in which they end.
macro_rules! finish {
    ($client:expr) => {{
        let mut tags: Vec<u64> = Vec::new();
        while let Some(done) = $client.wait(None).unwrap() {
            done.outcome.unwrap();
            tags.push(done.tag);
        }
        tags
    }};
}

#[test]
fn a_call_that_waits_for_a_rate_holds_no_connection_and_is_counted() {
    let net = SimNet::new(1);
    let held = Arc::new(Mutex::new(Vec::new()));
    let (mut client, log) = host_client(
        &net,
        HostConfig {
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
        },
    );
    for tag in 1..=2 {
        client.submit(get("/").tag(tag));
    }
    let first = client.wait(None).unwrap().unwrap();
    assert!(!first.report.held());
    // Its connection has expired meanwhile, and no new one is opened before its time.
    assert!(client.wait(Some(9999 * MS)).unwrap().is_none());
    let counters = client.counters();
    assert_eq!((counters.open, counters.waiting), (0, 1));
    let done = client.wait(None).unwrap().unwrap();
    assert!(done.report.held() && !done.report.reused());
    assert_eq!(done.report.timings().queued, Some(10_000 * MS));
    assert_eq!(
        (log.times(), client.counters().opened),
        (vec![0, 10_000], 2)
    );
    assert_eq!(*held.lock().unwrap(), [2]);
}

#[test]
fn calls_that_do_not_wait_fail_at_once() {
    let net = SimNet::new(1);
    let (mut client, log) = host_client(
        &net,
        HostConfig {
            rate: Some(rate(10, 1000 * MS, 2)),
            wait: WaitPolicy::FailFast,
            ..HostConfig::default()
        },
    );
    for tag in 0..4 {
        client.submit(get("/").tag(tag));
    }
    let mut failed = 0;
    while let Some(done) = client.wait(None).unwrap() {
        if let Err(error) = done.outcome {
            let is_rate = matches!(error.kind(), ErrorKind::Limit(LimitExceeded::Rate));
            assert!(is_rate && done.tag >= 2, "{error}");
            failed += 1;
        }
    }
    assert_eq!((failed, log.times()), (2, vec![0, 0]));
    client.maintain(100 * MS).unwrap();
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(log.times(), [0, 0, 100]);
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
    let (mut client, log) = client_of(&net, 30, config);
    net.listen(place(31), silent(), Server::new(&log, 31));
    client.submit(get("http://31.sim/").tag(31));
    for host in 1..=20 {
        for _ in 0..10 {
            client.submit(get(&format!("http://{host}.sim/")).tag(host));
        }
    }
    let began = net.now();
    while net.now() < began + 5000 * MS {
        client.wait(Some(100 * MS)).unwrap();
    }
    let submitted = net.now();
    client.submit(get("http://25.sim/").tag(25));
    let mut failed = 0;
    while let Some(done) = client.wait(None).unwrap() {
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
    assert_eq!((failed, log.times().len()), (1, 201));
    log.keeps(rate(10, 1000 * MS, 1), None);
    for host in 1..=30 {
        log.keeps(Rate::every(1000 * MS), Some(host));
    }
    // The whole rate is used while there are enough hosts.
    let times: Vec<u128> = (0..190).map(|n| n * 100).collect();
    assert_eq!(log.times()[..190], times);
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
    let (mut client, log) = client_of(&net, 1, config);
    let mut response = Response::new();
    client.get("http://1.sim/", &mut response).unwrap();
    client.maintain(30_000 * MS).unwrap();
    // Two thousand other hosts do not displace it.
    for port in 1000..3000 {
        client.submit(get(&format!("http://1.sim:{port}/")));
    }
    while client.wait(None).unwrap().is_some() {}
    client.submit(get("http://1.sim/").timeout(60_000 * MS));
    finish!(client);
    assert_eq!(log.times(), [0, 60_000]);
    client.maintain(80_000 * MS).unwrap();
    client.maintain(MS).unwrap();
    assert_eq!(client.hosts(), 0);
}

// ---- bytes

/// Answers a GET of `/n` with n bytes, and a complete POST with an empty body.
#[derive(Default)]
struct Bulk {
    /// The head that is coming, and the number of missing body bytes.
    coming: std::collections::HashMap<u64, (Vec<u8>, usize)>,
}

impl SimServer for Bulk {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let (head, missing) = self.coming.entry(peer.connection()).or_default();
        let mut data = data.iter().copied();
        while data.len() > 0 {
            let mut length = 0;
            if *missing > 0 {
                let now = data.len().min(*missing);
                data.by_ref().nth(now - 1);
                *missing -= now;
            } else {
                head.extend(data.next());
                if !head.ends_with(b"\r\n\r\n") {
                    continue;
                }
                let text = String::from_utf8(std::mem::take(head))
                    .unwrap()
                    .to_lowercase();
                length = text.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
                if text.starts_with("post") {
                    *missing = std::mem::take(&mut length);
                }
            }
            if *missing == 0 {
                peer.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
                ));
                peer.send(vec![b'x'; length]);
            }
        }
    }
}

/// When how many bytes were received, or sent.
fn went(net: &SimNet, out: bool) -> Vec<(u128, u128)> {
    let trace = net.trace();
    let bytes = trace.iter().filter_map(|entry| match &entry.what {
        Trace::Read(Some(Ok(n))) if !out => Some((entry.at.as_nanos(), *n as u128)),
        Trace::Write(Some(Ok(n))) if out => Some((entry.at.as_nanos(), *n as u128)),
        _ => None,
    });
    bytes.collect()
}

/// No window has more bytes than the rate allows.
fn bytes_keep(went: &[(u128, u128)], rate: Rate) {
    // After a pause, the bytes of 80 ms may come at once.
    let pause = rate.count.get() * 80 / rate.per.as_millis() as u64;
    let burst = u128::from(rate.burst.get().max(16 * 1024).max(pause));
    for (from, (begin, _)) in went.iter().enumerate() {
        let mut sum = 0;
        for (end, n) in &went[from..] {
            sum += n;
            let most = burst * rate.per.as_nanos() + (end - begin) * u128::from(rate.count.get());
            assert!(
                sum * rate.per.as_nanos() <= most,
                "{sum} in {} ns",
                end - begin
            );
        }
    }
}

fn bulk_client(net: &SimNet, config: HostConfig) -> HostClient<SimNet> {
    net.listen(place(1), near(), Bulk::default());
    HostClient::with_net(upstream(), config, net.clone()).unwrap()
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
        bytes_keep(&went(&net, out), slow);
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
    client.submit(get("/100000").timeout(2345 * MS));
    let done = client.wait(None).unwrap().unwrap();
    let error = done.outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Timeout(TimeLimit::Total));
    assert_eq!(net.now() - began, 2345 * MS);
    // What was read counts for the calls that come later, and they get what is left.
    let (before, mut response) = (net.now(), Response::new());
    client.get("/1000", &mut response).unwrap();
    assert!(net.now() - before <= 1200 * MS, "{:?}", net.now() - before);
}

/// By the clock of a system whose waits last whole milliseconds, for a transfer that is alone and for four together.
#[test]
fn fast_rates_are_met_in_both_directions() {
    const MIB: usize = 1024 * 1024;
    for (mib, transfers) in [5, 20, 100]
        .into_iter()
        .flat_map(|mib| [(mib, 1), (mib, 4)])
    {
        for out in [false, true] {
            let net = SimNet::new(1);
            net.set_wait_step(MS);
            let fast = Some(rate((mib * MIB) as u64, 1000 * MS, 1));
            let config = HostConfig {
                bytes_in: fast.filter(|_| !out),
                bytes_out: fast.filter(|_| out),
                ..HostConfig::default()
            };
            let mut client = bulk_client(&net, config);
            let each = mib * MIB / 2 / transfers;
            let target = format!("/{each}");
            for _ in 0..transfers {
                let request = match out {
                    false => Request::get(&*target),
                    true => Request::post(&*target, vec![b'x'; each]),
                };
                client.submit(Call::new(request, Response::new()));
            }
            let began = net.now();
            finish!(client);
            let took = (net.now() - began).as_millis();
            assert!(
                took.abs_diff(500) <= 15,
                "{took} ms at {mib} MiB/s, {transfers} transfers, out: {out}"
            );
        }
    }
}
