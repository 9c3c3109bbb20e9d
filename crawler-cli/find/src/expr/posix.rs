//! The regular expressions of GNU find (`-regextype`; POSIX XBD 9 and GNU extensions), translated to the syntax of the
//! `regex` crate: `emacs`, which is find's default, and `posix-extended`. Back-references are not supported: the `regex` crate guarantees
//! linear time and has none. A translation is matched only against a whole path, so that the rule which of several
//! matches a dialect prefers has no effect.

use regex::bytes::{Regex, RegexBuilder};

use crate::glob::{CLASSES, Case, push_range};

/// A dialect of regular expressions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    /// GNU find's default.
    Emacs,
    /// POSIX's extended regular expressions, with the operators of GNU.
    Extended,
    /// The syntax of the `regex` crate.
    Rust,
}

impl Dialect {
    /// The names of `-regextype`.
    const NAMES: [(&str, Self); 3] = [
        ("emacs", Self::Emacs),
        ("posix-extended", Self::Extended),
        ("rust", Self::Rust),
    ];

    /// The dialect with this name of `-regextype`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let named = Self::NAMES.iter().find(|(known, _)| *known == name);
        named.map(|&(_, dialect)| dialect)
    }

    /// All names, separated by commas, for messages.
    pub(super) fn names() -> String {
        let names: Vec<&str> = Self::NAMES.iter().map(|&(name, _)| name).collect();
        names.join(", ")
    }

    /// Compiles `pattern` so that it matches whole paths.
    ///
    /// # Errors
    /// The reason why the pattern is not valid, as a text for users.
    pub(super) fn compile(self, pattern: &str, case: Case) -> Result<Regex, String> {
        let (inner, lines) = match self {
            Self::Rust => {
                // The pattern is compiled alone first: an unbalanced group would match the parentheses added below.
                Regex::new(pattern).map_err(|error| error.to_string())?;
                (pattern.to_owned(), false)
            }
            // Anchors match at lines, as in GNU find.
            Self::Emacs => (translate(pattern, false)?, true),
            Self::Extended => (translate(pattern, true)?, true),
        };
        RegexBuilder::new(&format!(r"\A(?:{inner})\z"))
            .dot_matches_new_line(true)
            .multi_line(lines)
            .case_insensitive(case == Case::Ignored)
            .build()
            .map_err(|error| error.to_string())
    }
}

fn translate(pattern: &str, extended: bool) -> Result<String, String> {
    let mut translation = Translation {
        chars: pattern.chars().collect(),
        at: 0,
        extended,
        out: String::with_capacity(2 * pattern.len()),
        open: Vec::new(),
        atom: None,
        at_start: true,
    };
    translation.run()?;
    Ok(translation.out)
}

struct Translation {
    chars: Vec<char>,
    at: usize,
    /// `(`, `)`, `|` and `{` are operators without a backslash. If not, the first three are with a backslash, and there are
    /// no intervals and no classes.
    extended: bool,
    out: String,
    /// Offsets in `out` of the groups that are still open.
    open: Vec<usize>,
    /// Offset in `out` of the atom that a repetition would apply to.
    atom: Option<usize>,
    /// At the start of an alternative.
    at_start: bool,
}

/// One unit of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RegexToken {
    Char(char),
    Dot,
    Open,
    Close,
    Alternative,
    Star,
    Plus,
    Question,
    Interval,
    Bracket,
    Caret,
    Dollar,
    BackReference(char),
    /// An operator of GNU: its translation, and whether it is an anchor.
    Gnu(&'static str, bool),
}

impl Translation {
    fn run(&mut self) -> Result<(), String> {
        while let Some((token, after)) = self.token(self.at) {
            self.at = after;
            match token {
                RegexToken::Char(c) => self.literal(c),
                RegexToken::Dot => self.push(match self.extended {
                    true => r"[^\x00]",
                    false => r"[^\n]",
                }),
                RegexToken::Open => {
                    self.open.push(self.out.len());
                    self.out.push_str("(?:");
                    (self.at_start, self.atom) = (true, None);
                }
                RegexToken::Close => self.close()?,
                RegexToken::Alternative => {
                    self.out.push('|');
                    (self.at_start, self.atom) = (true, None);
                }
                RegexToken::Star => self.repeat("*", '*')?,
                RegexToken::Plus => self.repeat("+", '+')?,
                RegexToken::Question => self.repeat("?", '?')?,
                RegexToken::Interval => self.interval()?,
                RegexToken::Bracket => self.bracket()?,
                RegexToken::Caret => self.anchor("^"),
                RegexToken::Dollar => self.anchor("$"),
                RegexToken::Gnu(operator, true) => self.anchor(operator),
                RegexToken::Gnu(operator, false) => self.push(operator),
                RegexToken::BackReference(digit) => {
                    return Err(format!(
                        "back-references such as \\{digit} are not supported"
                    ));
                }
            }
        }
        match self.open.is_empty() {
            true => Ok(()),
            false => Err("a group is not closed".to_owned()),
        }
    }

