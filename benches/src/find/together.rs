//! A search that several processes share by PostgreSQL, while processes are killed, beside the same search by one process.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::mirror::{Mirror, Shape};
use crate::process::cores;
use crate::server::{Cluster, server_time};

/// Searches with several processes, some of which are killed, and compares the results with those of one process.
#[derive(clap::Parser, Debug)]
pub struct TogetherArgs {
    /// Directories, at least
    #[arg(short, long, default_value = "100000")]
    directories: usize,

    /// Hosts, with the same number of directories each
    #[arg(long, default_value = "8")]
    hosts: usize,

    /// Processes
    #[arg(short, long, default_value = "4")]
    processes: usize,

    /// Seconds between two kills of a process; 0: none is killed
    #[arg(short, long, default_value = "1")]
    kill: f64,
}

/// Measures.
///
/// # Errors
/// PostgreSQL or crawler-cli cannot be run.
pub fn together(args: &TogetherArgs) -> Result<ExitCode, Box<dyn Error>> {
    let program = std::env::current_exe()?.with_file_name("crawler-cli");
    let cores = cores()?;
    let last = cores.last().copied().unwrap_or(0);
    let each = args.directories.div_ceil(args.hosts.max(1));
    // No directory lists what one above it lists: that would be taken for a loop.
    let shape = Shape::new(&[9, 10, each.div_ceil(90)], 0);
    let mirrors = (0..args.hosts).map(|_| Mirror::start(&shape, None, last));
    let mirrors = mirrors.collect::<Result<Vec<_>, _>>()?;
    let starts: Vec<String> = mirrors.iter().map(Mirror::url).collect();
    let folder = tempfile::tempdir()?;
    let find = |more: &[&str], out: &str| -> Result<Child, Box<dyn Error>> {
        let mut command = Command::new(&program);
        command.arg("find").args(&starts).args(["-type", "d"]);
        command.args(["--robots=off", "--summary=none"]).args(more);
        command.stdin(Stdio::null());
        command.stdout(File::create(folder.path().join(out))?);
        Ok(command.spawn()?)
    };
    let began = Instant::now();
    find(&[], "one")?.wait()?;
    let alone = began.elapsed();
    let expected = sorted(&folder.path().join("one"))?;

    let cluster = Cluster::new(&["max_connections=50"]);
    let database = cluster.database();
    let shared = ["--state", &database, "--lease", "5"];
    let began = Instant::now();
    let start = |number: usize| find(&shared, &format!("part-{number}"));
    let mut running = (0..args.processes)
        .map(start)
        .collect::<Result<Vec<_>, _>>()?;
    let (mut kills, mut next) = (0, Instant::now() + Duration::from_secs_f64(args.kill));
    let mut ended = 0;
    while ended < running.len() {
        ended = 0;
        for child in &mut running {
            ended += usize::from(child.try_wait()?.is_some());
        }
        if ended == 0 && args.kill > 0.0 && Instant::now() >= next {
            // Another one each time.
            let victim = kills % running.len();
            running[victim].kill()?;
            running[victim].wait()?;
            running[victim] = start(kills + args.processes)?;
            kills += 1;
            next = Instant::now() + Duration::from_secs_f64(args.kill);
        }
        thread::sleep(Duration::from_millis(20));
    }
    let together = began.elapsed();
    let server = server_time(&cluster)?;
    find(&[&shared[..], &["--results"]].concat(), "all")?.wait()?;
    let mut found = sorted(&folder.path().join("all"))?;
    let results = found.len();
    found.dedup();
    let twice = results - found.len();
    let is_same = found == expected;
    println!(
        "directories  processes  kills  one process s  together s  server us/dir  twice  same set"
    );
    println!(
        "{:11}  {:9}  {kills:5}  {:13.1}  {:10.1}  {:13.1}  {twice:5}  {}",
        expected.len(),
        args.processes,
        alone.as_secs_f64(),
        together.as_secs_f64(),
        server.as_secs_f64() * 1e6 / expected.len().max(1) as f64,
        if is_same { "yes" } else { "NO" },
    );
    let is_right = is_same && twice == 0 && expected.len() > args.directories;
    Ok(match is_right {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn sorted(path: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let lines = BufReader::new(File::open(path)?).lines();
    let mut lines = lines.collect::<Result<Vec<_>, _>>()?;
    lines.sort_unstable();
    Ok(lines)
}
