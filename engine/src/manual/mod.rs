//! The engine explained: how a call goes through it, which layer knows which, and what its words mean.
//!
//! These pages contain no code. They are for readers of the source, and for users who want to know why the engine
//! behaves as it does. The reference of each type says how to use it.
//!
//! - [`theory`]: one iteration of the event loop, and the rules that the rest of the engine follows from.
//! - [`layers`]: the layers of the source, and which of them may use which.
//! - [`glossary`]: each word of the source and of the documentation, explained once.

pub mod glossary;
pub mod layers;
pub mod theory;
