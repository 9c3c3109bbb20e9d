//! What an idle connection costs in memory: the bytes by which a client's thread holds more than before it opened
//! them, its host, its tables and what they have grown in advance included, divided by the connections.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use benches::alloc::held_by_this_thread;
use benches::serve::Server;
use benches::tls;
use courser::{Client, Config, HostConfig, PemOrDer, Response, TlsConfig, TlsRoots};

#[test]
fn plain_connection() {
    let server = Server::bind(0).expect("a loopback port");
    let bytes = per_connection(server, "http", 1000, TlsConfig::default());
    println!("{bytes} bytes for a plain connection");
    assert!(bytes <= 1024, "{bytes} bytes");
}

#[test]
fn tls_connection() {
    let (config, certificate) = tls::server().expect("a certificate");
    let server = Server::bind(0).expect("a loopback port").with_tls(config);
    let tls = TlsConfig {
        roots: TlsRoots::None,
        extra_roots: vec![PemOrDer::Bytes(certificate.into_bytes())],
        ..TlsConfig::default()
    };
    let bytes = per_connection(server, "https", 250, tls);
    println!("{bytes} bytes for one with TLS");
    assert!(bytes <= 24 * 1024, "{bytes} bytes");
}

fn per_connection(server: Server, scheme: &str, connections: usize, tls: TlsConfig) -> i64 {
    let url = format!("{scheme}://{}/13", server.address());
    thread::spawn(move || server.run(None));
    let all = NonZeroUsize::new(connections).expect("not zero");
    let mut client = Client::new(Config {
        max_connections: all,
        host: HostConfig {
            max_connections: all,
            min_idle: connections,
            idle_timeout: Duration::from_secs(600),
            ..HostConfig::default()
        },
        tls,
        ..Config::default()
    })
    .expect("a client");
    let before = held_by_this_thread();
    client.get(&url, &mut Response::new()).expect("an answer");
    while client.counters().idle < connections {
        client
            .maintain(Duration::from_millis(10))
            .expect("an event queue");
    }
    (held_by_this_thread() - before) / connections as i64
}
