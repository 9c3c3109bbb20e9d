//! Single scenarios that random runs meet too seldom, or whose correct outcome is known exactly. `SimNet::trace` has a
//! log of a run.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use courser::error::{LimitExceeded, Shortage, TimeLimit};
use courser::net::Net as _;
use courser::net::sim::{Link, Peer, Probability, SimNet};
use courser::policy::{BreakerConfig, Overflow, WaitPolicy};
use courser::{
    Call, Caps, Codings, ErrorKind, HostClient, HostConfig, HttpClient, Limits, Misuse, Phase,
    PipelineClient, PipelineConfig, Request, Response, Sent, Timeouts,
};

use super::{MS, Script, call, host_client, next, one, place, rest, silent, upstream};

/// A client of a scripted server, with one connection.
fn client(
    link: Link,
    script: impl FnMut(&mut Peer<'_>, &[u8]) + 'static,
) -> (HostClient<SimNet>, SimNet) {
    client_with(one(), SimNet::new(1), link, script)
}

fn client_with(
    config: HostConfig,
    net: SimNet,
    link: Link,
    script: impl FnMut(&mut Peer<'_>, &[u8]) + 'static,
) -> (HostClient<SimNet>, SimNet) {
    net.listen(place(1), link, Script(script));
    let client = host_client(&net, config);
    (client, net)
}

/// What is sent at once is one segment.
fn wide() -> Link {
    Link {
        segment: usize::MAX..=usize::MAX,
        window: usize::MAX,
        ..Link::default()
    }
}

fn answer(id: &str, length: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nX-Id: {id}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), &vec![b'x'; length]].concat()
}

#[test]
fn a_second_answer_behind_a_body_of_any_size_never_answers_the_next_call() {
    // Sizes up to and above those at which reads end exactly with the body.
    let sizes = [0, 1, 16 * 1024 - 1, 16 * 1024, 64 * 1024, 200_000];
    let head = answer("1", 0).len();
    for length in sizes
        .into_iter()
        .chain(64 * 1024 - head - 9..=64 * 1024 - head)
    {
        let mut calls = 0;
        let (mut client, _) = client(wide(), move |peer, _| {
            calls += 1;
            peer.send(answer(&calls.to_string(), length));
            if calls == 1 {
                peer.send(answer("unsolicited", length));
            }
        });
        let mut response = Response::new();
        for id in ["1", "2"] {
            client.get("/", &mut response).unwrap();
            assert_eq!(response.header("X-Id"), Some(id.as_bytes()), "{length}");
            assert_eq!(response.body().len(), length);
        }
        // The first connection was not used again.
        assert_eq!(client.counters().opened, 2, "{length}");
    }
}

/// Behind an answer that must have no body, and before a request that must not be repeated, the client looks even if it
/// has just polled.
#[test]
fn bytes_that_came_after_the_last_poll_do_not_answer_the_next_call() {
    for [first, second] in [["HEAD", "GET"], ["HEAD", "POST"], ["GET", "POST"]] {
        let mut calls = 0;
        let (mut client, net) = client(wide(), move |peer, data| {
            calls += 1;
            let length = if data.starts_with(b"HEAD") { 0 } else { 2 };
            peer.send(&answer("own", 2)[..answer("own", 0).len() + length]);
            if calls == 1 {
                peer.wait(MS / 4);
                peer.send(answer("unsolicited", 2));
            }
        });
        let mut response = Response::new();
        client
            .call(&mut Request::new(first, "/"), &mut response)
            .unwrap();
        net.advance(MS / 2);
        client
            .call(&mut Request::new(second, "/"), &mut response)
            .unwrap();
        let id = response.header("X-Id");
        assert_eq!(id, Some(&b"own"[..]), "{first}, {second}");
        assert_eq!(client.counters().opened, 2);
    }
}

