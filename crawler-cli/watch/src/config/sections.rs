//! The tables of the configuration that are there once. Fields have the names of their keys.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use courser::Rate;
use url::Url;

use crawl::transfer::USER_AGENT;
use store::Place;
use verdict::guard::{BudgetRules, FlipRules, OwnNetworkRules};
use verdict::life::{Profile, Rules};

/// `[store]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreConfig {
    /// Where the store is: `sqlite:FILE` or `postgres://…`. Default: the file `watch.db`.
    pub place: Place,
    /// How long a worker keeps a host without a sign of life; for PostgreSQL. Default: 60 s.
    pub lease: Duration,
    /// The file with the password of a PostgreSQL server.
    pub password_file: Option<PathBuf>,
    /// The folder in which outcomes wait that a PostgreSQL server cannot take. Default: `spool` in the
    /// `STATE_DIRECTORY` of systemd, or else beside the configuration.
    pub spool: Option<PathBuf>,
    /// How long a URL in no set keeps its history, and how long a dead letter is kept. Default: 400 days; `None`: for ever.
    pub keep: Option<Duration>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            place: Place::File(PathBuf::from("watch.db")),
            lease: Duration::from_secs(60),
            password_file: None,
            spool: None,
            keep: Some(400 * DAY),
        }
    }
}

/// `[http]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpConfig {
    /// The address to listen at; port 0: any free port. Default: `127.0.0.1:10390`, a port
    /// that is in no list of Prometheus, whose own range for exporters, 9100 to 9999, is full.
    pub listen: SocketAddr,
    /// Whether the address may be one that others reach. Default: no.
    pub allow_remote: bool,
    /// The names by which others reach the service. Default: none.
    pub names: Vec<String>,
    /// The most connections at once. Default: 64.
    pub connections: NonZeroUsize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 10_390)),
            allow_remote: false,
            names: Vec::new(),
            connections: NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN),
        }
    }
}

/// `[log]`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LogConfig {
    /// How log lines look. Default: text.
    pub format: LogFormat,
    /// What is logged. Default: info.
    pub level: LogLevel,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LogFormat {
    /// A line of text for each message.
    #[default]
    Text,
    /// A JSON object in a line for each message.
    Json,
}

/// The least important messages that are logged.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum LogLevel {
    /// Failures that need an operator.
    Error,
    /// Also what may need one.
    Warn,
    /// Also what the service does: starts, reloads, guards, jobs; and URLs that turn broken, gone or pruned, and come
    /// back.
    #[default]
    Info,
    /// Also single URLs.
    Debug,
    /// Everything.
    Trace,
}

/// `[limits]`.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsConfig {
    /// The most connections of all hosts. Default: 512; `None`: as many as the process may open.
    pub connections: Option<NonZeroUsize>,
    /// The most connections to a host. Default: 2; `None`: no limit.
    pub per_host_connections: Option<NonZeroUsize>,
    /// The largest rate of requests to a host. Default: 1 a second; `None`: no limit.
    pub per_host_rate: Option<Rate>,
    /// The shortest time between two requests to a host. Default: 0.
    pub per_host_delay: Duration,
    /// The limit for one request in all. Default: 20 s; `None`: no limit.
    pub timeout: Option<Duration>,
    /// Whether the wait for an answer is limited by what is usual for the host. Default: yes.
    pub adaptive: bool,
    /// The longest adaptive limit. Default: what the [profile](Profile::adaptive_timeout) says; `None`: the timeout.
    pub adaptive_timeout: Option<Duration>,
    /// How often a URL is asked within one check, if it fails in a way that can pass. Default: 3.
    pub attempts: NonZeroU32,
    /// Whether hosts may have private addresses. Default: no.
    pub allow_private: bool,
    /// Whether the delays of robots.txt are obeyed. Default: yes.
    pub robots: bool,
    /// The `User-Agent` of each request.
    pub user_agent: String,
    /// How long the service waits at its end for what is under way. Default: 30 s; `None`: no limit.
    pub drain_timeout: Option<Duration>,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::new(512),
            per_host_connections: NonZeroUsize::new(2),
            per_host_rate: Some(Rate::every(Duration::from_secs(1))),
            per_host_delay: Duration::ZERO,
            timeout: Some(Duration::from_secs(20)),
            adaptive: true,
            adaptive_timeout: None,
            attempts: NonZeroU32::new(3).unwrap_or(NonZeroU32::MIN),
            allow_private: false,
            robots: true,
            user_agent: USER_AGENT.to_owned(),
            drain_timeout: Some(Duration::from_secs(30)),
        }
    }
}

/// `[policy]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyConfig {
    /// The profile: the values of the keys that are not set.
    pub profile: Profile,
    /// The rules that follow from the profile and the keys.
    pub rules: Rules,
}

/// `[guard]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardConfig {
    /// When a host is held whose URLs turn negative.
    pub host_flip: FlipRules,
    /// When the own network counts as broken.
    pub self_network: OwnNetworkRules,
    /// How many URLs may be pruned.
    pub prune_budget: BudgetRules,
    /// URLs that answer as long as the own network works. Default: none.
    pub canaries: Vec<Url>,
    /// The members of a set that its source may lose in one reading, as a share; a larger loss is refused. Default: 0.5;
    /// `None`: no limit.
    pub most_lost: Option<f64>,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            host_flip: FlipRules::default(),
            self_network: OwnNetworkRules::default(),
            prune_budget: BudgetRules::default(),
            canaries: Vec::new(),
            most_lost: Some(0.5),
        }
    }
}

const DAY: Duration = Duration::from_secs(86_400);
