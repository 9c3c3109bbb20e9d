//! The metrics: the numbers that are metrics as they are, and one row for each of the others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::MetricType::{self, Counter, Gauge, Info};
use prometheus_client::registry::Registry;

use super::{Family, Sources, Value};
use crate::figures::{Figures, Histogram, Method, Phase, Reason};
use store::{Buckets, WorkerInfo};
use verdict::life::State;

/// Registers the numbers that are metrics as they are.
pub(super) fn register(registry: &mut Registry, figures: &Figures) {
    let Figures {
        requests,
        changes,
        backlog,
        guards,
        cycles,
        keeping,
        ..
    } = figures;
    registry.register(
        "check_inflight",
        "Requests that wait for their answers",
        requests.in_flight.clone(),
    );
    registry.register("check_staleness_ratio", "The share of URLs that are past due by more than 2.4 minutes; what is beyond a tenth is not counted", backlog.staleness.clone());
    registry.register(
        "check_private_urls",
        "URLs at private addresses, which are asked only with limits.allow_private",
        backlog.private.clone(),
    );
    registry.register(
        "check_prunes",
        "URLs that were pruned",
        changes.pruned.clone(),
    );
    registry.register(
        "check_false_prunes",
        "URLs that were pruned and are alive again",
        changes.false_prunes.clone(),
    );
    registry.register(
        "check_void",
        "Verdicts that were taken while a guard was on",
        guards.void.clone(),
    );
    registry.register(
        "check_quarantined",
        "URLs that are held",
        guards.quarantined.clone(),
    );
    registry.register(
        "check_cycles",
        "Cycles of reconciling that have ended",
        cycles.ended.clone(),
    );
    registry.register(
        "check_cycle_urls",
        "URLs that cycles of reconciling asked",
        cycles.asked.clone(),
    );
    registry.register(
        "check_unstored",
        "Outcomes that are not stored yet",
        keeping.unstored.clone(),
    );
    registry.register(
        "check_stored",
        "Outcomes that were stored",
        keeping.stored.clone(),
    );
    registry.register(
        "check_stale_commits",
        "Outcomes whose URL was not due any more: nothing was stored",
        keeping.stale.clone(),
    );
    registry.register(
        "store_stopped",
        "1 while the store takes nothing, so that nothing is asked",
        keeping.is_stopped.clone(),
    );
    registry.register(
        "tls_resumed",
        "TLS handshakes that resumed a session",
        requests.resumed.clone(),
    );
}

