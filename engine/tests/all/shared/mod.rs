//! `Shared` over real sockets: every call completes exactly once with its own answer, however the client and its
//! callers end.

mod bodies;
mod driven;
mod many;
pub(crate) mod server;
mod uploads;

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use courser::error::{LimitExceeded, Stopped};
use courser::{
    BatchConfig, Call, Caps, ErrorKind, HostClient, HostConfig, Misuse, Request, Response, Sent,
    Shared, SharedConfig, Upstream,
};
use futures_lite::future::block_on;
use server::Server;

/// A limit that nothing reaches.
const LONG: Duration = Duration::from_secs(3600);

fn call(target: &str) -> Call {
    Call::new(Request::get(target), Response::new())
}

/// A server, and a client of it.
fn started() -> (Server, Shared<HostClient>) {
    let server = Server::start();
    let client = server.client(SharedConfig::default(), patient());
    (server, client)
}

/// An idle connection stays open until the next call, however busy the machine is.
fn patient() -> HostConfig {
    HostConfig {
        idle_timeout: LONG,
        ..HostConfig::default()
    }
}

#[test]
fn the_limit_of_calls_counts_untaken_completions() {
    let server = Server::start();
    let config = SharedConfig {
        max_in_flight: 2,
        ..SharedConfig::default()
    };
    let client = server.client(config, HostConfig::default());
    let (sender, arrived) = courser::shared::completions();
    client.submit(call("/1"), &sender).unwrap();
    client.submit(call("/2"), &sender).unwrap();
    let full = |error: &courser::Error| {
        assert_kind!(error, ErrorKind::Limit(LimitExceeded::InFlight(2)));
        assert_eq!(error.sent(), Sent::Nothing);
    };
    // Whether or not the answers are there: they were not taken.
    let refused = client.submit(call("/3").tag(3), &sender).unwrap_err();
    full(&refused.error);
    let done = block_on(client.send(refused.call));
    full(&done.outcome.unwrap_err());
    assert_eq!((done.tag, done.request.target()), (3, "/3"));
    let (mut request, mut response) = (Request::get("/4"), Response::new());
    full(&client.call(&mut request, &mut response).unwrap_err());
    assert_eq!(request.target(), "/4");
    arrived.wait(None).unwrap();
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(response.body(), b"/4");
}

#[test]
fn a_batch_makes_do_with_the_permits_that_there_are() {
    let server = Server::start();
    let config = SharedConfig {
        max_in_flight: 3,
        ..SharedConfig::default()
    };
    let client = server.client(config, HostConfig::default());
    let calls = (0..100).map(|n| call(&format!("/{n}")));
    let results = client.call_many(calls, BatchConfig::default());
    let served = results.filter(|(_, done)| done.outcome.is_ok());
    assert_eq!(served.count(), 100);
    // Without any permit, the batch fails and does not wait for others.
    let held: Vec<_> = (0..3).map(|_| client.send(call("/held"))).collect();
    server.wait_held(3);
    for (_, done) in client.call_many((0..2).map(|_| call("/")), BatchConfig::default()) {
        let error = done.outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Limit(LimitExceeded::InFlight(3)));
    }
    drop(held);
}

#[test]
fn a_close_is_awaited() {
    let (server, client) = started();
    let held = client.send(call("/held"));
    server.wait_held(1);
    assert_eq!(block_on(client.close(Duration::from_millis(20))), 1);
    block_on(held).outcome.unwrap_err();
    // The end is the end, also for those who ask later.
    assert_eq!(block_on(client.close(Duration::ZERO)), 1);
    assert_eq!(client.shutdown(Duration::ZERO), 1);
}

#[test]
fn a_shorter_shutdown_limit_replaces_a_longer_one() {
    let (server, client) = started();
    let held = client.send(call("/held"));
    server.wait_held(1);
    thread::scope(|scope| {
        let patient = scope.spawn(|| client.shutdown(LONG));
        let now = scope.spawn(|| client.shutdown_now());
        assert_eq!(patient.join().unwrap() + now.join().unwrap(), 1);
    });
    assert_kind!(block_on(held).outcome.unwrap_err(), ErrorKind::Cancelled);
}

/// Suppresses the messages of intended panics.
const ON_PURPOSE: &str = "on purpose";

pub(crate) fn quiet_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&ON_PURPOSE) {
                usual(info);
            }
        }));
    });
}

pub(crate) struct Explosive;

impl std::io::Read for Explosive {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        std::panic::panic_any(ON_PURPOSE)
    }
}

#[test]
fn a_panic_in_a_body_source_fails_the_calls_and_not_the_client() {
    quiet_panics();
    let (server, client) = started();
    let bystander = client.send(call("/held"));
    server.wait_held(1);
    let mut request = Request::post("/", "");
    request.body_stream(Explosive, None);
    let error = client.call(&mut request, &mut Response::new()).unwrap_err();
    assert_kind!(error, ErrorKind::Stopped(Stopped::Panicked));
    let error = block_on(bystander).outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Stopped(Stopped::Panicked));
    let mut response = Response::new();
    client.get("/after", &mut response).unwrap();
    assert_eq!(response.body(), b"/after");
    assert_eq!(client.in_flight(), 0);
}

