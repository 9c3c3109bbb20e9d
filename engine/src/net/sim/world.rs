//! The inside of the simulation: the queue of what is to happen, the connections, and the clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::names::Names;
use super::server::Step;
use super::{Entry, Failure, Link, Odds, Peer, Random, SimServer, Trace};
use crate::net::{Address, Event, Token};

pub(super) struct World {
    start: Instant,
    /// Virtual time since `start`.
    pub(super) elapsed: Duration,
    random: Random,
    /// What the client draws: its own sequence, so that a draw more there does not change the network.
    pub(super) jitter: Random,
    queue: BinaryHeap<Reverse<Due>>,
    /// Orders what is due at the same time.
    scheduled: u64,
    hosts: BTreeMap<Address, Host>,
    pub(super) names: Names,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    /// Connections with an edge that no poll has reported yet.
    ready: VecDeque<u64>,
    /// Set by wakers, cleared by the poll that it ends.
    pub(super) woken: Arc<AtomicBool>,
    pub(super) descriptors: usize,
    pub(super) early_wakeups: Odds,
    pub(super) failing: Option<(u64, Failure)>,
    pub(super) calls: u64,
    pub(super) open: usize,
    pub(super) peak: usize,
    pub(super) trace: Vec<Entry>,
    pub(super) tracing: bool,
    /// `calls` when the last poll was made.
    calls_before: u64,
    /// Polls in a row that reported nothing and moved no time.
    fruitless: u32,
    /// Polls in a row that moved no time, whatever they reported.
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
            names: Names::new(seed),
            queue: BinaryHeap::new(),
            scheduled: 0,
            hosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_connection: 0,
            ready: VecDeque::new(),
            woken: Arc::default(),
            descriptors: usize::MAX,
            early_wakeups: Odds::NEVER,
            failing: None,
            calls: 0,
            open: 0,
            peak: 0,
            trace: Vec::new(),
            tracing: true,
            calls_before: 0,
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

    pub(super) fn advance(&mut self, time: Duration) {
        self.names.take_questions(self.elapsed);
        let end = self.elapsed + time;
        while let Some(at) = self.next_due()
            && at <= end
        {
            self.elapsed = self.elapsed.max(at);
            self.run_due();
        }
        self.elapsed = end;
    }

    // ---- The client's calls

    pub(super) fn connect(&mut self, token: Token, to: &Address) -> io::Result<u64> {
        let id = self.next_connection;
        self.next_connection += 1;
        self.log(id, Trace::Connect(to.clone()));
        let link = self.hosts.get(to).map(|host| Rc::clone(&host.link));
        let listening = link.is_some();
        let link = link.unwrap_or_default();
        if let Some(error) = self.refuse_at_once(to, &link, listening) {
            self.log(id, Trace::ConnectError(error.raw_os_error()));
            return Err(error.into());
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
            self.schedule(at, id, What::ConnectEnd(Err(Errno::HOSTUNREACH)));
        } else if !listening || self.random.roll(faults.refused) {
            self.schedule(back, id, What::ConnectEnd(Err(Errno::CONNREFUSED)));
        } else {
            self.schedule(there, id, What::Accept);
            self.schedule(back, id, What::ConnectEnd(Ok(())));
        }
        self.maybe_spurious(id);
        Ok(id)
    }

