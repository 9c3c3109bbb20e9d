//! Reports of commands: [`Report`] is that of a search, [`check::CheckReport`] that of a check.
//!
//! Of a search, standard output has the results; standard error has unread URLs, a progress line (on a terminal) and a
//! summary. The files of this folder format; [`Report`] decides what is written when.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub(crate) mod check;
mod format;
mod html;
mod live;
mod messages;
mod page;
mod sizes;
mod statistics;
mod unread;
mod waits;

use crate::stdout;
use crawl::reporter::{Reporter, Results};
use find::state::State;
use find::{Cause, Event, Find, StateError, Summary, Unread};
pub(crate) use format::Format;
use html::Page;
pub(crate) use live::{Live, Progress};
use messages::Messages;
use plain::terminal;
use rustix::fs;
pub(crate) use statistics::summary_text;
use unread::{UnreadFile, UnreadList};

/// How a search is shown.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    pub(crate) progress: Progress,
    pub(crate) summary: SummaryFormat,
    /// `-v`: each name that was left out of a listing is told, and not only the first ones.
    pub(crate) verbose: bool,
    /// `--unread`: the file for what was not read, as JSON lines.
    pub(crate) unread: Option<PathBuf>,
    /// `--report html`: the file for a page with a tree of sizes.
    pub(crate) html_report: Option<PathBuf>,
}

/// The summary at the end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum SummaryFormat {
    Nothing,
    /// One line on standard error.
    #[default]
    Text,
    /// One JSON object as a line on standard output.
    Json,
    /// The same object in this file.
    JsonFile(PathBuf),
}

impl SummaryFormat {
    fn is_json(&self) -> bool {
        matches!(self, Self::Json | Self::JsonFile(_))
    }

    /// # Errors
    /// No format has this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Ok(match name {
            "text" => Self::Text,
            "json" => Self::Json,
            "none" => Self::Nothing,
            _ => match name.strip_prefix("json:") {
                Some(file) if !file.is_empty() => Self::JsonFile(file.into()),
                _ => return Err("neither text, json, json:FILE nor none".to_owned()),
            },
        })
    }
}

/// Shows the events of one search.
#[derive(Debug)]
pub(crate) struct Report {
    options: Options,
    /// Results not yet written.
    results: Vec<u8>,
    messages: Messages,
    unread: Option<UnreadFile>,
    /// For a summary as JSON.
    unread_list: UnreadList,
    page: Option<Page>,
    /// Results and the progress line share one terminal.
    shared_terminal: bool,
    written_at: Option<Instant>,
    /// No further results will come.
    is_finished: bool,
    /// The search keeps its state: messages are written before each commit of the state.
    is_kept: bool,
    /// The error that stopped the output; nothing is written after it.
    failure: Option<io::Error>,
}

/// Whether somebody reads standard output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reader {
    There,
    /// The reader of the pipe has closed it.
    Gone,
}

impl Report {
    /// # Errors
    /// A report file cannot be written. The message names the file.
    pub(crate) fn new(
        options: Options,
        state: Option<&State>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let page = options.html_report.clone().map(|path| {
            let name = shown(&path);
            Page::new(path).map_err(|error| format!("--report html {name}: {error}"))
        });
        if let SummaryFormat::JsonFile(path) = &options.summary {
            let named = |error| format!("--summary json:{}: {error}", shown(path));
            check_writable(path).map_err(named)?;
        }
        let unread = options.unread.as_deref().map(UnreadFile::new);
        let messages = Messages::new("find", options.progress, interrupted);
        Ok(Self {
            page: page.transpose()?,
            results: Vec::new(),
            is_kept: state.is_some(),
            shared_terminal: messages.share_terminal(),
            messages,
            unread: unread.transpose()?,
            unread_list: UnreadList::default(),
            written_at: None,
            is_finished: false,
            failure: None,
            options,
        })
    }

