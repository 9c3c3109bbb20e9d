//! `crawler-cli check` in cases with bars: how much longer it may take than wrk needs to GET the same URLs, and how much
//! memory it may use. The server is nginx on one core; the clients run one after the other, each in its own process on
//! another core.
//!
//! Every run compares the results with the URLs that exist, and counts the requests at the server.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::find::{Finder, Server, Tree};
use crate::table::{Cost, Row, measure};

/// Measures crawler-cli check in cases with a bar each, and compares it with wrk and other installed programs.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Measure only this case; may be given several times
    #[arg(long = "case")]
    cases: Vec<Case>,

    /// Rounds; each program runs once in each
    #[arg(short, long, default_value = "5")]
    rounds: usize,

    /// URLs in the first three cases
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
    /// 1,000,000 URLs
    Million,
    /// 10,000,000 URLs
    Millions,
}

/// Runs the cases. The exit code is 1 if a bar was missed that does not depend on the machine.
///
/// # Errors
/// A program is missing or failed, or the results differ from the URLs that exist.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let bench = Bench {
        args,
        finder: Finder::new()?,
    };
    let cases = match args.cases.as_slice() {
        [] => &[Case::Urls, Case::State, Case::Again, Case::Million],
        some => some,
    };
    println!(
        "{} connections; medians of {} rounds, most memory of all",
        args.connections, args.rounds
    );
    measure(cases, ["requests", "CPU µs a URL"], |case| {
        bench.measure(case)
    })
}

struct Bench<'a> {
    args: &'a Args,
    finder: Finder,
}

impl Bench<'_> {
    fn measure(&self, case: Case) -> Result<Vec<Row>, Box<dyn Error>> {
        let urls = match case {
            Case::Urls | Case::State | Case::Again => self.args.urls,
            Case::Million => 1_000_000,
            Case::Millions => 10_000_000,
        };
        let folder = self.finder.place.path().join(format!("{case:?}"));
        fs::create_dir(&folder)?;
        // A million files would only measure the file system.
        let files = urls.min(100_000);
        let tree = Tree::plant(&folder, files.div_ceil(20), files)?;
        let paths = tree.files();
        let server = Server::start(&folder, tree.root(), "", self.finder.server_core)?;
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
            Case::State | Case::Again => 1.8,
            Case::Urls | Case::Million | Case::Millions => 1.2,
        });
        let most_memory = match case {
            Case::Urls | Case::State | Case::Again => 48 * 1024,
            Case::Million => 56 * 1024,
            Case::Millions => 288 * 1024,
        };
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
            let has_state = matches!(case, Case::State | Case::Again);
            let (lines, cost) = self.check(&list, has_state.then_some(state.as_path()))?;
            if lines != urls {
                return Err(format!("{case:?}: {lines} lines for {urls} URLs").into());
            }
            own.note(&cost);
            let requests = server.log()?.requests;
            own.counts = [
                Some(format!("{:.4}", requests as f64 / urls as f64)),
                Some(format!("{:.1}", cost.cpu * 1e6 / urls as f64)),
            ];
            if requests != urls {
                own.faults.push(format!("{requests} requests"));
            }
            if cost.memory > most_memory {
                own.faults.push("too much memory".to_owned());
            }
            if case == Case::Urls && !self.args.no_peers {
                self.peers(&server.url, &list, &own, &mut others)?;
            }
        }
        others.insert(0, own);
        Ok(others)
    }

    /// Runs a check. Returns the number of lines that it prints.
    fn check(&self, list: &Path, state: Option<&Path>) -> Result<(usize, Cost), Box<dyn Error>> {
        let mut arguments = vec![
            "check".to_owned(),
            "--robots=off".to_owned(),
            "--rate".to_owned(),
            "0".to_owned(),
            "--json".to_owned(),
            "--progress=never".to_owned(),
            "--summary=none".to_owned(),
            "-j".to_owned(),
            self.args.connections.to_string(),
            "--urls".to_owned(),
            list.display().to_string(),
        ];
        if let Some(state) = state {
            arguments.extend(["--state".to_owned(), state.display().to_string()]);
        }
        let mut lines = 0;
        let cost = self.finder.run(&arguments, |_| lines += 1)?;
        Ok((lines, cost))
    }

    fn peers(
        &self,
        url: &str,
        list: &Path,
        own: &Row,
        rows: &mut Vec<Row>,
    ) -> Result<(), Box<dyn Error>> {
        let page = list.with_extension("html");
        let text = fs::read_to_string(list)?;
        let link = |url: &str| format!("<a href=\"{url}\">\n");
        write_lines(&page, text.lines().map(link))?;
        let at_once = self.args.connections.to_string();
        let (list, page) = (list.display().to_string(), page.display().to_string());
        let values = [
            ("@N", &*at_once),
            ("@LIST", &list),
            ("@PAGE", &page),
            ("@URL", url),
        ];
        self.finder.peers(&PEERS, &values, own, rows)
    }
}

/// Writes a file of lines, which have their ends.
pub(crate) fn write_lines(
    path: &Path,
    lines: impl Iterator<Item = String>,
) -> Result<(), Box<dyn Error>> {
    use std::io::Write as _;
    let mut file = std::io::BufWriter::new(fs::File::create(path)?);
    for line in lines {
        file.write_all(line.as_bytes())?;
    }
    file.flush()?;
    Ok(())
}

/// Programs that a check is compared with, if they are installed, and their words: connections, the list, the same list as
/// a page, and the URL of the server.
const PEERS: [(&str, &str); 4] = [
    (
        "lychee",
        "--no-progress --max-concurrency @N --host-concurrency @N --host-request-interval 0ms --method head @LIST",
    ),
    ("wget2", "--spider -q --max-threads @N -i @LIST"),
    ("rclone", "lsl --checkers @N --http-url @URL :http:"),
    ("linkinator", "--concurrency @N --silent @PAGE"),
];
