//! Name lookup in the simulation: questions are answered at virtual times, late, wrongly or never.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::random::Random;
use crate::net::resolve::lookup_queue::{LookupLimits, LookupQueue, Step};
use crate::net::resolve::{Answer, Reply, Resolver};
use crate::time::Time;

/// The answer of a [`SimResolver`] to one question.
///
/// ```
/// use std::time::Duration;
/// use courser::net::sim::{ScriptedAnswer, SimNet};
/// use courser::error::TimeLimit;
/// use courser::{Answer, Client, Config, ErrorKind, Response};
///
/// let ttl = Duration::from_secs(60);
/// let net = SimNet::new(1);
/// let resolver = net.resolver(move |random, name| match name {
///     "mute.sim" => ScriptedAnswer::Never,
///     _ => ScriptedAnswer::After(
///         random.duration(&(Duration::ZERO..=Duration::from_millis(50))),
///         Answer::found(["10.0.0.1".parse().unwrap()], ttl),
///     ),
/// });
/// let mut client = Client::with_net(Config::default(), net, resolver)?;
/// let error = client.get("http://mute.sim/", &mut Response::new()).unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Resolve)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum ScriptedAnswer {
    /// This answer, after this time.
    After(Duration, Answer),
    /// No answer at all, as from a hanging resolver.
    Never,
    /// The reply is dropped without an answer after this time, as by a resolver that has ended.
    Lost(Duration),
}

/// The resolver of a [`SimNet`](super::SimNet): see [`SimNet::resolver`](super::SimNet::resolver). It only records the
/// questions; the network answers them at their times.
#[derive(Debug)]
pub struct SimResolver(Questions);

impl SimResolver {
    fn say(&self, message: Message) {
        lock(&self.0).push(message);
    }
}

impl Resolver for SimResolver {
    fn lookup(&mut self, name: &str, reply: Reply) {
        self.say(Message::Ask(name.to_owned(), reply));
    }

    fn cancel(&mut self, name: &str) {
        self.say(Message::Cancel(name.to_owned()));
    }
}

#[derive(Debug)]
enum Message {
    Ask(String, Reply),
    Cancel(String),
}

/// What the network has not processed yet. In a lock only because a resolver must be `Send`.
type Questions = Arc<Mutex<Vec<Message>>>;

fn lock(questions: &Questions) -> MutexGuard<'_, Vec<Message>> {
    questions.lock().unwrap_or_else(PoisonError::into_inner)
}

type Script = Box<dyn FnMut(&mut Random, &str) -> ScriptedAnswer>;

/// The network's side of name lookup.
pub(super) struct NameService {
    questions: Questions,
    script: Option<Script>,
    /// A generator of its own: one question more does not change the rest of the network.
    random: Random,
    /// The time of the queue at the beginning of the network's time.
    began: Time,
    queue: LookupQueue<Reply>,
    /// When the queue has something to do.
    queue_due: Option<Duration>,
    /// The answers of the name servers to lookups that have started. They hold when the lookup starts again.
    answers: HashMap<Arc<str>, Coming>,
    /// Answers of lookups in flight, by their times and then in the order of the questions.
    pending: BTreeMap<(Duration, u64), Arc<str>>,
    asked: u64,
    /// For each name, when the question was asked that has no answer yet, and the longest time that one took.
    waits: Option<HashMap<String, Wait>>,
}

/// An answer on its way. Without a time it never comes, and without an answer the reply is dropped.
struct Coming {
    at: Option<(Duration, u64)>,
    answer: Option<Answer>,
}

#[derive(Default)]
struct Wait {
    since: Option<Duration>,
    longest: Duration,
}

impl Wait {
    fn end(&mut self, now: Duration) {
        if let Some(since) = self.since.take() {
            self.longest = self.longest.max(now - since);
        }
    }
}

