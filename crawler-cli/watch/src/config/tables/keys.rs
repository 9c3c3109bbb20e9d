//! The keys of each table: one row for each.

use crate::config::cron::{Cron, Zone};
use crate::config::entries::{HostConfig, ScheduleConfig, SetConfig};
use crate::config::headers::{Credentials, Headers, Pattern};
use crate::config::job::Job;
use crate::config::kinds::{
    Address, Choice, Count, FilePath, Flag, Growing, HostNames, Inline, Interval, Kinds, Limit,
    Maybe, Most, MostShare, Name, RateLimit, Steps, StoreUrl, Text, Time, TimeLimit, TimeRange,
    Tries, WebUrls,
};
use crate::config::reader::{Key, Kind, key};
use crate::config::sections::{
    GuardConfig, HttpConfig, LimitsConfig, LogConfig, LogFormat, LogLevel, PolicyConfig,
    StoreConfig,
};
use crate::config::source::{ListFile, Sitemap};
use check::host::HeadUse;
use jobs::{CatchUp, Overlap};
use verdict::guard::{BudgetRules, FlipRules, OwnNetworkRules};
use verdict::life::{GoneRule, Profile, Reconcile, Resurrect};

pub(super) const STORE: &[Key<StoreConfig>] = &[
    key!(
        "url",
        StoreUrl,
        |s| s.place,
        "The store: an SQLite file, which is created if it is missing, or a database of PostgreSQL, which several machines share."
    ),
    key!(
        "lease",
        Interval,
        |s| s.lease,
        "How long a worker keeps a host without a sign of life. For PostgreSQL: SQLite has one worker."
    ),
    key!("password_file", Maybe<FilePath>, |s| s.password_file, "The file with the password. For PostgreSQL: SQLite has none.", sample "\"/run/secrets/postgres\""),
    key!("spool", Maybe<FilePath>, |s| s.spool, "The folder in which outcomes wait while the server cannot be reached: if not set, spool in the STATE_DIRECTORY of systemd, or else beside this file. For PostgreSQL: SQLite needs none.", sample "\"/var/lib/courser/spool\""),
    key!(
        "keep",
        TimeLimit,
        |s| s.keep,
        "How long a URL in no set keeps its history, and how long a dead letter is kept."
    ),
];

pub(super) const HTTP: &[Key<HttpConfig>] = &[
    key!(
        "listen",
        Address,
        |h| h.listen,
        "The address to listen at: one that others reach only with allow_remote; with port 0 any free one. The address that it got is the first line on standard output."
    ),
    key!(
        "allow_remote",
        Flag,
        |h| h.allow_remote,
        "Whether others may reach the service, and read all that the page shows."
    ),
    key!(
        "names",
        HostNames,
        |h| h.names,
        "With allow_remote, the host names by which others reach the service, such as that of a reverse proxy."
    ),
    key!(
        "connections",
        Most,
        |h| h.connections,
        "The most connections at once; further ones wait."
    ),
];

pub(super) const LOG: &[Key<LogConfig>] = &[
    key!(
        "format",
        Choice<LogFormat>,
        |l| l.format,
        "How log lines look."
    ),
    key!(
        "level",
        Choice<LogLevel>,
        |l| l.level,
        "The least important messages that are logged."
    ),
];

pub(super) const LIMITS: &[Key<LimitsConfig>] = &[
    key!(
        "connections",
        Limit,
        |l| l.connections,
        "The most connections of all hosts. Services that share a store have equal parts."
    ),
    key!(
        "per_host_connections",
        Limit,
        |l| l.per_host_connections,
        "The most connections to one host."
    ),
    key!(
        "per_host_rate",
        RateLimit,
        |l| l.per_host_rate,
        "The largest rate of requests to one host."
    ),
    key!(
        "per_host_delay",
        Time,
        |l| l.per_host_delay,
        "The shortest time between two requests to one host."
    ),
    key!(
        "timeout",
        TimeLimit,
        |l| l.timeout,
        "The limit for one request in all."
    ),
    key!(
        "adaptive",
        Flag,
        |l| l.adaptive,
        "Whether the wait for an answer is limited by what is usual for the host. A URL that needs longer gets the whole timeout in its next attempt."
    ),
    key!(
        "adaptive_timeout",
        TimeLimit,
        |l| l.adaptive_timeout,
        "The longest adaptive limit, and the limit while little is known about a host."
    ),
    key!(
        "attempts",
        Tries,
        |l| l.attempts,
        "How often a URL is asked within one check, if it fails in a way that can pass."
    ),
    key!(
        "allow_private",
        Flag,
        |l| l.allow_private,
        "Whether hosts may have private addresses."
    ),
    key!(
        "robots",
        Flag,
        |l| l.robots,
        "Whether the delays of robots.txt are obeyed."
    ),
    key!(
        "user_agent",
        Text,
        |l| l.user_agent,
        "The User-Agent of each request."
    ),
    key!(
        "drain_timeout",
        TimeLimit,
        |l| l.drain_timeout,
        "How long the service waits after SIGTERM for what is under way."
    ),
];

