//! What a task says about a job that did not succeed.

use std::fmt;
use std::time::Duration;

/// Why a job did not succeed, and whether another attempt can help.
///
/// ```
/// use std::time::Duration;
/// use jobs::JobError;
///
/// let busy = JobError::retry_after(Duration::from_secs(30), "429 Too Many Requests");
/// assert_eq!(busy.to_string(), "429 Too Many Requests (again after 30s)");
/// let gone = JobError::fail("404 Not Found");
/// assert!(matches!(gone, JobError::Fail { .. }));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum JobError {
    /// Another attempt may succeed: the job is retried until its attempts are used up.
    Retry {
        /// The shortest wait before the next attempt, for instance from `Retry-After`. The back-off with its jitter
        /// is added, so that jobs that were told the same time do not come back together.
        after: Option<Duration>,
        /// The cause, for the dead letter.
        why: String,
    },
    /// No attempt can succeed: the job becomes a dead letter at once.
    Fail {
        /// The cause, for the dead letter.
        why: String,
    },
}

impl JobError {
    /// Another attempt may succeed, after the usual back-off.
    pub fn retry(why: impl Into<String>) -> Self {
        let why = why.into();
        Self::Retry { after: None, why }
    }

    /// Another attempt may succeed, but not before this time has passed.
    pub fn retry_after(after: Duration, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::Retry {
            after: Some(after),
            why,
        }
    }

    /// No attempt can succeed.
    pub fn fail(why: impl Into<String>) -> Self {
        Self::Fail { why: why.into() }
    }

    /// The cause.
    pub fn why(&self) -> &str {
        match self {
            Self::Retry { why, .. } | Self::Fail { why } => why,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())?;
        match self {
            Self::Retry {
                after: Some(after), ..
            } => write!(f, " (again after {after:?})"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for JobError {}
