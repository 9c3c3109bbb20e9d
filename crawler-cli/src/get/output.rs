//! Where bytes go: files opened when their first byte comes, stdout, and text made safe for a terminal.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;

use super::exit::Failure;

/// Where one transfer's output goes.
#[derive(Debug)]
pub(super) struct Sink {
    /// Nothing is stdout.
    path: Option<PathBuf>,
    /// Opened by the first write: a transfer that fails before it leaves an old file alone.
    file: Option<File>,
}

impl Sink {
    /// A file by name; nothing or `-` is stdout.
    pub(super) fn new(name: Option<&OsStr>) -> Self {
        Self {
            path: name.filter(|name| *name != "-").map(PathBuf::from),
            file: None,
        }
    }

    /// Writes all of `bytes` now: nothing is held back while a server pauses.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return write_stdout(bytes);
        };
        let failure = |error| Failure::write(path.display(), &error);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::create(path).map_err(failure)?),
        };
        file.write_all(bytes).map_err(failure)
    }

    /// Writes a response head; its control characters are neutralised if it goes to a terminal.
    pub(super) fn write_head(&mut self, head: &[u8]) -> Result<(), Failure> {
        if self.path.is_none() && io::stdout().is_terminal() {
            return self.write(&neutralise(head, Keep::LineEnds));
        }
        self.write(head)
    }

    /// Ends a transfer that went well: a file without a byte exists all the same.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.write(b"")
    }
}

/// Writes and flushes, so that an error belongs to these bytes.
pub(super) fn write_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Writes one line to stderr. There is no one left to tell if that fails.
pub(super) fn say(line: &str) {
    let mut line = neutralise(line.as_bytes(), Keep::Nothing);
    line.push(b'\n');
    let _ = io::stderr().lock().write_all(&line);
}

/// Which control characters [`neutralise`] lets through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keep {
    Nothing,
    /// Tab, CR LF and LF. A CR elsewhere would overwrite its line.
    LineEnds,
}

/// Replaces what could steer a terminal or reorder its text by a visible escape: C0, DEL, C1, bidirectional controls
/// and bytes that are not UTF-8.
pub(super) fn neutralise(text: &[u8], keep: Keep) -> Vec<u8> {
    let mut safe = Vec::with_capacity(text.len());
    let mut rest = text;
    for chunk in text.utf8_chunks() {
        for (at, c) in chunk.valid().char_indices() {
            let kept = match c {
                '\n' | '\t' => keep == Keep::LineEnds,
                '\r' => keep == Keep::LineEnds && rest.get(at + 1) == Some(&b'\n'),
                c => !c.is_control() && !is_bidi_control(c),
            };
            if kept {
                safe.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                safe.extend(c.escape_default().map(|c| c as u8));
            }
        }
        safe.extend(chunk.invalid().escape_ascii());
        rest = &rest[chunk.valid().len() + chunk.invalid().len()..];
    }
    safe
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_become_visible() {
        let cases: &[(&[u8], &str, &str)] = &[
            (b"X: y\r\n\r\n", "X: y\\r\\n\\r\\n", "X: y\r\n\r\n"),
            (b"a\tb\nc\rd\r", "a\\tb\\nc\\rd\\r", "a\tb\nc\\rd\\r"),
            (
                b"\x1b[31m\x07\0\x7f",
                "\\u{1b}[31m\\u{7}\\u{0}\\u{7f}",
                "\\u{1b}[31m\\u{7}\\u{0}\\u{7f}",
            ),
            (
                "ä€😀\u{9b}31m\u{85}".as_bytes(),
                "ä€😀\\u{9b}31m\\u{85}",
                "ä€😀\\u{9b}31m\\u{85}",
            ),
            (
                b"\x9b31m\xff\xe4\r\n",
                "\\x9b31m\\xff\\xe4\\r\\n",
                "\\x9b31m\\xff\\xe4\r\n",
            ),
            (
                "a\u{202e}b\u{2066}\u{200f}\u{61c}".as_bytes(),
                "a\\u{202e}b\\u{2066}\\u{200f}\\u{61c}",
                "a\\u{202e}b\\u{2066}\\u{200f}\\u{61c}",
            ),
        ];
        for (text, line, block) in cases {
            let safe = |keep| String::from_utf8(neutralise(text, keep)).unwrap();
            assert_eq!(safe(Keep::Nothing), *line);
            assert_eq!(safe(Keep::LineEnds), *block);
        }
    }

    #[test]
    fn a_file_is_made_by_its_first_byte_or_by_success() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut sink = Sink::new(Some(path.as_os_str()));
        assert!(!path.exists());
        sink.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        sink.write(b"\xff\0").unwrap();
        sink.write(b"x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"\xff\0x");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_exit_23() {
        let failure = Sink::new(Some("/nonexistent/x".as_ref()))
            .write(b"x")
            .unwrap_err();
        assert_eq!(failure.exit.code(), 23);
        assert!(!failure.reader_gone);
        assert!(
            failure.to_string().starts_with("write: /nonexistent/x: "),
            "{failure}"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_control_character_is_left(text: Vec<u8>) {
            let safe = String::from_utf8(neutralise(&text, Keep::Nothing)).unwrap();
            assert!(!safe.chars().any(|c| c.is_control() || is_bidi_control(c)));
        }
    }
}
