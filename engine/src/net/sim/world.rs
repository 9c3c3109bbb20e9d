//! The state of the simulation: the queue of future events, the connections, and the clock.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::names::NameService;
use super::server::ServerAction;
use super::{Entry, Failure, Link, Peer, Probability, Random, SimServer, Trace};
use crate::error::Shortage;
use crate::net::{Address, Event, Token};

pub(super) struct World {
    start: Instant,
    /// Virtual time since `start`.
    pub(super) elapsed: Duration,
    random: Random,
    /// Random numbers that the client draws, from a generator of their own: one draw more does not change the network.
    pub(super) jitter: Random,
    /// Connections and their events, by time and then in the order in which they were scheduled.
    queue: BTreeMap<(Duration, u64), (u64, SimEvent)>,
    scheduled: u64,
    hosts: BTreeMap<Address, Host>,
    pub(super) names: NameService,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    /// Connections with readiness that no poll has reported yet.
    ready: VecDeque<u64>,
    /// Set by wakers; cleared by the poll that it ends.
    pub(super) woken: Arc<AtomicBool>,
    pub(super) descriptors: usize,
    pub(super) early_wakeups: Probability,
    pub(super) failing: Option<(u64, Failure)>,
    pub(super) calls: u64,
    pub(super) open: usize,
    pub(super) peak: usize,
    pub(super) trace: Vec<Entry>,
    pub(super) tracing: bool,
    /// The value of `calls` at the last poll.
    calls_before: u64,
    /// The connection that was read last, and how often in a row, since the last poll or act of the caller.
    last_read: (u64, u32),
    /// Polls in a row that reported nothing while no time passed.
    fruitless: u32,
    /// Polls in a row while no time passed, whatever they reported.
    timeless: u32,
}