    /// The token at `at`, and the start of the next one.
    fn token(&self, at: usize) -> Option<(RegexToken, usize)> {
        let c = *self.chars.get(at)?;
        let plain = |is: bool, token: RegexToken| if is { token } else { RegexToken::Char(c) };
        let token = match c {
            '\\' => return Some(self.escaped(at)),
            '.' => RegexToken::Dot,
            '*' => RegexToken::Star,
            '[' => RegexToken::Bracket,
            '+' => RegexToken::Plus,
            '?' => RegexToken::Question,
            '|' => plain(self.extended, RegexToken::Alternative),
            '(' => plain(self.extended, RegexToken::Open),
            ')' => plain(self.extended, RegexToken::Close),
            '{' => plain(self.extended, RegexToken::Interval),
            '^' => plain(self.extended || self.at_start, RegexToken::Caret),
            '$' => plain(self.ends_alternative(at + 1), RegexToken::Dollar),
            c => RegexToken::Char(c),
        };
        Some((token, at + 1))
    }

    fn escaped(&self, at: usize) -> (RegexToken, usize) {
        let Some(&c) = self.chars.get(at + 1) else {
            return (RegexToken::Char('\\'), at + 1);
        };
        let token = match c {
            '(' if !self.extended => RegexToken::Open,
            ')' if !self.extended => RegexToken::Close,
            '|' if !self.extended => RegexToken::Alternative,
            '1'..='9' => RegexToken::BackReference(c),
            c => match GNU.iter().find(|(letter, ..)| *letter == c) {
                Some(&(_, operator, anchor)) => RegexToken::Gnu(operator, anchor),
                None => RegexToken::Char(c),
            },
        };
        (token, at + 2)
    }

    /// Whether a `$` directly before `at` is an anchor.
    fn ends_alternative(&self, at: usize) -> bool {
        self.extended || self.token_is_end(at).unwrap_or(true)
    }

    fn token_is_end(&self, at: usize) -> Option<bool> {
        let c = *self.chars.get(at)?;
        // `token` would call this function again for another `$`.
        let token = match c {
            '$' | '^' => RegexToken::Char(c),
            _ => self.token(at)?.0,
        };
        Some(matches!(token, RegexToken::Alternative | RegexToken::Close))
    }

    fn push(&mut self, atom: &str) {
        self.atom = Some(self.out.len());
        self.at_start = false;
        self.out.push_str(atom);
    }

    fn literal(&mut self, c: char) {
        self.push(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    /// An anchor cannot be repeated, so no atom stands before the next token. A `^` after it is no anchor, because the
    /// alternative has begun.
    fn anchor(&mut self, anchor: &str) {
        self.out.push_str(anchor);
        (self.at_start, self.atom) = (false, None);
    }

    fn close(&mut self) -> Result<(), String> {
        match self.open.pop() {
            Some(from) => {
                self.out.push(')');
                (self.at_start, self.atom) = (false, Some(from));
                Ok(())
            }
            None if self.extended => {
                self.literal(')');
                Ok(())
            }
            None => Err("a closing parenthesis has no opening one".to_owned()),
        }
    }

    fn repeat(&mut self, operator: &str, c: char) -> Result<(), String> {
        match self.atom {
            Some(from) => {
                // The atom gets its own group, because `a*?` and `a*+` have other meanings in the `regex` crate.
                self.out.insert_str(from, "(?:");
                self.out.push(')');
                self.out.push_str(operator);
            }
            None if self.extended => {
                return Err(format!("{c} has nothing before it to repeat"));
            }
            None => self.literal(c),
        }
        Ok(())
    }

    /// Reads an interval after its brace.
    fn interval(&mut self) -> Result<(), String> {
        let rest = &self.chars[self.at..];
        let end = rest.iter().position(|&c| c == '}');
        let bounds = end.and_then(|end| bounds(&rest[..end]).map(|bounds| (end, bounds)));
        let Some((end, (least, most))) = bounds else {
            return Err("an interval is not of the form {N}, {N,}, {,M} or {N,M}".to_owned());
        };
        if most.is_some_and(|most| most < least) {
            return Err(format!("an interval ends below its start {least}"));
        }
        self.at += end + 1;
        let most = most.map_or(String::new(), |most| most.to_string());
        self.repeat(&format!("{{{least},{most}}}"), '{')
    }

    /// Reads a bracket expression after its `[`.
    fn bracket(&mut self) -> Result<(), String> {
        let mut set = String::from("[");
        if self.chars.get(self.at) == Some(&'^') {
            set.push('^');
            self.at += 1;
        }
        let mut is_first = true;
        let mut items = String::new();
        loop {
            let c = *self.chars.get(self.at).ok_or(UNCLOSED)?;
            if c == ']' && !is_first {
                self.at += 1;
                break;
            }
            is_first = false;
            match (c, self.chars.get(self.at + 1)) {
                ('[', Some(':')) if self.extended => {
                    let name = self.named(':')?;
                    let class = CLASSES.iter().find(|(known, _)| *known == name);
                    let (_, class) =
                        class.ok_or_else(|| format!("[:{name}:] is not a known class"))?;
                    items.push_str(class);
                }
                ('[', Some('=')) => {
                    let c = self.single('=')?;
                    push_range(&mut items, (c, c), Case::Sensitive);
                }
                _ => self.range(&mut items)?,
            }
        }
        if items.is_empty() {
            // All ranges were empty. The `regex` crate rejects `[]`; this set is empty too.
            items.push_str("a&&b");
        }
        set.push_str(&items);
        set.push(']');
        self.push(&set);
        Ok(())
    }

    fn range(&mut self, items: &mut String) -> Result<(), String> {
        let low = self.element()?;
        let is_range = self.chars.get(self.at) == Some(&'-')
            && self.chars.get(self.at + 1).is_some_and(|&c| c != ']');
        let high = if is_range {
            self.at += 1;
            self.element()?
        } else {
            low
        };
        if low <= high {
            push_range(items, (low, high), Case::Sensitive);
        } else if self.extended {
            return Err(format!("the range {low}-{high} is empty"));
        }
        Ok(())
    }

    fn element(&mut self) -> Result<char, String> {
        let c = *self.chars.get(self.at).ok_or(UNCLOSED)?;
        if (c, self.chars.get(self.at + 1)) == ('[', Some(&'.')) {
            return self.single('.');
        }
        self.at += 1;
        Ok(c)
    }

    /// The character of `[.x.]` or `[=x=]`.
    fn single(&mut self, mark: char) -> Result<char, String> {
        let name = self.named(mark)?;
        let mut chars = name.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => Err(format!("[{mark}{name}{mark}] is not one character")),
        }
    }

    /// The name between `[:` and `:]`, or between other marks.
    fn named(&mut self, mark: char) -> Result<String, String> {
        let rest = &self.chars[self.at + 2..];
        let end = rest.windows(2).position(|pair| pair == [mark, ']']);
        let end = end.ok_or(UNCLOSED)?;
        self.at += end + 4;
        Ok(rest[..end].iter().collect())
    }
}

/// `N`, `N,`, `,M` and `N,M`.
fn bounds(text: &[char]) -> Option<(u32, Option<u32>)> {
    let text: String = text.iter().collect();
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|n| digits && *n <= MOST_REPETITIONS)
    };
    match text.split_once(',') {
        None => number(&text).map(|n| (n, Some(n))),
        Some((least, most)) => {
            let least = if least.is_empty() { 0 } else { number(least)? };
            let most = if most.is_empty() {
                None
            } else {
                Some(number(most)?)
            };
            Some((least, most))
        }
    }
}

