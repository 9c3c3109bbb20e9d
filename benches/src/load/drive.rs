//! Drives a client of courser on this thread: in a closed loop, a response triggers the next request; in an open loop,
//! the clock does.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use courser::net::Net;
use courser::{Call, CallId, Client, Completion, HostClient, PipelineClient, Request, Response};

use super::asking::Script;
use super::schedule::{self, Pace, Schedule};
use crate::measure::{LOOK, Plan, Record, Run};

/// Runs a closed loop with the number of simultaneous calls of the plan. With a `ramp`, the calls are started one after
/// the other over this time.
///
/// # Errors
/// Nothing could be measured.
pub fn closed(
    plan: &Plan,
    ramp: Duration,
    mut script: Script,
    mut client: impl Driven,
    name: &str,
) -> Result<Record, Box<dyn Error>> {
    let mut run = Run::new(plan)?;
    let calls = plan.at_once();
    // The time at which the call of each tag was last submitted.
    let mut sent = vec![run.began(); calls as usize];
    let mut begun = 0;
    loop {
        let mut patience = LOOK;
        while begun < calls {
            let now = Instant::now();
            let due = ramp.mul_f64(f64::from(begun) / f64::from(calls));
            let left = due.saturating_sub(now - run.began());
            if !left.is_zero() {
                patience = patience.min(left);
                break;
            }
            if !run.admit(now) {
                begun = calls;
                break;
            }
            sent[begun as usize] = now;
            let call = Call::new(script.request(), Response::new());
            client.submit(call.tag(begun.into()));
            begun += 1;
        }
        let Some(mut done) = client.wait(patience)? else {
            if client.in_flight() == 0 || run.is_interrupted() {
                break;
            }
            continue;
        };
        // Responses that arrive together share one time, as in `limit`.
        let now = Instant::now();
        loop {
            let sent = &mut sent[done.tag as usize];
            ended(&mut run, &done, *sent, now);
            if run.admit(now) {
                *sent = now;
                script.reuse(&mut done.request);
                client.submit(Call::new(done.request, done.response).tag(done.tag));
            }
            match client.next_done() {
                Some(next) => done = next,
                None => break,
            }
        }
    }
    run.opened(client.opened());
    run.finish(name)
}

/// Runs an open loop: sends a request when it is due, if fewer calls are in flight than the plan allows; if not, after
/// the next call ends. Latencies count from the time at which the request was due, so that a stall affects all requests
/// that were due during it.
///
/// # Errors
/// Nothing could be measured.
pub fn open(
    plan: &Plan,
    schedule: Schedule,
    mut script: Script,
    mut client: impl Driven,
    name: &str,
) -> Result<Record, Box<dyn Error>> {
    let mut run = Run::new(plan)?;
    let mut pace = Pace::new(plan, schedule, run.began());
    let calls = plan.at_once();
    let mut due = vec![run.began(); calls as usize];
    let spare = |tag: u32| (u64::from(tag), Request::get("/"), Response::new(), true);
    let mut free: Vec<_> = (0..calls).rev().map(spare).collect();
    let mut end;
    loop {
        let now = Instant::now();
        end = now;
        let goes_on = run.goes_on(now);
        let mut patience = LOOK;
        while goes_on && let Some(at) = pace.next(now) {
            if at > now {
                patience = schedule::sleep(now, at);
                break;
            }
            let Some((tag, mut request, response, is_new)) = free.pop() else {
                break;
            };
            if is_new {
                request = script.request();
            } else {
                script.reuse(&mut request);
            }
            due[tag as usize] = at;
            client.submit(Call::new(request, response).tag(tag));
            pace.sent(now);
        }
        if client.in_flight() == 0 {
            if !goes_on || pace.next(now).is_none() {
                break;
            }
            client.maintain(patience)?;
            continue;
        }
        let Some(done) = client.wait(patience)? else {
            if run.is_interrupted() {
                break;
            }
            continue;
        };
        ended(&mut run, &done, due[done.tag as usize], Instant::now());
        free.push((done.tag, done.request, done.response, false));
    }
    run.opened(client.opened());
    run.followed(pace.followed(end));
    run.finish(name)
}

fn ended(run: &mut Run, done: &Completion, since: Instant, now: Instant) {
    run.received(done.report.bytes_in());
    match &done.outcome {
        Ok(()) => run.answered(done.response.status(), since, now),
        Err(error) => run.failed(&kind(error)),
    }
}

/// The kind of the error, with the cause from the system. Without the URL: a run may have many.
fn kind(error: &courser::Error) -> String {
    match error.source() {
        Some(source) => format!("{}: {source}", error.what()),
        None => error.what().to_string(),
    }
}

/// The operations of a client that the loops need.
pub trait Driven {
    /// Submits a call.
    fn submit(&mut self, call: Call) -> CallId;

    /// Cancels a call. False if the call had already ended.
    fn cancel(&mut self, call: CallId) -> bool;

    /// Waits for the next completion. `None` after this time, or if no call is in flight.
    ///
    /// # Errors
    /// The system cannot wait for events.
    fn wait(&mut self, patience: Duration) -> io::Result<Option<Completion>>;

    /// The next completion that is ready, without waiting.
    fn next_done(&mut self) -> Option<Completion>;

    /// Runs the event loop for this time without calls.
    ///
    /// # Errors
    /// The system cannot wait for events.
    fn maintain(&mut self, time: Duration) -> io::Result<()>;

    /// The number of calls that have not completed.
    fn in_flight(&self) -> usize;

    /// The number of connections that are being opened.
    fn connecting(&self) -> usize;

    /// The number of connections that were opened so far.
    fn opened(&self) -> u64;
}

macro_rules! driven {
    ($($client:ident)*) => {$(
        impl<N: Net + 'static> Driven for $client<N> {
            fn submit(&mut self, call: Call) -> CallId {
                self.submit(call)
            }

            fn cancel(&mut self, call: CallId) -> bool {
                self.cancel(call)
            }

            fn wait(&mut self, patience: Duration) -> io::Result<Option<Completion>> {
                self.wait(Some(patience))
            }

            fn next_done(&mut self) -> Option<Completion> {
                self.next_done()
            }

            fn maintain(&mut self, time: Duration) -> io::Result<()> {
                self.maintain(time)
            }

            fn in_flight(&self) -> usize {
                self.in_flight()
            }

            fn connecting(&self) -> usize {
                self.counters().connecting
            }

            fn opened(&self) -> u64 {
                self.counters().opened
            }
        }
    )*};
}

driven!(HostClient Client PipelineClient);
