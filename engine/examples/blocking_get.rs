//! One call at a time, on the caller's thread:
//! `cargo run -p courser --example blocking_get -- https://a.example/ http://b.example/`
//!
//! Without URLs it asks a server of its own.

mod support;

use courser::{Client, Config, Redirects, Response};
use support::{Answer, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(|asked| match asked.target.as_str() {
        "/moved" => Answer::new("301 Moved Permanently", "").header("Location", "/here"),
        target => Answer::ok(format!("This is {target}.\n")),
    })?;
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        // The last one cannot be: nobody listens there.
        let nobody = "http://127.0.0.1:1/".to_owned();
        urls = vec![server.url("/"), server.url("/moved"), nobody];
    }

    // A client keeps connections to any number of hosts; it has no thread of its own.
    let mut client = Client::new(Config {
        redirects: Redirects::limit(10),
        ..Config::default()
    })?;
    // A response keeps its buffers from one call to the next, so that calls allocate nothing once these have grown.
    let mut response = Response::new();
    for url in &urls {
        match client.get(url, &mut response) {
            Ok(report) => println!(
                "{url}: {}, {} bytes in {:?}, {} redirects, {} connection",
                response.status(),
                response.body().len(),
                report.timings().total,
                report.redirects().len(),
                if report.reused() { "a kept" } else { "a new" },
            ),
            // What went wrong, what the call was waiting for, and how far the request had got.
            Err(error) => println!(
                "{url}: {error}: {:?} (phase {:?}, sent {:?})",
                error.kind(),
                error.phase(),
                error.sent()
            ),
        }
    }
    Ok(())
}
