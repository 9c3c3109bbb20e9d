//! Connections that switch to another protocol: plain, under TLS, and under TLS inside the TLS session with a proxy;
//! taken over by blocking, polling and tokio's programs, or left.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use courser::error::TlsFault;
use courser::{
    Call, Client, Completion, Config, HostClient, Proxies, Request, Response, Shared, SharedConfig,
    TlsConfig, Upgraded, Upstream,
};
use tests::clients::{any_client, any_config, assert_none_left, config};
use tests::script::{Gate, PATIENCE, Script, Server, connection};
use tests::tls::{Acceptor, Authority};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::OK;

const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nhello";
const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// The ways to a server, each with what its connection begins with.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Tls,
    TlsInTls,
}

const WAYS: [Way; 3] = [Way::Plain, Way::Tls, Way::TlsInTls];

/// A server, and the proxy before it.
struct Peer {
    authority: Authority,
    own: Acceptor,
}

impl Peer {
    fn new() -> Self {
        let authority = Authority::new("authority");
        Self {
            own: authority.leaf(&["a.example", "127.0.0.1"]).acceptor(),
            authority,
        }
    }

    /// A server whose connections end with `then`, after the switch.
    fn serve(&self, way: Way, then: impl Fn(Script) -> Script) -> Server {
        let begun = match way {
            Way::Plain => connection(),
            Way::Tls => connection().tls(&self.own),
            Way::TlsInTls => connection()
                .tls(&self.own)
                .request()
                .send(ESTABLISHED)
                .tls(&self.own),
        };
        Server::play([then(begun.request().send(SWITCHED))])
    }

    fn config(&self, way: Way, server: &Server) -> Config {
        let tls: TlsConfig = self.authority.trusted();
        let mut config = any_config();
        config.host.tls = tls;
        if matches!(way, Way::TlsInTls) {
            let proxy = format!("https://{}", server.address());
            config.proxies = Proxies::all(proxy.parse().unwrap());
        }
        config
    }

    fn upgrade(&self, way: Way, server: &Server) -> (Client, Upgraded) {
        let (mut client, mut response) = (any_client(self.config(way, server)), Response::new());
        let called = client.call(&mut request(way, server), &mut response);
        called.unwrap();
        assert_eq!((response.status(), response.body()), (101, &b""[..]));
        (client, response.take_upgraded().expect("the connection"))
    }
}

fn request(way: Way, server: &Server) -> Request {
    let address = server.address();
    let mut request = Request::get(match way {
        Way::Plain => format!("http://{address}/"),
        Way::Tls => format!("https://{address}/"),
        Way::TlsInTls => "https://a.example/".to_owned(),
    });
    request
        .add_header("Connection", "Upgrade")
        .add_header("Upgrade", "raw");
    request
}

fn million() -> Vec<u8> {
    (0..1_000_000).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// A shared client gives the connection away. Both directions at the same time, with small socket buffers, so that neither
/// ends at once.
#[test]
fn tasks_of_tokio_read_and_write_at_the_same_time() {
    let peer = Peer::new();
    let swap = |script: Script| script.small_buffers().send(million()).take(million().len());
    for way in WAYS {
        println!("{way:?}");
        let server = peer.serve(way, swap);
        let config = peer.config(way, &server);
        let build = move |_| Client::new(config.clone());
        let client = Shared::spawn(SharedConfig::default(), build).unwrap();
        let call = Call::new(request(way, &server), Response::new());
        assert_swaps(&server, client.send(call));
    }
    // A client of one host that is a proxy can ask for the tunnel itself.
    let established = format!("{ESTABLISHED}hello");
    let proxy = Server::play([swap(connection().request().send(established))]);
    let upstream = Upstream::tcp([proxy.address()]);
    let build = move |_| HostClient::new(upstream.clone(), config());
    let client = Shared::spawn(SharedConfig::default(), build).unwrap();
    let connect = Request::new("CONNECT", "a.example:443");
    assert_swaps(&proxy, client.send(Call::new(connect, Response::new())));
    assert_eq!(proxy.lines(), ["CONNECT a.example:443 HTTP/1.1"]);
}

fn assert_swaps(server: &Server, call: impl Future<Output = Completion>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut done = call.await;
        done.outcome.unwrap();
        let connection = done.response.take_upgraded().expect("the connection");
        let (mut reader, mut writer) = tokio::io::split(connection.into_tokio().unwrap());
        let writing = tokio::spawn(async move {
            writer.write_all(&million()).await.unwrap();
            writer.flush().await.unwrap();
        });
        let mut came = vec![0; 5 + million().len()];
        reader.read_exact(&mut came).await.unwrap();
        writing.await.unwrap();
        assert!(came[5..] == million());
    });
    server.wait_all_ended();
    assert!(server.taken().concat() == million());
}

