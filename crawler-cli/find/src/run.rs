//! A running search: evaluates the expression for findings, performs its actions, and reports and commits the results.

use std::thread;
use std::time::{Duration, Instant};

use super::Find;
use super::cause::Cause;
use super::download::Wanted;
use super::event::Event;
use super::expr::{Act, ActError, Action, Actor, Effect, Memo, Verdict};
use super::found::{Found, How, Kind, Saved, Unread};
use super::host_crawl::Counts;
use super::link::Link;
use super::policy::Follow;
use super::state::{State, StateError};
use super::summary::{Ending, Summary, Tally};
use super::visitor::{LinkVerdict, Visitor};
use crawl::calls::Drive;
use crawl::clock::CpuTime;
use crawl::reporter::Reporter;
use crawl::stats::Stats;

/// A running search.
pub(super) struct Run<'r> {
    find: &'r Find,
    actor: Actor,
    pub(super) events: Events<'r>,
    /// Files to download that no host has taken over yet.
    pub(super) wanted: Vec<Wanted>,
    /// Links to other hosts that no host has taken over yet.
    pub(super) links: Vec<Link>,
    /// What was found after the search was stopped, while the last reply was handled.
    dropped: Vec<String>,
}

impl<'r> Run<'r> {
    pub(super) fn new(find: &'r Find, actor: Actor, events: Events<'r>) -> Self {
        Self {
            find,
            actor,
            events,
            wanted: Vec::new(),
            links: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Whether nothing more is to be found.
    pub(super) fn is_over(&self) -> bool {
        self.events.summary.ending != Ending::Finished
    }

    /// The state that the search is saved to.
    pub(super) fn state(&mut self) -> Option<&mut State> {
        self.events.state.as_mut()
    }

    /// How the search ends, as far as that is known.
    pub(super) fn ending(&self) -> Ending {
        self.events.summary.ending
    }

    /// The visitor for host crawls. While a command runs, the connections of `calls` make progress.
    pub(super) fn visitor<'a>(
        &'a mut self,
        calls: Option<&'a mut dyn Drive>,
    ) -> RunVisitor<'a, 'r> {
        RunVisitor { run: self, calls }
    }

    pub(super) fn stats(&mut self) -> &mut Stats {
        &mut self.events.summary.stats
    }

    /// Notes what comes too late, if the search was stopped.
    fn drop_late(&mut self, url: &str) {
        if self.ending() == Ending::Stopped {
            self.dropped.push(url.to_owned());
        }
    }

    /// Reports what the search has not reached, after it was stopped. `rest` tells the URLs that the hosts know.
    pub(super) fn tell_not_reached(&mut self, rest: impl FnOnce(&mut dyn FnMut(&str))) {
        let reporter = &mut self.events.reporter;
        // A search that was stopped cannot be stopped again.
        let mut tell = |url: &str| {
            let _ = reporter.event(&Event::NotReached(url));
        };
        rest(&mut tell);
        self.dropped.iter().for_each(|url| tell(url));
        self.links.iter().for_each(|link| tell(link.url.as_str()));
        self.wanted.iter().for_each(|wanted| tell(&wanted.url));
    }

    /// The client failed. A saved search can be continued, so it is not finished.
    pub(super) fn client_failed(&mut self) {
        self.events.summary.failed += 1;
        if self.events.state.is_some() {
            self.events.summary.ending = Ending::Stopped;
        }
    }

    /// The state could not be saved: the search ends.
    pub(super) fn state_failed(&mut self, error: &StateError) {
        self.events.summary.failed += 1;
        self.events.emit(Event::StateFailed(error));
        self.events.summary.ending = Ending::Stopped;
    }

    /// Updates the counts, shows progress and commits. `under_way`: files that are being downloaded.
    pub(super) fn update(&mut self, counts: Counts, under_way: u64) {
        let downloads = &mut self.events.summary.downloads;
        downloads.under_way = under_way;
        let unread = counts.unread + downloads.failed;
        self.events.summary.counts = Counts { unread, ..counts };
        self.events.update();
    }

    /// Performs the actions that were postponed to the end, unless the search was stopped.
    pub(super) fn finish(mut self) -> (Summary, Option<State>) {
        if self.events.summary.ending != Ending::Stopped {
            let events = &mut self.events;
            self.actor.finish(&mut |effect| events.effect(effect));
            self.events.update();
        }
        self.events.end()
    }
}

/// The search as a visitor of host crawls and downloads.
pub(super) struct RunVisitor<'a, 'r> {
    run: &'a mut Run<'r>,
    calls: Option<&'a mut dyn Drive>,
}

impl Visitor for RunVisitor<'_, '_> {
    fn found(&mut self, found: &Found<'_>, memo: &mut Memo) -> Verdict {
        if self.run.is_over() {
            self.run.drop_late(found.url);
            return Verdict::Quit;
        }
        let run = &mut *self.run;
        let mut acting = Acting {
            actor: &mut run.actor,
            events: &mut run.events,
            calls: &mut self.calls,
        };
        let evaluation = run.find.expression.evaluate(found, memo, &mut acting);
        // Perhaps its command was not run.
        run.drop_late(found.url);
        if matches!(evaluation.verdict, Verdict::Head | Verdict::List) {
            return evaluation.verdict; // it will be looked at again
        }
        run.events.summary.matched += u64::from(evaluation.acted);
        if evaluation.acted && run.find.download.is_some() && found.kind == Kind::File {
            run.wanted.push(Wanted::of(found));
        }
        run.events.summary.undecided += u64::from(evaluation.undecided);
        if evaluation.verdict == Verdict::Quit && !run.is_over() {
            run.events.summary.ending = Ending::Quit;
        }
        // A file that could not be asked about is unread by this. A directory has no size, and often no time.
        let was_asked = found.kind == Kind::File && found.status.is_some();
        match evaluation.verdict {
            Verdict::Go if evaluation.undecided && was_asked => Verdict::Undecided,
            verdict => verdict,
        }
    }

