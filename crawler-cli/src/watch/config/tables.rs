//! The tables of the configuration and their keys: one row for each. The reader, the example and what is shown are all
//! made from these rows.

use toml::Spanned;
use toml::de::DeValue;

use super::Config;
use super::cron::{Cron, Zone};
use super::entries::Topic;
use super::entries::{HostConfig, ScheduleConfig, SetConfig, WebhookConfig};
use super::headers::{Credentials, Headers, Pattern};
use super::job::Job;
use super::kinds::{
    Address, Choice, Choices, Count, Fields, FilePath, Flag, Growing, Hook, Inline, Interval,
    Kinds, Limit, Maybe, Most, MostShare, Name, Named, RateLimit, Shard, Share, ShareLimit, Steps,
    StoreUrl, Text, Time, TimeLimit, TimeRange, Tries, WebUrls, ZeroLimit,
};
use super::reader::{Key, Kind, PREFIX, Reader, key};
use super::sections::{
    GuardConfig, HttpConfig, LimitsConfig, LogConfig, LogFormat, LogLevel, PolicyConfig,
    StoreConfig,
};
use super::source::{ListFile, Sitemap};
use crate::check::guard::{BudgetRules, FlipRules, OwnNetworkRules};
use crate::check::host::HeadUse;
use crate::check::life::{GoneRule, Profile, Reconcile, Resurrect};
use crate::jobs::{CatchUp, Overlap};
use crate::toml_text;

/// A table of the configuration.
pub(super) trait Table: Sync {
    fn name(&self) -> &'static str;
    fn doc(&self) -> &'static str;
    /// Whether the table can be there several times.
    fn is_list(&self) -> bool;
    fn keys(&self) -> Vec<&'static str>;
    /// Reads the table into the configuration; `None`: the file does not have it.
    fn read(
        &self,
        into: &mut Config,
        reader: &mut Reader<'_>,
        value: Option<&Spanned<DeValue<'_>>>,
    );
    /// The rows of each entry, with the values of the configuration.
    fn rows(&self, config: &Config) -> Vec<Vec<Row>>;
    /// The rows without values.
    fn samples(&self) -> Vec<Row>;
}

/// A key for the texts about the configuration.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) allowed: &'static str,
    pub(super) sample: &'static str,
    pub(super) is_required: bool,
    /// As TOML; `None` if the key is not set.
    pub(super) value: Option<String>,
}

impl Row {
    fn new<T>(key: &Key<T>, value: Option<String>) -> Self {
        Self {
            name: key.name,
            doc: key.doc,
            allowed: key.allowed,
            sample: key.sample,
            is_required: key.is_required,
            value,
        }
    }
}

/// All tables, in the order of the example.
pub(super) static TABLES: &[&dyn Table] = &[
    &Section {
        name: "store",
        doc: "Where URLs, results and jobs are kept.",
        keys: STORE,
        of: |c| &c.store,
        of_mut: |c| &mut c.store,
    },
    &Section {
        name: "http",
        doc: "Where /metrics, /healthz, /readyz and /version are served.",
        keys: HTTP,
        of: |c| &c.http,
        of_mut: |c| &mut c.http,
    },
    &Section {
        name: "log",
        doc: "What is logged on standard error.",
        keys: LOG,
        of: |c| &c.log,
        of_mut: |c| &mut c.log,
    },
    &Section {
        name: "limits",
        doc: "How much is asked at once.",
        keys: LIMITS,
        of: |c| &c.limits,
        of_mut: |c| &mut c.limits,
    },
    &Section {
        name: "policy",
        doc: "When a URL is reported, gone and pruned, and when it is asked again.",
        keys: POLICY,
        of: |c| &c.policy,
        of_mut: |c| &mut c.policy,
    },
    &Section {
        name: "reconcile",
        doc: "How often URLs in doubt are asked again.",
        keys: RECONCILE,
        of: |c| &c.reconcile,
        of_mut: |c| &mut c.reconcile,
    },
    &Section {
        name: "guard",
        doc: "What protects against failures that are not the fault of URLs.",
        keys: GUARD,
        of: |c| &c.guard,
        of_mut: |c| &mut c.guard,
    },
    &List {
        name: "host",
        doc: "What is different at some hosts: one ceiling for all checks and jobs of the host.",
        keys: HOST,
        new: HostConfig::unset,
        of: |c| &c.hosts,
        of_mut: |c| &mut c.hosts,
    },
    &List {
        name: "set",
        doc: "A URL set and its source, which is read at the start, on SIGHUP and by schedules.",
        keys: SET,
        new: SetConfig::unset,
        of: |c| &c.sets,
        of_mut: |c| &mut c.sets,
    },
    &List {
        name: "schedule",
        doc: "A job at given times.",
        keys: SCHEDULE,
        new: ScheduleConfig::unset,
        of: |c| &c.schedules,
        of_mut: |c| &mut c.schedules,
    },
    &List {
        name: "webhook",
        doc: "Who is told of changes.",
        keys: WEBHOOK,
        new: WebhookConfig::unset,
        of: |c| &c.webhooks,
        of_mut: |c| &mut c.webhooks,
    },
];