const UNCLOSED: &str = "a bracket is not closed";

/// `RE_DUP_MAX`.
const MOST_REPETITIONS: u32 = 0x7fff;

/// The operators of GNU: letter, translation, and whether it is an anchor.
const GNU: &[(char, &str, bool)] = &[
    ('w', r"\w", false),
    ('W', r"\W", false),
    ('s', r"\s", false),
    ('S', r"\S", false),
    ('<', r"\b{start}", true),
    ('>', r"\b{end}", true),
    ('b', r"\b", true),
    ('B', r"\B", true),
    ('`', r"\A", true),
    ('\'', r"\z", true),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What the comparison with GNU find does not have among its patterns.
    #[test]
    fn dialects_differ() {
        for (dialect, pattern, text, expected) in [
            ("emacs", "a.b", "a\nb", Some(false)),
            ("emacs", r"\w*\.iso", "café.iso", Some(true)),
            ("posix-extended", "[[:upper:]]{2}", "ÉA", Some(true)),
            ("posix-extended", "[[.a.]-c]", "b", Some(true)),
            ("posix-extended", "*a", "a", None),
            ("rust", r"\d+(?i)A", "1a", Some(true)),
            ("rust", "a)|(b", "a", None),
            ("emacs", r"\(a\)\1", "aa", None),
            ("posix-extended", "a{40000}", "a", None),
            ("posix-extended", "(((a{1000}){1000}){1000})", "a", None),
            ("posix-extended", "a{3,2}", "aa", None),
            ("emacs", "*\\{2\\}", "*{2}", Some(true)),
        ] {
            let dialect = Dialect::named(dialect).expect("a dialect");
            let regex = dialect.compile(pattern, Case::Sensitive);
            let matches = regex.ok().map(|regex| regex.is_match(text.as_bytes()));
            assert_eq!(matches, expected, "{pattern} on {text}");
        }
        assert!(Dialect::named("pcre").is_none());
    }

    /// Paths need not be UTF-8, but a dot matches only a UTF-8 character.
    #[test]
    fn paths_are_matched_as_a_whole_and_by_bytes() {
        let regex = Dialect::Emacs.compile(".*A", Case::Ignored).expect("valid");
        assert!(regex.is_match(b"xa"));
        assert!(!regex.is_match(b"xab"));
        assert!(!regex.is_match(b"caf\xe9a"));
        let name = Dialect::Emacs
            .compile(r"/x\|/y", Case::Sensitive)
            .expect("valid");
        assert!(name.is_match(b"/y") && !name.is_match(b"/xy"));
    }
}
