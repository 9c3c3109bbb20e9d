//! What the fragment of a URL means, and the anchors of a document.

use std::borrow::Cow;
use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use xxhash_rust::xxh3::xxh3_64;

use super::Format;

/// What a fragment means.
///
/// ```
/// use crawler_cli::check::links::Fragment;
///
/// assert_eq!(Fragment::of("sec%C3%A9"), Fragment::Name("secé".into()));
/// assert_eq!(Fragment::of("L10-L20"), Fragment::Line(20));
/// assert_eq!(Fragment::of(":~:text=word"), Fragment::Top);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fragment<'f> {
    /// The top of the document, which every document has: `#`, `#top`, and fragments that hold only a directive, such
    /// as the text fragment `:~:text=word`. What a directive names is not looked for.
    Top,
    /// Lines up to this one of a file that is shown as source text: `L10`, `L10-L20`, `L10C3`.
    Line(u32),
    /// The name of an anchor, percent-decoded.
    Name(Cow<'f, str>),
}

impl<'f> Fragment<'f> {
    /// Reads the fragment of a URL, without `#`.
    pub fn of(fragment: &'f str) -> Self {
        let name = match fragment.split_once(":~:") {
            Some((name, _)) => name,
            None => fragment,
        };
        if name.is_empty() || name.eq_ignore_ascii_case("top") {
            return Self::Top;
        }
        match last_line(name) {
            Some(line) => Self::Line(line),
            None => Self::Name(percent_decode_str(name).decode_utf8_lossy()),
        }
    }
}

/// The last line of `L10`, `L10-L20`, `L10-20`, `L10C1-L20C5`.
fn last_line(name: &str) -> Option<u32> {
    let line = |part: &str| {
        let part = part.split_once('C').map_or(part, |(line, _)| line);
        part.parse::<u32>().ok().filter(|&line| line > 0)
    };
    let (first, last) = match name.split_once('-') {
        Some((first, last)) => (first, last.strip_prefix('L').unwrap_or(last)),
        None => (name, name.get(1..).unwrap_or("")),
    };
    let first = line(first.strip_prefix('L')?)?;
    Some(line(last)?.max(first))
}

/// The anchors of one document: 8 bytes for each, not the names.
///
/// ```
/// use crawler_cli::check::links::{Anchors, Format};
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
    is_complete: bool,
}

impl Anchors {
    /// Most anchors of a document that are kept.
    pub const LIMIT: usize = 1_000_000;

    /// No anchors yet, for a document in this format.
    pub fn new(format: Format) -> Self {
        Self {
            ignores_case: format == Format::Markdown,
            hashes: HashSet::new(),
            is_complete: true,
        }
    }

    /// Adds an anchor.
    pub fn insert(&mut self, anchor: &str) {
        if self.hashes.len() < Self::LIMIT {
            self.hashes.insert(self.hash(anchor));
        } else {
            self.is_complete = false;
        }
    }

    /// Whether the document has what the fragment (without `#`) means. `true` for the top, for lines that are also no
    /// name, and if the document has more than [`LIMIT`](Self::LIMIT) anchors.
    pub fn has(&self, fragment: &str) -> bool {
        if !self.is_complete {
            return true;
        }
        match Fragment::of(fragment) {
            Fragment::Top | Fragment::Line(_) => true,
            Fragment::Name(name) => {
                // A name may itself hold a percent sign. GitHub adds the prefix to ids of documents.
                let bare = name.strip_prefix("user-content-");
                let names = [Some(&*name), Some(fragment), bare];
                let mut names = names.into_iter().flatten();
                names.any(|name| self.hashes.contains(&self.hash(name)))
            }
        }
    }

    /// The anchors as bytes, for a store.
    pub fn to_bytes(&self) -> Vec<u8> {
        let flags = u8::from(self.ignores_case) | (u8::from(self.is_complete) << 1);
        let hashes = self.hashes.iter().flat_map(|hash| hash.to_le_bytes());
        std::iter::once(flags).chain(hashes).collect()
    }

    /// The anchors of which these are the bytes; `None` if the bytes are wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (flags, hashes) = bytes.split_first()?;
        let (hashes, rest) = hashes.as_chunks();
        if *flags > 3 || !rest.is_empty() {
            return None;
        }
        Some(Self {
            ignores_case: flags & 1 != 0,
            hashes: hashes
                .iter()
                .map(|hash| u64::from_le_bytes(*hash))
                .collect(),
            is_complete: flags & 2 != 0,
        })
    }

    fn hash(&self, name: &str) -> u64 {
        match self.ignores_case {
            true => xxh3_64(name.to_lowercase().as_bytes()),
            false => xxh3_64(name.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_mean_the_top_lines_or_names() {
        for fragment in ["", "top", "TOP", ":~:text=a", "top:~:text=a,b"] {
            assert_eq!(Fragment::of(fragment), Fragment::Top, "{fragment}");
        }
        for (fragment, line) in [
            ("L1", 1),
            ("L10-L20", 20),
            ("L7-9", 9),
            ("L3C1-L4C8", 4),
            ("L9-L2", 9),
        ] {
            assert_eq!(Fragment::of(fragment), Fragment::Line(line), "{fragment}");
        }
        for (fragment, name) in [
            ("L", "L"),
            ("L0", "L0"),
            ("Lx", "Lx"),
            ("l1", "l1"),
            ("L1-", "L1-"),
            ("é", "é"),
            ("%C3%A9", "é"),
            ("a%20b", "a b"),
            ("a:~:text=b", "a"),
            ("L99999999999", "L99999999999"),
        ] {
            assert_eq!(
                Fragment::of(fragment),
                Fragment::Name(name.into()),
                "{fragment}"
            );
        }
    }

    #[test]
    fn anchors_are_found_by_name() {
        let mut anchors = Anchors::new(Format::Html);
        for name in ["a", "b c", "100%25", "é", "Big"] {
            anchors.insert(name);
        }
        for fragment in [
            "a",
            "b%20c",
            "b c",
            "100%2525",
            "100%25",
            "%C3%A9",
            "user-content-a",
            "",
            "top",
            "L5",
        ] {
            assert!(anchors.has(fragment), "{fragment}");
        }
        for fragment in ["A", "big", "x", "user-content-x"] {
            assert!(!anchors.has(fragment), "{fragment}");
        }
        let mut anchors = Anchors::new(Format::Markdown);
        anchors.insert("install-it");
        assert!(anchors.has("Install-It") && !anchors.has("install"));
    }
}
