//! The engine for many machines: PostgreSQL.

mod address;
mod connect;
pub(crate) mod fleet;
mod link;
#[cfg(test)]
mod tests;
mod tls;

use std::path::Path;

use super::StoreError;
use super::sql::{Connection, Optional as _, Postgres};
use super::tables::failure::Failure;
use super::tables::{Database, Memory};
pub use address::{Address, BadAddress};

/// The tables.
const SCHEMA: &str = include_str!("schema.sql");

/// The version of the tables.
const VERSION: i64 = 4;

/// The advisory lock of the process that makes the tables.
const MAKER: i64 = 0x4372_7372_0000;

impl Database {
    /// Opens the store in a database, and makes the tables if the database is empty. Any number of processes may use it at
    /// a time. A connection that is lost is made again by the next change.
    ///
    /// # Errors
    /// The database cannot be reached or used, has other tables, or is a store of another version.
    pub fn connect(address: &Address) -> Result<Self, StoreError> {
        let name = address.to_string();
        let name = Path::new(&name);
        let open = || {
            let connect = {
                let address = address.clone();
                Box::new(move || address.connect())
            };
            let db = Connection::Postgres(Box::new(Postgres::new(connect)?));
            make(&db)?;
            let seen = db.changes()?;
            Ok((Memory::load(&db)?, seen, db))
        };
        let (memory, seen, db) = open().map_err(|failure: Failure| failure.at(name))?;
        Ok(Self::new(name, db, memory, Some(seen)))
    }
}

impl Database {
    /// Opens the store in a database to read it. Changes are refused.
    ///
    /// # Errors
    /// The database cannot be reached, has no store, or one of another version.
    pub fn connect_read_only(address: &Address) -> Result<Self, StoreError> {
        let name = address.to_string();
        let name = Path::new(&name);
        let open = || {
            let db = reader(address)?;
            let seen = db.changes()?;
            Ok((Memory::load(&db)?, seen, db))
        };
        let (memory, seen, db) = open().map_err(|failure: Failure| failure.at(name))?;
        Ok(Self::new(name, db, memory, Some(seen)).read_only())
    }
}

/// Connects to read the tables.
pub(super) fn reader(address: &Address) -> Result<Connection, Failure> {
    let address = address.clone();
    let connect = Box::new(move || address.connect());
    let db = Connection::Postgres(Box::new(Postgres::new(connect)?));
    match version(&db)? {
        Some(VERSION) => Ok(db),
        Some(version) => Err(Failure::Version(version, VERSION)),
        None => Err(Failure::Foreign),
    }
}

/// The version of the store; `None` if there are no tables.
fn version(db: &Connection) -> Result<Option<i64>, Failure> {
    let tables = "SELECT count(*), count(*) FILTER (WHERE table_name = 'store') \
         FROM information_schema.tables WHERE table_schema = current_schema()";
    let (tables, stores): (i64, i64) =
        db.query_row(tables, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if tables == 0 {
        return Ok(None);
    }
    let version = "SELECT 1 FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = 'store' AND column_name = 'version'";
    if stores == 0 || db.query_row(version, [], |_| Ok(())).optional()?.is_none() {
        return Err(Failure::Foreign);
    }
    Ok(Some(db.query_row(
        "SELECT version FROM store",
        [],
        |row| row.get(0),
    )?))
}

/// Makes the tables, if there are none.
fn make(db: &Connection) -> Result<(), Failure> {
    db.begin_with(MAKER)?;
    let made = make_locked(db);
    match made {
        Ok(()) => Ok(db.commit()?),
        Err(failure) => {
            // What is wrong was told already.
            let _ = db.rollback();
            Err(failure)
        }
    }
}

fn make_locked(db: &Connection) -> Result<(), Failure> {
    match version(db)? {
        Some(VERSION) => return Ok(()),
        Some(version) => return Err(Failure::Version(version, VERSION)),
        None => {}
    }
    db.execute_batch(SCHEMA)?;
    db.execute_batch(&format!(
        "INSERT INTO store VALUES (1, 1, 1, 1, 0, 0, substr(md5(random()::text), 1, 8), {VERSION}, 0);
        INSERT INTO number VALUES ('job', 1), ('letter', 1);"
    ))?;
    Ok(())
}
