//! Names in the simulation: questions are answered at their virtual times, late, wrongly or never.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::random::Random;
use crate::net::resolve::{Answer, Reply, Resolver};

/// What a question to a [`SimResolver`] gets.
///
/// ```
/// use std::time::Duration;
/// use courser::net::sim::{Asked, SimNet};
/// use courser::{Answer, Client, Config, ErrorKind, Response, TimeLimit};
///
/// let ttl = Duration::from_secs(60);
/// let net = SimNet::new(1);
/// let resolver = net.resolver(move |random, name| match name {
///     "mute.sim" => Asked::Never,
///     _ => Asked::After(
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
pub enum Asked {
    /// This answer, after that time.
    After(Duration, Answer),
    /// No answer at all, as from a resolver that hangs.
    Never,
    /// The reply is dropped without an answer after that time, as by a resolver that has ended.
    Lost(Duration),
}

/// The resolver of a [`SimNet`](super::SimNet): see [`SimNet::resolver`](super::SimNet::resolver). It only notes the
/// questions; the network answers them at their times.
#[derive(Debug)]
pub struct SimResolver(Questions);

impl Resolver for SimResolver {
    fn lookup(&mut self, name: &str, reply: Reply) {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        questions.push((name.to_owned(), reply));
    }
}

/// Questions that the network has not seen yet. Locked for the sake of the type only: a resolver must be `Send`.
type Questions = Arc<Mutex<Vec<(String, Reply)>>>;

type Script = Box<dyn FnMut(&mut Random, &str) -> Asked>;

/// The network's side.
pub(super) struct Names {
    questions: Questions,
    script: Option<Script>,
    /// Its own sequence: a question more does not change the rest of the network.
    random: Random,
    /// Answers on their way, by time and in the order of the questions.
    due: BTreeMap<(Duration, u64), (String, Reply, Option<Answer>)>,
    asked: u64,
    never: Vec<(String, Reply)>,
}

impl Names {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            questions: Questions::default(),
            script: None,
            random: Random::new(!seed),
            due: BTreeMap::new(),
            asked: 0,
            never: Vec::new(),
        }
    }

    pub(super) fn serve(&mut self, script: Script) -> SimResolver {
        self.script = Some(script);
        SimResolver(Arc::clone(&self.questions))
    }

    /// Decides about the questions that have come in. Time stands still while they do, so none is seen late.
    pub(super) fn take_questions(&mut self, now: Duration) {
        let mut questions = self
            .questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (name, reply) in questions.drain(..) {
            let Some(script) = &mut self.script else {
                continue;
            };
            let (after, answer) = match script(&mut self.random, &name) {
                Asked::After(after, answer) => (after, Some(answer)),
                Asked::Lost(after) => (after, None),
                Asked::Never => {
                    self.never.push((name, reply));
                    continue;
                }
            };
            self.asked += 1;
            self.due
                .insert((now + after, self.asked), (name, reply, answer));
        }
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn answer_due(&mut self, now: Duration) {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let (_, reply, answer) = entry.remove();
            // A reply that is dropped answers by itself.
            if let Some(answer) = answer {
                reply.answer(answer);
            }
        }
    }

    pub(super) fn open_questions(&self) -> impl Iterator<Item = &str> {
        let due = self.due.values().map(|(name, ..)| name.as_str());
        due.chain(self.never.iter().map(|(name, _)| name.as_str()))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open_questions()).finish()
    }
}
