//! URL globbing, as in curl: `{a,b}` and `[1-9:2]` in a URL make many URLs of one. The URLs are made one at a time by
//! their number, so that their count needs no memory.

use std::fmt;
use std::net::Ipv6Addr;

/// A URL, or the name of a file to upload, with its sets and ranges.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Glob {
    pieces: Vec<Piece>,
    /// How many texts it makes. Invariant: the product of the counts of the pieces, and at least 1.
    count: u64,
}

/// One text that a glob makes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Expansion {
    pub(super) text: Vec<u8>,
    /// What each set and range stands for, in their order: the values of `#1`, `#2` and so on.
    pub(super) chosen: Vec<Vec<u8>>,
}

/// What is wrong with a glob, and where: the first byte has the number 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct GlobError {
    what: &'static str,
    at: usize,
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} in URL position {}; -g takes {{}} and [] as they are",
            self.what, self.at
        )
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Piece {
    Text(Vec<u8>),
    Set(Vec<Vec<u8>>),
    Letters {
        first: u8,
        last: u8,
        step: u64,
    },
    Numbers {
        first: u64,
        last: u64,
        step: u64,
        /// Numbers are filled up with zeros to this width.
        width: usize,
    },
}

impl Piece {
    /// `None` is more than fits.
    fn count(&self) -> Option<u64> {
        let range = |first: u64, last: u64, step: u64| ((last - first) / step).checked_add(1);
        match self {
            Self::Text(_) => Some(1),
            Self::Set(texts) => u64::try_from(texts.len()).ok(),
            Self::Letters { first, last, step } => range((*first).into(), (*last).into(), *step),
            Self::Numbers {
                first, last, step, ..
            } => range(*first, *last, *step),
        }
    }

    /// The text with this number, which is below the count.
    fn nth(&self, n: u64) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone(),
            Self::Set(texts) => usize::try_from(n)
                .ok()
                .and_then(|n| texts.get(n))
                .cloned()
                .unwrap_or_default(),
            Self::Letters { first, step, .. } => {
                u8::try_from(u64::from(*first) + n * step).map_or(Vec::new(), |letter| vec![letter])
            }
            Self::Numbers {
                first, step, width, ..
            } => format!("{:0width$}", first + n * step).into_bytes(),
        }
    }
}

impl Glob {
    /// A text in which nothing is special (`-g`).
    pub(super) fn literal(text: &[u8]) -> Self {
        Self {
            pieces: vec![Piece::Text(text.to_vec())],
            count: 1,
        }
    }

    /// # Errors
    /// A set or a range that does not end, is empty or stands in another, or too many of them.
    pub(super) fn parse(text: &[u8]) -> Result<Self, GlobError> {
        let mut reader = Reader { text, at: 0 };
        let mut pieces = Vec::new();
        let mut count: u64 = 1;
        while reader.at < text.len() {
            let literal = reader.literal()?;
            let piece = if literal.is_empty() {
                match reader.peek(0) {
                    Some(b'{') => reader.set()?,
                    _ => reader.range()?,
                }
            } else {
                Piece::Text(literal)
            };
            let product = piece.count().and_then(|n| count.checked_mul(n));
            count = product
                .filter(|count| *count <= MOST)
                .ok_or_else(|| reader.wrong("range overflow"))?;
            if pieces.len() == MOST_PIECES {
                return Err(reader.wrong("too many globs"));
            }
            pieces.push(piece);
        }
        Ok(Self { pieces, count })
    }

    /// How many texts there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The text with this number, which is below the count. The last set or range changes first.
    pub(super) fn nth(&self, mut n: u64) -> Expansion {
        let mut parts: Vec<(bool, Vec<u8>)> = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces.iter().rev() {
            let count = piece.count().unwrap_or(1);
            parts.push((!matches!(piece, Piece::Text(_)), piece.nth(n % count)));
            n /= count;
        }
        let mut expansion = Expansion::default();
        for (is_choice, part) in parts.into_iter().rev() {
            expansion.text.extend_from_slice(&part);
            if is_choice {
                expansion.chosen.push(part);
            }
        }
        expansion
    }
}

