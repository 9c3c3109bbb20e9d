//! What requests cost, where the cost does not depend on the machine: allocations and memory. And the tool
//! `compare`, as a program.
//!
//! The counters of the allocator are those of the thread, so tests that run beside each other do not disturb them. Only
//! `shared` counts other threads, in a process of its own.

mod allocations;
mod compare;
mod decoding;
mod memory;
mod shared;

use std::net::SocketAddr;
use std::thread;

use benches::serve::Server;

/// A server that runs until the test program ends.
fn server() -> SocketAddr {
    let server = Server::bind(0).expect("a loopback port");
    let address = server.address();
    thread::spawn(move || server.run(None));
    address
}

/// The fewest allocations in one of several windows of so many rounds, as `count` counts them. A buffer still grows when
/// more bytes arrive at once than before, which depends on the kernel. This growth ends; allocations for each request do
/// not.
fn steady(count: fn() -> u64, rounds: u64, mut round: impl FnMut()) -> u64 {
    let mut window = || {
        let before = count();
        for _ in 0..rounds {
            round();
        }
        count() - before
    };
    (0..WINDOWS).map(|_| window()).min().unwrap_or(u64::MAX)
}

const WINDOWS: usize = 8;
