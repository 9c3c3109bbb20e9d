//! Counts that each transaction keeps up to date, and when each host has something due.

use std::collections::{BTreeMap, HashMap};

use super::bytes::Watched;
use crate::sql::{self, Connection, Optional as _, array, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::{Lane, Lanes, WatchCounts};
use verdict::life::State;

/// The counts of watched URLs, and what has changed of hosts.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Counts,
    stored: Counts,
    /// The hosts whose rows are to be written.
    hosts: HashMap<i64, HostChange>,
    /// URLs whose states have changed, with the states before and after, while the sets that they are in are not counted.
    moved: HashMap<i64, (State, State)>,
    /// How many more members a set has in a state than its row says.
    sets: HashMap<(i64, State), i64>,
}

/// How many more URLs a host has than its row says. A host that is here has had a change of its due rows.
#[derive(Debug, Default)]
struct HostChange {
    urls: i64,
    held: i64,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Counts {
    states: [i64; State::ALL.len()],
    lanes: [i64; Lane::ALL.len()],
    others: [i64; OTHERS],
}

const OTHERS: usize = 4;
const MEMBERS: usize = 0;
const KEPT: usize = 1;
const HOSTS: usize = 2;
/// The code of the URLs at private addresses, in the kind 2 of the table.
pub(crate) const PRIVATE: usize = 3;

impl Counts {
    /// All counts, with their keys in the table `watch_count`.
    fn all(&mut self) -> impl Iterator<Item = ((i64, i64), &mut i64)> {
        let kinds: [&mut [i64]; 3] = [&mut self.states, &mut self.lanes, &mut self.others];
        (0..).zip(kinds).flat_map(|(kind, counts)| {
            (0..)
                .zip(counts)
                .map(move |(code, count)| ((kind, code), count))
        })
    }
}

impl Tally {
    pub(crate) fn load(db: &Connection) -> Result<Self, Failure> {
        let mut query = db.prepare_cached("SELECT kind, code, count FROM watch_count")?;
        let read = query.query_all([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        let read: HashMap<(i64, i64), i64> = read.into_iter().collect();
        let mut counts = Counts::default();
        for (key, count) in counts.all() {
            *count = read.get(&key).copied().unwrap_or(0);
        }
        Ok(Self {
            stored: counts.clone(),
            counts,
            ..Self::default()
        })
    }

    /// A URL that is in a set has this state, or has it no more.
    pub(super) fn state(&mut self, state: State, by: i64) {
        self.counts.states[usize::from(state.code())] += by;
    }

    /// A URL that is in a set has come from one state to another.
    pub(super) fn moved(&mut self, url: i64, from: State, to: State) {
        if from != to {
            self.state(from, -1);
            self.state(to, 1);
            self.moved.entry(url).or_insert((from, to)).1 = to;
        }
    }

    /// A URL that is in a set was last found at a private address, or is so no more.
    pub(super) fn private(&mut self, watched: &Watched, by: i64) {
        self.counts.others[PRIVATE] += by * i64::from(watched.is_private());
    }

    /// A due row came or went.
    pub(super) fn due(&mut self, host: i64, lane: Lane, by: i64) {
        self.counts.lanes[usize::from(lane.code())] += by;
        let change = self.hosts.entry(host).or_default();
        change.held += if lane == Lane::Held { by } else { 0 };
    }

    /// A URL of a host came into its first set, or left its last.
    pub(super) fn url(&mut self, host: i64, by: i64) {
        self.hosts.entry(host).or_default().urls += by;
    }

    /// A URL with this state became a member of a set, or is none any more.
    pub(super) fn member(&mut self, set: i64, state: State, by: i64) {
        self.counts.others[MEMBERS] += by;
        *self.sets.entry((set, state)).or_default() += by;
    }

    /// Counts the changes of state for the sets that the URLs are in, before the sets lose or get members.
    pub(super) fn settle(&mut self, db: &Connection) -> Result<(), Failure> {
        let moved = std::mem::take(&mut self.moved);
        for (url, set) in sets_of(db, &moved)? {
            let (from, to) = moved[&url];
            *self.sets.entry((set, from)).or_default() -= 1;
            *self.sets.entry((set, to)).or_default() += 1;
        }
        Ok(())
    }

    /// A URL in no set is kept, or is kept no more.
    pub(super) fn kept(&mut self, by: i64) {
        self.counts.others[KEPT] += by;
    }

    /// How many URLs in sets are gone or pruned.
    pub(super) fn gone(&self) -> u64 {
        let gone = [State::Gone, State::Pruned].map(|state| usize::from(state.code()));
        gone.map(|code| codec::count(self.counts.states[code]))
            .into_iter()
            .sum()
    }

    pub(super) fn counts(&self) -> WatchCounts {
        let Counts {
            states,
            lanes,
            others,
        } = &self.counts;
        let there = |count: &i64| *count > 0;
        let states: BTreeMap<State, u64> = (State::ALL.into_iter().zip(states))
            .filter(|(_, count)| there(count))
            .map(|(state, count)| (state, codec::count(*count)))
            .collect();
        let due = (Lane::ALL.into_iter().zip(lanes))
            .filter(|(_, count)| there(count))
            .map(|(lane, count)| (lane, codec::count(*count)));
        WatchCounts {
            states,
            due: due.collect(),
            members: codec::count(others[MEMBERS]),
            kept: codec::count(others[KEPT]),
            hosts: codec::count(others[HOSTS]),
            private: codec::count(others[PRIVATE]),
        }
    }

    /// Whether the rows of hosts are not written yet.
    pub(crate) fn has_changed_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Writes the rows of hosts.
    pub(crate) fn save_hosts(&mut self, db: &Connection) -> Result<(), Failure> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        if db.is_shared() {
            return self.save_hosts_at_once(db);
        }
        let mut read =
            db.prepare_cached("SELECT urls, held, next_due, next_doubt FROM host WHERE host = ?1")?;
        let mut write = db.prepare_cached(
            "UPDATE host SET urls = ?2, held = ?3, next_due = ?4, next_doubt = ?5 WHERE host = ?1",
        )?;
        for (host, change) in self.hosts.drain() {
            let row = read.query_row([host], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            });
            let Some(old) = row.optional()? else {
                return Err(Failure::Damaged(format!("host {host} is missing")));
            };
            let (urls, held, _, _): (i64, i64, Option<i64>, Option<i64>) = old;
            let new = (
                urls + change.urls,
                held + change.held,
                first_due(db, host, Lanes::Schedule)?,
                first_due(db, host, Lanes::Doubt)?,
            );
            if new != old {
                write.execute(params![host, new.0, new.1, new.2, new.3])?;
            }
            self.counts.others[HOSTS] += i64::from(new.0 > 0) - i64::from(urls > 0);
        }
        Ok(())
    }

