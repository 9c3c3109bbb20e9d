//! Regression tests of faults that show only on a simulated network, one test each.

use std::cell::Cell;
use std::io;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use courser::error::LimitExceeded;
use courser::net::Net;
use courser::net::sim::{HttpServer, Link, Peer, SimNet, SimServer};
use courser::policy::{
    BalanceConfig, BreakerConfig, LatePolicy, RetryOn, RetryRule, RetryVia, Statuses, WaitPolicy,
};
use courser::{
    Backoff, BodyRead, Call, CallId, Caps, Client, Codings, Config, ErrorKind, HostClient,
    HostConfig, Limits, Misuse, Phase, PipelineClient, PipelineConfig, Proxies, Rate, Redirects,
    Request, Response, Retry, Sent, Timeouts, TlsConfig, Upstream, Waited,
};
use flate2::Compression;
use flate2::read::GzEncoder;

use super::{
    Failing, MS, Script, Source, call, client_of, connects, hear, host_client, near, next,
    numbered, one, place, read_to_end, rest, silent, target, upstream,
};

const ABCD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A client that follows redirects.
fn following(net: &SimNet) -> Client<SimNet> {
    let config = Config {
        redirects: Redirects::limit(5),
        ..Config::default()
    };
    client_of(net, config)
}

/// The POST before the redirect was executed: whoever sends the request again because of this error repeats it.
#[test]
fn an_error_behind_a_redirect_says_that_something_was_sent() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| {
        peer.send("HTTP/1.1 303 See\r\nLocation: http://2.sim/\r\nContent-Length: 0\r\n\r\n");
    });
    let mut client = following(&net);
    let mut request = Request::post("http://1.sim/order", "one");
    let error = client.call(&mut request, &mut Response::new()).unwrap_err();
    assert!(error.is_connect(), "{error}");
    assert_eq!(error.sent(), courser::Sent::ReplyBegun);
}

/// Two failures before a redirect, and the third one behind it: a rule of three has had its attempts.
#[test]
fn attempts_are_counted_over_all_hops() {
    let net = SimNet::new(1);
    let count = Cell::new(0);
    let heard = hear(&net, 1, move |peer, head| {
        count.set(count.get() + 1);
        let head = match count.get() == 3 && target(head) == "/from" {
            true => "302 Found\r\nLocation: /to",
            false => "503 Full",
        };
        peer.send(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"));
    });
    let rule = RetryRule::new(RetryOn::Status(Statuses::none().and(503..=503)));
    let mut config = Config {
        redirects: Redirects::limit(5),
        ..Config::default()
    };
    config.host.retry.rules = vec![rule];
    let mut client = client_of(&net, config);
    let mut response = Response::new();
    client.get("http://1.sim/from", &mut response).unwrap();
    assert_eq!((response.status(), heard.borrow().len()), (503, 4));
}

/// Answers at once, before it is asked.
struct Full(&'static str);

impl SimServer for Full {
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        peer.send_at_once(self.0);
        if self.0.contains("close") {
            peer.close();
        }
    }

    fn on_data(&mut self, _: &mut Peer<'_>, _: &[u8]) {}
}

/// A server that is full says so to each new connection, before or after the request has come.
#[test]
fn an_answer_that_comes_with_a_new_connection_is_that_of_its_first_request() {
    let full = "HTTP/1.1 503 Full\r\nContent-Length: 4\r\n";
    let answers = ["Connection: close\r\n\r\nfull", "\r\nfull"].map(|rest| format!("{full}{rest}"));
    for (seed, answer) in (0..32).flat_map(|seed| answers.clone().map(|answer| (seed, answer))) {
        let (net, answer) = (SimNet::new(seed), &*answer.leak());
        net.listen(place(1), Link::default(), Full(answer));
        let mut client = host_client(&net, HostConfig::default());
        let mut response = Response::new();
        let mut request = Request::post("/", "order");
        client.call(&mut request, &mut response).unwrap();
        let answer = (response.status(), response.body());
        assert_eq!(answer, (503, &b"full"[..]), "{seed}");
        let config = PipelineConfig::default();
        let mut client = PipelineClient::with_net(upstream(), config, net.clone()).unwrap();
        client.get("/", &mut response).unwrap();
        assert_eq!(response.status(), 503, "{seed}");
    }
}

/// The redirect is slow and its target is not: the report is about the last attempt only.
#[test]
fn the_report_has_no_times_of_an_earlier_hop() {
    let net = SimNet::new(1);
    let slow = Script(|peer: &mut Peer<'_>, _: &[u8]| {
        peer.wait(100 * MS);
        peer.send("HTTP/1.1 302 Found\r\nLocation: http://2.sim/\r\nContent-Length: 0\r\n\r\n");
    });
    net.listen(place(1), Link::default(), slow);
    let server = Script(|peer: &mut Peer<'_>, _: &[u8]| {
        peer.wait(10 * MS);
        peer.send(OK);
    });
    net.listen(place(2), Link::default(), server);
    let mut client = following(&net);
    let report = client.get("http://1.sim/", &mut Response::new()).unwrap();
    let times = report.timings();
    // Two round trips of 2 ms, 100 ms for the answer, and a connection to the other host.
    let sent = 4 * MS + 100 * MS + 2 * MS;
    assert_eq!((times.queued, times.sent), (Some(sent), Some(sent)));
    assert_eq!(times.first_byte, Some(sent + 12 * MS));
    assert_eq!(times.total, sent + 12 * MS);
}