const STORE: &[Key<StoreConfig>] = &[
    key!(
        "url",
        StoreUrl,
        |s| s.file,
        "The store: an SQLite file, which is created if it is missing."
    ),
    key!(
        "lease",
        Interval,
        |s| s.lease,
        "How long a worker keeps a host without a sign of life. For PostgreSQL: SQLite has one worker."
    ),
    key!(
        "shard",
        Shard,
        |s| s.shard,
        "The share of the hosts that this service takes: number and count."
    ),
    key!("password_file", Maybe<FilePath>, |s| s.password_file, "The file with the password. For PostgreSQL: SQLite has none.", sample "\"/run/secrets/postgres\""),
    key!(
        "keep",
        TimeLimit,
        |s| s.keep,
        "How long a URL in no set keeps its history."
    ),
];

const HTTP: &[Key<HttpConfig>] = &[
    key!(
        "listen",
        Address,
        |h| h.listen,
        "The loopback address to listen at. The address that it got is the first line on standard output."
    ),
    key!(
        "connections",
        Most,
        |h| h.connections,
        "The most connections at once; further ones wait."
    ),
];

const LOG: &[Key<LogConfig>] = &[
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

const LIMITS: &[Key<LimitsConfig>] = &[
    key!(
        "connections",
        Limit,
        |l| l.connections,
        "The most connections of all hosts."
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

const POLICY: &[Key<PolicyConfig>] = &[
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
        "dead_after",
        Time,
        |p| p.rules.dead_after,
        "The time after which a host that cannot be reached is called dead."
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

const RECONCILE: &[Key<Reconcile>] = &[
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

const GUARD: &[Key<GuardConfig>] = &[
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

const HOST: &[Key<HostConfig>] = &[
    key!("match", Pattern, |h| *h, "The hosts.", sample "\"*.example.org\"", is_required true),
    key!("rate", Maybe<RateLimit>, |h| h.rate, "The largest rate of requests to each of these hosts.", sample "10"),
    key!("connections", Maybe<Limit>, |h| h.connections, "The most connections to each of these hosts.", sample "4"),
    key!("delay", Maybe<Time>, |h| h.delay, "The shortest time between two requests to each of these hosts.", sample "\"0s\""),
    key!("headers", Headers, |h| *h, "Header fields of each request. Secrets belong into auth_file.", sample "{ Accept = \"text/html\" }"),
    key!("auth_file", Credentials, |h| *h, "A file with credentials, one in a line: USER:PASSWORD, a scheme with its credentials such as Bearer TOKEN, or a header field such as X-Api-Key: TOKEN.", sample "\"auth.txt\""),
    key!("head", Maybe<Choice<HeadUse>>, |h| h.head, "Whether URLs are asked by HEAD first.", sample "\"auto\""),
];

const SET: &[Key<SetConfig>] = &[
    key!("name", Name, |s| s.name, "The name of the set.", sample "\"docs\"", is_required true),
    key!("urls", ListFile, |s| s.source, "A file that lists URLs: text with one URL a line, CSV, JSON lines, a sitemap, Markdown or HTML; perhaps gzip.", sample "\"urls.txt\""),
    key!("sitemap", Sitemap, |s| s.source, "Or a sitemap, or an index of sitemaps.", sample "\"https://example.org/sitemap.xml\""),
    key!("reread", TimeLimit, |s| s.reread, "The source is read again after this time; 0: only at the start, on SIGHUP and by schedules.", sample "\"1h\""),
];

const SCHEDULE: &[Key<ScheduleConfig>] = &[
    key!("name", Name, |s| s.name, "The name of the schedule.", sample "\"nightly\"", is_required true),
    key!("timezone", Zone, |s| s.timezone, "The zone whose clock the cron expression means.", sample "\"UTC\""),
    key!("cron", Cron, |s| *s, "When: minute, hour, day of the month, month and day of the week; or six fields with seconds first; or @hourly, @daily, @weekly, @monthly, @yearly.", sample "\"15 2 * * *\"", is_required true),
    key!("overlap", Choice<Overlap>, |s| s.overlap, "What happens when a firing is due while the job of the last one runs.", sample "\"forbid\""),
    key!("catch_up", Choice<CatchUp>, |s| s.catch_up, "What happens with firings that the service missed: the job runs once, or they are counted.", sample "\"once\""),
    key!("starting_deadline", TimeLimit, |s| s.starting_deadline, "A firing that is later than this is skipped and counted.", sample "\"10m\""),
    key!("jitter", Time, |s| s.jitter, "Firings are moved by a time up to this one, the same for each firing.", sample "\"5m\""),
    key!("max_attempts", Tries, |s| s.max_attempts, "How often a job is tried that fails.", sample "3"),
    key!("timeout", TimeLimit, |s| s.timeout, "The time limit of the job.", sample "\"1h\""),
    key!("job", Job, |s| *s, "What is done.", sample "{ check = \"docs\" }", is_required true),
];

const WEBHOOK: &[Key<WebhookConfig>] = &[
    key!("url", Hook, |w| w.url, "Who gets the messages.", sample "\"https://example.org/hook\"", is_required true),
    key!("secret_file", Maybe<FilePath>, |w| w.secret_file, "The file with the secret that signs the messages.", sample "\"hook.secret\""),
    key!("events", Choices<Topic>, |w| w.events, "What is told.", sample "[\"broken\", \"gone\", \"pruned\", \"resurrected\", \"guard\", \"dead_letter\"]"),
];

impl Fields for GoneRule {
    const ALLOWED: &'static str = "a table such as { count = 4, span = \"48h\" }";
    const KEYS: &'static [Key<Self>] = &[
        key!(
            "count",
            Count,
            |r| r.count,
            "The number of negative answers."
        ),
        key!(
            "span",
            Time,
            |r| r.span,
            "The time from the first to the last of them."
        ),
    ];
}

impl Fields for Resurrect {
    const ALLOWED: &'static str = "a table such as { count = 2, gap = \"1h\" }";
    const KEYS: &'static [Key<Self>] = &[
        key!("count", Count, |r| r.count, "The number of good answers."),
        key!("gap", Time, |r| r.gap, "The time between two of them."),
    ];
}

impl Fields for FlipRules {
    const ALLOWED: &'static str = "a table such as { min = 20, share = 0.05, window = \"10m\", sample = 0.01, max_hold = \"72h\" }";
    const KEYS: &'static [Key<Self>] = &[
        key!(
            "min",
            Count,
            |r| r.min,
            "How many URLs that were alive must have been asked within the window."
        ),
        key!(
            "share",
            Share,
            |r| r.share,
            "More than this share of them turning negative is a flip."
        ),
        key!(
            "window",
            Interval,
            |r| r.window,
            "The time in which they are counted."
        ),
        key!(
            "sample",
            Share,
            |r| r.sample,
            "The share of the held URLs that a sample asks."
        ),
        key!("max_hold", ZeroLimit, |r| r.max_hold, "The longest hold."),
    ];
}

impl Fields for OwnNetworkRules {
    const ALLOWED: &'static str = "a table such as { hosts = 20, share = 0.30, window = \"60s\" }";
    const KEYS: &'static [Key<Self>] = &[
        key!(
            "hosts",
            Count,
            |r| r.hosts,
            "How many hosts that answered earlier must fail."
        ),
        key!(
            "share",
            Share,
            |r| r.share,
            "And more than this share of the hosts that were asked."
        ),
        key!(
            "window",
            Interval,
            |r| r.window,
            "The time in which they are counted."
        ),
    ];
}

impl Fields for BudgetRules {
    const ALLOWED: &'static str = "a table such as { all = 0.005, host = 0.05, per = \"24h\" }";
    const KEYS: &'static [Key<Self>] = &[
        key!("all", ShareLimit, |r| r.all, "The share of all URLs."),
        key!(
            "host",
            ShareLimit,
            |r| r.host,
            "The share of the URLs of a host."
        ),
        key!(
            "per",
            Interval,
            |r| r.per,
            "The time in which they are counted."
        ),
    ];
}

impl Named for Profile {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("default", Self::Default),
        ("ci", Self::Ci),
        ("eager", Self::Eager),
    ];
    const ALLOWED: &'static str = "\"default\", \"ci\" or \"eager\"";
}

