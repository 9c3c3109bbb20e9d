//! The operator's pages with many URLs behind them: how long each takes, and what a hundred page loads a second cost the
//! checks. The pages about hosts also wait for the core of the service, which answers between two turns of its loop.

use std::error::Error;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, Service};

impl Bench<'_> {
    pub(super) fn pages(&self) -> Result<bool, Box<dyn Error>> {
        let urls = self.args.urls;
        let policy = "[policy]\nprofile = \"eager\"\nalive_interval = [\"30s\", \"30s\"]\n";
        let folder = self.folder("pages", urls, policy)?;
        let service = self.start(Command::new(&self.program), &folder)?;
        service.wait_for(urls)?;
        let falls = self.beside_loads(&service)?;
        let mut pause = Command::new(&self.program);
        let config = folder.join("watch.toml");
        pause.args(["watch", "pause", "--config"]).arg(config);
        if !pause.status()?.success() {
            return Err("the service cannot be paused".into());
        }
        let slow = self.each_page(&service, urls)?;
        service.stop()?;
        Ok(slow || falls)
    }

    /// The checks a second with and without page loads, in turns. Returns whether they fall by more than the loads take.
    fn beside_loads(&self, service: &Service) -> Result<bool, Box<dyn Error>> {
        let (mut without, mut with) = (Turns::default(), Turns::default());
        for _ in 0..ROUNDS {
            without.add(&turn(service)?);
            let (stop, loads) = (AtomicBool::new(false), AtomicUsize::new(0));
            let measured = thread::scope(|scope| {
                scope.spawn(|| load(service, &stop, &loads));
                let measured = turn(service);
                stop.store(true, Ordering::Relaxed);
                measured
            });
            with.add(&measured?);
            with.loads += loads.load(Ordering::Relaxed);
        }
        let fall = 1.0 - with.rate() / without.rate();
        let cpu = with.share() - without.share();
        println!(
            "{} page loads a second beside all the checks that one core can do",
            with.loads as f64 / with.seconds
        );
        println!(
            "checks a second without {:.0}, with {:.0}: {:.1} % less",
            without.rate(),
            with.rate(),
            fall * 100.0
        );
        println!(
            "CPU of the threads for HTTP: {:.1} % of the core (bar: the checks fall by no more)",
            cpu * 100.0
        );
        Ok(fall > cpu + NOISE)
    }

    /// The time of each page. Returns whether one takes too long.
    pub(super) fn each_page(&self, service: &Service, urls: usize) -> Result<bool, Box<dyn Error>> {
        let url = self.server.url("/files/7");
        let root = self.server.url("/");
        println!("{urls} URLs, each page {LOADS} times; milliseconds");
        println!(
            "{:<46} {:>8} {:>15} {:>8}",
            "",
            "first",
            format!("median (bar {})", MOST.as_millis()),
            "longest"
        );
        let mut is_slow = false;
        for path in paths(&url, &root) {
            let mut times = Vec::with_capacity(LOADS);
            for _ in 0..LOADS {
                let began = Instant::now();
                let (status, _) = service.get(&path)?;
                times.push(began.elapsed());
                if status != 200 {
                    return Err(format!("{path}: {status}").into());
                }
            }
            let first = times[0];
            times.sort_unstable();
            let (median, longest) = (times[LOADS / 2], times[LOADS - 1]);
            let millis = |time: Duration| time.as_secs_f64() * 1e3;
            let shown: String = path.chars().take(44).collect();
            println!(
                "{shown:<46} {:>8.2} {:>15.2} {:>8.2}",
                millis(first),
                millis(median),
                millis(longest)
            );
            is_slow |= median > MOST;
        }
        Ok(is_slow)
    }
}

/// Each list, at its begin and in its midst, and each page about one thing.
fn paths(url: &str, root: &str) -> Vec<String> {
    let encoded = |text: &str| text.replace(':', "%3A").replace('/', "%2F");
    let (url, root) = (encoded(url), encoded(root));
    let mut paths: Vec<String> = [
        "/",
        "/?range=24h",
        "/urls",
        "/urls?after=n.500000",
        "/urls?state=ALIVE",
        "/urls?state=GONE",
        "/urls?set=all",
        "/hosts",
        "/hosts?sort=wait",
        "/changes",
        "/changes?to=BROKEN",
        "/holds",
        "/letters",
        "/schedules",
        "/config",
        "/log",
    ]
    .map(str::to_owned)
    .into();
    paths.push(format!("/urls?host={root}"));
    paths.push(format!("/urls?host={root}&state=SUSPECT"));
    paths.push(format!("/host?root={root}"));
    paths.push(format!("/url?url={url}"));
    paths
}

/// Loads pages until it is stopped, a hundred a second.
fn load(service: &Service, stop: &AtomicBool, loads: &AtomicUsize) {
    let began = Instant::now();
    for (number, path) in ["/", "/urls", "/hosts", "/changes"]
        .iter()
        .cycle()
        .enumerate()
    {
        if stop.load(Ordering::Relaxed) || service.get(path).is_err() {
            return;
        }
        loads.fetch_add(1, Ordering::Relaxed);
        let next = EACH * u32::try_from(number + 1).unwrap_or(u32::MAX);
        thread::sleep(next.saturating_sub(began.elapsed()));
    }
}

/// What was done in some time.
#[derive(Debug, Default)]
struct Turns {
    seconds: f64,
    checks: f64,
    /// Processor time of the threads for HTTP.
    cpu: f64,
    loads: usize,
}

impl Turns {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.checks += other.checks;
        self.cpu += other.cpu;
    }

    fn rate(&self) -> f64 {
        self.checks / self.seconds
    }

    fn share(&self) -> f64 {
        self.cpu / self.seconds
    }
}

fn turn(service: &Service) -> Result<Turns, Box<dyn Error>> {
    let now = || -> Result<(f64, f64), Box<dyn Error>> {
        let checks = service.metrics()?.sum("courser_check_results_total", "");
        // Requests are answered on the first, and what they read is read on the others.
        let cpu = service.thread_time("admin")? + service.thread_time("tokio")?;
        Ok((checks, cpu.as_secs_f64()))
    };
    let (began, before) = (Instant::now(), now()?);
    thread::sleep(TURN);
    let (seconds, after) = (began.elapsed().as_secs_f64(), now()?);
    Ok(Turns {
        seconds,
        checks: after.0 - before.0,
        cpu: after.1 - before.1,
        loads: 0,
    })
}

/// How often each page is loaded.
const LOADS: usize = 30;
/// The longest time of a page.
const MOST: Duration = Duration::from_millis(50);
/// The time between two loads.
const EACH: Duration = Duration::from_millis(10);
const TURN: Duration = Duration::from_secs(10);
const ROUNDS: usize = 4;
/// The share by which two turns differ anyway.
const NOISE: f64 = 0.03;
