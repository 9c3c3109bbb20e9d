//! Host crawls that are saved (to a map), interrupted, and restored.

use super::*;

/// What is saved of a crawl.
#[derive(Default)]
struct Disk {
    snapshot: Snapshot,
    /// The texts of the tasks, and whether each is on disk only.
    queued: BTreeMap<u64, (String, bool)>,
    held: BTreeMap<u64, (String, ListingProgress)>,
    known: BTreeSet<u128>,
}

impl Disk {
    /// To be called after each step.
    fn keep(&mut self, crawl: &mut HostCrawl) {
        for change in crawl.take_changes() {
            match change {
                Change::Begun => {}
                Change::Queued(number, text) => {
                    self.queued.insert(number, (text, false));
                }
                Change::Done(number) => {
                    self.queued.remove(&number);
                    self.held.remove(&number);
                }
                Change::Listing(number, Some(text), place) => {
                    self.held.insert(number, (text, place));
                }
                Change::Listing(number, None, place) => {
                    self.held.get_mut(&number).expect("it was held").1 = place;
                }
                // For a later run.
                Change::Failed(..) | Change::Wanted(..) => {}
                Change::Known(fingerprint) => {
                    self.known.insert(fingerprint);
                }
            }
        }
        for number in crawl.spill() {
            self.queued.get_mut(&number).expect("it was queued").1 = true;
        }
        self.snapshot = crawl.snapshot();
    }

    /// To be called before each step.
    fn give_back(&mut self, now: Instant, crawl: &mut HostCrawl, outcome: &mut Outcome) {
        let wanted = crawl.wants_back();
        if wanted == 0 {
            return;
        }
        let spilled = self.queued.iter_mut().filter(|(_, (_, spilled))| *spilled);
        let back = spilled.take(wanted).map(|(number, (text, spilled))| {
            *spilled = false;
            (*number, text.clone())
        });
        let back = back.collect();
        crawl
            .add_back(&mut Turn::new(now, outcome), back)
            .expect("a crawl's own text");
    }

    fn saved(&mut self) -> KeptCrawl {
        let held = &self.held;
        for (number, (_, spilled)) in &mut self.queued {
            *spilled = !held.contains_key(number);
        }
        let spilled = self.queued.values().filter(|(_, spilled)| *spilled).count();
        let held = self.held.iter();
        KeptCrawl {
            snapshot: self.snapshot.clone(),
            held: held
                .map(|(number, (text, place))| (*number, text.clone(), place.clone()))
                .collect(),
            known: self.known.iter().copied().collect(),
            files: Vec::new(),
            spilled: spilled as u64,
        }
    }

    /// Crawls from `/`, or continues, until this number of requests were made or nothing is left. One request at a
    /// time, each answered at once.
    fn crawl(
        &mut self,
        policy: Policy,
        requests: usize,
        mut answer: impl FnMut(FetchKind, &str) -> Answer,
    ) -> Outcome {
        let mut crawl = HostCrawl::new(&Url::parse("http://h/").expect("valid"), policy);
        crawl.add_start("/");
        match self.snapshot == Snapshot::default() {
            true => crawl.keep_journal(),
            false => crawl.restore(self.saved()).expect("its own texts"),
        }
        let mut outcome = Outcome::default();
        let mut now = Instant::now();
        while !crawl.is_done() && outcome.log.len() < requests {
            self.give_back(now, &mut crawl, &mut outcome);
            if let Some(fetch) = crawl.poll_request(now) {
                let (id, kind, target) = (fetch.id, fetch.kind, fetch.target.to_owned());
                let given = answer(kind, &target);
                outcome.log.push((0, kind, target));
                give(&mut crawl, now, id, given, &mut outcome);
            } else if let Some(due) = crawl.poll_timeout(now) {
                now = now.max(due);
            } else {
                assert!(crawl.is_done() || crawl.wants_back() > 0, "it hangs");
            }
            self.keep(&mut crawl);
        }
        outcome.counts = crawl.counts();
        outcome
    }
}

/// More directories than come back at a time.
fn many() -> Vec<String> {
    (0..60_000).map(|i| format!("d{i}/")).collect()
}

