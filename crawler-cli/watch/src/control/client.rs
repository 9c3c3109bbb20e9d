//! A hand of the operator: sends commands to the service of a store, or performs them itself if no service runs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::message::{Command, LiveStatus, Refusal, RefusalKind, Reply, ScheduleDeed};
use super::perform::{By, Schedules, perform};
use super::socket::{LineLimits, Lines, connect, socket_of};
use verdict::life::Rules;

use crate::hold::release_piece;
use store::{Database, Inline, Place, StoreError, StoreErrorKind, StoreHandle};

/// The way of commands to a store.
///
/// ```
/// use verdict::life::Profile;
/// use watch::control::{Command, Hand, Reply, Schedules};
///
/// let folder = tempfile::tempdir()?;
/// // No service runs, so the command is performed here.
/// let store = folder.path().join("watch.db");
/// let mut hand = Hand::reach(&store, Profile::Default.rules(), Schedules::default())?;
/// assert!(!hand.is_service());
/// let add = Command::Add { set: "docs".into(), urls: vec!["https://example.com/".into()] };
/// assert!(matches!(hand.send(&add)?, Reply::Added { new: 1, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Hand {
    store: Place,
    way: Way,
    rules: Rules,
    schedules: Schedules,
}

enum Way {
    Service(Lines),
    /// No service runs: the store is locked for this process.
    Own(Inline<Database>),
}

/// Why a command was not performed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// The store cannot be opened, read or written.
    Store(StoreError),
    /// The service of this store does not answer.
    Silent(PathBuf, io::Error),
    /// The service answers what means nothing here: it has another version.
    Foreign(PathBuf, String),
    /// The command was refused.
    Refused(Refusal),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Silent(socket, error) => {
                write!(f, "{}: the service does not answer", socket.display())?;
                match error.kind() {
                    io::ErrorKind::TimedOut => write!(f, " within {} s{STOPPED}", ANSWER.as_secs()),
                    _ => write!(f, ": {error}"),
                }
            }
            Self::Foreign(socket, why) => {
                let path = socket.display();
                write!(
                    f,
                    "{path}: the answer of the service means nothing here: {why}"
                )
            }
            Self::Refused(refusal) => f.write_str(&refusal.why),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Silent(_, error) => Some(error),
            Self::Foreign(..) | Self::Refused(_) => None,
        }
    }
}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Hand {
    /// Connects to the service of the store in this file, or opens the store, which is made if there is none. `rules` and
    /// `schedules` are those of the configuration; they are used without a service.
    ///
    /// # Errors
    /// Another process has the lock of the store and does not listen, or the store cannot be opened.
    pub fn reach(
        store: impl Into<Place>,
        rules: Rules,
        schedules: Schedules,
    ) -> Result<Self, ControlError> {
        let store = store.into();
        let way = way_to(&store)?;
        Ok(Self {
            store,
            way,
            rules,
            schedules,
        })
    }

    /// Whether a service performs the commands.
    pub fn is_service(&self) -> bool {
        matches!(self.way, Way::Service(_))
    }

    /// Has a command performed.
    ///
    /// # Errors
    /// The command was refused, the store failed, or the service does not answer.
    pub fn send(&mut self, command: &Command) -> Result<Reply, ControlError> {
        let since = Instant::now();
        let reply = loop {
            let lines = match &mut self.way {
                Way::Service(lines) => lines,
                Way::Own(store) => {
                    break perform_here(store, &self.rules, &self.schedules, command)?;
                }
            };
            match exchange(lines, &socket_beside(&self.store), command) {
                Ok(reply) => break reply,
                Err(failed) if failed.is_repeatable && since.elapsed() < START => {
                    thread::sleep(AGAIN);
                    self.way = way_to(&self.store)?;
                }
                Err(failed) => return Err(failed.error),
            }
        };
        match reply {
            Reply::Refused(refusal) => Err(ControlError::Refused(refusal)),
            reply => Ok(reply),
        }
    }

    /// Has a command performed that is done in pieces, to its end. Returns how many rows were changed, and how many were
    /// passed over.
    ///
    /// # Errors
    /// As [`send`](Self::send). The pieces before the error stay done.
    pub fn send_all(
        &mut self,
        mut command_after: impl FnMut(Option<i64>) -> Command,
    ) -> Result<(u64, u64), ControlError> {
        let (mut changed, mut skipped, mut next) = (0, 0, None);
        loop {
            let reply = self.send(&command_after(next))?;
            let Reply::Count {
                count,
                passed,
                after,
            } = reply
            else {
                return Err(self.foreign("not a count"));
            };
            changed += count;
            skipped += passed;
            match after {
                Some(_) => next = after,
                None => return Ok((changed, skipped)),
            }
        }
    }

    /// The error for a reply that does not belong to the command.
    pub fn foreign(&self, why: &str) -> ControlError {
        ControlError::Foreign(socket_beside(&self.store), why.to_owned())
    }
}

