//! Actions, performed: what goes to the results is handed on, files are written here, commands are run here.
//!
//! `-exec … ;` runs at once and the search goes no further until it ends, because what comes next depends on its
//! success, and its output belongs between that of the actions around it. What is under way on the network goes on
//! meanwhile ([`Effect::Idle`]), so that a slow command does not make it time out. `-exec … {} +` has no such outcome:
//! its commands run beside the search, one at a time.

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
use crate::find::found::Found;

/// Performs the actions of one expression during one search.
#[derive(Debug)]
pub struct Actor {
    files: Vec<Sink>,
    batches: Vec<Batch>,
    /// The command of a batch that runs beside the search.
    running: Option<Running>,
    /// Whether standard output and standard error are terminals.
    terminals: [bool; 2],
    /// For what is being written.
    text: Vec<u8>,
}

/// What performing an action leads to.
#[derive(Debug)]
pub enum Effect<'a> {
    /// The entry is a result: `-print`.
    Match,
    /// This goes where results go, as it is.
    Output(&'a [u8]),
    /// Results so far must be where they go before a command writes there too.
    Flush,
    /// A command runs; the search may see to its connections for that long.
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
    /// The file that `-newer` names cannot be looked at.
    Reference(PathBuf, io::Error),
    /// When the page that `-newer` names was changed cannot be found out.
    Page(Url, Box<dyn std::error::Error + Send + Sync>),
    /// A command could not be run.
    Run(OsString, io::Error),
    /// A command of `-exec … {} +` failed.
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
            Self::Command(..) => None,
        }
    }
}

/// A file of `-fprint` and its kind.
#[derive(Debug)]
struct Sink {
    path: PathBuf,
    /// Two names of one file share what is opened first.
    target: Target,
}

#[derive(Debug)]
enum Target {
    Own(BufWriter<File>),
    SameAs(usize),
    /// Writing failed once; that was reported.
    Failed,
}

/// Arguments gathered for `-exec … {} +`.
#[derive(Debug)]
struct Batch {
    command: Vec<OsString>,
    urls: Vec<OsString>,
    /// Bytes that all arguments take.
    size: usize,
}

#[derive(Debug)]
struct Running {
    name: OsString,
    child: Child,
}

/// Where effects go.
type Effects<'e> = &'e mut dyn FnMut(Effect<'_>);

impl Expression {
    /// Looks at the files that `-newer` names.
    ///
    /// # Errors
    /// One of them cannot be looked at.
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
    /// Opens all files that the expression names, and empties them.
    ///
    /// # Errors
    /// One of them cannot be opened.
    pub fn open(expression: &Expression) -> Result<Self, ActError> {
        let mut files: Vec<Sink> = Vec::new();
        let mut identities: Vec<(u64, u64)> = Vec::new();
        for path in &expression.files {
            let failed = |error| ActError::Write(path.clone(), error);
            // Emptied only when it is known not to be one that is open already.
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
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
            files.push(Sink {
                path: path.clone(),
                target,
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

    /// Performs one action, and tells whether it succeeded; see [`Act`](super::Act).
    pub fn act(&mut self, action: &Action, found: &Found<'_>, effects: Effects<'_>) -> bool {
        match action {
            Action::Write(Text::Line, Output::Results) => effects(Effect::Match),
            Action::Write(text, output) => self.write(text, *output, found, effects),
            Action::Run(command) => return self.run(command, found.url, effects),
            Action::Gather(batch) => self.gather(*batch, found.url, effects),
        }
        true
    }

    /// Writes out what waits, runs the commands that wait, and waits for the last of them. To be called when the
    /// search is over, however it ended.
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
            Output::File(_) => false,
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
                // Without standard error there is nowhere to complain.
                let _ = io::stderr().write_all(&out);
            }
            Output::File(index) => self.write_file(index, &out, effects),
        }
        self.text = out;
    }

    fn write_file(&mut self, index: usize, bytes: &[u8], effects: Effects<'_>) {
        let index = match self.files.get(index).map(|sink| &sink.target) {
            Some(Target::SameAs(first)) => *first,
            _ => index,
        };
        if let Some(sink) = self.files.get_mut(index) {
            sink.with(effects, |file| file.write_all(bytes));
        }
    }

    fn flush(&mut self, effects: Effects<'_>) {
        for sink in &mut self.files {
            sink.with(effects, BufWriter::flush);
        }
    }

    /// Runs a command for one URL and waits for it.
    fn run(&mut self, command: &[OsString], url: &str, effects: Effects<'_>) -> bool {
        let mut parts = command.iter().map(|part| with_url(part, url));
        let Some(name) = parts.next() else {
            return false;
        };
        effects(Effect::Flush);
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

    /// Starts the command of a batch beside the search, once the one before it has ended.
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

    /// For the command that runs beside the search, if there is one.
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

impl Sink {
    /// Does something with the file. After a failure nothing more is done with it.
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

/// Waits until a command has ended, and lets the search use the time.
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

/// `part` with the URL in place of each `{}`.
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

/// What an argument takes of the room that a command line has: its bytes, its end, and a pointer to it.
fn cost(argument: &OsStr) -> usize {
    argument.len() + 1 + size_of::<usize>()
}

/// Most commands are short; nobody waits for the end of the others as eagerly.
const SHORTEST_IDLE: Duration = Duration::from_micros(500);
const LONGEST_IDLE: Duration = Duration::from_millis(20);

/// As GNU find has it, and less than what any of today's systems allows.
const LONGEST_COMMAND: usize = 128 << 10;
