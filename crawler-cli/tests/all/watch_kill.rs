//! Kills `crawler-cli watch run` at seeded moments, and compares what the store says afterwards with the journals of the
//! servers: nothing is lost, and nothing is applied twice.
//!
//! `COURSER_KILLS` is the number of kills, and `COURSER_KILL_SEED` the seed.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plain::random::Random;
use serde_json::Value;
use store::sqlite::Sqlite;
use store::{DeadLetter, DeadLetterFilter, DeadLetterId, JobStore as _, Subject};
use tempfile::TempDir;

use crate::common::service::{PATIENCE, Service, service, stdout, watch};
use crate::common::{Answer, Script, crawler, response, stderr};

#[test]
fn a_service_that_is_killed_loses_nothing_and_applies_nothing_twice() {
    let times = number("COURSER_KILLS").unwrap_or(6);
    let seed = number("COURSER_KILL_SEED").unwrap_or(17);
    println!("seed {seed}, {times} kills");
    let mut run = Run::new(seed, times);
    for round in 0..times {
        run.round(round);
    }
    run.finish();
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// What a URL answers, by the first part of its path.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    Alive,
    Slow,
    /// Redirects for good to a URL that is alive.
    Moved,
    /// 404 from the beginning.
    Missing,
    /// 410 from the beginning.
    Gone,
    /// Alive at first, and 410 from the fourth request on.
    Leaves,
    /// Redirects to itself.
    Loop,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Alive,
        Self::Slow,
        Self::Moved,
        Self::Missing,
        Self::Gone,
        Self::Leaves,
        Self::Loop,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Slow => "slow",
            Self::Moved => "moved",
            Self::Missing => "missing",
            Self::Gone => "gone",
            Self::Leaves => "leaves",
            Self::Loop => "loop",
        }
    }

    fn of(path: &str) -> Option<Self> {
        let first = path.split('/').nth(1)?;
        Self::ALL.into_iter().find(|kind| kind.name() == first)
    }

    /// How many URLs of this kind each host has.
    fn count(self) -> usize {
        match self {
            Self::Alive => 60,
            Self::Slow => 2,
            Self::Moved => 10,
            Self::Missing => 6,
            // A host has to lose few URLs, or they are held as a fault of the host.
            Self::Gone | Self::Leaves => 3,
            Self::Loop => 2,
        }
    }

    /// The state of such a URL after a while.
    fn state(self) -> &'static str {
        match self {
            Self::Alive | Self::Slow | Self::Moved => "ALIVE",
            Self::Missing => "GONE",
            Self::Gone | Self::Leaves => "PRUNED",
            Self::Loop => "UNREACHABLE",
        }
    }

    fn answer(self, path: &str, nth: usize) -> Vec<u8> {
        let moved = |to: &str| response(301, &format!("Location: {to}\r\n"), "");
        match self {
            Self::Alive => response(200, "", ""),
            Self::Slow => {
                thread::sleep(Duration::from_millis(150));
                response(200, "", "")
            }
            Self::Moved => moved(&path.replace("/moved/", "/alive/")),
            Self::Missing => response(404, "", ""),
            Self::Gone => response(410, "", ""),
            Self::Leaves if nth < 4 => response(200, "", ""),
            Self::Leaves => response(410, "", ""),
            Self::Loop => moved(path),
        }
    }
}

/// A folder with a service that is killed, the servers that it asks, and what was seen of it.
struct Run {
    folder: TempDir,
    random: Random,
    hosts: Vec<Script>,
    files: Script,
    /// The requests that all servers have got.
    requests: Arc<AtomicUsize>,
    urls: BTreeMap<String, Kind>,
    /// The names of files that are fetched; the second ones are not there.
    names: Vec<String>,
    lost_names: Vec<String>,
    kills: usize,
    changes: Vec<Value>,
}