impl Named for LogFormat {
    const NAMES: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
    const ALLOWED: &'static str = "\"text\" or \"json\"";
}

impl Named for LogLevel {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
    const ALLOWED: &'static str = "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
}

impl Named for HeadUse {
    const NAMES: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("never", Self::Never)];
    const ALLOWED: &'static str = "\"auto\" or \"never\"";
}

impl Named for Overlap {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("forbid", Self::Forbid),
        ("queue_one", Self::QueueOne),
        ("allow", Self::Allow),
    ];
    const ALLOWED: &'static str = "\"forbid\", \"queue_one\" or \"allow\"";
}

impl Named for CatchUp {
    const NAMES: &'static [(&'static str, Self)] = &[("once", Self::Once), ("skip", Self::Skip)];
    const ALLOWED: &'static str = "\"once\" or \"skip\"";
}

impl Named for Topic {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("broken", Self::Broken),
        ("gone", Self::Gone),
        ("pruned", Self::Pruned),
        ("resurrected", Self::Resurrected),
        ("guard", Self::Guard),
        ("dead_letter", Self::DeadLetter),
    ];
    const ALLOWED: &'static str = "a list of \"broken\", \"gone\", \"pruned\", \"resurrected\", \"guard\" and \"dead_letter\"";
}

/// A table that is there once.
struct Section<T: 'static> {
    name: &'static str,
    doc: &'static str,
    keys: &'static [Key<T>],
    of: fn(&Config) -> &T,
    of_mut: fn(&mut Config) -> &mut T,
}

