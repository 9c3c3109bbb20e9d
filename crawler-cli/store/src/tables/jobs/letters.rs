//! Dead letters.

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::memory::Jobs;
use super::queue::Enqueue;
use crate::sql::{Connection, Optional as _, Row, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::memory::{Memory, take};
use crate::tables::watch;
use crate::{
    DeadLetter, DeadLetterFilter, DeadLetterId, JobId, LAST_EXCHANGE, NewDeadLetter, NewJob,
    Replayed, Subject, UrlId, Which,
};

/// The values of `dead_letter.kind`.
const URL: i64 = 0;
const TEXT: i64 = 1;
const JOB: i64 = 2;

/// What a dead letter is stored of.
pub(crate) enum Buried<'a> {
    Url(i64),
    Text(&'a str),
    Job(&'a DeadJob),
}

/// A job that is over.
pub(crate) struct DeadJob {
    pub(super) id: i64,
    pub(super) queue: i64,
    /// When it was started.
    pub(super) at: i64,
    pub(super) attempt: u32,
    pub(super) spared: u32,
    pub(super) max_attempts: u32,
    pub(super) first_at: Option<i64>,
    pub(super) keep_key: i64,
    pub(super) letter: Option<i64>,
    pub(super) key: Option<String>,
    pub(super) payload: Vec<u8>,
}

impl DeadJob {
    pub(super) fn read(db: &Connection, id: i64) -> Result<Self, Failure> {
        let query = "SELECT queue, at, attempt, spared, max_attempts, first_at, keep_key, letter, key, payload \
             FROM job WHERE job = ?1";
        let read = |row: Row<'_>| {
            Ok(Self {
                id,
                queue: row.get(0)?,
                at: row.get(1)?,
                attempt: row.get(2)?,
                spared: row.get(3)?,
                max_attempts: row.get(4)?,
                first_at: row.get(5)?,
                keep_key: row.get(6)?,
                letter: row.get(7)?,
                key: row.get(8)?,
                payload: row.get(9)?,
            })
        };
        Ok(db.prepare_cached(query)?.query_row([id], read)?)
    }

    /// How many attempts count.
    pub(super) fn attempts(&self) -> u32 {
        self.attempt.saturating_sub(self.spared)
    }
}

pub(super) fn bury(
    db: &Connection,
    jobs: &mut Jobs,
    subject: &crate::Buried,
    letter: &NewDeadLetter,
) -> Result<DeadLetterId, Failure> {
    let buried = match subject {
        crate::Buried::Url(id) => Buried::Url(id.0),
        crate::Buried::Text(text) => Buried::Text(text),
    };
    store(db, jobs, &buried, letter, None)
}

/// Stores a dead letter: in the place of `before`, or of one of the same subject. A URL and a text have one for each reason.
pub(crate) fn store(
    db: &Connection,
    jobs: &mut Jobs,
    subject: &Buried<'_>,
    letter: &NewDeadLetter,
    before: Option<i64>,
) -> Result<DeadLetterId, Failure> {
    let first_at = letter.first_at.as_millisecond();
    let last_at = letter.last_at.as_millisecond();
    let last = shortened(&letter.last);
    let same = same(db, subject, &letter.reason)?;
    if let Some(number) = same.or(before) {
        let update = "UPDATE dead_letter SET reason = ?2, attempts = ?3, last = ?4, first_at = CASE WHEN first_at < ?5 THEN first_at ELSE ?5 END, \
             last_at = ?6, times = times + 1, job = coalesce(?7, job), replayed_at = NULL, \
             payload = coalesce(?8, payload), keep_key = coalesce(?9, keep_key), \
             max_attempts = coalesce(?10, max_attempts) WHERE letter = ?1";
        let job = match subject {
            Buried::Job(job) => Some(*job),
            _ => None,
        };
        let row = params![
            number,
            letter.reason,
            letter.attempts,
            last,
            first_at,
            last_at,
            job.map(|job| job.id),
            job.map(|job| &job.payload),
            job.map(|job| job.keep_key),
            job.map(|job| job.max_attempts),
        ];
        if db.prepare_cached(update)?.execute(row)? > 0 {
            return Ok(DeadLetterId(number));
        }
    }
    let number = take(&mut jobs.next.letter);
    let insert = "INSERT INTO dead_letter (letter, reason, attempts, last, first_at, last_at, kind, url, text, \
         queue, job, key, keep_key, max_attempts, payload) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let (kind, url, text, job) = match subject {
        Buried::Url(url) => (URL, Some(*url), None, None),
        Buried::Text(text) => (TEXT, None, Some(*text), None),
        Buried::Job(job) => (JOB, None, None, Some(*job)),
    };
    db.prepare_cached(insert)?.execute(params![
        number,
        letter.reason,
        letter.attempts,
        last,
        first_at,
        last_at,
        kind,
        url,
        text,
        job.map(|job| job.queue),
        job.map(|job| job.id),
        job.and_then(|job| job.key.as_deref()),
        job.map_or(0, |job| job.keep_key),
        job.map_or(1, |job| job.max_attempts),
        job.map(|job| &job.payload),
    ])?;
    Ok(DeadLetterId(number))
}

