//! Services that share a store, while they and the server are killed, beside one service that is not.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::sites::Sites;
use crate::find::finder;
use crate::server::{Cluster, numbers};

/// Kills services of watch and their server, and compares the results with those of one service.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// URLs of each host
    #[arg(short, long, default_value = "2000")]
    urls: usize,

    /// Hosts
    #[arg(long, default_value = "40")]
    hosts: usize,

    /// Milliseconds between two requests to a host
    #[arg(short, long, default_value = "50")]
    delay: u64,

    /// Services
    #[arg(short, long, default_value = "4")]
    services: usize,

    /// How long services are killed, one each second
    #[arg(short, long, default_value = "10")]
    minutes: f64,

    /// How often the server is killed meanwhile
    #[arg(long, default_value = "10")]
    server_kills: u32,
}

/// Runs. The exit code is 1 if something was lost, stored twice, or asked too early.
///
/// # Errors
/// PostgreSQL or crawler-cli cannot be run.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let sites = Sites::start(args.hosts)?;
    fs::write(folder.path().join("urls.txt"), sites.list(args.urls))?;
    let urls = (args.urls * args.hosts) as f64;
    let cluster = Cluster::new(&["max_connections=100"]);
    let alone = alone(folder.path(), &cluster, urls)?;
    sites.forget();

    let store = cluster.database();
    let start = |number: usize| service(folder.path(), &store, args.delay, number);
    let mut services = (0..args.services)
        .map(start)
        .collect::<Result<Vec<_>, _>>()?;
    let (began, length) = (Instant::now(), Duration::from_secs_f64(args.minutes * 60.0));
    let between = length / (args.server_kills + 1);
    let (mut kills, mut server_kills) = (0, 0);
    while began.elapsed() < length {
        thread::sleep(Duration::from_secs(1));
        if server_kills < args.server_kills && began.elapsed() >= between * (server_kills + 1) {
            cluster.kill();
            cluster.start();
            server_kills += 1;
        }
        let victim = kills % services.len();
        services[victim].kill()?;
        services[victim].wait()?;
        services[victim] = start(args.services + kills)?;
        kills += 1;
        if began.elapsed().as_secs() % 60 == 0 {
            let left = numbers(&cluster, &store, NEW)?;
            eprintln!(
                "{:4} s: {} known URLs left",
                began.elapsed().as_secs(),
                left[0]
            );
        }
    }
    let at_end = numbers(&cluster, &store, NEW)?[0];
    wait(&cluster, &store, urls)?;
    for service in &mut services {
        end(service)?;
    }
    let together = export(folder.path(), args.services + kills - 1)?;
    let twice = "SELECT count(*) - count(DISTINCT url) FROM event";
    let due = "SELECT count(*) FROM due";
    let letters = "SELECT count(*) FROM dead_letter";
    let [twice, due, letters] = [twice, due, letters].map(|query| numbers(&cluster, &store, query));
    let (twice, due, letters) = (twice?[0], due?[0], letters?[0]);
    let check = hand(folder.path(), args.services + kills - 1, &["db", "check"]).status()?;
    // Requests travel for different times on a busy machine.
    let early = sites.early(Duration::from_millis(args.delay / 2));
    let is_same = alone == together;
    println!(
        "{urls} URLs of {} hosts, {} services, {kills} killed, the server killed {server_kills} times in {:.0} s; {at_end} known URLs were left then",
        args.hosts,
        args.services,
        length.as_secs_f64()
    );
    println!(
        "the same results as one service: {}; changes stored twice: {twice}; due rows: {due}; dead letters: {letters}; db check: {check}",
        if is_same { "yes" } else { "NO" }
    );
    println!(
        "{} requests, {} hand-overs; too early: {} at hand-overs, {} else",
        early.requests, early.hand_overs, early.at_hand_over, early.else_where
    );
    let is_right = is_same && twice == 0.0 && due == urls && letters == 0.0 && check.success();
    let is_polite = early.at_hand_over <= early.hand_overs && early.else_where == 0;
    Ok(match is_right && is_polite {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// URLs that were never answered.
const NEW: &str = "SELECT coalesce(sum(count), 0) FROM watch_count WHERE kind = 0 AND code = 0";

/// What one service finds, with a store of its own.
fn alone(
    folder: &Path,
    cluster: &Cluster,
    urls: f64,
) -> Result<BTreeMap<String, Value>, Box<dyn Error>> {
    let store = cluster.database();
    let began = Instant::now();
    let mut child = service(folder, &store, 0, usize::MAX)?;
    wait(cluster, &store, urls)?;
    println!(
        "one service: {:.0} URLs/s",
        urls / began.elapsed().as_secs_f64()
    );
    end(&mut child)?;
    export(folder, usize::MAX)
}

/// Waits until so many URLs are read from the set and judged.
pub(super) fn wait(cluster: &Cluster, store: &str, urls: f64) -> Result<(), Box<dyn Error>> {
    let mut last = (0.0, Instant::now());
    let count = "SELECT coalesce(sum(count), 0) FROM watch_count WHERE kind = 0";
    loop {
        thread::sleep(Duration::from_millis(500));
        // The first service makes the tables.
        let tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'watch_count'";
        if numbers(cluster, store, tables)?[0] == 0.0 {
            continue;
        }
        let (new, all) = (
            numbers(cluster, store, NEW)?[0],
            numbers(cluster, store, count)?[0],
        );
        if all >= urls && new == 0.0 {
            return Ok(());
        }
        if all - new != last.0 {
            last = (all - new, Instant::now());
        }
        if last.1.elapsed() > Duration::from_secs(120) {
            return Err(format!("nothing was judged for 120 s, {new} URLs are left").into());
        }
    }
}

pub(super) fn service(
    folder: &Path,
    store: &str,
    delay: u64,
    number: usize,
) -> Result<Child, Box<dyn Error>> {
    let config = format!(
        "[store]\nurl = \"{store}\"\nlease = \"10s\"\nspool = \"spool\"\n\
         [limits]\nallow_private = true\nper_host_rate = 0\nper_host_delay = \"{delay}ms\"\nper_host_connections = 1\n\
         user_agent = \"service-{number}\"\n\
         [policy]\nrecheck_410 = [\"30d\"]\nrecheck_404 = [\"30d\"]\n\
         [guard]\nhost_flip = {{ share = 0.9 }}\n\
         [[set]]\nname = \"all\"\nurls = \"urls.txt\"\n"
    );
    fs::write(folder.join(name(number)), config)?;
    let log = File::options()
        .append(true)
        .create(true)
        .open(folder.join("log"))?;
    let mut command = hand(folder, number, &["run"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    Ok(command.spawn()?)
}

fn name(number: usize) -> String {
    format!("{number}.toml")
}

fn hand(folder: &Path, number: usize, words: &[&str]) -> Command {
    // It was found before.
    let program = finder().unwrap_or_default();
    let mut command = Command::new(program);
    command.arg("watch").args(words);
    command
        .args(["--config", &name(number)])
        .current_dir(folder);
    command
}

pub(super) fn end(service: &mut Child) -> Result<(), Box<dyn Error>> {
    let process = i32::try_from(service.id())?;
    let process = rustix::process::Pid::from_raw(process).ok_or("no process")?;
    rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
    service.wait()?;
    Ok(())
}

/// What is known about each URL, apart from times.
pub(super) fn export(
    folder: &Path,
    number: usize,
) -> Result<BTreeMap<String, Value>, Box<dyn Error>> {
    let output = hand(folder, number, &["export", "--json"]).output()?;
    let mut all = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let mut value: Value = serde_json::from_str(line)?;
        let known = value.as_object_mut().ok_or("not an object")?;
        known.retain(|key, _| ["url", "class", "cause", "status", "state"].contains(&key.as_str()));
        let url = known["url"].as_str().unwrap_or_default().to_owned();
        all.insert(url, value);
    }
    Ok(all)
}
