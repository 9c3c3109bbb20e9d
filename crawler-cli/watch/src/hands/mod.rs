//! What an operator reads: texts and JSON about the store and the service.
//!
//! [`Reader`] opens a store for reading, whether a service runs on it or not, and reads a little at a time: it never keeps
//! the service from writing. In texts, users of URLs are masked, and characters that a terminal acts on are escaped.

mod export;
mod holds;
mod letters;
mod schedules;
mod show;
pub(crate) mod status;
mod strip;
pub(crate) mod why;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use url::Url;

pub use export::{ExportError, ExportFormat, Exported};
pub use letters::done as letters_done;
pub use why::Live;
pub use words::{safe, short_url as shortened_url, url as shown_url};

use plain::files::beside;

use status::{GRACE, Late, MOST_COUNTED, Overview};
use store::{
    Cursor, Database, DeadLetter, DeadLetterFilter, DeadLetterId, FleetStore, HostDetail, HostHold,
    JobStore, Lanes, PauseStore, Place, ScheduleState, StoreError, StoreErrorKind, WatchStore,
    WatchedUrl, Which, WorkerInfo,
};
use why::Around;

/// What an operator reads, for people or for programs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Shape {
    /// Text, at most 80 columns wide if URLs are short.
    #[default]
    Text,
    /// JSON, in one line for each thing.
    Json,
}

/// Reads a store for an operator.
///
/// ```
/// use verdict::life::Profile;
/// use watch::control::{Command, Hand, Schedules};
/// use watch::hands::{Live, Reader, Shape};
/// use jiff::Timestamp;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("watch.db");
/// let mut hand = Hand::reach(&file, Profile::Default.rules(), Schedules::default())?;
/// hand.send(&Command::Add { set: "docs".into(), urls: vec!["https://example.com/".into()] })?;
/// drop(hand);
///
/// let mut reader = Reader::open(&file)?;
/// let page = reader.show("https://example.com/", Live::Absent, Timestamp::now(), Shape::Text)?;
/// assert!(page.is_some_and(|page| page.contains("NEW")));
/// assert_eq!(reader.show("https://example.com/other", Live::Absent, Timestamp::now(), Shape::Text)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    place: Place,
    /// The file system and the number of the file, if it is one.
    file: Option<(u64, u64)>,
    store: Database,
}

impl Reader {
    /// Opens the store at this place for reading.
    ///
    /// # Errors
    /// There is no such store, or it cannot be read.
    pub fn open(place: impl Into<Place>) -> Result<Self, StoreError> {
        let place = place.into();
        // SQLite does not say that there is no file.
        let number = |path| {
            number_of(path).map_err(|error| StoreError::new(path, StoreErrorKind::Io(error)))
        };
        Ok(Self {
            file: place.file().map(number).transpose()?,
            store: place.open_read_only()?,
            place,
        })
    }

    /// Whether the store still has this name: a backup that was restored takes the name, and nothing changes any more in
    /// what was opened.
    pub fn is_current(&self) -> bool {
        let number = self.place.file().map(number_of);
        number.is_none_or(|number| number.is_ok_and(|number| Some(number) == self.file))
    }

