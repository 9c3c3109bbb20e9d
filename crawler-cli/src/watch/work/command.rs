//! Commands: a program in a process group of its own, with a time limit and bounded output.
//!
//! The standard output and the standard error of the command go to the log, line by line and without control characters;
//! what exceeds [`MOST_LOGGED`] is read and dropped, so that the command never waits for its reader. At the time limit the
//! whole group gets SIGTERM, and SIGKILL after a grace, usually [`GRACE`]. What the command leaves running in its group
//! gets SIGTERM when the command itself ends.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::jobs::Cancel;

/// A command that a job runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'o> {
    /// The name of the job: `COURSER_JOB` in the environment of the command.
    pub(super) job: &'o str,
    /// The program and its arguments.
    pub(super) words: &'o [String],
    /// The time limit; `None`: no limit but that of the job.
    pub(super) timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

/// Why a command failed.
#[derive(Debug)]
pub(super) enum CommandError {
    /// There is no program in the command.
    Empty,
    /// The program cannot be started, or its end cannot be waited for.
    Io(io::Error),
    /// The command ended with a failure.
    Ended(ExitStatus, String),
    /// The time limit was reached.
    TimedOut(Duration, String),
    /// The job was cancelled.
    Cancelled,
}

/// Runs the command and waits for its end. `log` gets the lines of its output.
pub(super) fn run(
    order: Order<'_>,
    cancel: &Cancel,
    log: &mut dyn FnMut(&str),
) -> Result<(), CommandError> {
    let (program, arguments) = order.words.split_first().ok_or(CommandError::Empty)?;
    let (output, input) = io::pipe().map_err(CommandError::Io)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("COURSER_JOB", order.job)
        .stdin(Stdio::null())
        .stdout(input.try_clone().map_err(CommandError::Io)?)
        .stderr(input)
        .process_group(0);
    let child = command.spawn().map_err(CommandError::Io)?;
    // The writing ends of the pipe that this process holds.
    drop(command);
    let mut running = Running::new(child, output).map_err(CommandError::Io)?;
    let mut lines = Lines::new(log);
    let ended = running.wait(order, cancel, &mut lines);
    lines.end();
    match ended.map_err(CommandError::Io)? {
        Ended::Cancelled => Err(CommandError::Cancelled),
        Ended::TimedOut(limit) => Err(CommandError::TimedOut(limit, lines.last_lines())),
        Ended::Exited(status) if status.success() => Ok(()),
        Ended::Exited(status) => Err(CommandError::Ended(status, lines.last_lines())),
    }
}

/// A command that was started. Its group is killed when this is dropped before the end.
struct Running {
    child: Child,
    group: Option<Pid>,
    /// Readable once the command has ended, before its number can be used again.
    end: OwnedFd,
    output: Option<io::PipeReader>,
}

/// What a [turn](Running::turn) met.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    has_ended: bool,
    has_output: bool,
}

enum Ended {
    Exited(ExitStatus),
    TimedOut(Duration),
    Cancelled,
}

impl Running {
    fn new(mut child: Child, output: io::PipeReader) -> io::Result<Self> {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = match group {
            Some(pid) => pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from),
            None => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        };
        match opened {
            Ok(end) => Ok(Self {
                child,
                group,
                end,
                output: Some(output),
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn wait(
        &mut self,
        order: Order<'_>,
        cancel: &Cancel,
        lines: &mut Lines<'_>,
    ) -> io::Result<Ended> {
        let end_of = |timeout| Some((timeout, Instant::now().checked_add(timeout)?));
        let limit = order.timeout.and_then(end_of);
        while !self.turn(lines, limit.map(|(_, end)| end))?.has_ended {
            let is_late = limit.is_some_and(|(_, end)| Instant::now() >= end);
            if is_late || cancel.is_set() {
                self.stop(order.grace, lines)?;
                return Ok(match limit {
                    Some((limit, _)) if is_late => Ended::TimedOut(limit),
                    _ => Ended::Cancelled,
                });
            }
        }
        // What was written before the end. Processes that the command left behind may write for ever.
        for _ in 0..MOST_READS_AT_END {
            if !self.turn(lines, Some(Instant::now()))?.has_output {
                break;
            }
        }
        // The command is not waited for yet, so the number of its group is still its own.
        self.signal(Signal::TERM);
        self.reap().map(Ended::Exited)
    }

    /// SIGTERM, and after the grace SIGKILL, to the whole group.
    fn stop(&mut self, grace: Duration, lines: &mut Lines<'_>) -> io::Result<()> {
        self.signal(Signal::TERM);
        let end = Instant::now() + grace;
        while Instant::now() < end && !self.turn(lines, Some(end))?.has_ended {}
        self.signal(Signal::KILL);
        self.reap().map(|_| ())
    }

    /// Waits a moment for output or for the end of the command, and reads some output.
    fn turn(&mut self, lines: &mut Lines<'_>, until: Option<Instant>) -> io::Result<Turn> {
        let left = until.map_or(MOMENT, |until| {
            until.saturating_duration_since(Instant::now())
        });
        let mut fds = vec![PollFd::new(&self.end, PollFlags::IN)];
        if let Some(output) = &self.output {
            fds.push(PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN));
        }
        let timeout = Timespec::try_from(left.min(MOMENT)).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Turn::default()),
            Err(error) => return Err(error.into()),
        }
        let has_ended = !fds[0].revents().is_empty();
        let has_output = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if has_output {
            self.read(lines)?;
        }
        Ok(Turn {
            has_ended,
            has_output,
        })
    }

