//! Name lookups of a client: the cache, the resolver, and the channel between them.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::net::Waker;
use crate::net::resolve::{Answer, Reply, Resolver};
use crate::policy::{DnsConfig, DnsCounters, Family, Found, NameCache, Question, interleave};
use crate::time::Time;

/// The names that a client knows, and the resolver for other names. At most one lookup of a name is in flight.
pub(crate) struct Names {
    family: Option<Family>,
    cache: NameCache,
    resolver: Box<dyn Resolver>,
    sender: Sender<(Question, Answer)>,
    /// Bounded by the lookups in flight.
    answers: Receiver<(Question, Answer)>,
    /// Answers that the cache has taken, for the openings that wait.
    taken: VecDeque<(Arc<str>, Found)>,
}

impl Names {
    pub(crate) fn new(config: DnsConfig, resolver: Box<dyn Resolver>) -> Self {
        let (sender, answers) = unbounded();
        Self {
            family: config.family,
            cache: NameCache::new(config),
            resolver,
            sender,
            answers,
            taken: VecDeque::new(),
        }
    }

    /// The addresses of `host`, in upper or lower case, for a connection to `port` (which overrides may depend on). If
    /// the result is [`Found::Pending`], `waker` is woken later, and [`poll`](Self::poll) returns the answer under the
    /// lower-case name.
    pub(crate) fn lookup(&mut self, now: Time, host: &str, port: u16, waker: &Waker) -> Found {
        if let Some(found) = self.cache.fixed(host, port) {
            return found;
        }
        // The answer to a cancelled question may be there.
        self.take_answers(now);
        let (found, ask) = self.cache.lookup(now, host);
        if let Some(question) = ask {
            let (sender, waker, name) = (self.sender.clone(), waker.clone(), question.name.clone());
            let reply = Reply::new(move |answer| {
                if sender.send((question, answer)).is_ok() {
                    waker.wake();
                }
            });
            self.resolver.lookup(&name, reply);
        }
        found
    }

    /// No opening waits for this name any more.
    pub(crate) fn cancel(&mut self, name: &str) {
        if self.cache.cancel(name) {
            self.resolver.cancel(name);
        }
    }

    /// The next name that the resolver has answered, with the result for the openings that wait. Also returns refreshed
    /// names that no opening waits for.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(Arc<str>, Found)> {
        self.take_answers(now);
        self.taken.pop_front()
    }

    fn take_answers(&mut self, now: Time) {
        while let Ok((question, answer)) = self.answers.try_recv() {
            if let Some(found) = self.cache.handle_answer(now, &question, answer) {
                self.taken.push_back((question.name, found));
            }
        }
    }

    /// The order in which an opening tries `addresses`: see [`interleave`]. `start` counts the openings.
    pub(crate) fn order(
        &self,
        addresses: &[IpAddr],
        start: usize,
        last: &dyn Fn(IpAddr) -> bool,
    ) -> Vec<IpAddr> {
        let mut order = interleave(addresses, start, IpAddr::is_ipv6, |ip| last(*ip));
        if let Some(family) = self.family {
            order.retain(|ip| family.has(*ip));
        }
        order
    }

    /// The addresses of the family that may be used.
    pub(crate) fn of_family(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let is_usable = |ip: &IpAddr| self.family.is_none_or(|family| family.has(*ip));
        addresses.iter().copied().filter(is_usable).collect()
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

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names")
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
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
        let mut names = Names::new(DnsConfig::default(), Box::new(Held(sender)));
        let wakes = Arc::new(AtomicUsize::new(0));
        let count = wakes.clone();
        let waker = Waker::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let now = Time::now();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let found = |all: &[&str]| Found::Addresses(all.iter().map(|text| ip(text)).collect());

        // One lookup serves all that ask at the same time.
        for host in ["some.example", "SOME.example", "some.example"] {
            assert_eq!(names.lookup(now, host, 80, &waker), Found::Pending);
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
            Some(("some.example".into(), found(&["10.0.0.2"])))
        );
        assert_eq!(names.poll(now), None);
        assert_eq!(
            names.lookup(now, "some.example", 80, &waker),
            found(&["10.0.0.2"])
        );

        // A lost reply counts as an answer.
        assert_eq!(
            names.lookup(now, "lost.example", 80, &waker),
            Found::Pending
        );
        drop(asked.try_recv().unwrap());
        let lost = Found::Failed(DnsError::Unanswered);
        assert_eq!(names.poll(now), Some(("lost.example".into(), lost.clone())));
        assert_eq!(names.lookup(now, "lost.example", 80, &waker), lost);
        assert_eq!(wakes.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn one_family_can_be_chosen() {
        let all = ["::1", "10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let order = |family| {
            let (sender, _asked) = unbounded();
            let config = DnsConfig {
                family,
                ..DnsConfig::default()
            };
            let names = Names::new(config, Box::new(Held(sender)));
            let order = names.order(&all, 0, &|ip| ip == all[1]);
            order.iter().map(IpAddr::to_string).collect::<Vec<_>>()
        };
        assert_eq!(order(None), ["::1", "10.0.0.2", "10.0.0.1"]);
        assert_eq!(order(Some(Family::V4)), ["10.0.0.2", "10.0.0.1"]);
        assert_eq!(order(Some(Family::V6)), ["::1"]);
    }
}
