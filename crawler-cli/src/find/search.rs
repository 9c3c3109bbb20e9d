//! Searches all hosts concurrently: creates the hosts, lets the scheduler drive them, passes findings of one host to
//! others, and saves the progress.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use courser::{TlsConfig, proto};
use url::{Position, Url};

use super::Find;
use super::cause::Cause;
use super::download::Store;
use super::host::{Files, Host, Shared};
use super::host_crawl::Counts;
use super::link::{Link, LinkKind};
use super::policy::Follow;
use super::run::Run;
use super::state::StateError;
use super::summary::Ending;
use super::visitor::Turn;
use crate::crawl::hosts::{HostId, Hosts};
use crate::crawl::origin::root_of;
use crate::crawl::scheduler::Scheduler;
use crate::crawl::transfer::Transfer;

/// Runs the search. `store`: where downloads go.
pub(super) fn search<'r>(find: &'r Find, store: Option<Store>, run: Run<'r>) -> Run<'r> {
    let transfer = &find.settings.transfer;
    let files = store.map(|store| Files {
        store,
        patience: transfer.timeout,
        under_way: 0,
        hosts: 0,
    });
    let mut shared = Shared {
        run,
        files,
        bytes_in: transfer.bytes_in,
        tls_fault: transfer.tls_fault(),
    };
    let client = match shared.tls_fault {
        None => transfer.client(&find.starts),
        // Hosts that need TLS are given up, so that these settings are used for none.
        Some(_) => {
            let tls = TlsConfig::default();
            let transfer = Transfer {
                tls,
                ..transfer.clone()
            };
            transfer.client(&find.starts)
        }
    };
    let mut hosts = hosts_of_starts(find, &mut shared);
    if let Err(error) = restore(&mut hosts, find, &mut shared) {
        shared.run.state_failed(&error);
        return shared.run;
    }
    match client {
        Ok(client) => {
            let scheduler = Scheduler::new(hosts, client, transfer);
            let mut search = Search {
                scheduler,
                find,
                shared,
            };
            search.run();
            search.update();
            search.tell_not_reached();
            search.shared.run
        }
        Err(error) => {
            let cause = Cause::Transfer(Box::new(error));
            abandon(&mut hosts, &cause, &mut shared);
            shared.run.client_failed();
            update(&hosts, &mut shared);
            shared.run
        }
    }
}

/// Gives a host up if no request can be sent there.
fn check_scheme(host: &mut Host, shared: &mut Shared<'_>) {
    let scheme = host.crawl.origin().scheme();
    if !matches!(scheme, "http" | "https") {
        let cause = Cause::Scheme(scheme.to_owned());
        host.abandon(Instant::now(), &cause, shared);
    } else if let Some(fault) = &shared.tls_fault
        && scheme == "https"
    {
        let cause = Cause::Transfer(format!("TLS: {fault}").into());
        let visitor = &mut shared.run.visitor(None);
        host.crawl
            .give_up_rest(&mut Turn::new(Instant::now(), visitor), cause);
    }
}

/// Creates the hosts of the starts.
fn hosts_of_starts(find: &Find, shared: &mut Shared<'_>) -> Hosts<Host> {
    let mut hosts = Hosts::new(find.settings.transfer.identities.clone());
    for start in &find.starts {
        let id = host_of(&mut hosts, start, find, shared);
        let target = &start[Position::BeforePath..Position::AfterQuery];
        hosts.work(id).crawl.add_start(target);
    }
    for (_, host) in hosts.works_mut() {
        check_scheme(host, shared);
    }
    hosts
}

/// The host of a URL; created if it is new.
fn host_of(hosts: &mut Hosts<Host>, url: &Url, find: &Find, shared: &mut Shared<'_>) -> HostId {
    let root = root_of(url);
    if let Some(host) = hosts.at(&root) {
        return host;
    }
    let proxied = proto::Url::parse(root.as_str()).ok();
    let proxy = proxied.and_then(|url| find.settings.transfer.proxies.pick(&url));
    let proxy = proxy.map(ToString::to_string);
    let connections = find.settings.transfer.connections.get();
    let mut host = Host::new(&root, proxy, connections, &find.policy);
    if find.policy.follow == Follow::Pages {
        for root in find.scope.roots(url) {
            host.crawl.add_root(root);
        }
    }
    let stats = shared.run.stats().add_host(&root[..Position::BeforePath]);
    let rate = host.crawl.politeness().rate();
    shared.run.stats().note_rate(stats, rate);
    host.number = i64::try_from(hosts.len()).unwrap_or(i64::MAX);
    hosts.add(root, stats, host)
}

