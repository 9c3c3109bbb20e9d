//! Lists of SHA-256 checksums, as they stand beside files on servers: which names such lists have, and what their lines
//! mean. No I/O.

use std::collections::HashMap;
use std::fmt;

use ring::digest::{Context, SHA256};

/// A SHA-256.
pub(super) type Sum = [u8; 32];

/// A SHA-256 of bytes that still arrive.
pub(super) struct Summing(Context);

impl Summing {
    pub(super) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Sum {
        let mut sum = Sum::default();
        // Both have 32 bytes.
        sum.copy_from_slice(self.0.finish().as_ref());
        sum
    }
}

impl fmt::Debug for Summing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Summing")
    }
}

/// The checksums of one list, by the name of the file in the directory of the list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Sums {
    by_name: HashMap<Vec<u8>, Sum>,
    /// The only checksum of a list that names no file.
    bare: Option<Sum>,
    /// The list has checksums of files in other directories.
    has_others: bool,
}

/// Which files a list with some name is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ListKind {
    /// All files of its directory.
    Directory,
    /// The file whose name is that of the list without its suffix.
    File,
}

/// What a file with this name is, if it is a list of checksums by its name.
pub(super) fn kind_of(name: &[u8]) -> Option<ListKind> {
    if DIRECTORY_LISTS.contains(&name) {
        return Some(ListKind::Directory);
    }
    let is_of_file = |suffix: &&[u8]| name.len() > suffix.len() && name.ends_with(suffix);
    FILE_SUFFIXES
        .iter()
        .any(is_of_file)
        .then_some(ListKind::File)
}

/// Whether a file with this name is a list of checksums.
pub(in crate::find) fn is_list(name: &[u8]) -> bool {
    kind_of(name).is_some()
}

impl Sums {
    /// Reads a list. Lines that are no checksum, and names outside the directory of the list, are left out. A name that
    /// comes twice keeps its first checksum.
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut sums = Self::default();
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        for line in text.split(|&byte| byte == b'\n').take(MOST_LINES) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match named(line) {
                Some((name, sum)) if is_here(&name) => {
                    sums.by_name.entry(name).or_insert(sum);
                }
                Some(_) => sums.has_others = true,
                None => {
                    if let Some(sum) = parse_sum(line.trim_ascii()) {
                        sums.bare.get_or_insert(sum);
                    }
                }
            }
        }
        sums
    }

    /// The checksum of a file; `kind` is that of the list.
    pub(super) fn of(&self, name: &[u8], kind: ListKind) -> Option<Sum> {
        let named = self.by_name.get(name).copied();
        // A list without any name can only be about the file that its own name says.
        let bare = self
            .bare
            .filter(|_| self.by_name.is_empty() && kind == ListKind::File);
        named.or(bare)
    }

    /// Whether the text has no checksum at all, and is no list.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.bare.is_none() && !self.has_others
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len() + 1
    }
}

/// A line with a name: that of sha256sum, or the form of BSD, `SHA256 (name) = sum`.
fn named(line: &[u8]) -> Option<(Vec<u8>, Sum)> {
    if let Some(rest) = line.strip_prefix(b"SHA256") {
        let rest = rest.trim_ascii_start().strip_prefix(b"(")?;
        let close = rest.iter().rposition(|&byte| byte == b')')?;
        let sum = rest[close + 1..].trim_ascii_start().strip_prefix(b"=")?;
        return Some((own(&rest[..close]), parse_sum(sum.trim_ascii())?));
    }
    let (line, is_escaped) = match line.strip_prefix(b"\\") {
        Some(line) => (line, true),
        None => (line, false),
    };
    let (sum, rest) = line.split_at_checked(2 * size_of::<Sum>())?;
    let sum = parse_sum(sum)?;
    // Two characters: a blank, and a `*` for binary mode or another blank.
    let name = match rest {
        [b' ' | b'\t', b'*' | b' ', name @ ..] | [b' ' | b'\t', name @ ..] => name,
        _ => return None,
    };
    let name = match is_escaped {
        true => unescape(name)?,
        false => name.to_vec(),
    };
    (!name.is_empty()).then(|| (own(&name), sum))
}

/// A name as it is in its directory: `./x` is `x`.
fn own(name: &[u8]) -> Vec<u8> {
    name.strip_prefix(b"./").unwrap_or(name).to_vec()
}

/// Whether a name is one of the directory of the list.
fn is_here(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/')
}

/// sha256sum escapes backslashes and ends of lines in names.
fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(plain)
}

fn parse_sum(digits: &[u8]) -> Option<Sum> {
    if digits.len() != 2 * size_of::<Sum>() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut sum = Sum::default();
    for (byte, pair) in sum.iter_mut().zip(digits.chunks_exact(2)) {
        let value = digit(pair[0])? << 4 | digit(pair[1])?;
        *byte = u8::try_from(value).ok()?;
    }
    Some(sum)
}

/// In lower case, as sha256sum prints it.
pub(super) fn text_of(sum: &Sum) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in sum {
        // `write!` to a String never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The names of lists of a directory.
pub(super) const DIRECTORY_LISTS: [&[u8]; 12] = [
    b"SHA256SUMS",
    b"SHA256SUMS.txt",
    b"sha256sums",
    b"sha256sums.txt",
    b"SHA256SUM",
    b"SHA256SUM.txt",
    b"sha256sum",
    b"sha256sum.txt",
    b"SHA256",
    b"sha256.txt",
    b"CHECKSUM",
    b"CHECKSUM.SHA256",
];

/// What the name of a list of one file has after the name of the file.
pub(super) const FILE_SUFFIXES: [&[u8]; 2] = [b".sha256", b".sha256sum"];

/// The most lines of a list that are read.
const MOST_LINES: usize = 1_000_000;
