//! `crawler-cli find` in cases with bars: how much longer it may take than wrk with the same listings, how many
//! requests it may send, and how much memory it may use. The server is on one core; the clients run one after the
//! other, each in its own process on another core.
//!
//! Every run compares the results with the entries that exist, and counts the requests at the server.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;

use clap::ValueEnum as _;

use crate::process::Served;
use crate::serve::{DIRECTORIES, ENTRIES};
use crate::table::{Cost, Row, measure};

mod client;
mod nginx;
mod tree;

pub(crate) use client::{Finder, finder};
pub use client::{PeakArgs, peak};
pub(crate) use nginx::Server;
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
    /// nginx's limit_req 300r/s with burst=50 nodelay
    LimitReqBurst,
    /// 10,000,000 files in 10,000 directories
    Entries,
    /// The same with --state
    EntriesState,
    /// 1,001,001 directories
    Directories,
    /// The same with --state
    DirectoriesState,
}

/// Runs the cases. The exit code is 1 if a bar was missed that does not depend on the machine.
///
/// # Errors
/// A program is missing or failed, or the results differ from the entries that exist.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let bench = Bench {
        args,
        finder: Finder::new()?,
    };
    let cases = match args.cases.as_slice() {
        [] => Case::value_variants(),
        some => some,
    };
    let needs_tree = |case: &Case| bench.directives(*case).is_some();
    let tree = match cases.iter().any(needs_tree) {
        true => Some(Tree::plant(
            bench.finder.place.path(),
            args.directories,
            args.files,
        )?),
        false => None,
    };
    println!(
        "{} connections; medians of {} rounds, most memory of all",
        args.connections, args.rounds
    );
    measure(cases, ["requests+", "connections"], |case| {
        match (bench.directives(case), &tree) {
            (Some(directives), Some(tree)) => bench.on_nginx(case, &directives, tree),
            _ => Ok(vec![bench.on_generated(case)?]),
        }
    })
}

struct Bench<'a> {
    args: &'a Args,
    finder: Finder,
}

impl Bench<'_> {
    /// The directives of nginx for this case, if nginx is the server.
    fn directives(&self, case: Case) -> Option<String> {
        let delay = "echo_sleep 0.02; echo_exec @listing;";
        Some(match case {
            Case::Listings => String::new(),
            Case::Delay => delay.to_owned(),
            Case::LimitConn => format!("limit_conn connections 16; {delay}"),
            Case::LimitReqBurst => {
                "limit_req zone=requests burst=50 nodelay; limit_req_status 429;".to_owned()
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
        let server = Server::start(
            self.finder.place.path(),
            tree.root(),
            directives,
            self.finder.server_core,
        )?;
        let listings = tree.directories().len();
        let mut own = Row::of(case);
        own.bar = match case {
            Case::Listings => Some(1.3),
            Case::Delay => Some(1.1),
            _ => None,
        };
        let (mut others, mut most) = (Vec::new(), Most::default());
        for _ in 0..self.args.rounds {
            let paths = tree.directories();
            own.bound.push(match case {
                Case::LimitReqBurst => listings as f64 / f64::from(nginx::RATE),
                Case::LimitConn => self.finder.bound(&server.url, paths, 16)?,
                _ => self.finder.bound(&server.url, paths, connections)?,
            });
            server.forget()?;
            let arguments = ["-name", tree::NAME, "-type", "f"];
            let mut found = Vec::new();
            let keep = |line: &[u8]| found.extend_from_slice(line);
            let cost = self.search(&server.url, &arguments, keep)?;
            own.note(&cost);
            if paths_below(&server.url, &found) != *tree.wanted() {
                return Err(format!("{case:?}: the set differs from find(1)'s").into());
            }
            let log = server.log()?;
            most.note(log.requests.saturating_sub(listings), log.connections);
            if case == Case::Delay && log.connections != connections {
                own.faults.push(format!("{} connections", log.connections));
            }
            if matches!(case, Case::Listings | Case::Delay) && log.requests != listings {
                own.faults.push(format!("{} requests", log.requests));
            }
            if case != Case::Listings {
                continue;
            }
            if cost.memory > MEMORY {
                own.faults.push("too much memory".to_owned());
            }
            let values = [("@N", &*connections.to_string()), ("@URL", &*server.url)];
            self.finder.peers(&PEERS, &values, &own, &mut others)?;
        }
        own.counts = most.cells();
        others.insert(0, own);
        Ok(others)
    }

    /// These cases run once: their time has no bar.
    fn on_generated(&self, case: Case) -> Result<Row, Box<dyn Error>> {
        let (tree, path) = match case {
            Case::Entries | Case::EntriesState => (ENTRIES, "/entries/"),
            _ => (DIRECTORIES, "/directories/"),
        };
        let files_only = path == "/entries/";
        let served = Served::on(self.finder.server_core, false)?;
        let state = self.finder.place.path().join(format!("{case:?}"));
        let state = state.to_string_lossy();
        let mut arguments = Vec::new();
        if files_only {
            arguments.extend(["-type", "f"]);
        }
        if matches!(case, Case::EntriesState | Case::DirectoriesState) {
            arguments.extend(["--state", &state]);
        }
        let mut lines = 0;
        let cost = self.search(&served.url(path), &arguments, |_| lines += 1)?;
        let entries = match files_only {
            true => tree.files(),
            false => tree.files() + tree.directories(),
        };
        if lines != entries {
            return Err(format!("{case:?}: found {lines} of {entries}").into());
        }
        let mut row = Row::of(case);
        row.note(&cost);
        let mut most = Most::default();
        let [requests, connections] = served.end()?;
        most.note(requests.saturating_sub(tree.directories()), connections);
        row.counts = most.cells();
        if cost.memory > MEMORY_OF_MANY {
            row.faults.push("too much memory".to_owned());
        }
        Ok(row)
    }

    /// Runs a search.
    fn search(
        &self,
        url: &str,
        arguments: &[&str],
        visit: impl FnMut(&[u8]),
    ) -> Result<Cost, Box<dyn Error>> {
        let connections = self.args.connections.to_string();
        let common = ["find", url, "--robots=off", "-j", &connections];
        let all = common.iter().chain(arguments);
        let all: Vec<String> = all.map(|&word| word.to_owned()).collect();
        self.finder.run(&all, visit)
    }
}

/// The paths of the results that a search has printed.
fn paths_below(url: &str, printed: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(printed);
    let paths = text.lines().filter_map(|line| line.strip_prefix(url));
    paths.map(|path| format!("/{path}")).collect()
}

/// The most of all rounds.
#[derive(Default)]
struct Most {
    /// Requests beyond one for each directory.
    surplus: usize,
    connections: usize,
}

impl Most {
    fn note(&mut self, surplus: usize, connections: usize) {
        self.surplus = self.surplus.max(surplus);
        self.connections = self.connections.max(connections);
    }

    fn cells(&self) -> [Option<String>; 2] {
        [self.surplus, self.connections].map(|count| Some(count.to_string()))
    }
}

/// Programs that a search is compared with, if they are installed, and their words: connections, and the URL of the server.
const PEERS: [(&str, &str); 2] = [
    (
        "rclone",
        "lsf -R --files-only --http-no-head --checkers @N --include wanted-*.xml --http-url @URL :http:",
    ),
    ("wget2", "--spider -r -np -q --max-threads @N @URL"),
];

/// Highest memory of a search of the small tree, in KiB.
const MEMORY: u64 = 64 * 1024;

/// Highest memory of a search with any number of results, in KiB.
const MEMORY_OF_MANY: u64 = 256 * 1024;
