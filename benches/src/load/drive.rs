//! Drives a client of courser on this thread: in a closed loop, a response triggers the next request; in an open loop,
//! the clock does.

use std::error::Error;
use std::time::Instant;

use courser::{Call, Completion, HttpClient, Request, Response};

use super::schedule::{self, Pace};
use crate::measure::{LOOK, Plan, Record, Run};

/// Runs a closed loop with the number of simultaneous calls of the plan.
///
/// # Errors
/// Nothing could be measured.
pub fn closed(
    plan: &Plan,
    request: &Request,
    mut client: impl HttpClient,
    name: &str,
) -> Result<Record, Box<dyn Error>> {
    let mut run = Run::new(plan)?;
    // The time at which the call of each tag was last submitted.
    let mut sent = vec![run.began(); plan.at_once() as usize];
    for (tag, sent) in (0..).zip(&mut sent) {
        let now = Instant::now();
        if !run.admit(now) {
            break;
        }
        *sent = now;
        client.submit(Call::new(request.clone(), Response::new()).tag(tag));
    }
    while let Some(mut done) = client.wait(None)?.done() {
        // Responses that arrive together share one time, as in `limit`.
        let now = Instant::now();
        loop {
            let sent = &mut sent[done.tag as usize];
            ended(&mut run, &done, *sent, now);
            if run.admit(now) {
                *sent = now;
                client.submit(Call::new(done.request, done.response).tag(done.tag));
            }
            match client.next_done() {
                Some(next) => done = next,
                None => break,
            }
        }
    }
    run.opened(client.counters().opened);
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
    rate: f64,
    request: &Request,
    mut client: impl HttpClient,
    name: &str,
) -> Result<Record, Box<dyn Error>> {
    let mut run = Run::new(plan)?;
    let mut pace = Pace::new(plan, rate, run.began());
    let calls = plan.at_once();
    let mut due = vec![run.began(); calls as usize];
    let spare = |tag: u32| (u64::from(tag), request.clone(), Response::new());
    let mut free: Vec<_> = (0..calls).rev().map(spare).collect();
    let mut end;
    loop {
        let now = Instant::now();
        end = now;
        let goes_on = run.goes_on();
        let mut patience = LOOK;
        while goes_on && let Some(at) = pace.next(now) {
            if at > now {
                patience = schedule::sleep(now, at);
                break;
            }
            let Some((tag, request, response)) = free.pop() else {
                break;
            };
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
        let Some(done) = client.wait(Some(patience))?.done() else {
            continue;
        };
        ended(&mut run, &done, due[done.tag as usize], Instant::now());
        free.push((done.tag, done.request, done.response));
    }
    run.opened(client.counters().opened);
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
