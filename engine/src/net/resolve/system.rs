//! Name lookup by the system's C library. `getaddrinfo` blocks, so it runs on a few threads.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Instant;

use super::lookup_queue::{LookupLimits, LookupQueue, Step};
use super::{Answer, DnsError, Reply, Resolver, cannot_start};
use crate::net::shortage::{shortage_in, shortage_now};
use crate::sync::{Condvar, Mutex, lock};
use crate::time::Time;

/// Calls the system's `getaddrinfo`, which uses all of its configuration: `nsswitch.conf`, mDNS, LDAP, the environment.
///
/// It reports no time to live, so [`DnsConfig::default_ttl`](crate::DnsConfig::default_ttl) applies. A lookup cannot be
/// stopped: when the resolver is dropped, idle threads end at once, and each of the others ends after its lookup. Names
/// below one registrable domain get at most half of the threads, so that slow names of one domain do not hold others.
///
/// ```
/// use courser::SystemResolver;
///
/// let resolver = SystemResolver::new().max_threads(2);
/// ```
#[derive(Debug)]
pub struct SystemResolver {
    max_threads: usize,
    threads: usize,
    shared: Arc<Shared>,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    queue: LookupQueue<Reply>,
    idle_threads: usize,
    /// The resolver was dropped: threads end.
    ended: bool,
}

impl SystemResolver {
    /// A resolver with at most 8 threads, which are started when they are needed.
    pub fn new() -> Self {
        Self::with_threads(8)
    }

    /// Sets how many lookups run at once, each on its own thread, at least 1. Further lookups wait, up to 16,384
    /// (8,192 below one domain); others fail with [`DnsError::QueueFull`]. Default 8. Has no effect after the first
    /// lookup.
    pub fn max_threads(self, threads: usize) -> Self {
        match self.threads {
            0 => Self::with_threads(threads.max(1)),
            _ => self,
        }
    }

    fn with_threads(max_threads: usize) -> Self {
        let queue = LookupQueue::new(LookupLimits {
            in_flight: max_threads,
            waiting: MAX_WAITING,
            time: None,
            can_stop: false,
        });
        Self {
            max_threads,
            threads: 0,
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    queue,
                    idle_threads: 0,
                    ended: false,
                }),
                changed: Condvar::new(),
            }),
        }
    }
}

impl Shared {
    /// The work of a thread. Replies are answered without the lock.
    fn serve(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            let (replies, answer) = match state.queue.poll(Time::of(Instant::now())) {
                Step::Start { name, .. } => {
                    drop(state);
                    let answer = look_up(&name);
                    (lock(&self.state).queue.finish(&name), answer)
                }
                Step::Fail { replies, error, .. } => {
                    drop(state);
                    (replies, Answer::failed(error))
                }
                Step::Wait(_) => {
                    state.idle_threads += 1;
                    let woken = self.changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                    state.idle_threads -= 1;
                    continue;
                }
            };
            for reply in replies {
                reply.answer(answer.clone());
            }
            state = lock(&self.state);
        }
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl Resolver for SystemResolver {
    fn lookup(&mut self, name: &str, reply: Reply) {
        let mut state = lock(&self.shared.state);
        let refused = state.queue.ask(Time::of(Instant::now()), name, reply);
        let wants_thread = state.queue.waiting() > state.idle_threads;
        drop(state);
        if let Err((reply, error)) = refused {
            return reply.answer(Answer::failed(error));
        }
        if wants_thread && self.threads < self.max_threads {
            let shared = self.shared.clone();
            let thread = thread::Builder::new().name("courser-dns".to_owned());
            match thread.spawn(move || shared.serve()) {
                Ok(_) => self.threads += 1,
                Err(error) if self.threads == 0 => {
                    let failed = cannot_start(&error);
                    let replies = lock(&self.shared.state).queue.take_waiting().into_iter();
                    return replies.for_each(|reply| reply.answer(failed.clone()));
                }
                Err(_) => {}
            }
        }
        self.shared.changed.notify_one();
    }

    fn cancel(&mut self, name: &str) {
        let replies = lock(&self.shared.state).queue.cancel(name);
        drop(replies);
    }
}

impl Drop for SystemResolver {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.ended = true;
        let replies = state.queue.take_waiting();
        drop(state);
        self.shared.changed.notify_all();
        // Dropping a reply answers it.
        drop(replies);
    }
}

const MAX_WAITING: usize = 16_384;

fn look_up(name: &str) -> Answer {
    let error = match (name, 0).to_socket_addrs() {
        Ok(addresses) => {
            let addresses = addresses.map(|at: SocketAddr| at.ip());
            return Answer::new(Ok(addresses.collect()), None);
        }
        Err(error) => error,
    };
    // The standard library gives only the text of `gai_strerror`: that of glibc, musl or BSD.
    let text = error.to_string();
    let has = |part| text.contains(part);
    Answer::failed(
        if has("not known") || has("does not resolve") || has("nor servname") {
            DnsError::NotFound
        } else if has("No address associated") || has("has no usable address") {
            DnsError::NoAddresses
        } else if let Some(shortage) = shortage_in(&error).or_else(shortage_now) {
            DnsError::Shortage(shortage)
        } else {
            DnsError::Resolver(text.into())
        },
    )
}
