//! From due rows to the work at their hosts, and from there to outcomes.

use std::collections::HashMap;
use std::io;

use std::time::{Duration, Instant};

use courser::Client;
use courser::net::{Net, Waker};
use jiff::Timestamp;
use url::{Position, Url};

use super::policies::Policies;
use super::queue::{Kind, QueueId, Queues};
use super::settings::Settings;
use check::host::{Host, Observe, Shared};
use check::task::{Hop, Outcome, Task, UrlId as TaskId};
use crawl::fleet::Take;
use crawl::hosts::HostId as WorkId;
use crawl::scheduler::Scheduler;
use crawl::stats::{Stats, Waiting};
use crawl::work::HostWork as _;
use plain::origin::root_of;
use store::{DueId, DueUrl, HostId, Lane, UrlId};
use verdict::HeadFault;
use verdict::guard::LocalSign;

/// What is being asked.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are URLs; a box would be an allocation for each"
)]
#[derive(Debug)]
pub(super) enum Asked {
    /// A URL that is due.
    Url(DueUrl),
    /// The root of a host, to see whether the host works.
    Control(HostId),
    /// A URL that always answers.
    Canary,
}

/// Asks URLs.
pub(super) struct Asking<N: Net> {
    scheduler: Scheduler<Host, N>,
    shared: Shared,
    fleet: Queues,
    tasks: HashMap<TaskId, Asked>,
    /// URLs that are asked or were asked, and whose judgement is not stored yet: the store still calls them due.
    busy: Busy,
    policies: Policies,
    /// When each work was made, and by which settings.
    made: HashMap<WorkId, (Instant, u64)>,
    /// The share of the connections that is used, and how many workers share them.
    share: f64,
    workers: usize,
    /// The number of works at which those without anything to do are removed.
    most_works: usize,
}

/// URLs that are asked or were asked, by whether they are in doubt.
#[derive(Debug, Default)]
struct Busy {
    urls: HashMap<UrlId, bool>,
    in_doubt: usize,
}

impl Busy {
    fn insert(&mut self, id: DueId) {
        let is_doubtful = id.lane == Lane::Doubt;
        self.remove(id.url);
        self.urls.insert(id.url, is_doubtful);
        self.in_doubt += usize::from(is_doubtful);
    }

    fn remove(&mut self, url: UrlId) {
        let is_doubtful = self.urls.remove(&url).unwrap_or(false);
        self.in_doubt -= usize::from(is_doubtful);
    }

    fn contains(&self, url: UrlId) -> bool {
        self.urls.contains_key(&url)
    }
}

/// What became of the next URL of a queue.
#[derive(Debug)]
pub(super) enum Given {
    /// Nothing can be given now.
    Nothing,
    /// The work has it, or it was passed over.
    Yes,
    /// It is no URL.
    Invalid(Box<DueUrl>),
}

impl<N: Net> Asking<N> {
    pub(super) fn new(client: Client<N>, settings: &Settings, seed: u64) -> Self {
        let transfer = settings.transfer();
        let policies = Policies::new(settings, seed);
        let scheduler = Scheduler::new(client, &transfer);
        Self {
            shared: Shared::new(Stats::default()),
            scheduler,
            fleet: Queues::default(),
            tasks: HashMap::new(),
            busy: Busy::default(),
            policies,
            made: HashMap::new(),
            share: 1.0,
            workers: 1,
            most_works: MOST_WORKS,
        }
    }

    /// Uses the rules of hosts in these settings from now on.
    pub(super) fn set_settings(&mut self, settings: &Settings) {
        self.policies.set(settings);
        self.scheduler.hosts().set_transfer(&settings.transfer());
    }

    pub(super) fn now(&self) -> Instant {
        self.scheduler.now()
    }

    pub(super) fn waker(&mut self) -> io::Result<Waker> {
        self.scheduler.waker()
    }

    pub(super) fn fleet(&mut self) -> &mut Queues {
        &mut self.fleet
    }

    /// Tells this observer of each request.
    pub(super) fn set_observer(&mut self, observer: Box<dyn Observe>) {
        self.shared.set_observer(observer);
    }

