//! Random changes of jobs, compared with a model in memory.

use proptest::prelude::*;

use super::*;

pub(crate) fn jobs_agree_with_the_model<E: Engine>() {
    for_random_steps(step(), 60, |steps| {
        let engine = E::new();
        let mut store = engine.open();
        let mut model = Model::default();
        for step in steps {
            model.apply(&mut store, &step);
            model.compare(&mut store);
        }
    });
}

/// A change.
#[derive(Clone, Debug)]
enum Step {
    Enqueue(Vec<New>),
    Start(usize),
    /// What becomes of an attempt that was ever started: its place among all.
    Settle(Vec<(usize, How)>),
    Requeue(usize),
    Replay,
    /// The clock was set back by so much.
    BringForward(u32),
    Wait(i64),
}

#[derive(Clone, Debug)]
struct New {
    key: Option<u8>,
    keep: u64,
    max_attempts: u32,
    delay: i64,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Done,
    Retry(i64),
    Dead,
    Postponed(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let new = (
        prop::option::of(0..4u8),
        prop_oneof![Just(0), Just(20u64)],
        0..4u32,
        0..15i64,
    );
    let new = new.prop_map(|(key, keep, max_attempts, delay)| New {
        key,
        keep,
        max_attempts,
        delay,
    });
    let how = prop_oneof![
        3 => Just(How::Done),
        4 => (0..15i64).prop_map(How::Retry),
        1 => Just(How::Dead),
        1 => (0..15i64).prop_map(How::Postponed),
    ];
    prop_oneof![
        4 => proptest::collection::vec(new, 0..5).prop_map(Step::Enqueue),
        4 => (0..4usize).prop_map(Step::Start),
        5 => proptest::collection::vec((0..30usize, how), 0..4).prop_map(Step::Settle),
        1 => (0..30usize).prop_map(Step::Requeue),
        1 => Just(Step::Replay),
        1 => (1..9u32).prop_map(Step::BringForward),
        3 => (1..12i64).prop_map(Step::Wait),
    ]
}

#[derive(Default)]
struct Model {
    now: i64,
    jobs: Vec<Job>,
    /// All attempts that were ever started.
    attempts: Vec<(JobId, u32)>,
    /// The dead letters that were not replayed: keys, or `None`, with the limits of attempts.
    letters: Vec<Letter>,
}

#[derive(Clone, Debug)]
struct Job {
    id: JobId,
    new: New,
    at: i64,
    phase: Phase,
    attempt: u32,
    failed: u32,
    /// What its dead letter is known by.
    letter: Option<usize>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Waiting,
    Started,
    /// Its key is known until then.
    Over(i64),
    Gone,
}

#[derive(Clone, Debug)]
struct Letter {
    new: New,
    reason: &'static str,
    times: u32,
    is_replayed: bool,
}

impl Model {
    fn apply(&mut self, store: &mut impl JobStore, step: &Step) {
        match step {
            Step::Wait(seconds) => self.now += seconds,
            Step::Enqueue(new) => self.enqueue(store, new),
            Step::Start(limit) => self.start(store, *limit),
            Step::Settle(settled) => self.settle(store, settled),
            Step::Requeue(place) => {
                let Some(&(id, attempt)) = self.attempts.get(*place) else {
                    return;
                };
                store.requeue(&[(id, attempt)]).expect("written");
                if let Some(job) = self.started(id, attempt) {
                    job.phase = Phase::Waiting;
                    job.failed -= 1;
                    job.at = job.at.min(job.new.delay);
                }
            }
            Step::Replay => self.replay(store),
            Step::BringForward(seconds) => self.bring_forward(store, *seconds),
        }
    }

    fn bring_forward(&mut self, store: &mut impl JobStore, seconds: u32) {
        let by = Duration::from_secs(seconds.into());
        store.bring_jobs_forward(by, at(self.now)).expect("written");
        let now = self.now;
        let waits = |job: &&mut Job| job.phase == Phase::Waiting && job.at > now;
        for job in self.jobs.iter_mut().filter(waits) {
            job.at -= i64::from(seconds);
        }
    }

    fn started(&mut self, id: JobId, attempt: u32) -> Option<&mut Job> {
        let is_it =
            |job: &&mut Job| job.id == id && job.attempt == attempt && job.phase == Phase::Started;
        self.jobs.iter_mut().find(is_it)
    }

