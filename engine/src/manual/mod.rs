//! The engine explained: how a call goes through it, which layer knows which, and what its words mean.
//!
//! Pages only. They are for readers of the source, and for users who want to know why the engine
//! behaves as it does. The reference of each type says how to use it.
//!
//! - [`theory`]: one iteration of the event loop, and the rules that the rest of the engine follows from.
//! - [`layers`]: the layers of the source, and which of them may use which.
//! - [`glossary`]: each word of the source and of the documentation, explained once.
//! - [`security`]: who may send what, which limit answers it, and which test shows that.
//! - [`coming_from`]: ten tasks, as reqwest, ureq, hyper and fasthttp do them, and as this engine does.

pub mod coming_from;
pub mod glossary;
pub mod layers;
pub mod security;
pub mod theory;
