//! Documents: their links, resolved.

use std::io::{self, Read as _};

use super::ProblemKind;
use super::open::Source;
use super::outlet::{Outlet, Place};
use super::resolve::{Base, Resolver};
use crate::links::{Document, Format, Link, Visitor, XmlError};

/// Reads all links of a document, if it has no more than `max_size` bytes.
pub(super) fn read(
    format: Format,
    reader: Source,
    max_size: u64,
    resolver: &Resolver,
    base: &Base,
    outlet: &mut Outlet,
) -> io::Result<()> {
    let max_size = format.longest(max_size);
    let mut bytes = Vec::new();
    let read = reader
        .take(max_size.saturating_add(1))
        .read_to_end(&mut bytes);
    if bytes.len() as u64 > max_size {
        let detail = format!("longer than {max_size} bytes, not read");
        outlet.problem(None, ProblemKind::TooLong, detail);
        return Ok(());
    }
    let is_whole = match read {
        Ok(_) => true,
        Err(error) if is_damaged(&error) => {
            report_damage(&error, outlet);
            false
        }
        Err(error) => return Err(error),
    };
    let document = Document::new(format, &bytes, None);
    let mut links = Links {
        resolver,
        base: &resolver.within(base, document.base().as_deref(), document.encoding()),
        outlet,
    };
    // If the data was cut, so is the document, which was said already.
    if let Err(error) = document.read(&mut links)
        && is_whole
    {
        outlet.problem(Some(error.line), ProblemKind::Cut, error.to_string());
    }
    outlet.end_of_lines();
    Ok(())
}

/// Gets the links of a document.
struct Links<'l> {
    resolver: &'l Resolver,
    base: &'l Base,
    outlet: &'l mut Outlet,
}

impl Visitor for Links<'_> {
    fn link(&mut self, link: Link<'_>) {
        let place = Place {
            line: link.line,
            column: link.column,
            written: &link.url,
            text: &link.text,
        };
        self.outlet
            .add(place, self.resolver.resolve(&link.url, self.base));
    }

    fn fault(&mut self, fault: XmlError) {
        let kind = match fault.loses_nothing() {
            true => ProblemKind::Note,
            false => ProblemKind::Malformed,
        };
        self.outlet
            .line_problem(fault.line, kind, fault.to_string());
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
