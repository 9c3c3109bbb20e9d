//! What the verbs of an operator share: how they are declared, their options, and how they end.

use std::ffi::OsString;
use std::io;
use std::marker::PhantomData;
use std::process::ExitCode;

use super::Verb;
use super::config_rows::{ConfigFile, HasConfig};
use crate::check::life::State;
use crate::cli::manual::Manual;
use crate::cli::option::{Opt, Section, any, file, one_of};
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse};
use crate::cli::{self, FAILED, USAGE, wrong_usage};
use crate::store::{Place, StoreError};
use crate::watch::config::Loaded;
use crate::watch::control::{ControlError, Hand, Schedules, live_status};
use crate::watch::hands::{ExportError, Live, Reader, Shape};
use crate::{stdout, terminal, values};

/// A verb of an operator.
pub(super) trait Spec: Sized + 'static {
    /// The word after `watch`.
    const NAME: &'static str;
    /// `watch` and the word after it.
    const TITLE: &'static str;
    /// What the verb does, as a phrase without a full stop.
    const ABOUT: &'static str;
    const USAGE: &'static str;
    /// One paragraph in each line.
    const DESCRIPTION: &'static str;
    const TABLE: &'static [Section<Typed<Self>>];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[];
    const STATUSES: &'static [(&'static str, &'static str)] = STATUSES;
    /// The operands that a shell can offer.
    const OPERANDS: &'static [&'static str] = &[];
    const TAKES_FILES: bool = false;

    /// Runs the verb.
    ///
    /// # Errors
    /// What the operator has to know.
    fn run(values: Values) -> Result<(), Failure>;
}

/// The verb that is declared so.
pub(super) const fn verb<V: Spec>() -> Verb {
    Verb {
        name: V::NAME,
        manual: manual::<V>,
        main: main::<V>,
    }
}

fn manual<V: Spec>() -> Manual {
    Manual {
        usage: V::USAGE,
        description: V::DESCRIPTION,
        statuses: V::STATUSES,
        examples: V::EXAMPLES,
        see_also: &["crawler-cli-watch"],
        operands: V::OPERANDS,
        takes_files: V::TAKES_FILES,
        ..Manual::of::<Typed<V>>(V::TITLE, V::ABOUT)
    }
}

fn main<V: Spec>(words: Vec<OsString>) -> ExitCode {
    let mut typed = Typed::<V> {
        values: Values::default(),
        verb: PhantomData,
    };
    let ended = match parse(&mut typed, words) {
        Ok(Some(show)) => return cli::show(show, &manual::<V>(), FAILED),
        Ok(None) => V::run(typed.values),
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => wrong_usage(V::TITLE, &error),
        Err(Failure::Config(text)) => {
            terminal::say(text);
            ExitCode::from(USAGE)
        }
        Err(Failure::Failed(text)) => {
            let text = terminal::neutralise(&text);
            terminal::say(format_args!("crawler-cli {}: {text}", V::TITLE));
            ExitCode::from(FAILED)
        }
        Err(Failure::Said) => ExitCode::from(FAILED),
    }
}

/// Why a verb did not do what it was asked for.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line means nothing.
    Usage(UsageError),
    /// The configuration is wrong: safe to show.
    Config(String),
    /// Something is not there, or failed.
    Failed(String),
    /// The same, and it was said already.
    Said,
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The reader of the output has what it wants.
            io::ErrorKind::BrokenPipe => Self::Said,
            _ => Self::Failed(format!("cannot write: {error}")),
        }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Output(error) => error.into(),
        }
    }
}

/// A usage error.
pub(super) fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(UsageError(text.into()))
}