    /// Calls that are in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.scheduler.in_flight()
    }

    /// URLs, controls and canaries that works have.
    pub(super) fn under_way(&self) -> usize {
        self.tasks.len()
    }

    /// Whether a work has the URL.
    pub(super) fn is_asked(&self, url: UrlId) -> bool {
        self.tasks.contains_key(&TaskId(url.0.unsigned_abs()))
    }

    /// Whether the URL is asked, or its judgement is not stored yet.
    pub(super) fn is_busy(&self, url: UrlId) -> bool {
        self.busy.contains(url)
    }

    /// Whether any URL in doubt is asked, or its judgement is not stored yet.
    pub(super) fn has_doubtful(&self) -> bool {
        self.busy.in_doubt > 0
    }

    /// The judgement of the URL is stored, or there will be none.
    pub(super) fn release(&mut self, url: UrlId) {
        self.busy.remove(url);
    }

    /// A URL that was asked is to be asked again.
    pub(super) fn put_back(&mut self, due: DueUrl) {
        self.busy.remove(due.id.url);
        self.fleet.put_back(QueueId::of(&due), due);
    }
}

/// From the queues to the works.
impl<N: Net> Asking<N> {
    /// The next read of a queue that can be worked on.
    pub(super) fn activate(&mut self) -> Option<Take<QueueId, DueId>> {
        self.fleet.activate()
    }

    /// Gives the next URL of a queue to its work. `is_wanted`: whether the URL may be asked; else it is passed over.
    /// `fault`: what was learned earlier about HEAD at the host.
    pub(super) fn give(
        &mut self,
        queue: QueueId,
        is_wanted: impl FnOnce(&DueUrl) -> bool,
        fault: Option<HeadFault>,
    ) -> Given {
        let known = self.fleet.work(queue);
        if known.is_some_and(|work| self.room(work) == 0) {
            return Given::Nothing;
        }
        let Some(next) = self.fleet.peek(queue) else {
            return Given::Nothing;
        };
        if self.busy.contains(next.id.url) || !is_wanted(next) {
            self.fleet.begin(queue);
            self.fleet.end(queue);
            return Given::Yes;
        }
        let Ok(url) = Url::parse(&next.url) else {
            let due = self.withhold(queue);
            return due.map_or(Given::Nothing, |due| Given::Invalid(Box::new(due)));
        };
        let work = self.work_of_queue(queue, &url, fault);
        if self.room(work) == 0 {
            return Given::Nothing;
        }
        let Some(due) = self.fleet.begin(queue) else {
            return Given::Nothing;
        };
        self.busy.insert(due.id);
        let id = TaskId(due.id.url.0.unsigned_abs());
        self.tasks.insert(id, Asked::Url(due));
        self.add(work, Task::given(id, url));
        Given::Yes
    }

    /// Takes the next URL of a queue, which is judged without being asked.
    pub(super) fn withhold(&mut self, queue: QueueId) -> Option<DueUrl> {
        let due = self.fleet.begin(queue)?;
        self.fleet.end(queue);
        self.busy.insert(due.id);
        Some(due)
    }

    /// Asks for the root of a host, whatever else the host is asked.
    pub(super) fn ask_control(&mut self, host: HostId, root: Url) {
        let id = TaskId(CONTROL | host.0.unsigned_abs());
        if self.tasks.contains_key(&id) {
            return;
        }
        self.tasks.insert(id, Asked::Control(host));
        let work = self.work_of(root.clone());
        self.add(work, Task::given(id, root));
    }

    /// Asks a canary.
    pub(super) fn ask_canary(&mut self, index: usize, url: Url) {
        let id = TaskId(CANARY | index as u64);
        self.tasks.insert(id, Asked::Canary);
        let work = self.work_of(root_of(&url));
        self.add(work, Task::given(id, url));
    }

    fn add(&mut self, work: WorkId, task: Task) {
        let (work, _) = self.scheduler.work_and_calls(work);
        work.add_task(task, &mut self.shared);
    }

    fn room(&mut self, work: WorkId) -> usize {
        self.scheduler.hosts().work(work).room()
    }

    fn work_of_queue(&mut self, queue: QueueId, url: &Url, fault: Option<HeadFault>) -> WorkId {
        if let Some(work) = self.fleet.work(queue) {
            return work;
        }
        let work = self.work_of(root_of(url));
        self.fleet.set_work(queue, work);
        if let Some(fault) = fault {
            let work = self.scheduler.hosts().work(work);
            if work.head_fault().is_none() {
                work.believe(fault);
            }
        }
        work
    }

