//! `watch recheck`: asks URLs now.

use serde_json::json;

use super::ConfigRows;
use super::target::{Chosen, chosen_by_name};
use super::verb::{Failure, Rows, Spec, Typed, Values, print};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::watch::control::Command;
use crate::watch::hands::counted;

/// `watch recheck`.
pub(super) struct Recheck;

impl Spec for Recheck {
    const NAME: &'static str = "recheck";
    const TITLE: &'static str = "watch recheck";
    const ABOUT: &'static str = "have URLs asked as soon as possible";
    const USAGE: &'static str =
        "URL|HOST|SET|FILE|-... | --host HOST | --set NAME | --state STATE | --all";
    const DESCRIPTION: &'static str = "\
Makes URLs due now. They are asked under the limits of their hosts, so many URLs of one host take their time. What is held by a guard is asked when the hold ends; what is in no set is not asked.
A name that is no URL and no file is a host, or else a set.
What a check then means is not changed: a URL is not gone sooner because it is asked more often.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[
            Rows::<Self>::HOST,
            Rows::<Self>::SET,
            Rows::<Self>::STATE,
            Rows::<Self>::ALL,
            Rows::<Self>::JSON,
            ConfigRows::ALL,
            HelpRows::ALL,
        ],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        (
            "crawler-cli watch recheck https://www.example.com/",
            "Ask a URL now",
        ),
        (
            "crawler-cli watch recheck --state BROKEN",
            "Ask all that is broken",
        ),
    ];
    const TAKES_FILES: bool = true;

    fn run(values: Values) -> Result<(), Failure> {
        let Chosen { targets, is_whole } = chosen_by_name(&values)?;
        let mut hand = values.hand()?;
        let mut due = 0;
        for which in targets {
            let (count, _) = hand.send_all(|after| Command::Recheck {
                which: which.clone(),
                after,
            })?;
            due += count;
        }
        match values.is_json {
            true => print(&format!("{}\n", json!({ "made_due": due })))?,
            false => print(&format!("{}\n", in_words(due, hand.is_service())))?,
        }
        if is_whole { Ok(()) } else { Err(Failure::Said) }
    }
}

fn in_words(due: u64, is_service: bool) -> String {
    let due = match due {
        0 => "nothing to change: due already, held, or in no set".to_owned(),
        due => format!("made {} due now", counted(due, "URL", "URLs")),
    };
    match is_service {
        true => due,
        false => format!("{due}; no service runs: 'watch run' starts it"),
    }
}
