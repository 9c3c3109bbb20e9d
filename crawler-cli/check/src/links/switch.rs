//! Comments that switch links off.

use memchr::{memchr2, memmem, memrchr2};

/// Which links are wanted, by the comments so far.
#[derive(Debug)]
pub(super) struct Switch<'t> {
    text: &'t str,
    is_off: bool,
    /// The line that `disable-next-line` names.
    next_line: Option<u32>,
    /// The text has `disable-line` somewhere.
    has_lines: bool,
    /// The line that was asked about last, and whether a comment in that line switches the line off.
    last: Option<(u32, bool)>,
}

impl<'t> Switch<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            is_off: false,
            next_line: None,
            has_lines: memmem::find(text.as_bytes(), LINE.as_bytes()).is_some(),
            last: None,
        }
    }

    /// A comment that ends in `line`.
    pub(super) fn comment(&mut self, comment: &str, line: impl FnOnce() -> u32) {
        let comment = comment.trim();
        let ours = comment.strip_prefix("crawler-check-");
        let Some(word) = ours.or_else(|| comment.strip_prefix("markdown-link-check-")) else {
            return;
        };
        match word {
            "disable" => self.is_off = true,
            "enable" => self.is_off = false,
            "disable-next-line" => self.next_line = Some(line() + 1),
            _ => {}
        }
    }

    /// Whether a link at this offset, in this line, is wanted.
    pub(super) fn wants(&mut self, at: usize, line: u32) -> bool {
        !self.is_off && self.next_line != Some(line) && !self.is_off_in_line(at, line)
    }

    /// A link can stand before the comment: the whole line is searched.
    fn is_off_in_line(&mut self, at: usize, line: u32) -> bool {
        if !self.has_lines {
            return false;
        }
        if let Some((last, is_off)) = self.last
            && last == line
        {
            return is_off;
        }
        let text = self.text.as_bytes();
        let start = memrchr2(b'\n', b'\r', &text[..at]).map_or(0, |end| end + 1);
        let end = memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |end| at + end);
        let is_off = memmem::find(&text[start..end], LINE.as_bytes()).is_some();
        self.last = Some((line, is_off));
        is_off
    }
}

/// The end of both comments for a line.
const LINE: &str = "-check-disable-line";
