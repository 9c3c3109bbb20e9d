//! A reverse proxy that streams in both directions: `cargo run -p courser --example reverse_proxy -- 127.0.0.1:8081`
//!
//! Calls are spread over the backends that are given. Without any it has one of its own, and passes one upload on to it.

mod support;

use std::net::SocketAddr;

use courser::policy::BalanceConfig;
use courser::{Call, HostClient, HostConfig, Request, Response, Shared, SharedBody, Upstream};
use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::{http, server::conn::http1, service::service_fn};
use support::{Answer, Server};

type Streamed = Either<SharedBody, Full<Bytes>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_io().build()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let own = Server::start(|asked| Answer::ok(format!("{} bytes", asked.body.len())))?;
    let given: Result<Vec<SocketAddr>, _> = std::env::args().skip(1).map(|a| a.parse()).collect();
    let given = given?;
    let is_trial = given.is_empty();
    let backends = if is_trial { vec![own.address()] } else { given };
    let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = proxy.local_addr()?;
    println!("http://{address}/ forwards to {backends:?}");
    let config = HostConfig {
        balance: Some(BalanceConfig::default()),
        ..HostConfig::default()
    };
    let backends = Upstream::tcp(backends);
    let make = move |_| HostClient::new(backends.clone(), config.clone());
    let client = Shared::spawn(Default::default(), make)?;
    let forwarding = tokio::spawn(async move {
        while let Ok((stream, _)) = proxy.accept().await {
            let client = client.clone();
            let answer = service_fn(move |asked| forward(client.clone(), asked));
            let stream = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(http1::Builder::new().serve_connection(stream, answer));
        }
    });
    if is_trial {
        let visitor = Upstream::tcp([address]);
        let make = move |_| HostClient::new(visitor.clone(), HostConfig::default());
        let visitor = Shared::spawn(Default::default(), make)?;
        let upload = Request::post("/", vec![b'x'; 20_000_000]);
        let done = visitor.send(Call::new(upload, Response::new())).await;
        println!("{}", done.into_result()?.success()?.text());
        return Ok(());
    }
    Ok(forwarding.await?)
}

async fn forward(
    client: Shared<HostClient>,
    asked: http::Request<Incoming>,
) -> Result<http::Response<Streamed>, http::Error> {
    let target = asked.uri().path_and_query();
    let mut request = Request::new(
        asked.method().as_str(),
        target.map_or("/", |it| it.as_str()),
    );
    for (name, value) in asked.headers() {
        if !BETWEEN_NEIGHBOURS.contains(&name.as_str()) {
            request.add_header(name.as_str(), value);
        }
    }
    if !asked.body().is_end_stream() {
        request.body_of(asked.into_body());
    }
    let call = Call::new(request, Response::new());
    let (done, Some(body)) = client.send_streaming(call).await else {
        let answer = http::Response::builder().status(502);
        return answer.body(Either::Right(Full::from("the backend does not answer\n")));
    };
    let mut answer = http::Response::builder().status(done.response.status());
    for (name, value) in done.response.headers() {
        if !BETWEEN_NEIGHBOURS.contains(&&*name.to_ascii_lowercase()) {
            answer = answer.header(name, value);
        }
    }
    answer.body(Either::Left(body))
}

/// Headers for the next hop alone (RFC 9110 §7.6.1), and those that it gets from the client.
const BETWEEN_NEIGHBOURS: [&str; 8] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
];
