//! A PostgreSQL of its own for a measurement, and the processor time that it uses.

use std::error::Error;
use std::fs;
use std::time::Duration;

#[path = "../../crawler-cli/tests/common/cluster.rs"]
mod cluster;

#[cfg(feature = "crawler")]
#[path = "../../crawler-cli/tests/common/proxy.rs"]
mod proxy;

pub(crate) use cluster::Cluster;
#[cfg(feature = "crawler")]
pub(crate) use proxy::Proxy;

/// The processor time of a server, with all its processes.
pub(crate) fn server_time(cluster: &Cluster) -> Result<Duration, Box<dyn Error>> {
    let first = cluster.first_process().as_raw_nonzero().to_string();
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let own = text.split(' ').next() == Some(&first);
        // After the name, which ends with the last parenthesis: the state, the parent, and from the 12th on the times.
        let fields: Vec<&str> = match text.rsplit_once(") ") {
            Some((_, rest)) => rest.split(' ').collect(),
            None => continue,
        };
        if own || fields.get(1) == Some(&first.as_str()) {
            // Its own, and those of the children that have ended.
            let times = if own { 11..15 } else { 11..13 };
            let times = fields.get(times).unwrap_or_default().iter();
            ticks += times
                .filter_map(|time| time.parse::<u64>().ok())
                .sum::<u64>();
        }
    }
    Ok(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?)
}

/// The numbers in the first row that a query prints.
#[cfg(feature = "crawler")]
pub(crate) fn numbers(
    cluster: &Cluster,
    url: &str,
    query: &str,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let database = url.rsplit('/').next().unwrap_or_default();
    let printed = cluster.psql(database, query);
    let row = printed.lines().next().unwrap_or_default();
    let numbers = row.split('|').map(|number| number.trim().parse());
    Ok(numbers.collect::<Result<_, _>>()?)
}
