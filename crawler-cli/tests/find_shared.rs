//! `crawler-cli find --state postgres://…`: several processes share a search, as on several machines. Each test waits for a
//! state, never for a time.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

#[path = "common/cluster.rs"]
mod cluster;
mod common;

use cluster::{Cluster, QUICK};
use common::{Script, crawler, lines, page, response, stderr};

/// A gate that requests wait at until it is opened.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().expect("no test panicked here") = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.lock().expect("no test panicked here");
        drop(self.1.wait_while(open, |open| !*open));
    }
}

/// Web servers, each a host with 21 directories of three files.
struct Mirrors {
    hosts: Vec<Script>,
    asked: Arc<AtomicUsize>,
}

impl Mirrors {
    fn start(count: usize) -> Self {
        Self::with(count, |_, _| {})
    }

    /// `on_request` gets the number of each request, from 1, and its path.
    fn with(
        count: usize,
        on_request: impl Fn(usize, &str) + Clone + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::<AtomicUsize>::default();
        let host = |_| {
            let (asked, on_request) = (Arc::clone(&asked), on_request.clone());
            Script::start(move |request: &str| {
                let path = request.split(' ').nth(1).unwrap_or_default();
                on_request(asked.fetch_add(1, Ordering::SeqCst) + 1, path);
                match entries(path) {
                    Some(names) if path.ends_with('/') => {
                        page(&names.iter().map(String::as_str).collect::<Vec<_>>())
                    }
                    _ if path.ends_with(".bin") => response(200, "", path),
                    _ => response(404, "", ""),
                }
            })
        };
        Self {
            hosts: (0..count).map(host).collect(),
            asked,
        }
    }

    fn starts(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.url("/")).collect()
    }

    /// The URLs of all files, in the order of a shared search.
    fn files(&self) -> Vec<String> {
        let mut all = Vec::new();
        for host in &self.hosts {
            files_below("/", &mut |path| all.push(host.url(path)));
        }
        all.sort_by(|a, b| a.split('/').cmp(b.split('/')));
        all
    }

    /// The paths that were requested, and from which host.
    fn requests(&self) -> Vec<String> {
        let of = |host: &Script| {
            let requests = host.requests().into_iter();
            requests
                .map(|request| format!("{} {request}", host.url("")))
                .filter(|request| !request.contains("robots"))
                .collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(of).collect()
    }
}

/// The names in a directory; `None` if there is no such directory.
fn entries(path: &str) -> Option<Vec<String>> {
    let depth = path
        .trim_matches('/')
        .split('/')
        .filter(|part| !part.is_empty());
    let last = path.trim_end_matches('/').rsplit('/').next()?.to_owned();
    let files = (0..3).map(|file| format!("{last}{file}.bin"));
    Some(match depth.count() {
        0 | 1 => files
            .chain((0..4).map(|sub| format!("{last}{sub}/")))
            .collect(),
        2 => files.collect(),
        _ => return None,
    })
}

fn files_below(path: &str, visit: &mut dyn FnMut(&str)) {
    for name in entries(path).into_iter().flatten() {
        let path = format!("{path}{name}");
        match name.ends_with('/') {
            true => files_below(&path, visit),
            false => visit(&path),
        }
    }
}

/// A search that processes share.
struct Search {
    words: Vec<String>,
    folder: TempDir,
}