    fn read(&mut self, lines: &mut Lines<'_>) -> io::Result<()> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let mut buffer = [0; 16 << 10];
        match output.read(&mut buffer) {
            Ok(0) => self.output = None,
            Ok(length) => lines.add(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // A group without processes needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.group = None;
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// The lines of a command's output.
struct Lines<'l> {
    log: &'l mut dyn FnMut(&str),
    line: Vec<u8>,
    /// How many bytes may still be logged.
    left: usize,
    dropped: u64,
    last: VecDeque<String>,
}

impl<'l> Lines<'l> {
    fn new(log: &'l mut dyn FnMut(&str)) -> Self {
        Self {
            log,
            line: Vec::new(),
            left: MOST_LOGGED,
            dropped: 0,
            last: VecDeque::new(),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            self.dropped += text.len().saturating_sub(room) as u64;
            if part.ends_with(b"\n") {
                self.say();
            }
        }
    }

    fn end(&mut self) {
        if !self.line.is_empty() {
            self.say();
        }
        if self.dropped > 0 {
            let dropped = format!("{} more bytes of output were not logged", self.dropped);
            (self.log)(&dropped);
        }
    }

    fn say(&mut self) {
        let line = plain(&String::from_utf8_lossy(&self.line));
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.chars().take(200).collect());
        match self.left.checked_sub(self.line.len() + 1) {
            Some(left) => {
                self.left = left;
                (self.log)(&line);
            }
            None => {
                self.left = 0;
                self.dropped += self.line.len() as u64 + 1;
            }
        }
        self.line.clear();
    }

    fn last_lines(&self) -> String {
        let lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
        lines.join("\n")
    }
}

/// A text without control characters, which could change what a terminal shows.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => plain.push(' '),
            c if c.is_control() => plain.extend(c.escape_default()),
            c => plain.push(c),
        }
    }
    plain
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the command has no program"),
            Self::Io(error) => write!(f, "the command cannot be run: {error}"),
            Self::Ended(status, last) => {
                match (status.code(), status.signal()) {
                    (Some(code), _) => write!(f, "the command ended with exit status {code}")?,
                    (None, Some(signal)) => write!(f, "the command was ended by signal {signal}")?,
                    (None, None) => f.write_str("the command ended")?,
                }
                write_last(f, last)
            }
            Self::TimedOut(limit, last) => {
                write!(f, "the command was stopped at its time limit of {limit:?}")?;
                write_last(f, last)
            }
            Self::Cancelled => f.write_str("the command was stopped"),
        }
    }
}

fn write_last(f: &mut fmt::Formatter<'_>, last: &str) -> fmt::Result {
    match last.is_empty() {
        true => Ok(()),
        false => write!(f, "; its last output: {last}"),
    }
}

impl std::error::Error for CommandError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// The usual time between SIGTERM and SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How often output is read after the end of a command.
const MOST_READS_AT_END: usize = 64;
/// How long a stop may go unnoticed.
const MOMENT: Duration = Duration::from_millis(50);
/// Most bytes of a command's output that are logged.
const MOST_LOGGED: usize = 256 << 10;
/// Longest line of output in bytes; the rest of the line is dropped.
const LONGEST_LINE: usize = 4 << 10;
/// How many of the last lines are kept for the message of a failure.
const LAST_LINES: usize = 10;
