//! How much is in which directory and file, within a bounded memory, and its picture: rectangles within rectangles, each
//! as large as its share (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use percent_encoding::percent_decode_str;

use super::html::escape;
use super::statistics::{count, size_text};
use crate::find::range::SizeRange;
use crate::find::{Found, Kind};

/// Files and their bytes, by file as long as there are not too many, and then by directory.
#[derive(Debug)]
pub(super) struct Sizes {
    /// By URL. That of a directory ends in `/`.
    weights: BTreeMap<String, Weight>,
    kept: Kept,
    most: usize,
}

/// What is kept apart. Falls when it is too much.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    Files,
    Directories,
    /// What is deeper below its host is counted for the directory of this depth above it.
    DownTo(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Weight {
    bytes: u64,
    files: u64,
}

impl Sizes {
    /// Keeps `most` apart at the most, but for hosts.
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

    /// Counts files, or the deepest directories, for those that hold them.
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

    /// Whether any size is known.
    pub(super) fn has_sizes(&self) -> bool {
        self.weights.values().any(|weight| weight.bytes > 0)
    }

    /// The picture, of bytes if any are known, and else of files; `None` if there are none.
    pub(super) fn svg(&self, width: f64, height: f64) -> Option<String> {
        if self.weights.is_empty() {
            return None;
        }
        let mut root = Node::default();
        for (url, &weight) in &self.weights {
            root.insert(url, weight);
        }
        let by_bytes = self.has_sizes();
        let root = root.without_corridors();
        let mut map = Map {
            by_bytes,
            svg: format!(
                "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Tree map of sizes\">"
            ),
        };
        let area = Area {
            x: 0.0,
            y: 0.0,
            width,
            height,
        };
        map.directory(&root, "", area, 0, None);
        Some(map.svg + "</svg>")
    }
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files += other.files;
    }

    fn of(self, by_bytes: bool) -> f64 {
        (if by_bytes { self.bytes } else { self.files }) as f64
    }

    fn text(self) -> String {
        let files = count(self.files, "file", "files");
        match self.bytes {
            0 => files,
            bytes => format!("{}, {files}", size_text(bytes)),
        }
    }
}

impl Kept {
    /// The URL that a file or a directory is counted for.
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

/// Where the path begins.
fn host_length(url: &str) -> usize {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url.len(), |at| host + at)
}

/// A directory of the picture, or a file.
#[derive(Debug, Default)]
struct Node {
    is_file: bool,
    /// Of the files in it that are not kept apart; of a file, its own.
    own: Weight,
    /// Of all below it, too.
    all: Weight,
    below: BTreeMap<String, Node>,
}

impl Node {
    fn insert(&mut self, url: &str, weight: Weight) {
        let (host, path) = url.split_at(host_length(url));
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        self.all.add(weight);
        let mut node = self;
        for segment in std::iter::once(host).chain(segments) {
            node = node.below.entry(segment.to_owned()).or_default();
            node.all.add(weight);
        }
        node.own.add(weight);
        node.is_file = !url.ends_with('/');
    }

