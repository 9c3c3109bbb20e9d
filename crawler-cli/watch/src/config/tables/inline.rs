//! The keys of tables within a line, such as `{ count = 4, span = "48h" }`.

use crate::config::kinds::{Count, Fields, Interval, Share, ShareLimit, Time, ZeroLimit};
use crate::config::reader::{Key, Kind, key};
use verdict::guard::{BudgetRules, FlipRules, OwnNetworkRules};
use verdict::life::{GoneRule, Resurrect};

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
