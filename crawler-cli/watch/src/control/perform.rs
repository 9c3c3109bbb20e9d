//! What a command does to the store: the same function in the service and without one.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use jiff::Timestamp;

use super::message::{Command, HoldDeed, Refusal, RefusalKind, Reply, ScheduleDeed, Target};
use crate::config::ScheduleConfig;
use crate::hands::shown_url;
use crate::work::{firing_job, queue_of};
use jobs::Overlap;
use plain::text::nearest;
use plain::values;
use store::{
    Accepted, DeadLetterId, Engine, Guarded, HoldEnd, HostHold, HostId, NewUrl, Notice, Origin,
    Pause, ScheduleChange, Scope, StoreError, UrlId, Which,
};
use verdict::life::State;

/// Who gives a command, and when.
#[derive(Clone, Debug)]
pub struct By {
    /// The user, for the notices.
    pub who: String,
    /// When.
    pub now: Timestamp,
}

/// The schedules of the configuration, which commands can name.
#[derive(Clone, Debug, Default)]
pub struct Schedules(BTreeMap<String, Runs>);

/// How a schedule runs.
#[derive(Clone, Copy, Debug)]
struct Runs {
    /// How often each run is tried.
    attempts: NonZeroU32,
    /// What happens while the run before goes on.
    overlap: Overlap,
}

impl From<&[ScheduleConfig]> for Schedules {
    fn from(schedules: &[ScheduleConfig]) -> Self {
        let runs = |schedule: &ScheduleConfig| Runs {
            attempts: schedule.max_attempts,
            overlap: schedule.overlap,
        };
        let schedules = schedules.iter();
        Self(
            schedules
                .map(|schedule| (schedule.name.clone(), runs(schedule)))
                .collect(),
        )
    }
}

impl Schedules {
    /// How this schedule runs.
    ///
    /// # Errors
    /// The configuration has no such schedule; it has those that the text names.
    fn runs(&self, name: &str) -> Result<Runs, String> {
        if let Some(runs) = self.0.get(name) {
            return Ok(*runs);
        }
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let near = values::name(name).ok();
        let near = near.and_then(|name| nearest(&name, &known));
        let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        let known = match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        };
        Err(format!(
            "{name}: no such schedule in the configuration, which has: {known}{near}"
        ))
    }
}

/// What was performed.
#[derive(Clone, Debug)]
pub struct Performed {
    /// The answer.
    pub reply: Reply,
    /// The hold whose end has begun. Its URLs are still to be released: by the core of the service if one runs.
    pub hold_ended: Option<(HostId, HoldEnd)>,
}

impl From<Reply> for Performed {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            hold_ended: None,
        }
    }
}

/// Performs a command on the store. What may concern many rows is done in pieces: the reply says how to go on.
///
/// ```
/// use store::{Inline, StoreHandle, sqlite::Sqlite};
/// use watch::control::{By, Command, Reply, Schedules, perform};
/// use jiff::Timestamp;
///
/// let store = Inline::new(Sqlite::temporary()?);
/// let command = Command::Add {
///     set: "docs".into(),
///     urls: vec!["https://example.com/".into(), "mailto:me@example.com".into()],
/// };
/// let by = By { who: "me".into(), now: Timestamp::UNIX_EPOCH };
/// let schedules = Schedules::default();
/// let performed = store.call(move |engine| perform(engine, &command, &by, &schedules))?;
/// let Reply::Added { new, rejected, .. } = performed.reply else { panic!("it is added") };
/// assert_eq!(new, 1);
/// assert_eq!(rejected, [(1, "the scheme is not http or https".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The store cannot be read or written.
pub fn perform(
    engine: &mut dyn Engine,
    command: &Command,
    by: &By,
    schedules: &Schedules,
) -> Result<Performed, StoreError> {
    let reply = match command {
        Command::Status { .. } => refused(RefusalKind::Wrong, "no service runs on the store"),
        Command::Add { urls, .. } if urls.len() > Command::MOST_URLS => {
            let why = format!("more than {} URLs in one command", Command::MOST_URLS);
            refused(RefusalKind::Wrong, why)
        }
        Command::Add { set, urls } => add(engine, set, urls, by)?,
        Command::Remove { set, which, after } => {
            let from = set
                .as_deref()
                .map_or("all sets".to_owned(), |set| format!("set {set}"));
            let text = format!("removed {} from {from}", in_words(which));
            note_first(engine, "remove", text, *after, by)?;
            let Some(which) = self::which(which) else {
                return Ok(no_state(which).into());
            };
            let after = after.map(UrlId);
            let piece = engine.withdraw(set.as_deref(), &which, by.now, after, PIECE)?;
            count(piece.done, 0, piece.next.map(|url| url.0))
        }
        Command::AcceptShrink { set, after } => accept(engine, set, *after, by)?,
        Command::Recheck { which, after } => {
            note_first(
                engine,
                "recheck",
                format!("asked for {}", in_words(which)),
                *after,
                by,
            )?;
            let Some(which) = self::which(which) else {
                return Ok(no_state(which).into());
            };
            let piece = engine.make_due(&which, by.now, after.map(UrlId), PIECE)?;
            count(piece.done, 0, piece.next.map(|url| url.0))
        }
        Command::Hold { host, deed } => return hold(engine, host, *deed, by),
        Command::Pause { what } => {
            let pause = Pause {
                what: what.clone(),
                since: by.now,
                who: by.who.clone(),
            };
            if engine.pause(&pause)? {
                note(
                    engine,
                    "pause",
                    format!("paused {}", scope_in_words(what)),
                    by,
                )?;
            }
            Reply::Done
        }
        Command::Resume { what } => match engine.resume(what)? {
            true => {
                note(
                    engine,
                    "resume",
                    format!("resumed {}", scope_in_words(what)),
                    by,
                )?;
                Reply::Done
            }
            false => {
                let why = format!("{} is not paused", scope_in_words(what));
                refused(RefusalKind::NotFound, why)
            }
        },
        Command::Schedule { name, deed } => match schedules.runs(name) {
            Ok(runs) => schedule(engine, name, runs, *deed, by)?,
            Err(why) => refused(RefusalKind::NotFound, why),
        },
        Command::Replay { letters, after } => {
            note_first(
                engine,
                "replay",
                "replayed dead letters".to_owned(),
                *after,
                by,
            )?;
            let after = after.map_or(DeadLetterId::START, DeadLetterId);
            let replayed = engine.replay(&letters.filter(), after, PIECE, by.now)?;
            count(
                replayed.count,
                replayed.passed,
                replayed.next.map(|next| next.0),
            )
        }
        Command::Drop { letters } => {
            note(engine, "drop", "dropped dead letters".to_owned(), by)?;
            let dropped = engine.drop_dead_letters(&letters.filter(), PIECE)?;
            // What was dropped is not met again, so the same command goes on.
            count(dropped, 0, (dropped == PIECE as u64).then_some(0))
        }
    };
    Ok(reply.into())
}

