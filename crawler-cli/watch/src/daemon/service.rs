//! The parts of a running service, and the loop that drives them.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use courser::net::os::OsNet;
use jiff::Timestamp;

use super::facts::Housekeeping;
use super::notify::Notifier;
use super::reload::needs_restart;
use super::{Failure, Signals};
use super::{ahead, files, private};
use crawl::clock::SystemClock;
use plain::random::fresh_seed;

use crate::config::{Config, Loaded};
use crate::control::{ControlServer, Operator, Schedules, core_channel, has_service, socket_of};
use crate::core::{Settings, Watcher};
use crate::hands::Reader;
use crate::hour::Hour;
use crate::log;
use crate::metrics::Sources;
use crate::server::{Server, Site};
use crate::sets::SetReader;
use crate::vitals::Vitals;
use crate::work::{FindReader, Http, Planner, Tools};
use store::{
    Database, FleetStore as _, JobStore as _, Late, NewWorker, Place, Spool, StoreError,
    StoreErrorKind, StoreHandle as _, Writer, WriterSettings, WriterState,
};

type Core = Watcher<OsNet, Writer, SystemClock>;

/// A service that runs.
pub(super) struct Service {
    loaded: Loaded,
    /// What the core and the jobs were given last: they share the ceilings of hosts.
    settings: Settings,
    store: Writer,
    core: Core,
    tools: Arc<Tools>,
    sets: SetReader,
    planner: Planner,
    vitals: Arc<Vitals>,
    notifier: Notifier,
    housekeeping: Housekeeping,
    /// When the core was told to look into the store, and how many transactions there were then.
    looked: (Option<Instant>, u64),
    /// Hands that share a server with the service change the store themselves.
    control: Option<ControlServer>,
    /// Those that commands can name.
    schedules: Arc<RwLock<Schedules>>,
    server: Server,
}

