//! The configuration of the service: a TOML file, read as a whole with all that is wrong in it.
//!
//! Times are texts such as `"90s"`, `"15m"` or `"1.5h"` with the units `ms s m h d`. Where a key limits something, 0
//! means no limit. Relative paths are relative to the folder of the file.
//!
//! ```
//! use std::path::Path;
//!
//! use watch::config::{Config, Source};
//!
//! let text = "[limits]\nper_host_rate = 5\n\n[[set]]\nname = \"docs\"\nurls = \"urls.txt\"\n";
//! let config = Config::parse(text, Path::new("/etc/courser")).expect("valid");
//! assert_eq!(config.sets[0].source, Source::File("/etc/courser/urls.txt".into()));
//!
//! let errors = Config::parse("[limits]\nper_host_rat = 5\n", Path::new("")).unwrap_err();
//! assert_eq!(errors[0].to_string(), "2:1: limits.per_host_rat: there is no such key; did you mean per_host_rate?");
//! ```

mod contradictions;
mod cron;
mod entries;
mod error;
mod headers;
mod job;
mod kinds;
mod loaded;
mod reader;
mod sections;
mod source;
mod tables;
#[cfg(test)]
mod tests;
mod text_file;
mod toml_text;

pub use entries::{HostConfig, JobConfig, ScheduleConfig, SetConfig, Source};
pub use error::ConfigError;
pub use loaded::{Loaded, example};
pub use sections::{
    GuardConfig, HttpConfig, LimitsConfig, LogConfig, LogFormat, LogLevel, PolicyConfig,
    StoreConfig,
};

use std::path::Path;

use verdict::life::Reconcile;

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
}

impl Config {
    /// Reads the text of a file in `folder`.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, Vec<ConfigError>> {
        Loaded::parse(text, &folder.join("watch.toml")).map(|loaded| loaded.config)
    }
}
