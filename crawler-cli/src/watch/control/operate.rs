//! What an operator has done in the running service, by the socket or by HTTP: the same function for both.

use std::process;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::core::{CoreHandle, CoreMessage};
use super::message::{
    Command, HostLive, LiveStatus, RefusalKind, Reply, StoreCondition, TokenDeed, WebhookDeed,
};
use super::perform::{By, Schedules, no_webhook, perform, refused};
use crate::store::{StoreHandle, WriterState};
use crate::watch::hooks::HookBoard;
use crate::watch::tokens::Tokens;
use crate::watch::vitals::Vitals;

/// The parts of the running service that an operator reaches.
#[derive(Clone, Debug)]
pub struct Operator<H> {
    /// The thread that writes the store.
    pub store: H,
    /// The core of the service.
    pub core: CoreHandle,
    /// How the service is.
    pub vitals: Arc<Vitals>,
    /// Those of its configuration, which can be read again.
    pub schedules: Arc<RwLock<Schedules>>,
    /// Those who are let in over HTTP.
    pub tokens: Arc<Tokens>,
    /// Those who are told of changes.
    pub hooks: Arc<HookBoard>,
    /// Whether the service listens beyond this machine: then it keeps its last token.
    pub is_public: bool,
}

impl<H: StoreHandle> Operator<H> {
    /// What only the running service knows, and what its core says of a host, given by the URL of its root. Waits for the
    /// core for at most 2 s.
    pub fn status(&self, host: Option<String>) -> LiveStatus {
        LiveStatus {
            process: process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since: self.vitals.started_at(),
            store: match self.store.state() {
                WriterState::Ok => StoreCondition::Ok,
                WriterState::Full => StoreCondition::Full,
                WriterState::Failing(why) => StoreCondition::Failing(why),
                WriterState::Closed => StoreCondition::Failing("it is closed".to_owned()),
            },
            core: self.core.status(host, CORE_PATIENCE),
            webhooks: self.hooks.all(),
        }
    }

    /// How hosts wait, given by the URLs of their roots, and their limits. `None`: the core does not answer.
    pub fn hosts(&self, roots: Vec<Url>) -> Option<Vec<HostLive>> {
        self.core.hosts(roots, CORE_PATIENCE)
    }

    /// Has the writer perform a command, and tells the core. `who` is named in notices.
    pub fn perform(&self, command: Command, who: &str) -> Reply {
        let is_token = matches!(command, Command::Token { .. });
        let _turn = is_token.then(|| self.tokens.turn());
        match command {
            Command::Status { host } => Reply::Status(Box::new(self.status(host))),
            Command::Token {
                deed: TokenDeed::Remove { name },
            } if self.is_public && !self.tokens.has_another(&name) => refused(
                RefusalKind::Wrong,
                "the service listens beyond this machine, and this is its last token",
            ),
            Command::Webhook {
                name,
                deed: WebhookDeed::Test,
            } => self.test(&name),
            command => self.change(command, who),
        }
    }

    fn test(&self, name: &str) -> Reply {
        match self.hooks.test(name) {
            Some(Ok(answer)) => Reply::Tested {
                is_good: true,
                answer,
            },
            Some(Err(answer)) => Reply::Tested {
                is_good: false,
                answer,
            },
            None => refused(RefusalKind::NotFound, no_webhook(name)),
        }
    }

    fn change(&self, command: Command, who: &str) -> Reply {
        let by = By {
            who: who.to_owned(),
            now: Timestamp::now(),
        };
        let concerns_core = concerns_core(&command);
        let is_replay = matches!(command, Command::Replay { .. });
        let is_token = matches!(command, Command::Token { .. });
        let webhook = match &command {
            Command::Webhook { name, .. } => Some(name.clone()),
            _ => None,
        };
        let schedules = Arc::clone(&self.schedules);
        let performed = self.store.call(move |engine| {
            let schedules = schedules.read().unwrap_or_else(PoisonError::into_inner);
            let performed = perform(engine, &command, &by, &schedules)?;
            let tokens = is_token.then(|| engine.tokens()).transpose()?;
            Ok((performed, tokens))
        });
        let (performed, tokens) = match performed {
            Ok(performed) => performed,
            Err(error) => return refused(RefusalKind::Store, error.to_string()),
        };
        if let Some(tokens) = tokens {
            self.tokens.set(tokens);
        }
        if let Reply::Count { count, .. } = performed.reply
            && is_replay
        {
            self.vitals.note_replayed(count);
        }
        if let Some(name) = webhook {
            self.hooks.resume(&name);
        }
        if concerns_core {
            // Whether the core listens or not: what it is told is in the store, and it finds it there.
            self.core.tell(CoreMessage::LookAgain);
        }
        performed.reply
    }
}

/// Whether the core has to look into the store at once after a command.
fn concerns_core(command: &Command) -> bool {
    match command {
        Command::Status { .. } | Command::Remove { .. } | Command::Token { .. } => false,
        Command::Schedule { .. } | Command::Drop { .. } | Command::Webhook { .. } => false,
        Command::Add { .. } | Command::Recheck { .. } | Command::Replay { .. } => true,
        Command::Hold { .. } | Command::Pause { .. } | Command::Resume { .. } => true,
    }
}

/// How long the core has to answer.
const CORE_PATIENCE: Duration = Duration::from_secs(2);