#[test]
fn without_any_connection_a_shortage_fails_the_call_after_a_second() {
    let config = HostConfig {
        breaker: Some(BreakerConfig {
            consecutive: Some(NonZeroU32::MIN),
            ..BreakerConfig::default()
        }),
        ..one()
    };
    let answering = |peer: &mut Peer<'_>, _: &[u8]| peer.send(answer("1", 5));
    let (mut client, net) = client_with(config, SimNet::new(1), Link::default(), answering);
    net.set_descriptors(0);
    let began = net.now();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    let none_left = Shortage::Descriptors { limit: Some(0) };
    assert_kind!(error, ErrorKind::Shortage(shortage) if *shortage == none_left);
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::Connect, Sent::Nothing)
    );
    assert_eq!(error.remote(), Some(&place(1)));
    let waited = net.now() - began;
    assert!((1000 * MS..1500 * MS).contains(&waited), "{waited:?}");
    assert!(net.calls() <= 20, "tried {} times", net.calls());
    // The host is not blamed.
    net.set_descriptors(1);
    client.get("/", &mut Response::new()).unwrap();
}

#[test]
fn calls_that_do_not_wait_learn_of_the_shortage() {
    let config = HostConfig {
        wait: WaitPolicy::FailFast,
        ..HostConfig::default()
    };
    let held = |_: &mut Peer<'_>, _: &[u8]| {};
    let (mut client, net) = client_with(config, SimNet::new(1), Link::default(), held);
    net.set_descriptors(1);
    client.submit(call("/").tag(1));
    client.submit(call("/").tag(2));
    let done = next(&mut client);
    let error = done.outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Shortage(_));
    assert_eq!(error.phase(), Phase::Queue);
}

#[test]
fn each_stall_ends_by_the_limit_of_its_phase() {
    let limits = Timeouts {
        total: None,
        queue: None,
        connect: Some(100 * MS),
        handshake: Some(150 * MS),
        write: Some(200 * MS),
        first_byte: Some(300 * MS),
        between_bytes: Some(400 * MS),
        ..Timeouts::none()
    };
    let cases: [(&str, TimeLimit, Phase, u32); 7] = [
        ("connect", TimeLimit::Connect, Phase::Connect, 100),
        ("handshake", TimeLimit::Handshake, Phase::Tls, 152),
        ("send", TimeLimit::Write, Phase::Send, 202),
        ("answer", TimeLimit::FirstByte, Phase::FirstByte, 302),
        ("head", TimeLimit::BetweenBytes, Phase::Head, 404),
        ("body", TimeLimit::BetweenBytes, Phase::Body, 404),
        // The limit is for each gap, not for the whole.
        ("slow body", TimeLimit::BetweenBytes, Phase::Body, 1004),
    ];
    for (silent, limit, phase, after) in cases {
        let mut link = Link {
            window: 1_000,
            ..Link::default()
        };
        if silent == "connect" {
            link.faults.black_hole = Probability::ALWAYS;
        }
        let config = HostConfig {
            timeouts: limits.clone(),
            ..one()
        };
        let net = SimNet::new(1);
        let server = move |peer: &mut Peer<'_>, _: &[u8]| match silent {
            "send" => peer.stop_reading(),
            "head" => peer.send("HTTP/1.1 200"),
            "body" => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
            "slow body" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
                for byte in ["a", "b"] {
                    peer.wait(300 * MS);
                    peer.send(byte);
                }
            }
            _ => {}
        };
        net.listen(place(1), link, Script(server));
        let upstream = match silent {
            "handshake" => upstream().with_tls("a.example"),
            _ => upstream(),
        };
        let mut client = HostClient::with_net(upstream, config, net.clone()).unwrap();
        let mut request = Request::new("PUT", "/");
        if silent == "send" {
            request.body(vec![0; 100_000]);
        }
        let began = net.now();
        let error = client.call(&mut request, &mut Response::new()).unwrap_err();
        assert_kind!(error, ErrorKind::Timeout(of) if *of == limit);
        assert_eq!(error.phase(), phase, "{silent}");
        let took = net.now() - began;
        let expected = after * MS..(after + 5) * MS;
        assert!(expected.contains(&took), "{silent}: {took:?}");
        assert_eq!(net.open_streams(), 0, "{silent}");
    }
}

fn at_most(max_connections: usize) -> Caps {
    Caps {
        max_connections: NonZeroUsize::new(max_connections),
        ..Caps::default()
    }
}

/// A client, with four connections, of a server that answers after 100 ms.
fn slow() -> (HostClient<SimNet>, SimNet) {
    let config = HostConfig {
        max_connections: NonZeroUsize::new(4).unwrap(),
        ..HostConfig::default()
    };
    client_with(config, SimNet::new(1), Link::default(), |peer, _| {
        peer.wait(100 * MS);
        peer.send(answer("1", 5));
    })
}

