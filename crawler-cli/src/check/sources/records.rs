//! Lines of lists and records, one at a time.

use std::io::{self, BufRead as _};

use super::open::{BOM, Source};
use super::outlet::Outlet;
use super::{ProblemKind, document};

/// Lines of a source. Memory grows with one line, never with the source.
pub(super) struct Lines {
    reader: Source,
    /// The current line, without its end.
    line: Vec<u8>,
    number: u32,
    longest: usize,
    /// How much of a line that is too long is skipped before the source is given up.
    max_size: u64,
}

impl Lines {
    pub(super) fn new(reader: Source, longest: usize, max_size: u64) -> Self {
        Self {
            reader,
            line: Vec::new(),
            number: 0,
            longest,
            max_size,
        }
    }

    /// The next line, without its end, and its number from 1. Lines that are too long are reported and skipped. Before
    /// waiting for input, what was gathered goes out.
    pub(super) fn next(&mut self, outlet: &mut Outlet) -> io::Result<Option<(u32, &[u8])>> {
        while !outlet.is_stopped() {
            self.line.clear();
            let Some(length) = self.read(outlet)? else {
                return Ok(None);
            };
            self.number = self.number.saturating_add(1);
            if length <= self.line.len() as u64 {
                let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
                let line = match self.number {
                    1 => line.strip_prefix(BOM).unwrap_or(line),
                    _ => line,
                };
                return Ok(Some((self.number, line)));
            }
            let detail = format!("the line is longer than {} bytes", self.longest);
            outlet.line_problem(self.number, ProblemKind::TooLong, detail);
            if self.is_hopeless(length) {
                let detail = document::too_long(self.max_size);
                outlet.problem(Some(self.number), ProblemKind::TooLong, detail);
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Whether a line of this length is not worth to be read to its end.
    fn is_hopeless(&self, length: u64) -> bool {
        length > self.longest as u64 && length > self.max_size
    }

    /// Reads a line, as much as is kept of it. Returns its length; `None` at the end of the source.
    fn read(&mut self, outlet: &mut Outlet) -> io::Result<Option<u64>> {
        let mut length = 0;
        let mut is_end = true;
        loop {
            if self.reader.buffer().is_empty() {
                outlet.flush();
            }
            let bytes = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            if bytes.is_empty() {
                return Ok((!is_end).then_some(length));
            }
            is_end = false;
            let end = memchr::memchr(b'\n', bytes);
            let part = end.unwrap_or(bytes.len());
            length += part as u64;
            let room = self.longest.saturating_sub(self.line.len());
            self.line.extend_from_slice(&bytes[..part.min(room)]);
            let consumed = end.map_or(part, |end| end + 1);
            self.reader.consume(consumed);
            if end.is_some() || self.is_hopeless(length) || outlet.is_stopped() {
                return Ok(Some(length));
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

/// Longest line of a list of URLs in bytes. No server takes longer URLs.
pub(super) const LONGEST_URL: usize = 64 << 10;
/// Longest record of JSON lines or CSV in bytes.
pub(super) const LONGEST_RECORD: usize = 16 << 20;