    /// The errors that a connect returns itself.
    fn refuse_at_once(&mut self, to: &Address, link: &Link, listening: bool) -> Option<Errno> {
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
            (Stage::Connecting, _) => Ok(false),
            (_, Some(Failure::NotNow)) => {
                self.event_soon(id, Edge::WRITABLE);
                Ok(false)
            }
            (Stage::Up, Some(Failure::Error)) => {
                self.break_off(id);
                Err(Errno::CONNREFUSED)
            }
            (Stage::Failed(error), _) => Err(error),
            (Stage::Up, _) => match connection.take_error() {
                Some(error) => Err(error),
                None => Ok(true),
            },
        };
        self.log(id, Trace::Connected(answer.map_err(Errno::raw_os_error)));
        Ok(answer?)
    }

    pub(super) fn read(&mut self, id: u64, buf: &mut [u8]) -> io::Result<usize> {
        let failure = self.next_call();
        let result = self.try_read(id, buf, failure);
        self.log(id, Trace::Read(traced(result)));
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
        if connection.stage == Stage::Connecting || connection.hidden {
            return Err(Errno::AGAIN);
        }
        if failure == Some(Failure::Error) {
            self.break_off(id);
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
        // After an event with `closed` the client may rely on finding the end without another event.
        let patient = !connection.told_closed;
        if patient && (failure == Some(Failure::NotNow) || random.roll(faults.would_block)) {
            n = 0;
        } else if failure == Some(Failure::OneByte) {
            n = 1;
        } else if random.roll(faults.short_read) {
            n = random.within(1..=n);
        }
        for (to, from) in buf.iter_mut().zip(connection.inbound.drain(..n)) {
            *to = from;
        }
        // A short read says that nothing more is there: so be it until the next event.
        if patient && n < buf.len() && n < there {
            connection.hidden = true;
            self.event_soon(id, Edge::READABLE);
        }
        if n == 0 { Err(Errno::AGAIN) } else { Ok(n) }
    }

    pub(super) fn write(&mut self, id: u64, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let failure = self.next_call();
        let result = self.try_write(id, parts, failure);
        self.log(id, Trace::Write(traced(result)));
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
        if connection.stage == Stage::Connecting {
            return Err(Errno::AGAIN);
        }
        if let Some(error) = connection.write_error() {
            return Err(error);
        }
        if failure == Some(Failure::Error) {
            self.break_off(id);
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
            self.event_soon(id, Edge::WRITABLE);
        }
        let bytes: Vec<u8> = parts
            .iter()
            .flat_map(|part| part.iter().copied())
            .take(n)
            .collect();
        self.send_segments(id, &bytes, &link, Way::ToServer);
        if n == 0 { Err(Errno::AGAIN) } else { Ok(n) }
    }

    pub(super) fn close(&mut self, id: u64) {
        self.log(id, Trace::Close);
        self.open -= 1;
        let connection = self.connections.get_mut(&id).expect(OPEN);
        connection.client_open = false;
        connection.edge = Edge::default();
        if connection.silent || !matches!(connection.stage, Stage::Connecting | Stage::Up) {
            self.connections.remove(&id);
        } else {
            self.travel(id, Way::ToServer, What::ServerLoses);
        }
        self.ready.retain(|ready| *ready != id);
    }

    /// Counts a call, and says how it is to fail if it is the chosen one.
    fn next_call(&mut self) -> Option<Failure> {
        let nth = self.calls;
        self.calls += 1;
        assert!(
            self.calls - self.calls_before < STUCK_CALLS,
            "simulation livelock: {}",
            self.scene()
        );
        self.failing
            .filter(|(chosen, _)| *chosen == nth)
            .map(|(_, failure)| failure)
    }

    // ---- Time

    pub(super) fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) {
        let began = self.elapsed;
        self.calls_before = self.calls;
        self.names.take_questions(began);
        let mut until = timeout.map(|timeout| began.saturating_add(timeout));
        let mut steps = 0;
        loop {
            self.run_due();
            if self.woken.swap(false, Ordering::Acquire) || !self.ready.is_empty() {
                break;
            }
            let next = self.next_due();
            let wait_ends = match (next, until) {
                (None, None) => panic!("simulation deadlock: {}", self.scene()),
                (Some(next), None) => next,
                (None, Some(until)) => until,
                (Some(next), Some(until)) => next.min(until),
            };
            if steps == 0 && self.random.roll(self.early_wakeups) {
                let early = self.random.duration(&(began..=wait_ends.max(began)));
                until = Some(early.min(wait_ends));
            }
            steps += 1;
            assert!(steps < STUCK_STEPS, "simulation livelock: {}", self.scene());
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
            self.scene()
        );
    }

    /// Hands out the edges: in any order, and not always all of them, as a full event buffer would.
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
        // epoll tells the whole state with each edge, kqueue the edge alone.
        let whole_state = self.random.roll(EVEN);
        for id in self.ready.drain(..count) {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            let event = connection.report(whole_state);
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
            if self.tracing {
                self.trace.push(Entry {
                    at: self.elapsed,
                    connection: id,
                    what,
                });
            }
            events.push(event);
            if self.random.roll(connection.link.faults.spurious) {
                let at = self.elapsed + self.random.duration(&(Duration::ZERO..=SOON));
                let edge = *self.random.pick(&[Edge::READABLE, Edge::WRITABLE]);
                push(
                    &mut self.queue,
                    &mut self.scheduled,
                    at,
                    id,
                    What::Edge(edge),
                );
            }
        }
    }

    fn next_due(&self) -> Option<Duration> {
        let next = self.queue.peek().map(|Reverse(due)| due.at);
        next.into_iter().chain(self.names.next_due()).min()
    }

    fn run_due(&mut self) {
        self.names.answer_due(self.elapsed);
        while let Some(Reverse(due)) = self.queue.peek()
            && due.at <= self.elapsed
            && let Some(Reverse(due)) = self.queue.pop()
        {
            self.happen(due.connection, due.what);
        }
    }

    fn schedule(&mut self, at: Duration, id: u64, what: What) {
        push(&mut self.queue, &mut self.scheduled, at, id, what);
    }

    fn event_soon(&mut self, id: u64, edge: Edge) {
        let at = self.elapsed + self.random.duration(&(Duration::ZERO..=SOON));
        self.schedule(at, id, What::Edge(edge));
    }

    fn maybe_spurious(&mut self, id: u64) {
        let odds = self
            .connections
            .get(&id)
            .map_or(Odds::NEVER, |c| c.link.faults.spurious);
        if self.random.roll(odds) {
            self.event_soon(id, Edge::WRITABLE);
        }
    }

    // ---- What happens

    fn happen(&mut self, id: u64, what: What) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.silent && what.travels() {
            return;
        }
        match what {
            What::Accept => self.serve(id, |server, peer| server.on_connect(peer)),
            What::ConnectEnd(Ok(())) => {
                connection.stage = Stage::Up;
                self.raise(id, Edge::WRITABLE);
            }
            What::ConnectEnd(Err(error)) => {
                connection.stage = Stage::Failed(error);
                self.raise(id, Edge::CLOSED);
            }
            What::ServerGets(bytes) => self.server_gets(id, bytes),
            What::ServerLoses => self.server_loses(id),
            What::ClientGets(bytes) => {
                if connection.broken == Broken::No {
                    connection.inbound.extend(bytes);
                    self.raise(id, Edge::READABLE);
                }
            }
            What::ClientFin => {
                if connection.broken == Broken::No {
                    connection.fin = true;
                    self.raise(id, Edge::CLOSED);
                }
            }
            What::ClientReset => self.client_reset(id),
            What::Acknowledged(n) => {
                connection.unread -= n;
                if connection.wants_room {
                    connection.wants_room = false;
                    self.raise(id, Edge::WRITABLE);
                }
            }
            What::Edge(edge) => self.raise(id, edge),
            What::Step(step) => self.server_does(id, step),
        }
    }

    fn server_gets(&mut self, id: u64, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.server {
            Server::Gone => self.travel(id, Way::ToClient, What::ClientReset),
            Server::Deaf => connection.parked.extend(bytes),
            Server::Reads => {
                self.log(id, Trace::ServerRead(bytes.len()));
                self.travel(id, Way::ToClient, What::Acknowledged(bytes.len()));
                self.serve(id, |server, peer| server.on_data(peer, &bytes));
            }
        }
    }

    /// The server learns that the connection is over.
    fn server_loses(&mut self, id: u64) {
        self.serve(id, |server, peer| server.on_close(peer));
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.server = Server::Gone;
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
        if connection.broken != Broken::No {
            return;
        }
        connection.broken = match () {
            // All data was there before the end of the stream: nothing is lost, writing fails.
            () if connection.fin => Broken::Told,
            () if keep => Broken::TellOnce,
            () => {
                connection.inbound.clear();
                Broken::TellAlways
            }
        };
        self.log(id, Trace::Reset);
        self.raise(id, Edge::CLOSED);
    }

    /// Runs a callback of the server and schedules what it asks for.
    fn serve(&mut self, id: u64, callback: impl FnOnce(&mut dyn SimServer, &mut Peer<'_>)) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.server == Server::Gone {
            return;
        }
        let Some(host) = self.hosts.get_mut(&connection.to) else {
            return;
        };
        let mut steps = Vec::new();
        callback(
            host.server.as_mut(),
            &mut Peer {
                connection: id,
                now,
                random: &mut self.random,
                steps: &mut steps,
            },
        );
        let mut at = connection.server_free_at.max(self.elapsed);
        for step in steps {
            match step {
                Step::Wait(time) => at += time,
                Step::Timer(after, _) => {
                    let what = What::Step(step);
                    push(&mut self.queue, &mut self.scheduled, at + after, id, what);
                }
                _ => push(
                    &mut self.queue,
                    &mut self.scheduled,
                    at,
                    id,
                    What::Step(step),
                ),
            }
        }
        connection.server_free_at = at;
    }

    fn server_does(&mut self, id: u64, step: Step) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.server == Server::Gone {
            return;
        }
        let may_send = !connection.server_shut;
        match step {
            Step::Send(bytes) if may_send => {
                let link = Rc::clone(&connection.link);
                self.log(id, Trace::ServerWrite(bytes.len()));
                self.send_segments(id, &bytes, &link, Way::ToClient);
            }
            Step::Shutdown if may_send => {
                connection.server_shut = true;
                self.log(id, Trace::ServerShutdown);
                self.travel(id, Way::ToClient, What::ClientFin);
            }
            Step::Send(_) | Step::Shutdown | Step::Wait(_) => {}
            Step::Close if connection.parked.is_empty() => {
                connection.server = Server::Gone;
                self.log(id, Trace::ServerClose);
                if may_send {
                    self.travel(id, Way::ToClient, What::ClientFin);
                }
            }
            Step::Close | Step::Reset => {
                connection.server = Server::Gone;
                self.travel(id, Way::ToClient, What::ClientReset);
            }
            Step::Reading(false) => connection.server = Server::Deaf,
            Step::Reading(true) => {
                connection.server = Server::Reads;
                let parked = std::mem::take(&mut connection.parked);
                if !parked.is_empty() {
                    self.server_gets(id, parked);
                }
            }
            Step::Timer(_, timer) => self.serve(id, |server, peer| server.on_timer(peer, timer)),
        }
    }

    // ---- The way between

    /// Cuts bytes into segments and sends them; each may be the one that goes wrong.
    fn send_segments(&mut self, id: u64, mut bytes: &[u8], link: &Link, way: Way) {
        while !bytes.is_empty() {
            if self.random.roll(link.faults.reset) {
                return self.break_off(id);
            }
            if self.random.roll(link.faults.stall) {
                return self.stall(id);
            }
            let n = self
                .random
                .within(link.segment.clone())
                .clamp(1, bytes.len());
            let (segment, rest) = bytes.split_at(n);
            let what = match way {
                Way::ToClient => What::ClientGets(segment.to_vec()),
                Way::ToServer => What::ServerGets(segment.to_vec()),
            };
            self.travel(id, way, what);
            bytes = rest;
        }
    }

    /// Lets something arrive at the other side after the link's latency, in order.
    fn travel(&mut self, id: u64, way: Way, what: What) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let at = self.elapsed + self.random.duration(&connection.link.latency);
        let last = match way {
            Way::ToClient => &mut connection.to_client_at,
            Way::ToServer => &mut connection.to_server_at,
        };
        *last = at.max(*last);
        let at = *last;
        self.schedule(at, id, what);
    }

    /// Resets the connection for both sides.
    fn break_off(&mut self, id: u64) {
        self.travel(id, Way::ToClient, What::ClientReset);
        self.travel(id, Way::ToServer, What::ServerLoses);
    }

    /// From here on nothing arrives on either side.
    fn stall(&mut self, id: u64) {
        self.log(id, Trace::Stall);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.silent = true;
        }
    }

    fn raise(&mut self, id: u64, edge: Edge) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.client_open {
            return;
        }
        if !connection.edge.any() {
            self.ready.push_back(id);
        }
        connection.edge.merge(edge);
        connection.hidden &= !edge.readable;
    }

    // ---- For people

    fn log(&mut self, connection: u64, what: Trace) {
        let at = self.elapsed;
        if self.tracing {
            self.trace.push(Entry {
                at,
                connection,
                what,
            });
        }
    }

    /// What the panics show: what is open and what happened last.
    fn scene(&self) -> String {
        use std::fmt::Write as _;
        let mut scene = format!("nothing left to happen at {:?}\n", self.elapsed);
        for (id, connection) in self.connections.iter().filter(|(_, c)| c.client_open) {
            let _ = writeln!(
                scene,
                "  open: #{id} to {}, {:?}",
                connection.to, connection.stage
            );
        }
        for name in self.names.open_questions() {
            let _ = writeln!(scene, "  asked: {name}");
        }
        for entry in &self.trace[self.trace.len().saturating_sub(SCENE_LINES)..] {
            let _ = writeln!(scene, "  {entry}");
        }
        scene
    }
}