    /// The work at the host with this root URL; created if it is new.
    fn work_of(&mut self, root: Url) -> WorkId {
        if let Some(work) = self.scheduler.hosts().at(&root) {
            return work;
        }
        if self.scheduler.hosts().len() >= self.most_works {
            self.remove_idle_works();
        }
        let proxy = self.scheduler.hosts().proxy(&root);
        let stats = self.shared.stats.add_host(&root[..Position::BeforePath]);
        let (policy, connections) = self.policies.of(&root);
        let work = Host::new(root.clone(), proxy, policy);
        let now = self.scheduler.now();
        let id = self.scheduler.add(root, stats, work);
        self.scheduler.hosts().set_connections(id, connections);
        self.made.insert(id, (now, self.policies.generation()));
        id
    }

    /// Whether a work can be removed: nothing is to be done, and the host does not want to be left alone.
    fn is_idle(&mut self, id: WorkId) -> bool {
        let now = self.scheduler.now();
        let work = self.scheduler.hosts().work(id);
        let is_done = work.is_done() && work.wants_rest_until(now).is_none();
        is_done && !self.fleet.uses(id)
    }

    /// Removes the works that have nothing to do.
    fn remove_idle_works(&mut self) {
        let ids: Vec<WorkId> = self.scheduler.hosts().ids().collect();
        for id in ids {
            if self.is_idle(id) {
                self.remove(id);
            }
        }
        // Not again before many others have come.
        self.most_works = MOST_WORKS.max(self.scheduler.hosts().len() * 2);
    }

    fn remove(&mut self, work: WorkId) {
        if self.scheduler.remove(work).is_some() {
            self.made.remove(&work);
        }
    }

    /// A queue has nothing more to ask, if that is so. Returns what its work has learned about HEAD.
    pub(super) fn rest(&mut self, queue: QueueId) -> Option<Option<HeadFault>> {
        let work = self.fleet.work(queue);
        if !self.fleet.rest(queue) {
            return None;
        }
        self.fleet.forget(queue);
        let Some(work) = work.filter(|work| !self.fleet.uses(*work)) else {
            return Some(None);
        };
        let is_idle = self.is_idle(work);
        let now = self.scheduler.now();
        let is_old = self.made.get(&work).is_none_or(|(at, generation)| {
            *generation != self.policies.generation()
                || now.saturating_duration_since(*at) > OLDEST_WORK
        });
        let host = self.scheduler.hosts().work(work);
        let fault = host.head_fault();
        // robots.txt is read again after a day (RFC 9309 §2.4).
        if is_idle && is_old {
            self.remove(work);
        }
        Some(fault)
    }
}

/// From the works to outcomes.
impl<N: Net> Asking<N> {
    /// Sends what may be sent.
    pub(super) fn submit(&mut self) {
        self.scheduler.submit_all(&mut self.shared);
    }