/// A body of any size to a network that takes everything at once.
#[test]
fn one_large_upload_does_not_delay_other_calls() {
    let net = SimNet::new(1);
    // Time does not pass while there is something to write, so the link must have no latency.
    let wide = Link {
        latency: Duration::ZERO..=Duration::ZERO,
        window: usize::MAX,
        segment: 1 << 20..=1 << 20,
        ..Link::default()
    };
    net.listen(place(1), wide, HttpServer::default());
    let mut client = host_client(&net, HostConfig::default());
    let upload = |client: &mut HostClient<SimNet>| {
        let source = Source::default();
        source.ready.store(LENGTH, SeqCst);
        let given = Arc::clone(&source.given);
        let mut request = Request::post("/", "");
        request.body_stream(source, Some(LENGTH as u64));
        let call = Call::new(request, Response::new()).tag(1);
        (client.submit(call), given)
    };
    const LENGTH: usize = 8 << 20;
    let (_, given) = upload(&mut client);
    client.submit(call("/").tag(2));
    let done = next(&mut client);
    done.outcome.unwrap();
    assert_eq!(done.tag, 2, "the small call waited for the upload");
    assert!(given.load(SeqCst) < LENGTH);
    while let Some(done) = client.wait(None).unwrap().done() {
        done.outcome.unwrap();
    }

    // Resuming the upload does not give it more iterations.
    let (id, given) = upload(&mut client);
    let one_turn = |client: &mut HostClient<SimNet>| {
        let before = given.load(SeqCst);
        client.maintain(Duration::ZERO).unwrap();
        given.load(SeqCst) - before
    };
    one_turn(&mut client);
    let plain: Vec<_> = (0..4).map(|_| one_turn(&mut client)).collect();
    assert!(plain.iter().all(|&n| n > 0 && n < LENGTH / 16), "{plain:?}");
    for _ in 0..10 {
        client.resume(id);
    }
    one_turn(&mut client);
    let resumed: Vec<_> = (0..4).map(|_| one_turn(&mut client)).collect();
    assert_eq!(resumed, plain);
    client.cancel(id);
}

/// A call whose connection was dead needs a new one, while another host holds the rest of the cap without end.
#[test]
fn a_call_that_is_tried_again_is_not_overtaken_for_ever() {
    let net = SimNet::new(1);
    let mut requests = 0;
    let server = Script(move |peer: &mut Peer<'_>, _: &[u8]| {
        requests += 1;
        if requests == 3 {
            peer.close();
        } else {
            peer.wait(MS);
            peer.send(OK);
        }
    });
    net.listen(place(1), Link::default(), server);
    net.listen(
        place(2),
        Link::default(),
        Script(|_: &mut Peer<'_>, _: &[u8]| {}),
    );
    let config = Config {
        max_connections: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    };
    let mut client = client_of(&net, config);
    // Two connections to the first host, both of which have served.
    for _ in 0..2 {
        client.submit(call("http://1.sim/"));
    }
    rest(&mut client);
    assert_eq!(client.counters().idle, 2);
    // The third request meets a connection that ends. Its place goes to the host without a connection.
    for tag in 1..=2 {
        client.submit(call("http://1.sim/").tag(tag));
    }
    client.submit(call("http://2.sim/").tag(100).timeout(3_600_000 * MS));
    let mut overtaken = 0;
    loop {
        client.submit(call("http://1.sim/").tag(3));
        let done = next(&mut client);
        done.outcome.unwrap();
        if done.tag != 3 && done.report.attempts() == 2 {
            break;
        }
        overtaken += 1;
        assert!(overtaken < 10, "{:?}", client.counters());
    }
    assert!(net.peak_streams() <= 2);
}

