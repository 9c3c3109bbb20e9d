//! The command lines: what each command understands, and the texts made from that.

pub mod completions;
pub mod find;
mod help;