    /// The earliest time at which a host may be asked without a further answer.
    pub(super) fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        self.scheduler.poll_timeout(now)
    }

    /// Whether something can be handled without waiting.
    pub(super) fn has_more(&self) -> bool {
        self.scheduler.has_more()
    }

    /// Waits until an answer arrives or the waker is used, then handles the answers that are there. Returns for how long
    /// nothing was to be done.
    pub(super) fn wait(&mut self, mut timeout: Duration, goes_on: bool) -> io::Result<Duration> {
        if self.scheduler.has_more() {
            timeout = Duration::ZERO;
        }
        let began = (!timeout.is_zero()).then(|| self.scheduler.now());
        let mut idle = Duration::ZERO;
        for _ in 0..self.scheduler.in_flight().max(1) {
            let handled = self
                .scheduler
                .handle_next_or_wake(timeout, &mut self.shared)?;
            if let Some(began) = began.filter(|_| !timeout.is_zero()) {
                idle = self.scheduler.now().saturating_duration_since(began);
            }
            let Some(host) = handled else {
                break;
            };
            if goes_on {
                self.scheduler.submit(host, &mut self.shared);
            }
            timeout = Duration::ZERO;
        }
        self.scheduler.read_bodies(&mut self.shared);
        Ok(idle)
    }

    /// What was answered since the last call, and signs that this machine is at fault.
    pub(super) fn collect(&mut self, now: Timestamp) -> (Vec<(Asked, Outcome)>, Vec<LocalSign>) {
        for hop in self.shared.take_hops() {
            self.hand_over(hop);
        }
        let outcomes = self.shared.take_outcomes(now).into_iter();
        let mut asked = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let Some(task) = self.tasks.remove(&outcome.id) else {
                continue;
            };
            if let Asked::Url(due) = &task {
                self.fleet.end(QueueId::of(due));
            }
            asked.push((task, outcome));
        }
        (asked, self.shared.take_signs())
    }

    /// Passes a redirect to the work at the host where it leads.
    fn hand_over(&mut self, hop: Hop) {
        let work = self.work_of(root_of(hop.url()));
        let (work, _) = self.scheduler.work_and_calls(work);
        work.add_hop(hop, &mut self.shared);
    }

    /// Removes all works with their tasks, unless calls are in flight. URLs are to be asked again; what else was asked is
    /// returned. Hosts that asked for a rest have it.
    pub(super) fn clear(&mut self) -> Option<Vec<Asked>> {
        if self.scheduler.in_flight() > 0 {
            return None;
        }
        let ids: Vec<WorkId> = self.scheduler.hosts().ids().collect();
        let now = self.scheduler.now();
        let mut resting = Vec::new();
        for id in ids {
            let work = self.scheduler.hosts().work(id);
            if let Some(until) = work.wants_rest_until(now) {
                resting.push((work.root().clone(), until));
            }
            self.remove(id);
        }
        self.fleet.forget_works();
        for (root, until) in resting {
            let work = self.work_of(root);
            self.scheduler.hosts().work(work).rest_until(until);
        }
        let mut others = Vec::new();
        let mut tasks: Vec<_> = std::mem::take(&mut self.tasks).into_iter().collect();
        tasks.sort_unstable_by_key(|(id, _)| *id);
        for (_, asked) in tasks {
            match asked {
                Asked::Url(due) => {
                    self.fleet.end(QueueId::of(&due));
                    self.put_back(due);
                }
                other => others.push(other),
            }
        }
        Some(others)
    }

    /// Takes back what was not asked yet, of hosts for which `is_wanted` holds: it stays due. What is asked goes on.
    pub(super) fn recall(&mut self, is_wanted: impl Fn(HostId) -> bool) {
        for queue in self.fleet.active() {
            if is_wanted(queue.host) {
                self.fleet.abandon(queue);
            }
        }
        let ids: Vec<WorkId> = self.scheduler.hosts().ids().collect();
        for id in ids {
            self.recall_from(id, &is_wanted);
        }
    }

    /// Takes back what was read of a host and not given to its work.
    pub(super) fn abandon(&mut self, host: HostId) {
        for kind in Kind::ALL {
            self.fleet.abandon(QueueId { host, kind });
        }
    }

    fn recall_from(&mut self, id: WorkId, is_wanted: impl Fn(HostId) -> bool) {
        let tasks = &self.tasks;
        let is_recalled = |task: TaskId| match tasks.get(&task) {
            Some(Asked::Url(due)) => is_wanted(due.id.host),
            _ => false,
        };
        for task in self.scheduler.hosts().work(id).recall(is_recalled) {
            if let Some(Asked::Url(due)) = self.tasks.remove(&task) {
                self.fleet.end(QueueId::of(&due));
                self.busy.remove(due.id.url);
            }
        }
    }

    /// What holds the next request to a host back.
    pub(super) fn waiting(&mut self, root: &Url) -> Option<Waiting> {
        let work = self.scheduler.hosts().at(root)?;
        let now = self.scheduler.now();
        self.scheduler.hosts().work(work).waiting(now)
    }

    /// The earliest time of the next request to a host, by its pauses and its rate.
    pub(super) fn next_at(&mut self, root: &Url) -> Option<Instant> {
        let work = self.scheduler.hosts().at(root)?;
        let now = self.scheduler.now();
        self.scheduler.hosts().work(work).next_at(now)
    }

    /// At most this share of the connections is used.
    pub(super) fn set_share(&mut self, share: f64) {
        self.share = share;
        self.scheduler.set_share(share / self.workers as f64);
    }

    /// So many workers share the connections equally.
    pub(super) fn set_workers(&mut self, workers: usize) {
        self.workers = workers.max(1);
        self.set_share(self.share);
    }
}

/// The largest number of works in memory, of hosts that are asked and of others, before idle ones are removed.
const MOST_WORKS: usize = 4_000;

/// A work is made anew after this time.
const OLDEST_WORK: Duration = Duration::from_secs(86_400);

/// Bits of the names of tasks that are no URLs. The store's numbers are positive.
pub(super) const CONTROL: u64 = 1 << 63;
pub(super) const CANARY: u64 = 1 << 62;
