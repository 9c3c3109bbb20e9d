//! `crawler-cli find` in cases with bars: how much longer it may take than wrk with the same listings, how many
//! requests it may send, and how much memory it may use. The server is on one core; the clients run one after the
//! other, each in its own process on another core.
//!
//! Every run compares the results with the entries that exist, and counts the requests at the server.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum as _;

use crate::compare::sample::median;
use crate::process::cores;

mod client;
mod mirror;
mod nginx;
mod together;
mod tree;

pub(crate) use client::Finder;
use client::Found;
pub use client::{PeakArgs, peak};
use mirror::{Faults, Mirror, Shape};
pub(crate) use nginx::Server;
pub use together::{TogetherArgs, together};
pub(crate) use tree::Tree;

/// Measures crawler-cli find in cases with a bar each, and compares it with wrk and other installed programs.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Measure only this case; may be given several times
    #[arg(long = "case")]
    cases: Vec<Case>,

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

    /// Seed of the faults in the first round; each round has another seed
    #[arg(long, default_value = "1")]
    seed: u64,
}

/// A case.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Case {
    /// nginx without limits; also measures other programs that can search
    Listings,
    /// 20 ms before each answer
    Delay,
    /// nginx's limit_conn 16, and 20 ms before each answer
    LimitConn,
    /// nginx's limit_req 300r/s
    LimitReq,
    /// The same with burst=50 nodelay
    LimitReqBurst,
    /// The same with burst=50, which delays requests that are too fast
    LimitReqQueue,
    /// 12 % of the answers are resets, 500, 503, stalls or cut short
    Faults,
    /// 10,000,000 files in 10,000 directories
    Entries,
    /// The same with --state
    EntriesState,
    /// 5,000,000 files in one directory
    Page,
    /// 1,001,001 directories
    Directories,
    /// The same with --state
    DirectoriesState,
}

/// One line of the table.
#[derive(Default)]
struct Row {
    name: String,
    seconds: Vec<f64>,
    bound: Vec<f64>,
    /// Highest ratio of the time to the bound.
    bar: Option<f64>,
    /// Requests beyond one for each directory.
    surplus: Option<usize>,
    connections: Option<usize>,
    /// KiB
    memory: Option<u64>,
    /// The bars that were missed.
    faults: Vec<String>,
}

