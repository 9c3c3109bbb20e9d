//! How far a text or a token reaches: the inner loops of the head parser, sixteen bytes at a time.

use wide::u8x16;

/// What is behind the bytes that can stand in a field value or a reason phrase: all but controls, HTAB excepted.
#[inline(always)]
pub(super) fn skip_text(mut rest: &[u8]) -> &[u8] {
    loop {
        while let Some((bytes, tail)) = rest.split_first_chunk::<16>() {
            let bytes = u8x16::new(*bytes);
            let control = at_most(bytes, 0x1f) | bytes.simd_eq(u8x16::splat(0x7f));
            match control.to_bitmask() {
                0 => rest = tail,
                controls => {
                    rest = &rest[(controls.trailing_zeros() as usize).min(15)..];
                    break;
                }
            }
        }
        match rest {
            [b'\t' | b' '..=b'~' | 0x80.., tail @ ..] => rest = tail,
            _ => return rest,
        }
    }
}

/// What is behind the bytes that can stand in a token. Letters and `-` go sixteen at a time.
#[inline(always)]
pub(super) fn skip_token(mut rest: &[u8]) -> &[u8] {
    loop {
        while let Some((bytes, tail)) = rest.split_first_chunk::<16>() {
            let bytes = u8x16::new(*bytes);
            let lower = bytes | u8x16::splat(0x20);
            let letter = at_most(lower - u8x16::splat(b'a'), 25);
            let usual = letter | bytes.simd_eq(u8x16::splat(b'-'));
            match !usual.to_bitmask() & 0xffff {
                0 => rest = tail,
                others => {
                    rest = &rest[(others.trailing_zeros() as usize).min(15)..];
                    break;
                }
            }
        }
        match rest {
            [b':', ..] => return rest, // nearly always
            [byte, tail @ ..] if TOKEN[usize::from(*byte)] => rest = tail,
            _ => return rest,
        }
    }
}

/// All ones where a byte is not above `most`.
#[inline(always)]
fn at_most(bytes: u8x16, most: u8) -> u8x16 {
    bytes.min(u8x16::splat(most)).simd_eq(bytes)
}

/// Which bytes a token is made of (RFC 9110 §5.6.2).
pub(super) const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place() {
        for byte in 0..=255u8 {
            for at in 0..40 {
                let mut bytes = [b'a'; 40];
                bytes[at] = byte;
                let is_text = byte == b'\t' || byte >= b' ' && byte != 0x7f;
                let text = bytes.len() - skip_text(&bytes).len();
                assert_eq!(text, if is_text { 40 } else { at }, "{byte} at {at}");
                let token = bytes.len() - skip_token(&bytes).len();
                let is_token = TOKEN[usize::from(byte)];
                assert_eq!(token, if is_token { 40 } else { at }, "{byte} at {at}");
            }
        }
    }
}
