//! Shell patterns of `find -name` and `-path` (POSIX XCU 2.14; glibc's fnmatch without flags): `*`, `?`, `[...]` and
//! backslash, matched against a whole name or path. A leading dot is not special, and neither is `/`.
//!
//! Patterns and names are bytes. `?` and brackets take one UTF-8 character, or one byte where the name is not UTF-8.

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
    /// Compiles `pattern`. Every pattern is valid: a `[` without its `]` is a literal, and a pattern that ends in a
    /// backslash matches nothing.
    pub fn new(pattern: &[u8], case: Case) -> Self {
        let mut tokens = Vec::new();
        let units = units(pattern);
        let mut at = 0;
        while let Some(&unit) = units.get(at) {
            at += 1;
            match unit {
                Unit::Char('*') if matches!(tokens.last(), Some(Token::Any)) => {}
                Unit::Char('*') => tokens.push(Token::Any),
                Unit::Char('?') => tokens.push(Token::One),
                Unit::Char('[') => match bracket(&units[at..]) {
                    Some((token, used)) => {
                        tokens.push(token);
                        at += used;
                    }
                    None => tokens.push(Token::Literal(unit)),
                },
                Unit::Char('\\') => {
                    tokens.push(match units.get(at) {
                        Some(&escaped) => Token::Literal(escaped),
                        None => Token::Nothing,
                    });
                    at += 1;
                }
                unit => tokens.push(Token::Literal(unit)),
            }
        }
        Self { tokens, case }
    }

    /// Whether the pattern matches the whole `name`. Takes at most `name.len() * pattern.len()` steps.
    pub fn matches(&self, name: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        // Where to resume after a mismatch: the token after the last `*`, and where its match starts in the name. Then
        // the `*` takes one more character.
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
            Token::Any | Token::Nothing => false,
            Token::One => true,
            Token::Literal(expected) => found == *expected || self.folded(found, *expected),
            Token::Set { negated, items } => {
                for item in items {
                    match self.holds(*item, found) {
                        Some(false) => {}
                        Some(true) => return !negated,
                        None => return false,
                    }
                }
                *negated
            }
        }
    }

    /// Whether case is ignored and the two differ only in case.
    fn folded(&self, found: Unit, expected: Unit) -> bool {
        match (found, expected) {
            (Unit::Char(found), Unit::Char(expected)) => {
                self.case == Case::Ignored && fold(found) == fold(expected)
            }
            _ => false,
        }
    }

    /// Whether an item of a set contains `found`. `None`: the item is not valid, and the whole set does not match.
    fn holds(&self, item: Item, found: Unit) -> Option<bool> {
        Some(match (item, found) {
            (Item::Invalid, _) => return None,
            (Item::One(expected), found) => found == expected || self.folded(found, expected),
            (Item::Symbol(expected), found) => found == expected,
            (_, Unit::Byte(_)) => false,
            (Item::Range(low, high), Unit::Char(c)) if self.case == Case::Ignored => {
                (fold(low)..=fold(high)).contains(&fold(c))
            }
            (Item::Range(low, high), Unit::Char(c)) => (low..=high).contains(&c),
            // Case is never ignored in classes: `[:upper:]` and `[:lower:]` would be the same.
            (Item::Class(test), Unit::Char(c)) => test(c),
        })
    }
}

#[derive(Clone, Debug)]
enum Token {
    Any,
    One,
    Literal(Unit),
    Set {
        negated: bool,
        items: Vec<Item>,
    },
    /// Matches nothing.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
enum Item {
    One(Unit),
    /// `[.x.]` or `[=x=]`. Case is never ignored here.
    Symbol(Unit),
    Range(char, char),
    Class(CharTest),
    /// A class or a collating symbol that does not exist.
    Invalid,
}

type CharTest = fn(char) -> bool;

/// One character of a name or a pattern, or one byte that is not UTF-8.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    Char(char),
    /// A byte that is part of no UTF-8 character.
    Byte(u8),
}

fn units(text: &[u8]) -> Vec<Unit> {
    let mut at = 0;
    std::iter::from_fn(|| {
        let (unit, len) = next_unit(text, at)?;
        at += len;
        Some(unit)
    })
    .collect()
}

/// The unit at offset `at`, and its length in bytes.
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
        None => Some((Unit::Byte(first), 1)),
    }
}

