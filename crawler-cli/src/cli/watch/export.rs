//! `watch export`: URLs and changes of state, for programs.

use std::io::{self, BufWriter, Write as _};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::cli::signals::interrupt_flag;
use crate::store::Cursor;
use crate::watch::hands::{ExportFormat, Exported, Reader};

/// `watch export`.
pub(super) struct Export;

impl Spec for Export {
    const NAME: &'static str = "export";
    const TITLE: &'static str = "watch export";
    const ABOUT: &'static str = "print all URLs with their states, or all changes";
    const USAGE: &'static str = "[--json|--csv|--txt] [--set NAME] [--host HOST] [--state STATE]\n--changes [--since CURSOR] [--follow]";
    const DESCRIPTION: &'static str = "\
Prints the URLs that are or were watched, tombstones too, in the order in which they were first submitted. With several of --set, --host and --state, all of them hold.
With --changes, prints the changes of state. A program that keeps the cursor of the last change it has dealt with, and asks for what comes after it, misses none, whenever either side is killed.
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
            "crawler-cli watch export --changes --since 41 --follow",
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
    if values.since.is_some() || values.is_following {
        return Err(usage("--since and --follow need --changes"));
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
    let since = values.since.as_deref().unwrap_or("0");
    let cursor = since.parse().ok().filter(|cursor| *cursor >= 0);
    let cursor = cursor.ok_or_else(|| usage(format!("--since {since}: not a cursor")))?;
    let mut reader = values.reader()?;
    match values.is_following {
        false => reader.export_changes(Cursor(cursor), &mut io::stdout().lock())?,
        true => return follow(values, reader, Cursor(cursor)),
    };
    Ok(())
}

/// Prints changes as they come, until the output is closed or a signal comes.
fn follow(values: &Values, mut reader: Reader, mut cursor: Cursor) -> Result<(), Failure> {
    let interrupted = interrupt_flag()?;
    while !interrupted.load(Ordering::Relaxed) && !is_closed() {
        cursor = reader.export_changes(cursor, &mut io::stdout().lock())?;
        thread::sleep(BETWEEN_LOOKS);
        if !reader.is_current() {
            reader = values.reader()?;
        }
    }
    Ok(())
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

const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
