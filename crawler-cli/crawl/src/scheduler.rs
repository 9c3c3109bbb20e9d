//! Decides which host may send next. Passes requests from the hosts to the client, and completions from the client to
//! the hosts.
//!
//! A host has at most as many calls in the client as connections, so no call waits for a connection while its timeout
//! runs. All hosts together have at most as many calls as the client has connections. Hosts send in turns. A round visits
//! only the hosts for which something has changed or whose time has come.

use std::io;
use std::time::{Duration, Instant};

use courser::net::os::OsNet;
use courser::net::{Net, Waker};
use courser::{Call, CallId, Client, Completion, Report};
use url::Url;

use super::agenda::Agenda;
use super::calls::Calls;
use super::hosts::{Host, HostId, Hosts};
use super::permits::Permits;
use super::stats::{Class, Connection, Exchange};
use super::streams::{Progress, Stream, Streams};
use super::transfer::Transfer;
use super::work::{Body, HostWork, RequestId};

/// The hosts of a crawl and the client that they share.
pub struct Scheduler<W: HostWork, N: Net = OsNet> {
    hosts: Hosts<W>,
    agenda: Agenda,
    calls: Calls<N>,
    streams: Streams,
    permits: Permits,
    limits: Limits,
    /// When the bodies were looked at of which nothing comes.
    looked_at: Instant,
}

/// Limits on the calls in the client.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The largest number of calls in flight to one host.
    host: usize,
    /// The largest number of calls in flight to all hosts, now and usually.
    all: usize,
    usual: usize,
}

impl<W: HostWork, N: Net> Scheduler<W, N> {
    /// A scheduler without hosts. `client` sends their requests.
    pub fn new(client: Client<N>, transfer: &Transfer) -> Self {
        let limits = Limits {
            host: transfer.connections.get(),
            all: transfer.all_connections().get(),
            usual: transfer.all_connections().get(),
        };
        let calls = Calls::new(client);
        Self {
            looked_at: calls.now(),
            hosts: Hosts::new(transfer),
            agenda: Agenda::default(),
            calls,
            streams: Streams::default(),
            permits: Permits::new(transfer.ceilings.clone()),
            limits,
        }
    }

    /// The monotonic time of the network: the time of all decisions of the scheduler and of the work at its hosts.
    pub fn now(&self) -> Instant {
        self.calls.now()
    }

    /// A handle that ends a [`handle_next_or_wake`](Self::handle_next_or_wake) early, from any thread.
    ///
    /// # Errors
    /// The system's, when it has no descriptor left.
    pub fn waker(&mut self) -> io::Result<Waker> {
        self.calls.client.waker()
    }

    /// Adds a host, which may have something to send. `root` is the URL of its root, `stats` its index in the statistics.
    pub fn add(&mut self, root: Url, stats: usize, work: W) -> HostId {
        let host = self.hosts.add(root, stats, work);
        self.agenda.wake(host);
        host
    }

    /// The hosts. Work is added by [`work_and_calls`](Self::work_and_calls).
    pub fn hosts(&mut self) -> &mut Hosts<W> {
        &mut self.hosts
    }

    /// The work of one host, and the calls. The host may then have something to send.
    pub fn work_and_calls(&mut self, host: HostId) -> (&mut W, &mut Calls<N>) {
        self.agenda.wake(host);
        (self.hosts.work(host), &mut self.calls)
    }

    /// Notes that something changed that all hosts share, so that each may have something to send.
    pub fn wake_all(&mut self) {
        for host in self.hosts.ids() {
            self.agenda.wake(host);
        }
    }

    /// Removes a host with its work and what was learned about its politeness. Returns `None`, and keeps the host, while
    /// calls to the host are in flight.
    pub fn remove(&mut self, host: HostId) -> Option<W> {
        if self.hosts.host(host).in_flight > 0 {
            return None;
        }
        self.agenda.remove(host);
        self.permits.remove(host);
        self.hosts.remove(host)
    }

    /// Lets all hosts together have this share of the usual number of calls in flight, at least one.
    pub fn set_share(&mut self, share: f64) {
        // The cast saturates.
        self.limits.all = ((self.limits.usual as f64 * share) as usize).max(1);
    }

    /// Whether no call is in flight.
    pub fn is_idle(&self) -> bool {
        self.calls.in_flight() == 0
    }

    /// The number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.calls.in_flight()
    }
}

/// Requests.
impl<W: HostWork, N: Net> Scheduler<W, N> {
    /// Lets all hosts send what they may: those first that have waited longest for a free connection.
    pub fn submit_all(&mut self, shared: &mut W::Shared<'_>) {
        self.agenda.handle_time(self.now());
        for _ in 0..self.agenda.ready() {
            if self.calls.in_flight() >= self.limits.all {
                return;
            }
            let Some(host) = self.agenda.next() else {
                return;
            };
            self.submit(host, shared);
        }
    }

