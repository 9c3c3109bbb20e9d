//! Adds links.

use url::Position;

use super::{Answers, answered};
use crate::sql::{Connection, Optional as _, Row, Statement, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::keys::Lookup;
use crate::tables::memory::{Memory, take};
use crate::{Added, Completed, Demand, HostId, JudgedLink, Link, LinkId, Target, UrlId};
use verdict::Answer;

/// Adds links in a transaction.
pub(super) struct Adder<'c> {
    db: &'c Connection,
    memory: &'c mut Memory,
    run: i64,
    /// The number of links so far.
    count: usize,
    added: Added,
    lookup: Lookup<'c>,
    find: Statement<'c>,
    insert_url: Statement<'c>,
    insert_link: Statement<'c>,
    insert_place: Statement<'c>,
    insert_entry: Statement<'c>,
    first_spelling: Statement<'c>,
    extra_spelling: Statement<'c>,
    update_url: Statement<'c>,
    is_queued: Statement<'c>,
    answered: Statement<'c>,
    pub(super) answers: Answers<'c>,
}

/// A row of `url`.
#[derive(Clone, Copy)]
struct KnownUrl {
    id: i64,
    host: Option<i64>,
    /// Its first spelling in the last run that had it.
    link: i64,
    /// Its last entry in a queue.
    entry: i64,
    /// What was wanted in the last run that had it.
    demand: Demand,
}

