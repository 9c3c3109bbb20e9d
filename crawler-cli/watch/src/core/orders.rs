//! What operators want: what is paused, which holds they have ended, and how many workers there are.
//!
//! The store has the last word, and the core reads all of it each time. So the order in which commands are told does not
//! count, and none is lost when the process ends between a command and the core.

use std::collections::HashSet;

use courser::net::Net;
use jiff::Timestamp;
use url::Url;

use super::Watcher;
use super::book::HostPage;
use super::keeping::{Failed, Reply};
use crawl::clock::Clock;
use store::{Engine, HoldEnd, HostId, Nature, Scope, StoreError, StoreHandle};

/// What operators want.
#[derive(Debug, Default)]
pub(super) struct Orders {
    is_paused: bool,
    /// The roots of hosts that are paused.
    paused_hosts: HashSet<Url>,
    /// Holds whose end has begun.
    ended: Vec<(HostId, HoldEnd)>,
    /// How many workers share the store; 0 for a store in a file.
    workers: usize,
}

impl Orders {
    pub(super) fn read(engine: &mut dyn Engine) -> Result<Self, StoreError> {
        let mut orders = Self::default();
        for pause in engine.pauses()? {
            match pause.what {
                Scope::All => orders.is_paused = true,
                Scope::Host(root) => orders.paused_hosts.extend(Url::parse(&root)),
            }
        }
        let holds = engine.holds()?.into_iter();
        orders.ended = holds
            .filter_map(|hold| Some((hold.host, hold.ending?)))
            .collect();
        orders.workers = engine.workers()?.len();
        Ok(orders)
    }
}

impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Reads what operators want. A read that fails is made up for when URLs are counted.
    pub(super) fn read_orders(&mut self) {
        self.keeping
            .ask(Nature::Read, Failed::Other, Orders::read, |orders| {
                Some(Reply::Orders(orders))
            });
    }

    pub(super) fn handle_orders(&mut self, now: Timestamp, orders: Orders) {
        for (host, end) in orders.ended {
            self.end_hold(now, host, end.into());
        }
        self.asking.set_workers(orders.workers);
        let gate = &mut self.gate;
        let is_same =
            gate.is_paused == orders.is_paused && gate.paused_hosts == orders.paused_hosts;
        if !is_same {
            gate.is_paused = orders.is_paused;
            gate.paused_hosts = orders.paused_hosts;
            self.take_back_paused();
        }
    }

    /// What is paused and not asked yet stays due in the store. What is asked is finished.
    fn take_back_paused(&mut self) {
        let (book, gate) = (&self.book, &self.gate);
        let is_paused = |host: HostId| {
            let is_it = |page: &HostPage| gate.paused_hosts.contains(&page.root);
            gate.is_paused || book.get(host).is_some_and(is_it)
        };
        self.asking.recall(is_paused);
        for (_, page) in self.book.iter_mut() {
            // Its URLs may have been taken back.
            page.sample = None;
        }
        self.gate.is_refill_due = true;
        self.look_again();
    }
}
