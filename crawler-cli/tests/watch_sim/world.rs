//! A run: the service on a simulated network with a virtual clock, its store, and what happens to both.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use courser::net::sim::{Faults, Link, Probability, SimNet};
use courser::net::{Address, Net as _};
use crawl::clock::{Clock as _, NetClock};
use jiff::{SignedDuration, Timestamp};
use store::{Lanes, NewUrl, Origin, StoreError, WatchStore as _, Which};
use tempfile::TempDir;
use watch::core::{Settings, Watcher};

use crate::draw::{DAY, HOUR, MINUTE};
use crate::oracle::{Matrix, Oracle};
use crate::plan::{Deed, Plan};
use crate::server::{HostServer, Manners, Site, address_of, name_of};
use crate::store::SimStore;

type Service = Watcher<SimNet, SimStore, NetClock<SimNet>>;

/// Everything that runs.
pub(crate) struct World {
    plan: Rc<Plan>,
    seed: u64,
    settings: Settings,
    net: SimNet,
    clock: NetClock<SimNet>,
    site: Rc<RefCell<Site>>,
    store: SimStore,
    service: Option<Service>,
    oracle: Oracle,
    /// How many deeds were done.
    done: usize,
    /// How long the killed process stays away.
    down_for: i64,
    is_full: bool,
    /// Whether neither process nor clocks had trouble since the cycles were looked at last.
    is_followed: bool,
    staleness: Staleness,
    /// Since when the service has turned without time passing, and how often.
    turns: (Instant, u32),
    _folder: Option<TempDir>,
}

/// How far the service is behind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Staleness {
    /// The largest share of URLs that were past due by more than 2.4 minutes.
    pub(crate) worst: f64,
    /// The longest time past due, in seconds.
    pub(crate) longest: i64,
}

/// What a run has shown.
pub(crate) struct Shown {
    pub(crate) matrix: Matrix,
    pub(crate) faults: Vec<String>,
    pub(crate) staleness: Staleness,
    /// The most connections at a time.
    pub(crate) peak: usize,
}

impl World {
    /// `is_on_disk`: the store is a file, so that the process can be killed.
    pub(crate) fn new(
        plan: Plan,
        seed: u64,
        settings: Settings,
        manners: Manners,
        is_on_disk: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let plan = Rc::new(plan);
        let net = SimNet::new(seed);
        net.set_tracing(false);
        let began = net.now();
        let clock = NetClock::new(net.clone(), Timestamp::from_second(BEGIN)?);
        let site = Rc::new(RefCell::new(Site::new(&plan, began, manners)));
        let folder = is_on_disk.then(temporary_folder).transpose()?;
        let path = folder.as_ref().map(|folder| folder.path().join("watch.db"));
        let world = Self {
            oracle: Oracle::new(&plan, settings.rules.clone()),
            plan,
            seed,
            settings,
            net,
            clock,
            site,
            store: SimStore::open(path.as_deref())?,
            service: None,
            done: 0,
            down_for: 0,
            is_full: false,
            is_followed: true,
            staleness: Staleness::default(),
            turns: (began, 0),
            _folder: folder,
        };
        world.listen(false);
        world.submit()?;
        Ok(world)
    }

    /// Puts the servers into the network. `is_cut`: none of them can be reached.
    fn listen(&self, is_cut: bool) {
        let black_hole = match is_cut {
            true => Probability::ALWAYS,
            false => Probability::NEVER,
        };
        for host in 0..self.plan.hosts.len() {
            let link = Link {
                faults: Faults {
                    black_hole,
                    ..Faults::default()
                },
                ..Link::default()
            };
            let at = Address::Tcp((address_of(host), 80).into());
            let server = HostServer::new(Rc::clone(&self.site), host, self.seed);
            self.net.listen(at, link, server);
        }
    }

    fn submit(&self) -> Result<(), Box<dyn Error>> {
        let now = self.clock.now();
        let of_url = |url: usize| {
            let name = name_of(self.plan.urls[url].host);
            NewUrl::parse(&format!("http://{name}/u/{url}"))
        };
        let urls: Result<Vec<NewUrl>, _> = (0..self.plan.urls.len()).map(of_url).collect();
        for urls in urls?.chunks(10_000) {
            self.store
                .with(|engine| engine.submit("run", Origin::Hand, urls, now))?;
        }
        Ok(())
    }

