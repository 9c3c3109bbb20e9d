//! A small reverse proxy in front of three backends: `cargo run -p courser --example reverse_proxy -- 127.0.0.1:8081 127.0.0.1:8082`
//!
//! Without addresses it has backends of its own, and visitors, of whom none is to notice that a backend is killed, and
//! comes back.

mod support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use courser::policy::{AdaptiveTimeout, BalanceConfig, Spread};
use courser::{
    BatchConfig, Call, Client, Config, HostClient, HostConfig, Observer, ObserverEvent, Request,
    Response, Shared, SharedConfig, Upstream,
};
use support::{Answer, Asked, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Result<Vec<SocketAddr>, _> = std::env::args().skip(1).map(|a| a.parse()).collect();
    let given = given?;
    if !given.is_empty() {
        let proxy = Server::start(forwarder(&given)?)?;
        println!(
            "{} forwards to {given:?} until it is stopped",
            proxy.url("/")
        );
        loop {
            std::thread::park();
        }
    }

    let mut backends = Vec::new();
    for name in ["a", "b", "c"] {
        backends.push(Some(Server::start(backend(name))?));
    }
    let addresses: Vec<SocketAddr> = backends.iter().flatten().map(Server::address).collect();
    let proxy = Server::start(forwarder(&addresses)?)?;
    let mut visitors = Client::new(Config::default())?;

    visit(&mut visitors, &proxy, "all three", |_| {})?;
    visit(&mut visitors, &proxy, "b is killed", |answered| {
        if answered == 200 {
            // Its connections are cut, with the requests on them, and its port refuses.
            backends[1] = None;
        }
    })?;
    visit(&mut visitors, &proxy, "b is away", |_| {})?;
    backends[1] = Some(Server::start_at(addresses[1], backend("b"))?);
    // It is tried again when its time is over.
    while !visit(&mut visitors, &proxy, "b is back", |_| {})?.contains_key("b") {}
    Ok(())
}

/// Passes requests on to one of the backends, and their answers back.
fn forwarder(
    backends: &[SocketAddr],
) -> Result<impl Fn(&Asked) -> Answer + Send + Sync + 'static, courser::Error> {
    let upstream = Upstream::tcp(backends.iter().copied());
    let config = HostConfig {
        balance: Some(BalanceConfig {
            // Of two that are picked at random, the one with less to do.
            spread: Spread::LeastInFlight,
            // One that fails again and again is left alone for that time.
            eject_for: Duration::from_millis(200),
            ..BalanceConfig::default()
        }),
        // What fails at one goes on at another, if it can be repeated without harm. One that hangs is given up on earlier
        // than after the usual minute.
        adaptive: Some(AdaptiveTimeout {
            min: Duration::from_secs(5),
            ..AdaptiveTimeout::default()
        }),
        observer: Some(Observer::new(|event| {
            if let ObserverEvent::Ejected { remote, .. } = event {
                println!("  {remote} gets nothing for now");
            }
        })),
        ..HostConfig::default()
    };
    let build = move |_| HostClient::new(upstream.clone(), config.clone());
    let client = Shared::spawn(SharedConfig::default(), build)?;
    Ok(move |asked: &Asked| forward(&client, asked))
}

fn forward(client: &Shared<HostClient>, asked: &Asked) -> Answer {
    let mut request = Request::new(&asked.method, &asked.target);
    let passed_on = asked.headers.iter();
    for (name, value) in passed_on.filter(|(name, _)| !HOP_BY_HOP.contains(&&**name)) {
        request.header(name, value);
    }
    request.header("Via", "1.1 example");
    if !asked.body.is_empty() {
        request.body(asked.body.clone());
    }
    let mut response = Response::new();
    if let Err(error) = client.call(&mut request, &mut response) {
        let status = if error.is_timeout() {
            "504 Gateway Timeout"
        } else {
            "502 Bad Gateway"
        };
        return Answer::new(status, format!("{error}\n"));
    }
    let reason = String::from_utf8_lossy(response.reason());
    let mut answer = Answer::new(format!("{} {reason}", response.status()), response.body());
    for (name, value) in response.headers() {
        if !HOP_BY_HOP.contains(&&*name.to_ascii_lowercase()) {
            answer = answer.header(name, &String::from_utf8_lossy(value));
        }
    }
    answer
}

/// What is between two neighbours (RFC 9110 §7.6.1), and what the next hop says anew.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn backend(name: &'static str) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    move |_| {
        Answer::ok("hello")
            .header("X-Backend", name)
            .after(Duration::from_millis(2))
    }
}

/// 600 requests of visitors, each of which must have its answer; tells which backends gave how many.
fn visit(
    visitors: &mut Client,
    proxy: &Server,
    when: &str,
    mut meanwhile: impl FnMut(usize),
) -> Result<BTreeMap<String, usize>, Box<dyn std::error::Error>> {
    let url = proxy.url("/");
    let calls = (0..600).map(|_| Call::new(Request::get(&url), Response::new()));
    let mut answers = BTreeMap::new();
    for (answered, (_, done)) in (1..).zip(visitors.call_many(calls, BatchConfig::default())) {
        done.outcome?;
        let status = done.response.status();
        let by = done
            .response
            .header("x-backend")
            .ok_or(format!("{status} by nobody"))?;
        *answers
            .entry(String::from_utf8_lossy(by).into_owned())
            .or_default() += 1;
        meanwhile(answered);
    }
    println!("{when}: {answers:?}");
    Ok(answers)
}
