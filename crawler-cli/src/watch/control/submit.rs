//! Submits the URLs of a program: more at once than a command adds, and once however often the program sends them.
//!
//! The URLs and the answer are stored in one transaction. Whatever ends the process, the same request has the same answer
//! afterwards, and its URLs were counted once.

use jiff::{SignedDuration, Timestamp};

use super::core::CoreMessage;
use super::message::Reply;
use super::operate::Operator;
use super::perform::{By, add};
use crate::store::{Engine, Remembered, StoreError, StoreHandle};

/// URLs that a program submits.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The set, which need not exist.
    pub set: String,
    /// At most [`MOST_URLS`](Self::MOST_URLS).
    pub urls: Vec<String>,
    /// How the same request is known again; `None`: it is not.
    pub key: Option<RequestKey>,
    /// What is answered to a reply. Of the URLs it has those of the submission.
    pub answer: fn(&Submission, &Reply) -> String,
}

impl Submission {
    /// How many URLs one submission may have.
    pub const MOST_URLS: usize = 10_000;
}

/// How a request is known again.
#[derive(Clone, Debug)]
pub struct RequestKey {
    /// Whose key it is.
    pub holder: String,
    /// The key.
    pub key: String,
    /// The hash of the whole request.
    pub request: Vec<u8>,
}

impl RequestKey {
    /// How long an answer is remembered.
    pub const LASTS: SignedDuration = SignedDuration::from_hours(24);
    /// How many answers are remembered for one holder.
    pub const MOST: usize = 10_000;

    /// The key of the answer in the store: holders cannot meet the keys of others.
    pub fn stored(&self) -> String {
        format!("{}{}", self.prefix(), self.key)
    }

    fn prefix(&self) -> String {
        format!("{}|", self.holder)
    }
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Submitted {
    /// The reply, and what is answered to it.
    Done(Reply, String),
    /// A request with the key is under way.
    UnderWay,
    /// The same request was done before: its answer.
    Before(Remembered),
    /// Another request was done with the key.
    Differs,
    /// The holder has used too many keys.
    TooMany,
}

impl<H: StoreHandle> Operator<H> {
    /// Has the writer add the URLs of a submission. `who` is named in notices.
    ///
    /// # Errors
    /// The store cannot be read or written. Nothing was changed.
    pub fn submit(&self, submission: Submission, who: &str) -> Result<Submitted, StoreError> {
        let by = By {
            who: who.to_owned(),
            now: Timestamp::now(),
        };
        let submitted = self
            .store
            .call(move |engine| submit(engine, &submission, &by))?;
        if matches!(submitted, Submitted::Done(..)) {
            self.core.tell(CoreMessage::LookAgain);
        }
        Ok(submitted)
    }
}

fn submit(
    engine: &mut dyn Engine,
    submission: &Submission,
    by: &By,
) -> Result<Submitted, StoreError> {
    if let Some(key) = &submission.key
        && let Some(submitted) = known(engine, key, by.now)?
    {
        return Ok(submitted);
    }
    let reply = add(engine, &submission.set, &submission.urls, by)?;
    let answer = (submission.answer)(submission, &reply);
    // What was refused has changed nothing, and may be sent again with other URLs.
    if let Some(key) = &submission.key
        && !matches!(reply, Reply::Refused(_))
    {
        let remembered = Remembered {
            request: key.request.clone(),
            status: ACCEPTED,
            answer: answer.clone(),
            at: by.now,
        };
        engine.remember(&key.stored(), &remembered)?;
    }
    Ok(Submitted::Done(reply, answer))
}

/// What is known of a key; `None`: the request is new.
fn known(
    engine: &mut dyn Engine,
    key: &RequestKey,
    now: Timestamp,
) -> Result<Option<Submitted>, StoreError> {
    let oldest = now.saturating_sub(RequestKey::LASTS).unwrap_or(now);
    engine.forget_remembered(oldest, FORGOTTEN)?;
    let remembered = engine.remembered(&key.stored())?;
    if let Some(remembered) = remembered.filter(|remembered| remembered.at >= oldest) {
        return Ok(Some(match remembered.request == key.request {
            true => Submitted::Before(remembered),
            false => Submitted::Differs,
        }));
    }
    let count = engine.count_remembered(&key.prefix(), RequestKey::MOST)?;
    Ok((count >= RequestKey::MOST).then_some(Submitted::TooMany))
}

/// The status of the answer to a submission: its URLs are stored, and are asked later.
const ACCEPTED: u16 = 202;
/// How many answers are forgotten at a time: more than one submission adds.
const FORGOTTEN: usize = 100;
