//! Values that are right alone and wrong together.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::Config;
use super::entries::{JobConfig, Source};
use super::reader::Reader;
use plain::text::nearest;

/// A worker on a busy machine gives a sign of life at least this often.
const LEAST_LEASE: Duration = Duration::from_secs(10);

/// Tells the reader of everything in the configuration that contradicts something else.
pub(super) fn find(config: &Config, reader: &mut Reader<'_>) {
    once(config, reader);
    hosts(config, reader);
    sets(config, reader);
    schedules(config, reader);
}

/// The tables that are there once.
fn once(config: &Config, reader: &mut Reader<'_>) {
    if config.store.password_file.is_some() && config.store.place.file().is_some() {
        reader.contradiction("store.password_file", "SQLite has no password");
    }
    if config.store.spool.is_some() && config.store.place.file().is_some() {
        reader.contradiction("store.spool", "SQLite needs none");
    }
    if config.store.lease < LEAST_LEASE {
        reader.contradiction("store.lease", "shorter than 10 s");
    }
    let http = &config.http;
    if !http.allow_remote && !http.listen.ip().is_loopback() {
        let why = format!(
            "others reach {}, and could read all that the page shows; listen at 127.0.0.1:PORT or [::1]:PORT, or set http.allow_remote",
            http.listen
        );
        reader.contradiction("http.listen", &why);
    }
    if !http.allow_remote && !http.names.is_empty() {
        reader.contradiction(
            "http.names",
            "without http.allow_remote nobody else is answered",
        );
    }
    let limits = &config.limits;
    if let (Some(all), Some(host)) = (limits.connections, limits.per_host_connections)
        && host > all
    {
        let key = set_one(
            reader,
            ["limits.per_host_connections", "limits.connections"],
        );
        let why =
            format!("limits.per_host_connections ({host}) is more than limits.connections ({all})");
        reader.contradiction(key, &why);
    }
}

fn hosts(config: &Config, reader: &mut Reader<'_>) {
    let mut seen = HashMap::new();
    for (index, host) in config.hosts.iter().enumerate() {
        if let Some(first) = seen.insert(host.name.clone(), index) {
            let why = format!("host[{first}] has the same hosts");
            reader.contradiction(&format!("host[{index}].match"), &why);
        }
        if let (Some(all), Some(Some(connections))) = (config.limits.connections, host.connections)
            && connections > all
        {
            let why = format!("{connections} is more than limits.connections ({all})");
            reader.contradiction(&format!("host[{index}].connections"), &why);
        }
    }
}

fn sets(config: &Config, reader: &mut Reader<'_>) {
    let mut names = BTreeSet::new();
    for (index, set) in config.sets.iter().enumerate() {
        if !names.insert(&set.name) {
            let why = format!("there is another set {}", set.name);
            reader.contradiction(&format!("set[{index}].name"), &why);
        }
        if set.reread.is_some() && set.source == Source::Submitted {
            let why = "there is neither urls nor sitemap to read again";
            reader.contradiction(&format!("set[{index}].reread"), why);
        }
    }
}

fn schedules(config: &Config, reader: &mut Reader<'_>) {
    let mut names = BTreeSet::new();
    let mut sets: Vec<&str> = config.sets.iter().map(|set| set.name.as_str()).collect();
    sets.extend(
        config
            .schedules
            .iter()
            .filter_map(|schedule| schedule.job.fills()),
    );
    for (index, schedule) in config.schedules.iter().enumerate() {
        let key = |name: &str| format!("schedule[{index}].{name}");
        if !names.insert(&schedule.name) {
            let why = format!("there is another schedule {}", schedule.name);
            reader.contradiction(&key("name"), &why);
        }
        if let JobConfig::Check { set } = &schedule.job
            && !sets.contains(&set.as_str())
        {
            let why = match nearest(set, &sets) {
                Some(near) => format!("there is no set {set}; did you mean {near}?"),
                None => format!(
                    "there is no set {set}; a [[set]] with a name alone takes what operators add"
                ),
            };
            reader.contradiction(&key("job"), &why);
        }
        let has_source = |name: &str| {
            let mut sets = config.sets.iter();
            sets.any(|set| set.name == name && set.source != Source::Submitted)
        };
        if let Some(set) = schedule.job.fills().filter(|set| has_source(set)) {
            let why = format!(
                "the set {set} has a source of its own; each would remove what the other one adds"
            );
            reader.contradiction(&key("job"), &why);
        }
    }
}

/// The first key that is set.
fn set_one(reader: &Reader<'_>, keys: [&'static str; 2]) -> &'static str {
    let set = keys.into_iter().find(|key| reader.is_set(key));
    set.unwrap_or(keys[0])
}
