//! The dumps of `--trace` and `--trace-ascii`, in curl's format. Bytes in, text out.

/// Each line has sixteen bytes in hexadecimal, and then as text.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (number, row) in bytes.chunks(16).enumerate() {
        let codes: String = row.iter().map(|b| format!("{b:02x} ")).collect();
        let place = number * 16;
        text += &format!("{place:04x}: {codes:<48}{}\n", printable(row));
    }
    text
}

/// Each line has up to 64 bytes as text. A CR LF ends a line, and is not shown.
pub(super) fn ascii(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut place = 0;
    while let Some(rest) = bytes.get(place..).filter(|rest| !rest.is_empty()) {
        let line_end = rest.windows(2).position(|pair| pair == b"\r\n");
        let row = &rest[..line_end.unwrap_or(rest.len()).min(64)];
        text += &format!("{place:04x}: {}\n", printable(row));
        place += row.len();
        if line_end == Some(row.len()) {
            place += 2;
        }
    }
    text
}

fn printable(bytes: &[u8]) -> String {
    let shown = |b: &u8| match b {
        0x20..0x7f => char::from(*b),
        _ => '.',
    };
    bytes.iter().map(shown).collect()
}
