//! `crawler-cli check` in cases with bars: how much longer it may take than wrk needs to GET the same URLs, and how much
//! memory it may use. The server is nginx on one core; the clients run one after the other, each in its own process on
//! another core.
//!
//! Every run compares the results with the URLs that exist, and counts the requests at the server.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use clap::ValueEnum as _;

use crate::compare::sample::median;
use crate::find::{Finder, Server, Tree};
use crate::process::{cores, installed, spawn_on};

/// Measures crawler-cli check in cases with a bar each, and compares it with wrk and other installed programs.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Measure only this case; may be given several times
    #[arg(long = "case")]
    cases: Vec<Case>,

    /// Rounds; each program runs once in each
    #[arg(short, long, default_value = "5")]
    rounds: usize,

    /// URLs in the first two cases
    #[arg(short, long, default_value = "100000")]
    urls: usize,

    /// Connections
    #[arg(short, long, default_value = "64")]
    connections: usize,

    /// Leave out the other programs
    #[arg(long)]
    no_peers: bool,
}

/// A case.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Case {
    /// A list of URLs; also measures other programs that can check one
    Urls,
    /// The same with --state
    State,
    /// The same with the state of the run before
    Again,
    /// 1,000,000 URLs with --state
    Million,
    /// 10,000,000 URLs with --state
    Millions,
}

/// One line of the table.
#[derive(Default)]
struct Row {
    name: String,
    seconds: Vec<f64>,
    bound: Vec<f64>,
    /// Highest ratio of the time to the bound.
    bar: Option<f64>,
    /// Requests for each URL.
    requests: Option<f64>,
    /// The time within which 95 % of the answers came, in milliseconds.
    p95: Option<f64>,
    /// KiB
    memory: Option<u64>,
    /// The bars that were missed.
    faults: Vec<String>,
}

/// Runs the cases. The exit code is 1 if a bar was missed that does not depend on the machine.
///
/// # Errors
/// A program is missing or failed, or the results differ from the URLs that exist.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let all = cores()?;
    let server_core = *all.first().ok_or("no core")?;
    let client_core = *all.get(1).unwrap_or(&server_core);
    let bench = Bench {
        args,
        finder: Finder::new(client_core)?,
        client_core,
        server_core,
        place: tempfile::tempdir()?,
    };
    let cases = match args.cases.as_slice() {
        [] => &[Case::Urls, Case::State, Case::Again, Case::Million],
        some => some,
    };
    println!(
        "{} connections; medians of {} rounds, most memory of all",
        args.connections, args.rounds
    );
    println!("{HEADING}");
    let mut missed = false;
    for &case in cases {
        for row in bench.measure(case)? {
            println!("{row}");
            missed |= !row.faults.is_empty();
        }
    }
    Ok(match missed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

struct Bench<'a> {
    args: &'a Args,
    finder: Finder,
    client_core: usize,
    server_core: usize,
    place: tempfile::TempDir,
}

