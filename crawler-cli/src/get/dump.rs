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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dumps_are_those_of_curl() {
        // Each as curl 7.88 wrote it.
        assert_eq!(
            hex(b"HTTP/1.1 200 OK\r\n"),
            "0000: 48 54 54 50 2f 31 2e 31 20 32 30 30 20 4f 4b 0d HTTP/1.1 200 OK.\n\
             0010: 0a                                              .\n"
        );
        assert_eq!(
            ascii(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:46249\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"),
            "0000: GET / HTTP/1.1\n0010: Host: 127.0.0.1:46249\n0027: User-Agent: curl/7.88.1\n\
             0040: Accept: */*\n004d: \n"
        );
        assert_eq!(ascii(b"\r\n"), "0000: \n");
        let long = "a\n".repeat(37);
        let (first, second) = (format!("0000: {}\n", "a.".repeat(32)), "0040: a.a.a.a.a.\n");
        assert_eq!(ascii(long.as_bytes()), first + second);
        assert_eq!(
            ascii(&[b"x".repeat(64), b"\r\ny".to_vec()].concat())
                .lines()
                .count(),
            2
        );
        assert_eq!((hex(b""), ascii(b"")), (String::new(), String::new()));
    }
}
