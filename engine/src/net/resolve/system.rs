//! Asking the system's C library (`getaddrinfo`), which blocks: on a few threads.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::{Answer, DnsError, Reply, Resolver};

/// Asks the system's `getaddrinfo`, with all that is configured for it: `nsswitch.conf`, mDNS, LDAP, the environment.
///
/// It tells no time to live, so that [`DnsConfig::default_ttl`](crate::DnsConfig::default_ttl) holds. A lookup cannot
/// be stopped: when the resolver is dropped, a thread with one under way ends after it; idle ones end at once.
///
/// ```
/// use courser::SystemResolver;
///
/// let resolver = SystemResolver::new().max_threads(2);
/// ```
pub struct SystemResolver {
    max_threads: usize,
    threads: usize,
    /// Taken when the threads are to end.
    questions: Option<Sender<Question>>,
    asked: Receiver<Question>,
    /// One message for each thread that waits for a question.
    free: (Sender<()>, Receiver<()>),
}

type Question = (Box<str>, Reply);

impl SystemResolver {
    /// With at most 8 threads, which begin as they are needed.
    pub fn new() -> Self {
        let (questions, asked) = unbounded();
        Self {
            max_threads: 8,
            threads: 0,
            questions: Some(questions),
            asked,
            free: unbounded(),
        }
    }

    /// Lookups that are under way at once, each on its thread; the others wait for their turn.
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = threads.max(1);
        self
    }

    fn start_thread(&mut self) -> std::io::Result<()> {
        let (asked, free) = (self.asked.clone(), self.free.0.clone());
        thread::Builder::new()
            .name("courser-dns".to_owned())
            .spawn(move || {
                while let Ok((name, reply)) = asked.recv() {
                    reply.answer(ask(&name));
                    let _ = free.send(());
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
        let waiting = self.free.1.try_recv().is_ok();
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
        // Dropped unanswered, which is an answer.
        while self.asked.try_recv().is_ok() {}
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

fn ask(name: &str) -> Answer {
    let addresses = match (name, 0).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.map(|at: SocketAddr| at.ip()).collect()),
        Err(error) => {
            // The standard library gives the text of `gai_strerror` alone: glibc's, musl's, and BSD's.
            let text = error.to_string();
            let told = |part| text.contains(part);
            Err(
                if told("not known") || told("does not resolve") || told("nor servname") {
                    DnsError::NotFound
                } else if told("No address associated") || told("has no usable address") {
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
