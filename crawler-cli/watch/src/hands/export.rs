//! `watch export`: one line for each URL, or for each change of state.

use std::io::{self, Write};
use std::ops::ControlFlow;

use serde_json::{Map, Value};

use super::show::statuses;
use check::Checked;
use check::json::{self, Fields, rfc3339};
use plain::terminal::csv_text;
use store::{Cursor, Event, Lane, Store, StoreError, UrlId, WatchStore, WatchedUrl, Which};
use verdict::life::{Answer as Past, State};

/// How URLs are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ExportFormat {
    /// The URLs alone, one in each line: what `watch add -` reads.
    #[default]
    Text,
    /// One JSON object in each line.
    Json,
    /// A table with a head (RFC 4180).
    Csv,
}

/// Which URLs are exported: those for which all that is given holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Exported {
    /// The members of this set.
    pub set: Option<String>,
    /// Those of the hosts with these root URLs; empty: of all hosts.
    pub hosts: Vec<String>,
    /// Those in this state.
    pub state: Option<State>,
}

impl Exported {
    fn which(&self) -> Which {
        match (&self.set, &*self.hosts, self.state) {
            (Some(set), ..) => Which::Set(set.clone()),
            (None, [host], _) => Which::Host(host.clone()),
            (None, [], Some(state)) => Which::State(state),
            (None, ..) => Which::Everything,
        }
    }

    fn passes(&self, url: &WatchedUrl) -> bool {
        self.state.is_none_or(|state| url.life.state() == state)
            && (self.hosts.is_empty() || self.is_of_hosts(&url.url))
    }

    fn is_of_hosts(&self, url: &str) -> bool {
        let root = url::Url::parse(url).map(|url| super::root_of(&url));
        root.is_ok_and(|root| self.hosts.contains(&root))
    }
}

