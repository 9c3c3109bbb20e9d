//! Hosts that turned negative as a whole: holds, samples, and what ends them.

use std::collections::HashSet;
use std::sync::Arc;

use courser::net::Net;
use jiff::Timestamp;

use super::Watcher;
use super::book::Sample;
use super::keeping::{Failed, HoldChange, Reply, is_in_question};
use super::outage::notice;
use super::queue::QueueId;
use crate::hold::{PIECE, release_piece};
use crawl::clock::Clock;
use store::{
    Amendment, Change, DueId, DueUrl, Engine, Guarded, HoldEnd, HostHold, HostId, Lane, Nature,
    StoreError, StoreHandle, UrlId,
};
use verdict::guard::{FlipStep, Guard};
use verdict::life::Rules;

/// What a sampled URL said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Counted {
    Alive,
    Other,
}

impl HoldChange {
    fn end(self) -> Option<HoldEnd> {
        match self {
            Self::Hold => None,
            Self::Release => Some(HoldEnd::Release),
            Self::Confirm => Some(HoldEnd::Confirm),
        }
    }
}

impl From<HoldEnd> for HoldChange {
    fn from(end: HoldEnd) -> Self {
        match end {
            HoldEnd::Release => Self::Release,
            HoldEnd::Confirm => Self::Confirm,
        }
    }
}

/// Siblings.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// A URL of a host turned negative: are others, that were alive, still good?
    pub(super) fn ask_siblings(&mut self, host: HostId, url: UrlId, count: u32) {
        let except = HashSet::from([url]);
        let limit = usize::try_from(count).unwrap_or(usize::MAX);
        self.keeping.ask(
            Nature::Read,
            Failed::Siblings(host),
            move |engine| engine.alive_siblings(host, &except, limit),
            move |due| Some(Reply::Siblings { host, due }),
        );
    }

    pub(super) fn handle_siblings(&mut self, now: Timestamp, host: HostId, due: Vec<DueUrl>) {
        for due in due {
            if !self.asking.is_busy(due.id.url) {
                self.asking.fleet().put_back(QueueId::of(&due), due);
            }
        }
        self.fill_host(now, host);
    }
}

