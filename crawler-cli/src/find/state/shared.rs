//! The state of a search that several processes share, in a database of PostgreSQL.
//!
//! A *host* belongs to one process at a time, so that its rate holds. A link to a host that another process may have goes
//! to the *inbox* of the host. What a process has is *leased*: each transaction makes the lease longer. When the lease has
//! ended, the process is *gone*: others take over its hosts and the results that it may not have written, and whatever it
//! still commits is refused.
//!
//! The search has ended when no host is open, no inbox has a link, and no result is unwritten.

use std::time::{Duration, Instant};

use super::error::{Kind, StateError};
use super::staged::{Staged, insert as insert_rows};
use super::{Engine, State, number, signed};
use crate::crawl::reporter::Results;
use crate::find::download;
use crate::find::host_crawl::{Counts, Snapshot};
use crate::find::link::Link;
use crate::find::summary::Tally;
use crate::store::postgres::Address;
use crate::store::sql::{self, Connection, Optional as _, Postgres, array, params};
use crate::store::{LEASE, MARGIN, Tenure};

/// A database that processes share for a search.
///
/// ```
/// use std::time::Duration;
///
/// use crawler_cli::find::{Sharing, State};
///
/// let mut sharing = Sharing::new("postgres://me@127.0.0.1:1/search".parse()?);
/// sharing.lease = Duration::from_secs(20);
/// let error = State::join(&sharing, "http://example.com/").unwrap_err();
/// assert!(error.to_string().starts_with("postgres://me@127.0.0.1:1/search: "));
/// # Ok::<(), crawler_cli::store::postgres::BadAddress>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The database.
    pub address: Address,
    /// How long a process has its hosts without a sign of life. Usually [`LEASE`].
    pub lease: Duration,
    /// What operators call this process; need not be unique.
    pub name: String,
}

impl Sharing {
    /// A search in this database, with the usual lease.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            lease: LEASE,
            name: format!("process {}", std::process::id()),
        }
    }
}

/// A process of the search.
#[derive(Debug)]
pub(super) struct Member {
    sharing: Sharing,
    /// Its number; 0 before it has joined.
    process: i64,
    tenure: Tenure,
    /// How many transactions it has committed.
    turn: i64,
    /// When it last asked for news, and when it looked for processes that are gone.
    tended: Option<Instant>,
    reaped: Option<Instant>,
    has_ended: bool,
    /// Whether somebody has performed `-quit`, and whether this process is to say so.
    quit: bool,
    says_quit: bool,
    /// How many hosts with something left to do it has.
    active: i64,
    /// The number of hosts of the search.
    hosts: usize,
    /// A process whose results this one is taking over.
    heir_of: Option<i64>,
}

/// What a process learns about the search.
#[derive(Debug, Default)]
pub(in crate::find) struct News {
    /// Hosts that are this process's now: their numbers and origins.
    pub(in crate::find) claimed: Vec<(i64, String)>,
    /// Links to hosts of this process: their numbers, their hosts, and the links.
    pub(in crate::find) links: Vec<(i64, i64, String)>,
    /// How many hosts others could search who have nothing to do.
    pub(in crate::find) spare: usize,
    /// Results of a process that is gone, and may not have written them.
    pub(in crate::find) inherited: Option<(i64, Vec<u8>)>,
    /// Somebody has ended the search by `-quit`.
    pub(in crate::find) quit: bool,
}

/// The numbers of all processes.
#[derive(Debug, Default)]
pub(in crate::find) struct Whole {
    pub(in crate::find) counts: Counts,
    pub(in crate::find) downloads: download::DownloadCounts,
    pub(in crate::find) tally: Tally,
}

const SCHEMA: &str = include_str!("shared.sql");

const VERSION: i64 = 1;

/// The advisory lock of the process that makes the tables.
const MAKER: i64 = 0x4372_7372_0002;

/// How often a process asks for news: if it has nothing to do, and otherwise.
const IDLE: Duration = Duration::from_millis(100);
const BUSY: Duration = Duration::from_secs(1);