impl Run {
    fn new(seed: u64, kills: u64) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let hosts: Vec<Script> = (0..HOSTS).map(|_| host(Arc::clone(&requests))).collect();
        let files = file_server(Arc::clone(&requests));
        let mut urls = BTreeMap::new();
        for host in &hosts {
            for kind in Kind::ALL {
                for number in 0..kind.count() {
                    urls.insert(host.url(&format!("/{}/{number}", kind.name())), kind);
                }
            }
        }
        let wanted = usize::try_from(kills).expect("a few").min(500) * 8 + 40;
        let run = Self {
            folder: tempfile::tempdir().expect("a folder"),
            random: Random::new(seed),
            hosts,
            files,
            requests,
            urls,
            names: (0..wanted).map(|number| format!("file{number}")).collect(),
            lost_names: (0..5).map(|number| format!("lost{number}")).collect(),
            kills: 0,
            changes: Vec::new(),
        };
        run.write();
        run.list_files();
        run
    }

    fn write(&self) {
        let urls: Vec<&str> = self.urls.keys().map(String::as_str).collect();
        let names: Vec<&str> = self
            .names
            .iter()
            .chain(&self.lost_names)
            .map(String::as_str)
            .collect();
        let port = self.files.address.port();
        let template = format!("http://localhost:{port}/file/{{}}");
        let job = format!("{{ fetch = 'names.txt', template = '{template}', into = 'files' }}");
        let config = format!("{CONFIG}job = {job}\n");
        for (name, text) in [
            ("watch.toml", config),
            ("urls.txt", urls.join("\n")),
            ("names.txt", names.join("\n")),
        ] {
            fs::write(self.path(name), text).expect("written");
        }
    }

    /// Lists the files to fetch. A job that kills interrupt has three attempts if it is started by hand; those of the
    /// files have more.
    fn list_files(&self) {
        self.ok(&["schedule", "run", "files"]);
        let mut process = self.spawn();
        until(
            "a file is asked for",
            &mut || match self.files.requests().is_empty() {
                true => Err(self.log()),
                false => Ok(()),
            },
        );
        process.kill().expect("killed");
        process.wait().expect("a child");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a command prints that succeeds.
    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = watch(self.folder.path(), args);
        let text = stdout(&output);
        assert!(
            output.status.success(),
            "{args:?} after {} kills: {:?}\n{text}{}\n{}",
            self.kills,
            output.status,
            stderr(&output),
            self.log()
        );
        text
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Starts the service, kills it at a moment of the seed, and looks at what it leaves.
    fn round(&mut self, round: u64) {
        let wanted = usize::try_from(self.random.next_number() % 120).expect("small");
        let pause = Duration::from_micros(self.random.next_number() % 30_000);
        let adds = self.random.next_number().is_multiple_of(2);
        let start = self.requests.load(Ordering::SeqCst);
        let mut process = self.spawn();
        let added = adds.then(|| {
            // The operator's command would take the store, and keep the service from it, if it came first.
            let out = process.stdout.take().expect("a pipe");
            let read = BufReader::new(out).read_line(&mut String::new());
            assert!(read.is_ok_and(|length| length > 0), "{}", self.log());
            self.add(round)
        });
        // The number of requests is a moment in the work of the service; the rest is within it.
        let end = Instant::now() + LONGEST_ROUND;
        while self.requests.load(Ordering::SeqCst) < start + wanted && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(pause);
        let ended = process.try_wait().expect("a child");
        assert!(ended.is_none(), "{ended:?}\n{}", self.log());
        process.kill().expect("killed");
        process.wait().expect("a child");
        self.kills += 1;
        if let Some((url, child)) = added {
            let output = child.wait_with_output().expect("a child");
            // What the operator was told is true.
            if output.status.success() {
                self.urls.insert(url, Kind::Alive);
            } else {
                assert!(!stderr(&output).is_empty(), "{output:?}");
            }
        }
        self.ok(&["db", "check"]);
        self.follow();
    }

    fn spawn(&self) -> Child {
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.path("log"));
        let mut command = service(self.folder.path());
        command.stdout(Stdio::piped()).stderr(log.expect("a file"));
        command.spawn().expect("the program runs")
    }

    fn add(&self, round: u64) -> (String, Child) {
        let url = self.hosts[0].url(&format!("/alive/added{round}"));
        let mut command = crawler(&["watch", "add", "--set", "by-hand", &url]);
        command.current_dir(self.folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        (url, command.spawn().expect("the program runs"))
    }

    /// Reads the changes since the last time, as a program does that follows them.
    fn follow(&mut self) {
        let since = self.changes.last().map_or(0, cursor).to_string();
        let more = self.ok(&["export", "--changes", "--since", &since]);
        self.changes.extend(values(&more));
    }

    /// Runs the service until all is done, and looks at everything.
    fn finish(mut self) {
        let service = Service::start(self.folder.path());
        self.wait_for_states();
        self.wait_for_files();
        service.end();
        self.ok(&["db", "check"]);
        self.follow();
        let all = values(&self.ok(&["export", "--changes", "--since", "0"]));
        assert_eq!(
            all, self.changes,
            "a reader that follows gets each change once"
        );
        let asked = self.asked();
        let states = self.states();
        self.check_urls(&asked, &states);
        self.check_changes(&states);
        self.check_files();
        self.check_letters();
        println!(
            "{} kills, {} requests, {} changes, {} files",
            self.kills,
            self.requests.load(Ordering::SeqCst),
            self.changes.len(),
            self.names.len()
        );
    }

    fn states(&self) -> HashMap<String, Value> {
        let lines = values(&self.ok(&["export", "--json"]));
        let named = lines.into_iter().map(|line| (text(&line, "url"), line));
        named.collect()
    }

    fn wait_for_states(&self) {
        until("states", &mut || {
            let states = self.states();
            let missing = self.urls.iter().find_map(|(url, kind)| {
                let Some(line) = states.get(url) else {
                    return Some(format!("{url}: lost"));
                };
                (line["state"] != kind.state()).then(|| line.to_string())
            });
            missing.map_or(Ok(()), Err)
        });
    }

    fn wait_for_files(&self) {
        until("jobs", &mut || {
            let mut store = Sqlite::open_read_only(&self.path("watch.db")).expect("readable");
            for queue in store.queues().expect("read") {
                let counts = store.job_counts(&queue).expect("read");
                if counts.waiting + counts.started > 0 {
                    return Err(format!("{queue}: {counts:?}"));
                }
            }
            Ok(())
        });
    }

    /// How often each URL of a host was asked for.
    fn asked(&self) -> HashMap<String, usize> {
        let mut asked = HashMap::new();
        for host in &self.hosts {
            for request in host.requests() {
                let path = request.split(' ').nth(1).expect("a target");
                *asked.entry(host.url(path)).or_default() += 1;
            }
        }
        asked
    }

    fn check_urls(&self, asked: &HashMap<String, usize>, states: &HashMap<String, Value>) {
        for (url, kind) in &self.urls {
            let line = &states[url];
            assert!(line["checked_at"].is_string(), "never checked: {line}");
            let history = line["history"].as_array().map_or(0, Vec::len);
            let requests = asked.get(url).copied().unwrap_or_default();
            assert!(
                (1..=requests).contains(&history),
                "{history} answers of {requests} requests: {line}"
            );
            if *kind == Kind::Moved {
                assert_eq!(text(line, "moved_to"), url.replace("/moved/", "/alive/"));
            }
        }
    }

    /// The changes of each URL are a chain that ends in its state.
    fn check_changes(&self, states: &HashMap<String, Value>) {
        let mut last: HashMap<String, String> = HashMap::new();
        let mut counts: HashMap<(String, String), usize> = HashMap::new();
        for pair in self.changes.windows(2) {
            assert!(cursor(&pair[0]) < cursor(&pair[1]), "{pair:?}");
        }
        for change in &self.changes {
            let url = text(change, "url");
            let before = last.insert(url.clone(), text(change, "to"));
            let before = before.unwrap_or_else(|| "NEW".to_owned());
            assert_eq!(text(change, "from"), before, "{change}");
            *counts.entry((url, text(change, "to"))).or_default() += 1;
        }
        for (url, line) in states {
            let state = text(line, "state");
            let end = last.get(url).cloned().unwrap_or_else(|| "NEW".to_owned());
            assert_eq!(end, state, "{line}");
        }
        for (url, kind) in &self.urls {
            let count = |state: &str| {
                let key = (url.clone(), state.to_owned());
                counts.get(&key).copied().unwrap_or_default()
            };
            // Each of these servers changes its mind once.
            match kind.state() {
                "PRUNED" => assert_eq!((count("GONE"), count("PRUNED")), (1, 1), "{url}"),
                "GONE" => assert_eq!((count("GONE"), count("PRUNED")), (1, 0), "{url}"),
                state => assert_eq!((count(state), count("GONE")), (1, 0), "{url}"),
            }
        }
    }

    /// Each file is there, and was fetched again only if the process was killed before it knew.
    fn check_files(&self) {
        let mut fetched: HashMap<String, usize> = HashMap::new();
        for request in self.files.requests() {
            let name = request.rsplit('/').next().expect("a name").to_owned();
            *fetched.entry(name).or_default() += 1;
        }
        let mut again = 0;
        for name in &self.names {
            let path = self.path("files").join(name);
            let body = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}\n{}", path.display(), self.log()));
            assert_eq!(body, body_of(name));
            again += fetched[name] - 1;
        }
        // Two connections at a time: a kill interrupts two transfers at most.
        assert!(
            again <= 2 * (self.kills + 1),
            "{again} again after {} kills",
            self.kills
        );
    }

    /// What needs a human is told once.
    fn check_letters(&self) {
        let mut store = Sqlite::open_read_only(&self.path("watch.db")).expect("readable");
        let mut letters: Vec<DeadLetter> = Vec::new();
        let all = DeadLetterFilter::default();
        let read = store.dead_letters(&all, DeadLetterId(0), &mut |letter| {
            letters.push(letter);
            ControlFlow::Continue(())
        });
        read.expect("read");
        let (mut urls, mut jobs) = (Vec::new(), Vec::new());
        for letter in letters {
            match &letter.subject {
                Subject::Url { url, .. } => urls.push(url.clone()),
                Subject::Job { payload, .. } => {
                    let line: Value = serde_json::from_slice(payload).expect("a line");
                    assert_eq!(letter.letter.reason, "status_403", "{letter:?}");
                    jobs.push(text(&line, "name"));
                }
                _ => panic!("{letter:?}"),
            }
        }
        urls.sort();
        jobs.sort();
        let loops = self.urls.iter().filter(|(_, kind)| **kind == Kind::Loop);
        let loops: Vec<&String> = loops.map(|(url, _)| url).collect();
        assert_eq!(urls.iter().collect::<Vec<_>>(), loops);
        assert_eq!(jobs, self.lost_names);
    }
}