/// Otherwise its connection would stay busy without a call, or its place in the queue would stay taken.
#[test]
fn a_call_that_could_not_wait_for_events_leaves_nothing_behind() {
    // Four calls poll five times.
    for nth in 0..5 {
        let net = SimNet::new(1);
        let server = Script(|peer: &mut Peer<'_>, _: &[u8]| peer.send(OK));
        net.listen(place(1), Link::default(), server);
        let mut polls = 0..;
        let fails = move || polls.next() == Some(nth);
        let failing = Failing { net, fails };
        let mut client = HostClient::with_net(upstream(), one(), failing).unwrap();
        let mut response = Response::new();
        let mut failures = 0;
        for _ in 0..4 {
            if let Err(error) = client.get("/", &mut response) {
                assert_kind!(error, ErrorKind::Io(_));
                failures += 1;
            }
            let counters = client.counters();
            let at_work = (counters.busy, counters.connecting, counters.waiting);
            assert_eq!((at_work, client.in_flight()), ((0, 0, 0), 0), "poll {nth}");
        }
        assert_eq!(failures, 1, "poll {nth}");
    }
}

/// Otherwise nothing would go on with the rest of an upload that has used up its part of an iteration.
#[test]
fn polls_that_fail_stop_no_upload() {
    let net = SimNet::new(1);
    let link = Link {
        window: usize::MAX,
        ..Link::default()
    };
    let mut end = Vec::new();
    let server = move |peer: &mut Peer<'_>, data: &[u8]| {
        end.extend_from_slice(data);
        end.drain(..end.len().saturating_sub(5));
        if end == b"0\r\n\r\n" {
            peer.send(OK);
        }
    };
    net.listen(place(1), link, Script(server));
    // The connection is up after the second poll.
    let mut polls = 0..;
    let failing = Failing {
        net: net.clone(),
        fails: move || polls.next().is_some_and(|nth| (3..6).contains(&nth)),
    };
    let mut client = HostClient::with_net(upstream(), HostConfig::default(), failing).unwrap();
    let mut request = Request::put("/", "");
    request.body_stream(io::Read::take(io::repeat(b'x'), 4_000_000), None);
    client.submit(Call::new(request, Response::new()));
    let began = net.now();
    let mut failures = 0;
    let done = loop {
        match client.wait(None) {
            Ok(done) => break done.done().unwrap(),
            Err(_) => failures += 1,
        }
        // So long that the next wait polls before it does anything else.
        net.advance(2 * MS);
    };
    done.outcome.unwrap();
    assert_eq!(failures, 3);
    assert!(net.now() - began < 1000 * MS);
}

/// `flush_names` forgets which addresses have failed, too; `flush_name` only the addresses.
#[test]
fn flushed_names_come_with_all_their_addresses_anew() {
    type Flush = fn(&mut Client<SimNet>);
    let cases: [(Flush, usize, usize); 3] = [
        (|_| (), 1, 1),
        (|client| client.flush_name("1.2.sim"), 0, 1),
        (|client| client.flush_names(), 0, 2),
    ];
    for (flush, known, tried) in cases {
        let net = SimNet::new(1);
        let closing = |peer: &mut Peer<'_>, _: &[u8]| {
            peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        };
        net.listen(place(2), Link::default(), Script(closing));
        let mut config = Config::default();
        config.host.avoid_failed = 3_600_000 * MS;
        let mut client = client_of(&net, config);
        // The first address refuses, whichever call begins; then it is tried last, so it is not tried at all.
        for _ in 0..4 {
            client.get("http://1.2.sim/", &mut Response::new()).unwrap();
        }
        assert_eq!(connects(&net, 1), 1);
        flush(&mut client);
        assert_eq!(client.dns_counters().entries, known);
        for _ in 0..4 {
            client.get("http://1.2.sim/", &mut Response::new()).unwrap();
        }
        assert_eq!(connects(&net, 1), tried);
    }
}

