//! Shell patterns as `find -name` has them (POSIX fnmatch without flags): `*`, `?`, `[...]` and backslash, matched
//! against a whole name. A leading dot is not special, and neither is `/`, which no name holds.
//!
//! Names are bytes. `?` and brackets take one UTF-8 character, or one byte where the name is not UTF-8.

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    tokens: Vec<Token>,
    case: Case,
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
    /// Compiles `pattern`. Every pattern is valid: a `[` without its `]` stands for itself, as does a last backslash.
    pub fn new(pattern: &str, case: Case) -> Self {
        let mut tokens = Vec::new();
        let chars: Vec<char> = pattern.chars().collect();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            match c {
                '*' if matches!(tokens.last(), Some(Token::Any)) => {}
                '*' => tokens.push(Token::Any),
                '?' => tokens.push(Token::One),
                '[' => match bracket(&chars[at..]) {
                    Some((token, used)) => {
                        tokens.push(token);
                        at += used;
                    }
                    None => tokens.push(Token::Literal('[')),
                },
                '\\' if at < chars.len() => {
                    tokens.push(Token::Literal(chars[at]));
                    at += 1;
                }
                c => tokens.push(Token::Literal(c)),
            }
        }
        Self { tokens, case }
    }

    /// Whether the whole of `name` fits. Takes at most `name.len() * pattern.len()` steps.
    pub fn matches(&self, name: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        // Where to resume when a guess about the length of the last `*` proves wrong: one more character for it.
        let mut resume: Option<(usize, usize)> = None;
        loop {
            if matches!(self.tokens.get(token), Some(Token::Any)) {
                token += 1;
                resume = Some((token, at));
                continue;
            }
            match (self.tokens.get(token), next_unit(name, at)) {
                (None, None) => return true,
                (Some(expected), Some((found, len))) if self.fits(expected, found) => {
                    token += 1;
                    at += len;
                }
                _ => {
                    let Some((after_star, from)) = resume else {
                        return false;
                    };
                    let Some((_, len)) = next_unit(name, from) else {
                        return false;
                    };
                    resume = Some((after_star, from + len));
                    (token, at) = (after_star, from + len);
                }
            }
        }
    }

    fn fits(&self, token: &Token, found: Unit) -> bool {
        match token {
            Token::Any => false,
            Token::One => true,
            Token::Literal(expected) => match found {
                Unit::Byte => false,
                Unit::Char(c) if self.case == Case::Ignored => fold(c) == fold(*expected),
                Unit::Char(c) => c == *expected,
            },
            Token::Set { negated, items } => {
                let inside = match found {
                    Unit::Byte => false,
                    Unit::Char(c) if self.case == Case::Ignored => {
                        let upper = c.to_uppercase().next().unwrap_or(c);
                        items
                            .iter()
                            .any(|item| item.holds(c) || item.holds(fold(c)) || item.holds(upper))
                    }
                    Unit::Char(c) => items.iter().any(|item| item.holds(c)),
                };
                inside != *negated
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Token {
    Any,
    One,
    Literal(char),
    Set { negated: bool, items: Vec<Item> },
}

#[derive(Clone, Copy, Debug)]
enum Item {
    Range(char, char),
    Class(CharTest),
}

type CharTest = fn(char) -> bool;

impl Item {
    fn holds(self, c: char) -> bool {
        match self {
            Self::Range(low, high) => (low..=high).contains(&c),
            Self::Class(test) => test(c),
        }
    }
}

/// One step in a name.
#[derive(Clone, Copy)]
enum Unit {
    Char(char),
    /// A byte that is part of no UTF-8 character. No pattern can name it; wildcards take it.
    Byte,
}

/// The unit of `name` at `at` and its length in bytes.
fn next_unit(name: &[u8], at: usize) -> Option<(Unit, usize)> {
    let rest = name.get(at..)?;
    let &first = rest.first()?;
    if first.is_ascii() {
        return Some((Unit::Char(char::from(first)), 1));
    }
    let window = &rest[..rest.len().min(4)];
    let valid = match std::str::from_utf8(window) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).unwrap_or(""),
    };
    match valid.chars().next() {
        Some(c) => Some((Unit::Char(c), c.len_utf8())),
        None => Some((Unit::Byte, 1)),
    }
}

/// Reads a bracket expression whose `[` is already consumed; the token and how many characters it took, or `None`
/// when it is not closed.
fn bracket(chars: &[char]) -> Option<(Token, usize)> {
    let mut at = 0;
    let negated = matches!(chars.first(), Some('!' | '^'));
    if negated {
        at += 1;
    }
    let mut items = Vec::new();
    loop {
        let first = items.is_empty();
        match *chars.get(at)? {
            ']' if !first => return Some((Token::Set { negated, items }, at + 1)),
            '[' if chars.get(at + 1) == Some(&':') => {
                let (class, used) = class(&chars[at + 2..])?;
                items.push(Item::Class(class));
                at += 2 + used;
            }
            _ => {
                let low = set_char(chars, &mut at)?;
                if chars.get(at) == Some(&'-') && !matches!(chars.get(at + 1), None | Some(']')) {
                    at += 1;
                    let high = set_char(chars, &mut at)?;
                    items.push(Item::Range(low, high));
                } else {
                    items.push(Item::Range(low, low));
                }
            }
        }
    }
}

/// One character inside brackets; a backslash takes the next one as it is.
fn set_char(chars: &[char], at: &mut usize) -> Option<char> {
    if chars.get(*at) == Some(&'\\') {
        *at += 1;
    }
    let c = *chars.get(*at)?;
    *at += 1;
    Some(c)
}

/// A class such as `alpha` of `[:alpha:]`, whose `[:` is consumed.
fn class(chars: &[char]) -> Option<(CharTest, usize)> {
    let end = chars.windows(2).position(|pair| pair == [':', ']'])?;
    let name: String = chars[..end].iter().collect();
    let test: CharTest = match name.as_str() {
        "alnum" => char::is_alphanumeric,
        "alpha" => char::is_alphabetic,
        "blank" => |c| c == ' ' || c == '\t',
        "cntrl" => char::is_control,
        "digit" => |c| c.is_ascii_digit(),
        "graph" => |c| !c.is_control() && !c.is_whitespace(),
        "lower" => char::is_lowercase,
        "print" => |c| !c.is_control(),
        "punct" => |c| c.is_ascii_punctuation(),
        "space" => char::is_whitespace,
        "upper" => char::is_uppercase,
        "xdigit" => |c| c.is_ascii_hexdigit(),
        _ => return None,
    };
    Some((test, end + 2))
}

fn fold(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_fnmatch_does() {
        for (pattern, name, expected) in [
            ("repomd.xml", "repomd.xml", true),
            ("repomd.xml", "repomd.xml.asc", false),
            ("Release", "InRelease", false),
            ("*.iso", "a.iso", true),
            ("*.iso", ".iso", true),
            ("*.iso", "a.iso.sha256", false),
            ("*", "", true),
            ("*", ".hidden", true),
            ("?", "", false),
            ("?", "é", true),
            ("??", "é", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("**a", "ba", true),
            ("[abc].txt", "b.txt", true),
            ("[!abc].txt", "b.txt", false),
            ("[^abc].txt", "d.txt", true),
            ("[a-c]", "b", true),
            ("[a-c]", "d", false),
            ("[a-]", "-", true),
            ("[]a]", "]", true),
            ("[!]a]", "]", false),
            ("[!]a]", "b", true),
            ("[[:digit:]]*", "9x", true),
            ("[[:digit:]]*", "x9", false),
            ("[[:upper:][:digit:]_]", "_", true),
            ("[[:nonsense:]]", "n", false),
            ("[", "[", true),
            ("[ab", "[ab", true),
            ("r\\[1\\].txt", "r[1].txt", true),
            ("r[[]1].txt", "r[1].txt", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a\\", "a\\", true),
            ("[\\]]", "]", true),
            ("[à-ü]", "é", true),
            ("a b.txt", "a b.txt", true),
            ("A", "a", false),
        ] {
            let glob = Glob::new(pattern, Case::Sensitive);
            assert_eq!(
                glob.matches(name.as_bytes()),
                expected,
                "{pattern} on {name}"
            );
        }
    }

    #[test]
    fn case_is_ignored_on_request() {
        for (pattern, name, expected) in [
            ("*.ISO", "x.iso", true),
            ("readme*", "README.md", true),
            ("[a-c]", "B", true),
            ("[!a-c]", "B", false),
            ("É", "é", true),
            ("[[:upper:]]", "a", true),
        ] {
            let glob = Glob::new(pattern, Case::Ignored);
            assert_eq!(
                glob.matches(name.as_bytes()),
                expected,
                "{pattern} on {name}"
            );
        }
    }

    #[test]
    fn names_need_not_be_utf8() {
        let name = b"caf\xe9.txt";
        assert!(Glob::new("caf?.txt", Case::Sensitive).matches(name));
        assert!(Glob::new("*.txt", Case::Sensitive).matches(name));
        assert!(Glob::new("caf[!a].txt", Case::Ignored).matches(name));
        assert!(!Glob::new("café.txt", Case::Sensitive).matches(name));
    }

    proptest! {
        /// Against the definition of `*`: tried at every length, by recursion.
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
            let glob = Glob::new(&pattern, Case::Sensitive);
            prop_assert_eq!(glob.matches(name.as_bytes()), by_definition(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
