//! A running check: joins the sources, the store, the work at the hosts and the reporter.
//!
//! Threads read the sources ([`sources`](super::sources)). This one asks: it takes the URLs of each host from the
//! [`keeper`], gives them to the work at the host, and returns what was answered. What the keeper says is judged is
//! reported.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::net::os::OsNet;
use jiff::Timestamp;
use url::Url;

use super::checker::Checker;
use super::event::Event;
use super::host::{Host, Policy, Shared};
use super::sources;
use super::summary::Summary;
use super::task::{self, Hop, Task};
use crawl::feeder::{Feeder, Parts};
use crawl::fleet::{Fleet, Take};
use crawl::hosts::HostId as WorkId;
use crawl::reporter::Reporter;
use crawl::scheduler::Scheduler;
use crawl::stats::{Standing, Stats};
use plain::origin::root_of;
use store::sqlite::Sqlite;
use store::{Completed, EntryId, HostId, Queued, StoreError};
use verdict::guard::{self, Guard};
use verdict::life::{Held, Rules};

mod guards;
mod judge;
mod keeper;
mod known;
mod lives;
mod output;
mod pages;

use guards::{Asked, Guards, Rulings};
use judge::{Judge, met};
use keeper::{Command, Keeper, Memory, Reply, Stored};
use known::Known;
use lives::Lives;
use output::Output;
use pages::Pages;

/// Runs a check.
pub(super) fn run(plan: Checker, reporter: &mut dyn Reporter<Checker>) -> Summary {
    let mut output = Output::new(reporter);
    let client = match plan.settings.transfer.client(&[]) {
        Ok(client) => client,
        Err(error) => {
            output.failed(&Event::NetworkFailed(&error));
            return output.finish(Stats::default());
        }
    };
    let keeper = match keeper(&plan) {
        Ok(keeper) => keeper,
        Err(error) => {
            output.failed(&Event::StateFailed(&error));
            return output.finish(Stats::default());
        }
    };
    let is_kept = plan.keeping.state.is_some();
    let scheduler = Scheduler::new(client, &plan.settings.transfer);
    let mut run = Run {
        scheduler,
        shared: Shared::new(Stats::default()),
        keeper,
        fleet: Fleet::default(),
        known: Known::default(),
        tasks: HashMap::new(),
        completed: Vec::new(),
        guards: Guards::new(is_kept),
        outage: Outage::No,
        lives: is_kept.then(|| {
            let seed = plan.policy.host.seed.unwrap_or_default();
            Lives::new(rules(&plan), seed, plan.keeping.max_age)
        }),
        pages: Pages::new(plan.reach, &plan.inputs, &plan.sources),
        policy: Arc::new(plan.policy),
        output,
        is_done: false,
    };
    run.run();
    drop(run.keeper);
    run.output.finish(run.shared.stats)
}

/// Starts to read the sources, and opens the state if there is one.
fn keeper(plan: &Checker) -> Result<Box<dyn Keeper>, StoreError> {
    let start = || sources::start(plan.inputs.clone(), plan.sources.clone());
    let judge = |rules| Judge {
        tolerance: plan.tolerance.clone(),
        rules,
    };
    let Some(path) = &plan.keeping.state else {
        let mut batches = start();
        let read = Box::new(move |wait| batches.next(wait));
        return Ok(Box::new(Memory::new(read, judge(None))));
    };
    let store = Sqlite::open(path)?;
    let judge = judge(Some(rules(plan)));
    Ok(Box::new(Stored::start(
        store,
        start(),
        identity(plan),
        judge,
    )))
}

/// The rules of lives.
fn rules(plan: &Checker) -> Rules {
    let fail_after = plan.tolerance.fail_after;
    Rules {
        fail_after: Some(fail_after).filter(|time| !time.is_zero()),
        ..Rules::at_once()
    }
}

