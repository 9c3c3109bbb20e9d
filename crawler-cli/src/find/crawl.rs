//! The crawl over the engine, of all hosts at the same time: moves requests from the host crawls to the client and
//! replies back, and translates between their words. It decides nothing itself.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use courser::{Call, Codings, Completion, ErrorKind, Response, proto};
use url::{Position, Url};

use super::cause::{Cause, Failure};
use super::download::{DownloadCounts, Downloads, Store};
use super::host_crawl::{BodyEnd, Counts, FetchId, FetchKind, HostCrawl, Reply};
use super::link::LinkKind;
use super::listing::next_link;
use super::policy::{Follow, Policy};
use super::run::Run;
use super::state::{State, StateError};
use super::summary::Ending;
use crate::crawl::calls::Calls;
use crate::crawl::failure::{FailureScope, is_opening};
use crate::crawl::origin::root_of;
use crate::crawl::stats::{Class, Connection, Exchange};
use crate::crawl::transfer::Transfer;

mod address_groups;
mod bodies;

use address_groups::AddressGroups;
use bodies::Bodies;

/// The host crawl of one host, and what it has to do with the client.
pub(super) struct Host {
    crawl: HostCrawl,
    downloads: Downloads,
    /// What stands before a path in its URLs.
    base: String,
    /// The proxy that it is reached through, without credentials.
    proxy: Option<String>,
    /// Where it is, if hosts of one address are taken for one.
    address: Option<IpAddr>,
    /// Its calls in the client.
    in_flight: usize,
    /// The last request was for a file: under a limit on their rate, pages and files take turns.
    pages_first: bool,
}

impl Host {
    /// The host of `origin`, with nothing to search yet.
    fn new(origin: &Url, plan: &Plan<'_>, run: &mut Run<'_>) -> Self {
        let downloads = Downloads::new(&plan.policy);
        let crawl = HostCrawl::new(origin, plan.policy.clone());
        let base = &origin[..Position::BeforePath];
        run.events.summary.stats.add_host(base);
        let url = proto::Url::parse(origin.as_str()).ok();
        let proxy = url.and_then(|url| plan.transfer.proxies.pick(&url));
        Self {
            crawl,
            downloads,
            base: base.to_owned(),
            proxy: proxy.map(ToString::to_string),
            address: None,
            in_flight: 0,
            pages_first: true,
        }
    }

    fn is_done(&self) -> bool {
        self.crawl.is_done() && self.downloads.is_done()
    }

    /// Keeps what is done, from the beginning on.
    fn keep(&mut self, downloads: bool) {
        self.crawl.keep_journal();
        if downloads {
            self.downloads.keep_journal();
        }
    }
}

/// The hosts of a search, in the order in which they were first met.
struct Hosts {
    all: Vec<Host>,
    /// Where each is, by the URL of its root.
    places: HashMap<Url, usize>,
}

impl Hosts {
    /// Those that have starts.
    fn of_starts(plan: &Plan<'_>, run: &mut Run<'_>) -> Self {
        let mut hosts = Self {
            all: Vec::new(),
            places: HashMap::new(),
        };
        let target = |url: &Url| url[Position::BeforePath..Position::AfterQuery].to_owned();
        for start in plan.starts {
            hosts.of(start, plan, run).crawl.add_start(&target(start));
        }
        for sitemap in plan.sitemaps {
            hosts
                .of(sitemap, plan, run)
                .crawl
                .add_sitemap(&target(sitemap));
        }
        for host in &mut hosts.all {
            let scheme = host.crawl.origin().scheme();
            if !matches!(scheme, "http" | "https") {
                let cause = Cause::Scheme(scheme.to_owned());
                abandon(std::slice::from_mut(host), &cause, run);
            }
        }
        hosts
    }

    /// That of a URL, which may be new.
    fn of(&mut self, url: &Url, plan: &Plan<'_>, run: &mut Run<'_>) -> &mut Host {
        let root = root_of(url);
        let place = self.places.get(&root).copied().unwrap_or_else(|| {
            let place = self.all.len();
            let mut host = Host::new(&root, plan, run);
            if plan.policy.follow == Follow::Pages {
                for root in run.scope().roots(url) {
                    host.crawl.add_root(root);
                }
            }
            self.all.push(host);
            self.places.insert(root, place);
            place
        });
        &mut self.all[place]
    }

