//! A reverse proxy that streams both ways: `cargo run -p courser --example reverse_proxy -- 127.0.0.1:8081`
//!
//! Without a backend it has one of its own, passes one upload on to it, and ends.

mod support;

use courser::{Call, HostClient, HostConfig, Request, Response, Shared, SharedBody, Upstream};
use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::{http, server::conn::http1, service::service_fn};
use support::{Answer, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = Server::start(|asked| Answer::ok(format!("{} bytes", asked.body.len())))?;
    let backend = std::env::args().nth(1);
    let is_trial = backend.is_none();
    let backend: Upstream = backend.unwrap_or(own.address().to_string()).parse()?;
    let make = move |_| HostClient::new(backend.clone(), HostConfig::default());
    let client = Shared::spawn(Default::default(), make)?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_io().build()?.block_on(async {
        let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = proxy.local_addr()?;
        println!("http://{address}/");
        is_trial.then(|| support::upload_to(address));
        loop {
            let (stream, _) = proxy.accept().await?;
            let client = client.clone();
            let answer = service_fn(move |asked| forward(client.clone(), asked));
            let stream = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(http1::Builder::new().serve_connection(stream, answer));
        }
    })
}

async fn forward(
    client: Shared<HostClient>,
    asked: http::Request<Incoming>,
) -> Result<http::Response<Either<SharedBody, Full<Bytes>>>, http::Error> {
    let target = asked.uri().path_and_query().map_or("/", |it| it.as_str());
    let mut request = Request::new(asked.method().as_str(), target);
    for (name, value) in asked.headers() {
        if goes_on(name.as_str()) {
            request.add_header(name.as_str(), value);
        }
    }
    if !asked.body().is_end_stream() {
        request.body_of(asked.into_body());
    }
    let mut answer = http::Response::builder();
    let streaming = client.send_streaming(Call::new(request, Response::new()));
    let (done, Some(body)) = streaming.await else {
        let why = Full::from("the backend does not answer\n");
        return answer.status(502).body(Either::Right(why));
    };
    let headers = done.response.headers();
    for (name, value) in headers.filter(|(name, _)| goes_on(name)) {
        answer = answer.header(name, value);
    }
    answer
        .status(done.response.status())
        .body(Either::Left(body))
}

/// Whether a header is for all hops (RFC 9110 §7.6.1), and not one that each client writes itself.
fn goes_on(name: &str) -> bool {
    let own = "connection content-length expect host keep-alive te transfer-encoding upgrade";
    !own.split(' ').any(|own| own.eq_ignore_ascii_case(name))
}