/// What is checked: an interrupted check is continued only by one of the same.
fn identity(plan: &Checker) -> String {
    let sources = &plan.sources;
    format!(
        "{:?} depth {} fragments {} base {:?} root {:?} field {:?} {:?}",
        plan.inputs,
        plan.reach.depth,
        sources.fragments,
        sources.base_url.as_ref().map(Url::as_str),
        sources.root_dir,
        sources.field,
        sources.selection,
    )
}

/// The state of a running check.
struct Run<'r> {
    scheduler: Scheduler<Host>,
    shared: Shared,
    keeper: Box<dyn Keeper>,
    fleet: Fleet<HostId, EntryId, Queued>,
    known: Known,
    /// The URLs that works have.
    tasks: HashMap<task::UrlId, Queued>,
    /// What the keeper gets next.
    completed: Vec<Completed>,
    guards: Guards,
    outage: Outage,
    /// `None`: no state is kept.
    lives: Option<Lives>,
    pages: Pages,
    policy: Arc<Policy>,
    output: Output<'r>,
    /// Whether everything is reported, and the keeper knows.
    is_done: bool,
}

/// Whether the own network fails.
#[derive(Clone, Copy, Debug)]
enum Outage {
    No,
    /// Since then. `is_cleared`: the works of all hosts were removed, with what they have learned meanwhile.
    Since {
        began: Instant,
        is_cleared: bool,
    },
    /// For longer than the patience: what is left is void.
    GivenUp,
}

impl Run<'_> {
    fn run(&mut self) {
        loop {
            let has_more = self.keeper.read_some();
            while let Some(reply) = self.keeper.next() {
                self.handle(reply);
            }
            self.ask();
            let now = Instant::now();
            if self.output.is_progress_due(now) {
                self.note_standing(now);
            }
            self.output.update(now, &mut self.shared.stats);
            if self.is_done || self.output.is_over() {
                return;
            }
            if let Err(error) = self.wait(self.longest_wait(has_more)) {
                return self.output.failed(&Event::NetworkFailed(&error));
            }
        }
    }

    /// Sends what may be sent, and passes on the outcomes that come without an answer.
    fn ask(&mut self) {
        match self.outage {
            Outage::Since { began, is_cleared } => self.sit_out(began, is_cleared),
            Outage::No | Outage::GivenUp => self.submit_all(),
        }
        self.collect();
        let mut rulings = Rulings::default();
        self.guards.handle_time(Timestamp::now(), &mut rulings);
        if self.tasks.is_empty() && self.fleet.is_idle() {
            self.guards.handle_idle(&mut rulings);
        }
        self.rule(rulings);
        if !self.completed.is_empty() {
            let completed = std::mem::take(&mut self.completed);
            completed.iter().for_each(|it| self.known.end(it.host));
            self.keeper.send(Command::Complete(completed));
            // Before the user's wish to stop is noticed.
            for checked in self.keeper.take_judged() {
                self.output.checked(&checked);
            }
        }
    }

    /// Notes for the statistics what is left to do at each host.
    fn note_standing(&mut self, now: Instant) {
        for host in self.fleet.active() {
            self.note_host(now, host);
        }
    }

    fn note_host(&mut self, now: Instant, host: HostId) {
        let Some(work) = self.fleet.work(host) else {
            return;
        };
        let hosts = self.scheduler.hosts();
        let (stats, work) = (hosts.stats(work), hosts.work(work));
        let standing = Standing {
            waiting: work.waiting(now),
            left: self.known.left(host),
            is_given_up: work.is_given_up(),
        };
        self.shared.stats.handle_standing(stats, standing);
    }

    /// The longest wait for answers. `has_more`: whether the sources may have more at once.
    fn longest_wait(&self, has_more: bool) -> Duration {
        match self.fleet.is_taking() && !self.scheduler.is_idle() {
            _ if has_more => Duration::ZERO,
            true => LONGEST_READ,
            false => LONGEST_WAIT,
        }
    }

    fn handle(&mut self, reply: Reply) {
        match reply {
            Reply::Began { is_resumed } => self.output.summary.resumed = is_resumed,
            Reply::Hosts(hosts) => {
                for host in hosts {
                    if host.facts.answered_at.is_some() && self.known.note_answer(host.id) {
                        self.guards.note_answering();
                    }
                    self.known.add_facts(host.id, host.facts);
                    self.fleet.handle_queued(host.id);
                }
                self.activate();
            }
            Reply::Queued(queued) => {
                for (host, count) in queued {
                    self.output.summary.known += u64::from(count);
                    self.known.add_found(host, count);
                    self.fleet.handle_queued(host);
                    self.take(host);
                }
                self.activate();
            }
            Reply::Taken {
                host,
                limit,
                queued,
            } => {
                self.fleet.handle_taken(host, limit, queued, |it| it.entry);
                self.fill(host);
            }
            Reply::Source(batch) => self.output.source(&batch),
            Reply::Judged(judged) => {
                for checked in &judged {
                    self.output.checked(checked);
                }
            }
            Reply::AllRead => self.output.summary.is_read_in_part = false,
            Reply::Done if self.output.is_over() => {}
            Reply::Done => self.keeper.send(Command::End),
            Reply::Ended => self.is_done = true,
            Reply::Failed(error) => self.output.failed(&Event::StateFailed(&error)),
        }
    }
}