    /// Has them go on where an earlier run was cut off, and those that links had led to.
    fn restore(
        &mut self,
        state: &mut State,
        plan: &Plan<'_>,
        bodies: Option<&Bodies>,
        run: &mut Run<'_>,
    ) -> Result<(), StateError> {
        if state.is_resumed() {
            run.events.go_on(state.tally()?);
        }
        for root in state.further_hosts(self.all.len())? {
            self.of(&root, plan, run);
        }
        for (number, host) in self.all.iter_mut().enumerate() {
            state.restore(number, &mut host.crawl)?;
            if let Some(bodies) = bodies {
                host.downloads.keep_journal();
                let (tally, left) = state.downloads(number)?;
                host.downloads.restore(tally, left, &bodies.store);
            }
        }
        Ok(())
    }
}

/// What is to be searched, and how.
pub(super) struct Plan<'s> {
    pub(super) starts: &'s [Url],
    pub(super) sitemaps: &'s [Url],
    pub(super) policy: Policy,
    pub(super) transfer: &'s Transfer,
    /// Where it is kept.
    pub(super) state: Option<&'s Mutex<State>>,
    /// Where downloads go.
    pub(super) store: Option<Store>,
}

/// Searches the trees of all hosts.
pub(super) fn search(mut plan: Plan<'_>, run: &mut Run<'_>) {
    let transfer = plan.transfer;
    let store = plan.store.take();
    let bodies = store.map(|store| Bodies::new(store, transfer.timeout));
    let mut hosts = Hosts::of_starts(&plan, run);
    if let Some(state) = plan.state {
        let restored = hosts.restore(&mut lock(state), &plan, bodies.as_ref(), run);
        if let Err(error) = restored {
            return run.unkept(&error);
        }
    }
    let given: Vec<Url> = plan.starts.iter().chain(plan.sitemaps).cloned().collect();
    let (host_cap, cap) = (transfer.connections.get(), transfer.all_connections().get());
    let hosts = match transfer.client(&given) {
        Ok(client) => {
            let mut crawl = Crawl {
                hosts,
                groups: AddressGroups::default(),
                first: 0,
                plan,
                calls: Calls::new(client),
                bodies,
                host_cap,
                cap,
                url: String::new(),
            };
            crawl.run(run);
            crawl.hosts
        }
        Err(error) => {
            abandon(&mut hosts.all, &Cause::Transfer(Box::new(error)), run);
            run.broken(plan.state.is_some());
            hosts
        }
    };
    run.turn(counts(&hosts.all), downloads(&hosts.all));
}

struct Crawl<'s> {
    hosts: Hosts,
    groups: AddressGroups,
    /// Which host is the first to send something.
    first: usize,
    plan: Plan<'s>,
    calls: Calls,
    /// If files are downloaded.
    bodies: Option<Bodies>,
    /// Calls that may be in flight to one host: as many as it may have connections, so that none waits for one while
    /// its time runs.
    host_cap: usize,
    /// The same for all hosts together.
    cap: usize,
    /// For building the URL of a request.
    url: String,
}

