//! Copies a store to another place: from a file to a server, and back.

use std::path::Path;

use rusqlite::ToSql;
use rusqlite::types::Value;

use super::sql::{Connection, params};
use super::tables::failure::Failure;
use super::{Place, StoreError, StoreErrorKind, postgres, sqlite};

/// All tables but `store`, with their columns. What the database counts itself is not here.
const TABLES: &[(&str, &str)] = &[
    ("run", "run, identity, began, ended, first_link"),
    (
        "host",
        "host, root, no_head_until, head_lies_until, answered_at, control_at, control_status, episodes, urls, held, next_due, next_doubt",
    ),
    (
        "url",
        "url, host, link, entry, demand, text, sets, event, left_at, spelling, watched, trouble",
    ),
    ("url_key", "key, url"),
    (
        "answer",
        "url, run, demand, reused, class, cause, status, method, attempts, latency_us, checked_at, address, detail, moved_to, final_url, redirects, state, life",
    ),
    ("queue", "host, entry, url"),
    ("source", "source, is_page, name"),
    (
        "link",
        "link, url, extra, source, line, col, written, text, spelling",
    ),
    ("place", "link, place, source, line, col, written, text"),
    (
        "event",
        "cursor, at, url, from_state, to_state, status, why, prev",
    ),
    (
        "url_set",
        "set_number, name, members, reading, complete, fresh, stale, had, read_at, mark, refused, refused_lost, swept",
    ),
    ("member", "set_number, url, mark"),
    ("due", "host, lane, due_at, url"),
    ("hold", "host, since, sampled_at, was_sample_good, ending"),
    ("stop", "host, place, began, ended"),
    (
        "cycle",
        "cycle, began, ended, asked, alive, in_doubt, worse, void",
    ),
    ("notice", "notice, at, kind, host, who, text"),
    ("watch_count", "kind, code, count"),
    ("set_count", "set_number, state, count"),
    ("number", "name, next"),
    ("job_queue", "queue, name, waiting, started"),
    (
        "job",
        "job, queue, state, at, attempt, spared, max_attempts, stored_at, first_at, keep_key, letter, key, failure, payload",
    ),
    (
        "dead_letter",
        "letter, kind, url, text, queue, job, key, keep_key, max_attempts, times, payload, reason, attempts, last, first_at, last_at, replayed_at",
    ),
    (
        "schedule",
        "schedule, name, last_fired, last_success, next, missed, overlapped, paused",
    ),
    ("firing", "schedule, scheduled_at, fired_at"),
    ("pause", "kind, name, since, who"),
];

/// Tables whose numbers PostgreSQL makes, and the columns.
const NUMBERED: [(&str, &str); 6] = [
    ("run", "run"),
    ("url_set", "set_number"),
    ("cycle", "cycle"),
    ("notice", "notice"),
    ("job_queue", "queue"),
    ("schedule", "schedule"),
];

/// How many rows are written by one statement.
const ROWS: usize = 100;

/// Copies a store, as it is at one moment, to an empty one, which is made if there is none; all of it or nothing. Returns the
/// number of rows.
///
/// # Errors
/// One of the stores cannot be used, or the second one is not empty.
///
/// ```
/// use store::sqlite::Sqlite;
/// use store::{NewUrl, Origin, WatchStore, check, copy};
/// use jiff::Timestamp;
///
/// let folder = tempfile::tempdir()?;
/// let (from, to) = (folder.path().join("watch.db"), folder.path().join("copy.db"));
/// let url = NewUrl::parse("https://example.com/").map_err(|_| "no URL")?;
/// Sqlite::open(&from)?.submit("docs", Origin::Hand, &[url], Timestamp::UNIX_EPOCH)?;
/// assert!(copy(&from, &to)? > 0);
/// assert!(check(&to)?.is_clean());
/// assert!(copy(&from, &to).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn copy(from: impl Into<Place>, to: impl Into<Place>) -> Result<u64, StoreError> {
    let (from, to) = (from.into(), to.into());
    let source = match &from {
        Place::File(path) => sqlite::reader(path),
        Place::Server(address) => postgres::reader(address),
    };
    let at = |place: &Place| {
        let name = place.to_string();
        move |failure: Failure| failure.at(Path::new(&name))
    };
    let source = source.map_err(at(&from))?;
    source
        .begin_moment()
        .map_err(|error| at(&from)(error.into()))?;
    let target = to.open()?;
    let target = &target.db;
    target.begin().map_err(|error| at(&to)(error.into()))?;
    let copied = match is_empty(target) {
        // Nobody else writes from here on.
        Ok(true) => copy_all(&source, target).map(Some),
        Ok(false) => Ok(None),
        Err(failure) => Err(failure),
    };
    let copied = copied.and_then(|rows| Ok(target.commit().map(|()| rows)?));
    if copied.is_err() {
        // What is wrong is told.
        let _ = target.rollback();
    }
    let not_empty = || StoreError::new(Path::new(&to.to_string()), StoreErrorKind::NotEmpty);
    copied.map_err(at(&to))?.ok_or_else(not_empty)
}

