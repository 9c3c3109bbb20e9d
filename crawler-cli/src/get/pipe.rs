//! Opens the files of a transfer. A named pipe opens only with somebody at its other end: that is waited for until the
//! deadline of the transfer, and without a deadline for ever, as in curl.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::exit::{Exit, Failure};

/// Opens a file to read.
pub(super) fn open_to_read(path: &Path, deadline: Option<Instant>) -> io::Result<File> {
    let Some(deadline) = deadline.filter(|_| is_pipe(path)) else {
        return File::open(path);
    };
    let file = open_at_once(path, OFlags::RDONLY)?;
    // Ready with the first bytes, or once a writer has come and gone.
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(timed_out("nobody writes to the pipe")),
            Ok(_) => return that_waits(file),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens a file to write, with these options.
pub(super) fn open_to_write(
    path: &Path,
    options: &OpenOptions,
    deadline: Option<Instant>,
) -> io::Result<File> {
    let Some(deadline) = deadline.filter(|_| is_pipe(path)) else {
        return options.open(path);
    };
    loop {
        match open_at_once(path, OFlags::WRONLY) {
            // Nobody reads yet, and there is no event for that.
            Err(Errno::NXIO) => {}
            Err(error) => return Err(error.into()),
            Ok(file) => return that_waits(file),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(timed_out("nobody reads from the pipe"));
        }
        thread::sleep(left.min(BETWEEN_LOOKS));
    }
}

/// The failure of a file that cannot be opened: `exit`, unless the time is over.
pub(super) fn not_opened(exit: Exit, phase: &str, path: &Path, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::TimedOut => Exit::Timeout,
        _ => exit,
    };
    Failure::new(exit, phase, format_args!("{}: {error}", path.display()))
}

fn is_pipe(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_fifo())
}

fn open_at_once(path: &Path, way: OFlags) -> Result<File, Errno> {
    let flags = way | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}

/// Later calls wait, as on any other file.
fn that_waits(file: File) -> io::Result<File> {
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn timed_out(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("timed out: {why}"))
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
