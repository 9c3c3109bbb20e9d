//! What a call through `Shared` allocates: counted over all threads, the caller's, the client's and the server's, which
//! allocates nothing. One test, in a process of its own, so that no other test's allocations are counted.
//!
//! The promise is at most two. A blocking call needs none; a future or a submission needs one. The blocks of the queue,
//! each for 31 messages, are in addition. A streamed body needs a few for its reader, whatever the length of the body is.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use benches::alloc::in_process;
use benches::serve::Server;
use courser::{
    Call, Client, Config, Drive, HostClient, HostConfig, Request, Response, Shared, SharedConfig,
    Upstream,
};

#[test]
fn few_allocations_per_call() {
    let server = Server::bind(0).expect("a loopback port");
    let address = server.address();
    thread::spawn(move || server.run(None));
    let upstream = Upstream::tcp([address]);
    let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
    let one_host = Shared::spawn(SharedConfig::default(), build).expect("a thread");
    count(&one_host, "");
    let build = |_| Client::new(Config::default());
    let any_host = Shared::spawn(SharedConfig::default(), build).expect("a thread");
    count(&any_host, &format!("http://{address}"));
}

/// `base` comes before a path.
fn count<C: Drive>(client: &Shared<C>, base: &str) {
    let target = format!("{base}/1k");
    let mut response = Response::new();
    let blocking = steady(|| {
        client.get(&target, &mut response).expect("an answer");
    });
    assert!(blocking <= BLOCKS, "blocking: {blocking}");

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut buffers = Some((Request::get(&target), Response::new()));
    let awaited = steady(|| {
        let (request, response) = buffers.take().expect("put back");
        let done = block_on(&waker, client.send(Call::new(request, response)));
        done.outcome.expect("an answer");
        buffers = Some((done.request, done.response));
    });
    assert!(awaited <= REQUESTS + BLOCKS, "awaited: {awaited}");

    let (sender, arrived) = courser::completions();
    let channel = steady(|| {
        let (request, response) = buffers.take().expect("put back");
        let call = Call::new(request, response);
        client.submit(call, &sender).expect("room");
        let done = arrived.wait(None).expect("a completion");
        done.outcome.expect("an answer");
        buffers = Some((done.request, done.response));
    });
    assert!(channel <= REQUESTS + 2 * BLOCKS, "channel: {channel}");

    let mut buffer = vec![0; 16 * 1024];
    for path in ["/1k", "/1m"] {
        let mut request = Request::get(format!("{base}{path}"));
        let streamed = steady(|| {
            let mut body = client.open(&mut request, &mut response).expect("a head");
            while body.read_some(&mut buffer).expect("a body") > 0 {}
            body.finish().expect("a report");
        });
        println!("{base}{path}: {blocking} {awaited} {channel} {streamed} for {REQUESTS}");
        assert!(
            streamed <= MOST_STREAMED * REQUESTS,
            "{path} streamed: {streamed}"
        );
    }
}

/// Allocations in that many rounds: the least of several measurements, see the tests of `HostClient`.
fn steady(mut round: impl FnMut()) -> u64 {
    let mut window = || {
        let before = in_process();
        for _ in 0..REQUESTS {
            round();
        }
        in_process() - before
    };
    (0..WINDOWS).map(|_| window()).min().unwrap_or(u64::MAX)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(waker: &Waker, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// In one window.
const REQUESTS: u64 = 310;
/// The queue's, for that many messages, and one that was begun before.
const BLOCKS: u64 = REQUESTS / 31 + 1;
const WINDOWS: usize = 8;
/// For each streamed body.
const MOST_STREAMED: u64 = 8;
