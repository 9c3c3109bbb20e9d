//! The calls of a crawl in its client, and the buffers that they leave.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use courser::{Call, CallId, Client, Completion, Error, Read, Request, Response};

/// The client of a crawl.
pub struct Calls {
    client: Client,
    /// Completions that came while something else was waited for. No more than calls were in flight: nothing is
    /// submitted meanwhile.
    queued_completions: VecDeque<Completion>,
    /// Buffers of finished calls.
    spare: Vec<(Request, Response)>,
}

impl Calls {
    /// Of this client, which has none so far.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            queued_completions: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Calls whose completion, and the end of its body, has not been seen by the client.
    pub fn in_flight(&self) -> usize {
        self.client.in_flight()
    }

    /// An empty request, with the buffers of an earlier call.
    pub fn blank(&mut self) -> (Request, Response) {
        let Some((mut request, response)) = self.spare.pop() else {
            return (Request::get("/"), Response::new());
        };
        request.clear_headers();
        request.no_body();
        (request, response)
    }

    /// The buffers are free for another call.
    pub fn give_back(&mut self, request: Request, response: Response) {
        self.spare.push((request, response));
    }

    /// Hands a call to the client.
    pub fn submit(&mut self, call: Call) {
        self.client.submit(call);
    }

    /// A completion that came while something else was waited for.
    pub fn next_queued(&mut self) -> Option<Completion> {
        self.queued_completions.pop_front()
    }

    /// The next completion, if one comes in time.
    ///
    /// # Errors
    /// The operating system's, after which the client cannot go on.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Option<Completion>> {
        self.client.wait(Some(timeout))
    }

    /// Passes this time, in which connections are driven. What is completed meanwhile is queued.
    pub fn drive_connections(&mut self, time: Duration) {
        if self.client.in_flight() == 0 {
            return thread::sleep(time);
        }
        let began = Instant::now();
        match self.client.wait(Some(time)) {
            Ok(Some(done)) => self.queued_completions.push_back(done),
            // A body that can be read ends the wait at once; it is read when the crawl goes on, which is also when an
            // error will show again.
            Ok(None) | Err(_) => thread::sleep(time.saturating_sub(began.elapsed())),
        }
    }

    /// A call with a body of which something can be read.
    pub fn readable_body(&mut self) -> Option<CallId> {
        self.client.readable_body()
    }

    /// Reads from a body.
    ///
    /// # Errors
    /// The body is not whole.
    pub fn read_body(&mut self, call: CallId, buffer: &mut [u8]) -> Result<Read, Error> {
        self.client.read_body(call, buffer)
    }

    /// The rest of a body is not wanted.
    pub fn cancel(&mut self, call: CallId) {
        self.client.cancel(call);
    }
}
