//! The bad days of `crawler-cli watch run`: stores that cannot be used, a full disk, too few files, a process that is
//! stopped, and jobs that hang or kill. Each ends with a message that says what is wrong, and nothing is lost.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crawler_cli::store::sqlite::Sqlite;
use crawler_cli::store::{CycleCounts, NewUrl, NoticeId, Origin, WatchStore as _};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

mod common;

use common::service::{PATIENCE, Service, folder, service, stdout, watch};
use common::{Script, response, stderr};

mod stores {
    use super::*;

    #[test]
    fn a_store_that_another_process_has_is_named_with_the_process() {
        let folder = folder("", &[]);
        let _held = Sqlite::open(&folder.path().join("watch.db")).expect("a store");
        let text = refused(&folder, 2);
        let process = format!("process {}", std::process::id());
        for part in ["watch.db: ", &process, "end that one, or name another file"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_damaged_store_is_restored_from_a_backup() {
        let folder = folder(QUICK, &[]);
        let file = folder.path().join("watch.db");
        ok(folder.path(), &["add", "http://127.0.0.1:9/kept"]);
        ok(folder.path(), &["db", "backup", "good.db"]);
        let mut bytes = fs::read(&file).expect("a store");
        // The first page has the tables of the store.
        bytes[100..4000].fill(0xa5);
        fs::write(&file, bytes).expect("written");
        let text = refused(&folder, 1);
        for part in [
            "watch.db: damaged: ",
            "restore a backup with 'crawler-cli watch db restore'",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let check = watch(folder.path(), &["db", "check"]);
        assert_eq!(check.status.code(), Some(1), "{check:?}");
        ok(folder.path(), &["db", "restore", "good.db"]);
        assert!(ok(folder.path(), &["export", "--json"]).contains("/kept"));
        Service::start(folder.path()).end();
    }

    #[test]
    fn a_store_that_loses_a_page_says_so_and_is_not_changed_further() {
        let folder = folder(QUICK, &[]);
        let file = folder.path().join("watch.db");
        ok(folder.path(), &["add", "http://127.0.0.1:9/"]);
        let mut bytes = fs::read(&file).expect("a store");
        let page = 4096.min(bytes.len() / 2);
        bytes[page..].fill(0xa5);
        fs::write(&file, &bytes).expect("written");
        let check = watch(folder.path(), &["db", "check"]);
        let text = stdout(&check) + &stderr(&check);
        assert_eq!(check.status.code(), Some(1), "{text}");
        assert!(text.contains("damaged") || text.contains("WRONG"), "{text}");
    }

    #[test]
    fn a_newer_store_needs_the_newer_program() {
        let folder = folder("", &[]);
        let file = folder.path().join("watch.db");
        drop(Sqlite::open(&file).expect("a store"));
        let database = Connection::open(&file).expect("opened");
        let version: i64 = database
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .expect("a version");
        let newer = format!("PRAGMA user_version = {}", version + 1);
        database.execute_batch(&newer).expect("written");
        drop(database);
        let before = fs::read(&file).expect("a store");
        let text = refused(&folder, 2);
        let versions = format!(
            "has version {}, but this version of crawler-cli knows versions up to {version}",
            version + 1
        );
        for part in [
            "watch.db: ",
            &versions,
            "run the newer program, or restore a backup",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            fs::read(&file).expect("a store") == before,
            "the store was changed"
        );
    }

    #[test]
    fn what_is_no_store_is_not_touched() {
        let folder = folder("", &[]);
        let file = folder.path().join("watch.db");
        let text = "a letter to a friend\n".repeat(500);
        fs::write(&file, &text).expect("written");
        let said = refused(&folder, 2);
        assert!(
            said.contains("watch.db: not a store of crawler-cli"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(&file).expect("a text"), text);

        fs::remove_file(&file).expect("removed");
        let database = Connection::open(&file).expect("opened");
        database
            .execute_batch("CREATE TABLE song (name TEXT)")
            .expect("written");
        drop(database);
        let said = refused(&folder, 2);
        assert!(
            said.contains("watch.db: not a store of crawler-cli"),
            "{said}"
        );
        let database = Connection::open(&file).expect("opened");
        let tables: i64 = database
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(tables, 1);
    }

    #[test]
    fn a_folder_that_is_missing_or_in_the_way_is_named() {
        let missing = folder("store.url = 'sqlite:nowhere/watch.db'\n", &[]);
        let text = refused(&missing, 2);
        assert!(text.contains("nowhere/watch.db: "), "{text}");
        let in_the_way = folder("", &[]);
        fs::create_dir(in_the_way.path().join("watch.db")).expect("a folder");
        let text = refused(&in_the_way, 2);
        assert!(text.contains("watch.db: "), "{text}");
    }

    #[test]
    #[ignore = "needs root for a tmpfs"]
    fn a_store_that_cannot_be_written_says_so() {
        let Some(disk) = Disk::mount("4m") else {
            return;
        };
        let folder = disk.folder(QUICK, &[]);
        drop(Sqlite::open(&disk.path().join("watch.db")).expect("a store"));
        disk.remount("ro");
        let text = refused(&folder, 2);
        assert!(text.contains("watch.db: "), "{text}");
        assert!(
            text.contains("the service needs to write it and its folder"),
            "{text}"
        );
        disk.remount("rw");
        Service::start(folder.path()).end();
    }

    /// What the service says that does not start.
    #[track_caller]
    fn refused(folder: &TempDir, status: i32) -> String {
        let output = watch(folder.path(), &["run"]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(output.stdout.is_empty(), "it listened: {output:?}");
        text
    }
}

mod disk {
    use super::*;

    #[test]
    #[ignore = "needs root for a tmpfs"]
    fn checks_pause_while_the_disk_is_full_and_go_on() {
        let Some(disk) = Disk::mount("48m") else {
            return;
        };
        let (site, urls) = good_site();
        let folder = disk.folder(QUICK, &urls);
        let mut running = Service::start(folder.path());
        running.page_with(
            "/metrics",
            "courser_check_results_total{class=\"ok\",code=\"2xx\"} ",
        );
        let filler = disk.path().join("filler");
        fill(&filler);
        running.line("the store cannot be written: no space left");
        let (status, why) = running.page("/readyz");
        assert!(
            status == 503 && why.contains("no space left"),
            "{status} {why}"
        );
        assert_eq!(running.page("/healthz").0, 200);
        running.page_with("/metrics", "courser_store_stopped 1");
        let said = stdout(&watch(folder.path(), &["status"]));
        assert!(said.contains("disk") || said.contains("space"), "{said}");
        // What is in flight ends; then nothing is asked any more.
        running.page_with("/metrics", "courser_check_inflight 0\n");
        let asked = site.requests().len();
        let refused = watch(
            folder.path(),
            &["add", "--set", "by-hand", &site.url("/new")],
        );
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(
            stderr(&refused).contains("no space left"),
            "{}",
            stderr(&refused)
        );
        assert_eq!(
            site.requests().len(),
            asked,
            "asked although nothing can be stored"
        );

        fs::remove_file(&filler).expect("removed");
        running.line("the store can be written again");
        running.page_with("/readyz", "ok");
        until("more is asked", || {
            site.requests().len() > asked + urls.len()
        });
        running.end();
        ok(folder.path(), &["db", "check"]);
        all_are_alive(folder.path(), urls.len());
        let only_good = ok(folder.path(), &["export", "--changes", "--since", "0"]);
        assert_eq!(only_good.lines().count(), urls.len(), "{only_good}");
    }

    #[test]
    #[ignore = "needs root for a tmpfs"]
    fn the_service_ends_in_time_while_the_disk_is_full_and_loses_nothing() {
        let Some(disk) = Disk::mount("48m") else {
            return;
        };
        let (_site, urls) = good_site();
        let job = schedule(
            "long",
            "echo $$ >> runs; exec sleep 1000",
            "max_attempts = 2",
        );
        let folder = disk.folder(&format!("limits.drain_timeout = '2s'\n{job}"), &urls);
        let runs = || {
            let runs = fs::read_to_string(folder.path().join("runs")).unwrap_or_default();
            runs.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        ok(folder.path(), &["schedule", "run", "long"]);
        let mut running = Service::start(folder.path());
        until("the command runs", || runs().len() == 1);
        until("all are checked", || {
            let lines = export(folder.path());
            lines
                .values()
                .filter(|line| line["state"] == "ALIVE")
                .count()
                == urls.len()
        });
        let filler = disk.path().join("filler");
        fill(&filler);
        running.line("the store cannot be written: no space left");
        running.signal(Signal::TERM);
        let status = running.wait();
        let log = running.rest_of_log();
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains("not everything could be stored"), "{log}");
        assert!(has_ended(&runs()[0]), "the command goes on");

        fs::remove_file(&filler).expect("removed");
        let running = Service::start(folder.path());
        until("the command runs again", || runs().len() == 2);
        running.end();
        ok(folder.path(), &["db", "check"]);
        assert_eq!(
            values(&ok(folder.path(), &["dlq", "list", "--json"])),
            [""; 0]
        );
        all_are_alive(folder.path(), urls.len());
    }

    /// A server whose 50 URLs are good.
    fn good_site() -> (Script, Vec<String>) {
        let site = Script::start(|_| response(200, "", ""));
        let urls = (0..50).map(|number| site.url(&format!("/{number}")));
        let urls = urls.collect();
        (site, urls)
    }

    #[track_caller]
    fn all_are_alive(folder: &Path, count: usize) {
        let lines = export(folder);
        assert_eq!(lines.len(), count);
        assert!(
            lines.values().all(|line| line["state"] == "ALIVE"),
            "{lines:?}"
        );
    }

    /// Takes all that is left.
    fn fill(path: &Path) {
        let mut file = fs::File::create(path).expect("a file");
        let mut size = 1 << 16;
        while size > 0 {
            match std::io::Write::write(&mut file, &vec![1; size]) {
                Ok(written) if written > 0 => {}
                _ => size /= 2,
            }
        }
    }
}

/// A small file system of its own.
struct Disk(TempDir);

impl Disk {
    /// `None`: this user cannot mount, which is said.
    fn mount(size: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can mount a tmpfs");
            return None;
        }
        let disk = Self(tempfile::tempdir().expect("a folder"));
        disk.run(
            "mount",
            &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"],
        );
        Some(disk)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A folder elsewhere whose store is on this disk.
    fn folder(&self, config: &str, urls: &[String]) -> TempDir {
        let store = format!("store.url = 'sqlite:{}/watch.db'\n", self.path().display());
        folder(&(store + config), urls)
    }

    fn remount(&self, how: &str) {
        self.run("mount", &["-o", &format!("remount,{how}")]);
    }

    fn run(&self, program: &str, args: &[&str]) {
        let output = Command::new(program).args(args).arg(self.path()).output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazy: a service may still be about to end.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[test]
fn too_few_files_slow_the_service_and_change_no_verdict() {
    let sites: Vec<Script> = (0..30)
        .map(|_| {
            Script::start(|_| {
                // Connections stay open for a while.
                thread::sleep(Duration::from_millis(50));
                response(200, "", "")
            })
        })
        .collect();
    let urls: Vec<String> = sites
        .iter()
        .flat_map(|site| (0..5).map(|number| site.url(&format!("/{number}"))))
        .collect();
    let folder = folder(QUICK, &urls);
    let mut running = Service::start_command(limited(folder.path(), FEW_FILES));
    running.line(
        "the process may have 48 open files: there are at most 12 connections instead of 512",
    );
    until("all are checked", || {
        let lines = export(folder.path());
        lines.len() == urls.len() && lines.values().all(|line| line["state"] == "ALIVE")
    });
    running.end();
    // With even fewer, connections fail, which says nothing about any URL.
    let asked: usize = sites.iter().map(|site| site.requests().len()).sum();
    let running = Service::start_command(limited(folder.path(), TOO_FEW_FILES));
    until("all are asked again", || {
        let now: usize = sites.iter().map(|site| site.requests().len()).sum();
        now > asked + 2 * urls.len()
    });
    running.end();
    ok(folder.path(), &["db", "check"]);
    let notices = notices(folder.path());
    let said = notices
        .iter()
        .filter(|text| text.contains("open files"))
        .count();
    assert_eq!(said, 2, "{notices:?}");
    for change in ok(folder.path(), &["export", "--changes", "--since", "0"]).lines() {
        let change: Value = serde_json::from_str(change).expect("JSON");
        assert_eq!(change["to"], "ALIVE", "{change}");
    }
}

/// For a moment the clock said that it was a year later. The process that was there then has ended.
#[test]
fn a_clock_that_was_ahead_leaves_no_url_alone() {
    let site = Script::start(|_| response(200, "", ""));
    let urls = [site.url("/asked"), site.url("/new")];
    let folder = folder(QUICK, &urls);
    let mut store = Sqlite::open(&folder.path().join("watch.db")).expect("a store");
    let later = Timestamp::now() + SignedDuration::from_hours(400 * 24);
    let cycle = store.begin_cycle(later).expect("written");
    store
        .end_cycle(cycle, &CycleCounts::default(), later)
        .expect("written");
    let given: Vec<_> = urls
        .iter()
        .map(|url| NewUrl::parse(url).expect("a URL"))
        .collect();
    store
        .submit("docs", Origin::Source, &given, later)
        .expect("written");
    drop(store);
    let running = Service::start(folder.path());
    until("both are asked", || site.requests().len() >= 4);
    running.end();
    let told = notices(folder.path());
    assert!(
        told.iter()
            .any(|text| text.starts_with("the clock was ahead, until ")),
        "{told:?}"
    );
    ok(folder.path(), &["db", "check"]);
}

/// The service with this many open files at most.
fn limited(folder: &Path, files: u32) -> Command {
    let run = service(folder);
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n \"$0\" && exec \"$@\""]);
    shell
        .arg(files.to_string())
        .arg(run.get_program())
        .args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(std::process::Stdio::null());
    shell
}

mod stopped {
    use std::io::{BufReader, Write as _};
    use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_process_that_was_stopped_judges_nothing_wrong_and_keeps_the_rate() {
        let sites = [Site::start(), Site::start()];
        let urls: Vec<String> = sites
            .iter()
            .flat_map(|site| (0..30).map(|number| format!("http://{}/{number}", site.address)))
            .collect();
        let config = QUICK
            .replace("per_host_rate = 0", &format!("per_host_rate = {RATE}"))
            .replace("timeout = '10s'", "timeout = '4s'");
        let folder = folder(&config, &urls);
        let running = Service::start(folder.path());
        // All have been checked once, and are due again.
        let all_asked = |count: usize| sites.iter().all(|site| site.count() >= count);
        until("all are asked", || all_asked(35));
        running.signal(Signal::STOP);
        let before: Vec<usize> = sites.iter().map(Site::count).collect();
        for site in &sites {
            site.drop_connections();
        }
        // Longer than the time limit of a request.
        thread::sleep(Duration::from_secs(6));
        running.signal(Signal::CONT);
        until("all are asked again", || {
            sites
                .iter()
                .zip(&before)
                .all(|(site, before)| site.count() >= before + 60)
        });
        for site in &sites {
            // What was sent before a second began may arrive within it: one request for each connection.
            let most = site.most_within_a_second();
            assert!(
                most <= RATE + CONNECTIONS,
                "{most} requests within a second"
            );
        }
        running.end();
        ok(folder.path(), &["db", "check"]);
        let changes = values(&ok(folder.path(), &["export", "--changes", "--since", "0"]));
        assert!(
            changes.iter().all(|change| change["to"] == "ALIVE"),
            "{changes:?}"
        );
        assert_eq!(changes.len(), urls.len());
    }

    /// A server that keeps connections open until the test drops them.
    struct Site {
        address: SocketAddr,
        asked_at: Arc<Mutex<Vec<Instant>>>,
        connections: Arc<Mutex<Vec<TcpStream>>>,
    }

    impl Site {
        fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let site = Self {
                address: listener.local_addr().expect("an address"),
                asked_at: Arc::default(),
                connections: Arc::default(),
            };
            let (asked_at, connections) =
                (Arc::clone(&site.asked_at), Arc::clone(&site.connections));
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let other = stream.try_clone().expect("another descriptor");
                    connections.lock().expect("no panic").push(other);
                    let asked_at = Arc::clone(&asked_at);
                    thread::spawn(move || serve(stream, &asked_at));
                }
            });
            site
        }

        fn count(&self) -> usize {
            self.asked_at.lock().expect("no panic").len()
        }

        fn drop_connections(&self) {
            for stream in self.connections.lock().expect("no panic").drain(..) {
                // The peer may have closed it.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }

        fn most_within_a_second(&self) -> usize {
            let times = self.asked_at.lock().expect("no panic");
            let within = |from: &Instant| {
                let end = *from + Duration::from_secs(1);
                times.iter().filter(|at| *at >= from && **at < end).count()
            };
            times.iter().map(within).max().unwrap_or_default()
        }
    }

    fn serve(mut stream: TcpStream, asked_at: &Mutex<Vec<Instant>>) {
        let mut reader = BufReader::new(stream.try_clone().expect("another descriptor"));
        loop {
            let head = common::read_head(&mut reader);
            if head.is_empty() {
                return;
            }
            let status = match head.contains("/robots.txt") {
                true => 404,
                false => {
                    asked_at.lock().expect("no panic").push(Instant::now());
                    200
                }
            };
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    const RATE: usize = 20;
    /// The usual number to a host.
    const CONNECTIONS: usize = 2;
}

mod jobs {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let script = "trap '' TERM; sleep 1000 & echo $$ $! > processes.new; mv processes.new processes; while :; do sleep 1000; done";
        let folder = folder(
            // Long enough for the script to begin on a busy machine.
            &schedule("stuck", script, "timeout = '5s'\nmax_attempts = 1"),
            &[],
        );
        ok(folder.path(), &["schedule", "run", "stuck"]);
        let running = Service::start(folder.path());
        let letters = letters(folder.path(), 1);
        let why = &letters[0];
        assert!(why.to_string().contains("limit of 5s"), "{why}");
        let processes = fs::read_to_string(folder.path().join("processes")).expect("written");
        for process in processes.split_whitespace() {
            until("the process has ended", || has_ended(process));
        }
        assert_eq!(running.page("/healthz").0, 200);
        running.end();
        ok(folder.path(), &["db", "check"]);
    }

    #[test]
    fn a_command_that_ignores_the_end_of_the_service_is_killed_in_time_and_runs_again() {
        let script = "trap '' TERM; echo $$ >> runs; while :; do sleep 0.1; done";
        let job = schedule("stuck", script, "max_attempts = 1");
        let config = format!("limits.drain_timeout = '2s'\n{job}");
        let folder = folder(&config, &[]);
        let runs = || {
            let runs = fs::read_to_string(folder.path().join("runs")).unwrap_or_default();
            runs.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        ok(folder.path(), &["schedule", "run", "stuck"]);
        for count in 1..=2 {
            let running = Service::start(folder.path());
            until("the command runs", || runs().len() == count);
            let log = running.end();
            let ended = log
                .lines()
                .find(|line| line.contains("ended"))
                .expect("it ended");
            assert!(
                ended.contains("jobs_kept=1") && ended.contains("jobs_left=0"),
                "{log}"
            );
            assert!(has_ended(&runs()[count - 1]), "the command goes on");
        }
        assert_eq!(letters(folder.path(), 0), Vec::<Value>::new());
        ok(folder.path(), &["db", "check"]);
    }

    #[test]
    fn a_command_that_kills_the_service_is_a_dead_letter_after_its_attempts() {
        let site = Script::start(|_| response(200, "", ""));
        let script = "echo one >> attempts; kill -9 $PPID; sleep 1000";
        let config = schedule("killer", script, "max_attempts = 3");
        let folder = folder(&config, &[site.url("/")]);
        ok(folder.path(), &["schedule", "run", "killer"]);
        for _ in 0..3 {
            let mut running = Service::start(folder.path());
            assert_eq!(running.wait().signal(), Some(9));
            ok(folder.path(), &["db", "check"]);
        }
        let running = Service::start(folder.path());
        let letters = letters(folder.path(), 1);
        assert_eq!(letters[0]["reason"], "poison", "{letters:?}");
        assert_eq!(letters[0]["attempts"], 3, "{letters:?}");
        running.page_with("/metrics", "courser_dlq_entries{reason=\"poison\"} 1");
        running.page_with("/metrics", "courser_check_stored_total ");
        running.end();
        let attempts = fs::read_to_string(folder.path().join("attempts")).expect("written");
        assert_eq!(attempts.lines().count(), 3);
        assert_eq!(export(folder.path()).len(), 1);
    }

    #[test]
    fn expressions_that_never_fire_or_are_none_are_named_with_their_place() {
        for (cron, column, why) in [
            ("0 0 30 2 *", 13, "never fires: no year has such a day"),
            ("61 * * * *", 9, "out of bounds"),
            ("0 0 * *", 16, "and there are 4"),
        ] {
            let config = format!(
                "[[schedule]]\nname = 'x'\ncron = '{cron}'\njob = {{ command = ['true'] }}\n"
            );
            let folder = folder(&config, &[]);
            for args in [&["config", "check"][..], &["run"]] {
                let output = watch(folder.path(), args);
                let text = stderr(&output);
                assert_eq!(output.status.code(), Some(2), "{cron}: {text}");
                let place = format!("watch.toml:3:{column}: schedule[0].cron: \"{cron}\": ");
                assert!(
                    text.starts_with(&place) && text.contains(why),
                    "{place}{why}: {text}"
                );
            }
        }
    }

    /// The dead letters, when there are so many.
    fn letters(folder: &Path, count: usize) -> Vec<Value> {
        let mut letters = Vec::new();
        until("dead letters", || {
            letters = values(&ok(folder, &["dlq", "list", "--json"]));
            letters.len() >= count
        });
        letters
    }
}

/// A configuration with a command that is started by hand.
fn schedule(name: &str, script: &str, more: &str) -> String {
    format!(
        "{QUICK}\n[[schedule]]\nname = '{name}'\ncron = '0 0 29 2 *'\n{more}\njob = {{ command = ['sh', '-c', \"\"\"{script}\"\"\"] }}\n"
    )
}

/// Ended processes may wait for their parent.
fn has_ended(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

/// What a command prints that succeeds.
#[track_caller]
fn ok(folder: &Path, args: &[&str]) -> String {
    let output: Output = watch(folder, args);
    let text = stdout(&output);
    assert!(
        output.status.success(),
        "{args:?}: {text}{}",
        stderr(&output)
    );
    text
}

fn values(lines: &str) -> Vec<Value> {
    let values = lines.lines().map(serde_json::from_str);
    values.collect::<Result<_, _>>().expect("JSON lines")
}

fn export(folder: &Path) -> BTreeMap<String, Value> {
    let lines = values(&ok(folder, &["export", "--json"]));
    let named = lines
        .into_iter()
        .map(|line| (line["url"].to_string(), line));
    named.collect()
}

/// What the operator was told.
fn notices(folder: &Path) -> Vec<String> {
    let mut store = Sqlite::open_read_only(&folder.join("watch.db")).expect("readable");
    let notices = store.notices(NoticeId(0), 1_000).expect("read");
    notices.into_iter().map(|(_, notice)| notice.text).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Fewer than the URLs of these tests need at once.
const FEW_FILES: u32 = 48;
/// What the service needs without any connection, and a few more.
const TOO_FEW_FILES: u32 = 22;

/// URLs are checked again and again.
const QUICK: &str = "\
limits.allow_private = true
limits.per_host_rate = 0
limits.timeout = '10s'
policy.alive_interval = ['300ms', '1s']
policy.recheck_net = ['100ms']
policy.report_count = 1
policy.report_after = 0
reconcile.interval = '100ms'
reconcile.jitter = ['10ms', '20ms']
set = [{ name = 'docs', urls = 'urls.txt' }]
";