    /// Writes the rows of all hosts by one statement.
    fn save_hosts_at_once(&mut self, db: &Connection) -> Result<(), Failure> {
        let changes: Vec<(i64, HostChange)> = self.hosts.drain().collect();
        let column = |number: fn(&(i64, HostChange)) -> i64| {
            array::numbers(changes.iter().map(|change| Some(number(change))))
        };
        let row = params![
            column(|(host, _)| *host),
            column(|(_, change)| change.urls),
            column(|(_, change)| change.held),
        ];
        let mut write = db.prepare_cached(HOSTS_AT_ONCE)?;
        let written = write.query_all(row, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let by: HashMap<i64, i64> = changes
            .iter()
            .map(|(host, change)| (*host, change.urls))
            .collect();
        for (host, urls) in written {
            let (host, urls): (i64, i64) = (host, urls);
            let before = urls - by.get(&host).copied().unwrap_or(0);
            self.counts.others[HOSTS] += i64::from(urls > 0) - i64::from(before > 0);
        }
        Ok(())
    }

    /// Writes how many members each set has in each state.
    fn save_sets(&mut self, db: &Connection) -> Result<(), Failure> {
        let changed = self.sets.drain().filter(|(_, by)| *by != 0);
        let mut write = db.prepare_cached(
            "INSERT INTO set_count (set_number, state, count) VALUES (?1, ?2, ?3) \
             ON CONFLICT (set_number, state) DO UPDATE SET count = set_count.count + excluded.count",
        )?;
        for ((set, state), by) in changed {
            write.execute([set, state.code().into(), by])?;
        }
        Ok(())
    }

    /// Writes what has changed, with the transaction.
    pub(crate) fn save(&mut self, db: &Connection) -> Result<(), Failure> {
        self.save_hosts(db)?;
        self.settle(db)?;
        self.save_sets(db)?;
        if self.counts == self.stored {
            return Ok(());
        }
        let mut write =
            db.prepare_cached(&sql::upsert("watch_count", &["kind", "code"], &["count"]))?;
        let (mut counts, mut stored) = (self.counts.clone(), self.stored.clone());
        for (((kind, code), count), (_, stored)) in counts.all().zip(stored.all()) {
            if *count != *stored {
                write.execute([kind, code, *count])?;
            }
        }
        self.stored = self.counts.clone();
        Ok(())
    }
}

/// The sets of URLs: each URL with each of its sets.
fn sets_of(
    db: &Connection,
    urls: &HashMap<i64, (State, State)>,
) -> Result<Vec<(i64, i64)>, Failure> {
    if urls.is_empty() {
        return Ok(Vec::new());
    }
    let read = |row: sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    if db.is_shared() {
        let all = array::numbers(urls.keys().copied().map(Some));
        return Ok(db
            .prepare_cached(SETS_AT_ONCE)?
            .query_all(params![all], read)?);
    }
    let mut query = db.prepare_cached(SETS)?;
    let mut found = Vec::new();
    for url in urls.keys() {
        found.extend(query.query_all([*url], read)?);
    }
    Ok(found)
}

const SETS: &str = "SELECT m.url, m.set_number FROM url_set s JOIN member m ON m.set_number = s.set_number AND m.url = ?1";
const SETS_AT_ONCE: &str = "SELECT m.url, m.set_number FROM url_set s JOIN member m ON m.set_number = s.set_number \
     JOIN unnest(CAST(CAST(?1 AS TEXT) AS BIGINT[])) AS r(url) ON r.url = m.url";

/// The first rows that are due are read for each host, and rows that stay as they are are not written.
const HOSTS_AT_ONCE: &str = "UPDATE host h SET urls = n.urls, held = n.held, next_due = n.next_due, next_doubt = n.next_doubt \
     FROM (SELECT o.host, o.urls + r.urls AS urls, o.held + r.held AS held, least( \
         (SELECT due_at FROM due WHERE host = r.host AND lane = 0 ORDER BY due_at LIMIT 1), \
         (SELECT due_at FROM due WHERE host = r.host AND lane = 1 ORDER BY due_at LIMIT 1), \
         (SELECT due_at FROM due WHERE host = r.host AND lane = 2 ORDER BY due_at LIMIT 1)) AS next_due, \
         (SELECT due_at FROM due WHERE host = r.host AND lane = 3 ORDER BY due_at LIMIT 1) AS next_doubt \
     FROM unnest(CAST(CAST(?1 AS TEXT) AS BIGINT[]), CAST(CAST(?2 AS TEXT) AS BIGINT[]), CAST(CAST(?3 AS TEXT) AS BIGINT[])) \
         AS r(host, urls, held) JOIN host o ON o.host = r.host) AS n \
     WHERE h.host = n.host AND (h.urls, h.held, h.next_due, h.next_doubt) IS DISTINCT FROM (n.urls, n.held, n.next_due, n.next_doubt) \
     RETURNING h.host, h.urls";

/// When the first row of these lanes is due.
fn first_due(db: &Connection, host: i64, lanes: Lanes) -> Result<Option<i64>, Failure> {
    let query = "SELECT due_at FROM due WHERE host = ?1 AND lane = ?2 ORDER BY due_at LIMIT 1";
    let mut query = db.prepare_cached(query)?;
    let mut first: Option<i64> = None;
    for lane in lanes.lanes() {
        let due: Option<i64> = query
            .query_row([host, i64::from(lane.code())], |row| row.get(0))
            .optional()?;
        first = first.into_iter().chain(due).min();
    }
    Ok(first)
}
