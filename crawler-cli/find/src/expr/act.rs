//! Performs the actions of an expression: writes files and runs commands here, and passes output of the results to the
//! caller as [`Effect`]s.
//!
//! `-exec … ;` runs at once, and the search waits for its end: what follows depends on its success, and its output
//! belongs between the output of the neighbouring actions. During the wait the caller serves its connections
//! ([`Effect::Idle`]), so that a slow command causes no timeouts. `-exec … {} +` is always true: its commands run
//! beside the search, one at a time.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::mem;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use url::Url;

use super::format;
use super::{Action, Expression, Output, Reference, Text};
use crate::found::Found;

/// Performs the actions of one expression during one search.
#[derive(Debug)]
pub struct Actor {
    files: Vec<OutputFile>,
    batches: Vec<Batch>,
    /// The command of a batch that runs beside the search.
    running: Option<Running>,
    /// Whether standard output and standard error are terminals, in this order.
    terminals: [bool; 2],
    /// Reused buffer for output.
    text: Vec<u8>,
}

/// What the caller has to do for an action.
#[derive(Debug)]
pub enum Effect<'a> {
    /// `-print`: show the entry as a result.
    Match(Found<'a>),
    /// Write these bytes unchanged to the output of the results.
    Output(&'a [u8]),
    /// Flush the results, because a command may write to the same output next.
    Flush,
    /// A command runs; serve the connections for this long.
    Idle(Duration),
    /// An action could not be performed.
    Failed(ActError),
}

/// Why an action could not be performed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ActError {
    /// A file could not be opened or written.
    Write(PathBuf, io::Error),
    /// The metadata of the file that `-newer` names cannot be read.
    Reference(PathBuf, io::Error),
    /// The time of the page that `-newer` names cannot be found out.
    Page(Url, Box<dyn std::error::Error + Send + Sync>),
    /// A command could not be run.
    Run(OsString, io::Error),
    /// A command of `-exec … {} +` ended with this status, which is not success.
    Command(OsString, ExitStatus),
}

impl fmt::Display for ActError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path, _) => write!(f, "cannot write {}", path.display()),
            Self::Reference(path, _) => write!(f, "-newer {}", path.display()),
            Self::Page(url, _) => write!(f, "-newer {url}"),
            Self::Run(command, _) => write!(f, "cannot run {}", command.display()),
            Self::Command(command, status) => write!(f, "{}: {status}", command.display()),
        }
    }
}

impl std::error::Error for ActError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(_, error) | Self::Reference(_, error) | Self::Run(_, error) => Some(error),
            Self::Page(_, error) => Some(&**error),
            // `Display` already shows it.
            Self::Command(..) => None,
        }
    }
}

/// An output file of the expression.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    /// Two paths of one file share the file that was opened first.
    target: Target,
    is_terminal: bool,
}

#[derive(Debug)]
enum Target {
    Own(BufWriter<File>),
    /// The file with this index.
    SameAs(usize),
    /// A write failed and was reported.
    Failed,
}

/// Arguments gathered for `-exec … {} +`.
#[derive(Debug)]
struct Batch {
    command: Vec<OsString>,
    urls: Vec<OsString>,
    /// The [`cost`] of the command and of all URLs, in bytes.
    size: usize,
}

#[derive(Debug)]
struct Running {
    name: OsString,
    child: Child,
}