fn submit(client: &mut HostClient<SimNet>, count: usize) {
    for _ in 0..count {
        client.submit(call("/"));
    }
}

#[test]
fn connections_above_a_lowered_limit_end() {
    let (mut client, net) = slow();
    submit(&mut client, 4);
    assert!(client.wait(Some(10 * MS)).unwrap().done().is_none());
    assert_eq!((net.open_streams(), client.counters().busy), (4, 4));
    // Busy ones serve their calls, and no other ones.
    client.set_caps(&at_most(1)).unwrap();
    submit(&mut client, 3);
    let ended = rest(&mut client);
    assert!(ended.iter().all(|done| done.outcome.is_ok()));
    assert_eq!((ended.len(), net.open_streams()), (7, 1));
    assert_eq!(client.counters().opened, 4);
    // Idle ones end at once.
    client.set_caps(&at_most(4)).unwrap();
    submit(&mut client, 4);
    rest(&mut client);
    assert_eq!((net.open_streams(), client.counters().idle), (4, 4));
    client.set_caps(&at_most(2)).unwrap();
    assert_eq!((net.open_streams(), client.counters().idle), (2, 2));
}

#[test]
fn the_number_of_waiting_calls_can_be_changed() {
    let (mut client, _) = slow();
    let none = Caps {
        max_waiting: Some(0),
        ..at_most(1)
    };
    client.set_caps(&none).unwrap();
    submit(&mut client, 2);
    let refused = next(&mut client).outcome.unwrap_err();
    assert_kind!(refused, ErrorKind::Limit(LimitExceeded::Waiting(0)));
    next(&mut client).outcome.unwrap();
    let total = Caps {
        total_connections: NonZeroUsize::new(1),
        ..Caps::default()
    };
    let error = client.set_caps(&total).unwrap_err();
    assert_kind!(
        error,
        ErrorKind::Misuse(Misuse::Unsupported("total_connections"))
    );
}

fn connecting_within(connect: Option<Duration>) -> Timeouts {
    Timeouts {
        connect,
        ..Timeouts::none()
    }
}

/// The trap: the error of one call's limit goes to another call, or to all.
#[test]
fn a_limit_of_a_call_ends_the_connection_that_is_opened_for_it_and_no_other() {
    let config = HostConfig {
        timeouts: connecting_within(Some(500 * MS)),
        ..HostConfig::default()
    };
    let (mut client, net) = client_with(config, SimNet::new(1), silent(), |_, _| {});
    let call = |tag| call("/").tag(tag);
    let within = |tag, ms: u32| call(tag).timeouts(connecting_within(Some(ms * MS)));
    client.submit(call(500));
    client.submit(within(100, 100));
    client.submit(within(900, 900));
    client.submit(call(501));
    client.submit(within(300, 300));
    let began = net.now();
    let mut ended = Vec::new();
    while let Some(done) = client.wait(None).unwrap().done() {
        let error = done.outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Timeout(TimeLimit::Connect));
        assert_eq!(error.phase(), Phase::Connect);
        ended.push((done.tag, (net.now() - began).as_millis()));
    }
    let expected = [(100, 100), (300, 300), (500, 500), (501, 500), (900, 900)];
    assert_eq!(ended, expected);
    assert_eq!((net.open_streams(), client.counters().open), (0, 0));
}

/// A connection that was opened for a call that is gone serves others, but not beyond the limit of that call.
#[test]
fn a_limit_of_a_call_that_is_gone_ends_no_other_call() {
    let config = HostConfig {
        timeouts: connecting_within(Some(500 * MS)),
        ..one()
    };
    let (mut client, net) = client_with(config, SimNet::new(1), silent(), |_, _| {});
    let call = || call("/");
    let gone = client.submit(call().timeouts(connecting_within(Some(100 * MS))));
    client.submit(call());
    let began = net.now();
    assert!(client.wait(Some(10 * MS)).unwrap().done().is_none());
    assert!(client.cancel(gone));
    let cancelled = next(&mut client);
    assert_eq!(cancelled.id, gone);
    let done = next(&mut client);
    assert!(done.outcome.unwrap_err().is_timeout());
    assert_eq!(net.now() - began, 600 * MS);
    assert_eq!((net.open_streams(), client.counters().open), (0, 0));
}

