//! What is in contrib/ fits the program: metrics that alerts and panels name exist, the configuration is good, and the health
//! check of the container tells a service that runs from one that does not. The tools of others check the rest: .ci/contrib.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;
use store::{ScheduleState, SetInfo, WorkerInfo};
use verdict::Verdict;
use watch::figures::Figures;
use watch::metrics::{Metrics, Sources};
use watch::vitals::{StoreFacts, Vitals};

use crate::common::service::{Service, folder, stdout, watch};
use crate::common::{crawler, stderr};

fn contrib(name: &str) -> String {
    fs::read_to_string(file(name)).expect(name)
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("contrib")
        .join(name)
}

/// The names of all series with the labels that each has.
fn exposition() -> BTreeMap<String, BTreeSet<String>> {
    let vitals = Arc::new(Vitals::new(Instant::now()));
    // Without these, some metrics have no series, and so no labels.
    vitals.set_facts(StoreFacts {
        dead_letters: vec![("poison".to_owned(), 1)],
        schedules: vec![ScheduleState {
            name: "nightly".to_owned(),
            last_success: Some(Timestamp::UNIX_EPOCH),
            ..ScheduleState::default()
        }],
        sets: vec![(
            SetInfo {
                name: "docs".to_owned(),
                members: 5,
                refused: Some((6, 10)),
                ..SetInfo::default()
            },
            false,
        )],
        workers: vec![WorkerInfo {
            number: 7,
            name: "one".to_owned(),
            hosts: 1,
            ..WorkerInfo::default()
        }],
    });
    let checks = Arc::new(Figures::default());
    checks.results.note(Verdict::Ok, Some(200));
    let metrics = Metrics::new(Sources {
        checks,
        store: Arc::default(),
        rejected: Arc::default(),
        vitals,
    });
    let text = metrics.text();
    let kind = Regex::new(r"^# TYPE (\w+) (\w+)$").expect("a pattern");
    let mut names = BTreeMap::<String, BTreeSet<String>>::new();
    for line in text.lines() {
        if let Some(found) = kind.captures(line) {
            let endings: &[&str] = match &found[2] {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                "info" => &["_info"],
                _ => &[""],
            };
            for ending in endings {
                names.insert(format!("{}{ending}", &found[1]), BTreeSet::new());
            }
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let known = names.get_mut(name).expect(line);
            known.extend(labels_in(line));
        }
    }
    names
}

/// The names of labels that a series or a selector has in its braces.
fn labels_in(text: &str) -> Vec<String> {
    static LABEL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(\w+) ?(?:=~|!~|!=|=) ?""#).expect("a pattern"));
    let found = LABEL.captures_iter(text).map(|found| found[1].to_owned());
    found.collect()
}

/// Says what an expression names that no scrape has.
fn unknown_in(expression: &str, known: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    static SERIES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b((?:courser|process)_\w+)(\{[^}]*\})?").expect("a pattern")
    });
    let mut unknown = Vec::new();
    for found in SERIES.captures_iter(expression) {
        let name = &found[1];
        let Some(labels) = known.get(name) else {
            unknown.push(name.to_owned());
            continue;
        };
        let selector = found.get(2).map_or("", |selector| selector.as_str());
        for label in labels_in(selector) {
            // These are Prometheus' own; it renames a label of ours that is called as one of its own.
            let is_target = matches!(&*label, "instance" | "job");
            let ours = label.strip_prefix("exported_").unwrap_or(&label);
            if !is_target && !labels.contains(ours) {
                unknown.push(format!("{name}{{{label}}}"));
            }
        }
    }
    unknown
}

#[test]
fn what_does_not_exist_is_found() {
    let known = exposition();
    let bad = r#"courser_nothing_total + courser_check_urls{status="ALIVE", instance=~"a.*"}"#;
    assert_eq!(
        unknown_in(bad, &known),
        ["courser_nothing_total", "courser_check_urls{status}"]
    );
    // A counter has its ending, a histogram has three, and the label of schedules has another name.
    let names = "courser_check_prunes courser_check_duration_seconds courser_cron_missed_total{exported_job=\"a\"}";
    assert_eq!(
        unknown_in(names, &known),
        ["courser_check_prunes", "courser_check_duration_seconds"]
    );
}

#[test]
fn alerts_name_metrics_that_exist() {
    let known = exposition();
    let alerts = contrib("alerts.yml");
    assert_eq!(unknown_in(&alerts, &known), [""; 0]);
    assert_eq!(unknown_in(&contrib("alerts_test.yml"), &known), [""; 0]);
}

#[test]
fn each_alert_is_tested_and_explained() {
    let alert = Regex::new(r"- alert: (\w+)").expect("a pattern");
    let alerts = contrib("alerts.yml");
    let (tests, readme) = (contrib("alerts_test.yml"), contrib("README.md"));
    let mut names = BTreeSet::new();
    for found in alert.captures_iter(&alerts) {
        let name = &found[1];
        assert!(names.insert(name.to_owned()), "{name} twice");
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name}");
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
    assert_eq!(readme.matches("| `Check").count(), names.len());
}