/// A server with URLs of all kinds.
fn host(requests: Arc<AtomicUsize>) -> Script {
    let asked = std::sync::Mutex::new(HashMap::<String, usize>::new());
    Script::start(move |request| -> Answer {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let Some(kind) = Kind::of(&path) else {
            return response(404, "", "").into();
        };
        requests.fetch_add(1, Ordering::SeqCst);
        let nth = {
            let mut asked = asked.lock().expect("no thread panics with the lock");
            let nth = asked.entry(path.clone()).or_default();
            *nth += 1;
            *nth
        };
        kind.answer(&path, nth).into()
    })
}

/// A server with the files.
fn file_server(requests: Arc<AtomicUsize>) -> Script {
    Script::start(move |request| {
        requests.fetch_add(1, Ordering::SeqCst);
        let name = request.rsplit('/').next().unwrap_or_default();
        match name.starts_with("file") {
            true => response(200, "", body_of(name)),
            false => response(403, "", ""),
        }
    })
}

fn body_of(name: &str) -> String {
    format!("{name}\n").repeat(300)
}

fn values(lines: &str) -> Vec<Value> {
    let values = lines.lines().map(serde_json::from_str);
    values.collect::<Result<_, _>>().expect("JSON lines")
}

fn text(line: &Value, field: &str) -> String {
    let text = line[field].as_str();
    text.unwrap_or_else(|| panic!("no {field}: {line}"))
        .to_owned()
}