#[test]
fn a_call_whose_time_ran_out_while_the_caller_was_busy_is_not_sent() {
    let (mut client, net) = client(Link::default(), |_, _| panic!("nothing is sent"));
    client.submit(Call::new(Request::post("/", "x"), Response::new()).timeout(10 * MS));
    // Begun; the connection is being opened.
    assert!(client.wait(Some(Duration::ZERO)).unwrap().done().is_none());
    net.advance(100 * MS);
    let done = next(&mut client);
    let error = done.outcome.unwrap_err();
    assert!(
        error.is_timeout() && error.sent() == Sent::Nothing,
        "{error:?}"
    );
    client.maintain(100 * MS).unwrap();
}

fn pipeline(
    net: &SimNet,
    script: impl FnMut(&mut Peer<'_>, &[u8]) + 'static,
) -> PipelineClient<SimNet> {
    net.listen(place(1), wide(), Script(script));
    let config = PipelineConfig {
        host: one(),
        ..PipelineConfig::default()
    };
    PipelineClient::with_net(upstream(), config, net.clone()).unwrap()
}

#[test]
fn an_answer_that_nobody_waits_for_is_awaited_for_5_s_once_it_is_next() {
    let net = SimNet::new(1);
    let mut is_first = true;
    let mut client = pipeline(&net, move |peer, data| {
        if std::mem::replace(&mut is_first, false) {
            // Only the first request.
            peer.wait(1000 * MS);
            return peer.send(answer("a", 0));
        }
        for _ in data.windows(4).filter(|end| *end == b"\r\n\r\n") {
            peer.send(answer("c", 0));
        }
    });
    let began = net.now();
    let mut ids = Vec::new();
    for (tag, target) in [(1, "/a"), (2, "/b"), (3, "/c")] {
        ids.push(client.submit(call(target).tag(tag)));
    }
    assert!(client.wait(Some(500 * MS)).unwrap().done().is_none());
    assert!(client.cancel(ids[1]));
    let mut last = None;
    while let Some(done) = client.wait(None).unwrap().done() {
        assert_eq!(done.outcome.is_ok(), done.tag != 2);
        last = Some(done.tag);
    }
    assert_eq!(last, Some(3));
    let took = net.now() - began;
    assert!((6000 * MS..6100 * MS).contains(&took), "{took:?}");
}

/// As gunicorn with threads: of the requests that arrive together, only the first one is answered.
#[test]
fn a_server_that_forgets_requests_gets_one_at_a_time() {
    let net = SimNet::new(1);
    let mut client = pipeline(&net, |peer, _| peer.send(answer("a", 0)));
    let run = |client: &mut PipelineClient<SimNet>| {
        for tag in 0..4 {
            let call = call("/a");
            client.submit(call.tag(tag).timeout(1000 * MS));
        }
        let mut ended = rest(client);
        // Those that have given up in the queue, too.
        assert!(ended.iter().all(|done| done.report.bytes_out() > 0));
        ended.retain(|done| done.outcome.is_ok());
        ended.iter().map(|done| done.tag).collect::<Vec<_>>()
    };
    assert_eq!(run(&mut client), [0]);
    // The client waits for the late answers before it judges.
    client.maintain(6000 * MS).unwrap();
    assert!(client.pipeline_counters().serial);
    assert_eq!(run(&mut client), [0, 1, 2, 3]);
}

/// The requests behind a HEAD are not answered by the body that its answer has and must not have.
#[test]
fn a_body_behind_a_pipelined_head_is_nobodys() {
    for pause in [0, 10] {
        let net = SimNet::new(1);
        let mut client = pipeline(&net, move |peer, data| {
            let text = String::from_utf8_lossy(data);
            for line in text.lines().filter(|line| line.ends_with(" HTTP/1.1")) {
                if line.starts_with("HEAD ") {
                    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
                    peer.wait(pause * MS);
                    peer.send("body");
                } else {
                    peer.send(answer("a", 0));
                }
            }
        });
        for (tag, method) in ["HEAD", "GET", "GET"].into_iter().enumerate() {
            let call = Call::new(Request::new(method, "/"), Response::new());
            client.submit(call.tag(tag as u64));
        }
        let ended = rest(&mut client);
        assert_eq!(ended.len(), 3);
        for done in ended {
            done.outcome.unwrap();
            assert_eq!(done.response.header("x-id").is_some(), done.tag > 0);
        }
        assert!(client.pipeline_counters().serial, "{pause}");
    }
}

/// One answer too many ends the connection, whether it comes with the last answer or after it.
#[test]
fn a_surplus_answer_in_a_pipeline_is_nobodys() {
    for pause in [0, 10] {
        let net = SimNet::new(1);
        let mut is_first = true;
        let mut client = pipeline(&net, move |peer, data| {
            for _ in data.windows(4).filter(|end| *end == b"\r\n\r\n") {
                peer.send(answer("own", 0));
            }
            if std::mem::take(&mut is_first) {
                peer.wait(pause * MS);
                peer.send(answer("surplus", 0));
            }
        });
        for opened in [1, 2] {
            for _ in 0..3 {
                client.submit(call("/"));
            }
            let ended = rest(&mut client);
            assert_eq!(ended.len(), 3);
            for done in ended {
                done.outcome.unwrap();
                assert_eq!(done.response.header("x-id"), Some(&b"own"[..]));
            }
            client.maintain(20 * MS).unwrap();
            assert_eq!(client.counters().opened, opened, "{pause}");
            assert_eq!(net.open_streams(), opened as usize - 1, "{pause}");
        }
    }
}

/// The call's own limit, or the host's: sending may take longer than the calls after it.
#[test]
fn a_pipelined_call_keeps_a_short_limit() {
    let impatient = Timeouts {
        first_byte: Some(50 * MS),
        ..Timeouts::default()
    };
    for own in [true, false] {
        let net = SimNet::new(1);
        net.listen(place(1), wide(), Script(|_: &mut Peer<'_>, _: &[u8]| {}));
        let mut config = PipelineConfig::default();
        let mut call = call("/");
        match own {
            true => call = call.timeouts(impatient.clone()),
            false => config.host.timeouts = impatient.clone(),
        }
        let mut client = PipelineClient::with_net(upstream(), config, net.clone()).unwrap();
        let began = net.now();
        let error = HttpClient::perform(&mut client, call).outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Timeout(TimeLimit::FirstByte));
        let took = net.now() - began;
        assert!(took <= 60 * MS, "{took:?}, its own: {own}");
    }
}

/// Answers each request at once.
fn answer_each(peer: &mut Peer<'_>, data: &[u8]) {
    for _ in data.windows(4).filter(|end| *end == b"\r\n\r\n") {
        peer.send(answer("a", 5));
    }
}

fn pipeline_with(change: impl FnOnce(&mut PipelineConfig)) -> (PipelineClient<SimNet>, SimNet) {
    let net = SimNet::new(1);
    net.listen(place(1), wide(), Script(answer_each));
    let mut config = PipelineConfig {
        host: one(),
        ..PipelineConfig::default()
    };
    change(&mut config);
    let client = PipelineClient::with_net(upstream(), config, net.clone()).unwrap();
    (client, net)
}

#[test]
fn pending_calls_above_the_limit_wait_or_fail() {
    for (overflow, refused) in [
        (Overflow::Wait, &[][..]),
        (Overflow::RefuseNewest, &[5, 6, 7]),
        (Overflow::DropOldestUnsent, &[0, 1, 2]),
    ] {
        let (mut client, _) = pipeline_with(|config| {
            config.max_pending = NonZeroUsize::new(2).unwrap();
            config.max_pending_total = NonZeroUsize::new(5).unwrap();
            config.overflow = overflow;
        });
        for tag in 0..8 {
            client.submit(call("/").tag(tag));
        }
        let mut failed = Vec::new();
        while let Some(done) = client.wait(None).unwrap().done() {
            if let Err(error) = done.outcome {
                assert_kind!(error, ErrorKind::Limit(LimitExceeded::Pending(5)));
                assert_eq!(error.sent(), Sent::Nothing);
                failed.push(done.tag);
            }
        }
        failed.sort_unstable();
        assert_eq!(failed, refused);
    }
}

#[test]
fn a_delay_gathers_what_is_submitted_meanwhile() {
    let (mut client, net) =
        pipeline_with(|config| config.max_batch_delay = Duration::from_secs(3600));
    let began = net.now();
    client.submit(call("/"));
    assert!(client.wait(Some(1000 * MS)).unwrap().done().is_none());
    // So much that it does not wait for more.
    let mut large = Request::new("PUT", "/");
    large.body(vec![b'x'; 20_000]);
    client.submit(Call::new(large, Response::new()));
    for _ in 0..2 {
        next(&mut client).outcome.unwrap();
    }
    assert!(net.now() - began < 1100 * MS);
}

#[test]
fn one_calls_limits_and_codings_are_its_own_in_a_pipeline() {
    let (mut client, _) = pipeline_with(|_| ());
    let tight = Limits {
        body_bytes: Some(3),
        ..Limits::default()
    };
    let mut coded = Request::get("/");
    coded.decode(Codings::all());
    client.submit(call("/"));
    client.submit(call("/").tag(1).limits(tight));
    client.submit(Call::new(coded, Response::new()).tag(2));
    let mut sent = [0; 3];
    while let Some(done) = client.wait(None).unwrap().done() {
        sent[done.tag as usize] = done.report.bytes_out();
        // The connection of the failed call is gone; the call behind it was sent again.
        match done.outcome {
            Ok(()) => assert_ne!(done.tag, 1),
            Err(error) => assert_kind!(error, ErrorKind::Limit(LimitExceeded::BodyBytes(3))),
        }
    }
    assert!(sent[2] > 2 * sent[0], "{sent:?}");
    assert_eq!(client.counters().opened, 2);
}

#[test]
fn what_would_hold_up_others_is_not_pipelined() {
    let (mut client, net) = pipeline_with(|_| ());
    let mut stream = Request::new("POST", "/");
    stream.body_stream(std::io::Cursor::new(b"x"), None);
    let mut expect = Request::post("/", "x");
    expect.expect_continue(1000 * MS);
    let mut upgrade = Request::get("/");
    upgrade.add_header("Upgrade", "x");
    let connect = Request::new("CONNECT", "h:1");
    let mut response = Response::new();
    for mut request in [stream, expect, upgrade, connect] {
        let error = client.call(&mut request, &mut response).unwrap_err();
        assert_kind!(error, ErrorKind::Misuse(Misuse::NotPipelined(_)));
    }
    let opened = client.open(&mut Request::get("/"), &mut response);
    assert_kind!(
        opened.err().unwrap(),
        ErrorKind::Misuse(Misuse::NotPipelined(_))
    );
    assert_eq!(net.peak_streams(), 0);
}

/// That these options reach the pool. What it does with them is in `engine/src/policy/pool/tests.rs`, beside a model.
#[test]
fn requests_of_a_connection_and_the_servers_idle_time_are_limited() {
    let config = HostConfig {
        max_requests: NonZeroU64::new(3),
        idle_timeout: Duration::from_secs(3600),
        ..one()
    };
    let hinting = |peer: &mut Peer<'_>, _: &[u8]| {
        peer.send("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n");
    };
    let (mut client, _) = client_with(config, SimNet::new(1), Link::default(), hinting);
    for _ in 0..7 {
        client.get("/", &mut Response::new()).unwrap();
    }
    assert_eq!((client.counters().opened, client.counters().idle), (3, 1));
    client.maintain(5000 * MS).unwrap();
    assert_eq!(client.counters().idle, 0);
}

/// How long it had been idle, and whether the server still wanted it, is as unknown as after a call.
#[test]
fn an_idle_connection_that_has_not_served_yet_is_retried_like_a_reused_one() {
    let config = HostConfig {
        min_idle: 1,
        ..HostConfig::default()
    };
    let mut is_first = true;
    let closing_once =
        move |peer: &mut Peer<'_>, data: &[u8]| match std::mem::replace(&mut is_first, false) {
            true => peer.close(),
            false => answer_each(peer, data),
        };
    let (mut client, _) = client_with(config, SimNet::new(1), Link::default(), closing_once);
    client.maintain(100 * MS).unwrap();
    assert_eq!(client.counters().idle, 1);
    let report = client.get("/", &mut Response::new()).unwrap();
    assert_eq!(report.attempts(), 2);
}