#[test]
fn a_stream_that_ends_without_notice_is_truncated_under_tls() {
    let peer = Peer::new();
    for way in WAYS {
        let server = peer.serve(way, Script::close);
        let (_client, mut connection) = peer.upgrade(way, &server);
        let mut came = Vec::new();
        let end = connection.read_to_end(&mut came);
        assert_eq!(came, b"hello");
        match (way, end) {
            (Way::Plain, end) => assert_eq!(end.unwrap(), 5),
            (_, end) => {
                let error = end.unwrap_err();
                let fault = error.get_ref().and_then(|e| e.downcast_ref::<TlsFault>());
                assert_eq!(fault, Some(&TlsFault::Truncated), "{way:?}");
            }
        }
        // There is nothing to say to a peer that has cut the connection.
        let server = peer.serve(way, Script::reset);
        let (_client, mut connection) = peer.upgrade(way, &server);
        server.wait_all_ended();
        let _ = connection.read_to_end(&mut came);
        connection.shutdown().unwrap();
    }
}

#[test]
fn reads_wait_as_long_as_they_are_told() {
    let peer = Peer::new();
    for way in WAYS {
        let gate = Gate::new();
        let server = peer.serve(way, |script| script.wait(&gate).send("late"));
        let (_client, mut connection) = peer.upgrade(way, &server);
        let mut early = [0; 5];
        connection.read_exact(&mut early).unwrap();
        let mut rest = [0; 4];
        let limit = Duration::from_millis(20);
        connection.set_read_timeout(Some(limit)).unwrap();
        let began = Instant::now();
        let error = connection.read(&mut rest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(began.elapsed() >= limit / 2);
        connection.set_nonblocking(true).unwrap();
        let error = connection.read(&mut rest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        connection.set_nonblocking(false).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        gate.open();
        connection.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"late", "{way:?}");
    }
}

/// A peer that reads nothing for a while: what is written is taken as far as there is room.
#[test]
fn writes_wait_as_long_as_they_are_told() {
    let peer = Peer::new();
    // More than the buffers of both sockets hold.
    let sent = million().repeat(16);
    for way in WAYS {
        let gate = Gate::new();
        let server = peer.serve(way, |script| {
            let read = script.wait(&gate).take(sent.len());
            read.send(million()).close_notify()
        });
        let (_client, mut connection) = peer.upgrade(way, &server);
        let limit = Duration::from_millis(20);
        connection.set_write_timeout(Some(limit)).unwrap();
        let (mut at, mut waits) = (0, 0);
        while at < sent.len() {
            match connection.write(&sent[at..]) {
                Ok(n) => at += n,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{way:?}");
                    waits += 1;
                    gate.open();
                }
            }
        }
        assert!(waits > 0, "{way:?}");
        connection.set_write_timeout(None).unwrap();
        connection.flush().unwrap();
        // And all that comes is read to its end.
        if let Way::Plain = way {
            connection.shutdown().unwrap();
        }
        let mut came = Vec::new();
        connection.read_to_end(&mut came).unwrap();
        assert!(came == [b"hello".to_vec(), million()].concat(), "{way:?}");
        drop(connection);
        server.wait_all_ended();
        assert!(server.taken().concat() == sent, "{way:?}");
    }
}

#[test]
fn a_connection_that_nobody_takes_is_closed() {
    let peer = Peer::new();
    for way in WAYS {
        for again in [false, true] {
            let server = peer.serve(way, |script| script);
            let other = Server::every(connection().always(OK));
            let mut config = peer.config(way, &server);
            config.proxies = config.proxies.except("127.0.0.1");
            let mut client = any_client(config);
            let mut response = Response::new();
            client
                .call(&mut request(way, &server), &mut response)
                .unwrap();
            if again {
                let url = format!("http://{}/", other.address());
                client.get(&url, &mut response).unwrap();
                assert!(response.take_upgraded().is_none());
            } else {
                drop(response);
            }
            server.wait_all_ended();
            assert_none_left(client, [&server, &other]);
        }
    }
}

/// It outlives its client.
#[test]
fn only_a_plain_connection_is_given_away_as_a_descriptor() {
    let peer = Peer::new();
    for way in WAYS {
        let server = peer.serve(way, |script| script.take(4).send("pong"));
        let (client, mut connection) = peer.upgrade(way, &server);
        drop(client);
        assert_eq!(connection.is_secure(), !matches!(way, Way::Plain));
        let mut first = [0; 2];
        connection.read_exact(&mut first).unwrap();
        match connection.into_descriptor() {
            Ok((descriptor, early)) => {
                assert_eq!((&first, &early[..]), (b"he", &b"llo"[..]));
                let mut stream = TcpStream::from(descriptor);
                stream.write_all(b"ping").unwrap();
                let mut came = [0; 4];
                stream.read_exact(&mut came).unwrap();
                assert_eq!(&came, b"pong");
            }
            Err(mut connection) => {
                assert!(!matches!(way, Way::Plain));
                connection.write_all(b"ping").unwrap();
                let mut came = [0; 7];
                connection.read_exact(&mut came).unwrap();
                assert_eq!(&came, b"llopong");
            }
        }
    }
}
