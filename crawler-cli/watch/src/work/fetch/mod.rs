//! Jobs that fetch a file for each line of a list.
//!
//! Each line is a job of its own, which is stored with a key before the first request: the line and the firing of the
//! schedule. So a killed process loses no line, and starts none twice. A file is asked for with the validators of the last
//! one, and a file that this firing has fetched already is not asked for again.

mod files;
mod list;

use std::path::PathBuf;
use std::time::Duration;

use listing::path::NOT_UNRESERVED;
use percent_encoding::utf8_percent_encode;
use serde::{Deserialize, Serialize};
use url::Url;

use super::failure::Failure;
use super::http::{Agent, HttpError, Reply, Validators, Wanted};
use crawl::redirect::NotFollowed;
use files::{Folder, Note, Paths, write_note};
use jobs::Cancel;

pub(super) use list::enqueue;

/// What a fetch job fetches.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Plan {
    /// The file with a name in each line.
    pub(super) list: PathBuf,
    /// The URL, with `{}` where the name goes.
    pub(super) template: String,
    /// The folder of the files.
    pub(super) into: PathBuf,
}

/// One line of the list, as it is stored in the queue.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Line {
    /// The line.
    pub(super) name: String,
    /// The firing of the schedule.
    pub(super) firing: String,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fetched {
    /// A new file.
    New,
    /// The server has no newer one.
    Unchanged,
    /// This firing has it already.
    Before,
}

impl Plan {
    /// The URL for a line. The line is percent-encoded, so that it stays within its part of the URL.
    fn url(&self, name: &str) -> Result<Url, Failure> {
        if matches!(name, "." | "..") {
            return Err(
                Failure::fail(format!("{name:?} is no part of a path")).because("invalid_url")
            );
        }
        let encoded = utf8_percent_encode(name, NOT_UNRESERVED).to_string();
        let text = self.template.replace("{}", &encoded);
        let invalid = |error| Failure::fail(format!("{text}: {error}")).because("invalid_url");
        Url::parse(&text).map_err(invalid)
    }

    /// Fetches the file of a line.
    pub(super) fn fetch(
        &self,
        line: &Line,
        agent: &mut Agent,
        cancel: &Cancel,
    ) -> Result<Fetched, Failure> {
        let url = self.url(&line.name)?;
        let folder = Folder::open(&self.into).map_err(|error| disk(&self.into, &error))?;
        let paths = folder.paths(&line.name);
        let known = folder
            .note(&paths)
            .map_err(|error| disk(&self.into, &error))?;
        if known
            .as_ref()
            .is_some_and(|note| note.firing == line.firing)
        {
            return Ok(Fetched::Before);
        }
        // Validators of another URL say nothing about this one.
        let known = known.filter(|note| note.url == url.as_str());
        let asked = Asked {
            plan: self,
            folder: &folder,
            paths: &paths,
            url: &url,
            firing: &line.firing,
        };
        asked.fetch(known, agent, cancel)
    }
}

/// A line that is asked for.
struct Asked<'a> {
    plan: &'a Plan,
    folder: &'a Folder,
    paths: &'a Paths,
    url: &'a Url,
    firing: &'a str,
}

impl Asked<'_> {
    fn fetch(
        &self,
        known: Option<Note>,
        agent: &mut Agent,
        cancel: &Cancel,
    ) -> Result<Fetched, Failure> {
        let none = Validators::default();
        let wanted = Wanted {
            url: self.url,
            known: known.as_ref().map_or(&none, |note| &note.validators),
            most_bytes: LARGEST,
            // The time limit of the job.
            longest: None,
        };
        let partial = self.folder.begin(self.paths);
        let mut partial = partial.map_err(|error| self.disk(&error))?;
        let reply = agent.get(wanted, cancel, &mut |bytes| partial.write(bytes));
        let reply = match reply {
            Ok(reply) if reply.status == 200 => {
                let note = self.note(reply);
                partial.finish(note).map_err(|error| self.disk(&error))?;
                return Ok(Fetched::New);
            }
            reply => reply,
        };
        partial.discard().map_err(|error| self.disk(&error))?;
        let reply = reply.map_err(|error| self.failure(error))?;
        match (reply.status, known) {
            (304, Some(note)) => {
                let firing = self.firing.to_owned();
                let note = Note { firing, ..note };
                let replaced = write_note(self.paths, &note);
                replaced.map_err(|error| self.disk(&error))?;
                Ok(Fetched::Unchanged)
            }
            _ => Err(self.refused(&reply)),
        }
    }

    fn note(&self, reply: Reply) -> Note {
        Note {
            url: self.url.as_str().to_owned(),
            validators: reply.validators,
            firing: self.firing.to_owned(),
            ..Note::default()
        }
    }

    /// What an answer means that is not the file.
    fn refused(&self, reply: &Reply) -> Failure {
        let status = reply.status;
        let why = format!("GET {}: status {status}", reply.url);
        let reason = format!("status_{status}");
        match (status, reply.retry_after) {
            // The host asks to wait, which says nothing about the file.
            (429, wait) => Failure::postpone(wait.unwrap_or(USUAL_WAIT), why),
            (503, Some(wait)) => Failure::postpone(wait, why),
            // Caches and mirrors say so for a while: it has to stay that way.
            (404 | 408 | 410 | 500.., _) => Failure::retry(why).because(reason),
            _ => Failure::fail(why).because(reason),
        }
    }

    fn failure(&self, error: HttpError) -> Failure {
        let why = format!("GET {}: {error}", self.url);
        match error {
            HttpError::Parked(wait) => Failure::postpone(wait, why),
            HttpError::Sink(error) => self.disk(&error),
            HttpError::NotFollowed(NotFollowed::NoLocation | NotFollowed::BadLocation(_)) => {
                Failure::fail(why)
            }
            _ => Failure::retry(why),
        }
    }

    fn disk(&self, error: &std::io::Error) -> Failure {
        disk(&self.plan.into, error)
    }
}

fn disk(folder: &std::path::Path, error: &std::io::Error) -> Failure {
    // A full disk says nothing about the file.
    Failure::postpone(DISK_WAIT, format!("{}: {error}", folder.display()))
}

/// Largest file in bytes.
const LARGEST: u64 = 4 << 30;
/// The wait after a 429 or 503 without a time.
const USUAL_WAIT: Duration = Duration::from_secs(5);
/// The wait after a file could not be written.
const DISK_WAIT: Duration = Duration::from_secs(30);
