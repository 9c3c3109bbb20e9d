//! One host of a search: its crawl and its downloads, which share one politeness and the connections to the host.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use courser::{Codings, Error, Rate, Request, Response, Timeouts};
use url::{Position, Url};

use super::cause::{Cause, Failure};
use super::download::{Around, Downloads, Flight, Store, Wanted};
use super::host_crawl::{FetchKind, FileEnd, HostCrawl, Reply};
use super::policy::Policy;
use super::run::Run;
use super::summary::Ending;
use super::visitor::Turn;
use crawl::calls::Drive;
use crawl::failure::FailureScope;
use crawl::politeness::Politeness;
use crawl::retry::Failed;
use crawl::stats::Stats;
use crawl::work::{Body, HostWork, RequestId, Submission};

/// A host and its work.
pub(super) struct Host {
    pub(super) crawl: HostCrawl,
    pub(super) downloads: Downloads,
    /// The number of the host in the state of the search.
    pub(super) number: i64,
    /// Scheme and authority: the part of its URLs before the path.
    base: String,
    /// The proxy for the host, without credentials.
    proxy: Option<String>,
    /// The largest number of requests in flight.
    connections: usize,
    /// Downloads: since when bytes are counted, and how many have come.
    arriving: HashMap<RequestId, (Instant, u64)>,
    /// Whether a page is tried before a file. Alternates, so that pages and files share a rate limit equally.
    pages_first: bool,
}

/// What the hosts of a search share.
pub(super) struct Shared<'r> {
    pub(super) run: Run<'r>,
    pub(super) files: Option<Files>,
    /// The largest rate of bytes received, of all transfers together.
    pub(super) bytes_in: Option<Rate>,
    /// Why TLS cannot be used, if it cannot.
    pub(super) tls_fault: Option<String>,
}

/// The downloads of all hosts.
pub(super) struct Files {
    pub(super) store: Store,
    /// The longest time without a byte.
    pub(super) patience: Duration,
    /// Files being downloaded.
    pub(super) under_way: usize,
    /// Hosts that have files to download.
    pub(super) hosts: usize,
}

impl Host {
    /// The host of `origin`, without tasks.
    pub(super) fn new(
        origin: &Url,
        proxy: Option<String>,
        connections: usize,
        policy: &Policy,
    ) -> Self {
        Self {
            crawl: HostCrawl::new(origin, policy.clone()),
            downloads: Downloads::default(),
            number: 0,
            base: origin[..Position::BeforePath].to_owned(),
            proxy,
            connections,
            arriving: HashMap::new(),
            pages_first: true,
        }
    }

    /// Whether something is left to do, in a search that ends like this.
    pub(super) fn is_open(&self, ending: Ending) -> bool {
        let reads = ending == Ending::Finished && !self.crawl.has_read_all();
        reads || self.crawl.has_files()
    }

    /// Gives up everything, because nothing more can be fetched.
    pub(super) fn abandon(&mut self, now: Instant, cause: &Cause, shared: &mut Shared<'_>) {
        let visitor = &mut shared.run.visitor(None);
        // The crawl gives the files up.
        self.downloads = Downloads::default();
        self.crawl.abandon(&mut Turn::new(now, visitor), cause);
    }

    /// Whether files wait for robots.txt.
    fn files_await_robots(&self) -> bool {
        self.crawl.awaits_robots() && self.crawl.has_files()
    }

    /// Whether a page may be requested. Not while many files wait, because pages would add more; but robots.txt may
    /// always be requested for the sake of the files.
    fn has_room_for_page(&self) -> bool {
        self.crawl.has_room() && (!self.crawl.has_many_files() || self.files_await_robots())
    }

    /// Whether a file may be requested. While directories are read, half of the connections are left for them. Not
    /// before robots.txt is known.
    fn has_room_for_download(&self, files: &Files) -> bool {
        let goes_on = !self.crawl.has_read_all() && !self.crawl.has_many_files();
        let most = match goes_on {
            true => self.connections.div_ceil(2),
            false => self.connections,
        };
        // No host can keep the others from their files.
        let share = (MOST_FILES / files.hosts.max(1)).max(1);
        files.under_way < MOST_FILES
            && self.crawl.files_in_flight() < most.min(share)
            && self.crawl.has_room()
            && !self.crawl.awaits_robots()
    }