impl<'c> Adder<'c> {
    pub(super) fn prepare(
        db: &'c Connection,
        memory: &'c mut Memory,
        run: i64,
    ) -> Result<Self, Failure> {
        let first_spelling = "SELECT coalesce(l.spelling, u.text) FROM link l JOIN url u ON u.url = l.url \
             WHERE l.link = ?1 AND l.url = ?2";
        Ok(Self {
            db,
            memory,
            run,
            count: 0,
            added: Added::default(),
            lookup: Lookup::prepare(db)?,
            find: db.prepare_cached("SELECT host, link, entry, demand, text FROM url WHERE url = ?1")?,
            insert_url: db.prepare_cached(
                "INSERT INTO url (url, host, link, entry, demand, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            insert_link: db.prepare_cached(
                "INSERT INTO link (link, url, extra, source, line, col, written, text, spelling) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            insert_place: db.prepare_cached(
                "INSERT INTO place (link, place, source, line, col, written, text) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?,
            insert_entry: db
                .prepare_cached("INSERT INTO queue (host, entry, url) VALUES (?1, ?2, ?3)")?,
            first_spelling: db.prepare_cached(first_spelling)?,
            extra_spelling: db.prepare_cached(
                "SELECT link FROM link WHERE extra = 1 AND url = ?1 AND spelling = ?2",
            )?,
            update_url: db.prepare_cached(
                "UPDATE url SET link = ?2, entry = ?3, demand = ?4 WHERE url = ?1",
            )?,
            is_queued: db.prepare_cached("SELECT 1 FROM queue WHERE host = ?1 AND entry = ?2")?,
            answered: db.prepare_cached("SELECT demand FROM answer WHERE url = ?1 AND run = ?2")?,
            answers: Answers::prepare(db, run)?,
        })
    }

    pub(super) fn finish(self) -> Result<Added, Failure> {
        Ok(self.added)
    }

    /// The number of the next event, which shares the transaction.
    pub(super) fn next_event(&mut self) -> &mut i64 {
        &mut self.memory.next.event
    }

    pub(super) fn add(&mut self, link: &Link) -> Result<(), Failure> {
        let is_local = matches!(link.target, Target::Local(..));
        let text = match &link.target {
            Target::Ask(url, _) => &url[..Position::AfterQuery],
            Target::Local(..) => &*link.spelling,
        };
        let (key, known) = self.find(text, is_local)?;
        let (url, spelling) = match known {
            None => self.add_url(link, key, text)?,
            Some(known) => self.add_to(link, text, known)?,
        };
        let met = match known {
            Some(_) if !is_local => answered(&mut self.answered, url, self.run)?,
            _ => None,
        };
        if is_local || met.is_some() {
            let is_met = match (&link.target, met) {
                (Target::Ask(_, demand), Some(met)) => demand.is_met_by(met),
                _ => true,
            };
            self.added.judged.push(JudgedLink {
                index: self.count,
                id: UrlId(url),
                link: LinkId(spelling),
                is_met,
            });
        }
        self.count += 1;
        Ok(())
    }

    /// A URL that was completed has left its queue. It is queued again if more is wanted from it than was met.
    pub(super) fn leave(&mut self, completed: &Completed) -> Result<(), Failure> {
        let Some(known) = self.read(completed.id.0)? else {
            return Ok(());
        };
        if known.demand.is_met_by(completed.demand) {
            return Ok(());
        }
        let entry = take(&mut self.memory.next.entry);
        self.added.again.push(completed.id);
        self.queue(completed.host.0, entry, known.id)?;
        let demand = codec::demand_number(known.demand);
        self.update_url
            .execute(params![known.id, known.link, entry, demand])?;
        Ok(())
    }

    /// Finds a URL by its text: its row, or the key for it.
    fn find(&mut self, text: &str, is_local: bool) -> Result<(i64, Option<KnownUrl>), Failure> {
        let (find, mut known) = (&mut self.find, None);
        let keys = &self.memory.keys;
        let (key, _) = keys.search(&mut self.lookup, text, |url| {
            let mut rows = find.query([url])?;
            let Some(row) = rows.next()? else {
                return Err(Failure::Damaged(format!("URL {url} is missing")));
            };
            let found = known_url(url, row)?;
            let is_it = codec::text(row, 4)? == Some(text) && found.host.is_none() == is_local;
            known = is_it.then_some(found);
            Ok(is_it)
        })?;
        Ok((key, known))
    }

    fn read(&mut self, url: i64) -> Result<Option<KnownUrl>, Failure> {
        let mut rows = self.find.query([url])?;
        let row = rows.next()?;
        row.map(|row| known_url(url, row)).transpose()
    }

    /// A URL that was never seen. Returns its number and that of its spelling.
    fn add_url(&mut self, link: &Link, key: i64, text: &str) -> Result<(i64, i64), Failure> {
        let next = &mut self.memory.next;
        let (url, spelling) = (take(&mut next.url), next.link);
        let (host, entry, demand) = match &link.target {
            Target::Ask(asked, demand) => {
                let entry = take(&mut next.entry);
                let hosts = &mut self.memory.hosts;
                let host = hosts.number(self.db, &mut next.host, asked)?;
                (Some(host), entry, *demand)
            }
            Target::Local(..) => (None, 0, Demand::default()),
        };
        let number = codec::demand_number(demand);
        self.insert_url
            .execute(params![url, host, spelling, entry, number, text])?;
        self.memory.keys.insert(key, url);
        self.add_spelling(link, url, text, false)?;
        match host {
            Some(host) => self.queue(host, entry, url)?,
            None => self.judge(link, url)?,
        }
        Ok((url, spelling))
    }

    /// A URL that is known. Returns its number and that of the spelling.
    fn add_to(&mut self, link: &Link, text: &str, known: KnownUrl) -> Result<(i64, i64), Failure> {
        let first: Option<String> = self
            .first_spelling
            .query_row([known.link, known.id], |row| row.get(0))
            .optional()?;
        if first.as_deref() == Some(&*link.spelling) {
            self.add_place(link, known.link)?;
            self.join(link, known, known.link)?;
            return Ok((known.id, known.link));
        }
        let spelling = &*link.spelling;
        let extra: Option<i64> = self
            .extra_spelling
            .query_row(params![known.id, spelling], |row| row.get(0))
            .optional()?;
        let number = match extra {
            Some(number) => {
                self.add_place(link, number)?;
                number
            }
            None => self.add_spelling(link, known.id, text, first.is_some())?,
        };
        let first_link = first.map_or(number, |_| known.link);
        self.join(link, known, first_link)?;
        Ok((known.id, number))
    }

    /// A link to a URL that is known: of this run, or of an earlier one. If it wants more than the other links of the run,
    /// the URL is asked for that, too.
    fn join(&mut self, link: &Link, known: KnownUrl, first_link: i64) -> Result<(), Failure> {
        let is_in_run = known.link >= self.memory.first_link;
        let (Target::Ask(_, demand), Some(host)) = (&link.target, known.host) else {
            if is_in_run {
                return Ok(());
            }
            self.update_url.execute([known.id, first_link, 0, 0])?;
            return self.judge(link, known.id);
        };
        let wanted = if is_in_run {
            known.demand.join(*demand)
        } else {
            *demand
        };
        if is_in_run && first_link == known.link && wanted == known.demand {
            return Ok(());
        }
        let mut entry = known.entry;
        // If it is being asked, its completion sees what is wanted.
        if !(is_in_run && self.is_queued.exists([host, entry])?) {
            let met = answered(&mut self.answered, known.id, self.run)?;
            if !met.is_some_and(|met| wanted.is_met_by(met)) {
                entry = take(&mut self.memory.next.entry);
                self.queue(host, entry, known.id)?;
            }
        }
        let demand = codec::demand_number(wanted);
        self.update_url
            .execute([known.id, first_link, entry, demand])?;
        Ok(())
    }

    /// What is known without asking.
    fn judge(&mut self, link: &Link, url: i64) -> Result<(), Failure> {
        let Target::Local(verdict, detail) = &link.target else {
            return Ok(());
        };
        let answer = Answer {
            detail: detail.clone(),
            ..Answer::of(*verdict)
        };
        self.answers.store(url, Demand::default(), &answer, None)
    }

    fn queue(&mut self, host: i64, entry: i64, url: i64) -> Result<(), Failure> {
        self.insert_entry.execute([host, entry, url])?;
        if let Some(host) = self.memory.hosts.announce(self.db, host)? {
            self.added.new_hosts.push(host);
        }
        let queued = &mut self.added.queued;
        match queued.last_mut() {
            Some((HostId(last), count)) if *last == host => *count += 1,
            _ => queued.push((HostId(host), 1)),
        }
        Ok(())
    }

    /// A spelling that is new in the run, with its first place.
    fn add_spelling(
        &mut self,
        link: &Link,
        url: i64,
        text: &str,
        is_extra: bool,
    ) -> Result<i64, Failure> {
        let source = self.source(link)?;
        let number = take(&mut self.memory.next.link);
        // The index of extra spellings needs all of them.
        let spelling = (is_extra || *link.spelling != *text).then_some(&*link.spelling);
        let at = &link.reference;
        self.insert_link.execute(params![
            number, url, is_extra, source, at.line, at.column, at.written, at.text, spelling
        ])?;
        Ok(number)
    }

    fn add_place(&mut self, link: &Link, spelling: i64) -> Result<(), Failure> {
        let source = self.source(link)?;
        let place = take(&mut self.memory.next.link);
        let at = &link.reference;
        self.insert_place.execute(params![
            spelling, place, source, at.line, at.column, at.written, at.text
        ])?;
        Ok(())
    }

    fn source(&mut self, link: &Link) -> Result<i64, Failure> {
        let Memory { sources, next, .. } = &mut *self.memory;
        sources.number(
            self.db,
            &mut next.source,
            &link.reference.source,
            link.is_in_page,
        )
    }
}

fn known_url(id: i64, row: Row<'_>) -> Result<KnownUrl, Failure> {
    Ok(KnownUrl {
        id,
        host: row.get(0)?,
        link: row.get(1)?,
        entry: row.get(2)?,
        demand: codec::demand(row.get(3)?)?,
    })
}