/// Holds.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// A host turned negative as a whole.
    pub(super) fn hold(&mut self, now: Timestamp, host: HostId) {
        self.gate.held.insert(host);
        self.figures.guards.hosts.set(self.gate.held.len() as u64);
        // What was judged before is held, too.
        self.send_batch();
        let text = "many of its URLs that were good are not found now";
        self.save_hold(now, host, Some(("hold", text.to_owned())));
        self.change(host, HoldChange::Hold, None);
    }

    /// Stores the hold of a host as it is now, and tells the operator.
    fn save_hold(&mut self, now: Timestamp, host: HostId, text: Option<(&str, String)>) {
        let Some(page) = self.book.get(host) else {
            return;
        };
        let Some(flip) = &page.flip else {
            return;
        };
        let (hold, stops) = (flip.hold(), flip.stops().clone());
        let root = page.root.as_str().to_owned();
        let note = text.map(|(kind, text)| {
            tracing::warn!("{root}: {text}");
            notice(now, kind, Some(host), text)
        });
        self.keeping.ask(
            Nature::Must,
            Failed::Other,
            move |engine| {
                // What an operator has ended meanwhile stays ended.
                let mut others = engine.holds()?.into_iter();
                let is_ending = others.any(|other| other.host == host && other.ending.is_some());
                if let Some(hold) = hold
                    && !is_ending
                {
                    engine.save_hold(&HostHold {
                        host,
                        root: root.clone(),
                        hold,
                        held: 0,
                        ending: None,
                    })?;
                }
                engine.save_stops(Guarded::Host(host), &stops)?;
                note.as_ref()
                    .map_or(Ok(()), |note| engine.note(note).map(drop))
            },
            |()| None,
        );
    }

    /// The hold of a host ends: all that is held is asked at once.
    pub(super) fn end_hold(&mut self, now: Timestamp, host: HostId, change: HoldChange) {
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        let hold = page.flip.as_ref().and_then(|flip| flip.hold());
        let released = page.flip.as_mut().and_then(|flip| flip.release(now));
        if released.is_some() {
            self.release(now, host, hold, change);
        }
    }

    fn release(
        &mut self,
        now: Timestamp,
        host: HostId,
        hold: Option<verdict::guard::Hold>,
        change: HoldChange,
    ) {
        let (Some(page), Some(hold)) = (self.book.get_mut(host), hold) else {
            return;
        };
        page.sample = None;
        page.ending = Some(change);
        let stops = page.flip.as_ref().map(|flip| flip.stops().clone());
        let ending = HostHold {
            host,
            root: page.root.as_str().to_owned(),
            hold,
            held: 0,
            ending: change.end(),
        };
        tracing::info!("{}: the hold ends", page.root);
        let note = notice(now, "hold", Some(host), "the hold ends".to_owned());
        self.keeping.ask(
            Nature::Must,
            Failed::Other,
            move |engine| {
                engine.save_hold(&ending)?;
                if let Some(stops) = &stops {
                    engine.save_stops(Guarded::Host(host), stops)?;
                }
                engine.note(&note).map(drop)
            },
            |()| None,
        );
        self.change(host, change, None);
    }

    /// Writes a piece of the beginning or the end of a hold.
    pub(super) fn change(&mut self, host: HostId, change: HoldChange, after: Option<DueId>) {
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        page.is_changing = true;
        let held = page.flip.as_ref().and_then(|flip| flip.held());
        let until = held.map_or(Timestamp::MAX, |held| held.until);
        let (rules, now) = (Arc::clone(self.judge.rules()), self.now());
        self.keeping.ask(
            Nature::Must,
            Failed::Piece(host),
            move |engine| match change.end() {
                Some(end) => release_piece(engine, &rules, now, host, end),
                None => {
                    let piece = PieceOf {
                        engine,
                        rules: &rules,
                        now,
                        host,
                    };
                    piece.hold(after, until)
                }
            },
            move |next| Some(Reply::Piece { host, change, next }),
        );
    }

    pub(super) fn handle_piece(&mut self, host: HostId, change: HoldChange, next: Option<DueId>) {
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        page.is_changing = false;
        // A hold that ended before it was written is ended as a whole.
        let change_now = match (page.ending, change) {
            (Some(ending), HoldChange::Hold) => return self.change(host, ending, None),
            (_, change) => change,
        };
        if let Some(next) = next {
            return self.change(host, change_now, Some(next));
        }
        if change_now != HoldChange::Hold {
            page.ending = None;
            self.gate.held.remove(&host);
            self.figures.guards.hosts.set(self.gate.held.len() as u64);
            self.cycles.wake();
        }
    }

    /// A piece could not be written: with the next look at the holds, all pieces are written again. Those that are done
    /// find nothing to do.
    pub(super) fn stop_changing(&mut self, host: HostId) {
        if let Some(page) = self.book.get_mut(host) {
            page.is_changing = false;
            page.has_failed = true;
        }
    }

    /// Samples, holds that have lasted long enough, and pieces that are left.
    pub(super) fn watch_holds(&mut self, now: Timestamp) {
        if self.gate.held.is_empty() || self.gate.is_draining {
            return;
        }
        let hosts: Vec<HostId> = self.gate.held.iter().copied().collect();
        for host in hosts {
            let Some(page) = self.book.get_mut(host) else {
                self.gate.held.remove(&host);
                continue;
            };
            if std::mem::take(&mut page.has_failed) {
                let change = page.ending.unwrap_or(HoldChange::Hold);
                self.change(host, change, None);
                continue;
            }
            if page.ending.is_some() {
                continue;
            }
            let Some(flip) = &mut page.flip else {
                continue;
            };
            let hold = flip.hold();
            if flip.handle_time(now) == Some(FlipStep::Release) {
                self.release(now, host, hold, HoldChange::Release);
                continue;
            }
            let is_due = flip.sample_at().is_some_and(|at| at <= now);
            if is_due && page.sample.is_none() && self.held_up(now, host).is_none() {
                self.take_sample(host);
            }
        }
    }

    /// When a hold has something to do.
    pub(super) fn next_of_holds(&self, now: Timestamp) -> Option<Timestamp> {
        if self.gate.is_draining {
            return None;
        }
        let times = self.gate.held.iter().filter_map(|host| {
            // While a hold ends, the store has the next word.
            let page = self.book.get(*host).filter(|page| page.ending.is_none())?;
            let flip = page.flip.as_ref()?;
            let may_sample = page.sample.is_none() && self.held_up(now, *host).is_none();
            let sample = flip.sample_at().filter(|at| may_sample || *at > now);
            sample.into_iter().chain(flip.ends_at()).min()
        });
        times.min()
    }
}

