//! Sets and their members.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use crate::sql::{self, Connection, Optional as _, Row, Statement, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::{Accepted, Reading, SetInfo, Swept};
use verdict::life::State;

/// The mark of a member that was added by hand and is not in the source.
pub(super) const BY_HAND: i64 = 1;

/// A row of `url_set`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SetRow {
    pub(super) number: i64,
    pub(super) members: i64,
    /// The last reading that began.
    pub(super) reading: i64,
    /// The last reading that reached the end of the source.
    pub(super) complete: i64,
    /// Members from the source that the reading has had, and those that only earlier ones had.
    fresh: i64,
    stale: i64,
    /// How many members from the source there were when the reading began.
    had: i64,
    /// The last member that was looked at for leaving.
    pub(super) swept: Option<i64>,
    read_at: Option<i64>,
    mark: Option<String>,
    /// The last reading that was not believed, and how many members were missing.
    refused: Option<i64>,
    refused_lost: Option<i64>,
}

const COLUMNS: &str = "set_number, name, members, reading, complete, fresh, stale, had, swept, read_at, mark, \
     refused, refused_lost";

fn set_of(row: Row<'_>) -> sql::Result<SetRow> {
    Ok(SetRow {
        number: row.get(0)?,
        members: row.get(2)?,
        reading: row.get(3)?,
        complete: row.get(4)?,
        fresh: row.get(5)?,
        stale: row.get(6)?,
        had: row.get(7)?,
        swept: row.get(8)?,
        read_at: row.get(9)?,
        mark: row.get(10)?,
        refused: row.get(11)?,
        refused_lost: row.get(12)?,
    })
}

impl SetRow {
    /// The set with this name.
    pub(super) fn find(db: &Connection, name: &str) -> Result<Option<Self>, Failure> {
        let query = format!("SELECT {COLUMNS} FROM url_set WHERE name = ?1");
        let mut query = db.prepare_cached(&query)?;
        Ok(query.query_row([name], set_of).optional()?)
    }

    /// The set with this name, which is made if there is none.
    pub(super) fn find_or_make(db: &Connection, name: &str) -> Result<Self, Failure> {
        if let Some(set) = Self::find(db, name)? {
            return Ok(set);
        }
        db.prepare_cached("INSERT INTO url_set (name) VALUES (?1)")?
            .execute([name])?;
        let made = Self::find(db, name)?;
        made.ok_or_else(|| Failure::Damaged(format!("set {name} is missing")))
    }

    /// All sets.
    pub(super) fn all(db: &Connection) -> Result<Vec<Self>, Failure> {
        let query = format!("SELECT {COLUMNS} FROM url_set ORDER BY set_number");
        let mut query = db.prepare_cached(&query)?;
        Ok(query.query_all([], set_of)?)
    }

    pub(super) fn save(&self, db: &Connection) -> Result<(), Failure> {
        let update = "UPDATE url_set SET members = ?2, reading = ?3, complete = ?4, fresh = ?5, stale = ?6, had = ?7, \
             swept = ?8, read_at = ?9, mark = ?10, refused = ?11, refused_lost = ?12 WHERE set_number = ?1";
        db.prepare_cached(update)?.execute(params![
            self.number,
            self.members,
            self.reading,
            self.complete,
            self.fresh,
            self.stale,
            self.had,
            self.swept,
            self.read_at,
            self.mark,
            self.refused,
            self.refused_lost,
        ])?;
        Ok(())
    }

    /// A member has got this mark, or has lost it.
    pub(super) fn count(&mut self, mark: i64, by: i64) {
        match mark >> 1 {
            0 => {}
            reading if reading == self.reading => self.fresh += by,
            _ => self.stale += by,
        }
    }

    /// Whether a member with this mark is one that the source does not have any more.
    pub(super) fn is_lost(&self, mark: i64) -> bool {
        (1..self.complete).contains(&(mark >> 1))
    }

    fn begin_reading(&mut self) {
        self.reading += 1;
        self.stale += self.fresh;
        self.fresh = 0;
        self.had = self.stale;
    }

    fn end_reading(&mut self, mark: &str, now: Timestamp, most_lost: f64) -> Swept {
        let (lost, members) = (codec::count(self.stale), codec::count(self.had));
        if lost as f64 > most_lost * members as f64 {
            self.refused = Some(self.reading);
            self.refused_lost = Some(self.stale);
            return Swept::Refused { lost, members };
        }
        self.mark = Some(mark.to_owned());
        self.believe(now);
        Swept::Lost(lost)
    }

    /// What the last reading did not have is lost.
    fn believe(&mut self, now: Timestamp) {
        self.complete = self.reading;
        self.swept = (self.stale > 0).then_some(0);
        self.read_at = Some(now.as_millisecond());
        (self.refused, self.refused_lost) = (None, None);
    }
}

