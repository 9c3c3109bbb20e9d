//! The regular expressions of GNU find (`-regextype`; POSIX XBD 9 and GNU extensions), translated to the syntax of the
//! `regex` crate.
//!
//! One table has all differences between the dialects. Back-references are not supported: the `regex` crate guarantees
//! linear time and has none. A translation is matched only against a whole path, so that the rule which of several
//! matches a dialect prefers has no effect.

use std::fmt::Write as _;

use regex::bytes::{Regex, RegexBuilder};

use crate::find::glob::Case;

/// A dialect of regular expressions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    /// A dialect of POSIX or GNU.
    Posix(Syntax),
    /// The syntax of the `regex` crate.
    Rust,
}

/// The differences between the dialects of POSIX and GNU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Syntax {
    /// `(`, `)`, `|` and the braces of intervals are operators without a backslash. If not, with a backslash.
    unescaped_operators: bool,
    plus: PlusSyntax,
    intervals: IntervalSyntax,
    /// `[[:alpha:]]`
    classes: bool,
    /// A backslash escapes inside brackets.
    list_escapes: bool,
    /// `[z-a]` is an error. If not, the range is empty.
    strict_ranges: bool,
    dot: DotMeaning,
    /// `^` and `$` are anchors everywhere.
    anchors_anywhere: bool,
    leading_star: LeadingStar,
    /// A star or an interval after a repetition is an error, and an interval without anything to repeat is one too.
    strict_repeats: bool,
    /// A `)` without its `(` is a literal.
    loose_close: bool,
    back_references: bool,
    /// The operators of GNU: `\w`, `\<` and others.
    gnu_operators: bool,
    /// A newline separates alternatives.
    newline_alternates: bool,
}

/// How the operators `+` and `?` are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PlusSyntax {
    Plain,
    Escaped,
    /// The dialect has neither, and no `|`.
    None,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum IntervalSyntax {
    None,
    Strict,
    /// An invalid interval is literal characters.
    Loose,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DotMeaning {
    Any,
    NotNewline,
    NotNul,
}

/// A repetition without anything to repeat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LeadingStar {
    Literal,
    Skipped,
    Error,
}

impl Dialect {
    /// The default of GNU find.
    pub(super) const EMACS: Self = Self::Posix(EMACS);

