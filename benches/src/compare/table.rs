//! Prints the medians as Markdown: a table for each workload, a table with the ratios of courser's client to the
//! others, and the bars.

use std::time::Duration;

use super::sample::{Contest, Entrant};
use crate::measure::Record;

/// Prints all tables, as far as there are numbers.
pub(super) fn print(rounds: u32, duration: Duration, contests: &[Contest]) {
    let results: Vec<Result<'_>> = contests.iter().map(Result::of).collect();
    println!(
        "Server and client on one core each; medians of {} rounds of {:?}. The server's share of its core is that of its \
         whole run, so with many connections accepting them is most of it. User time is sampled by the system, and means \
         little below some seconds in all.",
        rounds, duration
    );
    for result in &results {
        result.print();
    }
    print_ratios(&results);
    print_bars(&results);
}

/// A contest with its medians.
struct Result<'a> {
    contest: &'a Contest,
    /// One for each entrant, in the same order.
    medians: Vec<Option<Record>>,
}

impl<'a> Result<'a> {
    fn of(contest: &'a Contest) -> Self {
        let entrants = contest.entrants.iter();
        Self {
            contest,
            medians: entrants.map(Entrant::median).collect(),
        }
    }

    fn median(&self, client: &str) -> Option<&Record> {
        let entrants = &self.contest.entrants;
        let at = entrants
            .iter()
            .position(|entrant| entrant.client == client)?;
        self.medians[at].as_ref()
    }

    fn print(&self) {
        let workload = &self.contest.workload;
        println!("\n### {}: {}\n", workload.name, workload.title());
        if let Some(share) = workload.share {
            println!(
                "The rate is {share} of what the slowest of these clients can do. Latencies count from when a request \
                 was due; between two of them clients do not sleep, so processor times say nothing.\n"
            );
        }
        println!(
            "| client | requests/s | of the limit | by CPU | user µs | system µs | allocations | p50 µs | p90 µs \
             | p99 µs | p99.9 µs | client busy | server busy |\n|---|{}",
            "--:|".repeat(12)
        );
        // With a fixed rate, no client comes near the limit.
        let limit = self.median("limit").filter(|_| workload.rate.is_none());
        for (entrant, median) in self.contest.entrants.iter().zip(&self.medians) {
            match (median, &entrant.failure) {
                (_, Some(failure)) => {
                    println!(
                        "| {} | failed: {failure} |{}",
                        entrant.client,
                        " – |".repeat(11)
                    );
                }
                (Some(sample), None) => print_row(entrant.client, sample, limit),
                (None, None) => {}
            }
        }
    }
}

fn print_row(client: &str, sample: &Record, limit: Option<&Record>) {
    let by_rate = limit.map(|limit| sample.requests_per_second / limit.requests_per_second);
    let by_cpu = limit.map(|limit| limit.cpu_us() / sample.cpu_us());
    let own = sample.own.as_ref();
    let cell = |number: Option<f64>, digits| {
        number.map_or("–".to_owned(), |number| format!("{number:.digits$}"))
    };
    println!(
        "| {client} | {:.0} | {} | {} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {:.0} % | {:.0} % |",
        sample.requests_per_second,
        cell(by_rate, 2),
        cell(by_cpu, 2),
        sample.user_us,
        sample.system_us,
        cell(own.map(|own| own.allocations), 1),
        cell(own.map(|own| own.p50_us), 0),
        cell(own.map(|own| own.p90_us), 0),
        cell(own.map(|own| own.p99_us), 0),
        cell(own.map(|own| own.p999_us), 0),
        sample.client_busy(),
        sample.server_busy()
    );
}

