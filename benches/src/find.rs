//! `crawler-cli find` on a tree that nginx shows, beside the bound that wrk sets by fetching the same listings, and beside
//! other programs that can search it: the server on one core, each client as a process of its own on another, in turn.
//!
//! What was found is compared with what find(1) finds in the directory that is shown, and the requests are counted in
//! the server's log, each time.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::compare::sample::{median, wrk_numbers};
use crate::process::{cores, installed, spawn_on};

/// Compares crawler-cli find with wrk's time for the same listings, and with others that are installed.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Rounds; each program runs once in each
    #[arg(short, long, default_value = "5")]
    rounds: usize,

    /// Directories, in two levels
    #[arg(short, long, default_value = "5000")]
    directories: usize,

    /// Files
    #[arg(short, long, default_value = "100000")]
    files: usize,

    /// Connections
    #[arg(short, long, default_value = "64")]
    connections: usize,
}

/// Runs it; fails if something was found that is not there, or the other way round.
///
/// # Errors
/// A program is missing or failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let all = cores()?;
    let server_core = *all.first().ok_or("no core")?;
    let client_core = *all.get(1).unwrap_or(&server_core);
    let finder = finder()?;
    for program in ["nginx", "wrk"] {
        if !installed(program) && !Path::new("/usr/sbin").join(program).exists() {
            return Err(format!("{program} is not installed").into());
        }
    }
    let place = tempfile::tempdir()?;
    let tree = Tree::plant(place.path(), args)?;
    let server = Server::start(place.path(), &tree, server_core)?;
    let mut times: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut memory = 0;
    let peers = ["rclone", "wget2"]
        .into_iter()
        .filter(|name| installed(name));
    let peers: Vec<&str> = peers.collect();
    for round in 0..args.rounds {
        let bound = server.bound(&tree, args.connections, client_core)?;
        note(&mut times, "wrk", bound);
        let found = server.find(&finder, args.connections, client_core)?;
        if found.names != tree.wanted {
            return Err(
                format!("found {} of {} files", found.names.len(), tree.wanted.len()).into(),
            );
        }
        if found.requests != tree.directories.len() {
            return Err(format!(
                "{} requests for {} directories",
                found.requests,
                tree.directories.len()
            )
            .into());
        }
        memory = memory.max(found.memory);
        note(&mut times, "crawler-cli find", found.seconds);
        for peer in &peers {
            let seconds = server.peer(peer, args.connections, client_core, place.path())?;
            note(&mut times, peer, seconds);
        }
        eprint!("\rround {} of {}", round + 1, args.rounds);
    }
    eprintln!();
    let bound = median(times[0].1.iter().copied());
    println!(
        "{} listings, {} files, {} of them wanted; {} connections; medians of {} rounds",
        tree.directories.len(),
        args.files,
        tree.wanted.len(),
        args.connections,
        args.rounds
    );
    for (name, seconds) in &times {
        let own = median(seconds.iter().copied());
        println!("{name:<18} {own:>7.3} s  {:>5.2} x the bound", own / bound);
    }
    println!(
        "crawler-cli find: the same set as find(1), one request a directory, at most {memory} KiB"
    );
    Ok(ExitCode::SUCCESS)
}

fn note<'n>(times: &mut Vec<(&'n str, Vec<f64>)>, name: &'n str, seconds: f64) {
    match times.iter_mut().find(|(known, _)| *known == name) {
        Some((_, all)) => all.push(seconds),
        None => times.push((name, vec![seconds])),
    }
}

/// The program beside this one.
fn finder() -> Result<PathBuf, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let finder = own.with_file_name("crawler-cli");
    match finder.exists() {
        true => Ok(finder),
        false => Err("build it first: cargo build --release -p crawler-cli".into()),
    }
}

/// Directories and files on disk.
struct Tree {
    root: PathBuf,
    /// Paths of all directories, with a `/` at the end.
    directories: Vec<String>,
    /// Paths of the wanted files, as find(1) has them.
    wanted: BTreeSet<String>,
}

impl Tree {
    fn plant(place: &Path, args: &Args) -> Result<Self, Box<dyn Error>> {
        let root = place.join("tree");
        fs::create_dir(&root)?;
        let mut directories = vec!["/".to_owned()];
        for number in 0..args.directories {
            let (above, own) = (number % 50, number / 50);
            let path = match own {
                0 => format!("/d{above}/"),
                _ => format!("/d{above}/e{own}/"),
            };
            fs::create_dir(root.join(&path[1..]))?;
            directories.push(path);
        }
        for number in 0..args.files {
            let directory = &directories[number % directories.len()];
            let name = match number % 645 {
                0 => format!("wanted-{number}.xml"),
                _ => format!("file-{number}.bin"),
            };
            fs::write(root.join(&directory[1..]).join(name), b"x")?;
        }
        let find = Command::new("find")
            .arg(&root)
            .args(["-name", NAME, "-type", "f", "-printf", "/%P\\n"])
            .output()?;
        let wanted = String::from_utf8(find.stdout)?;
        Ok(Self {
            root,
            directories,
            wanted: wanted.lines().map(str::to_owned).collect(),
        })
    }
}

const NAME: &str = "wanted-*.xml";

