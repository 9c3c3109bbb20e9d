//! The `tracing` spans and events of calls.

use std::fmt::{Debug, Write as _};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use courser::{Client, Config, HostConfig, Observer, Redirects, Response};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[test]
fn a_call_has_a_span_with_events_and_a_connection_has_its_own_events() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for answer in [
            "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "nonsense\r\n\r\n",
        ] {
            let mut request = [0; 999];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let log = Log::default();
    let lines = Arc::clone(&log.lines);
    tracing::subscriber::with_default(log, || {
        let config = Config {
            host: HostConfig {
                observer: Some(Observer::tracing()),
                idle_timeout: Duration::MAX,
                ..HostConfig::default()
            },
            redirects: Redirects::limit(1),
            ..Config::default()
        };
        let mut client = Client::new(config).unwrap();
        let url = format!("http://me:secret@localhost:{}/here", address.port());
        client.get(&url, &mut Response::new()).unwrap();
        let url = format!("http://localhost:{}/", address.port());
        client.get(&url, &mut Response::new()).unwrap_err();
    });
    server.join().unwrap();
    let lines = lines.lock().unwrap().join("\n");
    let lines = lines.replace(&address.port().to_string(), "PORT");
    // Which address of a name is tried first, and the local port, vary from run to run.
    let told: Vec<&str> = lines
        .lines()
        .filter(|line| {
            !["resolved", "connect", "not connected", "ready"]
                .iter()
                .any(|word| line.starts_with(word))
        })
        .collect();
    assert_eq!(
        told,
        [
            "span 1 call method=\"GET\" url=http://***@localhost:PORT/here tag=0",
            "record 1 remote=127.0.0.1:PORT",
            "sent in 1 remote=127.0.0.1:PORT reused=false",
            "record 1 status=302",
            "head in 1 status=302",
            "redirected in 1 url=http://localhost:PORT/there",
            "record 1 remote=127.0.0.1:PORT",
            "sent in 1 remote=127.0.0.1:PORT reused=true",
            "record 1 status=200",
            "head in 1 status=200",
            "close 1",
            "span 2 call method=\"GET\" url=http://localhost:PORT/ tag=0",
            "record 2 remote=127.0.0.1:PORT",
            "sent in 2 remote=127.0.0.1:PORT reused=true",
            "record 2 error=not an HTTP/1.x status line",
            "failed in 2 error=not an HTTP/1.x status line phase=receiving the head",
            "close 2",
        ],
        "{lines}"
    );
    assert!(!lines.contains("secret"));
    assert!(
        lines.contains("\nconnected remote=127.0.0.1:PORT local=127.0.0.1:"),
        "{lines}"
    );
}

/// Records all spans and events.
#[derive(Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    spans: AtomicU64,
}

impl Log {
    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

/// The fields, and the message separately.
#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            write!(self.rest, " {}={value:?}", field.name()).unwrap();
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("courser")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.spans.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = attributes.metadata().name();
        self.write(format!("span {id} {name}{}", fields.rest));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.write(format!("record {}{}", span.into_u64(), fields.rest));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let span = event.parent().map(|id| format!(" in {}", id.into_u64()));
        let Fields { message, rest } = fields;
        self.write(format!("{message}{}{rest}", span.unwrap_or_default()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn try_close(&self, id: Id) -> bool {
        self.write(format!("close {}", id.into_u64()));
        true
    }
}
