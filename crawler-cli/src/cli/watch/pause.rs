//! `watch pause` and `watch resume`.

use super::verb::{ConfigFile, print};
use crate::cli::usage::Failure;
use store::Scope;
use watch::control::{Command, ControlError};
use watch::hands::shown_url;

/// Stop asking, everything or some hosts
///
/// Stops asking: everything, a host, the host of a URL, or the hosts of a set. What is under way is finished. A pause
/// outlasts a restart of the service; 'watch resume' with the same name ends it.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  crawler-cli watch pause www.example.com    leave a host alone")]
pub(super) struct Pause {
    #[command(flatten)]
    what: What,
}

/// Ask again what was paused
///
/// Ends a pause: that of everything, or those of the hosts that a URL, a host or a set means. Each pause is ended by
/// itself.
#[derive(clap::Args)]
pub(super) struct Resume {
    #[command(flatten)]
    what: What,
}

/// What is paused.
#[derive(clap::Args)]
struct What {
    /// A URL, a host or a set; without one, everything
    #[arg(value_name = "URL|HOST|SET", conflicts_with = "host")]
    name: Option<String>,
    /// This host
    ///
    /// This host: a name, perhaps with a port, or a URL of the host. A name means the host over HTTP and over HTTPS.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    #[command(flatten)]
    config: ConfigFile,
}

impl Pause {
    pub(super) fn run(self) -> Result<(), Failure> {
        run(&self.what, "paused", |what| Command::Pause { what })
    }
}

impl Resume {
    pub(super) fn run(self) -> Result<(), Failure> {
        run(&self.what, "resumed", |what| Command::Resume { what })
    }
}

fn run(what: &What, done: &str, command: impl Fn(Scope) -> Command) -> Result<(), Failure> {
    let roots = match (&what.host, &what.name) {
        (Some(host), _) => what.config.known_roots(host)?,
        (None, Some(name)) => what.config.named_roots(name)?,
        (None, None) => Vec::new(),
    };
    let scopes = match roots.is_empty() {
        true => vec![Scope::All],
        false => roots.into_iter().map(Scope::Host).collect(),
    };
    let mut hand = what.config.hand()?;
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
