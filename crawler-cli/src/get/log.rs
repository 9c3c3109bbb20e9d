//! What the engine says while a transfer runs: the heads for `-i`, the lines of `-v`, and when each step of each request
//! was done.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use courser::proto::Url;
use courser::{Observer, ObserverEvent, Response, RetryCause, TlsVersion};

use super::mask::masked;
use super::options::Global;
use super::output::tell;
use plain::terminal::{Keep, neutralise_bytes};

/// What was said about the transfer that runs.
pub(super) type Log = Arc<Mutex<Said>>;

#[derive(Debug, Default)]
pub(super) struct Said {
    /// Heads are kept.
    pub(super) keeps_heads: bool,
    /// The heads of all answers, as received.
    pub(super) heads: Vec<u8>,
    /// Connections that were opened.
    pub(super) connects: u32,
    /// Retries after a pause, which `--retry` counts.
    pub(super) retries: u32,
    /// The requests of the transfer, in order: redirects and retries are further ones. The last [`MOST_TRIPS`] of them.
    pub(super) trips: VecDeque<Trip>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Trip {
    /// Without user information.
    pub(super) url: String,
    /// 0 without an answer.
    status: u16,
    began: Instant,
    /// When each step was done, if it was needed.
    done: [Option<Instant>; STEPS.len()],
}

/// The steps of a request, in order.
const STEPS: [&str; 5] = ["name", "connect", "TLS", "first byte", "body"];
pub(super) const NAME: usize = 0;
pub(super) const CONNECT: usize = 1;
/// With what a proxy needs before.
pub(super) const TLS: usize = 2;
pub(super) const FIRST_BYTE: usize = 3;
const BODY: usize = 4;

pub(super) fn lock(log: &Log) -> MutexGuard<'_, Said> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The observer of a client whose calls are the transfers.
pub(super) fn observer(log: &Log, global: Global) -> Observer {
    let log = Arc::clone(log);
    Observer::new(move |event| {
        lock(&log).note(event, Instant::now());
        if global.verbose {
            show(event);
        } else if let ObserverEvent::Retrying { cause, pause, .. } = event
            && !pause.is_zero()
            && !global.silent
        {
            tell(&format!("Warning: {}", again(cause, *pause)));
        }
    })
}

impl Said {
    fn note(&mut self, event: &ObserverEvent<'_>, now: Instant) {
        match event {
            ObserverEvent::Begun { target, .. } => self.begin(target, now),
            ObserverEvent::Resolved { .. } => self.done(NAME, now),
            ObserverEvent::Connected { .. } => {
                self.connects += 1;
                self.done(CONNECT, now);
            }
            ObserverEvent::TunnelAnswered { head, .. } => self.keep(head),
            ObserverEvent::Ready {
                tls, proxy_head, ..
            } if tls.is_some() || proxy_head.is_some() => self.done(TLS, now),
            ObserverEvent::Head { response, .. } => {
                for head in heads(response) {
                    self.keep(head);
                }
                if let Some(trip) = self.trips.back_mut() {
                    trip.status = response.status();
                }
                self.done(FIRST_BYTE, now);
            }
            ObserverEvent::Redirected { url, .. } => {
                self.done(BODY, now);
                self.begin(url, now);
            }
            ObserverEvent::Retrying { pause, .. } => {
                self.done(BODY, now);
                self.retries += u32::from(!pause.is_zero());
                let url = self.trips.back().map(|trip| trip.url.clone());
                self.begin(&url.unwrap_or_default(), now + *pause);
            }
            ObserverEvent::Ended { .. } => self.done(BODY, now),
            _ => {}
        }
    }

    fn begin(&mut self, url: &str, now: Instant) {
        // Without a limit of redirects, a server can go on for ever.
        if self.trips.len() == MOST_TRIPS {
            self.trips.pop_front();
        }
        self.trips.push_back(Trip::new(url, now));
    }

    fn keep(&mut self, head: &[u8]) {
        if self.keeps_heads {
            self.heads.extend_from_slice(head);
        }
    }

    fn done(&mut self, step: usize, now: Instant) {
        if let Some(trip) = self.trips.back_mut() {
            trip.done[step] = Some(now);
        }
    }

    /// The time until this step was done: a sum over the requests of the transfer, each measured from its start.
    pub(super) fn time(&self, step: usize) -> Duration {
        let times = self.trips.iter().filter_map(|trip| {
            let done = trip.done[step]?;
            Some(done.saturating_duration_since(trip.began))
        });
        times.sum()
    }