struct Host {
    link: Rc<Link>,
    server: Box<dyn SimServer>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            start: Instant::now(),
            elapsed: Duration::ZERO,
            jitter: random.fork(),
            random,
            names: NameService::new(seed),
            queue: BTreeMap::new(),
            scheduled: 0,
            hosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_connection: 0,
            ready: VecDeque::new(),
            woken: Arc::default(),
            descriptors: usize::MAX,
            early_wakeups: Probability::NEVER,
            failing: None,
            calls: 0,
            open: 0,
            peak: 0,
            trace: Vec::new(),
            tracing: true,
            calls_before: 0,
            last_read: (0, 0),
            fruitless: 0,
            timeless: 0,
        }
    }

    pub(super) fn listen(&mut self, at: Address, link: Link, server: Box<dyn SimServer>) {
        let link = Rc::new(link);
        self.hosts.insert(at, Host { link, server });
    }

    pub(super) fn now(&self) -> Instant {
        self.start + self.elapsed
    }

    /// The time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.elapsed
    }

    pub(super) fn take_questions(&mut self) {
        self.names.take_questions(self.elapsed);
    }

    pub(super) fn advance(&mut self, time: Duration) {
        self.take_questions();
        let end = self.elapsed + time;
        while let Some(at) = self.next_event_at()
            && at <= end
        {
            self.elapsed = self.elapsed.max(at);
            self.run_events();
        }
        self.elapsed = end;
    }

    // ---- calls of the client

    pub(super) fn connect(&mut self, token: Token, to: &Address) -> io::Result<u64> {
        let id = self.next_connection;
        self.next_connection += 1;
        self.log(id, Trace::Connect(to.clone()));
        let link = self.hosts.get(to).map(|host| Rc::clone(&host.link));
        let listening = link.is_some();
        let link = link.unwrap_or_default();
        if let Some(error) = self.immediate_error(to, &link, listening) {
            self.log(id, Trace::ConnectError(error.raw_os_error()));
            return Err(match error {
                Errno::MFILE => Shortage::Descriptors {
                    limit: Some(self.descriptors as u64),
                }
                .into(),
                Errno::NOBUFS => Shortage::Memory.into(),
                Errno::ADDRNOTAVAIL => Shortage::Ports.into(),
                other => other.into(),
            });
        }
        let mut connection = Connection::new(to.clone(), token, Rc::clone(&link), self.elapsed);
        let there = self.elapsed + self.random.duration(&link.latency);
        let back = there + self.random.duration(&link.latency);
        connection.to_server_at = there;
        connection.to_client_at = back;
        self.connections.insert(id, connection);
        self.open += 1;
        self.peak = self.peak.max(self.open);
        let faults = &link.faults;
        if self.random.roll(faults.black_hole) {
            self.stall(id);
        } else if self.random.roll(faults.unreachable) {
            let round_trip = back - self.elapsed;
            let at = self.elapsed + 3 * round_trip;
            self.schedule(at, id, SimEvent::ConnectEnd(Err(Errno::HOSTUNREACH)));
        } else if !listening || self.random.roll(faults.refused) {
            self.schedule(back, id, SimEvent::ConnectEnd(Err(Errno::CONNREFUSED)));
        } else {
            self.schedule(there, id, SimEvent::Accept);
            self.schedule(back, id, SimEvent::ConnectEnd(Ok(())));
        }
        self.maybe_spurious(id);
        Ok(id)
    }

    /// The errors that the call of connect itself returns.
    fn immediate_error(&mut self, to: &Address, link: &Link, listening: bool) -> Option<Errno> {
        let failure = self.next_call();
        let random = &mut self.random;
        let faults = &link.faults;
        let unix = matches!(to, Address::Unix(_));
        if failure == Some(Failure::Error)
            || self.open >= self.descriptors
            || random.roll(faults.no_descriptor)
        {
            Some(Errno::MFILE)
        } else if failure == Some(Failure::NotNow) || random.roll(faults.no_port) {
            Some(Errno::ADDRNOTAVAIL)
        } else if random.roll(faults.no_buffers) {
            Some(Errno::NOBUFS)
        } else if unix && !listening {
            Some(Errno::NOENT)
        } else if unix && random.roll(faults.refused) {
            Some(Errno::CONNREFUSED)
        } else {
            None
        }
    }

    pub(super) fn connected(&mut self, id: u64) -> io::Result<bool> {
        let failure = self.next_call();
        let connection = self.connections.get_mut(&id).expect(OPEN);
        let answer = match (connection.stage, failure) {
            (ConnectStage::Connecting, _) => Ok(false),
            (_, Some(Failure::NotNow)) => {
                self.event_soon(id, Readiness::WRITABLE);
                Ok(false)
            }
            (ConnectStage::Up, Some(Failure::Error)) => {
                self.reset_both_sides(id);
                Err(Errno::CONNREFUSED)
            }
            (ConnectStage::Failed(error), _) => Err(error),
            (ConnectStage::Up, _) => match connection.take_error() {
                Some(error) => Err(error),
                None => Ok(true),
            },
        };
        self.log(id, Trace::Connected(answer.map_err(Errno::raw_os_error)));
        Ok(answer?)
    }

    pub(super) fn read(&mut self, id: u64, buf: &mut [u8]) -> io::Result<usize> {
        let failure = self.next_call();
        self.last_read = match self.last_read {
            (last, times) if last == id => (id, times + 1),
            _ => (id, 1),
        };
        assert!(
            self.last_read.1 < STUCK_READS,
            "one connection holds the client: {}",
            self.describe()
        );
        let result = self.try_read(id, buf, failure);
        self.log(id, Trace::Read(trace_result(result)));
        Ok(result?)
    }

    fn try_read(
        &mut self,
        id: u64,
        buf: &mut [u8],
        failure: Option<Failure>,
    ) -> Result<usize, Errno> {
        let random = &mut self.random;
        let connection = self.connections.get_mut(&id).expect(OPEN);
        if connection.stage == ConnectStage::Connecting || connection.read_blocked {
            return Err(Errno::AGAIN);
        }
        if failure == Some(Failure::Error) {
            self.reset_both_sides(id);
            return Err(Errno::CONNRESET);
        }
        if buf.is_empty() {
            return Ok(0);
        }
        let there = connection.inbound.len();
        if there == 0 {
            return connection.read_end();
        }
        let faults = &connection.link.faults;
        let mut n = there.min(buf.len());
        // After an event with `closed`, the client may rely on reading up to the end without another event.
        let may_defer = !connection.closed_reported;
        if may_defer && (failure == Some(Failure::NotNow) || random.roll(faults.would_block)) {
            n = 0;
        } else if failure == Some(Failure::OneByte) {
            n = 1;
        } else if random.roll(faults.short_read) {
            n = random.within(1..=n);
        }
        let (front, back) = connection.inbound.as_slices();
        let in_front = n.min(front.len());
        buf[..in_front].copy_from_slice(&front[..in_front]);
        buf[in_front..n].copy_from_slice(&back[..n - in_front]);
        connection.inbound.drain(..n);
        // A short read means that nothing more is there, so this must hold until the next event.
        if may_defer && n < buf.len() && n < there {
            connection.read_blocked = true;
            self.event_soon(id, Readiness::READABLE);
        }
        if n == 0 { Err(Errno::AGAIN) } else { Ok(n) }
    }

    pub(super) fn write(&mut self, id: u64, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let failure = self.next_call();
        let result = self.try_write(id, parts, failure);
        self.log(id, Trace::Write(trace_result(result)));
        Ok(result?)
    }

    fn try_write(
        &mut self,
        id: u64,
        parts: &[IoSlice<'_>],
        failure: Option<Failure>,
    ) -> Result<usize, Errno> {
        let random = &mut self.random;
        let connection = self.connections.get_mut(&id).expect(OPEN);
        if connection.stage == ConnectStage::Connecting {
            return Err(Errno::AGAIN);
        }
        if let Some(error) = connection.write_error() {
            return Err(error);
        }
        if failure == Some(Failure::Error) {
            self.reset_both_sides(id);
            return Err(Errno::CONNRESET);
        }
        let asked: usize = parts.iter().map(|part| part.len()).sum();
        if asked == 0 {
            return Ok(0);
        }
        let link = Rc::clone(&connection.link);
        let room = link.window.saturating_sub(connection.unread).min(asked);
        let mut n = room;
        if failure == Some(Failure::NotNow) || random.roll(link.faults.would_block) {
            n = 0;
        } else if failure == Some(Failure::OneByte) {
            n = n.min(1);
        } else if n > 0 && random.roll(link.faults.short_write) {
            n = random.within(1..=n);
        }
        connection.unread += n;
        connection.wants_room = n < asked;
        if n < room {
            self.event_soon(id, Readiness::WRITABLE);
        }
        let bytes: Vec<u8> = parts
            .iter()
            .flat_map(|part| part.iter().copied())
            .take(n)
            .collect();
        self.send_segments(id, &bytes, &link, Direction::ToServer);
        if n == 0 { Err(Errno::AGAIN) } else { Ok(n) }
    }

    pub(super) fn close(&mut self, id: u64) {
        self.log(id, Trace::Close);
        self.open -= 1;
        let connection = self.connections.get_mut(&id).expect(OPEN);
        connection.client_open = false;
        connection.readiness = Readiness::default();
        if connection.silent
            || !matches!(
                connection.stage,
                ConnectStage::Connecting | ConnectStage::Up
            )
        {
            self.connections.remove(&id);
        } else {
            self.send_through(id, Direction::ToServer, SimEvent::ServerGetsClose);
        }
        self.ready.retain(|ready| *ready != id);
    }

    /// Counts a call. Returns how it is to fail, if it is the chosen one.
    fn next_call(&mut self) -> Option<Failure> {
        let nth = self.calls;
        self.calls += 1;
        assert!(
            self.calls - self.calls_before < STUCK_CALLS,
            "simulation livelock: {}",
            self.describe()
        );
        self.failing
            .filter(|(chosen, _)| *chosen == nth)
            .map(|(_, failure)| failure)
    }

    // ---- time

    pub(super) fn note_caller(&mut self) {
        self.last_read = (0, 0);
    }

    pub(super) fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) {
        let began = self.elapsed;
        self.calls_before = self.calls;
        self.last_read = (0, 0);
        self.names.take_questions(began);
        let mut until = timeout.map(|timeout| began.saturating_add(timeout));
        let mut steps = 0;
        loop {
            self.run_events();
            if self.woken.swap(false, Ordering::Acquire) || !self.ready.is_empty() {
                break;
            }
            let next = self.next_event_at();
            let wait_ends = match (next, until) {
                (None, None) => panic!("simulation deadlock: {}", self.describe()),
                (Some(next), None) => next,
                (None, Some(until)) => until,
                (Some(next), Some(until)) => next.min(until),
            };
            if steps == 0 && self.random.roll(self.early_wakeups) {
                let early = self.random.duration(&(began..=wait_ends.max(began)));
                until = Some(early.min(wait_ends));
            }
            steps += 1;
            assert!(
                steps < STUCK_STEPS,
                "simulation livelock: {}",
                self.describe()
            );
            self.elapsed = self
                .elapsed
                .max(until.map_or(wait_ends, |until| until.min(wait_ends)));
            if until.is_some_and(|until| until <= self.elapsed)
                && next.is_none_or(|next| next > self.elapsed)
            {
                break;
            }
        }
        self.report(events);
        let fruitless = self.elapsed == began && events.is_empty();
        self.fruitless = if fruitless { self.fruitless + 1 } else { 0 };
        let timeless = self.elapsed == began;
        self.timeless = if timeless { self.timeless + 1 } else { 0 };
        assert!(
            self.fruitless < STUCK_POLLS && self.timeless < STUCK_TIME,
            "simulation livelock: {}",
            self.describe()
        );
    }

    /// Reports readiness: in any order, and sometimes not all of it, as with a full event buffer.
    fn report(&mut self, events: &mut Vec<Event>) {
        let waiting = self.ready.len();
        if waiting == 0 {
            return;
        }
        let first = self.random.within(0..=waiting - 1);
        self.ready.rotate_left(first);
        let count = match self.random.within(0..=7) {
            0 => self.random.within(1..=waiting),
            _ => waiting,
        };
        // epoll reports the whole state with each edge, kqueue the edge alone.
        let whole_state = self.random.roll(EVEN);
        let reported: Vec<u64> = self.ready.drain(..count).collect();
        for id in reported {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            let event = connection.report(whole_state);
            let spurious = connection.link.faults.spurious;
            let Event {
                readable,
                writable,
                closed,
                ..
            } = event;
            let what = Trace::Event {
                readable,
                writable,
                closed,
            };
            self.log(id, what);
            events.push(event);
            if self.random.roll(spurious) {
                let at = self.elapsed + self.random.duration(&(Duration::ZERO..=SOON));
                let either = [Readiness::READABLE, Readiness::WRITABLE];
                let readiness = *self.random.pick(&either);
                self.schedule(at, id, SimEvent::Readiness(readiness));
            }
        }
    }

    fn next_event_at(&self) -> Option<Duration> {
        let next = self.queue.first_key_value().map(|((at, _), _)| *at);
        next.into_iter().chain(self.names.next_answer_at()).min()
    }

    fn run_events(&mut self) {
        self.names.deliver_answers(self.elapsed);
        while let Some(due) = self.queue.first_entry()
            && due.key().0 <= self.elapsed
        {
            let (connection, what) = due.remove();
            self.apply_event(connection, what);
        }
    }

    fn schedule(&mut self, at: Duration, id: u64, what: SimEvent) {
        self.queue.insert((at, self.scheduled), (id, what));
        self.scheduled += 1;
    }

    fn event_soon(&mut self, id: u64, readiness: Readiness) {
        let at = self.elapsed + self.random.duration(&(Duration::ZERO..=SOON));
        self.schedule(at, id, SimEvent::Readiness(readiness));
    }

    fn maybe_spurious(&mut self, id: u64) {
        let probability = self
            .connections
            .get(&id)
            .map_or(Probability::NEVER, |c| c.link.faults.spurious);
        if self.random.roll(probability) {
            self.event_soon(id, Readiness::WRITABLE);
        }
    }

    // ---- events

    fn apply_event(&mut self, id: u64, what: SimEvent) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.silent && what.crosses_network() {
            return;
        }
        match what {
            SimEvent::Accept => self.run_callback(id, |server, peer| server.on_connect(peer)),
            SimEvent::ConnectEnd(Ok(())) => {
                connection.stage = ConnectStage::Up;
                self.add_readiness(id, Readiness::WRITABLE);
            }
            SimEvent::ConnectEnd(Err(error)) => {
                connection.stage = ConnectStage::Failed(error);
                self.add_readiness(id, Readiness::CLOSED);
            }
            SimEvent::ServerGets(bytes) => self.server_gets(id, bytes),
            SimEvent::ServerGetsClose => self.server_gets_close(id),
            SimEvent::ClientGets(bytes) => {
                if connection.broken == ResetState::No {
                    connection.inbound.extend(bytes);
                    self.add_readiness(id, Readiness::READABLE);
                }
            }
            SimEvent::ClientFin => {
                if connection.broken == ResetState::No {
                    connection.fin = true;
                    self.add_readiness(id, Readiness::CLOSED);
                }
            }
            SimEvent::ClientReset => self.client_reset(id),
            SimEvent::Acknowledged(n) => {
                connection.unread -= n;
                if connection.wants_room {
                    connection.wants_room = false;
                    self.add_readiness(id, Readiness::WRITABLE);
                }
            }
            SimEvent::Readiness(readiness) => self.add_readiness(id, readiness),
            SimEvent::ServerAction(step) => self.apply_action(id, step),
        }
    }

    fn server_gets(&mut self, id: u64, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.server {
            ServerState::Gone => self.send_through(id, Direction::ToClient, SimEvent::ClientReset),
            ServerState::Paused => connection.held_back.extend(bytes),
            ServerState::Reads => {
                self.log(id, Trace::ServerRead(bytes.len()));
                self.send_through(id, Direction::ToClient, SimEvent::Acknowledged(bytes.len()));
                self.run_callback(id, |server, peer| server.on_data(peer, &bytes));
            }
        }
    }

    /// Notifies the server that the connection is over.
    fn server_gets_close(&mut self, id: u64) {
        self.run_callback(id, |server, peer| server.on_close(peer));
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.server = ServerState::Gone;
            if !connection.client_open {
                self.connections.remove(&id);
            }
        }
    }

    fn client_reset(&mut self, id: u64) {
        let keep = self.random.roll(EVEN);
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.broken != ResetState::No {
            return;
        }
        connection.broken = match () {
            // All data came before the end of the stream: nothing is lost, and writing fails.
            () if connection.fin => ResetState::Reported,
            () if keep => ResetState::ReportOnce,
            () => {
                connection.inbound.clear();
                ResetState::ReportAlways
            }
        };
        self.log(id, Trace::Reset);
        self.add_readiness(id, Readiness::CLOSED);
    }

    /// Runs a callback of the server and schedules its actions.
    fn run_callback(&mut self, id: u64, callback: impl FnOnce(&mut dyn SimServer, &mut Peer<'_>)) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.server == ServerState::Gone {
            return;
        }
        let Some(host) = self.hosts.get_mut(&connection.to) else {
            return;
        };
        let mut at = connection.server_free_at.max(self.elapsed);
        let mut steps = Vec::new();
        callback(
            host.server.as_mut(),
            &mut Peer {
                connection: id,
                now,
                random: &mut self.random,
                actions: &mut steps,
            },
        );
        for step in steps {
            match step {
                ServerAction::Wait(time) => at += time,
                ServerAction::Timer(after, _) => {
                    self.schedule(at + after, id, SimEvent::ServerAction(step));
                }
                _ => self.schedule(at, id, SimEvent::ServerAction(step)),
            }
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.server_free_at = at;
        }
    }

    fn apply_action(&mut self, id: u64, step: ServerAction) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.server == ServerState::Gone {
            return;
        }
        let may_send = !connection.server_shut;
        match step {
            ServerAction::Send(bytes) if may_send => {
                let link = Rc::clone(&connection.link);
                self.log(id, Trace::ServerWrite(bytes.len()));
                self.send_segments(id, &bytes, &link, Direction::ToClient);
            }
            ServerAction::SendAtOnce(bytes) if may_send => {
                self.log(id, Trace::ServerWrite(bytes.len()));
                self.send_through(id, Direction::ToClient, SimEvent::ClientGets(bytes));
            }
            ServerAction::Shutdown if may_send => {
                connection.server_shut = true;
                self.log(id, Trace::ServerShutdown);
                self.send_through(id, Direction::ToClient, SimEvent::ClientFin);
            }
            ServerAction::Send(_)
            | ServerAction::SendAtOnce(_)
            | ServerAction::Shutdown
            | ServerAction::Wait(_) => {}
            ServerAction::Close if connection.held_back.is_empty() => {
                connection.server = ServerState::Gone;
                self.log(id, Trace::ServerClose);
                if may_send {
                    self.send_through(id, Direction::ToClient, SimEvent::ClientFin);
                }
            }
            ServerAction::Close | ServerAction::Reset => {
                connection.server = ServerState::Gone;
                self.send_through(id, Direction::ToClient, SimEvent::ClientReset);
            }
            ServerAction::Reading(false) => connection.server = ServerState::Paused,
            ServerAction::Reading(true) => {
                connection.server = ServerState::Reads;
                let held_back = std::mem::take(&mut connection.held_back);
                if !held_back.is_empty() {
                    self.server_gets(id, held_back);
                }
            }
            ServerAction::Timer(_, timer) => {
                self.run_callback(id, |server, peer| server.on_timer(peer, timer))
            }
        }
    }

    // ---- the network

    /// Splits bytes into segments and sends them. Each may be the one with a fault.
    fn send_segments(&mut self, id: u64, mut bytes: &[u8], link: &Link, direction: Direction) {
        while !bytes.is_empty() {
            if self.random.roll(link.faults.reset) {
                return self.reset_both_sides(id);
            }
            if self.random.roll(link.faults.stall) {
                return self.stall(id);
            }
            let n = self
                .random
                .within(link.segment.clone())
                .clamp(1, bytes.len());
            let (segment, rest) = bytes.split_at(n);
            let what = match direction {
                Direction::ToClient => SimEvent::ClientGets(segment.to_vec()),
                Direction::ToServer => SimEvent::ServerGets(segment.to_vec()),
            };
            self.send_through(id, direction, what);
            bytes = rest;
        }
    }

    /// Lets an event arrive at the other side after the latency of the link, in order.
    fn send_through(&mut self, id: u64, direction: Direction, what: SimEvent) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let at = self.elapsed + self.random.duration(&connection.link.latency);
        let last = match direction {
            Direction::ToClient => &mut connection.to_client_at,
            Direction::ToServer => &mut connection.to_server_at,
        };
        *last = at.max(*last);
        let at = *last;
        self.schedule(at, id, what);
    }

    /// Resets the connection for both sides.
    fn reset_both_sides(&mut self, id: u64) {
        self.send_through(id, Direction::ToClient, SimEvent::ClientReset);
        self.send_through(id, Direction::ToServer, SimEvent::ServerGetsClose);
    }

    /// From now on, nothing arrives on either side.
    fn stall(&mut self, id: u64) {
        self.log(id, Trace::Stall);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.silent = true;
        }
    }

    fn add_readiness(&mut self, id: u64, readiness: Readiness) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.client_open {
            return;
        }
        if !connection.readiness.any() {
            self.ready.push_back(id);
        }
        connection.readiness.merge(readiness);
        connection.read_blocked &= !readiness.readable;
    }

    // ---- trace and panics

    fn log(&mut self, connection: u64, what: Trace) {
        if self.tracing {
            self.trace.push(Entry {
                at: self.elapsed,
                connection,
                what,
            });
        }
    }

    /// The text of the panics: the open connections and the last entries of the trace.
    fn describe(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("nothing left to happen at {:?}\n", self.elapsed);
        for (id, connection) in self.connections.iter().filter(|(_, c)| c.client_open) {
            let _ = writeln!(
                text,
                "  open: #{id} to {}, {:?}",
                connection.to, connection.stage
            );
        }
        for name in self.names.open_questions() {
            let _ = writeln!(text, "  asked: {name}");
        }
        for entry in &self.trace[self.trace.len().saturating_sub(SHOWN_ENTRIES)..] {
            let _ = writeln!(text, "  {entry}");
        }
        text
    }
}

