//! The tree map of sizes by directory: nested rectangles whose areas are the shares (Bruls, Huizing, van Wijk:
//! Squarified Treemaps, 2000).

use std::collections::BTreeMap;

use maud::{Markup, html};
use percent_encoding::percent_decode_str;

use super::sizes::{Sizes, Weight, host_length};
use super::statistics::size_text;
use crate::terminal;

/// The tree map: of bytes if any size is known, otherwise of numbers of files. `None` if there are no files.
pub(super) fn treemap(sizes: &Sizes, width: f64, height: f64) -> Option<Markup> {
    let mut root = Node::default();
    for (url, weight) in sizes.weights() {
        root.insert(url, weight);
    }
    if root.all.files == 0 {
        return None;
    }
    let root = root.without_corridors();
    let map = Map {
        by_bytes: sizes.has_sizes(),
    };
    let area = Area {
        x: 0.0,
        y: 0.0,
        width,
        height,
    };
    let frame = Branch {
        path: "",
        level: 0,
        hue: None,
    };
    Some(html! {
        svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label="Tree map of sizes" {
            (map.directory(&root, frame, area))
        }
    })
}

/// A directory or a file of the tree map.
#[derive(Debug, Default)]
struct Node {
    is_file: bool,
    /// Of a directory: its files without an entry of their own. Of a file: the file.
    own: Weight,
    /// The sum of `own` and everything below.
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

    /// Joins the chain of directories at the top that have a single entry into one frame. Several hosts each get their
    /// own rectangle.
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

/// What the areas mean.
struct Map {
    /// Areas are shares of bytes, otherwise of numbers of files.
    by_bytes: bool,
}

/// The position of a directory in the tree.
#[derive(Clone, Copy)]
struct Branch<'a> {
    path: &'a str,
    level: usize,
    /// The index of the colour; set at the first level with more than one rectangle.
    hue: Option<usize>,
}

/// A rectangle: a file, a directory, or the files of a directory without entries of their own.
struct Part<'a> {
    name: &'a str,
    /// `None`: the files without entries of their own.
    node: Option<&'a Node>,
    weight: Weight,
}

impl Map {
    /// Draws the content of a directory.
    fn directory(&self, node: &Node, branch: Branch<'_>, area: Area) -> Markup {
        let mut parts: Vec<_> = node
            .below
            .iter()
            .map(|(name, node)| Part {
                name,
                node: Some(node),
                weight: node.all,
            })
            .collect();
        if node.own.files > 0 && !parts.is_empty() {
            parts.push(Part {
                name: "",
                node: None,
                weight: node.own,
            });
        }
        let share = |part: &Part<'_>| part.weight.of(self.by_bytes);
        parts.retain(|part| share(part) > 0.0);
        parts.sort_by(|a, b| share(b).total_cmp(&share(a)));
        let shares: Vec<f64> = parts.iter().map(share).collect();
        let areas = squarify(&shares, area);
        let visible = |area: &Area| {
            area.width.min(area.height) >= 2.0 && area.width * area.height >= SMALLEST
        };
        html! {
            @for (i, (part, area)) in parts.iter().zip(areas).enumerate().filter(|(_, (_, area))| visible(area)) {
                @let path = match branch.path {
                    "" => part.name.to_owned(),
                    path => format!("{path}/{}", part.name),
                };
                @let hue = match (branch.level, parts.len()) {
                    // A single rectangle at the top is the frame of the map.
                    (0, 1) => None,
                    _ => Some(branch.hue.unwrap_or(i % HUES)),
                };
                (self.rectangle(part, Branch { path: &path, level: branch.level, hue }, area))
            }
        }
    }

    fn rectangle(&self, part: &Part<'_>, branch: Branch<'_>, area: Area) -> Markup {
        let Area {
            x,
            y,
            width,
            height,
        } = area;
        let hue = branch.hue.map_or_else(String::new, |hue| hue.to_string());
        let inner = Area {
            x: x + 2.0,
            y: y + 17.0,
            width: width - 4.0,
            height: height - 19.0,
        };
        html! {
            g {
                title { (decoded(branch.path)) (part.description()) }
                rect class={ "h" (hue) " l" (branch.level.min(4)) } x=(px(x)) y=(px(y)) width=(px(width)) height=(px(height)) {}
                @if width > 44.0 && height > 17.0 {
                    text x=(px(x + 5.0)) y=(px(y + 12.5)) { (shortened(&part.label(), ((width - 8.0) / 7.2) as usize)) }
                }
            }
            @if let Some(node) = part.node && !node.below.is_empty() && width > 24.0 && height > 34.0 {
                (self.directory(node, Branch { level: branch.level + 1, ..branch }, inner))
            }
        }
    }
}

impl Part<'_> {
    /// The tooltip after the path.
    fn description(&self) -> String {
        match self.node {
            // A file of unknown size.
            Some(node) if node.is_file && self.weight.bytes == 0 => String::new(),
            Some(node) if node.is_file => format!(" – {}", size_text(self.weight.bytes)),
            Some(_) => format!("/ – {}", self.weight.text()),
            None => format!(" (files) – {}", self.weight.text()),
        }
    }

    fn label(&self) -> String {
        let name = match self.node {
            Some(_) => self.name,
            None => "files",
        };
        // Drop the scheme: a small rectangle would show nothing else.
        decoded(name.split_once("://").map_or(name, |(_, host)| host))
    }
}

/// A length in SVG user units.
pub(crate) fn px(length: f64) -> String {
    format!("{length:.1}")
}

/// A decoded path, with control characters escaped.
fn decoded(path: &str) -> String {
    let text = percent_decode_str(path).decode_utf8_lossy();
    terminal::neutralise(&text).into_owned()
}

fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(room.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Rectangles that fill `area` in proportion to the weights, in their order. Weights are positive and in descending
/// order.
fn squarify(weights: &[f64], mut area: Area) -> Vec<Area> {
    let mut areas = Vec::with_capacity(weights.len());
    let mut left: f64 = weights.iter().sum();
    let mut at = 0;
    while at < weights.len() {
        // A row along the shorter side takes further weights while they make its rectangles more square.
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

/// The number of colours.
const HUES: usize = 8;

/// The smallest area that is drawn, in square pixels. Bounds the number of rectangles.
const SMALLEST: f64 = 80.0;
