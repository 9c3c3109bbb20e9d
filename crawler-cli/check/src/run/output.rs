//! What a check reports: events for the reporter, and their sums.

use std::time::{Duration, Instant};

use crate::checker::Checker;
use crate::event::{Event, GuardChange};
use crate::record::Checked;
use crate::sources::{Batch, ProblemKind};
use crate::summary::{Ending, Summary};
use crawl::clock::CpuTime;
use crawl::reporter::Reporter;
use crawl::stats::Stats;

/// The reporter and the summary.
pub(super) struct Output<'r> {
    reporter: &'r mut dyn Reporter<Checker>,
    began: Instant,
    cpu: CpuTime,
    shown_at: Option<Instant>,
    /// Whether something was reported that may not be written yet.
    has_results: bool,
    pub(super) summary: Summary,
}

impl<'r> Output<'r> {
    pub(super) fn new(reporter: &'r mut dyn Reporter<Checker>) -> Self {
        Self {
            reporter,
            began: Instant::now(),
            cpu: CpuTime::of_process(),
            shown_at: None,
            has_results: false,
            summary: Summary {
                is_read_in_part: true,
                ..Summary::default()
            },
        }
    }

    /// Whether nothing more is to be reported.
    pub(super) fn is_over(&self) -> bool {
        self.summary.ending != Ending::Finished
    }

    pub(super) fn checked(&mut self, checked: &Checked) {
        if self.is_over() {
            return;
        }
        self.summary.add(checked);
        self.emit(&Event::Checked(checked));
    }

    /// What a source or a page says beside its links.
    pub(super) fn source(&mut self, batch: &Batch) {
        self.summary.unsupported += batch.unsupported;
        self.summary.excluded += batch.excluded;
        for problem in &batch.problems {
            self.summary.problems += u64::from(problem.kind != ProblemKind::Note);
            self.emit(&Event::Problem(problem));
        }
    }

    pub(super) fn guard(&mut self, change: &GuardChange) {
        self.summary.guards += u64::from(change.is_on);
        self.emit(&Event::Guard(change));
    }

    /// Reports why the check cannot go on.
    pub(super) fn failed(&mut self, event: &Event<'_>) {
        self.emit(event);
        self.summary.ending = Ending::Failed;
    }

    /// Has the results written that there are, and shows progress now and then.
    pub(super) fn update(&mut self, now: Instant, stats: &mut Stats) {
        if self.is_over() {
            return;
        }
        if std::mem::take(&mut self.has_results) {
            self.write();
        }
        if self.is_progress_due(now) {
            self.shown_at = Some(now);
            self.progress(stats);
        }
    }

    /// Whether the progress is to be shown again.
    pub(super) fn is_progress_due(&self, now: Instant) -> bool {
        let recent = |at: Instant| now.saturating_duration_since(at) < BETWEEN_PROGRESS;
        !self.shown_at.is_some_and(recent)
    }

    /// Shows the progress.
    fn progress(&mut self, stats: &mut Stats) {
        self.summary.elapsed = self.began.elapsed();
        // The summary has the statistics only while somebody looks at them.
        std::mem::swap(&mut self.summary.stats, stats);
        self.summary.requests = self.summary.stats.requests();
        let shown = self.reporter.event(&Event::Progress(&self.summary));
        std::mem::swap(&mut self.summary.stats, stats);
        if shown.is_break() {
            self.summary.ending = Ending::Stopped;
        }
    }

    /// Reports the end.
    pub(super) fn finish(mut self, mut stats: Stats) -> Summary {
        if self.summary.ending != Ending::Stopped {
            self.progress(&mut stats);
        }
        self.summary.elapsed = self.began.elapsed();
        stats.handle_cpu(self.cpu.elapsed());
        self.summary.requests = stats.requests();
        self.summary.stats = stats;
        self.reporter.finish(&self.summary);
        self.write();
        self.summary
    }

    /// Has the results written. They need not be saved: another run reports them again.
    fn write(&mut self) {
        if self.reporter.results().is_some() {
            self.reporter.write();
        }
    }

    fn emit(&mut self, event: &Event<'_>) {
        self.has_results = true;
        if !self.is_over() && self.reporter.event(event).is_break() {
            self.summary.ending = Ending::Stopped;
        }
    }
}

/// The time between two events that show progress.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(50);
