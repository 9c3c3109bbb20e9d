//! Opens sources: gzip is unpacked, and the format of a document is told by its name or its first character.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::check::links::Format;

/// What is read from: without gzip, with a buffer.
pub(super) type Source = BufReader<Box<dyn Read>>;

/// Opens a source.
pub(super) fn opened(mut file: File) -> io::Result<Source> {
    let mut beginning = Vec::new();
    (&mut file)
        .take(GZIP.len() as u64)
        .read_to_end(&mut beginning)?;
    let is_packed = beginning == GZIP;
    let bytes = Cursor::new(beginning).chain(file);
    let reader: Box<dyn Read> = match is_packed {
        true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, bytes))),
        false => Box::new(bytes),
    };
    Ok(BufReader::with_capacity(BUFFER, reader))
}

impl Format {
    /// What the name of a file says. `.gz` at its end is ignored.
    pub(super) fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        Self::of_name(name.strip_suffix(".gz").unwrap_or(&name))
    }

    /// What the beginning of a document without a known name says: HTML begins with `<`, all else is Markdown.
    pub(super) fn of_beginning(source: &mut Source) -> Self {
        // The reader meets an error again.
        let bytes = source.fill_buf().unwrap_or_default();
        let text = bytes.strip_prefix(BOM).unwrap_or(bytes).trim_ascii_start();
        match text.first() {
            Some(b'<') => Self::Html,
            _ => Self::Markdown,
        }
    }
}

const GZIP: &[u8] = b"\x1f\x8b";
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";
const BUFFER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format() {
        let table = [
            ("a.md", Some(Format::Markdown)),
            ("A.MARKDOWN", Some(Format::Markdown)),
            ("a.html", Some(Format::Html)),
            ("a.htm.gz", Some(Format::Html)),
            ("a.xhtml", Some(Format::Html)),
            ("sitemap.xml", Some(Format::Xml)),
            ("sitemap.XML.GZ", Some(Format::Xml)),
            ("a.png", None),
            ("a.txt", None),
            ("a.gz", None),
            ("md", None),
        ];
        for (name, format) in table {
            assert_eq!(Format::of_path(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn documents_without_a_name_are_html_if_they_begin_so() {
        let table = [
            ("", Format::Markdown),
            ("see http://x/", Format::Markdown),
            ("# Title\n<a href=x>", Format::Markdown),
            ("\u{feff}\n <!DOCTYPE HTML>", Format::Html),
            ("<p>text", Format::Html),
        ];
        for (text, format) in table {
            let bytes: Box<dyn Read> = Box::new(Cursor::new(text.as_bytes()));
            let mut source = BufReader::new(bytes);
            assert_eq!(Format::of_beginning(&mut source), format, "{text}");
        }
    }
}