/// What was typed.
#[derive(Default)]
pub(super) struct Values {
    config: ConfigFile,
    pub(super) is_json: bool,
    pub(super) is_csv: bool,
    pub(super) set: Option<String>,
    pub(super) host: Option<String>,
    pub(super) state: Option<State>,
    pub(super) is_all: bool,
    pub(super) is_changes: bool,
    pub(super) is_following: bool,
    pub(super) since: Option<String>,
    pub(super) cursor: Option<OsString>,
    pub(super) reason: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) is_dry_run: bool,
    pub(super) is_forced: bool,
    pub(super) accepts_shrink: bool,
    pub(super) is_fleet: bool,
    pub(super) operands: Vec<String>,
}

impl Values {
    pub(super) fn shape(&self) -> Shape {
        match self.is_json {
            true => Shape::Json,
            false => Shape::Text,
        }
    }

    /// The configuration.
    pub(super) fn load(&self) -> Result<Loaded, Failure> {
        let file = self.config.path()?;
        Loaded::read(&file).map_err(Failure::Config)
    }

    /// Where the store is.
    pub(super) fn store(&self) -> Result<Place, Failure> {
        Ok(self.load()?.config.store.place)
    }

    /// Opens the store for reading.
    pub(super) fn reader(&self) -> Result<Reader, Failure> {
        Ok(Reader::open(&self.store()?)?)
    }

    /// The way of commands to the store.
    pub(super) fn hand(&self) -> Result<Hand, Failure> {
        let config = self.load()?.config;
        let schedules = Schedules::from(&*config.schedules);
        let hand = Hand::reach(&config.store.place, config.policy.rules, schedules)?;
        Ok(hand)
    }

    /// What the running service says, about the host with this root URL.
    pub(super) fn live(&self, root: Option<String>) -> Result<Live, Failure> {
        Ok(match live_status(&self.store()?, root) {
            Ok(Some(status)) => Live::Running(Box::new(status)),
            Ok(None) => Live::Absent,
            Err(error) => Live::Silent(error.to_string()),
        })
    }

    /// The only operand.
    pub(super) fn only_operand(&self, what: &str) -> Result<&str, Failure> {
        match &*self.operands {
            [operand] => Ok(operand),
            [] => Err(usage(format!("no {what}"))),
            [_, second, ..] => Err(usage(format!("{second}: one {what} is enough"))),
        }
    }

    /// The root URLs of the hosts that an operand means as for `status`: that of a URL, a host, or those of a set.
    pub(super) fn named_roots(&self, name: &str) -> Result<Vec<String>, Failure> {
        let roots = self.reader()?.hosts_named(name, MOST_HOSTS + 1)?;
        match roots.len() {
            0 => Err(Failure::Failed(format!(
                "{name}: neither a URL, a host nor a set that is watched"
            ))),
            1..=MOST_HOSTS => Ok(roots),
            _ => Err(Failure::Failed(format!(
                "{name}: a set with more than {MOST_HOSTS} hosts"
            ))),
        }
    }

    /// The root URL of the host that `--host` or an operand names, which the store knows.
    pub(super) fn known_roots(&self, name: &str) -> Result<Vec<String>, Failure> {
        let roots = self.reader()?.roots(name)?;
        match roots.is_empty() {
            true => Err(Failure::Failed(format!("{name}: no such host is watched"))),
            false => Ok(roots),
        }
    }
}

/// What was typed for a verb.
pub(super) struct Typed<V> {
    values: Values,
    verb: PhantomData<V>,
}

impl<V: Spec> CommandLine for Typed<V> {
    const SYNTAX: Syntax = Syntax::FIND;
    const TABLE: &'static [Section<Self>] = V::TABLE;

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        self.values.operands.push(cli::parse::text(operand)?);
        Ok(())
    }
}

impl<V: Spec> HasConfig for Typed<V> {
    fn config(&mut self) -> &mut ConfigFile {
        &mut self.values.config
    }
}

/// The options that several verbs have.
pub(super) struct Rows<V>(PhantomData<V>);

