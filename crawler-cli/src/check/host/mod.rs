//! The work of a check at one host: asks the URLs of its tasks, follows redirects, and judges the answers.
//!
//! The [`Scheduler`](crate::crawl::scheduler::Scheduler) drives the work of all hosts. The caller feeds each [`Host`]
//! with tasks while it has [room](Host::room), takes outcomes and hops from [`Shared`], and passes each hop to the host
//! where it leads.

mod policy;
mod shared;

pub use policy::{HeadUse, Policy};
pub use shared::Shared;

use std::sync::Arc;

use url::Url;

use super::task::{Hop, Task};
use crate::crawl::retry_queue::RetryQueue;

/// The work at one host.
#[derive(Debug)]
pub struct Host {
    root: Url,
    policy: Arc<Policy>,
    queue: RetryQueue<Task>,
    hops: Vec<Hop>,
}

impl Host {
    /// The work at the host with this root URL, without tasks. `proxy`: the proxy for the host, without credentials.
    pub fn new(root: Url, proxy: Option<String>, policy: Arc<Policy>) -> Self {
        let _ = proxy;
        Self {
            root,
            policy,
            queue: RetryQueue::default(),
            hops: Vec::new(),
        }
    }

    /// The URL of the host's root.
    pub fn root(&self) -> &Url {
        &self.root
    }

    /// The settings.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// How many further tasks the host has room for. Hops always find room.
    pub fn room(&self) -> usize {
        QUEUE.saturating_sub(self.queue.len() + self.hops.len())
    }

    /// Adds a URL of this host. Its outcome comes at once if the host was given up.
    pub fn add_task(&mut self, task: Task, _shared: &mut Shared) {
        self.queue.push_last(task);
    }

    /// Adds a URL of another host that was redirected to this host.
    pub fn add_hop(&mut self, hop: Hop, _shared: &mut Shared) {
        self.hops.push(hop);
    }
}

/// The number of tasks of a host that wait in memory.
const QUEUE: usize = 256;
