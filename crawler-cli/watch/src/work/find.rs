//! Jobs that search: what `find` finds joins a set while the search runs.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::time::SystemTime;

use url::Url;

use super::failure::Failure;
use super::tools::{FindReader, Tools};
use crate::sets::Intake;
use find::expr::Parser;
use find::{Ending, Event, Find};
use jobs::Cancel;

/// Reads the words of an expression, as [`Parser`] knows them. Other options of `find` are refused.
///
/// # Errors
/// A word that is not part of an expression, or the words together are none.
pub(super) fn expression(find: Find, args: &[String]) -> Result<Find, String> {
    let mut parser = Parser::new(SystemTime::now());
    let mut words = args.iter().map(OsString::from);
    while let Some(word) = words.next() {
        let is_taken = parser.take(&word, &mut words);
        if !is_taken.map_err(|error| error.to_string())? {
            return Err(format!("{}: not a test of find", word.display()));
        }
    }
    let expression = parser.finish().map_err(|error| error.to_string())?;
    Ok(find.expression(expression))
}

/// Reads the arguments of a job.
///
/// # Errors
/// The words are wrong, or do something else than to find URLs.
pub fn read(reader: FindReader, find: Find, args: &[String]) -> Result<Find, String> {
    let find = reader(find, args)?;
    match find.writes_elsewhere() {
        true => Err("a find job reports URLs: no -exec, -ok, -fprint or -fls".to_owned()),
        false => Ok(find),
    }
}

/// Searches, and adds what is found to the set. The search waits while the store is busy.
pub(super) fn run(
    start: &Url,
    args: &[String],
    into_set: &str,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<String, Failure> {
    let http = tools.http();
    let mut base = Find::new();
    base.settings.host.rate = http.rate();
    base.settings.transfer = http.transfer().clone();
    let find = tools.read_find(base, args).map_err(Failure::fail)?;
    let find = find.start(start.as_str());
    let find = find.map_err(|error| Failure::fail(error.to_string()))?;
    let mut intake = Intake::default();
    let mut failure = None;
    let mut unread = None;
    let summary = find.run(|event| {
        match event {
            Event::Found(found) => {
                intake.push(found.url, None);
                if intake.is_full()
                    && let Err(error) = intake.submit(into_set, tools)
                {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
            }
            Event::Unread(url) => {
                unread.get_or_insert_with(|| format!("{}: {}", url.url, url.cause));
            }
            Event::Failed(error) => {
                unread.get_or_insert_with(|| error.to_string());
            }
            Event::Progress(_) if cancel.is_set() => return ControlFlow::Break(()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    // What was found is kept also if the search failed.
    let failure = failure.or_else(|| intake.submit(into_set, tools).err());
    if let Some(error) = failure {
        return Err(Failure::retry(error.to_string()));
    }
    if cancel.is_set() {
        return Err(Failure::retry("the search was stopped"));
    }
    let read = intake.read;
    match (summary.ending, unread) {
        (Ending::Stopped, cause) => Err(Failure::fail(
            cause.unwrap_or_else(|| "the search ended early".to_owned()),
        )),
        (_, Some(cause)) => {
            let (urls, count) = (read.urls, summary.counts.unread);
            let text = format!("{urls} URLs found, but {count} could not be read, first {cause}");
            Err(Failure::fail(text))
        }
        (_, None) => Ok(format!("{} URLs found, {} new", read.urls, read.new)),
    }
}
