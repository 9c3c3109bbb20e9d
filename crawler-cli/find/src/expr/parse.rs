//! Parses the words of an expression as GNU find does: primaries with their arguments, then operators by precedence.
//! Words that are not part of an expression are left to the caller.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use url::Url;

use super::format::{Clock, Format};
use super::posix::Dialect;
use super::predicate::{Comparison, NANOS, Test, TimeTest, nanos};
use super::{Action, Condition, Expression, Node, Output, Reference, Text};
use crate::glob::{Case, Glob};

/// Takes the words of an expression one by one, so that other options may stand between them.
#[derive(Debug)]
pub struct Parser {
    now: Zoned,
    /// `-daystart` was given: midnight, in seconds since 1970.
    day_start: Option<i64>,
    dialect: Dialect,
    tokens: Vec<Token>,
    expression: Expression,
}

#[derive(Debug)]
enum Token {
    Open,
    Close,
    Not(String),
    And(String),
    Or(String),
    Comma,
    Primary(Node),
}

/// The words after the current one.
type NextWords<'r> = &'r mut dyn Iterator<Item = OsString>;

impl Parser {
    /// A parser for a search that starts at `now`: ages (`-mtime`, `-mmin`) count back from this time. Dates are in the
    /// time zone of the system, or of `TZ`.
    pub fn new(now: SystemTime) -> Self {
        Self::in_zone(now, TimeZone::system())
    }

