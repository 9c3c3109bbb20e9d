//! Fetches URLs with one client, all at once: `cargo run -p courser --example fetch -- https://a.example/ http://b.example/`

use courser::{Call, Client, Config, Redirects, Request, Response};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut client = Client::new(Config {
        redirects: Redirects::limit(10),
        ..Config::default()
    })?;
    let urls: Vec<String> = std::env::args().skip(1).collect();
    for (number, url) in (0..).zip(&urls) {
        client.submit(Call::new(Request::get(url), Response::new()).tag(number));
    }
    while let Some(done) = client.wait(None)? {
        let url = &urls[done.tag as usize];
        let (status, length) = (done.response.status(), done.response.body().len());
        match done.outcome {
            Ok(()) => println!(
                "{url}: {status}, {length} bytes, {:?}",
                done.report.timings()
            ),
            Err(error) => println!("{url}: {error}"),
        }
    }
    Ok(())
}