struct Connection {
    to: Address,
    token: Token,
    link: Rc<Link>,
    stage: ConnectStage,
    /// The client has not closed the stream.
    client_open: bool,

    // The client's socket.
    inbound: VecDeque<u8>,
    /// Reads return `WouldBlock` until the next readable event, because one was cut short.
    read_blocked: bool,
    fin: bool,
    broken: ResetState,
    readiness: Readiness,
    /// An event with `closed` was reported.
    closed_reported: bool,
    /// Bytes written that the server has not taken yet.
    unread: usize,
    /// A write found too little room: a writable event must follow.
    wants_room: bool,

    // The network.
    /// Nothing arrives any more.
    silent: bool,
    to_client_at: Duration,
    to_server_at: Duration,

    // The server's side.
    server: ServerState,
    server_shut: bool,
    held_back: Vec<u8>,
    /// When the earlier actions of the server are done.
    server_free_at: Duration,
}

impl Connection {
    fn new(to: Address, token: Token, link: Rc<Link>, now: Duration) -> Self {
        Self {
            to,
            token,
            link,
            stage: ConnectStage::Connecting,
            client_open: true,
            inbound: VecDeque::new(),
            read_blocked: false,
            fin: false,
            broken: ResetState::No,
            readiness: Readiness::default(),
            closed_reported: false,
            unread: 0,
            wants_room: false,
            silent: false,
            to_client_at: now,
            to_server_at: now,
            server: ServerState::Reads,
            server_shut: false,
            held_back: Vec::new(),
            server_free_at: now,
        }
    }