impl<'s> Feeder<'s> for Run<'_> {
    type Work = Host;
    type Net = OsNet;
    type Queue = HostId;

    fn parts(&mut self) -> Parts<'_, 's, Host, OsNet> {
        (&mut self.scheduler, &mut self.shared)
    }

    fn work(&mut self, root: &Url, proxy: Option<String>) -> Host {
        Host::new(root.clone(), proxy, Arc::clone(&self.policy))
    }

    fn needs(&self, host: WorkId) -> bool {
        self.fleet.uses(host)
    }

    fn give(&mut self, host: HostId) -> bool {
        let known = self.fleet.work(host);
        if known.is_some_and(|work| self.scheduler.hosts().work(work).room() == 0) {
            return false;
        }
        let Some(next) = self.fleet.peek(host) else {
            return false;
        };
        let is_void = matches!(self.outage, Outage::GivenUp);
        let lives = self.lives.as_ref();
        let is_fresh = lives.is_some_and(|lives| lives.is_fresh(Timestamp::now(), next));
        if is_void || is_fresh {
            if let Some(queued) = self.fleet.begin(host) {
                self.fleet.end(host);
                let completed = match is_fresh {
                    true => reuse(queued),
                    false => {
                        let asked = self.guards.give_up(queued);
                        self.completed(asked, None)
                    }
                };
                self.completed.push(completed);
            }
            return true;
        }
        let work = match known {
            Some(work) => work,
            None => {
                let root = root_of(&next.url);
                self.work_of_host(host, root)
            }
        };
        if self.scheduler.hosts().work(work).room() == 0 {
            return false;
        }
        self.begin(host, work);
        true
    }

    fn handle_filled(&mut self, host: HostId) {
        self.take(host);
        let work = self.fleet.work(host);
        if self.fleet.rest(host) {
            self.handle_rest(host, work);
        }
    }

    fn collect(&mut self) {
        for hop in self.shared.take_hops() {
            self.hand_over(hop);
        }
        for (url, page) in self.shared.take_sites() {
            self.pages.add_site(url, page);
        }
        let now = Timestamp::now();
        let (outcomes, signs) = (self.shared.take_outcomes(now), self.shared.take_signs());
        if outcomes.is_empty() && signs.is_empty() {
            return;
        }
        let mut rulings = Rulings::default();
        for sign in signs {
            self.guards.handle_sign(now, sign, &mut rulings);
        }
        let mut hosts = Vec::new();
        for outcome in outcomes {
            let Some(queued) = self.tasks.remove(&outcome.id) else {
                continue;
            };
            let host = queued.host;
            self.fleet.end(host);
            if hosts.last() != Some(&host) {
                hosts.push(host);
            }
            let has_answered = self.known.has_answered(host);
            if guard::Reach::of(outcome.answer.verdict) == Some(guard::Reach::Answered)
                && self.known.note_answer(host)
            {
                self.guards.note_answering();
            }
            let asked = Asked { queued, outcome };
            self.guards.handle(now, asked, has_answered, &mut rulings);
        }
        self.rule(rulings);
        let now = Instant::now();
        for host in hosts {
            self.note_host(now, host);
            self.fill(host);
        }
        self.activate();
    }

    fn is_asking(&self) -> bool {
        !matches!(self.outage, Outage::Since { .. })
    }

    /// While calls end before an outage is sat out, no host may be asked.
    fn is_sending(&self) -> bool {
        !matches!(
            self.outage,
            Outage::Since {
                is_cleared: false,
                ..
            }
        )
    }

    fn rest(&mut self, time: Duration) {
        if let Some(reply) = self.keeper.wait(time) {
            self.handle(reply);
        }
    }
}

