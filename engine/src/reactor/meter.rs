//! Bytes in a time: a network whose reads and writes are held back by rates, for each host and over all.
//!
//! A read or a write that may not be says `WouldBlock`, or is cut short, and its stream is told of with an event when
//! its turn has come: to the reactor it is a network that is as slow as the rates. Streams that wait for one rate stand
//! in line for it, and get a piece each. What is counted are the bytes of the sockets, those of TLS and of handshakes
//! included. Without rates a read or a write costs one comparison more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use super::key::{HostKey, Key, of};
use super::slab::Slab;
use crate::net::{Address, Event, Net, SocketOptions, Token, Waker};
use crate::policy::{Rate, RateLimiter};
use crate::time::Time;

/// Rates of bytes; the fields are those of the configurations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByteRates {
    /// In and out, of each host.
    pub(crate) host: [Option<Rate>; 2],
    /// In and out, of all hosts together.
    pub(crate) total: [Option<Rate>; 2],
}

impl ByteRates {
    pub(crate) fn is_none(&self) -> bool {
        self.host.iter().chain(&self.total).all(Option::is_none)
    }
}

/// A network, and the rates at which bytes go through it.
pub(crate) struct Metered<N: Net> {
    net: N,
    meters: Option<Box<Meters>>,
}

/// One of its streams.
pub(crate) struct MeteredStream<S> {
    stream: S,
    /// Of a network without rates, nothing.
    tag: Option<StreamKey>,
}

impl<S> MeteredStream<S> {
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }
}

type StreamKey = Key<of::Stream>;

/// Names a flow: whose bytes it counts, and their direction.
type FlowKey = (Scope, usize);

/// Whose bytes a rate is for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Scope {
    Host(HostKey),
    AllHosts,
}

#[derive(Debug)]
struct Meters {
    rates: ByteRates,
    tags: Slab<Tag, of::Stream>,
    flows: BTreeMap<FlowKey, Flow>,
    /// When the next in line of a flow has its turn.
    due: BinaryHeap<Reverse<(Instant, FlowKey)>>,
    /// Flows of which some have been called, and others wait.
    unplanned: Vec<FlowKey>,
    /// The place of the next one that waits.
    next_place: u64,
    free: bool,
}

/// What is known of a stream; in and out.
#[derive(Debug)]
struct Tag {
    token: Token,
    host: HostKey,
    waits: [bool; 2],
    /// Its place in line, from when it began to wait until it gets something.
    place: [Option<u64>; 2],
    /// It has had its turn in line, and has not used it.
    called: [bool; 2],
    /// The last read was cut short: there may be more.
    cut: bool,
    /// When it was last called.
    called_at: Option<Time>,
}

/// What goes through one rate.
#[derive(Debug)]
struct Flow {
    limiter: RateLimiter,
    /// What one that waits gets at a time, so that neither everybody gets a byte nor one everything.
    piece: u64,
    /// Those that wait, by how long they have done so for any flow: one that has had its turn in one, and finds nothing
    /// in the other, is not behind those that came later.
    line: BTreeMap<u64, StreamKey>,
    /// It is among those that are due.
    planned: bool,
}

impl Flow {
    fn new(rate: Rate) -> Self {
        let burst = rate.burst.max(LEAST_BURST);
        let per = rate.per.as_nanos().max(1);
        let piece = u128::from(rate.count.get()).saturating_mul(PIECE.as_nanos()) / per;
        Self {
            limiter: RateLimiter::new(rate.burst(burst)),
            piece: u64::try_from(piece)
                .unwrap_or(u64::MAX)
                .clamp(1, LEAST_BURST.get()),
            line: BTreeMap::new(),
            planned: false,
        }
    }
}

impl<N: Net> Metered<N> {
    pub(crate) fn new(net: N, rates: ByteRates) -> Self {
        let meters = (!rates.is_none()).then(|| {
            Box::new(Meters {
                rates,
                tags: Slab::new(),
                flows: BTreeMap::new(),
                due: BinaryHeap::new(),
                unplanned: Vec::new(),
                next_place: 0,
                free: false,
            })
        });
        Self { net, meters }
    }

