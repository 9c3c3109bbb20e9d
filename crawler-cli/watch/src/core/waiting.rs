//! Why a host is not asked right now.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Why a host is not asked right now, and until when.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Waiting {
    /// Why.
    pub reason: Reason,
    /// Until when, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Why a host is not asked right now.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// An operator has paused the service or the host.
    Paused,
    /// The service is about to end.
    Draining,
    /// The store takes nothing, as when its disk is full.
    StoreStopped,
    /// The own network fails: nothing is asked but canaries, or some hosts that failed.
    OwnNetwork,
    /// The own network has failed until lately: only a share of the usual requests is sent.
    Ramp,
    /// The host is held because it turned negative as a whole; only samples are asked.
    Held,
    /// The host asked for fewer requests, or could not be reached: a pause.
    BackOff,
    /// The limit on the rate of requests to the host.
    Rate,
    /// The delay that robots.txt asks for.
    Robots,
    /// The host has as many requests in flight as its limit allows.
    Connections,
    /// All hosts together have as many requests in flight as the limit allows, or so many hosts are worked on that others
    /// wait for their turn.
    Others,
    /// URLs in doubt wait for the next cycle of reconciling.
    Cycle,
    /// Nothing is due before that time.
    NotDue,
}

impl Reason {
    /// The name in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Draining => "draining",
            Self::StoreStopped => "store_stopped",
            Self::OwnNetwork => "own_network",
            Self::Ramp => "ramp",
            Self::Held => "held",
            Self::BackOff => "back_off",
            Self::Rate => "rate",
            Self::Robots => "robots",
            Self::Connections => "connections",
            Self::Others => "others",
            Self::Cycle => "cycle",
            Self::NotDue => "not_due",
        }
    }
}
