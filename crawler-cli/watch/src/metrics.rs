//! What the service counts, as metrics for Prometheus (OpenMetrics text). Reading them touches neither the store nor a
//! lock of the loop.
//!
//! No label has a URL or a host: the number of series does not grow with what is checked.

mod families;
mod process;

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::figures::Figures;
use super::vitals::Vitals;
use families::FAMILIES;
use store::WriterFigures;
use store::sqlite::RejectedFigures;

/// What metrics are made of.
#[derive(Clone, Debug)]
pub struct Sources {
    /// What is counted about checks.
    pub checks: Arc<Figures>,
    /// What the writer of the store counts.
    pub store: Arc<WriterFigures>,
    /// What the filter of rejected URLs counts.
    pub rejected: Arc<RejectedFigures>,
    /// How the service is.
    pub vitals: Arc<Vitals>,
}

/// The metrics of a service.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
///
/// use watch::metrics::{Metrics, Sources};
/// use watch::vitals::Vitals;
///
/// let vitals = Arc::new(Vitals::new(Instant::now()));
/// let metrics = Metrics::new(Sources {
///     checks: Arc::default(),
///     store: Arc::default(),
///     rejected: Arc::default(),
///     vitals,
/// });
/// assert!(metrics.text().contains("courser_check_inflight 0"));
/// ```
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// The content type of [`Metrics::text`].
    pub const CONTENT_TYPE: &'static str =
        "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Metrics of these sources.
    pub fn new(sources: Sources) -> Self {
        let mut registry = Registry::default();
        let own = registry.sub_registry_with_prefix(PREFIX);
        families::register(own, &sources.checks);
        own.register_collector(Box::new(Exporter(sources.clone())));
        // These names are the same for all programs, without our prefix.
        registry.register_collector(Box::new(process::Process(sources.vitals)));
        Self { registry }
    }

    /// All metrics.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

/// A metric with all of its series.
struct Family {
    /// Without the prefix, and without `_total`, which the encoder adds to counters.
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    /// Hands each series to the encoder.
    series: fn(&Sources, &mut Encode<'_>),
}

/// Takes a series: its labels and its value.
type Encode<'e> = dyn FnMut(&[(&str, &str)], Value) + 'e;

/// The value of a series.
enum Value {
    Count(u64),
    RealCount(f64),
    Number(i64),
    Real(f64),
    Info,
    /// The sum, and the upper ends of buckets with their counts, which are not cumulative.
    Histogram(f64, Vec<(f64, u64)>),
}

/// Writes the families.
#[derive(Debug)]
struct Exporter(Sources);

impl Collector for Exporter {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in FAMILIES {
            encode(&mut encoder, family, &self.0)?;
        }
        Ok(())
    }
}

fn encode(encoder: &mut DescriptorEncoder<'_>, family: &Family, sources: &Sources) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(family.name, family.help, None, family.kind)?;
    let mut result = Ok(());
    (family.series)(sources, &mut |labels, value| {
        if result.is_ok() {
            result = series(&mut metric, labels, &value);
        }
    });
    result
}

fn series(metric: &mut MetricEncoder<'_>, labels: &[(&str, &str)], value: &Value) -> fmt::Result {
    if let Value::Info = value {
        return metric.encode_info(&labels.to_vec());
    }
    if labels.is_empty() {
        return write(metric, value);
    }
    let labels = labels.to_vec();
    write(&mut metric.encode_family(&labels)?, value)
}

fn write(metric: &mut MetricEncoder<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Count(count) => metric.encode_counter::<NoLabels, _, u64>(count, None),
        Value::RealCount(count) => metric.encode_counter::<NoLabels, _, u64>(count, None),
        Value::Number(number) => metric.encode_gauge(number),
        Value::Real(number) => metric.encode_gauge(number),
        Value::Info => Ok(()),
        Value::Histogram(sum, buckets) => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            metric.encode_histogram::<NoLabels>(*sum, count, buckets, None)
        }
    }
}

type NoLabels = [(&'static str, &'static str); 0];

/// Begins all names.
const PREFIX: &str = "courser";

#[cfg(test)]
mod tests;