    /// Starts the service: a new process.
    fn start(&mut self) -> Result<(), Box<dyn Error>> {
        self.site.borrow_mut().process += 1;
        let site = Rc::clone(&self.site);
        let resolver = self
            .net
            .resolver(move |_, name| site.borrow_mut().look_up(name));
        let client = self.settings.client_on(self.net.clone(), resolver)?;
        let store = self.store.clone();
        let (settings, clock) = (self.settings.clone(), self.clock.clone());
        let service = Watcher::new(client, settings, store, clock, self.seed)?;
        self.service = Some(service);
        Ok(())
    }

    /// Seconds since the beginning.
    fn now(&self) -> i64 {
        self.site.borrow().seconds(self.net.now())
    }

    /// Runs for so many days. Errors are failures of the run itself; faults are in what it has shown.
    pub(crate) fn run(mut self, days: i64) -> Result<Shown, Box<dyn Error>> {
        let end = days * DAY;
        let (mut verify_at, mut look_at) = (HOUR, 0);
        self.start()?;
        loop {
            self.site.borrow_mut().note_time(self.net.now());
            let now = self.now();
            while let Some(&(at, deed)) = self.plan.deeds.get(self.done)
                && at <= now
            {
                self.done += 1;
                self.perform(deed)?;
            }
            if self.store.is_dead() {
                self.restart()?;
                continue;
            }
            if now >= end {
                break;
            }
            let next = self.plan.deeds.get(self.done).map_or(end, |(at, _)| *at);
            let next = next.min(end).min(verify_at).min(look_at.max(now + 1));
            let longest = Duration::from_secs((next - now).max(1).unsigned_abs());
            if let Some(service) = &mut self.service {
                service.step(longest)?;
            }
            if self.is_spinning() {
                self.oracle
                    .fault(now, "the service turns and turns, and no time passes");
                break;
            }
            if self.store.is_dead() {
                continue;
            }
            if !self.is_full {
                self.store.retry();
            }
            let now = self.now();
            if self.store.take_news() {
                self.observe(now)?;
            }
            if now >= look_at {
                self.measure(now)?;
                look_at = now + 5 * MINUTE;
            }
            if now >= verify_at {
                self.verify(now)?;
                verify_at = now + DAY / 2;
            }
            if self.oracle.faults.len() >= MOST_FAULTS {
                break;
            }
        }
        self.finish(days)
    }

    /// Whether the service has done nothing but turn for longer than anything takes.
    fn is_spinning(&mut self) -> bool {
        let now = self.net.now();
        let has_passed = now.saturating_duration_since(self.turns.0) > Duration::from_millis(1);
        self.turns = match has_passed {
            true => (now, 0),
            false => (self.turns.0, self.turns.1 + 1),
        };
        self.turns.1 > MOST_TURNS
    }

    fn observe(&mut self, now: i64) -> Result<(), Box<dyn Error>> {
        let (oracle, site) = (&mut self.oracle, self.site.borrow());
        self.store
            .with(|engine| oracle.observe(now, &site, engine))?;
        Ok(())
    }

    fn verify(&mut self, now: i64) -> Result<(), Box<dyn Error>> {
        let (oracle, site) = (&mut self.oracle, self.site.borrow());
        let reconcile = self.settings.reconcile;
        let earliest = reconcile.interval + EXPECTED_JITTER.min(reconcile.interval);
        let is_followed = std::mem::replace(&mut self.is_followed, true);
        self.store.with(|engine| {
            oracle.verify(now, &site, engine)?;
            oracle.check_cycles(now, is_followed, earliest, engine)
        })?;
        for problem in self.store.check()? {
            self.oracle.fault(now, &problem);
        }
        Ok(())
    }

    /// How far the service is behind.
    fn measure(&mut self, now: i64) -> Result<(), Box<dyn Error>> {
        // The first look at all URLs takes as long as the hosts allow.
        if now < HOUR || self.plan.is_trouble(now) {
            return Ok(());
        }
        let wall = self.clock.now();
        let urls = self.plan.urls.len() as f64;
        let worst = &mut self.staleness;
        self.store.with(|engine| {
            for lanes in [Lanes::Schedule, Lanes::Doubt] {
                let late = engine.overdue(lanes, wall - STALE, u64::MAX)?;
                worst.worst = worst.worst.max(late as f64 / urls);
                if let Some(next) = engine.next_due(lanes)? {
                    worst.longest = worst.longest.max(wall.duration_since(next).as_secs());
                }
            }
            Ok::<(), StoreError>(())
        })?;
        Ok(())
    }

