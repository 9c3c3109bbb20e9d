//! Names of files that come from servers or lists. Each is one component of a path and never leads to a parent directory:
//! separators, control characters, `.` and `..` are percent-encoded. The mapping is fixed, so that each run finds the files
//! of earlier runs. Names that are invalid only on systems other than Unix, such as `aux.c`, are not changed.

use std::fmt::Write as _;

/// Turns a decoded segment of a URL, or any text, into one component of a path.
pub fn safe(segment: &[u8]) -> Vec<u8> {
    let name = match segment {
        b"" => b"%".to_vec(),
        b"." => b"%2E".to_vec(),
        b".." => b"%2E%2E".to_vec(),
        _ => escape(segment),
    };
    let is_ours = [PARTIAL, NOTE].iter().any(|suffix| {
        let tail = name.len().checked_sub(suffix.len()).map(|at| &name[at..]);
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(suffix))
    });
    if is_ours || name.len() > MOST_BYTES {
        shorten(&name)
    } else {
        name
    }
}

/// Escapes separators and control characters.
fn escape(segment: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(segment.len());
    for chunk in segment.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            if c.is_control() || matches!(c, '/' | '\\') {
                for byte in bytes {
                    let mut text = String::new();
                    // `write!` to a String never fails.
                    let _ = write!(text, "%{byte:02X}");
                    name.extend_from_slice(text.as_bytes());
                }
            } else {
                name.extend_from_slice(bytes);
            }
        }
        name.extend_from_slice(chunk.invalid());
    }
    name
}

/// Shortens a name to its beginning, a hash of the whole name, and the extension.
fn shorten(name: &[u8]) -> Vec<u8> {
    let dot = name.iter().rposition(|&byte| byte == b'.');
    let extension = dot.map_or(&[][..], |at| &name[at..]);
    let extension = if extension.len() <= MOST_EXTENSION {
        extension
    } else {
        &[]
    };
    let hash = format!("~{:016x}", fnv1a(name));
    let stem = &name[..name.len() - extension.len()];
    let mut most = stem.len().min(MOST_BYTES - hash.len() - extension.len());
    // Do not cut inside a UTF-8 character.
    while most > 0 && stem.get(most).is_some_and(|byte| byte & 0xC0 == 0x80) {
        most -= 1;
    }
    [&stem[..most], hash.as_bytes(), extension].concat()
}

/// FNV-1a with 64 bits. It is the same in every run and version; the standard library does not guarantee this for its
/// hashes.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The end of the name of a file that is not complete.
pub const PARTIAL: &[u8] = b".courser-part";
/// The end of the name of a note about a file.
pub const NOTE: &[u8] = b".courser-note";
/// Longest name in bytes: file systems allow 255, and the partial file has a dot and a suffix in addition.
pub const MOST_BYTES: usize = 255 - 1 - PARTIAL.len();
const MOST_EXTENSION: usize = 16;
