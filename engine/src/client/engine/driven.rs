//! What a [`Shared`](crate::Shared) client does with the client of a thread. The trait is private, so that
//! [`HttpClient`](crate::HttpClient) is sealed. The tests of the threads have a model of a client, which also is one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use crate::client::migration::MigratingCall;
use crate::client::router::Router;
use crate::client::{BodyRead, CallId, CallTime, Recorder, Report};
use crate::error::{Error, Misuse};
use crate::net::{Net, Waker};
use crate::proto::Response;
use crate::reactor::{Armed, CallState};
use crate::time::Time;

/// The end of a streamed body: the report, and a response with the trailers if there are any; or why it ended early.
pub(crate) type BodyEnd = Result<Box<(Report, Option<Response>)>, Error>;

pub trait Driven: 'static {
    /// Whether several clients can share the calls, so that each host is served by one of the clients.
    fn spreads() -> bool
    where
        Self: Sized;

    /// Makes this client one of `count` that share all hosts and the cap on connections: the one with the number `index`.
    /// From now on, it records the results of calls in `recorder`. The waker ends a `step` early.
    fn prepare(&mut self, index: usize, count: usize, recorder: Arc<Recorder>)
    -> io::Result<Waker>;

    /// Whether the machine had no descriptor left for this client since the last call of this method.
    fn take_shortage(&mut self) -> bool;

    /// Closes an idle connection, or else the next one that becomes idle: another client needs its descriptor.
    fn yield_descriptor(&mut self);

    /// Takes over a call that another client has begun.
    fn adopt(&mut self, call: MigratingCall) -> CallId;

    /// One iteration, which a wake ends early. Does not wait if there is something for the caller already; then it
    /// returns false, and there may be events that it has not handled.
    fn step(&mut self, timeout: Option<Duration>) -> io::Result<bool>;

    /// When the next iteration should begin, even if the descriptor does not become readable.
    fn next_step(&mut self) -> Option<Instant>;

    /// A descriptor that becomes readable when there is something for `step`, which then never waits.
    fn descriptor(&mut self) -> Result<OwnedFd, Error>;

    /// Removes and returns the next call that moves to another client, with the number of that client.
    fn next_migrating(&mut self) -> Option<(CallId, usize, MigratingCall)>;

    /// Takes back the buffers of a streamed call, for another call.
    fn put_spare(&mut self, response: Response);

    /// Cancels these calls, and drops their completions.
    fn discard(&mut self, calls: &[CallId]);

    /// Takes the bytes of a streamed body that have arrived, into an empty vector, and its end, if nothing but the end is
    /// left.
    fn take_body(&mut self, id: CallId, chunk: &mut Vec<u8>) -> Option<BodyEnd>;
}

impl<R: Router + 'static, N: Net + 'static> Driven for Engine<R, N> {
    fn spreads() -> bool {
        !R::KEEPS_HOSTS
    }

    fn prepare(
        &mut self,
        index: usize,
        count: usize,
        recorder: Arc<Recorder>,
    ) -> io::Result<Waker> {
        self.calls.dispatch.telemetry.record_to(recorder);
        self.calls.migration.set_share(index, count);
        self.calls.dispatch.hosts.cap.set_share(index, count);
        self.waker()
    }

    fn take_shortage(&mut self) -> bool {
        self.calls.dispatch.hosts.cap.take_shortage()
    }

    fn yield_descriptor(&mut self) {
        match self.calls.dispatch.oldest_idle() {
            Some(idle) => {
                self.calls.dispatch.close(idle);
                self.calls.process_events();
            }
            None => self.calls.dispatch.hosts.cap.owe_descriptor(),
        }
    }

    fn adopt(&mut self, MigratingCall(mut call): MigratingCall) -> CallId {
        call.state = CallState::New;
        call.host = None;
        call.armed = Armed::default();
        call.held = 0;
        self.calls.retries.note_overrides(call.overrides.as_deref());
        let key = self.calls.dispatch.reactor.insert_call(|| *call);
        self.calls.dispatch.queue.submit(key, CallTime::Running);
        CallId(key)
    }

    fn step(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.calls.is_driven = true;
        self.calls.iterate(self.calls.until(timeout), |calls| {
            !calls.dispatch.deliveries.is_empty()
                || !calls.migration.is_empty()
                || calls.dispatch.hosts.cap.has_shortage()
        })
    }

    fn next_step(&mut self) -> Option<Instant> {
        self.calls.dispatch.reactor.next_poll().map(Time::instant)
    }

    fn descriptor(&mut self) -> Result<OwnedFd, Error> {
        let common = &mut self.calls.dispatch.reactor.common;
        if common.settings.socket.busy_poll.is_some() {
            let misuse = Misuse::Unsupported("busy_poll, because a task drives it");
            return Err(Error::unsent(misuse));
        }
        common.net.descriptor().map_err(Error::unsent)
    }

    fn next_migrating(&mut self) -> Option<(CallId, usize, MigratingCall)> {
        self.calls.migration.next()
    }

    fn put_spare(&mut self, response: Response) {
        let reactor = &mut self.calls.dispatch.reactor;
        reactor.common.spares.put_response(response);
    }

    fn discard(&mut self, calls: &[CallId]) {
        for &id in calls {
            self.cancel(id);
        }
        for &CallId(key) in calls {
            if self.calls.dispatch.deliveries.take_done(key) {
                self.calls.complete(key);
            }
        }
    }

    fn take_body(&mut self, id: CallId, chunk: &mut Vec<u8>) -> Option<BodyEnd> {
        let mut read = self.take_arrived(id, chunk);
        if matches!(read, Ok(BodyRead::Data(_))) {
            let call = self.calls.dispatch.reactor.call_ref(id.0)?;
            if call.taken < call.response.body().len() || !matches!(call.state, CallState::Ended) {
                return None;
            }
            read = self.read_body(id, &mut []);
        }
        match read {
            Ok(BodyRead::Data(_) | BodyRead::Pending) => None,
            Ok(BodyRead::End {
                report, trailers, ..
            }) => {
                let any = trailers.trailers().next().is_some();
                let trailers = if any {
                    Some(trailers)
                } else {
                    let reactor = &mut self.calls.dispatch.reactor;
                    reactor.common.spares.put_response(trailers);
                    None
                };
                Some(Ok(Box::new((report, trailers))))
            }
            Err(error) => Some(Err(error)),
        }
    }
}
