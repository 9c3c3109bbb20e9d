//! What is wanted and what is to be done with it, in the language of find(1). [`Parser`] reads it, [`Expression`]
//! looks at one entry after the other, [`Actor`] prints, writes files and runs commands. All but the last are pure:
//! what an expression does goes through [`Act`].
//!
//! Precedence, short-circuit and the implicit `-print` are those of GNU find. What is known of an entry is often less
//! than a file system tells: sizes and times are intervals. A test that an interval leaves open makes the expression
//! ask for more ([`Verdict`]), unless the answer does not matter: in `-newermt yesterday -name '*.iso'`, only of what
//! has such a name, and in `-print , -empty`, never.
//!
//! What differs from a file system:
//! - Directories have no size, so that `-size` never holds for one.
//! - Files and directories are the only types, and the time of the last change is the only time.
//! - What the server does not tell even when asked makes a test false; [`Evaluation::undecided`] says so.

use std::ffi::OsString;
use std::path::PathBuf;

use url::Url;

use crate::find::found::{Found, Kind};
use crate::find::glob::{Case, Glob};

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
use predicate::{Means, Test, Truth};

/// An expression. The empty one, which is the default, wants everything and prints it.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Node,
    /// Some action other than `-prune` and `-quit` is in it. Without one, what it holds for is printed.
    acts: bool,
    min_depth: u32,
    max_depth: Option<u32>,
    /// What `-newer` names, and the time of each once it is known.
    references: Vec<Reference>,
    times: Vec<Option<i64>>,
    /// What `-fprint` and its kind name, each once.
    files: Vec<PathBuf>,
    /// The commands of `-exec … {} +`.
    batches: Vec<Vec<OsString>>,
}

/// What `-newer` compares with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reference {
    /// The `Last-Modified` of this URL.
    Url(Url),
    /// The time of this file's last change.
    File(PathBuf),
}

impl Default for Expression {
    fn default() -> Self {
        Self {
            root: Node::Test(Logic::Constant(true)),
            acts: false,
            min_depth: 0,
            max_depth: None,
            references: Vec::new(),
            times: Vec::new(),
            files: Vec::new(),
            batches: Vec::new(),
        }
    }
}

impl Expression {
    /// `-maxdepth`
    pub fn max_depth(&self) -> Option<u32> {
        self.max_depth
    }

    /// What `-newer` names. Each has to be [resolved](Self::resolve) before the first entry is looked at.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Says when the reference of this index was changed, in seconds since 1970.
    pub fn resolve(&mut self, index: usize, seconds: i64) {
        if let Some(time) = self.times.get_mut(index) {
            *time = Some(seconds);
        }
    }

    /// Whether it gathers URLs for commands.
    pub fn gathers(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Whether it writes into files of its own.
    pub fn writes_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Whether it may write to the terminal past the results: by commands, or to standard error.
    pub fn writes_past_results(&self) -> bool {
        self.root.holds_for_any(&mut |node| {
            matches!(
                node,
                Node::Act(Action::Run(_) | Action::Gather(_) | Action::Write(_, Output::Errors))
            )
        })
    }

    /// Whether times matter to it, be it for a test or for what it prints, so that it pays to find out a server's
    /// time zone.
    pub fn needs_times(&self) -> bool {
        self.root.holds_for_any(&mut |node| match node {
            Node::Act(Action::Write(text, _)) => text.shows_time(),
            Node::Test(logic) => logic.holds_for_any(&mut Test::is_about_time),
            _ => false,
        })
    }

    /// Looks at an entry, or looks at it again after [`Verdict::Head`] or [`Verdict::List`], with the same memo.
    pub fn evaluate(&self, found: &Found<'_>, memo: &mut Memo, act: &mut dyn Act) -> Evaluation {
        if found.depth < self.min_depth {
            return Evaluation::default();
        }
        let mut look = Look {
            found,
            references: &self.times,
            memo,
            at: 0,
            act,
            pruned: false,
            acted: false,
            undecided: false,
        };
        let outcome = look.value(&self.root, !self.acts).and_then(|holds| {
            if !self.acts && holds {
                look.perform(&PRINT)?;
            }
            Ok(())
        });
        let verdict = match outcome {
            Err(verdict) => verdict,
            Ok(()) if look.pruned => Verdict::Prune,
            Ok(()) => Verdict::Go,
        };
        Evaluation {
            verdict,
            acted: look.acted,
            undecided: look.undecided,
        }
    }

    /// Adds `-name` or `-iname` in front.
    pub(super) fn and_name(&mut self, pattern: &str, case: Case) {
        self.and(Test::Name(Glob::new(pattern.as_bytes(), case)));
    }

    /// Adds `-regex` in front, in the syntax of the `regex` crate.
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

    /// Adds in front that the name has a match of the regular expression; a directory's name ends in `/` then.
    pub(super) fn and_href(&mut self, pattern: &str) -> Result<(), ParseError> {
        let regex = regex::bytes::Regex::new(pattern).map_err(|error| ParseError::Argument {
            word: "-n".to_owned(),
            argument: pattern.to_owned(),
            reason: error.to_string(),
        })?;
        self.and(Test::Href(regex));
        Ok(())
    }

    /// Adds `-type` in front.
    pub(super) fn and_kind(&mut self, kind: Kind) {
        self.and(Test::Type {
            file: kind == Kind::File,
            directory: kind == Kind::Directory,
        });
    }

    /// `-mindepth`
    pub(super) fn set_min_depth(&mut self, depth: u32) {
        self.min_depth = depth;
    }

    /// In front, so that it holds before anything is done.
    fn and(&mut self, test: Test) {
        let root = std::mem::replace(&mut self.root, Node::Test(Logic::Constant(true)));
        self.root = Node::all(vec![Node::Test(Logic::Test(test)), root]);
    }
}

/// What an expression says of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Evaluation {
    /// What is to happen next.
    pub verdict: Verdict,
    /// Some action was performed, now or in an earlier look.
    pub acted: bool,
    /// Some test could not be decided, although the server was asked; it was taken to be false.
    pub undecided: bool,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self {
            verdict: Verdict::Go,
            acted: false,
            undecided: false,
        }
    }
}

