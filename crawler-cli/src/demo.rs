//! `crawler-cli demo`: shows `find` without a network or any set-up. Serves the sample mirror of [`tree`] from this
//! process and searches it with the code of `crawler-cli find`.

use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;

use console::style;

use crate::report::{Live, Progress, describe, summary_text};
use crate::stdout;
use crawl::demo::server::Server;
use crawl::demo::tree;
use find::{Event, Find, Kind, Summary};
use plain::terminal;
use plain::text::thousands;

/// Serves the mirror and searches it.
pub(crate) fn search() -> ExitCode {
    exit(show())
}

/// `--serve`: only serves the mirror, until the process is killed.
pub(crate) fn serve() -> ExitCode {
    exit(keep_serving())
}

fn exit(result: io::Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say(format_args!("crawler-cli demo: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the search and prints its results. Returns whether everything was found.
fn show() -> io::Result<bool> {
    let server = Server::start()?;
    let url = server.url();
    let command = format!("crawler-cli find {url} -name {NAME} -type f");
    write(&format!(
        "A sample mirror in the shape of CentOS Stream's, served by this process at {url}\n\n$ {}\n\n",
        style(command).bold()
    ))?;
    let (urls, summary) = find(&url)?;
    for url in sample(&urls) {
        write(&format!("{}\n", style(url).cyan()))?;
    }
    let hidden = urls.len().saturating_sub(SHOWN);
    write(&format!(
        "... and {hidden} between these\n\n{}\n\n",
        summary_text(&summary)
    ))?;
    let complete = summary.is_complete() && urls.len() == tree::REPOMD_FILES;
    write(&if complete {
        format!(
            "{} All {} files named {NAME} found; the server counted {} requests for {} directories.\n",
            style("✔").green().bold(),
            urls.len(),
            thousands(server.requests()),
            thousands(summary.counts.directories),
        )
    } else {
        format!(
            "{} {} of {} files named {NAME} found.\n",
            style("✘").red().bold(),
            urls.len(),
            tree::REPOMD_FILES
        )
    })?;
    write(BY_HAND)?;
    if cfg!(debug_assertions) {
        write(SLOW)?;
    }
    Ok(complete)
}

/// At most [`SHOWN`] URLs at even distances, including the first and the last.
fn sample(urls: &[String]) -> impl Iterator<Item = &String> {
    let shown = urls.len().min(SHOWN);
    let last = urls.len().saturating_sub(1);
    (0..shown).map(move |i| &urls[i * last / (SHOWN - 1)])
}

/// Searches the mirror. Returns the sorted URLs and the summary.
fn find(url: &str) -> io::Result<(Vec<String>, Summary)> {
    let find = Find::new().start(url).map_err(io::Error::other)?;
    let mut live = Live::new(Progress::Auto);
    let mut urls = Vec::new();
    let summary = find.name(NAME).kind(Kind::File).run(|event| {
        match event {
            Event::Found(found) => urls.push(found.url.to_owned()),
            Event::Unread(unread) => {
                live.suspend(|| {
                    terminal::say(format_args!("{}: {}", unread.url, describe(unread.cause)))
                });
            }
            Event::Downloaded(_)
            | Event::NotReached(_)
            | Event::Output(_)
            | Event::Failed(_)
            | Event::StateFailed(_) => {}
            Event::Progress(summary) => live.draw(summary, Instant::now()),
        }
        ControlFlow::Continue(())
    });
    live.finish();
    urls.sort_unstable();
    Ok((urls, summary))
}

fn keep_serving() -> io::Result<bool> {
    let server = Server::start()?;
    let url = server.url();
    write(&format!(
        "The sample mirror is at {url} until you press Ctrl-C. In another terminal:\n\n  \
         crawler-cli find {url} -name {NAME}\n  \
         crawler-cli find {url} -iname '*kernel*' -type f --json\n  \
         crawler-cli find '{url}awkward%20names/' -maxdepth 1\n"
    ))?;
    loop {
        std::thread::park();
    }
}

fn write(text: &str) -> io::Result<()> {
    stdout::write(text.as_bytes())
}

const NAME: &str = "repomd.xml";

/// The largest number of found URLs that are printed.
const SHOWN: usize = 10;

/// What is said about the dev profile.
const SLOW: &str = "
This program is optimised in parts only. The fast one:
  cargo install --locked --path crawler-cli --profile dist
";

const BY_HAND: &str = "
Try it yourself:
  crawler-cli demo --serve          keeps the mirror up, and says what to run against it
  crawler-cli find URL -name GLOB   on any Apache, nginx or Python index page
  crawler-cli find --help
";