    pub(super) fn in_zone(now: SystemTime, zone: TimeZone) -> Self {
        let now = Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH);
        Self {
            now: now.to_zoned(zone),
            day_start: None,
            dialect: Dialect::Emacs,
            tokens: Vec::new(),
            expression: Expression::default(),
        }
    }

    /// Takes `word`, and its arguments from `rest`, if the word is part of an expression. Returns false if it is not;
    /// then nothing was taken.
    ///
    /// # Errors
    /// The word or its argument is not valid, or is not possible over HTTP.
    pub fn take(&mut self, word: &OsStr, rest: NextWords<'_>) -> Result<bool, ParseError> {
        let Some(word) = word.to_str() else {
            return Ok(false);
        };
        let token = match word {
            "(" => Token::Open,
            ")" => Token::Close,
            "," => Token::Comma,
            "!" | "-not" => Token::Not(word.to_owned()),
            "-a" | "-and" => Token::And(word.to_owned()),
            "-o" | "-or" => Token::Or(word.to_owned()),
            _ => match self.primary(word, rest)? {
                Some(node) => Token::Primary(node),
                None => return Ok(false),
            },
        };
        self.tokens.push(token);
        Ok(true)
    }

    /// The expression of all words that were taken.
    ///
    /// # Errors
    /// The words together are not an expression: parentheses or operands are missing.
    pub fn finish(self) -> Result<Expression, ParseError> {
        let mut expression = self.expression;
        if !self.tokens.is_empty() {
            let mut tree = Tree {
                tokens: self.tokens.into_iter().peekable(),
                depth: 0,
            };
            expression.root = tree.list()?;
            if tree.tokens.next().is_some() {
                return Err(ParseError::NotOpened);
            }
        }
        Ok(expression)
    }

    /// A test, an action or an option.
    fn primary(&mut self, word: &str, rest: NextWords<'_>) -> Result<Option<Node>, ParseError> {
        let test = match word {
            "-name" => Test::Name(glob(word, Case::Sensitive, rest)?),
            "-iname" => Test::Name(glob(word, Case::Ignored, rest)?),
            "-path" | "-wholename" => Test::Path(glob(word, Case::Sensitive, rest)?),
            "-ipath" | "-iwholename" => Test::Path(glob(word, Case::Ignored, rest)?),
            "-regex" => self.regex(word, Case::Sensitive, rest)?,
            "-iregex" => self.regex(word, Case::Ignored, rest)?,
            "-type" | "-xtype" => kinds(word, &text(word, rest)?)?,
            "-size" => size(word, &text(word, rest)?)?,
            "-empty" => Test::Empty,
            "-newer" | "-newermm" => self.newer(word, &argument(word, rest)?)?,
            "-newermt" => self.newer_than_date(word, &text(word, rest)?)?,
            "-mtime" => Test::Time(self.age(word, &text(word, rest)?, AgeUnit::Days)?),
            "-mmin" => Test::Time(self.age(word, &text(word, rest)?, AgeUnit::Minutes)?),
            _ => return self.effect(word, rest),
        };
        Ok(Some(Node::Test(Condition::Test(test))))
    }

    /// An action, a constant or an option. Options are always true.
    fn effect(&mut self, word: &str, rest: NextWords<'_>) -> Result<Option<Node>, ParseError> {
        let action = match word {
            "-print" => Action::Write(Text::Line, Output::Results),
            "-print0" => Action::Write(Text::Nul, Output::Results),
            "-printf" => Action::Write(self.format(word, rest)?, Output::Results),
            "-ls" => Action::Write(self.ls(), Output::Results),
            "-fprint" => Action::Write(Text::Line, self.file(word, rest)?),
            "-fprint0" => Action::Write(Text::Nul, self.file(word, rest)?),
            "-fprintf" => {
                let file = self.file(word, rest)?;
                Action::Write(self.format(word, rest)?, file)
            }
            "-fls" => Action::Write(self.ls(), self.file(word, rest)?),
            "-exec" => self.command(word, rest)?,
            "-prune" => return Ok(Some(Node::Prune)),
            "-quit" => return Ok(Some(Node::Quit)),
            "-false" => return Ok(Some(Node::Test(Condition::Constant(false)))),
            "-true" => return Ok(Some(TRUE)),
            "-maxdepth" => {
                self.expression.max_depth = Some(depth(word, &text(word, rest)?)?);
                return Ok(Some(TRUE));
            }
            "-mindepth" => {
                self.expression.min_depth = depth(word, &text(word, rest)?)?;
                return Ok(Some(TRUE));
            }
            "-daystart" => {
                self.day_start = Some(midnight(&self.now));
                return Ok(Some(TRUE));
            }
            "-regextype" => {
                let name = text(word, rest)?;
                self.dialect = Dialect::named(&name).ok_or_else(|| {
                    invalid(word, &name, format!("not one of {}", Dialect::names()))
                })?;
                return Ok(Some(TRUE));
            }
            word if HARMLESS.contains(&word) => return Ok(Some(TRUE)),
            _ => {
                return match REFUSED.iter().find(|(words, _)| words.contains(&word)) {
                    Some(&(_, reason)) => Err(ParseError::Refused {
                        word: word.to_owned(),
                        reason,
                    }),
                    None => Ok(None),
                };
            }
        };
        self.expression.acts = true;
        Ok(Some(Node::Act(action)))
    }

    fn regex(&self, word: &str, case: Case, rest: NextWords<'_>) -> Result<Test, ParseError> {
        let pattern = text(word, rest)?;
        let regex = self.dialect.compile(&pattern, case);
        Ok(Test::Regex(
            regex.map_err(|reason| invalid(word, &pattern, reason))?,
        ))
    }

    fn newer(&mut self, word: &str, what: &OsStr) -> Result<Test, ParseError> {
        let url = what
            .to_str()
            .filter(|text| text.starts_with("http://") || text.starts_with("https://"))
            .and_then(|text| Url::parse(text).ok());
        if let Some(url) = &url
            && (!url.username().is_empty() || url.password().is_some())
        {
            let host = &url[url::Position::BeforeHost..];
            let hidden = format!("{}://***@{host}", url.scheme());
            let reason = "user names and passwords are not supported".to_owned();
            return Err(invalid(word, &hidden, reason));
        }
        let reference = match url {
            Some(url) => Reference::Url(url),
            None => Reference::File(what.into()),
        };
        let known = &mut self.expression.references;
        let index = index_in(known, reference);
        self.expression.times.resize(known.len(), None);
        Ok(Test::Newer(index))
    }

    fn newer_than_date(&self, word: &str, date: &str) -> Result<Test, ParseError> {
        let wrong = || invalid(word, date, "not understood as a date or time".to_owned());
        let parsed = parse_datetime::parse_datetime_at_date(self.now.clone(), date);
        let parsed = parsed.map_err(|_| wrong())?;
        let bound = nanos(parsed.unix_epoch_second()) + i128::from(parsed.subsec_nanosecond());
        Ok(Test::Time(TimeTest::After(bound)))
    }

    /// `-mtime` and `-mmin`. A larger number is an earlier time.
    fn age(&self, word: &str, text: &str, unit: AgeUnit) -> Result<TimeTest, ParseError> {
        let wrong = || invalid(word, text, "not a valid number".to_owned());
        let (comparison, number) = split_prefix(text);
        let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number: f64 = number.parse().ok().filter(|_| plain).ok_or_else(wrong)?;
        let seconds = number * unit.seconds() as f64;
        if seconds > LONGEST_AGE {
            return Err(wrong());
        }
        // Whole seconds and the fraction are converted separately, to keep the precision of the fraction.
        let back = (seconds.trunc() as i128) * NANOS + (seconds.fract() * NANOS as f64) as i128;
        let end = match self.day_start {
            Some(midnight) => nanos(midnight + DAY),
            None => self.now.timestamp().as_nanosecond(),
        };
        Ok(match (unit, comparison) {
            (AgeUnit::Days, Comparison::Exactly) => {
                TimeTest::Within(end - nanos(DAY) - back, end - back)
            }
            (AgeUnit::Days, Comparison::More) => TimeTest::Before(end - nanos(DAY) - back),
            // GNU find moves the bound one second back, so that a file of exactly this age counts as younger.
            (AgeUnit::Days, Comparison::Less) => TimeTest::After(end - NANOS - back),
            (AgeUnit::Minutes, Comparison::Exactly) => {
                TimeTest::Within(end - back, end - back + nanos(MINUTE))
            }
            (AgeUnit::Minutes, Comparison::More) => TimeTest::Before(end - back),
            (AgeUnit::Minutes, Comparison::Less) => TimeTest::After(end - back),
        })
    }

    fn format(&self, word: &str, rest: NextWords<'_>) -> Result<Text, ParseError> {
        let argument = argument(word, rest)?;
        let format = Format::parse(argument.as_bytes(), self.now.time_zone().clone());
        let format = format.map_err(|reason| invalid(word, &argument.to_string_lossy(), reason))?;
        Ok(Text::Formatted(format))
    }

    fn ls(&self) -> Text {
        Text::Ls(Clock {
            now: self.now.timestamp().as_second(),
            zone: self.now.time_zone().clone(),
        })
    }

    /// The output file of `-fprint`, `-fprint0`, `-fprintf` and `-fls`.
    fn file(&mut self, word: &str, rest: NextWords<'_>) -> Result<Output, ParseError> {
        let path = PathBuf::from(argument(word, rest)?);
        if path == Path::new("/dev/stdout") {
            return Ok(Output::Results);
        }
        if path == Path::new("/dev/stderr") {
            return Ok(Output::Errors);
        }
        Ok(Output::File(index_in(&mut self.expression.files, path)))
    }

    /// The command of `-exec`, up to its `;` or `{} +`.
    fn command(&mut self, word: &str, rest: NextWords<'_>) -> Result<Action, ParseError> {
        let mut command: Vec<OsString> = Vec::new();
        loop {
            let part = argument(word, rest)?;
            let gathers = part == "+" && command.last().is_some_and(|last| last == "{}");
            if part != ";" && !gathers {
                command.push(part);
                continue;
            }
            if command.is_empty() {
                return Err(invalid(word, ";", "there is no command".to_owned()));
            }
            if !gathers {
                return Ok(Action::Run(command));
            }
            command.pop();
            if command.is_empty() || command.iter().any(|part| holds_braces(part)) {
                let reason = "with +, {} must stand once, at the end of the command".to_owned();
                return Err(invalid(word, "{} +", reason));
            }
            self.expression.batches.push(command);
            return Ok(Action::Gather(self.expression.batches.len() - 1));
        }
    }
}

