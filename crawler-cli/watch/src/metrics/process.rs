//! What the operating system says about this process.

use std::fmt;
use std::fs;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Value, series};
use crate::vitals::Vitals;

/// The metrics `process_*`, as all programs have them.
#[derive(Debug)]
pub(super) struct Process(pub(super) Arc<Vitals>);

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9;
        let started = self.0.started_at().as_second();
        let rows = [
            (
                "process_cpu_seconds",
                "The time of processors that was used",
                MetricType::Counter,
                Some(Value::RealCount(cpu)),
            ),
            (
                "process_start_time_seconds",
                "When the process started",
                MetricType::Gauge,
                Some(Value::Number(started)),
            ),
            (
                "process_resident_memory_bytes",
                "The memory that is used",
                MetricType::Gauge,
                resident().map(Value::Number),
            ),
            (
                "process_open_fds",
                "Files and connections that are open",
                MetricType::Gauge,
                open_files().map(Value::Number),
            ),
        ];
        for (name, help, kind, value) in rows {
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            // Systems without /proc do not say everything.
            if let Some(value) = value {
                series(&mut metric, &[], &value)?;
            }
        }
        Ok(())
    }
}

fn resident() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    let files = fs::read_dir("/proc/self/fd").ok()?.count();
    i64::try_from(files).ok()
}
