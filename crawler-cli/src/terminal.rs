//! Text from outside, made safe to show. A name or a message may hold escape sequences that would move the cursor,
//! recolour the screen or reverse what is read; here they become visible escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with every character that a terminal would act on replaced by its escape, as `\u{1b}`.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_terminal) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts_on_terminal(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// `text` as a JSON string, quotes included, in which characters that a terminal would act on are escaped too.
pub fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for c in serde_json::Value::from(text).to_string().chars() {
        if acts_on_terminal(c) {
            // All of them are in the basic plane. Writing to a string does not fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// C0 and C1 controls, DEL, line and paragraph separators, and the marks that change the direction of text.
fn acts_on_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_becomes_visible() {
        for (text, shown) in [
            ("café 🦀 a\\b", "café 🦀 a\\b"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("a\nb\tc\u{7f}", "a\\u{a}b\\u{9}c\\u{7f}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("exe\u{202e}txt", "exe\\u{202e}txt"),
        ] {
            assert_eq!(neutralise(text), shown);
        }
    }

    #[test]
    fn json_strings_stay_what_they_were() {
        for text in ["", "a\"b\\c", "\u{1b}\u{7f}\u{9b}\u{202e}\u{2028}é🦀\n"] {
            let json = json_string(text);
            assert!(!json.contains(acts_on_terminal));
            let back: serde_json::Value = serde_json::from_str(&json).expect("valid JSON");
            assert_eq!(back, text);
        }
    }
}
