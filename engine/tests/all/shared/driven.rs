//! `Shared::driven`: the caller's executor drives the client. That no wake-up is lost is in `engine/src/shared/models_tests.rs`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use courser::error::Stopped;
use courser::shared::{Driver, Turn};
use courser::{
    BatchConfig, ErrorKind, HostClient, HostConfig, Misuse, Request, Response, Shared,
    SharedConfig, Timeouts, Upstream,
};
use tokio::task::{LocalSet, spawn_local};

use super::server::Server;
use super::{LONG, block_on, call};

/// Runs `test` with a client for `server`, which a task of the same thread drives. The driver must end at the end.
fn with_driver(
    built: (Shared<HostClient>, Driver<HostClient>),
    test: impl AsyncFnOnce(Shared<HostClient>),
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, driver) = built;
    runtime.block_on(LocalSet::new().run_until(async {
        let driver = spawn_local(driver.run_on_tokio());
        test(client).await;
        driver.await.unwrap().unwrap();
    }))
}

fn driven(server: &Server) -> (Shared<HostClient>, Driver<HostClient>) {
    let client = HostClient::new(server.upstream(), HostConfig::default()).unwrap();
    Shared::driven(SharedConfig::default(), client).unwrap()
}

#[test]
fn a_time_limit_ends_a_call_without_any_event() {
    let server = Server::start();
    with_driver(driven(&server), async |client| {
        // The first limit sets the timer of the executor; the second is earlier, the third later.
        let limits = [60, 30, 90].map(Duration::from_millis);
        let calls = limits.map(|limit| {
            let began = Instant::now();
            let sending = client.send(call("/held").timeout(limit));
            (began, limit, sending)
        });
        for (began, limit, sending) in calls {
            let done = sending.await;
            assert!(done.outcome.unwrap_err().is_timeout());
            assert!(began.elapsed() >= limit);
        }
    });
}

#[test]
fn what_would_block_is_refused() {
    let server = Server::start();
    with_driver(driven(&server), async |client| {
        let is_blocking =
            |error: &courser::Error| matches!(error.kind(), ErrorKind::Misuse(Misuse::Blocking));
        let (mut request, mut response) = (Request::get("/"), Response::new());
        assert!(is_blocking(&client.get("/", &mut response).unwrap_err()));
        let called = client.call(&mut request, &mut response);
        assert!(is_blocking(&called.unwrap_err()));
        assert_eq!(request.target(), "/");
        let opened = client.open(&mut request, &mut response);
        assert!(is_blocking(&opened.unwrap_err()));
        let mut batch = client.call_many([call("/")], BatchConfig::default());
        let (_, done) = batch.next().unwrap();
        assert!(is_blocking(&done.outcome.unwrap_err()));
        let (_, body) = client.send_streaming(call("/drip")).await;
        assert!(is_blocking(&body.unwrap().finish().unwrap_err()));
    });
    let threads = NonZeroUsize::new(2).unwrap();
    let config = SharedConfig {
        threads,
        ..SharedConfig::default()
    };
    let mut host = HostConfig::default();
    let client = HostClient::new(server.upstream(), host.clone()).unwrap();
    let error = Shared::driven(config, client).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::Unsupported(_)));
    host.socket.busy_poll = Some(Duration::from_micros(9));
    let client = HostClient::new(server.upstream(), host).unwrap();
    let error = Shared::driven(SharedConfig::default(), client).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::Unsupported(_)));
}

#[test]
fn a_dropped_driver_fails_its_calls_and_gives_their_buffers_back() {
    let server = Server::start();
    let (client, mut driver) = driven(&server);
    let running = client.send(call("/held"));
    assert_ne!(driver.turn().unwrap(), Turn::Ended);
    let queued = client.send(call("/queued"));
    drop(driver);
    let (running, queued) = (block_on(running), block_on(queued));
    assert_kind!(running.outcome.unwrap_err(), ErrorKind::Cancelled);
    for (done, target) in [
        (queued, "/queued"),
        (block_on(client.send(call("/late"))), "/late"),
    ] {
        let error = done.outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Stopped(Stopped::ShutDown));
        assert_eq!(done.request.target(), target);
    }
    assert_eq!(client.in_flight(), 0);
}

#[test]
fn a_shutdown_lets_calls_end_and_then_the_driver() {
    let server = Server::start();
    with_driver(driven(&server), async |client| {
        let running = client.send(call("/a"));
        assert_eq!(client.shutdown(LONG), 0);
        running.await.outcome.unwrap();
        let cut_off = client.send(call("/b")).await;
        assert_kind!(
            cut_off.outcome.unwrap_err(),
            ErrorKind::Stopped(Stopped::ShutDown)
        );
    });
}

/// One poll reports 1,024 events at most, and the descriptor does not announce the others again: a driver that forgot
/// them would sleep for ever.
#[test]
fn more_events_than_one_poll_reports_are_handled() {
    const CONNECTIONS: usize = 2_200;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // All connections may come at once; those beyond the usual number would come seconds later.
    rustix::net::listen(&listener, CONNECTIONS as i32).unwrap();
    let upstream = Upstream::tcp([listener.local_addr().unwrap()]);
    let (ready, all_asked) = channel();
    let (go_on, answer) = channel::<()>();
    let server = std::thread::spawn(move || {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1_000];
            assert!(stream.read(&mut head).unwrap() > 0);
            streams.push(stream);
        }
        ready.send(()).unwrap();
        answer.recv().unwrap();
        let respond = |stream: &mut TcpStream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        };
        streams
            .iter_mut()
            .for_each(|stream| respond(stream).unwrap());
        streams
    });
    let config = HostConfig {
        max_connections: NonZeroUsize::new(CONNECTIONS).unwrap(),
        timeouts: Timeouts::none(),
        ..HostConfig::default()
    };
    let client = HostClient::new(upstream, config).unwrap();
    let built = Shared::driven(SharedConfig::default(), client).unwrap();
    with_driver(built, async |client| {
        let calls: Vec<_> = (0..CONNECTIONS).map(|_| client.send(call("/"))).collect();
        while all_asked.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        // While all answers come, the driver has no turn.
        go_on.send(()).unwrap();
        let _open = server.join().unwrap();
        for sending in calls {
            assert_eq!(sending.await.response.body(), b"hi");
        }
    });
}
