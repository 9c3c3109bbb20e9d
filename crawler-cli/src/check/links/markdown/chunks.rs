//! Large Markdown in chunks of whole blocks. A definition holds for all chunks: a first pass finds the definitions and the
//! borders between chunks.

use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr, memrchr2};
use pulldown_cmark::{Event, Parser};

use super::EXTENSIONS;

/// How a document is cut, and what all of it defines.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Where the chunks end. The first one begins where the document does.
    pub(super) ends: Vec<usize>,
    /// Empty if there is only one chunk: then the parser knows all definitions.
    pub(super) definitions: Definitions,
}

/// The URLs of link references, by label.
#[derive(Debug, Default)]
pub(super) struct Definitions(HashMap<String, String>);

impl Definitions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, label: &str) -> Option<&str> {
        match self.is_empty() {
            true => None,
            false => self.0.get(&normal(label)).map(String::as_str),
        }
    }
}

/// Labels match whatever their case and blanks (CommonMark §4.7).
fn normal(label: &str) -> String {
    let words: Vec<&str> = label.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

impl Chunks {
    /// Cuts the text from `start` on into chunks of about `size` bytes. A block that is larger is one chunk.
    pub(super) fn of(text: &str, start: usize, size: usize) -> Self {
        let mut chunks = Self::default();
        let mut start = start;
        let mut wanted = size.max(1);
        while text.len() - start > wanted {
            let end = line_end(text, start + wanted);
            let last = match end < text.len() {
                true => chunks.scan(text, start..end),
                false => start,
            };
            if last > start {
                chunks.ends.push(last);
                start = last;
                wanted = size.max(1);
            } else {
                wanted = wanted.saturating_mul(2);
            }
        }
        if !chunks.ends.is_empty() {
            chunks.scan(text, start..text.len());
        }
        chunks.ends.push(text.len());
        chunks
    }

    /// Returns where the last block behind a blank line begins in a range: what follows the range can change the last block,
    /// but none before.
    /// Notes the definitions before that place, or all if the range ends where the text does.
    fn scan(&mut self, text: &str, range: Range<usize>) -> usize {
        let inside = &text[range.clone()];
        let mut events = Parser::new_ext(inside, EXTENSIONS).into_offset_iter();
        let (mut depth, mut last) = (0_usize, 0);
        for (event, place) in events.by_ref() {
            if depth == 0 {
                // Without a blank line before, definitions before the block can decide what the block is.
                let start = line_start(inside, place.start);
                if is_behind_blank_line(inside, start) {
                    last = start;
                }
            }
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                _ => {}
            }
        }
        let known = match range.end == text.len() {
            true => range.len(),
            false => last,
        };
        for (label, definition) in events.reference_definitions().iter() {
            if definition.span.start < known {
                self.define(label, &definition.dest);
            }
        }
        range.start + last
    }

    fn define(&mut self, label: &str, url: &str) {
        // The first definition of a label counts.
        let known = self.definitions.0.entry(normal(label));
        known.or_insert_with(|| url.to_owned());
    }
}

/// The start of the line at this offset.
fn line_start(text: &str, at: usize) -> usize {
    memrchr2(b'\n', b'\r', &text.as_bytes()[..at]).map_or(0, |end| end + 1)
}

/// Whether the line before the one that begins here is blank.
fn is_behind_blank_line(text: &str, start: usize) -> bool {
    let Some(before) = text[..start].strip_suffix('\n') else {
        return false;
    };
    let line = before.rsplit('\n').next().unwrap_or(before);
    line.bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// The end of the line at this offset, behind its line feed.
fn line_end(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    memchr(b'\n', rest).map_or(text.len(), |end| at + end + 1)
}
