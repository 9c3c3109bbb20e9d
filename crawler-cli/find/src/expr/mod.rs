//! The expressions of find(1): which entries are selected and what is done with them. [`Parser`] reads the words,
//! [`Expression`] is evaluated for one entry after the other, and [`Actor`] prints, writes files and runs commands.
//! Only [`Actor`] does I/O: an expression calls it through [`Act`].
//!
//! Precedence, short-circuit evaluation and the implicit `-print` are those of GNU find. Sizes and times from a listing
//! are often intervals. If an interval leaves a test undecided, the expression requests more information ([`Verdict`]),
//! but only if the result matters: `-newermt yesterday -name '*.iso'` requests it only for names that match, and
//! `-print , -empty` never does.
//!
//! Differences from a file system:
//! - Directories have no size: `-size` is false for them.
//! - Files and directories are the only types, and the time of the last change is the only time.
//! - A test that stays undecided after the server was asked is false; [`Evaluation::undecided`] reports this.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::found::{Found, Kind};
use crate::glob::{Case, Glob};

mod act;
mod format;
mod parse;
mod posix;
mod predicate;
#[cfg(test)]
mod tests;

pub use act::{ActError, Actor, Effect};
pub use parse::{ParseError, Parser};

use format::{Clock, Format};
use predicate::{Test, Truth};

/// An expression. The default is the empty expression, which prints every entry.
#[derive(Clone, Debug, Default)]
pub struct Expression {
    root: Node,
    /// It has an action other than `-prune` and `-quit`. If not, entries for which the expression is true are printed.
    acts: bool,
    min_depth: u32,
    max_depth: Option<u32>,
    /// The arguments of `-newer`. Each occurs once.
    references: Vec<Reference>,
    /// The time of each reference in seconds since 1970, once it is known.
    times: Vec<Option<i64>>,
    /// The files of `-fprint`, `-fprint0`, `-fprintf` and `-fls`. Each occurs once.
    files: Vec<PathBuf>,
    /// The commands of `-exec … {} +`.
    batches: Vec<Vec<OsString>>,
}

/// The argument of `-newer`: entries are compared with its time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reference {
    /// The `Last-Modified` of this URL.
    Url(Url),
    /// The time of this file's last change.
    File(PathBuf),
}

impl Expression {
    /// `-maxdepth`
    pub fn max_depth(&self) -> Option<u32> {
        self.max_depth
    }

    /// The arguments of `-newer`. Each has to be [resolved](Self::resolve) before the first evaluation.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Sets the time of the reference with this index, in seconds since 1970.
    pub fn resolve(&mut self, index: usize, seconds: i64) {
        if let Some(time) = self.times.get_mut(index) {
            *time = Some(seconds);
        }
    }

    /// Whether entries that match are printed as results: by `-print`, or because there is no action.
    pub fn prints(&self) -> bool {
        let is_print = &mut |node: &Node| {
            matches!(node, Node::Act(Action::Write(Text::Line, Output::Results)))
        };
        !self.acts || self.root.holds_for_any(is_print)
    }

    /// Whether the expression has `-exec … {} +`.
    pub fn gathers(&self) -> bool {
        !self.batches.is_empty()
    }

    /// The files of `-fprint` and similar actions.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether the expression writes files: `-fprint` and similar actions.
    pub fn writes_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Whether the expression may write to the terminal outside the results: by commands, or to standard error.
    pub fn writes_past_results(&self) -> bool {
        self.root.holds_for_any(&mut |node| {
            matches!(
                node,
                Node::Act(Action::Run(_) | Action::Gather(_) | Action::Write(_, Output::Errors))
            )
        })
    }

    /// Whether a test or an output uses times, so that the time zone of each server has to be found out.
    pub fn needs_times(&self) -> bool {
        self.root.holds_for_any(&mut |node| match node {
            Node::Act(Action::Write(text, _)) => text.shows_time(),
            Node::Test(condition) => condition.holds_for_any(&mut Test::is_about_time),
            _ => false,
        })
    }

