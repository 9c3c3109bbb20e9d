//! The cache in virtual time, in seconds from the beginning.

use proptest::prelude::*;

use super::*;

struct World {
    cache: NameCache,
    start: Time,
}

impl World {
    fn new(change: impl FnOnce(&mut DnsConfig)) -> Self {
        let mut config = DnsConfig::default();
        change(&mut config);
        Self {
            cache: NameCache::new(config),
            start: Time::now(),
        }
    }

    fn at(&self, seconds: f64) -> Time {
        self.start + Duration::from_secs_f64(seconds)
    }

    /// `"10.0.0.1"`, `"wait"`, `"NotFound"`..., followed by `?` if the resolver must be asked.
    fn lookup(&mut self, seconds: f64, name: &str) -> String {
        let (found, ask) = self.cache.lookup(self.at(seconds), name);
        self.check();
        let found = found.as_ref().map_or_else(|| "wait".to_owned(), shown);
        found + if ask.is_some() { "?" } else { "" }
    }

    fn found(&mut self, seconds: f64, name: &str, ip: &str, ttl: u64) -> String {
        let ips = ip.split_whitespace().map(|ip| ip.parse().unwrap());
        self.answer(seconds, name, Answer::found(ips, Duration::from_secs(ttl)))
    }

    fn failed(&mut self, seconds: f64, name: &str, error: DnsError, ttl: Option<u64>) -> String {
        let answer = Answer {
            addresses: Err(error),
            ttl: ttl.map(Duration::from_secs),
        };
        self.answer(seconds, name, answer)
    }

    fn answer(&mut self, seconds: f64, name: &str, answer: Answer) -> String {
        let number = self.cache.entries.get(name).and_then(|entry| entry.asking);
        self.answer_to(number.unwrap_or_default(), seconds, name, answer)
    }

    /// The answer to the question with this number. `"nothing"` if it was cancelled.
    fn answer_to(&mut self, number: u64, seconds: f64, name: &str, answer: Answer) -> String {
        let question = Question {
            name: name.into(),
            number,
        };
        let found = self
            .cache
            .handle_answer(self.at(seconds), &question, answer);
        self.check();
        found.as_ref().map_or_else(|| "nothing".to_owned(), shown)
    }

    /// The invariants.
    fn check(&self) {
        let cache = &self.cache;
        let asking = cache
            .entries
            .values()
            .filter(|e| e.asking.is_some())
            .count();
        assert_eq!(asking, cache.counters().in_flight);
        assert_eq!(cache.idle.len() + asking, cache.entries.len());
        for (used, name) in &cache.idle {
            assert_eq!(cache.entries[name].used, *used);
            assert!(cache.entries[name].asking.is_none());
        }
        assert!(cache.idle.len() <= cache.config.max_entries.get());
        let c = cache.counters();
        assert!(c.misses <= c.asked && c.asked >= c.in_flight as u64);
    }
}