/// Builds the tree from tokens. One method for each level of precedence, the lowest first.
struct Tree {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    /// Depth of nested parentheses and negations.
    depth: usize,
}

impl Tree {
    fn list(&mut self) -> Result<Node, ParseError> {
        let mut nodes = vec![self.any(None)?];
        while self
            .tokens
            .next_if(|token| matches!(token, Token::Comma))
            .is_some()
        {
            nodes.push(self.any(Some(","))?);
        }
        Ok(match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            last => {
                // Before the last `,`, tests have neither an effect nor a value that is used.
                nodes.retain(|node| !matches!(node, Node::Test(_)));
                nodes.extend(last);
                Node::Each(nodes)
            }
        })
    }

    /// `after`: the operator in front, for errors.
    fn any(&mut self, after: Option<&str>) -> Result<Node, ParseError> {
        let mut nodes = vec![self.all(after)?];
        while let Some(Token::Or(word)) = self.tokens.next_if(|t| matches!(t, Token::Or(_))) {
            nodes.push(self.all(Some(&word))?);
        }
        Ok(Node::any(nodes))
    }

    fn all(&mut self, after: Option<&str>) -> Result<Node, ParseError> {
        let mut nodes = vec![self.unary(after)?];
        loop {
            match self.tokens.peek() {
                Some(Token::And(_)) => {
                    let Some(Token::And(word)) = self.tokens.next() else {
                        break;
                    };
                    nodes.push(self.unary(Some(&word))?);
                }
                Some(Token::Not(_) | Token::Open | Token::Primary(_)) => {
                    nodes.push(self.unary(None)?);
                }
                Some(Token::Close | Token::Or(_) | Token::Comma) | None => break,
            }
        }
        Ok(Node::all(nodes))
    }

    fn unary(&mut self, after: Option<&str>) -> Result<Node, ParseError> {
        match self.tokens.next() {
            Some(Token::Primary(node)) => Ok(node),
            Some(Token::Not(word)) => {
                self.deeper()?;
                let node = self.unary(Some(&word))?.not();
                self.depth -= 1;
                Ok(node)
            }
            Some(Token::Open) => {
                self.deeper()?;
                if matches!(self.tokens.peek(), Some(Token::Close)) {
                    return Err(ParseError::EmptyParentheses);
                }
                let node = match self.list() {
                    Err(ParseError::NothingAfter(word)) if word == "(" => {
                        return Err(ParseError::NotClosed);
                    }
                    other => other?,
                };
                match self.tokens.next() {
                    Some(Token::Close) => {}
                    _ => return Err(ParseError::NotClosed),
                }
                self.depth -= 1;
                Ok(node)
            }
            Some(Token::Close) if self.depth == 0 => Err(ParseError::NotOpened),
            token => Err(match (after, token) {
                (Some(after), _) => ParseError::NothingAfter(after.to_owned()),
                (None, Some(Token::And(word) | Token::Or(word))) => ParseError::NothingBefore(word),
                (None, Some(Token::Comma)) => ParseError::NothingBefore(",".to_owned()),
                (None, _) => ParseError::NotClosed,
            }),
        }
    }

    fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ParseError::TooDeep);
        }
        Ok(())
    }
}