    fn poll_page(
        &mut self,
        now: Instant,
        request: &mut Request,
        shared: &mut Shared<'_>,
    ) -> Option<Submission> {
        let is_over = shared.run.is_over() && !self.files_await_robots();
        if is_over || !self.has_room_for_page() {
            return None;
        }
        let fetch = self.crawl.poll_request(now)?;
        let url = format!("{}{}", self.base, fetch.target);
        request.set_target(&url);
        write_head(request, fetch.kind);
        self.pages_first = false;
        Some(Submission {
            id: fetch.id,
            timeouts: None,
            addresses: None,
            streaming: fetch.kind == FetchKind::Robots,
        })
    }

    fn poll_download(
        &mut self,
        now: Instant,
        request: &mut Request,
        shared: &mut Shared<'_>,
    ) -> Option<Submission> {
        let files = shared.files.as_mut()?;
        if !self.has_room_for_download(files) || !self.crawl.politeness().may_send(now) {
            return None;
        }
        let visitor = &mut shared.run.visitor(None);
        let mut on = Around {
            crawl: &mut self.crawl,
            store: &mut files.store,
            turn: Turn::new(now, visitor),
        };
        let get = self.downloads.poll_request(&mut on)?;
        request.set_target(get.url);
        write_head(request, FetchKind::File);
        if let Some((at, validator)) = get.rest {
            request.add_header("Range", format!("bytes={at}-"));
            request.add_header("If-Range", validator);
        }
        let patience = Some(files.patience);
        let submission = Submission {
            id: get.id,
            timeouts: Some(Timeouts {
                // Until the head; see `slowness` for the body.
                total: patience,
                write: patience,
                first_byte: patience,
                between_bytes: patience,
                ..Timeouts::none()
            }),
            addresses: None,
            streaming: true,
        };
        files.under_way += 1;
        self.pages_first = true;
        Some(submission)
    }

    /// Why a download that arrives takes too long, if it does: it may take any time, but each part of it has to come in time.
    fn slowness(
        &mut self,
        now: Instant,
        id: RequestId,
        bytes: usize,
        shared: &Shared<'_>,
    ) -> Option<Cause> {
        let limit = shared.files.as_ref()?.patience;
        let (began, received) = self.arriving.entry(id).or_insert((now, 0));
        *received += bytes as u64;
        let took = now.saturating_duration_since(*began);
        let is_slow = took > time_for(*received, limit, shared.bytes_in);
        if *received >= LEAST_PART {
            (*began, *received) = (now, 0);
        }
        let least = LEAST_PART;
        is_slow.then_some(Cause::Slow { least, limit })
    }

    /// Ends a download that takes too long.
    fn end_slow(
        &mut self,
        now: Instant,
        id: RequestId,
        cause: Cause,
        shared: &mut Shared<'_>,
    ) -> Body {
        let scope = FailureScope::Request;
        self.fail_download(shared, now, id, Failure { cause, scope });
        Body::Unwanted
    }

    fn is_download(&mut self, id: RequestId) -> bool {
        self.crawl.wanted(id).is_some()
    }

    /// Lets `act` handle a file that is being downloaded. Returns whether its body goes on.
    fn download(
        &mut self,
        shared: &mut Shared<'_>,
        now: Instant,
        id: RequestId,
        act: impl FnOnce(&mut Store, &mut Wanted, &mut Flight) -> Result<(), FileEnd>,
    ) -> Body {
        let Some(files) = &mut shared.files else {
            return Body::Unwanted;
        };
        let visitor = &mut shared.run.visitor(None);
        let mut on = Around {
            crawl: &mut self.crawl,
            store: &mut files.store,
            turn: Turn::new(now, visitor),
        };
        let body = self.downloads.handle(id, &mut on, act);
        if body == Body::Unwanted {
            files.under_way -= 1;
            self.arriving.remove(&id);
        }
        body
    }