/// What a client cannot honour is an error, and never ignored.
#[test]
fn settings_that_a_client_cannot_honour_make_no_client() {
    let net = SimNet::new(1);
    type Edit = fn(&mut HostConfig);
    let of_many = |edit: Edit| {
        let mut config = Config::default();
        edit(&mut config.host);
        Client::with_net(config, net.clone(), numbered(&net)).err()
    };
    let pipelined = |edit: Edit| {
        let mut config = PipelineConfig::default();
        edit(&mut config.host);
        PipelineClient::with_net(upstream(), config, net.clone()).err()
    };
    let of_one = |edit: Edit| {
        let mut config = HostConfig::default();
        edit(&mut config);
        HostClient::with_net(upstream(), config, net.clone()).err()
    };
    let broken: Edit = |it| it.user_agent = Some("a\nb".to_owned());
    let balanced: Edit = |it| it.balance = Some(BalanceConfig::default());
    let impatient: Edit = |it| it.wait = WaitPolicy::FailFast;
    let pinned: Edit = |it| it.tls.pinned_keys = vec![String::new()];
    for (what, refused) in [
        ("spread over addresses", of_many(balanced)),
        ("idle connections", of_many(|it| it.min_idle = 2)),
        ("spread over addresses", pipelined(balanced)),
        ("policy on waiting", pipelined(impatient)),
        ("pinned keys", of_one(pinned)),
        ("invalid byte 0x0a", of_one(broken)),
        ("invalid byte 0x0a", of_many(broken)),
    ] {
        let error = refused.expect(what);
        assert_kind!(error, ErrorKind::Misuse(misuse) if misuse.to_string().contains(what));
    }
    assert!(of_many(|_| ()).is_none() && pipelined(|_| ()).is_none());
    let named = "https://api.sim".parse().unwrap();
    let made = HostClient::with_net(named, HostConfig::default(), net.clone());
    assert_kind!(made.err().unwrap(), ErrorKind::Misuse(Misuse::NoResolver));
    // Nor what a client of one host cannot do for a call.
    let mut client = host_client(&net, HostConfig::default());
    let identity = TlsConfig::default().build().unwrap();
    let redirects = Redirects::limit(2);
    for (call, what) in [
        (call("/").tls(identity), "TLS settings of a call"),
        (call("/").proxies(Proxies::none()), "proxies of a call"),
        (call("/").redirects(redirects), "redirects of a call"),
    ] {
        let error = client.perform(call).outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Misuse(misuse) if misuse.to_string().ends_with(what));
    }
    // Nor what a client of URLs cannot.
    let mut connect = Request::new("CONNECT", "http://1.sim/");
    let called = client_of(&net, Config::default()).call(&mut connect, &mut Response::new());
    assert_kind!(called.unwrap_err(), ErrorKind::Misuse(Misuse::TargetForm));
}

