//! A download that is written as it comes, with its progress:
//! `cargo run -p courser --example download -- https://a.example/large.iso large.iso`
//!
//! Without a URL it downloads from a server of its own. Without a file, what comes is counted and dropped.

mod support;

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use courser::{Client, Config, Redirects, Request, Response};
use support::{Answer, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let piece = Answer::ok(vec![b'x'; 1 << 20]).after(Duration::from_millis(10));
    let server = Server::start(move |_| piece.clone().times(64))?;
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| server.url("/large.iso"));
    let mut file: Box<dyn Write> = match arguments.next() {
        Some(path) => Box::new(File::create(path)?),
        None => Box::new(io::sink()),
    };

    let mut config = Config {
        redirects: Redirects::limit(10),
        ..Config::default()
    };
    // A download may take as long as it takes, if only something keeps coming.
    config.host.timeouts.between_bytes = Some(Duration::from_secs(10));
    let mut client = Client::new(config)?;

    let began = Instant::now();
    let mut response = Response::new();
    // It is here when the head is.
    let mut body = client.open(&mut Request::get(&url), &mut response)?;
    if response.status() != 200 {
        return Err(format!("{url}: status {}", response.status()).into());
    }
    let length = response.header("content-length");
    let length: Option<u64> = length.and_then(|n| std::str::from_utf8(n).ok()?.parse().ok());

    // No more than 64 KiB and one read wait in memory: if the file is slow, the server has to wait.
    let mut buffer = vec![0; 64 * 1024];
    let (mut done, mut told) = (0, began);
    loop {
        let n = body.read_some(&mut buffer)?;
        file.write_all(&buffer[..n])?;
        done += n as u64;
        if n == 0 || told.elapsed() > Duration::from_millis(100) {
            told = Instant::now();
            let share = length.map_or(String::new(), |all| {
                format!("{:3} % ", done * 100 / all.max(1))
            });
            let mib = done as f64 / f64::from(1 << 20);
            let rate = mib / began.elapsed().as_secs_f64();
            println!("{share}{mib:6.1} MiB at {rate:.0} MiB/s");
        }
        if n == 0 {
            break;
        }
    }
    // A body that ends before its length is an error, so this is all of it.
    let report = body.finish()?;
    println!("{url}: {done} bytes in {:.2?}", report.timings().total);
    Ok(())
}
