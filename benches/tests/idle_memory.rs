//! The memory of an idle connection: the bytes that the thread of a client holds in addition after opening the
//! connections, divided by their number. This includes the host and the tables of the client, with the space that these
//! have reserved in advance.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use benches::alloc::held_by_this_thread;
use benches::memory::raise_descriptors;
use benches::serve::Server;
use benches::tls;
use courser::{
    Call, Client, Config, HostClient, HostConfig, PemOrDer, Request, Response, TlsConfig, TlsRoots,
    Upstream,
};

#[test]
fn plain_connection() {
    raise_descriptors().expect("a limit");
    let connections = 2000;
    let server = Server::bind(0).expect("a loopback port");
    let upstream = Upstream::tcp([server.address()]);
    thread::spawn(move || server.run(None));
    let config = HostConfig {
        min_idle: connections,
        ..host_config(connections)
    };
    let mut client = HostClient::new(upstream, config).expect("a client");
    let before = held_by_this_thread();
    client.get("/13", &mut Response::new()).expect("an answer");
    while client.counters().idle < connections {
        client
            .maintain(Duration::from_millis(10))
            .expect("an event queue");
    }
    let bytes = (held_by_this_thread() - before) / connections as i64;
    println!("{bytes} bytes for a plain connection");
    assert!(bytes <= 1024, "{bytes} bytes");
}

#[test]
fn plain_connection_after_a_rush() {
    raise_descriptors().expect("a limit");
    // All calls at the same time; the memory of the calls is freed at the end.
    let connections = 2000;
    let server = Server::bind(0).expect("a loopback port");
    let url = format!("http://{}/gather/{connections}", server.address());
    thread::spawn(move || server.run(None));
    let mut client = Client::new(Config {
        max_connections: NonZeroUsize::new(connections).expect("not zero"),
        host: host_config(connections),
        ..Config::default()
    })
    .expect("a client");
    let before = held_by_this_thread();
    for _ in 0..connections {
        client.submit(Call::new(Request::get(&url), Response::new()));
    }
    while let Some(done) = client.wait(None).expect("an event queue") {
        done.outcome.expect("an answer");
    }
    assert_eq!(client.counters().idle, connections);
    let bytes = (held_by_this_thread() - before) / connections as i64;
    println!("{bytes} bytes for a plain connection after a rush");
    assert!(bytes <= 1024, "{bytes} bytes");
}

#[test]
fn tls_connection() {
    let connections = 256;
    let (config, certificate) = tls::server().expect("a certificate");
    let server = Server::bind(0).expect("a loopback port").with_tls(config);
    let url = format!("https://{}/13", server.address());
    thread::spawn(move || server.run(None));
    let mut client = Client::new(Config {
        host: HostConfig {
            tls: TlsConfig {
                roots: TlsRoots::None,
                extra_roots: vec![PemOrDer::Bytes(certificate.into_bytes())],
                ..TlsConfig::default()
            },
            ..host_config(connections)
        },
        ..Config::default()
    })
    .expect("a client");
    let before = held_by_this_thread();
    // Simultaneous calls need one connection each, until the first response. Further rounds open the rest.
    while client.counters().idle < connections {
        for _ in 0..connections {
            client.submit(Call::new(Request::get(&url), Response::new()));
        }
        while let Some(done) = client.wait(None).expect("an event queue") {
            done.outcome.expect("an answer");
        }
    }
    let bytes = (held_by_this_thread() - before) / connections as i64;
    println!("{bytes} bytes for one with TLS");
    assert!(bytes <= 24 * 1024, "{bytes} bytes");
}

fn host_config(connections: usize) -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::new(connections).expect("not zero"),
        idle_timeout: Duration::from_secs(600),
        ..HostConfig::default()
    }
}
