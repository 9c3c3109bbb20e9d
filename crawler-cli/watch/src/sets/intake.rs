//! Gathers URLs in batches and passes them to the store, at the pace of the store.

use super::{ReadError, SetRead};
use crate::work::Tools;
use jobs::Cancel;
use store::{NewUrl, Origin, Reading, StoreError, Swept};

/// One reading of a source.
pub(super) struct ReadingInto<'t> {
    tools: &'t Tools,
    cancel: &'t Cancel,
    set: String,
    /// `None`: what is read is added, and nothing leaves the set.
    reading: Option<Reading>,
    intake: Intake,
}

/// URLs on the way to the store, and what became of those before.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    urls: Vec<NewUrl>,
    pub(crate) read: SetRead,
}

impl<'t> ReadingInto<'t> {
    pub(super) fn begin(
        set: &str,
        tools: &'t Tools,
        cancel: &'t Cancel,
    ) -> Result<Self, ReadError> {
        let (name, now) = (set.to_owned(), tools.now());
        let reading = tools.call(move |store| store.begin_reading(&name, now))?;
        Ok(Self {
            tools,
            cancel,
            set: set.to_owned(),
            reading: Some(reading),
            intake: Intake::default(),
        })
    }

    /// A reading that only adds.
    pub(super) fn adding(set: &str, tools: &'t Tools, cancel: &'t Cancel) -> Self {
        Self {
            tools,
            cancel,
            set: set.to_owned(),
            reading: None,
            intake: Intake::default(),
        }
    }

    /// Adds a URL of the source, and the line that has it.
    pub(super) fn add(&mut self, url: &str, line: Option<u32>) -> Result<(), ReadError> {
        self.intake.push(url, line);
        match self.intake.is_full() {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Notes an entry that is no URL.
    pub(super) fn refuse(&mut self, line: Option<u32>, why: &str) {
        self.intake.refuse(line, why);
    }

    /// Counts entries that are no URLs and are not named.
    pub(super) fn refuse_unnamed(&mut self, count: u64) {
        self.intake.read.invalid += count;
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        if self.cancel.is_set() {
            return Err(ReadError::Cancelled);
        }
        let Some(reading) = self.reading.clone() else {
            return Ok(self.intake.submit(&self.set, self.tools)?);
        };
        let urls = std::mem::take(&mut self.intake.urls);
        if urls.is_empty() {
            return Ok(());
        }
        let now = self.tools.now();
        let read = self
            .tools
            .call(move |store| store.read_urls(&reading, &urls, now))?;
        self.intake.read.new += read.new;
        Ok(())
    }

    /// The source was read completely: URLs that it has no more leave the set, unless these are too many.
    pub(super) fn complete(mut self, mark: String) -> Result<SetRead, ReadError> {
        self.flush()?;
        let Some(reading) = self.reading else {
            return Ok(self.intake.read);
        };
        let now = self.tools.now();
        let most_lost = self.tools.most_lost;
        let swept = self
            .tools
            .call(move |store| store.end_reading(reading.clone(), &mark, now, most_lost))?;
        let mut read = self.intake.read;
        match swept {
            Swept::Lost(lost) => {
                read.left = lost;
                sweep(self.tools, self.cancel)?;
            }
            Swept::Refused { lost, members } => {
                let text = format!("{lost} of {members} URLs are missing: nothing was removed");
                read.kept = Some(text);
            }
            Swept::Overtaken => read.kept = Some("another reading began later".to_owned()),
        }
        Ok(read)
    }

    /// The source was not read completely: what was read stays in the set, and nothing is removed.
    pub(super) fn abandon(mut self) -> Result<(), ReadError> {
        self.flush()
    }
}

/// Removes members that have left, also those of an earlier process that was interrupted.
pub(super) fn sweep(tools: &Tools, cancel: &Cancel) -> Result<(), ReadError> {
    loop {
        if cancel.is_set() {
            return Err(ReadError::Cancelled);
        }
        let now = tools.now();
        let is_more = tools.call(move |store| store.sweep(now, PIECE))?;
        if !is_more {
            return Ok(());
        }
    }
}

impl Intake {
    /// Adds a URL, which was read in this line.
    pub(crate) fn push(&mut self, url: &str, line: Option<u32>) {
        match NewUrl::parse(url) {
            Ok(url) => {
                self.read.urls += 1;
                self.urls.push(url);
            }
            Err(refused) => {
                let shown: String = url.chars().take(LONGEST_SHOWN).collect();
                self.refuse(line, &format!("{shown:?}: {refused}"));
            }
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.urls.len() >= BATCH
    }

    /// Adds the URLs to a set. What is in the set stays.
    pub(crate) fn submit(&mut self, set: &str, tools: &Tools) -> Result<(), StoreError> {
        let urls = std::mem::take(&mut self.urls);
        if urls.is_empty() {
            return Ok(());
        }
        let (set, now) = (set.to_owned(), tools.now());
        let submitted = tools.call(move |store| store.submit(&set, Origin::Hand, &urls, now))?;
        self.read.new += submitted.new;
        Ok(())
    }

    fn refuse(&mut self, line: Option<u32>, why: &str) {
        self.read.invalid += 1;
        if self.read.named.len() < MOST_NAMED {
            self.read.named.push(match line {
                Some(line) => format!("line {line}: {why}"),
                None => why.to_owned(),
            });
        }
    }
}

/// How many of the entries that are no URLs are named.
pub const MOST_NAMED: usize = 20;
/// URLs of one transaction.
const BATCH: usize = 512;
/// Members that leave a set in one transaction.
const PIECE: usize = 2_000;
/// How much of a wrong entry is shown, in characters.
const LONGEST_SHOWN: usize = 200;
