//! What the service manager is told (sd_notify(3)): that the service is ready, reads its configuration again, or is about
//! to end, and that its loop still runs.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

/// Tells the service manager, if there is one.
pub(super) struct Notifier {
    /// The loop has to say that it runs this often.
    watchdog: Option<Duration>,
    fed_at: Option<Instant>,
    status: String,
    told_at: Option<Instant>,
    has_failed: bool,
}

impl Notifier {
    pub(super) fn new() -> Self {
        Self {
            // Twice as often as the manager asks for, as sd_watchdog_enabled(3) advises.
            watchdog: sd_notify::watchdog_enabled().map(|time| time / 2),
            fed_at: None,
            status: String::new(),
            told_at: None,
            has_failed: false,
        }
    }

    pub(super) fn ready(&mut self) {
        self.tell(&[NotifyState::Ready]);
    }

    pub(super) fn reloading(&mut self) {
        // The manager wants to know when the reload began.
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(&[NotifyState::Reloading, now]),
            Err(_) => self.tell(&[NotifyState::Reloading]),
        }
    }

    pub(super) fn stopping(&mut self) {
        self.tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
    }

    /// The loop has made a turn. Called by the loop alone: a loop that is stuck is noticed.
    pub(super) fn turn(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>, every: Duration| {
            at.is_none_or(|at| now.saturating_duration_since(at) >= every)
        };
        if let Some(every) = self.watchdog
            && is_due(self.fed_at, every)
        {
            self.fed_at = Some(now);
            self.tell(&[NotifyState::Watchdog]);
        }
    }

    /// One line about what the service does. Told every few seconds, if it has changed.
    pub(super) fn status(&mut self, now: Instant, status: impl FnOnce() -> String) {
        let is_soon = |at| now.saturating_duration_since(at) < STATUS_EVERY;
        if self.told_at.is_some_and(is_soon) {
            return;
        }
        self.told_at = Some(now);
        let status = status();
        if status != self.status {
            self.tell(&[NotifyState::Status(&status)]);
            self.status = status;
        }
    }

    fn tell(&mut self, states: &[NotifyState<'_>]) {
        let result = sd_notify::notify(states);
        // A manager that does not listen is told of once.
        if let (Err(error), false) = (result, self.has_failed) {
            self.has_failed = true;
            tracing::warn!("the service manager cannot be told: {error}");
        }
    }
}

/// How often the manager gets a new status.
const STATUS_EVERY: Duration = Duration::from_secs(5);