/// The callback of the caller.
type Effects<'e> = &'e mut dyn FnMut(Effect<'_>);

impl Expression {
    /// [Resolves](Self::resolve) the files that `-newer` names.
    ///
    /// # Errors
    /// The metadata of a file cannot be read.
    pub fn resolve_files(&mut self) -> Result<(), ActError> {
        for index in 0..self.references.len() {
            let Reference::File(path) = &self.references[index] else {
                continue;
            };
            let seconds = std::fs::metadata(path)
                .map_err(|error| ActError::Reference(path.clone(), error))?
                .mtime();
            self.resolve(index, seconds);
        }
        Ok(())
    }
}

impl Actor {
    /// Opens and truncates all output files of the expression.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn open(expression: &Expression) -> Result<Self, ActError> {
        let mut files: Vec<OutputFile> = Vec::new();
        let mut identities: Vec<(u64, u64)> = Vec::new();
        for path in &expression.files {
            let failed = |error| ActError::Write(path.clone(), error);
            // Truncated only after the check that the same file is not open already.
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            let is_terminal = file.is_terminal();
            let identity = (metadata.dev(), metadata.ino());
            let target = match identities.iter().position(|known| *known == identity) {
                Some(first) => Target::SameAs(first),
                None => {
                    if metadata.is_file() {
                        file.set_len(0).map_err(failed)?;
                    }
                    Target::Own(BufWriter::new(file))
                }
            };
            identities.push(identity);
            files.push(OutputFile {
                path: path.clone(),
                target,
                is_terminal,
            });
        }
        let batches = expression.batches.iter().map(|command| Batch {
            command: command.clone(),
            urls: Vec::new(),
            size: command.iter().map(|part| cost(part)).sum(),
        });
        Ok(Self {
            files,
            batches: batches.collect(),
            running: None,
            terminals: [io::stdout().is_terminal(), io::stderr().is_terminal()],
            text: Vec::new(),
        })
    }

    /// Performs one action and returns its value; see [`Act`](super::Act).
    pub fn act(&mut self, action: &Action, found: &Found<'_>, effects: Effects<'_>) -> bool {
        match action {
            Action::Write(Text::Line, Output::Results) => effects(Effect::Match(*found)),
            Action::Write(text, output) => self.write(text, *output, found, effects),
            Action::Run(command) => return self.run(command, found.url, effects),
            Action::Gather(batch) => self.gather(*batch, found.url, effects),
        }
        true
    }

    /// Flushes all files, runs the remaining commands of `-exec … {} +`, and waits for their end. To be called at the
    /// end of every search, also after an error.
    pub fn finish(&mut self, effects: Effects<'_>) {
        effects(Effect::Flush);
        self.flush(effects);
        for index in 0..self.batches.len() {
            self.launch(index, effects);
        }
        self.wait(effects);
    }

    fn write(&mut self, text: &Text, output: Output, found: &Found<'_>, effects: Effects<'_>) {
        let terminal = match output {
            Output::Results => self.terminals[0],
            Output::Errors => self.terminals[1],
            Output::File(index) => self.files.get(index).is_some_and(|file| file.is_terminal),
        };
        let mut out = mem::take(&mut self.text);
        out.clear();
        match text {
            Text::Line | Text::Nul => out.extend_from_slice(found.url.as_bytes()),
            Text::Formatted(format) => format.write(found, terminal, &mut out),
            Text::Ls(clock) => format::write_ls(found, clock, &mut out),
        }
        match text {
            Text::Line => out.push(b'\n'),
            Text::Nul => out.push(0),
            Text::Formatted(_) | Text::Ls(_) => {}
        }
        match output {
            Output::Results => effects(Effect::Output(&out)),
            Output::Errors => {
                // An error on standard error cannot be reported.
                let _ = io::stderr().write_all(&out);
            }
            Output::File(index) => self.write_file(index, &out, effects),
        }
        self.text = out;
    }

    fn write_file(&mut self, index: usize, bytes: &[u8], effects: Effects<'_>) {
        let index = match self.files.get(index).map(|file| &file.target) {
            Some(Target::SameAs(first)) => *first,
            _ => index,
        };
        if let Some(file) = self.files.get_mut(index) {
            file.with(effects, |file| file.write_all(bytes));
        }
    }

    fn flush(&mut self, effects: Effects<'_>) {
        for file in &mut self.files {
            file.with(effects, BufWriter::flush);
        }
    }

    /// Runs a command for one URL and waits for it. The caller has flushed the results.
    fn run(&mut self, command: &[OsString], url: &str, effects: Effects<'_>) -> bool {
        let mut parts = command.iter().map(|part| with_url(part, url));
        let Some(name) = parts.next() else {
            return false;
        };
        self.flush(effects);
        let outcome = Command::new(&name).args(parts).spawn();
        match outcome.and_then(|child| ended(child, effects)) {
            Ok(status) => status.success(),
            Err(error) => {
                effects(Effect::Failed(ActError::Run(name, error)));
                false
            }
        }
    }

    fn gather(&mut self, index: usize, url: &str, effects: Effects<'_>) {
        let url = OsString::from(url);
        let more = cost(&url);
        if self.batches[index].size + more > LONGEST_COMMAND {
            self.launch(index, effects);
        }
        let batch = &mut self.batches[index];
        batch.size += more;
        batch.urls.push(url);
    }

    /// Starts the command of a batch beside the search, after the end of the previous one.
    fn launch(&mut self, index: usize, effects: Effects<'_>) {
        let batch = &mut self.batches[index];
        let urls = mem::take(&mut batch.urls);
        batch.size = batch.command.iter().map(|part| cost(part)).sum();
        if urls.is_empty() {
            return;
        }
        let mut parts = batch.command.clone().into_iter();
        let Some(name) = parts.next() else { return };
        self.wait(effects);
        effects(Effect::Flush);
        self.flush(effects);
        match Command::new(&name).args(parts).args(urls).spawn() {
            Ok(child) => self.running = Some(Running { name, child }),
            Err(error) => effects(Effect::Failed(ActError::Run(name, error))),
        }
    }

    /// Waits for the command that runs beside the search, if there is one.
    fn wait(&mut self, effects: Effects<'_>) {
        let Some(Running { name, child }) = self.running.take() else {
            return;
        };
        match ended(child, effects) {
            Ok(status) if status.success() => {}
            Ok(status) => effects(Effect::Failed(ActError::Command(name, status))),
            Err(error) => effects(Effect::Failed(ActError::Run(name, error))),
        }
    }
}

impl OutputFile {
    /// Applies `act` to the file. After the first error, the file is not used any more.
    fn with(
        &mut self,
        effects: Effects<'_>,
        act: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) {
        if let Target::Own(file) = &mut self.target
            && let Err(error) = act(file)
        {
            effects(Effect::Failed(ActError::Write(self.path.clone(), error)));
            self.target = Target::Failed;
        }
    }
}

/// Waits for the end of a command. The search continues its network work in the meantime.
fn ended(mut child: Child, effects: Effects<'_>) -> io::Result<ExitStatus> {
    let mut idle = SHORTEST_IDLE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        effects(Effect::Idle(idle));
        idle = (2 * idle).min(LONGEST_IDLE);
    }
}

/// `part` with each `{}` replaced by the URL.
fn with_url(part: &OsStr, url: &str) -> OsString {
    let mut out = Vec::with_capacity(part.len() + url.len());
    let mut rest = part.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(b"{}") {
            out.extend_from_slice(url.as_bytes());
            rest = tail;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    OsString::from_vec(out)
}

/// The bytes that an argument takes of the limit for a command line: its bytes, the final NUL, and a pointer.
fn cost(argument: &OsStr) -> usize {
    argument.len() + 1 + size_of::<usize>()
}

/// First interval between two checks whether a command has ended. It doubles up to [`LONGEST_IDLE`]: most commands are
/// short, and for a long one a late check does not matter.
const SHORTEST_IDLE: Duration = Duration::from_micros(500);
const LONGEST_IDLE: Duration = Duration::from_millis(20);

/// Longest command line in bytes, as in GNU find. Every current system allows more.
const LONGEST_COMMAND: usize = 128 << 10;
