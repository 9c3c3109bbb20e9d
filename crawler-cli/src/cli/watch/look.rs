//! `watch show` and `watch status`: what is known, and why something is not asked.

use jiff::Timestamp;

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;

/// `watch show`.
pub(super) struct Show;

impl Spec for Show {
    const NAME: &'static str = "show";
    const TITLE: &'static str = "watch show";
    const ABOUT: &'static str = "show a URL with its whole history";
    const USAGE: &'static str = "URL";
    const DESCRIPTION: &'static str = "\
Shows all that is known about a URL: its state, why it is not asked right now, when it is asked next, its last answer and its last 8 statuses, its sets, its dead letters, and its history: first as a strip over time in which each sign stands for the worst state of its time, then as changes of state.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[Rows::<Self>::JSON, ConfigRows::ALL, HelpRows::ALL],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[(
        "crawler-cli watch show https://www.example.com/",
        "What became of a URL",
    )];

    fn run(values: Values) -> Result<(), Failure> {
        let url = values.only_operand("URL")?;
        let mut reader = values.reader()?;
        let Some(root) = reader.host_of(url)? else {
            return Err(Failure::Failed(format!("{url}: not watched")));
        };
        let live = values.live(Some(root))?;
        match reader.show(url, live, Timestamp::now(), values.shape())? {
            Some(page) => print(&page),
            None => Err(Failure::Failed(format!("{url}: not watched"))),
        }
    }
}

/// `watch status`.
pub(super) struct Status;

impl Spec for Status {
    const NAME: &'static str = "status";
    const TITLE: &'static str = "watch status";
    const ABOUT: &'static str = "tell how the service fares, and why something is not asked";
    const USAGE: &'static str = "[URL|HOST|SET|--fleet]";
    const DESCRIPTION: &'static str = "\
Tells how the service and its store fare: whether URLs are asked and what keeps them from it, how many are late, the last cycle of reconciling, states, holds, hosts that wait, pauses, dead letters, jobs, sets and schedules.
With a URL or a host, tells why it is not asked right now: paused, held, not due yet, after Retry-After, because of a rate, in no set, and so on. With a set, tells how many URLs it has, and when its source was read.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[
            Rows::<Self>::FLEET,
            Rows::<Self>::JSON,
            ConfigRows::ALL,
            HelpRows::ALL,
        ],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        ("crawler-cli watch status", "How everything fares"),
        (
            "crawler-cli watch status www.example.com",
            "Why a host is not asked",
        ),
    ];

    fn run(values: Values) -> Result<(), Failure> {
        if values.is_fleet {
            if let [operand, ..] = &*values.operands {
                return Err(usage(format!("{operand}: --fleet is about all workers")));
            }
            return print(&values.reader()?.fleet_status(values.shape())?);
        }
        if values.operands.is_empty() {
            let live = values.live(None)?;
            return print(
                &values
                    .reader()?
                    .status(live, Timestamp::now(), values.shape())?,
            );
        }
        let name = values.only_operand("URL or host")?;
        let mut reader = values.reader()?;
        let mut pages = Vec::new();
        if let Some(root) = reader.host_of(name)? {
            let live = values.live(Some(root))?;
            pages.extend(reader.status_of_url(name, live, Timestamp::now(), values.shape())?);
        }
        // A URL that is not watched may be on a host that is.
        if pages.is_empty() {
            for root in reader.roots(name)? {
                let live = values.live(Some(root.clone()))?;
                let page = reader.status_of_host(&root, live, Timestamp::now(), values.shape())?;
                pages.extend(page);
            }
        }
        if pages.is_empty() {
            pages.extend(reader.status_of_set(name, Timestamp::now(), values.shape())?);
        }
        match pages.is_empty() {
            true => Err(Failure::Failed(format!(
                "{name}: neither a URL, a host nor a set that is watched"
            ))),
            false => print(&pages.join(if values.is_json { "" } else { "\n" })),
        }
    }
}
