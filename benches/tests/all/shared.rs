//! The allocations of a call through `Shared`, counted over the threads of the caller, the client and the server, which
//! allocates nothing. In a process of its own, so that no other allocations are counted.
//!
//! The promise is at most two. A blocking call needs none, a future or a submission needs one. In addition, the queue
//! needs one block for each 31 messages. A streamed body needs a few for its reader, and its pieces are messages, too: how
//! many there are depends on how the threads take turns.

use std::env;
use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use benches::alloc::in_process;
use courser::{
    Call, Client, Config, HostClient, HostConfig, HttpClient, Request, Response, Shared,
    SharedConfig, Upstream,
};

use crate::server;

#[test]
fn few_allocations_per_call() {
    if env::var_os(ALONE).is_none() {
        let mut alone = Command::new(env::current_exe().expect("a program"));
        let test = "shared::few_allocations_per_call";
        alone.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
        let output = alone.output().expect("a process");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{output:?}"
        );
        return;
    }
    let address = server();
    let upstream = Upstream::tcp([address]);
    let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
    let one_host = Shared::spawn(SharedConfig::default(), build).expect("a thread");
    count(&one_host, "");
    let build = |_| Client::new(Config::default());
    let any_host = Shared::spawn(SharedConfig::default(), build).expect("a thread");
    count(&any_host, &format!("http://{address}"));
}

/// Counts with each way of calling. `base` is the prefix of a path.
fn count<C: HttpClient>(client: &Shared<C>, base: &str) {
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

    let (sender, arrived) = courser::shared::completions();
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
    for (path, pieces) in [("/1k", 1), ("/1m", MOST_PIECES)] {
        let mut request = Request::get(format!("{base}{path}"));
        let streamed = steady(|| {
            let mut body = client.open(&mut request, &mut response).expect("a head");
            while body.read_some(&mut buffer).expect("a body") > 0 {}
            body.finish().expect("a report");
        });
        println!("{base}{path}: {blocking} {awaited} {channel} {streamed} for {REQUESTS}");
        let most = (READER + pieces.div_ceil(31)) * REQUESTS;
        assert!(streamed <= most, "{path} streamed: {streamed}");
    }
}

/// The allocations of all threads in one measurement.
fn steady(round: impl FnMut()) -> u64 {
    crate::steady(in_process, REQUESTS, round)
}

/// Set in the process that counts.
const ALONE: &str = "BENCHES_TEST_ALONE";

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

/// Number of requests in one measurement.
const REQUESTS: u64 = 310;
/// Blocks of the queue for this number of messages, and one block that was started before.
const BLOCKS: u64 = REQUESTS / 31 + 1;
/// Most allocations for the reader of a streamed body.
const READER: u64 = 7;
/// Messages about a body of 1 MiB, with room: as a rule, each is about 16 KiB or more.
const MOST_PIECES: u64 = 256;