    /// Starts at the first directory that has more in it than one entry, as the only one in its picture. Of
    /// several hosts, each has a part of the picture.
    fn without_corridors(mut self) -> Self {
        let mut name = String::new();
        while self.own.files == 0
            && self.below.len() == 1
            && let Some(entry) = self.below.first_entry()
            && !entry.get().is_file
        {
            let (segment, node) = entry.remove_entry();
            name = if name.is_empty() {
                segment
            } else {
                format!("{name}/{segment}")
            };
            self = node;
        }
        if name.is_empty() {
            return self;
        }
        let all = self.all;
        Self {
            below: BTreeMap::from([(name, self)]),
            all,
            ..Self::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// A picture under way.
struct Map {
    by_bytes: bool,
    svg: String,
}

impl Map {
    /// What is in a directory. `hue` is that of the branch, once there is one.
    fn directory(&mut self, node: &Node, path: &str, area: Area, level: usize, hue: Option<usize>) {
        let mut parts: Vec<(&str, Option<&Node>, Weight)> = node
            .below
            .iter()
            .map(|(name, node)| (name.as_str(), Some(node), node.all))
            .collect();
        if node.own.files > 0 && !parts.is_empty() {
            parts.push(("", None, node.own));
        }
        parts.retain(|(.., weight)| weight.of(self.by_bytes) > 0.0);
        parts.sort_by(|(.., a), (.., b)| b.of(self.by_bytes).total_cmp(&a.of(self.by_bytes)));
        let weights: Vec<f64> = parts
            .iter()
            .map(|(.., weight)| weight.of(self.by_bytes))
            .collect();
        for (i, ((name, node, weight), area)) in
            parts.iter().zip(squarify(&weights, area)).enumerate()
        {
            if area.width.min(area.height) < 2.0 || area.width * area.height < SMALLEST {
                continue;
            }
            // One at the top is the frame of all.
            let hue = match (level, weights.len()) {
                (0, 1) => None,
                _ => Some(hue.unwrap_or(i % HUES)),
            };
            let path = if path.is_empty() {
                (*name).to_owned()
            } else {
                format!("{path}/{name}")
            };
            self.rectangle(&path, name, *node, *weight, area, level, hue);
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a rectangle needs, in one place"
    )]
    fn rectangle(
        &mut self,
        path: &str,
        name: &str,
        node: Option<&Node>,
        weight: Weight,
        area: Area,
        level: usize,
        hue: Option<usize>,
    ) {
        let Area {
            x,
            y,
            width,
            height,
        } = area;
        let class = hue.map_or_else(|| "h".to_owned(), |hue| format!("h{hue}"));
        // Writing to a string does not fail.
        let _ = write!(
            self.svg,
            "<g><title>{}{}{}</title><rect class=\"{class} l{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
            escape(&decoded(path)),
            match node {
                Some(node) if node.is_file => "",
                Some(_) => "/",
                None => " (files)",
            },
            match node {
                // Its only file.
                Some(node) if node.is_file && weight.bytes == 0 => String::new(),
                Some(node) if node.is_file => format!(" – {}", size_text(weight.bytes)),
                _ => format!(" – {}", weight.text()),
            },
            level.min(4),
        );
        let labelled = width > 44.0 && height > 17.0;
        if labelled {
            let label = if node.is_some() {
                // Of many hosts, the scheme would be all that has room.
                decoded(name.split_once("://").map_or(name, |(_, host)| host))
            } else {
                "files".to_owned()
            };
            let room = ((width - 8.0) / 7.2) as usize;
            let _ = write!(
                self.svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 5.0,
                y + 12.5,
                escape(&shortened(&label, room))
            );
        }
        self.svg.push_str("</g>");
        if let Some(node) = node
            && !node.below.is_empty()
            && width > 24.0
            && height > 34.0
        {
            let inner = Area {
                x: x + 2.0,
                y: y + 17.0,
                width: width - 4.0,
                height: height - 19.0,
            };
            self.directory(node, path, inner, level + 1, hue);
        }
    }
}

fn decoded(path: &str) -> String {
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}

fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(room.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Rectangles that fill `area`, in the order of the weights, which fall and are not zero.
fn squarify(weights: &[f64], mut area: Area) -> Vec<Area> {
    let mut areas = Vec::with_capacity(weights.len());
    let mut left: f64 = weights.iter().sum();
    let mut at = 0;
    while at < weights.len() {
        // As many in one row along the shorter side as make its rectangles more like squares.
        let side = area.width.min(area.height).max(f64::MIN_POSITIVE);
        let scale = area.width * area.height / left;
        let mut end = at + 1;
        let mut sum = weights[at];
        let worst = |sum: f64, least: f64, most: f64| {
            let row = sum * scale;
            let squared = side * side;
            (squared * most * scale / (row * row)).max(row * row / (squared * least * scale))
        };
        let mut now = worst(sum, weights[at], weights[at]);
        while end < weights.len() {
            let next = worst(sum + weights[end], weights[end], weights[at]);
            if next > now {
                break;
            }
            sum += weights[end];
            now = next;
            end += 1;
        }
        let thickness = sum * scale / side;
        let along_height = area.width >= area.height;
        let mut offset = 0.0;
        for weight in &weights[at..end] {
            let length = side * weight / sum;
            areas.push(if along_height {
                Area {
                    x: area.x,
                    y: area.y + offset,
                    width: thickness,
                    height: length,
                }
            } else {
                Area {
                    x: area.x + offset,
                    y: area.y,
                    width: length,
                    height: thickness,
                }
            });
            offset += length;
        }
        if along_height {
            area.x += thickness;
            area.width = (area.width - thickness).max(0.0);
        } else {
            area.y += thickness;
            area.height = (area.height - thickness).max(0.0);
        }
        left -= sum;
        at = end;
    }
    areas
}

/// Colours of branches.
pub(super) const HUES: usize = 8;

/// Smaller rectangles are left out, in pixels. Bounds how many there are.
const SMALLEST: f64 = 80.0;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rectangles_fill_the_area_by_their_weights() {
        let area = Area {
            x: 10.0,
            y: 20.0,
            width: 600.0,
            height: 400.0,
        };
        let weights = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let areas = squarify(&weights, area);
        for (weight, part) in weights.iter().zip(&areas) {
            let size = part.width * part.height;
            assert!((size - weight * 10_000.0).abs() < 1e-6, "{part:?}");
            assert!(part.x >= 10.0 - 1e-9 && part.x + part.width <= 610.0 + 1e-9);
            assert!(part.y >= 20.0 - 1e-9 && part.y + part.height <= 420.0 + 1e-9);
            assert!(part.width / part.height < 4.0 && part.height / part.width < 4.0);
        }
        for (i, a) in areas.iter().enumerate() {
            for b in &areas[..i] {
                let apart = a.x + a.width <= b.x + 1e-6
                    || b.x + b.width <= a.x + 1e-6
                    || a.y + a.height <= b.y + 1e-6
                    || b.y + b.height <= a.y + 1e-6;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn what_is_too_much_is_counted_for_the_directories_above_it() {
        let mut sizes = Sizes::new(10);
        for i in 0..100 {
            for j in 0..3 {
                let url = format!("http://h/{}/{j}/{i}/file", i % 4);
                let found = Found {
                    url: &url,
                    path: b"",
                    name: b"",
                    kind: Kind::File,
                    depth: 3,
                    start: b"/",
                    size: Some(SizeRange::exact(10)),
                    modified: None,
                    asked: false,
                    status: None,
                    attempts: 1,
                    took: Duration::ZERO,
                    empty: None,
                    listing: None,
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
