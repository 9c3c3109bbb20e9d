//! Databases: one way to run statements for SQLite and for PostgreSQL.
//!
//! A statement is written once, in SQL that both know, with parameters `?1`, `?2`…. The functions are those of
//! `rusqlite`, and so are the values: whatever [`ToSql`](rusqlite::types::ToSql) and [`FromSql`] know goes to a column and
//! comes back, from either database. What this leaves to its callers: tables, and the statements that differ.

pub mod array;
mod error;
mod params;
mod postgres;
#[cfg(test)]
mod tests;

pub(crate) use error::{Error, Optional, Result};
pub(crate) use params::Params;
pub(crate) use postgres::Postgres;
pub(crate) use rusqlite::params;
use rusqlite::types::{FromSql, FromSqlError, ValueRef};

/// The advisory lock of the transaction that changes the tables.
const WRITER: i64 = 0x4372_7372_0001;

/// A connection to a database.
pub(crate) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Postgres>),
}

impl From<rusqlite::Connection> for Connection {
    fn from(db: rusqlite::Connection) -> Self {
        Self::Sqlite(db)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sqlite(_) => "Sqlite",
            Self::Postgres(_) => "Postgres",
        })
    }
}

impl Connection {
    /// A statement that is compiled once for each connection.
    pub(crate) fn prepare_cached(&self, sql: &str) -> Result<Statement<'_>> {
        Ok(match self {
            Self::Sqlite(db) => Statement::Sqlite(db.prepare_cached(sql)?),
            Self::Postgres(db) => Statement::Postgres(db.prepare(sql)?),
        })
    }

    /// Runs statements without parameters.
    pub(crate) fn execute_batch(&self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(db) => db.execute_batch(sql)?,
            Self::Postgres(db) => db.execute_batch(sql)?,
        }
        Ok(())
    }

    /// The first row of a query.
    ///
    /// # Errors
    /// [`Error::NoRows`], among others.
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare_cached(sql)?.query_row(params, read)
    }

    /// Begins a transaction that changes the database. There is one at a time, of all connections.
    pub(crate) fn begin(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self
                .prepare_cached("BEGIN IMMEDIATE")?
                .execute([])
                .map(drop),
            Self::Postgres(_) => self.begin_with(WRITER),
        }
    }

    /// Begins a transaction that no other connection runs that gives this number. SQLite runs one in any case.
    pub(crate) fn begin_with(&self, lock: i64) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.begin(),
            Self::Postgres(db) => db.begin(&format!("BEGIN; SELECT pg_advisory_xact_lock({lock})")),
        }
    }

    /// Begins a transaction that waits for no other, and changes nothing that the engine keeps in memory.
    pub(crate) fn begin_quick(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.begin(),
            Self::Postgres(db) => db.begin("BEGIN"),
        }
    }

    /// Begins a transaction that reads the database as it is now.
    pub(crate) fn begin_moment(&self) -> Result<()> {
        match self {
            Self::Sqlite(db) => Ok(db.execute_batch("BEGIN")?),
            Self::Postgres(db) => db.begin(postgres::MOMENT),
        }
    }

    /// Ends a transaction, and keeps what it has changed.
    pub(crate) fn commit(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.prepare_cached("COMMIT")?.execute([]).map(drop),
            Self::Postgres(db) => db.end("COMMIT"),
        }
    }

    /// Ends a transaction, and takes back what it has changed.
    pub(crate) fn rollback(&self) -> Result<()> {
        match self {
            Self::Sqlite(db) => Ok(db.execute_batch("ROLLBACK")?),
            Self::Postgres(db) => db.end("ROLLBACK"),
        }
    }

    /// Whether transactions are on the disk when they are committed. PostgreSQL decides that itself.
    pub(crate) fn set_synced(&self, is_synced: bool) -> Result<()> {
        if let Self::Sqlite(db) = self {
            let level = if is_synced { "FULL" } else { "NORMAL" };
            db.pragma_update(None, "synchronous", level)?;
        }
        Ok(())
    }

    /// A number that is another one after each change by another connection.
    pub(crate) fn changes(&self) -> Result<i64> {
        let query = match self {
            Self::Sqlite(_) => "PRAGMA data_version",
            Self::Postgres(_) => "SELECT changes FROM store",
        };
        self.query_row(query, [], |row| row.get(0))
    }

    /// Connects again to a server, if the connection has ended. Returns whether that was so.
    pub(crate) fn reconnect(&self) -> Result<bool> {
        match self {
            Self::Sqlite(_) => Ok(false),
            Self::Postgres(db) => db.reconnect(),
        }
    }

    /// Whether other processes may change the database, too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Whether no transaction is open.
    pub(crate) fn is_autocommit(&self) -> bool {
        match self {
            Self::Sqlite(db) => db.is_autocommit(),
            Self::Postgres(db) => db.is_autocommit(),
        }
    }

    /// The embedded database, for what tests do to it.
    ///
    /// # Panics
    /// If it is another one.
    #[cfg(test)]
    pub(crate) fn sqlite(&self) -> &rusqlite::Connection {
        match self {
            Self::Sqlite(db) => db,
            Self::Postgres(_) => unreachable!("the engine of SQLite has opened the database"),
        }
    }
}

