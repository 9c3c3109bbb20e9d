//! What clients and the service say to each other.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::Waiting;
use store::{DeadLetterFilter, DeadLetterId, HoldEnd, Scope};

/// What is asked of the store, or of the service that runs on it.
///
/// ```
/// use watch::control::{Command, Target};
///
/// let command = Command::Recheck { which: Target::Host("https://example.com/".into()), after: None };
/// let line = serde_json::to_string(&command)?;
/// assert_eq!(line, r#"{"command":"recheck","which":{"host":"https://example.com/"}}"#);
/// assert_eq!(serde_json::from_str::<Command>(&line)?, command);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// What the running service knows about itself, and about the host of a URL. Answer: [`Reply::Status`].
    Status {
        /// The root URL of a host: `https://example.com/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// Adds URLs to a set. New URLs are due at once. Answer: [`Reply::Added`].
    Add {
        /// The set, which need not exist.
        set: String,
        /// At most [`MOST_URLS`](Self::MOST_URLS).
        urls: Vec<String>,
    },
    /// Takes URLs out of a set, or out of all sets. What is in no set is not asked any more. Some
    /// thousands at a time, as [`Recheck`](Self::Recheck).
    Remove {
        /// The set; `None`: all sets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set: Option<String>,
        /// The URLs.
        which: Target,
        /// What the last reply said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<i64>,
    },
    /// Takes URLs out of a set that its source did not have when it was read last, although they are so many that the
    /// reading was not believed. Some thousands at a time, as [`Recheck`](Self::Recheck).
    AcceptShrink {
        /// The set.
        set: String,
        /// What the last reply said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<i64>,
    },
    /// Makes URLs due now, some thousands at a time. Answer: [`Reply::Count`], with `after` if the command is to be
    /// repeated with it.
    Recheck {
        /// The URLs.
        which: Target,
        /// What the last reply said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<i64>,
    },
    /// Ends the hold of a host. Answer: [`Reply::Count`], the number of URLs that were held.
    Hold {
        /// The host, as [`Target::Host`].
        host: String,
        /// How.
        deed: HoldDeed,
    },
    /// Stops asking. What is under way is finished. Answer: [`Reply::Done`].
    Pause {
        /// What is not asked.
        what: Scope,
    },
    /// Asks again. Answer: [`Reply::Done`].
    Resume {
        /// What was paused, in the same words.
        what: Scope,
    },
    /// Runs, pauses or resumes a schedule. Answer: [`Reply::Done`].
    Schedule {
        /// Its name.
        name: String,
        /// What is done.
        deed: ScheduleDeed,
    },
    /// Makes the subjects of dead letters due again. Answer: [`Reply::Count`].
    Replay {
        /// Which dead letters.
        letters: Letters,
        /// What the last reply said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<i64>,
    },
    /// Drops dead letters. Answer: [`Reply::Count`].
    Drop {
        /// Which dead letters.
        letters: Letters,
    },
}

impl Command {
    /// How many URLs one command may add.
    pub const MOST_URLS: usize = 1_000;
    /// The set to which URLs are added by hand if no other is named.
    pub const OWN_SET: &str = "added";
}

/// Which dead letters: those for which all that is given holds.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Letters {
    /// With this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// With this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// About URLs of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// About jobs of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Written at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Letters {
    /// The filter of the store. What was replayed is left out.
    pub fn filter(&self) -> DeadLetterFilter {
        DeadLetterFilter {
            id: self.number.map(DeadLetterId),
            reason: self.reason.clone(),
            host: self.host.clone(),
            queue: self.queue.clone(),
            since: self.since,
            with_replayed: false,
        }
    }
}

/// Which URLs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// These, at most [`Command::MOST_URLS`].
    Urls(Vec<String>),
    /// Those of a host: the URL of its root, `https://example.com/`.
    Host(String),
    /// Those of a set.
    Set(String),
    /// Those in a state, by its name.
    State(String),
    /// All.
    All,
}

/// How a hold ends.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldDeed {
    /// The host was only disturbed: every held URL is asked at once, and what is negative starts from the beginning.
    Release,
    /// The URLs are really gone: the clock of their evidence goes on.
    Confirm,
}

