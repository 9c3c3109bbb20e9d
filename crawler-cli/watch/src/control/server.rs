//! The service's end of the socket: a thread that accepts clients, and a thread for each of at most 16 clients.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle, Scope as ThreadScope};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;

use super::message::{Command, RefusalKind, Reply};
use super::operate::Operator;
use super::perform::refused;
use super::socket::{LineLimits, Lines, listen, socket_of};
use store::StoreHandle;

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
    pub fn start<H>(store: &Path, operator: Operator<H>) -> io::Result<Self>
    where
        H: StoreHandle + Clone + Send + 'static,
    {
        let path = socket_of(store);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = listen(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || accept(&listener, &stopped, &operator))?;
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

fn accept<H>(listener: &UnixListener, stopped: &UnixStream, operator: &Operator<H>)
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
                    admit(scope, &clients, number, stream, operator.clone());
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
    operator: Operator<H>,
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
            serve(Lines::new(stream), &operator, &who);
            clients.remove(number);
        });
    if spawned.is_err() {
        clients.remove(number);
    }
}

/// Performs the commands of a client, until it ends, is too slow, or says what means nothing.
fn serve<H: StoreHandle>(mut lines: Lines, operator: &Operator<H>, who: &str) {
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
        if answer(&mut lines, &operator.perform(command, who)).is_err() {
            return;
        }
    }
}

fn answer(lines: &mut Lines, reply: &Reply) -> io::Result<()> {
    lines.write(&serde_json::to_vec(reply)?, LIMITS)
}

/// How many clients are served at a time.
const MOST_CLIENTS: usize = 16;
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A command has at most 1,000 URLs; clients keep their lines far shorter.
const LIMITS: LineLimits = LineLimits {
    longest: 1 << 20,
    idle: Duration::from_secs(60),
    transfer: Duration::from_secs(10),
};