/// What is to happen to an entry, once an expression has looked at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Go on. A directory is read.
    Go,
    /// Nothing below the entry, or linked by it, is wanted, so that no request is sent for that: `-prune`.
    Prune,
    /// The listing leaves a test open. The server is to be asked by `HEAD`; then the expression looks again, with
    /// [`asked`](super::Found::asked) set and the same memo.
    Head,
    /// A test wants to know whether the directory is empty. It is to be read, even if nothing below it is wanted; then
    /// the expression looks again, with [`empty`](super::Found::empty) known and the same memo. A directory that
    /// cannot be read is not empty.
    List,
    /// The search ends here: `-quit`.
    Quit,
}

/// How far an expression has got with one entry: the outcomes of the tests and actions that it has been through, in
/// order. A second look replays them, so that nothing is done twice, even if the server contradicts its own listing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Memo {
    /// One byte each; its bits are the constants below.
    outcomes: Vec<u8>,
}

impl Memo {
    /// Of an entry that no expression has looked at.
    pub fn new() -> Self {
        Self::default()
    }

    /// What [`as_bytes`](Self::as_bytes) gave earlier, for the same expression. Bytes that came from elsewhere do no
    /// harm, but make the expression skip tests and actions.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            outcomes: bytes.to_vec(),
        }
    }

    /// For storing. Empty for a new memo.
    pub fn as_bytes(&self) -> &[u8] {
        &self.outcomes
    }
}

/// The test held, or the action succeeded.
const HELD: u8 = 1;
/// It could not be decided.
const UNDECIDED: u8 = 2;

/// Performs actions.
pub trait Act {
    /// Performs `action` for the entry, and tells whether it succeeded. Only a command that runs for this entry alone
    /// can fail in the sense of the expression.
    fn act(&mut self, action: &Action, found: &Found<'_>) -> bool;
}

/// What an expression can do with an entry.
#[derive(Clone, Debug)]
pub enum Action {
    /// `-print`, `-printf`, `-ls` and their kind.
    Write(Text, Output),
    /// `-exec … ;`
    Run(Vec<OsString>),
    /// `-exec … {} +`: the index of the command.
    Gather(usize),
}

/// What is written of an entry.
#[derive(Clone, Debug)]
pub enum Text {
    /// The URL and a newline.
    Line,
    /// The URL and a NUL.
    Nul,
    /// As `-printf` says.
    Formatted(Format),
    /// As `ls -dils` does.
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

/// Where it is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// Where results go.
    Results,
    /// Standard error.
    Errors,
    /// The file of this index.
    File(usize),
}

const PRINT: Action = Action::Write(Text::Line, Output::Results);

/// An expression, by what it does. Tests that stand side by side are one node, so that they can be decided together.
#[derive(Clone, Debug)]
enum Node {
    Test(Logic),
    Act(Action),
    Prune,
    Quit,
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    /// `,`: all, and the last one counts.
    Each(Vec<Node>),
}

/// What has no effect.
#[derive(Clone, Debug)]
enum Logic {
    Constant(bool),
    Test(Test),
    Not(Box<Logic>),
    All(Vec<Logic>),
    Any(Vec<Logic>),
}

impl Node {
    fn not(self) -> Self {
        match self {
            Self::Test(logic) => Self::Test(Logic::Not(Box::new(logic))),
            Self::Not(node) => *node,
            node => Self::Not(Box::new(node)),
        }
    }