    /// The job that has this key.
    fn known(&mut self, key: u8) -> Option<&mut Job> {
        let is_it = |job: &&mut Job| job.new.key == Some(key) && job.phase != Phase::Gone;
        self.jobs.iter_mut().find(is_it)
    }

    /// What a job with this key becomes now, if it waits or is over.
    fn is_free(&mut self, key: Option<u8>, is_replay: bool) -> Result<(), JobId> {
        let now = self.now;
        let Some(job) = key.and_then(|key| self.known(key)) else {
            return Ok(());
        };
        match job.phase {
            Phase::Over(until) if until <= now || is_replay => {
                job.phase = Phase::Gone;
                Ok(())
            }
            _ => Err(job.id),
        }
    }

    fn enqueue(&mut self, store: &mut impl JobStore, new: &[New]) {
        let jobs: Vec<NewJob> = new
            .iter()
            .map(|new| NewJob {
                queue: "mail".to_owned(),
                key: new.key.map(|key| key.to_string()),
                keep_key: Duration::from_secs(new.keep),
                payload: new.key.into_iter().collect(),
                max_attempts: new.max_attempts,
                not_before: Some(at(self.now + new.delay)),
            })
            .collect();
        let enqueued = store.enqueue(&jobs, at(self.now)).expect("written");
        assert_eq!(enqueued.len(), new.len());
        for (new, enqueued) in new.iter().zip(enqueued) {
            match self.is_free(new.key, false) {
                Ok(()) => {
                    assert!(matches!(enqueued, Enqueued::New(_)), "{new:?}");
                    self.add(enqueued.id(), new, self.now + new.delay, None);
                }
                Err(id) => assert_eq!(enqueued, Enqueued::Known(id)),
            }
        }
    }

    fn add(&mut self, id: JobId, new: &New, at: i64, letter: Option<usize>) {
        assert!(self.jobs.iter().all(|job| job.id < id), "{id:?} is new");
        self.jobs.push(Job {
            id,
            // From here on, when it was stored.
            new: New {
                delay: self.now,
                ..new.clone()
            },
            at,
            phase: Phase::Waiting,
            attempt: 0,
            failed: 0,
            letter,
        });
    }

    fn start(&mut self, store: &mut impl JobStore, limit: usize) {
        let started = store.start("mail", at(self.now), limit).expect("written");
        assert_eq!(started.poisoned, []);
        let now = self.now;
        let mut ready: Vec<&mut Job> = self
            .jobs
            .iter_mut()
            .filter(|job| job.phase == Phase::Waiting && job.at <= now)
            .collect();
        ready.sort_by_key(|job| (job.at, job.id));
        ready.truncate(limit);
        assert_eq!(started.jobs.len(), ready.len());
        for (job, started) in ready.into_iter().zip(started.jobs) {
            assert_eq!(started.id, job.id);
            assert_eq!(
                (started.attempt, started.failed),
                (job.attempt + 1, job.failed)
            );
            job.attempt += 1;
            job.failed += 1;
            job.at = now;
            job.phase = Phase::Started;
            self.attempts.push((started.id, started.attempt));
        }
    }

    fn settle(&mut self, store: &mut impl JobStore, settled: &[(usize, How)]) {
        let now = self.now;
        let settled = settled.iter().filter_map(|&(place, how)| {
            let &(job, attempt) = self.attempts.get(place)?;
            Some((job, attempt, how))
        });
        let settled: Vec<(JobId, u32, How)> = settled.collect();
        let settlements: Vec<Settlement> = settled
            .iter()
            .map(|&(job, attempt, how)| Settlement {
                job,
                attempt,
                settled: how.settled(now),
            })
            .collect();
        let result = store.settle(&settlements, at(now)).expect("written");
        let (mut stale, mut dead) = (0, Vec::new());
        for (id, attempt, how) in settled {
            let Some(job) = self.started(id, attempt) else {
                stale += 1;
                continue;
            };
            let is_last = job.failed >= job.new.max_attempts.max(1);
            let over = match (job.new.key, job.new.keep) {
                (Some(_), keep @ 1..) => Phase::Over(now + keep as i64),
                _ => Phase::Gone,
            };
            let reason = match how {
                How::Done => {
                    job.phase = over;
                    continue;
                }
                How::Postponed(delay) => {
                    (job.phase, job.at) = (Phase::Waiting, now + delay);
                    job.failed -= 1;
                    continue;
                }
                How::Retry(delay) if !is_last => {
                    (job.phase, job.at) = (Phase::Waiting, now + delay);
                    continue;
                }
                How::Retry(_) => ATTEMPTS,
                How::Dead => "dead",
            };
            job.phase = over;
            let (new, letter) = (job.new.clone(), job.letter);
            dead.push(id);
            self.bury(new, reason, letter);
        }
        let buried: Vec<JobId> = result.dead.iter().map(|&(job, _)| job).collect();
        assert_eq!((result.stale, buried), (stale, dead));
    }