/// Why words are not an expression.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ParseError {
    /// The argument of this word is missing. `-exec` also needs a final `;` or `{} +`.
    Missing(String),
    /// The argument is not valid for the word.
    Argument {
        /// The test, action or option.
        word: String,
        /// Its argument.
        argument: String,
        /// Why it is not valid.
        reason: String,
    },
    /// A word of GNU find that is not possible over HTTP.
    Refused {
        /// The word.
        word: String,
        /// Why.
        reason: &'static str,
    },
    /// An operator with nothing before it.
    NothingBefore(String),
    /// An operator with nothing after it.
    NothingAfter(String),
    /// `( )`
    EmptyParentheses,
    /// `(` without `)`
    NotClosed,
    /// `)` without `(`
    NotOpened,
    /// More than 100 nested parentheses and negations.
    TooDeep,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(word) if word == "-exec" => {
                write!(f, "-exec needs a command that ends in ';' or '{{}} +'")
            }
            Self::Missing(word) => write!(f, "{word} needs a value"),
            Self::Argument {
                word,
                argument,
                reason,
            } => write!(f, "{word} {argument}: {reason}"),
            Self::Refused { word, reason } => write!(f, "{word}: {reason}"),
            Self::NothingBefore(word) => write!(f, "nothing stands before {word}"),
            Self::NothingAfter(word) => write!(f, "nothing stands after {word}"),
            Self::EmptyParentheses => f.write_str("nothing stands between ( and )"),
            Self::NotClosed => f.write_str("a ( has no matching )"),
            Self::NotOpened => f.write_str("a ) has no matching ("),
            Self::TooDeep => write!(f, "more than {DEEPEST} nested parentheses and negations"),
        }
    }
}

impl std::error::Error for ParseError {}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AgeUnit {
    Days,
    Minutes,
}

impl AgeUnit {
    fn seconds(self) -> i64 {
        match self {
            Self::Days => DAY,
            Self::Minutes => MINUTE,
        }
    }
}

fn split_prefix(text: &str) -> (Comparison, &str) {
    if let Some(number) = text.strip_prefix('+') {
        (Comparison::More, number)
    } else if let Some(number) = text.strip_prefix('-') {
        (Comparison::Less, number)
    } else {
        (Comparison::Exactly, text)
    }
}

/// The index of an item in a list, to which it is added if it is new.
fn index_in<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    let known = list.iter().position(|known| *known == item);
    known.unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

fn argument(word: &str, rest: NextWords<'_>) -> Result<OsString, ParseError> {
    rest.next()
        .ok_or_else(|| ParseError::Missing(word.to_owned()))
}

fn text(word: &str, rest: NextWords<'_>) -> Result<String, ParseError> {
    argument(word, rest)?
        .into_string()
        .map_err(|bytes| invalid(word, &bytes.to_string_lossy(), "not UTF-8".to_owned()))
}

fn invalid(word: &str, argument: &str, reason: String) -> ParseError {
    ParseError::Argument {
        word: word.to_owned(),
        argument: argument.to_owned(),
        reason,
    }
}

