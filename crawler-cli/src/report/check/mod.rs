//! Shows a check. The files of this folder write one kind of report each; [`CheckReport`] decides what is written where
//! and when.
//!
//! JSON lines and JUnit are written as results come. Reports for persons (text, HTML) are written at the end, because they
//! are grouped.

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

mod figures;
mod findings;
mod html;
mod junit;
mod live;
mod sink;
mod text;

#[cfg(test)]
mod tests;

use super::live::Progress;
use super::messages::Messages;
use super::{SummaryFormat, describe};
use check::json;
use check::sources::Problem;
use check::{Checked, Checker, Event, Redirects, Summary};
use crawl::reporter::{Reporter, Results};
use findings::{Findings, Judged};
use junit::Junit;
use plain::terminal;
use sink::Sink;
use store::{StoreError, StoreErrorKind};
use text::Colours;

/// How a check is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// `--json`: one object for each URL on standard output.
    pub(crate) json: bool,
    /// `--report KIND FILE`
    pub(crate) reports: Vec<(Kind, PathBuf)>,
    /// `None`: text on standard error, unless the text report is on standard output and has the same figures. Without
    /// being asked for, it has figures on a terminal only: elsewhere, nobody may see them.
    pub(crate) summary: Option<SummaryFormat>,
    pub(crate) progress: Progress,
    /// Which redirects are listed.
    pub(crate) redirects: Redirects,
    /// What is checked, in a few words.
    pub(crate) title: String,
}

/// The kind of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Text,
    Html,
    Junit,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "html" => Self::Html,
            "junit" => Self::Junit,
            _ => return None,
        })
    }
}

impl Options {
    /// What goes to standard output.
    fn on_stdout(&self) -> impl Iterator<Item = Kind> {
        let reports = self
            .reports
            .iter()
            .filter(|(_, path)| path.as_os_str() == "-");
        reports.map(|&(kind, _)| kind)
    }

    /// Whether the text report is on standard output without being asked for.
    fn has_default_text(&self) -> bool {
        !self.json && self.on_stdout().next().is_none()
    }

    /// Whether standard output has the text report.
    fn shows_text(&self) -> bool {
        self.has_default_text() || self.on_stdout().any(|kind| kind == Kind::Text)
    }

    /// The files that are written.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let reports = self.reports.iter().map(|(_, path)| path);
        let summary = match &self.summary {
            Some(SummaryFormat::JsonFile(path)) => Some(path),
            _ => None,
        };
        let files = reports.chain(summary);
        files
            .filter(|path| path.as_os_str() != "-")
            .cloned()
            .collect()
    }

    /// # Errors
    /// Two reports would mix in one file.
    pub(crate) fn check(&self) -> Result<(), String> {
        let stdout: Vec<_> = self.on_stdout().collect();
        if self.json && !stdout.is_empty() {
            return Err("--json and --report would both write to standard output".to_owned());
        }
        if stdout.len() > 1 {
            return Err("two reports would mix on standard output".to_owned());
        }
        let is_text = stdout.iter().all(|kind| *kind == Kind::Text);
        if !is_text && self.summary == Some(SummaryFormat::Json) {
            return Err(
                "--summary json and --report would both write to standard output".to_owned(),
            );
        }
        let mut files = self.files();
        files.sort();
        match files.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("two reports for one file: {}", pair[0].display())),
            None => Ok(()),
        }
    }
}

/// Shows the events of one check.
#[derive(Debug)]
pub(crate) struct CheckReport {
    outputs: Vec<Output>,
    /// What reports at the end are made from.
    findings: Option<Findings>,
    summary: SummaryFormat,
    /// The file of `--summary json:FILE`, which is created at the start.
    summary_file: Option<Sink>,
    redirects: Redirects,
    title: String,
    messages: Messages,
    /// Problems with sources are named on standard error: no text report names them on standard output.
    tells_problems: bool,
    /// Results and the progress line share one terminal.
    shared_terminal: bool,
    /// The file of `--state` is none that this check can use.
    state_is_unusable: bool,
}

/// One report and where it goes.
#[derive(Debug)]
struct Output {
    sink: Sink,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Json,
    Junit(Box<Junit>),
    Text(Colours),
    /// The text report without figures.
    Lists,
    Html,
}