    /// Evaluates the expression for one entry. After [`Verdict::Head`] or [`Verdict::List`], the caller evaluates the
    /// entry again with the same memo.
    pub fn evaluate(&self, found: &Found<'_>, memo: &mut Memo, act: &mut dyn Act) -> Evaluation {
        if found.depth < self.min_depth {
            return Evaluation::default();
        }
        let mut evaluator = Evaluator {
            found,
            references: &self.times,
            memo,
            at: 0,
            act,
            pruned: false,
            acted: false,
            undecided: false,
        };
        let outcome = evaluator.value(&self.root, !self.acts).and_then(|holds| {
            if !self.acts && holds {
                evaluator.perform(&PRINT)?;
            }
            Ok(())
        });
        let verdict = match outcome {
            Err(verdict) => verdict,
            Ok(()) if evaluator.pruned => Verdict::Prune,
            Ok(()) => Verdict::Go,
        };
        Evaluation {
            verdict,
            acted: evaluator.acted,
            undecided: evaluator.undecided,
        }
    }

    /// Adds `-name` at the front.
    pub(super) fn and_name(&mut self, pattern: &str) {
        let glob = Glob::new(pattern.as_bytes(), Case::Sensitive);
        self.and(Test::Name(glob));
    }

    /// Adds `-regex` at the front, in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// The pattern is not valid.
    pub(super) fn and_regex(&mut self, pattern: &str) -> Result<(), ParseError> {
        let regex = posix::Dialect::Rust.compile(pattern, Case::Sensitive);
        let regex = regex.map_err(|reason| ParseError::Argument {
            word: "-regex".to_owned(),
            argument: pattern.to_owned(),
            reason,
        })?;
        self.and(Test::Regex(regex));
        Ok(())
    }

    /// Adds `-type` at the front.
    pub(super) fn and_kind(&mut self, kind: Kind) {
        self.and(Test::Type {
            file: kind == Kind::File,
            directory: kind == Kind::Directory,
        });
    }

    /// Adds a test at the front, so that no action runs unless the test is true.
    fn and(&mut self, test: Test) {
        let root = std::mem::replace(&mut self.root, Node::Test(Condition::Constant(true)));
        self.root = Node::all(vec![Node::Test(Condition::Test(test)), root]);
    }
}

/// The result of evaluating an expression for an entry.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Evaluation {
    /// What the caller does next.
    pub verdict: Verdict,
    /// An action was performed in this or an earlier evaluation of the entry.
    pub acted: bool,
    /// A test stayed undecided although the server was asked. The test counted as false.
    pub undecided: bool,
}

/// What the caller does with an entry after an evaluation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Verdict {
    /// Continue: a directory is read.
    #[default]
    Go,
    /// `-prune`: nothing below the entry, or linked by it, is requested.
    Prune,
    /// The listing leaves a test undecided. The caller sends `HEAD` and evaluates again with
    /// [`asked`](super::Found::asked) set and the same memo.
    Head,
    /// A test needs to know whether the directory is empty. The caller reads the directory, even if nothing below it is
    /// selected, and evaluates again with [`empty`](super::Found::empty) set and the same memo. A directory that cannot
    /// be read counts as not empty.
    List,
    /// `-quit`: the search ends.
    Quit,
    /// As [`Go`](Self::Go), and the server has said too little about the file: a test counted as false.
    Undecided,
}

/// The outcomes of the tests and actions that were evaluated for one entry, in order. The next evaluation replays them,
/// so that no action is performed twice, even if the response of the server contradicts its listing.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Memo {
    /// One byte for each outcome: [`HELD`] and [`UNDECIDED`].
    outcomes: Vec<u8>,
}

