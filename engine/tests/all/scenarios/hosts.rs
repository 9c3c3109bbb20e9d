//! Single scenarios with many hosts: names that are slow, wrong or unanswered, races of addresses, and the connection
//! limit that hosts share. Times are exact.
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use courser::net::sim::{Link, Peer, ScriptedAnswer, SimNet};
use courser::{
    AddressPolicy, Answer, Caps, Client, Config, ErrorKind, HostConfig, Proxies, Response,
};

use super::{MS, Script, call, client_of, hear, ip, near, place, rest};

fn ok(peer: &mut Peer<'_>, _: &[u8]) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

fn caps(host: usize, total: usize) -> Config {
    let cap = |n| NonZeroUsize::new(n).unwrap();
    Config {
        max_connections: cap(total),
        host: HostConfig {
            max_connections: cap(host),
            ..HostConfig::default()
        },
        ..Config::default()
    }
}

/// The trap: a connection to a private address is open already, for calls that may use it.
#[test]
fn calls_with_an_address_policy_of_their_own_share_no_connection_with_others() {
    let net = SimNet::new(1);
    net.listen(place(1), Link::default(), Script(ok));
    let mut client = client_of(&net, Config::default());
    client.get("http://1.sim/", &mut Response::new()).unwrap();
    let mut run = |allowed: &Arc<AddressPolicy>| {
        client.perform(call("http://1.sim/").addresses(Arc::clone(allowed)))
    };
    let public = Arc::new(AddressPolicy::deny_private());
    for _ in 0..2 {
        let error = run(&public).outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Denied(denied) if *denied == ip(1));
    }
    let all = Arc::new(AddressPolicy::allow_all());
    assert_eq!(
        [(); 3].map(|()| run(&all).report.reused()),
        [false, true, true]
    );
    assert!(!run(&Arc::new(AddressPolicy::allow_all())).report.reused());
}

/// The trap: connections above a lowered total stay open as long as their hosts have calls.
#[test]
fn connections_above_a_lowered_total_end() {
    let net = SimNet::new(1);
    for n in 1..=3 {
        net.listen(place(n), Link::default(), Script(ok));
    }
    let mut client = client_of(&net, caps(4, 8));
    let get = |client: &mut Client<SimNet>, n: u8| {
        client.submit(call(format!("http://{n}.sim/")));
    };
    let finish = |client: &mut Client<SimNet>| {
        assert!(rest(client).iter().all(|done| done.outcome.is_ok()));
    };
    for n in [1, 1, 2, 3] {
        get(&mut client, n);
    }
    finish(&mut client);
    assert_eq!((net.open_streams(), client.counters().idle), (4, 4));
    let total = |n| Caps {
        total_connections: NonZeroUsize::new(n),
        ..Caps::default()
    };
    client.set_caps(&total(3)).unwrap();
    assert_eq!((net.open_streams(), client.counters().idle), (3, 3));
    // Busy ones end after their answers.
    for n in [1, 2, 3] {
        get(&mut client, n);
    }
    assert!(client.wait(Some(Duration::ZERO)).unwrap().done().is_none());
    client.set_caps(&total(1)).unwrap();
    finish(&mut client);
    assert_eq!((net.open_streams(), client.counters().open), (1, 1));
}

#[test]
fn unused_hosts_are_forgotten() {
    let net = SimNet::new(1);
    net.listen(place(1), Link::default(), Script(ok));
    let resolver = net.resolver(|_, _| {
        ScriptedAnswer::After(Duration::ZERO, Answer::found([ip(1)], Duration::ZERO))
    });
    let mut config = caps(4, 4);
    config.host.dns.max_entries = NonZeroUsize::new(100).unwrap();
    let mut client = Client::with_net(config, net.clone(), resolver).unwrap();
    // Only for a while are hosts kept, and not each one that was ever used.
    let mut most = 0;
    for n in 0..2000 {
        client
            .get(&format!("http://host{n}.sim/"), &mut Response::new())
            .unwrap();
        most = most.max(client.hosts());
    }
    assert!((1000..1100).contains(&most), "{most}");
    assert!(client.dns_counters().entries <= 100);
    client.maintain(15_000 * MS).unwrap();
    client.maintain(Duration::ZERO).unwrap();
    assert_eq!(
        (client.hosts(), client.counters().open, net.open_streams()),
        (0, 0, 0)
    );
}

