//! Lists of dead letters, a page at a time.

use rusqlite::ToSql;

use super::letters::{self, SELECT, Stored};
use crate::store::sql::{Connection, params};
use crate::store::tables::failure::Failure;
use crate::store::{DeadLetter, DeadLetterFilter, DeadLetterId, LOOKS, Page, Turn, UrlId};

pub(in crate::store) fn latest() -> String {
    format!("{SELECT} WHERE d.letter < ?1 ORDER BY d.letter DESC")
}

pub(in crate::store) fn latest_with_reason() -> String {
    format!("{SELECT} WHERE d.letter < ?1 AND d.reason = ?2 ORDER BY d.letter DESC")
}

pub(in crate::store) fn told() -> String {
    // Without the second condition the index cannot be used.
    format!("{SELECT} WHERE d.turn > ?1 AND d.turn > 0 ORDER BY d.turn LIMIT ?2")
}

pub(in crate::store) fn of_url() -> String {
    format!("{SELECT} WHERE d.kind = 0 AND d.url = ?1 ORDER BY d.reason")
}

pub(super) fn before(
    db: &Connection,
    filter: &DeadLetterFilter,
    before: DeadLetterId,
    limit: usize,
) -> Result<Page<DeadLetter, DeadLetterId>, Failure> {
    let last = filter.id.map_or(i64::MAX, |id| id.0);
    let before = before.0.min(last.saturating_add(1));
    let (query, values): (String, &[&dyn ToSql]) = match &filter.reason {
        Some(reason) => (latest_with_reason(), &[&before, reason]),
        None => (latest(), &[&before]),
    };
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.stream(values)?;
    let (mut page, mut looked, mut last) = (Page::default(), 0, None);
    while let Some(row) = rows.next()? {
        if page.rows.len() == limit.max(1) || looked == LOOKS {
            page.next = last;
            break;
        }
        let letter = letters::stored(row)?.letter;
        if filter.id.is_some_and(|id| letter.id < id) {
            break;
        }
        (looked, last) = (looked + 1, Some(letter.id));
        if letters::passes(&letter, filter) {
            page.rows.push(letter);
        }
    }
    Ok(page)
}

pub(super) fn of(db: &Connection, url: UrlId) -> Result<Vec<DeadLetter>, Failure> {
    let mut query = db.prepare_cached(&of_url())?;
    let mut rows = query.query([url.0])?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next()? {
        letters.push(letters::stored(row)?.letter);
    }
    Ok(letters)
}

pub(super) fn told_after(
    db: &Connection,
    after: Turn,
    limit: usize,
) -> Result<Vec<(Turn, DeadLetter)>, Failure> {
    let mut query = db.prepare_cached(&told())?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![after.0, limit])?;
    let mut told = Vec::new();
    while let Some(row) = rows.next()? {
        let Stored { letter, turn, .. } = letters::stored(row)?;
        told.push((Turn(turn), letter));
    }
    Ok(told)
}
