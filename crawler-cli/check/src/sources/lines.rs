//! Lines of lists, one at a time.

use std::io::{self, BufRead as _};

use super::ProblemKind;
use super::open::{BOM, Source};
use super::outlet::Outlet;

/// Lines of a source. Memory grows with one line, never with the source.
pub(super) struct Lines {
    reader: Source,
    /// The current line, without its end.
    line: Vec<u8>,
    number: u32,
}

impl Lines {
    pub(super) fn new(reader: Source) -> Self {
        Self {
            reader,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line, without its end, and its number from 1. A line that is too long is reported, and ends the reading.
    /// Before waiting for input, what was gathered goes out.
    pub(super) fn next(&mut self, outlet: &mut Outlet) -> io::Result<Option<(u32, &[u8])>> {
        self.line.clear();
        if outlet.is_stopped() || !self.read(outlet)? {
            return Ok(None);
        }
        self.number = self.number.saturating_add(1);
        if self.line.len() > LONGEST {
            let detail = format!("the line is longer than {LONGEST} bytes, the rest is not read");
            outlet.problem(Some(self.number), ProblemKind::TooLong, detail);
            return Ok(None);
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let line = match self.number {
            1 => line.strip_prefix(BOM).unwrap_or(line),
            _ => line,
        };
        Ok(Some((self.number, line)))
    }

    /// Reads a line, which ends at a line feed or a NUL, or as much of it as tells that it is too long. Returns whether there
    /// is one.
    fn read(&mut self, outlet: &mut Outlet) -> io::Result<bool> {
        let mut is_there = false;
        loop {
            if self.reader.buffer().is_empty() {
                outlet.flush();
            }
            let bytes = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            if bytes.is_empty() {
                return Ok(is_there);
            }
            is_there = true;
            let end = memchr::memchr2(b'\n', 0, bytes);
            self.line
                .extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            let consumed = end.map_or(bytes.len(), |end| end + 1);
            self.reader.consume(consumed);
            if end.is_some() || self.line.len() > LONGEST || outlet.is_stopped() {
                return Ok(true);
            }
        }
    }
}

/// The column of a byte of a line: code points, from 1. Bytes that are not UTF-8 count as U+FFFD.
pub(super) fn column(line: &[u8], at: usize) -> u32 {
    let before = &line[..at.min(line.len())];
    let count: usize = before
        .utf8_chunks()
        .map(|chunk| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty()))
        .sum();
    u32::try_from(count).map_or(u32::MAX, |count| count.saturating_add(1))
}

/// Longest line in bytes.
const LONGEST: usize = 16 << 20;
