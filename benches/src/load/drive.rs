//! The two ways to keep one of courser's clients busy, on this thread: a closed loop, in which an answer is the sign for
//! the next request, and an open one, in which the clock is.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use courser::net::Net;
use courser::{Call, CallId, Client, Completion, HostClient, PipelineClient, Request, Response};

use super::asking::Script;
use super::schedule::{self, Pace, Schedule};
use crate::measure::{LOOK, Plan, Record, Run};

/// As many calls at a time as the plan says. With a `ramp`, they are begun one after the other over that time.
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
    // When the call of each tag was submitted last.
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
        // Answers that came together have one time, as in `limit`.
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

/// A request whenever one is due, if fewer calls are in flight than the plan allows; if not, as soon as one has ended.
/// Latencies count from when a request was due, so a stall is not hidden by sending nothing while it lasts.
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

/// What happened, with the system's reason.
fn kind(error: &courser::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// What the clients have in common here.
pub trait Driven {
    /// Takes over a call.
    fn submit(&mut self, call: Call) -> CallId;

    /// Ends a call; false if it has ended.
    fn cancel(&mut self, call: CallId) -> bool;

    /// The next completion; `None` after that time, or when there is none to come.
    ///
    /// # Errors
    /// The system's, when it cannot wait for events.
    fn wait(&mut self, patience: Duration) -> io::Result<Option<Completion>>;

    /// The next completion that is there already.
    fn next_done(&mut self) -> Option<Completion>;

    /// Lets that time pass without calls.
    ///
    /// # Errors
    /// The system's, when it cannot wait for events.
    fn maintain(&mut self, time: Duration) -> io::Result<()>;

    /// Calls that have not completed.
    fn in_flight(&self) -> usize;

    /// Connections that are not up yet.
    fn connecting(&self) -> usize;

    /// Connections opened so far.
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