pub(super) const POLICY: &[Key<PolicyConfig>] = &[
    Key {
        name: "profile",
        doc: "The values of the keys of [policy] that are not set, and of limits.adaptive_timeout: eager counts 404 as alive and asks again after 15 minutes what answers 410.",
        allowed: <Choice<Profile> as Kind>::ALLOWED,
        sample: "",
        is_required: false,
        read: |policy, reader, value| {
            <Choice<Profile> as Kind>::read(&mut policy.profile, reader, value);
            policy.rules = policy.profile.rules();
        },
        show: |policy| <Choice<Profile> as Kind>::show(&policy.profile),
    },
    key!(
        "prune_on",
        Kinds,
        |p| p.rules.prune_on,
        "What is pruned once it is gone."
    ),
    key!(
        "alive_on",
        Kinds,
        |p| p.rules.alive_on,
        "Negative answers that count as good."
    ),
    key!(
        "report_count",
        Count,
        |p| p.rules.report_count,
        "How many negative answers make a URL broken."
    ),
    key!(
        "report_after",
        Time,
        |p| p.rules.report_after,
        "And the time that they span at least."
    ),
    key!(
        "report_unreachable_after",
        Time,
        |p| p.rules.report_unreachable_after,
        "The time after which a URL that cannot be reached is reported."
    ),
    key!(
        "grace",
        Time,
        |p| p.rules.grace,
        "The time from gone to pruned."
    ),
    key!(
        "alive_interval",
        Growing,
        |p| p.rules.alive_interval,
        "How often URLs that are alive are asked: the first interval, and the longest."
    ),
    key!(
        "gone_interval",
        Growing,
        |p| p.rules.gone_interval,
        "How often URLs that are gone are asked: the first interval, and the longest."
    ),
    key!(
        "recheck_410",
        Steps,
        |p| p.rules.recheck_410,
        "When a URL is asked again that answers 410."
    ),
    key!(
        "recheck_404",
        Steps,
        |p| p.rules.recheck_404,
        "When a URL is asked again that answers 404."
    ),
    key!(
        "recheck_nxdomain",
        Steps,
        |p| p.rules.recheck_nxdomain,
        "When a URL is asked again whose host has no name any more."
    ),
    key!(
        "recheck_net",
        Steps,
        |p| p.rules.recheck_net,
        "When a URL is asked again that cannot be reached."
    ),
    key!(
        "gone_410",
        Inline<GoneRule>,
        |p| p.rules.gone_410,
        "When 410 makes a URL gone: the number of answers, and the time from the first to the last."
    ),
    key!(
        "gone_404",
        Inline<GoneRule>,
        |p| p.rules.gone_404,
        "When 404 makes a URL gone."
    ),
    key!(
        "gone_nxdomain",
        Inline<GoneRule>,
        |p| p.rules.gone_nxdomain,
        "When a missing name makes a URL gone."
    ),
    key!(
        "resurrect",
        Inline<Resurrect>,
        |p| p.rules.resurrect,
        "What brings a gone URL back: the number of good answers, and the time between two of them."
    ),
];

pub(super) const RECONCILE: &[Key<Reconcile>] = &[
    key!(
        "interval",
        Interval,
        |r| r.interval,
        "The time between two cycles."
    ),
    key!(
        "jitter",
        TimeRange,
        |r| r.jitter,
        "The shortest and the longest time that is added."
    ),
];