/// The other metrics, without their prefix.
pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "check_results",
        help: "Verdicts by class and by the status of the last answer",
        kind: Counter,
        series: |from, to| {
            for (class, code, count) in from.checks.results.iter() {
                to(
                    &[("class", class.name()), ("code", &code.to_string())],
                    Value::Count(count),
                );
            }
        },
    },
    Family {
        name: "check_requests",
        help: "Requests by method and reason",
        kind: Counter,
        series: |from, to| {
            for method in Method::ALL {
                for reason in Reason::ALL {
                    let labels = [("method", method.name()), ("reason", reason.name())];
                    to(
                        &labels,
                        Value::Count(from.checks.requests.count(method, reason)),
                    );
                }
            }
        },
    },
    Family {
        name: "check_duration_seconds",
        help: "How long the phases of requests took",
        kind: MetricType::Histogram,
        series: |from, to| {
            for phase in Phase::ALL {
                let histogram = from.checks.requests.phase(phase);
                to(&[("phase", phase.name())], times(histogram));
            }
        },
    },
    Family {
        name: "check_transitions",
        help: "Changes of state",
        kind: Counter,
        series: |from, to| {
            for (old, new, count) in from.checks.changes.iter() {
                to(
                    &[("from", old.name()), ("to", new.name())],
                    Value::Count(count),
                );
            }
        },
    },
    Family {
        name: "check_urls",
        help: "URLs by state",
        kind: Gauge,
        series: |from, to| {
            for state in State::ALL {
                to(
                    &[("state", state.name())],
                    number(from.checks.backlog.urls(state).get()),
                );
            }
        },
    },
    Family {
        name: "check_hosts",
        help: "Hosts that are worked on, held, waiting because they asked for it, or failing",
        kind: Gauge,
        series: |from, to| {
            let backlog = &from.checks.backlog;
            to(&[("state", "ready")], number(backlog.hosts_ready.get()));
            to(&[("state", "held")], number(backlog.hosts_held.get()));
            to(
                &[("state", "throttled")],
                number(backlog.hosts_throttled.get()),
            );
            to(&[("state", "failing")], number(backlog.hosts_failing.get()));
        },
    },
    Family {
        name: "check_due_lag_seconds",
        help: "For how long the oldest URL is due",
        kind: Gauge,
        series: |from, to| to(&[], Value::Real(seconds(from.checks.backlog.lag.get()))),
    },
    Family {
        name: "check_guard_active",
        help: "Whether the own network counts as broken; how many hosts are held; whether pruning waits for its budget",
        kind: Gauge,
        series: |from, to| {
            let guards = &from.checks.guards;
            to(&[("kind", "self")], number(guards.own_network.get()));
            to(&[("kind", "host")], number(guards.hosts.get()));
            to(&[("kind", "budget")], number(guards.budget.get()));
        },
    },
    Family {
        name: "check_cycle_duration_seconds",
        help: "How long cycles of reconciling took",
        kind: MetricType::Histogram,
        series: |from, to| to(&[], times(&from.checks.cycles.took)),
    },
    Family {
        name: "check_commit_wait_seconds",
        help: "How long outcomes waited for their transaction",
        kind: MetricType::Histogram,
        series: |from, to| to(&[], times(&from.checks.keeping.commit)),
    },
    Family {
        name: "store_commit_seconds",
        help: "How long transactions took",
        kind: MetricType::Histogram,
        series: |from, to| to(&[], powers(&from.store.micros, 1e-6)),
    },
    Family {
        name: "store_batch_rows",
        help: "How many rows transactions had",
        kind: MetricType::Histogram,
        series: |from, to| to(&[], powers(&from.store.rows, 1.0)),
    },
    Family {
        name: "store_errors",
        help: "Operations that failed for a reason of their own, and transactions that the store could not take",
        kind: Counter,
        series: |from, to| {
            to(&[("op", "operation")], loaded(&from.store.failures));
            to(&[("op", "commit")], loaded(&from.store.refusals));
        },
    },
    Family {
        name: "store_kept_operations",
        help: "Operations that are kept until the store can be written",
        kind: Gauge,
        series: |from, to| {
            let kept = from.store.kept.load(Ordering::Relaxed);
            to(&[], number(u64::try_from(kept).unwrap_or(u64::MAX)));
        },
    },
    Family {
        name: "bloom_hits",
        help: "How often the filter of rejected URLs said that a submitted URL may be rejected",
        kind: Counter,
        series: |from, to| to(&[], loaded(&from.rejected.hits)),
    },
    Family {
        name: "bloom_false_positive",
        help: "How often the store then said that the URL is not rejected",
        kind: Counter,
        series: |from, to| to(&[], loaded(&from.rejected.false_positives)),
    },
    Family {
        name: "dlq_entries",
        help: "Dead letters by reason",
        kind: Gauge,
        series: |from, to| {
            for (reason, count) in from.vitals.facts().dead_letters.iter().take(MOST_SERIES) {
                to(&[("reason", reason)], number(*count));
            }
        },
    },
    Family {
        name: "dlq_replayed",
        help: "Dead letters that operators had tried again",
        kind: Counter,
        series: |from, to| to(&[], Value::Count(from.vitals.replayed())),
    },
    Family {
        name: "cron_last_success_timestamp_seconds",
        help: "When the job of a schedule succeeded last",
        kind: Gauge,
        series: |from, to| {
            for schedule in from.vitals.facts().schedules.iter().take(MOST_SERIES) {
                if let Some(at) = schedule.last_success {
                    to(&[("job", &schedule.name)], Value::Number(at.as_second()));
                }
            }
        },
    },
    Family {
        name: "cron_missed",
        help: "Firings of a schedule that passed without a run",
        kind: Counter,
        series: |from, to| {
            for schedule in from.vitals.facts().schedules.iter().take(MOST_SERIES) {
                to(&[("job", &schedule.name)], Value::Count(schedule.missed));
            }
        },
    },
    Family {
        name: "cron_overlap_skipped",
        help: "Firings of a schedule that were skipped, because the run before had not ended",
        kind: Counter,
        series: |from, to| {
            for schedule in from.vitals.facts().schedules.iter().take(MOST_SERIES) {
                let skipped = Value::Count(schedule.overlapped);
                to(&[("job", &schedule.name)], skipped);
            }
        },
    },
    Family {
        name: "host_limited_seconds",
        help: "For how long nothing could be asked because of the limits of hosts",
        kind: Counter,
        series: |from, to| {
            let micros = from.checks.backlog.host_limited.get();
            to(&[], Value::RealCount(micros as f64 * 1e-6));
        },
    },
    Family {
        name: "cpu_limited_seconds",
        help: "For how long the thread that asks was busy",
        kind: Counter,
        series: |from, to| {
            let micros = from.checks.backlog.cpu_limited.get();
            to(&[], Value::RealCount(micros as f64 * 1e-6));
        },
    },
    Family {
        name: "conn_reuse_ratio",
        help: "The share of requests on connections that were used before",
        kind: Gauge,
        series: |from, to| {
            let requests = &from.checks.requests;
            let all = requests.phase(Phase::Total).count();
            let share = requests.reused.get() as f64 / all.max(1) as f64;
            to(&[], Value::Real(share.min(1.0)));
        },
    },
    Family {
        name: "build",
        help: "The version of the program, and the commit that it was built from",
        kind: Info,
        series: |_, to| {
            let version = env!("CARGO_PKG_VERSION");
            to(&[("version", version), ("commit", COMMIT)], Value::Info);
        },
    },
    Family {
        name: "fleet_workers",
        help: "Services that share the store; 0 if the store is a file",
        kind: Gauge,
        series: |from, to| to(&[], number(from.vitals.facts().workers.len() as u64)),
    },
    Family {
        name: "fleet_hosts",
        help: "Hosts that each service of the fleet has",
        kind: Gauge,
        series: |from, to| {
            for (worker, info) in &named(from) {
                to(&[("worker", worker)], number(info.hosts));
            }
        },
    },
    Family {
        name: "fleet_silent_seconds",
        help: "For how long each service of the fleet has given no sign of life",
        kind: Gauge,
        series: |from, to| {
            for (worker, info) in &named(from) {
                to(
                    &[("worker", worker)],
                    Value::Real(info.silent.as_secs_f64()),
                );
            }
        },
    },
    Family {
        name: "watch_set_members",
        help: "URLs of each set in each state",
        kind: Gauge,
        series: |from, to| {
            for (set, _) in from.vitals.facts().sets.iter().take(MOST_SERIES) {
                for state in State::ALL {
                    let urls = set.states.get(&state).copied().unwrap_or(0);
                    let labels = [("set", &*set.name), ("state", state.name())];
                    to(&labels, number(urls));
                }
            }
        },
    },
    Family {
        name: "watch_set_source_ok",
        help: "Whether the source of each set could be read last, and was believed",
        kind: Gauge,
        series: |from, to| {
            for (set, is_ok) in from.vitals.facts().sets.iter().take(MOST_SERIES) {
                to(&[("set", &set.name)], number((*is_ok).into()));
            }
        },
    },
    Family {
        name: "config_reload_success",
        help: "Whether the configuration was good when it was last read",
        kind: Gauge,
        series: |from, to| to(&[], number(from.vitals.is_reload_good().into())),
    },
    Family {
        name: "config_reloads",
        help: "How often the configuration was read again",
        kind: Counter,
        series: |from, to| to(&[], Value::Count(from.vitals.reloads())),
    },
];

