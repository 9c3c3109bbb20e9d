//! Name lookups of a client: the cache, the resolver, the channel between them, and the openings that wait for names. When
//! the last opening that waits for a name has ended, its lookup is cancelled.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::net::Waker;
use crate::net::resolve::{Answer, Reply, Resolver};
use crate::policy::{DnsConfig, DnsCounters, Found, NameCache, Question};
use crate::reactor::OpeningKey;
use crate::time::Time;

/// The names that a client knows, and the resolver for other names. At most one lookup of a name is in flight.
pub(crate) struct Names {
    cache: NameCache,
    resolver: Box<dyn Resolver>,
    sender: Sender<(Question, Answer)>,
    /// Bounded by the lookups in flight.
    answers: Receiver<(Question, Answer)>,
    /// Wakes the client when there is an answer.
    waker: Waker,
    /// The openings that wait, in the order in which they came, by the name in lower case. A last dot is part of the key, because it makes another DNS question.
    waiting: HashMap<Arc<str>, VecDeque<OpeningKey>>,
}

impl Names {
    pub(crate) fn new(config: DnsConfig, resolver: Box<dyn Resolver>, waker: Waker) -> Self {
        let (sender, answers) = unbounded();
        Self {
            cache: NameCache::new(config),
            resolver,
            sender,
            answers,
            waker,
            waiting: HashMap::new(),
        }
    }

    /// The addresses of `host`, in upper or lower case, for a connection to `port` (which overrides may depend on). If
    /// there is no result, an opening must [`wait`](Self::wait).
    pub(crate) fn lookup(&mut self, now: Time, host: &str, port: u16) -> Option<Found> {
        if let Some(found) = self.cache.fixed(host, port) {
            return Some(found);
        }
        let (found, ask) = self.cache.lookup(now, host);
        if let Some(question) = ask {
            let (sender, waker) = (self.sender.clone(), self.waker.clone());
            let name = question.name.clone();
            let reply = Reply::new(move |answer| {
                if sender.send((question, answer)).is_ok() {
                    waker.wake();
                }
            });
            self.resolver.lookup(&name, reply);
        }
        found
    }

    /// An opening waits for a name. Returns the name under which the opening [leaves](Self::leave).
    pub(crate) fn wait(&mut self, name: &str, key: OpeningKey) -> Arc<str> {
        let name: Arc<str> = name.to_ascii_lowercase().into();
        let waiting = self.waiting.entry(name.clone()).or_default();
        waiting.push_back(key);
        name
    }

    /// An opening that waited for this name has ended.
    pub(crate) fn leave(&mut self, name: &str, key: OpeningKey) {
        let Some(waiting) = self.waiting.get_mut(name) else {
            return;
        };
        if let Some(at) = waiting.iter().position(|waits| *waits == key) {
            waiting.remove(at);
        }
        if waiting.is_empty() {
            self.waiting.remove(name);
            if self.cache.cancel(name) {
                self.resolver.cancel(name);
            }
        }
    }

    /// The next answer of the resolver, and the openings that waited for it: none if the answer refreshed a name.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(VecDeque<OpeningKey>, Found)> {
        while let Ok((question, answer)) = self.answers.try_recv() {
            if let Some(found) = self.cache.handle_answer(now, &question, answer) {
                let waiting = self.waiting.remove(&*question.name).unwrap_or_default();
                return Some((waiting, found));
            }
        }
        None
    }

    /// Forgets a name.
    pub(crate) fn flush(&mut self, host: &str) {
        self.cache.flush(host);
    }

    /// Forgets all names.
    pub(crate) fn flush_all(&mut self) {
        self.cache.flush_all();
    }

    pub(crate) fn counters(&self) -> DnsCounters {
        self.cache.counters()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::error::DnsError;

    /// Keeps the replies for the test.
    struct Held(Sender<(String, Reply)>);

    impl Resolver for Held {
        fn lookup(&mut self, name: &str, reply: Reply) {
            self.0.send((name.to_owned(), reply)).unwrap();
        }
    }

    #[test]
    fn one_question_and_every_answer_wakes() {
        let (sender, asked) = unbounded();
        let wakes = Arc::new(AtomicUsize::new(0));
        let count = wakes.clone();
        let waker = Waker::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let mut names = Names::new(DnsConfig::default(), Box::new(Held(sender)), waker);
        let key = OpeningKey::from_bits(1 << 32).unwrap();
        let now = Time::now();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let found = |all: &[&str]| Ok(all.iter().map(|text| ip(text)).collect());

        // One lookup serves all that ask at the same time.
        for host in ["some.example", "SOME.example", "some.example"] {
            assert_eq!(names.lookup(now, host, 80), None);
            names.wait(host, key);
        }
        let (name, reply) = asked.try_recv().unwrap();
        assert_eq!(name, "some.example");
        assert!(asked.is_empty());
        assert_eq!(names.poll(now), None);
        let answer = Answer::found([ip("10.0.0.2")], Duration::from_secs(5));
        std::thread::spawn(move || reply.answer(answer))
            .join()
            .unwrap();
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        assert_eq!(
            names.poll(now),
            Some(([key; 3].into(), found(&["10.0.0.2"])))
        );
        assert_eq!(names.poll(now), None);
        assert_eq!(
            names.lookup(now, "some.example", 80),
            Some(found(&["10.0.0.2"]))
        );

        // A lost reply counts as an answer.
        assert_eq!(names.lookup(now, "lost.example", 80), None);
        drop(asked.try_recv().unwrap());
        let lost = Err(DnsError::Unanswered);
        assert_eq!(names.poll(now), Some((VecDeque::new(), lost.clone())));
        assert_eq!(names.lookup(now, "lost.example", 80), Some(lost));
        assert_eq!(wakes.load(Ordering::SeqCst), 2);
    }
}
