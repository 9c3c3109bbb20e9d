//! Before the request for a file: its name is taken, what is on the disk is looked at, and its checksum is looked up.

use super::answer::Asked;
use super::checks::Lookup;
use super::disk::{Claim, Partial};
use super::place;
use super::store::Store;
use super::task::{Purpose, Step, Task};
use crate::find::cause::Cause;
use crate::find::fault::Fault;

/// The result of preparing a file.
pub(super) enum Prepared {
    Ask(Asked, Option<Box<Partial>>),
    /// The file exists, with this length in bytes.
    Kept(u64),
    /// The file was added before.
    Repeated,
    /// This list of checksums has to be read first.
    Needs(String),
    /// Something is in the way that may be deleted.
    Blocked,
    /// In a dry run: the file would be fetched.
    Planned,
}

pub(super) fn prepare(task: &mut Task, store: &mut Store) -> Result<Prepared, Cause> {
    if let Some(kind) = store.broken {
        return Err(store.failed(&task.name, kind.into()));
    }
    if task.purpose == Purpose::List {
        return Ok(Prepared::Ask(Asked::Whole, None));
    }
    if task.step == Step::Begin {
        match store
            .claims
            .claim(&store.to.root, &task.name, &task.wanted.url)
        {
            Claim::Granted => task.step = Step::Look,
            Claim::Repeated => return Ok(Prepared::Repeated),
            Claim::Taken => {
                let path = store.to.root.path_of(&task.name);
                return Err(Cause::Download(Fault::NameTaken(path)));
            }
        }
    }
    if task.step == Step::Look {
        match place::look(task, store)? {
            place::Looked::Go(step) => task.step = step,
            place::Looked::Kept(length) => return Ok(Prepared::Kept(length)),
            // What is in the way would be deleted.
            place::Looked::Blocked if store.rules.dry => return Ok(Prepared::Planned),
            place::Looked::Blocked => return Ok(Prepared::Blocked),
        }
    }
    let asked = match task.step {
        Step::Compare(found) if !store.rules.dry && place::has_validators(task, found) => {
            Asked::IfChanged
        }
        Step::Compare(_) => return Ok(Prepared::Ask(Asked::Head, None)),
        _ => Asked::Whole,
    };
    if store.rules.dry {
        return Ok(Prepared::Planned);
    }
    if store.rules.checksums && task.sum.is_none() {
        match store.checks.look_up(&task.wanted.url) {
            Lookup::Known(sum) => task.sum = Some(sum),
            Lookup::Ask(list) => return Ok(Prepared::Needs(list)),
            Lookup::Unread(list) => {
                let fault = Fault::Unchecked(format!("{list} (it has no SHA-256)"));
                return Err(Cause::Download(fault));
            }
        }
    }
    if asked == Asked::IfChanged || task.step == Step::FetchWhole {
        return Ok(Prepared::Ask(asked, None));
    }
    let partial = store.to.root.find_partial(&task.name, &task.wanted.url);
    let partial = partial.map_err(|error| store.not_opened(&task.name, error))?;
    let rest = partial.as_ref().and_then(|partial| partial.rest());
    let asked = match rest {
        Some((at, note)) => Asked::Rest(at, note.clone()),
        None => Asked::Whole,
    };
    Ok(Prepared::Ask(asked, partial.map(Box::new)))
}