impl Search {
    fn of(database: &str, words: &[String]) -> Self {
        let mut words = words.to_vec();
        let database = format!("{database}?allow_data_loss=1");
        words.extend(["--state".into(), database]);
        words.extend(["--lease", "2", "--summary", "json:/dev/stderr"].map(String::from));
        Self {
            words,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = crawler(&["find"]);
        command.args(&self.words).args(more);
        command
    }

    /// Starts a process that appends its results to a file of this name.
    fn start(&self, name: &str) -> Child {
        let out = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.out(name));
        let mut command = self.command(&[]);
        command
            .stdout(out.expect("a file"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs")
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The results of these processes, sorted.
    fn printed(&self, names: &[&str]) -> Vec<String> {
        let read = |name: &&str| fs::read(self.out(name)).expect("a file");
        lines(&names.iter().flat_map(read).collect::<Vec<u8>>())
    }

    /// Waits for the end of the search, and prints the results of all.
    fn results(&self) -> (Vec<String>, Output) {
        let output = self.command(&["--results"]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text.lines().map(str::to_owned).collect(), output)
    }
}

/// A field of the summary.
fn summary(output: &Output, field: &str) -> serde_json::Value {
    let text = stderr(output);
    let line = text.lines().find(|line| line.starts_with("{\"summary\""));
    let value: serde_json::Value =
        serde_json::from_str(line.unwrap_or_else(|| panic!("{text}"))).expect("JSON");
    value["summary"][field].clone()
}

fn words(starts: &[String], expression: &[&str]) -> Vec<String> {
    let expression = expression.iter().map(|word| (*word).to_owned());
    starts.iter().cloned().chain(expression).collect()
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Waits until it is so.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not within a minute");
}

fn sorted(urls: &[String]) -> Vec<String> {
    let mut urls = urls.to_vec();
    urls.sort();
    urls
}

#[test]
#[ignore = "needs postgresql"]
fn processes_share_a_search() {
    let mirrors = Mirrors::start(6);
    let database = Cluster::shared().database();
    let search = Search::of(
        &database,
        &words(&mirrors.starts(), &["-type", "f", "-name", "*.bin"]),
    );
    let names = ["a", "b", "c"];
    let processes = names.map(|name| search.start(name));
    for process in processes {
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        // One report for all.
        assert_eq!(summary(&output, "matched"), 6 * 63);
        assert_eq!(summary(&output, "directories_done"), 6 * 21);
        assert_eq!(summary(&output, "complete"), true);
    }
    let files = mirrors.files();
    assert_eq!(search.printed(&names), sorted(&files));
    let requests = mirrors.requests();
    let once: BTreeSet<&String> = requests.iter().collect();
    assert_eq!(
        once.len(),
        requests.len(),
        "each directory was requested once"
    );
    // A process that comes too late asks for nothing, and knows everything.
    let (results, late) = search.results();
    assert_eq!((results, late.status.code()), (files, Some(0)));
    assert_eq!(summary(&late, "matched"), 6 * 63);
    assert_eq!(mirrors.requests().len(), requests.len());
}

#[test]
#[ignore = "needs postgresql"]
fn killed_processes_lose_nothing() {
    let victim = Arc::<Mutex<Option<Child>>>::default();
    let kill = {
        let victim = Arc::clone(&victim);
        move |nth: usize, _: &str| {
            if nth.is_multiple_of(17)
                && let Some(mut child) = victim.lock().expect("no panic").take()
            {
                child.kill().expect("SIGKILL");
                child.wait().expect("it has ended");
            }
        }
    };
    let mirrors = Mirrors::with(5, kill);
    let database = Cluster::shared().database();
    let search = Search::of(&database, &words(&mirrors.starts(), &["-type", "f"]));
    let mut last = search.start("last");
    let mut kills = 0;
    while last.try_wait().expect("a child").is_none() {
        let mut running = victim.lock().expect("no panic");
        if running.is_none() {
            kills += 1;
            *running = Some(search.start("others"));
        }
        drop(running);
        std::thread::yield_now();
    }
    assert!(kills > 2, "{kills}");
    let (results, output) = search.results();
    assert_eq!(results, mirrors.files(), "each result once");
    assert_eq!(summary(&output, "matched"), 5 * 63);
    // What was printed by one that was killed may come again; nothing is missing.
    let printed: BTreeSet<String> = search.printed(&["last", "others"]).into_iter().collect();
    assert_eq!(printed, mirrors.files().into_iter().collect());
    if let Some(child) = &mut *victim.lock().expect("no panic") {
        child.wait().expect("it ends with the search");
    }
}

#[test]
#[ignore = "needs postgresql"]
fn a_process_that_was_stopped_for_too_long_changes_nothing() {
    let gate = Arc::<Gate>::default();
    let mirrors = Mirrors::with(3, {
        let gate = Arc::clone(&gate);
        move |nth, _| {
            if nth > 12 {
                gate.pass();
            }
        }
    });
    let database = Cluster::shared().database();
    let search = Search::of(&database, &words(&mirrors.starts(), &["-type", "f"]));
    let slow = search.start("slow");
    until("requests", || mirrors.asked.load(Ordering::SeqCst) > 12);
    kill_process(pid(&slow), Signal::STOP).expect("a process");
    gate.open();
    let quick = search.start("quick").wait_with_output().expect("it ends");
    assert_eq!(quick.status.code(), Some(0), "{}", stderr(&quick));
    kill_process(pid(&slow), Signal::CONT).expect("a process");
    let slow = slow.wait_with_output().expect("it ends");
    assert_eq!(slow.status.code(), Some(0), "{}", stderr(&slow));
    assert_eq!(summary(&slow, "matched"), 3 * 63);
    assert_eq!(search.results().0, mirrors.files());
    // One that is stopped between two requests has printed everything that it has saved, or printed nothing of it.
    let printed: BTreeSet<String> = search.printed(&["slow", "quick"]).into_iter().collect();
    assert_eq!(printed, mirrors.files().into_iter().collect());
}

#[test]
#[ignore = "needs postgresql"]
fn an_interrupted_process_leaves_its_hosts_to_the_others_at_once() {
    let gate = Arc::<Gate>::default();
    let mirrors = Mirrors::with(2, {
        let gate = Arc::clone(&gate);
        move |nth, _| {
            if nth > 8 {
                gate.pass();
            }
        }
    });
    let database = Cluster::shared().database();
    let mut search = Search::of(&database, &words(&mirrors.starts(), &["-type", "f"]));
    // Nobody could wait for the end of this lease.
    search.words.extend(["--lease", "3600"].map(String::from));
    let first = search.start("first");
    until("requests", || mirrors.asked.load(Ordering::SeqCst) > 8);
    kill_process(pid(&first), Signal::INT).expect("a process");
    let first = first.wait_with_output().expect("it ends");
    assert_eq!(first.status.code(), Some(130), "{}", stderr(&first));
    gate.open();
    let second = search.start("second").wait_with_output().expect("it ends");
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    assert_eq!(
        search.printed(&["first", "second"]),
        sorted(&mirrors.files())
    );
    assert_eq!(search.results().0, mirrors.files());
}

#[test]
#[ignore = "needs postgresql"]
fn the_database_may_go_away_and_come_back() {
    let cluster = Arc::new(Cluster::new(&QUICK));
    let killed = Arc::<AtomicUsize>::default();
    let mirrors = Mirrors::with(4, {
        let (cluster, killed) = (Arc::clone(&cluster), Arc::clone(&killed));
        move |nth, _| {
            if nth == 20 {
                cluster.kill();
                cluster.start();
                killed.store(1, Ordering::SeqCst);
            }
        }
    });
    let search = Search::of(
        &cluster.database(),
        &words(&mirrors.starts(), &["-type", "f"]),
    );
    let names = ["a", "b"];
    let processes = names.map(|name| search.start(name));
    for process in processes {
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(summary(&output, "matched"), 4 * 63);
    }
    assert_eq!(killed.load(Ordering::SeqCst), 1);
    assert_eq!(search.printed(&names), sorted(&mirrors.files()));
    assert_eq!(search.results().0, mirrors.files());
}

#[test]
#[ignore = "needs postgresql"]
fn links_lead_to_hosts_of_other_processes() {
    // Each host has ten pages, which link to the pages of the next host.
    let urls = Arc::<Mutex<Vec<String>>>::default();
    let host = |number: usize| {
        let urls = Arc::clone(&urls);
        Script::start(move |request: &str| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let all = urls.lock().expect("no panic").clone();
            match path
                .strip_prefix("/p")
                .and_then(|page| page.parse::<usize>().ok())
            {
                Some(page) if page < 10 => {
                    let next = &all[(number + 1) % all.len()];
                    let links = [
                        format!("{next}p{page}"),
                        format!("{next}p{}", (page + 1) % 10),
                    ];
                    let links = links.map(|link| format!("<a href=\"{link}\">x</a>"));
                    response(200, "Content-Type: text/html\r\n", links.concat())
                }
                _ => response(404, "", ""),
            }
        })
    };
    let hosts: Vec<Script> = (0..4).map(host).collect();
    urls.lock()
        .expect("no panic")
        .extend(hosts.iter().map(|host| host.url("/")));
    let first = hosts[0].url("/p0");
    let words = words(
        &[first],
        &[
            "--links",
            "page",
            "--span-hosts",
            "--allow-private",
            "-type",
            "f",
        ],
    );
    let search = Search::of(&Cluster::shared().database(), &words);
    let names = ["a", "b", "c"];
    for process in names.map(|name| search.start(name)) {
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let pages = |host: &Script| {
        (0..10)
            .map(|page| host.url(&format!("/p{page}")))
            .collect::<Vec<_>>()
    };
    let all: Vec<String> = hosts.iter().flat_map(pages).collect();
    assert_eq!(search.printed(&names), sorted(&all));
    assert_eq!(sorted(&search.results().0), sorted(&all));
}

#[test]
#[ignore = "needs postgresql"]
fn one_process_quits_for_all() {
    let mirrors = Mirrors::start(6);
    let words = words(&mirrors.starts(), &["-name", "00.bin", "-print", "-quit"]);
    let search = Search::of(&Cluster::shared().database(), &words);
    let names = ["a", "b", "c"];
    for process in names.map(|name| search.start(name)) {
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(summary(&output, "ending"), "quit");
    }
    assert_eq!(search.printed(&names).len(), 1);
    assert_eq!(search.results().0, search.printed(&names));
}

#[test]
#[ignore = "needs postgresql"]
fn files_are_downloaded_once() {
    let mirrors = Mirrors::start(3);
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().to_str().expect("UTF-8");
    let words = words(&mirrors.starts(), &["-name", "*.bin", "--download", to]);
    let search = Search::of(&Cluster::shared().database(), &words);
    for process in ["a", "b"].map(|name| search.start(name)) {
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(summary(&output, "downloads")["saved"], 3 * 63);
    }
    assert_eq!(files_in(folder.path()), 3 * 63);
    let requests = mirrors.requests();
    let once: BTreeSet<&String> = requests.iter().collect();
    assert_eq!(once.len(), requests.len(), "each file was requested once");
}

fn files_in(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let count = |entry: fs::DirEntry| match entry.path().is_dir() {
        true => files_in(&entry.path()),
        false => 1,
    };
    entries.map(count).sum()
}

#[test]
#[ignore = "needs postgresql"]
fn a_search_has_one_command() {
    let mirrors = Mirrors::start(1);
    let database = Cluster::shared().database();
    let search = Search::of(&database, &words(&mirrors.starts(), &["-type", "f"]));
    assert_eq!(search.results().0, mirrors.files());
    let other = Search::of(&database, &words(&mirrors.starts(), &["-type", "d"]));
    let output = other.command(&[]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("the state of another search: "), "{text}");
    assert!(text.contains("DROP SCHEMA courser_find CASCADE"), "{text}");
    // The results of all processes have one format.
    let output = search.command(&["--json"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("(results as Lines)"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_a_shared_search_cannot_do_is_refused() {
    let shared = ["--state", "postgres://127.0.0.1:1/x"];
    for (words, error) in [
        (
            &["--results"][..],
            "--results: only for a search that is shared",
        ),
        (
            &["--lease", "5"],
            "--lease: only for a search that is shared",
        ),
        (&["--state", "x", "--results"], "--results: only for"),
        (&["--lease", "1"], "shorter than 2 s"),
        (
            &[shared[0], shared[1], "--report", "text"],
            "--report: one process",
        ),
        (&[shared[0], shared[1], "--sort"], "--state: sorted results"),
        (
            &["--state", "postgres://x/y?sslmode=maybe"],
            "sslmode=maybe: one of",
        ),
    ] {
        let output = common::find(&[&["http://127.0.0.1:1/"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(
            stderr(&output).contains(error),
            "{words:?}: {}",
            stderr(&output)
        );
    }
    // Without a database, nothing is requested.
    let output = common::find(&[&["http://127.0.0.1:1/"], &shared[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("--state postgres://"),
        "{}",
        stderr(&output)
    );
}

#[test]
#[ignore = "needs postgresql"]
fn a_long_command_does_not_end_the_lease() {
    let mirrors = Mirrors::start(1);
    let folder = tempfile::tempdir().expect("a folder");
    let (log, gate) = (folder.path().join("log"), folder.path().join("gate"));
    // The command waits, longer than the lease, until another process has nothing to take over.
    let script = format!(
        "echo x >> {}; until [ -e {} ]; do sleep 0.1; done",
        log.display(),
        gate.display()
    );
    let words = words(
        &mirrors.starts(),
        &["-name", "00.bin", "-exec", "sh", "-c", &script, ";"],
    );
    let database = Cluster::shared().database();
    let search = Search::of(&database, &words);
    let first = search.start("first");
    until("the command", || log.exists());
    let second = search.start("second");
    let name = database.rsplit('/').next().expect("a name");
    let since = "SELECT count(*) FROM courser_find.process WHERE NOT gone AND process = 2 \
         AND (SELECT clock_timestamp() - began_at > interval '5 seconds' FROM courser_find.search)";
    until("a time longer than the lease", || {
        Cluster::shared().psql(name, since).trim() == "1"
    });
    fs::write(&gate, "").expect("written");
    for process in [first, second] {
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(fs::read_to_string(&log).expect("a file"), "x\n");
}