    /// Ends a download that failed.
    fn fail_download(
        &mut self,
        shared: &mut Shared<'_>,
        now: Instant,
        id: RequestId,
        failure: Failure,
    ) {
        let failed = Failed::new(failure.cause.class(), failure.scope);
        self.download(shared, now, id, |_, _, _| {
            Err(FileEnd::Failed(failed, failure.cause))
        });
    }
}

impl HostWork for Host {
    type Shared<'s> = Shared<'s>;

    fn stats<'a>(shared: &'a mut Shared<'_>) -> &'a mut Stats {
        shared.run.stats()
    }

    fn poll_request(
        &mut self,
        now: Instant,
        request: &mut Request,
        shared: &mut Shared<'_>,
    ) -> Option<Submission> {
        let is_full = |files: &Files| files.store.is_full();
        if shared.files.as_ref().is_some_and(is_full) {
            return None;
        }
        match self.pages_first {
            true => self
                .poll_page(now, request, shared)
                .or_else(|| self.poll_download(now, request, shared)),
            false => self
                .poll_download(now, request, shared)
                .or_else(|| self.poll_page(now, request, shared)),
        }
    }

    fn poll_timeout(&mut self, now: Instant, shared: &Shared<'_>) -> Option<Instant> {
        let has_room = |files: &Files| self.has_room_for_download(files);
        let may_download = shared.files.as_ref().is_some_and(has_room);
        let held = self.crawl.politeness().held_until(now);
        let file = may_download.then(|| self.crawl.file_timeout(held));
        let may_read = shared.run.ending() == Ending::Finished && self.has_room_for_page();
        let page = may_read.then(|| self.crawl.poll_timeout(now));
        page.flatten().into_iter().chain(file.flatten()).min()
    }

    fn handle_reply(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Shared<'_>,
        calls: &mut dyn Drive,
    ) {
        if self.is_download(id) {
            self.handle_head(now, id, response, shared);
            return;
        }
        let visitor = &mut shared.run.visitor(Some(calls));
        let turn = &mut Turn::new(now, visitor);
        self.crawl.handle_reply(turn, id, &Reply::of(response));
    }

    fn handle_failure(
        &mut self,
        now: Instant,
        id: RequestId,
        error: Error,
        part: Option<&Response>,
        shared: &mut Shared<'_>,
        calls: &mut dyn Drive,
    ) {
        let failure = Failure::of(error, self.proxy.as_deref(), part);
        if !self.is_download(id) {
            let visitor = &mut shared.run.visitor(Some(calls));
            let turn = &mut Turn::new(now, visitor);
            return self.crawl.handle_failure(turn, id, failure);
        }
        self.fail_download(shared, now, id, failure);
    }

    fn handle_head(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Shared<'_>,
    ) -> Body {
        if !self.is_download(id) {
            let visitor = &mut shared.run.visitor(None);
            let turn = &mut Turn::new(now, visitor);
            return self.crawl.handle_head(turn, id, &Reply::of(response));
        }
        let reply = &Reply::of(response);
        if !matches!(reply.status, 429 | 503) {
            self.crawl.politeness().handle_answer(now);
        }
        self.download(shared, now, id, |store, wanted, flight| {
            store.handle_head(wanted, flight, reply)
        })
    }

    fn handle_data(
        &mut self,
        now: Instant,
        id: RequestId,
        bytes: &[u8],
        shared: &mut Shared<'_>,
    ) -> Body {
        if !self.is_download(id) {
            let visitor = &mut shared.run.visitor(None);
            let turn = &mut Turn::new(now, visitor);
            return self.crawl.handle_data(turn, id, bytes);
        }
        let slowness = self.slowness(now, id, bytes.len(), shared);
        // The bytes of a slow part are kept all the same.
        self.crawl.politeness().handle_bytes();
        let body = self.download(shared, now, id, |store, wanted, flight| {
            store.append(wanted, flight, bytes)
        });
        if body == Body::Unwanted {
            return body;
        }
        shared.run.events.summary.downloads.bytes += bytes.len() as u64;
        match slowness {
            Some(cause) => self.end_slow(now, id, cause, shared),
            None => body,
        }
    }