/// How many links of its inboxes a process handles at a time.
const LINKS: i64 = 10_000;

/// How many hosts with something left to do a process has at most.
const MOST_ACTIVE: usize = 1000;

/// Connects, makes the tables if there are none, and checks that the search is this one.
pub(super) fn join(
    sharing: &Sharing,
    identity: &str,
    place: &str,
) -> Result<(Connection, Member), StateError> {
    let address = sharing.address.clone();
    let connect = Box::new(move || {
        let mut client = address.connect()?;
        let path = client.batch_execute("SET search_path = courser_find");
        path.map_err(|error| crate::store::of_server(&error))?;
        Ok(client)
    });
    let sql = |error: sql::Error| StateError::new(place, Kind::Store(error.at(place)));
    let db = Connection::Postgres(Box::new(Postgres::new(connect).map_err(sql)?));
    let (version, stored) = make(&db, identity).map_err(sql)?;
    if version != VERSION {
        return Err(StateError::new(place, Kind::Foreign));
    }
    if stored != identity {
        return Err(StateError::new(place, Kind::OtherSearch(stored)));
    }
    let member = Member {
        sharing: sharing.clone(),
        process: 0,
        tenure: Tenure::ended(),
        turn: 0,
        tended: None,
        reaped: None,
        has_ended: false,
        quit: false,
        says_quit: false,
        active: 0,
        hosts: 0,
        heir_of: None,
    };
    Ok((db, member))
}

