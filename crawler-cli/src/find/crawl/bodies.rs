//! Downloads over the engine: moves their requests, heads and bodies between `Downloads` and the client. They share
//! the host's connections with the reading of directories, and wait when the host asks for a pause.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use courser::{Call, CallId, Codings, Completion, Read, Request, Response, Timeouts};
use url::Url;

use super::super::cause::Cause;
use super::super::download::{Body, Head, Store};
use super::super::host_crawl::FetchId;
use super::{Crawl, Host, Run, exchange, failure, tag, untag};
use crate::crawl::origin::root_of;
use crate::crawl::stats::{Class, Exchange};

/// The bodies that are being read, and where they go.
pub(super) struct Bodies {
    pub(super) store: Store,
    /// Longest time without a byte.
    patience: Duration,
    streams: HashMap<CallId, Stream>,
    /// Those that have something to read.
    readable: VecDeque<CallId>,
    buffer: Vec<u8>,
    /// Calls in the client.
    in_flight: usize,
}

struct Stream {
    host: usize,
    id: FetchId,
    status: u16,
    /// Up to the head.
    exchange: Exchange,
    /// Bytes of the body, which are counted as they come.
    came: u64,
    /// Why the body is not whole.
    failure: Option<Class>,
    wanted: Body,
    /// What may still be read of it for the sake of the connection alone.
    left: usize,
    is_queued: bool,
}

impl Bodies {
    pub(super) fn new(store: Store, patience: Duration) -> Self {
        Self {
            store,
            patience,
            streams: HashMap::new(),
            readable: VecDeque::new(),
            buffer: vec![0; BUFFER],
            in_flight: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.readable.is_empty()
    }
}

impl Host {
    /// Whether nothing but the robots.txt may be asked for, and that for the sake of files at least.
    pub(super) fn files_await_robots(&self) -> bool {
        self.crawl.awaits_robots() && !self.downloads.is_done()
    }
}

impl Crawl<'_> {
    /// Gives what was found since to the hosts that have it, which need not be the one whose answer told of it.
    pub(super) fn take_wanted(&mut self, run: &mut Run<'_>) {
        let Some(bodies) = &self.bodies else {
            return;
        };
        for wanted in std::mem::take(&mut run.wanted) {
            let root = Url::parse(&wanted.url).map(|url| root_of(&url));
            // What is found was found by the host crawl of its host.
            if let Some(&index) = root.ok().and_then(|root| self.hosts.places.get(&root)) {
                self.hosts.all[index].downloads.add(wanted, &bodies.store);
            }
        }
    }

    /// While directories are read, half of the connections are left for them. Nothing is fetched before the robots.txt
    /// is known.
    pub(super) fn has_room_for_download(&self, index: usize) -> bool {
        let host = &self.hosts.all[index];
        let goes_on = !host.crawl.is_done() && !host.downloads.is_full();
        let most = if goes_on {
            self.host_cap.div_ceil(2)
        } else {
            self.host_cap
        };
        let bodies = self.bodies.as_ref();
        let in_flight = host.downloads.in_flight();
        bodies.is_some_and(|bodies| bodies.in_flight < MOST_FILES)
            && in_flight < most
            && !host.crawl.awaits_robots()
            && self.has_room(index)
            && host.crawl.has_room()
    }

    pub(super) fn submit_downloads(&mut self, index: usize, run: &mut Run<'_>) {
        let now = Instant::now();
        while self.has_room_for_download(index)
            && self.hosts.all[index]
                .crawl
                .politeness()
                .held_until(now)
                .is_none()
            && self.group_held_until(index, now).is_none()
        {
            let Some(bodies) = &mut self.bodies else {
                return;
            };
            let host = &mut self.hosts.all[index];
            let (base, crawl) = (host.base.as_str(), &host.crawl);
            let refusal = &|url: &str| {
                let target = url.strip_prefix(base)?;
                crawl.refusal(target).filter(|_| target.starts_with('/'))
            };
            let visitor = &mut run.visitor(None);
            let get = host
                .downloads
                .poll_request(now, &mut bodies.store, refusal, visitor);
            let Some(get) = get else {
                return;
            };
            let mut request = Request::new(get.method, get.url);
            request.header("Accept", "*/*");
            // The file as it is, of which a part can be asked for.
            request.header("Accept-Encoding", "identity");
            request.decode(Codings::none());
            if let Some((at, validator)) = get.rest {
                request.header("Range", format!("bytes={at}-"));
                request.header("If-Range", validator);
            }
            let timeouts = Timeouts {
                write: Some(bodies.patience),
                first_byte: Some(bodies.patience),
                between_bytes: Some(bodies.patience),
                ..Timeouts::none()
            };
            let call = Call::new(request, Response::new())
                .tag(tag(index, get.id) | DOWNLOAD)
                .timeouts(timeouts)
                .streaming(get.method == "GET");
            self.calls.submit(call);
            bodies.in_flight += 1;
            host.crawl.politeness().handle_sent(now);
            host.pages_first = true;
            self.note_sent(index, now);
            run.events.summary.stats.handle_sent(index);
        }
    }

