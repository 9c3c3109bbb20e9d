//! Floods of TLS records without content: session tickets, empty records, key updates.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use courser::{
    Call, Client, Config, ContentlessRecords, Error, ErrorKind, HostConfig, Proxies, Request,
    Response, TimeLimit, TlsConfig, TlsFault,
};

use super::server::{
    DATA, Flooder, HANDSHAKE, Identity, OK, healthy, listen, patient, read_head, tickets,
};

/// What a server sends without end.
#[derive(Clone, Copy, Debug)]
enum Flood {
    Tickets,
    Empty,
    KeyUpdates,
    /// Each of the two makes the other look harmless to rustls.
    KeyUpdatesAndEmpty,
    /// A little content now and then.
    Sparse,
}

impl Flood {
    /// True if the client has ended it.
    fn run<S: Write>(self, flooder: &mut Flooder<S>) -> bool {
        let tickets = tickets();
        flooder.flood(|flooder| match self {
            Self::Tickets => flooder.record(HANDSHAKE, &tickets),
            Self::Empty => flooder.record(DATA, b""),
            Self::KeyUpdates => flooder.key_update(),
            Self::KeyUpdatesAndEmpty => [flooder.key_update(), flooder.record(DATA, b"")].concat(),
            Self::Sparse => {
                let without = (0..30).flat_map(|_| flooder.key_update()).collect();
                [without, flooder.record(DATA, b"x")].concat()
            }
        })
    }

    /// The fault that ends the connection.
    fn fault(self) -> TlsFault {
        TlsFault::Contentless(match self {
            Self::Tickets => ContentlessRecords::Tickets,
            Self::Empty => ContentlessRecords::Empty,
            Self::KeyUpdates => ContentlessRecords::KeyUpdates,
            Self::KeyUpdatesAndEmpty | Self::Sparse => ContentlessRecords::Any,
        })
    }

    const ALL: [Self; 4] = [
        Self::Tickets,
        Self::Empty,
        Self::KeyUpdates,
        Self::KeyUpdatesAndEmpty,
    ];
}

/// A server that reads a request, sends `answer` and then floods.
fn flooding(identity: &Arc<Identity>, answer: &'static [u8], flood: Flood) -> u16 {
    let identity = Arc::clone(identity);
    listen(move |stream| {
        let mut session = identity.session(stream);
        if read_head(&mut session) && session.write_all(answer).is_ok() {
            flood.run(&mut session.flooder());
        }
    })
}

fn client(tls: TlsConfig) -> Client {
    client_with(tls, Config::default())
}

fn client_with(tls: TlsConfig, config: Config) -> Client {
    let host = HostConfig { tls, ..patient() };
    Client::new(Config { host, ..config }).unwrap()
}

fn call(tag: u64, url: &str) -> Call {
    Call::new(Request::get(url), Response::new()).tag(tag)
}

/// The outcomes of so many calls, by their tags.
fn outcomes<const N: usize>(client: &mut Client) -> [Result<(), Error>; N] {
    let mut outcomes = [const { None }; N];
    for _ in 0..N {
        let done = client.wait(None).unwrap().expect("a completion");
        outcomes[done.tag as usize] = Some(done.outcome);
    }
    outcomes.map(Option::unwrap)
}

#[track_caller]
fn assert_fault(outcome: &Result<(), Error>, fault: &TlsFault) {
    match outcome.as_ref().map_err(Error::kind) {
        Err(ErrorKind::Tls(found)) if found == fault => {}
        other => panic!("{other:?} instead of {fault:?}"),
    }
}

#[track_caller]
fn assert_late(outcome: &Result<(), Error>) {
    let kind = outcome.as_ref().map_err(Error::kind);
    let is_late = matches!(kind, Err(ErrorKind::Timeout(TimeLimit::Total)));
    assert!(is_late, "{kind:?} instead of a deadline");
}

/// Two calls to a server that floods instead of an answer, and one to a healthy server.
fn assert_calls_end(client: &mut Client, url: &str, fault: &TlsFault) {
    let good = format!("http://127.0.0.1:{}/", healthy());
    client.submit(call(0, url));
    client.submit(call(1, url));
    client.submit(call(2, &good));
    let outcomes = outcomes::<3>(client);
    assert_fault(&outcomes[0], fault);
    assert_fault(&outcomes[1], fault);
    assert!(outcomes[2].is_ok(), "{:?}", outcomes[2]);
    assert_eq!(client.counters().open, 1, "the healthy server's alone");
}

#[test]
fn instead_of_an_answer() {
    for flood in Flood::ALL {
        let identity = Arc::new(Identity::new());
        let url = format!("https://127.0.0.1:{}/", flooding(&identity, b"", flood));
        assert_calls_end(&mut client(identity.trusted()), &url, &flood.fault());
    }
}

#[test]
fn without_resumption() {
    let identity = Arc::new(Identity::new());
    let flood = Flood::Tickets;
    let url = format!("https://127.0.0.1:{}/", flooding(&identity, b"", flood));
    let tls = TlsConfig {
        resumption: 0,
        ..identity.trusted()
    };
    assert_calls_end(&mut client(tls), &url, &flood.fault());
}

