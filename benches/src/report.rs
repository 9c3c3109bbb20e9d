//! What the tools report in the same way: a [`Record`] as JSON, the names of values, and the exit code.

use std::process::ExitCode;

use clap::ValueEnum;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::measure::{Details, Followed, Record};

/// The record as one JSON object.
#[must_use]
pub fn json(record: &Record) -> Value {
    let Details {
        bytes_in,
        statuses,
        errors_by_kind,
        followed,
        ended_early,
        latency,
    } = &record.details;
    let statuses: Map<String, Value> = statuses
        .iter()
        .map(|(status, count)| (status.to_string(), json!(count)))
        .collect();
    json!({
        "client": record.client,
        "connections": record.connections,
        "requests": record.requests,
        "errors": record.errors,
        "seconds": record.seconds,
        "requests_per_second": record.requests_per_second,
        "user_us": record.user_us,
        "system_us": record.system_us,
        "allocations": record.allocations,
        "connections_opened": record.connections_opened,
        "p50_us": record.p50_us,
        "p90_us": record.p90_us,
        "p99_us": record.p99_us,
        "p999_us": record.p999_us,
        "bytes_in": bytes_in,
        "statuses": statuses,
        "errors_by_kind": errors_by_kind,
        "schedule": followed.as_ref().map(schedule_json),
        "ended_early": ended_early,
        "latency_us": latency.as_ref().map(latency_json),
    })
}

fn schedule_json(followed: &Followed) -> Value {
    json!({
        "rate": followed.rate,
        "sent": followed.sent,
        "unsent": followed.unsent,
        "most_behind": followed.most_behind,
    })
}

fn latency_json(latency: &Histogram<u64>) -> Value {
    let mut values = Map::new();
    let us = |nanos: u64| json!(nanos as f64 / 1e3);
    values.insert("min".to_owned(), us(least(latency)));
    values.insert("mean".to_owned(), json!(latency.mean() / 1e3));
    for (name, quantile) in QUANTILES {
        let name = name.replace('.', "");
        values.insert(name, us(latency.value_at_quantile(quantile)));
    }
    values.insert("max".to_owned(), us(latency.max()));
    Value::Object(values)
}

/// The lowest latency; 0 for an empty histogram.
fn least(latency: &Histogram<u64>) -> u64 {
    if latency.is_empty() { 0 } else { latency.min() }
}

/// The exit code of a tool: 1 if a bar was missed, or requests failed.
pub(crate) fn exit_code(is_missed: bool) -> ExitCode {
    match is_missed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// The name of a value on the command line.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Replaces control characters by blanks: texts of a server in an error must not control the terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}

/// Names of the percentiles (in JSON without the point), and their quantiles.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
];
