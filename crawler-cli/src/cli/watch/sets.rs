//! `watch add` and `watch remove`: what is watched.

use serde_json::json;

use super::ConfigRows;
use super::list::{Given, each};
use super::target::{Chosen, chosen};
use super::verb::{Failure, Rows, Spec, Typed, Values, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::watch::control::{Command, Hand, Reply};
use crate::watch::hands::{counted, safe, shortened_url};

/// `watch add`.
pub(super) struct Add;

impl Spec for Add {
    const NAME: &'static str = "add";
    const TITLE: &'static str = "watch add";
    const ABOUT: &'static str = "add URLs to a set, so that they are watched";
    const USAGE: &'static str = "[--set NAME] URL|FILE|-...\n--set NAME --accept-shrink";
    const DESCRIPTION: &'static str = "\
Adds URLs to a set. A FILE has one URL in each line; - is standard input. Blank lines and lines that begin with # are left out.
URLs that were never seen before are asked at once; those that are known keep their history. What is added so stays in the set when the source of the set is read again.\nA source that has lost too many of its URLs (guard.most_lost) takes none away, and 'watch status' says so: --accept-shrink takes the smaller set.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[
            Rows::<Self>::ADD_TO,
            Rows::<Self>::ACCEPT,
            Rows::<Self>::JSON,
            ConfigRows::ALL,
            HelpRows::ALL,
        ],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        (
            "crawler-cli watch add https://www.example.com/",
            "Watch a URL",
        ),
        (
            "crawler-cli find https://mirror.example/ -name '*.iso' | crawler-cli watch add --set isos -",
            "Watch what a search has found",
        ),
    ];
    const STATUSES: &'static [(&'static str, &'static str)] = &[
        ("0", "All URLs were added, or were members already."),
        ("1", "A URL was rejected, or a file or the store failed."),
        ("2", "Wrong usage, or a configuration that is wrong."),
    ];
    const TAKES_FILES: bool = true;

    fn run(values: Values) -> Result<(), Failure> {
        let set = values
            .set
            .clone()
            .unwrap_or_else(|| Command::OWN_SET.to_owned());
        if values.accepts_shrink {
            return accept(&values, set);
        }
        // What keeps the store from being written is said before anything is read.
        drop(values.hand()?);
        let mut adding = Adding {
            values: &values,
            set,
            read: Vec::new(),
            bytes: 0,
            counts: AddCounts::default(),
        };
        each(&values.operands, &mut |given| adding.add(given))?;
        adding.send()?;
        adding.finish()
    }
}

/// Believes the source of a set that has lost too many URLs.
fn accept(values: &Values, set: String) -> Result<(), Failure> {
    if let Some(operand) = values.operands.first() {
        return Err(usage(format!("{operand}: --accept-shrink adds nothing")));
    }
    let (lost, _) = values.hand()?.send_all(|after| Command::AcceptShrink {
        set: set.clone(),
        after,
    })?;
    match values.is_json {
        true => print(&format!("{}\n", json!({ "set": set, "removed": lost }))),
        false => print(&format!(
            "set {}: removed {}\n",
            safe(&set),
            counted(lost, "URL", "URLs")
        )),
    }
}

/// URLs on their way to a set. They are read first, some thousands at a time: an input that is slow keeps nobody else from
/// the store.
struct Adding<'a> {
    values: &'a Values,
    set: String,
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
        let mut hand = self.values.hand()?;
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
            set: self.set.clone(),
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
        if self.values.is_json {
            print(&counts.json(&self.set))?;
        } else {
            print(&counts.text(&self.set))?;
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

/// `watch remove`.
pub(super) struct Remove;

impl Spec for Remove {
    const NAME: &'static str = "remove";
    const TITLE: &'static str = "watch remove";
    const ABOUT: &'static str = "take URLs out of a set, or out of all";
    const USAGE: &'static str = "[--set NAME] URL|FILE|-... | --host HOST | --state STATE | --all";
    const DESCRIPTION: &'static str = "\
Takes URLs out of a set, or out of all sets without --set. A URL in no set is not asked any more; its history is kept for the time that the configuration says (keep).
What the source of a set names comes back when the source is read again.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[
            Rows::<Self>::OUT_OF,
            Rows::<Self>::HOST,
            Rows::<Self>::STATE,
            Rows::<Self>::ALL,
            Rows::<Self>::JSON,
            ConfigRows::ALL,
            HelpRows::ALL,
        ],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        (
            "crawler-cli watch remove https://www.example.com/old",
            "Stop watching a URL",
        ),
        ("crawler-cli watch remove --set docs --all", "Empty a set"),
    ];
    const TAKES_FILES: bool = true;

    fn run(mut values: Values) -> Result<(), Failure> {
        let set = values.set.take();
        if let Some(set) = &set
            && !values.reader()?.has_set(set)?
        {
            return Err(Failure::Failed(format!("{set}: no such set")));
        }
        let Chosen { targets, is_whole } = chosen(&values)?;
        let mut hand = values.hand()?;
        let mut removed = 0;
        for which in targets {
            let (count, _) = hand.send_all(|after| Command::Remove {
                set: set.clone(),
                which: which.clone(),
                after,
            })?;
            removed += count;
        }
        match values.is_json {
            true => print(&format!("{}\n", json!({ "removed": removed })))?,
            false => print(&format!("removed {}\n", counted(removed, "URL", "URLs")))?,
        }
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
