//! Batches for a client on threads of its own: many calls and a result for each, with a limit of calls in flight.

use std::collections::HashMap;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::completions::{Delivered, Recipient};
use super::{Refused, Shared, Ticket, buffered};
use crate::client::{BatchConfig, Call, Completion, Flow, HttpClient, Lineup, Runner};
use crate::error::Error;

impl<C: HttpClient> Shared<C> {
    /// Runs calls, and gives a result for each call: its number among `calls`, from 0 on, and its completion. Some
    /// calls may fail while others succeed. Like [`Engine::call_many`](crate::Engine::call_many), except that the calls
    /// in flight go on while the caller does something else. Further calls are begun when the caller asks for results.
    ///
    /// A batch never has more calls in flight than [`max_in_flight`](crate::SharedConfig::max_in_flight) allows beside
    /// the other calls of the client. A call fails with
    /// [`LimitExceeded::InFlight`](crate::error::LimitExceeded::InFlight) only if this limit allows the batch no call
    /// at all.
    ///
    /// ```
    /// use courser::{BatchConfig, BatchOrder, Call, HostClient, HostConfig, Request, Response, Shared, SharedConfig};
    /// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let upstream: courser::Upstream = server.local_addr()?.to_string().parse()?;
    /// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
    /// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
    /// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
    ///
    /// let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
    /// let client = Shared::spawn(SharedConfig::default(), build)?;
    /// let calls = (0..100).map(|page| Call::new(Request::get(format!("/{page}")), Response::new()));
    /// let config = BatchConfig { order: BatchOrder::Input, ..BatchConfig::default() };
    /// for (expected, (number, done)) in client.call_many(calls, config).enumerate() {
    ///     assert_eq!((number, done.response.body()), (expected, &b"hi"[..]));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call_many<I>(&self, calls: I, config: BatchConfig) -> SharedBatch<I::IntoIter, C>
    where
        I: IntoIterator<Item = Call>,
    {
        let (sender, arrived) = unbounded();
        SharedBatch {
            flow: Flow::new(calls.into_iter(), config),
            running: Running {
                client: self.clone(),
                tickets: HashMap::new(),
                sender,
                arrived,
            },
        }
    }
}

/// The results of [`Shared::call_many`], which has an example: numbers of calls, and completions. If a batch is dropped
/// before its end, it begins no more calls and cancels the calls in flight.
///
/// ```
/// # fn example(client: &courser::Shared<courser::HostClient>, calls: Vec<courser::Call>) {
/// let batch = client.call_many(calls, courser::BatchConfig::default());
/// let (good, bad): (Vec<_>, Vec<_>) = batch.partition(|(_, done)| done.outcome.is_ok());
/// println!("{} good, {} bad", good.len(), bad.len());
/// # }
/// ```
#[must_use = "a batch begins calls while its results are asked for"]
pub struct SharedBatch<I: Iterator<Item = Call>, C> {
    flow: Flow<I>,
    running: Running<C>,
}

/// The calls of a batch that are in flight. Dropping this cancels them.
struct Running<C> {
    client: Shared<C>,
    /// The tickets of the calls in flight.
    tickets: HashMap<usize, Ticket>,
    /// Kept so that the channel stays open as long as the batch exists.
    sender: Sender<Delivered>,
    arrived: Receiver<Delivered>,
}

impl<I: Iterator<Item = Call>, C: HttpClient> SharedBatch<I, C> {
    /// Calls of the batch that have begun and whose completions the batch has not taken yet.
    pub fn in_flight(&self) -> usize {
        self.flow.in_flight()
    }
}

impl<C: HttpClient> Runner for Running<C> {
    fn begin(&mut self, number: usize, call: Call) -> Result<(), (Call, Error)> {
        let sender = self.sender.clone();
        let to = Some(Recipient { sender, number });
        let call = self.client.may_wait(call).and_then(buffered);
        let begun = call.and_then(|call| self.client.submit_to(call, to));
        let ticket = begun.map_err(|Refused { error, call }| (call, error))?;
        self.tickets.insert(number, ticket);
        Ok(())
    }

    fn collect(&mut self, wait: bool, lineup: &mut Lineup) {
        // Each call completes, even if its worker ends.
        let first = wait.then(|| self.arrived.recv().ok()).flatten();
        for delivered in first.into_iter().chain(self.arrived.try_iter()) {
            self.tickets.remove(&delivered.number);
            lineup.put(delivered.number, delivered.completion);
        }
    }
}

impl<I: Iterator<Item = Call>, C: HttpClient> Iterator for SharedBatch<I, C> {
    type Item = (usize, Completion);

    /// The next result; blocks until there is one. `None` when there are no more calls.
    fn next(&mut self) -> Option<Self::Item> {
        self.flow.next(&mut self.running)
    }
}

impl<C> Drop for Running<C> {
    fn drop(&mut self) {
        self.tickets.values().for_each(Ticket::cancel);
    }
}
