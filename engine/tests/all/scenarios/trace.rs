//! The `tracing` spans and events of calls.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use courser::net::sim::SimNet;
use courser::{Config, HostConfig, Observer, Redirects, Response};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{client_of, hear, target};

#[test]
fn a_call_has_a_span_with_events_and_a_connection_has_its_own_events() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, head| {
        peer.send(match target(head) {
            "/here" => "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n",
            "/there" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            _ => "nonsense\r\n\r\n",
        });
    });
    let log = Log::default();
    let lines = Arc::clone(&log.lines);
    tracing::subscriber::with_default(log, || {
        let config = Config {
            host: HostConfig {
                observer: Some(Observer::tracing()),
                ..HostConfig::default()
            },
            redirects: Redirects::limit(1),
            ..Config::default()
        };
        let (mut client, mut response) = (client_of(&net, config), Response::new());
        client
            .get("http://me:secret@2.1.sim/here", &mut response)
            .unwrap();
        client.get("http://2.1.sim/", &mut response).unwrap_err();
    });
    assert_eq!(
        *lines.lock().unwrap(),
        [
            "span 1 call method=\"GET\" url=http://***@2.1.sim/here tag=0",
            "resolved name=\"2.1.sim\" addresses=[10.0.0.2, 10.0.0.1]",
            "connecting remote=10.0.0.2:80",
            "not connected remote=10.0.0.2:80 error=connecting failed",
            "connecting remote=10.0.0.1:80",
            "connected remote=10.0.0.1:80 local=127.0.0.1:1025",
            "ready remote=10.0.0.1:80 tls=None",
            "record 1 remote=10.0.0.1:80",
            "sent in 1 remote=10.0.0.1:80 reused=false",
            "record 1 status=302",
            "head in 1 status=302",
            "redirected in 1 url=http://2.1.sim/there",
            "record 1 remote=10.0.0.1:80",
            "sent in 1 remote=10.0.0.1:80 reused=true",
            "record 1 status=200",
            "head in 1 status=200",
            "close 1",
            "span 2 call method=\"GET\" url=http://2.1.sim/ tag=0",
            "record 2 remote=10.0.0.1:80",
            "sent in 2 remote=10.0.0.1:80 reused=true",
            "record 2 error=not an HTTP/1.x status line",
            "failed in 2 error=not an HTTP/1.x status line phase=receiving the head",
            "close 2",
        ]
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