/// Why an export ended early.
#[derive(Debug)]
pub enum ExportError {
    /// The store cannot be read.
    Store(StoreError),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Writes URLs in the order in which they were first submitted. The store is read a thousand URLs at a time and not
/// while the output is written, so a reader that is slow slows nothing but this.
///
/// # Errors
/// The store cannot be read, or the output cannot be written.
pub(super) fn urls(
    store: &mut impl WatchStore,
    exported: &Exported,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let which = exported.which();
    let mut lines = Vec::new();
    if format == ExportFormat::Csv {
        lines.extend_from_slice(CSV_HEAD.as_bytes());
    }
    let mut after = None;
    loop {
        let (mut seen, mut last) = (0, None);
        store.export(&which, after, &mut |url| {
            seen += 1;
            last = Some(url.id);
            if exported.passes(&url) {
                write_url(url, format, &mut lines);
            }
            match seen < BATCH && lines.len() < BATCH_BYTES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        out.write_all(&lines)?;
        lines.clear();
        match last {
            Some(last) => after = Some::<UrlId>(last),
            None => break,
        }
    }
    Ok(out.flush()?)
}

fn write_url(url: WatchedUrl, format: ExportFormat, out: &mut Vec<u8>) {
    match format {
        ExportFormat::Text => {
            // A URL of the store has no line end, but what a terminal acts on.
            out.extend_from_slice(plain::terminal::neutralise(&url.url).as_bytes());
            out.push(b'\n');
        }
        ExportFormat::Json => line(url, out),
        ExportFormat::Csv => csv(&url, out),
    }
}

/// Appends the line of a URL.
fn line(url: WatchedUrl, out: &mut Vec<u8>) {
    let mut fields = Fields::open(out);
    let WatchedUrl {
        url: text,
        added,
        answer,
        life,
        due,
        sets,
        left_at,
        ..
    } = url;
    let state = life.state();
    match answer {
        Some(answer) => {
            let checked = Checked {
                state: Some(state),
                ..Checked::of(text, answer)
            };
            json::result(&checked, &mut fields);
        }
        None => {
            fields.text("url", &text);
            fields.text("state", state.name());
        }
    }
    let history: Vec<Past> = life.answers().iter().collect();
    fields.list("history", &history, past);
    for (name, at) in [
        ("first_bad", life.first_bad()),
        ("last_ok", life.last_ok()),
        ("gone_at", life.gone_at()),
        (
            "due",
            due.filter(|(lane, _)| *lane != Lane::Held)
                .map(|(_, at)| at),
        ),
        ("added", Some(added)),
        ("left_at", left_at),
    ] {
        if let Some(at) = at {
            fields.quoted(name, rfc3339(at));
        }
    }
    if let Some((flag, _)) = life.flag() {
        fields.text("flag", flag.name());
    }
    if let Some(guard) = life.held_by() {
        fields.text("held_by", guard.name());
    }
    if let Some(wait) = life.prune_waits() {
        fields.text("prune_waits", wait.name());
    }
    fields.number("sets", sets);
    fields.close();
    out.push(b'\n');
}

fn past(past: &Past, out: &mut Vec<u8>) {
    let mut fields = Fields::open(out);
    fields.text("class", past.class.name());
    if let Some(status) = past.status {
        fields.number("status", status);
    }
    fields.close();
}

/// The fields of the line of a URL.
pub(super) fn fields(url: WatchedUrl) -> Map<String, Value> {
    let mut text = Vec::new();
    line(url, &mut text);
    // The line was written a moment ago, and is an object.
    serde_json::from_slice(&text).unwrap_or_default()
}

const CSV_HEAD: &str = "url,state,class,cause,status,checked_at,first_bad,last_ok,due,history\r\n";

fn csv(url: &WatchedUrl, out: &mut Vec<u8>) {
    let answer = url.answer.as_ref();
    let cause = answer.and_then(|answer| answer.verdict.cause());
    let time = |at: Option<jiff::Timestamp>| at.map(rfc3339).unwrap_or_default();
    let cells = [
        url.url.clone(),
        url.life.state().name().to_owned(),
        answer
            .map(|answer| answer.verdict.class().name().to_owned())
            .unwrap_or_default(),
        cause
            .map(|cause| cause.name().into_owned())
            .unwrap_or_default(),
        answer
            .and_then(|answer| answer.status)
            .map(|s| s.to_string())
            .unwrap_or_default(),
        time(answer.and_then(|answer| answer.checked_at)),
        time(url.life.first_bad()),
        time(url.life.last_ok()),
        time(url.due.map(|(_, at)| at)),
        statuses(&url.life),
    ];
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(csv_text(cell).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the changes of state after a cursor, oldest first. `wrote` is told the cursor of the last one, as often as some
/// are out.
///
/// # Errors
/// The store cannot be read, or the output cannot be written.
pub(super) fn changes(
    store: &mut impl Store,
    mut after: Cursor,
    out: &mut dyn Write,
    wrote: &mut dyn FnMut(Cursor) -> io::Result<()>,
) -> Result<(), ExportError> {
    let mut lines = Vec::new();
    loop {
        let mut seen = 0;
        store.events(after, &mut |event| {
            seen += 1;
            after = event.cursor;
            write_change(&event, &mut lines);
            match seen < BATCH && lines.len() < BATCH_BYTES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        if seen == 0 {
            return Ok(());
        }
        out.write_all(&lines)?;
        out.flush()?;
        wrote(after)?;
        lines.clear();
    }
}

fn write_change(event: &Event, out: &mut Vec<u8>) {
    let mut fields = Fields::open(out);
    fields.number("cursor", event.cursor.0);
    fields.quoted("at", rfc3339(event.at));
    fields.text("url", &event.url);
    fields.text("from", event.from.name());
    fields.text("to", event.to.name());
    if let Some(status) = event.status {
        fields.number("status", status);
    }
    fields.text("why", &event.why);
    fields.close();
    out.push(b'\n');
}

/// How many rows are read before they are written, and how many bytes.
const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 1 << 20;
