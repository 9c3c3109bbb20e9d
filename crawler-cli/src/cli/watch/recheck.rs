//! `watch recheck`: asks URLs now.

use serde_json::json;

use super::target::{Chosen, Which, chosen_by_name};
use super::verb::{ConfigFile, Json};
use crate::cli::usage::Failure;
use plain::text;
use watch::control::Command;

/// Have URLs asked as soon as possible
///
/// Makes URLs due now. They are asked under the limits of their hosts, so many URLs of one host take their time. What is
/// held by a guard is asked when the hold ends; what is in no set is not asked.
///
/// A name that is no URL and no file is a host, or else a set.
///
/// What a check then means is not changed: a URL is not gone sooner because it is asked more often.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch recheck https://www.example.com/    ask a URL now
  crawler-cli watch recheck --state BROKEN              ask all that is broken")]
pub(super) struct Recheck {
    #[command(flatten)]
    which: Which,
    /// Only URLs of this set
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

impl Recheck {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Chosen { targets, is_whole } =
            chosen_by_name(&self.config, &self.which, self.set.as_deref())?;
        let mut hand = self.config.hand()?;
        let mut due = 0;
        for which in targets {
            let (count, _) = hand.send_all(|after| Command::Recheck {
                which: which.clone(),
                after,
            })?;
            due += count;
        }
        let text = in_words(due, hand.is_service());
        self.json.say(&json!({ "made_due": due }), &text)?;
        if is_whole { Ok(()) } else { Err(Failure::Said) }
    }
}

fn in_words(due: u64, is_service: bool) -> String {
    let due = match due {
        0 => "nothing to change: due already, held, or in no set".to_owned(),
        due => format!("made {} due now", text::count(due, "URL", "URLs")),
    };
    match is_service {
        true => due,
        false => format!("{due}; no service runs: 'watch run' starts it"),
    }
}
