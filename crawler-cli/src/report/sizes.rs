//! Sums of files and bytes by directory and file, in bounded memory, and their tree as HTML.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::page::{line, link};
use find::{Found, Kind};
use listing::range::SizeRange;
use plain::terminal;
use plain::text::{count, size};

/// Numbers and bytes of files: by file at first, by directory when there are too many files.
#[derive(Debug)]
pub(super) struct Sizes {
    /// By URL. The URL of a directory ends in `/`.
    weights: BTreeMap<String, Weight>,
    /// Whether files have entries of their own.
    has_files: bool,
    /// The depth of the deepest directories with entries of their own. What is deeper is counted for its ancestor.
    deepest: usize,
    most: usize,
}

#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Weight {
    bytes: u64,
    files: u64,
}

impl Sizes {
    /// Sums with at most `most` entries, but at least one for each host.
    pub(super) fn new(most: usize) -> Self {
        Self {
            weights: BTreeMap::new(),
            has_files: true,
            deepest: DEEPEST,
            most,
        }
    }

    pub(super) fn add(&mut self, found: &Found<'_>) {
        if found.kind != Kind::File {
            return;
        }
        let weight = Weight {
            bytes: found.size.map_or(0, SizeRange::middle),
            files: 1,
        };
        self.add_weight(found.url, weight);
        while self.weights.len() > self.most && self.deepest > 0 {
            self.shrink();
        }
    }

    fn add_weight(&mut self, url: &str, weight: Weight) {
        let url = self.cut(url);
        match self.weights.get_mut(url) {
            Some(sum) => sum.add(weight),
            None => {
                self.weights.insert(url.to_owned(), weight);
            }
        }
    }

    /// Counts files, or the deepest directories, for their parent directories.
    fn shrink(&mut self) {
        match self.has_files {
            true => self.has_files = false,
            false => {
                let depths = self.weights.keys().map(|url| slashes(url).count());
                self.deepest = depths.max().unwrap_or(0).saturating_sub(2);
            }
        }
        for (url, weight) in std::mem::take(&mut self.weights) {
            self.add_weight(&url, weight);
        }
    }

    /// The URL of the entry for which a file or directory is counted.
    fn cut<'u>(&self, url: &'u str) -> &'u str {
        let mut ends = slashes(url);
        let end = ends.by_ref().take(self.deepest + 1).last();
        match self.has_files && ends.next().is_none() {
            true => url,
            false => &url[..end.unwrap_or(url.len())],
        }
    }

    /// The tree of all directories and files, the largest first; `None` if there are none.
    pub(super) fn tree(&self) -> Option<Markup> {
        let entries: Vec<(&str, Weight)> =
            self.weights.iter().map(|(url, it)| (&**url, *it)).collect();
        let whole = sum(&entries);
        (whole.files > 0).then(|| branch(&entries, 0, whole))
    }
}

/// What is below a directory whose URL has `start` bytes. Bars are shares of `whole`.
fn branch(entries: &[(&str, Weight)], start: usize, whole: Weight) -> Markup {
    let groups = entries.chunk_by(|(a, _), (b, _)| name(a, start) == name(b, start));
    let mut groups: Vec<_> = groups.map(|group| (sum(group), group)).collect();
    groups.sort_by_key(|(weight, _)| Reverse(*weight));
    let is_alone = groups.len() == 1;
    html! {
        div {
            @for (weight, group) in groups {
                @let url = group[0].0;
                @let name = name(url, start);
                @let share = weight.share(whole);
                @if group.len() == 1 && start + name.len() == url.len() {
                    @let shown = if name.is_empty() { "(files of this directory)" } else { name };
                    div.line { (line(&link(url, shown), share, &weight.text())) }
                } @else {
                    details open[is_alone] {
                        summary { (line(&html! { (terminal::neutralise(name)) }, share, &weight.text())) }
                        (branch(group, start + name.len(), whole))
                    }
                }
            }
        }
    }
}

/// The part of a URL from `start` up to the next slash, which is a part of it. The first part is the host.
fn name(url: &str, start: usize) -> &str {
    let end = slashes(url).find(|end| *end > start);
    &url[start..end.unwrap_or(url.len())]
}

/// The offsets behind the slashes of the path.
fn slashes(url: &str) -> impl Iterator<Item = usize> {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..]
        .match_indices('/')
        .map(move |(at, _)| host + at + 1)
}

fn sum(entries: &[(&str, Weight)]) -> Weight {
    let mut sum = Weight::default();
    entries.iter().for_each(|(_, weight)| sum.add(*weight));
    sum
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files += other.files;
    }

    /// The share of the bytes, or of the files if no size is known.
    fn share(self, whole: Self) -> f64 {
        match whole.bytes {
            0 => self.files as f64 / whole.files as f64,
            bytes => self.bytes as f64 / bytes as f64,
        }
    }

    fn text(self) -> String {
        let files = count(self.files, "file", "files");
        match self.bytes {
            0 => files,
            bytes => format!("{}, {files}", size(bytes)),
        }
    }
}

/// Deeper directories are counted for their ancestors in any case: the tree is drawn by recursion.
const DEEPEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes<'u>(most: usize, files: impl IntoIterator<Item = &'u str>) -> Sizes {
        let mut sizes = Sizes::new(most);
        for url in files {
            sizes.add(&Found {
                url,
                size: Some(SizeRange::exact(10)),
                ..Found::FILE
            });
            assert!(sizes.weights.len() <= most);
        }
        sizes
    }

    #[test]
    fn what_is_too_much_is_counted_for_the_directories_above_it() {
        let urls = (0..300).map(|i| format!("http://h/{}/{}/{i}/file", i % 4, i % 3));
        let urls: Vec<String> = urls.collect();
        let sizes = sizes(10, urls.iter().map(String::as_str));
        let urls: Vec<_> = sizes.weights.keys().map(String::as_str).collect();
        assert_eq!(
            urls,
            ["http://h/0/", "http://h/1/", "http://h/2/", "http://h/3/"]
        );
        let weight = sizes.weights["http://h/3/"];
        assert_eq!((weight.files, weight.bytes), (75, 750));
    }

    #[test]
    fn a_directory_may_be_an_entry_beside_those_below_it() {
        let files = "http://h/a/x http://h/a/y http://h/a/b/z http://h/c";
        let mut sizes = sizes(9, files.split(' '));
        sizes.shrink();
        let urls: Vec<_> = sizes.weights.keys().map(String::as_str).collect();
        assert_eq!(urls, ["http://h/", "http://h/a/", "http://h/a/b/"]);
        let tree = sizes.tree().expect("files").into_string();
        assert_eq!(tree.matches("(files of this directory)").count(), 2);
        assert_eq!(tree.matches("<details").count(), 2);
    }

    #[test]
    fn endless_paths_are_no_endless_recursion() {
        let deep = format!("http://h/{}", "a/".repeat(100_000));
        let tree = sizes(9, [deep.as_str()]).tree().expect("a file");
        assert!(tree.into_string().matches("<details").count() <= DEEPEST);
    }
}