    fn bury(&mut self, new: New, reason: &'static str, before: Option<usize>) {
        let is_same = |letter: &Letter| letter.new.key.is_some() && letter.new.key == new.key;
        let same = self.letters.iter().position(is_same);
        match same.or(before) {
            Some(place) => {
                self.letters[place].new = new;
                self.letters[place].reason = reason;
                self.letters[place].times += 1;
                self.letters[place].is_replayed = false;
            }
            None => self.letters.push(Letter {
                new,
                reason,
                times: 1,
                is_replayed: false,
            }),
        }
    }

    fn replay(&mut self, store: &mut impl JobStore) {
        let filter = DeadLetterFilter::default();
        let replayed = store
            .replay(&filter, DeadLetterId::START, 1000, at(self.now))
            .expect("written");
        let mut count = 0;
        // The numbers of new jobs are those that come next.
        let mut started = store.start("none", at(0), 1).expect("written");
        assert_eq!(started.jobs.pop(), None);
        for place in 0..self.letters.len() {
            let letter = self.letters[place].clone();
            if letter.is_replayed {
                continue;
            }
            self.letters[place].is_replayed = true;
            count += 1;
            if self.is_free(letter.new.key, true).is_ok() {
                let next = self.jobs.last().map_or(1, |job| job.id.0 + 1);
                self.add(JobId(next), &letter.new, self.now, Some(place));
            }
        }
        assert_eq!((replayed.count, replayed.passed), (count, 0));
    }

    fn compare(&self, store: &mut impl JobStore) {
        let count = |phase| self.jobs.iter().filter(|job| job.phase == phase).count() as u64;
        let counts = store.job_counts("mail").expect("readable");
        let expected = (count(Phase::Waiting), count(Phase::Started));
        assert_eq!((counts.waiting, counts.started), expected);
        let waiting = self.jobs.iter().filter(|job| job.phase == Phase::Waiting);
        let next = waiting.map(|job| at(job.at)).min();
        assert_eq!(store.next_job_at("mail").expect("readable"), next);
        for reason in [ATTEMPTS, "dead"] {
            let is_counted = |letter: &&Letter| letter.reason == reason && !letter.is_replayed;
            let expected = self.letters.iter().filter(is_counted).count() as u64;
            let counts = store.dead_letter_counts().expect("readable");
            let counted = counts.iter().find(|(name, _)| name == reason);
            assert_eq!(counted.map_or(0, |(_, count)| *count), expected, "{reason}");
        }
        let filter = DeadLetterFilter {
            with_replayed: true,
            ..DeadLetterFilter::default()
        };
        let mut times = Vec::new();
        let visit = &mut |letter: DeadLetter| {
            times.push(letter.times);
            ControlFlow::Continue(())
        };
        let visited = store.dead_letters(&filter, DeadLetterId::START, visit);
        visited.expect("readable");
        let expected: Vec<u32> = self.letters.iter().map(|letter| letter.times).collect();
        assert_eq!(times, expected);
    }
}

impl How {
    fn settled(self, now: i64) -> Settled {
        match self {
            Self::Done => Settled::Done,
            Self::Retry(delay) => Settled::Retry {
                at: at(now + delay),
                why: "status 503".to_owned(),
            },
            Self::Dead => Settled::Dead {
                reason: "dead".to_owned(),
                last: "404".to_owned(),
            },
            Self::Postponed(delay) => Settled::Postponed {
                at: at(now + delay),
            },
        }
    }
}
