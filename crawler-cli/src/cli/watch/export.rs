//! `watch export`: URLs and changes of state, for programs.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::cli::signals::interrupt_flag;
use crate::store::{Cursor, StoreErrorKind};
use crate::terminal::{neutralise, say};
use crate::watch::hands::{ExportError, ExportFormat, Exported, Reader};

/// `watch export`.
pub(super) struct Export;

impl Spec for Export {
    const NAME: &'static str = "export";
    const TITLE: &'static str = "watch export";
    const ABOUT: &'static str = "print all URLs with their states, or all changes";
    const USAGE: &'static str = "[--json|--csv|--txt] [--set NAME] [--host HOST] [--state STATE]\n--changes [--since CURSOR|--cursor FILE] [--follow]";
    const DESCRIPTION: &'static str = "\
Prints the URLs that are or were watched, tombstones too, in the order in which they were first submitted. With several of --set, --host and --state, all of them hold.
With --changes, prints the changes of state. A program that keeps the cursor of the last change it has dealt with, and asks for what comes after it, misses none, whenever either side is killed. --cursor FILE keeps it: a change may then be printed twice after a kill, and is never left out.
The store is read in small pieces: a reader that is slow, or stops, slows no check.";
    const TABLE: &'static [Section<Typed<Self>>] = &[
        Section {
            heading: "URLs",
            options: &[
                Rows::<Self>::JSON,
                Rows::<Self>::CSV,
                Rows::<Self>::SET,
                Rows::<Self>::HOST,
                Rows::<Self>::STATE,
            ],
        },
        Section {
            heading: "Changes of state",
            options: &[Rows::<Self>::CHANGES],
        },
        Section {
            heading: "Other options",
            options: &[ConfigRows::ALL, HelpRows::ALL],
        },
    ];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        (
            "crawler-cli watch export --json --state GONE",
            "All that is gone",
        ),
        (
            "crawler-cli watch export --changes --cursor place --follow",
            "What a downstream program reads",
        ),
    ];

    fn run(values: Values) -> Result<(), Failure> {
        if let Some(operand) = values.operands.first() {
            return Err(usage(format!("{operand}: there are no operands")));
        }
        let ended = match values.is_changes {
            true => changes(&values),
            false => urls(&values),
        };
        match ended {
            // The reader of the output has what it wants.
            Err(Failure::Said) => Ok(()),
            ended => ended,
        }
    }
}

fn urls(values: &Values) -> Result<(), Failure> {
    if values.since.is_some() || values.is_following || values.cursor.is_some() {
        return Err(usage("--since, --cursor and --follow need --changes"));
    }
    let format = match (values.is_json, values.is_csv) {
        (true, true) => return Err(usage("either --json or --csv")),
        (true, false) => ExportFormat::Json,
        (false, true) => ExportFormat::Csv,
        (false, false) => ExportFormat::Text,
    };
    if let Some(set) = &values.set
        && !values.reader()?.has_set(set)?
    {
        return Err(Failure::Failed(format!("{set}: no such set")));
    }
    // A host name may mean two hosts: over HTTP and over HTTPS.
    let hosts = match &values.host {
        Some(host) => values.known_roots(host)?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut reader = values.reader()?;
    let exported = Exported {
        set: values.set.clone(),
        hosts: hosts.into_iter().flatten().collect(),
        state: values.state,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    reader.export(&exported, format, &mut out)?;
    Ok(out.flush()?)
}

fn changes(values: &Values) -> Result<(), Failure> {
    let filters = [
        values.set.is_some(),
        values.host.is_some(),
        values.state.is_some(),
    ];
    if filters.contains(&true) || values.is_csv {
        return Err(usage("--changes prints all changes, as JSON"));
    }
    let mut place = Place::new(values)?;
    match values.is_following {
        false => place.print(&mut values.reader()?)?,
        true => follow(values, &mut place)?,
    }
    Ok(())
}

/// Prints changes as they come, until the output is closed or a signal comes. A server that is away is waited for.
fn follow(values: &Values, place: &mut Place) -> Result<(), Failure> {
    let interrupted = interrupt_flag()?;
    let mut reader = values.reader()?;
    let mut is_away = false;
    while !interrupted.load(Ordering::Relaxed) && !is_closed() {
        match place.print(&mut reader) {
            Ok(()) if is_away => {
                is_away = false;
                say("the store can be read again");
            }
            Ok(()) => {}
            Err(ExportError::Store(error)) if matches!(error.kind(), StoreErrorKind::Away(_)) => {
                if !is_away {
                    is_away = true;
                    say(format_args!(
                        "{}: trying again",
                        neutralise(&error.to_string())
                    ));
                }
                thread::sleep(BETWEEN_TRIES);
            }
            Err(error) => return Err(error.into()),
        }
        thread::sleep(BETWEEN_LOOKS);
        if !reader.is_current() {
            reader = values.reader()?;
        }
    }
    Ok(())
}

/// Up to where the changes are out.
struct Place {
    cursor: Cursor,
    /// The file that keeps it.
    file: Option<PathBuf>,
}

impl Place {
    fn new(values: &Values) -> Result<Self, Failure> {
        let file = values.cursor.as_ref().map(PathBuf::from);
        let text = match (&values.since, &file) {
            (Some(_), Some(_)) => return Err(usage("either --since or --cursor")),
            (Some(since), None) => since.clone(),
            (None, None) => String::new(),
            (None, Some(file)) => match fs::read_to_string(file) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                Err(error) => {
                    let file = file.display();
                    return Err(Failure::Failed(format!("{file}: {error}")));
                }
            },
        };
        let is_new = text.is_empty() && values.since.is_none();
        let cursor = text.trim().parse().ok().filter(|cursor| *cursor >= 0);
        let cursor = cursor.or(is_new.then_some(0)).ok_or_else(|| match &file {
            Some(file) => Failure::Failed(format!("{}: not a cursor", file.display())),
            None => usage(format!("--since {text}: not a cursor")),
        })?;
        Ok(Self {
            cursor: Cursor(cursor),
            file,
        })
    }

    /// Prints what came after. The place is kept after the lines are out: whoever ends the program, none is lost.
    fn print(&mut self, reader: &mut Reader) -> Result<(), ExportError> {
        let Self { cursor, file } = self;
        reader.export_changes(*cursor, &mut io::stdout().lock(), &mut |last| {
            *cursor = last;
            file.as_ref().map_or(Ok(()), |file| keep(file, last))
        })
    }
}

/// Writes a cursor into a file, whole or not at all.
fn keep(file: &Path, cursor: Cursor) -> io::Result<()> {
    let mut beside = file.to_owned().into_os_string();
    beside.push(".new");
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let mut new = File::create(&beside).map_err(named)?;
    writeln!(new, "{}", cursor.0).map_err(named)?;
    new.sync_data().map_err(named)?;
    fs::rename(&beside, file).map_err(named)
}

/// Whether nobody reads the output any more.
fn is_closed() -> bool {
    let out = io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let is_ready = poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0);
    is_ready
        && polled[0]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::NVAL)
}

const BETWEEN_TRIES: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
