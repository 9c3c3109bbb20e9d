//! Arrays as parameters, in the words of PostgreSQL: texts, which a statement casts.

use std::fmt::Write as _;

/// Numbers, for `CAST(CAST(?1 AS TEXT) AS BIGINT[])`.
pub fn numbers(numbers: impl IntoIterator<Item = Option<i64>>) -> String {
    let mut text = String::from("{");
    for number in numbers {
        separate(&mut text);
        match number {
            // To write to a text cannot fail.
            Some(number) => drop(write!(text, "{number}")),
            None => text.push_str("NULL"),
        }
    }
    text.push('}');
    text
}

/// Bytes, for `CAST(CAST(?1 AS TEXT) AS BYTEA[])`.
pub(crate) fn blobs<B: AsRef<[u8]>>(blobs: impl IntoIterator<Item = B>) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut text = String::from("{");
    for blob in blobs {
        separate(&mut text);
        text.push_str("\"\\\\x");
        for byte in blob.as_ref() {
            for digit in [byte >> 4, byte & 15] {
                text.push(DIGITS[usize::from(digit)].into());
            }
        }
        text.push('"');
    }
    text.push('}');
    text
}

fn separate(text: &mut String) {
    if text.len() > 1 {
        text.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_texts() {
        assert_eq!(
            numbers([Some(1), None, Some(i64::MIN)]),
            "{1,NULL,-9223372036854775808}"
        );
        assert_eq!(numbers([]), "{}");
        assert_eq!(blobs([&[0u8, 0xff][..], &[]]), r#"{"\\x00ff","\\x"}"#);
    }
}
