//! The measuring tools: a cheap server, the raw-socket limit, the measured clients, and tools that compare them.
//!
//! Every tool is a module here with an entry point; most have a binary of three lines in `bin/`. [`compare`] and
//! [`memory`] start the other tools by running their own binary again ([`tool`]), so that they never measure a binary
//! that was built from other sources. [`measure`] defines what a run measures and which record it prints; both are the
//! same for every client.

pub mod alloc;
pub mod check;
pub mod compare;
mod drive;
pub mod find;
pub mod fleet;
mod limit;
pub mod load;
pub mod measure;
pub mod memory;
pub mod own;
pub mod peers;
pub mod process;
mod report;
pub mod serve;
pub mod soak;
mod table;
pub mod tls;
pub mod tool;
pub mod watch;

/// All programs of this package count allocations, so that each client is measured with the same allocator.
#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;
