//! `watch export`: URLs and changes of state, for programs.

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::verb::{ConfigFile, Json, state};
use crate::cli::signals::interrupt_flag;
use crate::cli::usage::{Failure, usage};
use plain::files::{beside, replace, resolved};
use plain::terminal::{neutralise, say};
use store::{Cursor, StoreErrorKind};
use verdict::life::State;
use watch::hands::{ExportError, ExportFormat, Exported, Reader};

/// Print all URLs with their states, or all changes
///
/// Prints the URLs that are or were watched, tombstones too, in the order in which they were first submitted. With
/// several of --set, --host and --state, all of them hold.
///
/// With --changes, prints the changes of state. A program that keeps the cursor of the last change it has dealt with,
/// and asks for what comes after it, misses none, whenever either side is killed. --cursor FILE keeps it: a change may
/// then be printed twice after a kill, and is never left out.
///
/// The store is read in small pieces: a reader that is slow, or stops, slows no check.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch export --json --state GONE
  crawler-cli watch export --changes --cursor place --follow")]
pub(super) struct Export {
    #[command(flatten)]
    json: Json,
    /// Print a table with commas (RFC 4180)
    #[arg(long = "csv", conflicts_with = "json")]
    is_csv: bool,
    /// Print the URLs alone, as 'watch add -' reads them
    ///
    /// Print the URLs alone, one in each line, as 'watch add -' reads them. This is the default.
    #[arg(long = "txt", overrides_with_all = ["json", "is_csv"])]
    _is_text: bool,
    /// Only URLs of this set
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Only URLs of this host
    ///
    /// Only URLs of this host: a name, perhaps with a port, or a URL of the host. A name means the host over HTTP and
    /// over HTTPS.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only URLs in this state
    ///
    /// Only URLs in this state: NEW, ALIVE, SUSPECT, BROKEN, UNREACHABLE, QUARANTINED, GONE or PRUNED.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<State>,
    /// Print changes of state, oldest first
    ///
    /// Print the changes of state instead of the URLs, oldest first, one JSON object in each line: cursor, at, url,
    /// from, to, status and why. The state from which a URL changes is the one to which it changed before.
    #[arg(long = "changes")]
    is_changes: bool,
    /// Only changes after this one [default: 0]
    ///
    /// With --changes, print only the changes after the one with this cursor. 0 is the beginning. A reader that keeps
    /// the last cursor misses no change.
    #[arg(long, value_name = "CURSOR", conflicts_with = "cursor")]
    since: Option<String>,
    /// A file that keeps the place
    ///
    /// With --changes, print only the changes after the place that this file has, or all if there is no such file, and
    /// keep the place in it. It is written after the lines are out: a kill may let a change be printed twice, and never
    /// leaves one out.
    #[arg(long, value_name = "FILE")]
    cursor: Option<PathBuf>,
    /// Go on, and print changes as they come
    ///
    /// With --changes, go on and print further changes as they come, until the output is closed or a signal comes. A
    /// server of PostgreSQL that is away is waited for.
    #[arg(long = "follow")]
    is_following: bool,
    #[command(flatten)]
    config: ConfigFile,
}

impl Export {
    pub(super) fn run(self) -> Result<(), Failure> {
        let ended = match self.is_changes {
            true => changes(&self),
            false => urls(&self),
        };
        match ended {
            // The reader of the output has what it wants.
            Err(Failure::Said) => Ok(()),
            ended => ended,
        }
    }
}

fn urls(verb: &Export) -> Result<(), Failure> {
    if verb.since.is_some() || verb.is_following || verb.cursor.is_some() {
        return Err(usage("--since, --cursor and --follow need --changes"));
    }
    let format = match (verb.json.is_asked, verb.is_csv) {
        (true, _) => ExportFormat::Json,
        (false, true) => ExportFormat::Csv,
        (false, false) => ExportFormat::Text,
    };
    if let Some(set) = &verb.set
        && !verb.config.reader()?.has_set(set)?
    {
        return Err(Failure::Failed(format!("{set}: no such set")));
    }
    // A host name may mean two hosts: over HTTP and over HTTPS.
    let hosts = match &verb.host {
        Some(host) => verb
            .config
            .known_roots(host)?
            .into_iter()
            .map(Some)
            .collect(),
        None => vec![None],
    };
    let mut reader = verb.config.reader()?;
    let exported = Exported {
        set: verb.set.clone(),
        hosts: hosts.into_iter().flatten().collect(),
        state: verb.state,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    reader.export(&exported, format, &mut out)?;
    Ok(out.flush()?)
}

fn changes(verb: &Export) -> Result<(), Failure> {
    let filters = [
        verb.set.is_some(),
        verb.host.is_some(),
        verb.state.is_some(),
    ];
    if filters.contains(&true) || verb.is_csv {
        return Err(usage("--changes prints all changes, as JSON"));
    }
    let mut place = Place::new(verb)?;
    match verb.is_following {
        false => place.print(&mut verb.config.reader()?)?,
        true => follow(verb, &mut place)?,
    }
    Ok(())
}

/// Prints changes as they come, until the output is closed or a signal comes. A server that is away is waited for.
fn follow(verb: &Export, place: &mut Place) -> Result<(), Failure> {
    let interrupted = interrupt_flag()?;
    let mut reader = verb.config.reader()?;
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
            reader = verb.config.reader()?;
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
    fn new(verb: &Export) -> Result<Self, Failure> {
        let file = verb.cursor.as_ref().map(PathBuf::from);
        let text = match (&verb.since, &file) {
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
        let is_new = text.is_empty() && verb.since.is_none();
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
    let text = format!("{}\n", cursor.0);
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    replace(
        &resolved(file),
        &beside(file, ".new"),
        0o666,
        text.as_bytes(),
    )
    .map_err(named)
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