    /// As [`Net::connect`], for that host.
    pub(crate) fn connect_for(
        &mut self,
        host: HostKey,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<MeteredStream<N::Stream>> {
        let stream = self.net.connect(token, to, options)?;
        let tag = self.meters.as_mut().map(|meters| {
            meters.tags.insert(Tag {
                token,
                host,
                waits: [false; 2],
                place: [None; 2],
                called: [false; 2],
                cut: false,
                called_at: None,
            })
        });
        Ok(MeteredStream { stream, tag })
    }

    /// Whether reads go on whatever the rates: to see whether there is something, or the end. What they take is
    /// charged.
    pub(crate) fn set_free(&mut self, free: bool) {
        if let Some(meters) = &mut self.meters {
            meters.free = free;
        }
    }

    /// Whether a rate holds it back, or when one has last done so.
    pub(crate) fn held(&self, stream: &MeteredStream<N::Stream>) -> (bool, Option<Time>) {
        self.tag(stream).map_or((false, None), |tag| {
            (tag.waits.contains(&true), tag.called_at)
        })
    }

    /// What is known of a stream, if there are rates.
    #[inline]
    fn tag(&self, stream: &MeteredStream<N::Stream>) -> Option<&Tag> {
        self.meters.as_ref()?.tags.get(stream.tag?)
    }

    /// Until when what is known of a host must be kept: a new one would let more pass.
    pub(crate) fn counts_until(&self, host: HostKey, now: Time) -> Option<Time> {
        let flows = &self.meters.as_ref()?.flows;
        let of_host = flows.range((Scope::Host(host), IN)..=(Scope::Host(host), OUT));
        let at = of_host.filter_map(|(_, flow)| flow.limiter.rests_at());
        at.map(Time::of).max().filter(|at| *at > now)
    }

    /// A host is gone.
    pub(crate) fn forget(&mut self, host: HostKey) {
        if let Some(meters) = &mut self.meters {
            meters.flows.remove(&(Scope::Host(host), IN));
            meters.flows.remove(&(Scope::Host(host), OUT));
        }
    }

    /// The network itself.
    pub(crate) fn inner(&mut self) -> &mut N {
        &mut self.net
    }

    /// Takes a stream out, for somebody else.
    pub(crate) fn release(&mut self, stream: MeteredStream<N::Stream>) -> N::Stream {
        if let (Some(meters), Some(tag)) = (&mut self.meters, stream.tag) {
            meters.tags.remove(tag);
        }
        stream.into_stream()
    }

    #[cold]
    fn read_metered(
        &mut self,
        stream: &mut MeteredStream<N::Stream>,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        let now = self.net.now();
        let (Some(meters), Some(tag)) = (&mut self.meters, stream.tag) else {
            return self.net.read(&mut stream.stream, buf);
        };
        let most = meters.allow(IN, tag, buf.len(), now)?;
        let read = self.net.read(&mut stream.stream, &mut buf[..most]);
        if let Ok(n) = &read {
            meters.charge(IN, tag, *n, now);
            meters.set_cut(tag, *n == most && most < buf.len());
        }
        read
    }

    #[cold]
    fn write_metered(
        &mut self,
        stream: &mut MeteredStream<N::Stream>,
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let now = self.net.now();
        let (Some(meters), Some(tag)) = (&mut self.meters, stream.tag) else {
            return self.net.write(&mut stream.stream, parts);
        };
        let length = parts.iter().map(|part| part.len()).sum();
        let most = meters.allow(OUT, tag, length, now)?;
        let mut left = most;
        let cut = parts.iter().map(|part| {
            let n = part.len().min(left);
            left -= n;
            IoSlice::new(&part[..n])
        });
        let cut: Vec<IoSlice<'_>> = cut.filter(|part| !part.is_empty()).collect();
        let written = self.net.write(&mut stream.stream, &cut);
        if let Ok(n) = &written {
            meters.charge(OUT, tag, *n, now);
            if *n == most && most < length {
                // The socket took it all, so no event of its own will come.
                meters.wait(OUT, tag, now);
            }
        }
        written
    }

    #[cold]
    fn poll_metered(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let now = self.net.now();
        let due = self.meters.as_mut().and_then(|meters| {
            meters.plan(now);
            meters.due.peek()
        });
        let wait = due.map(|Reverse((at, _))| at.saturating_duration_since(now));
        let timeout = timeout.into_iter().chain(wait).min();
        let polled = self.net.poll(events, timeout);
        if let Some(meters) = &mut self.meters {
            meters.call(self.net.now(), events);
        }
        polled
    }
}

impl<N: Net> Net for Metered<N> {
    type Stream = MeteredStream<N::Stream>;