impl Memo {
    /// The memo of an entry that was not evaluated yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Bit: the test was true, or the action succeeded.
const HELD: u8 = 1;
/// Bit: the test could not be decided.
const UNDECIDED: u8 = 2;

/// Performs actions.
pub trait Act {
    /// Performs `action` for the entry and returns its value in the expression. Only [`Action::Run`] can be false: its
    /// command could not be run, or failed.
    fn act(&mut self, action: &Action, found: &Found<'_>) -> bool;
}

/// An action of an expression.
#[derive(Clone, Debug)]
pub enum Action {
    /// `-print`, `-print0`, `-printf`, `-ls`, and the same actions with an output file.
    Write(Text, Output),
    /// `-exec … ;`
    Run(Vec<OsString>),
    /// `-exec … {} +`: the index of the command.
    Gather(usize),
}

/// The text that is written for an entry.
#[derive(Clone, Debug)]
pub enum Text {
    /// The URL and a newline.
    Line,
    /// The URL and a NUL.
    Nul,
    /// The format of `-printf`.
    Formatted(Format),
    /// The format of `ls -dils`.
    Ls(Clock),
}

impl Text {
    fn shows_time(&self) -> bool {
        match self {
            Self::Line | Self::Nul => false,
            Self::Formatted(format) => format.shows_time(),
            Self::Ls(_) => true,
        }
    }
}

/// The destination of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// The output of the results.
    Results,
    /// Standard error.
    Errors,
    /// The file with this index in the list of the expression.
    File(usize),
}

const PRINT: Action = Action::Write(Text::Line, Output::Results);

/// A node of the expression tree. Adjacent tests are one node, so that they are decided together.
#[derive(Clone, Debug)]
enum Node {
    Test(Condition),
    Act(Action),
    Prune,
    Quit,
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    /// `,`: all are evaluated; the value is that of the last one.
    Each(Vec<Node>),
}

impl Default for Node {
    fn default() -> Self {
        Self::Test(Condition::Constant(true))
    }
}

/// Tests joined by operators, without actions.
#[derive(Clone, Debug)]
enum Condition {
    Constant(bool),
    Test(Test),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Node {
    fn not(self) -> Self {
        match self {
            Self::Test(condition) => Self::Test(Condition::Not(Box::new(condition))),
            Self::Not(node) => *node,
            node => Self::Not(Box::new(node)),
        }
    }

    fn all(nodes: Vec<Self>) -> Self {
        let flat = nodes.into_iter().flat_map(|node| match node {
            Self::All(nodes) => nodes,
            node => vec![node],
        });
        Self::joined(flat, Self::All, Condition::All)
    }

    fn any(nodes: Vec<Self>) -> Self {
        let flat = nodes.into_iter().flat_map(|node| match node {
            Self::Any(nodes) => nodes,
            node => vec![node],
        });
        Self::joined(flat, Self::Any, Condition::Any)
    }

    /// Joins nodes; adjacent tests become one node.
    fn joined(
        nodes: impl Iterator<Item = Self>,
        join: fn(Vec<Self>) -> Self,
        join_tests: fn(Vec<Condition>) -> Condition,
    ) -> Self {
        let mut out: Vec<Self> = Vec::new();
        let mut tests: Vec<Condition> = Vec::new();
        let flush = |tests: &mut Vec<Condition>, out: &mut Vec<Self>| match tests.len() {
            0 => {}
            1 => out.extend(tests.pop().map(Self::Test)),
            _ => out.push(Self::Test(join_tests(std::mem::take(tests)))),
        };
        for node in nodes {
            match node {
                Self::Test(condition) => tests.push(condition),
                node => {
                    flush(&mut tests, &mut out);
                    out.push(node);
                }
            }
        }
        flush(&mut tests, &mut out);
        match out.pop() {
            Some(only) if out.is_empty() => only,
            last => {
                out.extend(last);
                join(out)
            }
        }
    }

    fn holds_for_any(&self, is: &mut dyn FnMut(&Self) -> bool) -> bool {
        is(self)
            || match self {
                Self::Not(node) => node.holds_for_any(is),
                Self::All(nodes) | Self::Any(nodes) | Self::Each(nodes) => {
                    nodes.iter().any(|node| node.holds_for_any(is))
                }
                Self::Test(_) | Self::Act(_) | Self::Prune | Self::Quit => false,
            }
    }
}

impl Condition {
    fn holds_for_any(&self, is: &mut dyn FnMut(&Test) -> bool) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Test(test) => is(test),
            Self::Not(condition) => condition.holds_for_any(is),
            Self::All(conditions) | Self::Any(conditions) => conditions
                .iter()
                .any(|condition| condition.holds_for_any(is)),
        }
    }

