//! Proxies over real sockets: exact bytes to the proxy and to the origin behind it, proxies that close at each step, and
//! which requests go through which proxy. Every answer at every cut is in `engine/src/proto/{tunnel,socks}.rs`; proxies
//! that stall are in `engine/tests/sim`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::error::{DnsError, TlsFault};
use courser::proto::{ProxyFault, SocksReply};
use courser::{
    AddressPolicy, Call, Client, Config, ErrorKind, Observer, ObserverEvent, Phase, Proxies,
    Report, Request, Response, Sent, TlsConfig,
};
use tests::clients::{any_config, assert_none_left, named_client, run, saying};
use tests::script::{Script, Server, connection};
use tests::tls::{Acceptor, Authority};

use super::OK;

const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";
/// `user:secret` in Basic.
const BASIC: &str = "Basic dXNlcjpzZWNyZXQ=";

fn config(proxies: Proxies) -> Config {
    let mut config = Config {
        proxies,
        ..any_config()
    };
    config.host.user_agent = Some("test".to_owned());
    config
}

fn all(scheme: &str, proxy: &Server) -> Proxies {
    Proxies::all(format!("{scheme}://{}", proxy.address()).parse().unwrap())
}

/// A client with these proxies, whose TLS configuration for servers is `tls`.
fn client(proxies: Proxies, tls: TlsConfig) -> Client {
    let mut config = config(proxies);
    config.host.tls = tls;
    named_client(config, saying(&[]))
}

fn origin() -> (Authority, Acceptor) {
    let authority = Authority::new("authority");
    let acceptor = authority.leaf(&["a.example", "127.0.0.1"]).acceptor();
    (authority, acceptor)
}

fn get(client: &mut Client, url: &str) -> Report {
    let mut response = Response::new();
    let report = client.get(url, &mut response).unwrap();
    assert_eq!((response.status(), response.body()), (200, &b"ok"[..]));
    report
}

fn error(client: &mut Client, url: &str) -> courser::Error {
    client.get(url, &mut Response::new()).unwrap_err()
}

// ---- HTTP proxies

/// A proxy gets neither the name of the server nor the certificate for servers, even if it asks.
#[test]
fn a_proxy_is_shown_neither_the_servers_name_nor_our_certificate() {
    let (authority, clients) = (Authority::new("authority"), Authority::new("clients"));
    let own = authority.leaf(&["127.0.0.1"]).acceptor_asking(&clients);
    let origin = authority.leaf(&["hidden.example"]);
    let origin = origin.acceptor_demanding(&clients);
    let tunnel = connection().tls(&own).request().send(ESTABLISHED);
    let proxy = Server::play([
        tunnel.tls(&origin).always(OK),
        connection().tls(&own).always(OK),
    ]);
    let tls = TlsConfig {
        server_name: Some("hidden.example".into()),
        client: Some(clients.leaf(&["me"]).for_client()),
        ..authority.trusted()
    };
    let mut client = client(all("https", &proxy), tls);
    get(&mut client, "https://a.example/");
    get(&mut client, "http://a.example/");
    let seen: Vec<_> = proxy
        .sessions()
        .into_iter()
        .map(|session| (session.server_name, session.client_certificates))
        .collect();
    let hidden = Some("hidden.example".to_owned());
    assert_eq!(seen, [(None, 0), (hidden, 1), (None, 0)]);
    assert_none_left(client, [&proxy]);
}