    #[inline]
    fn now(&self) -> Instant {
        self.net.now()
    }

    /// For no host, so that no rate holds the stream back.
    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<Self::Stream> {
        let stream = self.net.connect(token, to, options)?;
        Ok(MeteredStream { stream, tag: None })
    }

    #[inline]
    fn connected(&mut self, stream: &Self::Stream) -> io::Result<bool> {
        self.net.connected(&stream.stream)
    }

    #[inline(always)] // as is what it stands before
    fn read(&mut self, stream: &mut Self::Stream, buf: &mut [u8]) -> io::Result<usize> {
        if self.meters.is_none() {
            return self.net.read(&mut stream.stream, buf);
        }
        self.read_metered(stream, buf)
    }

    #[inline(always)]
    fn read_append(&mut self, stream: &mut Self::Stream, buf: &mut Vec<u8>) -> io::Result<usize> {
        if self.meters.is_none() {
            return self.net.read_append(&mut stream.stream, buf);
        }
        let start = buf.len();
        buf.resize(buf.capacity(), 0);
        let read = self.read_metered(stream, &mut buf[start..]);
        buf.truncate(start + read.as_ref().map_or(0, |n| *n));
        read
    }

    #[inline(always)]
    fn write(&mut self, stream: &mut Self::Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.meters.is_none() {
            return self.net.write(&mut stream.stream, parts);
        }
        self.write_metered(stream, parts)
    }

    #[inline(always)]
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        if self.meters.is_none() {
            return self.net.poll(events, timeout);
        }
        self.poll_metered(events, timeout)
    }

    fn waker(&mut self) -> io::Result<Waker> {
        self.net.waker()
    }

    fn close(&mut self, stream: Self::Stream) {
        let stream = self.release(stream);
        self.net.close(stream);
    }

    fn local_address(&self, stream: &Self::Stream) -> Option<Address> {
        self.net.local_address(&stream.stream)
    }

    fn random(&mut self) -> u64 {
        self.net.random()
    }

    #[inline(always)]
    fn left_nothing(&self, stream: &Self::Stream, n: usize, room: usize) -> bool {
        self.net.left_nothing(&stream.stream, n, room)
            && self.tag(stream).is_none_or(|tag| !tag.cut)
    }
}

impl Meters {
    /// The flows that a stream goes through, in the order in which they are asked.
    fn ways(&self, direction: usize, host: HostKey) -> [Option<(FlowKey, Rate)>; 2] {
        let own = self.rates.host[direction].map(|rate| ((Scope::Host(host), direction), rate));
        let total = self.rates.total[direction].map(|rate| ((Scope::AllHosts, direction), rate));
        [own, total]
    }

