//! Where the URLs of a check come from: URLs, files, folders, standard input and lists of URLs.
//!
//! [`start`] reads all inputs on a thread of its own and gives what they refer to in [`Batches`], in the order of the
//! inputs, of the paths in a folder, and of the places in a file. Pages are fetched by others: an input that is a URL is
//! passed on as it is.
//!
//! What a file holds is told by its name: Markdown, HTML, and XML (sitemaps, feeds). `.gz` after these names is no
//! obstacle, and neither is gzip without it. In folders, files with other names are left out; a file that was named
//! itself, and standard input, is HTML if it begins with `<`, else Markdown.
//!
//! A list of URLs has one in each line, or JSON lines with URLs.

mod batches;
mod disk;
mod document;
mod input;
mod json;
mod lines;
mod list;
mod open;
mod options;
mod outlet;
mod problem;
mod reader;
mod resolve;
mod walk;

pub use batches::{Batch, Batches, Next};
pub use input::{Input, InputError, List};
pub use open::{Unpacked, is_packed};
pub use options::{FileId, SourceOptions};
pub use problem::{Problem, ProblemKind};
pub use reader::start;
pub(super) use resolve::{Base, Resolved, Resolver};

#[cfg(test)]
mod tests;