/// The authorities for proxies are not trusted for servers, and the other way round.
#[test]
fn a_proxy_has_a_tls_configuration_of_its_own() {
    let (authority, origin) = origin();
    let company = Authority::new("company");
    let own = company.leaf(&["127.0.0.1"]).acceptor();
    let start = || {
        let tunnel = connection().tls(&own).request().send(ESTABLISHED);
        Server::play([tunnel.tls(&origin).always(OK)])
    };
    let client = |proxy: &Server, tls, proxy_tls| {
        let mut config = config(all("https", proxy));
        config.host.tls = tls;
        config.proxy_tls = proxy_tls;
        named_client(config, saying(&[]))
    };
    for proxy_tls in [company.trusted(), insecure()] {
        let proxy = start();
        let mut client = client(&proxy, authority.trusted(), Some(proxy_tls));
        get(&mut client, "https://a.example/");
        assert_none_left(client, [&proxy]);
    }
    for (tls, proxy_tls, phase) in [
        (authority.trusted(), None, Phase::Proxy),
        (insecure(), Some(authority.trusted()), Phase::Proxy),
        (company.trusted(), Some(company.trusted()), Phase::Tls),
        (company.trusted(), Some(insecure()), Phase::Tls),
    ] {
        let proxy = start();
        let mut client = client(&proxy, tls, proxy_tls);
        let error = error(&mut client, "https://a.example/");
        assert_kind!(error, ErrorKind::Tls(TlsFault::UnknownIssuer));
        assert_eq!(error.phase(), phase);
        assert_none_left(client, [&proxy]);
    }
}

/// A proxy's headers and a caller's `Proxy-Authorization` are for the proxy alone.
#[test]
fn headers_for_the_proxy() {
    let (authority, acceptor) = origin();
    let tunnel = connection().request().send(ESTABLISHED);
    let proxy = Server::play([tunnel.tls(&acceptor).always(OK), connection().always(OK)]);
    let text = format!("http://user:secret@{}", proxy.address());
    let own: courser::Proxy = text.parse().unwrap();
    let own = own.with_header("X-Team", "crawl").unwrap();
    let own = own.with_header("User-Agent", "other").unwrap();
    let mut client = client(Proxies::all(own), authority.trusted());
    for url in ["https://a.example/", "http://a.example/"] {
        let mut request = Request::get(url);
        request
            .add_header("Proxy-Authorization", "own")
            .add_header("X-A", "b");
        client.call(&mut request, &mut Response::new()).unwrap();
    }
    get(&mut client, "http://a.example/");
    let head = |line: &str, rest: &str| format!("{line} HTTP/1.1\r\nHost: a.example{rest}\r\n\r\n");
    let basic = format!("Proxy-Authorization: {BASIC}");
    let heads: Vec<_> = proxy.requests().iter().map(|r| r.head()).collect();
    assert_eq!(
        heads,
        [
            head(
                "CONNECT a.example:443",
                &format!(":443\r\nUser-Agent: other\r\nX-Team: crawl\r\n{basic}"),
            ),
            head("GET /", "\r\nUser-Agent: test\r\nX-A: b"),
            head(
                "GET http://a.example/",
                "\r\nUser-Agent: test\r\nX-Team: crawl\r\nProxy-Authorization: own\r\nX-A: b",
            ),
            head(
                "GET http://a.example/",
                &format!("\r\nUser-Agent: test\r\n{basic}\r\nX-Team: crawl"),
            ),
        ]
    );
    assert_none_left(client, [&proxy]);
}

