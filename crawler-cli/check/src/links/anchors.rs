//! The anchors of a document, and whether a fragment of a URL means one of them.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use xxhash_rust::xxh3::xxh3_64;

use super::Format;

/// The anchors of one document: 8 bytes for each, not the names.
///
/// ```
/// use check::links::{Anchors, Format};
///
/// let mut anchors = Anchors::new(Format::Html);
/// anchors.insert("install");
/// assert!(anchors.has("install") && anchors.has("top") && !anchors.has("missing"));
/// ```
#[derive(Clone, Debug)]
pub struct Anchors {
    /// GitHub finds the headings of Markdown whatever the case of the fragment.
    ignores_case: bool,
    hashes: HashSet<u64>,
}

impl Anchors {
    /// No anchors yet, for a document in this format.
    pub fn new(format: Format) -> Self {
        Self {
            ignores_case: format == Format::Markdown,
            hashes: HashSet::new(),
        }
    }

    /// Adds an anchor.
    pub fn insert(&mut self, anchor: &str) {
        self.hashes.insert(self.hash(anchor));
    }

    /// The number of anchors.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether the document has what the fragment (without `#`) means. Each document has a top (`#`, `#top`, text
    /// fragments such as `:~:text=word`) and lines (`L10`, `L10-L20`).
    pub fn has(&self, fragment: &str) -> bool {
        let name = fragment
            .split_once(":~:")
            .map_or(fragment, |(name, _)| name);
        if name.is_empty() || name.eq_ignore_ascii_case("top") || is_lines(name) {
            return true;
        }
        let decoded = percent_decode_str(name).decode_utf8_lossy();
        // A name may itself hold a percent sign. GitHub adds the prefix to ids of documents.
        let bare = decoded.strip_prefix("user-content-");
        let mut names = [Some(&*decoded), Some(fragment), bare]
            .into_iter()
            .flatten();
        names.any(|name| self.hashes.contains(&self.hash(name)))
    }

    fn hash(&self, name: &str) -> u64 {
        match self.ignores_case {
            true => xxh3_64(name.to_lowercase().as_bytes()),
            false => xxh3_64(name.as_bytes()),
        }
    }
}

/// Whether a name means lines of a file that is shown as source text: `L10`, `L10-L20`, `L10C3-L12C1`.
fn is_lines(name: &str) -> bool {
    let is_line = |part: &str| {
        let line = part.strip_prefix('L').unwrap_or(part);
        let line = line.split_once('C').map_or(line, |(line, _)| line);
        line.parse::<u32>().is_ok_and(|line| line > 0)
    };
    name.starts_with('L') && name.splitn(2, '-').all(is_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_found_by_name() {
        let mut anchors = Anchors::new(Format::Html);
        for name in ["a", "b c", "100%25", "é", "Big"] {
            anchors.insert(name);
        }
        let names = "a|b%20c|b c|100%2525|100%25|%C3%A9|user-content-a|a:~:text=b";
        let always = "|top|TOP|:~:text=a|L5|L10-L20|L7-9|L3C1-L4C8";
        for fragment in names.split('|').chain(always.split('|')) {
            assert!(anchors.has(fragment), "{fragment}");
        }
        for fragment in "A|big|x|user-content-x|L|L0|Lx|l1|L1-".split('|') {
            assert!(!anchors.has(fragment), "{fragment}");
        }
        let mut anchors = Anchors::new(Format::Markdown);
        anchors.insert("install-it");
        assert!(anchors.has("Install-It") && !anchors.has("install"));
    }
}
