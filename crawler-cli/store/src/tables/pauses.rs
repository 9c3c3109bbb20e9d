//! Pauses in the database.

use super::failure::Failure;
use super::{Database, Durability, codec};
use crate::sql::{Connection, params};
use crate::{Pause, PauseStore, Scope, StoreError};

impl PauseStore for Database {
    fn pauses(&mut self) -> Result<Vec<Pause>, StoreError> {
        self.read(pauses(&self.db))
    }

    fn pause(&mut self, pause: &Pause) -> Result<bool, StoreError> {
        self.change(Durability::Synced, |db, _| {
            let (kind, name) = key(&pause.what);
            let since = pause.since.as_millisecond();
            let mut insert = db.prepare_cached(
                "INSERT INTO pause VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?;
            Ok(insert.execute(params![kind, name, since, pause.who])? > 0)
        })
    }

    fn resume(&mut self, what: &Scope) -> Result<bool, StoreError> {
        self.change(Durability::Synced, |db, _| {
            let mut delete =
                db.prepare_cached("DELETE FROM pause WHERE kind = ?1 AND name = ?2")?;
            Ok(delete.execute(params![key(what).0, key(what).1])? > 0)
        })
    }
}

fn pauses(db: &Connection) -> Result<Vec<Pause>, Failure> {
    let mut query =
        db.prepare_cached("SELECT kind, name, since, who FROM pause ORDER BY kind, name")?;
    let mut rows = query.query([])?;
    let mut pauses = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        let what = match row.get(0)? {
            0 => Scope::All,
            1 => Scope::Host(name),
            kind => return Err(Failure::Damaged(format!("a pause of the kind {kind}"))),
        };
        pauses.push(Pause {
            what,
            since: codec::time(row.get(2)?)?,
            who: row.get(3)?,
        });
    }
    Ok(pauses)
}

fn key(what: &Scope) -> (i64, &str) {
    match what {
        Scope::All => (0, ""),
        Scope::Host(root) => (1, root),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn pauses_outlast_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("watch.db");
        let scopes = [
            Scope::All,
            Scope::Host("https://a.example/".into()),
            Scope::Host("https://b.example/".into()),
        ];
        let mut store = Database::open(&path).expect("a store");
        for what in scopes.iter().rev() {
            let pause = Pause {
                what: what.clone(),
                since: Timestamp::from_millisecond(5).expect("in range"),
                who: "me".into(),
            };
            assert!(store.pause(&pause).expect("stored"));
            let again = Pause {
                who: "you".into(),
                ..pause
            };
            assert!(!store.pause(&again).expect("stored already"));
        }
        drop(store);
        let mut store = Database::open(&path).expect("a store");
        let pauses = store.pauses().expect("read");
        let kept: Vec<&Scope> = pauses.iter().map(|pause| &pause.what).collect();
        assert_eq!(kept, scopes.iter().collect::<Vec<_>>());
        assert!(pauses.iter().all(|pause| pause.who == "me"));
        assert!(store.resume(&Scope::All).expect("removed"));
        assert!(!store.resume(&Scope::All).expect("not there"));
        assert_eq!(store.pauses().expect("read").len(), 2);
    }
}