    /// Lets one host send what it may, and notes when to visit it again.
    pub fn submit(&mut self, host: HostId, shared: &mut W::Shared<'_>) {
        self.agenda.handle_visit(host);
        self.submit_while_allowed(host, shared);
        if self.calls.in_flight() >= self.limits.all {
            // Any call that ends makes room.
            self.agenda.wake(host);
        } else if self.has_room(host) {
            let now = self.now();
            let permitted_at = self.permits.held_until(host, now);
            // The work does not know that it has to wait for a permit.
            let due = self.hosts.work(host).poll_timeout(now, shared);
            if let Some(due) = due.or(permitted_at) {
                self.agenda
                    .wake_at(host, permitted_at.map_or(due, |at| due.max(at)));
            }
        }
    }

    fn submit_while_allowed(&mut self, host: HostId, shared: &mut W::Shared<'_>) {
        while self.has_room(host) {
            let now = self.now();
            let Ok(permit) = self.permits.take(host, &self.hosts.host(host).root, now) else {
                return;
            };
            let work = self.hosts.work(host);
            let (mut request, response) = self.calls.blank();
            let Some(submission) = work.poll_request(now, &mut request, shared) else {
                self.calls.give_back(request, response);
                if let Some(permit) = permit {
                    permit.give_back_unused();
                }
                return;
            };
            self.permits.handle_sent(host, submission.id, permit);
            let identity = self.hosts.identity(host, request.target());
            identity.write(&mut request);
            let mut call = Call::new(request, response)
                .tag(tag(host, submission.id))
                .streaming(submission.streaming);
            if let Some(timeouts) = submission.timeouts {
                call = call.timeouts(timeouts);
            }
            if let Some(addresses) = submission.addresses {
                call = call.addresses(addresses);
            }
            self.calls.client.submit(identity.sign(call));
            let entry = self.hosts.host(host);
            entry.in_flight += 1;
            W::stats(shared).handle_sent(entry.stats);
        }
    }

    fn has_room(&mut self, host: HostId) -> bool {
        let Host {
            in_flight,
            connections,
            ..
        } = self.hosts.host(host);
        *in_flight < self.limits.host.min(*connections) && self.calls.in_flight() < self.limits.all
    }

    /// The earliest time at which a host may send something without a further answer.
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        if self.calls.in_flight() >= self.limits.all {
            return None;
        }
        match self.agenda.ready() {
            0 => self.agenda.poll_timeout(),
            _ => Some(now),
        }
    }
}

/// Completions and bodies.
impl<W: HostWork, N: Net> Scheduler<W, N> {
    /// Whether a body is known to be readable, or a call to be complete, so that waiting is unnecessary.
    pub fn has_more(&self) -> bool {
        !self.streams.is_idle() || self.calls.has_queued()
    }

    /// Waits for a completion and handles it. Returns its host; `None` after the timeout.
    ///
    /// # Errors
    /// An error of the operating system. The client cannot be used after it.
    pub fn handle_next(
        &mut self,
        timeout: Duration,
        shared: &mut W::Shared<'_>,
    ) -> io::Result<Option<HostId>> {
        let done = self.calls.wait(timeout)?;
        Ok(done.map(|done| self.handle(done, shared)))
    }

    /// As [`handle_next`](Self::handle_next), but with or without calls in flight, and until the [`waker`](Self::waker) is
    /// used. May return earlier.
    ///
    /// # Errors
    /// An error of the operating system. The client cannot be used after it.
    pub fn handle_next_or_wake(
        &mut self,
        timeout: Duration,
        shared: &mut W::Shared<'_>,
    ) -> io::Result<Option<HostId>> {
        let done = self.calls.wait_or_wake(timeout)?;
        Ok(done.map(|done| self.handle(done, shared)))
    }

    fn handle(&mut self, done: Completion, shared: &mut W::Shared<'_>) -> HostId {
        let (host, id) = untag(done.tag);
        let now = self.now();
        self.agenda.wake(host);
        let Host {
            work, base, stats, ..
        } = self.hosts.host(host);
        let stats = *stats;
        let path = done.request.target().strip_prefix(base.as_str());
        let exchange = exchange(&done.report, path == Some("/robots.txt"));
        let calls = &mut self.calls;
        work.handle_report(id, &done.report, shared);
        self.permits.handle_head(host, id, now);
        let streamed = done.streamed();
        let is_over = match (done.outcome, streamed) {
            (Ok(()), Some(call)) => {
                let wanted = work.handle_head(now, id, &done.response, shared);
                let status = done.response.status();
                let stream = Stream::new(host, id, status, exchange, wanted);
                self.streams.add(call, stream);
                false
            }
            (Ok(()), None) => {
                let status = done.response.status();
                W::stats(shared).handle_answer(stats, status, &exchange);
                work.handle_reply(now, id, &done.response, shared, calls);
                true
            }
            (Err(error), _) => {
                let class = Class::of_error(&error);
                W::stats(shared).handle_failure(stats, class, &exchange);
                work.handle_failure(now, id, error, Some(&done.response), shared, calls);
                true
            }
        };
        self.calls.give_back(done.request, done.response);
        if is_over {
            self.handle_over(host, id, now);
        }
        host
    }