/// From the store to the works.
impl Run<'_> {
    /// Begins to work on further hosts.
    fn activate(&mut self) {
        while let Some(take) = self.fleet.activate() {
            self.send(take);
        }
    }

    fn take(&mut self, host: HostId) {
        if let Some(take) = self.fleet.take(host) {
            self.send(take);
        }
    }

    fn send(&mut self, take: Take<HostId, EntryId>) {
        self.keeper.send(Command::Take {
            host: take.queue,
            after: take.after.unwrap_or(EntryId::START),
            limit: take.limit,
        });
    }

    /// The work for a host that has none yet.
    fn work_of_host(&mut self, host: HostId, root: Url) -> WorkId {
        let work = self.host_of(root);
        self.fleet.set_work(host, work);
        let facts = self.known.facts(host);
        if let Some(fault) = facts.and_then(|facts| facts.head_fault(Timestamp::now())) {
            self.scheduler.hosts().work(work).believe(fault);
        }
        work
    }

    fn begin(&mut self, host: HostId, work: WorkId) {
        let Some(queued) = self.fleet.begin(host) else {
            return;
        };
        let task = task(&queued);
        self.tasks.insert(task.id, queued);
        let (work, _) = self.scheduler.work_and_calls(work);
        work.add_task(task, &mut self.shared);
    }
}

/// From the works to the store.
impl Run<'_> {
    /// Passes a redirect to the work at the host where it leads.
    fn hand_over(&mut self, hop: Hop) {
        let work = self.host_of(root_of(hop.url()));
        let (work, _) = self.scheduler.work_and_calls(work);
        work.add_hop(hop, &mut self.shared);
    }

    /// A host has no URL left: what was held back about it is believed, and what was learned is kept. `work`: the work that
    /// it used.
    fn handle_rest(&mut self, host: HostId, work: Option<WorkId>) {
        let mut rulings = Rulings::default();
        self.guards.handle_rest(host, &mut rulings);
        self.rule(rulings);
        if self.lives.is_none() {
            return;
        }
        if let Some(fault) = work.and_then(|work| self.scheduler.hosts().work(work).head_fault()) {
            let facts = self.known.facts_mut(host);
            facts.note_head_fault(Timestamp::now(), fault);
        }
        if let Some(facts) = self.known.facts(host) {
            let facts = vec![(host, facts.clone())];
            self.keeper.send(Command::SaveHosts(facts));
        }
    }

    /// Does what the guards have ruled.
    fn rule(&mut self, rulings: Rulings) {
        for change in &rulings.changes {
            self.output.guard(change);
            if change.guard == Guard::OwnNetwork && change.is_on {
                self.outage = Outage::Since {
                    began: Instant::now(),
                    is_cleared: false,
                };
            }
        }
        for queued in rulings.again {
            self.fleet.put_back(queued.host, queued);
        }
        for (asked, held) in rulings.believed {
            let completed = self.completed(asked, held);
            self.completed.push(completed);
        }
    }

    /// What is to be stored about a URL that was asked.
    fn completed(&mut self, asked: Asked, held: Option<Held>) -> Completed {
        let Asked {
            queued,
            mut outcome,
        } = asked;
        let page = outcome.page.take();
        let found = page.as_deref();
        let found = found.map(|page| self.pages.links(&queued, &outcome, page));
        let of_site = self.pages.links_of_site(&queued, &outcome);
        let mut links = Vec::new();
        for found in [Some(of_site), found].into_iter().flatten() {
            self.output.source(&found);
            links.extend(found.links);
        }
        let answer = outcome.answer;
        let decided = self.lives.as_mut().map(|lives| {
            let facts = self.known.facts_mut(queued.host);
            lives.decide(Timestamp::now(), &queued, &answer, held, facts)
        });
        let (life, changes) = decided.unzip();
        Completed {
            demand: met(queued.demand, answer.verdict),
            entry: queued.entry,
            host: queued.host,
            id: queued.id,
            judged: Some((answer, life)),
            changes: changes.unwrap_or_default(),
            links,
        }
    }
}

