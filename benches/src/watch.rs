//! `crawler-cli watch run` in cases with bars: URLs a minute with every result stored, latency, memory, the processor time
//! of the store, staleness, and the size of a store at rest. The server is on one core, all of `watch` on another.
//!
//! What is done is read from the service's own metrics and compared with what the server counted.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use courser::{Client, Config, Response};

use crate::check::write_lines;
use crate::find::finder;
use crate::process::{Served, first_line, installed, memory, spawn_on, times, two_cores};
use crate::report::exit_code;

/// Measures crawler-cli watch in cases with bars.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Measure only this case; may be given several times
    #[arg(long = "case")]
    cases: Vec<Case>,

    /// URLs in the cases store and stale
    #[arg(short, long, default_value = "1000000")]
    urls: usize,

    /// URLs at rest
    #[arg(long, default_value = "10000000")]
    rest: usize,

    /// Connections
    #[arg(short, long, default_value = "64")]
    connections: usize,
}

/// A case.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Case {
    /// New URLs are checked once
    Store,
    /// The system calls that make results durable, by strace
    Sync,
    /// Profile eager, each URL every two minutes: how late checks are
    Stale,
    /// The size of a store after each of its URLs was checked, and how fast it opens
    Rest,
}

/// Runs the cases. The exit code is 1 if a bar was missed that does not depend on the machine.
///
/// # Errors
/// A program is missing or failed, or not all URLs were checked.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let (server_core, core) = two_cores()?;
    let bench = Bench {
        args,
        program: finder()?,
        core,
        server: Served::on(server_core, false)?,
        place: tempfile::tempdir()?,
    };
    let cases = match args.cases.as_slice() {
        [] => &[Case::Store, Case::Sync, Case::Stale],
        some => some,
    };
    let mut missed = false;
    for &case in cases {
        missed |= match case {
            Case::Store => bench.store()?,
            Case::Sync => bench.sync()?,
            Case::Stale => bench.stale()?,
            Case::Rest => bench.rest()?,
        };
    }
    Ok(exit_code(missed))
}

struct Bench<'a> {
    args: &'a Args,
    program: PathBuf,
    core: usize,
    server: Served,
    place: tempfile::TempDir,
}

