//! The engine against real nginx and Apache httpd: whatever they do with their keep-alive connections, a GET does not
//! fail.

use std::num::NonZeroUsize;
use std::time::Duration;

use courser::{Call, HostClient, Request, Response};
use tests::clients::{config, run};
use tests::script::PATIENCE;
use tests::servers::{Kind, WebServer};
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
    get_all(&mut client);
    // Nobody drives the client while the server closes: the next call finds the connections dead.
    std::thread::sleep(Duration::from_millis(1500));
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

/// Fetches all files one after the other over one connection, then some of them at once.
fn get_all(client: &mut HostClient) {
    let mut response = Response::new();
    for number in 0..FILES {
        client
            .get(&format!("/{number}.txt"), &mut response)
            .unwrap();
        assert_eq!(response.body(), number.to_string().as_bytes());
    }
    let call = |tag| Call::new(Request::get(format!("/{tag}.txt")), Response::new()).tag(tag);
    for completion in run(client, (0..PARALLEL as u64).map(call)) {
        completion.outcome.unwrap();
        assert_eq!(
            completion.response.body(),
            completion.tag.to_string().as_bytes()
        );
    }
}

const PARALLEL: usize = 8;