    fn perform(&mut self, deed: Deed) -> Result<(), Box<dyn Error>> {
        match deed {
            Deed::RecheckAll => self.recheck_all()?,
            Deed::Cut(is_cut) => self.listen(is_cut),
            Deed::Kill {
                operations,
                down_for,
            } => {
                self.down_for = down_for;
                self.store.kill_at(operations);
            }
            Deed::ClockStep(by) => {
                self.is_followed = false;
                self.clock.step(SignedDuration::from_secs(by));
            }
            Deed::Stopped(time) => {
                self.is_followed = false;
                self.net.advance(Duration::from_secs(time.unsigned_abs()));
            }
            Deed::Descriptors(is_enough) => {
                let limit = if is_enough { usize::MAX } else { 1 };
                self.net.set_descriptors(limit);
                let now = self.net.now();
                self.site.borrow_mut().set_shortage(now, !is_enough);
            }
            Deed::Full(is_full) => {
                self.is_full = is_full;
                self.store.set_full(is_full);
            }
            Deed::Reload => {
                let mut settings = self.settings.clone();
                settings.limits.per_host_delay = Duration::from_millis(1);
                if let Some(service) = &mut self.service {
                    service.set_settings(settings);
                }
            }
        }
        Ok(())
    }

    /// As the hand does.
    fn recheck_all(&mut self) -> Result<(), Box<dyn Error>> {
        let wall = self
            .service
            .as_ref()
            .map_or_else(|| self.clock.now(), Service::now);
        self.store.with(|engine| {
            let mut after = None;
            loop {
                let piece = engine.make_due(&Which::Everything, wall, after, 10_000)?;
                after = piece.next;
                if after.is_none() {
                    return Ok::<(), StoreError>(());
                }
            }
        })?;
        if let Some(service) = &mut self.service {
            service.look_again();
        }
        Ok(())
    }

    /// The process was killed: what it had in memory is gone. Another one starts after a while.
    fn restart(&mut self) -> Result<(), Box<dyn Error>> {
        self.oracle.matrix.kills += 1;
        self.is_followed = false;
        self.service = None;
        self.net
            .advance(Duration::from_secs(self.down_for.unsigned_abs()));
        self.store.reopen()?;
        let now = self.now();
        self.observe(now)?;
        self.verify(now)?;
        self.is_followed = false;
        self.start()
    }

    fn finish(mut self, days: i64) -> Result<Shown, Box<dyn Error>> {
        let now = self.now();
        self.observe(now)?;
        self.verify(now)?;
        let (oracle, site, wall) = (&mut self.oracle, self.site.borrow(), self.clock.now());
        let faults = oracle.faults.len();
        self.store
            .with(|engine| oracle.judge(now, wall, &site, engine))?;
        if days < LEAST_DAYS {
            // Not everything has had its time.
            oracle.faults.truncate(faults);
        }
        let (mut matrix, mut faults) = (self.oracle.matrix, self.oracle.faults);
        faults.extend(site.faults.iter().cloned());
        matrix.requests = site.requests;
        matrix.refused = self.store.refused();
        Ok(Shown {
            matrix,
            faults,
            staleness: self.staleness,
            peak: self.net.peak_streams(),
        })
    }
}

/// A folder in memory, if the system has one: many commits take no time there.
fn temporary_folder() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    }
}

/// 2026-01-01.
const BEGIN: i64 = 1_767_225_600;

/// URLs that are past due by more are stale (2.4 minutes).
const STALE: Duration = Duration::from_secs(144);

/// The least jitter of the cycles of reconciling.
const EXPECTED_JITTER: Duration = Duration::from_secs(1);

const MOST_FAULTS: usize = 20;

/// In a millisecond, the service turns less often than this.
const MOST_TURNS: u32 = 100_000;

/// In so many days, what is gone is found and pruned, and what was away for days is found again.
const LEAST_DAYS: i64 = 30;