#[test]
fn only_https_if_the_client_allows_nothing_else() {
    let net = SimNet::new(1);
    let mut config = caps(2, 2);
    config.https_only = true;
    let mut client = client_of(&net, config);
    let error = client
        .get("http://u:secret@1.sim/x", &mut Response::new())
        .unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.contains("only https is allowed") && !shown.contains("secret"),
        "{shown}"
    );
    assert_eq!(net.peak_streams(), 0);
    // Without a server, the call fails as it would without the option.
    let error = client
        .get("https://1.sim/x", &mut Response::new())
        .unwrap_err();
    assert!(error.is_connect(), "{error}");
}

#[test]
fn a_client_waits_without_calls_until_it_is_woken() {
    let net = SimNet::new(1);
    net.listen(place(1), Link::default(), Script(ok));
    let mut config = Config::default();
    config.host.idle_timeout = Duration::from_secs(3600);
    let mut client = client_of(&net, config);
    let (began, minute) = (client.now(), Duration::from_secs(60));
    let waited = client.wait_or_wake(Some(minute)).expect("it waits");
    assert!(waited.is_none());
    assert_eq!(client.now() - began, minute);
    // A wake-up before the wait is not lost, even when idle connections are looked after first.
    client.get("http://1.sim/", &mut Response::new()).unwrap();
    net.advance(minute);
    let began = client.now();
    client.waker().expect("a waker").wake();
    let woken = client.wait_or_wake(Some(minute)).expect("it waits");
    assert!(woken.is_none());
    assert_eq!(client.now(), began);
    // Nobody listens there.
    client.submit(call("http://10.0.0.2/").tag(7));
    let done = client.wait_or_wake(Some(minute)).expect("it waits");
    assert_eq!(done.expect("a completion").tag, 7);
}

/// The remote address is the server's, never the proxy's: for the first call of a connection, and for the next.
#[test]
fn a_report_tells_the_server_from_the_proxy() {
    let net = SimNet::new(1);
    net.listen(
        place(9),
        near(),
        Script(|peer: &mut Peer<'_>, data: &[u8]| match data {
            [5, methods, rest @ ..] if rest.len() == usize::from(*methods) => peer.send([5, 0]),
            [5, ..] => peer.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
            _ => ok(peer, data),
        }),
    );
    net.listen(place(1), Link::default(), Script(ok));
    for (proxy, remote, via) in [
        (None, Some(place(1)), None),
        (Some("http://9.sim:80"), None, Some(place(9))),
        (Some("socks5h://9.sim:80"), None, Some(place(9))),
        (Some("socks5://9.sim:80"), Some(place(1)), Some(place(9))),
    ] {
        let proxies = proxy.map_or_else(Proxies::none, |url| Proxies::all(url.parse().unwrap()));
        let config = Config {
            proxies,
            ..Config::default()
        };
        let mut client = client_of(&net, config);
        for _ in 0..2 {
            let report = client.get("http://1.sim/", &mut Response::new()).unwrap();
            let told = (report.remote(), report.proxy());
            assert_eq!(told, (remote.clone(), via.clone()), "{proxy:?}");
            let proxy = format!("proxy: {:?}", via.as_ref().map(ToString::to_string));
            assert!(format!("{report:?}").contains(&proxy), "{report:?}");
            assert!(report.local().is_some());
        }
    }
}

#[test]
fn an_error_of_a_streamed_body_says_where_it_happened() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi");
        peer.close();
    });
    let mut client = client_of(&net, Config::default());
    let (done, body) = client.open_call(call("http://me:secret@1.sim/a?b"));
    assert_eq!(done.response.url(), Some("http://me:secret@1.sim/a?b"));
    let error = body.unwrap().finish().unwrap_err();
    assert!(error.is_body() && error.place() == Some("http://1.sim/a?b"));
    // Nobody listens there.
    let (done, body) = client.open_call(call("http://2.sim/"));
    assert!(body.is_none() && done.outcome.unwrap_err().is_connect());
    assert_eq!(done.report.attempts(), 1);
}
