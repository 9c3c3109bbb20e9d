//! Why a URL or a host is not asked right now: all reasons that hold, the most important first.

use jiff::Timestamp;

use super::words::{self, stamp_from};
use crate::control::{CoreStatus, HostWaits, LiveStatus, StoreCondition};
use crate::core::Reason;
use plain::text::rough_span;
use store::{HostDetail, HostHold, Lane, Pause, Scope, UrlDetail, WorkerInfo};
use verdict::Cause;
use verdict::life::time::between;

/// What is known besides a URL or a host.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    pub(crate) now: Timestamp,
    pub(crate) pauses: Vec<Pause>,
    /// The hold of the host.
    pub(crate) hold: Option<HostHold>,
    pub(crate) live: Live,
    /// The workers of the fleet; `None` if the store is a file.
    pub(crate) fleet: Option<Vec<WorkerInfo>>,
}

/// What the running service says.
#[derive(Clone, Debug)]
pub enum Live {
    /// No service runs.
    Absent,
    /// A service runs, but does not answer: why.
    Silent(String),
    /// The service says this.
    Running(Box<LiveStatus>),
}

impl Live {
    pub(crate) fn running(&self) -> Option<&LiveStatus> {
        match self {
            Self::Running(status) => Some(status),
            Self::Absent | Self::Silent(_) => None,
        }
    }

    /// What its core says, if it answers.
    pub fn core(&self) -> Option<&CoreStatus> {
        self.running()?.core.as_ref()
    }
}

/// A reason for which something is not asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WhyNot {
    /// One word for programs.
    pub(crate) name: &'static str,
    /// In words.
    pub(crate) text: String,
    /// Until when, if that is known.
    pub(crate) until: Option<Timestamp>,
}

/// Why this URL is not asked right now; empty: it is being asked, or is asked in a moment.
pub(crate) fn of_url(detail: &UrlDetail, around: &Around) -> Vec<WhyNot> {
    let url = &detail.url;
    if url.sets == 0 {
        let since = url
            .left_at
            .map(|at| format!(" since {}", stamp_from(around.now, at)));
        let since = since.unwrap_or_default();
        return vec![why(
            "in_no_set",
            format!("it is in no set{since}: 'watch add' adds it"),
        )];
    }
    let mut reasons = general(around);
    reasons.extend(paused(around, &detail.host.root));
    reasons.extend(held(around, matches!(url.due, Some((Lane::Held, _)))));
    let cause = url
        .answer
        .as_ref()
        .and_then(|answer| answer.verdict.cause());
    if cause == Some(Cause::PrivateAddress) {
        reasons.push(why(
            "private_address",
            "its host has a private address: limits.allow_private allows them",
        ));
    }
    match url.due {
        // Only in stores of versions that gave URLs up: now each URL has a next time, with a dead letter and without.
        None => reasons.push(why(
            "dead_letter",
            "an earlier version gave it up: 'watch recheck' or 'watch dlq replay' asks it again",
        )),
        Some((Lane::Held, _)) => {}
        Some((_, due)) if due > around.now => reasons.push(later(around.now, due)),
        Some((lane, _)) => reasons.extend(due_waits(around, lane)),
    }
    reasons
}

/// Why nothing of this host is asked right now.
pub(crate) fn of_host(detail: &HostDetail, around: &Around) -> Vec<WhyNot> {
    if detail.urls == 0 {
        return vec![why("in_no_set", "none of its URLs is in a set")];
    }
    let mut reasons = general(around);
    reasons.extend(paused(around, &detail.host.root));
    reasons.extend(held(around, true));
    let next = [detail.next, detail.next_doubt].into_iter().flatten().min();
    match next {
        None if detail.held < detail.urls => {
            reasons.push(why(
                "dead_letter",
                "an earlier version gave its URLs up: 'watch recheck --host' asks them again",
            ));
        }
        None => {}
        Some(due) if due > around.now => reasons.push(later(around.now, due)),
        Some(_) => {
            let is_doubt = detail.next.is_none_or(|next| next > around.now);
            let lane = if is_doubt { Lane::Doubt } else { Lane::Routine };
            reasons.extend(due_waits(around, lane));
        }
    }
    reasons
}