struct Connection {
    to: Address,
    token: Token,
    link: Rc<Link>,
    stage: Stage,
    /// The stream has not been closed by the client.
    client_open: bool,

    // What the client's side of the socket holds.
    inbound: VecDeque<u8>,
    /// Reads say `WouldBlock` until the next readable event, because one was cut short.
    hidden: bool,
    fin: bool,
    broken: Broken,
    edge: Edge,
    /// An event with `closed` has been reported.
    told_closed: bool,
    /// Bytes written that the server has not taken yet.
    unread: usize,
    /// A write found too little room: a writable event is owed.
    wants_room: bool,

    // The way between.
    /// Nothing arrives any more.
    silent: bool,
    to_client_at: Duration,
    to_server_at: Duration,

    // The server's side.
    server: Server,
    server_shut: bool,
    parked: Vec<u8>,
    /// When what the server was told to do before is done.
    server_free_at: Duration,
}

impl Connection {
    fn new(to: Address, token: Token, link: Rc<Link>, now: Duration) -> Self {
        Self {
            to,
            token,
            link,
            stage: Stage::Connecting,
            client_open: true,
            inbound: VecDeque::new(),
            hidden: false,
            fin: false,
            broken: Broken::No,
            edge: Edge::default(),
            told_closed: false,
            unread: 0,
            wants_room: false,
            silent: false,
            to_client_at: now,
            to_server_at: now,
            server: Server::Reads,
            server_shut: false,
            parked: Vec::new(),
            server_free_at: now,
        }
    }

