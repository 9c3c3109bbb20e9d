//! `-v`, `--trace` and `--trace-ascii`: connections, heads and bodies in curl's format, without credentials.

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use courser::{ObserverEvent, Response};
use jiff::Zoned;

use super::args::{Global, TraceForm};
use super::certificate;
use super::dump;
use super::exit::Failure;
use super::mask::masked;
use crate::stdout;
use crate::terminal::{Keep, neutralise_bytes};

/// What is shown of transfers; nothing without one of the options. Clones show at the same place.
#[derive(Clone, Default)]
pub(super) struct Trace(Option<Arc<Shown>>);

struct Shown {
    form: Form,
    /// `--trace-time`
    time: bool,
    place: Place,
    /// The engine reads the first bytes of a body before it sends the head. They are held until the head is shown;
    /// `None`: it was.
    held: Mutex<Option<Vec<u8>>>,
    /// The first error of a trace that is not complete.
    failure: OnceLock<Failure>,
}

enum Form {
    /// `-v`: a line for each event and each line of a head.
    Lines,
    Dump(TraceForm),
}

enum Place {
    Stdout,
    Stderr,
    /// With its name.
    File(Mutex<File>, String),
}

impl Trace {
    /// # Errors
    /// The file cannot be written.
    pub(super) fn new(global: &Global) -> Result<Self, Failure> {
        let (form, place) = match &global.trace {
            None if !global.verbose => return Ok(Self::default()),
            None => (Form::Lines, Place::Stderr),
            Some((form, name)) => {
                let place = match name.as_encoded_bytes() {
                    b"-" => Place::Stdout,
                    b"%" => Place::Stderr,
                    _ => match File::create(name) {
                        Ok(file) => {
                            Place::File(Mutex::new(file), name.to_string_lossy().into_owned())
                        }
                        Err(error) => {
                            return Err(Failure::write(name.to_string_lossy(), &error));
                        }
                    },
                };
                (Form::Dump(*form), place)
            }
        };
        let time = global.trace_time;
        let held = Mutex::default();
        Ok(Self(Some(Arc::new(Shown {
            form,
            time,
            place,
            held,
            failure: OnceLock::new(),
        }))))
    }

    /// Why a file or stdout does not have all that was shown there.
    pub(super) fn failure(&self) -> Option<&Failure> {
        self.0.as_ref()?.failure.get()
    }

    /// A request begins.
    pub(super) fn begin(&self) {
        if let Some(shown) = &self.0 {
            shown.release();
            *shown.held() = Some(Vec::new());
        }
    }

    /// Shows an event of a connection. Responses are shown later by [`response`](Self::response). `insecure` is `-k`.
    pub(super) fn event(&self, event: &ObserverEvent<'_>, insecure: bool) {
        if let Some(shown) = &self.0 {
            shown.event(event, insecure);
        }
    }

    /// Shows the heads of a response.
    pub(super) fn response(&self, response: &Response) {
        let Some(shown) = &self.0 else { return };
        shown.release();
        for interim in response.interim() {
            shown.head(Way::In, interim.bytes());
        }
        shown.head(Way::In, response.head());
    }

    /// Shows a line about a transfer. The line is made only if something is shown.
    pub(super) fn info(&self, line: impl FnOnce() -> String) {
        if let Some(shown) = &self.0 {
            shown.info(&line());
        }
    }

    /// Whether bodies are shown.
    pub(super) fn has_bodies(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|shown| matches!(shown.form, Form::Dump(_)))
    }

    /// Shows a piece of a body.
    pub(super) fn data(&self, way: Way, bytes: &[u8]) {
        let Some(shown) = self.0.as_ref().filter(|_| !bytes.is_empty()) else {
            return;
        };
        if matches!(way, Way::Out)
            && let Some(held) = shown.held().as_mut().filter(|held| held.len() < MOST_HELD)
        {
            held.extend_from_slice(bytes);
            return;
        }
        shown.dump(way, "data", bytes);
    }
}

/// A direction.
#[derive(Clone, Copy)]
pub(super) enum Way {
    In,
    Out,
}

