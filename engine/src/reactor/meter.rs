//! Rates of bytes: a network whose reads and writes are held back by rates, for each host and over all hosts.
//!
//! If a rate allows no byte now, a read or a write fails with `WouldBlock`. If a rate allows only a part, the read or
//! the write is cut short. The stream gets an event as soon as the rate allows more. To the reactor this is a network
//! that is as slow as the rates. The streams that wait for one rate form a queue, and each gets a piece at a time. The
//! rates count the bytes of the sockets, which include the bytes of TLS and of other handshakes. Without rates, a read
//! or a write costs one more comparison.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::key::{HostKey, Key, of};
use super::slab::Slab;
use crate::net::os::Stream;
use crate::net::{Address, Event, Net, SocketOptions, Token, Waker};
use crate::policy::{Rate, RateLimiter};
use crate::time::Time;

/// Rates of bytes, as the configurations have them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByteRates {
    /// For each host: in and out.
    pub(crate) host: [Option<Rate>; 2],
    /// For all hosts together: in and out.
    pub(crate) total: [Option<Rate>; 2],
}

impl ByteRates {
    pub(crate) fn is_none(&self) -> bool {
        self.host.iter().chain(&self.total).all(Option::is_none)
    }
}

/// A network, with the rates that hold back its bytes.
pub(crate) struct Metered<N: Net> {
    net: N,
    meters: Option<Box<Meters>>,
}

/// A stream of a [`Metered`] network.
pub(crate) struct MeteredStream<S> {
    stream: S,
    /// `None` if no rate holds the stream back.
    key: Option<StreamKey>,
}

impl<S> MeteredStream<S> {
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }
}

type StreamKey = Key<of::Stream>;

/// The key of a flow: the hosts whose bytes the flow counts, and the direction of these bytes.
type FlowKey = (Scope, usize);

/// The hosts whose bytes a rate limits.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Scope {
    Host(HostKey),
    AllHosts,
}

#[derive(Debug)]
struct Meters {
    rates: ByteRates,
    streams: Slab<StreamState, of::Stream>,
    flows: BTreeMap<FlowKey, Flow>,
    /// When the rate of a flow allows a piece to the first stream of the flow's queue.
    grants_due: BinaryHeap<Reverse<(Instant, FlowKey)>>,
    /// Flows of which some streams have just got a grant and other streams still wait: they have no entry in
    /// `grants_due`.
    unscheduled: Vec<FlowKey>,
    /// The last number that a waiting stream got.
    last_number: u64,
    /// While this is true, no rate holds back a read or a write.
    unlimited: bool,
}

/// The state of a stream. Each array has an element for each direction: in and out.
#[derive(Debug)]
struct StreamState {
    token: Token,
    host: HostKey,
    /// Whether the stream is in the queue of a flow.
    waits: [bool; 2],
    /// The rank of the stream among all that wait: a lower number goes first. The stream keeps this number from the
    /// beginning of its wait until it may read or write.
    number: [Option<u64>; 2],
    /// Whether the stream has got a grant that it has not used yet.
    granted: [bool; 2],
    /// The last read was cut short: there may be more to read.
    read_cut: bool,
    /// When the stream last got a grant.
    granted_at: Option<Time>,
}

/// The bytes that one rate limits, and the streams that wait for this rate.
#[derive(Debug)]
struct Flow {
    limiter: RateLimiter,
    /// How many bytes a waiting stream gets at a time. So the streams do not get one byte each, and no stream gets
    /// everything.
    piece: u64,
    /// The streams that wait for this flow, by their numbers. A stream that got a grant of one flow, and then must wait
    /// for the other flow, keeps its number: it goes before streams that began to wait later.
    queue: BTreeMap<u64, StreamKey>,
    /// The flow is in `grants_due` or in `unscheduled`.
    scheduled: bool,
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
            queue: BTreeMap::new(),
            scheduled: false,
        }
    }
}

impl<N: Net> Metered<N> {
    pub(crate) fn new(net: N, rates: ByteRates) -> Self {
        let meters = (!rates.is_none()).then(|| {
            Box::new(Meters {
                rates,
                streams: Slab::new(),
                flows: BTreeMap::new(),
                grants_due: BinaryHeap::new(),
                unscheduled: Vec::new(),
                last_number: 0,
                unlimited: false,
            })
        });
        Self { net, meters }
    }

