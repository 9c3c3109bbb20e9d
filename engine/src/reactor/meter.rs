//! Rates of bytes: a network whose reads and writes are held back by rates, for each host and over all hosts.
//!
//! Each rate is a token bucket. If the buckets of a stream have no byte now, a read or a write fails with `WouldBlock`. If
//! they have only a part, the read or the write is cut short. The stream gets an event as soon as the buckets have more.
//! To the reactor this is a network that is as slow as the rates. The rates count the bytes of the sockets, which include
//! the bytes of TLS and of other handshakes. Without rates, a read or a write costs one more comparison.

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

type StreamKey = Key<of::Stream>;

/// The key of a bucket: the host whose bytes the bucket counts, or `None` for those of all hosts, and the direction of
/// these bytes.
type BucketKey = (Option<HostKey>, usize);

#[derive(Debug)]
struct Meters {
    rates: ByteRates,
    streams: Slab<StreamState, of::Stream>,
    buckets: BTreeMap<BucketKey, Bucket>,
    /// The streams that wait, in each direction: until when, the place of the stream, and the stream.
    waiting: [BinaryHeap<Reverse<(Instant, u64, StreamKey)>>; 2],
    /// The last place that a waiting stream got.
    last_place: u64,
    /// While this is true, no rate holds back a read or a write.
    unlimited: bool,
}

/// The state of a stream. Each array has an element for each direction: in and out.
#[derive(Debug)]
struct StreamState {
    token: Token,
    host: HostKey,
    /// Whether the stream waits for its buckets.
    waits: [bool; 2],
    /// The place of the stream among all that wait: of two that may go on at the same time, the lower one goes first. The
    /// stream keeps its place until it has read or written, so that no stream waits for ever.
    place: [Option<u64>; 2],
    /// The last read was cut short: there may be more to read.
    read_cut: bool,
    /// When the stream last stopped waiting.
    resumed_at: Option<Time>,
}

/// The bytes that one rate still allows.
#[derive(Debug)]
struct Bucket {
    limiter: RateLimiter,
    /// What a stream waits for, so that streams do not go on byte by byte.
    piece: u64,
}

impl Bucket {
    /// A bucket that has the burst of the rate. It can hold what the rate gives in [`LATENESS`], even if the burst is less:
    /// what comes in between the time for which a stream waits and the later time at which the loop serves the stream is
    /// not lost.
    fn new(rate: Rate, now: Instant) -> Self {
        let given_in = |time: Duration| {
            let count = u128::from(rate.count.get()).saturating_mul(time.as_nanos());
            u64::try_from(count / rate.per.as_nanos().max(1)).unwrap_or(u64::MAX)
        };
        let burst = rate.burst.max(LEAST_BURST);
        let capacity = NonZeroU64::new(given_in(LATENESS)).map_or(burst, |late| late.max(burst));
        let mut limiter = RateLimiter::new(rate.burst(capacity));
        limiter.charge(now, capacity.get() - burst.get());
        Self {
            limiter,
            piece: given_in(PIECE).clamp(1, MOST_OF_PIECE),
        }
    }
}

