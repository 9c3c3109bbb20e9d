//! Name lookup by the system's C library. `getaddrinfo` blocks, so it runs on a few threads.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::{Answer, DnsError, Reply, Resolver};

/// Calls the system's `getaddrinfo`, which uses all of its configuration: `nsswitch.conf`, mDNS, LDAP, the environment.
///
/// It reports no time to live, so [`DnsConfig::default_ttl`](crate::DnsConfig::default_ttl) applies. A lookup cannot be
/// stopped: when the resolver is dropped, idle threads end at once, and each of the others ends after its lookup.
///
/// ```
/// use courser::SystemResolver;
///
/// let resolver = SystemResolver::new().max_threads(2);
/// ```
pub struct SystemResolver {
    max_threads: usize,
    threads: usize,
    /// `None` once the threads shall end.
    questions: Option<Sender<Question>>,
    queue: Receiver<Question>,
    /// One message for each thread that has become idle.
    idle_threads: (Sender<()>, Receiver<()>),
}

type Question = (Box<str>, Reply);

impl SystemResolver {
    /// A resolver with at most 8 threads, which are started when they are needed.
    pub fn new() -> Self {
        let (questions, queue) = unbounded();
        Self {
            max_threads: 8,
            threads: 0,
            questions: Some(questions),
            queue,
            idle_threads: unbounded(),
        }
    }

    /// Sets how many lookups run at once, each on its own thread, at least 1. Further lookups wait. Default 8.
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = threads.max(1);
        self
    }

    fn start_thread(&mut self) -> std::io::Result<()> {
        let (queue, idle_threads) = (self.queue.clone(), self.idle_threads.0.clone());
        thread::Builder::new()
            .name("courser-dns".to_owned())
            .spawn(move || {
                while let Ok((name, reply)) = queue.recv() {
                    reply.answer(look_up(&name));
                    let _ = idle_threads.send(());
                }
            })?;
        self.threads += 1;
        Ok(())
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl Resolver for SystemResolver {
    fn lookup(&mut self, name: &str, reply: Reply) {
        let waiting = self.idle_threads.1.try_recv().is_ok();
        if !waiting
            && self.threads < self.max_threads
            && let Err(error) = self.start_thread()
            && self.threads == 0
        {
            let what = format!("the resolver cannot start: {error}");
            return reply.answer(Answer::failed(DnsError::Resolver(what.into())));
        }
        if let Some(questions) = &self.questions {
            let _ = questions.send((name.into(), reply));
        }
    }
}

impl Drop for SystemResolver {
    fn drop(&mut self) {
        self.questions = None;
        // Dropping a reply answers it.
        while self.queue.try_recv().is_ok() {}
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemResolver")
            .field("max_threads", &self.max_threads)
            .field("threads", &self.threads)
            .finish()
    }
}

fn look_up(name: &str) -> Answer {
    let addresses = match (name, 0).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.map(|at: SocketAddr| at.ip()).collect()),
        Err(error) => {
            // The standard library gives only the text of `gai_strerror`: that of glibc, musl or BSD.
            let text = error.to_string();
            let contains = |part| text.contains(part);
            Err(
                if contains("not known") || contains("does not resolve") || contains("nor servname")
                {
                    DnsError::NotFound
                } else if contains("No address associated") || contains("has no usable address") {
                    DnsError::NoAddresses
                } else {
                    DnsError::Resolver(text.into())
                },
            )
        }
    };
    Answer {
        addresses,
        ttl: None,
    }
}
