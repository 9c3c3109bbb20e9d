//! The measuring tools: a cheap server, the raw-socket limit, the load generator, and tools that compare them.
//!
//! Every tool is a module here with an entry point, and a binary of three lines in `bin/`. [`compare`] and [`counts`]
//! start the other tools by running their own binary again ([`tool`]), so that they never measure a binary that was
//! built from other sources. [`measure`] defines what a run measures and which record it prints; both are the same for
//! every client.

pub mod alloc;
pub mod check;
pub mod compare;
pub mod counts;
pub mod find;
#[cfg(feature = "crawler")]
pub mod fleet;
pub mod interrupt;
#[cfg(feature = "crawler")]
pub mod jobs;
pub mod limit;
#[cfg(feature = "crawler")]
pub mod links;
pub mod load;
pub mod measure;
pub mod memory;
pub mod own;
pub mod peers;
pub mod process;
pub mod report;
pub mod scale;
pub mod serve;
mod server;
pub mod soak;
pub mod tls;
pub mod tool;
pub mod watch;

/// All programs of this package count allocations, so that each client is measured with the same allocator.
#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;