impl Crawl<'_> {
    fn run(&mut self, run: &mut Run<'_>) {
        loop {
            if let Err(error) = self.take_back(run) {
                return run.unkept(&error);
            }
            self.submit_all(run);
            // What was stopped in the middle of an answer is made again: it is not kept.
            if run.events.summary.ending == Ending::Stopped {
                return;
            }
            if let Err(error) = self.keep(run) {
                return run.unkept(&error);
            }
            if self.is_done(run) {
                return;
            }
            self.tell_waiting(run);
            run.turn(counts(&self.hosts.all), downloads(&self.hosts.all));
            if self.is_done(run) {
                return;
            }
            if let Err(error) = self.wait(run) {
                abandon(&mut self.hosts.all, &Cause::Transfer(Box::new(error)), run);
                return run.broken(self.plan.state.is_some());
            }
        }
    }

    /// What was found before the expression ended the search is downloaded all the same.
    fn is_done(&self, run: &Run<'_>) -> bool {
        match run.events.summary.ending {
            Ending::Finished => self.hosts.all.iter().all(Host::is_done),
            Ending::Quit => self.hosts.all.iter().all(|host| host.downloads.is_done()),
            Ending::Stopped => true,
        }
    }

    /// Some of the URLs that the host crawls have left to the file, for those that can do with them.
    fn take_back(&mut self, run: &mut Run<'_>) -> Result<(), StateError> {
        let Some(state) = self.plan.state.filter(|_| !run.is_over()) else {
            return Ok(());
        };
        for index in 0..self.hosts.all.len() {
            let crawl = &mut self.hosts.all[index].crawl;
            let wanted = crawl.wants_back();
            if wanted == 0 {
                continue;
            }
            let back = lock(state).take_back(index, wanted)?;
            let visitor = &mut run.visitor(Some(&mut self.calls));
            let added = crawl.add_back(Instant::now(), back, visitor);
            added.map_err(|text| lock(state).damaged(text))?;
            self.take_wanted(run);
        }
        Ok(())
    }

    /// What the host crawls have done in this turn goes to the file with the results of this turn.
    fn keep(&mut self, run: &Run<'_>) -> Result<(), StateError> {
        let Some(state) = self.plan.state else {
            return Ok(());
        };
        let mut state = lock(state);
        for (number, host) in self.hosts.all.iter_mut().enumerate() {
            state.stage(number, &mut host.crawl)?;
            state.stage_downloads(number, &mut host.downloads)?;
        }
        state.stage_tally(&run.events.tally());
        Ok(())
    }

    fn has_room(&self, index: usize) -> bool {
        self.hosts.all[index].in_flight < self.host_cap
            && self.calls.in_flight() < self.cap
            && self.group_has_room(index)
    }

    /// What each host waits for.
    fn tell_waiting(&mut self, run: &mut Run<'_>) {
        let now = Instant::now();
        for (index, host) in self.hosts.all.iter_mut().enumerate() {
            let waiting = host.crawl.waiting(now);
            run.events.summary.stats.handle_waiting(index, waiting);
        }
    }

    /// The earliest time when a host has something to do although nothing came, if it has room for it.
    fn due(&mut self, now: Instant, index: usize, pages: bool) -> Option<Instant> {
        let (page, file) = (
            pages && self.has_room_for_page(index),
            self.has_room_for_download(index),
        );
        let host = &mut self.hosts.all[index];
        if pages && host.crawl.wants_back() > 0 {
            return Some(now);
        }
        let held = host.crawl.politeness().held_until(now);
        let together = self.group_held_until(index, now);
        let held = held.max(together);
        let host = &mut self.hosts.all[index];
        let file = file.then(|| host.downloads.poll_timeout(held)).flatten();
        let page = page.then(|| host.crawl.poll_timeout(now)).flatten();
        let page = page.map(|due| together.map_or(due, |held| due.max(held)));
        page.into_iter().chain(file).min()
    }

    /// Not while so many files wait that more of them would only take memory, unless they wait for the robots.txt.
    fn has_room_for_page(&self, index: usize) -> bool {
        let host = &self.hosts.all[index];
        self.has_room(index)
            && (!host.downloads.is_full() || host.files_await_robots())
            && host.crawl.has_room()
    }

    fn submit(&mut self, index: usize, run: &mut Run<'_>) {
        if self.hosts.all[index].pages_first {
            self.submit_pages(index, run);
            self.submit_downloads(index, run);
        } else {
            self.submit_downloads(index, run);
            self.submit_pages(index, run);
        }
    }

    fn submit_pages(&mut self, index: usize, run: &mut Run<'_>) {
        while self.has_room_for_page(index)
            && (!run.is_over() || self.hosts.all[index].files_await_robots())
        {
            let now = Instant::now();
            if self.group_held_until(index, now).is_some() {
                let crawl = &mut self.hosts.all[index].crawl;
                if crawl.politeness().held_until(now).is_none() {
                    crawl.politeness().handle_neighbour_pause(now);
                }
                return;
            }
            let host = &mut self.hosts.all[index];
            if host.files_await_robots() {
                host.crawl.want_robots();
            }
            let Some(fetch) = host.crawl.poll_request(now) else {
                return;
            };
            self.url.clone_from(&host.base);
            self.url.push_str(fetch.target);
            let (mut request, response) = self.calls.blank();
            request.set_method(match fetch.kind {
                FetchKind::List
                | FetchKind::First
                | FetchKind::Page
                | FetchKind::Sitemap
                | FetchKind::Robots => "GET",
                FetchKind::Properties => "PROPFIND",
                FetchKind::Probe => "HEAD",
            });
            request.set_target(&self.url);
            match fetch.kind {
                FetchKind::List | FetchKind::Page => {
                    request.header("Accept", "text/html,*/*;q=0.1")
                }
                FetchKind::Sitemap => {
                    request.header("Accept", "application/xml,text/plain,*/*;q=0.1")
                }
                FetchKind::Robots => request.header("Accept", "text/plain,*/*;q=0.1"),
                FetchKind::First => request.header("Range", "bytes=0-0"),
                FetchKind::Properties => request
                    .header("Depth", "1")
                    .header("Content-Type", "application/xml")
                    .body(PROPERTIES),
                FetchKind::Probe => &mut request,
            };
            // What is asked for is the length of the file, not that of a coding of it.
            request.decode(match fetch.kind {
                FetchKind::List
                | FetchKind::Properties
                | FetchKind::Page
                | FetchKind::Sitemap
                | FetchKind::Robots => Codings::all(),
                FetchKind::Probe | FetchKind::First => Codings::none(),
            });
            let call = Call::new(request, response).tag(tag(index, fetch.id));
            self.calls.submit(call);
            host.pages_first = false;
            self.note_sent(index, now);
            run.events.summary.stats.handle_sent(index);
        }
    }

    /// Until a reply comes, a postponed request is due, or it is time to show progress. Then takes the replies that
    /// are there already, at most one per connection, so that a fast server cannot hold up the results.
    fn wait(&mut self, run: &mut Run<'_>) -> io::Result<()> {
        if let Some(done) = self.calls.next_queued() {
            self.answer(done, run);
            return Ok(());
        }
        let now = Instant::now();
        let pages = run.events.summary.ending == Ending::Finished;
        let due = (0..self.hosts.all.len()).filter_map(|index| self.due(now, index, pages));
        let due = due.min();
        let until_due = due.map(|due| due.saturating_duration_since(now));
        let mut timeout = until_due.map_or(TURN, |wait| wait.min(TURN));
        if self.bodies.as_ref().is_some_and(|bodies| !bodies.is_idle()) {
            timeout = Duration::ZERO;
        }
        if self.calls.in_flight() == 0 {
            thread::sleep(timeout);
            run.events.summary.stats.handle_held(timeout);
            return Ok(());
        }
        for _ in 0..self.calls.in_flight() {
            let Some(done) = self.calls.wait(timeout)? else {
                break;
            };
            let index = self.answer(done, run);
            self.submit_near(index, run);
            timeout = Duration::ZERO;
        }
        self.read_bodies(run);
        Ok(())
    }

    /// Hands a completion to the host crawl that it belongs to, and tells which one that is.
    fn answer(&mut self, done: Completion, run: &mut Run<'_>) -> usize {
        if done.tag & bodies::DOWNLOAD != 0 {
            return self.answer_download(done, run);
        }
        let (index, id) = untag(done.tag);
        self.note_address(index, &done.report);
        self.note_over(index);
        let host = &mut self.hosts.all[index];
        let now = Instant::now();
        let path = done.request.target().strip_prefix(host.base.as_str());
        let exchange = exchange(&done.report, path == Some("/robots.txt"));
        let stats = &mut run.events.summary.stats;
        match &done.outcome {
            Ok(()) => stats.handle_answer(now, index, done.response.status(), &exchange),
            Err(error) => stats.handle_failure(now, index, Class::of_error(error), &exchange),
        }
        let visitor = &mut run.visitor(Some(&mut self.calls));
        match done.outcome {
            Ok(()) => host
                .crawl
                .handle_reply(now, id, &reply(&done.response), visitor),
            Err(error) => {
                let failure = failure(error, host.proxy.as_deref());
                host.crawl.handle_failure(now, id, failure, visitor);
            }
        }
        self.calls.give_back(done.request, done.response);
        self.note_limits(index, now);
        self.take_links(now, run);
        self.take_wanted(run);
        index
    }

    /// Hands the links that were found to other hosts to their host crawls.
    fn take_links(&mut self, now: Instant, run: &mut Run<'_>) {
        for link in std::mem::take(&mut run.links) {
            let is_new = !self.hosts.places.contains_key(&root_of(&link.url));
            if is_new && self.hosts.all.len() >= MOST_HOSTS {
                let cause = Cause::TooManyHosts(MOST_HOSTS);
                let visitor = &mut run.visitor(None);
                // Always the same, so that it knows what was reported.
                if let Some(host) = self.hosts.all.first_mut() {
                    let url = link.url.as_str();
                    host.crawl.leave_out_once(url, &cause, visitor);
                }
                continue;
            }
            let root = run.scope().root(&link.url).to_owned();
            let host = self.hosts.of(&link.url, &self.plan, run);
            if is_new && self.plan.state.is_some() {
                host.keep(self.bodies.is_some());
            }
            if link.kind != LinkKind::Start {
                host.crawl.add_root(&root);
            }
            let visitor = &mut run.visitor(Some(&mut self.calls));
            host.crawl.add_link(now, &link, visitor);
        }
    }
}