#[test]
fn limits_can_be_changed_and_outlive_a_panic() {
    quiet_panics();
    let (server, client) = started();
    let caps = |n| Caps {
        max_connections: NonZeroUsize::new(n),
        ..Caps::default()
    };
    let full = Caps {
        max_waiting: Some(0),
        ..caps(1)
    };
    client.set_caps(&full).unwrap();
    let mut request = Request::post("/", "");
    request.body_stream(Explosive, None);
    client.call(&mut request, &mut Response::new()).unwrap_err();
    let first = client.send(call("/held/1"));
    server.wait_held(1);
    let refused = client.get("/", &mut Response::new()).unwrap_err();
    assert_kind!(refused, ErrorKind::Limit(LimitExceeded::Waiting(0)));
    client.set_caps(&caps(2)).unwrap();
    let second = client.send(call("/held/2"));
    server.wait_held(2);
    server.release();
    for future in [first, second] {
        block_on(future).outcome.unwrap();
    }
}

#[test]
fn a_panic_in_the_waker_of_a_task_loses_no_call() {
    quiet_panics();
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            std::panic::panic_any(ON_PURPOSE);
        }
    }
    let (server, client) = started();
    let mut future = pin!(client.send(call("/held")));
    let waker = Waker::from(Arc::new(Bomb));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    server.release();
    block_on(future).outcome.unwrap();
    client.get("/after", &mut Response::new()).unwrap();
}

#[test]
fn without_a_new_client_after_a_panic_calls_are_refused() {
    quiet_panics();
    let server = Server::start();
    let (upstream, built) = (server.upstream(), AtomicUsize::new(0));
    let build = move |_| match built.fetch_add(1, Ordering::SeqCst) {
        0 => HostClient::new(upstream.clone(), HostConfig::default()),
        _ => std::panic::panic_any(ON_PURPOSE),
    };
    let client = Shared::spawn(SharedConfig::default(), build).unwrap();
    let mut request = Request::post("/", "");
    request.body_stream(Explosive, None);
    client.call(&mut request, &mut Response::new()).unwrap_err();
    let error = client.get("/", &mut Response::new()).unwrap_err();
    assert_kind!(error, ErrorKind::Stopped(Stopped::NoClient));
    assert_eq!(client.shutdown(LONG), 0);
}

#[test]
fn a_constructor_that_fails_is_the_callers_error() {
    quiet_panics();
    let no_address = |_| HostClient::new(Upstream::tcp([]), HostConfig::default());
    let error = Shared::spawn(SharedConfig::default(), no_address).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::NoAddress));
    let panics = |_| -> Result<HostClient, courser::Error> { std::panic::panic_any(ON_PURPOSE) };
    let error = Shared::spawn(SharedConfig::default(), panics).unwrap_err();
    assert_kind!(error, ErrorKind::Stopped(Stopped::Panicked));
    let on = |threads| SharedConfig {
        threads,
        ..SharedConfig::default()
    };
    let two = NonZeroUsize::MIN.saturating_add(1);
    let error = Shared::spawn(on(two), no_address).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::OneThread));
    let error = Shared::spawn(on(NonZeroUsize::MAX), no_address).unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::OutOfRange { .. }));
}

#[test]
fn a_callback_that_waits_for_its_own_thread_gets_an_error() {
    type Place = Arc<std::sync::OnceLock<Shared<HostClient>>>;
    struct Caller(Place, std::sync::mpsc::Sender<courser::Error>);
    impl std::io::Read for Caller {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            let client = self.0.get().unwrap();
            let error = client.get("/", &mut Response::new()).unwrap_err();
            self.1.send(error).unwrap();
            Ok(0)
        }
    }
    let (_server, client) = started();
    let place = Place::default();
    let client = place.get_or_init(|| client);
    let (errors, heard) = std::sync::mpsc::channel();
    let mut request = Request::new("POST", "/");
    request.body_stream(Caller(Arc::clone(&place), errors), None);
    request.add_header("Connection", "close");
    client.call(&mut request, &mut Response::new()).unwrap();
    let error = heard.recv().unwrap();
    assert_kind!(error, ErrorKind::Misuse(Misuse::OwnThread));
}

#[test]
fn streamed_calls_need_the_streaming_method() {
    let (_server, client) = started();
    let done = block_on(client.send(call("/").streaming(true)));
    let error = done.outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::Streamed));
    let (sender, _arrived) = courser::shared::completions();
    let refused = client.submit(call("/").streaming(true), &sender);
    let error = refused.unwrap_err().error;
    assert_kind!(error, ErrorKind::Misuse(Misuse::Streamed));
    assert_eq!(client.in_flight(), 0);
}