/// Runs the cases. The exit code is 1 if a bar was missed that does not depend on the machine.
///
/// # Errors
/// A program is missing or failed, or the results differ from the entries that exist.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let all = cores()?;
    let server_core = *all.first().ok_or("no core")?;
    let client_core = *all.get(1).unwrap_or(&server_core);
    let bench = Bench {
        args,
        finder: Finder::new(client_core)?,
        server_core,
        place: tempfile::tempdir()?,
    };
    let cases = match args.cases.as_slice() {
        [] => Case::value_variants(),
        some => some,
    };
    let needs_tree = |case: &Case| bench.directives(*case).is_some();
    let tree = match cases.iter().any(needs_tree) {
        true => Some(Tree::plant(
            bench.place.path(),
            args.directories,
            args.files,
        )?),
        false => None,
    };
    println!(
        "{} connections; medians of {} rounds, most memory of all",
        args.connections, args.rounds
    );
    println!("{HEADING}");
    let mut missed = false;
    for &case in cases {
        let rows = match (bench.directives(case), &tree) {
            (Some(directives), Some(tree)) => bench.on_nginx(case, &directives, tree)?,
            _ => vec![bench.on_mirror(case)?],
        };
        for row in rows {
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
    server_core: usize,
    place: tempfile::TempDir,
}

impl Bench<'_> {
    /// The directives of nginx for this case, if nginx is the server.
    fn directives(&self, case: Case) -> Option<String> {
        let delay = "echo_sleep 0.02; echo_exec @listing;";
        Some(match case {
            Case::Listings => String::new(),
            Case::Delay => delay.to_owned(),
            Case::LimitConn => format!("limit_conn connections 16; {delay}"),
            Case::LimitReq => "limit_req zone=requests; limit_req_status 429;".to_owned(),
            Case::LimitReqBurst => {
                "limit_req zone=requests burst=50 nodelay; limit_req_status 429;".to_owned()
            }
            Case::LimitReqQueue => {
                "limit_req zone=requests burst=50; limit_req_status 429;".to_owned()
            }
            _ => return None,
        })
    }

    fn on_nginx(
        &self,
        case: Case,
        directives: &str,
        tree: &Tree,
    ) -> Result<Vec<Row>, Box<dyn Error>> {
        let connections = self.args.connections;
        let server = Server::start(self.place.path(), tree.root(), directives, self.server_core)?;
        let listings = tree.directories().len();
        let mut own = Row::of(case);
        own.bar = match case {
            Case::Listings => Some(1.3),
            Case::Delay => Some(1.1),
            _ => None,
        };
        let mut others: Vec<Row> = Vec::new();
        for _ in 0..self.args.rounds {
            own.bound.push(match case {
                Case::LimitReq | Case::LimitReqBurst | Case::LimitReqQueue => {
                    listings as f64 / f64::from(nginx::RATE)
                }
                Case::LimitConn => self.finder.bound(&server.url, tree.directories(), 16)?,
                _ => {
                    let paths = tree.directories();
                    self.finder.bound(&server.url, paths, connections)?
                }
            });
            server.forget()?;
            let arguments = ["-name", tree::NAME, "-type", "f"];
            let found = self.finder.find(&server.url, &arguments, connections)?;
            own.note_time(&found);
            if found.paths(&server.url) != *tree.wanted() {
                return Err(format!("{case:?}: the set differs from find(1)'s").into());
            }
            let log = server.log()?;
            own.note_requests(log.requests, listings);
            own.note_connections(log.connections);
            if case == Case::Delay && log.connections != connections {
                own.faults.push(format!("{} connections", log.connections));
            }
            if matches!(case, Case::Listings | Case::Delay) && log.requests != listings {
                own.faults.push(format!("{} requests", log.requests));
            }
            if case == Case::Listings && found.memory > MEMORY {
                own.faults.push("too much memory".to_owned());
            }
            if case != Case::Listings {
                continue;
            }
            for (at, peer) in client::PEERS.into_iter().enumerate() {
                let Some(seconds) =
                    self.finder
                        .peer(peer, &server.url, connections, self.place.path())?
                else {
                    continue;
                };
                if others.len() <= at {
                    others.push(Row {
                        name: format!("  {peer}"),
                        ..Row::default()
                    });
                }
                others[at].seconds.push(seconds);
                others[at].bound.clone_from(&own.bound);
            }
        }
        others.insert(0, own);
        Ok(others)
    }

    fn on_mirror(&self, case: Case) -> Result<Row, Box<dyn Error>> {
        let (shape, files_only) = match case {
            Case::Faults => (Shape::new(&[50, 99], 20), false),
            Case::Entries | Case::EntriesState => (Shape::new(&[10_000], 1000), true),
            Case::Page => (Shape::new(&[], 5_000_000), true),
            _ => (Shape::new(&[1000, 1000], 1), false),
        };
        let mut row = Row::of(case);
        // Time does not matter in these cases.
        let rounds = match case {
            Case::Faults => self.args.rounds,
            _ => 1,
        };
        for round in 0..rounds {
            let faults = (case == Case::Faults).then(|| Faults::new(self.args.seed + round as u64));
            let mirror = Mirror::start(&shape, faults, self.server_core)?;
            let state = self.place.path().join(format!("{case:?}"));
            let state = state.to_string_lossy();
            let mut arguments = Vec::new();
            if files_only {
                arguments.extend(["-type", "f"]);
            }
            if matches!(case, Case::EntriesState | Case::DirectoriesState) {
                arguments.extend(["--state", &state]);
            }
            if case == Case::Faults {
                arguments.extend(["--timeout", "2"]);
            }
            let connections = self.args.connections;
            let url = mirror.url();
            let (found, lines) = match case {
                Case::Faults => {
                    let found = self.finder.find(&url, &arguments, connections)?;
                    if found.paths(&url) != shape.paths() {
                        return Err(format!("{case:?}: another set than is there").into());
                    }
                    let lines = found.lines();
                    (found, lines)
                }
                _ => self.finder.count(&url, &arguments, connections)?,
            };
            let entries = match files_only {
                true => shape.files(),
                false => shape.files() + shape.directories(),
            };
            if lines != entries {
                return Err(format!("{case:?}: found {lines} of {entries}").into());
            }
            row.note_time(&found);
            row.note_requests(mirror.requests(), shape.directories());
            row.note_connections(mirror.connections());
            if case != Case::Faults && found.memory > MEMORY_OF_MANY {
                row.faults.push("too much memory".to_owned());
            }
        }
        Ok(row)
    }
}

impl Row {
    fn of(case: Case) -> Self {
        let name = case.to_possible_value();
        Self {
            name: name.map_or_else(String::new, |name| name.get_name().to_owned()),
            ..Self::default()
        }
    }

    fn note_time(&mut self, found: &Found) {
        self.seconds.push(found.seconds);
        self.memory = self.memory.max(Some(found.memory));
    }

    fn note_requests(&mut self, requests: usize, directories: usize) {
        self.surplus = self.surplus.max(Some(requests.saturating_sub(directories)));
    }

    fn note_connections(&mut self, connections: usize) {
        self.connections = self.connections.max(Some(connections));
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
            "{:<18} {:>9} {seconds:>9.3} {:>8} {:>5} {:>9} {:>12} {:>10}  {}{}",
            self.name,
            or_dash(bound.map(|bound| format!("{bound:.3}"))),
            or_dash(ratio.map(|ratio| format!("{ratio:.2}"))),
            or_dash(self.bar.map(|bar| format!("{bar:.1}"))),
            or_dash(self.surplus.map(|count| count.to_string())),
            or_dash(self.connections.map(|count| count.to_string())),
            or_dash(self.memory.map(|kib| format!("{:.1}", kib as f64 / 1024.0))),
            self.faults.join(", "),
            if slow { "slower than the bar" } else { "" },
        )
    }
}

const HEADING: &str =
    "case                 bound s         s  × bound   bar  requests+  connections        MiB";

/// Highest memory of a search of the small tree, in KiB.
const MEMORY: u64 = 64 * 1024;

/// Highest memory of a search with any number of results, in KiB.
const MEMORY_OF_MANY: u64 = 256 * 1024;

/// The path of `crawler-cli`, in the directory of this program.
pub(crate) fn finder() -> Result<PathBuf, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let finder = own.with_file_name("crawler-cli");
    match finder.exists() {
        true => Ok(finder),
        false => Err("build it first: cargo build --release -p crawler-cli".into()),
    }
}
