//! Feeds the hosts of a crawl: creates the work at each host, gives it more while it has room, lets it send, waits for
//! answers, and removes the work of hosts that nothing is left for.
//!
//! A crawl says who gives work and who takes what comes of it; what every crawl does in the same way is written here.
//! Where more waits than fits into memory, a [`Fleet`](super::fleet::Fleet) says what is read next.

use std::io;
use std::time::Duration;

use courser::net::Net;
use url::{Position, Url};

use super::hosts::HostId;
use super::scheduler::Scheduler;
use super::work::HostWork;

/// A crawl of many hosts.
pub trait Feeder<'s> {
    /// The work at a host.
    type Work: HostWork;
    /// The network.
    type Net: Net;
    /// Names what waits for a host.
    type Queue: Copy;

    /// The hosts, and what the work at all of them shares.
    fn parts(&mut self) -> Parts<'_, 's, Self::Work, Self::Net>;

    /// The work at the new host with this root. `proxy`: the proxy for the host, without credentials.
    fn work(&mut self, root: &Url, proxy: Option<String>) -> Self::Work;

    /// Whether the work at a host is to stay though it has nothing to do.
    fn needs(&self, host: HostId) -> bool;

    /// Gives the next of what waits in a queue to its work, if that has room. Returns whether to go on.
    fn give(&mut self, queue: Self::Queue) -> bool;

    /// As much was given as possible: reads what is to be given next, or notes that nothing is left.
    fn handle_filled(&mut self, queue: Self::Queue);

    /// Takes what the works have to say since the last call, and [fills](Self::fill) those that have room.
    fn collect(&mut self);

    /// Whether works get more to do, and hosts are asked as soon as they have answered.
    fn is_asking(&self) -> bool;

    /// Whether requests are sent as time passes, and not only what is in flight ends.
    fn is_sending(&self) -> bool;

    /// Waits, at most for this time, while nothing is in flight.
    fn rest(&mut self, time: Duration);

    /// Gives the work of a queue as much as it has room for.
    fn fill(&mut self, queue: Self::Queue) {
        if self.is_asking() {
            while self.give(queue) {}
        }
        self.handle_filled(queue);
    }

    /// The host with this root; it gets its work if it is new.
    fn host_of(&mut self, root: Url) -> HostId {
        let hosts = self.parts().0.hosts();
        if let Some(host) = hosts.at(&root) {
            return host;
        }
        if hosts.is_crowded() {
            self.remove_idle();
        }
        let proxy = self.parts().0.hosts().proxy(&root);
        let mut work = self.work(&root, proxy);
        let rate = work.politeness().rate();
        let (scheduler, shared) = self.parts();
        let stats = Self::Work::stats(shared);
        let index = stats.add_host(&root[..Position::BeforePath]);
        stats.note_rate(index, rate);
        scheduler.add(root, index, work)
    }

    /// Removes the works that have nothing to do.
    fn remove_idle(&mut self) {
        let ids: Vec<HostId> = self.parts().0.hosts().ids().collect();
        for id in ids {
            let is_needed = self.needs(id);
            let (scheduler, _) = self.parts();
            if !is_needed && scheduler.hosts().work(id).is_done() {
                scheduler.remove(id);
            }
        }
        self.parts().0.hosts().handle_tidied();
    }

    /// Lets all hosts send what they may.
    fn submit_all(&mut self) {
        let (scheduler, shared) = self.parts();
        scheduler.submit_all(shared);
    }

    /// Waits at most `longest` until an answer arrives or a host may be asked. Then handles the answers that are there, at
    /// most one per connection, so that a fast server cannot delay the rest of the program.
    ///
    /// # Errors
    /// The client cannot be used any more.
    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        let is_sending = self.is_sending();
        let (scheduler, _) = self.parts();
        let began = scheduler.now();
        let due = scheduler.poll_timeout(began).filter(|_| is_sending);
        let mut timeout = due.map_or(longest, |due| {
            due.saturating_duration_since(began).min(longest)
        });
        if scheduler.has_more() {
            timeout = Duration::ZERO;
        }
        if scheduler.is_idle() {
            self.rest(timeout);
            let (scheduler, shared) = self.parts();
            if due.is_some() {
                let held = scheduler.now().saturating_duration_since(began);
                Self::Work::stats(shared).handle_held(held);
            }
            return Ok(());
        }
        for _ in 0..scheduler.in_flight() {
            let (scheduler, shared) = self.parts();
            let Some(host) = scheduler.handle_next(timeout, shared)? else {
                break;
            };
            self.collect();
            if self.is_asking() {
                let (scheduler, shared) = self.parts();
                scheduler.submit(host, shared);
            }
            timeout = Duration::ZERO;
        }
        let (scheduler, shared) = self.parts();
        scheduler.read_bodies(shared);
        Ok(())
    }
}

/// The hosts of a crawl, and what the work at all of them shares.
pub type Parts<'a, 's, W, N> = (&'a mut Scheduler<W, N>, &'a mut <W as HostWork>::Shared<'s>);
