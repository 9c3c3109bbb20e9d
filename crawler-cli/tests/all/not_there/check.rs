//! The recipes for users of `check`, each below its heading.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::common::{Script, response, stderr};

/// Where recipes run.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, text) in files {
            let path = folder.0.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, text).expect("written");
        }
        folder
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("written")
    }

    /// Runs the recipe under this heading.
    fn run(&self, heading: &str) -> Output {
        let (_programs, path) = super::programs();
        // Proxies have nothing to do with servers of tests.
        let script = format!(
            "unset http_proxy all_proxy HTTP_PROXY ALL_PROXY\n{}",
            recipe(heading)
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .env("PATH", path)
            .current_dir(self.0.path())
            .output();
        output.expect("sh runs")
    }
}

/// The commands below this heading.
fn recipe(heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("NOT-THERE.md");
    let text = fs::read_to_string(path).expect("the document");
    let section = text.split("\n#").find_map(|section| {
        let (title, rest) = section.split_once('\n')?;
        (title.trim_start_matches(['#', ' ']) == heading).then_some(rest)
    });
    let section = section.unwrap_or_else(|| panic!("there is no heading {heading}"));
    let code = section.split("```sh\n").nth(1).expect("commands");
    code.split("```").next().unwrap_or_default().to_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// A site with a page that is good, one that is gone and one that has moved.
fn site() -> Script {
    Script::start(|request: &str| {
        let path = request.split_once(' ').map_or("", |(_, path)| path);
        match path {
            "/good" | "/new?a&b" => response(200, "", ""),
            "/old" => response(301, "Location: /new?a&b\r\n", ""),
            _ => response(404, "", ""),
        }
    })
}

#[test]
#[ignore = "needs jq"]
fn broken_links_become_annotations() {
    let site = site();
    let text = format!("[a]({0}/good)\n\n[b]({0}/gone)\n", site.url(""));
    let folder = Folder::new(&[("docs/a.md", &text)]);
    let output = folder.run("Annotations of GitHub Actions");
    let gone = site.url("/gone");
    let expected = format!("::error file=docs/a.md,line=3,col=1::{gone}: status_404\n");
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
}

#[test]
#[ignore = "needs jq"]
fn known_failures_are_left_out() {
    let site = site();
    let text = format!("[a]({0}/good) [b]({0}/gone?a+b)\n", site.url(""));
    let folder = Folder::new(&[("docs/a.md", &text)]);
    let output = folder.run("Known failures");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 URL at 1 place: 1 good"));
}

#[test]
#[ignore = "needs jq"]
fn moved_urls_are_written_into_files() {
    let site = site();
    let old = "[a](SITE/old) <SITE/old> [b](SITE/older)\n\n<a href=\"SITE/old\">SITE/old</a>\n";
    let new = "[a](SITE/new?a&b) <SITE/new?a&b> [b](SITE/older)\n\n\
               <a href=\"SITE/new?a&b\">SITE/old</a>\n";
    let host = site.url("");
    let folder = Folder::new(&[("docs/a.md", &old.replace("SITE", &host))]);
    let output = folder.run("New URLs of permanent redirects");
    assert_eq!(
        folder.read("docs/a.md"),
        new.replace("SITE", &host),
        "{}",
        stderr(&output)
    );
}

#[test]
fn links_of_other_files_are_a_list() {
    let site = site();
    let (good, gone) = (site.url("/good"), site.url("/gone"));
    let folder = Folder::new(&[
        ("notes.txt", &format!("See {good} (or {gone}).\n")),
        ("table.csv", &format!("1,{good},x\n2,{gone},y\n")),
    ]);
    let output = folder.run("Links in plain text and in CSV");
    assert_eq!(stderr(&output).matches("status_404").count(), 2);
    assert_eq!(stderr(&output).matches("2 URLs at 2 places").count(), 2);
}
