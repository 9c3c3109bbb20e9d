//! What the forms of the pages have done: their fields as commands, and what has become of a command in words.

use crate::store::Scope;
use crate::watch::admin::body::Form;
use crate::watch::admin::once::Said;
use crate::watch::control::{Command, HoldDeed, Letters, RefusalKind, Reply, ScheduleDeed, Target};
use crate::watch::hands::letters::done as letters_done;
use crate::watch::hands::words::{self, count, number, safe};

/// What a form has done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Deed {
    /// Field `url`.
    Recheck,
    /// Field `url`.
    Remove,
    /// Fields `set` and `urls`, one URL in each line.
    Add,
    /// Field `host`.
    Release,
    /// Field `host`.
    Confirm,
    /// Field `host`, or everything.
    Pause,
    /// Field `host`, or everything.
    Resume,
    /// Field `number` or `reason`.
    Replay,
    /// Field `number` or `reason`.
    Drop,
    /// Field `schedule`.
    Run,
    /// Field `schedule`.
    PauseSchedule,
    /// Field `schedule`.
    ResumeSchedule,
}

impl Deed {
    /// The deed of a form at `/do/` and this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(deed, _)| *deed)
    }

    pub(super) fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(deed, _)| *deed == self);
        found.map_or("", |(_, name)| name)
    }

    /// Whether somebody has to say so twice, since it cannot be undone.
    pub(super) fn is_asked(self) -> bool {
        matches!(self, Self::Remove | Self::Confirm | Self::Drop)
    }

    /// The words on its button.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Recheck => "Check now",
            Self::Remove => "Remove",
            Self::Add => "Add",
            Self::Release => "Release",
            Self::Confirm => "Confirm",
            Self::Pause | Self::PauseSchedule => "Pause",
            Self::Resume | Self::ResumeSchedule => "Resume",
            Self::Replay => "Replay",
            Self::Drop => "Drop",
            Self::Run => "Run now",
        }
    }

    /// Whether everything is concerned.
    pub(super) fn is_of_all(self, fields: &[(&str, &str)]) -> bool {
        matches!(self, Self::Pause | Self::Resume) && fields.iter().all(|(name, _)| *name == "back")
    }

    /// What happens, for one who is asked about it.
    pub(super) fn explained(self) -> &'static str {
        match self {
            Self::Remove => {
                "The URL is taken out of all its sets and is not checked any more. Its history is kept for the time that the \
                 configuration says. A set that is read from a file or a sitemap takes it in again."
            }
            Self::Confirm => {
                "The failures of the host are believed: the evidence that its URLs are gone goes on as if the host had not \
                 been held, and those that have enough of it are gone, and pruned, at once."
            }
            Self::Drop => "What is dropped cannot be replayed any more.",
            _ => "It is done once, now.",
        }
    }

    /// The command of a form, to be given after what the last reply said.
    ///
    /// # Errors
    /// A field is missing.
    pub(super) fn command(self, form: &Form, after: Option<i64>) -> Result<Command, String> {
        let field = |name: &str| match form.get(name).trim() {
            "" => Err(format!("the field {name} is empty")),
            value => Ok(value.to_owned()),
        };
        let scope = || match form.get("host") {
            "" => Scope::All,
            host => Scope::Host(host.to_owned()),
        };
        let schedule = |deed| field("schedule").map(|name| Command::Schedule { name, deed });
        let hold = |deed| field("host").map(|host| Command::Hold { host, deed });
        Ok(match self {
            Self::Recheck => Command::Recheck {
                which: Target::Urls(vec![field("url")?]),
                after,
            },
            Self::Remove => Command::Remove {
                set: None,
                which: Target::Urls(vec![field("url")?]),
                after,
            },
            Self::Add => Command::Add {
                set: field("set")?,
                urls: lines(&field("urls")?)
                    .map(|(_, url)| url.to_owned())
                    .collect(),
            },
            Self::Release => hold(HoldDeed::Release)?,
            Self::Confirm => hold(HoldDeed::Confirm)?,
            Self::Pause => Command::Pause { what: scope() },
            Self::Resume => Command::Resume { what: scope() },
            Self::Replay => Command::Replay {
                letters: letters(form)?,
                after,
            },
            Self::Drop => Command::Drop {
                letters: letters(form)?,
            },
            Self::Run => schedule(ScheduleDeed::Run)?,
            Self::PauseSchedule => schedule(ScheduleDeed::Pause)?,
            Self::ResumeSchedule => schedule(ScheduleDeed::Resume)?,
        })
    }

    /// What has become of the command. `changed` and `passed` are the rows of all its pieces.
    pub(super) fn outcome(self, form: &Form, reply: Reply, changed: u64, passed: u64) -> Said {
        let is_none = changed + passed == 0;
        match reply {
            Reply::Refused(refusal) if refusal.kind == RefusalKind::Store => said(
                false,
                format!("Nothing is known to be changed: {}", safe(&refusal.why)),
            ),
            Reply::Refused(refusal) => said(
                false,
                format!("Nothing was changed: {}", safe(&refusal.why)),
            ),
            Reply::Added {
                new,
                known,
                gone,
                rejected,
            } => added(form, (new, known, gone), &rejected),
            Reply::Count { .. } if is_none && self.is_of_rows() => {
                said(false, format!("Nothing was changed: {}", self.nothing()))
            }
            _ => said(true, self.done(form, changed, passed)),
        }
    }

    /// Whether something is wrong if it concerns no rows.
    fn is_of_rows(self) -> bool {
        matches!(
            self,
            Self::Recheck | Self::Remove | Self::Replay | Self::Drop
        )
    }

    fn nothing(self) -> &'static str {
        match self {
            Self::Recheck => "the URL is being checked, held, or in no set",
            Self::Remove => "the URL is in no set",
            _ => "there is no such dead letter any more",
        }
    }

    fn done(self, form: &Form, changed: u64, passed: u64) -> String {
        let url = words::url(form.get("url"));
        let schedule = safe(form.get("schedule"));
        let host = match form.get("host") {
            "" => "everything".to_owned(),
            host => words::url(host),
        };
        let urls = count(changed, "URL", "URLs");
        let letters = |what| {
            letters_done(changed, passed, what)
                .trim_end()
                .replace('\n', "; ")
        };
        match self {
            Self::Recheck => format!("{url} is checked next"),
            Self::Remove => format!("Removed {url} from all sets"),
            Self::Add => String::new(),
            Self::Release => format!("Released {host}: {urls}"),
            Self::Confirm => format!("Confirmed {host}: {urls}"),
            Self::Pause => format!("Paused {host}"),
            Self::Resume => format!("Resumed {host}"),
            Self::Replay => letters("Replayed"),
            Self::Drop => letters("Dropped"),
            Self::Run => format!("Schedule {schedule} runs within some seconds"),
            Self::PauseSchedule => format!("Paused schedule {schedule}"),
            Self::ResumeSchedule => format!("Resumed schedule {schedule}"),
        }
    }
}

