//! Coming from reqwest, ureq, hyper or fasthttp: the same ten tasks in each.
//!
//! The examples in Rust are compiled as they stand. reqwest is shown with its blocking client, as the others are
//! used, except where many requests are in flight. hyper is the layer below reqwest: it speaks HTTP on a connection that
//! the caller opens, and leaves pools, redirects, proxies and deadlines to its users.
//!
//! # 1. Fetch a text
//! The response is the caller's, and is used again for the next call.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let mut response = Response::new();
//! client.get("https://a.example/", &mut response)?;
//! println!("{} {}", response.status(), response.text());
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = reqwest::blocking::Client::new();
//! let response = client.get("https://a.example/").send()?;
//! println!("{} {}", response.status(), response.text()?);
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = ureq::Agent::new_with_defaults();
//! let mut response = agent.get("https://a.example/").call()?;
//! println!("{} {}", response.status(), response.body_mut().read_to_string()?);
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # async fn fetch() -> Result<(), Box<dyn std::error::Error>> {
//! use http_body_util::{BodyExt, Empty};
//! use hyper::body::Bytes;
//!
//! let stream = tokio::net::TcpStream::connect("a.example:80").await?;
//! let io = hyper_util::rt::TokioIo::new(stream);
//! let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
//! tokio::spawn(connection);
//! let request = hyper::Request::get("/").header("host", "a.example").body(Empty::<Bytes>::new())?;
//! let response = sender.send_request(request).await?;
//! println!("{}", response.status());
//! let body = response.into_body().collect().await?.to_bytes();
//! println!("{}", String::from_utf8_lossy(&body));
//! # Ok(()) }
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! status, body, err := fasthttp.Get(nil, "https://a.example/")
//! ```
//!
//! # 2. One deadline over everything
//! Courser's deadline counts from the start of the call to the last byte, with lookups, redirects and retries.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use courser::{Call, Client, Config, Request, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let call = Call::new(Request::get("https://a.example/"), Response::new());
//! let response = client.perform(call.timeout(Duration::from_secs(5))).into_result()?;
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let client = reqwest::blocking::Client::new();
//! client.get("https://a.example/").timeout(Duration::from_secs(5)).send()?.bytes()?;
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let request = ureq::get("https://a.example/").config();
//! let request = request.timeout_global(Some(Duration::from_secs(5))).build();
//! request.call()?.body_mut().read_to_vec()?;
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # async fn fetch(request: impl Future<Output = hyper::Result<()>>) -> Result<(), Box<dyn std::error::Error>> {
//! // Around all that is awaited.
//! tokio::time::timeout(std::time::Duration::from_secs(5), request).await??;
//! # Ok(()) }
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! err := client.DoDeadline(request, response, time.Now().Add(5*time.Second))
//! ```
//!
//! # 3. Headers, a query and a form
//! Nothing is added but `Host`, `User-Agent` and what frames the body.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, Request, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let mut request = Request::post("https://a.example/search", "");
//! request.query([("page", "2")]).form([("name", "a b")]).add_header("Accept", "text/html");
//! client.call(&mut request, &mut Response::new())?;
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = reqwest::blocking::Client::new();
//! let request = client.post("https://a.example/search").query(&[("page", "2")]).form(&[("name", "a b")]);
//! request.header("Accept", "text/html").send()?;
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let request = ureq::post("https://a.example/search").query("page", "2");
//! request.header("Accept", "text/html").send_form([("name", "a b")])?;
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The query and the form are texts of the caller.
//! let body = http_body_util::Full::new(hyper::body::Bytes::from("name=a+b"));
//! let request = hyper::Request::post("/search?page=2")
//!     .header("host", "a.example")
//!     .header("accept", "text/html")
//!     .header("content-type", "application/x-www-form-urlencoded")
//!     .body(body)?;
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! request.URI().QueryArgs().Set("page", "2")
//! request.PostArgs().Set("name", "a b")
//! request.Header.Set("Accept", "text/html")
//! err := client.Do(request, response)
//! ```
//!
//! # 4. JSON both ways
//! The feature `json`. The body is read where it lies, without a copy.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, Request, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let mut request = Request::post("https://a.example/api", "");
//! request.json(&serde_json::json!({ "name": "a" }))?;
//! let mut response = Response::new();
//! client.call(&mut request, &mut response)?;
//! let answer: serde_json::Value = response.json()?;
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = reqwest::blocking::Client::new();
//! let request = client.post("https://a.example/api").json(&serde_json::json!({ "name": "a" }));
//! let answer: serde_json::Value = request.send()?.json()?;
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let body = serde_json::json!({ "name": "a" });
//! let mut response = ureq::post("https://a.example/api").send_json(&body)?;
//! let answer: serde_json::Value = response.body_mut().read_json()?;
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use hyper::body::Bytes;
//! let body = serde_json::to_vec(&serde_json::json!({ "name": "a" }))?;
//! let request = hyper::Request::post("/api")
//!     .header("host", "a.example")
//!     .header("content-type", "application/json")
//!     .body(http_body_util::Full::new(Bytes::from(body)))?;
//! # let collected = Bytes::new();
//! let answer: serde_json::Value = serde_json::from_slice(&collected)?;
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! request.SetBodyRaw(encoded)
//! err := client.Do(request, response)
//! err = json.Unmarshal(response.Body(), &answer)
//! ```
//!
//! # 5. What went wrong
//! A status is no error, unless it is asked for. An error says the phase, the place, and how much of the request was
//! sent.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let mut response = Response::new();
//! match client.get("https://a.example/", &mut response) {
//!     Ok(_) => drop(response.error_for_status()?),
//!     Err(error) if error.is_timeout() => println!("too slow: {error}"),
//!     Err(error) if error.is_connect() || error.is_dns() => println!("not reached: {error}"),
//!     Err(error) => println!("{error}; sent: {:?}", error.sent()),
//! }
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! match reqwest::blocking::get("https://a.example/") {
//!     Ok(response) => drop(response.error_for_status()?),
//!     Err(error) if error.is_timeout() => println!("too slow: {error}"),
//!     Err(error) if error.is_connect() => println!("not reached: {error}"),
//!     Err(error) => println!("{error}"),
//! }
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! match ureq::get("https://a.example/").call() {
//!     Ok(_) => {}
//!     Err(ureq::Error::StatusCode(status)) => println!("status {status}"),
//!     Err(ureq::Error::Timeout(what)) => println!("too slow: {what}"),
//!     Err(ureq::Error::HostNotFound | ureq::Error::ConnectionFailed) => println!("not reached"),
//!     Err(error) => println!("{error}"),
//! }
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # fn shown(outcome: hyper::Result<hyper::Response<hyper::body::Incoming>>) {
//! match outcome {
//!     Ok(response) => println!("status {}", response.status()),
//!     Err(error) if error.is_incomplete_message() => println!("the server has closed"),
//!     Err(error) => println!("{error}"),
//! }
//! # }
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! if errors.Is(err, fasthttp.ErrTimeout) || errors.Is(err, fasthttp.ErrDialTimeout) { ... }
//! ```
//!
//! # 6. Redirects
//! Courser and fasthttp follow none unless told. Credentials and cookies do not go to another origin.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, Redirects, Response};
//!
//! let mut client = Client::new(Config { redirects: Redirects::limit(3), ..Config::default() })?;
//! let mut response = Response::new();
//! let report = client.get("http://a.example/", &mut response)?;
//! println!("{:?} over {:?}", response.url(), report.redirects());
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let three = reqwest::redirect::Policy::limited(3);
//! let client = reqwest::blocking::Client::builder().redirect(three).build()?;
//! let response = client.get("http://a.example/").send()?;
//! println!("{}", response.url());
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ureq::ResponseExt;
//!
//! let request = ureq::get("http://a.example/").config().max_redirects(3).build();
//! println!("{}", request.call()?.get_uri());
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # fn next(response: &hyper::Response<hyper::body::Incoming>) {
//! // The caller looks for the field, resolves the reference and sends the next request.
//! let location = response.headers().get("location");
//! # }
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! err := client.DoRedirects(request, response, 3)
//! ```
//!
//! # 7. A long body into a file
//! Bounded memory; a body that is cut is an error in all of them.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, Request, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let (mut request, mut response) = (Request::get("https://a.example/large.iso"), Response::new());
//! let mut body = client.open(&mut request, &mut response)?;
//! std::io::copy(&mut body, &mut std::fs::File::create("large.iso")?)?;
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut response = reqwest::blocking::get("https://a.example/large.iso")?;
//! response.copy_to(&mut std::fs::File::create("large.iso")?)?;
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut response = ureq::get("https://a.example/large.iso").call()?;
//! let mut body = response.body_mut().as_reader();
//! std::io::copy(&mut body, &mut std::fs::File::create("large.iso")?)?;
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # async fn fetch(mut body: hyper::body::Incoming) -> Result<(), Box<dyn std::error::Error>> {
//! use http_body_util::BodyExt;
//! use std::io::Write;
//!
//! let mut file = std::fs::File::create("large.iso")?;
//! while let Some(frame) = body.frame().await {
//!     if let Some(bytes) = frame?.data_ref() {
//!         file.write_all(bytes)?;
//!     }
//! }
//! # Ok(()) }
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! client := &fasthttp.Client{StreamResponseBody: true}
//! err := client.Do(request, response)
//! _, err = io.Copy(file, response.BodyStream())
//! ```
//!
//! # 8. A file as the body of a request
//! Of known length here; without one, it goes out in chunks.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, Request, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let file = std::fs::File::open("large.iso")?;
//! let length = file.metadata()?.len();
//! let mut request = Request::put("https://a.example/large.iso", "");
//! request.body_stream(file, Some(length));
//! client.call(&mut request, &mut Response::new())?;
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::File::open("large.iso")?;
//! reqwest::blocking::Client::new().put("https://a.example/large.iso").body(file).send()?;
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::File::open("large.iso")?;
//! ureq::put("https://a.example/large.iso").send(file)?;
//! # Ok(()) }
//! ```
//!
//! hyper:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use http_body_util::StreamBody;
//! use hyper::body::{Bytes, Frame};
//!
//! // `chunks`: a stream that reads the file.
//! # let chunks = futures_lite::stream::empty::<std::io::Result<Frame<Bytes>>>();
//! let request = hyper::Request::put("/large.iso").body(StreamBody::new(chunks))?;
//! # Ok(()) }
//! ```
//!
//! fasthttp:
//! ```go
//! request.SetBodyStream(file, int(length))
//! err := client.Do(request, response)
//! ```
//!
//! # 9. A hundred requests, ten at a time
//! One thread, no runtime; with [`Shared`](crate::Shared), the same from many threads, or awaited.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{BatchConfig, Call, Client, Config, Request, Response};
//!
//! let mut client = Client::new(Config::default())?;
//! let urls = (0..100).map(|page| format!("https://a.example/{page}"));
//! let calls = urls.map(|url| Call::new(Request::get(url), Response::new()));
//! let ten = BatchConfig { max_in_flight: 10.try_into()?, ..BatchConfig::default() };
//! for (number, done) in client.call_many(calls, ten) {
//!     println!("{number}: {:?} {}", done.outcome, done.response.status());
//! }
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # async fn fetch() -> Result<(), Box<dyn std::error::Error>> {
//! let client = reqwest::Client::new();
//! let ten = std::sync::Arc::new(tokio::sync::Semaphore::new(10));
//! let mut tasks = tokio::task::JoinSet::new();
//! for page in 0..100 {
//!     let (client, ten) = (client.clone(), ten.clone());
//!     tasks.spawn(async move {
//!         let _permit = ten.acquire_owned().await;
//!         client.get(format!("https://a.example/{page}")).send().await?.bytes().await
//!     });
//! }
//! while let Some(done) = tasks.join_next().await {
//!     println!("{:?}", done?.map(|body| body.len()));
//! }
//! # Ok(()) }
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = ureq::Agent::new_with_defaults();
//! let pages = std::sync::atomic::AtomicUsize::new(0);
//! std::thread::scope(|scope| {
//!     for _ in 0..10 {
//!         scope.spawn(|| {
//!             loop {
//!                 match pages.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
//!                     page @ 0..100 => drop(agent.get(format!("https://a.example/{page}")).call()),
//!                     _ => break,
//!                 }
//!             }
//!         });
//!     }
//! });
//! # Ok(()) }
//! ```
//!
//! hyper: as with reqwest, over ten connections that the caller opens, keeps and replaces.
//!
//! fasthttp:
//! ```go
//! // Ten goroutines, each: for url := range urls { err := client.Do(request, response) }
//! ```
//!
//! # 10. A proxy and an authority of one's own
//! Here for all hosts; `Proxies::from_env` reads what curl reads.
//!
//! courser:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser::{Client, Config, HostConfig, Proxies, TlsConfig};
//!
//! let tls = TlsConfig { extra_roots: vec![std::fs::read("ca.pem")?.into()], ..TlsConfig::default() };
//! let client = Client::new(Config {
//!     proxies: Proxies::all("http://proxy.example:3128".parse()?),
//!     host: HostConfig { tls, ..HostConfig::default() },
//!     ..Config::default()
//! })?;
//! # Ok(()) }
//! ```
//!
//! reqwest:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let authority = reqwest::Certificate::from_pem(&std::fs::read("ca.pem")?)?;
//! let client = reqwest::blocking::Client::builder()
//!     .proxy(reqwest::Proxy::all("http://proxy.example:3128")?)
//!     .add_root_certificate(authority)
//!     .build()?;
//! # Ok(()) }
//! ```
//!
//! ureq:
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ureq::tls::{Certificate, RootCerts, TlsConfig};
//!
//! let authority = Certificate::from_pem(&std::fs::read("ca.pem")?)?;
//! let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[authority])).build();
//! let proxy = ureq::Proxy::new("http://proxy.example:3128")?;
//! let config = ureq::Agent::config_builder().tls_config(tls).proxy(Some(proxy)).build();
//! let agent = ureq::Agent::new_with_config(config);
//! # Ok(()) }
//! ```
//!
//! hyper: the caller sends CONNECT, and lays TLS (tokio-rustls) over the connection.
//!
//! fasthttp:
//! ```go
//! client := &fasthttp.Client{
//!     Dial: fasthttpproxy.FasthttpHTTPDialer("proxy.example:3128"),
//!     TLSConfig: &tls.Config{RootCAs: pool},
//! }
//! ```
