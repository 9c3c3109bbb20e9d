//! A worker whose network to the server is cut for a while: how soon it stops to ask, and how soon others go on.

use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use super::kills::{end, export, service, wait};
use super::sites::Sites;
use crate::server::{Cluster, Proxy, numbers};

/// Cuts one of two services of watch off from their server.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// How long the network is cut, in seconds
    #[arg(short, long, default_value = "90")]
    seconds: u64,

    /// URLs of each host
    #[arg(short, long, default_value = "400")]
    urls: usize,

    /// Hosts
    #[arg(long, default_value = "10")]
    hosts: usize,
}

/// The lease of the services, the shortest that there is.
const LEASE: Duration = Duration::from_secs(10);

/// Runs. The exit code is 1 if the worker asked for too long, others went on too late, or something was stored twice.
///
/// # Errors
/// PostgreSQL or crawler-cli cannot be run.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let sites = Sites::start(args.hosts)?;
    fs::write(folder.path().join("urls.txt"), sites.list(args.urls))?;
    let urls = (args.urls * args.hosts) as f64;
    let cluster = Cluster::new(&["max_connections=100"]);
    let store = cluster.database();
    let proxy = Proxy::new(cluster.port());
    // About half of the URLs are left at the end of the cut.
    let delay = args.seconds * 1_000 * 2 / args.urls.max(1) as u64;
    let mut cut_off = service(folder.path(), &proxy.url(&store), delay, 1)?;
    let began = Instant::now();
    while sites.last_of("service-1").is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            return Err("the service asks nothing".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let mut other = service(folder.path(), &store, delay, 2)?;
    // Both have their shares by then, or the other one has nothing.
    thread::sleep(Duration::from_secs(3));
    proxy.refuse();
    proxy.cut();
    let cut = Instant::now();
    thread::sleep(Duration::from_secs(args.seconds));
    let stopped = sites.last_of("service-1").ok_or("it asked nothing")?;
    let stopped = stopped.saturating_duration_since(cut);
    let taken = sites.taken_over("service-1", "service-2", cut);
    let taken = taken.map(|at| at.saturating_duration_since(cut));
    proxy.accept();
    wait(&cluster, &store, urls)?;
    end(&mut cut_off)?;
    end(&mut other)?;
    let judged = export(folder.path(), 2)?.len() as f64;
    let twice = "SELECT count(*) - count(DISTINCT url) FROM event";
    let twice = numbers(&cluster, &store, twice)?[0];
    let early = sites.early(Duration::from_millis(delay / 2));
    let secs = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    println!(
        "cut for {} s, lease {} s: it asked for {} more; others had all of its hosts after {}",
        args.seconds,
        LEASE.as_secs(),
        secs(stopped),
        taken.map_or("never".to_owned(), secs)
    );
    println!(
        "{judged} of {urls} URLs judged, {twice} twice; {} hand-overs, too early: {} at hand-overs, {} else",
        early.hand_overs, early.at_hand_over, early.else_where
    );
    let in_time = taken.is_some_and(|time| time <= LEASE + Duration::from_secs(10));
    let is_right = stopped < LEASE && in_time && judged == urls && twice == 0.0;
    Ok(match is_right && early.else_where == 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
