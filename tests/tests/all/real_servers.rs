//! The engine through real proxies, which ask for a user and a password. Real servers are in `tests/servers`.

use std::fs;
use std::process::Command;

use courser::{Config, ErrorKind, Proxies, Request, Response, Sent};
use tests::clients::{any_client, any_config};
use tests::process::Process;
use tests::script::{Server, connection};
use tests::tls::Authority;

#[test]
#[ignore = "needs tinyproxy"]
fn http_and_https_through_tinyproxy() {
    let proxy = Process::start(|address, directory| {
        let configuration = format!(
            "Port {}\nListen {}\nTimeout 60\nMaxClients 50\nAllow 127.0.0.1\nBasicAuth {USER} {PASSWORD}\n",
            address.port(),
            address.ip()
        );
        let path = directory.join("server.conf");
        fs::write(&path, configuration).unwrap();
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(path);
        Some(command)
    });
    through(&proxy.unwrap(), "http", &[407, 401]);
}

#[test]
#[ignore = "needs microsocks"]
fn http_and_https_through_microsocks() {
    let proxy = Process::start(|address, _| {
        let mut command = Command::new("microsocks");
        command.arg("-i").arg(address.ip().to_string());
        command.arg("-p").arg(address.port().to_string());
        command.args(["-u", USER, "-P", PASSWORD]);
        Some(command)
    });
    let proxy = proxy.unwrap();
    for scheme in ["socks5", "socks5h"] {
        through(&proxy, scheme, &[]);
    }
}

/// GET and POST, http and https, and without the credentials nothing: `refused` are the statuses that an HTTP proxy
/// has for that.
fn through(proxy: &Process, scheme: &str, refused: &[u16]) {
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
    let mut known = client(&format!("{USER}:{PASSWORD}@"));
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

const USER: &str = "user";
const PASSWORD: &str = "secret";
