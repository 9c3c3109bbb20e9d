//! What `crawler-cli check` writes where, its exit statuses, and what it does when it is interrupted.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Answer, Script, crawler, response, stderr};
use serde_json::Value;
use tempfile::TempDir;

/// A site with a good page, a missing one, and one of each kind that cannot be judged or redirects.
fn site() -> Script {
    Script::start(|request: &str| {
        let path = request.split_once(' ').map_or("", |(_, path)| path);
        match path {
            "/good" => response(200, "", ""),
            "/moved" => response(301, "Location: /good\r\n", ""),
            "/found" => response(302, "Location: /good\r\n", ""),
            "/forbidden" => response(403, "", ""),
            "/gone" => response(410, "", ""),
            _ => response(404, "", ""),
        }
    })
}

/// A folder for sources and reports.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
        name.to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    /// Runs a check in this folder, as fast as the hosts allow.
    fn check(&self, args: &[&str]) -> Output {
        let mut command = crawler(&[&["check", "--rate", "0", "--robots", "off"], args].concat());
        command.current_dir(self.0.path()).output().expect("runs")
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn objects(text: &str) -> Vec<Value> {
    let objects = text
        .lines()
        .map(|line| serde_json::from_str(line).expect(line));
    objects.collect()
}

#[test]
fn the_text_report_is_on_standard_output_and_says_where_and_why() {
    let (site, folder) = (site(), Folder::new());
    let text = format!(
        "# Links\n\n[a]({0}/good) and [b]({0}/gone)\n[moved]({0}/moved)\n[no]({0}/forbidden) [file](no/such.md)\n",
        site.url("")
    );
    folder.write("docs/a.md", &text);
    let output = folder.check(&["docs"]);
    let text = stdout(&output).replace(&site.url(""), "SITE");
    let column = "[a](/good) and ".len() + site.url("").len() + 1;
    for line in [
        "Broken: 2 URLs at 2 places",
        "docs/a.md",
        &format!("  3:{column}  SITE/gone – 410 Gone"),
        "Not judged: 1 URL at 1 place",
        "  5:1  SITE/forbidden – 403 Forbidden: the server refuses programs",
        "Redirected: 1 URL at 1 place",
        "  4:1  SITE/moved – moved permanently to SITE/good",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    assert!(text.contains("  no/such.md ("), "{text}");
    assert!(text.find("Broken") < text.find("Not judged"), "{text}");
    // The figures are where a person looks, and on loopback, no rate holds a check.
    let figures = stderr(&output);
    assert!(
        figures.starts_with("5 URLs at 5 places: 2 good, 2 BROKEN, 1 not judged, 1 redirected\n")
            && !figures.contains("held by"),
        "{figures}"
    );
    assert!(!text.contains("5 places"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn several_reports_are_written_at_once() {
    let (site, folder) = (site(), Folder::new());
    folder.write("a.md", &format!("<{0}/gone>\n<{0}/good>\n", site.url("")));
    let output = folder.check(&[
        "a.md",
        "--report",
        "text",
        "t.txt",
        "--report",
        "html",
        "h.html",
        "--report",
        "junit",
        "j.xml",
        "--summary",
        "json:s.json",
    ]);
    assert!(folder.read("t.txt").contains("  1:1  "));
    assert!(folder.read("h.html").contains("410 Gone"));
    assert!(folder.read("j.xml").contains("tests=\"2\" failures=\"1\""));
    let summary: Value = serde_json::from_str(&folder.read("s.json")).expect("JSON");
    assert_eq!(summary["summary"]["causes"]["status_410"], 1);
    assert!(summary["summary"]["seconds_computing"].as_f64() > Some(0.0));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn exit_statuses_say_what_was_asked_for() {
    let (site, folder) = (site(), Folder::new());
    for (paths, args, status) in [
        (&["/good"][..], &[][..], 0),
        (&["/good", "/gone"], &[], 1),
        (&["/moved", "/found"], &[], 0),
        (&["/moved"], &["--redirects", "ignore"], 0),
        (&["/moved"], &["--redirects", "fail"], 1),
        (&["/forbidden"], &[], 0),
        (&["/forbidden"], &["--blocked", "ignore"], 0),
        (&["/forbidden"], &["--blocked", "fail"], 1),
        (&["/forbidden", "/gone"], &["--accept", "403,410"], 0),
        (&["/good"], &["--nosuch"], 2),
        (&["/good"], &["--report", "html", "no/such/folder.html"], 2),
        (&["/good"], &["--summary", "json:no/such/folder.json"], 2),
        // The first failure counts, if no time is asked for.
        (&["/good", "/gone"], &["--state", "kept.db"], 1),
        (&["/gone"], &["--state", "kept.db", "--fail-after", "1d"], 0),
        // A file that is no store, and a folder.
        (&["/good"], &["--state", "urls.txt"], 2),
        (&["/good"], &["--state", "."], 2),
    ] {
        let urls: Vec<_> = paths.iter().map(|path| site.url(path)).collect();
        folder.write("urls.txt", &urls.join("\n"));
        let output = folder.check(&[&["--urls", "urls.txt"], args].concat());
        let shown = stdout(&output) + &stderr(&output);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{paths:?} {args:?}\n{shown}"
        );
    }
    // Nothing was asked when a report cannot be written.
    let asked = site.requests().len();
    folder.check(&[
        "--urls",
        "urls.txt",
        "--report",
        "junit",
        "no/such/folder.xml",
    ]);
    assert_eq!(site.requests().len(), asked);
}

#[test]
fn a_report_that_cannot_be_completed_is_named() {
    // Writing to this device fails, creating does not.
    if !Path::new("/dev/full").exists() {
        return;
    }
    let (site, folder) = (site(), Folder::new());
    folder.write("urls.txt", &site.url("/good"));
    let output = folder.check(&["--urls", "urls.txt", "--report", "junit", "/dev/full"]);
    let message = stderr(&output);
    assert!(
        message.contains("crawler-cli check: cannot write /dev/full: "),
        "{message}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn problems_with_sources_are_in_the_report_and_in_the_exit_status() {
    let (site, folder) = (site(), Folder::new());
    folder.write(
        "a.jsonl",
        &format!("{{\"url\":\"{}\"}}\n{{not json\n", site.url("/good")),
    );
    let output = folder.check(&["--urls", "a.jsonl"]);
    assert!(
        stdout(&output).contains("  a.jsonl:2: "),
        "{}",
        stdout(&output)
    );
    assert_eq!(output.status.code(), Some(1));
    let output = folder.check(&["--urls", "a.jsonl", "--json"]);
    assert_eq!(objects(&stdout(&output)).len(), 1);
    let message = stderr(&output);
    assert!(
        message.starts_with("crawler-cli check: a.jsonl:2: "),
        "{message}"
    );
}

#[test]
fn reports_in_the_folder_that_is_checked_are_no_sources() {
    let folder = Folder::new();
    folder.write("a.md", "[b](a.md)\n");
    // The first check creates the files, the second finds them.
    for _ in 0..2 {
        let output = folder.check(&[
            ".", "--report", "junit", "./j.xml", "--report", "html", "h.html", "--json",
        ]);
        let lines = objects(&stdout(&output));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["refs"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn nothing_reaches_a_terminal_unescaped() {
    let folder = Folder::new();
    folder.write("urls.txt", "ht!tp://\u{1b}[31m\u{202e}x\n");
    for args in [&[][..], &["--json"], &["--report", "junit", "-"]] {
        let output = folder.check(&[&["--urls", "urls.txt"], args].concat());
        let text = stdout(&output) + &stderr(&output);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert!(text.contains("1b"), "{text:?}");
        assert_eq!(output.status.code(), Some(1), "{text}");
    }
}

#[test]
fn an_interrupted_check_says_what_it_knows() {
    let (sender, requests) = mpsc::channel();
    let site = Script::start(move |request: &str| -> Answer {
        if request.ends_with("/slow") {
            let _ = sender.send(());
            return Answer::Stall;
        }
        Answer::Bytes(response(200, "", ""))
    });
    let folder = Folder::new();
    folder.write(
        "urls.txt",
        &format!("{}\n{}\n", site.url("/good"), site.url("/slow")),
    );
    let args = [
        "check", "--rate", "0", "--robots", "off", "--urls", "urls.txt", "-j1", "--json",
    ];
    let mut command = crawler(&args);
    command.current_dir(folder.0.path());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    requests
        .recv_timeout(Duration::from_secs(30))
        .expect("a request");
    let id =
        rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("alive");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("1 URL at 1 place: 1 good"), "{text}");
    assert!(text.contains("STOPPED early, 1 URL left"), "{text}");
    let lines = objects(&stdout(&output));
    assert_eq!(
        (lines.len(), &lines[0]["url"]),
        (1, &site.url("/good").into())
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_check_quietly() {
    let (site, folder) = (site(), Folder::new());
    let urls: Vec<_> = (0..5000).map(|i| site.url(&format!("/good?{i}"))).collect();
    folder.write("urls.txt", &urls.join("\n"));
    let args = [
        "check", "--json", "--rate", "0", "--robots", "off", "--urls", "urls.txt",
    ];
    let mut command = crawler(&args);
    command.current_dir(folder.0.path());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    drop(out);
    let mut message = String::new();
    let mut errors = child.stderr.take().expect("piped");
    errors.read_to_string(&mut message).expect("UTF-8");
    let status = child.wait().expect("ends");
    assert!(
        !message.contains("panicked") && !message.contains("cannot write"),
        "{message}"
    );
    assert_eq!(status.signal(), Some(13), "{status}");
    assert!(site.requests().len() < 5000);
}
