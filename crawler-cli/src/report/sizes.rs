//! Sums of files and bytes by directory and file, in bounded memory.

use std::collections::BTreeMap;

use super::statistics::{count, size_text};
use crate::find::range::SizeRange;
use crate::find::{Found, Kind};

/// Numbers and bytes of files: by file at first, by directory when there are too many files.
#[derive(Debug)]
pub(super) struct Sizes {
    /// By URL. The URL of a directory ends in `/`.
    weights: BTreeMap<String, Weight>,
    kept: Kept,
    most: usize,
}

/// What has an entry of its own. Becomes coarser when there are too many entries.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    Files,
    Directories,
    /// Directories down to this depth. A deeper directory is counted for its ancestor of this depth.
    DownTo(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Sizes {
    /// Sums with at most `most` entries, but at least one for each host.
    pub(super) fn new(most: usize) -> Self {
        Self {
            weights: BTreeMap::new(),
            kept: Kept::Files,
            most,
        }
    }

    pub(super) fn add(&mut self, found: &Found<'_>) {
        if found.kind != Kind::File {
            return;
        }
        let bytes = found.size.map_or(0, SizeRange::middle);
        let url = self.kept.cut(found.url);
        let weight = Weight { bytes, files: 1 };
        match self.weights.get_mut(url) {
            Some(sum) => sum.add(weight),
            None => {
                self.weights.insert(url.to_owned(), weight);
            }
        }
        while self.weights.len() > self.most && self.kept != Kept::DownTo(0) {
            self.shrink();
        }
    }

    /// Counts files, or the deepest directories, for their parent directories.
    fn shrink(&mut self) {
        let deepest = self.weights.keys().map(|url| depth(url)).max();
        self.kept = match self.kept {
            Kept::Files => Kept::Directories,
            _ => Kept::DownTo(deepest.unwrap_or(0).saturating_sub(1)),
        };
        for (url, weight) in std::mem::take(&mut self.weights) {
            let url = self.kept.cut(&url).to_owned();
            self.weights.entry(url).or_default().add(weight);
        }
    }

    /// Files and directories by URL. The URL of a directory ends in `/`.
    pub(super) fn weights(&self) -> impl Iterator<Item = (&str, Weight)> {
        let weights = self.weights.iter();
        weights.map(|(url, weight)| (url.as_str(), *weight))
    }

    /// Whether any size is known.
    pub(super) fn has_sizes(&self) -> bool {
        self.weights.values().any(|weight| weight.bytes > 0)
    }
}

impl Weight {
    pub(super) fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files += other.files;
    }

    pub(super) fn of(self, by_bytes: bool) -> f64 {
        (if by_bytes { self.bytes } else { self.files }) as f64
    }

    pub(super) fn text(self) -> String {
        let files = count(self.files, "file", "files");
        match self.bytes {
            0 => files,
            bytes => format!("{}, {files}", size_text(bytes)),
        }
    }
}

impl Kept {
    /// The URL of the entry for which a file or directory is counted.
    fn cut(self, url: &str) -> &str {
        let deepest = match self {
            Self::Files => return url,
            Self::Directories => usize::MAX,
            Self::DownTo(depth) => depth,
        };
        let host = host_length(url);
        let slashes = url[host..].match_indices('/').map(|(at, _)| host + at + 1);
        let end = slashes.take(deepest.saturating_add(1)).last();
        &url[..end.unwrap_or(url.len())]
    }
}

fn depth(url: &str) -> usize {
    url[host_length(url)..]
        .matches('/')
        .count()
        .saturating_sub(1)
}

/// The offset at which the path begins.
pub(super) fn host_length(url: &str) -> usize {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url.len(), |at| host + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted_for_the_directories_above_it() {
        let mut sizes = Sizes::new(10);
        for i in 0..100 {
            for j in 0..3 {
                let url = format!("http://h/{}/{j}/{i}/file", i % 4);
                let found = Found {
                    url: &url,
                    depth: 3,
                    size: Some(SizeRange::exact(10)),
                    ..Found::FILE
                };
                sizes.add(&found);
                assert!(sizes.weights.len() <= 10);
            }
        }
        let urls: Vec<_> = sizes.weights.keys().map(String::as_str).collect();
        assert_eq!(
            urls,
            ["http://h/0/", "http://h/1/", "http://h/2/", "http://h/3/"]
        );
        let weight = sizes.weights["http://h/3/"];
        assert_eq!((weight.files, weight.bytes), (75, 750));
    }

    #[test]
    fn urls_are_cut_at_a_depth() {
        for (url, kept, expected) in [
            ("http://h/a/b/c", Kept::Files, "http://h/a/b/c"),
            ("http://h/a/b/c", Kept::Directories, "http://h/a/b/"),
            ("http://h/a/b/c", Kept::DownTo(1), "http://h/a/"),
            ("http://h/a/b/c", Kept::DownTo(0), "http://h/"),
            ("http://h/a", Kept::DownTo(5), "http://h/"),
        ] {
            assert_eq!(kept.cut(url), expected);
        }
        assert_eq!(depth("http://h/"), 0);
        assert_eq!(depth("http://h/a/b/"), 2);
    }
}
