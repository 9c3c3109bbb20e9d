//! Every alert that is due, and none that is not.

use std::collections::HashMap;

use store::{HostId, Notice};

use crate::draw::{DAY, HOUR, MINUTE};
use crate::oracle::LEAST_BUDGET;
use crate::plan::{Deed, Plan, Span, Truth};

/// The notices of a run, with the time at which each could be read.
#[derive(Default)]
pub(crate) struct Alerts {
    /// The guard of the own network went on, or off.
    own: Vec<(i64, bool)>,
    /// The hold of a host began, or ended.
    holds: HashMap<HostId, Vec<(i64, bool)>>,
    /// URLs wait for the budget.
    budget: u32,
}

impl Alerts {
    pub(crate) fn note(&mut self, now: i64, notice: &Notice) {
        match (&*notice.kind, notice.host) {
            ("guard", _) => self.own.push((now, notice.text.contains("fails"))),
            ("hold", Some(host)) => {
                let begins = !notice.text.contains("ends");
                self.holds.entry(host).or_default().push((now, begins));
            }
            ("budget", _) => self.budget += 1,
            _ => {}
        }
    }

    /// What is wrong with the notices of the whole run. `hosts`: the hosts of the plan in the store.
    pub(crate) fn judge(&self, plan: &Plan, hosts: &[Option<HostId>]) -> Vec<String> {
        let mut faults = Vec::new();
        self.judge_own(plan, &mut faults);
        for (host, id) in hosts.iter().enumerate() {
            let holds = id.and_then(|id| self.holds.get(&id));
            judge_holds(
                plan,
                host,
                holds.map_or(&[][..], Vec::as_slice),
                &mut faults,
            );
        }
        self.judge_budget(plan, &mut faults);
        faults
    }

    /// One notice when the guard goes on while the network is cut, and one when it goes off soon after.
    fn judge_own(&self, plan: &Plan, faults: &mut Vec<String>) {
        let known = plan.hosts.iter();
        let known = known.filter(|host| host.name_ends.is_none() && host.throttles.is_none());
        if known.count() < ENOUGH_HOSTS || !plan.is_calm(plan.cut.with_margin(HOUR)) {
            return;
        }
        let near = plan.cut.with_margin(HOUR);
        let near: Vec<_> = self
            .own
            .iter()
            .filter(|(at, _)| near.contains(*at))
            .collect();
        let is_right = match *near {
            [&(on, true), &(off, false)] => {
                plan.cut.contains(on) && (plan.cut.to..plan.cut.to + SOON).contains(&off)
            }
            _ => false,
        };
        if !is_right {
            let (from, to) = (plan.cut.from, plan.cut.to);
            faults.push(format!(
                "the own network was cut from {from} to {to}; its alerts: {near:?}"
            ));
        }
    }

    /// More URLs than the budget of a day has room for, gone at the same time, make one wait.
    fn judge_budget(&self, plan: &Plan, faults: &mut Vec<String>) {
        if self.budget > 0 && plan.most_prunes() as i64 <= LEAST_BUDGET {
            faults.push("no reason for an alert of the budget".to_owned());
        }
        let Some(host) = plan.removed else {
            return;
        };
        let urls = &plan.urls[plan.hosts[host].urls.clone()];
        let gone = urls.iter().filter(|url| url.truth == Truth::Gone410);
        // A host whose spans are long has nothing to prune yet.
        let is_soon = plan.longest_episode(host) <= 4 * DAY;
        if self.budget == 0 && is_soon && gone.count() as i64 > 2 * LEAST_BUDGET {
            faults.push("no alert that the budget is spent".to_owned());
        }
    }
}

/// A hold begins and ends with one notice each, and has a reason; a host that is down is held.
fn judge_holds(plan: &Plan, host: usize, holds: &[(i64, bool)], faults: &mut Vec<String>) {
    let mut is_held = false;
    let has_full_disk = plan.deeds.iter().any(|(_, deed)| *deed == Deed::Full(true));
    // A full disk keeps notices back.
    let back = if has_full_disk { 5 * HOUR } else { 20 * MINUTE };
    for &(at, begins) in holds {
        if begins == is_held {
            faults.push(format!("host {host}: two alerts of one hold: {holds:?}"));
        }
        is_held = begins;
        let before = Span {
            from: at - back,
            to: at,
        };
        let turned = plan.negatives(host, before);
        if begins && (turned < 2 || plan.hosts[host].urls.len() < LEAST_TO_HOLD) {
            faults.push(format!("host {host}: no reason for a hold at {at}"));
        }
    }
    let Some(down) = plan.hosts[host].down else {
        return;
    };
    let is_asked = plan
        .deeds
        .iter()
        .any(|&(at, deed)| deed == Deed::RecheckAll && down.contains(at));
    let is_disturbed = plan.hosts[host].throttles.is_some()
        || plan.cut.overlaps(down.with_margin(3 * HOUR))
        || !plan.is_calm(down.with_margin(3 * HOUR));
    let is_large = plan.hosts[host].urls.len() >= ENOUGH_URLS;
    if !is_asked || is_disturbed || !is_large {
        return;
    }
    // A host whose hold has reached its longest time is not held again before it shows a sign of life.
    let has_given_up = holds.windows(2).any(|pair| match *pair {
        [(began, true), (ended, false)] => ended - began >= LONGEST_HOLD && ended < down.to,
        _ => false,
    });
    // It may have been held already, because of a purge.
    let last = holds.iter().rev().find(|(at, _)| *at < down.to);
    let is_held = last.is_some_and(|(_, begins)| *begins);
    if !is_held && !has_given_up {
        faults.push(format!(
            "host {host} is down at {}, and not held: {holds:?}",
            down.from
        ));
    }
}

/// With so many hosts that answer, a cut is seen.
const ENOUGH_HOSTS: usize = 26;

/// So many URLs that were alive must be asked in ten minutes for a hold; one that is due again counts again.
const LEAST_TO_HOLD: usize = 10;

/// `max_hold` by default.
const LONGEST_HOLD: i64 = 3 * DAY;

/// With so many URLs, enough of them are asked, whatever else they are.
const ENOUGH_URLS: usize = 35;

/// The guard needs three good rounds.
const SOON: i64 = 15 * MINUTE;