/// The tag of a call: host and fetch in one number. Fetches are counted from 1 on, and hosts are few: no crawl lives to
/// see either overflow.
fn tag(host: usize, id: FetchId) -> u64 {
    ((host as u64) << FETCH_BITS) | id.0
}

/// The host and the fetch of a call that is no download.
fn untag(tag: u64) -> (usize, FetchId) {
    let id = tag & ((1 << FETCH_BITS) - 1);
    ((tag >> FETCH_BITS) as usize, FetchId(id))
}

/// One more tells downloads apart.
const FETCH_BITS: u32 = 40;

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn counts(hosts: &[Host]) -> Counts {
    let of_each = hosts.iter().map(|host| {
        let (requests, retries) = host.downloads.requests();
        let of_downloads = Counts {
            requests,
            retries,
            unread: host.downloads.counts().failed,
            ..Counts::default()
        };
        host.crawl.counts() + of_downloads
    });
    of_each.fold(Counts::default(), |sum, counts| sum + counts)
}

fn abandon(hosts: &mut [Host], cause: &Cause, run: &mut Run<'_>) {
    for host in hosts {
        let visitor = &mut run.visitor(None);
        host.crawl.abandon(Instant::now(), cause, visitor);
        bodies::abandon(host, cause, run);
    }
}