    /// The event for the edges that have gathered.
    fn report(&mut self, whole_state: bool) -> Event {
        let edge = std::mem::take(&mut self.edge);
        let over = self.fin || self.broken != Broken::No || matches!(self.stage, Stage::Failed(_));
        let room = self.stage == Stage::Up && self.unread < self.link.window;
        if over {
            self.told_closed = true;
            self.hidden = false;
        }
        Event {
            token: self.token,
            readable: edge.readable || over || (whole_state && !self.inbound.is_empty()),
            writable: edge.writable || (whole_state && room),
            closed: over,
        }
    }

    /// What a read says when there is no data.
    fn read_end(&mut self) -> Result<usize, Errno> {
        match self.take_error() {
            Some(error) => Err(error),
            None if self.fin || self.broken == Broken::Told => Ok(0),
            None if matches!(self.stage, Stage::Failed(_)) => Err(Errno::NOTCONN),
            None => Err(Errno::AGAIN),
        }
    }

    fn write_error(&mut self) -> Option<Errno> {
        match self.broken {
            Broken::Told => Some(Errno::PIPE),
            _ if matches!(self.stage, Stage::Failed(_)) => Some(Errno::PIPE),
            _ => self.take_error(),
        }
    }

    fn take_error(&mut self) -> Option<Errno> {
        match self.broken {
            Broken::No | Broken::Told => None,
            Broken::TellAlways => Some(Errno::CONNRESET),
            Broken::TellOnce => {
                self.broken = Broken::Told;
                Some(Errno::CONNRESET)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Connecting,
    Up,
    Failed(Errno),
}

/// How far a reset has got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Broken {
    No,
    /// As on Linux: unread data stays, and the error goes to the first call that meets it. After that, reads see an
    /// ordinary end of the stream.
    TellOnce,
    /// As elsewhere: unread data is gone, and every call fails.
    TellAlways,
    Told,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Server {
    Reads,
    Deaf,
    Gone,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    ToClient,
    ToServer,
}

#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    readable: bool,
    writable: bool,
}

impl Edge {
    const READABLE: Self = Self {
        readable: true,
        writable: false,
    };
    const WRITABLE: Self = Self {
        readable: false,
        writable: true,
    };
    /// `closed` itself is told by the state of the connection.
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

enum What {
    Accept,
    ConnectEnd(Result<(), Errno>),
    ServerGets(Vec<u8>),
    ServerLoses,
    ClientGets(Vec<u8>),
    ClientFin,
    ClientReset,
    Acknowledged(usize),
    Edge(Edge),
    Step(Step),
}

impl What {
    /// Whether it crosses the network; the rest happens on one side.
    fn travels(&self) -> bool {
        !matches!(self, Self::Edge(_) | Self::Step(_))
    }
}

/// Something that happens at a time. Ordered by that time, then by when it was scheduled.
struct Due {
    at: Duration,
    order: u64,
    connection: u64,
    what: What,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

fn push(
    queue: &mut BinaryHeap<Reverse<Due>>,
    scheduled: &mut u64,
    at: Duration,
    connection: u64,
    what: What,
) {
    let order = *scheduled;
    *scheduled += 1;
    queue.push(Reverse(Due {
        at,
        order,
        connection,
        what,
    }));
}

fn traced(result: Result<usize, Errno>) -> Option<Result<usize, i32>> {
    match result {
        Ok(n) => Some(Ok(n)),
        Err(Errno::AGAIN) => None,
        Err(error) => Some(Err(error.raw_os_error())),
    }
}

/// Why looking up a stream's connection cannot fail: it is removed only after `close`, which consumes the stream.
const OPEN: &str = "a stream that is not closed has a connection";
/// Whichever: the contract allows both.
const EVEN: Odds = Odds::per_mille(500);
/// How long the network takes to make good for a call that it cut short.
const SOON: Duration = Duration::from_millis(2);
/// Calls without a poll between them: the client goes round in circles.
const STUCK_CALLS: u64 = 200_000;
/// Polls in a row with nothing reported and no time passed: the client spins.
const STUCK_POLLS: u32 = 20_000;
/// Polls in a row while time stands still: the client and the servers keep each other busy.
const STUCK_TIME: u32 = 100_000;
/// Things that may happen during one poll without an event for the client: the servers run for ever.
const STUCK_STEPS: u32 = 10_000_000;
/// Lines of the trace that a panic shows.
const SCENE_LINES: usize = 40;
