//! The integration tests in one program, because each program links the whole engine. Random programs on the simulated
//! network are in `sim`, which has a harness of its own.
//!
//! One test alone: `cargo test --workspace --test all -- scenarios::rates::connections_share_a_rate`.

mod api;
mod floods;
mod lifetime;
mod scenarios;
mod shared;
mod trace;