impl Shown {
    fn event(&self, event: &ObserverEvent<'_>, insecure: bool) {
        match event {
            // The lookup of a literal address is not worth a line.
            ObserverEvent::Resolved { name, .. }
                if name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() => {}
            ObserverEvent::Resolved { name, addresses } => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                let addresses = addresses.join(", ");
                self.info(&format!("{name} has the addresses {addresses}"));
            }
            ObserverEvent::Connecting { remote } => self.info(&format!("  Trying {remote}...")),
            ObserverEvent::ConnectFailed { error } => self.info(&error.to_string()),
            ObserverEvent::Connected { remote, .. } => {
                self.info(&format!("Connected to {remote}"));
            }
            ObserverEvent::Tunnelling { head, .. } => {
                let target = head.split(|b| *b == b' ').nth(1).unwrap_or_default();
                let target = String::from_utf8_lossy(target);
                self.info(&format!("Establish HTTP proxy tunnel to {target}"));
                self.head(Way::Out, head);
            }
            ObserverEvent::TunnelAnswered { status, head, .. } => {
                self.head(Way::In, head);
                let opened = (200..300).contains(status);
                let outcome = if opened { "established" } else { "failed" };
                self.info(&format!("CONNECT tunnel {outcome}, response {status}"));
            }
            ObserverEvent::Ready { tls: Some(tls), .. } => {
                for line in certificate::lines(tls, insecure) {
                    self.info(&line);
                }
            }
            ObserverEvent::Sending {
                remote,
                reused,
                head,
                ..
            } => {
                if *reused {
                    self.info(&format!("Re-using the connection to {remote}"));
                }
                self.head(Way::Out, head);
                self.release();
            }
            ObserverEvent::Retrying { cause, .. } => self.info(&format!("{cause}; once more")),
            _ => {}
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what was held, and holds nothing more.
    fn release(&self) {
        let held = self.held().take();
        if let Some(held) = held.filter(|held| !held.is_empty()) {
            self.dump(Way::Out, "data", &held);
        }
    }

    fn info(&self, line: &str) {
        let mark = match self.form {
            Form::Lines => "*",
            Form::Dump(_) => "== Info:",
        };
        self.line(&format!("{mark} {line}"));
    }

    fn head(&self, way: Way, head: &[u8]) {
        let lines = head.split_inclusive(|b| *b == b'\n').map(|line| {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            let end = &line[text.len()..];
            let text = String::from_utf8_lossy(&neutralise_bytes(text, Keep::Nothing)).into_owned();
            (masked(&text).into_owned(), end)
        });
        match (&self.form, way) {
            (Form::Lines, way) => {
                let mark = if matches!(way, Way::In) { '<' } else { '>' };
                lines.for_each(|(line, _)| self.line(&format!("{mark} {line}")));
            }
            // As in curl, a request is shown at once, and a response line by line.
            (Form::Dump(_), Way::Out) => {
                let whole: Vec<u8> = lines
                    .flat_map(|(line, end)| [line.as_bytes(), end].concat())
                    .collect();
                self.dump(way, "header", &whole);
            }
            (Form::Dump(_), Way::In) => lines.for_each(|(line, end)| {
                self.dump(way, "header", &[line.as_bytes(), end].concat());
            }),
        }
    }

    fn dump(&self, way: Way, what: &str, bytes: &[u8]) {
        let Form::Dump(form) = &self.form else { return };
        let mark = match way {
            Way::In => "<= Recv",
            Way::Out => "=> Send",
        };
        let count = bytes.len();
        let rows = match form {
            TraceForm::Hex => dump::hex(bytes),
            TraceForm::Ascii => dump::ascii(bytes),
        };
        let title = format!("{mark} {what}, {count} bytes (0x{count:x})");
        self.write(&format!("{}{title}\n{rows}", self.now()));
    }

    fn line(&self, line: &str) {
        let line = neutralise_bytes(line.as_bytes(), Keep::Nothing);
        self.write(&format!(
            "{}{}\n",
            self.now(),
            String::from_utf8_lossy(&line)
        ));
    }

    /// `--trace-time`: the time of day, with a space.
    fn now(&self) -> String {
        match self.time {
            true => Zoned::now().strftime("%H:%M:%S%.6f ").to_string(),
            false => String::new(),
        }
    }

    /// The first error is kept for the end: no transfer fails because nobody can read about it. An error on stderr cannot
    /// be reported anywhere.
    fn write(&self, text: &str) {
        let outcome = match &self.place {
            Place::Stdout => {
                let written = stdout::write(text.as_bytes());
                written.map_err(|error| Failure::stdout(&error))
            }
            Place::Stderr => {
                let _ = io::stderr().lock().write_all(text.as_bytes());
                return;
            }
            Place::File(file, name) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let written = file.write_all(text.as_bytes());
                written.map_err(|error| Failure::write(name, &error))
            }
        };
        if let Err(failure) = outcome {
            // A later error changes nothing.
            let _ = self.failure.set(failure);
        }
    }
}

/// Bytes that wait for the head; more are shown at once.
const MOST_HELD: usize = 64 * 1024;