/// The services of the fleet, by their names and numbers.
fn named(from: &Sources) -> Vec<(String, WorkerInfo)> {
    let workers = from.vitals.facts().workers.into_iter().take(MOST_SERIES);
    workers
        .map(|worker| (format!("{}-{}", worker.name, worker.number), worker))
        .collect()
}

fn loaded(count: &AtomicU64) -> Value {
    Value::Count(count.load(Ordering::Relaxed))
}

fn number(number: u64) -> Value {
    Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

fn seconds(millis: u64) -> f64 {
    Duration::from_millis(millis).as_secs_f64()
}

fn times(histogram: &Histogram) -> Value {
    let buckets = histogram.buckets().map(|(end, count)| {
        let end = end.map_or(f64::INFINITY, |end| end.as_secs_f64());
        (end, count)
    });
    Value::Histogram(histogram.sum().as_secs_f64(), buckets.collect())
}

fn powers(buckets: &Buckets, scale: f64) -> Value {
    let counts = buckets
        .counts()
        .into_iter()
        .enumerate()
        .map(|(place, count)| {
            let end = match place + 1 < Buckets::COUNT {
                true => Buckets::bound(place) as f64 * scale,
                false => f64::INFINITY,
            };
            (end, count)
        });
    Value::Histogram(buckets.sum() as f64 * scale, counts.collect())
}

/// What the environment of the compiler says: a package has no history to ask.
const COMMIT: &str = match option_env!("COURSER_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
/// The most series of a metric whose labels are named by operators or servers.
const MOST_SERIES: usize = 1000;
