//! The bad days of `crawler-cli watch run`: stores that cannot be used, a full disk, too few files, and a clock that was
//! ahead. Each ends with a message that says what is wrong, and nothing is lost. A process that is stopped for a while is
//! in the simulation, `watch_sim`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use store::sqlite::Sqlite;
use store::{NoticeId, WatchStore as _};
use tempfile::TempDir;

use crate::common::service::{PATIENCE, Service, folder, service, stdout, watch};
use crate::common::{Script, response, stderr};

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
        let disk = Disk::mount("4m");
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
        let disk = Disk::mount("48m");
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
        let disk = Disk::mount("48m");
        let (_site, urls) = good_site();
        let folder = disk.folder(&format!("limits.drain_timeout = '2s'\n{QUICK}"), &urls);
        let mut running = Service::start(folder.path());
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

        fs::remove_file(&filler).expect("removed");
        Service::start(folder.path()).end();
        ok(folder.path(), &["db", "check"]);
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
    fn mount(size: &str) -> Self {
        let disk = Self(tempfile::tempdir().expect("a folder"));
        disk.run(
            "mount",
            &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"],
        );
        disk
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
limits.timeout = '60s'
policy.alive_interval = ['300ms', '1s']
policy.recheck_net = ['100ms']
policy.report_count = 1
policy.report_after = 0
reconcile.interval = '100ms'
reconcile.jitter = ['10ms', '20ms']
set = [{ name = 'docs', urls = 'urls.txt' }]
";