    /// The head of an answer, or a failure before there was one. Tells which host it was.
    pub(super) fn answer_download(&mut self, done: Completion, run: &mut Run<'_>) -> usize {
        let (index, id) = untag(done.tag & !DOWNLOAD);
        self.note_address(index, &done.report);
        let Some(bodies) = &mut self.bodies else {
            return index;
        };
        let host = &mut self.hosts.all[index];
        let now = Instant::now();
        let exchange = exchange(&done.report, false);
        let visitor = &mut run.visitor(None);
        match done.outcome {
            Ok(()) => {
                let head = Head::of(&done.response);
                let politeness = host.crawl.politeness();
                let store = &mut bodies.store;
                let downloads = &mut host.downloads;
                let wanted = downloads.handle_head(now, id, &head, politeness, store, visitor);
                let stream = Stream {
                    host: index,
                    id,
                    status: done.response.status(),
                    exchange,
                    came: 0,
                    failure: None,
                    wanted,
                    left: MOST_UNWANTED,
                    is_queued: true,
                };
                match done.body {
                    Some(call) => {
                        bodies.streams.insert(call, stream);
                        bodies.readable.push_back(call);
                    }
                    None => self.end_download(&stream, run),
                }
            }
            Err(error) => {
                run.events.summary.stats.handle_failure(
                    now,
                    index,
                    Class::of_error(&error),
                    &exchange,
                );
                let failure = failure(error, host.proxy.as_deref());
                let visitor = &mut run.visitor(None);
                host.downloads
                    .handle_failure(now, id, failure, host.crawl.politeness(), visitor);
                bodies.in_flight -= 1;
                self.note_over(index);
            }
        }
        self.note_limits(index, now);
        index
    }

    /// Reads what has come of the bodies, of each no more than a few buffers at a time.
    pub(super) fn read_bodies(&mut self, run: &mut Run<'_>) {
        let Some(bodies) = &mut self.bodies else {
            return;
        };
        while let Some(call) = self.calls.readable_body() {
            if let Some(stream) = bodies.streams.get_mut(&call)
                && !stream.is_queued
            {
                stream.is_queued = true;
                bodies.readable.push_back(call);
            }
        }
        for _ in 0..bodies.readable.len() {
            if let Some(index) = self.read_body(run) {
                self.submit_near(index, run);
            }
        }
    }

    /// Reads from the first body in the queue; if it ends, tells whose it was.
    fn read_body(&mut self, run: &mut Run<'_>) -> Option<usize> {
        let bodies = self.bodies.as_mut()?;
        let call = bodies.readable.pop_front()?;
        let stream = bodies.streams.get_mut(&call)?;
        let host = &mut self.hosts.all[stream.host];
        let mut is_over = false;
        for _ in 0..BUFFERS_AT_ONCE {
            let read = self.calls.read_body(call, &mut bodies.buffer);
            let now = Instant::now();
            if let Ok(Read::Data(n)) = read {
                stream.came += n as u64;
                let stats = &mut run.events.summary.stats;
                stats.handle_bytes(now, stream.host, n as u64);
            }
            let visitor = &mut run.visitor(None);
            match read {
                Ok(Read::Data(n)) if stream.wanted == Body::Wanted => {
                    let bytes = &bodies.buffer[..n];
                    let store = &mut bodies.store;
                    let politeness = host.crawl.politeness();
                    let downloads = &mut host.downloads;
                    stream.wanted =
                        downloads.handle_data(stream.id, bytes, politeness, store, visitor);
                }
                Ok(Read::Data(n)) if n <= stream.left => stream.left -= n,
                Ok(Read::Data(_)) => {
                    self.calls.cancel(call);
                    is_over = true;
                }
                Ok(Read::Pending) => {
                    stream.is_queued = false;
                    return None;
                }
                Ok(Read::End { report, .. }) => {
                    if stream.wanted == Body::Wanted {
                        let store = &mut bodies.store;
                        let politeness = host.crawl.politeness();
                        host.downloads
                            .handle_end(now, stream.id, politeness, store, visitor);
                    }
                    stream.exchange.bytes = exchange(&report, false).bytes;
                    is_over = true;
                }
                Err(error) => {
                    stream.failure = Some(Class::of_error(&error));
                    if stream.wanted == Body::Wanted {
                        let failure = failure(error, host.proxy.as_deref());
                        let politeness = host.crawl.politeness();
                        host.downloads
                            .handle_failure(now, stream.id, failure, politeness, visitor);
                    }
                    is_over = true;
                }
            }
            if is_over {
                let stream = bodies.streams.remove(&call)?;
                self.end_download(&stream, run);
                return Some(stream.host);
            }
        }
        bodies.readable.push_back(call);
        None
    }

    fn end_download(&mut self, stream: &Stream, run: &mut Run<'_>) {
        let (now, stats) = (Instant::now(), &mut run.events.summary.stats);
        let exchange = Exchange {
            bytes: stream.exchange.bytes.saturating_sub(stream.came),
            ..stream.exchange
        };
        match stream.failure {
            Some(class) => stats.handle_failure(now, stream.host, class, &exchange),
            None => stats.handle_answer(now, stream.host, stream.status, &exchange),
        }
        self.note_over(stream.host);
        if let Some(bodies) = &mut self.bodies {
            bodies.in_flight -= 1;
        }
    }
}

/// Nothing can be fetched any more.
pub(super) fn abandon(host: &mut Host, cause: &Cause, run: &mut Run<'_>) {
    let visitor = &mut run.visitor(None);
    host.downloads.abandon(cause, visitor);
}

/// Marks the tags of downloads. Other tags do not come so far.
pub(super) const DOWNLOAD: u64 = 1 << 63;

/// Files that are written at a time, over all hosts. Each has two descriptors beside its connection's.
const MOST_FILES: usize = 32;

const BUFFER: usize = 64 * 1024;
/// So that a fast server cannot hold up the others.
const BUFFERS_AT_ONCE: usize = 4;
/// Longest body, such as an error's, that is read to its end because that is cheaper than another connection.
const MOST_UNWANTED: usize = 64 * 1024;