    /// The event for the collected readiness.
    fn report(&mut self, whole_state: bool) -> Event {
        let readiness = std::mem::take(&mut self.readiness);
        let over = self.fin
            || self.broken != ResetState::No
            || matches!(self.stage, ConnectStage::Failed(_));
        let room = self.stage == ConnectStage::Up && self.unread < self.link.window;
        if over {
            self.closed_reported = true;
            self.read_blocked = false;
        }
        Event {
            token: self.token,
            readable: readiness.readable || over || (whole_state && !self.inbound.is_empty()),
            writable: readiness.writable || (whole_state && room),
            closed: over,
        }
    }

    /// The result of a read without data.
    fn read_end(&mut self) -> Result<usize, Errno> {
        match self.take_error() {
            Some(error) => Err(error),
            None if self.fin || self.broken == ResetState::Reported => Ok(0),
            None if matches!(self.stage, ConnectStage::Failed(_)) => Err(Errno::NOTCONN),
            None => Err(Errno::AGAIN),
        }
    }

    fn write_error(&mut self) -> Option<Errno> {
        match self.broken {
            ResetState::Reported => Some(Errno::PIPE),
            _ if matches!(self.stage, ConnectStage::Failed(_)) => Some(Errno::PIPE),
            _ => self.take_error(),
        }
    }