    /// `--timing`: for each request a line for each of its steps, with a bar that begins where the step began and is as
    /// long as the step took, on one scale for the whole transfer.
    pub(super) fn timing(&self) -> String {
        let Some(Trip { began: first, .. }) = self.trips.front() else {
            return String::new();
        };
        let ends = self.trips.iter().filter_map(|trip| trip.done[BODY]);
        let (first, last) = (*first, ends.max().unwrap_or(*first));
        let scale = WIDTH as f64 / milliseconds(first, last).max(f64::MIN_POSITIVE);
        let column = |at: Instant| (milliseconds(first, at) * scale).round() as usize;
        let mut text = String::new();
        for trip in &self.trips {
            let status = trip.status;
            let total = milliseconds(trip.began, trip.done[BODY].unwrap_or(last));
            let reused = match (status, trip.done[CONNECT]) {
                (1.., None) => ", connection reused",
                _ => "",
            };
            text += &format!("{} {status:03}, {total:.1} ms{reused}\n", trip.url);
            let mut from = trip.began;
            for (name, done) in STEPS.into_iter().zip(trip.done) {
                let Some(until) = done else { continue };
                let time = milliseconds(from, until);
                let start = column(from).min(WIDTH - 1);
                let bar = "#".repeat(column(until).saturating_sub(start).max(1));
                let space = " ".repeat(start);
                text += &format!("  {name:<10} {time:>9.1} ms  |{space}{bar}\n");
                from = until;
            }
        }
        text
    }
}

impl Trip {
    fn new(url: &str, began: Instant) -> Self {
        Self {
            url: without_user(url),
            status: 0,
            began,
            done: [None; STEPS.len()],
        }
    }
}

fn milliseconds(from: Instant, until: Instant) -> f64 {
    until.saturating_duration_since(from).as_secs_f64() * 1000.0
}

/// A URL to show: without user information.
pub(super) fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let end = match Url::parse(url) {
        Ok(_) => rest.find(['/', '?', '#']).unwrap_or(rest.len()),
        // Where the user information of an invalid URL ends is not sure.
        Err(_) => rest.len(),
    };
    let bare = rest[..end].rfind('@').map_or(rest, |at| &rest[at + 1..]);
    format!("{scheme}://{bare}")
}

/// `-v`: shows an event in curl's form, without credentials.
fn show(event: &ObserverEvent<'_>) {
    match event {
        ObserverEvent::Resolved { name, addresses } => {
            info(&format!("{name} has the addresses {addresses:?}"));
        }
        ObserverEvent::Connecting { remote } => info(&format!("  Trying {remote}...")),
        ObserverEvent::ConnectFailed { error } => info(&error.to_string()),
        ObserverEvent::Connected { remote, .. } => info(&format!("Connected to {remote}")),
        ObserverEvent::Tunnelling { head, .. } => {
            info("Establish HTTP proxy tunnel");
            show_head('>', head);
        }
        ObserverEvent::TunnelAnswered { status, head, .. } => {
            show_head('<', head);
            info(&format!("CONNECT tunnel, response {status}"));
        }
        ObserverEvent::Ready { tls: Some(tls), .. } => {
            let version = match tls.version {
                TlsVersion::V1_2 => "TLSv1.2",
                _ => "TLSv1.3",
            };
            info(&format!(
                "SSL connection using {version} / {}",
                tls.cipher_suite
            ));
        }
        ObserverEvent::Sending {
            remote,
            reused,
            head,
            ..
        } => {
            if *reused {
                info(&format!("Re-using the connection to {remote}"));
            }
            show_head('>', head);
        }
        ObserverEvent::Head { response, .. } => {
            heads(response).for_each(|head| show_head('<', head));
        }
        ObserverEvent::Redirected { url, .. } => info(&format!("Following to {url}")),
        ObserverEvent::Retrying { cause, pause, .. } => info(&again(cause, *pause)),
        _ => {}
    }
}

/// The heads of an answer: interim ones, and its own.
fn heads(response: &Response) -> impl Iterator<Item = &[u8]> {
    let interim = response.interim().map(|head| head.bytes());
    interim.chain([response.head()])
}

fn again(cause: &RetryCause<'_>, pause: Duration) -> String {
    format!("{cause}; again in {:.1} s", pause.as_secs_f64())
}

fn show_head(mark: char, head: &[u8]) {
    for line in head.split_inclusive(|b| *b == b'\n') {
        let text = line.trim_ascii_end();
        let text = String::from_utf8_lossy(&neutralise_bytes(text, Keep::Nothing)).into_owned();
        tell(&format!("{mark} {}", masked(&text)));
    }
}

fn info(line: &str) {
    tell(&format!("* {line}"));
}

/// The most requests of a transfer that are kept.
const MOST_TRIPS: usize = 1_000;

/// The columns of the longest bar.
const WIDTH: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_their_user() {
        for (typed, shown) in [
            ("http://u:p@h/x?y#z", "http://h/x?y#z"),
            ("http://u:p@a..b/", "http://a..b/"),
            ("http://u:p/@q@a..b/", "http://a..b/"),
            ("http://[::1]:81/@", "http://[::1]:81/@"),
            ("http://", "http://"),
        ] {
            assert_eq!(without_user(typed), shown);
        }
    }
}
