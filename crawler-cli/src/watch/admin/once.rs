//! The forms of pages: each is performed once, however often a browser sends it, and its outcome is told on the next page.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// What has become of a form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::watch) struct Said {
    /// Whether it was done.
    pub(in crate::watch) is_done: bool,
    /// What was done, or why it was not.
    pub(in crate::watch) text: String,
}

/// The forms that were performed last, by who sent them and by their numbers.
#[derive(Debug)]
pub(in crate::watch) struct Once {
    next: AtomicU64,
    /// The newest is the last; at most [`KEPT`].
    outcomes: Mutex<VecDeque<(String, u64, Said)>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Default for Once {
    fn default() -> Self {
        // Other than those of the last process, to which addresses in a history may belong.
        let first = u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default();
        Self {
            next: first.into(),
            outcomes: Mutex::default(),
            turn: Arc::default(),
        }
    }
}

impl Once {
    /// The number of a new form.
    pub(in crate::watch) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Performs a form, unless that was done. One form is performed at a time, and to its end, even if nobody waits for it
    /// any more: its client may send it again.
    pub(in crate::watch) async fn perform(
        self: &Arc<Self>,
        who: &str,
        number: u64,
        deed: impl Future<Output = Said> + Send + 'static,
    ) {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if self.said(who, number).is_some() {
            return;
        }
        let (once, who) = (Arc::clone(self), who.to_owned());
        let performed = tokio::spawn(async move {
            let said = deed.await;
            once.keep(who, number, said);
            drop(turn);
        });
        // One that has panicked has no outcome.
        let _ = performed.await;
    }

    fn keep(&self, who: String, number: u64, said: Said) {
        let mut outcomes = self.outcomes();
        if outcomes.len() == KEPT {
            outcomes.pop_front();
        }
        outcomes.push_back((who, number, said));
    }

    /// What has become of a form, if that is still known.
    pub(in crate::watch) fn said(&self, who: &str, number: u64) -> Option<Said> {
        let outcomes = self.outcomes();
        let mut outcomes = outcomes.iter().rev();
        let found = outcomes.find(|(by, of, _)| by == who && *of == number);
        found.map(|(.., said)| said.clone())
    }

    fn outcomes(&self) -> MutexGuard<'_, VecDeque<(String, u64, Said)>> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many outcomes are kept.
const KEPT: usize = 256;
