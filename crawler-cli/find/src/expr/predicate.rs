//! The tests of an expression and their results when sizes and times are intervals. No I/O.

use std::ops::Not;

use regex::bytes::Regex;

use crate::found::{Found, Kind};
use crate::glob::Glob;

/// One test.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// `-name`
    Name(Glob),
    /// `-path`
    Path(Glob),
    /// `-regex`
    Regex(Regex),
    /// `-type`
    Type { file: bool, directory: bool },
    /// `-size`; `unit` is in bytes.
    Size {
        comparison: Comparison,
        count: u64,
        unit: u64,
    },
    /// `-empty`
    Empty,
    /// `-newermt`, `-mtime`, `-mmin`
    Time(TimeTest),
    /// `-newer`: the index of the reference.
    Newer(usize),
}

/// `N`, `-N` and `+N`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Comparison {
    Exactly,
    Less,
    More,
}

/// Bounds in nanoseconds since 1970, the precision of GNU find: a bound can lie within a second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TimeTest {
    /// Later than this time.
    After(i128),
    /// Earlier than this time.
    Before(i128),
    /// Later than the first time, and not later than the second.
    Within(i128, i128),
}

/// The result of a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Truth {
    Yes,
    No,
    /// Not known yet: `HEAD` for the entry would decide the test.
    NeedsHead,
    /// Not known yet: the listing of the directory has to be read.
    NeedsList,
}

impl Test {
    /// `references`: the known times of the arguments of `-newer`, in seconds since 1970.
    pub(super) fn answer(&self, found: &Found<'_>, references: &[Option<i64>]) -> Truth {
        match self {
            Self::Name(glob) => glob.matches(found.name).into(),
            Self::Path(glob) => glob.matches(found.path).into(),
            Self::Regex(regex) => regex.is_match(found.path).into(),
            Self::Type { file, directory } => match found.kind {
                Kind::File => (*file).into(),
                Kind::Directory => (*directory).into(),
            },
            Self::Size {
                comparison,
                count,
                unit,
            } => size(*comparison, *count, *unit, found),
            Self::Empty => empty(found),
            Self::Time(test) => time(*test, found),
            Self::Newer(index) => match references.get(*index) {
                Some(Some(seconds)) => time(TimeTest::After(nanos(*seconds)), found),
                _ => Truth::NeedsHead,
            },
        }
    }

    /// Whether the answer depends on the time of the last change.
    pub(super) fn is_about_time(&self) -> bool {
        matches!(self, Self::Time(_) | Self::Newer(_))
    }
}

impl TimeTest {
    /// The result for a time between two seconds, both included. Servers report whole seconds; each counts as its first
    /// nanosecond.
    fn answer(self, lo: i64, hi: i64) -> Truth {
        let (lo, hi) = (nanos(lo), nanos(hi));
        let (all, some) = match self {
            Self::After(bound) => (lo > bound, hi > bound),
            Self::Before(bound) => (hi < bound, lo < bound),
            Self::Within(from, to) => (lo > from && hi <= to, hi > from && lo <= to),
        };
        Truth::of(all, some)
    }
}

impl Truth {
    /// The result of a test that holds for all values, or for some of them, that are possible.
    fn of(all: bool, some: bool) -> Self {
        match (all, some) {
            (true, _) => Self::Yes,
            (_, false) => Self::No,
            _ => Self::NeedsHead,
        }
    }
}

impl From<bool> for Truth {
    fn from(answer: bool) -> Self {
        if answer { Self::Yes } else { Self::No }
    }
}

impl Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            undecided => undecided,
        }
    }
}

/// Directories have no size over HTTP.
fn size(comparison: Comparison, count: u64, unit: u64, found: &Found<'_>) -> Truth {
    if found.kind == Kind::Directory {
        return Truth::No;
    }
    let Some(range) = found.size else {
        return Truth::NeedsHead;
    };
    let (lo, hi) = (range.lo.div_ceil(unit), range.hi.div_ceil(unit));
    let (all, some) = match comparison {
        Comparison::Exactly => (lo == count && hi == count, (lo..=hi).contains(&count)),
        Comparison::Less => (hi < count, lo < count),
        Comparison::More => (lo > count, hi > count),
    };
    Truth::of(all, some)
}

fn empty(found: &Found<'_>) -> Truth {
    match (found.kind, found.empty, found.size) {
        (Kind::Directory, Some(empty), _) => empty.into(),
        (Kind::Directory, None, _) => Truth::NeedsList,
        (Kind::File, _, Some(size)) if size.lo > 0 => Truth::No,
        (Kind::File, _, Some(size)) if size.hi == 0 => Truth::Yes,
        (Kind::File, ..) => Truth::NeedsHead,
    }
}

fn time(test: TimeTest, found: &Found<'_>) -> Truth {
    match found.modified {
        Some(range) => test.answer(range.lo, range.hi),
        None => Truth::NeedsHead,
    }
}

pub(super) fn nanos(seconds: i64) -> i128 {
    i128::from(seconds) * NANOS
}

pub(super) const NANOS: i128 = 1_000_000_000;
