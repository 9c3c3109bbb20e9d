//! The nightly fetch of `examples/tickers`, killed ten times: each filing is fetched, and none is dropped.
//!
//! `COURSER_TICKERS` is the number of tickers: 5000 for the whole list.

// The processes are this test itself: nothing else has to be built.
#[path = "../../examples/tickers/main.rs"]
mod example;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::time::Duration;
use std::{env, fs, thread};

use example::server::{self, is_delisted};

const SPEED: u32 = 200;
const KILLS: u32 = 10;
const WORKERS: u32 = 4;
/// The command line of a process that fetches, one word a line.
const WORDS: &str = "COURSER_TEST_TICKERS";

/// The process that is killed.
#[test]
fn fetching_process() {
    if let Ok(words) = env::var(WORDS) {
        example::run(words.lines().map(str::to_owned)).expect("fetched");
    }
}

fn number_of_tickers() -> u32 {
    match env::var("COURSER_TICKERS") {
        Ok(text) => text.parse().expect("COURSER_TICKERS is a number"),
        Err(_) => 1000,
    }
}

fn command(address: &str, folder: &Path, tickers: u32) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of the test"));
    command.args(["--exact", "tickers::fetching_process", "--nocapture"]);
    let folder = folder.to_str().expect("a path in UTF-8");
    let words =
        format!("--server\n{address}\n--folder\n{folder}\n--speed\n{SPEED}\n--tickers\n{tickers}");
    command.env(WORDS, words);
    command
}

#[test]
fn each_filing_is_fetched_although_the_process_is_killed_ten_times() {
    let tickers = number_of_tickers();
    let folder = tempfile::tempdir().expect("a folder");
    let window = Duration::from_secs(1) / SPEED;
    let (address, journal) = server::start(window).expect("a server");
    let address = address.to_string();
    let requests = || {
        journal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .requests
    };
    for kill in 1..=KILLS {
        let mut child = command(&address, folder.path(), tickers)
            .stdout(Stdio::null())
            .spawn()
            .expect("the process starts");
        // At other moments of a request each time.
        let moment = kill * tickers / (KILLS + 1) + kill * 7;
        while requests() < moment {
            assert!(child.try_wait().expect("a child").is_none(), "ended early");
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("a child");
    }
    let output = command(&address, folder.path(), tickers)
        .output()
        .expect("the example");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("0 kept, 0 left"), "{text}");

    let names = (1..=tickers).map(|number| format!("T{number:04}"));
    let expected: BTreeSet<_> = names.filter(|ticker| !is_delisted(ticker)).collect();
    let files = fs::read_dir(folder.path()).expect("the folder");
    let fetched: BTreeSet<_> = files
        .filter_map(|file| {
            let name = file
                .expect("a file")
                .file_name()
                .into_string()
                .expect("a name");
            name.strip_suffix(".txt").map(str::to_owned)
        })
        .collect();
    assert_eq!(fetched, expected);
    // The dead letters are the delisted ones.
    let delisted = tickers / 100;
    let letters = format!("dead letters: {delisted} failed: 404 Not Found");
    assert!(text.contains(&letters), "{text}");
    assert_eq!(text.matches("dead letters:").count(), 1, "{text}");

    let journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    // What was fetched when the process was killed may have been fetched a second time.
    let again = journal.count(200) - (tickers - delisted);
    assert!(again <= KILLS * WORKERS, "{again} were fetched twice");
}
