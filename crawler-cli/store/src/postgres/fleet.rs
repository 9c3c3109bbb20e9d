//! Workers that share the hosts of a store in PostgreSQL.
//!
//! A lease is that of the worker, not of each host: one row says how long everything that the worker has is its own. All
//! times here are those of the database.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::sql::{Connection, Optional as _, array, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::read::host_of;
use crate::{HostId, Lanes, MARGIN, NewWorker, Ready, Tenure, WorkerInfo};

/// A worker of the fleet: what its engine knows.
#[derive(Debug)]
pub(crate) struct Member {
    worker: NewWorker,
    number: i64,
    tenure: Tenure,
    /// A sign of life that is in the open transaction: the number, and when it was sent.
    sent: Option<(i64, Instant)>,
    /// The hosts that the worker has, and others that it may have had: the rows say which.
    hosts: HashSet<HostId>,
    /// When the last sign of life was sent that is stored.
    pub(super) renewed: Option<Instant>,
    /// When it was last looked for workers whose lease has ended.
    pub(super) reaped: Option<Instant>,
}

impl Member {
    pub(crate) fn new(worker: &NewWorker) -> Self {
        Self {
            worker: worker.clone(),
            number: 0,
            tenure: Tenure::ended(),
            sent: None,
            hosts: HashSet::new(),
            renewed: None,
            reaped: None,
        }
    }

    pub(crate) fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    /// Gives a sign of life with the transaction that is open. A worker that was taken for dead joins again.
    ///
    /// The lease is renewed a dozen times in its length. Other transactions keep the worker's row from being removed
    /// before they end, and leave it as it is: beside an old snapshot, each change of the row would stay, and everyone who
    /// looks for the row would read all of them.
    pub(crate) fn beat(&mut self, db: &Connection) -> Result<(), Failure> {
        let sent_at = Instant::now();
        let lease = millis(self.worker.lease);
        let is_soon = {
            let soon = self.worker.lease / 12;
            move |at: Instant| sent_at.saturating_duration_since(at) < soon
        };
        let is_there = if self.renewed.is_some_and(is_soon) {
            let hold = "SELECT worker FROM worker WHERE worker = ?1 FOR KEY SHARE";
            let held = db.query_row(hold, [self.number], |row| row.get::<i64>(0));
            held.optional()?.is_some()
        } else {
            let renew = "UPDATE worker SET seen_at = clock_timestamp(), lease_until = clock_timestamp() + CAST(?2 AS BIGINT) * interval '1 millisecond' \
                 WHERE worker = ?1";
            let renewed = db.prepare_cached(renew)?.execute([self.number, lease])?;
            self.sent = Some((self.number, sent_at));
            renewed > 0
        };
        if !is_there {
            let join = "INSERT INTO worker (name, process, version, lease_until) \
                 VALUES (?1, ?2, ?3, clock_timestamp() + CAST(?4 AS BIGINT) * interval '1 millisecond') \
                 RETURNING worker";
            let row = params![
                self.worker.name,
                self.worker.process,
                self.worker.version,
                lease
            ];
            self.number = db.query_row(join, row, |row| row.get(0))?;
            self.hosts.clear();
            self.sent = Some((self.number, sent_at));
        }
        if !self.reaped.is_some_and(is_soon) {
            self.reaped = Some(sent_at);
            reap(db)?;
        }
        Ok(())
    }

    /// The transaction is stored, and the sign of life with it.
    pub(crate) fn commit(&mut self) {
        if let Some((number, sent_at)) = self.sent.take() {
            let lasts = self
                .worker
                .lease
                .saturating_sub(MARGIN.min(self.worker.lease / 6));
            self.tenure.renew(number, sent_at + lasts);
            self.renewed = Some(sent_at);
        }
    }

    /// The transaction was taken back.
    pub(crate) fn undo(&mut self) {
        self.sent = None;
        self.number = self.tenure.number();
    }

    /// Those of these hosts that the worker has. Nobody takes them over before the transaction ends.
    pub(crate) fn owned(
        &self,
        db: &Connection,
        hosts: &HashSet<HostId>,
    ) -> Result<HashSet<HostId>, Failure> {
        let query = "SELECT host FROM host WHERE owner = ?1 AND host = ANY (CAST(CAST(?2 AS TEXT) AS BIGINT[])) \
             ORDER BY host FOR NO KEY UPDATE";
        let row = params![self.number, array(hosts)];
        let owned = db.prepare_cached(query)?.query_all(row, |row| row.get(0))?;
        Ok(owned.into_iter().map(HostId).collect())
    }

