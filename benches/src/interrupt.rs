//! Ctrl-C and SIGTERM: the first signal ends a run early, which then prints its measurements; the second one ends the
//! process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Installs the handlers: from now on, the first signal is only recorded.
///
/// # Errors
/// The handlers cannot be installed.
pub fn watch() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&NOTICED))?;
        flag::register(signal, Arc::clone(&NOTICED))?;
    }
    Ok(())
}

/// Whether there was a signal.
#[must_use]
pub fn noticed() -> bool {
    NOTICED.load(Ordering::Relaxed)
}

/// Signals apply to the whole process, so this is global.
static NOTICED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The exit code that shells use for SIGINT.
const INTERRUPTED: i32 = 130;
