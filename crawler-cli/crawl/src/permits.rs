//! The permits of a scheduler's requests, for hosts that have a ceiling in common with other schedulers and pools.

use std::collections::HashMap;
use std::time::Instant;

use url::Url;

use super::hosts::HostId;
use super::work::RequestId;
use jobs::{ASK_AGAIN, Ceiling, Ceilings, Permit, Until};

/// The permits of the requests in flight.
#[derive(Debug, Default)]
pub(super) struct Permits {
    ceilings: Ceilings,
    hosts: HashMap<HostId, Limited>,
    taken: HashMap<(HostId, RequestId), Permit>,
}

/// A host with a ceiling.
#[derive(Debug)]
struct Limited {
    ceiling: Option<Ceiling>,
    /// When to ask for a permit again.
    held_until: Option<Instant>,
}

/// The request may not be sent now.
#[derive(Debug)]
pub(super) struct Held;

impl Permits {
    pub(super) fn new(ceilings: Ceilings) -> Self {
        Self {
            ceilings,
            ..Self::default()
        }
    }

    /// Takes a permit for the host with this root; `None` if the host has no ceiling.
    pub(super) fn take(
        &mut self,
        host: HostId,
        root: &Url,
        now: Instant,
    ) -> Result<Option<Permit>, Held> {
        if self.ceilings.is_empty() {
            return Ok(None);
        }
        let limited = self.hosts.entry(host).or_insert_with(|| Limited {
            ceiling: self.ceilings.of(root),
            held_until: None,
        });
        let Some(ceiling) = &limited.ceiling else {
            return Ok(None);
        };
        match ceiling.try_acquire(now) {
            Ok(permit) => {
                limited.held_until = None;
                Ok(Some(permit))
            }
            Err(until) => {
                limited.held_until = match until {
                    Until::Time(at) => Some(at),
                    // Others give permits back on their threads.
                    Until::Released => now.checked_add(ASK_AGAIN),
                };
                Err(Held)
            }
        }
    }

    /// Until when the ceiling of a host allows no request.
    pub(super) fn held_until(&self, host: HostId, now: Instant) -> Option<Instant> {
        let held = self.hosts.get(&host)?.held_until;
        held.filter(|until| *until > now)
    }

    /// The request was sent with this permit.
    pub(super) fn handle_sent(&mut self, host: HostId, id: RequestId, permit: Option<Permit>) {
        if let Some(permit) = permit {
            self.taken.insert((host, id), permit);
        }
    }

    /// The head of the response is here.
    pub(super) fn handle_head(&mut self, host: HostId, id: RequestId, now: Instant) {
        if let Some(permit) = self.taken.get_mut(&(host, id)) {
            permit.arrived(now);
        }
    }

    /// The exchange is over.
    pub(super) fn handle_over(&mut self, host: HostId, id: RequestId, now: Instant) {
        if let Some(permit) = self.taken.remove(&(host, id)) {
            permit.release(now);
            if let Some(limited) = self.hosts.get_mut(&host) {
                limited.held_until = None;
            }
        }
    }

    /// The id of a host that was removed can be given to another one.
    pub(super) fn remove(&mut self, host: HostId) {
        self.hosts.remove(&host);
    }
}
