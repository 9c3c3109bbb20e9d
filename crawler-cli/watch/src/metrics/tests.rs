//! The exposition as Prometheus reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::*;
use crate::figures::{Method, Phase, Reason};
use crate::vitals::StoreFacts;
use store::{ScheduleState, SetInfo, WorkerInfo};
use verdict::life::State;
use verdict::{Cause, Verdict};

/// One line of a series: its name, its labels and its value.
type Sample = (String, BTreeMap<String, String>, f64);

/// Parses an exposition strictly: types and help before samples, and the end.
fn parse(text: &str) -> (BTreeMap<String, String>, Vec<Sample>) {
    let mut kinds = BTreeMap::new();
    let mut samples = Vec::new();
    let body = text.strip_suffix("# EOF\n").expect("an end");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            let is_new = kinds.insert(name.to_owned(), kind.to_owned()).is_none();
            assert!(is_new, "{name} twice");
        } else if !line.starts_with("# HELP ") {
            samples.push(sample(line));
        }
    }
    (kinds, samples)
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("an end of labels")),
        None => (series, ""),
    };
    let labels = labels
        .split_terminator("\",")
        .filter(|label| !label.is_empty());
    let labels = labels.map(|label| {
        let (name, value) = label.split_once("=\"").expect(line);
        (name.to_owned(), value.trim_end_matches('"').to_owned())
    });
    let value = value.parse().expect(line);
    (name.to_owned(), labels.collect(), value)
}

fn busy() -> Metrics {
    let checks = Arc::new(Figures::default());
    checks
        .results
        .note(Verdict::Failed(Cause::Status410), Some(410));
    checks.results.note(Verdict::Ok, Some(204));
    checks.requests.note(Method::Head, Reason::First);
    checks
        .requests
        .note_phase(Phase::Total, Duration::from_millis(3));
    checks.changes.note(State::Gone, State::Pruned);
    checks.guards.own_network.set(1);
    let rejected = Arc::<RejectedFigures>::default();
    rejected.hits.store(4, Ordering::Relaxed);
    rejected.false_positives.store(1, Ordering::Relaxed);
    let vitals = Arc::new(Vitals::new(Instant::now()));
    vitals.note_replayed(7);
    vitals.set_facts(StoreFacts {
        dead_letters: vec![("poison".to_owned(), 2)],
        schedules: vec![ScheduleState {
            name: "nightly".to_owned(),
            last_success: Some(jiff::Timestamp::UNIX_EPOCH),
            missed: 3,
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
            process: 99,
            version: "0.1".to_owned(),
            age: Duration::from_secs(60),
            silent: Duration::from_secs(2),
            hosts: 12,
        }],
    });
    Metrics::new(Sources {
        checks,
        store: Arc::default(),
        rejected,
        vitals,
    })
}

#[test]
fn names_follow_the_rules() {
    let text = busy().text();
    let (kinds, samples) = parse(&text);
    for (name, kind) in &kinds {
        let of_process = name.starts_with("process_");
        assert!(of_process || name.starts_with("courser_"), "{name}");
        assert!(
            name.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
            "{name}"
        );
        for unit in [
            "_ms", "_millis", "_minutes", "_kb", "_percent", "_count", "_sum", "_total",
        ] {
            assert!(!name.ends_with(unit), "{name}");
        }
        assert!(
            ["counter", "gauge", "histogram", "info"].contains(&kind.as_str()),
            "{name} {kind}"
        );
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
    }
    for (name, labels, _) in &samples {
        let family = kinds.iter().find(|(family, kind)| match kind.as_str() {
            "counter" => *name == format!("{family}_total"),
            "info" => *name == format!("{family}_info"),
            "histogram" => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|end| *name == format!("{family}{end}")),
            _ => name == *family,
        });
        assert!(family.is_some(), "{name} is of no family");
        let known = [
            "class", "code", "method", "reason", "phase", "from", "to", "state", "kind", "op",
            "job", "result", "version", "commit", "le", "worker", "set",
        ];
        for label in labels.keys() {
            assert!(
                known.contains(&label.as_str()),
                "{name} {label}: no URL, no host"
            );
        }
    }
    let series: BTreeSet<_> = samples
        .iter()
        .map(|(name, labels, _)| (name, labels))
        .collect();
    assert_eq!(series.len(), samples.len(), "a series is there twice");
}

#[test]
fn values_are_those_of_the_figures() {
    let (_, samples) = parse(&busy().text());
    for line in [
        r#"courser_check_results_total{class="neg",code="410"} 1"#,
        r#"courser_check_results_total{class="ok",code="2xx"} 1"#,
        r#"courser_check_requests_total{method="HEAD",reason="first"} 1"#,
        r#"courser_check_requests_total{method="GET",reason="canary"} 0"#,
        r#"courser_check_duration_seconds_bucket{phase="total",le="0.002"} 0"#,
        r#"courser_check_duration_seconds_bucket{phase="total",le="0.004"} 1"#,
        r#"courser_check_duration_seconds_bucket{phase="total",le="+Inf"} 1"#,
        r#"courser_check_duration_seconds_sum{phase="total"} 0.003"#,
        r#"courser_check_transitions_total{from="GONE",to="PRUNED"} 1"#,
        "courser_check_prunes_total 1",
        r#"courser_check_guard_active{kind="self"} 1"#,
        "courser_bloom_hits_total 4",
        "courser_bloom_false_positive_total 1",
        r#"courser_dlq_entries{reason="poison"} 2"#,
        "courser_fleet_workers 1",
        r#"courser_fleet_hosts{worker="one-7"} 12"#,
        r#"courser_fleet_silent_seconds{worker="one-7"} 2"#,
        "courser_dlq_replayed_total 7",
        r#"courser_cron_missed_total{job="nightly"} 3"#,
        r#"courser_cron_last_success_timestamp_seconds{job="nightly"} 0"#,
        "courser_config_reload_success 1",
    ] {
        assert!(samples.contains(&sample(line)), "{line}");
    }
    let build = samples
        .iter()
        .find(|(name, ..)| name == "courser_build_info");
    let (_, labels, value) = build.expect("it is there");
    let commit = option_env!("COURSER_COMMIT").unwrap_or("unknown");
    let expected = [("version", env!("CARGO_PKG_VERSION")), ("commit", commit)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!((labels, *value), (&BTreeMap::from(expected), 1.0));
    let value = |wanted: &str| {
        samples
            .iter()
            .find(|(name, ..)| name == wanted)
            .map(|it| it.2)
    };
    assert!(value("process_resident_memory_bytes") > Some(1e6));
    assert!(value("process_open_fds") >= Some(3.0));
}
