//! Many calls with a result for each, and a limit of calls in flight.

use std::io;

use super::Engine;
use crate::client::batch::{BatchConfig, Flow, Lineup, Runner};
use crate::client::calls::Calls;
use crate::client::router::Router;
use crate::client::{Call, CallId, Completion, HttpClient};
use crate::error::{Error, ErrorKind, Misuse, again};
use crate::net::Net;
use crate::reactor::CallKey;

impl<R: Router + 'static, N: Net + 'static> Engine<R, N> {
    /// Runs calls and returns a result for each: the number of the call in `calls`, from 0 on, and its completion. Each
    /// call succeeds or fails by itself.
    ///
    /// The batch takes a call from `calls` when there is room for it, so `calls` may be endless; the time of a call
    /// begins when the batch takes it. The batch makes progress only inside [`next`](Iterator::next). When a batch is
    /// dropped before its end, it takes no more calls and cancels the calls in flight. Other calls of the client go on
    /// meanwhile, and their completions are kept for [`wait`](Self::wait).
    ///
    /// A [streaming](Call::streaming) call fails with [`Misuse::Streamed`], because its body could not be read.
    ///
    /// ```
    /// use courser::{BatchConfig, Call, Client, Config, Request, Response};
    /// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let there = format!("http://{}/", server.local_addr()?);
    /// # std::thread::spawn(move || for stream in server.incoming() { std::thread::spawn(move || { use std::io::*;
    /// #     let mut s = stream.unwrap(); let mut b = [0; 999]; while s.read(&mut b).is_ok_and(|n| n > 0) {
    /// #         if s.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() { break } } }); });
    ///
    /// let mut client = Client::new(Config::default())?;
    /// let urls = [&there, "http://nowhere.invalid:x/", &there];
    /// let calls = urls.iter().map(|url| Call::new(Request::get(*url), Response::new()));
    /// let mut good = 0;
    /// for (number, done) in client.call_many(calls, BatchConfig::default()) {
    ///     match done.outcome {
    ///         Ok(()) => good += 1,
    ///         Err(error) => println!("{}: {error}", urls[number]),
    ///     }
    /// }
    /// assert_eq!(good, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call_many<I>(&mut self, calls: I, config: BatchConfig) -> Batch<'_, I::IntoIter, Self>
    where
        I: IntoIterator<Item = Call>,
    {
        Batch {
            flow: Flow::new(calls.into_iter(), config),
            running: Running {
                client: self,
                numbers: Numbers::default(),
                looked_at: 0,
            },
        }
    }
}

/// The results of [`Engine::call_many`]: pairs of a call's number and its completion.
///
/// ```
/// # fn example(client: &mut courser::HostClient) {
/// use courser::{BatchConfig, Call, Request, Response};
///
/// let calls = (0..).map(|page| Call::new(Request::get(format!("/page/{page}")), Response::new()));
/// let mut pages = client.call_many(calls, BatchConfig::default());
/// // The batch cancels the calls that are still in flight when it is dropped.
/// let missing = pages.find(|(_, done)| done.response.status() == 404);
/// # }
/// ```
#[must_use = "a batch runs while its results are asked for"]
pub struct Batch<'a, I: Iterator<Item = Call>, C: HttpClient> {
    flow: Flow<I>,
    running: Running<'a, C>,
}

/// The calls of a batch that are in flight. Dropping this cancels them.
struct Running<'a, C: HttpClient> {
    client: &'a mut C,
    numbers: Numbers,
    /// How many of the client's completions, from the first on, are known not to belong to this batch. The batch
    /// borrows the client, so no other code takes completions meanwhile.
    looked_at: usize,
}

impl<I: Iterator<Item = Call>, C: HttpClient> Batch<'_, I, C> {
    /// The number of calls that the batch has begun and that have not completed.
    pub fn in_flight(&self) -> usize {
        self.flow.in_flight()
    }

    /// The client that runs the batch, for its counters and statistics.
    pub fn client(&self) -> &C {
        self.running.client
    }
}

impl<R: Router + 'static, N: Net + 'static> Running<'_, Engine<R, N>> {
    /// Takes the completions of this batch from the client, and leaves the others in their order.
    fn take_done(&mut self, mut done: impl FnMut(usize, Completion)) {
        let mut kept = self.looked_at;
        let mut at = kept;
        while let Some(&key) = self.client.calls.dispatch.deliveries.done.get(at) {
            let number = self.numbers.remove(key);
            match number.and_then(|number| Some((number, self.client.calls.complete(key)?))) {
                Some((number, completion)) => done(number, completion),
                None => {
                    self.client.calls.dispatch.deliveries.done[kept] = key;
                    kept += 1;
                }
            }
            at += 1;
        }
        self.client.calls.dispatch.deliveries.done.truncate(kept);
        self.looked_at = kept;
    }

    /// Fails all calls of the batch, because the system cannot wait for events.
    fn fail_all(&mut self, error: &io::Error) {
        for key in self.numbers.keys() {
            self.client.calls.dispatch.detach(key);
            let kind = ErrorKind::Io(again(error));
            self.client.calls.dispatch.refuse(key, kind);
        }
        self.client.calls.process_events();
    }
}

impl<R: Router + 'static, N: Net + 'static> Runner for Running<'_, Engine<R, N>> {
    fn begin(&mut self, number: usize, call: Call) -> Result<(), (Call, Error)> {
        if call.streaming {
            let error = Error::unsent(Misuse::Streamed);
            return Err((call, error));
        }
        let id = self.client.submit(call);
        self.numbers.insert(id.0, number);
        Ok(())
    }

    fn collect(&mut self, wait: bool, lineup: &mut Lineup) {
        let known = self.looked_at;
        let over = |calls: &Calls<R, N>| {
            calls.dispatch.deliveries.done.len() > known || calls.dispatch.reactor.calls() == 0
        };
        if wait && let Err(error) = self.client.calls.iterate(None, over) {
            self.take_done(|number, completion| lineup.put(number, completion));
            self.fail_all(&error);
        }
        self.take_done(|number, completion| lineup.put(number, completion));
    }
}

impl<I, R, N> Iterator for Batch<'_, I, Engine<R, N>>
where
    I: Iterator<Item = Call>,
    R: Router + 'static,
    N: Net + 'static,
{
    type Item = (usize, Completion);

    /// The next result. Drives the client until a call completes; `None` when there are no more calls.
    fn next(&mut self) -> Option<Self::Item> {
        self.flow.next(&mut self.running)
    }
}

impl<C: HttpClient> Drop for Running<'_, C> {
    fn drop(&mut self) {
        let calls: Vec<_> = self.numbers.keys().into_iter().map(CallId).collect();
        self.client.discard(&calls);
    }
}

/// The numbers of the calls in flight, indexed by the place of the call in the client. The client reuses its places, so
/// the vector stays small.
#[derive(Debug, Default)]
struct Numbers {
    places: Vec<Option<(CallKey, usize)>>,
}

impl Numbers {
    fn insert(&mut self, key: CallKey, number: usize) {
        let place = key.index();
        if place >= self.places.len() {
            self.places.resize(place + 1, None);
        }
        self.places[place] = Some((key, number));
    }

    fn remove(&mut self, key: CallKey) -> Option<usize> {
        let place = self.places.get_mut(key.index())?;
        place
            .take_if(|(of, _)| *of == key)
            .map(|(_, number)| number)
    }

    fn keys(&self) -> Vec<CallKey> {
        self.places.iter().flatten().map(|(key, _)| *key).collect()
    }
}