fn shown(found: &Found) -> String {
    match found {
        Ok(all) => all
            .iter()
            .map(IpAddr::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => format!("{error:?}"),
    }
}

const SERVFAIL: DnsError = DnsError::ServerFailure(2);

#[test]
fn one_question_then_fresh_then_refreshed_once() {
    let mut w = World::new(|_| {});
    assert_eq!(w.lookup(0.0, "a.example"), "wait?");
    assert_eq!(w.lookup(0.1, "A.Example"), "wait");
    assert_eq!(w.found(0.2, "a.example", "10.0.0.1", 10), "10.0.0.1");
    assert_eq!(w.lookup(0.2, "a.EXAMPLE"), "10.0.0.1");
    assert_eq!(w.lookup(10.1, "a.example"), "10.0.0.1");
    // Expired: served, and refreshed by one question.
    assert_eq!(w.lookup(10.2, "a.example"), "10.0.0.1?");
    assert_eq!(w.lookup(10.3, "a.example"), "10.0.0.1");
    assert_eq!(w.found(10.4, "a.example", "10.0.0.2", 10), "10.0.0.2");
    assert_eq!(w.lookup(20.3, "a.example"), "10.0.0.2");
    // Long expired: callers wait.
    assert_eq!(w.lookup(50.3, "a.example"), "10.0.0.2?");
    assert_eq!(w.lookup(50.4, "a.example"), "wait");
    // With a dot at the end it is another name, without the search list.
    assert_eq!(w.lookup(50.4, "a.example."), "wait?");
    let counters = w.cache.counters();
    let expected = DnsCounters {
        hits: 3,
        misses: 2,
        joined: 2,
        stale: 3,
        asked: 4,
        in_flight: 2,
        entries: 2,
        ..DnsCounters::default()
    };
    assert_eq!(counters, expected);
}

#[test]
fn times_are_kept_within_their_bounds() {
    let mut w = World::new(|config| config.stale_while_refresh = Duration::ZERO);
    for (name, ttl, fresh, gone) in [
        ("zero", Some(0), 0.9, 1.0),
        ("forever", Some(1 << 31), 3599.9, 3600.0),
        ("unknown", None, 59.9, 60.0),
    ] {
        assert_eq!(w.lookup(0.0, name), "wait?");
        let answer = Answer {
            addresses: Ok(vec!["::1".parse().unwrap()]),
            ttl: ttl.map(Duration::from_secs),
        };
        assert_eq!(w.answer(0.0, name, answer), "::1");
        assert_eq!(w.lookup(fresh, name), "::1", "{name}");
        assert_eq!(w.lookup(gone, name), "wait?", "{name}");
    }
    // Reversed bounds and very long times are safe.
    let mut w = World::new(|config| {
        config.max_ttl = Duration::ZERO;
        config.min_ttl = Duration::MAX;
        config.stale_if_error = Duration::MAX;
    });
    w.lookup(0.0, "a");
    assert_eq!(w.found(0.0, "a", "::1", 5), "::1");
    assert_eq!(w.lookup(5e8, "a"), "::1");
}

#[test]
fn a_time_to_live_of_zero_is_used_once() {
    let mut w = World::new(|config| {
        config.min_ttl = Duration::ZERO;
        config.stale_while_refresh = Duration::ZERO;
    });
    w.lookup(0.0, "a");
    assert_eq!(w.found(0.0, "a", "::1", 0), "::1");
    assert_eq!(w.lookup(0.0, "a"), "wait?");
}

#[test]
fn failures_are_remembered_for_their_time() {
    let mut w = World::new(|_| {});
    for (name, error, ttl, until) in [
        ("gone", DnsError::NotFound, Some(20), 20.0),
        ("long-gone", DnsError::NotFound, Some(86_400), 60.0),
        ("empty", DnsError::NoAddresses, None, 5.0),
        ("silent", DnsError::Timeout, None, 5.0),
        ("zero", SERVFAIL, Some(0), 0.0),
    ] {
        let told = format!("{error:?}");
        assert_eq!(w.lookup(0.0, name), "wait?");
        assert_eq!(w.failed(0.0, name, error, ttl), told);
        if until > 0.0 {
            assert_eq!(w.lookup(until - 0.1, name), told);
        }
        assert_eq!(w.lookup(until, name), "wait?");
    }
    assert_eq!(w.cache.counters().failed, 5);
    assert_eq!(w.cache.counters().negative_hits, 4);
    // An answer without addresses is a failure, too.
    assert_eq!(w.found(99.0, "gone", "", 50), "NoAddresses");
}

#[test]
fn old_addresses_outlive_failing_servers_but_not_an_answer() {
    let mut w = World::new(|config| config.stale_if_error = Duration::from_secs(100));
    w.lookup(0.0, "a");
    w.found(0.0, "a", "10.0.0.1", 10);
    // Callers wait, and get old addresses if the servers fail.
    assert_eq!(w.lookup(45.0, "a"), "wait?");
    assert_eq!(w.failed(50.0, "a", SERVFAIL, None), "10.0.0.1");
    // The servers are not asked for a while.
    assert_eq!(w.lookup(54.9, "a"), "10.0.0.1");
    // After that, no caller waits for the next question.
    assert_eq!(w.lookup(55.0, "a"), "10.0.0.1?");
    assert_eq!(w.lookup(56.0, "a"), "10.0.0.1");
    assert_eq!(w.failed(60.0, "a", DnsError::Timeout, None), "10.0.0.1");
    assert_eq!(w.lookup(109.0, "a"), "10.0.0.1?");
    // Up to the bound.
    assert_eq!(w.failed(110.0, "a", SERVFAIL, None), "ServerFailure(2)");
    assert_eq!(w.lookup(110.0, "a"), "ServerFailure(2)");
    assert_eq!(w.lookup(115.0, "a"), "wait?");
    assert_eq!(w.found(115.0, "a", "10.0.0.2", 10), "10.0.0.2");
    // "No such host" is an answer, not a failed lookup.
    assert_eq!(w.lookup(126.0, "a"), "10.0.0.2?");
    assert_eq!(w.failed(126.0, "a", DnsError::NotFound, None), "NotFound");
    assert_eq!(w.lookup(126.1, "a"), "NotFound");
    // An answer ends the failure at once.
    assert_eq!(w.lookup(131.0, "a"), "wait?");
    assert_eq!(w.found(131.0, "a", "10.0.0.3", 10), "10.0.0.3");
    assert_eq!(w.lookup(131.0, "a"), "10.0.0.3");
}

#[test]
fn the_name_used_longest_ago_makes_room() {
    let mut w = World::new(|config| config.max_entries = NonZeroUsize::new(2).unwrap());
    for name in ["a", "b", "c", "d"] {
        assert_eq!(w.lookup(0.0, name), "wait?");
    }
    // Names in lookup are not counted: their answers must find them.
    assert_eq!(w.cache.counters().entries, 4);
    w.found(1.0, "a", "::a", 100);
    w.found(1.0, "b", "::b", 100);
    assert_eq!(w.lookup(2.0, "a"), "::a");
    w.found(3.0, "c", "::c", 100);
    // `c` was looked up before `a` was used, and `b` before both.
    assert_eq!(w.cache.counters().evicted, 1);
    assert_eq!(w.lookup(3.0, "a"), "::a");
    assert_eq!(w.lookup(3.0, "c"), "::c");
    w.found(3.0, "d", "::d", 100);
    assert_eq!(w.cache.counters().evicted, 2);
    assert_eq!(w.lookup(3.0, "d"), "wait?");
}

#[test]
fn flushing_forgets_what_is_known_and_lets_questions_go_on() {
    let mut w = World::new(|_| {});
    w.lookup(0.0, "a");
    w.found(0.0, "a", "::a", 100);
    w.lookup(0.0, "b");
    w.failed(0.0, "b", DnsError::NotFound, None);
    w.cache.flush("unknown");
    w.cache.flush("A");
    assert_eq!(w.lookup(1.0, "a"), "wait?");
    assert_eq!(w.lookup(1.0, "b"), "NotFound");
    w.cache.flush_all();
    w.check();
    assert_eq!(w.lookup(1.0, "a"), "wait");
    assert_eq!(w.lookup(1.0, "b"), "wait?");
    assert_eq!(w.found(1.0, "a", "::b", 100), "::b");
    // A refresh in flight brings the current addresses.
    assert_eq!(w.lookup(101.5, "a"), "::b?");
    w.cache.flush("a");
    assert_eq!(w.lookup(101.6, "a"), "wait");
    assert_eq!(w.found(101.7, "a", "::c", 100), "::c");
}

#[test]
fn a_cancelled_question_is_asked_again_and_only_its_late_addresses_count() {
    let mut w = World::new(|_| {});
    let addresses = |ip: &str| Answer::found([ip.parse().unwrap()], Duration::from_secs(10));
    assert_eq!(w.lookup(0.0, "a"), "wait?");
    assert!(w.cache.cancel("A"));
    w.check();
    assert!(!w.cache.cancel("a"));
    assert!(!w.cache.cancel("unknown"));
    assert_eq!(w.lookup(1.0, "a"), "wait?");
    // The failure of the first question does not end the second one.
    let lost = Answer::failed(DnsError::Unanswered);
    assert_eq!(w.answer_to(1, 2.0, "a", lost), "nothing");
    assert_eq!(w.lookup(2.0, "a"), "wait");
    // Late addresses serve the calls that wait.
    assert_eq!(w.answer_to(1, 3.0, "a", addresses("::1")), "::1");
    assert_eq!(w.lookup(3.0, "a"), "::1");
    assert_eq!(w.cache.counters().in_flight, 1);
    assert_eq!(w.answer_to(2, 4.0, "a", addresses("::2")), "::2");
    // They do not replace the addresses of a later answer.
    assert_eq!(w.answer_to(1, 5.0, "a", addresses("::3")), "nothing");
    assert_eq!(w.found(5.0, "a", "::4", 10), "nothing");
    assert_eq!(w.found(5.0, "unknown", "::5", 10), "nothing");
    assert_eq!(w.lookup(5.0, "a"), "::2");
    let counters = w.cache.counters();
    assert_eq!((counters.cancelled, counters.in_flight), (1, 0));
}

#[test]
fn a_busy_resolver_is_no_failure_of_the_name() {
    let mut w = World::new(|_| {});
    for error in [DnsError::QueueFull(9), DnsError::NotAsked] {
        let told = format!("{error:?}");
        assert_eq!(w.lookup(0.0, "a"), "wait?");
        assert_eq!(w.failed(0.0, "a", error, None), told);
    }
    assert_eq!(w.lookup(0.0, "a"), "wait?");
    w.found(0.0, "a", "::a", 10);
    assert_eq!(w.lookup(45.0, "a"), "wait?");
    // Old addresses are served, and the next call asks again.
    assert_eq!(w.failed(45.0, "a", DnsError::NotAsked, None), "::a");
    assert_eq!(w.lookup(45.0, "a"), "wait?");
}

#[test]
fn addresses_are_bounded_and_differ() {
    let mut w = World::new(|config| config.max_addresses = NonZeroUsize::new(3).unwrap());
    w.lookup(0.0, "a");
    assert_eq!(w.found(0.0, "a", "::1 ::2 ::1 ::3 ::4", 9), "::1 ::2 ::3");
}

#[test]
fn one_family_can_be_chosen() {
    let mut w = World::new(|config| config.family = Some(Family::V4));
    w.lookup(0.0, "a");
    assert_eq!(w.found(0.0, "a", "::1 10.0.0.1 ::2", 9), "10.0.0.1");
    w.lookup(0.0, "b");
    assert_eq!(w.found(0.0, "b", "::1", 9), "NoAddresses");
    let fixed = ["localhost", "[::1]", "10.0.0.2"].map(|host| w.cache.fixed(host, 80));
    let fixed = fixed.map(|found| shown(&found.unwrap()));
    assert_eq!(fixed, ["127.0.0.1", "NoAddresses", "10.0.0.2"]);
}

#[test]
fn what_needs_no_resolver() {
    let mut config = DnsConfig::default();
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    config
        .resolve("*", Some(443), [ip("10.0.0.9")])
        .resolve("Example.com.", None, [ip("10.0.0.1"), ip("::1")])
        .resolve("example.com", Some(8080), [ip("10.0.0.2")])
        .resolve("example.com", Some(81), [ip("10.0.0.3")])
        .resolve("example.com", Some(81), [ip("10.0.0.4")])
        .resolve("none.example", None, [])
        .resolve("10.1.1.1", Some(80), [ip("10.0.0.5")])
        .resolve("localhost", Some(80), [ip("10.0.0.6")]);
    let cache = NameCache::new(config);
    let long_label = "a".repeat(64);
    let long_name = "a.".repeat(127);
    let longest = "a.".repeat(126) + "a.";
    for (host, port, expected) in [
        ("example.com", 80, "10.0.0.1 ::1"),
        ("example.com", 81, "10.0.0.4"),
        ("other.example", 443, "10.0.0.9"),
        ("none.example", 1, "NoAddresses"),
        ("10.1.1.1", 80, "10.0.0.5"),
        ("localhost", 80, "10.0.0.6"),
        ("10.1.1.1", 81, "10.1.1.1"),
        ("[::1]", 80, "::1"),
        ("::1", 80, "::1"),
        ("::ffff:10.0.0.1", 80, "::ffff:10.0.0.1"),
        ("localhost", 81, "::1 127.0.0.1"),
        ("LocalHost.", 81, "::1 127.0.0.1"),
        ("a.b.localhost", 80, "::1 127.0.0.1"),
        ("", 80, "InvalidName"),
        ("a..b", 80, "InvalidName"),
        (".localhost", 80, "InvalidName"),
        ("a b", 80, "InvalidName"),
        ("ä.example", 80, "InvalidName"),
        ("[10.0.0.1]", 80, "InvalidName"),
        ("fe80::1%eth0", 80, "InvalidName"),
        (&long_label, 80, "InvalidName"),
        (&long_name, 80, "ask"),
        (&longest, 80, "ask"),
        (&format!("a.{longest}"), 80, "InvalidName"),
        ("localhost.example", 80, "ask"),
        ("_tcp.xn--bcher-kva.example", 80, "ask"),
    ] {
        let found = cache.fixed(host, port);
        let found = found.as_ref().map_or_else(|| "ask".to_owned(), shown);
        assert_eq!(found, expected, "{host}:{port}");
    }
}

/// One step of a caller or of the resolver.
#[derive(Clone, Debug)]
enum Step {
    Lookup(u8),
    Answer(u8, bool, u8),
    Cancel(u8),
    Flush(u8),
    FlushAll,
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u8).prop_map(Step::Lookup),
        4 => (0..6u8, any::<bool>(), 0..20u8).prop_map(|(n, ok, ttl)| Step::Answer(n, ok, ttl)),
        1 => (0..6u8).prop_map(Step::Cancel),
        1 => (0..6u8).prop_map(Step::Flush),
        1 => Just(Step::FlushAll),
        3 => (0..50u8).prop_map(Step::Wait),
    ]
}

