//! The entries of a listing that is too large for memory: in a file without a name, in the directory for temporary files.
//! They are written while the page arrives, and read when the page has shown that it is a listing, and whole.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};

use super::time::SlashedDate;
use super::{Entry, EntryKind, Rules};
use crate::crawl::leb128;
use crate::find::path;
use crate::find::range::{ListedTime, SizeRange};

/// Takes the entries.
#[derive(Debug)]
pub(super) struct SpoolWriter {
    out: BufWriter<File>,
    record: leb128::Writer,
    len: usize,
    bytes: u64,
    hasher: DefaultHasher,
    /// An entry has a size or a time.
    pub(super) has_columns: bool,
    /// An entry that is no directory has a time.
    is_dated: bool,
    /// An entry has no size.
    pub(super) has_unsized: bool,
}

/// The entries of a listing, in the order of the page.
#[derive(Debug)]
pub struct Spool {
    input: BufReader<File>,
    record: Vec<u8>,
    len: usize,
    left: usize,
    fingerprint: u64,
    is_dated: bool,
    rules: Rules,
}

impl SpoolWriter {
    /// # Errors
    /// No file can be made.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::with_capacity(BUFFER, tempfile::tempfile()?),
            record: leb128::Writer::default(),
            len: 0,
            bytes: 0,
            hasher: DefaultHasher::new(),
            has_columns: false,
            is_dated: false,
            has_unsized: false,
        })
    }

    /// Adds an entry, and a date that [`Rules`] will place.
    ///
    /// # Errors
    /// The entry cannot be written, or there are too many bytes.
    pub(super) fn push(&mut self, entry: &Entry, slashed: Option<SlashedDate>) -> io::Result<()> {
        (&entry.name, entry.size, entry.modified).hash(&mut self.hasher);
        let has_time = entry.modified.is_some() || slashed.is_some();
        self.has_columns |= has_time || entry.size.is_some();
        self.is_dated |= has_time && entry.kind != EntryKind::Directory;
        self.has_unsized |= entry.size.is_none();
        let record = &mut self.record;
        record.bytes.clear();
        record.byte(match entry.kind {
            EntryKind::File => 0,
            EntryKind::Directory => 1,
            EntryKind::Unknown => 2,
        });
        record.slice(entry.segment.as_bytes());
        record.byte(u8::from(entry.size.is_some()));
        if let Some(size) = entry.size {
            record.number(size.lo);
            record.number(size.hi);
        }
        record.byte(match (entry.modified, slashed) {
            (Some(_), _) => 1,
            (None, Some(_)) => 2,
            (None, None) => 0,
        });
        if let Some(time) = entry.modified {
            record.signed(time.seconds);
            record.number(u64::from(time.span));
            record.byte(u8::from(time.utc));
        } else if let Some(slashed) = slashed {
            slashed.write(record);
        }
        let length = record.bytes.len() as u64;
        self.bytes += length;
        if self.bytes > MOST_BYTES {
            let text = format!("its entries exceed {MOST_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        self.len += 1;
        // A record has the length of a segment, which is limited, and some numbers.
        let length = u32::try_from(length).map_err(io::Error::other)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&record.bytes)
    }

    /// The entries, of which nothing was read yet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn finish(self, rules: Rules) -> io::Result<Spool> {
        let mut file = self.out.into_inner().map_err(io::Error::from)?;
        file.rewind()?;
        Ok(Spool {
            input: BufReader::with_capacity(BUFFER, file),
            record: Vec::new(),
            len: self.len,
            left: self.len,
            fingerprint: self.hasher.finish(),
            is_dated: self.is_dated,
            rules,
        })
    }
}

impl Spool {
    /// The number of all entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of entries that were read.
    pub fn done(&self) -> usize {
        self.len - self.left
    }

    /// A fingerprint of all entries.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Whether a file has a time.
    pub fn is_dated(&self) -> bool {
        self.is_dated
    }

    /// The next entry; `None` after the last one.
    ///
    /// # Errors
    /// The file cannot be read. No further entry can be.
    pub fn read(&mut self) -> io::Result<Option<Entry>> {
        if self.left == 0 {
            return Ok(None);
        }
        let entry = self.read_entry();
        match entry {
            Ok(_) => self.left -= 1,
            Err(_) => self.left = 0,
        }
        entry.map(Some)
    }

    fn read_entry(&mut self) -> io::Result<Entry> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        self.record.resize(u32::from_le_bytes(length) as usize, 0);
        self.input.read_exact(&mut self.record)?;
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let mut entry = entry(&self.record, &self.rules).ok_or_else(damaged)?;
        self.rules.apply(&mut entry);
        Ok(entry)
    }
}

/// The entry of a record; `None` if the record is damaged.
fn entry(record: &[u8], rules: &Rules) -> Option<Entry> {
    let mut reader = leb128::Reader::new(record);
    let kind = match reader.byte()? {
        0 => EntryKind::File,
        1 => EntryKind::Directory,
        _ => EntryKind::Unknown,
    };
    let segment = str::from_utf8(reader.slice()?).ok()?.to_owned();
    let size = match reader.byte()? {
        0 => None,
        _ => Some(SizeRange {
            lo: reader.number()?,
            hi: reader.number()?,
        }),
    };
    let modified = match reader.byte()? {
        1 => Some(ListedTime {
            seconds: reader.signed()?,
            span: u32::try_from(reader.number()?).ok()?,
            utc: reader.byte()? != 0,
        }),
        2 => SlashedDate::read(&mut reader)?.time(rules.order),
        _ => None,
    };
    Some(Entry {
        name: path::decode(&segment),
        segment,
        kind,
        size,
        modified,
    })
}

const BUFFER: usize = 64 * 1024;

/// The largest size of the file. Ten million entries have less.
const MOST_BYTES: u64 = 4 << 30;