    /// With `undecided_is_false`, undecided tests are false.
    fn answer(
        &self,
        found: &Found<'_>,
        references: &[Option<i64>],
        undecided_is_false: bool,
    ) -> Truth {
        let each = |condition: &Self| condition.answer(found, references, undecided_is_false);
        match self {
            Self::Constant(value) => (*value).into(),
            Self::Test(test) => match test.answer(found, references) {
                Truth::NeedsHead | Truth::NeedsList if undecided_is_false => Truth::No,
                truth => truth,
            },
            Self::Not(condition) => !each(condition),
            Self::All(conditions) => join(conditions.iter().map(each), Truth::No, Truth::Yes),
            Self::Any(conditions) => join(conditions.iter().map(each), Truth::Yes, Truth::No),
        }
    }
}

/// `decisive` if any of the truths is; else undecided if any is undecided; else `otherwise`. What needs a listing needs it
/// also where something else needs `HEAD`.
fn join(truths: impl Iterator<Item = Truth>, decisive: Truth, otherwise: Truth) -> Truth {
    let mut joined = otherwise;
    for truth in truths {
        match truth {
            truth if truth == decisive => return decisive,
            Truth::NeedsList => joined = truth,
            Truth::NeedsHead if joined == otherwise => joined = truth,
            _ => {}
        }
    }
    joined
}

/// One evaluation of one entry.
struct Evaluator<'l, 'f> {
    found: &'l Found<'f>,
    references: &'l [Option<i64>],
    memo: &'l mut Memo,
    /// Number of outcomes of the memo that were replayed or recorded.
    at: usize,
    act: &'l mut dyn Act,
    pruned: bool,
    acted: bool,
    undecided: bool,
}

impl Evaluator<'_, '_> {
    /// The value of a node. `Err`: the evaluation stops with this verdict. If the value does not matter, tests are not
    /// decided, but actions are performed.
    fn value(&mut self, node: &Node, matters: bool) -> Result<bool, Verdict> {
        match node {
            Node::Test(_) if !matters => Ok(true),
            Node::Test(condition) => self.decide(condition),
            Node::Act(action) => self.perform(action),
            Node::Prune => {
                self.pruned = true;
                Ok(true)
            }
            Node::Quit => Err(Verdict::Quit),
            Node::Not(node) => Ok(!self.value(node, matters)?),
            Node::All(nodes) => self.until(nodes, false, matters),
            Node::Any(nodes) => self.until(nodes, true, matters),
            Node::Each(nodes) => {
                let mut value = true;
                for (i, node) in nodes.iter().enumerate() {
                    value = self.value(node, matters && i + 1 == nodes.len())?;
                }
                Ok(value)
            }
        }
    }

    /// Evaluates the nodes until one has the value `stop`.
    fn until(&mut self, nodes: &[Node], stop: bool, matters: bool) -> Result<bool, Verdict> {
        for (i, node) in nodes.iter().enumerate() {
            let is_last = i + 1 == nodes.len();
            let value = self.value(node, matters || !is_last)?;
            if is_last || value == stop {
                return Ok(value);
            }
        }
        Ok(!stop)
    }

    fn decide(&mut self, condition: &Condition) -> Result<bool, Verdict> {
        if let Some(outcome) = self.replay() {
            return Ok(outcome);
        }
        let mut flags = 0;
        let truth = match condition.answer(self.found, self.references, false) {
            Truth::NeedsList => return Err(Verdict::List),
            Truth::NeedsHead if !self.found.asked => return Err(Verdict::Head),
            Truth::NeedsHead => {
                flags = UNDECIDED;
                self.undecided = true;
                condition.answer(self.found, self.references, true)
            }
            truth => truth,
        };
        let holds = truth == Truth::Yes;
        self.record(holds, flags);
        Ok(holds)
    }

    fn perform(&mut self, action: &Action) -> Result<bool, Verdict> {
        self.acted = true;
        if let Some(outcome) = self.replay() {
            return Ok(outcome);
        }
        let succeeded = self.act.act(action, self.found);
        self.record(succeeded, 0);
        Ok(succeeded)
    }

    fn replay(&mut self) -> Option<bool> {
        let outcome = *self.memo.outcomes.get(self.at)?;
        self.at += 1;
        self.undecided |= outcome & UNDECIDED != 0;
        Some(outcome & HELD != 0)
    }

    fn record(&mut self, held: bool, flags: u8) {
        self.at += 1;
        let held = if held { HELD } else { 0 };
        self.memo.outcomes.push(held | flags);
    }
}
