//! Whether the user has enough: the first Ctrl-C (or SIGTERM) lets a run end, which prints what it has measured, and
//! the second one ends the process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// From now on, signals are noticed and do not end the process at once.
///
/// # Errors
/// Whatever the system says.
pub fn watch() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&NOTICED))?;
        flag::register(signal, Arc::clone(&NOTICED))?;
    }
    Ok(())
}

/// Whether there was one.
#[must_use]
pub fn noticed() -> bool {
    NOTICED.load(Ordering::Relaxed)
}

/// Signals are the whole process's.
static NOTICED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The shells' exit code for SIGINT.
const INTERRUPTED: i32 = 130;
