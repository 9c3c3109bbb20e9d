//! Searches all hosts concurrently: creates the hosts, lets the scheduler drive them, passes findings of one host to
//! others, and saves the progress.

use std::thread;
use std::time::{Duration, Instant};

use courser::TlsConfig;
use courser::net::os::OsNet;
use url::{Position, Url};

use super::Find;
use super::cause::Cause;
use super::download::Store;
use super::found::Unread;
use super::host::{Files, Host, Shared};
use super::host_crawl::Counts;
use super::link::{Link, LinkKind};
use super::policy::Follow;
use super::run::Run;
use super::state::StateError;
use super::summary::Ending;
use super::visitor::{Turn, Visitor as _};
use crawl::feeder::{Feeder, Parts};
use crawl::hosts::HostId;
use crawl::scheduler::Scheduler;
use crawl::transfer::Transfer;
use plain::origin::root_of;

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
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            let cause = Cause::Transfer(Box::new(error));
            let mut visitor = shared.run.visitor(None);
            for url in &find.starts {
                let (url, from) = (url.as_str(), None);
                let cause = &cause;
                visitor.unread(Unread { url, cause, from });
            }
            let counts = Counts {
                unread: find.starts.len() as u64,
                ..Counts::default()
            };
            shared.run.client_failed();
            shared.run.update(counts, 0);
            return shared.run;
        }
    };
    let mut search = Search {
        scheduler: Scheduler::new(client, transfer),
        find,
        shared,
    };
    search.add_starts();
    match search.restore() {
        Ok(()) => {
            search.run();
            search.update();
            search.tell_not_reached();
        }
        Err(error) => search.shared.run.state_failed(&error),
    }
    search.shared.run
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

/// The state of the running search.
struct Search<'r> {
    scheduler: Scheduler<Host>,
    find: &'r Find,
    shared: Shared<'r>,
}

impl<'r> Feeder<'r> for Search<'r> {
    type Work = Host;
    type Net = OsNet;
    type Queue = HostId;

    fn parts(&mut self) -> Parts<'_, 'r, Host, OsNet> {
        (&mut self.scheduler, &mut self.shared)
    }

    fn work(&mut self, root: &Url, proxy: Option<String>) -> Host {
        let find = self.find;
        let connections = find.settings.transfer.connections.get();
        let mut host = Host::new(root, proxy, connections, &find.policy);
        if find.policy.follow == Follow::Pages {
            for root in find.scope.roots(root) {
                host.crawl.add_root(root);
            }
        }
        let number = self.scheduler.hosts().len();
        host.number = i64::try_from(number).unwrap_or(i64::MAX);
        host
    }

    /// Each host knows what was found there.
    fn needs(&self, _: HostId) -> bool {
        true
    }

    /// Takes back the spilled tasks that the crawl of a host has room for.
    fn give(&mut self, id: HostId) -> bool {
        if let Err(error) = self.take_back(id) {
            self.shared.run.state_failed(&error);
        }
        false
    }

    fn handle_filled(&mut self, _: HostId) {}

    /// Passes findings of one host to other hosts.
    fn collect(&mut self) {
        self.hand_over_links();
        self.hand_over_files();
    }

    fn is_asking(&self) -> bool {
        true
    }

    fn is_sending(&self) -> bool {
        true
    }

    fn rest(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

/// The hosts.
impl Search<'_> {
    /// Creates the hosts of the starts.
    fn add_starts(&mut self) {
        for start in &self.find.starts {
            let id = self.host_of(root_of(start));
            let target = &start[Position::BeforePath..Position::AfterQuery];
            self.scheduler.hosts().work(id).crawl.add_start(target);
        }
        for (_, host) in self.scheduler.hosts().works_mut() {
            check_scheme(host, &mut self.shared);
        }
    }

    /// Restores the hosts from the state of an earlier run, if the search has a state, including hosts that links led to.
    fn restore(&mut self) -> Result<(), StateError> {
        let hosts = self.scheduler.hosts().len();
        let Some(state) = self.shared.run.state() else {
            return Ok(());
        };
        let tally = state.is_resumed().then(|| state.tally()).transpose()?;
        let further = state.further_hosts(hosts)?;
        if let Some(tally) = tally {
            self.shared.run.events.resume(tally);
        }
        for root in further {
            self.host_of(root);
        }
        for (_, host) in self.scheduler.hosts().works_mut() {
            let Some(state) = self.shared.run.state() else {
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
}

impl Search<'_> {
    fn run(&mut self) {
        loop {
            self.fill_all();
            if self.shared.files.is_some() {
                // All hosts share the number of files that are downloaded at a time.
                self.scheduler.wake_all();
            }
            self.submit_all();
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
            let longest = match self.wants_back() {
                true => Duration::ZERO,
                false => LONGEST_WAIT,
            };
            if let Err(error) = self.wait(longest) {
                self.abandon(&Cause::Transfer(Box::new(error)));
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

    /// Updates the counts, shows progress and commits.
    fn update(&mut self) {
        let hosts = self.scheduler.hosts();
        let files = &mut self.shared.files;
        let under_way = files.as_mut().map_or(0, |files| {
            files.hosts = hosts.works().filter(|host| host.crawl.has_files()).count();
            files.under_way
        });
        let of_each = hosts.works().map(|host| host.crawl.counts());
        let counts = of_each.fold(Counts::default(), |sum, counts| sum + counts);
        self.shared.run.update(counts, under_way as u64);
    }

    /// Gives up everything that is known.
    fn abandon(&mut self, cause: &Cause) {
        let now = Instant::now();
        for (_, host) in self.scheduler.hosts().works_mut() {
            host.abandon(now, cause, &mut self.shared);
        }
    }

    /// After `-quit`, the downloads that were found before still complete.
    fn is_done(&mut self) -> bool {
        let ending = self.shared.run.ending();
        let mut hosts = self.scheduler.hosts().works();
        ending == Ending::Stopped || hosts.all(|host| !host.is_open(ending))
    }

    /// Fills the crawls that have room for spilled tasks.
    fn fill_all(&mut self) {
        if self.shared.run.state().is_none() {
            return;
        }
        let ids: Vec<HostId> = self.scheduler.hosts().ids().collect();
        for id in ids {
            self.fill(id);
        }
    }

    fn take_back(&mut self, id: HostId) -> Result<(), StateError> {
        let wanted = self.scheduler.hosts().work(id).crawl.wants_back();
        if wanted == 0 || self.shared.run.is_over() {
            return Ok(());
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

    /// Whether a host crawl has room for spilled tasks.
    fn wants_back(&mut self) -> bool {
        let is_kept = self.shared.run.state().is_some() && !self.shared.run.is_over();
        let mut hosts = self.scheduler.hosts().works();
        is_kept && hosts.any(|host| host.crawl.wants_back() > 0)
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
        let id = self.host_of(root_of(&link.url));
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

/// The largest number of hosts. Each is remembered until the end.
const MOST_HOSTS: usize = 10_000;

/// The longest time between two updates of progress, and until a stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