/// Samples.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    fn take_sample(&mut self, host: HostId) {
        let random = self.judge.random_number();
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        page.sample = Some(Sample::default());
        let Some(flip) = page.flip.as_deref().cloned() else {
            return;
        };
        let root = page.root.as_str().to_owned();
        self.keeping.ask(
            Nature::Read,
            Failed::Sample(host),
            move |engine| {
                let detail = engine.host(&root)?;
                let held = detail.map_or(0, |detail| detail.held);
                let size = usize::try_from(flip.sample_size(held)).unwrap_or(usize::MAX);
                let size = size.min(MOST_SAMPLED);
                let wide = size.saturating_mul(WIDTH).min(MOST_SAMPLED.max(size));
                let all = engine.due(host, Lane::Held, None, Timestamp::MAX, wide)?;
                Ok(some_of(all, size, random))
            },
            move |due| Some(Reply::Sample { host, due }),
        );
    }

    pub(super) fn handle_sample(&mut self, now: Timestamp, host: HostId, due: Vec<DueUrl>) {
        let due: Vec<_> = due
            .into_iter()
            .filter(|due| !self.asking.is_busy(due.id.url))
            .collect();
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        let Some(sample) = &mut page.sample else {
            return;
        };
        sample.size = Some(due.len() as u64);
        for due in due {
            self.asking.fleet().put_back(QueueId::of(&due), due);
        }
        self.fill_host(now, host);
        self.end_sample(now, host);
    }

    pub(super) fn count_sample(&mut self, now: Timestamp, host: HostId, counted: Counted) {
        if let Some(page) = self.book.get_mut(host)
            && let Some(sample) = &mut page.sample
        {
            sample.answered += 1;
            sample.alive += u64::from(counted == Counted::Alive);
            self.end_sample(now, host);
        }
    }

    fn end_sample(&mut self, now: Timestamp, host: HostId) {
        let Some(page) = self.book.get_mut(host) else {
            return;
        };
        let is_over = |sample: &mut Sample| sample.size.is_some_and(|size| sample.answered >= size);
        let Some(sample) = page.sample.take_if(is_over) else {
            return;
        };
        let Some(flip) = &mut page.flip else {
            return;
        };
        let hold = flip.hold();
        match flip.handle_sample(now, sample.alive, sample.answered) {
            Some(FlipStep::Release) => self.release(now, host, hold, HoldChange::Release),
            _ => self.save_hold(now, host, None),
        }
    }
}

/// One piece of the beginning of a hold.
struct PieceOf<'a> {
    engine: &'a mut dyn Engine,
    rules: &'a Rules,
    now: Timestamp,
    host: HostId,
}

impl PieceOf<'_> {
    /// Quarantines what is suspect or broken. Returns the last row that was looked at, unless that was all.
    fn hold(self, after: Option<DueId>, until: Timestamp) -> Result<Option<DueId>, StoreError> {
        let lane = after.map_or(Lane::Doubt, |id| id.lane);
        let place = after.map(|id| (id.due, id.url));
        let rows = self
            .engine
            .due(self.host, lane, place, Timestamp::MAX, PIECE)?;
        let last = rows.last().map(|row| row.id);
        let is_full = rows.len() >= PIECE;
        let mut amendments = Vec::new();
        for row in rows.into_iter().filter(|row| is_in_question(&row.life)) {
            let mut life = row.life;
            let change = self.rules.hold(self.now, &mut life, Guard::HostFlip);
            amendments.push(Amendment {
                id: row.id,
                life,
                changes: change
                    .map(|change| Change::new(&change, None))
                    .into_iter()
                    .collect(),
                next: (Lane::Held, until),
            });
        }
        self.engine.amend(&amendments)?;
        Ok(match (is_full, lane) {
            (true, _) => last,
            // The other lane begins.
            (false, Lane::Doubt) => Some(DueId {
                host: self.host,
                lane: Lane::Trouble,
                due: Timestamp::MIN,
                url: UrlId(i64::MIN),
            }),
            (false, _) => None,
        })
    }
}

/// Some of the rows, by chance.
fn some_of(mut all: Vec<DueUrl>, count: usize, random: u64) -> Vec<DueUrl> {
    let mut random = plain::random::Random::new(random);
    let count = count.min(all.len());
    for place in 0..count {
        let left = (all.len() - place) as u64;
        let other = usize::try_from(random.next_number() % left).unwrap_or(0);
        all.swap(place, place + other);
    }
    all.truncate(count);
    all
}

/// The most URLs of a sample, and of how many times as many they are drawn.
const MOST_SAMPLED: usize = 4_096;
const WIDTH: usize = 8;
