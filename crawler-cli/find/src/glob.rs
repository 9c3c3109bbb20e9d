//! Shell patterns of `find -name` and `-path` (POSIX XCU 2.14; glibc's fnmatch without flags): `*`, `?`, `[...]` and
//! backslash, matched against a whole name or path. A leading dot is not special, and neither is `/`.
//!
//! A pattern becomes a regular expression. Patterns and names are bytes: a byte that is part of no UTF-8 character counts
//! as one character, which no name has.

use std::borrow::Cow;
use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    /// `None`: the pattern is too large, and matches nothing.
    regex: Option<Regex>,
}

/// Whether letters that differ only in case are equal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Case {
    /// `-name`
    Sensitive,
    /// `-iname`
    Ignored,
}

impl Glob {
    /// Compiles `pattern`. Every pattern is valid: a `[` without its `]` is a literal, and a pattern that ends in a
    /// backslash matches nothing.
    pub fn new(pattern: &[u8], case: Case) -> Self {
        let chars: Vec<char> = text(pattern).chars().collect();
        let mut regex = String::from(r"\A(?s:");
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            match c {
                '*' if regex.ends_with(".*") => {}
                '*' => regex.push_str(".*"),
                '?' => regex.push('.'),
                '[' => match bracket(&chars[at..], case) {
                    Some((set, used)) => {
                        regex.push_str(&set);
                        at += used;
                    }
                    None => push_char(&mut regex, c, case),
                },
                '\\' => {
                    match chars.get(at) {
                        Some(&c) => push_char(&mut regex, c, case),
                        None => regex.push_str(NOTHING),
                    }
                    at += 1;
                }
                c => push_char(&mut regex, c, case),
            }
        }
        regex.push_str(r")\z");
        // Only the user's own pattern decides how large it is.
        let regex = RegexBuilder::new(&regex).size_limit(usize::MAX).build();
        Self { regex: regex.ok() }
    }

    /// Whether the pattern matches the whole `name`, in linear time.
    pub fn matches(&self, name: &[u8]) -> bool {
        let regex = self.regex.as_ref();
        regex.is_some_and(|regex| regex.is_match(&text(name)))
    }
}

/// A text in which each byte that is part of no UTF-8 character is a character for private use.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid().iter();
        text.extend(invalid.filter_map(|&byte| char::from_u32(0x10_FF00 + u32::from(byte))));
    }
    Cow::Owned(text)
}

/// Appends a set of this character, with both cases if case is ignored.
fn push_char(regex: &mut String, c: char, case: Case) {
    regex.push('[');
    push_range(regex, (c, c), case);
    regex.push(']');
}

/// Appends what a range contains. If case is ignored, that is each character whose lower case is between the lower cases of
/// the ends, as in glibc: `[Z-a]` has nothing.
pub(super) fn push_range(set: &mut String, (low, high): (char, char), case: Case) {
    // `write!` to a String never fails.
    let mut push = |before: &str, low: char, high: char, after: &str| {
        if low <= high {
            let (low, high) = (low as u32, high as u32);
            let _ = write!(set, r"{before}\x{{{low:X}}}-\x{{{high:X}}}{after}");
        }
    };
    if case == Case::Sensitive {
        return push("", low, high, "");
    }
    let lower = |c: char| c.to_lowercase().next().unwrap_or(c);
    let upper = |c: char| c.to_uppercase().next().unwrap_or(c);
    if low == high {
        for c in [low, lower(low), upper(low)] {
            push("", c, c, "");
        }
        return;
    }
    let (low, high) = (lower(low), lower(high));
    push("[", low, high, r"--\p{Lu}]");
    let (first, last) = (low.max('a'), high.min('z'));
    if first <= last {
        push("", upper(first), upper(last), "");
    }
    let first = low.max('\u{80}');
    if first <= high {
        push("[", upper(first), upper(high), r"&&\p{Lu}]");
    }
}

/// Reads a bracket expression after its `[`. Returns the set and the number of characters it took; `None` if the bracket
/// is not closed.
fn bracket(chars: &[char], case: Case) -> Option<(String, usize)> {
    let is_negated = matches!(chars.first(), Some('!' | '^'));
    let mut at = usize::from(is_negated);
    let begin = at;
    let mut items = String::new();
    // What follows a class or a symbol that does not exist has no effect.
    let mut is_valid = true;
    while at == begin || *chars.get(at)? != ']' {
        let (item, used) = item(&chars[at..], case)?;
        at += used;
        is_valid &= item.is_some();
        if let Some(item) = item.filter(|_| is_valid) {
            items.push_str(&item);
        }
    }
    let set = match (is_negated, items.as_str()) {
        (true, _) if !is_valid => NOTHING.to_owned(),
        (true, "") => ".".to_owned(),
        (false, "") => NOTHING.to_owned(),
        (true, items) => format!("[^{items}]"),
        (false, items) => format!("[{items}]"),
    };
    Some((set, at + 1))
}