    /// Reads from the readable bodies, at most a few buffers from each. Hosts whose bodies ended send what they may.
    pub fn read_bodies(&mut self, shared: &mut W::Shared<'_>) {
        self.end_quiet(shared);
        for _ in 0..self.streams.poll(&mut self.calls) {
            let Some(call) = self.streams.next() else {
                return;
            };
            if let Some(host) = self.read_body(call, shared) {
                self.submit(host, shared);
            }
        }
    }

    /// Ends the bodies that are not wanted any more, because nothing of them comes.
    fn end_quiet(&mut self, shared: &mut W::Shared<'_>) {
        let now = self.calls.now();
        if now.saturating_duration_since(self.looked_at) < LOOKS {
            return;
        }
        self.looked_at = now;
        for (call, host, id) in self.streams.wanted() {
            if self.hosts.work(host).handle_quiet(now, id, shared) == Body::Unwanted {
                self.calls.client.cancel(call);
                self.end_body(call, now, shared);
                self.submit(host, shared);
            }
        }
    }

    /// Reads from a body. Returns its host if the body ended.
    fn read_body(&mut self, call: CallId, shared: &mut W::Shared<'_>) -> Option<HostId> {
        for _ in 0..BUFFERS_AT_ONCE {
            let (stream, received, progress) = self.streams.read(call, &mut self.calls)?;
            let (now, host, id) = (self.calls.now(), stream.host, stream.id);
            let Host { work, stats, .. } = self.hosts.host(host);
            if received > 0 {
                W::stats(shared).handle_bytes(*stats, received);
            }
            let is_wanted = stream.wanted == Body::Wanted;
            match progress {
                Progress::Data(bytes) => {
                    stream.wanted = work.handle_data(now, id, bytes, shared);
                    continue;
                }
                Progress::Skipped => continue,
                Progress::Pending => return None,
                Progress::End if is_wanted => work.handle_end(now, id, shared),
                Progress::Failed(error) if is_wanted => {
                    work.handle_failure(now, id, error, None, shared, &mut self.calls);
                }
                Progress::End | Progress::Failed(_) => {}
            }
            return self.end_body(call, now, shared);
        }
        self.streams.put_back(call);
        None
    }

    /// Counts a body that has ended. Returns its host.
    fn end_body(
        &mut self,
        call: CallId,
        now: Instant,
        shared: &mut W::Shared<'_>,
    ) -> Option<HostId> {
        let stream = self.streams.remove(call)?;
        let index = self.hosts.host(stream.host).stats;
        let (stats, rest) = (W::stats(shared), stream.rest());
        match stream.failure {
            Some(class) => stats.handle_failure(index, class, &rest),
            None => stats.handle_answer(index, stream.status, &rest),
        }
        self.handle_over(stream.host, stream.id, now);
        Some(stream.host)
    }

    fn handle_over(&mut self, host: HostId, id: RequestId, now: Instant) {
        self.permits.handle_over(host, id, now);
        self.agenda.wake(host);
        self.hosts.host(host).in_flight -= 1;
    }
}

/// The time between two looks at the bodies of which nothing comes.
const LOOKS: Duration = Duration::from_millis(200);

/// The tag of a call: host and request in one number. Neither overflows in practice.
fn tag(host: HostId, id: RequestId) -> u64 {
    ((host.0 as u64) << REQUEST_BITS) | id.0
}

fn untag(tag: u64) -> (HostId, RequestId) {
    let id = tag & ((1 << REQUEST_BITS) - 1);
    (HostId((tag >> REQUEST_BITS) as usize), RequestId(id))
}

fn exchange(report: &Report, robots: bool) -> Exchange {
    Exchange {
        took: report.timings().total,
        bytes: report.bytes_in(),
        connection: report
            .remote()
            .or(report.proxy())
            .map(|_| match report.reused() {
                true => Connection::Reused,
                false => Connection::Opened,
            }),
        robots,
    }
}

const REQUEST_BITS: u32 = 40;

/// The largest number of buffers read from a body in one turn, so that a fast server does not delay the others.
const BUFFERS_AT_ONCE: usize = 4;