/// One address is slow to connect to, and the breaker of the other one is open: the call returns to where it waited.
#[test]
fn a_call_that_no_other_address_may_take_stays_where_it_is() {
    let net = SimNet::new(1);
    net.listen(place(1), silent(), Script(|_: &mut Peer<'_>, _: &[u8]| ()));
    let mut config = HostConfig {
        balance: Some(BalanceConfig::default()),
        breaker: Some(BreakerConfig {
            consecutive: NonZeroU32::new(1),
            open_for: 60_000 * MS,
            ..BreakerConfig::default()
        }),
        ..HostConfig::default()
    };
    config.timeouts.connect = Some(1000 * MS);
    let upstream = Upstream::tcp([([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 80).into()]);
    let mut client = HostClient::with_net(upstream, config, net.clone()).unwrap();
    for tag in [1, 2] {
        client.submit(call("/").tag(tag));
    }
    let began = net.now();
    for _ in 0..2 {
        let done = next(&mut client);
        done.outcome.unwrap_err();
    }
    assert!(net.now() - began <= 3000 * MS);
}

/// A client of two addresses, which share the minimum of idle connections.
fn warm(net: &SimNet, max_connections: usize, min_idle: usize) -> HostClient<SimNet> {
    let config = HostConfig {
        max_connections: NonZeroUsize::new(max_connections).unwrap(),
        min_idle,
        attempt_delay: Duration::ZERO,
        balance: Some(BalanceConfig::default()),
        random_start: false,
        ..HostConfig::default()
    };
    let upstream = Upstream::tcp([([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 80).into()]);
    HostClient::with_net(upstream, config, net.clone()).unwrap()
}

/// Neither address takes the other's room, also when the cap changes.
#[test]
fn addresses_do_not_take_the_room_of_others_to_keep_warm() {
    let net = SimNet::new(1);
    for host in 1..=2 {
        net.listen(
            place(host),
            Link::default(),
            Script(|_: &mut Peer<'_>, _: &[u8]| ()),
        );
    }
    let mut client = warm(&net, 2, 4);
    // The cap may fall while connections are opened, and rise again.
    client.maintain(Duration::ZERO).unwrap();
    for (cap, idle, opened) in [(1, 1, 2), (2, 2, 3), (9, 4, 5)] {
        let caps = Caps {
            max_connections: NonZeroUsize::new(cap),
            ..Caps::default()
        };
        client.set_caps(&caps).unwrap();
        client.maintain(3000 * MS).unwrap();
        let counters = client.counters();
        assert_eq!((counters.idle, counters.opened), (idle, opened), "{cap}");
    }
}

/// An address that does not answer has its share of the room. Without a delay between attempts, nothing runs in circles.
#[test]
fn a_dead_address_does_not_take_the_room_of_others() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| peer.send(OK));
    net.listen(place(2), silent(), Script(|_: &mut Peer<'_>, _: &[u8]| ()));
    let mut client = warm(&net, 4, 1_000_000);
    for _ in 0..20 {
        client.maintain(700 * MS).unwrap();
        let began = net.now();
        client.get("/", &mut Response::new()).unwrap();
        assert!(net.now() - began < 500 * MS);
    }
}

/// Connections that may not age are opened one a second, and all that were ever opened are counted.
#[test]
fn openings_are_counted_over_all_hosts() {
    let net = SimNet::new(1);
    hear(&net, 3, |peer, _| peer.send(OK));
    let mut client = client_of(&net, Config::default());
    for host in 1..=3 {
        let url = format!("http://{host}.sim/");
        client.get(&url, &mut Response::new()).unwrap();
        client.maintain(30_000 * MS).unwrap();
    }
    assert_eq!(client.counters().opened, 3);
    let config = HostConfig {
        max_age: Some(Duration::ZERO),
        min_idle: 1,
        ..HostConfig::default()
    };
    let mut client = host_client(&net, config);
    client.maintain(10_500 * MS).unwrap();
    assert_eq!(client.counters().opened, 11);
}

/// Two calls need new connections, of which one is allowed, and a rate keeps them back: the new one waits with them.
#[test]
fn a_new_connection_is_not_in_the_way_of_calls_that_a_rate_keeps_back() {
    let net = SimNet::new(1);
    let mut answers = 0;
    let busy = Script(move |peer: &mut Peer<'_>, _: &[u8]| {
        answers += 1;
        peer.send(match answers {
            1 | 2 => "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
            _ => OK,
        });
    });
    net.listen(place(1), near(), busy);
    let rule = RetryRule {
        via: RetryVia::Fresh,
        backoff: Backoff::NONE,
        ..RetryRule::new(RetryOn::Status(Statuses::none().and(503..=503)))
    };
    let config = HostConfig {
        rate: Some(Rate::every(3000 * MS).burst(NonZeroU64::MIN.saturating_add(1))),
        retry: Retry {
            rules: vec![rule],
            ..Retry::default()
        },
        ..one()
    };
    let mut client = host_client(&net, config);
    for tag in [1, 2] {
        client.submit(call("/").tag(tag));
    }
    for _ in 0..2 {
        let done = next(&mut client);
        done.outcome.unwrap();
        assert_eq!(done.response.status(), 200);
    }
    assert!(client.counters().opened <= 6, "{:?}", client.counters());
}

/// The cap over all hosts is a cap like the host's own: who will not wait is told at once.
#[test]
fn who_does_not_wait_does_not_wait_for_room_over_all_hosts() {
    let net = SimNet::new(1);
    hear(&net, 2, |peer, _| {
        peer.wait(100 * MS);
        peer.send(OK);
    });
    let mut config = Config {
        max_connections: NonZeroUsize::MIN,
        ..Config::default()
    };
    config.host.wait = WaitPolicy::FailFast;
    let mut client = client_of(&net, config);
    client.submit(call("http://1.sim/").tag(1));
    let waited = client.wait(Some(10 * MS)).unwrap();
    assert!(matches!(waited, Waited::TimedOut), "{waited:?}");
    client.submit(call("http://2.sim/").tag(2));
    client.submit(call("http://1.sim/").tag(3));
    for _ in 0..2 {
        let done = client.wait(Some(Duration::ZERO)).unwrap().done();
        let error = done.expect("an answer at once").outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Limit(LimitExceeded::Connections(1)));
        assert_eq!((error.phase(), error.sent()), (Phase::Queue, Sent::Nothing));
    }
    next(&mut client).outcome.unwrap();
    // An idle connection makes room.
    client.get("http://2.sim/", &mut Response::new()).unwrap();
    assert_eq!((client.counters().open, net.peak_streams()), (1, 1));
}

#[test]
fn a_pipelined_client_keeps_idle_connections_open_too() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| peer.send(OK));
    let mut config = PipelineConfig::default();
    config.host.min_idle = 2;
    let mut client = PipelineClient::with_net(upstream(), config, net.clone()).unwrap();
    client.get("/", &mut Response::new()).unwrap();
    client.maintain(60_000 * MS).unwrap();
    assert_eq!((client.counters().idle, client.counters().open), (2, 2));
}

/// How many bytes of a body were read; `None` at its end.
fn read(client: &mut HostClient<SimNet>, id: CallId, buffer: &mut [u8]) -> Option<usize> {
    match client.read_body(id, buffer).unwrap() {
        BodyRead::Data(n) => Some(n),
        BodyRead::End { .. } => None,
        BodyRead::Pending => panic!("no bytes are there"),
    }
}

#[test]
fn a_body_that_was_complete_before_its_head_was_taken_is_told_of() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| peer.send(ABCD));
    let mut client = host_client(&net, HostConfig::default());
    for tag in 0..2 {
        client.submit(call("/").tag(tag).streaming(true));
    }
    client.maintain(100 * MS).unwrap();
    assert_eq!(client.counters().idle, 2, "both answers are in");
    assert_eq!(client.readable_body(), None, "no head has been given");
    let mut ended = 0;
    while client.in_flight() > 0 {
        client.wait(None).unwrap().done();
        while let Some(id) = client.readable_body() {
            let mut buf = [0; 64];
            assert_eq!(read(&mut client, id, &mut buf), Some(4));
            assert_eq!(read(&mut client, id, &mut buf), None);
            ended += 1;
        }
    }
    assert_eq!(ended, 2);
    assert!(matches!(client.wait(None).unwrap(), Waited::Idle));
}