pub(super) fn sets(db: &Connection) -> Result<Vec<SetInfo>, Failure> {
    let query = format!("SELECT {COLUMNS} FROM url_set ORDER BY set_number");
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.query([])?;
    let mut sets = Vec::new();
    let mut states = states(db)?;
    while let Some(row) = rows.next()? {
        let set = set_of(row)?;
        sets.push(SetInfo {
            name: row.get(1)?,
            members: codec::count(set.members),
            states: states.remove(&set.number).unwrap_or_default(),
            read_at: codec::optional_time(set.read_at)?,
            mark: set.mark,
            has_lost: set.swept.is_some(),
            refused: set.refused.map(|_| {
                let lost = codec::count(set.refused_lost.unwrap_or(0));
                (lost, codec::count(set.had))
            }),
        });
    }
    Ok(sets)
}

/// How many members each set has in each state.
fn states(db: &Connection) -> Result<HashMap<i64, BTreeMap<State, u64>>, Failure> {
    let query = "SELECT set_number, state, count FROM set_count WHERE count > 0";
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([])?;
    let mut sets: HashMap<i64, BTreeMap<State, u64>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let state = State::from_code(row.get(1)?);
        let state = state.ok_or_else(|| Failure::Damaged("a set counts no state".to_owned()))?;
        let count = codec::count(row.get(2)?);
        sets.entry(row.get(0)?).or_default().insert(state, count);
    }
    Ok(sets)
}

pub(super) fn begin_reading(db: &Connection, name: &str) -> Result<Reading, Failure> {
    let mut set = SetRow::find_or_make(db, name)?;
    set.begin_reading();
    set.save(db)?;
    Ok(Reading {
        set: name.to_owned(),
        number: set.reading,
    })
}

pub(super) fn end_reading(
    db: &Connection,
    reading: &Reading,
    mark: &str,
    now: Timestamp,
    most_lost: f64,
) -> Result<Swept, Failure> {
    match SetRow::find(db, &reading.set)? {
        Some(mut set) if set.reading == reading.number => {
            let swept = set.end_reading(mark, now, most_lost);
            set.save(db)?;
            Ok(swept)
        }
        _ => Ok(Swept::Overtaken),
    }
}

/// Believes the last reading of a set, which was refused. The mark stays, so that the source is read again.
pub(super) fn accept(db: &Connection, name: &str, now: Timestamp) -> Result<Accepted, Failure> {
    match SetRow::find(db, name)? {
        Some(mut set) if set.refused == Some(set.reading) => {
            let lost = codec::count(set.stale);
            set.believe(now);
            set.save(db)?;
            Ok(Accepted::Lost(lost))
        }
        Some(set) if set.refused.is_some() => Ok(Accepted::Later),
        _ => Ok(Accepted::Nothing),
    }
}

/// The statements about members.
pub(super) struct Members<'c> {
    mark: Statement<'c>,
    store: Statement<'c>,
    delete: Statement<'c>,
}

impl<'c> Members<'c> {
    pub(super) fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        Ok(Self {
            mark: db
                .prepare_cached("SELECT mark FROM member WHERE set_number = ?1 AND url = ?2")?,
            store: db.prepare_cached(&sql::upsert("member", &["set_number", "url"], &["mark"]))?,
            delete: db.prepare_cached("DELETE FROM member WHERE set_number = ?1 AND url = ?2")?,
        })
    }

    /// The mark of a member; `None` if the URL is none.
    pub(super) fn mark(&mut self, set: &SetRow, url: i64) -> Result<Option<i64>, Failure> {
        let mark = self.mark.query_row([set.number, url], |row| row.get(0));
        Ok(mark.optional()?)
    }

    /// Gives a member another mark, or makes a URL a member.
    pub(super) fn store(
        &mut self,
        set: &mut SetRow,
        url: i64,
        old: Option<i64>,
        new: i64,
    ) -> Result<(), Failure> {
        match old {
            Some(old) if old == new => return Ok(()),
            Some(old) => set.count(old, -1),
            None => set.members += 1,
        }
        set.count(new, 1);
        self.store.execute([set.number, url, new])?;
        Ok(())
    }

    /// Makes a URL no member any more.
    pub(super) fn delete(&mut self, set: &mut SetRow, url: i64, mark: i64) -> Result<(), Failure> {
        self.delete.execute([set.number, url])?;
        set.members -= 1;
        set.count(mark, -1);
        Ok(())
    }
}

/// Whether a URL with this state is asked rarely only.
pub(crate) fn is_gone(state: State) -> bool {
    matches!(state, State::Gone | State::Pruned)
}