/// A statement that was compiled.
pub(crate) enum Statement<'c> {
    Sqlite(rusqlite::CachedStatement<'c>),
    Postgres(postgres::Statement<'c>),
}

impl Statement<'_> {
    /// Runs the statement. Returns how many rows it has changed.
    pub(crate) fn execute(&mut self, params: impl Params) -> Result<usize> {
        params.with(|params| match self {
            Self::Sqlite(statement) => Ok(statement.execute(params)?),
            Self::Postgres(statement) => statement.execute(params),
        })
    }

    /// Reads rows, all of which may be in memory at once.
    pub(crate) fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        params.with(|params| match self {
            Self::Sqlite(statement) => Ok(Rows::Sqlite(statement.query(params)?)),
            Self::Postgres(statement) => Ok(Rows::Postgres(statement.query(params)?)),
        })
    }

    /// Reads any number of rows, few of which are in memory at once.
    pub(crate) fn stream(&mut self, params: impl Params) -> Result<Rows<'_>> {
        params.with(|params| match self {
            Self::Sqlite(statement) => Ok(Rows::Sqlite(statement.query(params)?)),
            Self::Postgres(statement) => Ok(Rows::Postgres(statement.stream(params)?)),
        })
    }

    /// Reads the first row.
    ///
    /// # Errors
    /// [`Error::NoRows`], among others.
    pub(crate) fn query_row<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut rows = self.query(params)?;
        let row = rows.next()?.ok_or(Error::NoRows)?;
        read(row)
    }

    /// Reads all rows.
    pub(crate) fn query_all<T>(
        &mut self,
        params: impl Params,
        mut read: impl FnMut(Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut rows = self.query(params)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    /// Whether there is a row.
    pub(crate) fn exists(&mut self, params: impl Params) -> Result<bool> {
        let mut rows = self.query(params)?;
        Ok(rows.next()?.is_some())
    }
}

/// The rows of a query.
pub enum Rows<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Postgres(postgres::Rows<'s>),
}

impl Rows<'_> {
    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        Ok(match self {
            Self::Sqlite(rows) => rows.next()?.map(Row::Sqlite),
            Self::Postgres(rows) => rows.next()?.map(Row::Postgres),
        })
    }
}

/// A row of a query.
#[derive(Clone, Copy)]
pub enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r ::postgres::Row),
}

impl<'r> Row<'r> {
    /// The value of a column; the first one has the number 0.
    pub fn get<T: FromSql>(self, column: usize) -> Result<T> {
        let value = self.get_ref(column)?;
        T::column_result(value).map_err(|error| Error::Value(column, error))
    }

    /// The value of a column, as it is in the row.
    pub fn get_ref(self, column: usize) -> Result<ValueRef<'r>> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(column)?),
            Self::Postgres(row) => postgres::value(row, column),
        }
    }

    /// The text of a column.
    pub(crate) fn get_str(self, column: usize) -> Result<&'r str> {
        let value = self.get_ref(column)?;
        let wrong = |error: FromSqlError| Error::Value(column, error);
        value.as_str().map_err(wrong)
    }
}

/// A statement that stores a row: `keys` and then `values` are its parameters. A row with the same keys is replaced.
pub(crate) fn upsert(table: &str, keys: &[&str], values: &[&str]) -> String {
    let columns: Vec<&str> = keys.iter().chain(values).copied().collect();
    let places: Vec<String> = (1..=columns.len())
        .map(|place| format!("?{place}"))
        .collect();
    let set = values
        .iter()
        .map(|name| format!("{name} = excluded.{name}"));
    format!(
        "INSERT INTO {table} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}",
        columns.join(", "),
        places.join(", "),
        keys.join(", "),
        set.collect::<Vec<_>>().join(", ")
    )
}