    fn all(nodes: Vec<Self>) -> Self {
        let flat = nodes.into_iter().flat_map(|node| match node {
            Self::All(nodes) => nodes,
            node => vec![node],
        });
        Self::joined(flat, Self::All, Logic::All)
    }

    fn any(nodes: Vec<Self>) -> Self {
        let flat = nodes.into_iter().flat_map(|node| match node {
            Self::Any(nodes) => nodes,
            node => vec![node],
        });
        Self::joined(flat, Self::Any, Logic::Any)
    }

    /// Tests side by side become one.
    fn joined(
        nodes: impl Iterator<Item = Self>,
        join: fn(Vec<Self>) -> Self,
        join_tests: fn(Vec<Logic>) -> Logic,
    ) -> Self {
        let mut out: Vec<Self> = Vec::new();
        let mut tests: Vec<Logic> = Vec::new();
        let flush = |tests: &mut Vec<Logic>, out: &mut Vec<Self>| match tests.len() {
            0 => {}
            1 => out.extend(tests.pop().map(Self::Test)),
            _ => out.push(Self::Test(join_tests(std::mem::take(tests)))),
        };
        for node in nodes {
            match node {
                Self::Test(logic) => tests.push(logic),
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

impl Logic {
    fn holds_for_any(&self, is: &mut dyn FnMut(&Test) -> bool) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Test(test) => is(test),
            Self::Not(logic) => logic.holds_for_any(is),
            Self::All(logics) | Self::Any(logics) => {
                logics.iter().any(|logic| logic.holds_for_any(is))
            }
        }
    }

    /// `settled`: what is open stays open no longer, but is false.
    fn answer(&self, found: &Found<'_>, references: &[Option<i64>], settled: bool) -> Truth {
        let each = |logic: &Self| logic.answer(found, references, settled);
        match self {
            Self::Constant(value) => (*value).into(),
            Self::Test(test) => match test.answer(found, references) {
                Truth::Open(_) if settled => Truth::No,
                truth => truth,
            },
            Self::Not(logic) => !each(logic),
            Self::All(logics) => join(logics.iter().map(each), Truth::No, Truth::Yes),
            Self::Any(logics) => join(logics.iter().map(each), Truth::Yes, Truth::No),
        }
    }
}

/// `decisive` as soon as one of them is, and else `otherwise`, unless one is open.
fn join(truths: impl Iterator<Item = Truth>, decisive: Truth, otherwise: Truth) -> Truth {
    let mut open: Option<Means> = None;
    for truth in truths {
        match truth {
            truth if truth == decisive => return decisive,
            Truth::Open(means) => {
                let earlier = open.unwrap_or_default();
                open = Some(Means {
                    head: earlier.head || means.head,
                    list: earlier.list || means.list,
                });
            }
            _ => {}
        }
    }
    open.map_or(otherwise, Truth::Open)
}

/// One look at one entry.
struct Look<'l, 'f> {
    found: &'l Found<'f>,
    references: &'l [Option<i64>],
    memo: &'l mut Memo,
    /// How much of the memo is replayed.
    at: usize,
    act: &'l mut dyn Act,
    pruned: bool,
    acted: bool,
    undecided: bool,
}

impl Look<'_, '_> {
    /// The value of a node, or what has to happen before it is known. When the value does not `matter`, any will do,
    /// but what the node does is done.
    fn value(&mut self, node: &Node, matters: bool) -> Result<bool, Verdict> {
        match node {
            Node::Test(_) if !matters => Ok(true),
            Node::Test(logic) => self.decide(logic),
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

    /// Goes on until one of the nodes has the value `stop`.
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

    fn decide(&mut self, logic: &Logic) -> Result<bool, Verdict> {
        if let Some(outcome) = self.replay() {
            return Ok(outcome);
        }
        let mut flags = 0;
        let truth = match logic.answer(self.found, self.references, false) {
            Truth::Open(means) if means.list => return Err(Verdict::List),
            Truth::Open(_) if !self.found.asked => return Err(Verdict::Head),
            Truth::Open(_) => {
                flags = UNDECIDED;
                self.undecided = true;
                logic.answer(self.found, self.references, true)
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
