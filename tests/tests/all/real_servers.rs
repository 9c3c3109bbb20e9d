//! The engine through real proxies. Real servers are in `tests/servers`.

use courser::{Config, ErrorKind, Proxies, Request, Response, Sent};
use tests::clients::{any_client, any_config};
use tests::proxies::{PROXY_USER, ProxyServer};
use tests::script::{Server, connection};
use tests::tls::Authority;

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
