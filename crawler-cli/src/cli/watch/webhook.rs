//! `watch webhook`: those who are told of changes.

use jiff::Timestamp;

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::watch::control::{Command, Reply, WebhookDeed};
use crate::watch::hands::Shape;

/// `watch webhook`.
pub(super) struct Webhook;

impl Spec for Webhook {
    const NAME: &'static str = "webhook";
    const TITLE: &'static str = "watch webhook";
    const ABOUT: &'static str = "list, test or resume webhooks";
    const USAGE: &'static str = "list | test NAME | resume NAME";
    const DESCRIPTION: &'static str = "\
list: the receivers of the configuration: what each waits for, how many messages wait, and what it answered last.
test: send a test message now, and print the answer. resume: go on with a receiver that answered 410, and send what waits without further wait.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[Rows::<Self>::JSON, ConfigRows::ALL, HelpRows::ALL],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[(
        "crawler-cli watch webhook test ops",
        "Whether a receiver takes messages",
    )];
    const OPERANDS: &'static [&'static str] = &["list", "test", "resume"];

    fn run(values: Values) -> Result<(), Failure> {
        let operands: Vec<&str> = values.operands.iter().map(String::as_str).collect();
        let (name, deed) = match *operands {
            ["list"] => {
                let live = values.live(None)?;
                let rows = values
                    .reader()?
                    .webhooks(&live, Timestamp::now(), values.shape())?;
                return match (rows.is_empty(), values.shape()) {
                    (true, Shape::Text) => print("there are no webhooks\n"),
                    _ => print(&rows),
                };
            }
            ["test", name] => (name, WebhookDeed::Test),
            ["resume", name] => (name, WebhookDeed::Resume),
            _ => return Err(usage(format!("neither of: {}", Self::USAGE))),
        };
        let reply = values.hand()?.send(&Command::Webhook {
            name: name.to_owned(),
            deed,
        })?;
        match reply {
            Reply::Tested {
                is_good: false,
                answer,
            } => Err(Failure::Failed(format!("{name}: {answer}"))),
            Reply::Tested { answer, .. } => print(&format!("{name} took the message: {answer}\n")),
            _ => print(&format!("{name} is resumed\n")),
        }
    }
}
