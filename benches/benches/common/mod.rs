//! What the benchmarks of clients share.

use std::time::{Duration, Instant};

use courser::{Call, HttpClient, Request, Response};
use criterion::Bencher;
use tokio::runtime::{Builder, Runtime};

/// Measures rounds of exchanges; `rounds` makes so many, and returns how long that took. criterion makes a new client for
/// each sample, so the first round, which opens the connections, is not measured.
pub(crate) fn measure_rounds(bencher: &mut Bencher<'_>, mut rounds: impl FnMut(u64) -> Duration) {
    rounds(1);
    bencher.iter_custom(rounds);
}

/// Measures a client that keeps so many calls in flight. In a round, there are as many exchanges.
pub(crate) fn measure_client(
    bencher: &mut Bencher<'_>,
    client: &mut dyn HttpClient,
    target: &str,
    in_flight: usize,
) {
    let new = |_| (Request::get(target), Response::new());
    let mut idle: Vec<_> = (0..in_flight).map(new).collect();
    measure_rounds(bencher, |rounds| {
        let began = Instant::now();
        let mut left = rounds * in_flight as u64;
        for (request, response) in idle.drain(..) {
            left -= 1;
            client.submit(Call::new(request, response));
        }
        while let Some(done) = client.wait(None).expect("events").done() {
            done.outcome.expect("an answer");
            if left > 0 {
                left -= 1;
                client.submit(Call::new(done.request, done.response));
            } else {
                idle.push((done.request, done.response));
            }
        }
        began.elapsed()
    });
}

/// A runtime on this thread alone.
pub(crate) fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}