/// What the service of a store says about itself; `None`: none runs.
///
/// # Errors
/// The service does not answer.
pub fn live_status(
    store: &Place,
    host: Option<String>,
) -> Result<Option<LiveStatus>, ControlError> {
    let (socket, since) = (socket_beside(store), Instant::now());
    let command = Command::Status { host };
    loop {
        let Some(mut lines) = service_of(store)? else {
            return Ok(None);
        };
        return match exchange(&mut lines, &socket, &command) {
            Ok(Reply::Status(status)) => Ok(Some(*status)),
            Ok(Reply::Refused(refusal)) => Err(ControlError::Refused(refusal)),
            Ok(_) => Err(ControlError::Foreign(socket, "not a status".to_owned())),
            Err(failed) if failed.is_repeatable && since.elapsed() < START => {
                thread::sleep(AGAIN);
                continue;
            }
            Err(failed) => Err(failed.error),
        };
    }
}

/// Whether a service listens beside the store in this file.
pub(crate) fn has_service(store: &Place) -> bool {
    !matches!(service_of(store), Ok(None))
}

/// The service of a store, or the store itself if none runs.
fn way_to(store: &Place) -> Result<Way, ControlError> {
    let since = Instant::now();
    loop {
        if let Some(lines) = service_of(store)? {
            return Ok(Way::Service(lines));
        }
        match store.open() {
            Ok(engine) => return Ok(Way::Own(Inline::new(engine))),
            // A service that starts or ends has the lock for a moment without a socket.
            Err(error) if is_in_use(&error) && since.elapsed() < START => thread::sleep(AGAIN),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The socket of the service of a store. There is none beside a server.
fn socket_beside(store: &Place) -> PathBuf {
    store.file().map(socket_of).unwrap_or_default()
}

/// A connection to the service of a store; `None`: none listens.
fn service_of(store: &Place) -> Result<Option<Lines>, ControlError> {
    // Services that share a store are told by what is in the store.
    let Some(file) = store.file() else {
        return Ok(None);
    };
    let socket = socket_of(file);
    match connect(&socket, ANSWER) {
        Ok(stream) => Ok(Some(Lines::new(stream))),
        Err(error) => match error.kind() {
            // A process that was killed leaves its socket behind.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
            // A file of another kind is no socket of a service.
            io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(ControlError::Silent(socket, error)),
        },
    }
}

/// Why there is no reply.
struct Failed {
    error: ControlError,
    /// The service has closed the connection, because it ended or was killed, or because the connection was idle for too
    /// long. The command was not performed, or does no harm if it is performed again.
    is_repeatable: bool,
}

fn exchange(lines: &mut Lines, socket: &Path, command: &Command) -> Result<Reply, Failed> {
    let silent = |is_closed, error| Failed {
        error: ControlError::Silent(socket.to_owned(), error),
        is_repeatable: is_closed,
    };
    let line = serde_json::to_vec(command).map_err(|error| silent(false, error.into()))?;
    // The service performs whole lines only.
    let sent = lines.write(&line, LIMITS);
    sent.map_err(|error| silent(is_closed(&error), error))?;
    let reply = lines
        .read(LIMITS)
        .and_then(|reply| reply.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof)));
    let reply = reply.map_err(|error| silent(is_closed(&error) && is_harmless(command), error))?;
    serde_json::from_slice(&reply).map_err(|error| Failed {
        error: ControlError::Foreign(socket.to_owned(), error.to_string()),
        is_repeatable: false,
    })
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Whether the command can be performed twice.
fn is_harmless(command: &Command) -> bool {
    match command {
        Command::Hold { .. } => false,
        Command::Schedule { deed, .. } => *deed != ScheduleDeed::Run,
        _ => true,
    }
}

/// Performs a command in this process.
fn perform_here(
    store: &Inline<Database>,
    rules: &Rules,
    schedules: &Schedules,
    command: &Command,
) -> Result<Reply, StoreError> {
    let by = By {
        who: format!("uid {}", rustix::process::geteuid().as_raw()),
        now: Timestamp::now(),
    };
    let (command, schedules) = (command.clone(), schedules.clone());
    let now = by.now;
    let performed = store.call(move |engine| perform(engine, &command, &by, &schedules))?;
    if let Some((host, end)) = performed.hold_ended {
        while store
            .with(|engine| release_piece(engine, rules, now, host, end))?
            .is_some()
        {}
    }
    Ok(performed.reply)
}

fn is_in_use(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::InUse(_))
}

impl Refusal {
    /// Whether the command named what is not there.
    pub fn is_not_found(&self) -> bool {
        self.kind == RefusalKind::NotFound
    }
}

/// How long a service may take between its lock and its socket.
const START: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(20);

/// How long the service has to accept a connection and to begin an answer. It answers when the writer has committed.
const ANSWER: Duration = Duration::from_secs(5);
/// What to do about a service that does not.
const STOPPED: &str = ": its process may be stopped, or its disk may hang. Look at the process and its log; \
    'kill -CONT' lets a stopped process go on. Then it may still perform the command";

const LIMITS: LineLimits = LineLimits {
    longest: 1 << 20,
    idle: ANSWER,
    transfer: Duration::from_secs(10),
};
