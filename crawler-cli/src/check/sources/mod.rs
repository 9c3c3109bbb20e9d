//! Where the URLs of a check come from: URLs, files, folders, standard input and lists of URLs.
//!
//! [`start`] reads all inputs on threads of its own and gives what they refer to in [`Batches`], in the order of the
//! inputs, of the paths in a folder, and of the places in a file. Pages are fetched by others: an input that is a URL is
//! passed on as it is.
//!
//! What a file holds is told by its name: Markdown, HTML, CSS, XML (sitemaps, feeds) and plain text are documents, whose
//! links are checked; `.jsonl` and `.csv` have records with URLs. `.gz` after these names is no obstacle, and neither is
//! gzip without it. In folders, files with other names are left out; a file that was named itself, and standard input,
//! is told by its beginning: HTML, XML, JSON lines, or else plain text.
//!
//! A list of URLs has one in each line. Blanks around it, CR, a byte order mark, blank lines and lines that begin with
//! `#` are ignored.

mod batches;
mod csv;
mod disk;
mod document;
mod input;
mod json;
mod list;
mod occurrence;
mod open;
mod options;
mod originals;
mod outlet;
mod records;
mod resolve;
mod threads;
mod walk;

pub use batches::{Batch, Batches, Next};
pub use input::{Input, InputError, List};
pub use occurrence::{Occurrence, Problem, ProblemKind, Target};
pub use options::{FileId, SourceOptions};
pub(super) use originals::Original;
pub use originals::Originals;
pub(super) use resolve::is_unsupported;
pub use threads::start;

#[cfg(test)]
mod tests;
