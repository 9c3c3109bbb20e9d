//! The regular expressions of GNU find (`-regextype`), translated to the syntax of the `regex` crate.
//!
//! What the dialects differ in is in one table. Back-references are refused: no matcher of bounded effort has them.
//! A translation is only ever matched against a whole path, so that the rule by which a dialect prefers one match to
//! another does not show.

use std::fmt::Write as _;

use regex::bytes::{Regex, RegexBuilder};

use crate::find::glob::Case;

/// A dialect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    /// One of POSIX or GNU.
    Posix(Syntax),
    /// That of the `regex` crate itself.
    Rust,
}

/// In what the dialects of POSIX and GNU differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Syntax {
    /// `(`, `)`, `|`, and braces if there are any, are operators as they stand. Otherwise a backslash makes them so.
    plain: bool,
    plus: Plus,
    intervals: Intervals,
    /// `[[:alpha:]]`
    classes: bool,
    /// A backslash escapes within brackets.
    list_escapes: bool,
    /// `[z-a]` is an error; otherwise it is empty.
    strict_ranges: bool,
    dot: Dot,
    /// `^` and `$` are anchors everywhere.
    anchors_anywhere: bool,
    leading_star: LeadingStar,
    /// A star or an interval cannot repeat a repetition, nor an interval nothing.
    strict_repeats: bool,
    /// A `)` too many is a character.
    loose_close: bool,
    back_references: bool,
    /// `\w`, `\<` and such.
    gnu: bool,
    /// A newline separates alternatives.
    newline_alternates: bool,
}

/// How `+` and `?` are written as operators.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Plus {
    Plain,
    Escaped,
    /// Not at all, and neither is `|`.
    None,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Intervals {
    None,
    Strict,
    /// What is no interval is its characters.
    Loose,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Dot {
    Any,
    NotNewline,
    NotNul,
}

/// A repetition of nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LeadingStar {
    Literal,
    Skipped,
    Error,
}

impl Dialect {
    /// GNU find's default.
    pub(super) const EMACS: Self = Self::Posix(EMACS);

    /// By the name that `-regextype` has for it.
    pub(super) fn named(name: &str) -> Option<Self> {
        let named = DIALECTS.iter().find(|(known, _)| *known == name);
        named.map(|&(_, dialect)| dialect)
    }

    /// All names, for messages.
    pub(super) fn names() -> String {
        let names: Vec<&str> = DIALECTS.iter().map(|&(name, _)| name).collect();
        names.join(", ")
    }

    /// Compiles `pattern` so that it matches whole paths.
    pub(super) fn compile(self, pattern: &str, case: Case) -> Result<Regex, String> {
        let (inner, lines) = match self {
            Self::Rust => {
                // Compiled alone first, so that an unbalanced group cannot pair up with the one around it.
                Regex::new(pattern).map_err(|error| error.to_string())?;
                (pattern.to_owned(), false)
            }
            // Anchors hold at lines, as they do in GNU find.
            Self::Posix(syntax) => (translate(pattern, syntax)?, true),
        };
        RegexBuilder::new(&format!(r"\A(?:{inner})\z"))
            .dot_matches_new_line(true)
            .multi_line(lines)
            .case_insensitive(case == Case::Ignored)
            .build()
            .map_err(|error| error.to_string())
    }
}

fn translate(pattern: &str, syntax: Syntax) -> Result<String, String> {
    let mut translation = Translation {
        chars: pattern.chars().collect(),
        at: 0,
        syntax,
        out: String::with_capacity(2 * pattern.len()),
        open: Vec::new(),
        atom: None,
        fresh: true,
        repeated: false,
    };
    translation.run()?;
    Ok(translation.out)
}

struct Translation {
    chars: Vec<char>,
    at: usize,
    syntax: Syntax,
    out: String,
    /// Where in `out` each group begins that is still open.
    open: Vec<usize>,
    /// Where in `out` the atom begins that a repetition would apply to.
    atom: Option<usize>,
    /// At the start of an alternative.
    fresh: bool,
    /// The last token was a repetition.
    repeated: bool,
}