    /// Claims hosts with something due, and reads those that the worker has already.
    pub(crate) fn claim(
        &mut self,
        db: &Connection,
        lanes: Lanes,
        now: Timestamp,
        except: &HashSet<HostId>,
        limit: usize,
    ) -> Result<Vec<Ready>, Failure> {
        let next = match lanes {
            Lanes::Schedule => "next_due",
            Lanes::Doubt => "next_doubt",
        };
        let columns = "h.host, h.root, h.no_head_until, h.head_lies_until, h.answered_at, h.control_at, \
             h.control_status, h.episodes";
        // The worker takes its share of the hosts that wait, so that few hosts are spread over all workers. Free hosts come
        // from the index of free hosts, the worker's own by their keys: beside an old snapshot, any other index has an entry
        // for each answer. What was found is looked up by an array, never by a join, whose plan may be to read all hosts
        // that are ready.
        let is_ready = format!("h.{next} <= ?2 AND (h.rest_until IS NULL OR h.rest_until <= ?2)");
        let claim = format!(
            "WITH w AS MATERIALIZED (SELECT greatest(count(*), 1) AS workers FROM worker), \
             free AS MATERIALIZED (SELECT h.host FROM host h WHERE h.owner IS NULL AND {is_ready} \
             AND NOT (h.host = ANY (CAST(CAST(?4 AS TEXT) AS BIGINT[]))) ORDER BY h.{next}, h.host LIMIT ?3 * (SELECT workers FROM w)), \
             own AS MATERIALIZED (SELECT h.host FROM host h WHERE h.host = ANY (CAST(CAST(?5 AS TEXT) AS BIGINT[])) \
             AND h.owner = ?1 AND {is_ready}), \
             waiting AS MATERIALIZED (SELECT host FROM free UNION ALL SELECT host FROM own), \
             mine AS MATERIALIZED (SELECT h.host FROM host h WHERE h.host = ANY (ARRAY(SELECT host FROM waiting)) \
             AND (h.owner IS NULL OR h.owner = ?1) AND {is_ready} ORDER BY h.{next}, h.host \
             LIMIT (SELECT least(?3, (count(*) + w.workers - 1) / w.workers) FROM waiting, w GROUP BY w.workers) \
             FOR NO KEY UPDATE OF h SKIP LOCKED) \
             UPDATE host h SET owner = ?1 WHERE h.host = ANY (ARRAY(SELECT host FROM mine)) RETURNING {columns}, h.{next}, h.urls"
        );
        let own = self.hosts.difference(except).map(|host| Some(host.0));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let row = params![
            self.number,
            now.as_millisecond(),
            limit,
            array(except),
            array::numbers(own)
        ];
        let mut claim = db.prepare_cached(&claim)?;
        let mut rows = claim.query(row)?;
        let mut ready = Vec::new();
        while let Some(row) = rows.next()? {
            ready.push(Ready {
                host: host_of(row)?,
                next: codec::time(row.get(8)?)?,
                urls: codec::count(row.get(9)?),
            });
        }
        ready.sort_by_key(|ready: &Ready| (ready.next, ready.host.id));
        self.hosts.extend(ready.iter().map(|ready| ready.host.id));
        Ok(ready)
    }

    /// Gives back hosts that are not in use.
    pub(crate) fn release(
        &mut self,
        db: &Connection,
        in_use: &HashSet<HostId>,
    ) -> Result<u64, Failure> {
        let release = "UPDATE host SET owner = NULL \
             WHERE owner = ?1 AND NOT (host = ANY (CAST(CAST(?2 AS TEXT) AS BIGINT[])))";
        let row = params![self.number, array(in_use)];
        let released = db.prepare_cached(release)?.execute(row)?;
        self.hosts.retain(|host| in_use.contains(host));
        Ok(released as u64)
    }

    /// Takes those of these hosts that nobody has, or that a worker has whose process is dead. Returns them.
    pub(crate) fn adopt(
        &self,
        db: &Connection,
        hosts: &HashSet<HostId>,
        dead: i64,
    ) -> Result<HashSet<HostId>, Failure> {
        let adopt = "UPDATE host SET owner = ?1 WHERE host IN (SELECT host FROM host \
             WHERE host = ANY (CAST(CAST(?2 AS TEXT) AS BIGINT[])) AND (owner IS NULL OR owner = ?3) \
             ORDER BY host FOR NO KEY UPDATE) RETURNING host";
        let row = params![self.number, array(hosts), dead];
        let adopted = db.prepare_cached(adopt)?.query_all(row, |row| row.get(0))?;
        Ok(adopted.into_iter().map(HostId).collect())
    }

