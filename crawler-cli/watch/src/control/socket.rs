//! Where the socket of a store is, and lines on it with limits on their sizes and times.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net;

use plain::files::beside;

/// The socket of the store in this file: `FILE-socket`.
pub fn socket_of(store: &Path) -> PathBuf {
    beside(store, "-socket")
}

/// Listens at a path, which must not exist.
pub(super) fn listen(path: &Path) -> io::Result<UnixListener> {
    with_address(path, UnixListener::bind_addr)
}

/// Connects to the socket at a path. A listener that does not accept connections is waited for so long.
pub(super) fn connect(path: &Path, longest: Duration) -> io::Result<UnixStream> {
    let connected = with_address(path, |address| connect_addr(address, longest));
    connected.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    })
}

fn connect_addr(address: &SocketAddr, longest: Duration) -> io::Result<UnixStream> {
    let path = address.as_pathname().unwrap_or(Path::new(""));
    let stream = net::socket_with(
        net::AddressFamily::UNIX,
        net::SocketType::STREAM,
        net::SocketFlags::CLOEXEC,
        None,
    )?;
    // A full queue of connections is awaited like room for data.
    net::sockopt::set_socket_timeout(&stream, net::sockopt::Timeout::Send, Some(longest))?;
    net::connect(&stream, &net::SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(stream))
}

/// The address of a socket has room for about a hundred bytes: longer paths are reached through their open folder.
fn with_address<T>(path: &Path, open: impl FnOnce(&SocketAddr) -> io::Result<T>) -> io::Result<T> {
    if let Ok(address) = SocketAddr::from_pathname(path) {
        return open(&address);
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = File::open(parent.unwrap_or(Path::new(".")))?;
    let name = path.file_name().unwrap_or_default();
    let short = Path::new("/proc/self/fd")
        .join(folder.as_raw_fd().to_string())
        .join(name);
    open(&SocketAddr::from_pathname(short)?)
}

/// One end of a connection on which lines are exchanged.
#[derive(Debug)]
pub(super) struct Lines {
    stream: UnixStream,
    /// What was read and is not taken yet.
    read: Vec<u8>,
}

/// How long lines and waits may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLimits {
    /// The longest line, in bytes, without its end.
    pub(super) longest: usize,
    /// How long the first byte of a line is awaited.
    pub(super) idle: Duration,
    /// How long the rest of a line may take, and how long a line may take to be written.
    pub(super) transfer: Duration,
}

impl Lines {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// The next line, without its end; `None` at the end of the stream.
    ///
    /// # Errors
    /// The line is too long ([`io::ErrorKind::InvalidData`]), takes too long ([`io::ErrorKind::TimedOut`]), or the
    /// connection fails.
    pub(super) fn read(&mut self, limits: LineLimits) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        let mut deadline = Instant::now() + self.first_wait(limits);
        loop {
            let end = self.read[searched..].iter().position(|&byte| byte == b'\n');
            if let Some(at) = end {
                let rest = self.read.split_off(searched + at + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.pop();
                return Ok(Some(line));
            }
            searched = self.read.len();
            if searched > limits.longest {
                let text = format!("a line of more than {} bytes", limits.longest);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            let was_empty = self.read.is_empty();
            if self.fill(deadline)? == 0 {
                return match self.read.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            if was_empty {
                deadline = Instant::now() + limits.transfer;
            }
        }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// The peer does not read in time ([`io::ErrorKind::TimedOut`]), or the connection fails.
    pub(super) fn write(&mut self, line: &[u8], limits: LineLimits) -> io::Result<()> {
        let deadline = Instant::now() + limits.transfer;
        for mut part in [line, b"\n"] {
            while !part.is_empty() {
                self.stream.set_write_timeout(Some(left(deadline)?))?;
                match self.stream.write(part) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => part = &part[written..],
                    Err(error) => again(error)?,
                }
            }
        }
        Ok(())
    }

    fn first_wait(&self, limits: LineLimits) -> Duration {
        match self.read.is_empty() {
            true => limits.idle,
            false => limits.transfer,
        }
    }

    /// Reads some bytes; 0 at the end of the stream.
    fn fill(&mut self, deadline: Instant) -> io::Result<usize> {
        let mut chunk = [0; 16 * 1024];
        loop {
            self.stream.set_read_timeout(Some(left(deadline)?))?;
            match self.stream.read(&mut chunk) {
                Ok(read) => {
                    self.read.extend_from_slice(&chunk[..read]);
                    return Ok(read);
                }
                Err(error) => again(error)?,
            }
        }
    }
}

/// The time until then.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

/// Whether the same is tried again. The end of a wait is found by [`left`].
fn again(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For what comes, however busy the machine is.
    const PATIENT: LineLimits = LineLimits {
        longest: 10,
        idle: Duration::from_secs(60),
        transfer: Duration::from_secs(60),
    };
    /// For what does not come.
    const SHORT: LineLimits = LineLimits {
        longest: 10,
        idle: Duration::from_millis(20),
        transfer: Duration::from_millis(20),
    };

    fn pair() -> (UnixStream, Lines) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        (ours, Lines::new(theirs))
    }

    #[test]
    fn lines_come_in_any_pieces() {
        let (mut peer, mut lines) = pair();
        for piece in ["a", "b\nc", "d\n\nlast"] {
            peer.write_all(piece.as_bytes()).expect("written");
        }
        for line in ["ab", "cd", ""] {
            let read = lines.read(PATIENT).expect("a line");
            assert_eq!(read.as_deref(), Some(line.as_bytes()));
        }
        drop(peer);
        let kind = lines
            .read(PATIENT)
            .expect_err("an end within a line")
            .kind();
        assert_eq!(kind, io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn long_and_slow_lines_are_errors() {
        let (mut peer, mut lines) = pair();
        peer.write_all(&[b'x'; 11]).expect("written");
        let kind = lines.read(PATIENT).expect_err("too long").kind();
        assert_eq!(kind, io::ErrorKind::InvalidData);
        for begun in ["", "x"] {
            let (mut peer, mut lines) = pair();
            peer.write_all(begun.as_bytes()).expect("written");
            let kind = lines.read(SHORT).expect_err("no more comes").kind();
            assert_eq!(kind, io::ErrorKind::TimedOut);
        }
    }

    #[test]
    fn a_peer_that_never_reads_ends_the_write() {
        let (_peer, mut lines) = pair();
        let kind = lines
            .write(&vec![b'x'; 1 << 24], SHORT)
            .expect_err("full")
            .kind();
        assert_eq!(kind, io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_socket_can_have_a_long_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("x".repeat(120));
        std::fs::create_dir(&deep).expect("a folder");
        let path = socket_of(&deep.join("watch.db"));
        let listener = listen(&path).expect("listens");
        let mut client = connect(&path, PATIENT.idle).expect("connects");
        client.write_all(b"hello\n").expect("written");
        let mut lines = Lines::new(listener.accept().expect("a client").0);
        assert_eq!(
            lines.read(PATIENT).expect("a line").as_deref(),
            Some(&b"hello"[..])
        );
    }
}
