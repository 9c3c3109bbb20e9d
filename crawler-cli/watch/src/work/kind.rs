//! Runs the job of a schedule.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::fetch::{self, Plan};
use super::tools::Tools;
use super::{check, find, planner};
use crate::config::{JobConfig, ScheduleConfig, SetConfig, Source};
use crate::sets::{self, ReadError};
use jobs::Cancel;
use jobs::Overlap;

/// A firing of a schedule, as its job is stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Firing {
    /// The time that the schedule says, or the time at which an operator started the job.
    pub(super) at: Timestamp,
    /// The list of a fetch job is in its queue: the job ends when the queue is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_listed: bool,
}

/// A schedule, and what its job needs to know about sets.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) schedule: ScheduleConfig,
    /// The source of the set of a `check` job.
    source: Source,
    /// Whether a `sitemap` job is the only source of its set: then URLs that the sitemap has no more leave the set.
    is_only_source: bool,
}

/// How a run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Ended {
    /// The job is done: what it did.
    Done(String),
    /// The lines of a fetch job are in their queue.
    Listed(String),
}

impl Firing {
    pub(super) fn payload(&self) -> Vec<u8> {
        // A time and a flag are always JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn read(payload: &[u8]) -> Result<Self, Failure> {
        let read = serde_json::from_slice(payload);
        read.map_err(|error| Failure::fail(format!("not a firing: {error}")))
    }
}

impl Kind {
    pub(super) fn new(
        schedule: ScheduleConfig,
        schedules: &[ScheduleConfig],
        sets: &[SetConfig],
    ) -> Self {
        let source_of = |name: &str| {
            let set = sets.iter().find(|set| set.name == name);
            set.map_or(Source::Submitted, |set| set.source.clone())
        };
        let (source, is_only_source) = match &schedule.job {
            JobConfig::Check { set } => (source_of(set), false),
            JobConfig::Sitemap { into_set, .. } => {
                let others = schedules.iter().filter(|other| other.name != schedule.name);
                let mut others = others.filter(|other| match &other.job {
                    JobConfig::Sitemap { into_set: set, .. } => set == into_set,
                    _ => false,
                });
                let has_own = source_of(into_set) != Source::Submitted;
                (Source::Submitted, !has_own && others.next().is_none())
            }
            _ => (Source::Submitted, false),
        };
        Self {
            schedule,
            source,
            is_only_source,
        }
    }

    /// How many runs may go on at a time.
    pub(super) fn runs_at_a_time(&self) -> usize {
        match self.schedule.overlap {
            Overlap::Allow => MOST_RUNS,
            Overlap::Forbid | Overlap::QueueOne => 1,
        }
    }

    /// Whether the queues of this schedule fit another configuration of it.
    pub(super) fn queues_like(&self, other: &Self) -> bool {
        self.runs_at_a_time() == other.runs_at_a_time()
            && self.schedule.timeout == other.schedule.timeout
            && std::mem::discriminant(&self.schedule.job)
                == std::mem::discriminant(&other.schedule.job)
    }

    /// What a fetch job fetches.
    pub(super) fn plan(&self) -> Option<Plan> {
        match &self.schedule.job {
            JobConfig::Fetch {
                list,
                template,
                into,
            } => Some(Plan {
                list: list.clone(),
                template: template.clone(),
                into: into.clone(),
            }),
            _ => None,
        }
    }

    /// Runs the job once.
    pub(super) fn run(
        &self,
        firing: Firing,
        tools: &Arc<Tools>,
        cancel: &Cancel,
    ) -> Result<Ended, Failure> {
        match &self.schedule.job {
            JobConfig::Check { set } => check::run(set, &self.source, tools, cancel),
            JobConfig::Find {
                start,
                args,
                into_set,
            } => find::run(start, args, into_set, tools, cancel),
            JobConfig::Sitemap { url, into_set } => {
                let read = match self.is_only_source {
                    true => {
                        let source = Source::Sitemap(url.clone());
                        sets::read_set(into_set, &source, tools, cancel)
                    }
                    false => sets::add_sitemap(into_set, url, tools, cancel),
                };
                match read {
                    Ok(read) if read.kept.is_some() => Err(Failure::fail(read.to_string())),
                    Ok(read) => Ok(read.to_string()),
                    Err(ReadError::Source(error)) => Err(Failure::retry(format!("{url}: {error}"))),
                    Err(error) => Err(Failure::retry(error.to_string())),
                }
            }
            JobConfig::Fetch { .. } => return self.list(firing, tools, cancel),
        }
        .map(Ended::Done)
    }

    fn list(&self, firing: Firing, tools: &Arc<Tools>, cancel: &Cancel) -> Result<Ended, Failure> {
        let Some(plan) = self.plan() else {
            return Err(Failure::fail("not a fetch job"));
        };
        let queue = planner::lines_of(&self.schedule.name);
        let attempts = self.schedule.max_attempts.get();
        let firing = firing.at.to_string();
        let count = fetch::enqueue(&plan, &queue, &firing, attempts, tools, cancel)?;
        Ok(Ended::Listed(format!("{count} lines are to be fetched")))
    }
}

/// Runs of a schedule at a time, if they may overlap.
const MOST_RUNS: usize = 4;
