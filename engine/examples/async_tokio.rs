//! Calls awaited in tokio tasks: `cargo run -p courser --example async_tokio -- https://a.example/ http://b.example/`
//!
//! The client lives on a thread of its own, and its futures run on any executor. Without URLs it asks a server of its
//! own.

mod support;

use std::time::Duration;

use courser::{Call, Client, Config, Request, Response, Shared, SharedConfig};
use support::{Answer, Server};
use tokio::task::JoinSet;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(|asked| match asked.target.as_str() {
        "/slow" => Answer::ok("at last").after(Duration::from_secs(2)),
        "/large" => Answer::ok([b'x'; 50_000]).times(20),
        target => Answer::ok(target),
    })?;
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls = (0..100).map(|n| server.url(&format!("/{n}"))).collect();
    }
    // Clones are handles on the same client. With several threads, the hosts are spread over them.
    let client = Shared::spawn(SharedConfig::default(), |_| Client::new(Config::default()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for url in urls {
            let client = client.clone();
            tasks.spawn(async move {
                // The call is on its way before it is awaited.
                let done = client
                    .send(Call::new(Request::get(&url), Response::new()))
                    .await;
                (url, done)
            });
        }
        let mut bytes = 0;
        while let Some(joined) = tasks.join_next().await {
            let (url, done) = joined?;
            match done.outcome {
                Ok(()) => bytes += done.response.body().len(),
                Err(error) => println!("{url}: {error}"),
            }
        }
        println!(
            "{} calls awaited, {bytes} bytes in their answers",
            client.stats().calls
        );

        // A future that is dropped cancels its call, and the connection that it had is closed.
        let slow = client.send(Call::new(
            Request::get(server.url("/slow")),
            Response::new(),
        ));
        let limit = Duration::from_millis(50);
        let outcome = tokio::time::timeout(limit, slow).await;
        println!(
            "the slow one: {}",
            if outcome.is_err() {
                "cancelled"
            } else {
                "done"
            }
        );

        // A body that is not to be in memory as a whole comes in chunks, as fast as they are taken.
        let large = Call::new(Request::get(server.url("/large")), Response::new());
        let (head, body) = client.send_streaming(large).await;
        head.outcome?;
        let (mut chunks, mut length) = (0, 0);
        if let Some(mut body) = body {
            while let Some(chunk) = body.chunk().await? {
                (chunks, length) = (chunks + 1, length + chunk.len());
            }
        }
        println!(
            "the large one: {length} bytes in {} chunks",
            if chunks > 1 { "several" } else { "no" }
        );
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    // Lets calls in flight end, for a second at the most, and joins the thread.
    let cut_off = client.shutdown(Duration::from_secs(1));
    println!("{cut_off} calls were cut off");
    Ok(())
}
