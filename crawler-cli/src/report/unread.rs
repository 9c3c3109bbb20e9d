//! What could not be read, as JSON: the file of `--unread`, with one object in each line, and the list in the summary.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{describe, named, shown};
use find::Unread;
use listing::LeftOut;

/// The file, which exists from the beginning of the search.
#[derive(Debug)]
pub(super) struct UnreadFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// The first error.
    error: Option<io::Error>,
}

impl UnreadFile {
    /// # Errors
    /// The file cannot be made. The message names it.
    pub(super) fn new(path: &Path) -> Result<Self, String> {
        let file =
            File::create(path).map_err(|error| format!("--unread {}: {error}", shown(path)))?;
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            error: None,
        })
    }

    pub(super) fn write(&mut self, unread: &Unread<'_>) {
        let mut line = item(unread, &describe(unread.cause));
        line["left_out"] = json!(unread.cause.left_out().map(LeftOut::names));
        // Each line is there at once: the search may be killed.
        let written = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    /// # Errors
    /// Something could not be written. The error was told, with the name of the file.
    pub(super) fn close(self) -> io::Result<()> {
        named(self.error.map_or(Ok(()), Err), &self.path)
    }
}

/// What could not be read, for the summary: the first of it, as far as there is room.
#[derive(Debug, Default)]
pub(super) struct UnreadList {
    items: Vec<Value>,
    /// What has no place in `items`.
    more: u64,
    /// Bytes of the texts of `items`.
    bytes: usize,
}

impl UnreadList {
    pub(super) fn add(&mut self, unread: &Unread<'_>) {
        if self.bytes >= MOST_BYTES {
            self.more += 1;
            return;
        }
        let cause = describe(unread.cause);
        let from = unread.from.unwrap_or_default();
        self.bytes += unread.url.len() + cause.len() + from.len() + OVERHEAD;
        let mut item = item(unread, &cause);
        if let Some(left_out) = unread.cause.left_out() {
            let room = |name: &&String| {
                self.bytes += name.len() + OVERHEAD;
                self.bytes < MOST_BYTES
            };
            let names: Vec<&String> = left_out.names().iter().take_while(room).collect();
            item["left_out_more"] = (left_out.len() - names.len()).into();
            item["left_out"] = json!(names);
        }
        self.items.push(item);
    }

    /// The items, and how many more there are.
    pub(super) fn json(&self) -> (&[Value], u64) {
        (&self.items, self.more)
    }
}

/// What was not read, and why.
fn item(unread: &Unread<'_>, cause: &str) -> Value {
    json!({
        "url": unread.url,
        "cause": cause,
        "class": unread.cause.class().to_string(),
        "from": unread.from,
    })
}

/// The largest size of the list in memory, about.
const MOST_BYTES: usize = 4 << 20;

/// The memory of an item or a name beside its text, in bytes.
const OVERHEAD: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use find::Cause;

    #[test]
    fn a_list_that_is_full_counts_the_rest() {
        let mut list = UnreadList::default();
        let (url, cause) = ("x".repeat(8000), Cause::Status(404));
        for _ in 0..1000 {
            let (url, from) = (url.as_str(), None);
            list.add(&Unread {
                url,
                cause: &cause,
                from,
            });
        }
        let (items, more) = list.json();
        assert_eq!(items.len() as u64 + more, 1000);
        assert!(items.len() > 400 && more > 400);
        assert_eq!(items[0]["class"], "status 404");
    }
}
