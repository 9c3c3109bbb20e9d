//! The calls of a crawl in its client, the completions that wait to be handled, and buffers of finished calls for
//! reuse.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use courser::net::Net;
use courser::net::os::OsNet;
use courser::{Client, Completion, Request, Response, Waited};

/// The client of a crawl.
pub struct Calls<N: Net = OsNet> {
    pub(super) client: Client<N>,
    /// Completions that came during [`drive_connections`](Self::drive_connections), and were not waited for yet. Never more
    /// than the calls in flight then, because nothing is submitted meanwhile.
    queued_completions: VecDeque<Completion>,
    /// Buffers of finished calls, for reuse.
    spare: Vec<(Request, Response)>,
}

/// What the work at a host may do with the client while it handles an answer.
pub trait Drive {
    /// Waits for this time while connections make progress. Completions are queued.
    fn drive_connections(&mut self, time: Duration);
}

impl<N: Net> Calls<N> {
    /// Wraps a client without calls.
    pub fn new(client: Client<N>) -> Self {
        Self {
            client,
            queued_completions: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// The monotonic time of the network.
    pub fn now(&self) -> Instant {
        self.client.now()
    }

    /// Calls whose completion was not waited for, or whose body has not ended.
    pub fn in_flight(&self) -> usize {
        self.client.in_flight() + self.queued_completions.len()
    }

    /// Whether a wait ends at once.
    pub fn has_queued(&self) -> bool {
        !self.queued_completions.is_empty()
    }

    /// An empty request and response, with the buffers of a finished call if there is one.
    pub fn blank(&mut self) -> (Request, Response) {
        let Some((mut request, response)) = self.spare.pop() else {
            return (Request::get("/"), Response::new());
        };
        request.clear_headers();
        request.no_body();
        (request, response)
    }

    /// Returns the buffers of a finished call.
    pub fn give_back(&mut self, request: Request, response: Response) {
        self.spare.push((request, response));
    }

    /// Waits at most `timeout` for the next completion.
    ///
    /// # Errors
    /// An error of the operating system. The client cannot be used after it.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Option<Completion>> {
        match self.queued_completions.pop_front() {
            None => Ok(self.client.wait(Some(timeout))?.done()),
            done => Ok(done),
        }
    }

    /// As [`wait`](Self::wait), but with or without calls in flight, and the waker of the client ends the wait.
    ///
    /// # Errors
    /// An error of the operating system. The client cannot be used after it.
    pub fn wait_or_wake(&mut self, timeout: Duration) -> io::Result<Option<Completion>> {
        match self.queued_completions.pop_front() {
            None => self.client.wait_or_wake(Some(timeout)),
            done => Ok(done),
        }
    }
}

impl<N: Net> Drive for Calls<N> {
    fn drive_connections(&mut self, time: Duration) {
        if self.client.in_flight() == 0 {
            return thread::sleep(time);
        }
        let began = Instant::now();
        match self.client.wait(Some(time)) {
            Ok(Waited::Done(done)) => self.queued_completions.push_back(done),
            // A readable body ends the wait at once; the body is read later. An error will be reported by the next
            // wait.
            Ok(_) | Err(_) => thread::sleep(time.saturating_sub(began.elapsed())),
        }
    }
}
