//! Whether standard output was closed when the process began.
//!
//! Before `main`, the runtime of Rust opens `/dev/null` in the place of each standard stream that is closed. What is
//! written there would be lost without an error, so the descriptor is looked at before the runtime starts.

// The only unsafe thing is the place of `LOOK`, whose comment is its proof.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed when the process began.
pub(super) fn was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

// SAFETY: `.init_array` has pointers to functions of the C calling convention, which the loader calls once before `main`
// with arguments that a function may ignore. `look` makes one system call and stores to a static: it needs nothing of
// Rust's runtime, allocates nothing, and cannot unwind.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    let is_closed = matches!(flags, Err(rustix::io::Errno::BADF));
    CLOSED.store(is_closed, Ordering::Relaxed);
}