/// Makes the tables, if there are none. Returns the version and the identity of the search.
fn make(db: &Connection, identity: &str) -> sql::Result<(i64, String)> {
    db.begin_with(MAKER)?;
    let made = (|| {
        let exists = "SELECT to_regclass('courser_find.search') IS NOT NULL";
        if !db.query_row(exists, [], |row| row.get::<bool>(0))? {
            db.execute_batch(SCHEMA)?;
        }
        let insert =
            "INSERT INTO search (one, version, identity) VALUES (1, ?1, ?2) ON CONFLICT DO NOTHING";
        db.prepare_cached(insert)?
            .execute(params![VERSION, identity])?;
        let read = "SELECT version, identity FROM search";
        let made = db.query_row(read, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        db.commit()?;
        Ok(made)
    })();
    if made.is_err() {
        // What is wrong was told already.
        let _ = db.rollback();
    }
    made
}

impl State {
    fn member(&mut self) -> Option<&mut Member> {
        match &mut self.engine {
            Engine::File(_) => None,
            Engine::Shared(member) => Some(member),
        }
    }

    /// Whether requests may be sent: the lease has not ended.
    pub(in crate::find) fn may_send(&self) -> bool {
        match &self.engine {
            Engine::File(_) => true,
            Engine::Shared(member) => !member.tenure.is_over(Instant::now()),
        }
    }

    /// Whether the search of all processes has ended.
    pub(in crate::find) fn has_ended(&self) -> bool {
        matches!(&self.engine, Engine::Shared(member) if member.has_ended)
    }

    /// The number of hosts of the search.
    pub(in crate::find) fn hosts(&self) -> usize {
        match &self.engine {
            Engine::File(_) => 0,
            Engine::Shared(member) => member.hosts,
        }
    }

    /// This process has performed `-quit`.
    pub(in crate::find) fn stage_quit(&mut self) {
        if let Some(member) = self.member() {
            member.says_quit = !member.quit;
        }
    }

    /// Stages a link to a host that another process may have.
    pub(in crate::find) fn send(&mut self, root: &str, link: &Link) {
        self.staged.sent.insert((root.to_owned(), link.to_text()));
    }

    /// A link of an inbox was handled.
    pub(in crate::find) fn stage_received(&mut self, number: i64) {
        self.staged.received.push(number);
    }

    /// Becomes a process of the search, with nothing of its own. The hosts of the starts are there from now on.
    pub(in crate::find) fn enter(&mut self, origins: &[&str]) -> Result<(), StateError> {
        self.staged = Staged::default();
        self.open.clear();
        self.tally = None;
        let Engine::Shared(member) = &mut self.engine else {
            return Ok(());
        };
        let sent_at = Instant::now();
        let lease = millis(member.sharing.lease);
        let mut origins = origins.to_vec();
        origins.sort_unstable();
        let entered = in_transaction(&self.db, || {
            let join = "INSERT INTO process (name, lease_until) \
                 VALUES (?1, clock_timestamp() + CAST(?2 AS BIGINT) * interval '1 millisecond') RETURNING process";
            let row = params![member.sharing.name, lease];
            let process: i64 = self.db.query_row(join, row, |row| row.get(0))?;
            for origin in &origins {
                let insert = "INSERT INTO host (origin) VALUES (?1) ON CONFLICT DO NOTHING";
                self.db.prepare_cached(insert)?.execute([origin])?;
            }
            Ok(process)
        });
        let process = entered.map_err(|error| self.sql(error))?;
        if let Some(member) = self.member() {
            member.process = process;
            (member.turn, member.active, member.heir_of) = (0, 0, None);
            (member.tended, member.reaped) = (None, None);
            member.renew(sent_at);
        }
        Ok(())
    }

    /// What is new in the search, if it is time to ask: gives a sign of life, claims hosts, and takes over from processes
    /// that are gone. `held` are the numbers of the hosts that the process has, `active` is how many of them have something
    /// left to do.
    pub(in crate::find) fn tend(
        &mut self,
        held: &[i64],
        active: usize,
    ) -> Result<Option<News>, StateError> {
        let settled = self.is_settled();
        let Engine::Shared(member) = &mut self.engine else {
            return Ok(None);
        };
        let pause = if active == 0 { IDLE } else { BUSY };
        if !settled || member.tended.is_some_and(|at| at.elapsed() < pause) {
            return Ok(None);
        }
        let sent_at = Instant::now();
        member.active = signed(active as u64);
        let reaps = member
            .reaped
            .is_none_or(|at| at.elapsed() >= member.sharing.lease / 12);
        let attempt = in_transaction(&self.db, || {
            Ok(match member.beat(&self.db, self.tally.as_deref())? {
                false => None,
                true => Some(member.news(&self.db, held, reaps)?),
            })
        });
        let Some((news, seen)) = attempt.map_err(|error| self.sql(error))? else {
            return Err(self.error(Kind::Lost));
        };
        if seen.ends {
            // Only a search that goes on needs these. What stays because of an error does no harm.
            let _ = self
                .db
                .execute_batch("TRUNCATE queued, held, known, wanted, inbox");
        }
        if let Some(member) = self.member() {
            member.renew(sent_at);
            member.tended = Some(sent_at);
            if reaps {
                member.reaped = Some(sent_at);
            }
            member.has_ended = seen.has_ended;
            member.quit = seen.quit;
            member.hosts = seen.hosts;
        }
        Ok(Some(News {
            quit: seen.quit,
            ..news
        }))
    }

    /// Gives a sign of life while a command runs. Whether the process is gone, the next transaction tells.
    pub(in crate::find) fn beat(&mut self) {
        let Engine::Shared(member) = &mut self.engine else {
            return;
        };
        let sent_at = Instant::now();
        if member.tended.is_some_and(|at| at.elapsed() < BUSY) {
            return;
        }
        if let Ok(true) = member.beat(&self.db, None) {
            member.renew(sent_at);
        }
        member.tended = Some(sent_at);
    }

    /// Gives hosts back to those who have nothing to do. Everything about them is saved.
    pub(in crate::find) fn release(&mut self, hosts: &[i64]) -> Result<(), StateError> {
        let Engine::Shared(member) = &self.engine else {
            return Ok(());
        };
        let release = "UPDATE host SET owner = NULL WHERE owner = ?1 AND host = ANY (CAST(CAST(?2 AS TEXT) AS BIGINT[]))";
        let row = params![member.process, numbers(hosts)];
        let released = self
            .db
            .prepare_cached(release)
            .and_then(|mut release| release.execute(row));
        released.map_err(|error| self.sql(error))?;
        for host in hosts {
            self.open.remove(host);
        }
        Ok(())
    }

    pub(super) fn commit_shared(
        &mut self,
        results: &Results<'_>,
        is_idle: bool,
    ) -> Result<(), StateError> {
        let Engine::Shared(member) = &mut self.engine else {
            return Ok(());
        };
        if is_idle && !member.says_quit {
            return Ok(());
        }
        let sent_at = Instant::now();
        let attempt = member.commit(&self.db, &self.staged, results, self.tally.as_deref());
        match attempt.map_err(|error| self.sql(error))? {
            Outcome::Stored => {}
            Outcome::Lost => return Err(self.error(Kind::Lost)),
            Outcome::Late => {
                if let Some(member) = self.member()
                    && member.heir_of.is_none()
                {
                    (member.quit, member.says_quit) = (true, false);
                }
                return Err(self.error(Kind::QuitBefore));
            }
        }
        if let Some(member) = self.member() {
            member.turn += 1;
            member.quit |= std::mem::take(&mut member.says_quit);
            member.heir_of = None;
            member.renew(sent_at);
        }
        Ok(())
    }

    /// Takes over the results of a process that is gone, to write them. Returns whether no other process was faster.
    pub(in crate::find) fn inherit(
        &mut self,
        process: i64,
        bytes: &[u8],
    ) -> Result<bool, StateError> {
        if let Some(member) = self.member() {
            member.heir_of = Some(process);
        }
        let results = Results {
            bytes,
            ..Results::default()
        };
        let taken = self.commit_shared(&results, false);
        match taken {
            Err(error) if error.is_quit_before() => {
                if let Some(member) = self.member() {
                    member.heir_of = None;
                }
                Ok(false)
            }
            taken => taken.map(|()| true),
        }
    }

    /// Leaves the search; others go on. `written`: all results that were committed were written.
    ///
    /// # Errors
    /// The database cannot be written. The lease ends without that.
    pub fn leave(&mut self, written: bool) -> Result<(), StateError> {
        let Engine::Shared(member) = &self.engine else {
            return Ok(());
        };
        let left = in_transaction(&self.db, || {
            let leave = "UPDATE process SET gone = true, active = 0, \
                 results = CASE WHEN ?2 THEN '' ELSE results END WHERE process = ?1";
            self.db
                .prepare_cached(leave)?
                .execute(params![member.process, written])?;
            give_back(&self.db, member.process)
        });
        left.map(drop).map_err(|error| self.sql(error))
    }

    /// The numbers of all processes, and how long the search took.
    pub(in crate::find) fn whole(&self) -> Result<Whole, StateError> {
        let mut whole = Whole::default();
        let read = |query: &str| -> Result<Vec<String>, StateError> {
            let rows = self.db.prepare_cached(query);
            let rows = rows.and_then(|mut rows| rows.query_all([], |row| row.get(0)));
            rows.map_err(|error| self.sql(error))
        };
        for text in read("SELECT summit FROM host WHERE summit IS NOT NULL")? {
            let snapshot: Snapshot = self.value(&text)?;
            whole.counts = whole.counts + snapshot.counts();
        }
        for text in read("SELECT tally FROM downloads")? {
            let tally: download::Tally = self.value(&text)?;
            whole.counts = whole.counts
                + Counts {
                    requests: tally.requests,
                    retries: tally.retries,
                    unread: tally.counts.failed,
                    ..Counts::default()
                };
            whole.downloads = whole.downloads + tally.counts;
        }
        for text in read("SELECT tally FROM process WHERE tally IS NOT NULL")? {
            whole.tally.add(self.value(&text)?);
        }
        let elapsed = "SELECT CAST(extract(epoch FROM coalesce(ended_at, clock_timestamp()) - began_at) * 1000 AS BIGINT) FROM search";
        let elapsed = self.db.query_row(elapsed, [], |row| row.get(0));
        let elapsed = elapsed.map_err(|error| self.sql(error))?;
        whole.tally.elapsed = Duration::from_millis(number(elapsed));
        Ok(whole)
    }

    /// The results of all processes, in the order of their URLs; those of a directory follow the directory.
    ///
    /// # Errors
    /// The database cannot be read, or `write` fails.
    pub fn results<E>(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, StateError> {
        let mut read = || {
            let query = "SELECT output FROM result ORDER BY key, number";
            let mut statement = self.db.prepare_cached(query)?;
            let mut rows = statement.stream([])?;
            while let Some(row) = rows.next()? {
                let output: Vec<u8> = row.get(0)?;
                if let Err(error) = write(&output) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        };
        read().map_err(|error: sql::Error| self.sql(error))
    }

    fn value<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, StateError> {
        serde_json::from_str(text).map_err(|_| self.error(Kind::Damaged(text.to_owned())))
    }

    /// Connects again after an error that may be over. Whether that succeeds shows the next attempt.
    pub(in crate::find) fn recover(&self) {
        // The next statement tells what is still wrong.
        let _ = self.db.reconnect();
    }
}

enum Outcome {
    Stored,
    /// The process is gone, or does not have these hosts.
    Lost,
    /// Another process has ended the search before, or has taken over the results.
    Late,
}

/// What a process sees of the whole search.
struct Seen {
    has_ended: bool,
    quit: bool,
    hosts: usize,
    /// This process has ended the search just now.
    ends: bool,
}

impl Member {
    /// The transaction that was sent then is stored, and the sign of life with it.
    fn renew(&self, sent_at: Instant) {
        let lease = self.sharing.lease;
        let lasts = lease.saturating_sub(MARGIN.min(lease / 6));
        self.tenure.renew(self.process, sent_at + lasts);
    }

    /// Gives a sign of life. All results were written by now. Returns whether the process has not gone.
    fn beat(&self, db: &Connection, tally: Option<&str>) -> sql::Result<bool> {
        let beat = "UPDATE process SET active = ?2, results = '', tally = coalesce(?4, tally), \
             lease_until = clock_timestamp() + CAST(?3 AS BIGINT) * interval '1 millisecond' \
             WHERE process = ?1 AND NOT gone";
        let lease = millis(self.sharing.lease);
        let row = params![self.process, self.active, lease, tally];
        Ok(db.prepare_cached(beat)?.execute(row)? > 0)
    }

    fn news(&self, db: &Connection, held: &[i64], reaps: bool) -> sql::Result<(News, Seen)> {
        if reaps {
            reap(db)?;
        }
        let seen = "SELECT ended_at IS NOT NULL, quit, (SELECT count(*) FROM host) FROM search";
        let mut seen = db.query_row(seen, [], |row| {
            let hosts: i64 = row.get(2)?;
            Ok(Seen {
                has_ended: row.get(0)?,
                quit: row.get(1)?,
                hosts: usize::try_from(hosts).unwrap_or(usize::MAX),
                ends: false,
            })
        })?;
        let mut news = News::default();
        if seen.has_ended {
            return Ok((news, seen));
        }
        // After `-quit`, the files that were found before are still downloaded.
        let left = match seen.quit {
            true => "EXISTS (SELECT 1 FROM wanted w WHERE w.host = h.host)",
            false => "(is_open OR EXISTS (SELECT 1 FROM inbox i WHERE i.host = h.host))",
        };
        let others = "SELECT count(*), count(*) FILTER (WHERE active = 0 AND process <> ?1), \
             CAST(coalesce(sum(active), 0) AS BIGINT) FROM process WHERE NOT gone";
        let (living, idle, active): (i64, i64, i64) =
            db.query_row(others, [self.process], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let living = living.max(1);
        let room = signed(MOST_ACTIVE as u64) - self.active;
        let mut free = 0;
        if room > 0 {
            let count = format!(
                "SELECT count(*) FROM (SELECT 1 FROM host h WHERE owner IS NULL AND {left} LIMIT ?1) few"
            );
            let most = room.saturating_mul(living);
            free = db.query_row(&count, [most], |row| row.get::<i64>(0))?;
            let share = (free / living + i64::from(free % living > 0)).clamp(1, room);
            // Hosts that it has already come from a transaction whose answer was lost.
            let claim = format!(
                "WITH c AS MATERIALIZED (SELECT host FROM host h WHERE (owner IS NULL OR owner = ?1) AND {left} \
                 AND NOT (host = ANY (CAST(CAST(?2 AS TEXT) AS BIGINT[]))) ORDER BY host LIMIT ?3 \
                 FOR NO KEY UPDATE SKIP LOCKED) \
                 UPDATE host h SET owner = ?1 FROM c WHERE h.host = c.host RETURNING h.host, h.origin"
            );
            let row = params![self.process, numbers(held), share];
            news.claimed = db
                .prepare_cached(&claim)?
                .query_all(row, |row| Ok((row.get(0)?, row.get(1)?)))?;
            free -= signed(news.claimed.len() as u64);
        }
        let inbox = "SELECT i.number, i.host, i.link FROM inbox i JOIN host h ON h.host = i.host \
             WHERE h.owner = ?1 ORDER BY i.number LIMIT ?2";
        news.links = db
            .prepare_cached(inbox)?
            .query_all([self.process, LINKS], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        if free <= 0 && idle > 0 {
            let share = active / living + i64::from(active % living > 0);
            news.spare = usize::try_from(self.active - share).unwrap_or(0);
        }
        let gone = "SELECT process, results FROM process WHERE gone AND results <> '' ORDER BY process LIMIT 1";
        let gone = db.query_row(gone, [], |row| Ok((row.get(0)?, row.get(1)?)));
        news.inherited = gone.optional()?;
        let is_idle = self.active == 0 && news.claimed.is_empty() && news.links.is_empty();
        if is_idle && news.inherited.is_none() {
            // Somebody may have performed `-quit` after the search was looked at.
            if let Some(quit) = end(db)? {
                (seen.ends, seen.has_ended, seen.quit) = (true, true, quit);
            }
        }
        Ok((news, seen))
    }

    /// Stores a transaction, once, however often its answer is lost.
    fn commit(
        &self,
        db: &Connection,
        staged: &Staged,
        results: &Results<'_>,
        tally: Option<&str>,
    ) -> sql::Result<Outcome> {
        let mut outcome = Outcome::Stored;
        db.begin_quick()?;
        let written = (|| {
            let next = "UPDATE process SET turn = ?2, results = ?3, tally = coalesce(?4, tally), \
                 lease_until = clock_timestamp() + CAST(?5 AS BIGINT) * interval '1 millisecond' \
                 WHERE process = ?1 AND NOT gone AND turn = ?2 - 1";
            let lease = millis(self.sharing.lease);
            let row = params![self.process, self.turn + 1, results.bytes, tally, lease];
            if db.prepare_cached(next)?.execute(row)? == 0 {
                let turn = "SELECT turn FROM process WHERE process = ?1 AND NOT gone";
                let turn = db.query_row(turn, [self.process], |row| row.get::<i64>(0));
                if turn.optional()? != Some(self.turn + 1) {
                    outcome = Outcome::Lost;
                }
                return Ok(false);
            }
            if let Some(gone) = self.heir_of {
                let take =
                    "UPDATE process SET results = '' WHERE process = ?1 AND gone AND results <> ''";
                if db.prepare_cached(take)?.execute([gone])? == 0 {
                    outcome = Outcome::Late;
                    return Ok(false);
                }
            }
            if self.says_quit {
                let quit = "UPDATE search SET quit = true WHERE NOT quit AND ended_at IS NULL";
                if db.prepare_cached(quit)?.execute([])? == 0 {
                    outcome = Outcome::Late;
                    return Ok(false);
                }
            }
            staged.write(db)?;
            let is_owner = self.write(db, staged, results)?;
            if !is_owner {
                outcome = Outcome::Lost;
            }
            Ok(is_owner)
        })();
        match written {
            Ok(true) => db.commit()?,
            Ok(false) => db.rollback()?,
            Err(error) => {
                // What is wrong was told already.
                let _ = db.rollback();
                return Err(error);
            }
        }
        Ok(outcome)
    }

    /// Writes what only a shared search has into the open transaction. Returns whether the process has all these hosts.
    fn write(&self, db: &Connection, staged: &Staged, results: &Results<'_>) -> sql::Result<bool> {
        for (host, state) in &staged.hosts {
            let update = "UPDATE host SET summit = ?3, is_open = ?4 WHERE host = ?1 AND owner = ?2";
            let row = params![host, self.process, state.summit, state.is_open];
            if db.prepare_cached(update)?.execute(row)? == 0 {
                return Ok(false);
            }
        }
        // In the order of the origins, so that no two processes wait for each other.
        let sent: Vec<_> = staged.sent.iter().collect();
        for links in sent.chunk_by(|a, b| a.0 == b.0) {
            let Some((origin, _)) = links.first() else {
                continue;
            };
            let insert = "INSERT INTO host (origin) VALUES (?1) ON CONFLICT DO NOTHING";
            db.prepare_cached(insert)?.execute([origin])?;
            let host = "SELECT host FROM host WHERE origin = ?1";
            let host: i64 = db.query_row(host, [origin], |row| row.get(0))?;
            insert_rows(db, "inbox (host, link)", links, |sent| vec![&host, &sent.1])?;
        }
        let received = "DELETE FROM inbox WHERE number = ANY (CAST(CAST(?1 AS TEXT) AS BIGINT[]))";
        if !staged.received.is_empty() {
            db.prepare_cached(received)?
                .execute([numbers(&staged.received)])?;
        }
        let entries: Vec<_> = results
            .entries
            .iter()
            .map(|entry| (key(&entry.url), &results.bytes[entry.range.clone()]))
            .collect();
        insert_rows(db, "result (key, output)", &entries, |entry| {
            vec![&entry.0, &entry.1]
        })?;
        Ok(true)
    }
}

/// Takes everything from processes whose lease has ended.
fn reap(db: &Connection) -> sql::Result<()> {
    let dead = "UPDATE process SET gone = true, active = 0 WHERE process IN (SELECT process FROM process \
         WHERE NOT gone AND lease_until < clock_timestamp() ORDER BY process FOR NO KEY UPDATE SKIP LOCKED) \
         RETURNING process";
    let dead: Vec<i64> = db.prepare_cached(dead)?.query_all([], |row| row.get(0))?;
    for process in dead {
        give_back(db, process)?;
    }
    Ok(())
}

fn give_back(db: &Connection, process: i64) -> sql::Result<()> {
    let free = "UPDATE host SET owner = NULL WHERE owner = ?1";
    db.prepare_cached(free)?.execute([process]).map(drop)
}

/// Ends the search, if nothing is left to do. Returns whether it was ended by `-quit`, if this process has ended it.
fn end(db: &Connection) -> sql::Result<Option<bool>> {
    let end = "UPDATE search SET ended_at = clock_timestamp() WHERE ended_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM process WHERE results <> '') AND CASE WHEN quit \
         THEN NOT EXISTS (SELECT 1 FROM wanted) AND NOT EXISTS (SELECT 1 FROM process WHERE NOT gone AND active > 0) \
         ELSE NOT EXISTS (SELECT 1 FROM inbox) AND NOT EXISTS (SELECT 1 FROM host WHERE is_open) END RETURNING quit";
    db.query_row(end, [], |row| row.get(0)).optional()
}

fn in_transaction<T>(db: &Connection, run: impl FnOnce() -> sql::Result<T>) -> sql::Result<T> {
    db.begin_quick()?;
    let done = run().and_then(|done| db.commit().map(|()| done));
    if done.is_err() {
        // What is wrong was told already.
        let _ = db.rollback();
    }
    done
}

/// What results are sorted by: the content of a directory follows directly after the directory.
fn key(url: &str) -> Vec<u8> {
    let byte = |byte| if byte == b'/' { 0 } else { byte };
    url.bytes().map(byte).collect()
}

fn numbers(numbers: &[i64]) -> String {
    array::numbers(numbers.iter().copied().map(Some))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