#[test]
fn the_dashboard_is_whole() {
    let board: Value = serde_json::from_str(&contrib("grafana.json")).expect("JSON");
    let known = exposition();
    let panels = board["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            let expression = target["expr"].as_str().expect("an expression");
            assert_eq!(unknown_in(expression, &known), [""; 0], "{title}");
            assert!(expression.contains("instance=~\"$instance\""), "{title}");
        }
        let place = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
        assert!(place("x") + place("w") <= 24, "{title}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "{title} lies on another panel");
            }
        }
    }
    let variables = board["templating"]["list"].as_array().expect("variables");
    let names = variables.iter().map(|variable| &variable["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["datasource", "instance"]);
    let query = variables[1]["definition"].as_str().expect("a query");
    assert_eq!(unknown_in(query, &known), [""; 0]);
}

#[test]
fn the_configuration_is_good() {
    let path = file("watch.toml").display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let output = watch(folder.path(), &["config", "check", "--config", &path]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("good: 2 sets, 1 schedule"), "{said}");
    let unit = contrib("courser-watch.service");
    // The unit, the configuration and the container agree.
    assert!(unit.contains("StateDirectory=courser\n"));
    assert!(contrib("watch.toml").contains("sqlite:/var/lib/courser/"));
    assert!(contrib("watch.toml").contains(&format!("listen = \"{ADDRESS}\"")));
    assert!(contrib("Containerfile").contains(&format!("http://{ADDRESS}/healthz")));
}

/// The instructions of the Containerfile, with their arguments.
fn instructions() -> Vec<(String, String)> {
    let text = contrib("Containerfile").replace("\\\n", " ");
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = lines.map(|line| line.split_once(' ').expect(line));
    split
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

/// The words of an instruction that has a JSON array.
fn words(rest: &str) -> Vec<String> {
    let start = rest.find('[').expect("an array: there is no shell");
    serde_json::from_str(&rest[start..]).expect(rest)
}

#[test]
fn the_container_has_no_root_no_shell_and_no_unknown_origin() {
    let mut stages = BTreeSet::new();
    let (mut base, mut user) = (String::new(), String::new());
    for (word, rest) in instructions() {
        match &*word {
            "FROM" => {
                let mut parts = rest.split(" AS ");
                base = parts.next().unwrap_or_default().to_owned();
                stages.extend(parts.next().map(str::to_owned));
                let is_named =
                    base == "scratch" || base.contains(':') && !base.ends_with(":latest");
                assert!(is_named, "{base}");
                user.clear();
            }
            "COPY" => {
                let from = rest.split("--from=").nth(1);
                let from = from.and_then(|from| from.split(' ').next());
                assert!(from.is_none_or(|from| stages.contains(from)), "{rest}");
            }
            "USER" => user = rest,
            "ENTRYPOINT" | "CMD" | "HEALTHCHECK" | "VOLUME" => assert!(!words(&rest).is_empty()),
            "RUN" => assert_ne!(base, "scratch", "there is no shell: {rest}"),
            "LABEL" | "WORKDIR" | "STOPSIGNAL" => {}
            other => panic!("{other} {rest}"),
        }
    }
    assert_eq!(base, "scratch");
    let ids = user.split(':').map(|id| id.parse().expect("a number"));
    assert!(ids.clone().count() == 2 && ids.clone().all(|id: u32| id > 0));
}

#[test]
fn the_health_check_of_the_container_asks_the_service() {
    let all = instructions();
    let check = all.iter().find(|(word, _)| word == "HEALTHCHECK");
    let words = words(&check.expect("a health check").1);
    assert_eq!(words[0], "/crawler-cli");
    let folder = folder("[http]\nlisten = \"127.0.0.1:0\"\n", &[]);
    let service = Service::start(folder.path());
    let arguments: Vec<String> = words[1..]
        .iter()
        .map(|word| word.replace(ADDRESS, &service.address))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = || crawler(&arguments).output().expect("the program runs");
    let healthy = run();
    assert!(healthy.status.success(), "{}", stderr(&healthy));
    service.end();
    assert!(!run().status.success());
}

/// Where the files expect the service.
const ADDRESS: &str = "127.0.0.1:10390";

#[test]
fn the_image_is_built_by_the_rust_of_the_workspace_from_sources_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| fs::read_to_string(root.join(name)).expect(name);
    let manifest = read("Cargo.toml");
    let pinned = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \""))
        .and_then(|rest| rest.strip_suffix('"'))
        .expect("a pinned Rust");
    let image = contrib("Containerfile");
    let base = format!("FROM docker.io/library/rust:{pinned}-");
    assert!(image.lines().any(|line| line.starts_with(&base)), "{base}");
    let ignored = read(".containerignore");
    assert!(ignored.lines().any(|line| line == "target"), "{ignored}");
}
