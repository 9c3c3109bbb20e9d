//! `watch add` and `watch remove`: what is watched.

use serde_json::json;

use super::ConfigRows;
use super::list::{Given, each};
use super::target::{Chosen, chosen};
use super::verb::{Failure, Rows, Spec, Typed, Values, print};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::watch::control::{Command, Hand, Reply};
use crate::watch::hands::{counted, safe, shown_url};

/// `watch add`.
pub(super) struct Add;

impl Spec for Add {
    const NAME: &'static str = "add";
    const TITLE: &'static str = "watch add";
    const ABOUT: &'static str = "add URLs to a set, so that they are watched";
    const USAGE: &'static str = "[--set NAME] URL|FILE|-...";
    const DESCRIPTION: &'static str = "\
Adds URLs to a set. A FILE has one URL in each line; - is standard input. Blank lines and lines that begin with # are left out.
URLs that were never seen before are asked at once; those that are known keep their history. What is added so stays in the set when the source of the set is read again.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[
            Rows::<Self>::ADD_TO,
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
        let mut adding = Adding {
            hand: values.hand()?,
            set,
            batch: Vec::new(),
            bytes: 0,
            counts: AddCounts::default(),
            is_json: values.is_json,
        };
        each(&values.operands, &mut |given| adding.add(given))?;
        adding.send()?;
        adding.finish()
    }
}

/// URLs on their way to a set, some hundreds at a time.
struct Adding {
    hand: Hand,
    set: String,
    batch: Vec<Given>,
    bytes: usize,
    counts: AddCounts,
    is_json: bool,
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

impl Adding {
    fn add(&mut self, given: Given) -> Result<(), Failure> {
        self.bytes += given.url.len();
        self.batch.push(given);
        match self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            true => self.send(),
            false => Ok(()),
        }
    }

    fn send(&mut self) -> Result<(), Failure> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        let command = Command::Add {
            set: self.set.clone(),
            urls: batch.iter().map(|given| given.url.clone()).collect(),
        };
        let Reply::Added {
            new,
            known,
            gone,
            rejected,
        } = self.hand.send(&command)?
        else {
            return Err(self.hand.foreign("not what was added").into());
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
        if self.is_json {
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
            text += &format!("  {place}{}: {}\n", shortened(&given.url), safe(why));
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
                "url": shortened(&given.url),
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

/// A URL to show, of at most a line.
fn shortened(url: &str) -> String {
    let shown = shown_url(url);
    match shown.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
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

/// How many URLs one command adds, and how many bytes of them.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 128 * 1024;
/// How many rejected URLs are named.
const MOST_NAMED: usize = 100;
/// How many characters of a rejected URL are shown.
const LONGEST_SHOWN: usize = 200;