/// A flood that brings content now and then is not the end of the connection, but the deadlines are.
#[test]
fn deadlines_fire_during_a_flood() {
    const BODY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n";
    let identity = Arc::new(Identity::new());
    let is_over = Arc::new(AtomicBool::new(false));
    let url = format!("https://127.0.0.1:{}/", {
        let (identity, is_over) = (Arc::clone(&identity), Arc::clone(&is_over));
        listen(move |stream| {
            let mut session = identity.session(stream);
            if read_head(&mut session) && session.write_all(BODY).is_ok() {
                let mut flooder = session.flooder();
                if !Flood::Sparse.run(&mut flooder) {
                    is_over.store(true, Ordering::SeqCst);
                }
            }
        })
    });
    let good = format!("http://127.0.0.1:{}/", healthy());
    let mut client = client(identity.trusted());
    let began = Instant::now();
    client.submit(call(0, &url).timeout(Duration::from_secs(1)));
    client.submit(call(1, &url).timeout(Duration::from_secs(2)));
    client.submit(call(2, &good));
    let outcomes = outcomes::<3>(&mut client);
    assert_late(&outcomes[0]);
    assert_late(&outcomes[1]);
    assert!(outcomes[2].is_ok(), "{:?}", outcomes[2]);
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert!(!is_over.load(Ordering::SeqCst), "the flood ended before");
}

/// The flood begins together with the answer, or after the client has got the answer.
#[test]
fn on_an_idle_connection() {
    for (flood, later) in Flood::ALL.into_iter().flat_map(|f| [(f, false), (f, true)]) {
        let identity = Arc::new(Identity::new());
        let (begin, signal) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let url = format!("https://127.0.0.1:{}/", {
            let (identity, is_over) = (Arc::clone(&identity), Arc::clone(&is_over));
            let signal = Mutex::new(signal);
            listen(move |stream| {
                let mut session = identity.session(stream);
                if read_head(&mut session)
                    && session.write_all(OK).is_ok()
                    && signal.lock().unwrap().recv().is_ok()
                {
                    let mut flooder = session.flooder();
                    if !flood.run(&mut flooder) {
                        is_over.store(true, Ordering::SeqCst);
                    }
                }
            })
        });
        let good = format!("http://127.0.0.1:{}/", healthy());
        let mut client = client(identity.trusted());
        if !later {
            begin.send(()).unwrap();
        }
        let mut response = Response::new();
        client.get(&url, &mut response).unwrap();
        if later {
            begin.send(()).unwrap();
        }
        // The client goes on serving calls, and after a while only the connection to the healthy server is left.
        client.get(&good, &mut response).unwrap();
        while client.counters().open > 1 {
            client.get(&good, &mut response).unwrap();
            client.maintain(Duration::from_millis(1)).unwrap();
        }
        let is_over = is_over.load(Ordering::SeqCst);
        assert!(!is_over, "{flood:?}: the server has ended the connection");
    }
}

/// A session inside the session with the proxy: either of the two floods.
#[test]
fn through_a_proxy_with_tls() {
    for (flood, by_proxy) in Flood::ALL.into_iter().flat_map(|f| [(f, false), (f, true)]) {
        let (outer, inner) = (Arc::new(Identity::new()), Arc::new(Identity::new()));
        let port = listen({
            let (outer, inner) = (Arc::clone(&outer), Arc::clone(&inner));
            move |stream| {
                let mut proxy = outer.session(stream);
                if !read_head(&mut proxy) || proxy.write_all(ESTABLISHED).is_err() {
                    return;
                }
                let mut session = inner.session(proxy);
                if !read_head(&mut session) {
                    return;
                }
                match by_proxy {
                    true => flood.run(&mut session.into_lower().flooder()),
                    false => flood.run(&mut session.flooder()),
                };
            }
        });
        let proxy = format!("https://127.0.0.1:{port}").parse().unwrap();
        let config = Config {
            proxy_tls: Some(outer.trusted()),
            proxies: Proxies::default().https(proxy),
            ..Config::default()
        };
        let mut client = client_with(inner.trusted(), config);
        assert_calls_end(&mut client, "https://127.0.0.1:9/", &flood.fault());
    }
}

/// A proxy that floods while the handshake with the server is under way.
#[test]
fn during_the_handshake_behind_a_proxy() {
    for flood in Flood::ALL {
        let outer = Arc::new(Identity::new());
        let port = listen({
            let outer = Arc::clone(&outer);
            move |stream| {
                let mut proxy = outer.session(stream);
                if read_head(&mut proxy) && proxy.write_all(ESTABLISHED).is_ok() {
                    flood.run(&mut proxy.flooder());
                }
            }
        });
        let proxy = format!("https://127.0.0.1:{port}").parse().unwrap();
        let config = Config {
            proxy_tls: Some(outer.trusted()),
            proxies: Proxies::default().https(proxy),
            ..Config::default()
        };
        let mut client = client_with(TlsConfig::default(), config);
        assert_calls_end(&mut client, "https://127.0.0.1:9/", &flood.fault());
    }
}

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