    /// How many bytes, of so many, may go now, at least one.
    ///
    /// # Errors
    /// `WouldBlock`, and the stream is in line.
    fn allow(
        &mut self,
        direction: usize,
        key: StreamKey,
        wanted: usize,
        now: Instant,
    ) -> io::Result<usize> {
        let Some(tag) = self.tags.get_mut(key) else {
            return Ok(wanted);
        };
        if self.free {
            return Ok(wanted);
        }
        if tag.waits[direction] {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let was_called = std::mem::take(&mut tag.called[direction]);
        let host = tag.host;
        let wanted = wanted as u64;
        let mut most = wanted;
        for (id, rate) in self.ways(direction, host).into_iter().flatten() {
            let flow = self.flows.entry(id).or_insert_with(|| Flow::new(rate));
            let available = flow.limiter.available(now);
            // Who comes goes behind those that wait.
            let is_turn = was_called || flow.line.is_empty();
            if !is_turn || available < wanted.min(flow.piece) {
                self.stand_in(id, direction, key, now);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            most = most.min(match flow.line.is_empty() {
                true => available,
                false => available.min(flow.piece),
            });
        }
        if let Some(tag) = self.tags.get_mut(key) {
            tag.place[direction] = None;
        }
        Ok(most as usize)
    }

    fn charge(&mut self, direction: usize, key: StreamKey, count: usize, now: Instant) {
        let Some(host) = self.tags.get(key).map(|tag| tag.host) else {
            return;
        };
        for (id, rate) in self.ways(direction, host).into_iter().flatten() {
            let flow = self.flows.entry(id).or_insert_with(|| Flow::new(rate));
            flow.limiter.charge(now, count as u64);
        }
    }

    fn set_cut(&mut self, key: StreamKey, cut: bool) {
        if let Some(tag) = self.tags.get_mut(key) {
            tag.cut = cut;
        }
    }

    /// Puts a stream in line that has more to send than it may.
    fn wait(&mut self, direction: usize, key: StreamKey, now: Instant) {
        let Some(host) = self.tags.get(key).map(|tag| tag.host) else {
            return;
        };
        let ways = self.ways(direction, host);
        // The one that lets the least pass.
        let id = ways.into_iter().flatten().map(|(id, _)| id);
        let least = id.min_by_key(|id| {
            let flow = self.flows.get_mut(id);
            flow.map_or(u64::MAX, |flow| flow.limiter.available(now))
        });
        if let Some(id) = least {
            self.stand_in(id, direction, key, now);
        }
    }

    fn stand_in(&mut self, id: FlowKey, direction: usize, key: StreamKey, now: Instant) {
        let Some(tag) = self.tags.get_mut(key) else {
            return;
        };
        tag.waits[direction] = true;
        let place = *tag.place[direction].get_or_insert_with(|| {
            self.next_place += 1;
            self.next_place
        });
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.line.insert(place, key);
            if !std::mem::replace(&mut flow.planned, true) {
                let at = flow.limiter.ready_at(now, flow.piece);
                self.due.push(Reverse((at.unwrap_or(now + NEVER), id)));
            }
        }
    }

    /// Tells those whose turn has come.
    fn call(&mut self, now: Instant, events: &mut Vec<Event>) {
        while let Some(&Reverse((at, id))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let Some(flow) = self.flows.get_mut(&id) else {
                continue;
            };
            flow.planned = false;
            let mut pieces = flow.limiter.available(now) / flow.piece;
            while pieces > 0
                && let Some((_, key)) = flow.line.pop_first()
            {
                let Some(tag) = self.tags.get_mut(key) else {
                    continue; // it is closed
                };
                pieces -= 1;
                let direction = id.1;
                tag.waits[direction] = false;
                tag.called[direction] = true;
                tag.called_at = Some(Time::of(now));
                events.push(Event {
                    token: tag.token,
                    readable: direction == IN,
                    writable: direction == OUT,
                    closed: false,
                });
            }
            if !flow.line.is_empty() {
                flow.planned = true;
                self.unplanned.push(id);
            }
        }
    }

    /// Plans when the next ones are called, once those that were have taken theirs, a piece or less.
    fn plan(&mut self, now: Instant) {
        for id in self.unplanned.drain(..) {
            if let Some(flow) = self.flows.get_mut(&id) {
                let at = flow.limiter.ready_at(now, flow.piece);
                self.due.push(Reverse((at.unwrap_or(now + NEVER), id)));
            }
        }
    }
}

const IN: usize = 0;
const OUT: usize = 1;

/// What goes at once at the least, whatever the rate says: a buffer's worth.
const LEAST_BURST: NonZeroU64 = match NonZeroU64::new(16 * 1024) {
    Some(burst) => burst,
    None => NonZeroU64::MIN,
};

/// One in line gets what the rate gives in this time.
const PIECE: Duration = Duration::from_millis(20);

const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(count: u64, burst: u64) -> Rate {
        let number = |n| NonZeroU64::new(n).expect("not zero");
        Rate::per_second(number(count)).burst(number(burst))
    }

    fn meters(host: Option<Rate>, total: Option<Rate>) -> Meters {
        Meters {
            rates: ByteRates {
                host: [host, None],
                total: [total, None],
            },
            tags: Slab::new(),
            flows: BTreeMap::new(),
            due: BinaryHeap::new(),
            unplanned: Vec::new(),
            next_place: 0,
            free: false,
        }
    }

    fn stream(meters: &mut Meters, host: u32) -> StreamKey {
        meters.tags.insert(Tag {
            token: Token(meters.tags.len()),
            host: HostKey::first_of(host),
            waits: [false; 2],
            place: [None; 2],
            called: [false; 2],
            cut: false,
            called_at: None,
        })
    }

