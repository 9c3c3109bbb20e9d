//! The memory of connections and hosts: the bytes that the thread of a client holds. They include the tables of the
//! client, with the space that these have reserved in advance.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use benches::alloc::held_by_this_thread;
use benches::memory::raise_descriptors;
use benches::serve::Server;
use benches::tls;
use courser::net::Address;
use courser::net::sim::{Link, Peer, ScriptedAnswer, SimNet, SimServer};
use courser::{
    Answer, Call, Client, Config, HostConfig, PemOrDer, Request, Response, TlsConfig, TlsRoots,
};

use crate::server;

/// All calls at the same time; the memory of the calls is freed at the end. A connection takes no more beside more of
/// them.
#[test]
fn plain_connections() {
    raise_descriptors().expect("a limit");
    let address = server();
    let held = |connections: usize| {
        let before = held_by_this_thread();
        let mut client = any_host(host_config(connections));
        let url = format!("http://{address}/gather/{connections}");
        ask(&mut client, &url, connections);
        assert_eq!(client.counters().idle, connections);
        held_by_this_thread() - before
    };
    // The memory of a client without connections is the same in all three cases.
    let (one, few, many) = (held(1), held(256), held(2048));
    let (of_few, of_many) = ((few - one) / 255, (many - one) / 2047);
    println!("{of_few} bytes for one of 256, {of_many} for one of 2048");
    assert!(of_many <= 1024 && of_many <= of_few + of_few / 4);
}

#[test]
fn tls_connections() {
    let connections = 256;
    let (config, certificate) = tls::server().expect("a certificate");
    let server = Server::bind(0).expect("a loopback port").with_tls(config);
    let url = format!("https://{}/13", server.address());
    thread::spawn(move || server.run(None));
    let mut client = any_host(HostConfig {
        tls: TlsConfig {
            roots: TlsRoots::None,
            extra_roots: vec![PemOrDer::Bytes(certificate.into_bytes())],
            ..TlsConfig::default()
        },
        ..host_config(connections)
    });
    let before = held_by_this_thread();
    // Simultaneous calls need one connection each, until the first response. Further rounds open the rest.
    while client.counters().idle < connections {
        ask(&mut client, &url, connections);
    }
    let bytes = (held_by_this_thread() - before) / connections as i64;
    println!("{bytes} bytes for one with TLS");
    assert!(bytes <= 24 * 1024, "{bytes} bytes");
}

/// A client that has visited three times as many hosts holds no more, and a host that it still knows is small.
#[test]
fn hosts_that_were_visited_leave_nothing() {
    let (early, hosts) = after_visits(4_000);
    let (late, _) = after_visits(12_000);
    println!("{early} bytes after 4,000 hosts, {late} after 12,000; it knows {hosts}");
    // Tables may have been doubled once.
    assert!(late <= early + early / 4, "{early}, then {late}");
    assert!(early / hosts <= 2048, "{early} for {hosts}");
}

/// The bytes of a client without connections after visits to so many hosts, and the number of hosts that it knows. The
/// simulated network stays as it is, so the bytes are those that the end of the client frees.
fn after_visits(hosts: u32) -> (i64, i64) {
    let net = SimNet::new(1);
    net.set_tracing(false);
    let place: IpAddr = [10, 0, 0, 1].into();
    net.listen(Address::Tcp((place, 80).into()), Link::default(), Answering);
    let resolver = net.resolver(move |_, _| {
        let answer = Answer::found([place], Duration::from_secs(60));
        ScriptedAnswer::After(Duration::from_millis(1), answer)
    });
    let mut config = Config::default();
    config.host.dns.max_entries = NonZeroUsize::new(100).expect("not zero");
    let client = Client::with_net(config, net.clone(), resolver);
    let (mut client, mut response) = (client.expect("a client"), Response::new());
    for host in 0..hosts {
        let url = format!("http://h{host}.sim/");
        client.get(&url, &mut response).expect("an answer");
    }
    client.close_idle();
    let known = client.hosts() as i64;
    let before = held_by_this_thread();
    drop(client);
    (before - held_by_this_thread(), known)
}

struct Answering;

impl SimServer for Answering {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        // A request is one segment.
        if data.ends_with(b"\r\n\r\n") {
            peer.send(*b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!");
        }
    }
}

/// Sends so many requests at the same time.
fn ask(client: &mut Client, url: &str, times: usize) {
    for _ in 0..times {
        client.submit(Call::new(Request::get(url), Response::new()));
    }
    while let Some(done) = client.wait(None).expect("an event queue").done() {
        done.outcome.expect("an answer");
    }
}

fn any_host(host: HostConfig) -> Client {
    let config = Config {
        max_connections: host.max_connections,
        host,
        ..Config::default()
    };
    Client::new(config).expect("a client")
}

fn host_config(connections: usize) -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::new(connections).expect("not zero"),
        idle_timeout: Duration::from_secs(600),
        ..HostConfig::default()
    }
}
