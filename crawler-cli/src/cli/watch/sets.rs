//! `watch add` and `watch remove`: what is watched.

use serde_json::json;

use super::list::{Given, each};
use super::target::{Chosen, Which, chosen};
use super::verb::{ConfigFile, Json, print};
use crate::cli::usage::Failure;
use plain::text;
use plain::values;
use watch::control::{Command, Hand, Reply};
use watch::hands::{safe, shortened_url};

/// Add URLs to a set, so that they are watched
///
/// Adds URLs to a set. A FILE has one URL in each line; - is standard input. Blank lines and lines that begin with # are
/// left out.
///
/// URLs that were never seen before are asked at once; those that are known keep their history. What is added so stays
/// in the set when the source of the set is read again.
///
/// A source that has lost too many of its URLs (guard.most_lost) takes none away, and 'watch status' says so:
/// --accept-shrink takes the smaller set.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch add https://www.example.com/
  crawler-cli find https://mirror.example/ -name '*.iso' | crawler-cli watch add --set isos -")]
pub(super) struct Add {
    /// URLs, files with a URL in each line, or - for standard input
    #[arg(value_name = "URL|FILE|-")]
    operands: Vec<String>,
    /// The set, which need not exist
    #[arg(long, value_name = "NAME", value_parser = values::name, default_value = Command::OWN_SET)]
    set: String,
    /// Believe a source that has lost too many URLs
    ///
    /// Believe the source of the set, which was refused because too many URLs were missing when it was read last: these
    /// URLs leave the set.
    #[arg(long = "accept-shrink", conflicts_with = "operands")]
    accepts_shrink: bool,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

impl Add {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.accepts_shrink {
            return self.accept();
        }
        // What keeps the store from being written is said before anything is read.
        drop(self.config.hand()?);
        let mut adding = Adding {
            verb: &self,
            read: Vec::new(),
            bytes: 0,
            counts: AddCounts::default(),
        };
        each(&self.operands, &mut |given| adding.add(given))?;
        adding.send()?;
        adding.finish()
    }

    /// Believes the source of a set that has lost too many URLs.
    fn accept(&self) -> Result<(), Failure> {
        let set = &self.set;
        let (lost, _) = self
            .config
            .hand()?
            .send_all(|after| Command::AcceptShrink {
                set: set.clone(),
                after,
            })?;
        let removed = text::count(lost, "URL", "URLs");
        let text = format!("set {}: removed {removed}", safe(set));
        self.json
            .say(&json!({ "set": set, "removed": lost }), &text)
    }
}

/// URLs on their way to a set. They are read first, some thousands at a time: an input that is slow keeps nobody else from
/// the store.
struct Adding<'a> {
    verb: &'a Add,
    read: Vec<Given>,
    bytes: usize,
    counts: AddCounts,
}

#[derive(Default)]
struct AddCounts {
    new: u64,
    known: u64,
    gone: u64,
    rejected: u64,
    /// The first ones, with reasons.
    named: Vec<(Given, String)>,
}

