//! The protocol core only: one exchange from the encoded request to the complete response, without a socket.

use std::hint::black_box;

use benches::serve;
use courser::proto::{BodyMode, Defaults, Exchange, Reuse, SendStep};
use courser::{Limits, Request, Response};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

criterion_group!(benches, encode, exchange, exchange_in_pieces);
criterion_main!(benches);

fn encode(criterion: &mut Criterion) {
    let defaults = Defaults::new("127.0.0.1:8080", Some("bench"));
    let mut request = Request::get("/some/path?and=query");
    request
        .header("Accept", "text/html")
        .header("X-Id", "0123456789");
    criterion.bench_function("encode", |bencher| {
        bencher.iter(|| {
            request.set_target("/some/path?and=query");
            request.encode(&defaults)
        });
    });
    criterion.bench_function("encode again", |bencher| {
        bencher.iter(|| black_box(&mut request).encode(&defaults));
    });
}

fn exchange(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("exchange");
    for path in ["/13", "/headers", "/16k", "/chunked"] {
        let mut setting = Setting::new(path);
        group.throughput(Throughput::Bytes(setting.answer.len() as u64));
        group.bench_function(path, |bencher| {
            bencher.iter(|| setting.exchange(usize::MAX))
        });
    }
}

fn exchange_in_pieces(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("exchange in pieces of 16 bytes");
    for path in ["/13", "/headers", "/chunked"] {
        let mut setting = Setting::new(path);
        group.throughput(Throughput::Bytes(setting.answer.len() as u64));
        group.bench_function(path, |bencher| bencher.iter(|| setting.exchange(16)));
    }
}

struct Setting {
    request: Request,
    response: Response,
    limits: Limits,
    answer: &'static [u8],
}

impl Setting {
    fn new(path: &str) -> Self {
        let mut request = Request::get(path);
        let defaults = Defaults::new("127.0.0.1:8080", Some("bench"));
        request.encode(&defaults).expect("a plain request");
        Self {
            request,
            response: Response::new(),
            limits: Limits::default(),
            answer: serve::answer(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()),
        }
    }

    /// Encodes the request, and reads the response in pieces of this length.
    fn exchange(&mut self, piece: usize) {
        self.response.clear();
        let mut exchange = Exchange::new(&self.request, BodyMode::Buffer);
        while let Ok(SendStep::Write(parts)) = exchange.poll_send(&mut self.request) {
            let length = black_box(parts).iter().map(|part| part.len()).sum();
            exchange.handle_sent(length);
        }
        for piece in black_box(self.answer).chunks(piece) {
            let read = exchange.handle_read(piece, &mut self.response, &self.limits);
            assert_eq!(read.ok(), Some(piece.len()));
        }
        assert_eq!(exchange.done(), Some(Reuse::Keep));
    }
}