impl Service {
    /// Starts all parts, those first that can fail for a reason of the configuration.
    ///
    /// # Errors
    /// What cannot start, and why.
    pub(super) fn start(
        loaded: Loaded,
        find: FindReader,
        out: &mut dyn Write,
    ) -> Result<Self, Failure> {
        let config = &loaded.config;
        let place = &config.store.place;
        let mut engine = open(place).map_err(Failure::Store)?;
        let tenure = engine.join_fleet(&worker(config)).map_err(Failure::Store)?;
        let rejected = engine.rejected_figures();
        let cannot =
            |what: &'static str| move |error: io::Error| Failure::Start(format!("{what}: {error}"));
        let spool = spool(&loaded, &mut engine)?;
        let store = Writer::start_with(engine, WriterSettings::default(), spool);
        let store = store.map_err(cannot("the store"))?;
        let mut settings = Settings::from(config);
        let few_files = files::fit(&mut settings.limits);
        let client = settings.client();
        let client = client.map_err(|error| Failure::Start(format!("the client: {error}")))?;
        let (handle, inbox) = core_channel();
        let core = Watcher::new(
            client,
            settings.clone(),
            store.clone(),
            SystemClock,
            fresh_seed(),
        );
        let core = core.map_err(cannot("the client"))?.with_inbox(inbox);
        let core = core.with_tenure(tenure);
        let vitals = Arc::new(Vitals::new(Instant::now()));
        let sources = Sources {
            checks: Arc::clone(core.figures()),
            store: store.figures(),
            rejected,
            vitals: Arc::clone(&vitals),
        };
        let reader = Reader::open(place).map_err(Failure::Store)?;
        let schedules = Arc::new(RwLock::new(Schedules::from(&*config.schedules)));
        let operator = Operator {
            store: store.clone(),
            core: handle,
            vitals: Arc::clone(&vitals),
            schedules: Arc::clone(&schedules),
        };
        let listener = listen(config)?;
        let hour = Hour::new(Arc::clone(core.figures()), Instant::now());
        let hour = Arc::new(hour);
        let control = place.file().map(|file| {
            ControlServer::start(file, operator.clone()).map_err(|error| {
                let socket = socket_of(file).display().to_string();
                Failure::Start(format!("{socket}: the socket for commands: {error}"))
            })
        });
        let control = control.transpose()?;
        let tools = Arc::new(
            Tools::new(store.clone(), Http::from(&settings))
                .find_reader(find)
                .most_lost(config.guard.most_lost),
        );
        let sets = SetReader::start(config.sets.clone(), Arc::clone(&tools));
        let sets = sets.map_err(cannot("the reader of sets"))?;
        let site = Site {
            sources,
            hour: Arc::clone(&hour),
            readings: sets.readings(),
            operator,
            reader: Mutex::new(reader),
            http: config.http.clone(),
        };
        let server = Server::start(listener, site).map_err(cannot("the server"))?;
        let planner = Planner::start(
            config.schedules.clone(),
            config.sets.clone(),
            Arc::clone(&tools),
        );
        let keep = config.store.keep;
        let readings = sets.readings();
        let mut service = Self {
            sets,
            planner: planner.map_err(cannot("the schedules"))?,
            housekeeping: Housekeeping::new(Arc::clone(&vitals), readings, hour, keep),
            notifier: Notifier::new(),
            looked: (None, 0),
            loaded,
            settings,
            store,
            core,
            tools,
            vitals,
            control,
            schedules,
            server,
        };
        // That nobody reads the line is no reason to end.
        let _ = writeln!(out, "listening on http://{}", service.server.address());
        let _ = out.flush();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            store = %service.loaded.config.store.place,
            listen = %service.server.address(),
            sets = service.loaded.config.sets.len(),
            schedules = service.loaded.config.schedules.len(),
            "started"
        );
        if let Some(text) = few_files {
            service.tools.note("files", &text);
        }
        ahead::ask_again(&service.tools).map_err(cannot("the times of URLs"))?;
        private::look(&service.tools).map_err(cannot("private addresses"))?;
        service.notifier.ready();
        Ok(service)
    }

    /// Drives the core until a signal ends the service.
    pub(super) fn run(
        &mut self,
        read: &mut dyn FnMut() -> Result<Loaded, String>,
        signals: &Signals,
    ) {
        while !signals.end.load(Ordering::Relaxed) {
            if signals.reload.swap(false, Ordering::Relaxed) {
                self.reload(read);
            }
            let turn = self.core.step(TURN);
            self.turn(turn);
        }
    }

    /// What follows a turn of the core.
    fn turn(&mut self, turn: io::Result<()>) {
        let now = Instant::now();
        if let Err(error) = turn {
            tracing::error!("the network of this machine: {error}");
            thread::sleep(TURN);
        }
        self.vitals.tick(now);
        self.look(now);
        self.note_store();
        self.notifier.turn(now);
        let figures = self.core.figures();
        self.notifier.status(now, || {
            let in_flight = figures.requests.in_flight.get();
            let lag = Duration::from_millis(figures.backlog.lag.get()).as_secs();
            format!(
                "{} verdicts, {in_flight} requests in flight, {lag} s behind",
                figures.results.total()
            )
        });
        self.housekeeping.turn(now, Timestamp::now(), &self.store);
    }

    /// Tells the operator whether the store can be written.
    fn note_store(&self) {
        let why_not = match self.store.state() {
            WriterState::Ok => None,
            WriterState::Full => Some("no space left".to_owned()),
            WriterState::Failing(why) => Some(why),
            WriterState::Closed => Some("closed".to_owned()),
        };
        if self.vitals.note_store(why_not.as_deref()) {
            match why_not {
                Some(why) => tracing::error!("the store cannot be written: {why}"),
                None => tracing::info!("the store can be written again"),
            }
        }
    }

    /// Has the core look into the store if something was stored: readers of sets and jobs add URLs that are due now, and
    /// the core knows of what it stored itself alone.
    fn look(&mut self, now: Instant) {
        let is_soon = |at| now.saturating_duration_since(at) < LOOK_EVERY;
        let groups = self.store.figures().groups.load(Ordering::Relaxed);
        if groups != self.looked.1 && !self.looked.0.is_some_and(is_soon) {
            self.looked = (Some(now), groups);
            self.core.look_again();
        }
    }

    /// Reads the configuration again, and applies all of it or nothing.
    fn reload(&mut self, read: &mut dyn FnMut() -> Result<Loaded, String>) {
        self.notifier.reloading();
        let applied = read().and_then(|new| self.apply(new));
        if let Err(why) = &applied {
            for line in why.lines() {
                tracing::error!("{line}");
            }
            tracing::error!("the configuration stays as it was");
        }
        self.vitals.note_reload(applied.is_ok());
        self.notifier.ready();
    }

    /// # Errors
    /// Why nothing was applied.
    fn apply(&mut self, new: Loaded) -> Result<(), String> {
        let restart = needs_restart(&self.loaded, &new);
        if !restart.is_empty() {
            return Err(format!(
                "a restart is needed for changes of {}",
                restart.join(", ")
            ));
        }
        let changed = new.changes(&self.loaded);
        let config = &new.config;
        log::set_level(config.log.level);
        let mut settings = Settings::from(config);
        files::fit(&mut settings.limits);
        settings.keep_ceilings(&self.settings);
        self.core.set_settings(settings.clone());
        self.housekeeping.keep = config.store.keep;
        self.tools = Arc::new(
            self.tools
                .reloaded(&settings)
                .most_lost(config.guard.most_lost),
        );
        // Sources are read again even if the configuration is the same: that is what SIGHUP is for.
        self.sets
            .reload(config.sets.clone(), Arc::clone(&self.tools));
        let mut schedules = self
            .schedules
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *schedules = Schedules::from(&*config.schedules);
        drop(schedules);
        self.planner.reload(
            config.schedules.clone(),
            config.sets.clone(),
            Arc::clone(&self.tools),
        );
        let in_words = match changed.is_empty() {
            true => "nothing".to_owned(),
            false => changed.join(", "),
        };
        tracing::info!(changed = in_words, "the configuration was read again");
        self.settings = settings;
        self.loaded = new;
        Ok(())
    }

    /// Asks nothing new, waits for what is under way, stores it, and ends all parts.
    ///
    /// # Errors
    /// What could not be stored, and is done again at the next start.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        tracing::info!("draining");
        self.notifier.stopping();
        self.vitals.drain();
        let longest = self.loaded.config.limits.drain_timeout.unwrap_or(NEVER);
        let end = Instant::now() + longest;
        let (planner, sets) = (self.planner, self.sets);
        // Jobs are drained beside the core, in the same time. So are readings, which may wait for a file system.
        let readings = thread::spawn(move || sets.stop());
        let jobs = thread::spawn(move || planner.drain(longest));
        let mut is_done = false;
        while !is_done && Instant::now() < end {
            match self.core.drain(end.min(Instant::now() + TURN)) {
                Ok(done) => is_done = done,
                Err(error) => {
                    tracing::error!("the network of this machine: {error}");
                    break;
                }
            }
            let now = Instant::now();
            self.vitals.tick(now);
            self.notifier.turn(now);
        }
        while !jobs.is_finished() || !(readings.is_finished() || Instant::now() >= end) {
            // Jobs that do not end in time are left to the next start; a reading that was cut short removes nothing.
            thread::sleep(TURN);
            let now = Instant::now();
            self.vitals.tick(now);
            self.notifier.turn(now);
        }
        let drained = jobs.join().unwrap_or_default();
        self.core.hand_over();
        // No request is left when the writer ends.
        drop(self.server);
        drop(self.control);
        drop(self.core);
        if let Err(error) = self.store.call(|engine| engine.leave_fleet()) {
            tracing::warn!("others take over when the lease has ended: {error}");
        }
        let left = end.saturating_duration_since(Instant::now());
        let closed = self.store.close(left.max(LAST_TRY));
        tracing::info!(
            released = !is_done,
            jobs_kept = drained.kept,
            jobs_left = drained.left,
            "ended"
        );
        closed.map_err(Failure::NotStored)
    }
}