/// nginx, until it is dropped.
struct Server {
    child: Child,
    url: String,
    log: PathBuf,
}

struct Found {
    names: BTreeSet<String>,
    requests: usize,
    seconds: f64,
    /// KiB
    memory: i64,
}

impl Server {
    fn start(place: &Path, tree: &Tree, core: usize) -> Result<Self, Box<dyn Error>> {
        // Free a moment ago, which is as much as can be known.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = place.join("access.log");
        let mut config = String::new();
        writeln!(
            config,
            "daemon off; worker_processes 1; pid {pid}; error_log {errors};\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log {log} combined buffer=64k flush=1s; keepalive_requests 100000000;\n\
             server {{ listen 127.0.0.1:{port}; root {root}; autoindex on; }} }}",
            pid = place.join("pid").display(),
            errors = place.join("errors.log").display(),
            log = log.display(),
            root = tree.root.display(),
        )?;
        // As root, its worker would be somebody who may not read here.
        if nix::unistd::geteuid().is_root() {
            config.insert_str(0, "user root; ");
        }
        let file = place.join("nginx.conf");
        fs::write(&file, config)?;
        let nginx = match installed("nginx") {
            true => "nginx",
            false => "/usr/sbin/nginx",
        };
        let mut command = Command::new(nginx);
        command.arg("-p").arg(place).arg("-c").arg(&file);
        command.stdin(Stdio::null());
        let child = spawn_on(core, &mut command)?;
        let server = Self {
            child,
            url: format!("http://127.0.0.1:{port}/"),
            log,
        };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > Duration::from_secs(10) {
                return Err("nginx did not start".into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// The seconds that the listings take by wrk's rate.
    fn bound(&self, tree: &Tree, connections: usize, core: usize) -> Result<f64, Box<dyn Error>> {
        let mut lua = "local paths = {".to_owned();
        for path in &tree.directories {
            write!(lua, "\"{path}\",")?;
        }
        lua += "}\nlocal at = 0\nrequest = function()\n at = at % #paths + 1\n \
                return wrk.format(nil, paths[at])\nend\n";
        let mut script = tempfile::NamedTempFile::new()?;
        script.write_all(lua.as_bytes())?;
        let mut command = Command::new("wrk");
        command
            .args(["--threads", "1", "--duration", "2"])
            .args(["--connections", &connections.to_string()])
            .arg("--script")
            .arg(script.path())
            .arg(&self.url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let output = spawn_on(core, &mut command)?.wait_with_output()?;
        let output = String::from_utf8(output.stdout)?;
        let (_, rate) = wrk_numbers(&output).ok_or("wrk printed something else than expected")?;
        Ok(tree.directories.len() as f64 / rate)
    }

    fn find(
        &self,
        finder: &Path,
        connections: usize,
        core: usize,
    ) -> Result<Found, Box<dyn Error>> {
        self.forget()?;
        let mut command = Command::new(finder);
        command
            .args([
                "find",
                &self.url,
                "-name",
                NAME,
                "-type",
                "f",
                "--robots=off",
            ])
            .args(["-j", &connections.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let began = Instant::now();
        let output = spawn_on(core, &mut command)?.wait_with_output()?;
        let seconds = began.elapsed().as_secs_f64();
        if !output.status.success() {
            return Err(format!("crawler-cli ended with {}", output.status).into());
        }
        let names = String::from_utf8(output.stdout)?;
        let names = names.lines().filter_map(|url| url.strip_prefix(&self.url));
        Ok(Found {
            names: names.map(|name| format!("/{name}")).collect(),
            requests: self.requests()?,
            seconds,
            // Of the largest child; the others are small.
            memory: getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss(),
        })
    }

    fn peer(
        &self,
        name: &str,
        connections: usize,
        core: usize,
        place: &Path,
    ) -> Result<f64, Box<dyn Error>> {
        let mut command = Command::new(name);
        let connections = connections.to_string();
        match name {
            "rclone" => command
                .args([
                    "lsf",
                    "-R",
                    "--files-only",
                    "--http-no-head",
                    "--checkers",
                    &connections,
                ])
                .args(["--include", NAME, "--http-url", &self.url, ":http:"]),
            _ => command
                .args(["--spider", "-r", "-np", "-q", "--max-threads", &connections])
                .arg(&self.url),
        };
        command.current_dir(place).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        spawn_on(core, &mut command)?.wait()?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Empties the log, once what the last client has done is in it.
    fn forget(&self) -> Result<(), Box<dyn Error>> {
        self.requests()?;
        fs::OpenOptions::new()
            .write(true)
            .open(&self.log)?
            .set_len(0)?;
        Ok(())
    }

    /// The requests in the log, when no more come.
    fn requests(&self) -> Result<usize, Box<dyn Error>> {
        let mut last = None;
        loop {
            thread::sleep(Duration::from_millis(1200)); // it is flushed each second
            let lines = fs::read(&self.log)?
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count();
            if last.replace(lines) == Some(lines) {
                return Ok(lines);
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // With its worker, which SIGKILL would leave behind.
        if let Ok(pid) = self.child.id().try_into() {
            let pid = nix::unistd::Pid::from_raw(pid);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
        }
        let _ = self.child.wait();
    }
}