impl Bench<'_> {
    fn store(&self) -> Result<bool, Box<dyn Error>> {
        let urls = self.args.urls;
        let folder = self.folder("store", urls, "")?;
        let (service, took) = self.check_all(&folder, urls)?;
        let metrics = service.metrics()?;
        let p95 = metrics.quantile("courser_check_duration_seconds", "phase=\"total\"", 0.95);
        let memory = service.peak()?;
        let store = service.thread_time("store")?;
        let all = service.time()?;
        let rate = urls as f64 / took.as_secs_f64() * 60.0;
        let by_cpu = urls as f64 / all.as_secs_f64() * 60.0;
        let store = store.as_secs_f64() * 1e6 / urls as f64;
        println!("{urls} new URLs, checked once, results stored; one core");
        println!("                              courser     bar   published pipeline");
        for (what, measured, bar, published) in [
            ("URLs a minute", rate, "≥ 10^6", "22000"),
            ("  by its processor time", by_cpu, "≥ 10^6", ""),
            ("P95 of an answer, ms", p95 * 1e3, "≤ 20", "415"),
            (
                "highest memory, MiB",
                memory as f64 / 1024.0,
                "≤ 64",
                "180-290",
            ),
            ("CPU of the store, µs a URL", store, "≤ 20", ""),
        ] {
            println!("{what:<26} {measured:>10.1} {bar:>7} {published:>12}");
        }
        Ok(memory > MEMORY)
    }

    fn sync(&self) -> Result<bool, Box<dyn Error>> {
        if !installed("strace") {
            println!("strace is not installed");
            return Ok(false);
        }
        let urls = 20_000;
        let folder = self.folder("sync", urls, "")?;
        let trace = folder.join("trace");
        let runner = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o"];
        let mut command = Command::new(runner[0]);
        command.args(&runner[1..]).arg(&trace).arg(&self.program);
        let service = self.start(command, &folder)?;
        service.wait_for(urls)?;
        service.stop()?;
        let text = fs::read_to_string(&trace)?;
        let synced = text
            .lines()
            .filter(|line| line.contains("sync(") && line.contains("= 0"));
        let synced = synced.count();
        println!(
            "{urls} URLs: {synced} times fsync or fdatasync, {:.0} URLs each",
            urls as f64 / synced as f64
        );
        Ok(synced == 0)
    }

    fn stale(&self) -> Result<bool, Box<dyn Error>> {
        let urls = self.args.urls;
        let policy = "[policy]\nprofile = \"eager\"\nalive_interval = [\"2m\", \"2m\"]\n";
        let folder = self.folder("stale", urls, policy)?;
        let service = self.start(Command::new(&self.program), &folder)?;
        service.wait_for(urls)?;
        let mut latest: f64 = 0.0;
        let mut share: f64 = 0.0;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(300) {
            let metrics = service.metrics()?;
            latest = latest.max(metrics.sum("courser_check_due_lag_seconds", ""));
            share = share.max(metrics.sum("courser_check_staleness_ratio", ""));
            thread::sleep(Duration::from_secs(2));
        }
        let done = service.metrics()?.sum("courser_check_results_total", "");
        service.stop()?;
        println!("{urls} URLs every 2 minutes, profile eager, for 5 minutes: {done:.0} checks");
        println!(
            "latest check {latest:.1} s after it was due (bar 144), largest share more than 144 s late {share:.4}"
        );
        Ok(latest > 144.0)
    }

    fn rest(&self) -> Result<bool, Box<dyn Error>> {
        let urls = self.args.rest;
        let folder = self.folder("rest", urls, "")?;
        let (service, took) = self.check_all(&folder, urls)?;
        let peak = service.peak()?;
        service.stop()?;
        let stored = fs::metadata(folder.join("watch.db"))?.len();
        let text: u64 = fs::metadata(folder.join("urls.txt"))?.len() - urls as u64;
        let each = stored.saturating_sub(text) as f64 / urls as f64;
        let began = Instant::now();
        let service = self.start(Command::new(&self.program), &folder)?;
        service.wait_until_ready()?;
        let start = began.elapsed();
        thread::sleep(Duration::from_secs(5));
        let memory = service.peak()?;
        println!(
            "{urls} URLs at rest, after {:.0} s of checks ({:.1} MiB)",
            took.as_secs_f64(),
            peak as f64 / 1024.0
        );
        println!("bytes a URL on disk, without its text {each:.0} (bar 200)");
        println!(
            "start until ready {:.1} s (bar 5), memory {:.1} MiB (bar 256)",
            start.as_secs_f64(),
            memory as f64 / 1024.0
        );
        service.stop()?;
        Ok(each > 200.0 || memory > MEMORY_AT_REST)
    }

    /// A folder with a configuration and a list of URLs.
    fn folder(&self, name: &str, urls: usize, more: &str) -> Result<PathBuf, Box<dyn Error>> {
        let folder = self.place.path().join(name);
        fs::create_dir(&folder)?;
        let url_of = |number| self.server.url(&format!("/files/{number}\n"));
        write_lines(&folder.join("urls.txt"), (0..urls).map(url_of))?;
        let connections = self.args.connections;
        fs::write(
            folder.join("watch.toml"),
            format!(
                "[http]\nlisten = \"127.0.0.1:0\"\n[limits]\nper_host_connections = {connections}\nper_host_rate = 0\nallow_private = true\n{more}\n\
                 [[set]]\nname = \"all\"\nurls = \"urls.txt\"\n"
            ),
        )?;
        Ok(folder)
    }

    fn check_all(&self, folder: &Path, urls: usize) -> Result<(Service, Duration), Box<dyn Error>> {
        let began = Instant::now();
        let service = self.start(Command::new(&self.program), folder)?;
        service.wait_for(urls)?;
        Ok((service, began.elapsed()))
    }

    fn start(&self, mut command: Command, folder: &Path) -> Result<Service, Box<dyn Error>> {
        command
            .args(["watch", "run", "--config"])
            .arg(folder.join("watch.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(fs::File::create(folder.join("log"))?);
        let mut child = spawn_on(self.core, &mut command)?;
        let (line, _) = first_line(&mut child)?;
        let address = line.strip_prefix("listening on http://");
        let address = address.map(|address| address.trim_end_matches('/').to_owned());
        let Some(address) = address else {
            let log = fs::read_to_string(folder.join("log"))?;
            return Err(format!("the service did not start: {line}{log}").into());
        };
        Ok(Service { child, address })
    }
}

/// A running service.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn get(&self, path: &str) -> Result<(u16, String), Box<dyn Error>> {
        let mut response = Response::new();
        let url = format!("http://{}{path}", self.address);
        Client::new(Config::default())?.get(&url, &mut response)?;
        let body = String::from_utf8(response.body().to_vec())?;
        Ok((response.status(), body))
    }

    fn metrics(&self) -> Result<Metrics, Box<dyn Error>> {
        Ok(Metrics(self.get("/metrics")?.1))
    }

    /// Waits until this many URLs were checked.
    fn wait_for(&self, urls: usize) -> Result<(), Box<dyn Error>> {
        let mut last = (0.0, Instant::now());
        loop {
            let done = self
                .metrics()?
                .sum("courser_check_results_total", "class=\"ok\"");
            if done >= urls as f64 {
                return Ok(());
            }
            if done > last.0 {
                last = (done, Instant::now());
            } else if last.1.elapsed() > STALLED {
                return Err(format!("only {done} of {urls} URLs were found good").into());
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn wait_until_ready(&self) -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        while self.get("/readyz")?.0 != 200 {
            if began.elapsed() > STALLED {
                return Err("the service does not become ready".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The highest memory so far, in KiB.
    fn peak(&self) -> Result<u64, Box<dyn Error>> {
        memory(&self.child.id().to_string(), "VmHWM")
    }

    /// The processor time of the threads whose names begin so.
    fn thread_time(&self, name: &str) -> Result<Duration, Box<dyn Error>> {
        let mut all = Duration::ZERO;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let (thread, time) = times(&format!("{}/stat", task?.path().display()))?;
            if thread.starts_with(name) {
                all += time;
            }
        }
        Ok(all)
    }

    /// The processor time of the process.
    fn time(&self) -> Result<Duration, Box<dyn Error>> {
        Ok(times(&format!("/proc/{}/stat", self.child.id()))?.1)
    }

    fn stop(mut self) -> Result<(), Box<dyn Error>> {
        // Under strace, the service is its child.
        let own = self.child.id();
        let children =
            fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let service = children
            .split_whitespace()
            .next()
            .and_then(|child| child.parse().ok());
        let service: i32 = service.unwrap_or(own as i32);
        let process = rustix::process::Pid::from_raw(service).ok_or("no process")?;
        rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("the service ended with {status}").into()),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Errors mean that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of /metrics.
struct Metrics(String);

impl Metrics {
    /// The sum of the samples of a metric whose labels contain `label`.
    fn sum(&self, name: &str, label: &str) -> f64 {
        let samples = self.samples(name, label).map(|(_, value)| value);
        samples.sum()
    }

    fn samples<'m>(
        &'m self,
        name: &'m str,
        label: &'m str,
    ) -> impl Iterator<Item = (&'m str, f64)> {
        self.0.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = match rest.strip_prefix('{') {
                Some(rest) => rest.split_once('}')?,
                None => ("", rest.strip_prefix(' ')?),
            };
            let value = value.trim().split(' ').next()?.parse().ok()?;
            labels.contains(label).then_some((labels, value))
        })
    }

    /// A quantile of a histogram: the upper end of its bucket.
    fn quantile(&self, name: &str, label: &str, share: f64) -> f64 {
        let name = format!("{name}_bucket");
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for (labels, count) in self.samples(&name, label) {
            let end = labels
                .split("le=\"")
                .nth(1)
                .and_then(|end| end.split('"').next());
            let end = end
                .and_then(|end| end.parse().ok())
                .unwrap_or(f64::INFINITY);
            buckets.push((end, count));
        }
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all = buckets.last().map_or(0.0, |bucket| bucket.1);
        let bucket = buckets.iter().find(|bucket| bucket.1 >= share * all);
        bucket.map_or(f64::NAN, |bucket| bucket.0)
    }
}

/// The longest time without progress.
const STALLED: Duration = Duration::from_secs(60);

/// The highest memory in KiB with a million URLs, and at rest with ten million.
const MEMORY: u64 = 64 * 1024;
const MEMORY_AT_REST: u64 = 256 * 1024;
