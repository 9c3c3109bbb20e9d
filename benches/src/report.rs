//! Output formats of a [`Record`]: text for the terminal, JSON, and the percentile distribution of HdrHistogram.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
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
        "ramp_seconds": followed.ramp.as_secs_f64(),
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
        ramp,
        sent,
        unsent,
        most_behind,
    } = followed;
    write!(f, "  Schedule     {rate} per second")?;
    if !ramp.is_zero() {
        write!(f, " after {ramp:?}")?;
    }
    writeln!(
        f,
        ": {sent} sent, {unsent} due but never sent, at most {most_behind} late at a time"
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
    line(f, "max", latency.max())?;
    writeln!(f)?;
    let bars = bars(latency);
    let longest = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    for Bar { upto, count } in &bars {
        // Rounded up, so that every bar with a count is visible.
        let length = (count * BAR_CHARACTERS).div_ceil(longest);
        let bar = "#".repeat(length as usize);
        let upto = Time(*upto).to_string();
        writeln!(f, "  to {upto:>10} |{bar:<40}| {count}")?;
    }
    Ok(())
}

/// The number of latencies up to this bound and above the bound of the previous bar.
#[derive(Debug, PartialEq)]
struct Bar {
    upto: u64,
    count: u64,
}

/// Bars whose bounds grow by a constant ratio, because latencies differ by orders of magnitude.
fn bars(latency: &Histogram<u64>) -> Vec<Bar> {
    let (low, high) = (least(latency).max(1) as f64, latency.max().max(1) as f64);
    let number = if high / low < BARS_FROM_RATIO {
        1
    } else {
        BARS
    };
    let mut bars: Vec<Bar> = (1..=number)
        .map(|bar| Bar {
            upto: (low * (high / low).powf(bar as f64 / number as f64)).round() as u64,
            count: 0,
        })
        .collect();
    for value in latency.iter_recorded() {
        let nanos = value.value_iterated_to();
        let at = bars.partition_point(|bar| bar.upto < nanos);
        // The last bound is the maximum, except for rounding.
        bars[at.min(number - 1)].count += value.count_at_value();
    }
    bars
}

/// Writes the percentile distribution in milliseconds, in the format of HdrHistogram's own tools (`.hgrm`).
///
/// # Errors
/// `out` cannot be written.
pub fn write_hdr(latency: &Histogram<u64>, out: &mut impl Write) -> io::Result<()> {
    let ms = |nanos: f64| nanos / 1e6;
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0;
    for step in latency.iter_quantiles(TICKS_PER_HALF) {
        total += step.count_since_last_iteration();
        let value = ms(step.value_iterated_to() as f64);
        let quantile = step.quantile_iterated_to();
        write!(out, "{value:>12.6} {quantile:>2.12} {total:>10}")?;
        if quantile < 1.0 {
            write!(out, " {:>14.2}", 1.0 / (1.0 - quantile))?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "#[Mean    = {:>12.6}, StdDeviation   = {:>12.6}]",
        ms(latency.mean()),
        ms(latency.stdev())
    )?;
    writeln!(
        out,
        "#[Max     = {:>12.6}, Total count    = {:>12}]",
        ms(latency.max() as f64),
        latency.len()
    )?;
    writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        latency.buckets(),
        (2 * 10u64.pow(latency.sigfig().into())).next_power_of_two()
    )
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
const BARS: usize = 12;
/// If the ratio of the largest to the smallest latency is below this, one bar is enough.
const BARS_FROM_RATIO: f64 = 1.2;
const BAR_CHARACTERS: u64 = 40;
/// The same value as in HdrHistogram's own tools.
const TICKS_PER_HALF: u32 = 5;

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::{Bytes, Time, bars, write_hdr};

    fn latencies(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for &value in values {
            histogram.record(value).unwrap();
        }
        histogram
    }

    #[test]
    fn bars_hold_each_latency_once() {
        for values in [
            &[][..],
            &[0],
            &[1_000_000],
            &[1_000_000, 1_000_001],
            &[1, 3_600_000_000_000],
            &[0, 1, 10, 100, 1000, 10_000, 123_456, 99_999_999_999],
        ] {
            let bars = bars(&latencies(values));
            let all: u64 = bars.iter().map(|bar| bar.count).sum();
            assert_eq!(all, values.len() as u64, "{bars:?}");
            assert!(bars.windows(2).all(|two| two[0].upto <= two[1].upto));
        }
        let decades = [1, 1, 50_000, 1_000_000_000_000];
        let bars = bars(&latencies(&decades));
        let filled = bars.iter().enumerate().filter(|(_, bar)| bar.count > 0);
        let filled: Vec<_> = filled.map(|(at, bar)| (at, bar.count)).collect();
        assert_eq!(filled, [(0, 2), (4, 1), (11, 1)]);
    }

    #[test]
    fn hdr_file_has_the_columns_of_its_kind() {
        let mut file = Vec::new();
        write_hdr(
            &latencies(&[1_000_000, 2_000_000, 3_000_000, 4_000_000]),
            &mut file,
        )
        .unwrap();
        let text = String::from_utf8(file).unwrap();
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some("       Value     Percentile TotalCount 1/(1-Percentile)")
        );
        assert_eq!(lines.next(), Some(""));
        let rows: Vec<Vec<f64>> = lines
            .clone()
            .take_while(|line| !line.starts_with('#'))
            .map(|line| {
                line.split_whitespace()
                    .map(|word| word.parse().unwrap())
                    .collect()
            })
            .collect();
        let (last, others) = rows.split_last().unwrap();
        assert!(others.iter().all(|row| row.len() == 4 && row[1] < 1.0));
        assert_eq!((last.len(), last[1], last[2]), (3, 1.0, 4.0));
        assert!((last[0] - 4.0).abs() < 0.01, "{last:?}");
        assert!(rows.is_sorted_by_key(|row| row[1]) && rows.is_sorted_by_key(|row| row[2] as u64));
        assert_eq!(lines.filter(|line| line.starts_with("#[")).count(), 3);
    }

    #[test]
    fn units_suit() {
        assert_eq!(Time(1_234).to_string(), "1.23µs");
        assert_eq!(Time(61_500_000_000).to_string(), "61.50s");
        assert_eq!(Bytes(1536.0).to_string(), "1.5 KiB");
        assert_eq!(Bytes(12.0).to_string(), "12.0 B");
    }
}