/// Whether it was read in part, or never began.
#[test]
fn a_cancelled_call_has_its_own_time_and_no_answer_of_another_call() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    });
    let config = HostConfig {
        stats: true,
        ..HostConfig::default()
    };
    let mut client = host_client(&net, config);
    client.submit(call("/").streaming(true));
    let answered = next(&mut client);
    client.maintain(100 * MS).unwrap();
    client.cancel(answered.id);
    assert_eq!(client.stats().total.max(), 100 * MS);
    let id = client.submit(Call::new(Request::get("/"), answered.response));
    client.cancel(id);
    assert_eq!(next(&mut client).response.status(), 0);
}

#[test]
fn a_buffer_without_room_takes_nothing_and_ends_nothing() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| peer.send(ABCD));
    let mut client = host_client(&net, HostConfig::default());
    client.submit(call("/").streaming(true));
    let id = next(&mut client).streamed().unwrap();
    client.maintain(100 * MS).unwrap();
    assert_eq!(client.counters().idle, 1, "the whole body is here");
    let mut buf = [0; 16];
    for _ in 0..3 {
        assert_eq!(read(&mut client, id, &mut []), Some(0));
    }
    assert_eq!(read(&mut client, id, &mut buf), Some(4));
    assert_eq!(&buf[..4], b"abcd");
    assert_eq!(read(&mut client, id, &mut []), None);
}