impl<V: Spec> Rows<V> {
    pub(super) const JSON: &'static [Opt<Typed<V>>] =
        &[Opt::flag(&["--json"], |typed: &mut Typed<V>| {
            typed.values.is_json = true
        })
        .short("print JSON, for programs")
        .long("Print JSON, one object in a line, instead of text. Times are in RFC 3339.")];
    pub(super) const SET: &'static [Opt<Typed<V>>] =
        &[
            Opt::text(&["--set"], &[any("NAME")], |typed: &mut Typed<V>, value| {
                typed.values.set = Some(value.to_owned());
                Ok(())
            })
            .short("only URLs of this set"),
        ];
    pub(super) const ADD_TO: &'static [Opt<Typed<V>>] =
        &[
            Opt::text(&["--set"], &[any("NAME")], |typed: &mut Typed<V>, value| {
                typed.values.set = Some(values::name(value)?);
                Ok(())
            })
            .short("the set, which need not exist")
            .default("added"),
        ];
    pub(super) const ACCEPT: &'static [Opt<Typed<V>>] =
        &[Opt::flag(&["--accept-shrink"], |typed: &mut Typed<V>| {
            typed.values.accepts_shrink = true
        })
        .short("believe a source that has lost too many URLs")
        .long("Believe the source of the set, which was refused because too many URLs were missing when it was read last: these URLs leave the set.")];
    pub(super) const OUT_OF: &'static [Opt<Typed<V>>] =
        &[
            Opt::text(&["--set"], &[any("NAME")], |typed: &mut Typed<V>, value| {
                typed.values.set = Some(value.to_owned());
                Ok(())
            })
            .short("the set that they leave; without it, all sets"),
        ];
    pub(super) const HOST_OF_LETTER: &'static [Opt<Typed<V>>] = &[Opt::text(
        &["--host"],
        &[any("NAME")],
        |typed: &mut Typed<V>, value| {
            typed.values.host = Some(value.to_owned());
            Ok(())
        },
    )
    .short("only dead letters of URLs of this host name")];
    pub(super) const HOST: &'static [Opt<Typed<V>>] = &[Opt::text(
        &["--host"],
        &[any("HOST")],
        |typed: &mut Typed<V>, value| {
            typed.values.host = Some(value.to_owned());
            Ok(())
        },
    )
    .short("only URLs of this host")
    .long("Only URLs of this host: a name, perhaps with a port, or a URL of the host. A name means the host over HTTP and over HTTPS.")];
    pub(super) const STATE: &'static [Opt<Typed<V>>] = &[Opt::text(
        &["--state"],
        &[one_of("STATE", STATES)],
        |typed: &mut Typed<V>, value| {
            let is_it = |state: &&State| state.name().eq_ignore_ascii_case(value);
            let state = State::ALL.iter().find(is_it);
            typed.values.state = Some(*state.ok_or_else(|| format!("not one of {}", STATES.join(", ")))?);
            Ok(())
        },
    )
    .short("only URLs in this state")
    .long("Only URLs in this state: NEW, ALIVE, SUSPECT, BROKEN, UNREACHABLE, QUARANTINED, GONE or PRUNED.")];
    pub(super) const ALL: &'static [Opt<Typed<V>>] =
        &[Opt::flag(&["--all"], |typed: &mut Typed<V>| {
            typed.values.is_all = true
        })
        .short("all URLs")];
    pub(super) const DRY_RUN: &'static [Opt<Typed<V>>] =
        &[Opt::flag(&["--dry-run"], |typed: &mut Typed<V>| {
            typed.values.is_dry_run = true
        })
        .short("only count what it concerns")
        .long("Change nothing; only count what the command would concern.")];
    pub(super) const FLEET: &'static [Opt<Typed<V>>] =
        &[Opt::flag(&["--fleet"], |typed: &mut Typed<V>| {
            typed.values.is_fleet = true
        })
        .short("the services that share the store")
        .long("Tell which services share the store, how many hosts each of them has at the moment, and when each gave its last sign of life. For stores in PostgreSQL.")];
    pub(super) const FORCE: &'static [Opt<Typed<V>>] =
        &[Opt::flag(&["--force"], |typed: &mut Typed<V>| {
            typed.values.is_forced = true
        })
        .short("with backup: replace a store that has the name")
        .long("With backup: replace a store that has the name of the copy. A store that a process uses, and a file that is no store, are never replaced.")];
    pub(super) const LETTERS: &'static [Opt<Typed<V>>] = &[
        Opt::text(
            &["--reason"],
            &[any("REASON")],
            |typed: &mut Typed<V>, value| {
                typed.values.reason = Some(value.to_owned());
                Ok(())
            },
        )
        .short("only dead letters with this reason"),
        Opt::text(
            &["--queue"],
            &[any("NAME")],
            |typed: &mut Typed<V>, value| {
                typed.values.queue = Some(value.to_owned());
                Ok(())
            },
        )
        .short("only dead letters of jobs of this queue"),
    ];
    pub(super) const SINCE: &'static [Opt<Typed<V>>] = &[Opt::text(
        &["--since"],
        &[any("TIME")],
        |typed: &mut Typed<V>, value| {
            typed.values.since = Some(value.to_owned());
            Ok(())
        },
    )
    .short("only what failed since then")
    .long("Only what failed then or later: a date or time such as 2026-11-22 or 2026-11-22T10:00:00Z, or a time span such as 12h or 3d before now.")];
    pub(super) const CSV: &'static [Opt<Typed<V>>] = &[
        Opt::flag(&["--csv"], |typed: &mut Typed<V>| typed.values.is_csv = true)
            .short("print a table with commas (RFC 4180)"),
        Opt::flag(&["--txt"], |typed: &mut Typed<V>| {
            (typed.values.is_csv, typed.values.is_json) = (false, false);
        })
        .short("print the URLs alone, as 'watch add -' reads them")
        .long("Print the URLs alone, one in each line, as 'watch add -' reads them. This is the default."),
    ];
    pub(super) const CHANGES: &'static [Opt<Typed<V>>] = &[
        Opt::flag(&["--changes"], |typed: &mut Typed<V>| typed.values.is_changes = true)
            .short("print changes of state, oldest first")
            .long("Print the changes of state instead of the URLs, oldest first, one JSON object in each line: cursor, at, url, from, to, status and why. The state from which a URL changes is the one to which it changed before."),
        Opt::text(&["--since"], &[any("CURSOR")], |typed: &mut Typed<V>, value| {
            typed.values.since = Some(value.to_owned());
            Ok(())
        })
        .short("only changes after this one")
        .long("With --changes, print only the changes after the one with this cursor. 0 is the beginning. A reader that keeps the last cursor misses no change.")
        .default("0"),
        Opt::bytes(&["--cursor"], &[file("FILE")], |typed: &mut Typed<V>, value| {
            typed.values.cursor = Some(value);
            Ok(())
        })
        .short("a file that keeps the place")
        .long("With --changes, print only the changes after the place that this file has, or all if there is no such file, and keep the place in it. It is written after the lines are out: a kill may let a change be printed twice, and never leaves one out."),
        Opt::flag(&["--follow"], |typed: &mut Typed<V>| typed.values.is_following = true)
            .short("go on, and print changes as they come")
            .long("With --changes, go on and print further changes as they come, until the output is closed or a signal comes. A server of PostgreSQL that is away is waited for."),
    ];
}

/// Of a set with more hosts, hosts have to be named one by one.
const MOST_HOSTS: usize = 10_000;

/// Prints a text on standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    Ok(stdout::write(text.as_bytes())?)
}

const STATES: &[&str] = &[
    "NEW",
    "ALIVE",
    "SUSPECT",
    "BROKEN",
    "UNREACHABLE",
    "QUARANTINED",
    "GONE",
    "PRUNED",
];

const STATUSES: &[(&str, &str)] = &[
    ("0", "Done."),
    (
        "1",
        "What was asked for is not there, was refused, or could not be done.",
    ),
    ("2", "Wrong usage, or a configuration that is wrong."),
];
