//! Output formats of a [`Record`]: text for the terminal, and JSON.

use std::fmt::{self, Write as _};
use std::time::Duration;

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

/// The record as several lines for a terminal.
#[derive(Debug)]
pub struct Text<'a>(pub &'a Record);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.0;
        let details = &record.details;
        let Record {
            requests, seconds, ..
        } = record;
        if let Some(why) = details.ended_early {
            writeln!(f, "Ended early: {why}")?;
        }
        writeln!(
            f,
            "{}: {requests} requests in {seconds:.2} s, {:.0} per second",
            record.client, record.requests_per_second
        )?;
        match record.connections_opened {
            Some(opened) => writeln!(
                f,
                "  Connections  {} at a time, {opened} opened",
                record.connections
            )?,
            None => writeln!(f, "  Connections  {} at a time", record.connections)?,
        }
        if let Some(bytes) = details.bytes_in {
            let (all, rate) = (Bytes(bytes as f64), Bytes(bytes as f64 / seconds));
            writeln!(f, "  Transfer     {all} received, {rate}/s")?;
        }
        writeln!(
            f,
            "  Each         {:.2} µs user and {:.2} µs system time, {:.2} allocations",
            record.user_us, record.system_us, record.allocations
        )?;
        if !details.statuses.is_empty() {
            let mut line = String::new();
            for (status, count) in &details.statuses {
                let comma = if line.is_empty() { "" } else { ", " };
                write!(line, "{comma}{count} with {status}")?;
            }
            writeln!(f, "  Answers      {line}")?;
        }
        if let Some(followed) = &details.followed {
            write_followed(f, followed)?;
        }
        writeln!(f, "  Errors       {}", record.errors)?;
        for (kind, count) in &details.errors_by_kind {
            writeln!(f, "  {count:>12}  {}", printable(kind))?;
        }
        if let Some(latency) = &details.latency
            && !latency.is_empty()
        {
            write_latency(f, latency, details.followed.is_some())?;
        }
        Ok(())
    }
}

fn write_followed(f: &mut fmt::Formatter<'_>, followed: &Followed) -> fmt::Result {
    let Followed {
        rate,
        sent,
        unsent,
        most_behind,
    } = followed;
    writeln!(
        f,
        "  Schedule     {rate} per second: {sent} sent, {unsent} due but never sent, at most {most_behind} late at a time"
    )
}

fn write_latency(
    f: &mut fmt::Formatter<'_>,
    latency: &Histogram<u64>,
    from_due: bool,
) -> fmt::Result {
    let since = if from_due { "due" } else { "sent" };
    writeln!(f, "\nLatency, from when a request was {since}")?;
    let line = |f: &mut fmt::Formatter<'_>, name: &str, nanos| {
        writeln!(f, "  {name:<6} {:>10}", Time(nanos).to_string())
    };
    line(f, "min", least(latency))?;
    line(f, "mean", latency.mean() as u64)?;
    for (name, quantile) in QUANTILES {
        line(f, name, latency.value_at_quantile(quantile))?;
    }
    line(f, "max", latency.max())
}

/// The lowest latency; 0 for an empty histogram.
fn least(latency: &Histogram<u64>) -> u64 {
    if latency.is_empty() { 0 } else { latency.min() }
}

/// Replaces control characters by blanks: texts of a server in an error must not control the terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}

/// Nanoseconds, shown in a suitable unit.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2?}", Duration::from_nanos(self.0))
    }
}

/// Bytes, shown in a suitable unit.
struct Bytes(f64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        for unit in ["B", "KiB", "MiB", "GiB"] {
            if left < 1024.0 {
                return write!(f, "{left:.1} {unit}");
            }
            left /= 1024.0;
        }
        write!(f, "{left:.1} TiB")
    }
}

/// Names of the percentiles (in JSON without the point), and their quantiles.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
];

#[cfg(test)]
mod tests {
    use super::{Bytes, Time};

    #[test]
    fn units_suit() {
        assert_eq!(Time(1_234).to_string(), "1.23µs");
        assert_eq!(Time(61_500_000_000).to_string(), "61.50s");
        assert_eq!(Bytes(1536.0).to_string(), "1.5 KiB");
        assert_eq!(Bytes(12.0).to_string(), "12.0 B");
    }
}