fn cursor(change: &Value) -> u64 {
    change["cursor"].as_u64().expect("a number")
}

/// Waits until it is so; the error says what is not.
fn until(what: &str, is_so: &mut dyn FnMut() -> Result<(), String>) {
    let end = Instant::now() + PATIENCE;
    while let Err(why) = is_so() {
        assert!(Instant::now() < end, "{what}: {why}");
        thread::sleep(Duration::from_millis(200));
    }
}

const HOSTS: usize = 4;
/// A round in which the service asks for less is killed after this time.
const LONGEST_ROUND: Duration = Duration::from_secs(3);

/// A week in seconds. The schedule never fires by itself: it is started by hand.
const CONFIG: &str = "\
[http]
listen = '127.0.0.1:0'

[limits]
allow_private = true
per_host_rate = 0
timeout = '60s'

[policy]
report_count = 2
report_after = '100ms'
grace = '100ms'
alive_interval = ['500ms', '2s']
gone_interval = ['500ms', '2s']
recheck_410 = ['100ms', '200ms']
recheck_404 = ['100ms', '200ms']
recheck_net = ['100ms', '200ms']
gone_410 = { count = 4, span = '400ms' }
gone_404 = { count = 4, span = '400ms' }

[guard]
# Pages that turn from good to 410 are no flip here: a hold would last for longer than the test.
host_flip = { min = 1000000 }
prune_budget = { all = 0, host = 0, per = '24h' }

[reconcile]
interval = '100ms'
jitter = ['10ms', '20ms']

[[host]]
match = 'localhost'
rate = 40
connections = 2

[[set]]
name = 'docs'
urls = 'urls.txt'

[[schedule]]
name = 'files'
cron = '0 0 29 2 *'
# Each kill counts as an attempt of what it interrupts.
max_attempts = 100
";