#[test]
fn endless_durations_are_as_good_as_never() {
    let net = SimNet::new(1);
    let is_late = Cell::new(true);
    hear(&net, 1, move |peer, head| match head {
        "x" => peer.send(OK),
        head if head.starts_with("POST ") => peer.send("HTTP/1.1 100 Continue\r\n\r\n"),
        _ if is_late.take() => {
            peer.wait(1000 * MS);
            peer.send(OK);
        }
        _ => peer.send(OK),
    });
    let mut config = HostConfig {
        idle_timeout: Duration::MAX,
        max_age: Some(Duration::MAX),
        late: LatePolicy::Drain {
            up_to: Duration::MAX,
        },
        ..HostConfig::default()
    };
    config.timeouts.connect = Some(Duration::MAX);
    config.timeouts.first_byte = Some(Duration::MAX);
    let mut client = host_client(&net, config);
    let mut request = Request::post("/", "x");
    request.expect_continue(Duration::MAX);
    client.call(&mut request, &mut Response::new()).unwrap();
    let late = client.perform(call("/").timeout(100 * MS));
    assert!(late.outcome.unwrap_err().is_timeout());
    assert_eq!(client.counters().draining, 1);
    client.get("/", &mut Response::new()).unwrap();
}

/// What a call says of its limits holds for all of its body, not for what comes before the first pause alone.
#[test]
fn a_calls_own_limits_hold_when_decoding_goes_on() {
    let zeros = vec![0; 4 << 20];
    let mut coded = Vec::new();
    let mut encoder = GzEncoder::new(&zeros[..], Compression::default());
    io::Read::read_to_end(&mut encoder, &mut coded).unwrap();
    let limits = |decode_ratio| Limits {
        decode_ratio,
        ..Limits::default()
    };
    for (of_client, of_call) in [(None, Some(100)), (Some(100), None)] {
        let net = SimNet::new(1);
        let coded = coded.clone();
        hear(&net, 1, move |peer, _| {
            let length = coded.len();
            peer.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
            ));
            peer.send(coded.clone());
        });
        let config = HostConfig {
            stream_buffer: 1000,
            codings: Codings::GZIP,
            limits: limits(of_client),
            ..HostConfig::default()
        };
        let mut client = host_client(&net, config);
        client.submit(call("/").streaming(true).limits(limits(of_call)));
        let id = next(&mut client).streamed().unwrap();
        let outcome = read_to_end(&mut client, id);
        match of_call {
            None => assert_eq!(outcome.unwrap().1, zeros.len()),
            Some(ratio) => {
                let error = outcome.unwrap_err();
                assert_kind!(error, ErrorKind::Limit(LimitExceeded::DecodeRatio(n)) if *n == ratio);
            }
        }
    }
}

/// Nothing wakes the client later.
#[test]
fn a_connection_that_ends_at_once_leaves_no_timer() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::Other.into())
        }
    }
    let net = SimNet::new(1);
    net.listen(place(1), near(), Script(|_: &mut Peer<'_>, _: &[u8]| ()));
    let polls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&polls);
    let fails = move || {
        counted.set(counted.get() + 1);
        false
    };
    let timeouts = Timeouts {
        write: Some(100 * MS),
        total: None,
        first_byte: Some(100 * MS),
        between_bytes: None,
        connect: None,
        ..Timeouts::default()
    };
    let config = HostConfig {
        timeouts,
        ..HostConfig::default()
    };
    let mut client = HostClient::with_net(upstream(), config, Failing { net, fails }).unwrap();
    let mut request = Request::new("POST", "/");
    request.body_stream(Broken, Some(10));
    client.submit(Call::new(request, Response::new()));
    next(&mut client).outcome.unwrap_err();
    polls.set(0);
    client.maintain(10_000 * MS).unwrap();
    assert_eq!(polls.get(), 1);
}