/// Asserts that all directories of [`many`] were given up for this cause, each reported once.
fn all_given_up(outcome: &Outcome, cause: &str) {
    let urls: BTreeSet<&str> = outcome.unread.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!((urls.len(), outcome.unread.len()), (60_000, 60_000));
    for (_, why) in &outcome.unread {
        assert_eq!(why, cause);
    }
}

fn robots(text: &'static str) -> Answer {
    Answer::Html(text, BodyEnd::Framed)
}

/// The trap: a task that comes back from disk after robots.txt is requested although robots.txt forbids it.
#[test]
fn robots_txt_holds_for_what_comes_back() {
    for (answer, cause) in [
        (
            robots("User-agent: *\nDisallow: /d"),
            "not read: robots.txt disallows it",
        ),
        (
            Answer::Status(500),
            "not read: robots.txt could not be read: the server answered 500",
        ),
        (Answer::Fail(FailureScope::Host), "connection reset"),
    ] {
        let mut disk = Disk::default();
        let begun = disk.crawl(Policy::default(), 2, |kind, _| match kind {
            FetchKind::Robots => Answer::Status(404),
            _ => Answer::Page(many()),
        });
        assert_eq!(begun.unread, []);
        let outcome = disk.crawl(Policy::default(), usize::MAX, |kind, target| match kind {
            FetchKind::Robots => answer.clone(),
            _ => panic!("{target} was asked for"),
        });
        all_given_up(&outcome, cause);
        assert_eq!(disk.queued.len(), 0);
    }
}

/// The trap: a resumed search whose host is away requests one batch of tasks after the other.
#[test]
fn a_host_that_is_away_is_given_up_with_all_that_comes_back() {
    let mut disk = Disk::default();
    disk.crawl(plain(), 1, |_, _| Answer::Page(many()));
    let outcome = disk.crawl(plain(), usize::MAX, |_, _| Answer::Fail(FailureScope::Host));
    assert_eq!(outcome.log.len(), 4);
    all_given_up(&outcome, "connection reset");
    assert_eq!(disk.queued.len(), 0);
}

/// The trap: the entries of an interrupted listing are waited for without end.
#[test]
fn a_host_that_is_away_is_given_up_with_a_listing_that_waits() {
    let policy = Policy {
        clock: true,
        ..plain()
    };
    let mut disk = Disk::default();
    disk.crawl(policy.clone(), 1, |_, _| timed(&["a", "b", "d/"]));
    assert_eq!(disk.held.len(), 1);
    let outcome = disk.crawl(policy, usize::MAX, |_, _| Answer::Fail(FailureScope::Host));
    assert_eq!(outcome.urls(), ["http://h/a", "http://h/b", "http://h/d/"]);
    let mut unread: Vec<&str> = outcome.unread.iter().map(|(url, _)| url.as_str()).collect();
    unread.sort_unstable();
    assert_eq!(unread, ["http://h/a", "http://h/b", "http://h/d/"]);
    assert_eq!((disk.held.len(), disk.queued.len()), (0, 0));
}

/// The trap: the file whose reply all listings wait for does not come back, because there are so many directories.
#[test]
fn listings_that_wait_go_on_although_what_they_wait_for_is_not_back() {
    let policy = Policy {
        clock: true,
        ..plain()
    };
    let mut disk = Disk::default();
    disk.crawl(policy.clone(), 2 + MOST_PARTIAL, |kind, target| {
        match (kind, target) {
            (FetchKind::Probe, _) => Answer::Fail(FailureScope::Request),
            (_, "/") => Answer::Page(many()),
            _ => timed(&["a", "b"]),
        }
    });
    assert_eq!(disk.held.len(), MOST_PARTIAL);
    let outcome = disk.crawl(policy, usize::MAX, |kind, _| match kind {
        FetchKind::Probe => Answer::Status(200),
        _ => Answer::Status(404),
    });
    assert_eq!(outcome.urls().len(), 2 * MOST_PARTIAL);
    assert_eq!(outcome.unread.len(), 60_000 - MOST_PARTIAL);
    assert_eq!((disk.held.len(), disk.queued.len()), (0, 0));
}