    #[test]
    fn those_in_line_get_a_piece_each_and_who_is_gone_holds_nobody_up() {
        let mut meters = meters(None, Some(rate(100_000, 1)));
        let mut now = Instant::now();
        let all: Vec<StreamKey> = (0..4).map(|_| stream(&mut meters, 1)).collect();
        assert_eq!(meters.allow(IN, all[0], 100_000, now).ok(), Some(16_384));
        meters.charge(IN, all[0], 16_384, now);
        for key in &all {
            assert!(meters.allow(IN, *key, 100_000, now).is_err());
            // However often it asks, it stands in line once.
            assert!(meters.allow(IN, *key, 100_000, now).is_err());
        }
        meters.tags.remove(all[1]);
        let mut events = Vec::new();
        for expected in [0, 2, 3] {
            now += PIECE;
            meters.call(now, &mut events);
            let event = events.pop().expect("somebody's turn");
            assert_eq!((event.token, event.readable), (Token(expected), true));
            assert!(events.is_empty());
            assert_eq!(
                meters.allow(IN, all[expected], 100_000, now).ok(),
                Some(2000)
            );
            meters.charge(IN, all[expected], 2000, now);
            meters.plan(now);
        }
        now += PIECE;
        meters.call(now, &mut events);
        assert!(events.is_empty() && meters.due.is_empty());
    }

    proptest! {
        /// Streams of some hosts that always want more: over any window no host and not all together get more than
        /// their rates, each is called when it waits, and full use is made of what there is.
        #[test]
        fn no_window_has_more_and_none_waits_for_ever(
            (own, own_burst) in (1_000u64..1_000_000, 1u64..60_000),
            (all, all_burst) in (1_000u64..1_000_000, 1u64..60_000),
            hosts in prop::collection::vec(0u32..3, 1..8),
            wants in prop::collection::vec(1usize..100_000, 1..20),
        ) {
            let (own, all) = (rate(own, own_burst), rate(all, all_burst));
            let mut meters = meters(Some(own), Some(all));
            let keys: Vec<StreamKey> = hosts.iter().map(|host| stream(&mut meters, *host)).collect();
            let start = Instant::now();
            let (mut now, mut went, mut got) = (start, Vec::new(), vec![0; keys.len()]);
            let mut ready: Vec<usize> = (0..keys.len()).collect();
            let mut wants = wants.into_iter().cycle();
            while now < start + Duration::from_secs(3) {
                for at in std::mem::take(&mut ready) {
                    while let Ok(n) = meters.allow(IN, keys[at], wants.next().unwrap_or(1), now) {
                        prop_assert!(n > 0);
                        meters.charge(IN, keys[at], n, now);
                        went.push((now, hosts[at], n as u128));
                        got[at] += n;
                    }
                }
                meters.plan(now);
                let next = meters.due.peek().map(|Reverse((at, _))| *at);
                prop_assert!(next.is_some_and(|next| next >= now), "nobody would ever be called");
                now = next.unwrap_or(now);
                let mut events = Vec::new();
                meters.call(now, &mut events);
                ready.extend(events.iter().map(|event| event.token.0));
            }
            let bound = |rate: Rate, window: Duration| {
                let burst = u128::from(rate.burst.max(LEAST_BURST).get());
                burst * 1_000_000_000 + window.as_nanos() * u128::from(rate.count.get())
            };
            for (from, (begin, _, _)) in went.iter().enumerate() {
                let (mut sum, mut of_hosts) = (0, [0; 3]);
                for (end, host, n) in &went[from..] {
                    sum += n;
                    of_hosts[*host as usize] += n;
                    prop_assert!(sum * 1_000_000_000 <= bound(all, *end - *begin));
                    prop_assert!(of_hosts[*host as usize] * 1_000_000_000 <= bound(own, *end - *begin));
                }
            }
            // The slower of the two rates, over three seconds, but for the pieces that are on their way.
            let number = hosts.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
            let slower = all.count.get().min(own.count.get() * number);
            let sum: usize = got.iter().sum();
            prop_assert!(sum as u64 >= slower * 5 / 2, "{} of {}", sum, slower * 3);
            prop_assert!(got.iter().all(|got| *got > 0), "{:?}", got);
        }
    }
}
