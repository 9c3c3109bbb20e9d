//! Webhooks: others are told of changes of URLs, of guards and of dead letters.
//!
//! Messages are made from what is stored (`collect`), wait in the outbox of the store, and are sent one after the other by
//! a thread for each receiver (`thread`, `worker`): a receiver that fails delays neither checks nor other receivers. How far a
//! receiver has been told is stored with the messages, so that each event is told at least once, whenever the process is
//! killed.
//!
//! `sign`, `backoff`, `order`, `message` and `collect` know no clock, no network and no random numbers.

mod backoff;
mod board;
mod collect;
mod message;
mod order;
mod send;
mod sign;
mod thread;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver as Inbox, Sender, bounded};
use ring::digest;

pub use board::{Delivery, HookBoard, HookCondition, HookStatus, LastAnswer};
pub use sign::Secret;

use crate::crawl::random::fresh_seed;
use crate::jobs::{Cancel, CancelReason};
use crate::store::{Engine, HookState, Place, StoreError, StoreHandle as _, Writer};
use crate::watch::config::{Config, WebhookConfig};
use crate::watch::hands::Reader;
use collect::Wishes;
use send::Target;
use thread::Order;
use worker::{Shared, Worker};

/// The receivers of a running service.
#[derive(Debug)]
pub struct Hooks {
    store: Writer,
    place: Place,
    board: Arc<HookBoard>,
    cancel: Cancel,
    /// The threads: their inboxes, and channels that close when they end.
    threads: BTreeMap<String, (Sender<Order>, Inbox<()>)>,
}

/// Why the receivers cannot be served.
#[derive(Debug)]
pub enum HooksError {
    /// The store cannot be read or written.
    Store(StoreError),
    /// The system has no thread left.
    Thread(io::Error),
}