/// What is read at a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token {
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
    /// An operator of GNU, by its letter, and whether it is an anchor.
    Gnu(&'static str, bool),
}

impl Translation {
    fn run(&mut self) -> Result<(), String> {
        while let Some((token, after)) = self.token(self.at) {
            let written = self.at;
            self.at = after;
            let repeats = matches!(token, Token::Star | Token::Interval);
            if repeats && self.repeated && self.syntax.strict_repeats {
                return Err("a repetition has only a repetition to repeat".to_owned());
            }
            self.repeated = false;
            match token {
                Token::Char(c) => self.literal(c),
                Token::Dot => self.push(match self.syntax.dot {
                    Dot::Any => ".",
                    Dot::NotNewline => r"[^\n]",
                    Dot::NotNul => r"[^\x00]",
                }),
                Token::Open => {
                    self.open.push(self.out.len());
                    self.out.push_str("(?:");
                    (self.fresh, self.atom) = (true, None);
                }
                Token::Close => self.close()?,
                Token::Alternative => {
                    self.out.push('|');
                    (self.fresh, self.atom) = (true, None);
                }
                Token::Star => self.repeat("*", '*')?,
                Token::Plus => self.repeat("+", '+')?,
                Token::Question => self.repeat("?", '?')?,
                Token::Interval => self.interval(written)?,
                Token::Bracket => self.bracket()?,
                Token::Caret => self.anchor("^"),
                Token::Dollar => self.anchor("$"),
                Token::Gnu(operator, true) => self.anchor(operator),
                Token::Gnu(operator, false) => self.push(operator),
                Token::BackReference(digit) => {
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

    /// The token at `at` and where the next one begins.
    fn token(&self, at: usize) -> Option<(Token, usize)> {
        let syntax = self.syntax;
        let c = *self.chars.get(at)?;
        let alternation = syntax.plus != Plus::None;
        let plain = |is: bool, token: Token| if is { token } else { Token::Char(c) };
        let token = match c {
            '\\' => return Some(self.escaped(at)),
            '.' => Token::Dot,
            '*' => Token::Star,
            '[' => Token::Bracket,
            '+' => plain(syntax.plus == Plus::Plain, Token::Plus),
            '?' => plain(syntax.plus == Plus::Plain, Token::Question),
            '|' => plain(syntax.plain && alternation, Token::Alternative),
            '\n' => plain(syntax.newline_alternates, Token::Alternative),
            '(' => plain(syntax.plain, Token::Open),
            ')' => plain(syntax.plain, Token::Close),
            '{' => plain(
                syntax.plain && syntax.intervals != Intervals::None,
                Token::Interval,
            ),
            '^' => plain(syntax.anchors_anywhere || self.fresh, Token::Caret),
            '$' => plain(self.ends_alternative(at + 1), Token::Dollar),
            c => Token::Char(c),
        };
        Some((token, at + 1))
    }

    fn escaped(&self, at: usize) -> (Token, usize) {
        let syntax = self.syntax;
        let Some(&c) = self.chars.get(at + 1) else {
            return (Token::Char('\\'), at + 1);
        };
        let alternation = syntax.plus != Plus::None;
        let when = |is: bool, token: Token| if is { token } else { Token::Char(c) };
        let token = match c {
            '(' => when(!syntax.plain, Token::Open),
            ')' => when(!syntax.plain, Token::Close),
            '|' => when(!syntax.plain && alternation, Token::Alternative),
            '{' => when(
                !syntax.plain && syntax.intervals != Intervals::None,
                Token::Interval,
            ),
            '+' => when(syntax.plus == Plus::Escaped, Token::Plus),
            '?' => when(syntax.plus == Plus::Escaped, Token::Question),
            '1'..='9' => when(syntax.back_references, Token::BackReference(c)),
            c => {
                let known = GNU.iter().find(|(letter, ..)| syntax.gnu && *letter == c);
                match known {
                    Some(&(_, operator, anchor)) => Token::Gnu(operator, anchor),
                    None => Token::Char(c),
                }
            }
        };
        (token, at + 2)
    }

    /// Whether a `$` before `at` is an anchor.
    fn ends_alternative(&self, at: usize) -> bool {
        self.syntax.anchors_anywhere || self.token_is_end(at).unwrap_or(true)
    }

    fn token_is_end(&self, at: usize) -> Option<bool> {
        let c = *self.chars.get(at)?;
        // Not `token`, which would come back here for another `$`.
        let token = match c {
            '$' | '^' => Token::Char(c),
            _ => self.token(at)?.0,
        };
        Some(matches!(token, Token::Alternative | Token::Close))
    }

    fn push(&mut self, atom: &str) {
        self.atom = Some(self.out.len());
        self.fresh = false;
        self.out.push_str(atom);
    }

    fn literal(&mut self, c: char) {
        self.push(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    /// Nothing can repeat an anchor: what follows it is as at the start, but that no other `^` is an anchor there.
    fn anchor(&mut self, anchor: &str) {
        self.out.push_str(anchor);
        (self.fresh, self.atom) = (false, None);
    }

    fn close(&mut self) -> Result<(), String> {
        match self.open.pop() {
            Some(from) => {
                self.out.push(')');
                (self.fresh, self.atom) = (false, Some(from));
                Ok(())
            }
            None if self.syntax.loose_close => {
                self.literal(')');
                Ok(())
            }
            None => Err("a closing parenthesis is too many".to_owned()),
        }
    }

    fn repeat(&mut self, operator: &str, c: char) -> Result<(), String> {
        match (self.atom, self.syntax.leading_star) {
            (Some(from), _) => {
                // In a group, since `a*?` and `a*+` would mean something else.
                self.out.insert_str(from, "(?:");
                self.out.push(')');
                self.out.push_str(operator);
                self.repeated = true;
                Ok(())
            }
            (None, LeadingStar::Literal) => {
                self.literal(c);
                Ok(())
            }
            (None, LeadingStar::Skipped) => Ok(()),
            (None, LeadingStar::Error) => Err(format!("{c} has nothing to repeat")),
        }
    }

    /// After the brace; `from` is where the operator begins.
    fn interval(&mut self, from: usize) -> Result<(), String> {
        if self.atom.is_none() {
            return match self.syntax.leading_star {
                // As GNU's matcher has it: only the brace itself is skipped, or is a character.
                LeadingStar::Skipped => Ok(()),
                LeadingStar::Literal if !self.syntax.strict_repeats => {
                    self.literal('{');
                    Ok(())
                }
                _ => Err("an interval has nothing to repeat".to_owned()),
            };
        }
        let closing: &[char] = if self.syntax.plain {
            &['}']
        } else {
            &['\\', '}']
        };
        let rest = &self.chars[self.at..];
        let end = rest.windows(closing.len()).position(|w| w == closing);
        let bounds = end.and_then(|end| bounds(&rest[..end]).map(|bounds| (end, bounds)));
        let Some((end, (least, most))) = bounds else {
            if self.syntax.intervals == Intervals::Loose && end != Some(0) {
                self.at = from + 1;
                self.literal(self.chars[from]);
                return Ok(());
            }
            return Err("an interval is not of the form {N}, {N,}, {,M} or {N,M}".to_owned());
        };
        if most.is_some_and(|most| most < least) {
            return Err(format!("the interval from {least} on ends before it"));
        }
        self.at += end + closing.len();
        let most = most.map_or(String::new(), |most| most.to_string());
        self.repeat(&format!("{{{least},{most}}}"), '{')
    }

    /// After the opening bracket.
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
                ('[', Some(':')) if self.syntax.classes => {
                    let name = self.named(':')?;
                    let class = CLASSES.iter().find(|(known, _)| *known == name);
                    let (_, class) = class.ok_or_else(|| format!("[:{name}:] is no class"))?;
                    items.push_str(class);
                }
                ('[', Some('=')) => {
                    let c = self.single('=')?;
                    push_range(&mut items, c, c);
                }
                _ => self.range(&mut items)?,
            }
        }
        if items.is_empty() {
            // Only empty ranges: nothing is in it, and the brackets must not be empty.
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
            push_range(items, low, high);
        } else if self.syntax.strict_ranges {
            return Err(format!("the range {low}-{high} is empty"));
        }
        Ok(())
    }

    fn element(&mut self) -> Result<char, String> {
        let c = *self.chars.get(self.at).ok_or(UNCLOSED)?;
        let next = self.chars.get(self.at + 1);
        match (c, next) {
            ('[', Some('.')) => return self.single('.'),
            ('\\', Some(&next)) if self.syntax.list_escapes => {
                self.at += 2;
                return Ok(next);
            }
            _ => {}
        }
        self.at += 1;
        Ok(c)
    }

    /// The one character of `[.x.]` or `[=x=]`.
    fn single(&mut self, mark: char) -> Result<char, String> {
        let name = self.named(mark)?;
        let mut chars = name.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => Err(format!("[{mark}{name}{mark}] is not one character")),
        }
    }

    /// What stands between `[:` and `:]`.
    fn named(&mut self, mark: char) -> Result<String, String> {
        let rest = &self.chars[self.at + 2..];
        let end = rest.windows(2).position(|pair| pair == [mark, ']']);
        let end = end.ok_or(UNCLOSED)?;
        self.at += end + 4;
        Ok(rest[..end].iter().collect())
    }
}

fn push_range(items: &mut String, low: char, high: char) {
    // Writing to a string cannot fail.
    let _ = write!(items, r"\x{{{:X}}}-\x{{{:X}}}", low as u32, high as u32);
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

const CLASSES: &[(&str, &str)] = &[
    ("alnum", r"\p{Alphabetic}\p{Nd}"),
    ("alpha", r"\p{Alphabetic}"),
    ("blank", r"\t\p{Zs}"),
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

const EMACS: Syntax = Syntax {
    plain: false,
    plus: Plus::Plain,
    intervals: Intervals::None,
    classes: false,
    list_escapes: false,
    strict_ranges: false,
    dot: Dot::NotNewline,
    anchors_anywhere: false,
    leading_star: LeadingStar::Literal,
    strict_repeats: false,
    loose_close: false,
    back_references: true,
    gnu: true,
    newline_alternates: false,
};

const BASIC: Syntax = Syntax {
    plus: Plus::Escaped,
    intervals: Intervals::Strict,
    classes: true,
    strict_ranges: true,
    strict_repeats: true,
    dot: Dot::NotNul,
    ..EMACS
};

const EXTENDED: Syntax = Syntax {
    plain: true,
    plus: Plus::Plain,
    anchors_anywhere: true,
    leading_star: LeadingStar::Error,
    strict_repeats: false,
    loose_close: true,
    ..BASIC
};

const EGREP: Syntax = Syntax {
    intervals: Intervals::Loose,
    leading_star: LeadingStar::Skipped,
    newline_alternates: true,
    ..EXTENDED
};

const DIALECTS: &[(&str, Dialect)] = &[
    ("emacs", Dialect::Posix(EMACS)),
    (
        "findutils-default",
        Dialect::Posix(Syntax {
            dot: Dot::Any,
            ..EMACS
        }),
    ),
    ("posix-basic", Dialect::Posix(BASIC)),
    ("ed", Dialect::Posix(BASIC)),
    ("sed", Dialect::Posix(BASIC)),
    (
        "posix-minimal-basic",
        Dialect::Posix(Syntax {
            plus: Plus::None,
            strict_repeats: false,
            ..BASIC
        }),
    ),
    (
        "grep",
        Dialect::Posix(Syntax {
            newline_alternates: true,
            strict_repeats: false,
            ..BASIC
        }),
    ),
    ("posix-extended", Dialect::Posix(EXTENDED)),
    ("egrep", Dialect::Posix(EGREP)),
    ("posix-egrep", Dialect::Posix(EGREP)),
    (
        "gnu-awk",
        Dialect::Posix(Syntax {
            list_escapes: true,
            intervals: Intervals::Loose,
            dot: Dot::Any,
            leading_star: LeadingStar::Literal,
            ..EXTENDED
        }),
    ),
    (
        "posix-awk",
        Dialect::Posix(Syntax {
            list_escapes: true,
            intervals: Intervals::Loose,
            gnu: false,
            ..EXTENDED
        }),
    ),
    (
        "awk",
        Dialect::Posix(Syntax {
            list_escapes: true,
            intervals: Intervals::None,
            leading_star: LeadingStar::Literal,
            back_references: false,
            gnu: false,
            ..EXTENDED
        }),
    ),
    ("rust", Dialect::Rust),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_differ() {
        for (dialect, pattern, text, expected) in [
            ("emacs", r"a\(b\|c\)+", "abcb", Some(true)),
            ("emacs", r"a{2}", "a{2}", Some(true)),
            ("emacs", "a.b", "a\nb", Some(false)),
            ("findutils-default", "a.b", "a\nb", Some(true)),
            ("emacs", r"[[:digit:]]", ":]", Some(true)),
            ("emacs", r"\w*\.iso", "café.iso", Some(true)),
            ("posix-basic", r"a\{2,3\}", "aaa", Some(true)),
            ("posix-basic", r"a\{2,3\}", "aaaa", Some(false)),
            ("posix-basic", "a+", "a+", Some(true)),
            ("posix-basic", r"a\+", "aaa", Some(true)),
            ("posix-basic", "*a", "*a", Some(true)),
            ("posix-basic", "a**", "aaa", None),
            ("posix-minimal-basic", r"a\+\|b", "a+|b", Some(true)),
            ("posix-extended", "(a|b)+c?", "abba", Some(true)),
            ("posix-extended", "[[:upper:]]{2}", "ÉA", Some(true)),
            ("posix-extended", "[[.a.]-c]", "b", Some(true)),
            ("posix-extended", "*a", "a", None),
            ("posix-extended", "a{1", "a{1", None),
            ("posix-extended", "[z-a]", "z", None),
            ("emacs", "[z-a]", "z", Some(false)),
            ("egrep", "*a", "a", Some(true)),
            ("egrep", "a{1", "a{1", Some(true)),
            ("egrep", "a\nb", "b", Some(true)),
            ("awk", r"a\.[\]]", "a.]", Some(true)),
            ("posix-extended", r"[\]", "\\", Some(true)),
            ("awk", r"\<a{2}", "<a{2}", Some(true)),
            ("grep", r"^\(a\)$", "a", Some(true)),
            ("sed", "a^b$c", "a^b$c", Some(true)),
            ("rust", r"\d+(?i)A", "1a", Some(true)),
            ("rust", "a)|(b", "a", None),
            ("emacs", r"\(a\)\1", "aa", None),
            ("awk", r"a\1", "a1", Some(true)),
            ("posix-extended", "a{40000}", "a", None),
            ("posix-extended", "(((a{1000}){1000}){1000})", "a", None),
            ("posix-extended", "a{3,2}", "aa", None),
            ("posix-awk", "({.)", "{x", None),
            ("posix-awk", "a{}", "a{}", None),
            ("posix-awk", "a{x", "a{x", Some(true)),
            ("egrep", "{2}a", "2}a", Some(true)),
            ("emacs", "*\\{2\\}", "*{2}", Some(true)),
        ] {
            let dialect = Dialect::named(dialect).expect("a dialect");
            let regex = dialect.compile(pattern, Case::Sensitive);
            let matches = regex.ok().map(|regex| regex.is_match(text.as_bytes()));
            assert_eq!(matches, expected, "{pattern} on {text}");
        }
        assert!(Dialect::named("pcre").is_none());
    }

    /// Neither the whole path nor anything in it needs to be UTF-8, but a dot is one character.
    #[test]
    fn paths_are_matched_as_a_whole_and_by_bytes() {
        let regex = Dialect::EMACS.compile(".*A", Case::Ignored).expect("valid");
        assert!(regex.is_match(b"xa"));
        assert!(!regex.is_match(b"xab"));
        assert!(!regex.is_match(b"caf\xe9a"));
        let name = Dialect::EMACS
            .compile(r"/x\|/y", Case::Sensitive)
            .expect("valid");
        assert!(name.is_match(b"/y") && !name.is_match(b"/xy"));
    }
}