impl<N: Net> Metered<N> {
    pub(crate) fn new(net: N, rates: ByteRates) -> Self {
        let meters = (!rates.is_none()).then(|| Box::new(Meters::new(rates)));
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
        let meters = self.meters.as_mut();
        let key = meters.map(|meters| meters.insert(token, host));
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
            (state.waits.contains(&true), state.resumed_at)
        })
    }

    /// The state of a stream; `None` if no rate holds the stream back.
    #[inline]
    fn state(&self, stream: &MeteredStream<N::Stream>) -> Option<&StreamState> {
        self.meters.as_ref()?.streams.get(stream.key?)
    }

    /// Until when the buckets of a host must be kept: new ones would allow more bytes. `None` if they need not be kept.
    pub(crate) fn counts_until(&self, host: HostKey, now: Time) -> Option<Time> {
        let buckets = &self.meters.as_ref()?.buckets;
        let of_host = buckets.range((Some(host), IN)..=(Some(host), OUT));
        let at = of_host.filter_map(|(_, bucket)| bucket.limiter.rests_at());
        at.map(Time::of).max().filter(|at| *at > now)
    }

    /// Drops the buckets of a host that the client has removed.
    pub(crate) fn forget(&mut self, host: HostKey) {
        if let Some(meters) = &mut self.meters {
            meters.buckets.remove(&(Some(host), IN));
            meters.buckets.remove(&(Some(host), OUT));
        }
    }

    /// The stream without its meters: no rate holds it back any more.
    fn unmetered(&mut self, stream: MeteredStream<N::Stream>) -> N::Stream {
        if let (Some(meters), Some(key)) = (&mut self.meters, stream.key) {
            meters.streams.remove(key);
        }
        stream.stream
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
            if let Some(state) = meters.streams.get_mut(key) {
                state.read_cut = *n == most && most < buf.len();
            }
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
    pub(crate) fn next_resume(&self) -> Option<Instant> {
        self.meters.as_ref()?.next_at()
    }

    #[cold]
    fn poll_metered(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let due = self.next_resume();
        let wait = due.map(|at| at.saturating_duration_since(self.net.now()));
        let timeout = timeout.into_iter().chain(wait).min();
        let polled = self.net.poll(events, timeout);
        if let Some(meters) = &mut self.meters {
            meters.resume(self.net.now(), events);
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
    fn new(rates: ByteRates) -> Self {
        Self {
            rates,
            streams: Slab::new(),
            buckets: BTreeMap::new(),
            waiting: [BinaryHeap::new(), BinaryHeap::new()],
            last_place: 0,
            unlimited: false,
        }
    }

    fn insert(&mut self, token: Token, host: HostKey) -> StreamKey {
        self.streams.insert(|| StreamState {
            token,
            host,
            waits: [false; 2],
            place: [None; 2],
            read_cut: false,
            resumed_at: None,
        })
    }

    /// Calls `with` for each bucket that counts the bytes of a host in this direction.
    fn each_bucket(
        &mut self,
        direction: usize,
        host: HostKey,
        now: Instant,
        mut with: impl FnMut(&mut Bucket),
    ) {
        let own = self.rates.host[direction].map(|rate| (Some(host), rate));
        let total = self.rates.total[direction].map(|rate| (None, rate));
        for (of, rate) in own.into_iter().chain(total) {
            let bucket = self.buckets.entry((of, direction));
            with(bucket.or_insert_with(|| Bucket::new(rate, now)));
        }
    }

    /// How many of the `wanted` bytes the rates allow now: at least one.
    ///
    /// # Errors
    /// `WouldBlock` if the rates allow nothing now. The stream then waits.
    fn allow(
        &mut self,
        direction: usize,
        key: StreamKey,
        wanted: usize,
        now: Instant,
    ) -> io::Result<usize> {
        let Some(state) = self.streams.get(key).filter(|_| !self.unlimited) else {
            return Ok(wanted);
        };
        if state.waits[direction] {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // A stream that has not waited goes behind those that wait.
        let mut may_go = state.place[direction].is_some() || self.waiting[direction].is_empty();
        let wanted = wanted as u64;
        let mut most = wanted;
        self.each_bucket(direction, state.host, now, |bucket| {
            let available = bucket.limiter.available(now);
            may_go &= available >= wanted.min(bucket.piece);
            most = most.min(available);
        });
        if !may_go {
            self.wait(direction, key, now);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if let Some(state) = self.streams.get_mut(key) {
            state.place[direction] = None;
        }
        Ok(most as usize)
    }

    fn charge(&mut self, direction: usize, key: StreamKey, count: usize, now: Instant) {
        if let Some(host) = self.streams.get(key).map(|state| state.host) {
            self.each_bucket(direction, host, now, |bucket| {
                bucket.limiter.charge(now, count as u64);
            });
        }
    }

    /// Lets a stream wait until each of its buckets has a piece.
    fn wait(&mut self, direction: usize, key: StreamKey, now: Instant) {
        let Some(state) = self.streams.get_mut(key) else {
            return;
        };
        state.waits[direction] = true;
        let place = *state.place[direction].get_or_insert_with(|| {
            self.last_place += 1;
            self.last_place
        });
        let (host, mut until) = (state.host, now);
        self.each_bucket(direction, host, now, |bucket| {
            let ready_at = bucket.limiter.ready_at(now, bucket.piece);
            until = until.max(ready_at.unwrap_or(now + NEVER));
        });
        self.waiting[direction].push(Reverse((until, place, key)));
    }

    /// When the next of the streams that wait may go on.
    fn next_at(&self) -> Option<Instant> {
        let first = self.waiting.iter().filter_map(BinaryHeap::peek);
        first.map(|Reverse((at, ..))| *at).min()
    }

    /// Lets the streams go on whose time has come, and adds an event for each, before the events of the network: they
    /// have waited for longer.
    fn resume(&mut self, now: Instant, events: &mut Vec<Event>) {
        let of_network = events.len();
        for direction in [IN, OUT] {
            while let Some(&Reverse((at, _, key))) = self.waiting[direction].peek()
                && at <= now
            {
                self.waiting[direction].pop();
                let Some(state) = self.streams.get_mut(key) else {
                    continue; // the stream is closed
                };
                state.waits[direction] = false;
                state.resumed_at = Some(Time::of(now));
                events.push(Event {
                    token: state.token,
                    readable: direction == IN,
                    writable: direction == OUT,
                    closed: false,
                });
            }
        }
        events.rotate_left(of_network);
    }
}

const IN: usize = 0;
const OUT: usize = 1;

/// The least burst of a rate, whatever the configuration says: the size of a buffer.
const LEAST_BURST: NonZeroU64 = match NonZeroU64::new(16 * 1024) {
    Some(burst) => burst,
    None => NonZeroU64::MIN,
};

/// A piece is what the rate gives in this time, but not more than [`MOST_OF_PIECE`].
const PIECE: Duration = Duration::from_millis(10);
const MOST_OF_PIECE: u64 = 64 * 1024;

/// How late the loop may be without a loss: polls wait for whole milliseconds, and a busy machine lets the loop wait.
const LATENESS: Duration = Duration::from_millis(80);

const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(count: u64, burst: u64) -> Rate {
        let number = |n| NonZeroU64::new(n).expect("not zero");
        Rate::per_second(number(count)).burst(number(burst))
    }

    proptest! {
        /// Streams of several hosts always want more, and the loop is late. In no window does a host, or do all hosts
        /// together, get more than the rates allow, and nearly all that the rates allow is used.
        #[test]
        fn no_window_exceeds_a_rate_and_nothing_is_wasted(
            (own, own_burst) in (1_000u64..1_000_000, 1u64..60_000),
            (all, all_burst) in (1_000u64..1_000_000, 1u64..60_000),
            hosts in prop::collection::vec(0u32..3, 1..8),
            wants in prop::collection::vec(1_000usize..100_000, 1..20),
            late in prop::collection::vec(0u64..20_000, 1..20),
        ) {
            let (own, all) = (rate(own, own_burst), rate(all, all_burst));
            let mut meters = Meters::new(ByteRates { host: [Some(own), None], total: [Some(all), None] });
            let hosts_of = |(at, host): (usize, &u32)| meters.insert(Token(at), HostKey::first_of(*host));
            let keys: Vec<StreamKey> = hosts.iter().enumerate().map(hosts_of).collect();
            let start = Instant::now();
            let (mut now, mut went) = (start, Vec::new());
            let mut ready: Vec<usize> = (0..keys.len()).collect();
            let (mut wants, mut late) = (wants.into_iter().cycle(), late.into_iter().cycle());
            while now < start + Duration::from_secs(3) {
                for at in std::mem::take(&mut ready) {
                    while let Ok(n) = meters.allow(IN, keys[at], wants.next().unwrap_or(1), now) {
                        prop_assert!(n > 0);
                        meters.charge(IN, keys[at], n, now);
                        went.push((now, hosts[at], n as u128));
                    }
                }
                let next = meters.next_at();
                prop_assert!(next.is_some_and(|next| next >= now), "no stream would ever go on");
                now = next.unwrap_or(now) + Duration::from_micros(late.next().unwrap_or(0));
                let mut events = Vec::new();
                meters.resume(now, &mut events);
                ready.extend(events.iter().map(|event| event.token.0));
            }
            let bound = |rate: Rate, window: Duration| {
                let most = Bucket::new(rate, start).limiter.rate().burst;
                u128::from(most.get()) * 1_000_000_000 + window.as_nanos() * u128::from(rate.count.get())
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
            // Over three seconds, the slower of the two rates is nearly used up; a piece that streams still wait for is
            // missing.
            let number = hosts.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
            let slower = all.count.get().min(own.count.get() * number);
            let sum: u128 = went.iter().map(|(_, _, n)| n).sum();
            prop_assert!(sum >= u128::from(slower) * 5 / 2, "{} of {}", sum, slower * 3);
        }
    }
}