impl fmt::Display for HooksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Thread(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HooksError {}

impl Hooks {
    /// Serves the receivers of the configuration. Those of an earlier one are forgotten with their messages; a new one is
    /// told of what happens from now on. `place` is where the store of the writer is.
    ///
    /// # Errors
    /// The store cannot be used, or the system has no thread.
    pub fn start(
        config: &Config,
        store: Writer,
        place: &Place,
        board: Arc<HookBoard>,
    ) -> Result<Self, HooksError> {
        let mut hooks = Self {
            store,
            place: place.clone(),
            board,
            cancel: Cancel::new(),
            threads: BTreeMap::new(),
        };
        hooks.reload(config)?;
        Ok(hooks)
    }

    /// Serves the receivers of another configuration.
    ///
    /// # Errors
    /// The store cannot be used, or the system has no thread. Then some are served as before.
    pub fn reload(&mut self, config: &Config) -> Result<(), HooksError> {
        let known = config.webhooks.iter().filter_map(|hook| {
            let target = target(hook, config)?;
            Some((hook.name.clone(), (target, wishes(hook))))
        });
        let mut receivers: BTreeMap<String, (Target, Wishes)> = known.collect();
        self.threads.retain(|name, _| {
            let is_kept = receivers.contains_key(name);
            if !is_kept {
                // The thread ends once it has no inbox. What it still sends is settled with nobody.
                self.board.remove(name);
            }
            is_kept
        });
        let addresses = receivers.iter();
        let addresses = addresses.map(|(name, (target, _))| (name.clone(), address(target)));
        let addresses: BTreeMap<String, String> = addresses.collect();
        let states = self.store.call(move |engine| settle(engine, &addresses));
        let states = states.map_err(HooksError::Store)?;
        let is_new = |state: &HookState| !self.threads.contains_key(&state.receiver);
        let news: Vec<HookState> = states.into_iter().filter(is_new).collect();
        for (name, (inbox, _)) in &self.threads {
            if let Some(settings) = receivers.remove(name) {
                // A thread that has ended failed.
                let _ = inbox.send(Order::Settings(Box::new(settings)));
            }
        }
        if news.is_empty() {
            return Ok(());
        }
        let shared = self.shared().map_err(HooksError::Store)?;
        for state in news {
            if let Some(settings) = receivers.remove(&state.receiver) {
                self.spawn(shared.clone(), state, settings)
                    .map_err(HooksError::Thread)?;
            }
        }
        Ok(())
    }

    /// Something was stored that receivers may want to know.
    pub fn look(&self) {
        self.board.look();
    }

    /// Sends nothing new, and ends after so long at the latest. What is under way then is sent again at the next start.
    pub fn stop(self, longest: Duration) {
        let deadline = Instant::now().checked_add(longest);
        for (inbox, _) in self.threads.values() {
            // One that has no place looks for the end soon.
            let _ = inbox.try_send(Order::End);
        }
        for (inbox, ended) in self.threads.values() {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            end(inbox, ended, left.unwrap_or(longest));
        }
        self.cancel.set(CancelReason::Shutdown);
    }

    fn shared(&self) -> Result<Shared, StoreError> {
        let mut reader = Reader::open(&self.place)?;
        let store_id = crate::store::JobStore::store_id(reader.store())?;
        Ok(Shared {
            store: self.store.clone(),
            reader: Arc::new(Mutex::new(reader)),
            board: Arc::clone(&self.board),
            store_id,
            cancel: self.cancel.clone(),
            is_shared: self.place.file().is_none(),
        })
    }

    fn spawn(
        &mut self,
        shared: Shared,
        state: HookState,
        settings: (Target, Wishes),
    ) -> io::Result<()> {
        let (inbox, orders) = bounded(MOST_ORDERS);
        let (alive, ended) = bounded(0);
        let name = state.receiver.clone();
        let status = HookStatus {
            name: name.clone(),
            origin: Some(settings.0.url.origin().ascii_serialization()),
            condition: HookCondition::UpToDate,
            waiting: 0,
            oldest: None,
            is_behind: false,
            last: None,
            delivered: 0,
        };
        let worker = Worker::new(shared, state, settings, fresh_seed());
        self.board.add(status, inbox.clone());
        std::thread::Builder::new()
            .name("webhook".to_owned())
            .spawn(move || {
                thread::serve(worker, &orders);
                drop(alive);
            })?;
        self.threads.insert(name, (inbox, ended));
        Ok(())
    }
}

/// Makes the store know these receivers alone, and returns what it knows of them. `addresses` are those that they have now.
fn settle(
    engine: &mut dyn Engine,
    addresses: &BTreeMap<String, String>,
) -> Result<Vec<HookState>, StoreError> {
    for old in engine.hooks()? {
        if !addresses.contains_key(&old.receiver) {
            engine.forget_hook(&old.receiver)?;
        }
    }
    let mut states = Vec::new();
    for (name, address) in addresses {
        let known = engine.hook(name)?;
        let is_known = known.is_some();
        let mut state = match known {
            Some(state) => state,
            None => engine.new_hook(name)?,
        };
        if !is_known || state.address != *address {
            // One that wanted no more at its old address may want them at the new one.
            state.stopped = None;
            state.address.clone_from(address);
            engine.save_hook(&state)?;
        }
        states.push(state);
    }
    Ok(states)
}

/// Has a thread end, and waits for that for so long.
fn end(inbox: &Sender<Order>, ended: &Inbox<()>, longest: Duration) {
    let _ = inbox.send_timeout(Order::End, longest);
    // Nothing is sent on this channel: it closes.
    let _ = ended.recv_timeout(longest);
}

fn target(hook: &WebhookConfig, config: &Config) -> Option<Target> {
    Some(Target {
        url: hook.url.clone()?,
        secret: hook.secret.clone(),
        timeout: hook.timeout,
        allow_private: hook.allow_private.unwrap_or(config.limits.allow_private),
        user_agent: config.limits.user_agent.clone(),
    })
}

fn wishes(hook: &WebhookConfig) -> Wishes {
    Wishes {
        topics: hook.events.clone(),
        digest_every: hook.digest,
        flapping_every: hook.flapping,
    }
}

/// Tells a URL from others. The store does not have the URL, which is often secret.
fn address(target: &Target) -> String {
    let hash = digest::digest(&digest::SHA256, target.url.as_str().as_bytes());
    let hash = hash.as_ref().iter().take(8);
    hash.map(|byte| format!("{byte:02x}")).collect()
}

/// How many orders wait for a thread.
const MOST_ORDERS: usize = 8;