pub(super) const GUARD: &[Key<GuardConfig>] = &[
    key!(
        "host_flip",
        Inline<FlipRules>,
        |g| g.host_flip,
        "When a host is held whose URLs turn negative together: at least min of them asked within the window, and more than a share negative. A sample of the held URLs tells when the hold ends, at the latest after max_hold."
    ),
    key!(
        "self_network",
        Inline<OwnNetworkRules>,
        |g| g.self_network,
        "When the own network counts as broken: so many hosts that answered earlier fail within the window, and more than this share."
    ),
    key!(
        "prune_budget",
        Inline<BudgetRules>,
        |g| g.prune_budget,
        "How many URLs may be pruned in a time: a share of all, and of those of a host."
    ),
    key!(
        "canaries",
        WebUrls,
        |g| g.canaries,
        "URLs that answer as long as the own network works."
    ),
    key!(
        "most_lost",
        MostShare,
        |g| g.most_lost,
        "The share of its members that a set may lose when its source is read again. A larger loss is refused, and the members stay."
    ),
];

pub(super) const HOST: &[Key<HostConfig>] = &[
    key!("match", Pattern, |h| *h, "The hosts.", sample "\"*.example.org\"", is_required true),
    key!("rate", Maybe<RateLimit>, |h| h.rate, "The largest rate of requests to each of these hosts.", sample "10"),
    key!("connections", Maybe<Limit>, |h| h.connections, "The most connections to each of these hosts.", sample "4"),
    key!("delay", Maybe<Time>, |h| h.delay, "The shortest time between two requests to each of these hosts.", sample "\"0s\""),
    key!("headers", Headers, |h| *h, "Header fields of each request. Secrets belong into auth_file.", sample "{ Accept = \"text/html\" }"),
    key!("auth_file", Credentials, |h| *h, "A file with credentials, one in a line: USER:PASSWORD, a scheme with its credentials such as Bearer TOKEN, or a header field such as X-Api-Key: TOKEN.", sample "\"auth.txt\""),
    key!("head", Maybe<Choice<HeadUse>>, |h| h.head, "Whether URLs are asked by HEAD first.", sample "\"auto\""),
];

pub(super) const SET: &[Key<SetConfig>] = &[
    key!("name", Name, |s| s.name, "The name of the set.", sample "\"docs\"", is_required true),
    key!("urls", ListFile, |s| s.source, "A file that lists URLs: text with one URL a line, JSON lines, or a sitemap (.xml); perhaps gzip.", sample "\"urls.txt\""),
    key!("sitemap", Sitemap, |s| s.source, "Or a sitemap, or an index of sitemaps.", sample "\"https://example.org/sitemap.xml\""),
    key!("reread", TimeLimit, |s| s.reread, "The source is read again after this time; 0: only at the start, on SIGHUP and by schedules.", sample "\"1h\""),
];

pub(super) const SCHEDULE: &[Key<ScheduleConfig>] = &[
    key!("name", Name, |s| s.name, "The name of the schedule.", sample "\"nightly\"", is_required true),
    key!("timezone", Zone, |s| s.timezone, "The zone whose clock the cron expression means.", sample "\"UTC\""),
    key!("cron", Cron, |s| *s, "When: minute, hour, day of the month, month and day of the week; or six fields with seconds first; or @hourly, @daily, @weekly, @monthly, @yearly.", sample "\"15 2 * * *\"", is_required true),
    key!("overlap", Choice<Overlap>, |s| s.overlap, "What happens when a firing is due while the job of the last one runs.", sample "\"forbid\""),
    key!("catch_up", Choice<CatchUp>, |s| s.catch_up, "What happens with firings that the service missed: the job runs once, or they are counted.", sample "\"once\""),
    key!("jitter", Time, |s| s.jitter, "Firings are moved by a time up to this one, the same for each firing.", sample "\"5m\""),
    key!("max_attempts", Tries, |s| s.max_attempts, "How often a job is tried that fails.", sample "3"),
    key!("timeout", TimeLimit, |s| s.timeout, "The time limit of the job.", sample "\"1h\""),
    key!("job", Job, |s| *s, "What is done.", sample "{ check = \"docs\" }", is_required true),
];