impl NameService {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            questions: Questions::default(),
            script: None,
            random: Random::new(!seed),
            began: Time::of(Instant::now()),
            queue: LookupQueue::new(LookupLimits {
                in_flight: usize::MAX,
                waiting: usize::MAX,
                time: None,
                can_stop: true,
            }),
            queue_due: None,
            answers: HashMap::new(),
            pending: BTreeMap::new(),
            asked: 0,
            waits: None,
        }
    }

    pub(super) fn set_script(&mut self, script: Script) -> SimResolver {
        self.script = Some(script);
        SimResolver(Arc::clone(&self.questions))
    }

    pub(super) fn set_lookups(&mut self, in_flight: usize) {
        self.queue = LookupQueue::new(LookupLimits {
            in_flight,
            waiting: usize::MAX,
            time: None,
            can_stop: true,
        });
        self.waits = Some(HashMap::new());
    }

    /// Decides the answers to new questions. Time does not pass between a question and this call.
    pub(super) fn take_questions(&mut self, now: Duration) {
        let messages = std::mem::take(&mut *lock(&self.questions));
        for message in messages {
            match message {
                Message::Ask(name, reply) => {
                    if let Some(waits) = &mut self.waits {
                        waits.entry(name.clone()).or_default().since = Some(now);
                    }
                    if let Err((reply, error)) = self.queue.ask(self.began + now, &name, reply) {
                        reply.answer(Answer::failed(error));
                    }
                }
                Message::Cancel(name) => {
                    self.end_wait(&name, now);
                    drop(self.queue.cancel(&name));
                }
            }
            self.run_queue(now);
        }
    }

    fn run_queue(&mut self, now: Duration) {
        loop {
            match self.queue.poll(self.began + now) {
                Step::Start { name, instead_of } => {
                    if let Some(stopped) = instead_of {
                        self.stop(&stopped);
                    }
                    self.start(now, name);
                }
                Step::Fail {
                    name,
                    replies,
                    error,
                } => {
                    self.stop(&name);
                    self.end(&name, now, replies, Some(Answer::failed(error)));
                }
                Step::Wait(until) => {
                    self.queue_due = until.map(|until| until - self.began);
                    return;
                }
            }
        }
    }

    /// The name servers work on, even while the resolver does not wait for them.
    fn start(&mut self, now: Duration, name: Arc<str>) {
        if !self.answers.contains_key(&name)
            && let Some(script) = &mut self.script
        {
            self.asked += 1;
            let (after, answer) = match script(&mut self.random, &name) {
                ScriptedAnswer::After(after, answer) => (Some(after), Some(answer)),
                ScriptedAnswer::Lost(after) => (Some(after), None),
                ScriptedAnswer::Never => (None, None),
            };
            let at = after.map(|after| (now + after, self.asked));
            self.answers.insert(name.clone(), Coming { at, answer });
        }
        if let Some(Coming { at: Some(at), .. }) = self.answers.get(&name) {
            self.pending.insert(*at, name);
        }
    }

    fn stop(&mut self, name: &str) {
        if let Some(Coming { at: Some(at), .. }) = self.answers.get(name) {
            self.pending.remove(at);
        }
    }

    pub(super) fn next_answer_at(&self) -> Option<Duration> {
        let next = self.pending.first_key_value().map(|((at, _), _)| *at);
        next.into_iter().chain(self.queue_due).min()
    }

    pub(super) fn deliver_answers(&mut self, now: Duration) {
        if self.next_answer_at().is_none_or(|at| at > now) {
            return;
        }
        while let Some(entry) = self.pending.first_entry()
            && entry.key().0 <= now
        {
            let name = entry.remove();
            let replies = self.queue.finish(&name);
            let answer = self.answers.remove(&name).and_then(|coming| coming.answer);
            self.end(&name, now, replies, answer);
        }
        self.run_queue(now);
    }

    fn end(&mut self, name: &str, now: Duration, replies: Vec<Reply>, answer: Option<Answer>) {
        self.end_wait(name, now);
        // Dropping a reply answers it.
        for (reply, answer) in replies.into_iter().zip(std::iter::repeat(answer)) {
            if let Some(answer) = answer {
                reply.answer(answer);
            }
        }
    }

    fn end_wait(&mut self, name: &str, now: Duration) {
        let waits = self.waits.as_mut();
        if let Some(wait) = waits.and_then(|waits| waits.get_mut(name)) {
            wait.end(now);
        }
    }

    /// The longest wait for an answer to this name, also a cancelled one, or one that is not over.
    pub(super) fn longest_lookup(&self, name: &str, now: Duration) -> Duration {
        let wait = self.waits.as_ref().and_then(|waits| waits.get(name));
        wait.map_or(Duration::ZERO, |wait| {
            let open = wait.since.map_or(Duration::ZERO, |since| now - since);
            wait.longest.max(open)
        })
    }

    /// Names without an answer so far that were not cancelled, in alphabetical order.
    pub(super) fn open_questions(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<_> = self.queue.wanted().collect();
        names.sort_unstable();
        names.into_iter()
    }
}

impl fmt::Debug for NameService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open_questions()).finish()
    }
}