/// A URL is forgotten, and its dead letters with it.
pub(crate) fn forget_url(db: &Connection, url: i64) -> Result<(), Failure> {
    db.prepare_cached("DELETE FROM dead_letter WHERE kind = 0 AND url = ?1")?
        .execute([url])?;
    Ok(())
}

/// The dead letter of the same subject; of a URL or a text, with this reason.
fn same(db: &Connection, subject: &Buried<'_>, reason: &str) -> Result<Option<i64>, Failure> {
    let read = |row: Row<'_>| row.get(0);
    let same = match subject {
        Buried::Url(url) => {
            let query =
                "SELECT letter FROM dead_letter WHERE kind = 0 AND url = ?1 AND reason = ?2";
            db.prepare_cached(query)?
                .query_row(params![url, reason], read)
        }
        Buried::Text(text) => {
            let query =
                "SELECT letter FROM dead_letter WHERE kind = 1 AND text = ?1 AND reason = ?2";
            db.prepare_cached(query)?
                .query_row(params![text, reason], read)
        }
        Buried::Job(DeadJob {
            queue,
            key: Some(key),
            ..
        }) => {
            let query = "SELECT letter FROM dead_letter WHERE queue = ?1 AND key = ?2";
            db.prepare_cached(query)?
                .query_row(params![queue, key], read)
        }
        Buried::Job(_) => return Ok(None),
    };
    Ok(same.optional()?)
}

/// The first bytes of a text, up to the end of a character.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(LAST_EXCHANGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

const SELECT: &str = "SELECT d.letter, d.kind, d.url, coalesce(d.text, u.text), q.name, d.job, d.key, \
     d.payload, d.reason, d.attempts, d.last, d.first_at, d.last_at, d.replayed_at, d.keep_key, d.max_attempts, d.times \
     FROM dead_letter d LEFT JOIN job_queue q ON q.queue = d.queue LEFT JOIN url u ON u.url = d.url";

/// A dead letter, and what is needed to replay it.
struct Stored {
    letter: DeadLetter,
    keep_key: i64,
    max_attempts: u32,
}

