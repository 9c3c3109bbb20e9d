//! A client of one upstream by a name, and a client of any URL at Unix sockets.

use std::net::{IpAddr, Ipv4Addr};

use courser::{
    AddressPolicy, Call, Config, Destination, ErrorKind, HostClient, HostConfig, Proxies, Reply,
    Request, Resolver, Response, Route, TlsConfig, Upstream,
};
use tests::clients::{any_config, assert_none_left, config, named_client, saying};
use tests::script::{PATIENCE, Server, connection};
use tests::tls::{Acceptor, Authority};

use super::OK;

/// Must not be asked.
struct Nobody;

impl Resolver for Nobody {
    fn lookup(&mut self, name: &str, _: Reply) {
        panic!("{name} was asked for");
    }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An authority, and a server for `api.example` and 127.0.0.1 that the authority vouches for.
fn trusted() -> (Authority, Acceptor) {
    let authority = Authority::new("authority");
    let leaf = authority.leaf(&["api.example", "127.0.0.1"]);
    (authority, leaf.acceptor())
}

fn with_tls(tls: TlsConfig) -> HostConfig {
    HostConfig { tls, ..config() }
}

fn call(target: impl Into<String>) -> Call {
    Call::new(Request::get(target), Response::new())
}

#[test]
fn settings_of_names_and_addresses_hold() {
    let server = Server::every(connection().always(OK));
    let port = server.address().port();
    let upstream: Upstream = format!("api.example:{port}").parse().unwrap();
    let mut fixed = config();
    fixed.dns.resolve("api.example", None, [HERE]);
    let mut client = HostClient::with_resolver(upstream.clone(), fixed, Nobody).unwrap();
    client.get("/", &mut Response::new()).unwrap();
    assert_none_left(client, [&server]);

    let denying = HostConfig {
        addresses: AddressPolicy::deny_private(),
        ..config()
    };
    for upstream in [upstream, Upstream::tcp([server.address()])] {
        let names = saying(&["127.0.0.1"]);
        let mut client = HostClient::with_resolver(upstream, denying.clone(), names).unwrap();
        let error = client.get("/", &mut Response::new()).unwrap_err();
        assert_kind!(error, ErrorKind::Denied(ip) if *ip == HERE);
    }
    assert_eq!(server.accepted(), 1);
}

// ---- Unix sockets of a client of any URL

#[test]
fn a_client_reaches_hosts_at_unix_sockets() {
    let (authority, acceptor) = trusted();
    let plain = Server::on_unix_socket(connection().always(OK));
    let secure = Server::on_unix_socket(connection().tls(&acceptor).always(OK));
    let proxy = Server::every(connection().always(OK));
    let proxy_url = format!("http://{}", proxy.address());
    let config = Config {
        host: with_tls(authority.trusted()),
        routes: vec![
            Route {
                host: "API.example".into(),
                port: Some(443),
                to: Destination::Unix(secure.path()),
            },
            Route {
                host: "docker".into(),
                ..Route::all(Destination::Unix(plain.path()))
            },
        ],
        proxies: Proxies::all(proxy_url.parse().unwrap()),
        ..any_config()
    };
    let mut client = named_client(config, Nobody);
    let mut response = Response::new();
    let mut get = |url: &str| {
        let report = client.get(url, &mut response).unwrap();
        assert_eq!(response.body(), b"ok", "{url}");
        report.remote().map(ToString::to_string)
    };
    for (url, socket) in [
        ("http://docker/a", &plain),
        ("http://docker:2375/b", &plain),
        ("http://docker/c", &plain),
        ("https://api.example/?q=1", &secure),
        ("https://api.example/?q=1", &secure),
    ] {
        let remote = format!("unix:{}", socket.path().display());
        assert_eq!(get(url), Some(remote));
    }
    // All other hosts are reached as usual, here through the proxy.
    assert_eq!(get("http://api.example/e"), None);
    assert_eq!(proxy.requests().len(), 1);
    let hosts: Vec<_> = plain
        .requests()
        .iter()
        .map(|request| request.header("host"))
        .collect();
    assert_eq!(hosts, [["docker"], ["docker:2375"], ["docker"]]);
    assert_eq!((plain.accepted(), secure.accepted()), (2, 1));
    assert_eq!(secure.lines(), ["GET /?q=1 HTTP/1.1"; 2]);
    let session = &secure.sessions()[0];
    assert_eq!(session.server_name.as_deref(), Some("api.example"));
    assert_none_left(client, [&plain, &secure, &proxy]);

    // For every URL, and before other rules and the proxies of a call.
    let config = Config {
        routes: vec![
            Route::all(Destination::Unix(plain.path())),
            Route::all(Destination::Host {
                host: "127.0.0.1".into(),
                port: Some(1),
            }),
        ],
        ..any_config()
    };
    let mut client = named_client(config, Nobody);
    let proxies = Proxies::all(proxy_url.parse().unwrap());
    client.submit(call("http://any.example/").proxies(proxies));
    let done = client.wait(Some(PATIENCE)).unwrap().done().unwrap();
    done.outcome.unwrap();
    assert_eq!((plain.requests().len(), proxy.requests().len()), (4, 1));
}
