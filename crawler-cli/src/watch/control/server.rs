//! The service's end of the socket: a thread that accepts clients, and a thread for each of at most 16 clients.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle, Scope as ThreadScope};
use std::time::Duration;
use std::{fs, process};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;

use super::core::{CoreHandle, CoreMessage};
use super::message::{Command, LiveStatus, Refusal, RefusalKind, Reply, StoreCondition};
use super::perform::{By, perform};
use super::socket::{LineLimits, Lines, listen, socket_of};
use crate::store::{StoreHandle, WriterState};

/// What the socket serves.
#[derive(Clone, Debug)]
pub struct Served<H> {
    /// The thread that writes the store.
    pub store: H,
    /// The core of the service.
    pub core: CoreHandle,
    /// When the service started.
    pub since: Timestamp,
}

/// Serves commands on the socket of a store, until it is dropped. Only the user of the service and root are served.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens beside the store in this file, whose lock the process has. A socket that a killed process left is
    /// replaced.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn start<H>(store: &Path, served: Served<H>) -> io::Result<Self>
    where
        H: StoreHandle + Clone + Send + 'static,
    {
        let path = socket_of(store);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let pauses = served.store.read(|engine| engine.pauses());
        let pauses = pauses.map_err(|error| io::Error::other(error.to_string()))?;
        if !pauses.is_empty() {
            served.core.tell(CoreMessage::paused(&pauses));
        }
        let listener = listen(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || accept(&listener, &stopped, &served))?;
        Ok(Self {
            path,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // A socket that is left is replaced by the next service.
        let _ = fs::remove_file(&self.path);
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// The clients that are connected.
#[derive(Default)]
struct Clients {
    count: AtomicUsize,
    /// To end their connections; with the numbers of the clients.
    streams: Mutex<Vec<(usize, UnixStream)>>,
}

impl Clients {
    fn add(&self, number: usize, stream: &UnixStream) -> io::Result<()> {
        let stream = stream.try_clone()?;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.lock().push((number, stream));
        Ok(())
    }

    fn remove(&self, number: usize) {
        self.lock().retain(|(other, _)| *other != number);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    fn end_all(&self) {
        for (_, stream) in self.lock().iter() {
            // It may be closed already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(usize, UnixStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept<H>(listener: &UnixListener, stopped: &UnixStream, served: &Served<H>)
where
    H: StoreHandle + Clone + Send + 'static,
{
    let clients = Clients::default();
    thread::scope(|scope| {
        let mut number = 0;
        while wait(listener, stopped) {
            match listener.accept() {
                Ok((stream, _)) => {
                    number += 1;
                    admit(scope, &clients, number, stream, served.clone());
                }
                // Without a descriptor or memory, the client waits a moment in the queue of the socket.
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    thread::sleep(PAUSE_AFTER_FAILURE);
                }
                Err(_) => {}
            }
        }
        clients.end_all();
    });
}

/// Waits for a client. `false`: the server is to end.
fn wait(listener: &UnixListener, stopped: &UnixStream) -> bool {
    let mut sources = [
        PollFd::new(listener, PollFlags::IN),
        PollFd::new(stopped, PollFlags::IN),
    ];
    match poll(&mut sources, None) {
        Ok(_) => sources[1].revents().is_empty(),
        Err(error) => error == rustix::io::Errno::INTR,
    }
}

/// Serves a client on a thread of its own, if it may be served.
fn admit<'scope, H>(
    scope: &'scope ThreadScope<'scope, '_>,
    clients: &'scope Clients,
    number: usize,
    stream: UnixStream,
    served: Served<H>,
) where
    H: StoreHandle + Send + 'static,
{
    let Ok(peer) = socket_peercred(&stream) else {
        return;
    };
    if !peer.uid.is_root() && peer.uid != rustix::process::geteuid() {
        return;
    }
    let has_room = clients.count.load(Ordering::Relaxed) < MOST_CLIENTS;
    if !has_room {
        let busy = refused(RefusalKind::Busy, "too many clients".to_owned());
        // The line fits into the buffer of a new connection.
        let _ = answer(&mut Lines::new(stream), &busy);
        return;
    }
    if stream.set_nonblocking(false).is_err() || clients.add(number, &stream).is_err() {
        return;
    }
    let who = format!("uid {}", peer.uid.as_raw());
    let spawned = thread::Builder::new()
        .name("control client".to_owned())
        .spawn_scoped(scope, move || {
            serve(Lines::new(stream), &served, &who);
            clients.remove(number);
        });
    if spawned.is_err() {
        clients.remove(number);
    }
}

/// Performs the commands of a client, until it ends, is too slow, or says what means nothing.
fn serve<H: StoreHandle>(mut lines: Lines, served: &Served<H>, who: &str) {
    loop {
        let line = match lines.read(LIMITS) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let _ = answer(&mut lines, &refused(RefusalKind::Wrong, error.to_string()));
                return;
            }
            Err(_) => return,
        };
        let command = match serde_json::from_slice::<Command>(&line) {
            Ok(command) => command,
            Err(error) => {
                let why = format!("no command: {error}");
                let _ = answer(&mut lines, &refused(RefusalKind::Wrong, why));
                return;
            }
        };
        drop(line);
        let reply = match command {
            Command::Status { host } => Reply::Status(Box::new(status(served, host))),
            command => change(served, command, who),
        };
        if answer(&mut lines, &reply).is_err() {
            return;
        }
    }
}

fn status<H: StoreHandle>(served: &Served<H>, host: Option<String>) -> LiveStatus {
    LiveStatus {
        process: process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: served.since,
        store: match served.store.state() {
            WriterState::Ok => StoreCondition::Ok,
            WriterState::Full => StoreCondition::Full,
            WriterState::Failing(why) => StoreCondition::Failing(why),
            WriterState::Closed => StoreCondition::Failing("it is closed".to_owned()),
        },
        core: served.core.status(host, CORE_PATIENCE),
    }
}

/// Has the writer perform a command, and tells the core.
fn change<H: StoreHandle>(served: &Served<H>, command: Command, who: &str) -> Reply {
    let by = By {
        who: who.to_owned(),
        now: Timestamp::now(),
    };
    let for_core = core_message(&command);
    let is_pause = matches!(command, Command::Pause { .. } | Command::Resume { .. });
    let performed = served.store.call(move |engine| {
        let performed = perform(engine, &command, &by)?;
        let pauses = is_pause.then(|| engine.pauses()).transpose()?;
        Ok((performed, pauses))
    });
    let (performed, pauses) = match performed {
        Ok(performed) => performed,
        Err(error) => return refused(RefusalKind::Store, error.to_string()),
    };
    let ended = performed.hold_ended;
    let ended = ended.map(|(host, deed)| CoreMessage::HoldEnded { host, deed });
    let paused = pauses.map(|pauses| CoreMessage::paused(&pauses));
    // The core finds by itself what is due, but not this.
    let is_needed = ended.is_some() || paused.is_some();
    let message = ended.or(paused).or(for_core);
    let was_told = message.is_none_or(|message| served.core.tell(message));
    match is_needed && !was_told {
        true => refused(
            RefusalKind::Busy,
            "the core of the service does not listen".to_owned(),
        ),
        false => performed.reply,
    }
}

/// What the core is told after a command.
fn core_message(command: &Command) -> Option<CoreMessage> {
    match command {
        Command::Status { .. } | Command::Hold { .. } | Command::Remove { .. } => None,
        Command::Schedule { .. } | Command::Drop { .. } => None,
        // What is paused is read from the store.
        Command::Pause { .. } | Command::Resume { .. } => None,
        Command::Add { .. } | Command::Recheck { .. } | Command::Replay { .. } => {
            Some(CoreMessage::LookAgain)
        }
    }
}

fn answer(lines: &mut Lines, reply: &Reply) -> io::Result<()> {
    lines.write(&serde_json::to_vec(reply)?, LIMITS)
}

fn refused(kind: RefusalKind, why: String) -> Reply {
    Reply::Refused(Refusal { kind, why })
}

/// How many clients are served at a time.
const MOST_CLIENTS: usize = 16;
/// How long the core has to answer.
const CORE_PATIENCE: Duration = Duration::from_secs(2);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A command has at most 1,000 URLs; clients keep their lines far shorter.
const LIMITS: LineLimits = LineLimits {
    longest: 1 << 20,
    idle: Duration::from_secs(60),
    transfer: Duration::from_secs(10),
};