impl CheckReport {
    /// # Errors
    /// A file cannot be written. The message names the file.
    pub(crate) fn new(options: Options, interrupted: Arc<AtomicBool>) -> Result<Self, String> {
        let mut outputs = Vec::new();
        if options.json {
            outputs.push(Output::new(Format::Json, Sink::stdout()));
        }
        for (kind, path) in &options.reports {
            let named = |error: io::Error| format!("{}: {error}", super::shown(path));
            let sink = Sink::create(path).map_err(named)?;
            let format = Format::new(*kind, &sink).map_err(named)?;
            outputs.push(Output::new(format, sink));
        }
        if options.has_default_text() {
            let sink = Sink::stdout();
            let format = match io::stdout().is_terminal() {
                true => Format::Text(colours(&sink)),
                false => Format::Lists,
            };
            outputs.push(Output::new(format, sink));
        }
        let shows_text = options.shows_text();
        let has_figures =
            |output: &Output| output.sink.is_stdout() && matches!(output.format, Format::Text(_));
        let summary = options
            .summary
            .unwrap_or(match outputs.iter().any(has_figures) {
                true => SummaryFormat::Nothing,
                false => SummaryFormat::Text,
            });
        let summary_file = match &summary {
            SummaryFormat::JsonFile(path) => {
                let named = |error: io::Error| format!("{}: {error}", super::shown(path));
                Some(Sink::create(path).map_err(named)?)
            }
            _ => None,
        };
        let ends = |output: &Output| {
            matches!(
                output.format,
                Format::Text(_) | Format::Lists | Format::Html
            )
        };
        let messages = Messages::new("check", options.progress, interrupted);
        Ok(Self {
            findings: outputs.iter().any(ends).then(Findings::default),
            outputs,
            summary,
            summary_file,
            redirects: options.redirects,
            title: options.title,
            tells_problems: !shows_text,
            shared_terminal: messages.share_terminal(),
            messages,
            state_is_unusable: false,
        })
    }

    /// Whether another file must be given with `--state`.
    pub(crate) fn state_is_unusable(&self) -> bool {
        self.state_is_unusable
    }

    /// Whether the reader of standard output has closed the pipe: further output is pointless.
    fn is_over(&self) -> bool {
        self.outputs.iter().any(|output| output.sink.is_closed())
    }

    fn checked(&mut self, checked: &Checked) {
        let judged = match self.outputs.as_slice() {
            // Nothing else is needed for each of millions of lines.
            [
                Output {
                    format: Format::Json,
                    ..
                },
            ] => Judged {
                checked,
                part: None,
                reason: String::new(),
            },
            _ => Judged::new(checked, self.redirects),
        };
        if let Some(findings) = &mut self.findings {
            findings.add(&judged);
        }
        for output in &mut self.outputs {
            output.add(&judged);
        }
        self.relieve();
    }

    fn problem(&mut self, problem: &Problem) {
        let text = problem.to_string();
        if let Some(findings) = &mut self.findings {
            findings.add_problem(&text);
        }
        for output in &mut self.outputs {
            output.add_problem(&text);
        }
        if self.tells_problems {
            self.messages.add(&text);
        }
    }

    /// Writes what has become large. On a terminal, everything waits for the next moment without work.
    fn relieve(&mut self) {
        if !self.shared_terminal {
            self.outputs
                .iter_mut()
                .for_each(|output| output.sink.relieve());
        }
    }

    /// Writes what is waiting.
    fn flush(&mut self) {
        self.messages.write();
        let is_shown = |output: &Output| output.sink.is_stdout() && output.sink.is_waiting();
        let mixes = self.shared_terminal && self.outputs.iter().any(is_shown);
        let outputs = &mut self.outputs;
        let mut write = || outputs.iter_mut().for_each(|output| output.sink.flush());
        match mixes {
            true => self.messages.suspend(true, write),
            false => write(),
        }
    }

