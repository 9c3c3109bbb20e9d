//! How far a transfer is, and what depends on it: the progress meter, and the rule that ends a slow transfer.

use std::collections::VecDeque;
use std::io::{self, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::args::SpeedArgs;
use super::exit::{Exit, Failure};
use super::meter::{HEADER, Moved, Snapshot, per_second, unknown_bar};
use super::show::{Trace, Way};

/// The progress of one transfer.
pub(super) struct Progress {
    begun: Instant,
    counts: Arc<Counts>,
    view: View,
    slow: Option<SlowRule>,
    /// Since when the transfer has been slower than the rule allows.
    slow_since: Option<Instant>,
    /// Bytes in both directions at times in the last seconds, oldest first.
    past: VecDeque<(Instant, u64)>,
    /// When [`tick`](Self::tick) is due; `None`: nothing needs it.
    next: Option<Instant>,
    /// Whether the meter has a line that is not ended.
    is_open: bool,
}

/// Bytes of bodies that one transfer has moved. A thread of the engine may count what is sent.
#[derive(Debug)]
pub(super) struct Counts {
    received: AtomicU64,
    to_receive: AtomicU64,
    sent: AtomicU64,
    to_send: AtomicU64,
}

/// What shows the progress.
pub(super) enum View {
    Nothing,
    Meter {
        /// Whether the header is still to be shown.
        is_new: bool,
    },
    Bar {
        columns: usize,
        /// Updates so far.
        step: usize,
    },
    /// A meter for all transfers, which also ends them: [`parallel`](super::parallel).
    Joint(Arc<AtomicBool>),
}

/// `-Y` and `-y`
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowRule {
    /// Bytes per second.
    least: u32,
    time: Duration,
}

impl SlowRule {
    /// As in curl, each of the two options has a default if the other one is given: 1 byte per second and 30 s.
    pub(super) fn new(args: SpeedArgs) -> Option<Self> {
        let least = args.least.filter(|least| *least > 0);
        let rule = match (least, args.time) {
            (None, None) => return None,
            (least, time) => Self {
                least: least.unwrap_or(1),
                time: time.unwrap_or(Duration::from_secs(30)),
            },
        };
        (!rule.time.is_zero()).then_some(rule)
    }
}

impl Progress {
    pub(super) fn new(view: View, slow: Option<SlowRule>, now: Instant) -> Self {
        Self {
            begun: now,
            counts: Arc::default(),
            view,
            slow,
            slow_since: None,
            past: VecDeque::new(),
            next: None,
            is_open: false,
        }
    }

    /// Whether bytes that are sent have to be counted.
    pub(super) fn is_watched(&self) -> bool {
        self.slow.is_some() || !matches!(self.view, View::Nothing)
    }

    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Counts for the meter of all transfers.
    pub(super) fn count_in(&mut self, counts: Arc<Counts>) {
        self.counts = counts;
    }

    /// A request begins, with a body of this length, if there is one of known length.
    pub(super) fn begin(&mut self, to_send: Option<u64>, now: Instant) {
        self.counts.reset(to_send);
        self.past.clear();
        self.past.push_back((now, 0));
        self.slow_since = self.slow.map(|_| now);
        self.next = self.is_watched().then(|| now + self.interval());
        match &mut self.view {
            View::Meter { is_new } => {
                let header = if std::mem::take(is_new) { HEADER } else { "" };
                draw(header);
                self.redraw(now);
            }
            View::Bar { step, .. } => *step = 0,
            View::Nothing | View::Joint(_) => {}
        }
    }

    /// The head of a response announces so many bytes.
    pub(super) fn expect(&self, to_receive: Option<u64>) {
        self.counts
            .to_receive
            .store(to_receive.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.counts
            .received
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The whole body of the request was sent.
    pub(super) fn all_sent(&self, bytes: u64) {
        self.counts.sent.store(bytes, Ordering::Relaxed);
    }

    /// How long to wait before the next [`tick`](Self::tick); `None`: forever.
    pub(super) fn until_tick(&self, now: Instant) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(now))
    }

    /// Shows the progress and applies the rule, if it is time.
    ///
    /// # Errors
    /// The transfer is too slow, or is to end because another one failed.
    pub(super) fn tick(&mut self, now: Instant) -> Result<(), Failure> {
        let Some(next) = self.next.filter(|next| now >= *next) else {
            return Ok(());
        };
        self.next = Some((next + self.interval()).max(now));
        self.check_stop()?;
        let last = self.past.back().map_or(now, |(at, _)| *at);
        if now.duration_since(last) >= SECOND {
            self.past.push_back((now, self.counts.moved()));
            if self.past.len() > WINDOW + 1 {
                self.past.pop_front();
            }
        }
        self.redraw(now);
        self.check_speed(now)
    }

    /// The same, while there is no connection to be slow.
    ///
    /// # Errors
    /// The transfer is to end because another one failed.
    pub(super) fn tick_before_sending(&mut self, now: Instant) -> Result<(), Failure> {
        self.slow_since = None;
        let rule = self.slow.take();
        let outcome = self.tick(now);
        self.slow = rule;
        outcome
    }

    /// Waits before another attempt.
    ///
    /// # Errors
    /// The transfer is to end because another one failed.
    pub(super) fn pause(&self, time: Duration) -> Result<(), Failure> {
        let mut left = time;
        while !left.is_zero() {
            self.check_stop()?;
            let step = left.min(self.interval());
            thread::sleep(step);
            left -= step;
        }
        Ok(())
    }

    fn check_stop(&self) -> Result<(), Failure> {
        match &self.view {
            View::Joint(stop) if stop.load(Ordering::Relaxed) => {
                let cause = "aborted because another transfer failed";
                Err(Failure::new(Exit::Aborted, "transfer", cause))
            }
            _ => Ok(()),
        }
    }

    /// The request and its response are over: shows the last state.
    pub(super) fn end(&mut self, now: Instant) {
        if self.next.take().is_none() {
            return;
        }
        self.redraw(now);
        if std::mem::take(&mut self.is_open) {
            draw("\n");
        }
    }

    fn check_speed(&mut self, now: Instant) -> Result<(), Failure> {
        let Some(rule) = self.slow else { return Ok(()) };
        if self.current(now) >= u64::from(rule.least) {
            self.slow_since = None;
            return Ok(());
        }
        let since = *self.slow_since.get_or_insert(now);
        if now.duration_since(since) < rule.time {
            return Ok(());
        }
        let (least, time) = (rule.least, rule.time.as_secs());
        let cause = format!(
            "Operation too slow. Less than {least} bytes/sec transferred the last {time} seconds"
        );
        Err(Failure::new(Exit::Timeout, "transfer", cause))
    }

    fn redraw(&mut self, now: Instant) {
        let mut snapshot = self.counts.snapshot();
        snapshot.spent = now.duration_since(self.begun);
        snapshot.current = self.current(now);
        let line = match &mut self.view {
            View::Nothing | View::Joint(_) => return,
            View::Meter { .. } => snapshot.row(),
            View::Bar { columns, step } => {
                *step += 1;
                match snapshot.bar(*columns) {
                    Some(bar) => bar,
                    None if self.next.is_none() => return,
                    None => unknown_bar(*step, *columns),
                }
            }
        };
        self.is_open = true;
        draw(&format!("\r{line}"));
    }

    /// Bytes per second in the last seconds.
    fn current(&self, now: Instant) -> u64 {
        let (since, before) = self.past.front().copied().unwrap_or((now, 0));
        let moved = self.counts.moved().saturating_sub(before);
        if moved == 0 {
            return 0;
        }
        per_second(moved, now.duration_since(since))
    }

    fn interval(&self) -> Duration {
        match self.view {
            View::Bar { .. } | View::Joint(_) => SECOND / 10,
            View::Nothing | View::Meter { .. } => SECOND,
        }
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            received: AtomicU64::new(0),
            to_receive: AtomicU64::new(UNKNOWN),
            sent: AtomicU64::new(0),
            to_send: AtomicU64::new(UNKNOWN),
        }
    }
}

