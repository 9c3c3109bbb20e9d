//! Fuzz targets: the protocol core, whole clients on the simulated network, and the parsers of listings and links. Each target
//! is a function that panics if a property does not hold.
//!
//! `fuzz/run 600` runs all targets with libFuzzer; a single one runs with
//! `cargo +nightly fuzz run --fuzz-dir fuzz --features libfuzzer response`. The tests of this package run the committed
//! corpus and random bytes on the stable toolchain.

mod coding;
mod exchange;
mod fields;
mod links;
mod listing;
mod pipeline;
mod response;
mod url;

pub use self::listing::listing;
pub use coding::coding;
pub use exchange::exchange;
pub use fields::fields;
pub use links::links;
pub use pipeline::pipeline;
pub use response::{chunked, response};
pub use url::{cookies, proxy, url};