    /// Writes the reports that are made at the end, and the summary.
    ///
    /// # Errors
    /// Something could not be written: each failure was reported on standard error. A reader that closed the pipe is not
    /// an error.
    pub(crate) fn close(mut self, summary: &Summary) -> Result<(), ()> {
        self.flush();
        self.messages.finish();
        let mut findings = self.findings.unwrap_or_default();
        findings.sort();
        let mut outcome = Ok(());
        for output in self.outputs {
            outcome = outcome.and(told(output.close(&self.title, &findings, summary)));
        }
        let mut stdout = Sink::stdout();
        match &self.summary {
            SummaryFormat::Nothing => {}
            SummaryFormat::Text => {
                let lines = figures::lines(summary).join("\n") + "\n";
                // An error on standard error cannot be reported anywhere.
                let _ = io::stderr().write_all(lines.as_bytes());
            }
            SummaryFormat::Json | SummaryFormat::JsonFile(_) => {
                let sink = self.summary_file.as_mut().unwrap_or(&mut stdout);
                sink.buffer()
                    .extend_from_slice(figures::json(summary).as_bytes());
            }
        }
        for sink in self.summary_file.into_iter().chain([stdout]) {
            outcome = outcome.and(told(sink.close()));
        }
        outcome
    }
}

impl Reporter<Checker> for CheckReport {
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Checked(checked) => self.checked(checked),
            Event::Problem(problem) => self.problem(problem),
            Event::Guard(change) => {
                let state = if change.is_on { "on" } else { "off" };
                let about = change.host.as_deref().unwrap_or("the own network");
                self.messages
                    .add(&format!("guard {state}: {about}: {}", change.detail));
            }
            Event::StateFailed(error) => {
                self.state_is_unusable = is_unusable(error);
                self.messages.add(&format!("--state {}", describe(*error)));
            }
            Event::NetworkFailed(error) => self.messages.add(&describe(*error)),
            Event::Progress(summary) => {
                self.messages.progress(*summary, false)?;
                if self.is_over() {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Nothing of the results is kept with the state: an interrupted check reports everything again.
    fn results(&mut self) -> Option<Results<'_>> {
        Some(Results::default())
    }

    fn write(&mut self) {
        self.flush();
    }

    fn reject(&mut self, error: StoreError) {
        self.messages.add(&format!("--state {}", describe(&error)));
        self.flush();
    }

    fn finish(&mut self, _: &Summary) {}
}

/// Whether a check cannot use the file. A disk that is full is no fault of the command.
fn is_unusable(error: &StoreError) -> bool {
    use StoreErrorKind::{Broken, Database, Full};
    !matches!(error.kind(), Full | Broken | Database(_))
}

impl Format {
    fn new(kind: Kind, sink: &Sink) -> io::Result<Self> {
        Ok(match kind {
            Kind::Text => Self::Text(colours(sink)),
            Kind::Html => Self::Html,
            Kind::Junit => Self::Junit(Box::new(Junit::new()?)),
        })
    }
}

impl Output {
    fn new(format: Format, sink: Sink) -> Self {
        Self { sink, format }
    }

    fn add(&mut self, judged: &Judged<'_>) {
        match &mut self.format {
            Format::Json => json::write(judged.checked, self.sink.buffer()),
            Format::Junit(junit) => junit.add(judged),
            Format::Text(_) | Format::Lists | Format::Html => {}
        }
    }

    /// `text`: the problem of a source in words, with its place.
    fn add_problem(&mut self, text: &str) {
        if let Format::Junit(junit) = &mut self.format {
            junit.add_problem(text);
        }
    }

    /// Writes the end of the report.
    fn close(self, title: &str, findings: &Findings, summary: &Summary) -> Result<(), String> {
        let Self { mut sink, format } = self;
        let now = jiff::Timestamp::now();
        let text = match format {
            Format::Json => String::new(),
            Format::Junit(junit) => {
                let now = now.strftime("%Y-%m-%dT%H:%M:%S").to_string();
                let written = junit.finish(summary, &now, &mut sink);
                written.map_err(|error| format!("junit: {error}"))?;
                String::new()
            }
            Format::Text(colours) => text::report(findings, summary, &colours),
            Format::Lists => text::lists(findings, &Colours::new(false)),
            Format::Html => {
                let now = now.strftime("%Y-%m-%d %H:%M UTC").to_string();
                html::page(title, findings, summary, &now)
            }
        };
        sink.buffer().extend_from_slice(text.as_bytes());
        sink.close()
    }
}

/// Colours if the sink is a terminal that wants them.
fn colours(sink: &Sink) -> Colours {
    Colours::new(sink.is_stdout() && io::stdout().is_terminal() && console::colors_enabled())
}

/// Reports an error on standard error.
fn told(written: Result<(), String>) -> Result<(), ()> {
    written.map_err(|error| terminal::say(format_args!("crawler-cli check: cannot write {error}")))
}