fn downloads(hosts: &[Host]) -> DownloadCounts {
    let of_each = hosts.iter().map(|host| host.downloads.counts());
    of_each.fold(DownloadCounts::default(), |sum, counts| sum + counts)
}

fn exchange(report: &courser::Report, robots: bool) -> Exchange {
    Exchange {
        took: report.timings().total,
        bytes: report.bytes_in(),
        connection: report.remote().map(|_| match report.reused() {
            true => Connection::Reused,
            false => Connection::Opened,
        }),
        robots,
    }
}

fn reply(response: &Response) -> Reply<'_> {
    let framed = ["Content-Length", "Transfer-Encoding"]
        .iter()
        .any(|name| response.header(name).is_some());
    let coding = response.header("Content-Encoding");
    Reply {
        status: response.status(),
        location: response.header("Location"),
        retry_after: response.header("Retry-After"),
        date: response.header("Date"),
        content_type: response.header("Content-Type"),
        content_length: response.header("Content-Length"),
        content_range: response.header("Content-Range"),
        last_modified: response.header("Last-Modified"),
        content_encoding: coding.filter(|_| !response.decoded()),
        next: response.header_all("Link").find_map(next_link),
        end: if framed {
            BodyEnd::Framed
        } else {
            BodyEnd::Closed
        },
        body: response.body(),
    }
}

fn failure(error: courser::Error, proxy: Option<&str>) -> Failure {
    let scope = FailureScope::of(&error);
    if let ErrorKind::Denied(ip) = error.kind() {
        let cause = Cause::Private(*ip);
        return Failure { cause, scope };
    }
    let cause = match proxy {
        Some(proxy) if is_opening(error.phase()) => Cause::Proxy(proxy.to_owned(), Box::new(error)),
        _ => Cause::Transfer(Box::new(error)),
    };
    Failure { cause, scope }
}

/// Hosts that links may lead to. Each is remembered for good.
const MOST_HOSTS: usize = 10_000;

/// What is asked of a WebDAV server about each member of a directory.
const PROPERTIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <propfind xmlns=\"DAV:\"><prop><resourcetype/><getcontentlength/><getlastmodified/></prop></propfind>\n";

/// Longest wait between two moments at which progress is shown and a stop is noticed.
const TURN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_hold_host_and_fetch() {
        for (host, id) in [(0, 1), (1, 1), (MOST_HOSTS, (1 << FETCH_BITS) - 1)] {
            let tag = tag(host, FetchId(id));
            assert_eq!(untag(tag), (host, FetchId(id)));
            assert_eq!(tag & bodies::DOWNLOAD, 0);
        }
    }
}