impl Adding<'_> {
    fn add(&mut self, given: Given) -> Result<(), Failure> {
        self.bytes += given.url.len();
        self.read.push(given);
        match self.read.len() >= MOST_READ || self.bytes >= MOST_BYTES {
            true => self.send(),
            false => Ok(()),
        }
    }

    /// Adds what was read.
    fn send(&mut self) -> Result<(), Failure> {
        let read = std::mem::take(&mut self.read);
        self.bytes = 0;
        if read.is_empty() {
            return Ok(());
        }
        let mut hand = self.verb.config.hand()?;
        let (mut rest, mut bytes) = (&*read, 0);
        while !rest.is_empty() {
            let fits = rest.iter().take(BATCH).take_while(|given| {
                bytes += given.url.len();
                bytes <= BATCH_BYTES
            });
            // A URL has less than a batch.
            let (batch, later) = rest.split_at(fits.count().max(1));
            self.send_batch(&mut hand, batch)?;
            (rest, bytes) = (later, 0);
        }
        Ok(())
    }

    fn send_batch(&mut self, hand: &mut Hand, batch: &[Given]) -> Result<(), Failure> {
        let command = Command::Add {
            set: self.verb.set.clone(),
            urls: batch.iter().map(|given| given.url.clone()).collect(),
        };
        let Reply::Added {
            new,
            known,
            gone,
            rejected,
        } = hand.send(&command)?
        else {
            return Err(hand.foreign("not what was added").into());
        };
        let counts = &mut self.counts;
        counts.new += new;
        counts.known += known;
        counts.gone += gone;
        counts.rejected += rejected.len() as u64;
        for (index, why) in rejected {
            if counts.named.len() < MOST_NAMED
                && let Some(given) = batch.get(index)
            {
                counts.named.push((given.clone(), why));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        let counts = self.counts;
        if self.verb.json.is_asked {
            print(&counts.json(&self.verb.set))?;
        } else {
            print(&counts.text(&self.verb.set))?;
        }
        match counts.rejected {
            0 => Ok(()),
            _ => Err(Failure::Said),
        }
    }
}

impl AddCounts {
    fn text(&self, set: &str) -> String {
        let gone = match self.gone {
            0 => String::new(),
            gone => format!(" ({} of them gone, and asked only now and then)", gone),
        };
        let mut text = format!(
            "set {}: {} new, {} known{gone}, {} rejected\n",
            safe(set),
            self.new,
            self.known,
            self.rejected
        );
        for (given, why) in &self.named {
            let place = given.place.as_ref();
            let place = place.map(|(file, line)| format!("{}:{line}: ", safe(file)));
            let place = place.unwrap_or_default();
            text += &format!("  {place}{}: {}\n", shortened_url(&given.url), safe(why));
        }
        let more = self.rejected - self.named.len() as u64;
        if more > 0 {
            text += &format!("  and {more} more\n");
        }
        text
    }

    fn json(&self, set: &str) -> String {
        let rejected = self.named.iter().map(|(given, why)| {
            let place = given.place.as_ref();
            json!({
                "url": shortened_url(&given.url),
                "source": place.map(|(file, _)| file),
                "line": place.map(|(_, line)| line),
                "why": why,
            })
        });
        let value = json!({
            "set": set,
            "new": self.new,
            "known": self.known,
            "gone": self.gone,
            "rejected": self.rejected,
            "first_rejected": rejected.collect::<serde_json::Value>(),
        });
        format!("{value}\n")
    }
}

/// Take URLs out of a set, or out of all
///
/// Takes URLs out of a set, or out of all sets without --set. A URL in no set is not asked any more; its history is kept
/// for the time that the configuration says (keep).
///
/// What the source of a set names comes back when the source is read again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawler-cli watch remove https://www.example.com/old    stop watching a URL
  crawler-cli watch remove --set docs --all               empty a set")]
pub(super) struct Remove {
    #[command(flatten)]
    which: Which,
    /// The set that they leave; without it, all sets
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    config: ConfigFile,
}

impl Remove {
    pub(super) fn run(self) -> Result<(), Failure> {
        let set = &self.set;
        if let Some(set) = set
            && !self.config.reader()?.has_set(set)?
        {
            return Err(Failure::Failed(format!("{set}: no such set")));
        }
        let Chosen { targets, is_whole } = chosen(&self.config, &self.which)?;
        let mut hand = self.config.hand()?;
        let mut removed = 0;
        for which in targets {
            let (count, _) = hand.send_all(|after| Command::Remove {
                set: set.clone(),
                which: which.clone(),
                after,
            })?;
            removed += count;
        }
        let text = format!("removed {}", text::count(removed, "URL", "URLs"));
        self.json.say(&json!({ "removed": removed }), &text)?;
        if is_whole { Ok(()) } else { Err(Failure::Said) }
    }
}

/// How many URLs are read before they are added, and how many bytes of them.
const MOST_READ: usize = 10_000;
const MOST_BYTES: usize = 4 << 20;
/// How many URLs one command adds, and how many bytes of them.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 128 * 1024;
/// How many rejected URLs are named.
const MOST_NAMED: usize = 100;
