//! What is wanted, in the language of find(1). Pure: what an expression does goes through callbacks.

/// What is to happen to an entry, once an expression has looked at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Go on. A directory is read.
    Go,
    /// Nothing below the entry is wanted, so that no request is sent for it: `-prune`.
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
    /// One byte each.
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
