//! find(1) for web directory hierarchies.
pub mod filter;
pub mod frontier;
pub mod glob;
pub mod listing;
mod path;
