//! A client of any URL at Unix sockets.

use courser::{Call, Config, Destination, Proxies, Reply, Request, Resolver, Response, Route};
use tests::clients::{any_config, assert_none_left, named_client};
use tests::script::{Server, connection};
use tests::tls::Authority;

use super::OK;

/// Must not be asked.
struct Nobody;

impl Resolver for Nobody {
    fn lookup(&mut self, name: &str, _: Reply) {
        panic!("{name} was asked for");
    }
}

#[test]
fn a_client_reaches_hosts_at_unix_sockets() {
    let authority = Authority::new("authority");
    let acceptor = authority.leaf(&["api.example"]).acceptor();
    let plain = Server::on_unix_socket(connection().always(OK));
    let secure = Server::on_unix_socket(connection().tls(&acceptor).always(OK));
    let proxy = Server::every(connection().always(OK));
    let proxy_url = format!("http://{}", proxy.address());
    let mut config = Config {
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
    config.host.tls = authority.trusted();
    let mut client = named_client(config, Nobody);
    let mut response = Response::new();
    let mut get = |url: &str| {
        let report = client.get(url, &mut response).unwrap();
        assert_eq!(response.body(), b"ok", "{url}");
        report.remote().map(|remote| remote.to_string())
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
    let call = Call::new(Request::get("http://any.example/"), Response::new());
    client.perform(call.proxies(proxies)).outcome.unwrap();
    assert_eq!((plain.requests().len(), proxy.requests().len()), (4, 1));
}
