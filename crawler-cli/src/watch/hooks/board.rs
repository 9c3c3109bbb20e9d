//! How the receivers fare, for the page, the API, the metrics and the status; and the way to the threads that serve them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::thread::Order;

/// How a receiver of webhooks fares.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HookStatus {
    /// Its name.
    pub name: String,
    /// The scheme, host and port of its URL, if the service runs. The rest is often secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What it waits for.
    pub condition: HookCondition,
    /// How many messages wait for it.
    pub waiting: u64,
    /// When the first of these was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// There is more to tell, which becomes messages as soon as fewer of them wait.
    pub is_behind: bool,
    /// How it was asked last since the service started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastAnswer>,
    /// How many messages it took since the service started.
    pub delivered: u64,
}

/// The last answer of a receiver.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LastAnswer {
    /// When.
    pub at: Timestamp,
    /// The status, or why there is none, in words.
    pub answer: String,
}

impl HookStatus {
    /// Whether it wants no messages any more.
    pub fn is_stopped(&self) -> bool {
        matches!(self.condition, HookCondition::Stopped { .. })
    }
}

/// What a receiver of webhooks waits for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum HookCondition {
    /// It has been told everything.
    UpToDate,
    /// A message is being sent.
    Sending,
    /// Nothing is sent before this time.
    Waiting {
        /// The time.
        until: Timestamp,
    },
    /// It wants no messages any more.
    Stopped {
        /// Since when.
        since: Timestamp,
        /// Why.
        why: String,
    },
}

/// How a delivery ended, as it is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// The receiver has the message.
    Delivered,
    /// It is sent again.
    Failed,
    /// It became a dead letter.
    Dead,
    /// The receiver wants no messages any more.
    Stopped,
}

impl Delivery {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Delivered, Self::Failed, Self::Dead, Self::Stopped];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Stopped => "stopped",
        }
    }
}

/// What is known about all receivers.
#[derive(Debug, Default)]
pub struct HookBoard {
    receivers: Mutex<BTreeMap<String, (HookStatus, Sender<Order>)>>,
    deliveries: [AtomicU64; Delivery::ALL.len()],
}

impl HookBoard {
    /// How each receiver fares, in the order of their names.
    pub fn all(&self) -> Vec<HookStatus> {
        let receivers = self.lock();
        receivers
            .values()
            .map(|(status, _)| status.clone())
            .collect()
    }

    /// How many deliveries ended so.
    pub fn deliveries(&self, how: Delivery) -> u64 {
        self.deliveries[how as usize].load(Ordering::Relaxed)
    }

    /// Has a receiver go on, without any wait. `false`: there is none with this name.
    pub fn resume(&self, name: &str) -> bool {
        self.order(name, Order::Resume)
    }

    /// Sends a test message, and waits for the answer in words. `None`: there is no receiver with this name.
    pub fn test(&self, name: &str) -> Option<Result<String, String>> {
        let (answer, answered) = bounded(1);
        if !self.order(name, Order::Test(answer)) {
            return None;
        }
        let late =
            || Err("no answer yet; look at 'crawler-cli watch webhook list' later".to_owned());
        Some(answered.recv_timeout(PATIENCE).unwrap_or_else(|_| late()))
    }

    /// Something has happened that receivers may want to know.
    pub(super) fn look(&self) {
        for (_, inbox) in self.lock().values() {
            // A thread with orders looks anyway, and the other places are for what operators order meanwhile.
            if inbox.is_empty() {
                let _ = inbox.try_send(Order::Look);
            }
        }
    }

    pub(super) fn add(&self, status: HookStatus, inbox: Sender<Order>) {
        self.lock().insert(status.name.clone(), (status, inbox));
    }

    pub(super) fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    pub(super) fn update(&self, name: &str, update: impl FnOnce(&mut HookStatus)) {
        if let Some((status, _)) = self.lock().get_mut(name) {
            update(status);
        }
    }

    pub(super) fn count(&self, how: Delivery) {
        self.deliveries[how as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn order(&self, name: &str, order: Order) -> bool {
        let receivers = self.lock();
        let Some((_, inbox)) = receivers.get(name) else {
            return false;
        };
        // Orders are few; one that finds no place is given again by the operator.
        inbox.try_send(order).is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (HookStatus, Sender<Order>)>> {
        self.receivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a test waits for its answer: commands are answered within 5 s.
const PATIENCE: Duration = Duration::from_secs(4);
