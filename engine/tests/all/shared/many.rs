//! `Shared<Client>`: many hosts on several threads. One server stands for all hosts and tells them apart by `Host`.

use courser::{Client, Config, Destination, Redirects, Route};

use super::*;

const HOSTS: usize = 8;

/// Resolves every host name to the server.
fn config(server: &Server, host_cap: usize) -> Config {
    Config {
        host: HostConfig {
            max_connections: NonZeroUsize::new(host_cap).unwrap(),
            idle_timeout: LONG,
            ..HostConfig::default()
        },
        redirects: Redirects::limit(5),
        routes: vec![Route::all(Destination::Host {
            host: "127.0.0.1".into(),
            port: Some(server.address().port()),
        })],
        ..Config::default()
    }
}

fn spawn(threads: usize, config: Config) -> Shared<Client> {
    let shared = SharedConfig {
        threads: NonZeroUsize::new(threads).unwrap(),
        ..SharedConfig::default()
    };
    Shared::spawn(shared, move |_| Client::new(config.clone())).unwrap()
}

/// A URL with one of several spellings of its host.
fn url(host: usize, spelling: usize, path: &str) -> String {
    match spelling % 3 {
        0 => format!("http://host-{host}.example{path}"),
        1 => format!("HTTP://Host-{host}.EXAMPLE:80{path}"),
        _ => format!("http://host-{host}.example:080{path}"),
    }
}

fn assert_caps(server: &Server, cap: usize) {
    let most = server.most_connections();
    assert_eq!(most.len(), HOSTS);
    assert!(most.values().all(|most| *most <= cap), "{most:?}");
}

#[test]
fn a_redirect_to_a_host_of_another_thread_keeps_that_hosts_cap() {
    let server = Server::start();
    let client = spawn(3, config(&server, 1));
    thread::scope(|scope| {
        for caller in 0..16 {
            let client = &client;
            scope.spawn(move || {
                let mut response = Response::new();
                for turn in 0..50 {
                    let (from, over, to) = (caller % HOSTS, turn % HOSTS, (caller + turn) % HOSTS);
                    let path = format!(
                        "/a/redirect/host-{over}.example/b/redirect/host-{to}.example/{caller}/{turn}"
                    );
                    let report = client
                        .call(&mut Request::get(url(from, turn, &path)), &mut response)
                        .unwrap();
                    assert_eq!(response.body(), format!("/{caller}/{turn}").as_bytes());
                    assert_eq!(report.redirects().len(), 2);
                    assert_eq!(report.attempts(), 3);
                }
            });
        }
    });
    assert_caps(&server, 1);
    let stats = client.stats();
    assert_eq!((stats.calls, stats.statuses[2]), (800, 800));
    assert_eq!((client.in_flight(), client.shutdown(LONG)), (0, 0));
}

#[test]
fn a_call_is_cancelled_on_whichever_thread_it_is_and_no_other() {
    let server = Server::start();
    let client = spawn(2, config(&server, 512));
    let (sender, arrived) = courser::shared::completions();
    let tickets: Vec<_> = (0..HOSTS * HOSTS)
        .map(|pair| {
            let (from, to) = (pair / HOSTS, pair % HOSTS);
            let path = format!("/redirect/host-{to}.example/held");
            let call = call(&url(from, 0, &path)).tag(pair as u64);
            client.submit(call, &sender).unwrap()
        })
        .collect();
    server.wait_held(HOSTS * HOSTS);
    tickets[1..]
        .iter()
        .for_each(courser::shared::Ticket::cancel);
    drop(sender);
    let mut tags = Vec::new();
    for _ in 1..HOSTS * HOSTS {
        let done = arrived.wait(None).unwrap();
        assert_kind!(done.outcome.unwrap_err(), ErrorKind::Cancelled);
        tags.push(done.tag);
    }
    tags.sort_unstable();
    assert!(tags.into_iter().eq(1..(HOSTS * HOSTS) as u64));
    tickets[1].cancel();
    server.release();
    let done = arrived.wait(None).unwrap();
    assert_eq!((done.tag, done.outcome.is_ok()), (0, true));
}

#[test]
fn a_graceful_shutdown_waits_for_calls_that_change_threads() {
    let server = Server::start();
    let client = spawn(3, config(&server, 512));
    let futures: Vec<_> = (0..HOSTS * HOSTS)
        .map(|pair| {
            let (from, to) = (pair / HOSTS, pair % HOSTS);
            let path = format!("/held/redirect/host-{to}.example/end/{pair}");
            client.send(call(&url(from, 0, &path)))
        })
        .collect();
    server.wait_held(HOSTS * HOSTS);
    let ending = thread::spawn({
        let client = client.clone();
        move || client.shutdown(LONG)
    });
    while client
        .get("http://host-0.example/probe", &mut Response::new())
        .is_ok()
    {}
    server.release();
    for (pair, future) in futures.into_iter().enumerate() {
        let done = block_on(future);
        done.outcome.unwrap();
        assert_eq!(done.response.body(), format!("/end/{pair}").as_bytes());
    }
    assert_eq!(ending.join().unwrap(), 0);
}

#[test]
fn a_body_is_streamed_after_a_redirect_with_its_trailers_and_report() {
    use std::io::Read;

    let server = Server::start();
    let client = spawn(3, config(&server, 2));
    let mut response = Response::new();
    for to in 0..HOSTS {
        let url = url(0, 0, &format!("/redirect/host-{to}.example/bytes/300000"));
        let mut request = Request::get(&url);
        let mut body = client.open(&mut request, &mut response).unwrap();
        assert_eq!((response.status(), request.target()), (200, &*url));
        assert_eq!((client.in_flight(), body.report().is_none()), (1, true));
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes).unwrap();
        assert!(bytes == server::pattern(0..300_000));
        assert_eq!(body.trailers().collect::<Vec<_>>(), [("X-Sum", &b"7"[..])]);
        let report = body.finish().unwrap();
        assert_eq!((report.redirects().len(), client.in_flight()), (1, 0));
        assert!(report.bytes_in() > 300_000);
    }
    // The connection serves again.
    let report = client.get(&url(0, 0, "/"), &mut response).unwrap();
    assert!(report.reused());
    let (stats, calls) = (client.stats(), HOSTS as u64 + 1);
    assert_eq!((stats.calls, stats.statuses[2]), (calls, calls));
}