    /// As [`Net::connect`], under the rates of a host.
    pub(crate) fn connect_for(
        &mut self,
        host: HostKey,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<MeteredStream<N::Stream>> {
        let stream = self.net.connect(token, to, options)?;
        let key = self.meters.as_mut().map(|meters| {
            meters.streams.insert(StreamState {
                token,
                host,
                waits: [false; 2],
                number: [None; 2],
                granted: [false; 2],
                read_cut: false,
                granted_at: None,
            })
        });
        Ok(MeteredStream { stream, key })
    }

    /// Whether reads ignore the rates: for reads that only check whether a stream has bytes or has ended. The rates
    /// still count the bytes of these reads.
    pub(crate) fn set_unlimited(&mut self, unlimited: bool) {
        if let Some(meters) = &mut self.meters {
            meters.unlimited = unlimited;
        }
    }

    /// Whether a rate holds the stream back now, and when the last such wait ended.
    pub(crate) fn held_back(&self, stream: &MeteredStream<N::Stream>) -> (bool, Option<Time>) {
        self.state(stream).map_or((false, None), |state| {
            (state.waits.contains(&true), state.granted_at)
        })
    }

    /// The state of a stream; `None` if no rate holds the stream back.
    #[inline]
    fn state(&self, stream: &MeteredStream<N::Stream>) -> Option<&StreamState> {
        self.meters.as_ref()?.streams.get(stream.key?)
    }

    /// Until when the flows of a host must be kept: new flows would allow more bytes. `None` if they need not be kept.
    pub(crate) fn counts_until(&self, host: HostKey, now: Time) -> Option<Time> {
        let flows = &self.meters.as_ref()?.flows;
        let of_host = flows.range((Scope::Host(host), IN)..=(Scope::Host(host), OUT));
        let at = of_host.filter_map(|(_, flow)| flow.limiter.rests_at());
        at.map(Time::of).max().filter(|at| *at > now)
    }

    /// Drops the flows of a host that the client has removed.
    pub(crate) fn forget(&mut self, host: HostKey) {
        if let Some(meters) = &mut self.meters {
            meters.flows.remove(&(Scope::Host(host), IN));
            meters.flows.remove(&(Scope::Host(host), OUT));
        }
    }

    /// The stream without its meters: no rate holds it back any more.
    fn unmetered(&mut self, stream: MeteredStream<N::Stream>) -> N::Stream {
        if let (Some(meters), Some(key)) = (&mut self.meters, stream.key) {
            meters.streams.remove(key);
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
        let (Some(meters), Some(key)) = (&mut self.meters, stream.key) else {
            return self.net.read(&mut stream.stream, buf);
        };
        let most = meters.allow(IN, key, buf.len(), now)?;
        let read = self.net.read(&mut stream.stream, &mut buf[..most]);
        if let Ok(n) = &read {
            meters.charge(IN, key, *n, now);
            meters.set_cut(key, *n == most && most < buf.len());
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
        let (Some(meters), Some(key)) = (&mut self.meters, stream.key) else {
            return self.net.write(&mut stream.stream, parts);
        };
        let length = parts.iter().map(|part| part.len()).sum();
        let most = meters.allow(OUT, key, length, now)?;
        let mut left = most;
        let cut = parts.iter().map(|part| {
            let n = part.len().min(left);
            left -= n;
            IoSlice::new(&part[..n])
        });
        let cut: Vec<IoSlice<'_>> = cut.filter(|part| !part.is_empty()).collect();
        let written = self.net.write(&mut stream.stream, &cut);
        if let Ok(n) = &written {
            meters.charge(OUT, key, *n, now);
            if *n == most && most < length {
                // The socket took all bytes that it was given, so the network will report no event.
                meters.wait(OUT, key, now);
            }
        }
        written
    }

    /// When a stream that a rate holds back may go on.
    pub(crate) fn next_grant(&mut self) -> Option<Instant> {
        let now = self.net.now();
        let meters = self.meters.as_mut()?;
        meters.schedule(now);
        let Reverse((at, _)) = meters.grants_due.peek()?;
        Some(*at)
    }

    #[cold]
    fn poll_metered(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let due = self.next_grant();
        let wait = due.map(|at| at.saturating_duration_since(self.net.now()));
        let timeout = timeout.into_iter().chain(wait).min();
        let polled = self.net.poll(events, timeout);
        if let Some(meters) = &mut self.meters {
            meters.grant(self.net.now(), events);
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

    /// Connects without a host: no rate holds the stream back.
    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<Self::Stream> {
        let stream = self.net.connect(token, to, options)?;
        Ok(MeteredStream { stream, key: None })
    }

    #[inline]
    fn connected(&mut self, stream: &Self::Stream) -> io::Result<bool> {
        self.net.connected(&stream.stream)
    }

    #[inline(always)] // like the method of the network that is called here
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

    fn descriptor(&mut self) -> io::Result<OwnedFd> {
        self.net.descriptor()
    }

    fn close(&mut self, stream: Self::Stream) {
        let stream = self.unmetered(stream);
        self.net.close(stream);
    }

    fn release(&mut self, stream: Self::Stream) -> Option<Stream> {
        let stream = self.unmetered(stream);
        self.net.release(stream)
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
            && self.state(stream).is_none_or(|state| !state.read_cut)
    }
}

impl Meters {
    /// The flows that count the bytes of a host, in the order in which they are asked.
    fn flows_of(&self, direction: usize, host: HostKey) -> [Option<(FlowKey, Rate)>; 2] {
        let own = self.rates.host[direction].map(|rate| ((Scope::Host(host), direction), rate));
        let total = self.rates.total[direction].map(|rate| ((Scope::AllHosts, direction), rate));
        [own, total]
    }

    /// How many of the `wanted` bytes the rates allow now: at least one.
    ///
    /// # Errors
    /// `WouldBlock` if the rates allow nothing now. The stream then waits in a queue.
    fn allow(
        &mut self,
        direction: usize,
        key: StreamKey,
        wanted: usize,
        now: Instant,
    ) -> io::Result<usize> {
        let Some(state) = self.streams.get_mut(key) else {
            return Ok(wanted);
        };
        if self.unlimited {
            return Ok(wanted);
        }
        if state.waits[direction] {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let has_grant = std::mem::take(&mut state.granted[direction]);
        let host = state.host;
        let wanted = wanted as u64;
        let mut most = wanted;
        for (id, rate) in self.flows_of(direction, host).into_iter().flatten() {
            let flow = self.flows.entry(id).or_insert_with(|| Flow::new(rate));
            let available = flow.limiter.available(now);
            // A stream without a grant goes behind the streams that wait.
            let is_next = has_grant || flow.queue.is_empty();
            if !is_next || available < wanted.min(flow.piece) {
                self.enqueue(id, direction, key, now);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            most = most.min(match flow.queue.is_empty() {
                true => available,
                false => available.min(flow.piece),
            });
        }
        if let Some(state) = self.streams.get_mut(key) {
            state.number[direction] = None;
        }
        Ok(most as usize)
    }

    fn charge(&mut self, direction: usize, key: StreamKey, count: usize, now: Instant) {
        let Some(host) = self.streams.get(key).map(|state| state.host) else {
            return;
        };
        for (id, rate) in self.flows_of(direction, host).into_iter().flatten() {
            let flow = self.flows.entry(id).or_insert_with(|| Flow::new(rate));
            flow.limiter.charge(now, count as u64);
        }
    }

    fn set_cut(&mut self, key: StreamKey, cut: bool) {
        if let Some(state) = self.streams.get_mut(key) {
            state.read_cut = cut;
        }
    }

    /// Lets a stream wait that has more to send than the rates allow.
    fn wait(&mut self, direction: usize, key: StreamKey, now: Instant) {
        let Some(host) = self.streams.get(key).map(|state| state.host) else {
            return;
        };
        let flows = self.flows_of(direction, host);
        let id = flows.into_iter().flatten().map(|(id, _)| id);
        let least = id.min_by_key(|id| {
            let flow = self.flows.get_mut(id);
            flow.map_or(u64::MAX, |flow| flow.limiter.available(now))
        });
        if let Some(id) = least {
            self.enqueue(id, direction, key, now);
        }
    }

    /// Puts a stream into the queue of a flow.
    fn enqueue(&mut self, id: FlowKey, direction: usize, key: StreamKey, now: Instant) {
        let Some(state) = self.streams.get_mut(key) else {
            return;
        };
        state.waits[direction] = true;
        let number = *state.number[direction].get_or_insert_with(|| {
            self.last_number += 1;
            self.last_number
        });
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.queue.insert(number, key);
            if !std::mem::replace(&mut flow.scheduled, true) {
                let at = flow.limiter.ready_at(now, flow.piece);
                self.grants_due
                    .push(Reverse((at.unwrap_or(now + NEVER), id)));
            }
        }
    }

    /// Gives grants to the streams for which the rates now allow a piece, and adds an event for each.
    fn grant(&mut self, now: Instant, events: &mut Vec<Event>) {
        while let Some(&Reverse((at, id))) = self.grants_due.peek()
            && at <= now
        {
            self.grants_due.pop();
            let Some(flow) = self.flows.get_mut(&id) else {
                continue;
            };
            flow.scheduled = false;
            let mut pieces = flow.limiter.available(now) / flow.piece;
            while pieces > 0
                && let Some((_, key)) = flow.queue.pop_first()
            {
                let Some(state) = self.streams.get_mut(key) else {
                    continue; // the stream is closed
                };
                pieces -= 1;
                let direction = id.1;
                state.waits[direction] = false;
                state.granted[direction] = true;
                state.granted_at = Some(Time::of(now));
                events.push(Event {
                    token: state.token,
                    readable: direction == IN,
                    writable: direction == OUT,
                    closed: false,
                });
            }
            if !flow.queue.is_empty() {
                flow.scheduled = true;
                self.unscheduled.push(id);
            }
        }
    }

    /// Computes when the next streams get a grant. This is done when the streams with a grant have read or written, a
    /// piece or less: only then is it known what the rates still allow.
    fn schedule(&mut self, now: Instant) {
        for id in self.unscheduled.drain(..) {
            if let Some(flow) = self.flows.get_mut(&id) {
                let at = flow.limiter.ready_at(now, flow.piece);
                self.grants_due
                    .push(Reverse((at.unwrap_or(now + NEVER), id)));
            }
        }
    }
}

const IN: usize = 0;
const OUT: usize = 1;

/// The least burst of a rate, whatever the configuration says: the size of a buffer.
const LEAST_BURST: NonZeroU64 = match NonZeroU64::new(16 * 1024) {
    Some(burst) => burst,
    None => NonZeroU64::MIN,
};

/// A piece is what the rate allows in this time.
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
            streams: Slab::new(),
            flows: BTreeMap::new(),
            grants_due: BinaryHeap::new(),
            unscheduled: Vec::new(),
            last_number: 0,
            unlimited: false,
        }
    }

    fn stream(meters: &mut Meters, host: u32) -> StreamKey {
        meters.streams.insert(StreamState {
            token: Token(meters.streams.len()),
            host: HostKey::first_of(host),
            waits: [false; 2],
            number: [None; 2],
            granted: [false; 2],
            read_cut: false,
            granted_at: None,
        })
    }

    proptest! {
        /// Streams of several hosts always want more. In no window does a host, or do all hosts together, get more than
        /// the rates allow, and nearly all that the rates allow is used.
        #[test]
        fn no_window_exceeds_a_rate_and_nothing_is_wasted(
            (own, own_burst) in (1_000u64..1_000_000, 1u64..60_000),
            (all, all_burst) in (1_000u64..1_000_000, 1u64..60_000),
            hosts in prop::collection::vec(0u32..3, 1..8),
            wants in prop::collection::vec(1usize..100_000, 1..20),
        ) {
            let (own, all) = (rate(own, own_burst), rate(all, all_burst));
            let mut meters = meters(Some(own), Some(all));
            let keys: Vec<StreamKey> = hosts.iter().map(|host| stream(&mut meters, *host)).collect();
            let start = Instant::now();
            let (mut now, mut went) = (start, Vec::new());
            let mut ready: Vec<usize> = (0..keys.len()).collect();
            let mut wants = wants.into_iter().cycle();
            while now < start + Duration::from_secs(3) {
                for at in std::mem::take(&mut ready) {
                    while let Ok(n) = meters.allow(IN, keys[at], wants.next().unwrap_or(1), now) {
                        prop_assert!(n > 0);
                        meters.charge(IN, keys[at], n, now);
                        went.push((now, hosts[at], n as u128));
                    }
                }
                meters.schedule(now);
                let next = meters.grants_due.peek().map(|Reverse((at, _))| *at);
                prop_assert!(next.is_some_and(|next| next >= now), "no stream would ever get a grant");
                now = next.unwrap_or(now);
                let mut events = Vec::new();
                meters.grant(now, &mut events);
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
            // Over three seconds, the slower of the two rates is nearly used up; pieces that were granted and not yet
            // read are missing.
            let number = hosts.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
            let slower = all.count.get().min(own.count.get() * number);
            let sum: u128 = went.iter().map(|(_, _, n)| n).sum();
            prop_assert!(sum >= u128::from(slower) * 5 / 2, "{} of {}", sum, slower * 3);
        }
    }
}
