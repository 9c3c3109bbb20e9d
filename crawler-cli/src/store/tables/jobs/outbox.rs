//! The outbox.

use jiff::Timestamp;

use super::letters::{self, Buried};
use super::memory::Jobs;
use crate::store::sql::{Connection, Optional as _, Row, params};
use crate::store::tables::codec;
use crate::store::tables::failure::Failure;
use crate::store::tables::memory::take;
use crate::store::{Delivered, Delivery, Message, MessageId, NewDeadLetter, NewMessage};

pub(super) fn post(
    db: &Connection,
    jobs: &mut Jobs,
    messages: &[NewMessage],
    now: Timestamp,
) -> Result<(), Failure> {
    let insert = "INSERT INTO outbox (message, receiver, topic, posted_at, next_at, attempts, body) \
         VALUES (?1, ?2, ?3, ?4, ?4, 0, ?5)";
    let mut insert = db.prepare_cached(insert)?;
    for message in messages {
        insert.execute(params![
            take(&mut jobs.next.message),
            message.receiver,
            message.topic,
            now.as_millisecond(),
            message.body,
        ])?;
    }
    Ok(())
}

pub(in crate::store) const OF: &str = "SELECT message, topic, posted_at, attempts, body, next_at FROM outbox \
     WHERE receiver = ?1 ORDER BY message LIMIT ?2";

pub(super) fn of(db: &Connection, receiver: &str, limit: usize) -> Result<Vec<Message>, Failure> {
    let mut query = db.prepare_cached(OF)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![receiver, limit])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(Message {
            id: MessageId(row.get(0)?),
            message: NewMessage {
                receiver: receiver.to_owned(),
                topic: row.get(1)?,
                body: row.get(4)?,
            },
            posted_at: codec::time(row.get(2)?)?,
            next_at: codec::time(row.get(5)?)?,
            attempts: row.get(3)?,
        });
    }
    Ok(messages)
}

pub(super) fn settle(
    db: &Connection,
    jobs: &mut Jobs,
    deliveries: &[Delivery],
    now: Timestamp,
) -> Result<(), Failure> {
    let find =
        "SELECT receiver, topic, body, posted_at FROM outbox WHERE message = ?1 AND attempts = ?2";
    let mut find = db.prepare_cached(find)?;
    let mut delete = db.prepare_cached("DELETE FROM outbox WHERE message = ?1")?;
    let retry = "UPDATE outbox SET next_at = ?2, attempts = attempts + 1 WHERE message = ?1";
    let mut retry = db.prepare_cached(retry)?;
    for delivery in deliveries {
        let id = delivery.message.0;
        let read = |row: Row<'_>| {
            let message = NewMessage {
                receiver: row.get(0)?,
                topic: row.get(1)?,
                body: row.get(2)?,
            };
            Ok((message, row.get::<i64>(3)?))
        };
        let found = find
            .query_row([id, i64::from(delivery.attempts)], read)
            .optional()?;
        let Some((message, posted_at)) = found else {
            continue;
        };
        match &delivery.delivered {
            Delivered::Sent => {
                delete.execute([id])?;
            }
            Delivered::Retry(at) => {
                retry.execute([id, at.as_millisecond()])?;
            }
            Delivered::Dead { reason, last } => {
                let letter = NewDeadLetter {
                    reason: reason.clone(),
                    attempts: delivery.attempts.saturating_add(1),
                    last: last.clone(),
                    first_at: codec::time(posted_at)?,
                    last_at: now,
                };
                letters::store(db, jobs, &Buried::Message(&message), &letter, None)?;
                delete.execute([id])?;
            }
        }
    }
    Ok(())
}
