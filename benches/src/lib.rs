//! The measuring tools: a cheap server, the raw-socket limit, the load generator, and what compares them.
//!
//! Every tool is a module with an entry point here, and a binary of three lines in `bin/`. So [`compare`] and
//! [`counts`] can start any tool as a process of its own by running themselves again ([`tool`]), and never measure a
//! binary that was built from other sources. What a run measures, and the record it prints, is [`measure`], the
//! same for every client.

pub mod alloc;
pub mod compare;
pub mod counts;
pub mod find;
pub mod interrupt;
pub mod limit;
pub mod load;
pub mod measure;
pub mod memory;
pub mod own;
pub mod peers;
pub mod process;
pub mod report;
pub mod scale;
pub mod serve;
pub mod soak;
pub mod tls;
pub mod tool;

/// All programs of this package count their allocations, so that each client is measured with the same allocator.
#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;
