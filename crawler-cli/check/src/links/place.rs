//! Lines and columns of a text.

use memchr::{memchr, memrchr2};

/// A line and a column, both from 1; columns in code points. Lines end with LF, CR LF or CR.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Finds the places of offsets in a text. Going forward reads each byte of the text once.
#[derive(Debug)]
pub(super) struct Places<'t> {
    text: &'t [u8],
    /// The text has a CR.
    has_cr: bool,
    at: usize,
    place: Place,
}

impl<'t> Places<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let text = text.as_bytes();
        Self {
            text,
            has_cr: memchr(b'\r', text).is_some(),
            at: 0,
            place: Place { line: 1, column: 1 },
        }
    }

    /// The place of the character at this offset in bytes. The offset is not between the CR and the LF of a CR LF.
    pub(super) fn of(&mut self, at: usize) -> Place {
        if at < self.at {
            self.go_back(at);
        }
        let passed = &self.text[self.at..at];
        match self.lines(passed, at) {
            0 => self.place.column = add(self.place.column, characters(passed)),
            lines => {
                self.place.line = add(self.place.line, lines);
                self.place.column = add(1, characters(last_line(passed)));
            }
        }
        self.at = at;
        self.place
    }

    fn go_back(&mut self, at: usize) {
        let lines = self.lines(&self.text[at..self.at], self.at);
        self.place.line = self.place.line.saturating_sub(lines as u32);
        self.place.column = add(1, characters(last_line(&self.text[..at])));
        self.at = at;
    }

    /// Number of line ends in `passed`, which ends at `end`. A CR LF counts where its LF is.
    fn lines(&self, passed: &[u8], end: usize) -> usize {
        let lf = passed.iter().filter(|&&byte| byte == b'\n').count();
        if !self.has_cr {
            return lf;
        }
        let next = passed[passed.len().min(1)..].iter();
        let next = next.chain(self.text.get(end));
        let pairs = passed.iter().zip(next.map(Some).chain([None]));
        let is_lone = |&(&byte, next): &(&u8, Option<&u8>)| byte == b'\r' && next != Some(&b'\n');
        lf + pairs.filter(is_lone).count()
    }
}

fn add(number: u32, more: usize) -> u32 {
    number.saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
}

/// Number of code points: of bytes that are no continuation.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

/// What follows the last line end.
fn last_line(text: &[u8]) -> &[u8] {
    let end = memrchr2(b'\n', b'\r', text);
    &text[end.map_or(0, |end| end + 1)..]
}