impl Counts {
    fn reset(&self, to_send: Option<u64>) {
        self.received.store(0, Ordering::Relaxed);
        self.to_receive.store(UNKNOWN, Ordering::Relaxed);
        self.sent.store(0, Ordering::Relaxed);
        self.to_send
            .store(to_send.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    fn moved(&self) -> u64 {
        let [received, sent] = [&self.received, &self.sent].map(|n| n.load(Ordering::Relaxed));
        received.saturating_add(sent)
    }

    /// The numbers, without times.
    pub(super) fn snapshot(&self) -> Snapshot {
        let moved = |now: &AtomicU64, total: &AtomicU64| Moved {
            now: now.load(Ordering::Relaxed),
            total: Some(total.load(Ordering::Relaxed)).filter(|total| *total != UNKNOWN),
        };
        Snapshot {
            download: moved(&self.received, &self.to_receive),
            upload: moved(&self.sent, &self.to_send),
            ..Snapshot::default()
        }
    }
}

/// What happens to the bytes of a body that are sent: they are counted, and shown by `--trace`.
pub(super) struct Counter {
    pub(super) counts: Arc<Counts>,
    pub(super) trace: Trace,
    /// Whether a count is of interest while the body is sent.
    pub(super) is_used: bool,
}

impl Counter {
    /// Whether a body in memory of this length is to be read piece by piece.
    pub(super) fn watches(&self, length: usize) -> bool {
        self.trace.has_bodies() || (self.is_used && length > LARGE_BODY)
    }
}

/// The source of a request's body, with its counter.
pub(super) struct Counted<R> {
    source: R,
    counter: Counter,
}

impl<R> Counted<R> {
    pub(super) fn new(source: R, counter: Counter) -> Self {
        Self { source, counter }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        let Counter { counts, trace, .. } = &self.counter;
        counts.sent.fetch_add(count as u64, Ordering::Relaxed);
        trace.data(Way::Out, &buffer[..count]);
        Ok(count)
    }
}

/// Draws on stderr. An error is ignored: there is no other place to report it.
pub(super) fn draw(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Larger bodies in memory, in bytes, are counted while they are sent.
const LARGE_BODY: usize = 64 * 1024;

/// A number of bytes that is not known.
const UNKNOWN: u64 = u64::MAX;
const SECOND: Duration = Duration::from_secs(1);

/// The current speed is that of so many seconds.
const WINDOW: usize = 5;