/// Opens the store. A command that uses the store while no service runs is waited for.
fn open(store: &Place) -> Result<Database, StoreError> {
    let since = Instant::now();
    let mut is_said = false;
    loop {
        let error = match store.open() {
            Err(error) if matches!(error.kind(), StoreErrorKind::InUse(_)) => error,
            opened => return opened,
        };
        if since.elapsed() >= LONGEST_COMMAND || has_service(store) {
            return Err(error);
        }
        if !is_said {
            tracing::info!("{error}: waiting for its end");
            is_said = true;
        }
        thread::sleep(TURN);
    }
}

/// What the fleet is told about this service.
fn worker(config: &Config) -> NewWorker {
    let name = rustix::system::uname();
    NewWorker {
        name: name.nodename().to_string_lossy().into_owned(),
        process: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        lease: config.store.lease,
    }
}

/// Where outcomes wait while a server cannot be reached, and those that dead processes have left there.
fn spool(loaded: &Loaded, engine: &mut Database) -> Result<Option<(Spool, Vec<Late>)>, Failure> {
    let config = &loaded.config;
    if config.store.place.file().is_some() {
        return Ok(None);
    }
    let id = engine.store_id().map_err(Failure::Store)?;
    let usual = usual_spool(
        loaded.file(),
        std::env::var_os("STATE_DIRECTORY").as_deref(),
    );
    let folder = config.store.spool.as_ref().unwrap_or(&usual);
    let opened = Spool::open(folder, &id);
    opened
        .map(Some)
        .map_err(|error| Failure::Start(format!("store.spool: {error}")))
}