/// The client or the call chooses the proxies. The URL leads to its server directly, by a tunnel or through SOCKS.
#[test]
fn proxy_authorization_reaches_no_server_by_any_way() {
    let server = Server::every(connection().always(OK));
    let url = format!("http://{}/", server.address());
    let tunnel = connection().request().send(ESTABLISHED);
    let tunnels = Server::every(tunnel.always(OK));
    let asked = Server::every(socks(10, 0).always(OK));
    let text = format!("http://user:secret@{}", tunnels.address());
    let proxy: courser::Proxy = text.parse().unwrap();
    let proxy = proxy.without_credentials().with_tunnels();
    let excepted = all("http", &asked).except("127.0.0.0/8");
    for (way, proxies, reached) in [
        ("excepted", excepted, &server),
        ("tunnelled", Proxies::all(proxy), &tunnels),
        ("socks5h", all("socks5h", &asked), &asked),
    ] {
        for by_call in [false, true] {
            let mut request = Request::get(&url);
            request
                .add_header("Proxy-Authorization", "Basic own")
                .add_header("X-Other", "stays");
            let call = Call::new(request, Response::new());
            let (of_client, call) = match by_call {
                true => (Proxies::none(), call.proxies(proxies.clone())),
                false => (proxies.clone(), call),
            };
            let mut client = client(of_client, TlsConfig::default());
            run(&mut client, [call]).remove(0).outcome.unwrap();
            let seen = reached.requests().pop().unwrap();
            assert_eq!(seen.header("x-other"), ["stays"], "{way}");
            let told = seen.header("proxy-authorization");
            assert!(told.is_empty(), "{way}, by the call: {by_call}");
        }
    }
    let heads: String = tunnels.requests().iter().map(|r| r.head()).collect();
    assert!(!heads.contains(BASIC), "{heads}");
    // Without proxies it is the caller's header, as in a request that is made for a proxy by hand.
    let mut request = Request::get(&url);
    request.add_header("Proxy-Authorization", "own");
    let mut client = client(Proxies::none(), TlsConfig::default());
    client.call(&mut request, &mut Response::new()).unwrap();
    let seen = server.requests().pop().unwrap();
    assert_eq!(seen.header("proxy-authorization"), ["own"]);
}

#[test]
fn http_goes_through_a_tunnel_when_it_must_or_may() {
    let script = || connection().request().send(ESTABLISHED).always(OK);
    let cases = [
        (Some(("b.example", Some(81))), false, "CONNECT b.example:81"),
        (Some(("", Some(81))), false, "CONNECT a.example:81"),
        (Some(("B.example", None)), false, "CONNECT B.example:80"),
        (Some(("::1", None)), false, "CONNECT [::1]:80"),
        (Some(("[::1]", None)), false, "CONNECT [::1]:80"),
        (None, true, "CONNECT a.example:80"),
        // To where it goes anyway.
        (Some(("A.example", Some(80))), false, ""),
    ];
    for (to, tunnels, connect) in cases {
        let proxy = match connect {
            "" => Server::play([connection().always(OK)]),
            _ => Server::play([script()]),
        };
        let url = format!("http://user:secret@{}", proxy.address());
        let mut own: courser::Proxy = url.parse().unwrap();
        if tunnels {
            own = own.with_tunnels();
        }
        let mut config = config(Proxies::all(own));
        let route = |(host, port): (&str, _)| courser::Route {
            host: "a.example".into(),
            ..courser::Route::all(courser::Destination::Host {
                host: host.into(),
                port,
            })
        };
        config.routes = to.into_iter().map(route).collect();
        let mut client = named_client(config, saying(&[]));
        get(&mut client, "http://a.example/x");
        let lines = proxy.lines();
        match connect {
            "" => assert_eq!(lines, ["GET http://a.example/x HTTP/1.1"]),
            connect => {
                assert_eq!(lines, [&format!("{connect} HTTP/1.1"), "GET /x HTTP/1.1"]);
                let inside = &proxy.requests()[1];
                assert_eq!(inside.header("host"), ["a.example"]);
                assert!(inside.header("proxy-authorization").is_empty());
            }
        }
        assert_none_left(client, [&proxy]);
    }
}

