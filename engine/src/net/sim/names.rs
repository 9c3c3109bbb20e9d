//! Name lookup in the simulation: questions are answered at virtual times, late, wrongly or never.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::random::Random;
use crate::net::resolve::{Answer, Reply, Resolver};

/// The answer of a [`SimResolver`] to one question.
///
/// ```
/// use std::time::Duration;
/// use courser::net::sim::{ScriptedAnswer, SimNet};
/// use courser::{Answer, Client, Config, ErrorKind, Response, TimeLimit};
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

impl Resolver for SimResolver {
    fn lookup(&mut self, name: &str, reply: Reply) {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        questions.push((name.to_owned(), reply));
    }
}

/// Questions that the network has not processed yet. In a lock only because a resolver must be `Send`.
type Questions = Arc<Mutex<Vec<(String, Reply)>>>;

type Script = Box<dyn FnMut(&mut Random, &str) -> ScriptedAnswer>;

/// The network's side of name lookup.
pub(super) struct NameService {
    questions: Questions,
    script: Option<Script>,
    /// A generator of its own: one question more does not change the rest of the network.
    random: Random,
    /// Answers on their way, by their times and then in the order of the questions.
    pending: BTreeMap<(Duration, u64), (String, Reply, Option<Answer>)>,
    asked: u64,
    unanswered: Vec<(String, Reply)>,
}

impl NameService {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            questions: Questions::default(),
            script: None,
            random: Random::new(!seed),
            pending: BTreeMap::new(),
            asked: 0,
            unanswered: Vec::new(),
        }
    }

    pub(super) fn set_script(&mut self, script: Script) -> SimResolver {
        self.script = Some(script);
        SimResolver(Arc::clone(&self.questions))
    }

    /// Decides the answers to new questions. Time does not pass between a question and this call.
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
                ScriptedAnswer::After(after, answer) => (after, Some(answer)),
                ScriptedAnswer::Lost(after) => (after, None),
                ScriptedAnswer::Never => {
                    self.unanswered.push((name, reply));
                    continue;
                }
            };
            self.asked += 1;
            self.pending
                .insert((now + after, self.asked), (name, reply, answer));
        }
    }

    pub(super) fn next_answer_at(&self) -> Option<Duration> {
        self.pending.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn deliver_answers(&mut self, now: Duration) {
        while let Some(entry) = self.pending.first_entry()
            && entry.key().0 <= now
        {
            let (_, reply, answer) = entry.remove();
            // Dropping a reply answers it.
            if let Some(answer) = answer {
                reply.answer(answer);
            }
        }
    }

    pub(super) fn open_questions(&self) -> impl Iterator<Item = &str> {
        let pending = self.pending.values().map(|(name, ..)| name.as_str());
        pending.chain(self.unanswered.iter().map(|(name, _)| name.as_str()))
    }
}

impl fmt::Debug for NameService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open_questions()).finish()
    }
}
