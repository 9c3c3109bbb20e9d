//! Where the URLs of a check come from: URLs, files, folders, standard input and lists of URLs.
//!
//! All inputs are read on threads of their own, which give what they refer to in [`Batches`], in the order of the inputs,
//! of the paths in a folder, and of the places in a file. Pages are fetched by others: an input that is a URL is
//! passed on as it is.

mod batches;
mod input;
mod occurrence;
mod options;

pub use batches::{Batch, Batches, Next};
pub use input::{Input, InputError, List};
pub use occurrence::{Occurrence, Problem, ProblemKind, Target};
pub use options::SourceOptions;
