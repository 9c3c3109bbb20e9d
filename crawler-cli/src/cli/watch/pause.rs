//! `watch pause` and `watch resume`.

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::store::Scope;
use crate::watch::control::{Command, ControlError};
use crate::watch::hands::shown_url;

/// `watch pause`.
pub(super) struct Pause;

impl Spec for Pause {
    const NAME: &'static str = "pause";
    const TITLE: &'static str = "watch pause";
    const ABOUT: &'static str = "stop asking, everything or some hosts";
    const USAGE: &'static str = "[URL|HOST|SET | --host HOST]";
    const DESCRIPTION: &'static str = "\
Stops asking: everything, a host, the host of a URL, or the hosts of a set. What is under way is finished. A pause outlasts a restart of the service; 'watch resume' with the same name ends it.";
    const TABLE: &'static [Section<Typed<Self>>] = TABLE_OF_PAUSE;
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[(
        "crawler-cli watch pause www.example.com",
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
    const USAGE: &'static str = "[URL|HOST|SET | --host HOST]";
    const DESCRIPTION: &'static str = "Ends a pause: that of everything, or those of the hosts that a URL, a host or a set means. Each pause is ended by itself.";
    const TABLE: &'static [Section<Typed<Self>>] = TABLE_OF_RESUME;
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("crawler-cli watch resume", "Ask again")];

    fn run(values: Values) -> Result<(), Failure> {
        run(&values, "resumed", |what| Command::Resume { what })
    }
}

const TABLE_OF_PAUSE: &[Section<Typed<Pause>>] = &[Section {
    heading: "Options",
    options: &[Rows::<Pause>::HOST, ConfigRows::ALL, HelpRows::ALL],
}];

const TABLE_OF_RESUME: &[Section<Typed<Resume>>] = &[Section {
    heading: "Options",
    options: &[Rows::<Resume>::HOST, ConfigRows::ALL, HelpRows::ALL],
}];

fn run(values: &Values, done: &str, command: impl Fn(Scope) -> Command) -> Result<(), Failure> {
    let roots = match (&values.host, &*values.operands) {
        (Some(_), [operand, ..]) => {
            return Err(usage(format!("{operand}: --host names a host already")));
        }
        (Some(host), []) => values.known_roots(host)?,
        (None, []) => Vec::new(),
        (None, _) => values.named_roots(values.only_operand("URL, host or set")?)?,
    };
    let scopes = match roots.is_empty() {
        true => vec![Scope::All],
        false => roots.into_iter().map(Scope::Host).collect(),
    };
    let mut hand = values.hand()?;
    let (mut text, mut missing) = (String::new(), None);
    for scope in scopes {
        match hand.send(&command(scope.clone())) {
            Ok(_) => {}
            // A name may mean two hosts, of which one is paused.
            Err(ControlError::Refused(refusal)) if refusal.is_not_found() => {
                missing = Some(refusal.why);
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        text += &match scope {
            Scope::All => format!("{done} everything\n"),
            Scope::Host(root) => format!("{done} {}\n", shown_url(&root)),
        };
    }
    match missing {
        Some(why) if text.is_empty() => Err(Failure::Failed(why)),
        _ => print(&text),
    }
}