impl Expansion {
    /// `#1` in `template` becomes what the first set or range stands for, and so on. A number that no set or range has
    /// stays.
    pub(super) fn fill(&self, template: &[u8]) -> Vec<u8> {
        let mut filled = Vec::with_capacity(template.len());
        let mut rest = template;
        while let [byte, after @ ..] = rest {
            let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
            let number = std::str::from_utf8(&after[..digits]).ok();
            let number = number.and_then(|digits| digits.parse::<usize>().ok());
            let chosen = number
                .filter(|_| *byte == b'#')
                .and_then(|number| self.chosen.get(number.checked_sub(1)?));
            match chosen {
                Some(text) => {
                    filled.extend_from_slice(text);
                    rest = &after[digits..];
                }
                None => {
                    filled.push(*byte);
                    rest = after;
                }
            }
        }
        filled
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn wrong(&self, what: &'static str) -> GlobError {
        GlobError {
            what,
            at: self.at + 1,
        }
    }

    /// The text before the next set, range or end.
    fn literal(&mut self) -> Result<Vec<u8>, GlobError> {
        let mut literal = Vec::new();
        while let Some(byte) = self.peek(0) {
            let next = self.peek(1);
            let taken = match byte {
                b'{' => break,
                b'[' if next == Some(b']') => 2,
                b'[' => match address_literal(&self.text[self.at..]) {
                    Some(length) => length,
                    None => break,
                },
                b'}' | b']' => return Err(self.wrong("unmatched close brace/bracket")),
                b'\\' if next.is_some_and(|next| b"{}[]".contains(&next)) => {
                    self.at += 1;
                    1
                }
                _ => 1,
            };
            literal.extend_from_slice(&self.text[self.at..self.at + taken]);
            self.at += taken;
        }
        Ok(literal)
    }

    /// `{a,b}`
    fn set(&mut self) -> Result<Piece, GlobError> {
        let unmatched = self.wrong("unmatched brace");
        self.at += 1;
        if self.peek(0) == Some(b'}') {
            return Err(self.wrong("empty string within braces"));
        }
        let mut texts = Vec::new();
        let mut text = Vec::new();
        loop {
            match self.peek(0) {
                None => return Err(unmatched),
                Some(b'{' | b'[') => return Err(self.wrong("nested brace")),
                Some(b']') => return Err(self.wrong("unexpected close bracket")),
                Some(end @ (b',' | b'}')) => {
                    texts.push(std::mem::take(&mut text));
                    self.at += 1;
                    if end == b'}' {
                        return Ok(Piece::Set(texts));
                    }
                    continue;
                }
                Some(b'\\') if self.peek(1).is_some() => self.at += 1,
                Some(_) => {}
            }
            text.extend(self.peek(0));
            self.at += 1;
        }
    }

    /// `[a-z:step]` or `[001-100:step]`
    fn range(&mut self) -> Result<Piece, GlobError> {
        self.at += 1;
        let piece = match self.peek(0) {
            Some(first) if first.is_ascii_alphabetic() => self.letters(first),
            Some(first) if first.is_ascii_digit() => self.numbers(),
            _ => return Err(self.wrong("bad range specification")),
        };
        piece.ok_or_else(|| self.wrong("bad range"))
    }

    fn letters(&mut self, first: u8) -> Option<Piece> {
        self.at += 1;
        self.skip(b'-')?;
        let last = self.peek(0)?;
        self.at += 1;
        let step = self.step()?;
        let between = u64::from(last.checked_sub(first)?);
        let fits = if between == 0 {
            step == 1
        } else {
            step <= between && between < 26
        };
        (fits && last.is_ascii_alphabetic()).then_some(Piece::Letters { first, last, step })
    }

    fn numbers(&mut self) -> Option<Piece> {
        let from = self.at;
        let first = self.number()?;
        let width = match self.text[from] {
            b'0' => self.at - from,
            _ => 0,
        };
        self.skip(b'-')?;
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let last = self.number()?;
        let step = self.step()?;
        let between = last.checked_sub(first)?;
        let fits = if between == 0 {
            step == 1
        } else {
            step <= between
        };
        fits.then_some(Piece::Numbers {
            first,
            last,
            step,
            width,
        })
    }

    /// `:step]`, or `]` for steps of 1.
    fn step(&mut self) -> Option<u64> {
        let mut step = 1;
        if self.peek(0) == Some(b':') {
            self.at += 1;
            step = self.number()?;
        }
        self.skip(b']')?;
        (step > 0).then_some(step)
    }

    fn number(&mut self) -> Option<u64> {
        let from = self.at;
        while self.peek(0).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.text[from..self.at]).ok()?;
        digits.parse().ok()
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        let found = self.peek(0) == Some(byte);
        self.at += usize::from(found);
        found.then_some(())
    }
}

/// The length of the IPv6 address in brackets at the start of `text`, if there is one: this is no range.
fn address_literal(text: &[u8]) -> Option<usize> {
    let end = text.iter().take(LONGEST_ADDRESS).position(|b| *b == b']')?;
    let inside = std::str::from_utf8(&text[1..end]).ok()?;
    let address = inside.split('%').next()?;
    address.parse::<Ipv6Addr>().ok()?;
    Some(end + 1)
}

/// curl's limits: of the URLs that a glob makes, and of the parts of a URL.
const MOST: u64 = i64::MAX as u64;
const MOST_PIECES: usize = 100;

/// Longer texts in brackets are no addresses. A zone may follow the address.
const LONGEST_ADDRESS: usize = 128;
