//! Makes text from servers safe to show. A name or a message may contain escape sequences that move the cursor, change
//! colours or reverse the text; they become visible escapes.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write as _};

/// Writes a message on standard error, as a line. That nobody can read messages changes nothing: what the program does,
/// and how it ends, stays the same.
pub fn say(message: impl Display) {
    let line = format!("{message}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// `text` with an escape such as `\u{1b}` in place of every character that a terminal would act on.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_terminal) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts_on_terminal(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// The control characters that [`neutralise_bytes`] keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keep {
    /// None.
    Nothing,
    /// Tab, LF and CR LF. A CR elsewhere would let text overwrite its line.
    LineEnds,
}

/// Like [`neutralise`], for bytes: bytes that are not UTF-8 become escapes too.
pub fn neutralise_bytes(text: &[u8], keep: Keep) -> Vec<u8> {
    let mut safe = Vec::with_capacity(text.len());
    let mut rest = text;
    for chunk in text.utf8_chunks() {
        for (at, c) in chunk.valid().char_indices() {
            let kept = match c {
                '\n' | '\t' => keep == Keep::LineEnds,
                '\r' => keep == Keep::LineEnds && rest.get(at + 1) == Some(&b'\n'),
                c => !acts_on_terminal(c),
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

/// Appends `text` as a JSON string with its quotes. Characters that a terminal would act on are escaped, too.
pub fn push_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    // Most texts are plain ASCII and are copied whole.
    let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let plain = text
        .as_bytes()
        .iter()
        .take_while(|byte| is_plain(byte))
        .count();
    out.extend_from_slice(&text.as_bytes()[..plain]);
    for c in text[plain..].chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if acts_on_terminal(c) => {
                // All of them are in the basic plane, so four digits suffice. Writing to memory does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

/// `text` as a CSV cell. Line ends are escaped, so a record is one line. An apostrophe precedes text that a spreadsheet
/// would evaluate as a formula.
pub fn csv_text(text: &str) -> String {
    let mut text = neutralise(text).into_owned();
    if text.starts_with(['=', '+', '-', '@']) {
        text.insert(0, '\'');
    }
    if text.contains(['"', ',']) {
        text = format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

/// C0 and C1 controls, DEL, line and paragraph separators, and marks that change the direction of text.
pub fn acts_on_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
                b"\x1b[31m\0\x7f",
                "\\u{1b}[31m\\u{0}\\u{7f}",
                "\\u{1b}[31m\\u{0}\\u{7f}",
            ),
            ("ä€😀\u{9b}m".as_bytes(), "ä€😀\\u{9b}m", "ä€😀\\u{9b}m"),
            (
                b"\x9bm\xff\xe4\r\n",
                "\\x9bm\\xff\\xe4\\r\\n",
                "\\x9bm\\xff\\xe4\r\n",
            ),
            (
                "\u{202e}b\u{61c}".as_bytes(),
                "\\u{202e}b\\u{61c}",
                "\\u{202e}b\\u{61c}",
            ),
        ];
        for (text, line, block) in cases {
            let safe = |keep| String::from_utf8(neutralise_bytes(text, keep)).unwrap();
            assert_eq!(safe(Keep::Nothing), *line);
            if let Ok(text) = str::from_utf8(text) {
                assert_eq!(neutralise(text), *line);
            }
            assert_eq!(safe(Keep::LineEnds), *block);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_control_character_is_left(text: Vec<u8>) {
            let safe = String::from_utf8(neutralise_bytes(&text, Keep::Nothing)).unwrap();
            assert!(!safe.chars().any(acts_on_terminal));
        }
    }
}