    fn unread(&mut self, unread: Unread<'_>) {
        if !self.run.is_over() {
            self.run.stats().handle_unread(unread.cause.class());
            self.run.events.emit(Event::Unread(unread));
        } else {
            self.run.drop_late(unread.url);
        }
    }

    fn link(&mut self, link: &Link) -> LinkVerdict {
        if self.run.is_over() {
            self.run.drop_late(link.url.as_str());
            return LinkVerdict::Outside;
        }
        if self.run.find.scope.judge(&link.url).is_err() {
            return LinkVerdict::Outside;
        }
        if link.elsewhere {
            self.run.links.push(link.clone());
        }
        LinkVerdict::Follow
    }

    fn downloaded(&mut self, saved: Saved<'_>) {
        let counts = &mut self.run.events.summary.downloads;
        counts.kept += u64::from(saved.how == How::Kept);
        counts.saved += u64::from(saved.how != How::Kept);
        counts.resumed += u64::from(matches!(saved.how, How::Resumed(_)));
        self.run.events.emit(Event::Downloaded(saved));
    }

    fn not_downloaded(&mut self, url: &str, cause: &Cause) {
        self.run.events.summary.downloads.failed += 1;
        self.run.stats().handle_unread(cause.class());
        self.run.events.emit(Event::Unread(Unread {
            url,
            cause,
            from: None,
        }));
    }
}

/// Performs actions, and turns their effects into events.
struct Acting<'a, 'c, 'r> {
    actor: &'a mut Actor,
    events: &'a mut Events<'r>,
    calls: &'a mut Option<&'c mut dyn Drive>,
}

