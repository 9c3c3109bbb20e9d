//! The calls of a crawl in its client, the completions that wait to be handled, and buffers of finished calls for
//! reuse.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use courser::{Call, CallId, Client, Completion, Error, Read, Request, Response};

/// The client of a crawl.
pub struct Calls {
    client: Client,
    /// Completions that came during [`drive_connections`](Self::drive_connections). Never more than the calls in flight
    /// then, because nothing is submitted meanwhile.
    queued_completions: VecDeque<Completion>,
    /// Buffers of finished calls, for reuse.
    spare: Vec<(Request, Response)>,
}

impl Calls {
    /// Wraps a client without calls.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            queued_completions: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Calls that the client has not completed, or whose body has not ended.
    pub fn in_flight(&self) -> usize {
        self.client.in_flight()
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

    /// Submits a call to the client.
    pub fn submit(&mut self, call: Call) {
        self.client.submit(call);
    }

    /// A completion that came during [`drive_connections`](Self::drive_connections).
    pub fn next_queued(&mut self) -> Option<Completion> {
        self.queued_completions.pop_front()
    }

    /// Waits at most `timeout` for the next completion.
    ///
    /// # Errors
    /// An error of the operating system. The client cannot be used after it.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Option<Completion>> {
        self.client.wait(Some(timeout))
    }

    /// Waits for this time while connections make progress. Completions are queued.
    pub fn drive_connections(&mut self, time: Duration) {
        if self.client.in_flight() == 0 {
            return thread::sleep(time);
        }
        let began = Instant::now();
        match self.client.wait(Some(time)) {
            Ok(Some(done)) => self.queued_completions.push_back(done),
            // A readable body ends the wait at once; the body is read later. An error will be reported by the next
            // wait.
            Ok(None) | Err(_) => thread::sleep(time.saturating_sub(began.elapsed())),
        }
    }

    /// A call whose body can be read.
    pub fn readable_body(&mut self) -> Option<CallId> {
        self.client.readable_body()
    }

    /// Reads from a body.
    ///
    /// # Errors
    /// The body is incomplete.
    pub fn read_body(&mut self, call: CallId, buffer: &mut [u8]) -> Result<Read, Error> {
        self.client.read_body(call, buffer)
    }

    /// Drops the rest of a body.
    pub fn cancel(&mut self, call: CallId) {
        self.client.cancel(call);
    }
}