    /// Gives back hosts that were adopted.
    pub(crate) fn disown(&self, db: &Connection, hosts: &HashSet<HostId>) -> Result<(), Failure> {
        let disown = "UPDATE host SET owner = NULL WHERE owner = ?1 \
             AND host = ANY (CAST(CAST(?2 AS TEXT) AS BIGINT[]))";
        db.prepare_cached(disown)?
            .execute(params![self.number, array(hosts)])?;
        Ok(())
    }

    /// Gives everything back.
    pub(crate) fn leave(&mut self, db: &Connection) -> Result<(), Failure> {
        self.release(db, &HashSet::new())?;
        for leave in [
            "DELETE FROM task WHERE owner = ?1",
            "DELETE FROM worker WHERE worker = ?1",
        ] {
            db.prepare_cached(leave)?.execute([self.number])?;
        }
        Ok(())
    }

    /// Takes a task that nobody has who is there.
    pub(crate) fn take_task(&self, db: &Connection, name: &str) -> Result<bool, Failure> {
        let take = "INSERT INTO task AS t (name, owner) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE \
             SET owner = excluded.owner WHERE t.owner = excluded.owner \
             OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.worker = t.owner) RETURNING owner";
        let owner = db.query_row(take, params![name, self.number], |row| row.get::<i64>(0));
        Ok(owner.optional()?.is_some())
    }
}

/// Hosts that nobody claims before these times.
pub(crate) fn rest(db: &Connection, hosts: &[(HostId, Timestamp)]) -> Result<(), Failure> {
    let rest = "UPDATE host h SET rest_until = greatest(h.rest_until, r.until) FROM \
         unnest(CAST(CAST(?1 AS TEXT) AS BIGINT[]), CAST(CAST(?2 AS TEXT) AS BIGINT[])) AS r (host, until) \
         WHERE h.host = r.host";
    let numbers = array::numbers(hosts.iter().map(|(host, _)| Some(host.0)));
    let times = array::numbers(hosts.iter().map(|(_, until)| Some(until.as_millisecond())));
    db.prepare_cached(rest)?.execute(params![numbers, times])?;
    Ok(())
}

/// Takes everything from workers whose lease has ended.
fn reap(db: &Connection) -> Result<(), Failure> {
    let dead = "DELETE FROM worker WHERE worker IN (SELECT worker FROM worker \
         WHERE lease_until < clock_timestamp() ORDER BY worker FOR UPDATE SKIP LOCKED) RETURNING worker, name";
    let dead: Vec<(i64, String)> = db
        .prepare_cached(dead)?
        .query_all([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (worker, name) in dead {
        let take = "UPDATE host SET owner = NULL WHERE owner = ?1";
        let hosts = db.prepare_cached(take)?.execute([worker])?;
        tracing::warn!(
            worker = name,
            hosts,
            "a worker has not given a sign of life in time"
        );
    }
    Ok(())
}

/// The workers of the fleet.
pub(crate) fn workers(db: &Connection) -> Result<Vec<WorkerInfo>, Failure> {
    let query = "SELECT w.worker, w.name, w.process, w.version, \
         CAST(extract(epoch FROM clock_timestamp() - w.joined_at) * 1000 AS BIGINT), \
         CAST(extract(epoch FROM clock_timestamp() - w.seen_at) * 1000 AS BIGINT), \
         (SELECT count(*) FROM host h WHERE h.owner = w.worker) FROM worker w ORDER BY w.worker";
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([])?;
    let mut workers = Vec::new();
    while let Some(row) = rows.next()? {
        let time = |column| Ok::<_, Failure>(Duration::from_millis(codec::count(row.get(column)?)));
        workers.push(WorkerInfo {
            number: row.get(0)?,
            name: row.get(1)?,
            process: row.get(2)?,
            version: row.get(3)?,
            age: time(4)?,
            silent: time(5)?,
            hosts: codec::count(row.get(6)?),
        });
    }
    Ok(workers)
}

fn array(hosts: &HashSet<HostId>) -> String {
    array::numbers(hosts.iter().map(|host| Some(host.0)))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
