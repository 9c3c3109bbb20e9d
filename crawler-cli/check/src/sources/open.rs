//! Opens sources: gzip is unpacked, and the format of a document is told by its name or its first character.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

use crate::links::Format;

/// What is read from: without gzip, with a buffer.
pub(super) type Source = BufReader<Box<dyn Read>>;

/// Opens a source.
pub(super) fn opened(mut file: File) -> io::Result<Source> {
    let mut beginning = Vec::new();
    (&mut file)
        .take(GZIP.len() as u64)
        .read_to_end(&mut beginning)?;
    let is_packed = is_packed(&beginning);
    let bytes = Cursor::new(beginning).chain(file);
    let reader: Box<dyn Read> = match is_packed {
        true => Box::new(Unpacked::new(BufReader::with_capacity(BUFFER, bytes))),
        false => Box::new(bytes),
    };
    Ok(BufReader::with_capacity(BUFFER, reader))
}

/// Whether these bytes begin gzip data.
pub fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(GZIP)
}

/// Unpacks gzip data as gzip(1) does: all members, without what follows the last one.
pub struct Unpacked<R> {
    /// The member that is being read. Its first byte may have been read already.
    member: Option<GzDecoder<Chain<Cursor<Vec<u8>>, R>>>,
}

impl<R: BufRead> Unpacked<R> {
    pub fn new(packed: R) -> Self {
        Self {
            member: Some(GzDecoder::new(Cursor::default().chain(packed))),
        }
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let Some(member) = self.member.take() else {
                break;
            };
            let (_, mut rest) = member.into_inner().into_inner();
            // The buffer may end between the two bytes that begin a member.
            if rest.fill_buf()?.first() != GZIP.first() {
                break;
            }
            rest.consume(1);
            if rest.fill_buf()?.first() == GZIP.last() {
                let begun = Cursor::new(GZIP[..1].to_vec());
                self.member = Some(GzDecoder::new(begun.chain(rest)));
            }
        }
        Ok(0)
    }
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
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

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
    fn gzip_data_ends_with_its_last_member() {
        let member = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).expect("into memory");
            encoder.finish().expect("into memory")
        };
        let read = |packed: &[u8]| {
            // Whatever the buffer holds.
            let all = [1, 2, 3, 1000].map(|buffer| {
                let mut text = String::new();
                let packed = BufReader::with_capacity(buffer, packed);
                let read = Unpacked::new(packed).read_to_string(&mut text);
                read.map(|_| text).map_err(|error| error.kind())
            });
            assert!(all.iter().all(|read| *read == all[0]), "{all:?}");
            all[0].clone()
        };
        let two = [member("a"), member(""), member("b")].concat();
        for surplus in [&b""[..], b"\0\0\0", b"surplus", b"\x1f"] {
            assert_eq!(read(&[&two, surplus].concat()), Ok("ab".to_owned()));
        }
        let cut = read(&two[..two.len() - 1]);
        assert_eq!(cut, Err(io::ErrorKind::UnexpectedEof));
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