fn glob(word: &str, case: Case, rest: NextWords<'_>) -> Result<Glob, ParseError> {
    Ok(Glob::new(&argument(word, rest)?.into_vec(), case))
}

fn kinds(word: &str, list: &str) -> Result<Test, ParseError> {
    let (mut file, mut directory) = (false, false);
    for letter in list.split(',') {
        let seen = match letter {
            "f" => &mut file,
            "d" => &mut directory,
            "b" | "c" | "p" | "l" | "s" | "D" => {
                let reason = format!("{letter}: a web server shows files and directories only");
                return Err(invalid(word, list, reason));
            }
            _ => return Err(invalid(word, list, "neither f, nor d, nor f,d".to_owned())),
        };
        if std::mem::replace(seen, true) {
            return Err(invalid(word, list, format!("{letter} occurs twice")));
        }
    }
    Ok(Test::Type { file, directory })
}

fn size(word: &str, text: &str) -> Result<Test, ParseError> {
    let (comparison, number) = split_prefix(text);
    let with_unit = |(letter, unit)| Some((number.strip_suffix(letter)?, unit));
    let (digits, unit) = SIZE_UNITS
        .into_iter()
        .find_map(with_unit)
        .unwrap_or((number, 512));
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let count = digits.parse().ok().filter(|_| plain).ok_or_else(|| {
        let reason = "not a number, optionally followed by c, w, b, k, M or G".to_owned();
        invalid(word, text, reason)
    })?;
    Ok(Test::Size {
        comparison,
        count,
        unit,
    })
}

fn depth(word: &str, text: &str) -> Result<u32, ParseError> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    let depth = text.parse().ok().filter(|_| plain);
    depth.ok_or_else(|| invalid(word, text, "not a number that fits here".to_owned()))
}

/// The beginning of the day as GNU find computes it, from the time of day: on the day of a change to or from summer
/// time it is off by one hour.
fn midnight(now: &Zoned) -> i64 {
    let since = i64::from(now.hour()) * 3600 + i64::from(now.minute()) * MINUTE;
    now.timestamp().as_second() - since - i64::from(now.second())
}

fn holds_braces(part: &OsStr) -> bool {
    part.as_bytes().windows(2).any(|pair| pair == b"{}")
}

const TRUE: Node = Node::Test(Condition::Constant(true));

/// The units of `-size`, in bytes.
const SIZE_UNITS: [(char, u64); 6] = [
    ('c', 1),
    ('w', 2),
    ('b', 512),
    ('k', 1 << 10),
    ('M', 1 << 20),
    ('G', 1 << 30),
];

const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * 60;

/// Longest age in seconds, about 31,700 years: larger ages are before every date that a calendar here can hold.
const LONGEST_AGE: f64 = 1e12;

/// Deepest nesting. The parser is recursive; deeper nesting could overflow the stack.
const DEEPEST: usize = 100;

/// Words of GNU find that ask for what is so anyway, or concern only file systems.
const HARMLESS: &[&str] = &[
    "-L",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-follow",
    "-ignore_readdir_race",
    "-mount",
    "-noignore_readdir_race",
    "-noleaf",
    "-nowarn",
    "-warn",
    "-xdev",
];

/// Words of GNU find that are not possible over HTTP, grouped by the reason.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["-delete"],
        "a web server offers no way to delete; print the URLs, or use -exec",
    ),
    (
        &["-execdir", "-okdir"],
        "a directory on a web server cannot be the working directory of a command; use -exec",
    ),
    (
        &["-ok"],
        "the search does not wait for answers from the terminal; use -exec",
    ),
    (
        &["-depth"],
        "results are shown as they are found, a directory before its entries",
    ),
    (
        &[
            "-amin", "-anewer", "-atime", "-cmin", "-cnewer", "-ctime", "-used", "-neweraa",
            "-neweram", "-newerac", "-newerat", "-newerca", "-newercm", "-newercc", "-newerct",
            "-newerma", "-newermc", "-neweraB", "-newercB", "-newermB", "-newerBa", "-newerBB",
            "-newerBc", "-newerBm", "-newerBt",
        ],
        "a web server reports only the time of the last change; use -newer, -newermt, -mtime or -mmin",
    ),
    (
        &[
            "-context",
            "-executable",
            "-fstype",
            "-gid",
            "-group",
            "-inum",
            "-links",
            "-nogroup",
            "-nouser",
            "-perm",
            "-readable",
            "-samefile",
            "-uid",
            "-user",
            "-writable",
        ],
        "a web server does not report this",
    ),
    (
        &["-ilname", "-lname"],
        "a web server shows the target of a symbolic link, and not the link",
    ),
];