impl From<HoldDeed> for HoldEnd {
    fn from(deed: HoldDeed) -> Self {
        match deed {
            HoldDeed::Release => Self::Release,
            HoldDeed::Confirm => Self::Confirm,
        }
    }
}

/// What is done with a schedule.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleDeed {
    /// It fires now, once, besides its times: within some seconds if a service runs, or when one starts.
    Run,
    /// It does not fire.
    Pause,
    /// It fires again; what was missed meanwhile is subject to
    /// [`catch_up`](crate::config::ScheduleConfig::catch_up).
    Resume,
}

/// What is answered to a [`Command`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The running service.
    Status(Box<LiveStatus>),
    /// URLs were added.
    Added {
        /// URLs that were never seen before.
        new: u64,
        /// URLs that were known.
        known: u64,
        /// Those of the known that are gone or pruned, and asked only as often as such URLs are.
        gone: u64,
        /// What was refused: the index of the URL in the command, and why.
        rejected: Vec<(usize, String)>,
    },
    /// How many rows the command concerned.
    Count {
        /// The number.
        count: u64,
        /// How many were passed over, because nothing can be done with them.
        #[serde(default, skip_serializing_if = "is_zero")]
        passed: u64,
        /// The command is to be repeated with this, because only a part was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<i64>,
    },
    /// Done.
    Done,
    /// Nothing was changed.
    Refused(Refusal),
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why a command was refused.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Refusal {
    /// What kind of fault.
    pub kind: RefusalKind,
    /// Why, in words that name the input.
    pub why: String,
}

/// Who can do something about a refusal.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The command means nothing.
    Wrong,
    /// What the command names is not there.
    NotFound,
    /// What the command asks for is under way already.
    Conflict,
    /// The store cannot be read or written.
    Store,
    /// The service has too much to do, or ends.
    Busy,
}

/// What only the running service knows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LiveStatus {
    /// The number of its process.
    pub process: u32,
    /// Its version.
    pub version: String,
    /// When it started.
    pub since: Timestamp,
    /// How its store fares.
    pub store: StoreCondition,
    /// What its core says; absent if the core did not answer in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<CoreStatus>,
}

/// Whether the store can be written.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreCondition {
    /// Yes.
    Ok,
    /// No: the disk is full. Nothing new is asked until there is room.
    Full,
    /// No: why.
    Failing(String),
}

/// What the core of the service says about itself: the thread that asks URLs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CoreStatus {
    /// The service ends, and asks nothing new.
    pub is_draining: bool,
    /// URLs that are being asked.
    pub under_way: u64,
    /// URLs that were read from the store and wait for their hosts.
    pub waiting: u64,
    /// The guard of the own network, while it is on: nothing is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_network: Option<GuardOn>,
    /// The budget of pruning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
    /// How many hosts fail: their last answers were none.
    #[serde(default)]
    pub failing: u64,
    /// Some of these, at most [`MOST_HOSTS`](Self::MOST_HOSTS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fails: Vec<HostFails>,
    /// How many hosts have to wait although something is due.
    pub parked: u64,
    /// Those that wait longest, at most [`MOST_HOSTS`](Self::MOST_HOSTS).
    pub longest: Vec<HostWaits>,
    /// The host that was asked about, if the core has something of it under way or waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostWaits>,
}

impl CoreStatus {
    /// How many hosts a status names.
    pub const MOST_HOSTS: usize = 20;
}

/// How much of the budget of pruning is used.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Pruned {
    /// URLs that were pruned within the time of the budget.
    pub pruned: u64,
    /// The most that may be; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// The time of the budget.
    pub per: Duration,
}

/// A guard that is on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct GuardOn {
    /// Since when.
    pub since: Timestamp,
    /// Why, in words.
    pub why: String,
}

/// A host that fails.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HostFails {
    /// The URL of its root.
    pub root: String,
    /// Since when.
    pub since: Timestamp,
    /// The cause of the last failure.
    pub why: String,
}

/// A host in the running service.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct HostWaits {
    /// The URL of its root.
    pub root: String,
    /// Its URLs that are being asked.
    pub under_way: u64,
    /// Its URLs that were read from the store and wait.
    pub waiting: u64,
    /// Why they wait; empty if the next one is asked at once.
    pub waits: Vec<Waiting>,
}