/// Reads a class, a character or a range inside brackets. The inner `None` is a class or a symbol that does not exist.
fn item(chars: &[char], case: Case) -> Option<(Option<String>, usize)> {
    if let Some(name) = class_name(chars) {
        let class = CLASSES.iter().find(|(known, _)| *known == name);
        return Some((class.map(|(_, class)| (*class).to_owned()), name.len() + 4));
    }
    if chars.starts_with(&['[', '=']) {
        let (c, used) = symbol(chars, '=')?;
        return Some((c.map(|c| set_of((c, c), Case::Sensitive)), used));
    }
    let (low, mut used) = element(chars)?;
    let is_range =
        chars.get(used) == Some(&'-') && !matches!(chars.get(used + 1), None | Some(']'));
    if !is_range {
        // Case is never ignored in symbols.
        let case = match chars.starts_with(&['[', '.']) {
            true => Case::Sensitive,
            false => case,
        };
        return Some((low.map(|c| set_of((c, c), case)), used));
    }
    used += 1;
    let (high, more) = element(&chars[used..])?;
    let range = low.zip(high).map(|range| set_of(range, case));
    Some((range, used + more))
}

fn set_of(range: (char, char), case: Case) -> String {
    let mut set = String::new();
    push_range(&mut set, range, case);
    set
}

/// Reads one character inside brackets: itself, after a backslash, or as a collating symbol. The inner `None` is an
/// unknown collating symbol.
fn element(chars: &[char]) -> Option<(Option<char>, usize)> {
    match chars {
        ['[', '.', ..] => symbol(chars, '.'),
        ['\\', c, ..] => Some((Some(*c), 2)),
        [c, ..] => Some((Some(*c), 1)),
        [] => None,
    }
}

/// The character that `[.x.]` or `[=x=]` stands for, and the number of characters read. The inner `None` is an unknown
/// symbol.
fn symbol(chars: &[char], mark: char) -> Option<(Option<char>, usize)> {
    let inside = chars.get(2..)?;
    let end = inside.windows(2).position(|pair| pair == [mark, ']'])?;
    Some(((end == 1).then(|| inside[0]), end + 4))
}

/// The name in `[:alpha:]`. `None`: the characters are ordinary members of the set.
fn class_name(chars: &[char]) -> Option<String> {
    let inside = chars.strip_prefix(&['[', ':'])?;
    let end = inside.iter().position(|c| !c.is_ascii_lowercase())?;
    let is_class = inside[end..].starts_with(&[':', ']']);
    is_class.then(|| inside[..end].iter().collect())
}

/// A set of no character.
const NOTHING: &str = "[a&&b]";

/// The classes of characters, in the syntax of the `regex` crate.
pub(super) const CLASSES: &[(&str, &str)] = &[
    ("alnum", r"\p{Alphabetic}\p{N}"),
    ("alpha", r"\p{Alphabetic}"),
    ("blank", r" \t"),
    ("cntrl", r"\p{Cc}"),
    ("digit", "0-9"),
    ("graph", r"[^\p{Cc}\p{Cn}\p{Cs}\s]"),
    ("lower", r"\p{Lowercase}"),
    ("print", r"[^\p{Cc}\p{Cn}\p{Cs}]"),
    ("punct", r"\p{P}\p{S}"),
    ("space", r"\s"),
    ("upper", r"\p{Uppercase}"),
    ("xdigit", "0-9A-Fa-f"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the comparison with GNU find does not have among its patterns and names.
    #[test]
    fn patterns_match_as_fnmatch_does() {
        use Case::{Ignored, Sensitive};
        for (pattern, case, name, expected) in [
            ("?", Sensitive, "é", true),
            ("??", Sensitive, "é", false),
            ("[n[:nonsense:]]", Sensitive, "n", true),
            ("[![:nonsense:]]", Sensitive, "n", false),
            ("[[.a.]-c]", Sensitive, "b", true),
            ("[[=ab=]]", Sensitive, "a", false),
            ("*/b", Sensitive, "a//b", true),
            ("a?b", Sensitive, "a/b", true),
            ("r[[]1].txt", Sensitive, "r[1].txt", true),
            ("[à-ü]", Sensitive, "é", true),
            ("[!a-c]", Ignored, "B", false),
            ("É", Ignored, "é", true),
            ("[[:upper:]]", Ignored, "a", false),
        ] {
            let is_match = Glob::new(pattern.as_bytes(), case).matches(name.as_bytes());
            assert_eq!(is_match, expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn names_need_not_be_utf8() {
        let name = b"caf\xe9.txt";
        assert!(Glob::new(b"caf?.txt", Case::Sensitive).matches(name));
        assert!(Glob::new(b"*.txt", Case::Sensitive).matches(name));
        assert!(Glob::new(b"caf[!a].txt", Case::Ignored).matches(name));
        assert!(!Glob::new("café.txt".as_bytes(), Case::Sensitive).matches(name));
        for pattern in [
            &b"caf\xe9.txt"[..],
            b"*\xe9*",
            b"caf[\xe8\xe9].txt",
            b"caf\\\xe9.*",
        ] {
            assert!(Glob::new(pattern, Case::Ignored).matches(name));
            assert!(!Glob::new(pattern, Case::Ignored).matches(b"caf\xea.txt"));
        }
    }

    proptest! {
        /// Compared with the definition of `*`: a recursion that tries every length.
        #[test]
        fn stars_agree_with_the_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            fn by_definition(pattern: &[u8], name: &[u8]) -> bool {
                match (pattern.first(), name.first()) {
                    (None, None) => true,
                    (Some(b'*'), _) => (0..=name.len()).any(|n| by_definition(&pattern[1..], &name[n..])),
                    (Some(b'?'), Some(_)) => by_definition(&pattern[1..], &name[1..]),
                    (Some(p), Some(n)) if p == n => by_definition(&pattern[1..], &name[1..]),
                    _ => false,
                }
            }
            let glob = Glob::new(pattern.as_bytes(), Case::Sensitive);
            prop_assert_eq!(glob.matches(name.as_bytes()), by_definition(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
