//! A downstream graph beside the service: URLs are submitted, changes are followed, nodes are detached and attached again.
//! The real program runs, and both sides are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Script, crawler, response, stderr};
use graph::{Change, Graph, Places};

#[path = "../../examples/graph.rs"]
mod graph;

/// A process that is killed with this.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended on its own.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A site with pages `/0`, `/1` and so on, some of which are gone.
struct Site {
    server: Script,
    gone: Arc<Mutex<BTreeSet<usize>>>,
}

impl Site {
    fn start() -> Self {
        let gone = Arc::<Mutex<BTreeSet<usize>>>::default();
        let shared = Arc::clone(&gone);
        let server = Script::start(move |request| {
            let path = request.split_once(" /").map_or("", |(_, path)| path);
            let gone = shared.lock().expect("no test panicked here");
            match path.parse::<usize>() {
                Ok(number) if gone.contains(&number) => response(410, "", ""),
                Ok(_) => response(200, "", ""),
                Err(_) if path.is_empty() => response(200, "", ""),
                Err(_) => response(404, "", ""),
            }
        });
        Self { server, gone }
    }

    fn urls(&self, count: usize) -> Vec<String> {
        (0..count)
            .map(|n| self.server.url(&format!("/{n}")))
            .collect()
    }

    fn set_gone(&self, gone: BTreeSet<usize>) {
        *self.gone.lock().expect("no test panicked here") = gone;
    }
}

/// A service whose weeks take a moment.
fn places(folder: &Path) -> Places {
    fs::write(folder.join("watch.toml"), CONFIG).expect("room");
    Places {
        program: env!("CARGO_BIN_EXE_crawler-cli").into(),
        config: folder.join("watch.toml"),
        graph: folder.join("graph.json"),
    }
}

const CONFIG: &str = r#"
[store]
url = "sqlite:watch.db"
[http]
listen = "127.0.0.1:0"
[log]
level = "error"
[limits]
per_host_connections = 4
per_host_rate = 0
allow_private = true
robots = false
[policy]
prune_on = [410]
report_after = "20ms"
grace = "20ms"
alive_interval = ["50ms", "100ms"]
gone_interval = ["50ms", "100ms"]
recheck_410 = ["20ms"]
gone_410 = { count = 4, span = "80ms" }
resurrect = { count = 2, gap = "20ms" }
[reconcile]
interval = "20ms"
jitter = ["1ms", "2ms"]
[guard]
host_flip = { min = 100000 }
prune_budget = { all = 1.0, host = 1.0, per = "1s" }
"#;

/// Starts the service, and waits until it listens.
fn service(places: &Places) -> Killed {
    let mut command = crawler(&[
        "watch",
        "run",
        "--config",
        &places.config.display().to_string(),
    ]);
    let mut child = Killed(
        command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs"),
    );
    let mut line = String::new();
    let out = child.0.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert!(line.starts_with("listening on "), "{line:?}");
    child
}

/// Starts this program as the consumer.
fn consumer(places: &Places) -> Killed {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", "watch_graph::consumer_process", "--nocapture"]);
    let folder = places.graph.parent().expect("a folder");
    command.env("COURSER_TEST_GRAPH_FOLDER", folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Killed(command.spawn().expect("the program runs"))
}

/// The consumer's process.
#[test]
fn consumer_process() {
    let Some(folder) = std::env::var_os("COURSER_TEST_GRAPH_FOLDER") else {
        return;
    };
    let folder = PathBuf::from(folder);
    let places = Places {
        program: env!("CARGO_BIN_EXE_crawler-cli").into(),
        config: folder.join("watch.toml"),
        graph: folder.join("graph.json"),
    };
    // A store that the service has not made yet, or that is busy, is tried again.
    loop {
        if let Err(error) = places.follow(|_| false) {
            eprintln!("{error}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn changes(places: &Places) -> Vec<Change> {
    let config = places.config.display().to_string();
    let args = [
        "watch",
        "export",
        "--changes",
        "--since",
        "0",
        "--config",
        &config,
    ];
    let output = crawler(&args).output().expect("the program runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = String::from_utf8(output.stdout).expect("text");
    let lines = lines.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("changes")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(120), "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Numbers that are the same in each run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn each_change_is_applied_once_although_both_sides_are_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (site, places) = (Site::start(), places(folder.path()));
    let urls = site.urls(12);
    let mut running = service(&places);
    places.submit(&urls).expect("added");
    let mut following = consumer(&places);
    let mut random = Seeded(17);
    for round in 0..3 {
        let gone: BTreeSet<usize> = match round {
            2 => BTreeSet::new(),
            _ => (0..12).filter(|_| random.below(3) == 0).collect(),
        };
        site.set_gone(gone.clone());
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(random.below(150)));
            drop(running);
            thread::sleep(Duration::from_millis(random.below(50)));
            running = service(&places);
            thread::sleep(Duration::from_millis(random.below(150)));
            drop(following);
            following = consumer(&places);
        }
        until("the graph is as the site", || {
            let graph = Graph::load(&places.graph).expect("whole at any time");
            let mut nodes = urls.iter().enumerate();
            nodes.all(|(number, url)| graph.nodes[url].is_attached != gone.contains(&number))
        });
    }
    // Nothing changes any more: all URLs are alive. The consumer gets to the end.
    drop(running);
    let all = changes(&places);
    let last = all.last().expect("changes").cursor.clone();
    until("the consumer has everything", || {
        Graph::load(&places.graph).expect("whole").cursor == Some(last.clone())
    });
    drop(following);
    let graph = Graph::load(&places.graph).expect("whole");
    let mut truth: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut cursors = BTreeSet::new();
    for change in &all {
        assert!(cursors.insert(change.cursor.to_string()), "a cursor twice");
        let (pruned, back) = truth.entry(&change.url).or_default();
        match &*change.to {
            "PRUNED" => *pruned += 1,
            "ALIVE" if *pruned > *back => *back += 1,
            _ => {}
        }
    }
    for url in &urls {
        let node = graph.nodes[url];
        assert_eq!((node.detached, node.attached), truth[&**url], "{url}");
        assert!(node.is_attached, "{url}");
    }
    assert!(truth.values().any(|(pruned, _)| *pruned > 0));
    let config = places.config.display().to_string();
    let check = crawler(&["watch", "db", "check", "--config", &config]).output();
    let check = check.expect("the program runs");
    assert!(
        check.status.success(),
        "{}",
        String::from_utf8_lossy(&check.stdout)
    );
}