/// The folder `spool` in the state directory that systemd gives the service (systemd.exec(5)), or else beside the
/// configuration, whose folder a service may not write.
fn usual_spool(config: &Path, state: Option<&OsStr>) -> PathBuf {
    // Of several directories the first, which has no colon.
    let first = state.and_then(|state| state.as_bytes().split(|&byte| byte == b':').next());
    let first = first.filter(|first| !first.is_empty());
    first.map_or_else(
        || config.with_file_name("spool"),
        |first| Path::new(OsStr::from_bytes(first)).join("spool"),
    )
}

fn listen(config: &Config) -> Result<TcpListener, Failure> {
    let address = config.http.listen;
    TcpListener::bind(address).map_err(|error| {
        Failure::Start(format!("http.listen: cannot listen on {address}: {error}"))
    })
}

/// How long a command may use the store when the service starts.
const LONGEST_COMMAND: Duration = Duration::from_secs(5);
/// The longest turn of the loop: signals are seen after this time.
const TURN: Duration = Duration::from_millis(100);
/// The core looks into the store at most this often because of what others stored.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The time for what is left to be stored at the end, whatever the limit says.
const LAST_TRY: Duration = Duration::from_secs(1);
/// Long enough to be no limit.
const NEVER: Duration = Duration::from_secs(400 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_wait_where_the_service_may_write() {
        let folder = |state: Option<&str>| {
            usual_spool(Path::new("/etc/courser/watch.toml"), state.map(OsStr::new))
        };
        assert_eq!(folder(None), Path::new("/etc/courser/spool"));
        assert_eq!(folder(Some("")), Path::new("/etc/courser/spool"));
        assert_eq!(
            folder(Some("/var/lib/courser")),
            Path::new("/var/lib/courser/spool")
        );
        assert_eq!(folder(Some("/a:/b")), Path::new("/a/spool"));
    }
}
