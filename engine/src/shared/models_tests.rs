//! The exchange of calls and completions between callers and a worker, in very many orders of execution:
//! `cargo test -p courser --lib --features models models::`. All types that threads share are the real ones
//! ([`Workers`], [`Worker`], [`Slot`], [`Permits`], the network's [`Sleep`]). Only the client is a model, which answers
//! at once. If a thread waits for ever, shuttle reports a deadlock. A run that fails prints how to replay it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shuttle::sync::{Condvar, Mutex};
use shuttle::{future, thread};

use super::*;
use crate::client::{BodyEnd, BodyRead, CallId, Driven, MigratingCall, Recorder, Waited};
use crate::net::Waker;
use crate::net::sleep::Sleep;
use crate::policy::{Caps, Counters};
use crate::reactor::{CallKey, Timestamps};
use crate::time::Time;

/// Each model runs in so many random orders, and in as many orders that switch threads at few points only.
const RUNS: usize = 1_000;
/// The number of these points.
const DEPTH: usize = 3;

fn check(model: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(model, RUNS);
    shuttle::check_pct(model, RUNS, DEPTH);
}

#[test]
fn a_blocked_caller_is_woken() {
    check(|| {
        let (client, thread) = start();
        let callers = [client.clone(), client.clone()];
        let callers = callers.map(|client| {
            thread::spawn(move || {
                let ticket = client.submit_to(call(7), None).expect("taken");
                let done = ticket.slot.wait();
                assert!(done.outcome.is_ok());
                assert_eq!(done.tag, 7);
            })
        });
        callers.into_iter().for_each(join);
        finish(client, thread);
    });
}

#[test]
fn an_awaiting_caller_is_woken() {
    check(|| {
        let (client, thread) = start();
        let other = client.clone();
        let other = thread::spawn(move || future::block_on(other.send(call(1))).tag);
        assert_eq!(future::block_on(client.send(call(2))).tag, 2);
        assert_eq!(other.join().expect("no panic"), 1);
        finish(client, thread);
    });
}

/// While the driver's task sleeps, each command must wake it.
#[test]
fn a_driver_is_woken() {
    check(|| {
        let prompt = Prompt::default();
        let (client, mut driver) =
            Shared::driven(SharedConfig::default(), prompt).expect("it can be driven");
        let driver = thread::spawn(move || {
            future::block_on(async {
                loop {
                    match driver.turn().expect("no failure") {
                        Turn::Again => {}
                        Turn::Wait(_) => poll_fn(|context| driver.poll_given(context)).await,
                        Turn::Ended => return,
                    }
                }
            });
        });
        let other = client.clone();
        let other = thread::spawn(move || future::block_on(other.send(call(1))).tag);
        assert_eq!(future::block_on(client.send(call(2))).tag, 2);
        assert_eq!(other.join().expect("no panic"), 1);
        drop(client);
        join(driver);
    });
}

#[test]
fn a_cancelled_call_ends_once() {
    check(|| {
        let (client, thread) = start();
        let (sender, arrived) = completions();
        let ticket = client.submit(call(3), &sender).expect("taken");
        let canceller = thread::spawn(move || ticket.cancel());
        // A future that is dropped cancels its call, too.
        drop(client.send(call(4)));
        join(canceller);
        let permits = Arc::clone(&client.inner.permits);
        end(client, thread);
        drop(sender);
        let done: Vec<_> = arrived.map(|done| done.tag).collect();
        assert_eq!((done, permits.taken()), (vec![3], 0));
    });
}

#[test]
fn a_body_comes_whole() {
    check(|| {
        let (client, thread) = start();
        let reader = client.clone();
        let reader = thread::spawn(move || {
            let ticket = reader
                .submit_to(call(5).streaming(true), None)
                .expect("taken");
            assert!(ticket.slot.wait().outcome.is_ok());
            let mut body = SharedBody::new(ticket);
            let mut all = Vec::new();
            let mut buf = [0; 2];
            loop {
                match body.read_some(&mut buf).expect("no failure") {
                    0 => return all,
                    n => all.extend_from_slice(&buf[..n]),
                }
            }
        });
        assert_eq!(reader.join().expect("no panic"), BODY);
        finish(client, thread);
    });
}