/// Adds URLs to a set, in one transaction.
fn add(engine: &mut dyn Engine, set: &str, urls: &[String], by: &By) -> Result<Reply, StoreError> {
    if let Err(why) = values::name(set) {
        return Ok(refused(RefusalKind::Wrong, format!("set {set:?}: {why}")));
    }
    let (mut accepted, mut rejected) = (Vec::with_capacity(urls.len()), Vec::new());
    for (index, url) in urls.iter().enumerate() {
        match NewUrl::parse(url) {
            Ok(url) => accepted.push(url),
            Err(why) => rejected.push((index, why.to_string())),
        }
    }
    let submitted = match accepted.is_empty() {
        true => Default::default(),
        false => engine.submit(set, Origin::Hand, &accepted, by.now)?,
    };
    Ok(Reply::Added {
        new: submitted.new,
        known: submitted.known,
        gone: submitted.gone.len() as u64,
        rejected,
    })
}

/// Believes the last reading of a source, and takes out what it did not have, in pieces.
fn accept(
    engine: &mut dyn Engine,
    set: &str,
    after: Option<i64>,
    by: &By,
) -> Result<Reply, StoreError> {
    let mut lost = 0;
    if after.is_none() {
        match engine.accept(set, by.now)? {
            Accepted::Lost(urls) => lost = urls,
            Accepted::Later => {
                let why = format!("the source of the set {set} is being read: try again");
                return Ok(refused(RefusalKind::Conflict, why));
            }
            Accepted::Nothing => {
                let why = format!("no source of the set {set} was refused");
                return Ok(refused(RefusalKind::NotFound, why));
            }
        }
        let text = format!("believed the source of the set {set}, which lost {lost} URLs");
        note(engine, "accept", text, by)?;
    }
    let is_more = engine.sweep(by.now, PIECE)?;
    Ok(count(lost, 0, is_more.then_some(1)))
}

fn hold(
    engine: &mut dyn Engine,
    host: &str,
    deed: HoldDeed,
    by: &By,
) -> Result<Performed, StoreError> {
    let end = HoldEnd::from(deed);
    // The same command again goes on with an end that was cut short.
    let is_it = |hold: &HostHold| hold.root == host && hold.ending.is_none_or(|it| it == end);
    let Some(hold) = engine.holds()?.into_iter().find(is_it) else {
        return Ok(refused(RefusalKind::NotFound, format!("{host} is not held")).into());
    };
    let (id, held) = (hold.host, hold.held);
    // Whatever ends the process now, the next one goes on.
    engine.save_hold(&HostHold {
        ending: Some(end),
        ..hold
    })?;
    let mut stops = engine.stops(Guarded::Host(id))?;
    stops.end(by.now);
    engine.save_stops(Guarded::Host(id), &stops)?;
    let kind = match deed {
        HoldDeed::Release => "release",
        HoldDeed::Confirm => "confirm",
    };
    let text = format!("ended the hold of {host} ({kind}), {held} URLs");
    note_of(engine, kind, Some(id), text, by)?;
    Ok(Performed {
        reply: count(held, 0, None),
        hold_ended: Some((id, end)),
    })
}