/// While the own network fails.
impl Run<'_> {
    /// Asks nothing but rounds, until the network works again or the patience ends.
    fn sit_out(&mut self, began: Instant, is_cleared: bool) {
        let now = Timestamp::now();
        if !is_cleared {
            // Calls that are in flight end first.
            if self.scheduler.is_idle() {
                self.clear();
                self.outage = Outage::Since {
                    began,
                    is_cleared: true,
                };
            }
            return;
        }
        let mut rulings = Rulings::default();
        let is_over = self.guards.end_round(now, &mut rulings);
        self.rule(rulings);
        if is_over {
            self.clear();
            self.go_on(Outage::No);
        } else if began.elapsed() >= self.policy.host.retry.patience {
            self.clear();
            self.go_on(Outage::GivenUp);
        } else if self.guards.until_round(now) == Some(Duration::ZERO) {
            self.begin_round();
        }
        self.submit_all();
    }

    /// Removes all works with their tasks, which are to be asked again.
    fn clear(&mut self) {
        let ids: Vec<WorkId> = self.scheduler.hosts().ids().collect();
        for id in ids {
            self.scheduler.remove(id);
        }
        self.fleet.forget_works();
        for (_, queued) in self.tasks.drain() {
            self.fleet.end(queued.host);
            self.fleet.put_back(queued.host, queued);
        }
    }

    fn go_on(&mut self, outage: Outage) {
        self.outage = outage;
        for host in self.fleet.active() {
            self.fill(host);
        }
        self.activate();
    }

    /// Asks one URL of some of the hosts that failed.
    fn begin_round(&mut self) {
        // A host without a work can be asked: the works of the last round go.
        if self.scheduler.is_idle() {
            self.clear();
        }
        let mut hosts = self.guards.hosts_to_ask();
        hosts.extend(self.fleet.active());
        let mut urls = Vec::new();
        for host in hosts {
            let next = self.fleet.peek(host);
            let Some(next) = next.filter(|_| self.fleet.work(host).is_none()) else {
                continue;
            };
            urls.push(next.id.0);
            let root = root_of(&next.url);
            let work = self.work_of_host(host, root);
            self.begin(host, work);
            if urls.len() >= ASKED_IN_ROUND {
                break;
            }
        }
        self.guards.begin_round(urls);
    }
}

/// The last answer is good enough.
fn reuse(queued: Queued) -> Completed {
    Completed {
        entry: queued.entry,
        host: queued.host,
        id: queued.id,
        demand: queued.demand,
        judged: None,
        changes: Vec::new(),
        links: Vec::new(),
    }
}

/// The task for a URL.
fn task(queued: &Queued) -> Task {
    let demand = queued.demand;
    Task {
        id: task::UrlId(queued.id.0.unsigned_abs()),
        url: queued.url.clone(),
        given: demand.given,
        reach: match demand.private {
            true => task::Reach::Any,
            false => task::Reach::Public,
        },
        wants_links: demand.links,
    }
}

/// URLs that are asked in a round.
const ASKED_IN_ROUND: usize = 5;

/// The longest time between two updates of progress, and until a stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait for answers while URLs are being read from the store.
const LONGEST_READ: Duration = Duration::from_millis(1);
