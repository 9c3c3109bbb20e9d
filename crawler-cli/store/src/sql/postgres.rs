//! Statements, rows and values of PostgreSQL.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error as StdError;

use bytes::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::error::{Error, Result};
use crate::StoreErrorKind;

/// Connects to a server.
pub(crate) type Connect = Box<dyn Fn() -> Result<postgres::Client, StoreErrorKind> + Send>;

/// A connection to PostgreSQL, used by one thread.
pub(crate) struct Postgres {
    /// Connects again.
    connect: Connect,
    client: RefCell<postgres::Client>,
    statements: RefCell<HashMap<Box<str>, postgres::Statement>>,
    in_transaction: Cell<bool>,
    /// Whether no transaction can be begun on the connection.
    is_lost: Cell<bool>,
    /// The number of the next cursor.
    next_cursor: Cell<u32>,
}

/// Begins a transaction that reads the database as it is now.
pub(super) const MOMENT: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// How many statements are kept compiled.
const STATEMENTS: usize = 512;
/// How many rows of a stream are read at once.
const FETCH: usize = 256;

impl Postgres {
    /// Connects.
    pub(crate) fn new(connect: Connect) -> Result<Self> {
        Ok(Self {
            client: RefCell::new(connect().map_err(Error::Connect)?),
            connect,
            statements: RefCell::default(),
            in_transaction: Cell::new(false),
            is_lost: Cell::new(false),
            next_cursor: Cell::new(0),
        })
    }

    /// Connects again, if the connection has ended.
    pub(super) fn reconnect(&self) -> Result<bool> {
        if !self.is_lost.get() && !self.client.borrow().is_closed() {
            return Ok(false);
        }
        self.statements.borrow_mut().clear();
        self.in_transaction.set(false);
        *self.client.borrow_mut() = (self.connect)().map_err(Error::Connect)?;
        self.is_lost.set(false);
        Ok(true)
    }

    pub(super) fn is_autocommit(&self) -> bool {
        !self.in_transaction.get()
    }

    /// Begins a transaction.
    pub(super) fn begin(&self, how: &str) -> Result<()> {
        let begun = self.execute_batch(how);
        // The client does not take a connection for closed whose end it has only read.
        self.is_lost.set(begun.is_err());
        begun?;
        self.in_transaction.set(true);
        Ok(())
    }

    /// Ends the transaction by `COMMIT` or `ROLLBACK`, if there is one. It is over in any case: a connection that cannot
    /// end it has ended.
    pub(super) fn end(&self, how: &str) -> Result<()> {
        if !self.in_transaction.replace(false) {
            return Ok(());
        }
        self.execute_batch(how)
    }

    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        Ok(self.client.borrow_mut().batch_execute(sql)?)
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        Ok(Statement {
            db: self,
            compiled: self.compiled(sql)?,
            sql: sql.into(),
        })
    }

    fn compiled(&self, sql: &str) -> Result<postgres::Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let compiled = self.client.borrow_mut().prepare(&translated(sql))?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= STATEMENTS {
            statements.clear();
        }
        statements.insert(sql.into(), compiled.clone());
        Ok(compiled)
    }
}

/// A statement in the words of PostgreSQL: `$1` for `?1`, and joins and indexes of its own choice.
fn translated(sql: &str) -> String {
    let mut translated = String::with_capacity(sql.len());
    for (index, part) in sql.split('\'').enumerate() {
        let is_text = index % 2 == 1;
        if index > 0 {
            translated.push('\'');
        }
        match is_text {
            true => translated.push_str(part),
            false => {
                let part = part.replace('?', "$").replace("CROSS JOIN", "JOIN");
                translated.push_str(&without_hints(&part));
            }
        }
    }
    translated
}

/// Without the indexes that a statement names for SQLite.
fn without_hints(part: &str) -> String {
    let mut pieces = part.split(" INDEXED BY ");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.find(' ').map_or("", |end| &piece[end..]));
    }
    plain
}

/// A compiled statement.
pub(crate) struct Statement<'c> {
    db: &'c Postgres,
    compiled: postgres::Statement,
    sql: Box<str>,
}

impl<'c> Statement<'c> {
    pub(super) fn execute(&mut self, params: &[&dyn rusqlite::ToSql]) -> Result<usize> {
        let params = converted(params)?;
        let mut client = self.db.client.borrow_mut();
        let count = client.execute(&self.compiled, &lent(&params))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(super) fn query(&mut self, params: &[&dyn rusqlite::ToSql]) -> Result<Rows<'c>> {
        let params = converted(params)?;
        let mut client = self.db.client.borrow_mut();
        let rows = client.query(&self.compiled, &lent(&params))?;
        Ok(Rows {
            rows: rows.into_iter(),
            current: None,
            cursor: None,
        })
    }

