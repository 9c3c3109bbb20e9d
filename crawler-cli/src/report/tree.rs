//! `--tree`: the results drawn as a tree, in the style of tree(1); and the order of `--sort`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use percent_encoding::percent_decode_str;

use super::statistics::{count, size_text};
use crate::find::range::SizeRange;
use crate::find::{Found, Kind};
use crate::terminal;

/// The tree of the results so far.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// By the URL of the start.
    roots: BTreeMap<String, Node>,
    files: u64,
    directories: u64,
    /// The sum of the files' sizes.
    size: Sum,
}

/// A file or directory. Without `kind`: an ancestor of results that is no result itself.
#[derive(Debug, Default)]
struct Node {
    kind: Option<Kind>,
    size: Option<SizeRange>,
    /// Children by their segment in the URL.
    below: BTreeMap<String, Node>,
}

/// A sum of sizes, some of which are inexact or unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    lo: u64,
    hi: u64,
    unknown: u64,
}

impl Tree {
    pub(super) fn add(&mut self, found: &Found<'_>) {
        match found.kind {
            Kind::File => {
                self.files += 1;
                self.size.add(found.size);
            }
            Kind::Directory => self.directories += 1,
        }
        let (root, below) = split_at_depth(found.url, found.depth);
        let mut node = match self.roots.get_mut(root) {
            Some(node) => node,
            None => self.roots.entry(root.to_owned()).or_default(),
        };
        for segment in below.split_terminator('/') {
            node = node.below.entry(segment.to_owned()).or_default();
        }
        node.kind = Some(found.kind);
        node.size = found.size;
    }

    /// The drawing, and a line with counts.
    pub(super) fn draw(&self) -> String {
        let mut text = String::new();
        for (url, node) in &self.roots {
            text.push_str(url);
            text.push('\n');
            node.draw(&mut String::new(), &mut text);
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n{}, {}{}",
            count(self.directories, "directory", "directories"),
            count(self.files, "file", "files"),
            self.size.text()
        );
        text
    }
}

impl Node {
    fn draw(&self, indent: &mut String, text: &mut String) {
        let last = self.below.len().saturating_sub(1);
        for (i, (segment, node)) in self.below.iter().enumerate() {
            let (branch, stem) = if i == last {
                ("└── ", "    ")
            } else {
                ("├── ", "│   ")
            };
            text.push_str(indent);
            text.push_str(branch);
            if node.kind == Some(Kind::File) {
                let _ = write!(text, "[{:>9}] ", size_range_text(node.size));
            }
            let name = percent_decode_str(segment).decode_utf8_lossy();
            text.push_str(&terminal::neutralise(&name));
            if node.kind != Some(Kind::File) {
                text.push('/');
            }
            text.push('\n');
            indent.push_str(stem);
            node.draw(indent, text);
            indent.truncate(indent.len() - stem.len());
        }
    }
}

impl Sum {
    fn add(&mut self, size: Option<SizeRange>) {
        match size {
            Some(size) => {
                self.lo = self.lo.saturating_add(size.lo);
                self.hi = self.hi.saturating_add(size.hi);
            }
            None => self.unknown += 1,
        }
    }

    fn text(self) -> String {
        let (lo, hi) = (self.lo, self.hi);
        let mut text = match size_range_text(Some(SizeRange { lo, hi })) {
            _ if hi == 0 && self.unknown > 0 => String::new(),
            size => format!(", {size}"),
        };
        if self.unknown > 0 {
            let _ = write!(text, ", {} of unknown size", self.unknown);
        }
        text
    }
}

/// A size for people: `~` marks an inexact size, `?` an unknown one.
pub(super) fn size_range_text(size: Option<SizeRange>) -> String {
    match size {
        None => "?".to_owned(),
        Some(size) if size.lo == size.hi => size_text(size.lo),
        Some(size) => format!("~{}", size_text(size.middle())),
    }
}

/// Splits a URL of this depth into the URL of its start and the rest.
fn split_at_depth(url: &str, depth: u32) -> (&str, &str) {
    let body = url.strip_suffix('/').unwrap_or(url);
    let mut at = url.len();
    for i in 0..depth {
        let end = if i == 0 { body.len() } else { at - 1 };
        at = body[..end].rfind('/').map_or(0, |slash| slash + 1);
    }
    url.split_at(at)
}

/// The order of URLs in which the content of a directory follows directly after the directory.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}