/// Which dead letters: never all of them.
fn letters(form: &Form) -> Result<Letters, String> {
    let number = match form.get("number") {
        "" => None,
        text => Some(text.parse().map_err(|_| "the field number is no number")?),
    };
    let reason = Some(form.get("reason")).filter(|reason| !reason.is_empty());
    match number.is_some() || reason.is_some() {
        true => Ok(Letters {
            number,
            reason: reason.map(str::to_owned),
            ..Letters::default()
        }),
        false => Err("the fields number and reason are empty".to_owned()),
    }
}

/// What was added, with the first URLs that were not, by their lines.
fn added(form: &Form, (new, known, gone): (u64, u64, u64), rejected: &[(usize, String)]) -> Said {
    let set = safe(form.get("set").trim());
    let mut text = format!(
        "{} new in set {set}, {} known",
        count(new, "URL", "URLs"),
        number(known)
    );
    if gone > 0 {
        text += &format!(" ({} of them gone)", number(gone));
    }
    if !rejected.is_empty() {
        text += &format!(", {} refused", number(rejected.len() as u64));
    }
    let numbers: Vec<usize> = lines(form.get("urls")).map(|(number, _)| number).collect();
    for (index, why) in rejected.iter().take(NAMED) {
        let line = numbers.get(*index).copied().unwrap_or_default();
        text += &format!("; line {line}: {}", safe(why));
    }
    said(new + known > 0, text)
}

/// The lines that are not empty, with their numbers from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty());
    lines.map(|(index, line)| (index + 1, line))
}

pub(super) fn said(is_done: bool, text: String) -> Said {
    Said { is_done, text }
}

const NAMES: [(Deed, &str); 12] = [
    (Deed::Recheck, "check"),
    (Deed::Remove, "remove"),
    (Deed::Add, "add"),
    (Deed::Release, "release"),
    (Deed::Confirm, "confirm"),
    (Deed::Pause, "pause"),
    (Deed::Resume, "resume"),
    (Deed::Replay, "replay"),
    (Deed::Drop, "drop"),
    (Deed::Run, "run"),
    (Deed::PauseSchedule, "pause-schedule"),
    (Deed::ResumeSchedule, "resume-schedule"),
];
/// How many refused lines are named.
const NAMED: usize = 5;