impl Act for Acting<'_, '_, '_> {
    fn act(&mut self, action: &Action, found: &Found<'_>) -> bool {
        if matches!(action, Action::Run(_)) {
            // The command may write to the same output next. A search that was stopped meanwhile runs no more commands.
            self.events.update();
            if self.events.summary.ending == Ending::Stopped {
                return false;
            }
        }
        let (events, calls) = (&mut self.events, &mut self.calls);
        self.actor.act(action, found, &mut |effect| match effect {
            Effect::Idle(time) => match calls {
                Some(calls) => calls.drive_connections(time),
                None => thread::sleep(time),
            },
            effect => events.effect(effect),
        })
    }
}

/// The reporter, the state, and the summary.
pub(super) struct Events<'r> {
    reporter: &'r mut dyn Reporter<Find>,
    /// The state that the search is saved to.
    pub(super) state: Option<State>,
    began: Instant,
    /// The time that earlier runs took.
    before: Duration,
    cpu: CpuTime,
    /// `counts` and `elapsed` are as of the last [`update`](Self::update); the rest is always up to date.
    pub(super) summary: Summary,
}

impl<'r> Events<'r> {
    pub(super) fn new(
        reporter: &'r mut dyn Reporter<Find>,
        state: Option<State>,
        follow: Follow,
    ) -> Self {
        let began = Instant::now();
        Self {
            reporter,
            state,
            began,
            before: Duration::ZERO,
            cpu: CpuTime::of_thread(),
            summary: Summary {
                follow,
                ..Summary::default()
            },
        }
    }

    /// Continues the counts of an earlier run.
    pub(super) fn resume(&mut self, tally: Tally) {
        let summary = &mut self.summary;
        summary.resumed = true;
        summary.matched = tally.matched;
        summary.undecided = tally.undecided;
        summary.failed = tally.failed;
        summary.stats.resume(tally.totals);
        summary.downloads = tally.downloads;
        self.before = tally.elapsed;
    }

    pub(super) fn tally(&self) -> Tally {
        Tally {
            matched: self.summary.matched,
            undecided: self.summary.undecided,
            failed: self.summary.failed,
            elapsed: self.elapsed(),
            totals: self.summary.stats.totals(),
            downloads: self.summary.downloads,
        }
    }

    fn elapsed(&self) -> Duration {
        self.before.saturating_add(self.began.elapsed())
    }

    fn emit(&mut self, event: Event<'_>) {
        if self.summary.ending != Ending::Stopped && self.reporter.event(&event).is_break() {
            self.summary.ending = Ending::Stopped;
        }
    }

    fn update(&mut self) {
        self.summary.elapsed = self.elapsed();
        self.summary.stats.handle_cpu(self.cpu.elapsed());
        if self.summary.ending == Ending::Stopped {
            return;
        }
        self.commit();
        if self
            .reporter
            .event(&Event::Progress(&self.summary))
            .is_break()
        {
            self.summary.ending = Ending::Stopped;
        }
    }

    /// Makes progress and results durable together, then writes the results.
    fn commit(&mut self) {
        let Some(results) = self.reporter.results() else {
            return;
        };
        let state = self.state.as_mut();
        match state.map_or(Ok(()), |state| state.commit(&results)) {
            Ok(()) => self.reporter.write(),
            Err(error) => self.reporter.reject(error),
        }
    }

    /// Commits the last results at the end of the search, and returns the state. Another run needs the state if this
    /// one was stopped.
    pub(super) fn end(mut self) -> (Summary, Option<State>) {
        self.reporter.finish(&self.summary);
        self.commit();
        (self.summary, self.state)
    }

    pub(super) fn failed(&mut self, error: &ActError) {
        self.summary.failed += 1;
        self.emit(Event::Failed(error));
    }

    fn effect(&mut self, effect: Effect<'_>) {
        match effect {
            Effect::Match(found) => self.emit(Event::Found(found)),
            Effect::Output(bytes) => self.emit(Event::Output(bytes)),
            Effect::Flush => self.update(),
            Effect::Idle(time) => thread::sleep(time),
            Effect::Failed(error) => self.failed(&error),
        }
    }
}
