//! Sets in sitemaps, over HTTP. The sitemaps of an index are followed.
//!
//! The mark of a set remembers each sitemap: its `ETag` and `Last-Modified`, and the hash of its body. If all of them are
//! the same, nothing is written. If one differs, all are read again, because only a complete reading can remove URLs.

use std::collections::{HashSet, VecDeque};
use std::io::Read as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::intake::{MOST_NAMED, ReadingInto};
use super::{ReadError, SetRead};
use crate::work::{Agent, HttpError, Reply, Tools, Validators, Wanted};
use check::links::{Document, Format, Kind, Link, Visitor, XmlError};
use check::sources::{Unpacked, is_packed};
use jobs::Cancel;
use listing::markup::encoding::charset;

/// Reads a sitemap, or an index and its sitemaps, into a set, unless nothing has changed.
pub(super) fn read(
    set: &str,
    url: &Url,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<SetRead, ReadError> {
    let mut agent = tools.http().agent()?;
    let known = tools.mark_of(set)?.and_then(|mark| Mark::parse(&mark, url));
    if let Some(known) = known
        && known.is_current(&mut agent, cancel)?
    {
        return Ok(SetRead::unchanged());
    }
    walk(
        url,
        ReadingInto::begin(set, tools, cancel)?,
        &mut agent,
        cancel,
    )
}

/// Adds what a sitemap has to a set that has other sources, too: nothing leaves the set.
pub(super) fn add(
    set: &str,
    url: &Url,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<SetRead, ReadError> {
    let mut agent = tools.http().agent()?;
    walk(
        url,
        ReadingInto::adding(set, tools, cancel),
        &mut agent,
        cancel,
    )
}

fn walk(
    url: &Url,
    reading: ReadingInto<'_>,
    agent: &mut Agent,
    cancel: &Cancel,
) -> Result<SetRead, ReadError> {
    let mut walk = Walk {
        reading,
        agent,
        cancel,
        waiting: VecDeque::from([(url.clone(), 0)]),
        seen: HashSet::from([url.clone()]),
        known: Vec::new(),
        fault: None,
    };
    walk.all()?;
    let Walk {
        reading,
        known,
        fault,
        ..
    } = walk;
    match fault {
        None => reading.complete(Mark { sitemaps: known }.to_text()),
        Some(fault) => {
            reading.abandon()?;
            Err(ReadError::Source(fault))
        }
    }
}

/// The way through an index and its sitemaps.
struct Walk<'w> {
    reading: ReadingInto<'w>,
    agent: &'w mut Agent,
    cancel: &'w Cancel,
    /// Sitemaps to be read, with the number of indexes above them.
    waiting: VecDeque<(Url, u32)>,
    seen: HashSet<Url>,
    known: Vec<Known>,
    /// The first fault: the reading is not complete.
    fault: Option<String>,
}

impl Walk<'_> {
    fn all(&mut self) -> Result<(), ReadError> {
        while let Some((url, depth)) = self.waiting.pop_front() {
            match self.one(&url, depth) {
                Ok(()) => {}
                // The other sitemaps are read nevertheless: their new URLs are members.
                Err(ReadError::Source(fault)) => self.note(format!("{url}: {fault}")),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn one(&mut self, url: &Url, depth: u32) -> Result<(), ReadError> {
        let mut body = Vec::new();
        let wanted = Wanted {
            url,
            known: &Validators::default(),
            most_bytes: LARGEST,
            longest: Some(LONGEST),
        };
        let reply = patiently(self.cancel, || {
            body.clear();
            self.agent.get(wanted, self.cancel, &mut |bytes| {
                body.extend_from_slice(bytes);
                Ok(())
            })
        })?;
        if reply.status != 200 {
            return Err(ReadError::Source(format!("status {}", reply.status)));
        }
        let parsed =
            Sitemap::parse(url, &body, reply.content_type.as_deref()).map_err(ReadError::Source)?;
        if self.known.len() < MOST_KNOWN {
            self.known.push(Known {
                url: url.as_str().to_owned(),
                validators: reply.validators,
                hash: xxh3_64(&body),
            });
        }
        drop(body);
        self.take(parsed, depth)
    }

    fn take(&mut self, sitemap: Sitemap<'_>, depth: u32) -> Result<(), ReadError> {
        for fault in sitemap.faults {
            self.reading.refuse(Some(fault.line), &fault.to_string());
        }
        for (line, page) in sitemap.pages {
            self.reading.add(&page, Some(line))?;
        }
        for child in sitemap.children {
            if self.seen.contains(&child) {
                continue;
            }
            if depth >= DEEPEST {
                self.note(format!("{child}: an index below {DEEPEST} indexes"));
                continue;
            }
            if self.seen.len() >= MOST_SITEMAPS {
                self.note(format!("more than {MOST_SITEMAPS} sitemaps"));
                break;
            }
            self.seen.insert(child.clone());
            self.waiting.push_back((child, depth + 1));
        }
        Ok(())
    }

    fn note(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}

/// What one sitemap lists.
struct Sitemap<'u> {
    url: &'u Url,
    /// Lines and URLs of pages.
    pages: Vec<(u32, String)>,
    /// Other sitemaps.
    children: Vec<Url>,
    /// What was lost.
    faults: Vec<XmlError>,
}

impl<'u> Sitemap<'u> {
    /// Reads XML, or plain text with a URL in each line, both also in gzip. The error says why the rest cannot be read.
    fn parse(url: &'u Url, body: &[u8], content_type: Option<&str>) -> Result<Self, String> {
        let mut unpacked = Vec::new();
        let body = match is_packed(body) {
            true => {
                let read = Unpacked::new(body)
                    .take(LARGEST + 1)
                    .read_to_end(&mut unpacked);
                read.map_err(|error| format!("the gzip data is damaged: {error}"))?;
                &unpacked
            }
            false => body,
        };
        if body.len() as u64 > LARGEST {
            return Err("the sitemap is too large".to_owned());
        }
        let mut sitemap = Self {
            url,
            pages: Vec::new(),
            children: Vec::new(),
            faults: Vec::new(),
        };
        if memchr::memchr(b'<', &body[..body.len().min(BEGINNING)]).is_some() {
            let charset = content_type.and_then(charset);
            let read = Document::new(Format::Xml, body, charset).read(&mut sitemap);
            read.map_err(|error| error.to_string())?;
        } else {
            let lines = String::from_utf8_lossy(body);
            let lines = lines.trim_start_matches('\u{feff}').lines().map(str::trim);
            let lines = (1..).zip(lines).filter(|(_, line)| !line.is_empty());
            sitemap
                .pages
                .extend(lines.map(|(line, url)| (line, url.to_owned())));
        }
        match sitemap.pages.is_empty() && sitemap.children.is_empty() {
            true => Err("no sitemap: it lists nothing".to_owned()),
            false => Ok(sitemap),
        }
    }
}

impl Visitor for Sitemap<'_> {
    fn link(&mut self, link: Link<'_>) {
        let url = self.url.join(&link.url);
        match (link.kind, url) {
            (Kind::Embedded, _) => {}
            (Kind::Sitemap, Ok(url)) => self.children.push(url),
            (_, Ok(url)) => self.pages.push((link.line, url.into())),
            // It is refused by its own words.
            (_, Err(_)) => self.pages.push((link.line, link.url.into_owned())),
        }
    }

    fn fault(&mut self, fault: XmlError) {
        if self.faults.len() < MOST_NAMED {
            self.faults.push(fault);
        }
    }
}

/// What a complete reading has met.
#[derive(Debug, Deserialize, Serialize)]
struct Mark {
    sitemaps: Vec<Known>,
}

/// The version of a sitemap.
#[derive(Debug, Deserialize, Serialize)]
struct Known {
    url: String,
    #[serde(flatten)]
    validators: Validators,
    hash: u64,
}

impl Mark {
    /// The mark of the last reading, if it was of this source.
    fn parse(text: &str, source: &Url) -> Option<Self> {
        let text = text.strip_prefix(PREFIX)?;
        let mark: Self = serde_json::from_str(text).ok()?;
        let is_of_source = mark.sitemaps.first()?.url == source.as_str();
        is_of_source.then_some(mark)
    }

    /// Empty if there are too many sitemaps to be remembered: then the next reading reads them all.
    fn to_text(&self) -> String {
        match serde_json::to_string(self) {
            Ok(text) if self.sitemaps.len() < MOST_KNOWN => format!("{PREFIX}{text}"),
            _ => String::new(),
        }
    }

    /// Whether no sitemap has changed.
    fn is_current(&self, agent: &mut Agent, cancel: &Cancel) -> Result<bool, ReadError> {
        for known in &self.sitemaps {
            let Ok(url) = Url::parse(&known.url) else {
                return Ok(false);
            };
            let wanted = Wanted {
                url: &url,
                known: &known.validators,
                most_bytes: LARGEST,
                longest: Some(LONGEST),
            };
            let mut hash = Xxh3::new();
            let reply = patiently(cancel, || {
                hash.reset();
                agent.get(wanted, cancel, &mut |bytes| {
                    hash.update(bytes);
                    Ok(())
                })
            });
            match reply {
                Ok(reply) if reply.status == 304 && !known.validators.is_empty() => {}
                Ok(reply) if reply.status == 200 && hash.digest() == known.hash => {}
                Ok(_) => return Ok(false),
                // The reading says what is wrong.
                Err(ReadError::Source(_)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Asks up to [`ATTEMPTS`] times if a failure may be temporary.
fn patiently(
    cancel: &Cancel,
    mut ask: impl FnMut() -> Result<Reply, HttpError>,
) -> Result<Reply, ReadError> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        let reply = ask();
        let wait = match &reply {
            Ok(reply) if matches!(reply.status, 408 | 429 | 500..) => {
                reply.retry_after.unwrap_or_default().max(pause)
            }
            Err(HttpError::Transfer(_)) => pause,
            Err(HttpError::Parked(wait)) => (*wait).max(pause),
            _ => return Ok(reply?),
        };
        if attempt == ATTEMPTS || wait > PATIENCE {
            return Ok(reply?);
        }
        attempt += 1;
        pause *= 2;
        if cancel.wait(wait) {
            return Err(ReadError::Cancelled);
        }
    }
}

const PREFIX: &str = "sitemaps ";
/// Largest sitemap in bytes, as the protocol says.
const LARGEST: u64 = 50 << 20;
/// XML has a tag within so many bytes.
const BEGINNING: usize = 1024;
/// Longest time for one sitemap: a server that sends a byte now and then must not keep the others waiting for ever.
const LONGEST: Duration = Duration::from_secs(900);
/// Most sitemaps of a set: as many as an index may have.
const MOST_SITEMAPS: usize = 50_000;
/// Most sitemaps whose versions are remembered.
const MOST_KNOWN: usize = 2_000;
/// Indexes above a sitemap. The protocol allows one.
const DEEPEST: u32 = 2;
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest wait that a server may ask for.
const PATIENCE: Duration = Duration::from_secs(60);