    /// Reads several things of the same moment of the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn at_once<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.store.begin_moment()?;
        let result = read(self);
        self.store.end_moment();
        result
    }

    /// The page about the whole store. `live` is what the running service says.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn status(
        &mut self,
        live: Live,
        now: Timestamp,
        shape: Shape,
    ) -> Result<String, StoreError> {
        let around = self.around(None, live, now)?;
        let overview = self.overview(now, MOST_COUNTED)?;
        Ok(match shape {
            Shape::Text => status::text(&overview, &around),
            Shape::Json => line(&status::json(&overview, &around)),
        })
    }

    /// Why a URL is not asked; `None` if the store does not know it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn status_of_url(
        &mut self,
        url: &str,
        live: Live,
        now: Timestamp,
        shape: Shape,
    ) -> Result<Option<String>, StoreError> {
        let Some(detail) = self.store.show(url)? else {
            return Ok(None);
        };
        let around = self.around(Some(&detail.host.root), live, now)?;
        Ok(Some(match shape {
            Shape::Text => status::url_text(&detail, &around),
            Shape::Json => line(&status::url_json(&detail, &around)),
        }))
    }

    /// Why a host is not asked; `None` if the store does not know it. `root` is the URL of its root.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn status_of_host(
        &mut self,
        root: &str,
        live: Live,
        now: Timestamp,
        shape: Shape,
    ) -> Result<Option<String>, StoreError> {
        let Some(detail) = self.host(root)? else {
            return Ok(None);
        };
        let around = self.around(Some(root), live, now)?;
        Ok(Some(match shape {
            Shape::Text => status::host_text(&detail, &around),
            Shape::Json => line(&status::host_json(&detail, &around)),
        }))
    }

    /// Everything about a URL; `None` if the store does not know it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn show(
        &mut self,
        url: &str,
        live: Live,
        now: Timestamp,
        shape: Shape,
    ) -> Result<Option<String>, StoreError> {
        let Some(detail) = self.store.show(url)? else {
            return Ok(None);
        };
        let around = self.around(Some(&detail.host.root), live, now)?;
        let letters = self.store.letters_of(detail.url.id)?;
        Ok(Some(match shape {
            Shape::Text => show::text(&detail, &letters, &around),
            Shape::Json => {
                let fields = export::fields(detail.url.clone());
                line(&show::json(fields, &detail, &letters, &around))
            }
        }))
    }

    /// The root URL of the host of a URL that the store knows.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn host_of(&mut self, url: &str) -> Result<Option<String>, StoreError> {
        Ok(self.store.show(url)?.map(|detail| detail.host.root))
    }

    /// The root URLs of the hosts that the store knows by this name: a URL, or a host name with or without a port, which
    /// may mean two hosts, one for each scheme.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn roots(&mut self, name: &str) -> Result<Vec<String>, StoreError> {
        let mut roots = Vec::new();
        for root in possible_roots(name) {
            if self.host(&root)?.is_some() {
                roots.push(root);
            }
        }
        Ok(roots)
    }

    /// The root URLs of the hosts that a name means: that of a URL, those of a [host](Self::roots), or those of a set, of
    /// which at most `most` are read.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn hosts_named(&mut self, name: &str, most: usize) -> Result<Vec<String>, StoreError> {
        if let Some(root) = self.host_of(name)? {
            return Ok(vec![root]);
        }
        let roots = self.roots(name)?;
        if !roots.is_empty() {
            return Ok(roots);
        }
        let mut roots = BTreeSet::new();
        let mut add = |url: WatchedUrl| {
            let root = Url::parse(&url.url).map(|url| root_of(&url));
            roots.extend(root.ok());
            match roots.len() < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        self.store
            .export(&Which::Set(name.to_owned()), None, &mut add)?;
        Ok(roots.into_iter().collect())
    }

    /// The line about a set; `None` if there is no such set.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn status_of_set(
        &mut self,
        name: &str,
        now: Timestamp,
        shape: Shape,
    ) -> Result<Option<String>, StoreError> {
        let mut sets = self.store.sets()?.into_iter();
        let set = sets.find(|set| set.name == name);
        Ok(set.map(|set| match shape {
            Shape::Text => status::set_text(&set, now),
            Shape::Json => line(&status::set_json(&set)),
        }))
    }

    /// Whether there is a set with this name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has_set(&mut self, name: &str) -> Result<bool, StoreError> {
        Ok(self.store.sets()?.iter().any(|set| set.name == name))
    }

    /// The holds, one in each line; empty if there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn holds(&mut self, now: Timestamp, shape: Shape) -> Result<String, StoreError> {
        let holds = self.store.holds()?;
        Ok(match shape {
            Shape::Text => holds::rows(&holds, now),
            Shape::Json => holds.iter().map(|hold| line(&holds::json(hold))).collect(),
        })
    }

    /// The schedules of these names, one in each line.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn schedules(
        &mut self,
        names: &[String],
        now: Timestamp,
        shape: Shape,
    ) -> Result<String, StoreError> {
        let states: Result<Vec<ScheduleState>, StoreError> =
            names.iter().map(|name| self.store.schedule(name)).collect();
        let states = states?;
        Ok(match shape {
            Shape::Text => schedules::rows(&states, now),
            Shape::Json => states
                .iter()
                .map(|state| line(&schedules::json(state)))
                .collect(),
        })
    }

    /// Writes the dead letters that pass the filter, one in each line, and tells how many.
    ///
    /// # Errors
    /// The store cannot be read, or the output cannot be written.
    pub fn letters(
        &mut self,
        filter: &DeadLetterFilter,
        now: Timestamp,
        shape: Shape,
        out: &mut dyn Write,
    ) -> Result<u64, ExportError> {
        let (mut after, mut count) = (DeadLetterId::START, 0);
        loop {
            let batch = self.some_letters(filter, after)?;
            let Some(last) = batch.last() else {
                out.flush()?;
                return Ok(count);
            };
            after = last.id;
            count += batch.len() as u64;
            let text: String = match shape {
                Shape::Text => letters::rows(&batch, now),
                Shape::Json => batch
                    .iter()
                    .map(|letter| line(&letters::json(letter)))
                    .collect(),
            };
            out.write_all(text.as_bytes())?;
        }
    }

    /// How many dead letters pass the filter.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn count_letters(&mut self, filter: &DeadLetterFilter) -> Result<u64, ExportError> {
        self.letters(filter, Timestamp::UNIX_EPOCH, Shape::Text, &mut io::sink())
    }

    /// A dead letter with its last exchange; `None` if there is none with this number.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn letter(
        &mut self,
        number: i64,
        now: Timestamp,
        shape: Shape,
    ) -> Result<Option<String>, StoreError> {
        let letter = self.store.dead_letter(DeadLetterId(number))?;
        Ok(letter.map(|letter| match shape {
            Shape::Text => letters::text(&letter, now),
            Shape::Json => line(&letters::json(&letter)),
        }))
    }

    /// Writes URLs in the order in which they were first submitted. A reader of the output that is slow slows nothing but
    /// the export.
    ///
    /// # Errors
    /// The store cannot be read, or the output cannot be written.
    pub fn export(
        &mut self,
        exported: &Exported,
        format: ExportFormat,
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        export::urls(&mut self.store, exported, format, out)
    }

    /// Writes the changes of state after a cursor, oldest first. `wrote` is told the cursor of the last one, as often as
    /// some are out.
    ///
    /// # Errors
    /// The store cannot be read, the output cannot be written, or `wrote` fails.
    pub fn export_changes(
        &mut self,
        after: Cursor,
        out: &mut dyn Write,
        wrote: &mut dyn FnMut(Cursor) -> io::Result<()>,
    ) -> Result<(), ExportError> {
        self.store.refresh()?;
        export::changes(&mut self.store, after, out, wrote)
    }

    /// The store, for reading alone.
    pub(crate) fn store(&mut self) -> &mut Database {
        &mut self.store
    }

    fn host(&mut self, root: &str) -> Result<Option<HostDetail>, StoreError> {
        WatchStore::host(&mut self.store, root)
    }

    /// The workers of the fleet; `None` if the store is a file.
    ///
    /// # Errors
    /// The store cannot be read.
    fn fleet(&mut self) -> Result<Option<Vec<WorkerInfo>>, StoreError> {
        let is_shared = self.place.file().is_none();
        is_shared.then(|| self.store.workers()).transpose()
    }

    /// The page about the workers of the fleet.
    ///
    /// # Errors
    /// The store cannot be read, or is a file, which has one service.
    pub fn fleet_status(&mut self, shape: Shape) -> Result<String, StoreError> {
        let Some(workers) = self.fleet()? else {
            let name = self.place.to_string();
            return Err(StoreError::new(Path::new(&name), StoreErrorKind::NoFleet));
        };
        Ok(match shape {
            Shape::Text => status::fleet_text(&workers),
            Shape::Json => workers
                .iter()
                .map(|worker| line(&status::worker_json(worker)))
                .collect(),
        })
    }

    /// What is known besides a URL or a host.
    pub(crate) fn around(
        &mut self,
        root: Option<&str>,
        live: Live,
        now: Timestamp,
    ) -> Result<Around, StoreError> {
        let is_of_root = |hold: &HostHold| Some(&*hold.root) == root;
        Ok(Around {
            now,
            pauses: self.store.pauses()?,
            hold: self.store.holds()?.into_iter().find(is_of_root),
            live,
            fleet: self.fleet()?,
        })
    }

    /// What the store says about everything. Late URLs are counted up to `most_late`.
    pub(crate) fn overview(
        &mut self,
        now: Timestamp,
        most_late: u64,
    ) -> Result<Overview, StoreError> {
        let store = &mut self.store;
        let mut jobs = Vec::new();
        for queue in store.queues()? {
            let counts = store.job_counts(&queue)?;
            jobs.push((queue, counts.waiting, counts.started));
        }
        let grace = now.checked_sub(GRACE).unwrap_or(now);
        let next = [
            store.next_due(Lanes::Schedule)?,
            store.next_due(Lanes::Doubt)?,
        ];
        let late = Late {
            urls: store.overdue(Lanes::Schedule, grace, most_late)?
                + store.overdue(Lanes::Doubt, grace, most_late)?,
            next: next.into_iter().flatten().min(),
        };
        let size = match self.place.file() {
            None => store.size()?,
            Some(path) => {
                let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
                size(path) + size(&beside(path, "-wal"))
            }
        };
        Ok(Overview {
            store: (self.place.to_string(), size),
            counts: store.watch_counts()?,
            sets: store.sets()?,
            holds: store.holds()?,
            cycle: store.cycles(1)?.pop(),
            schedules: store.schedules()?,
            letters: store.dead_letter_counts()?,
            jobs,
            late,
        })
    }

    fn some_letters(
        &mut self,
        filter: &DeadLetterFilter,
        after: DeadLetterId,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let mut letters = Vec::new();
        self.store.dead_letters(filter, after, &mut |letter| {
            letters.push(letter);
            match letters.len() < LETTERS {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(letters)
    }
}

/// The file system and the number of a file.
fn number_of(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// The root URLs that a name of a host may mean.
fn possible_roots(name: &str) -> Vec<String> {
    let urls = match name.contains("://") {
        true => vec![name.to_owned()],
        false => vec![format!("https://{name}/"), format!("http://{name}/")],
    };
    let roots = urls.iter().filter_map(|url| {
        let url = Url::parse(url).ok()?;
        url.has_host().then(|| root_of(&url))
    });
    roots.collect()
}

/// The root URL of the host of a URL: without user, path and query.
pub(crate) fn root_of(url: &Url) -> String {
    format!("{}/", url.origin().ascii_serialization())
}

/// A value in a line. What a terminal acts on is escaped.
pub(crate) fn line(value: &Value) -> String {
    // What a terminal acts on is escaped in strings as `\u` and four digits.
    let mut text = String::new();
    let plain = value.to_string();
    if plain.contains(|c: char| plain::terminal::acts_on_terminal(c)) {
        for c in plain.chars() {
            match plain::terminal::acts_on_terminal(c) {
                true => text += &format!("\\u{:04x}", u32::from(c)),
                false => text.push(c),
            }
        }
    } else {
        text = plain;
    }
    text.push('\n');
    text
}

/// How many dead letters are read before they are written.
const LETTERS: usize = 200;
