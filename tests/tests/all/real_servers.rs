//! The engine against real nginx and Apache httpd: whatever they do with their keep-alive connections, a GET does not
//! fail. And through real proxies.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use courser::{
    Call, Config, ErrorKind, HostClient, PipelineClient, PipelineConfig, Proxies, Request,
    Response, Sent, TlsConfig, TlsVersion, Upstream,
};
use tests::clients::{any_client, any_config, config, run};
use tests::script::{CLOSE_WAIT, PATIENCE, Server, connection, eventually, sockets_to};
use tests::servers::{Kind, PROXY_USER, ProxyServer, WebServer};
use tests::tls::Authority;
use tests::tree::Tree;

const FILES: usize = 20;

#[test]
#[ignore = "needs nginx"]
fn nginx_that_limits_requests_per_connection() {
    let kind = Kind::Nginx {
        extra: "keepalive_requests 3;".to_owned(),
    };
    limited_requests(kind);
}

#[test]
#[ignore = "needs apache2"]
fn apache_that_limits_requests_per_connection() {
    limited_requests(apache("MaxKeepAliveRequests 3"));
}

#[test]
#[ignore = "needs nginx"]
fn nginx_that_closes_idle_connections_early() {
    let kind = Kind::Nginx {
        extra: "keepalive_timeout 1s;".to_owned(),
    };
    early_idle_close(kind);
}

#[test]
#[ignore = "needs apache2"]
fn apache_that_closes_idle_connections_early() {
    early_idle_close(apache("KeepAliveTimeout 1"));
}

#[test]
#[ignore = "needs nginx"]
fn nginx_that_reloads() {
    reload(Kind::nginx());
}

#[test]
#[ignore = "needs apache2"]
fn apache_that_reloads() {
    reload(Kind::apache(""));
}

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
#[ignore = "needs nginx"]
fn nginx_that_restarts() {
    restart(Kind::nginx());
}

#[test]
#[ignore = "needs apache2"]
fn apache_that_restarts() {
    restart(Kind::apache(""));
}

/// Keep-alive, and on the next connection the session of the one before, as nginx sees it too.
#[test]
#[ignore = "needs nginx"]
fn nginx_with_tls() {
    let authority = Authority::new("authority");
    let directory = tempfile::tempdir().unwrap();
    let leaf = authority.leaf(&["127.0.0.1"]);
    let (chain, key) = leaf.write_to(directory.path()).unwrap();
    let tree = Tree::plain(FILES).unwrap();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let kind = Kind::NginxTls {
            chain: chain.clone(),
            key: key.clone(),
            extra: "keepalive_requests 5; add_header X-Resumed $ssl_session_reused;".to_owned(),
        };
        let server = WebServer::start(kind, tree.path());
        let mut config = any_config();
        config.host.tls = TlsConfig {
            min_version: version,
            max_version: version,
            ..authority.trusted()
        };
        let mut client = any_client(config);
        let mut response = Response::new();
        for number in 0..FILES {
            let url = format!("{}{number}.txt", server.url());
            let report = client.get(&url, &mut response).unwrap();
            assert_eq!(response.body(), number.to_string().as_bytes());
            assert_eq!(report.reused(), number % 5 != 0);
            let resumed: &[u8] = if number < 5 { b"." } else { b"r" };
            assert_eq!(response.header("x-resumed"), Some(resumed));
            if let Some(tls) = report.tls() {
                assert_eq!((tls.version, tls.resumed), (version, number > 0));
            }
        }
        drop(client);
        assert_eq!(server.stop().len(), FILES);
    }
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

#[test]
#[ignore = "needs nginx"]
fn pipelining_to_nginx() {
    pipelined(Kind::nginx(), |server| (server.address(), None));
}

#[test]
#[ignore = "needs nginx"]
fn pipelining_to_nginx_that_limits_requests_per_connection() {
    let kind = Kind::Nginx {
        extra: "keepalive_requests 7;".to_owned(),
    };
    pipelined(kind, |server| (server.address(), None));
}

#[test]
#[ignore = "needs apache2"]
fn pipelining_to_apache() {
    pipelined(apache(""), |server| (server.address(), None));
}

#[test]
#[ignore = "needs apache2"]
fn pipelining_to_apache_that_limits_requests_per_connection() {
    pipelined(apache("MaxKeepAliveRequests 7"), |server| {
        (server.address(), None)
    });
}

#[test]
#[ignore = "needs haproxy"]
fn pipelining_through_haproxy() {
    pipelined(Kind::nginx(), |server| {
        let proxy = ProxyServer::haproxy(server.address());
        (proxy.address(), Some(proxy))
    });
}

