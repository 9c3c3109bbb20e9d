//! Names that no name server knows: `cargo run -p courser --example custom_resolver -- http://name.example/`
//!
//! A resolver of one's own asks a service registry (here: a table) for names that end in `.service`, and leaves the
//! others to the system. Without URLs it finds two services of its own.

mod support;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use courser::error::DnsError;
use courser::{
    Answer, Client, Config, HostConfig, Observer, ObserverEvent, Reply, Resolver, Response,
    SystemResolver,
};
use support::Server;

/// Where services are.
struct Registry {
    services: HashMap<String, Vec<IpAddr>>,
    others: SystemResolver,
}

impl Resolver for Registry {
    /// Must not block: what has to ask somebody does so on a thread of its own, and takes `reply` there.
    fn lookup(&mut self, name: &str, reply: Reply) {
        // `name` is in lower case, and has a dot at its end if the URL has.
        let Some(service) = name.trim_end_matches('.').strip_suffix(".service") else {
            return self.others.lookup(name, reply);
        };
        reply.answer(match self.services.get(service) {
            // The client keeps the answer for that long, and asks for each name once at a time.
            Some(at) => Answer::found(at.iter().copied(), Duration::from_secs(30)),
            None => Answer::failed(DnsError::NotFound),
        });
    }

    fn cancel(&mut self, name: &str) {
        self.others.cancel(name);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(|asked| {
        let host = asked.header("host").unwrap_or_default();
        support::Answer::ok(format!("{host} has {}", asked.target))
    })?;
    let here: IpAddr = server.address().ip();
    // The second one has two addresses, and nobody is at the first of them: the client goes on with the other.
    let nobody: IpAddr = [127, 0, 0, 66].into();
    let registry = Registry {
        services: HashMap::from([
            ("users".to_owned(), vec![here]),
            ("orders".to_owned(), vec![nobody, here]),
        ]),
        others: SystemResolver::new(),
    };
    let config = Config {
        host: HostConfig {
            observer: Some(Observer::new(|event| match event {
                ObserverEvent::Resolved { name, addresses } => {
                    println!("  {name} is at {addresses:?}")
                }
                ObserverEvent::ConnectFailed { error } => {
                    println!("  {error}: {:?}", error.remote())
                }
                _ => {}
            })),
            ..HostConfig::default()
        },
        ..Config::default()
    };
    let mut client = Client::with_resolver(config, registry)?;

    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let port = server.address().port();
        let names = ["users", "orders", "users", "invoices"];
        urls = names
            .map(|name| format!("http://{name}.service:{port}/42"))
            .into();
    }
    let mut response = Response::new();
    for url in &urls {
        println!("{url}");
        match client.get(url, &mut response) {
            Ok(_) => println!("  {}", String::from_utf8_lossy(response.body())),
            Err(error) => println!("  {error}"),
        }
    }
    Ok(())
}