impl<T> Table for Section<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn is_list(&self) -> bool {
        false
    }

    fn keys(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    fn read(
        &self,
        into: &mut Config,
        reader: &mut Reader<'_>,
        value: Option<&Spanned<DeValue<'_>>>,
    ) {
        let table = value.and_then(|value| value.get_ref().as_table());
        if let (Some(value), None) = (value, table) {
            let why = format!("not a table; write [{}]", self.name);
            reader.within(self.name.to_owned(), |reader| {
                reader.wrong(value.span(), &why)
            });
        }
        reader.section(self.name, self.keys, (self.of_mut)(into), table);
    }

    fn rows(&self, config: &Config) -> Vec<Vec<Row>> {
        let table = (self.of)(config);
        let rows = self.keys.iter().map(|key| Row::new(key, (key.show)(table)));
        vec![rows.collect()]
    }

    fn samples(&self) -> Vec<Row> {
        self.keys.iter().map(|key| Row::new(key, None)).collect()
    }
}

/// A table that can be there several times.
struct List<T: 'static> {
    name: &'static str,
    doc: &'static str,
    keys: &'static [Key<T>],
    /// An entry whose keys are not set. A required key that stays so is an error.
    new: fn() -> T,
    of: fn(&Config) -> &Vec<T>,
    of_mut: fn(&mut Config) -> &mut Vec<T>,
}

impl<T> Table for List<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn is_list(&self) -> bool {
        true
    }

    fn keys(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    fn read(
        &self,
        into: &mut Config,
        reader: &mut Reader<'_>,
        value: Option<&Spanned<DeValue<'_>>>,
    ) {
        let Some(value) = value else {
            return;
        };
        let why = format!("not a list of tables; write [[{}]]", self.name);
        let Some(entries) = value.get_ref().as_array() else {
            return reader.within(self.name.to_owned(), |reader| {
                reader.wrong(value.span(), &why)
            });
        };
        for (index, entry) in entries.iter().enumerate() {
            let mut new = (self.new)();
            reader.within(format!("{}[{index}]", self.name), |reader| {
                reader.note(&entry.span());
                match entry.get_ref().as_table() {
                    Some(table) => reader.table(self.keys, &mut new, table, entry.span()),
                    None => reader.wrong(entry.span(), &why),
                }
            });
            (self.of_mut)(into).push(new);
        }
    }

    fn rows(&self, config: &Config) -> Vec<Vec<Row>> {
        let rows = |entry: &T| {
            let rows = self.keys.iter().map(|key| Row::new(key, (key.show)(entry)));
            rows.collect()
        };
        (self.of)(config).iter().map(rows).collect()
    }

    fn samples(&self) -> Vec<Row> {
        self.keys.iter().map(|key| Row::new(key, None)).collect()
    }
}

/// The tables that have a key with this name, as they are written.
pub(super) fn tables_with(key: &str) -> Vec<String> {
    let tables = TABLES.iter().filter(|table| table.keys().contains(&key));
    tables.map(|table| written(*table)).collect()
}

/// `[limits]`, `[[host]]`
pub(super) fn written(table: &dyn Table) -> String {
    match table.is_list() {
        true => format!("[[{}]]", table.name()),
        false => format!("[{}]", table.name()),
    }
}

/// What is wrong with a variable of the environment that no key took.
pub(super) fn unknown_variable(table: &str, key: &str) -> String {
    let names: Vec<_> = TABLES.iter().map(|table| table.name()).collect();
    let Some(found) = TABLES.iter().find(|found| found.name() == table) else {
        return match toml_text::nearest(table, &names) {
            Some(near) => format!(
                "there is no table {table}; did you mean {}?",
                near.to_uppercase()
            ),
            None => format!("there is no table {table}; names are {PREFIX}TABLE__KEY"),
        };
    };
    if found.is_list() {
        return format!("{} can be set in the file alone", written(*found));
    }
    match toml_text::nearest(key, &found.keys()) {
        Some(near) => format!(
            "there is no key {table}.{key}; did you mean {}?",
            near.to_uppercase()
        ),
        None => format!(
            "there is no key {table}.{key}; there are {}",
            found.keys().join(", ")
        ),
    }
}
