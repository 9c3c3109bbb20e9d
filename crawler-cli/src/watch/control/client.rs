//! A hand of the operator: sends commands to the service of a store, or performs them itself if no service runs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::message::{Command, HoldDeed, LiveStatus, Refusal, RefusalKind, Reply};
use super::offline::end_hold;
use super::perform::{By, perform};
use super::socket::{LineLimits, Lines, connect, socket_of};
use crate::check::life::Rules;
use crate::store::sqlite::Sqlite;
use crate::store::{Inline, StoreError, StoreErrorKind, StoreHandle};

/// The way of commands to a store.
///
/// ```
/// use crawler_cli::check::life::Profile;
/// use crawler_cli::watch::control::{Command, Hand, Reply};
///
/// let folder = tempfile::tempdir()?;
/// // No service runs, so the command is performed here.
/// let mut hand = Hand::reach(&folder.path().join("watch.db"), Profile::Default.rules())?;
/// assert!(!hand.is_service());
/// let add = Command::Add { set: "docs".into(), urls: vec!["https://example.com/".into()] };
/// assert!(matches!(hand.send(&add)?, Reply::Added { new: 1, .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Hand {
    store: PathBuf,
    way: Way,
    rules: Rules,
}

#[derive(Debug)]
enum Way {
    Service(Lines),
    /// No service runs: the store is locked for this process.
    Own(Inline<Sqlite>),
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
                write!(
                    f,
                    "{}: the service does not answer: {error}",
                    socket.display()
                )
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
    /// Connects to the service of the store in this file, or opens the store, which is made if there is none. `rules` are
    /// those of the configuration; they are used without a service.
    ///
    /// # Errors
    /// Another process has the lock of the store and does not listen, or the store cannot be opened.
    pub fn reach(store: &Path, rules: Rules) -> Result<Self, ControlError> {
        let since = Instant::now();
        let way = loop {
            if let Some(lines) = service_of(store)? {
                break Way::Service(lines);
            }
            match Sqlite::open(store) {
                Ok(engine) => break Way::Own(Inline::new(engine)),
                // A service that starts or ends has the lock for a moment without a socket.
                Err(error) if is_in_use(&error) && since.elapsed() < START => {
                    thread::sleep(AGAIN);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let store = store.to_owned();
        Ok(Self { store, way, rules })
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
        let reply = match &mut self.way {
            Way::Service(lines) => exchange(lines, &socket_of(&self.store), command)?,
            Way::Own(store) => perform_here(store, &self.rules, command)?,
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
        ControlError::Foreign(socket_of(&self.store), why.to_owned())
    }
}

/// What the service of a store says about itself; `None`: none runs.
///
/// # Errors
/// The service does not answer.
pub fn live_status(store: &Path, host: Option<String>) -> Result<Option<LiveStatus>, ControlError> {
    let Some(mut lines) = service_of(store)? else {
        return Ok(None);
    };
    let socket = socket_of(store);
    match exchange(&mut lines, &socket, &Command::Status { host })? {
        Reply::Status(status) => Ok(Some(*status)),
        Reply::Refused(refusal) => Err(ControlError::Refused(refusal)),
        _ => Err(ControlError::Foreign(socket, "not a status".to_owned())),
    }
}

/// A connection to the service of a store; `None`: none listens.
fn service_of(store: &Path) -> Result<Option<Lines>, ControlError> {
    let socket = socket_of(store);
    match connect(&socket) {
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

fn exchange(lines: &mut Lines, socket: &Path, command: &Command) -> Result<Reply, ControlError> {
    let silent = |error| ControlError::Silent(socket.to_owned(), error);
    let line = serde_json::to_vec(command).map_err(|error| silent(error.into()))?;
    lines.write(&line, LIMITS).map_err(silent)?;
    let reply = lines.read(LIMITS).map_err(silent)?;
    let reply = reply.ok_or_else(|| silent(io::ErrorKind::UnexpectedEof.into()))?;
    serde_json::from_slice(&reply)
        .map_err(|error| ControlError::Foreign(socket.to_owned(), error.to_string()))
}

/// Performs a command in this process.
fn perform_here(
    store: &Inline<Sqlite>,
    rules: &Rules,
    command: &Command,
) -> Result<Reply, StoreError> {
    let by = By {
        who: format!("uid {}", rustix::process::geteuid().as_raw()),
        now: Timestamp::now(),
    };
    let command = command.clone();
    let now = by.now;
    let performed = store.call(move |engine| perform(engine, &command, &by))?;
    if let Some((host, deed)) = performed.hold_ended {
        let is_confirmed = deed == HoldDeed::Confirm;
        store.with(|engine| end_hold(engine, rules, host, is_confirmed, now))?;
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

/// The service answers when the writer has committed, which takes long only on a slow disk.
const LIMITS: LineLimits = LineLimits {
    longest: 1 << 20,
    idle: Duration::from_secs(60),
    transfer: Duration::from_secs(10),
};
