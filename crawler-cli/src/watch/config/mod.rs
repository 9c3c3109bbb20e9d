//! The configuration of the service: a TOML file, read as a whole with all that is wrong in it.
//!
//! Times are texts such as `"90s"`, `"15m"` or `"1.5h"` with the units `ms s m h d`. Where a key limits something, 0
//! means no limit. Relative paths are relative to the folder of the file.

mod entries;
mod sections;

pub use entries::{
    CatchUp, HostConfig, JobConfig, Overlap, ScheduleConfig, SetConfig, Source, Topic,
    WebhookConfig,
};
pub use sections::{
    GuardConfig, HttpConfig, LimitsConfig, LogConfig, LogFormat, LogLevel, PolicyConfig,
    StoreConfig,
};

use crate::check::life::Reconcile;

/// The configuration of the service. The default is that of an empty file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `[store]`: where URLs, results and jobs are kept.
    pub store: StoreConfig,
    /// `[http]`: where metrics and health are served.
    pub http: HttpConfig,
    /// `[log]`: what is logged.
    pub log: LogConfig,
    /// `[limits]`: how much is asked at once.
    pub limits: LimitsConfig,
    /// `[policy]`: when a URL is reported, gone and pruned, and when it is asked again.
    pub policy: PolicyConfig,
    /// `[reconcile]`: how often URLs in doubt are asked again.
    pub reconcile: Reconcile,
    /// `[guard]`: what protects against failures that are not the fault of URLs.
    pub guard: GuardConfig,
    /// `[[host]]`: settings of hosts. Where several fit a host, each key has the value of the last one that sets it.
    pub hosts: Vec<HostConfig>,
    /// `[[set]]`: URL sets and their sources. Names are unique.
    pub sets: Vec<SetConfig>,
    /// `[[schedule]]`: jobs at given times. Names are unique.
    pub schedules: Vec<ScheduleConfig>,
    /// `[[webhook]]`: who is told of changes.
    pub webhooks: Vec<WebhookConfig>,
}