/// What is said about a tunnel is told when it is said, also by a proxy that refuses.
#[test]
fn tunnels_are_observed() {
    let (authority, acceptor) = origin();
    let refusal = "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno";
    for (reply, shown) in [
        (ESTABLISHED, ESTABLISHED),
        (refusal, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n"),
    ] {
        let script = connection().request().send(reply);
        let proxy = Server::play([script.tls(&acceptor).always(OK)]);
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let address = courser::Address::from(proxy.address());
        let mut config = config(all("http", &proxy));
        config.host.tls = authority.trusted();
        config.host.observer = Some(Observer::new(move |event| {
            let line = match event {
                ObserverEvent::Connected { .. } => "connected".into(),
                ObserverEvent::Tunnelling { remote, head } => {
                    assert_eq!(**remote, address);
                    String::from_utf8_lossy(head).into_owned()
                }
                ObserverEvent::TunnelAnswered { status, head, .. } => {
                    format!("{status} {}", String::from_utf8_lossy(head))
                }
                ObserverEvent::Ready { .. } => "ready".into(),
                ObserverEvent::ConnectFailed { .. } => "failed".into(),
                _ => return,
            };
            tell.lock().unwrap().push(line);
        }));
        let mut client = named_client(config, saying(&[]));
        let outcome = client.get("https://a.example/", &mut Response::new());
        assert_eq!(outcome.is_ok(), reply == ESTABLISHED);
        if let Ok(report) = &outcome {
            let answer = (report.proxy_status(), report.proxy_head());
            assert_eq!(answer, (Some(200), Some(ESTABLISHED.as_bytes())));
        }
        let host = "a.example:443";
        let connect =
            format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: test\r\n\r\n");
        let end = if outcome.is_ok() { "ready" } else { "failed" };
        let answer = format!("{} {shown}", &shown[9..12]);
        let expected = ["connected", &connect, &answer, end];
        assert_eq!(*told.lock().unwrap(), expected);
        assert_none_left(client, [&proxy]);
    }
}

// ---- SOCKS5

/// Greeting with no authentication, a request of that many bytes, and a reply with this code.
fn socks(request: usize, code: u8) -> Script {
    let reply = [5, code, 0, 1, 0, 0, 0, 0, 0, 0];
    connection().take(3).send([5, 0]).take(request).send(reply)
}

#[test]
fn socks5_is_told_an_address_and_socks5h_a_name() {
    let by_name = [&[5, 1, 0, 3, 9][..], b"a.example", &[0, 80]].concat();
    let by_address = vec![5, 1, 0, 1, 192, 0, 2, 7, 0, 80];
    // Fixed for that port alone.
    let fixed = vec![5, 1, 0, 1, 192, 0, 2, 9, 0x1f, 0x90];
    let cases = [
        ("socks5h", "http://a.example/", by_name),
        ("socks5", "http://a.example/", by_address.clone()),
        ("socks5", "http://192.0.2.7/", by_address.clone()),
        ("socks5h", "http://192.0.2.7/", by_address),
        ("socks5", "http://a.example:8080/", fixed),
        (
            "socks5h",
            "http://[2001:db8::7]:81/",
            [&[5, 1, 0, 4, 0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7, 0, 81]].concat(),
        ),
    ];
    for (scheme, url, expected) in cases {
        let proxy = Server::play([socks(expected.len(), 0).always(OK)]);
        let mut config = config(all(scheme, &proxy));
        let fixed = "192.0.2.9".parse().unwrap();
        config.host.dns.resolve("a.example", Some(8080), [fixed]);
        let mut client = named_client(config, saying(&["192.0.2.7"]));
        let report = get(&mut client, url);
        assert!(report.timings().proxy.is_some());
        assert!(get(&mut client, url).reused());
        assert_eq!(proxy.taken(), [vec![5, 1, 0], expected]);
        assert_eq!(proxy.lines(), ["GET / HTTP/1.1"; 2]);
        assert_none_left(client, [&proxy]);
    }
}

/// The last byte of each address that a SOCKS5 proxy was asked for.
fn addresses(proxy: &Server) -> Vec<u8> {
    let taken = proxy.taken();
    let asked = taken.iter().filter(|bytes| bytes.len() == 10);
    asked.map(|bytes| bytes[7]).collect()
}

/// As without a proxy, an address that is not reached does not keep the next one from being tried.
#[test]
fn socks5_is_told_the_next_address() {
    for code in [3, 8] {
        let proxy = Server::play([
            socks(10, code),
            socks(10, code),
            socks(10, 0).request().send(OK).close(),
            socks(10, 0).always(OK),
        ]);
        let names = saying(&["192.0.2.7", "192.0.2.8", "192.0.2.9"]);
        let mut client = named_client(config(all("socks5", &proxy)), names);
        let report = get(&mut client, "http://a.example/");
        assert_eq!(report.attempts(), 1);
        assert_eq!(addresses(&proxy), [7, 8, 9]);
        // A later opening begins with what was reached.
        tests::script::eventually("the connection is gone", || {
            client.maintain(Duration::from_millis(1)).unwrap();
            client.counters().open == 0
        });
        get(&mut client, "http://a.example/");
        assert_eq!(addresses(&proxy), [7, 8, 9, 9]);
        assert_none_left(client, [&proxy]);
    }
}

#[test]
fn socks5_runs_out_of_addresses() {
    let names = ["192.0.2.7", "10.0.0.1", "192.0.2.8"];
    let unreachable = Server::play([socks(10, 5), socks(10, 4)]);
    // What else a proxy says is not about the address.
    let failing = Server::play([socks(10, 1)]);
    for (proxy, fault, told) in [
        (unreachable, SocksReply::HostUnreachable, &[7, 8][..]),
        (failing, SocksReply::GeneralFailure, &[7]),
    ] {
        let mut config = config(all("socks5", &proxy));
        let loopback = "127.0.0.0/8".parse().unwrap();
        let documentation = "192.0.2.0/24".parse().unwrap();
        let policy = AddressPolicy::deny_private();
        config.host.addresses = policy.allow(loopback).allow(documentation);
        let mut client = named_client(config, saying(&names));
        let error = error(&mut client, "http://a.example/");
        assert_kind!(error, ErrorKind::Proxy(ProxyFault::Socks(reply)) if *reply == fault);
        assert_eq!((error.sent(), error.phase()), (Sent::Nothing, Phase::Proxy));
        assert_eq!(addresses(&proxy), told, "one is not allowed");
        assert_none_left(client, [&proxy]);
    }
}

fn insecure() -> TlsConfig {
    TlsConfig {
        insecure: true,
        ..TlsConfig::default()
    }
}

// ---- which requests go through which proxy

#[test]
fn the_proxies_of_one_call_hold_for_it_alone() {
    let [ours, its, direct] = [(); 3].map(|()| Server::every(connection().always(OK)));
    let url = format!("http://{}/", direct.address());
    let mut client = client(all("http", &ours), TlsConfig::default());
    let own = all("http", &its);
    // The same request each time: where it went last says nothing of where it goes next.
    let mut request = Request::get(&url);
    for _ in 0..2 {
        for own in [None, Some(own.clone()), Some(Proxies::none())] {
            let mut call = Call::new(request, Response::new());
            if let Some(own) = own {
                call = call.proxies(own);
            }
            let done = run(&mut client, [call]).remove(0);
            done.outcome.unwrap();
            request = done.request;
        }
    }
    let absolute = format!("GET {url} HTTP/1.1");
    assert_eq!(ours.lines(), [&*absolute; 2]);
    assert_eq!(its.lines(), [&*absolute; 2]);
    assert_eq!(direct.lines(), ["GET / HTTP/1.1"; 2]);
    assert_eq!(client.hosts(), 3);
    assert_none_left(client, [&ours, &its, &direct]);
}

#[test]
fn a_proxy_whose_name_is_not_known() {
    let proxies = Proxies::all("http://proxy.example:3128".parse().unwrap());
    let mut client = client(proxies, insecure());
    let error = error(&mut client, "http://a.example/");
    assert_kind!(
        error,
        ErrorKind::Proxy(ProxyFault::Name(DnsError::NotFound))
    );
    assert_eq!(error.phase(), Phase::Resolve);
    assert_none_left(client, []);
}