#[test]
fn the_end_leaves_no_caller_waiting() {
    check(|| {
        let (client, thread) = start();
        let caller = client.clone();
        let caller = thread::spawn(move || match caller.submit_to(call(6), None) {
            Ok(ticket) => drop(ticket.slot.wait()),
            Err(refused) => assert!(matches!(
                refused.error.kind(),
                ErrorKind::Stopped(Stopped::ShutDown)
            )),
        });
        client.shutdown_now();
        join(caller);
        join(thread);
        assert_eq!(client.in_flight(), 0);
    });
}

#[test]
fn a_call_wakes_the_task_that_polled_it_last() {
    check(|| {
        let (client, thread) = start();
        let mut sending = Box::pin(client.send(call(8)));
        // One task polls the future, and another task awaits it.
        let first = future::block_on(poll_fn(|context| {
            std::task::Poll::Ready(sending.as_mut().poll(context))
        }));
        if first.is_pending() {
            let second = future::spawn(async move { pin!(sending).await.tag });
            assert_eq!(future::block_on(second).expect("no panic"), 8);
        }
        finish(client, thread);
    });
}

fn call(tag: u64) -> Call {
    Call::new(Request::get("/"), Response::new()).tag(tag)
}

fn join<T>(thread: thread::JoinHandle<T>) {
    drop(thread.join().expect("no panic"));
}

/// A shared client with one thread.
fn start() -> (Shared<Prompt>, thread::JoinHandle<usize>) {
    let (workers, mut queues) = Workers::new(1, false);
    let queue = queues.pop().expect("one queue for each worker");
    let of_thread = Arc::clone(&workers);
    let mut client = Prompt::default();
    let thread = thread::spawn(move || {
        let worker = Worker::new(0, of_thread, queue);
        worker.prepare(&mut client).expect("the client has a waker");
        worker.run(client, || Ok(Prompt::default()))
    });
    (Shared::of(&workers, 8), thread)
}

fn finish(client: Shared<Prompt>, thread: thread::JoinHandle<usize>) {
    let permits = Arc::clone(&client.inner.permits);
    end(client, thread);
    assert_eq!(permits.taken(), 0);
}

fn end(client: Shared<Prompt>, thread: thread::JoinHandle<usize>) {
    client.inner.workers.finish(None);
    assert_eq!(thread.join().expect("no panic"), 0, "calls were cut off");
}

/// A model of a client. It answers as soon as it is driven, and sleeps like a client on the operating system's network.
#[derive(Default)]
struct Prompt {
    sleep: Arc<Sleep>,
    event: Arc<Event>,
    begun: u64,
    calls: Vec<(CallId, Call)>,
    done: VecDeque<Completion>,
    bodies: Vec<PromptBody>,
    readable: Vec<CallId>,
}

struct PromptBody {
    id: CallId,
    /// How many bytes have come, and how many the reader has taken.
    received: usize,
    taken: usize,
}

const BODY: &[u8] = b"abc";

/// The event that ends a poll.
#[derive(Default)]
struct Event(Mutex<bool>, Condvar);

impl Event {
    fn send(&self) {
        *self.0.lock().expect("no panic") = true;
        self.1.notify_one();
    }

    fn wait(&self) {
        let mut sent = self.0.lock().expect("no panic");
        while !*sent {
            sent = self.1.wait(sent).expect("no panic");
        }
        *sent = false;
    }
}

impl Prompt {
    fn complete(&mut self, id: CallId, call: Call, outcome: Result<(), Error>) {
        let streams = call.streaming && outcome.is_ok();
        if streams {
            self.bodies.push(PromptBody {
                id,
                received: 0,
                taken: 0,
            });
        }
        let spare = Error::unsent(ErrorKind::Cancelled);
        let mut timestamps = Timestamps::new(Time::now());
        timestamps.is_streamed = streams;
        self.done.push_back(Completion {
            id,
            outcome,
            report: Report::new(timestamps, Time::now()),
            ..Completion::failed(call.tag, spare, Some((call.request, call.response)))
        });
    }
}

impl HttpClient for Prompt {
    fn call(&mut self, _: &mut Request, _: &mut Response) -> Result<Report, Error> {
        unreachable!("a worker does not block")
    }

    fn perform(&mut self, _: Call) -> Completion {
        unreachable!("a worker does not block")
    }