    /// The dialect with this name of `-regextype`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let named = DIALECTS.iter().find(|(known, _)| *known == name);
        named.map(|&(_, dialect)| dialect)
    }

    /// All names, separated by commas, for messages.
    pub(super) fn names() -> String {
        let names: Vec<&str> = DIALECTS.iter().map(|&(name, _)| name).collect();
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
        at_start: true,
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
    /// Offsets in `out` of the groups that are still open.
    open: Vec<usize>,
    /// Offset in `out` of the atom that a repetition would apply to.
    atom: Option<usize>,
    /// At the start of an alternative.
    at_start: bool,
    /// The last token was a repetition.
    repeated: bool,
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
            let written = self.at;
            self.at = after;
            let repeats = matches!(token, RegexToken::Star | RegexToken::Interval);
            if repeats && self.repeated && self.syntax.strict_repeats {
                return Err("a repetition follows another repetition".to_owned());
            }
            self.repeated = false;
            match token {
                RegexToken::Char(c) => self.literal(c),
                RegexToken::Dot => self.push(match self.syntax.dot {
                    DotMeaning::Any => ".",
                    DotMeaning::NotNewline => r"[^\n]",
                    DotMeaning::NotNul => r"[^\x00]",
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
                RegexToken::Interval => self.interval(written)?,
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
        let syntax = self.syntax;
        let c = *self.chars.get(at)?;
        let alternation = syntax.plus != PlusSyntax::None;
        let plain = |is: bool, token: RegexToken| if is { token } else { RegexToken::Char(c) };
        let token = match c {
            '\\' => return Some(self.escaped(at)),
            '.' => RegexToken::Dot,
            '*' => RegexToken::Star,
            '[' => RegexToken::Bracket,
            '+' => plain(syntax.plus == PlusSyntax::Plain, RegexToken::Plus),
            '?' => plain(syntax.plus == PlusSyntax::Plain, RegexToken::Question),
            '|' => plain(
                syntax.unescaped_operators && alternation,
                RegexToken::Alternative,
            ),
            '\n' => plain(syntax.newline_alternates, RegexToken::Alternative),
            '(' => plain(syntax.unescaped_operators, RegexToken::Open),
            ')' => plain(syntax.unescaped_operators, RegexToken::Close),
            '{' => plain(
                syntax.unescaped_operators && syntax.intervals != IntervalSyntax::None,
                RegexToken::Interval,
            ),
            '^' => plain(syntax.anchors_anywhere || self.at_start, RegexToken::Caret),
            '$' => plain(self.ends_alternative(at + 1), RegexToken::Dollar),
            c => RegexToken::Char(c),
        };
        Some((token, at + 1))
    }

    fn escaped(&self, at: usize) -> (RegexToken, usize) {
        let syntax = self.syntax;
        let Some(&c) = self.chars.get(at + 1) else {
            return (RegexToken::Char('\\'), at + 1);
        };
        let alternation = syntax.plus != PlusSyntax::None;
        let when = |is: bool, token: RegexToken| if is { token } else { RegexToken::Char(c) };
        let token = match c {
            '(' => when(!syntax.unescaped_operators, RegexToken::Open),
            ')' => when(!syntax.unescaped_operators, RegexToken::Close),
            '|' => when(
                !syntax.unescaped_operators && alternation,
                RegexToken::Alternative,
            ),
            '{' => when(
                !syntax.unescaped_operators && syntax.intervals != IntervalSyntax::None,
                RegexToken::Interval,
            ),
            '+' => when(syntax.plus == PlusSyntax::Escaped, RegexToken::Plus),
            '?' => when(syntax.plus == PlusSyntax::Escaped, RegexToken::Question),
            '1'..='9' => when(syntax.back_references, RegexToken::BackReference(c)),
            c => {
                let known = GNU
                    .iter()
                    .find(|(letter, ..)| syntax.gnu_operators && *letter == c);
                match known {
                    Some(&(_, operator, anchor)) => RegexToken::Gnu(operator, anchor),
                    None => RegexToken::Char(c),
                }
            }
        };
        (token, at + 2)
    }

    /// Whether a `$` directly before `at` is an anchor.
    fn ends_alternative(&self, at: usize) -> bool {
        self.syntax.anchors_anywhere || self.token_is_end(at).unwrap_or(true)
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
            None if self.syntax.loose_close => {
                self.literal(')');
                Ok(())
            }
            None => Err("a closing parenthesis has no opening one".to_owned()),
        }
    }

    fn repeat(&mut self, operator: &str, c: char) -> Result<(), String> {
        match (self.atom, self.syntax.leading_star) {
            (Some(from), _) => {
                // The atom gets its own group, because `a*?` and `a*+` have other meanings in the `regex` crate.
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
            (None, LeadingStar::Error) => Err(format!("{c} has nothing before it to repeat")),
        }
    }

    /// Reads an interval after its brace. `from` is the start of the operator.
    fn interval(&mut self, from: usize) -> Result<(), String> {
        if self.atom.is_none() {
            return match self.syntax.leading_star {
                // As in GNU: only the brace itself is skipped, or is a literal.
                LeadingStar::Skipped => Ok(()),
                LeadingStar::Literal if !self.syntax.strict_repeats => {
                    self.literal('{');
                    Ok(())
                }
                _ => Err("an interval has nothing before it to repeat".to_owned()),
            };
        }
        let closing: &[char] = if self.syntax.unescaped_operators {
            &['}']
        } else {
            &['\\', '}']
        };
        let rest = &self.chars[self.at..];
        let end = rest.windows(closing.len()).position(|w| w == closing);
        let bounds = end.and_then(|end| bounds(&rest[..end]).map(|bounds| (end, bounds)));
        let Some((end, (least, most))) = bounds else {
            if self.syntax.intervals == IntervalSyntax::Loose && end != Some(0) {
                self.at = from + 1;
                self.literal(self.chars[from]);
                return Ok(());
            }
            return Err("an interval is not of the form {N}, {N,}, {,M} or {N,M}".to_owned());
        };
        if most.is_some_and(|most| most < least) {
            return Err(format!("an interval ends below its start {least}"));
        }
        self.at += end + closing.len();
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
                ('[', Some(':')) if self.syntax.classes => {
                    let name = self.named(':')?;
                    let class = CLASSES.iter().find(|(known, _)| *known == name);
                    let (_, class) =
                        class.ok_or_else(|| format!("[:{name}:] is not a known class"))?;
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

fn push_range(items: &mut String, low: char, high: char) {
    // `write!` to a String never fails.
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
    unescaped_operators: false,
    plus: PlusSyntax::Plain,
    intervals: IntervalSyntax::None,
    classes: false,
    list_escapes: false,
    strict_ranges: false,
    dot: DotMeaning::NotNewline,
    anchors_anywhere: false,
    leading_star: LeadingStar::Literal,
    strict_repeats: false,
    loose_close: false,
    back_references: true,
    gnu_operators: true,
    newline_alternates: false,
};

const BASIC: Syntax = Syntax {
    plus: PlusSyntax::Escaped,
    intervals: IntervalSyntax::Strict,
    classes: true,
    strict_ranges: true,
    strict_repeats: true,
    dot: DotMeaning::NotNul,
    ..EMACS
};

const EXTENDED: Syntax = Syntax {
    unescaped_operators: true,
    plus: PlusSyntax::Plain,
    anchors_anywhere: true,
    leading_star: LeadingStar::Error,
    strict_repeats: false,
    loose_close: true,
    ..BASIC
};

const EGREP: Syntax = Syntax {
    intervals: IntervalSyntax::Loose,
    leading_star: LeadingStar::Skipped,
    newline_alternates: true,
    ..EXTENDED
};

const DIALECTS: &[(&str, Dialect)] = &[
    ("emacs", Dialect::Posix(EMACS)),
    (
        "findutils-default",
        Dialect::Posix(Syntax {
            dot: DotMeaning::Any,
            ..EMACS
        }),
    ),
    ("posix-basic", Dialect::Posix(BASIC)),
    ("ed", Dialect::Posix(BASIC)),
    ("sed", Dialect::Posix(BASIC)),
    (
        "posix-minimal-basic",
        Dialect::Posix(Syntax {
            plus: PlusSyntax::None,
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
            intervals: IntervalSyntax::Loose,
            dot: DotMeaning::Any,
            leading_star: LeadingStar::Literal,
            ..EXTENDED
        }),
    ),
    (
        "posix-awk",
        Dialect::Posix(Syntax {
            list_escapes: true,
            intervals: IntervalSyntax::Loose,
            gnu_operators: false,
            ..EXTENDED
        }),
    ),
    (
        "awk",
        Dialect::Posix(Syntax {
            list_escapes: true,
            intervals: IntervalSyntax::None,
            leading_star: LeadingStar::Literal,
            back_references: false,
            gnu_operators: false,
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
            ("emacs", r"[[:digit:]]", ":]", Some(true)),
            ("emacs", r"\w*\.iso", "café.iso", Some(true)),
            ("posix-extended", "(a|b)+c?", "abba", Some(true)),
            ("posix-extended", "[[:upper:]]{2}", "ÉA", Some(true)),
            ("posix-extended", "[[.a.]-c]", "b", Some(true)),
            ("posix-extended", "*a", "a", None),
            ("posix-extended", "a{1", "a{1", None),
            ("posix-extended", "[z-a]", "z", None),
            ("emacs", "[z-a]", "z", Some(false)),
            ("posix-extended", r"[\]", "\\", Some(true)),
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