/// Why nothing at all is asked right now.
pub(crate) fn general(around: &Around) -> Vec<WhyNot> {
    let mut reasons = Vec::new();
    match &around.live {
        Live::Absent => {
            // Services that share a store are known by what is in the store.
            if around.fleet.as_ref().is_none_or(Vec::is_empty) {
                reasons.push(why(
                    "no_service",
                    "no service runs on this store: 'watch run' starts it",
                ));
            }
        }
        Live::Silent(error) => reasons.push(why("silent", words::safe(error))),
        Live::Running(live) => {
            match &live.store {
                StoreCondition::Ok => {}
                StoreCondition::Full => reasons.push(why(
                    "disk_full",
                    "the disk of the store is full: nothing is asked until there is room",
                )),
                StoreCondition::Failing(error) => reasons.push(why(
                    "store",
                    format!("the store cannot be written: {}", words::safe(error)),
                )),
            }
            match &live.core {
                None => reasons.push(why("silent", "the core of the service does not answer")),
                Some(core) => {
                    if core.is_draining {
                        reasons.push(why("draining", "the service is about to end"));
                    }
                    if let Some(guard) = &core.own_network {
                        let since = stamp_from(around.now, guard.since);
                        let text = format!(
                            "the own network fails since {since}: {}",
                            words::safe(&guard.why)
                        );
                        reasons.push(why("own_network", text));
                    }
                }
            }
        }
    }
    if let Some(pause) = around.pauses.iter().find(|pause| pause.what == Scope::All) {
        reasons.push(by_pause(around.now, pause, "everything is paused", ""));
    }
    reasons
}

fn paused(around: &Around, root: &str) -> Option<WhyNot> {
    let is_it = |pause: &&Pause| matches!(&pause.what, Scope::Host(host) if host == root);
    let pause = around.pauses.iter().find(is_it)?;
    let hint = format!(" --host {root}");
    Some(by_pause(around.now, pause, "the host is paused", &hint))
}

fn by_pause(now: Timestamp, pause: &Pause, what: &str, options: &str) -> WhyNot {
    let since = stamp_from(now, pause.since);
    let who = words::safe(&pause.who);
    why(
        "paused",
        format!("{what} since {since} by {who}: 'watch resume{options}' goes on"),
    )
}

fn held(around: &Around, is_concerned: bool) -> Option<WhyNot> {
    let hold = around.hold.as_ref().filter(|_| is_concerned)?;
    let since = stamp_from(around.now, hold.hold.since);
    let text = match hold.ending.is_some() {
        true => format!("the hold of the host since {since} is ending"),
        false => format!(
            "the host is held since {since}, because many of its URLs turned negative at once: only samples are asked; \
             'watch hold release' or 'watch hold confirm' ends the hold"
        ),
    };
    Some(why("held", text))
}

fn later(now: Timestamp, due: Timestamp) -> WhyNot {
    WhyNot {
        name: "not_due",
        text: format!("it is not due before {}", stamp_from(now, due)),
        until: Some(due),
    }
}

/// Why something that is due waits, as far as the running service says.
fn due_waits(around: &Around, lane: Lane) -> Vec<WhyNot> {
    let Some(core) = around.live.core() else {
        return Vec::new();
    };
    let Some(host) = &core.host else {
        return match lane {
            Lane::Doubt => vec![why(
                "cycle",
                "it is in doubt, and waits for the next cycle of reconciling",
            )],
            _ => vec![why(
                "others",
                "other hosts have waited longer, and are asked before",
            )],
        };
    };
    waits(around.now, host)
}

/// What the core says about a host.
pub(crate) fn waits(now: Timestamp, host: &HostWaits) -> Vec<WhyNot> {
    let told = host.waits.iter().map(|wait| {
        let until = wait.until.map(|until| match until > now {
            true => format!(", for {}", rough_span(between(now, until))),
            false => String::new(),
        });
        WhyNot {
            name: wait.reason.name(),
            text: format!("{}{}", in_words(wait.reason), until.unwrap_or_default()),
            until: wait.until,
        }
    });
    told.collect()
}

fn in_words(reason: Reason) -> &'static str {
    match reason {
        Reason::Paused => "an operator has paused it",
        Reason::Draining => "the service is about to end",
        Reason::StoreStopped => "the store cannot be written",
        Reason::OwnNetwork => "the own network fails",
        Reason::Ramp => {
            "the own network failed until lately, and requests are increased step by step"
        }
        Reason::Held => "the host is held, and only samples are asked",
        Reason::BackOff => "the host asked for fewer requests, or could not be reached",
        Reason::Rate => "the limit on the rate of requests to the host",
        Reason::Robots => "the delay that robots.txt asks for",
        Reason::Connections => "the host has as many requests in flight as it may have",
        Reason::Others => "as many requests are in flight as all hosts together may have",
        Reason::Cycle => "URLs in doubt wait for the next cycle of reconciling",
        Reason::NotDue => "nothing is due before",
    }
}

fn why(name: &'static str, text: impl Into<String>) -> WhyNot {
    WhyNot {
        name,
        text: text.into(),
        until: None,
    }
}

#[cfg(test)]
mod tests;
