//! The engine against real nginx and Apache httpd that reload under load, and through real proxies. What else servers do
//! with their connections is in `tests/servers`.

use std::num::NonZeroUsize;

use courser::{Call, Config, ErrorKind, HostClient, Proxies, Request, Response, Sent};
use tests::clients::{any_client, any_config, config};
use tests::script::{PATIENCE, Server, connection};
use tests::servers::{Kind, PROXY_USER, ProxyServer, WebServer};
use tests::tls::Authority;
use tests::tree::Tree;

const FILES: usize = 20;

#[test]
#[ignore = "needs nginx"]
fn nginx_that_reloads_under_load() {
    reload_under_load(Kind::nginx());
}

#[test]
#[ignore = "needs apache2"]
fn apache_that_reloads_under_load() {
    reload_under_load(Kind::apache(""));
}

#[test]
#[ignore = "needs tinyproxy"]
fn http_and_https_through_tinyproxy() {
    through(&ProxyServer::tinyproxy(), "http", &[407, 401]);
}

#[test]
#[ignore = "needs microsocks"]
fn http_and_https_through_microsocks() {
    let proxy = ProxyServer::microsocks();
    for scheme in ["socks5", "socks5h"] {
        through(&proxy, scheme, &[]);
    }
}

/// GET and POST, http and https, and without the credentials nothing: `refused` are the statuses that an HTTP proxy
/// has for that.
fn through(proxy: &ProxyServer, scheme: &str, refused: &[u16]) {
    let authority = Authority::new("authority");
    let acceptor = authority.leaf(&["localhost"]).acceptor();
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let plain = Server::every(connection().always(ok));
    let secure = Server::every(connection().tls(&acceptor).always(ok));
    let urls = [
        format!("http://localhost:{}/x", plain.address().port()),
        format!("https://localhost:{}/x", secure.address().port()),
    ];
    let client = |credentials: &str| {
        let text = format!("{scheme}://{credentials}{}", proxy.address());
        let mut config = Config {
            proxies: Proxies::all(text.parse().unwrap()),
            ..any_config()
        };
        config.host.tls = authority.trusted();
        // The servers are not at ::1.
        let local = [[127, 0, 0, 1].into()];
        config.host.dns.resolve("localhost", None, local);
        any_client(config)
    };
    let (user, password) = PROXY_USER;
    let mut known = client(&format!("{user}:{password}@"));
    let mut response = Response::new();
    for url in &urls {
        for body in [None, Some(vec![b'x'; 200_000])] {
            let mut request = Request::get(url);
            if let Some(body) = body {
                request = Request::post(url, body);
            }
            if url.starts_with("http:") {
                // tinyproxy closes after one request without saying so, and a POST is not sent again.
                known.close_idle();
            }
            known.call(&mut request, &mut response).unwrap();
            assert_eq!((response.status(), response.body()), (200, &b"ok"[..]));
        }
    }
    for server in [&plain, &secure] {
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].body().len(), 200_000);
        for request in requests {
            let head = request.head().to_ascii_lowercase();
            assert!(!head.contains("proxy-authorization"), "{head}");
        }
    }

    for credentials in ["", "user:wrong@"] {
        let mut unknown = client(credentials);
        for url in &urls {
            match unknown.get(url, &mut response) {
                Ok(_) => assert!(refused.contains(&response.status()), "{response:?}"),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Proxy(_)), "{error:?}");
                    assert_eq!(error.sent(), Sent::Nothing);
                }
            }
        }
    }
    assert_eq!(plain.requests().len() + secure.requests().len(), 4);
}

/// Old workers answer what they have read and close; what they have not read is asked for again.
fn reload_under_load(kind: Kind) {
    let tree = Tree::plain(FILES).unwrap();
    let server = WebServer::start(kind, tree.path());
    let mut config = config();
    config.max_connections = NonZeroUsize::new(16).unwrap();
    let mut client =
        HostClient::new(server.address().to_string().parse().unwrap(), config).unwrap();
    let total = 3000;
    for tag in 0..total {
        let number = tag % FILES as u64;
        let request = Request::get(format!("/{number}.txt"));
        client.submit(Call::new(request, Response::new()).tag(number));
    }
    let mut done = 0;
    while let Some(completion) = client.wait(Some(PATIENCE)).unwrap() {
        completion.outcome.unwrap();
        assert_eq!(
            completion.response.body(),
            completion.tag.to_string().as_bytes()
        );
        done += 1;
        if done % 1000 == 500 {
            server.reload();
        }
    }
    assert_eq!(done, total);
}
