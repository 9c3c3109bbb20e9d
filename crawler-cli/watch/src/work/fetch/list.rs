//! The list of a fetch job, and its lines as jobs.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::time::Duration;

use super::{Line, Plan};
use crate::work::Tools;
use crate::work::failure::Failure;
use jobs::Cancel;
use store::{Enqueued, NewJob};

/// Stores a job for each line of the list, unless this firing has stored the job before. Blank lines and lines that begin
/// with `#` are left out. Returns how many jobs are new.
pub(in crate::work) fn enqueue(
    plan: &Plan,
    queue: &str,
    firing: &str,
    max_attempts: u32,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<u64, Failure> {
    let failed = |error: io::Error| Failure::retry(format!("{}: {error}", plan.list.display()));
    let mut lines = BufReader::new(File::open(&plan.list).map_err(failed)?);
    let (mut batch, mut new, mut number) = (Vec::new(), 0, 0u64);
    loop {
        let mut line = Vec::new();
        let read = (&mut lines)
            .take(LONGEST as u64 + 1)
            .read_until(b'\n', &mut line);
        let is_end = read.map_err(failed)? == 0;
        number += 1;
        if line.len() > LONGEST {
            let text = format!(
                "{}:{number}: longer than {LONGEST} bytes",
                plan.list.display()
            );
            return Err(Failure::fail(text));
        }
        let name = String::from_utf8_lossy(&line);
        let name = name.trim_start_matches('\u{feff}').trim();
        if !name.is_empty() && !name.starts_with('#') {
            batch.push(job(name, queue, firing, max_attempts)?);
        }
        if batch.len() >= BATCH || (is_end && !batch.is_empty()) {
            new += stored(std::mem::take(&mut batch), tools)?;
        }
        if is_end {
            return Ok(new);
        }
        if cancel.is_set() {
            return Err(Failure::retry("stopped while the list was read"));
        }
    }
}

fn job(name: &str, queue: &str, firing: &str, max_attempts: u32) -> Result<NewJob, Failure> {
    let line = Line {
        name: name.to_owned(),
        firing: firing.to_owned(),
    };
    let payload = serde_json::to_vec(&line).map_err(|error| Failure::fail(error.to_string()))?;
    Ok(NewJob {
        max_attempts,
        // A firing whose list is read again after a kill finds the lines that are over.
        keep_key: KEPT,
        ..NewJob::new(queue, payload).with_key(format!("{name} {firing}"))
    })
}

fn stored(batch: Vec<NewJob>, tools: &Tools) -> Result<u64, Failure> {
    let now = tools.now();
    let enqueued = tools.call(move |store| store.enqueue(&batch, now));
    let enqueued = enqueued.map_err(|error| Failure::retry(error.to_string()))?;
    let new = enqueued
        .iter()
        .filter(|job| matches!(job, Enqueued::New(_)));
    Ok(new.count() as u64)
}

/// Longest line in bytes.
const LONGEST: usize = 4096;
/// Jobs of one transaction.
const BATCH: usize = 512;
/// How long lines that are over are known.
const KEPT: Duration = Duration::from_secs(2 * 86_400);