    /// Reads rows by a cursor, in the transaction that is open, or in one of its own.
    pub(super) fn stream(&mut self, params: &[&dyn rusqlite::ToSql]) -> Result<Rows<'c>> {
        let number = self.db.next_cursor.get();
        self.db.next_cursor.set(number.wrapping_add(1));
        let cursor = Cursor {
            db: self.db,
            name: format!("stream_{number}"),
            owns_transaction: self.db.is_autocommit(),
        };
        if cursor.owns_transaction {
            self.db.begin(MOMENT)?;
        }
        let declare = format!(
            "DECLARE {} NO SCROLL CURSOR FOR {}",
            cursor.name,
            translated(&self.sql)
        );
        let params = converted(params)?;
        let types: Vec<Type> = self.compiled.params().to_vec();
        let mut client = self.db.client.borrow_mut();
        let declare = client.prepare_typed(&declare, &types)?;
        client.execute(&declare, &lent(&params))?;
        Ok(Rows {
            rows: Vec::new().into_iter(),
            current: None,
            cursor: Some(cursor),
        })
    }
}

/// Rows that were read.
pub struct Rows<'c> {
    rows: std::vec::IntoIter<postgres::Row>,
    current: Option<postgres::Row>,
    cursor: Option<Cursor<'c>>,
}

/// A cursor in the database, which ends with its owner.
struct Cursor<'c> {
    db: &'c Postgres,
    name: String,
    owns_transaction: bool,
}

impl Rows<'_> {
    pub(super) fn next(&mut self) -> Result<Option<&postgres::Row>> {
        if self.rows.len() == 0
            && let Some(cursor) = &self.cursor
        {
            let fetch = format!("FETCH {FETCH} FROM {}", cursor.name);
            let rows = cursor.db.client.borrow_mut().query(&fetch, &[])?;
            if rows.len() < FETCH {
                self.cursor = None;
            }
            self.rows = rows.into_iter();
        }
        self.current = self.rows.next();
        Ok(self.current.as_ref())
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // A connection that fails here fails at the next statement, too, and that one tells.
        let _ = match self.owns_transaction {
            true => self.db.end("COMMIT"),
            false => self.db.execute_batch(&format!("CLOSE {}", self.name)),
        };
    }
}

/// The value of a column.
pub(super) fn value(row: &postgres::Row, column: usize) -> Result<ValueRef<'_>> {
    let Received(value) = row.try_get(column)?;
    Ok(value)
}

/// A value that was received.
struct Received<'a>(ValueRef<'a>);

impl<'a> FromSql<'a> for Received<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT8 => ValueRef::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => ValueRef::Integer(i32::from_sql(ty, raw)?.into()),
            Type::BOOL => ValueRef::Integer(bool::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => ValueRef::Real(f64::from_sql(ty, raw)?),
            Type::BYTEA => ValueRef::Blob(raw),
            _ => ValueRef::Text(raw),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(ValueRef::Null))
    }

    fn accepts(ty: &Type) -> bool {
        let known = [
            Type::INT8,
            Type::INT4,
            Type::BOOL,
            Type::FLOAT8,
            Type::BYTEA,
        ];
        known.contains(ty) || <&str as FromSql>::accepts(ty)
    }
}

/// What a text has for a NUL.
const NUL: &str = "\u{fffd}";

/// A value that is sent.
#[derive(Debug)]
struct Sent<'a>(ToSqlOutput<'a>);

fn converted<'a>(params: &[&'a dyn rusqlite::ToSql]) -> Result<Vec<Sent<'a>>> {
    let convert = |param: &&'a dyn rusqlite::ToSql| Ok(Sent(param.to_sql().map_err(Error::from)?));
    params.iter().map(convert).collect()
}

fn lent<'a>(params: &'a [Sent<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params
        .iter()
        .map(|param| param as &(dyn ToSql + Sync))
        .collect()
}

impl ToSql for Sent<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let value = match &self.0 {
            ToSqlOutput::Borrowed(value) => *value,
            ToSqlOutput::Owned(value) => ValueRef::from(value),
            other => return Err(format!("{other:?} is no value of a column").into()),
        };
        match (value, ty) {
            (ValueRef::Null, _) => return Ok(IsNull::Yes),
            (ValueRef::Integer(number), &Type::INT8) => return number.to_sql(ty, out),
            (ValueRef::Integer(number), &Type::INT4) => {
                return i32::try_from(number)?.to_sql(ty, out);
            }
            (ValueRef::Integer(number), &Type::BOOL) => return (number != 0).to_sql(ty, out),
            (ValueRef::Real(number), &Type::FLOAT8) => return number.to_sql(ty, out),
            (ValueRef::Blob(bytes), &Type::BYTEA) => out.extend_from_slice(bytes),
            (ValueRef::Text(text), ty) if <&str as ToSql>::accepts(ty) => {
                // PostgreSQL has no NUL in a text.
                for (index, part) in text.split(|byte| *byte == 0).enumerate() {
                    let before = if index > 0 { NUL } else { "" };
                    out.extend_from_slice(before.as_bytes());
                    out.extend_from_slice(part);
                }
            }
            (value, ty) => {
                let kind = value.data_type();
                return Err(format!("{kind} is no value for a column of the type {ty}").into());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