fn schedule(
    engine: &mut dyn Engine,
    name: &str,
    runs: Runs,
    deed: ScheduleDeed,
    by: &By,
) -> Result<Reply, StoreError> {
    let (change, done) = match deed {
        ScheduleDeed::Pause => (paused(true), "paused"),
        ScheduleDeed::Resume => (paused(false), "resumed"),
        ScheduleDeed::Run => {
            if let Some(why) = overlaps(engine, name, runs.overlap)? {
                return Ok(refused(RefusalKind::Conflict, why));
            }
            // The workers of the schedule find the job, also if no service runs now.
            engine.enqueue(&[firing_job(name, by.now, runs.attempts)], by.now)?;
            (ScheduleChange::default(), "ran")
        }
    };
    engine.update_schedule(name, &change)?;
    note(engine, "schedule", format!("{done} schedule {name}"), by)?;
    Ok(Reply::Done)
}

/// Why a schedule is not run once more now, as its firings are left out: by the runs that have not ended.
fn overlaps(
    engine: &mut dyn Engine,
    name: &str,
    overlap: Overlap,
) -> Result<Option<String>, StoreError> {
    let counts = engine.job_counts(&queue_of(name))?;
    let most = match overlap {
        Overlap::Forbid => 1,
        Overlap::QueueOne => 2,
        Overlap::Allow => MOST_RUNS,
    };
    let count = counts.waiting + counts.started;
    let is_under_way = match counts.started {
        0 => "waits to run",
        _ => "runs",
    };
    Ok((count >= most).then(|| match count {
        1 => format!("{name} {is_under_way} already"),
        _ => format!(
            "{name} {is_under_way} already, and has {} more runs waiting",
            count - 1
        ),
    }))
}

fn paused(is_paused: bool) -> ScheduleChange {
    ScheduleChange {
        paused: Some(is_paused),
        ..ScheduleChange::default()
    }
}

/// `None`: there is no such state.
fn which(target: &Target) -> Option<Which> {
    Some(match target {
        Target::Urls(urls) => Which::Urls(urls.clone()),
        Target::Host(root) => Which::Host(root.clone()),
        Target::Set(name) => Which::Set(name.clone()),
        Target::State(name) => Which::State(*State::ALL.iter().find(|state| state.name() == name)?),
        Target::All => Which::Everything,
    })
}

fn no_state(target: &Target) -> Reply {
    refused(RefusalKind::Wrong, format!("no {}", in_words(target)))
}

fn in_words(target: &Target) -> String {
    match target {
        Target::Urls(urls) if urls.len() == 1 => shown_url(&urls[0]),
        Target::Urls(urls) => format!("{} URLs", urls.len()),
        Target::Host(root) => format!("the host {root}"),
        Target::Set(name) => format!("the set {name}"),
        Target::State(name) => format!("the state {name}"),
        Target::All => "everything".to_owned(),
    }
}

fn scope_in_words(scope: &Scope) -> String {
    match scope {
        Scope::All => "everything".to_owned(),
        Scope::Host(root) => format!("the host {root}"),
    }
}

/// Notes a command that is done in pieces, once.
fn note_first(
    engine: &mut dyn Engine,
    kind: &str,
    text: String,
    after: Option<i64>,
    by: &By,
) -> Result<(), StoreError> {
    match after {
        None => note(engine, kind, text, by),
        Some(_) => Ok(()),
    }
}

fn note(engine: &mut dyn Engine, kind: &str, text: String, by: &By) -> Result<(), StoreError> {
    note_of(engine, kind, None, text, by)
}

/// Notes a deed, perhaps of a host, and writes it into the log.
fn note_of(
    engine: &mut dyn Engine,
    kind: &str,
    host: Option<HostId>,
    text: String,
    by: &By,
) -> Result<(), StoreError> {
    tracing::info!(who = by.who, "{text}");
    let notice = Notice {
        at: by.now,
        kind: kind.to_owned(),
        host,
        who: Some(by.who.clone()),
        text,
    };
    engine.note(&notice).map(|_| ())
}

fn count(count: u64, passed: u64, after: Option<i64>) -> Reply {
    Reply::Count {
        count,
        passed,
        after,
    }
}

pub(super) fn refused(kind: RefusalKind, why: impl Into<String>) -> Reply {
    let why = why.into();
    Reply::Refused(Refusal { kind, why })
}

/// How many rows one command changes: a few hundredths of a second of the writer's time.
const PIECE: usize = 2_000;
/// How many runs of a schedule are started by hand at most before one of them has ended.
const MOST_RUNS: u64 = 100;
