//! Documents: their links, resolved.

use std::io::{self, Read};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::ProblemKind;
use super::open::Source;
use super::outlet::{Outlet, Place};
use super::resolve::{Base, Resolver};
use crate::check::links::{Document, Format, Link, Visitor, XmlFault};

/// How a document is read.
pub(super) struct Reading<'r> {
    pub(super) format: Format,
    pub(super) max_size: u64,
    pub(super) resolver: &'r Resolver,
    pub(super) base: &'r Base,
}

impl Reading<'_> {
    /// Reads all links. Returns the fingerprint of the bytes, or nothing if the document was not read completely.
    pub(super) fn read(&self, reader: Source, outlet: &mut Outlet) -> io::Result<Option<u128>> {
        match self.format {
            Format::Text => self.text(reader, outlet),
            _ => self.whole(reader, outlet),
        }
    }

    fn whole(&self, reader: impl Read, outlet: &mut Outlet) -> io::Result<Option<u128>> {
        let mut bytes = Vec::new();
        let read = reader.take(self.max_size + 1).read_to_end(&mut bytes);
        if bytes.len() as u64 > self.max_size {
            outlet.problem(None, ProblemKind::TooLong, too_long(self.max_size));
            return Ok(None);
        }
        let is_cut = match read {
            Ok(_) => false,
            Err(error) if is_damaged(&error) => {
                report_damage(&error, outlet);
                true
            }
            Err(error) => return Err(error),
        };
        self.links(&bytes, 0, !is_cut, outlet);
        Ok((!is_cut).then(|| xxh3_128(&bytes)))
    }

    /// Plain text is read piece by piece: it may be larger than memory.
    fn text(&self, mut reader: Source, outlet: &mut Outlet) -> io::Result<Option<u128>> {
        let mut hash = Xxh3::new();
        let mut bytes: Vec<u8> = Vec::with_capacity(PIECE);
        let mut lines = 0;
        let mut is_first = true;
        while !outlet.is_stopped() {
            let old = bytes.len();
            let read = (&mut reader).take(PIECE as u64).read_to_end(&mut bytes);
            hash.update(&bytes[old..]);
            if is_first && (bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")) {
                // UTF-16: line ends are not single bytes.
                return self.whole(io::Cursor::new(bytes).chain(reader), outlet);
            }
            is_first = false;
            let is_end = read.is_err() || bytes.len() - old < PIECE;
            let end = match memchr::memrchr(b'\n', &bytes) {
                _ if is_end => bytes.len(),
                Some(end) => end + 1,
                None if bytes.len() as u64 > self.max_size => {
                    outlet.problem(None, ProblemKind::TooLong, too_long(self.max_size));
                    return Ok(None);
                }
                None => continue,
            };
            self.links(&bytes[..end], lines, true, outlet);
            let ended = memchr::memchr_iter(b'\n', &bytes[..end]).count();
            lines = lines.saturating_add(u32::try_from(ended).unwrap_or(u32::MAX));
            bytes.drain(..end);
            read?;
            if is_end {
                return Ok(Some(hash.digest128()));
            }
        }
        Ok(None)
    }

    /// Reads the links of a document or of a part that begins after `lines` lines.
    fn links(&self, bytes: &[u8], lines: u32, is_whole: bool, outlet: &mut Outlet) {
        let document = Document::new(self.format, bytes, None);
        let base = self.resolver.within(self.base, document.base().as_deref());
        let mut links = Links {
            resolver: self.resolver,
            base: &base,
            lines,
            outlet,
        };
        // If the data was cut, so is the document, which was said already.
        if let Err(error) = document.read(&mut links)
            && is_whole
        {
            let kind = match error.fault {
                XmlFault::Cut => ProblemKind::Cut,
                _ => ProblemKind::Malformed,
            };
            outlet.problem(Some(error.line), kind, error.to_string());
        }
    }
}

/// Gets the links of a document.
struct Links<'l> {
    resolver: &'l Resolver,
    base: &'l Base,
    lines: u32,
    outlet: &'l mut Outlet,
}

impl Visitor for Links<'_> {
    fn link(&mut self, link: Link<'_>) {
        let place = Place {
            line: link.line.saturating_add(self.lines),
            column: link.column,
            text: &link.text,
        };
        self.outlet
            .add(place, self.resolver.resolve(&link.url, self.base));
    }

    fn is_done(&self) -> bool {
        self.outlet.is_stopped()
    }
}

/// Whether compressed data is cut or damaged: what was read before that is good.
pub(super) fn is_damaged(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

pub(super) fn report_damage(error: &io::Error, outlet: &mut Outlet) {
    let detail = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the gzip data is cut: only the part before was read".to_owned()
        }
        _ => format!("the gzip data is damaged ({error}): only the part before was read"),
    };
    outlet.problem(None, ProblemKind::Cut, detail);
}

pub(super) fn too_long(limit: u64) -> String {
    format!("longer than {limit} bytes (--max-size), not read")
}

/// How much plain text is read at once.
const PIECE: usize = 256 << 10;