/// Restores the hosts from the state of an earlier run, if the search has a state, including hosts that links led to.
fn restore(
    hosts: &mut Hosts<Host>,
    find: &Find,
    shared: &mut Shared<'_>,
) -> Result<(), StateError> {
    let Some(state) = shared.run.state() else {
        return Ok(());
    };
    let tally = state.is_resumed().then(|| state.tally()).transpose()?;
    let further = state.further_hosts(hosts.len())?;
    if let Some(tally) = tally {
        shared.run.events.resume(tally);
    }
    for root in further {
        host_of(hosts, &root, find, shared);
    }
    for (_, host) in hosts.works_mut() {
        let Some(state) = shared.run.state() else {
            break;
        };
        let saved = state.load(host.number)?;
        host.crawl.expect_later_run();
        let restored = match saved {
            Some(kept) => host.crawl.restore(kept),
            None => {
                host.crawl.keep_journal();
                Ok(())
            }
        };
        restored.map_err(|text| state.damaged(text))?;
    }
    Ok(())
}

/// The state of the running search.
struct Search<'r> {
    scheduler: Scheduler<Host>,
    find: &'r Find,
    shared: Shared<'r>,
}

impl Search<'_> {
    fn run(&mut self) {
        loop {
            if let Err(error) = self.take_back() {
                return self.shared.run.state_failed(&error);
            }
            if self.shared.files.is_some() {
                // All hosts share the number of files that are downloaded at a time.
                self.scheduler.wake_all();
            }
            self.scheduler.submit_all(&mut self.shared);
            // A search that was stopped while it handled a reply does not save that reply, and handles it again.
            if self.shared.run.ending() == Ending::Stopped {
                return;
            }
            self.keep();
            self.note_standing();
            if self.is_done() {
                return;
            }
            self.update();
            // What was received is kept; further files would meet the same end.
            if self
                .shared
                .files
                .as_ref()
                .is_some_and(|files| files.store.is_full())
            {
                self.shared.run.events.summary.ending = Ending::Stopped;
                return;
            }
            if let Err(error) = self.wait() {
                let cause = Cause::Transfer(Box::new(error));
                abandon(self.scheduler.hosts(), &cause, &mut self.shared);
                return self.shared.run.client_failed();
            }
        }
    }

    /// Reports what is left, if the search was stopped.
    fn tell_not_reached(&mut self) {
        if self.shared.run.ending() == Ending::Stopped {
            let hosts = self.scheduler.hosts();
            self.shared.run.tell_not_reached(|tell| {
                for host in hosts.works() {
                    host.crawl.tell_unasked(tell);
                }
            });
        }
    }

    fn update(&mut self) {
        let hosts = self.scheduler.hosts();
        if let Some(files) = &mut self.shared.files {
            files.hosts = hosts.works().filter(|host| host.crawl.has_files()).count();
        }
        update(hosts, &mut self.shared);
    }

    /// After `-quit`, the downloads that were found before still complete.
    fn is_done(&mut self) -> bool {
        let ending = self.shared.run.ending();
        let mut hosts = self.scheduler.hosts().works();
        ending == Ending::Stopped || hosts.all(|host| !host.is_open(ending))
    }

    /// Takes back spilled tasks, for the host crawls that have room for them.
    fn take_back(&mut self) -> Result<(), StateError> {
        if self.shared.run.is_over() {
            return Ok(());
        }
        let ids: Vec<HostId> = self.scheduler.hosts().ids().collect();
        for id in ids {
            let wanted = self.scheduler.hosts().work(id).crawl.wants_back();
            if wanted == 0 {
                continue;
            }
            let (host, calls) = self.scheduler.work_and_calls(id);
            let number = host.number;
            let Some(state) = &mut self.shared.run.events.state else {
                return Ok(());
            };
            let back = state.take_back(number, wanted)?;
            let visitor = &mut self.shared.run.visitor(Some(calls));
            let turn = &mut Turn::new(Instant::now(), visitor);
            let added = host.crawl.add_back(turn, back);
            if let (Err(text), Some(state)) = (added, self.shared.run.state()) {
                return Err(state.damaged(text));
            }
            self.hand_over_files();
        }
        Ok(())
    }

    /// Stages the changes of the host crawls, to be committed with the results of this iteration.
    fn keep(&mut self) {
        let tally = self.shared.run.events.tally();
        let Some(state) = self.shared.run.state() else {
            return;
        };
        for (_, host) in self.scheduler.hosts().works_mut() {
            state.stage(host.number, &mut host.crawl);
        }
        state.stage_tally(&tally);
    }

    /// Notes for the statistics what is left to do at each host.
    fn note_standing(&mut self) {
        let now = Instant::now();
        let hosts = self.scheduler.hosts();
        let ids: Vec<HostId> = hosts.ids().collect();
        for id in ids {
            let standing = hosts.work(id).crawl.standing(now);
            let stats = hosts.stats(id);
            self.shared.run.stats().handle_standing(stats, standing);
        }
    }

    /// Waits until an answer arrives, a host may send, or progress is to be shown. Then handles the answers that are
    /// there, at most one per connection, so that a fast server cannot delay the output.
    fn wait(&mut self) -> io::Result<()> {
        if self.scheduler.handle_queued(&mut self.shared).is_some() {
            self.hand_over();
            return Ok(());
        }
        let now = Instant::now();
        let due = self.scheduler.poll_timeout(now);
        let until_due = due.map(|due| due.saturating_duration_since(now));
        let mut timeout = until_due.map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT));
        if self.scheduler.has_more() || self.wants_back() {
            timeout = Duration::ZERO;
        }
        if self.scheduler.is_idle() {
            thread::sleep(timeout);
            self.shared.run.stats().handle_held(timeout);
            return Ok(());
        }
        for _ in 0..self.scheduler.in_flight() {
            let Some(host) = self.scheduler.handle_next(timeout, &mut self.shared)? else {
                break;
            };
            self.hand_over();
            self.scheduler.submit(host, &mut self.shared);
            timeout = Duration::ZERO;
        }
        self.scheduler.read_bodies(&mut self.shared);
        Ok(())
    }

    /// Whether a host crawl has room for spilled tasks.
    fn wants_back(&mut self) -> bool {
        let is_kept = self.shared.run.state().is_some() && !self.shared.run.is_over();
        let mut hosts = self.scheduler.hosts().works();
        is_kept && hosts.any(|host| host.crawl.wants_back() > 0)
    }

    /// Passes findings of one host to other hosts.
    fn hand_over(&mut self) {
        self.hand_over_links();
        self.hand_over_files();
    }

    /// Passes links to the crawls of their hosts.
    fn hand_over_links(&mut self) {
        for link in std::mem::take(&mut self.shared.run.links) {
            let root = root_of(&link.url);
            let hosts = self.scheduler.hosts();
            let is_new = hosts.at(&root).is_none();
            if is_new && hosts.len() >= MOST_HOSTS {
                let cause = Cause::TooManyHosts(MOST_HOSTS);
                let url = link.url.as_str();
                let visitor = &mut self.shared.run.visitor(None);
                // Always the same host, because a host crawl remembers what it reported.
                if let Some((_, host)) = hosts.works_mut().next() {
                    let turn = &mut Turn::new(Instant::now(), visitor);
                    host.crawl.leave_out_once(turn, url, &cause);
                }
                continue;
            }
            self.add_link(&link);
        }
    }

    /// Passes a link to the crawl of its host, which is added if it is new.
    fn add_link(&mut self, link: &Link) {
        let hosts = self.scheduler.hosts();
        let is_new = hosts.at(&root_of(&link.url)).is_none();
        let id = host_of(hosts, &link.url, self.find, &mut self.shared);
        let (host, calls) = self.scheduler.work_and_calls(id);
        if is_new && self.shared.run.events.state.is_some() {
            host.crawl.keep_journal();
            host.crawl.expect_later_run();
        }
        if link.kind != LinkKind::Start {
            host.crawl.add_root(self.find.scope.root(&link.url));
        }
        if is_new {
            check_scheme(host, &mut self.shared);
        }
        let visitor = &mut self.shared.run.visitor(Some(calls));
        host.crawl
            .add_link(&mut Turn::new(Instant::now(), visitor), link);
    }

    /// Passes files to the downloads of their hosts, which may differ from the hosts that listed them.
    fn hand_over_files(&mut self) {
        for wanted in std::mem::take(&mut self.shared.run.wanted) {
            let root = Url::parse(&wanted.url).map(|url| root_of(&url));
            let hosts = self.scheduler.hosts();
            // The host exists, because its crawl found the file.
            if let Some(id) = root.ok().and_then(|root| hosts.at(&root)) {
                let is_new = hosts.work(id).crawl.add_file(wanted);
                self.shared.run.events.summary.downloads.wanted += u64::from(is_new);
            }
        }
    }
}

/// Updates the counts, shows progress and commits.
fn update(hosts: &Hosts<Host>, shared: &mut Shared<'_>) {
    let of_each = hosts.works().map(|host| host.crawl.counts());
    let counts = of_each.fold(Counts::default(), |sum, counts| sum + counts);
    let under_way = shared.files.as_ref().map_or(0, |files| files.under_way);
    shared.run.update(counts, under_way as u64);
}

fn abandon(hosts: &mut Hosts<Host>, cause: &Cause, shared: &mut Shared<'_>) {
    let now = Instant::now();
    for (_, host) in hosts.works_mut() {
        host.abandon(now, cause, shared);
    }
}

/// The largest number of hosts. Each is remembered until the end.
const MOST_HOSTS: usize = 10_000;

/// The longest time between two updates of progress, and until a stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
