//! The sets and jobs of the service, on a store in a file and against servers on the loopback interface.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::service::{Service as Running, folder, watch};
use crate::common::{Answer, Script, gzip, page, response, stderr};
use courser::Rate;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use jobs::{Cancel, Ceiling, CeilingLimits, Ceilings};
use jobs::{CatchUp, Overlap};
use store::sqlite::Sqlite;
use store::{
    DeadLetter, DeadLetterFilter, DeadLetterId, NewUrl, NoticeId, Origin, ScheduleChange,
    ScheduleState, StoreHandle as _, Which, Writer, WriterSettings,
};
use url::Url;
use watch::config::{JobConfig, ScheduleConfig, SetConfig, Source};
use watch::sets::{SetRead, SetReader, read_set};
use watch::work::{Http, Planner, Tools, firing_job, queue_of};

mod kinds;
mod life;
mod sets;

/// A store in a folder of its own, and the tools of jobs.
struct Service {
    folder: tempfile::TempDir,
    store: Writer,
    tools: Arc<Tools>,
}

impl Service {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, tools) = open(folder.path());
        Self {
            folder,
            store,
            tools,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("room");
        path
    }

    fn read(&self, set: &str, source: &Source) -> Result<SetRead, String> {
        read_set(set, source, &self.tools, &Cancel::new()).map_err(|error| error.to_string())
    }

    fn read_file(&self, set: &str, path: &Path) -> Result<SetRead, String> {
        self.read(set, &Source::File(path.to_owned()))
    }

    fn members(&self, set: &str) -> BTreeSet<String> {
        let which = Which::Set(set.to_owned());
        let read = self.store.read(move |store| {
            let mut urls = BTreeSet::new();
            store.export(&which, None, &mut |url| {
                urls.insert(url.url);
                ControlFlow::Continue(())
            })?;
            Ok(urls)
        });
        read.expect("readable")
    }

    fn add(&self, set: &'static str, url: &str) {
        let urls = [NewUrl::parse(url).expect("a URL")];
        let now = Timestamp::now();
        let added = self
            .store
            .call(move |store| store.submit(set, Origin::Hand, &urls, now));
        added.expect("writable");
    }

    fn notices(&self) -> Vec<String> {
        let read = self.store.read(|store| store.notices(NoticeId::START, 100));
        let notices = read.expect("readable").into_iter();
        notices.map(|(_, notice)| notice.text).collect()
    }

    fn letters(&self) -> Vec<DeadLetter> {
        letters(&self.store)
    }

    fn state(&self, schedule: &str) -> ScheduleState {
        let name = schedule.to_owned();
        let state = self.store.read(move |store| store.schedule(&name));
        state.expect("readable")
    }

    fn busy(&self, queue: &str) -> u64 {
        let queue = queue.to_owned();
        let counts = self.store.read(move |store| store.job_counts(&queue));
        let counts = counts.expect("readable");
        counts.waiting + counts.started
    }

    /// Runs the job of a schedule now, as `watch schedule run` does.
    fn run(&self, planner: &Planner, schedule: &str, attempts: u32) {
        let now = Timestamp::now();
        let attempts = NonZeroU32::new(attempts).expect("not zero");
        let job = firing_job(schedule, now, attempts);
        let stored = self
            .store
            .call(move |store| store.enqueue(std::slice::from_ref(&job), now));
        stored.expect("writable");
        planner.look();
    }

    fn planner(&self, schedules: Vec<ScheduleConfig>) -> Planner {
        let planner = Planner::start(schedules, Vec::new(), Arc::clone(&self.tools));
        planner.expect("threads")
    }
}

fn open(folder: &Path) -> (Writer, Arc<Tools>) {
    let engine = Sqlite::open(&folder.join("watch.db")).expect("a store");
    let settings = WriterSettings {
        wait: Duration::from_millis(1),
        ..WriterSettings::default()
    };
    let store = Writer::start(engine, settings).expect("a thread");
    let http = Http::default()
        .allow_private()
        .timeout(Duration::from_secs(20));
    let tools = Tools::new(store.clone(), http);
    (store, Arc::new(tools))
}

fn letters(store: &Writer) -> Vec<DeadLetter> {
    let read = store.read(|store| {
        let mut letters = Vec::new();
        let filter = DeadLetterFilter::default();
        store.dead_letters(&filter, DeadLetterId::START, &mut |letter| {
            letters.push(letter);
            ControlFlow::Continue(())
        })?;
        Ok(letters)
    });
    read.expect("readable")
}

/// A schedule that does not fire on its own within a test.
fn schedule(name: &str, job: JobConfig) -> ScheduleConfig {
    ScheduleConfig {
        name: name.to_owned(),
        cron: "0 0 1 1 *".to_owned(),
        timezone: TimeZone::UTC,
        overlap: Overlap::Forbid,
        catch_up: CatchUp::Once,
        jitter: Duration::ZERO,
        max_attempts: NonZeroU32::new(2).expect("not zero"),
        timeout: Some(Duration::from_secs(60)),
        job,
    }
}

/// A job that reads the sitemap of a server.
fn reading(server: &Script) -> JobConfig {
    JobConfig::Sitemap {
        url: Url::parse(&server.url("/map.xml")).expect("a URL"),
        into_set: "site".to_owned(),
    }
}

/// A server with a sitemap.
fn map_server() -> Script {
    Script::start(|_| a_map())
}

fn a_map() -> Vec<u8> {
    response(200, "", sitemap_of(&["http://h.test/a".to_owned()]))
}

fn urls(count: usize) -> String {
    (0..count).map(|n| format!("http://h.test/{n}\n")).collect()
}

fn set_of(urls: &[&str]) -> BTreeSet<String> {
    urls.iter().map(|url| (*url).to_owned()).collect()
}

fn sitemap_of(urls: &[String]) -> String {
    let urls = urls
        .iter()
        .map(|url| format!("<url><loc>{url}</loc></url>"));
    format!("<urlset>{}</urlset>", urls.collect::<String>())
}

/// Waits for something that happens for sure.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