    fn handle(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Found(found) => {
                if let Some(page) = &mut self.page {
                    page.found(found);
                }
                self.options.format.write(found, &mut self.results);
            }
            Event::Output(bytes) => self.results.extend_from_slice(bytes),
            Event::Unread(unread) => {
                if let Some(file) = &mut self.unread {
                    file.write(unread);
                }
                if let Some(page) = &mut self.page {
                    page.unread(unread);
                }
                if self.options.summary.is_json() {
                    self.unread_list.add(unread);
                }
                let from = unread.from.map(|from| format!(" (linked from {from})"));
                let cause = match unread.cause.left_out() {
                    Some(_) if self.options.verbose => format!("{:#}", unread.cause),
                    _ => describe(unread.cause),
                };
                let from = from.unwrap_or_default();
                self.messages.add(&format!("{}: {cause}{from}", unread.url));
            }
            // Their number is in the summary.
            Event::NotReached(url) => {
                if let Some(file) = &mut self.unread {
                    file.write(&Unread {
                        url,
                        cause: &Cause::NotReached,
                        from: None,
                    });
                }
            }
            Event::Failed(error) => self.messages.add(&describe(*error)),
            // Counted in the summary.
            Event::Downloaded(saved) => {
                if let Some(listed) = saved.listed {
                    let (url, length) = (saved.url, saved.length);
                    self.messages.add(&format!(
                        "{url}: warning: {length} bytes, where the listing has {listed}"
                    ));
                }
            }
            Event::StateFailed(error) => self.messages.add(&format!("--state {error}")),
            Event::Progress(summary) => {
                let tells_waits = self.options.progress != Progress::Never;
                self.messages.progress(*summary, tells_waits)?;
                // Nobody reads the results any more.
                if self.is_over() {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether the output failed, for example because the reader closed the pipe: further output is pointless.
    fn is_over(&self) -> bool {
        self.failure.is_some()
    }

    /// Writes the summary and the report files.
    ///
    /// # Errors
    /// Results or a report file could not be written. A reader that closed the pipe is not an error.
    pub(crate) fn close(mut self, summary: &Summary) -> io::Result<Reader> {
        self.messages.finish();
        match self.failure {
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Reader::Gone),
            Some(error) => {
                terminal::say(format_args!(
                    "crawler-cli find: cannot write results: {error}"
                ));
                return Err(error);
            }
            None => {}
        }
        let mut text = String::new();
        if self.options.summary == SummaryFormat::Text {
            text += &summary_text(summary);
            text.push('\n');
            let downloads = &summary.downloads;
            if downloads.wanted > 0 {
                text += &statistics::downloads_text(downloads);
                text.push('\n');
            }
        }
        // An error on standard error cannot be reported anywhere.
        let _ = io::stderr().write_all(text.as_bytes());
        let mut outcome = Ok(());
        if let Some(file) = self.unread {
            outcome = outcome.and(file.close());
        }
        if let SummaryFormat::JsonFile(path) = &self.options.summary {
            let written =
                std::fs::write(path, statistics::summary_json(summary, &self.unread_list));
            outcome = outcome.and(named(written, path));
        }
        if let Some(page) = &self.page {
            outcome = outcome.and(named(page.write(summary), page.path()));
        }
        outcome.map(|()| Reader::There)
    }
}

impl Reporter<Find> for Report {
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.handle(event)
    }

    /// Returns the results to write now. On a terminal shared with the progress line, which has to be removed for each
    /// write, results are delayed by up to [`UNNOTICED`].
    fn results(&mut self) -> Option<Results<'_>> {
        let now = Instant::now();
        let recent = |at: Instant| now.saturating_duration_since(at) < UNNOTICED;
        if self.shared_terminal && !self.is_finished && self.written_at.is_some_and(recent) {
            return None;
        }
        self.written_at = Some(now);
        if self.is_kept {
            // Written before the commit: committed work is not repeated, so its messages would be lost. Also before the
            // place in the results file is taken, because standard error may be the same file.
            self.messages.write();
        }
        if self.is_over() {
            // The reader closed the pipe.
            self.results.clear();
            self.write();
            return None;
        }
        Some(Results {
            bytes: &self.results,
            place: self.is_kept.then(place_in_file).flatten(),
        })
    }

    fn write(&mut self) {
        self.messages.write();
        if self.results.is_empty() {
            return;
        }
        let write = || stdout::write(&self.results);
        let written = match self.shared_terminal {
            true => {
                let ends_line = self.results.last() == Some(&b'\n');
                self.messages.suspend(ends_line, write)
            }
            false => write(),
        };
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
        self.results.clear();
    }

    fn reject(&mut self, error: StateError) {
        self.results.clear();
        self.failure.get_or_insert_with(|| io::Error::other(error));
        self.write();
    }

    fn finish(&mut self, summary: &Summary) {
        self.is_finished = true;
        if self.options.summary == SummaryFormat::Json {
            let text = statistics::summary_json(summary, &self.unread_list);
            self.results.extend_from_slice(text.as_bytes());
        }
    }
}

/// Reports an error on standard error, with the name of the file.
fn named(written: io::Result<()>, path: &Path) -> io::Result<()> {
    written.inspect_err(|error| {
        terminal::say(format_args!("crawler-cli find: {}: {error}", shown(path)))
    })
}

/// Makes a file for what is known at the end, unless the file is there: an error is better now than after a long run. A
/// pipe is not opened: that would wait for its reader.
///
/// # Errors
/// The file cannot be written, or is the one that standard output or standard error writes to: it would be written over.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    let is_special = |path: &Path| path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir());
    if is_special(path) {
        return Ok(());
    }
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let own = fs::fstat(&file)?;
    let outputs = [fs::fstat(io::stdout()), fs::fstat(io::stderr())];
    let is_same = |other: &fs::Stat| (other.st_dev, other.st_ino) == (own.st_dev, own.st_ino);
    match outputs.iter().flatten().any(is_same) {
        true => Err(io::Error::other("the program's output goes there already")),
        false => Ok(()),
    }
}

fn shown(path: &Path) -> String {
    terminal::neutralise(&path.to_string_lossy()).into_owned()
}

/// An error and its sources in one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        // Some errors include their source in their own text.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

/// The longest delay of results on a terminal.
const UNNOTICED: Duration = Duration::from_millis(40);

/// The offset at which the next results are written, if standard output is a file; `None` otherwise.
pub(crate) fn place_in_file() -> Option<u64> {
    let out = io::stdout();
    let stat = fs::fstat(&out).ok()?;
    if !fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        return None;
    }
    match fs::fcntl_getfl(&out).ok()?.contains(fs::OFlags::APPEND) {
        true => u64::try_from(stat.st_size).ok(),
        false => fs::seek(&out, fs::SeekFrom::Current(0)).ok(),
    }
}

/// Writes the rest of results whose writing began at offset `place` of the file on standard output. Writes all of them
/// if standard output was or is no file.
///
/// # Errors
/// They cannot be written, or the file is shorter than it was: another one, or what was written is gone.
pub(crate) fn write_rest(results: &[u8], place: Option<u64>) -> io::Result<()> {
    let missing = match (place, place_in_file()) {
        (Some(began), Some(end)) if end < began => {
            return Err(io::Error::other(format!(
                "the file on standard output has {end} bytes, but {began} were written to it: continue with >> instead of >"
            )));
        }
        (Some(began), Some(end)) => {
            let written = end.saturating_sub(began);
            usize::try_from(written).map_or(&[][..], |n| results.get(n..).unwrap_or(&[]))
        }
        _ => results,
    };
    stdout::write(missing)
}
