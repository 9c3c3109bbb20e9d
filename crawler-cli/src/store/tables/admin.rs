//! What the operator's page and the API keep in the database.

use jiff::Timestamp;

use super::failure::Failure;
use super::{Database, Durability, codec};
use crate::store::sql::{self, Connection, Optional as _, Row, params};
use crate::store::{AdminStore, Remembered, SAMPLES_LAST, StoreError, StoredToken};

impl AdminStore for Database {
    fn tokens(&mut self) -> Result<Vec<StoredToken>, StoreError> {
        self.read(tokens(&self.db))
    }

    fn save_token(&mut self, token: &StoredToken) -> Result<bool, StoreError> {
        self.change(Durability::Synced, |db, _| {
            let insert = "INSERT INTO token (id, name, hash, may_write, made_at, expires_at, made_by) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
            let stored = db.prepare_cached(insert)?.execute(params![
                token.id,
                token.name,
                token.hash,
                token.may_write,
                token.made_at.as_millisecond(),
                token.expires_at.map(Timestamp::as_millisecond),
                token.made_by,
            ])?;
            Ok(stored > 0)
        })
    }

    fn remove_token(&mut self, name: &str) -> Result<bool, StoreError> {
        self.change(Durability::Synced, |db, _| {
            let mut delete = db.prepare_cached("DELETE FROM token WHERE name = ?1")?;
            Ok(delete.execute([name])? > 0)
        })
    }

    fn save_sample(&mut self, at: Timestamp, data: &str) -> Result<(), StoreError> {
        self.change(Durability::Lazy, |db, _| {
            db.prepare_cached(&sql::upsert("sample", &["at"], &["data"]))?
                .execute(params![at.as_millisecond(), data])?;
            if let Ok(oldest) = at.checked_sub(SAMPLES_LAST) {
                db.prepare_cached("DELETE FROM sample WHERE at < ?1")?
                    .execute([oldest.as_millisecond()])?;
            }
            Ok(())
        })
    }

    fn samples(&mut self, since: Timestamp) -> Result<Vec<(Timestamp, String)>, StoreError> {
        self.read(samples(&self.db, since))
    }

    fn remember(&mut self, key: &str, answer: &Remembered) -> Result<(), StoreError> {
        self.change(Durability::Synced, |db, _| {
            let values = ["request", "status", "answer", "at"];
            let replace = sql::upsert("idempotency", &["key"], &values);
            let at = answer.at.as_millisecond();
            db.prepare_cached(&replace)?.execute(params![
                key,
                answer.request,
                answer.status,
                answer.answer,
                at
            ])?;
            Ok(())
        })
    }

    fn remembered(&mut self, key: &str) -> Result<Option<Remembered>, StoreError> {
        self.read(remembered(&self.db, key))
    }

    fn count_remembered(&mut self, prefix: &str, most: usize) -> Result<usize, StoreError> {
        self.read(count_remembered(&self.db, prefix, most))
    }

    fn forget_remembered(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.change(Durability::Synced, |db, _| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let forgotten = db
                .prepare_cached(FORGET)?
                .execute([before.as_millisecond(), limit])?;
            Ok(forgotten as u64)
        })
    }
}

fn tokens(db: &Connection) -> Result<Vec<StoredToken>, Failure> {
    let query =
        "SELECT id, name, hash, may_write, made_at, expires_at, made_by FROM token ORDER BY name";
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(token(row)?);
    }
    Ok(tokens)
}

fn token(row: Row<'_>) -> Result<StoredToken, Failure> {
    Ok(StoredToken {
        id: row.get(0)?,
        name: row.get(1)?,
        hash: row.get(2)?,
        may_write: row.get(3)?,
        made_at: codec::time(row.get(4)?)?,
        expires_at: codec::optional_time(row.get(5)?)?,
        made_by: row.get(6)?,
    })
}

pub(in crate::store) const SAMPLES: &str = "SELECT at, data FROM sample WHERE at >= ?1 ORDER BY at";

fn samples(db: &Connection, since: Timestamp) -> Result<Vec<(Timestamp, String)>, Failure> {
    let mut query = db.prepare_cached(SAMPLES)?;
    let mut rows = query.query([since.as_millisecond()])?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next()? {
        samples.push((codec::time(row.get(0)?)?, row.get(1)?));
    }
    Ok(samples)
}

fn remembered(db: &Connection, key: &str) -> Result<Option<Remembered>, Failure> {
    let query = "SELECT request, status, answer, at FROM idempotency WHERE key = ?1";
    let read = |row: Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let found = db
        .prepare_cached(query)?
        .query_row([key], read)
        .optional()?;
    let Some((request, status, answer, at)) = found else {
        return Ok(None);
    };
    Ok(Some(Remembered {
        request,
        status,
        answer,
        at: codec::time(at)?,
    }))
}

pub(in crate::store) const REMEMBERED: &str = "SELECT count(*) FROM \
     (SELECT 1 FROM idempotency WHERE key >= ?1 AND key < ?2 LIMIT ?3) AS few";

fn count_remembered(db: &Connection, prefix: &str, most: usize) -> Result<usize, Failure> {
    // After all keys that begin so, in the order of their bytes.
    let end = format!("{prefix}\u{10ffff}");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let count: i64 = db
        .prepare_cached(REMEMBERED)?
        .query_row(params![prefix, end, most], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

pub(in crate::store) const FORGET: &str = "DELETE FROM idempotency WHERE key IN \
     (SELECT key FROM idempotency WHERE at < ?1 ORDER BY at LIMIT ?2)";
