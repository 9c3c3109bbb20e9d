//! Standard output. If it was closed when the process began, a write is an error.

use std::io::{self, Write as _};

#[cfg(target_os = "linux")]
mod closed;

/// Writes these bytes, and all that was written before.
///
/// # Errors
/// They could not be written, or standard output is closed.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    check()?;
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// # Errors
/// Standard output is closed.
pub(crate) fn check() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if closed::was_closed() {
        return Err(rustix::io::Errno::BADF.into());
    }
    Ok(())
}