    fn handle_quiet(&mut self, now: Instant, id: RequestId, shared: &mut Shared<'_>) -> Body {
        let is_file = self.is_download(id);
        match is_file.then(|| self.slowness(now, id, 0, shared)).flatten() {
            Some(cause) => self.end_slow(now, id, cause, shared),
            None => Body::Wanted,
        }
    }

    fn handle_end(&mut self, now: Instant, id: RequestId, shared: &mut Shared<'_>) {
        if !self.is_download(id) {
            let visitor = &mut shared.run.visitor(None);
            let turn = &mut Turn::new(now, visitor);
            return self.crawl.handle_end(turn, id);
        }
        self.crawl.politeness().handle_body_end();
        self.download(shared, now, id, |store, wanted, flight| {
            store.handle_end(wanted, flight)
        });
    }

    fn politeness(&mut self) -> &mut Politeness {
        self.crawl.politeness()
    }

    fn is_done(&self) -> bool {
        self.crawl.is_done()
    }
}

/// Writes the method, header fields of a request of the crawl.
fn write_head(request: &mut Request, kind: FetchKind) {
    request.set_method(match kind {
        FetchKind::Probe => "HEAD",
        _ => "GET",
    });
    match kind {
        FetchKind::List | FetchKind::Page => request.add_header("Accept", "text/html,*/*;q=0.1"),
        FetchKind::Robots => request.add_header("Accept", "text/plain,*/*;q=0.1"),
        FetchKind::First => request.add_header("Range", "bytes=0-0"),
        FetchKind::Probe => request,
        // A coding would make ranges of the file impossible.
        FetchKind::File => request
            .add_header("Accept", "*/*")
            .add_header("Accept-Encoding", "identity"),
    };
    // The length to find out is that of the file, not of an encoded body.
    request.decode(match kind {
        FetchKind::Probe | FetchKind::First | FetchKind::File => Codings::none(),
        _ => Codings::all(),
    });
}

/// The longest time for so many bytes: the limit, and one more limit for each part. Where the rate is limited, also
/// the time that the bytes take beside as many downloads as there can be.
fn time_for(received: u64, limit: Duration, rate: Option<Rate>) -> Duration {
    let times = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let own = limit.saturating_mul(times(received / LEAST_PART + 1));
    let held = rate.map_or(Duration::ZERO, |rate| {
        let shares = MOST_FILES as u64 + 1;
        let periods = received.saturating_mul(shares) / rate.count;
        rate.per.saturating_mul(times(periods))
    });
    own.saturating_add(held)
}

/// A download needs so many bytes in the time of one request: 1 KiB a second, if the time is the default one. Otherwise a
/// server that sends a byte from time to time could hold a search for ever.
const LEAST_PART: u64 = 30 << 10;

/// The largest number of files that are downloaded at a time, over all hosts.
const MOST_FILES: usize = 128;

/// The file descriptors of these files, two for each, in addition to those of their connections.
pub(super) const FILE_DESCRIPTORS: usize = 2 * MOST_FILES;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    /// A download that `--limit-rate` holds back is not slow; one that drips is.
    #[test]
    fn the_time_for_a_part_grows_with_its_bytes_and_with_a_limit_of_the_rate() {
        let limit = Duration::from_secs(30);
        let rate = NonZeroU64::new(10_000).map(Rate::per_second);
        assert_eq!(time_for(5, limit, None), limit);
        assert_eq!(time_for(90 << 10, limit, None), limit * 4);
        assert_eq!(time_for(5, limit, rate), limit);
        // Alone, these bytes take 3 seconds.
        assert_eq!(
            time_for(30_000, limit, rate),
            limit + Duration::from_secs(387)
        );
        assert!(time_for(u64::MAX, limit, rate) > limit);
    }
}