/// Many requests on few connections: each gets its own answer, whatever the server does with its connections.
fn pipelined(kind: Kind, front: impl Fn(&WebServer) -> (SocketAddr, Option<ProxyServer>)) {
    const CALLS: usize = 2000;
    let tree = Tree::plain(FILES).unwrap();
    let server = WebServer::start(kind, tree.path());
    let (address, _proxy) = front(&server);
    let mut pipeline = PipelineConfig {
        host: config(),
        max_pending: NonZeroUsize::new(32).unwrap(),
        ..PipelineConfig::default()
    };
    pipeline.host.max_connections = NonZeroUsize::new(2).unwrap();
    let mut client = PipelineClient::new(Upstream::tcp([address]), pipeline).unwrap();
    for number in 0..CALLS {
        let target = match number % 5 {
            0 => "/none.txt".to_owned(),
            _ => format!("/{}.txt", number % FILES),
        };
        let method = if number % 7 == 0 { "HEAD" } else { "GET" };
        let call = Call::new(Request::new(method, target), Response::new());
        client.submit(call.tag(number as u64));
    }
    let mut done = 0;
    while let Some(completion) = client.wait(Some(PATIENCE)).unwrap() {
        completion.outcome.unwrap();
        let (number, response) = (completion.tag as usize, &completion.response);
        let expected = (number % FILES).to_string();
        match (number % 5, number % 7) {
            (0, _) => assert_eq!(response.status(), 404),
            (_, 0) => assert_eq!((response.status(), response.body()), (200, &b""[..])),
            _ => assert_eq!(
                (response.status(), response.body()),
                (200, expected.as_bytes())
            ),
        }
        done += 1;
    }
    assert_eq!(done, CALLS);
    assert!(
        !client.pipeline_counters().serial,
        "{:?}",
        client.pipeline_counters()
    );
}

fn apache(extra: &str) -> Kind {
    Kind::Apache {
        index_options: String::new(),
        extra: extra.to_owned(),
    }
}

fn limited_requests(kind: Kind) {
    let tree = Tree::plain(FILES).unwrap();
    let server = WebServer::start(kind, tree.path());
    let mut client = client(&server);
    get_all(&mut client);
    assert!(client.counters().opened > 1);
    drop(client);
    let lines = server.stop();
    assert_eq!(
        lines.len(),
        FILES + PARALLEL,
        "each was asked once: {lines:?}"
    );
}

fn early_idle_close(kind: Kind) {
    let tree = Tree::plain(FILES).unwrap();
    let server = WebServer::start(kind, tree.path());
    let mut client = client(&server);
    let used = get_all(&mut client);
    let counters = client.counters();
    let closed = counters.opened as usize - counters.open;
    // The client is not driven while the server closes: the next call finds the connections dead. The server waits for
    // longer on those that no call has used.
    eventually("the server has closed", || {
        closed + sockets_to(server.address(), CLOSE_WAIT) >= used
    });
    get_all(&mut client);
    drop(client);
    let lines = server.stop();
    assert_eq!(lines.len(), 2 * (FILES + PARALLEL));
}

fn reload(kind: Kind) {
    let tree = Tree::plain(FILES).unwrap();
    let server = WebServer::start(kind, tree.path());
    let mut client = client(&server);
    for _ in 0..5 {
        get_all(&mut client);
        server.reload();
        get_all(&mut client);
    }
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

fn restart(kind: Kind) {
    let tree = Tree::plain(FILES).unwrap();
    let mut server = WebServer::start(kind, tree.path());
    let mut client = client(&server);
    for _ in 0..3 {
        get_all(&mut client);
        server.restart(tree.path());
        get_all(&mut client);
    }
}

fn client(server: &WebServer) -> HostClient {
    HostClient::new(server.address().to_string().parse().unwrap(), config()).unwrap()
}

/// Fetches all files one after the other over one connection, then some of them at once. Returns how many connections
/// were used for the first time.
fn get_all(client: &mut HostClient) -> usize {
    let mut response = Response::new();
    let mut used = 0;
    for number in 0..FILES {
        let report = client.get(&format!("/{number}.txt"), &mut response);
        used += usize::from(!report.unwrap().reused());
        assert_eq!(response.body(), number.to_string().as_bytes());
    }
    let call = |tag| Call::new(Request::get(format!("/{tag}.txt")), Response::new()).tag(tag);
    for completion in run(client, (0..PARALLEL as u64).map(call)) {
        completion.outcome.unwrap();
        assert_eq!(
            completion.response.body(),
            completion.tag.to_string().as_bytes()
        );
        used += usize::from(!completion.report.reused());
    }
    used
}

const PARALLEL: usize = 8;