fn print_ratios(results: &[Result<'_>]) {
    println!("\n### Requests per second of courser, divided by those of others\n");
    println!(
        "| workload | courser's | requests/s |{}",
        OTHERS.map(|other| format!(" {other} |")).concat()
    );
    println!("|---|---|{}", "--:|".repeat(1 + OTHERS.len()));
    for result in results {
        let workload = &result.contest.workload;
        let Some(own) = result.median(workload.courser) else {
            continue;
        };
        // With a fixed rate, all clients have the same.
        if workload.rate.is_some() {
            continue;
        }
        let rate = own.requests_per_second;
        let ratio = |other: &str| match result.median(other) {
            Some(other) => format!(" {:.2} |", rate / other.requests_per_second),
            None => " – |".to_owned(),
        };
        println!(
            "| {} | {} | {rate:.0} |{}",
            workload.name,
            workload.courser,
            OTHERS.map(ratio).concat()
        );
    }
}

fn print_bars(results: &[Result<'_>]) {
    let find = |(name, client): (&str, &str)| {
        let mut results = results.iter();
        results
            .find(|result| result.contest.workload.name == name)?
            .median(client)
    };
    let mut has_head = false;
    for bar in BARS {
        let (Some(of), to) = (find(bar.of), bar.to.map(find)) else {
            continue;
        };
        if matches!(to, Some(None)) {
            continue;
        }
        if !has_head {
            println!("\n### Bars\n\n| what | bar | measured | | by CPU |\n|---|--:|--:|---|--:|");
            has_head = true;
        }
        bar.print(of, to.flatten());
    }
}

/// A bar: a number of one client in one workload, or its ratio to the number of another client.
struct Bar {
    figure: Figure,
    /// Workload and client.
    of: (&'static str, &'static str),
    to: Option<(&'static str, &'static str)>,
    bound: f64,
}

#[derive(Clone, Copy)]
enum Figure {
    /// Minimum of requests per second.
    Rate,
    /// Maximum of processor time per request outside the kernel, in µs.
    User,
    /// Maximum of processor time per request, in µs.
    Cpu,
}

impl Bar {
    fn print(&self, of: &Record, to: Option<&Record>) {
        let divided = |figure: fn(&Record) -> f64| figure(of) / to.map_or(1.0, figure);
        let (what, sign, measured) = match self.figure {
            Figure::Rate => (
                "requests/s",
                '≥',
                divided(|sample| sample.requests_per_second),
            ),
            Figure::User => ("user µs", '≤', divided(|sample| sample.user_us)),
            Figure::Cpu => ("CPU µs", '≤', divided(Record::cpu_us)),
        };
        let is_met = match self.figure {
            Figure::Rate => measured >= self.bound,
            Figure::User | Figure::Cpu => measured <= self.bound,
        };
        // The rate if only the core of the client limited it.
        let by_cpu = match self.figure {
            Figure::Rate => number(divided(|sample| 1e6 / sample.cpu_us())),
            Figure::User | Figure::Cpu => "–".to_owned(),
        };
        let (workload, client) = self.of;
        let other = self.to.map_or(String::new(), |(name, other)| {
            if name == workload {
                format!(" / {other}")
            } else {
                format!(" / {name}: {other}")
            }
        });
        println!(
            "| {workload}: {client}{other}, {what} | {sign} {} | {} | {} | {by_cpu} |",
            number(self.bound),
            number(measured),
            if is_met { "met" } else { "**missed**" },
        );
    }
}

/// Ratios with decimals, large numbers without.
fn number(number: f64) -> String {
    if number < 0.2 {
        format!("{number:.3}")
    } else if number < 1000.0 {
        format!("{number:.2}")
    } else {
        format!("{number:.0}")
    }
}

/// The clients that courser is compared with in one line.
const OTHERS: [&str; 7] = [
    "limit", "wrk", "hyper", "reqwest", "ureq", "fasthttp", "net/http",
];

const fn rate(
    workload: &'static str,
    client: &'static str,
    other: &'static str,
    least: f64,
) -> Bar {
    Bar {
        figure: Figure::Rate,
        of: (workload, client),
        to: Some((workload, other)),
        bound: least,
    }
}

const fn user(client: &'static str, to: Option<(&'static str, &'static str)>, most: f64) -> Bar {
    Bar {
        figure: Figure::User,
        of: ("get-64", client),
        to,
        bound: most,
    }
}

/// The bars for times; `counts` has the bars for counts.
const BARS: &[Bar] = &[
    rate("get-64", "host", "limit", 0.97),
    rate("get-64", "host", "wrk", 1.1),
    rate("get-64", "host", "reqwest", 2.0),
    rate("get-64", "host", "hyper", 1.4),
    user("host", None, 0.3),
    user("host", Some(("get-64", "reqwest")), 1.0 / 12.0),
    user("host", Some(("get-64", "hyper")), 1.0 / 7.0),
    rate("get-1", "call", "limit", 0.97),
    rate("get-1", "busy", "wrk", 2.0),
    rate("chunked", "host", "limit", 0.9),
    rate("body-1m", "host", "limit", 0.97),
    rate("pipelining-16", "pipeline", "host", 10.0),
    rate("pipelining-16", "pipeline", "limit", 0.82),
    rate("pipelining-16", "pipeline", "wrk", 1.25),
    rate("pipelining-64", "pipeline", "limit", 0.6),
    rate("pipelining-64", "pipeline", "wrk", 1.35),
    rate("shared", "blocking", "ureq", 1.8),
    rate("async", "driven", "host", 0.85),
    rate("async", "driven", "reqwest", 2.2),
    Bar {
        figure: Figure::Cpu,
        of: ("get-20000", "host"),
        to: Some(("get-64", "host")),
        bound: 1.5,
    },
];

#[cfg(test)]
mod tests {
    use super::super::workload::named;
    use super::{BARS, number};

    #[test]
    fn bars_are_for_those_who_take_part() {
        for bar in BARS {
            for (name, client) in std::iter::once(bar.of).chain(bar.to) {
                let workloads = named(&[name.to_owned()]).unwrap();
                assert_eq!(workloads.len(), 1, "{name}");
                assert!(workloads[0].clients.contains(&client), "{name}: {client}");
            }
        }
    }

    #[test]
    fn numbers_have_the_digits_that_tell() {
        assert_eq!(
            [1.0 / 12.0, 0.97, 3e6].map(number),
            ["0.083", "0.97", "3000000"]
        );
    }
}
