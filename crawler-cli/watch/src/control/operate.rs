//! What an operator has done in the running service.

use std::process;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;

use super::core::{CoreHandle, CoreMessage};
use super::message::{Command, LiveStatus, RefusalKind, Reply, StoreCondition};
use super::perform::{By, Schedules, perform, refused};
use crate::vitals::Vitals;
use store::{StoreHandle, WriterState};

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
        }
    }

    /// Has the writer perform a command, and tells the core. `who` is named in notices.
    pub fn perform(&self, command: Command, who: &str) -> Reply {
        match command {
            Command::Status { host } => Reply::Status(Box::new(self.status(host))),
            command => self.change(command, who),
        }
    }

    fn change(&self, command: Command, who: &str) -> Reply {
        let by = By {
            who: who.to_owned(),
            now: Timestamp::now(),
        };
        let concerns_core = concerns_core(&command);
        let is_replay = matches!(command, Command::Replay { .. });
        let schedules = Arc::clone(&self.schedules);
        let performed = self.store.call(move |engine| {
            let schedules = schedules.read().unwrap_or_else(PoisonError::into_inner);
            perform(engine, &command, &by, &schedules)
        });
        let performed = match performed {
            Ok(performed) => performed,
            Err(error) => return refused(RefusalKind::Store, error.to_string()),
        };
        if let Reply::Count { count, .. } = performed.reply
            && is_replay
        {
            self.vitals.note_replayed(count);
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
        Command::Status { .. } | Command::Remove { .. } | Command::AcceptShrink { .. } => false,
        Command::Schedule { .. } | Command::Drop { .. } => false,
        Command::Add { .. } | Command::Recheck { .. } | Command::Replay { .. } => true,
        Command::Hold { .. } | Command::Pause { .. } | Command::Resume { .. } => true,
    }
}

/// How long the core has to answer.
const CORE_PATIENCE: Duration = Duration::from_secs(2);
