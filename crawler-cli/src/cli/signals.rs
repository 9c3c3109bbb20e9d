//! SIGINT and SIGTERM: the first asks a run to end, the second ends the process. SIGHUP asks a service to read its
//! configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

use super::usage::Failure;

/// Set by the first SIGINT or SIGTERM; the second ends the process at once.
pub(super) fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Why a command does not begin.
pub(super) fn cannot_watch(error: io::Error) -> Failure {
    Failure::Failed(format!("cannot watch for signals: {error}"))
}

/// Set by each SIGHUP.
pub(super) fn hang_up_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGHUP, Arc::clone(&flag))?;
    Ok(flag)
}

/// Ends the process as find(1) ends when nobody reads its output any more: by SIGPIPE, which Rust's runtime ignores.
pub(super) fn die_of_closed_pipe() {
    // If the signal cannot be sent, the process goes on to its end.
    let _ = emulate_default_handler(SIGPIPE);
}

/// The exit status after a signal: 128 + SIGINT, as in shells.
pub(super) const INTERRUPTED: u8 = 130;
