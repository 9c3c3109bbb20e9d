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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &'static str, depth: u32, size: Option<SizeRange>) -> Found<'static> {
        Found {
            url,
            kind: if url.ends_with('/') {
                Kind::Directory
            } else {
                Kind::File
            },
            depth,
            size,
            ..Found::FILE
        }
    }

    #[test]
    fn a_tree_has_branches_and_sizes() {
        let mut tree = Tree::default();
        for found in [
            found("http://h/p/z%1B", 1, Some(SizeRange::exact(1536))),
            found("http://h/p/", 0, None),
            found("http://h/p/a%20b/", 1, None),
            found(
                "http://h/p/a%20b/only/x",
                3,
                Some(SizeRange { lo: 990, hi: 1010 }),
            ),
            found("http://h/p/a%20b/y", 2, None),
        ] {
            tree.add(&found);
        }
        let expected = "\
http://h/p/
├── a b/
│   ├── only/
│   │   └── [  ~1000 B] x
│   └── [        ?] y
└── [  1.5 KiB] z\\u{1b}

2 directories, 3 files, ~2.5 KiB, 1 of unknown size
";
        assert_eq!(tree.draw(), expected);
    }

    #[test]
    fn a_start_is_found_by_the_depth() {
        for (url, depth, root, below) in [
            ("http://h/", 0, "http://h/", ""),
            ("http://h/p/", 0, "http://h/p/", ""),
            ("http://h/p/a/", 1, "http://h/p/", "a/"),
            ("http://h/p/a/b", 2, "http://h/p/", "a/b"),
            ("http://h/f", 0, "http://h/f", ""),
        ] {
            assert_eq!(split_at_depth(url, depth), (root, below), "{url}");
        }
    }

    #[test]
    fn a_directory_is_followed_by_what_is_in_it() {
        let mut urls = ["http://h/a-b/", "http://h/a/c", "http://h/a/", "http://h/"];
        urls.sort_by(|a, b| order(a, b));
        assert_eq!(
            urls,
            ["http://h/", "http://h/a/", "http://h/a/c", "http://h/a-b/"]
        );
    }
}
