//! `watch pause` and `watch resume`.

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::store::Scope;
use crate::watch::control::Command;
use crate::watch::hands::{safe, shown_url};

/// `watch pause`.
pub(super) struct Pause;

impl Spec for Pause {
    const NAME: &'static str = "pause";
    const TITLE: &'static str = "watch pause";
    const ABOUT: &'static str = "stop asking, everything or a host or a set";
    const USAGE: &'static str = "[--host HOST | --set NAME]";
    const DESCRIPTION: &'static str = "\
Stops asking: everything, a host, or the URLs that are only in this set. What is under way is finished. A pause outlasts a restart of the service; 'watch resume' with the same option ends it.";
    const TABLE: &'static [Section<Typed<Self>>] = TABLE_OF_PAUSE;
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[(
        "crawler-cli watch pause --host www.example.com",
        "Leave a host alone",
    )];

    fn run(values: Values) -> Result<(), Failure> {
        run(&values, "paused", |what| Command::Pause { what })
    }
}

/// `watch resume`.
pub(super) struct Resume;

impl Spec for Resume {
    const NAME: &'static str = "resume";
    const TITLE: &'static str = "watch resume";
    const ABOUT: &'static str = "ask again what was paused";
    const USAGE: &'static str = "[--host HOST | --set NAME]";
    const DESCRIPTION: &'static str =
        "Ends a pause: that of everything, of a host, or of a set. Each pause is ended by itself.";
    const TABLE: &'static [Section<Typed<Self>>] = TABLE_OF_RESUME;
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("crawler-cli watch resume", "Ask again")];

    fn run(values: Values) -> Result<(), Failure> {
        run(&values, "resumed", |what| Command::Resume { what })
    }
}

const TABLE_OF_PAUSE: &[Section<Typed<Pause>>] = &[Section {
    heading: "Options",
    options: &[
        Rows::<Pause>::HOST,
        Rows::<Pause>::SET,
        ConfigRows::ALL,
        HelpRows::ALL,
    ],
}];

const TABLE_OF_RESUME: &[Section<Typed<Resume>>] = &[Section {
    heading: "Options",
    options: &[
        Rows::<Resume>::HOST,
        Rows::<Resume>::SET,
        ConfigRows::ALL,
        HelpRows::ALL,
    ],
}];

fn run(values: &Values, done: &str, command: impl Fn(Scope) -> Command) -> Result<(), Failure> {
    if let Some(operand) = values.operands.first() {
        return Err(usage(format!(
            "{operand}: there are no operands; --host or --set names one"
        )));
    }
    let scopes = match (&values.host, &values.set) {
        (Some(_), Some(_)) => return Err(usage("either --host or --set")),
        (Some(host), None) => values
            .known_roots(host)?
            .into_iter()
            .map(Scope::Host)
            .collect(),
        (None, Some(set)) => match values.reader()?.has_set(set)? {
            true => vec![Scope::Set(set.clone())],
            false => return Err(Failure::Failed(format!("{set}: no such set"))),
        },
        (None, None) => vec![Scope::All],
    };
    let mut hand = values.hand()?;
    let mut text = String::new();
    for scope in scopes {
        hand.send(&command(scope.clone()))?;
        text += &match scope {
            Scope::All => format!("{done} everything\n"),
            Scope::Host(root) => format!("{done} {}\n", shown_url(&root)),
            Scope::Set(name) => format!("{done} the set {}\n", safe(&name)),
        };
    }
    print(&text)
}