/// Reads a bracket expression after its `[`. Returns the token and the number of units it took; `None` if the bracket
/// is not closed.
fn bracket(units: &[Unit]) -> Option<(Token, usize)> {
    let mut at = 0;
    let negated = matches!(units.first(), Some(Unit::Char('!' | '^')));
    if negated {
        at += 1;
    }
    let mut items = Vec::new();
    loop {
        let unit = *units.get(at)?;
        if unit == Unit::Char(']') && !items.is_empty() {
            return Some((Token::Set { negated, items }, at + 1));
        }
        items.push(if let Some(name) = class_name(&units[at..]) {
            at += name.len() + 4;
            class(&name).map_or(Item::Invalid, Item::Class)
        } else if units[at..].starts_with(&[Unit::Char('['), Unit::Char('=')]) {
            let (unit, used) = symbol(&units[at..], '=')?;
            at += used;
            unit.map_or(Item::Invalid, Item::Symbol)
        } else {
            range(units, &mut at)?
        });
    }
}

/// Reads one character or a range.
fn range(units: &[Unit], at: &mut usize) -> Option<Item> {
    let is_symbol = units[*at..].starts_with(&[Unit::Char('['), Unit::Char('.')]);
    let low = element(units, at)?;
    let is_range = units.get(*at) == Some(&Unit::Char('-'))
        && !matches!(units.get(*at + 1), None | Some(Unit::Char(']')));
    if !is_range {
        let item = if is_symbol { Item::Symbol } else { Item::One };
        return Some(low.map_or(Item::Invalid, item));
    }
    *at += 1;
    let high = element(units, at)?;
    Some(match (low, high) {
        (Some(Unit::Char(low)), Some(Unit::Char(high))) => Item::Range(low, high),
        _ => Item::Invalid,
    })
}

/// Reads one unit inside brackets: a unit, a backslash with a unit, or a collating symbol. The inner `None` is an
/// unknown collating symbol.
fn element(units: &[Unit], at: &mut usize) -> Option<Option<Unit>> {
    if units.get(*at) == Some(&Unit::Char('[')) && units.get(*at + 1) == Some(&Unit::Char('.')) {
        let (unit, used) = symbol(&units[*at..], '.')?;
        *at += used;
        return Some(unit);
    }
    if units.get(*at) == Some(&Unit::Char('\\')) {
        *at += 1;
    }
    let unit = *units.get(*at)?;
    *at += 1;
    Some(Some(unit))
}

/// The unit that `[.x.]` or `[=x=]` stands for, and the number of units read. The inner `None` is an unknown symbol.
fn symbol(units: &[Unit], mark: char) -> Option<(Option<Unit>, usize)> {
    let inside = units.get(2..)?;
    let end = inside
        .windows(2)
        .position(|pair| pair == [Unit::Char(mark), Unit::Char(']')])?;
    let unit = (end == 1).then(|| inside[0]);
    Some((unit, end + 4))
}

/// The name in `[:alpha:]`. `None`: the units are ordinary members of the set.
fn class_name(units: &[Unit]) -> Option<String> {
    let inside = units.strip_prefix(&[Unit::Char('['), Unit::Char(':')])?;
    let mut name = String::new();
    for (at, unit) in inside.iter().enumerate() {
        match unit {
            Unit::Char(c @ 'a'..='y') => name.push(*c),
            Unit::Char(':') if inside.get(at + 1) == Some(&Unit::Char(']')) => return Some(name),
            _ => return None,
        }
    }
    None
}

fn class(name: &str) -> Option<CharTest> {
    Some(match name {
        "alnum" => char::is_alphanumeric,
        "alpha" => char::is_alphabetic,
        "blank" => |c| c == ' ' || c == '\t',
        "cntrl" => char::is_control,
        "digit" => |c| c.is_ascii_digit(),
        "graph" => |c| !c.is_control() && !c.is_whitespace(),
        "lower" => char::is_lowercase,
        "print" => |c| !c.is_control(),
        "punct" => |c| !c.is_control() && !c.is_whitespace() && !c.is_alphanumeric(),
        "space" => char::is_whitespace,
        "upper" => char::is_uppercase,
        "xdigit" => |c| c.is_ascii_hexdigit(),
        _ => return None,
    })
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
            ("[n[:nonsense:]]", "n", true),
            ("[![:nonsense:]]", "n", false),
            ("[[:alpha]", ":", true),
            ("[[=a=]]b", "ab", true),
            ("[[.a.]-c]", "b", true),
            ("[[=ab=]]", "a", false),
            ("*/b", "a//b", true),
            ("a?b", "a/b", true),
            ("[", "[", true),
            ("[ab", "[ab", true),
            ("r\\[1\\].txt", "r[1].txt", true),
            ("r[[]1].txt", "r[1].txt", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a\\", "a\\", false),
            ("[\\]]", "]", true),
            ("[à-ü]", "é", true),
            ("a b.txt", "a b.txt", true),
            ("A", "a", false),
        ] {
            let glob = Glob::new(pattern.as_bytes(), Case::Sensitive);
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
            ("[[:upper:]]", "a", false),
        ] {
            let glob = Glob::new(pattern.as_bytes(), Case::Ignored);
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
