//! What each client itself costs: GETs through memory, without a kernel and without a server.
//!
//! Courser gets a network of its own ([`Net`]), whose peer has the answer as soon as the request is written; hyper gets
//! the same peer as its stream. `hyper-util` is hyper with the pool that reqwest is built on. reqwest itself takes no
//! stream from its caller, and does more for each request than that pool.

mod common;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{self, IoSlice};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, Waker as TaskWaker};
use std::time::{Duration, Instant};

use common::{measure_client, measure_rounds, runtime};
use courser::net::{Address, Event, Net, Token, Waker};
use courser::{
    Client, Config, HostClient, HostConfig, PipelineClient, PipelineConfig, SocketOptions,
    SystemResolver, Upstream,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper_util::client::legacy::Client as Pooled;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

criterion_group!(benches, get);
criterion_main!(benches);

const ADDRESS: ([u8; 4], u16) = ([192, 0, 2, 1], 80);
const URL: &str = "http://192.0.2.1/";

fn get(criterion: &mut Criterion) {
    for (body, answer) in [
        ("13 B", framed(13)),
        ("16 KiB", framed(16 << 10)),
        ("chunked", chunked()),
    ] {
        let mut group = criterion.benchmark_group(format!("in memory {body}"));
        group.sample_size(20);
        group.warm_up_time(Duration::from_millis(200));
        group.measurement_time(Duration::from_millis(800));
        let upstream = || Upstream::tcp([ADDRESS.into()]);
        for (name, in_flight) in [("HostClient", 1), ("HostClient x64", 64)] {
            group.throughput(Throughput::Elements(in_flight as u64));
            group.bench_function(name, |bencher| {
                let config = HostConfig::default();
                let net = Memory::new(answer.clone());
                let mut client = HostClient::with_net(upstream(), config, net).expect("a client");
                measure_client(bencher, &mut client, "/", in_flight);
            });
        }
        for (name, in_flight) in [("Client", 1), ("Client x64", 64)] {
            group.throughput(Throughput::Elements(in_flight as u64));
            group.bench_function(name, |bencher| {
                let (config, net) = (Config::default(), Memory::new(answer.clone()));
                let client = Client::with_net(config, net, SystemResolver::default());
                measure_client(bencher, &mut client.expect("a client"), URL, in_flight);
            });
        }
        group.bench_function("PipelineClient x64", |bencher| {
            let config = PipelineConfig {
                host: HostConfig {
                    max_connections: NonZeroUsize::MIN,
                    ..HostConfig::default()
                },
                ..PipelineConfig::default()
            };
            let net = Memory::new(answer.clone());
            let mut client = PipelineClient::with_net(upstream(), config, net).expect("a client");
            measure_client(bencher, &mut client, "/", 64);
        });
        group.throughput(Throughput::Elements(1));
        group.bench_function("hyper", |bencher| {
            let runtime = runtime();
            let stream = Stream::new(answer.clone());
            let sender = runtime.block_on(async {
                let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("hyper");
                tokio::spawn(connection);
                sender
            });
            let mut sender = Some(sender);
            measure_rounds(bencher, |rounds| {
                let began = Instant::now();
                sender = runtime.block_on(async {
                    let mut sender = sender.take()?;
                    for _ in 0..rounds {
                        sender.ready().await.expect("a connection");
                        read(sender.send_request(request("/")).await.expect("an answer")).await;
                    }
                    Some(sender)
                });
                began.elapsed()
            });
        });
        group.bench_function("hyper-util", |bencher| {
            let runtime = runtime();
            let client = Pooled::builder(TokioExecutor::new()).build(Connector(answer.clone()));
            measure_rounds(bencher, |rounds| {
                let began = Instant::now();
                runtime.block_on(async {
                    for _ in 0..rounds {
                        read(client.request(request(URL)).await.expect("an answer")).await;
                    }
                });
                began.elapsed()
            });
        });
        group.finish();
    }
}

fn framed(length: usize) -> Bytes {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    [head.into_bytes(), vec![b'x'; length]].concat().into()
}

/// Four chunks of 4 KiB.
fn chunked() -> Bytes {
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    format!("{head}{}0\r\n\r\n", chunk.repeat(4)).into()
}

fn request(target: &str) -> hyper::Request<Empty<Bytes>> {
    let request = hyper::Request::get(target).header("Host", "192.0.2.1");
    request.body(Empty::new()).expect("a request")
}

async fn read(mut response: hyper::Response<Incoming>) {
    while let Some(frame) = response.frame().await {
        frame.expect("a whole body");
    }
}

/// A server that has an answer for each request.
#[derive(Debug)]
struct Peer {
    answer: Bytes,
    /// What is left to send of the answers, one after the other.
    unsent: VecDeque<Bytes>,
}

impl Peer {
    fn new(answer: Bytes) -> Self {
        let unsent = VecDeque::new();
        Self { answer, unsent }
    }

    /// Takes bytes of requests without bodies; each ends within one piece. Returns whether there is an answer.
    fn take(&mut self, bytes: &[u8]) -> bool {
        for _ in memmem::find_iter(bytes, b"\r\n\r\n") {
            self.unsent.push_back(self.answer.clone());
        }
        !self.unsent.is_empty()
    }

    /// Sends as much as there is, and as there is room for.
    fn send(&mut self, room: usize, mut to: impl FnMut(&[u8])) -> usize {
        let mut sent = 0;
        while let Some(first) = self.unsent.front_mut() {
            let part = first.split_to(first.len().min(room - sent));
            to(&part);
            sent += part.len();
            if !first.is_empty() {
                break;
            }
            self.unsent.pop_front();
        }
        sent
    }
}

/// A network whose streams lead to a [`Peer`] each.
struct Memory {
    answer: Bytes,
    events: Vec<Event>,
    waker: Waker,
    random: u64,
}

impl Memory {
    fn new(answer: Bytes) -> Self {
        Self {
            answer,
            events: Vec::new(),
            waker: Waker::new(|| {}),
            random: 1,
        }
    }
}

impl Net for Memory {
    type Stream = (Token, Peer);

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn connect(
        &mut self,
        token: Token,
        _: &Address,
        _: &SocketOptions,
    ) -> io::Result<Self::Stream> {
        self.events.push(event(token, false));
        Ok((token, Peer::new(self.answer.clone())))
    }

    fn connected(&mut self, _: &Self::Stream) -> io::Result<bool> {
        Ok(true)
    }

    fn read(&mut self, (_, peer): &mut Self::Stream, buf: &mut [u8]) -> io::Result<usize> {
        let mut at = 0;
        let sent = peer.send(buf.len(), |part| {
            buf[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        });
        some(sent)
    }

    fn read_append(
        &mut self,
        (_, peer): &mut Self::Stream,
        buf: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let room = buf.capacity() - buf.len();
        some(peer.send(room, |part| buf.extend_from_slice(part)))
    }

    fn write(
        &mut self,
        (token, peer): &mut Self::Stream,
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let mut has_answer = false;
        for part in parts {
            has_answer |= peer.take(part);
        }
        if has_answer {
            self.events.push(event(*token, true));
        }
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn poll(&mut self, events: &mut Vec<Event>, _: Option<Duration>) -> io::Result<()> {
        events.append(&mut self.events);
        Ok(())
    }

    fn waker(&mut self) -> io::Result<Waker> {
        Ok(self.waker.clone())
    }

    fn close(&mut self, _: Self::Stream) {}

    fn local_address(&self, _: &Self::Stream) -> Option<Address> {
        None
    }

    fn random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.random
    }
}

fn event(token: Token, readable: bool) -> Event {
    Event {
        token,
        readable,
        writable: !readable,
        closed: false,
    }
}

fn some(sent: usize) -> io::Result<usize> {
    match sent {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        sent => Ok(sent),
    }
}

/// A [`Peer`] as a stream of tokio.
struct Stream {
    peer: Peer,
    reader: Option<TaskWaker>,
}

impl Stream {
    fn new(answer: Bytes) -> Self {
        Self {
            peer: Peer::new(answer),
            reader: None,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.peer.send(buf.remaining(), |part| buf.put_slice(part)) {
            0 => {
                self.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.peer.take(bytes)
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Gives hyper-util's pool streams to a [`Peer`].
#[derive(Clone)]
struct Connector(Bytes);

impl Service<hyper::Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = Infallible;
    type Future = Ready<Result<TokioIo<Stream>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: hyper::Uri) -> Self::Future {
        ready(Ok(TokioIo::new(Stream::new(self.0.clone()))))
    }
}