fn stored(row: Row<'_>) -> Result<Stored, Failure> {
    let number: i64 = row.get(0)?;
    let missing = |what: &str| Failure::Damaged(format!("{what} of dead letter {number}"));
    let text = row.get::<Option<String>>(3)?;
    let payload = row.get::<Option<Vec<u8>>>(7)?;
    let subject = match row.get(1)? {
        URL => Subject::Url {
            id: UrlId(row.get(2)?),
            url: text.ok_or_else(|| missing("the URL"))?,
        },
        TEXT => Subject::Text(text.ok_or_else(|| missing("the text"))?),
        JOB => Subject::Job {
            id: JobId(row.get(5)?),
            queue: row
                .get::<Option<String>>(4)?
                .ok_or_else(|| missing("the queue"))?,
            key: row.get(6)?,
            payload: payload.ok_or_else(|| missing("the payload"))?,
        },
        kind => return Err(Failure::Damaged(format!("dead letter of kind {kind}"))),
    };
    let letter = NewDeadLetter {
        reason: row.get(8)?,
        attempts: row.get(9)?,
        last: row.get(10)?,
        first_at: codec::time(row.get(11)?)?,
        last_at: codec::time(row.get(12)?)?,
    };
    Ok(Stored {
        letter: DeadLetter {
            id: DeadLetterId(number),
            subject,
            letter,
            times: row.get(16)?,
            replayed_at: codec::optional_time(row.get(13)?)?,
        },
        keep_key: row.get(14)?,
        max_attempts: row.get(15)?,
    })
}

/// Whether a dead letter is that of a URL of the host with this name.
fn is_of_host(letter: &DeadLetter, name: &str) -> bool {
    let Subject::Url { url, .. } = &letter.subject else {
        return false;
    };
    let url = Url::parse(url).ok();
    url.is_some_and(|url| {
        url.host_str()
            .is_some_and(|host| host.eq_ignore_ascii_case(name))
    })
}

/// Reads what passes the filter, in the order of the numbers.
fn select(
    db: &Connection,
    filter: &DeadLetterFilter,
    after: DeadLetterId,
    visit: &mut dyn FnMut(Stored) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let query = format!(
        "{SELECT} WHERE d.letter > ?1 AND (CAST(?2 AS TEXT) IS NULL OR d.reason = ?2) AND (CAST(?3 AS TEXT) IS NULL OR q.name = ?3) \
         AND (CAST(?4 AS BIGINT) IS NULL OR d.last_at >= ?4) AND (CAST(?5 AS BIGINT) = 1 OR d.replayed_at IS NULL) AND d.letter <= ?6 \
         ORDER BY d.letter"
    );
    let mut query = db.prepare_cached(&query)?;
    let (after, last) = match filter.id {
        Some(id) => (after.0.max(id.0.saturating_sub(1)), id.0),
        None => (after.0, i64::MAX),
    };
    let mut rows = query.stream(params![
        after,
        filter.reason,
        filter.queue,
        filter.since.map(|since| since.as_millisecond()),
        filter.with_replayed,
        last,
    ])?;
    while let Some(row) = rows.next()? {
        let stored = stored(row)?;
        let host = filter.host.as_deref();
        if host.is_none_or(|host| is_of_host(&stored.letter, host)) && visit(stored).is_break() {
            break;
        }
    }
    Ok(())
}

pub(super) fn visit(
    db: &Connection,
    filter: &DeadLetterFilter,
    after: DeadLetterId,
    visit: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
) -> Result<(), Failure> {
    select(db, filter, after, &mut |stored| visit(stored.letter))
}