    fn submit(&mut self, call: Call) -> CallId {
        // Indexes are used again.
        let index = self.begun % 2;
        self.begun += 1;
        let id = CallKey::from_bits(self.begun << 32 | index).map_or(CallId::UNBEGUN, CallId);
        self.calls.push((id, call));
        id
    }

    fn wait(&mut self, _: Option<Duration>) -> io::Result<Waited> {
        unreachable!("a worker takes steps")
    }

    fn next_done(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    fn maintain(&mut self, _: Duration) -> io::Result<()> {
        unreachable!("a worker takes steps")
    }

    fn cancel(&mut self, id: CallId) -> bool {
        if let Some(at) = self.calls.iter().position(|(call, _)| *call == id) {
            let (id, call) = self.calls.remove(at);
            self.complete(id, call, Err(Error::unsent(ErrorKind::Cancelled)));
            return true;
        }
        let before = self.bodies.len();
        self.bodies.retain(|body| body.id != id);
        self.bodies.len() < before
    }

    fn resume(&mut self, _: CallId) {}

    fn readable_body(&mut self) -> Option<CallId> {
        self.readable.pop()
    }

    fn read_body(&mut self, _: CallId, _: &mut [u8]) -> Result<BodyRead, Error> {
        Ok(BodyRead::Pending)
    }

    fn set_caps(&mut self, _: &Caps) -> Result<(), Error> {
        Ok(())
    }

    fn in_flight(&self) -> usize {
        unreachable!("a worker counts its calls")
    }

    fn counters(&self) -> Counters {
        unreachable!("a worker has no connections")
    }

    fn stats(&self) -> Stats {
        unreachable!("a worker has its recorder")
    }
}

impl Driven for Prompt {
    fn spreads() -> bool {
        false
    }

    fn prepare(&mut self, _: usize, _: usize, _: Arc<Recorder>) -> io::Result<Waker> {
        let (sleep, event) = (Arc::clone(&self.sleep), Arc::clone(&self.event));
        Ok(Waker::new(move || {
            if sleep.interrupt() {
                event.send();
            }
        }))
    }

    fn take_shortage(&mut self) -> bool {
        false
    }

    fn yield_descriptor(&mut self) {}

    fn adopt(&mut self, _: MigratingCall) -> CallId {
        unreachable!("there is one thread")
    }

    fn next_step(&mut self) -> Option<Instant> {
        let is_receiving = self.bodies.iter().any(|body| body.received < BODY.len());
        (is_receiving || !self.calls.is_empty()).then(Instant::now)
    }

    fn descriptor(&mut self) -> Result<OwnedFd, Error> {
        // A model waits for commands only.
        let file = std::fs::File::open("/dev/null");
        file.map(Into::into).map_err(Error::unsent)
    }

    fn step(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        if !self.done.is_empty() || !self.readable.is_empty() {
            return Ok(false);
        }
        let is_receiving = self.bodies.iter().any(|body| body.received < BODY.len());
        // While bytes of a body are still to come, the client does not sleep.
        let is_woken = self.sleep.begin();
        if !is_woken && self.calls.is_empty() && !is_receiving && timeout.is_none() {
            self.event.wait();
        }
        self.sleep.end();
        for (id, call) in std::mem::take(&mut self.calls) {
            self.complete(id, call, Ok(()));
        }
        for body in &mut self.bodies {
            if body.received < BODY.len() {
                body.received += 1;
                self.readable.push(body.id);
            }
        }
        Ok(true)
    }

    fn next_migrating(&mut self) -> Option<(CallId, usize, MigratingCall)> {
        None
    }

    fn put_spare(&mut self, _: Response) {}

    fn discard(&mut self, _: &[CallId]) {
        unreachable!("a worker runs no batch")
    }

    fn take_body(&mut self, id: CallId, chunk: &mut Vec<u8>) -> Option<BodyEnd> {
        let Some(at) = self.bodies.iter().position(|body| body.id == id) else {
            return Some(Err(Error::unsent(Misuse::UnknownBody)));
        };
        let body = &mut self.bodies[at];
        chunk.extend_from_slice(&BODY[body.taken..body.received]);
        body.taken = body.received;
        if body.received < BODY.len() {
            return None;
        }
        self.bodies.remove(at);
        let now = Time::of(Instant::now());
        let report = Report::new(Timestamps::new(now), now);
        Some(Ok(Box::new((report, None))))
    }
}