fn is_empty(db: &Connection) -> Result<bool, Failure> {
    for (table, _) in TABLES.iter().filter(|(table, _)| *table != "number") {
        if db
            .prepare_cached(&format!("SELECT 1 FROM {table} LIMIT 1"))?
            .exists([])?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy_all(source: &Connection, target: &Connection) -> Result<u64, Failure> {
    target.execute_batch("DELETE FROM number")?;
    let mut all = 0;
    for (table, columns) in TABLES {
        let rows = copy_table(source, target, table, columns)?;
        let count = format!("SELECT count(*) FROM {table}");
        let there: i64 = target.query_row(&count, [], |row| row.get(0))?;
        if u64::try_from(there).ok() != Some(rows) {
            return Err(Failure::Damaged(format!(
                "{rows} rows of {table} were copied, and {there} are there"
            )));
        }
        all += rows;
    }
    let numbers = "SELECT next_link, next_entry, next_event, keyed, next_url, id FROM store";
    let row = source.query_row(numbers, [], |row| {
        (0..6)
            .map(|column| row.get::<Value>(column))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let update = "UPDATE store SET next_link = ?1, next_entry = ?2, next_event = ?3, keyed = ?4, next_url = ?5, id = ?6";
    target.prepare_cached(update)?.execute(&*lent(&row))?;
    if target.is_shared() {
        // Processes that have the store open see that it is another one.
        target.execute_batch("UPDATE store SET changes = changes + 1")?;
        for (table, column) in NUMBERED {
            let next = format!(
                "SELECT setval(pg_get_serial_sequence(?1, ?2), coalesce(max({column}), 0) + 1, false) FROM {table}"
            );
            target.query_row(&next, params![table, column], |_| Ok(()))?;
        }
    }
    Ok(all)
}

fn copy_table(
    source: &Connection,
    target: &Connection,
    table: &str,
    columns: &str,
) -> Result<u64, Failure> {
    let width = columns.split(", ").count();
    let mut read = source.prepare_cached(&format!("SELECT {columns} FROM {table}"))?;
    let mut rows = read.stream([])?;
    let (mut values, mut count) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        for column in 0..width {
            values.push(row.get::<Value>(column)?);
        }
        count += 1;
        if values.len() == width * ROWS {
            insert(target, table, columns, width, &values)?;
            values.clear();
        }
    }
    if !values.is_empty() {
        insert(target, table, columns, width, &values)?;
    }
    Ok(count)
}

fn insert(
    target: &Connection,
    table: &str,
    columns: &str,
    width: usize,
    values: &[Value],
) -> Result<(), Failure> {
    let row = |row: usize| {
        let places: Vec<String> = (1..=width)
            .map(|place| format!("?{}", row * width + place))
            .collect();
        format!("({})", places.join(", "))
    };
    let rows: Vec<String> = (0..values.len() / width).map(row).collect();
    let insert = format!("INSERT INTO {table} ({columns}) VALUES {}", rows.join(", "));
    target.prepare_cached(&insert)?.execute(&*lent(values))?;
    Ok(())
}

fn lent(values: &[Value]) -> Vec<&dyn ToSql> {
    values.iter().map(|value| value as &dyn ToSql).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Database;

    /// A table or a column that is added has to be copied, too.
    #[test]
    fn all_columns_are_copied() {
        let store = Database::temporary().expect("a store");
        let query = "SELECT m.name, group_concat(c.name, ', ') FROM sqlite_schema m, pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND m.name NOT IN ('store', 'dead_letter_count') GROUP BY m.name";
        let mut query = store.db.sqlite().prepare(query).expect("valid");
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("read");
        let mut there: Vec<(String, String)> = rows.collect::<Result<_, _>>().expect("texts");
        let mut here: Vec<(String, String)> = TABLES
            .iter()
            .map(|(table, columns)| ((*table).into(), (*columns).into()))
            .collect();
        there.sort();
        here.sort();
        assert_eq!(here, there);
    }
}