proptest! {
    /// The invariants hold after any steps. A name is looked up only if no lookup is in flight, and every waiting
    /// caller waits for a question in flight.
    #[test]
    fn any_steps(steps in prop::collection::vec(step(), 1..200), room in 1..5usize) {
        let mut w = World::new(|config| {
            config.max_entries = NonZeroUsize::new(room).unwrap();
            config.stale_if_error = Duration::from_secs(60);
        });
        let mut asked = [false; 6];
        let mut seconds = 0.0;
        for step in steps {
            match step {
                Step::Lookup(n) => {
                    let told = w.lookup(seconds, &n.to_string());
                    let slot = &mut asked[usize::from(n)];
                    if told.ends_with('?') {
                        prop_assert!(!*slot);
                        *slot = true;
                    }
                    prop_assert!(*slot || told != "wait");
                }
                Step::Answer(n, ok, ttl) => {
                    let name = n.to_string();
                    let told = match ok {
                        true => w.found(seconds, &name, "::1", ttl.into()),
                        false => w.failed(seconds, &name, SERVFAIL, Some(ttl.into())),
                    };
                    let slot = &mut asked[usize::from(n)];
                    // Only late addresses are of use without a question.
                    prop_assert!(ok || *slot == (told != "nothing"));
                    prop_assert!(!*slot || told != "nothing");
                    *slot = false;
                }
                Step::Cancel(n) => {
                    let was_asked = std::mem::take(&mut asked[usize::from(n)]);
                    prop_assert_eq!(w.cache.cancel(&n.to_string()), was_asked);
                }
                Step::Flush(n) => w.cache.flush(&n.to_string()),
                Step::FlushAll => w.cache.flush_all(),
                Step::Wait(by) => seconds += f64::from(by),
            }
            w.check();
            prop_assert_eq!(w.cache.counters().in_flight, asked.iter().filter(|a| **a).count());
        }
    }
}
