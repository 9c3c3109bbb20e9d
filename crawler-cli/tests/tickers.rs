//! The nightly fetch of `examples/tickers`, killed ten times: each filing is fetched, none is dropped, and the server
//! sees no window over its rate.

#[path = "../examples/tickers/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Once, PoisonError};
use std::thread;
use std::time::Duration;

use server::is_delisted;

const TICKERS: u32 = 5000;
const SPEED: u32 = 200;
const KILLS: u32 = 10;
const WORKERS: u32 = 4;

/// The example beside this test. A run of this test alone builds no examples.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    let folder = test.ancestors().nth(2).expect("the folder of the build");
    let example = folder.join("examples").join("tickers");
    static BUILD: Once = Once::new();
    BUILD.call_once(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "-q", "--example", "tickers"]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success());
    });
    example
}

fn command(address: &str, folder: &Path) -> Command {
    let mut command = Command::new(example());
    command
        .args(["--server", address])
        .arg("--folder")
        .arg(folder)
        .args(["--speed", &SPEED.to_string()])
        .args(["--tickers", &TICKERS.to_string()]);
    command
}

#[test]
fn each_filing_is_fetched_although_the_process_is_killed_ten_times() {
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
        let mut child = command(&address, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the example is built");
        // At other moments of a request each time.
        let moment = kill * TICKERS / (KILLS + 1) + kill * 7;
        while requests() < moment {
            assert!(child.try_wait().expect("a child").is_none(), "ended early");
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("a child");
    }
    let output = command(&address, folder.path())
        .output()
        .expect("the example");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("0 kept, 0 left"), "{text}");

    let tickers = || (1..=TICKERS).map(|number| format!("T{number:04}"));
    let expected: BTreeSet<_> = tickers().filter(|ticker| !is_delisted(ticker)).collect();
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
    let delisted = TICKERS / 100;
    let letters = format!("dead letters: {delisted} failed: 404 Not Found");
    assert!(text.contains(&letters), "{text}");
    assert_eq!(text.matches("dead letters:").count(), 1, "{text}");

    let journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(journal.over, 0, "windows over the rate");
    // What was fetched when the process was killed may have been fetched a second time.
    let again = journal.count(200) - (TICKERS - delisted);
    assert!(again <= KILLS * WORKERS, "{again} were fetched twice");
}