    fn take_error(&mut self) -> Option<Errno> {
        match self.broken {
            ResetState::No | ResetState::Reported => None,
            ResetState::ReportAlways => Some(Errno::CONNRESET),
            ResetState::ReportOnce => {
                self.broken = ResetState::Reported;
                Some(Errno::CONNRESET)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ConnectStage {
    Connecting,
    Up,
    Failed(Errno),
}

/// The state of a reset, as the client's socket shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ResetState {
    No,
    /// As on Linux: unread data stays, and the first call that meets the error returns it. After that, reads return an
    /// ordinary end of the stream.
    ReportOnce,
    /// As on other systems: unread data is lost, and every call fails.
    ReportAlways,
    Reported,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ServerState {
    Reads,
    Paused,
    Gone,
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    ToClient,
    ToServer,
}

#[derive(Clone, Copy, Debug, Default)]
struct Readiness {
    readable: bool,
    writable: bool,
}

impl Readiness {
    const READABLE: Self = Self {
        readable: true,
        writable: false,
    };
    const WRITABLE: Self = Self {
        readable: false,
        writable: true,
    };
    /// The state of the connection decides `closed` itself.
    const CLOSED: Self = Self {
        readable: true,
        writable: true,
    };

    fn any(self) -> bool {
        self.readable || self.writable
    }

    fn merge(&mut self, other: Self) {
        self.readable |= other.readable;
        self.writable |= other.writable;
    }
}

enum SimEvent {
    Accept,
    ConnectEnd(Result<(), Errno>),
    ServerGets(Vec<u8>),
    ServerGetsClose,
    ClientGets(Vec<u8>),
    ClientFin,
    ClientReset,
    Acknowledged(usize),
    Readiness(Readiness),
    ServerAction(ServerAction),
}

impl SimEvent {
    /// Whether the event crosses the network; the others happen on one side.
    fn crosses_network(&self) -> bool {
        !matches!(self, Self::Readiness(_) | Self::ServerAction(_))
    }
}

fn trace_result(result: Result<usize, Errno>) -> Option<Result<usize, i32>> {
    match result {
        Ok(n) => Some(Ok(n)),
        Err(Errno::AGAIN) => None,
        Err(error) => Some(Err(error.raw_os_error())),
    }
}

/// A stream always has a connection: `close`, which consumes the stream, is the only call that removes it.
const OPEN: &str = "a stream that is not closed has a connection";
/// For choices between two kinds of behaviour that the contract allows.
const EVEN: Probability = Probability::per_mille(500);
/// The longest delay of the event after a call that was cut short.
const SOON: Duration = Duration::from_millis(2);
/// Calls without a poll between them; more mean an endless loop of the client.
const STUCK_CALLS: u64 = 200_000;
/// Reads of one connection in a row without a poll between them; more mean that this connection holds all others.
const STUCK_READS: u32 = 100;
/// Polls in a row without events and without time passing; more mean that the client spins.
const STUCK_POLLS: u32 = 20_000;
/// Polls in a row while no time passes; more mean that client and servers keep one another busy.
const STUCK_TIME: u32 = 100_000;
/// Events during one poll without one for the client; more mean that the servers run endlessly.
const STUCK_STEPS: u32 = 10_000_000;
/// Entries of the trace that a panic shows.
const SHOWN_ENTRIES: usize = 40;