impl Bench<'_> {
    fn measure(&self, case: Case) -> Result<Vec<Row>, Box<dyn Error>> {
        let urls = match case {
            Case::Urls | Case::State | Case::Again => self.args.urls,
            Case::Million => 1_000_000,
            Case::Millions => 10_000_000,
        };
        let folder = self.place.path().join(format!("{case:?}"));
        fs::create_dir(&folder)?;
        // A million files would only measure the file system.
        let files = urls.min(100_000);
        let tree = Tree::plant(&folder, files.div_ceil(20), files)?;
        let paths = tree.files();
        let server = Server::start(&folder, tree.root(), "", self.server_core)?;
        let list = folder.join("urls.txt");
        let url_of = |number: usize| {
            let (path, query) = (&paths[number % files], number / files);
            let path = path.trim_start_matches('/');
            match query {
                0 => format!("{}{path}\n", server.url),
                _ => format!("{}{path}?{query}\n", server.url),
            }
        };
        write_lines(&list, (0..urls).map(url_of))?;
        let mut own = Row::of(case);
        own.bar = Some(match case {
            Case::Urls => 1.2,
            _ => 1.6,
        });
        let rounds = match case {
            Case::Urls | Case::State | Case::Again => self.args.rounds,
            Case::Million | Case::Millions => 1,
        };
        let mut others: Vec<Row> = Vec::new();
        let state = folder.join("state");
        for _ in 0..rounds {
            let bound = self
                .finder
                .bound(&server.url, &paths, self.args.connections)?;
            own.bound.push(bound * urls as f64 / files as f64);
            if case != Case::Again {
                let _ = fs::remove_file(&state);
            } else if !state.exists() {
                self.check(&list, Some(&state))?;
            }
            server.forget()?;
            let kept = (case != Case::Urls).then_some(state.as_path());
            let run = self.check(&list, kept)?;
            if run.lines != urls {
                return Err(format!("{case:?}: {} lines for {urls} URLs", run.lines).into());
            }
            own.seconds.push(run.seconds);
            own.memory = own.memory.max(Some(run.memory));
            own.p95 = Some(run.p95);
            let requests = server.log()?.requests;
            own.requests = Some(requests as f64 / urls as f64);
            own.note_bars(case, requests, urls, run.memory);
            if case == Case::Urls && !self.args.no_peers {
                self.measure_peers(&server.url, &list, &own, &mut others)?;
            }
        }
        others.insert(0, own);
        Ok(others)
    }

    /// Runs a check.
    fn check(&self, list: &Path, state: Option<&Path>) -> Result<Run, Box<dyn Error>> {
        let summary = self.place.path().join("summary.json");
        let mut arguments = vec![
            "check".to_owned(),
            "--robots=off".to_owned(),
            "--rate".to_owned(),
            "0".to_owned(),
            "--json".to_owned(),
            "--progress=never".to_owned(),
            "--summary".to_owned(),
            format!("json:{}", summary.display()),
            "-j".to_owned(),
            self.args.connections.to_string(),
            "--urls".to_owned(),
            list.display().to_string(),
        ];
        if let Some(state) = state {
            arguments.extend(["--state".to_owned(), state.display().to_string()]);
        }
        let began = Instant::now();
        let (lines, memory) = self.finder.run(&arguments)?;
        let seconds = began.elapsed().as_secs_f64();
        let summary: serde_json::Value = serde_json::from_slice(&fs::read(&summary)?)?;
        let p95 = summary["summary"]["latency_seconds"]["p95"].as_f64();
        Ok(Run {
            lines,
            seconds,
            memory,
            p95: p95.unwrap_or(f64::NAN) * 1000.0,
        })
    }

    fn measure_peers(
        &self,
        url: &str,
        list: &Path,
        own: &Row,
        rows: &mut Vec<Row>,
    ) -> Result<(), Box<dyn Error>> {
        for peer in PEERS {
            let Some((seconds, memory)) = self.peer(peer, url, list)? else {
                continue;
            };
            let name = format!("  {peer}");
            let at = match rows.iter().position(|row| row.name == name) {
                Some(at) => at,
                None => {
                    rows.push(Row {
                        name,
                        ..Row::default()
                    });
                    rows.len() - 1
                }
            };
            let row = &mut rows[at];
            row.seconds.push(seconds);
            row.memory = row.memory.max(Some(memory));
            row.bound.clone_from(&own.bound);
        }
        Ok(())
    }

    /// The seconds and the memory in KiB that another program needs; `None` if it is not installed.
    fn peer(
        &self,
        name: &str,
        url: &str,
        list: &Path,
    ) -> Result<Option<(f64, u64)>, Box<dyn Error>> {
        if !installed(name) {
            return Ok(None);
        }
        let connections = self.args.connections.to_string();
        let list_name = list.display().to_string();
        let page = list.with_extension("html");
        if !page.exists() {
            let text = fs::read_to_string(list)?;
            write_lines(
                &page,
                text.lines().map(|url| format!("<a href=\"{url}\">\n")),
            )?;
        }
        let page = page.display().to_string();
        let words: &[&str] = match name {
            "lychee" => &[
                "--no-progress",
                "--max-concurrency",
                &connections,
                "--host-concurrency",
                &connections,
                "--host-request-interval",
                "0ms",
                "--method",
                "head",
                &list_name,
            ],
            "wget2" => &[
                "--spider",
                "-q",
                "--max-threads",
                &connections,
                "-i",
                &list_name,
            ],
            "rclone" => &[
                "lsl",
                "--checkers",
                &connections,
                "--http-url",
                url,
                ":http:",
            ],
            _ => &["--concurrency", &connections, "--silent", &page],
        };
        let mut command = self.finder.measured(Path::new(name))?;
        command.args(words).current_dir(self.place.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        let began = Instant::now();
        spawn_on(self.client_core, &mut command)?.wait()?;
        Ok(Some((began.elapsed().as_secs_f64(), self.finder.peak()?)))
    }
}

/// A run of `crawler-cli check`.
struct Run {
    lines: usize,
    seconds: f64,
    /// KiB
    memory: u64,
    /// Milliseconds
    p95: f64,
}

impl Row {
    fn of(case: Case) -> Self {
        let name = case.to_possible_value();
        Self {
            name: name.map_or_else(String::new, |name| name.get_name().to_owned()),
            ..Self::default()
        }
    }

    fn note_bars(&mut self, case: Case, requests: usize, urls: usize, memory: u64) {
        if requests != urls {
            self.faults.push(format!("{requests} requests"));
        }
        let most = match case {
            Case::Millions => MEMORY_OF_MILLIONS,
            _ => MEMORY,
        };
        if memory > most {
            self.faults.push("too much memory".to_owned());
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        let seconds = median(self.seconds.iter().copied());
        let bound = (!self.bound.is_empty()).then(|| median(self.bound.iter().copied()));
        let ratio = bound.map(|bound| seconds / bound);
        let slow = ratio.zip(self.bar).is_some_and(|(ratio, bar)| ratio > bar);
        write!(
            f,
            "{:<18} {:>9} {seconds:>9.3} {:>8} {:>5} {:>9} {:>8} {:>8}  {}{}",
            self.name,
            or_dash(bound.map(|bound| format!("{bound:.3}"))),
            or_dash(ratio.map(|ratio| format!("{ratio:.2}"))),
            or_dash(self.bar.map(|bar| format!("{bar:.1}"))),
            or_dash(self.requests.map(|share| format!("{share:.4}"))),
            or_dash(self.p95.map(|p95| format!("{p95:.1}"))),
            or_dash(self.memory.map(|kib| format!("{:.1}", kib as f64 / 1024.0))),
            self.faults.join(", "),
            if slow { "slower than the bar" } else { "" },
        )
    }
}

fn write_lines(path: &Path, lines: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    use std::io::Write as _;
    let mut file = std::io::BufWriter::new(fs::File::create(path)?);
    for line in lines {
        file.write_all(line.as_bytes())?;
    }
    file.flush()?;
    Ok(())
}

const HEADING: &str =
    "case                 bound s         s  × bound   bar  requests   P95 ms      MiB";

/// Programs that a check is compared with, if they are installed.
const PEERS: [&str; 4] = ["lychee", "wget2", "rclone", "linkinator"];

/// Highest memory in KiB: of a check of up to a million URLs, and of ten million.
const MEMORY: u64 = 64 * 1024;
const MEMORY_OF_MILLIONS: u64 = 512 * 1024;
