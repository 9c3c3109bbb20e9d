//! The tables of the configuration that can be there several times. Fields have the names of their keys.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use courser::Rate;
use jiff::tz::TimeZone;
use url::Url;

use check::host::HeadUse;
use crawl::identity::Identity;
use jobs::{BadSchedule, CatchUp, Overlap, Schedule, ScheduleSettings};
use plain::host_pattern::HostPattern;

/// `[[host]]`: what is different at some hosts. `None`: the key is not set, and `[limits]` holds.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// `match`: the hosts.
    pub pattern: HostPattern,
    /// The text of `match`.
    pub name: String,
    /// The most connections to the host; `Some(None)`: no limit.
    pub connections: Option<Option<NonZeroUsize>>,
    /// The largest rate of requests; `Some(None)`: no limit.
    pub rate: Option<Option<Rate>>,
    /// The shortest time between two requests.
    pub delay: Option<Duration>,
    /// Whether URLs are asked by HEAD first.
    pub head: Option<HeadUse>,
    /// Header fields of each request to the host: names and values.
    pub headers: Vec<(String, String)>,
    /// A file with the credentials of each request to the host.
    pub auth_file: Option<PathBuf>,
    /// The header fields of `headers` and `auth_file`, as the file was when the configuration was read.
    pub identity: Identity,
}

impl HostConfig {
    pub(super) fn unset() -> Self {
        Self {
            pattern: HostPattern::any(),
            name: String::new(),
            connections: None,
            rate: None,
            delay: None,
            head: None,
            headers: Vec::new(),
            auth_file: None,
            identity: Identity::default(),
        }
    }
}

/// Secrets are compared by the file that has them.
impl PartialEq for HostConfig {
    fn eq(&self, other: &Self) -> bool {
        let settings = |host: &Self| (host.connections, host.rate, host.delay, host.head);
        self.name == other.name
            && settings(self) == settings(other)
            && self.headers == other.headers
            && self.auth_file == other.auth_file
    }
}

/// `[[set]]`: a URL set and where its URLs come from.
#[derive(Clone, Debug, PartialEq)]
pub struct SetConfig {
    /// The name of the set.
    pub name: String,
    /// Its source.
    pub source: Source,
    /// The source is read again after this time. Default: `None`, only at the start, on SIGHUP and by schedules.
    pub reread: Option<Duration>,
}

impl SetConfig {
    pub(super) fn unset() -> Self {
        Self {
            name: String::new(),
            source: Source::Submitted,
            reread: None,
        }
    }
}

/// The source of a URL set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// `urls = "FILE"`: a file that lists URLs.
    File(PathBuf),
    /// `sitemap = "URL"`: a sitemap, or an index of sitemaps.
    Sitemap(Url),
    /// Neither key: what jobs find and operators add.
    Submitted,
}

/// `[[schedule]]`: a job at given times.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleConfig {
    /// The name of the schedule.
    pub name: String,
    /// The cron expression: five fields, or six with seconds first, or a nickname such as `@daily`.
    pub cron: String,
    /// The zone whose clock the expression means. Default: UTC.
    pub timezone: TimeZone,
    /// What happens when a firing is due while the job of the last one runs. Default: forbid.
    pub overlap: Overlap,
    /// What happens with firings that the service missed. Default: once.
    pub catch_up: CatchUp,
    /// Firings are moved by a time up to this one, the same for each firing of the schedule. Default: 0.
    pub jitter: Duration,
    /// How often a job that fails is tried. Default: 3.
    pub max_attempts: NonZeroU32,
    /// The time limit of the job. Default: 1 hour; `None`: no limit.
    pub timeout: Option<Duration>,
    /// What is done.
    pub job: JobConfig,
}

impl ScheduleConfig {
    pub(super) fn unset() -> Self {
        Self {
            name: String::new(),
            cron: String::new(),
            timezone: TimeZone::UTC,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            jitter: Duration::ZERO,
            max_attempts: NonZeroU32::new(3).unwrap_or(NonZeroU32::MIN),
            timeout: Some(Duration::from_secs(3600)),
            job: JobConfig::Fetch {
                list: PathBuf::new(),
                template: String::new(),
                into: PathBuf::new(),
            },
        }
    }
}

impl ScheduleConfig {
    /// The times of the schedule. `store` is the text that fixes the jitter, the same for all that share the store.
    ///
    /// # Errors
    /// The expression is wrong, which it is not in a configuration that was read.
    pub fn schedule(&self, store: &str) -> Result<Schedule, BadSchedule> {
        let settings = ScheduleSettings {
            cron: self.cron.clone(),
            timezone: self.timezone.iana_name().unwrap_or("UTC").to_owned(),
            overlap: self.overlap,
            catch_up: self.catch_up,
            jitter: self.jitter,
        };
        Schedule::new(&self.name, store, &settings)
    }
}

/// `job` of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum JobConfig {
    /// `{ check = "SET" }`: the source of the set is read, and all its URLs are due.
    Check {
        /// The set.
        set: String,
    },
    /// `{ find = { start = "URL", args = [...] }, into_set = "SET" }`: what `find` finds becomes the set.
    Find {
        /// Where the search starts.
        start: Url,
        /// The arguments, as `find` takes them.
        args: Vec<String>,
        /// The set that gets the URLs.
        into_set: String,
    },
    /// `{ sitemap = "URL", into_set = "SET" }`: what a sitemap lists becomes the set.
    Sitemap {
        /// The sitemap.
        url: Url,
        /// The set that gets the URLs.
        into_set: String,
    },
    /// `{ fetch = "FILE", template = "https://…/{}", into = "DIR" }`: a file for each line of a list.
    Fetch {
        /// The file with a name in each line.
        list: PathBuf,
        /// The URL, with `{}` where the name goes.
        template: String,
        /// The folder of the files.
        into: PathBuf,
    },
}

impl JobConfig {
    /// The set that the job fills.
    pub(crate) fn fills(&self) -> Option<&str> {
        match self {
            Self::Find { into_set, .. } | Self::Sitemap { into_set, .. } => Some(into_set),
            Self::Check { .. } | Self::Fetch { .. } => None,
        }
    }
}
