//! Dead letters: jobs that no further attempt can help, for a human to look at.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

/// A job that no further attempt can help.
#[derive(Clone, Debug)]
pub struct DeadLetter<T> {
    /// The job. Shared, since a stuck task may still use the job.
    pub job: Arc<T>,
    /// Why the job is dead.
    pub reason: DeadReason,
    /// The number of attempts that were begun.
    pub attempts: u32,
    /// The cause of the last failure, at most [`LONGEST_CAUSE`](Self::LONGEST_CAUSE) bytes.
    pub last: String,
    /// When the first attempt began; for a job without an attempt, when the letter was written.
    pub first_at: Timestamp,
    /// When the last attempt ended.
    pub last_at: Timestamp,
}

/// Why a job is dead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DeadReason {
    /// The task said that no attempt can succeed.
    Failed,
    /// The attempts are used up.
    Attempts,
    /// The attempts are used up, and the last one panicked.
    Panic,
    /// The attempts are used up, and the last one took too long.
    TimeLimit,
    /// The pool was dropped without a shutdown.
    Abandoned,
}

impl DeadReason {
    /// The reason as one word, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Attempts => "attempts",
            Self::Panic => "panic",
            Self::TimeLimit => "time_limit",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<T> DeadLetter<T> {
    /// The longest cause that is kept, in bytes.
    pub const LONGEST_CAUSE: usize = 4096;
}

/// Shortens a cause to what is kept, at the border of a character.
pub fn shortened(mut cause: String) -> String {
    let most = DeadLetter::<()>::LONGEST_CAUSE;
    if cause.len() > most {
        let border = (0..=most).rev().find(|at| cause.is_char_boundary(*at));
        cause.truncate(border.unwrap_or(0));
    }
    cause
}

/// Takes the dead letters of a pool. Called on the pool's threads, without a lock of the pool.
///
/// Any function that takes a [`DeadLetter`] is one.
pub trait DeadLetters<T>: Send + Sync {
    /// Takes a dead letter.
    fn put(&self, letter: DeadLetter<T>);
}

impl<T, F: Fn(DeadLetter<T>) + Send + Sync> DeadLetters<T> for F {
    fn put(&self, letter: DeadLetter<T>) {
        self(letter);
    }
}

impl<T: Send + Sync> DeadLetters<T> for DeadLetterQueue<T> {
    fn put(&self, letter: DeadLetter<T>) {
        self.push(letter);
    }
}

/// Keeps dead letters in memory. Clones are the same queue.
///
/// ```
/// use jobs::{Drain, DeadReason, JobError, PoolSettings, WorkerPool};
///
/// let pool = WorkerPool::new(PoolSettings::default(), |name: &&str, _: &_| match *name {
///     "delisted" => Err(JobError::fail("404 Not Found")),
///     _ => Ok(()),
/// })?;
/// for name in ["apple", "delisted", "tesla"] {
///     pool.submit(name).expect("the pool is open");
/// }
/// pool.shutdown(Drain::Finish, std::time::Duration::from_secs(60));
/// let letters = pool.dead_letters().take();
/// assert_eq!(letters.len(), 1);
/// assert_eq!((*letters[0].job, letters[0].reason), ("delisted", DeadReason::Failed));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct DeadLetterQueue<T>(Arc<Mutex<Letters<T>>>);

#[derive(Debug)]
struct Letters<T> {
    letters: VecDeque<DeadLetter<T>>,
    most: usize,
    dropped: u64,
}

impl<T> DeadLetterQueue<T> {
    /// A queue of at most so many letters. When the queue is full, the oldest letter is dropped and counted.
    pub fn new(most: NonZeroUsize) -> Self {
        Self(Arc::new(Mutex::new(Letters {
            letters: VecDeque::new(),
            most: most.get(),
            dropped: 0,
        })))
    }

    /// The number of letters.
    pub fn len(&self) -> usize {
        self.lock().letters.len()
    }

    /// Whether there is no letter.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of letters that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Removes the letters and returns them, the oldest first.
    pub fn take(&self) -> Vec<DeadLetter<T>> {
        std::mem::take(&mut self.lock().letters).into()
    }

    fn push(&self, letter: DeadLetter<T>) {
        let oldest = {
            let mut letters = self.lock();
            letters.letters.push_back(letter);
            let is_over = letters.letters.len() > letters.most;
            letters.dropped += u64::from(is_over);
            is_over.then(|| letters.letters.pop_front())
        };
        // Outside of the lock: what a job holds may take long to drop.
        drop(oldest);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Letters<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most letters that a [`DeadLetterQueue`] keeps by default.
const MOST_LETTERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

impl<T> Default for DeadLetterQueue<T> {
    /// A queue of at most 10,000 letters.
    fn default() -> Self {
        Self::new(MOST_LETTERS)
    }
}

impl<T> Clone for DeadLetterQueue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