pub(super) fn one(db: &Connection, id: DeadLetterId) -> Result<Option<DeadLetter>, Failure> {
    let filter = DeadLetterFilter {
        id: Some(id),
        with_replayed: true,
        ..DeadLetterFilter::default()
    };
    let mut found = None;
    visit(db, &filter, DeadLetterId::START, &mut |letter| {
        found = Some(letter);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

pub(crate) fn of_url() -> String {
    format!("{SELECT} WHERE d.kind = 0 AND d.url = ?1 ORDER BY d.reason")
}

pub(super) fn of(db: &Connection, url: UrlId) -> Result<Vec<DeadLetter>, Failure> {
    let mut query = db.prepare_cached(&of_url())?;
    let mut rows = query.query([url.0])?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next()? {
        letters.push(stored(row)?.letter);
    }
    Ok(letters)
}

pub(super) fn counts(db: &Connection) -> Result<Vec<(String, u64)>, Failure> {
    let mut query =
        db.prepare_cached("SELECT reason, letters FROM dead_letter_count ORDER BY reason")?;
    Ok(query.query_all([], |row| Ok((row.get(0)?, codec::count(row.get(1)?))))?)
}

/// How long a dead letter that was replayed is still told.
const REPLAYED: i64 = 30 * 24 * 3600 * 1000;

pub(super) fn replay(
    db: &Connection,
    memory: &mut Memory,
    filter: &DeadLetterFilter,
    after: DeadLetterId,
    limit: usize,
    now: Timestamp,
) -> Result<Replayed, Failure> {
    let filter = DeadLetterFilter {
        with_replayed: false,
        ..filter.clone()
    };
    let (mut chosen, mut has_more) = (Vec::new(), false);
    select(db, &filter, after, &mut |stored| {
        has_more = chosen.len() == limit;
        if has_more {
            return ControlFlow::Break(());
        }
        chosen.push(stored);
        ControlFlow::Continue(())
    })?;
    let mut replayed = Replayed {
        next: chosen
            .last()
            .map_or(Some(after), |last| Some(last.letter.id)),
        ..Replayed::default()
    };
    replayed.next = replayed.next.filter(|_| has_more);
    let at = now.as_millisecond();
    let mut mark =
        db.prepare_cached("UPDATE dead_letter SET replayed_at = ?2 WHERE letter = ?1")?;
    for stored in chosen {
        let number = stored.letter.id.0;
        if revive(db, memory, stored, now)? {
            mark.execute([number, at])?;
            replayed.count += 1;
        } else {
            replayed.passed += 1;
        }
    }
    db.prepare_cached("DELETE FROM dead_letter WHERE replayed_at < ?1")?
        .execute([at.saturating_sub(REPLAYED)])?;
    Ok(replayed)
}

/// Tries again what is behind a dead letter. Returns whether there is something.
fn revive(
    db: &Connection,
    memory: &mut Memory,
    stored: Stored,
    now: Timestamp,
) -> Result<bool, Failure> {
    let letter = stored.letter;
    match letter.subject {
        Subject::Text(_) => Ok(false),
        Subject::Url { id, url } => {
            let which = Which::Urls(vec![url]);
            watch::make_due(db, memory, &which, now)?;
            let is_in_set = "SELECT 1 FROM url WHERE url = ?1 AND sets > 0";
            Ok(db.prepare_cached(is_in_set)?.exists([id.0])?)
        }
        Subject::Job {
            queue,
            key,
            payload,
            ..
        } => {
            let job = NewJob {
                queue,
                key,
                keep_key: Duration::from_millis(codec::count(stored.keep_key)),
                payload,
                max_attempts: stored.max_attempts,
                not_before: None,
            };
            let letter = Some(letter.id.0);
            Enqueue::prepare(db)?.add(db, &mut memory.jobs, &job, now, letter)?;
            Ok(true)
        }
    }
}

/// Drops old dead letters, but those of URLs, which are kept as long as the URL.
pub(super) fn expire(db: &Connection, before: Timestamp, limit: usize) -> Result<u64, Failure> {
    let delete = "DELETE FROM dead_letter WHERE letter IN \
         (SELECT letter FROM dead_letter WHERE kind <> ?1 AND last_at < ?2 LIMIT ?3)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let dropped = db
        .prepare_cached(delete)?
        .execute([URL, before.as_millisecond(), limit])?;
    Ok(dropped as u64)
}

pub(super) fn forget(
    db: &Connection,
    filter: &DeadLetterFilter,
    limit: usize,
) -> Result<u64, Failure> {
    let mut chosen = Vec::new();
    select(db, filter, DeadLetterId::START, &mut |stored| {
        if chosen.len() == limit {
            return ControlFlow::Break(());
        }
        chosen.push(stored.letter.id.0);
        ControlFlow::Continue(())
    })?;
    let mut delete = db.prepare_cached("DELETE FROM dead_letter WHERE letter = ?1")?;
    for &letter in &chosen {
        delete.execute([letter])?;
    }
    Ok(chosen.len() as u64)
}
