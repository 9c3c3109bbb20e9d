//! Keeps a client of courser busy on this thread: in a closed loop, a response triggers the next request; in an open
//! loop, the clock does.

use std::error::Error;
use std::time::Instant;

use courser::{Call, Completion, HttpClient, Request, Response};

use crate::measure::{Plan, Record, Run, sleep};

/// Makes the calls of the plan, each when it is due, or when an earlier call ends if all of them are in flight then.
///
/// # Errors
/// Nothing could be measured.
pub(crate) fn drive(
    plan: &Plan,
    request: &Request,
    client: impl HttpClient,
) -> Result<Record, Box<dyn Error>> {
    let spare = |tag: u32| (tag.into(), request.clone(), Response::new());
    let run = Run::new(plan)?;
    let mut now = Instant::now();
    let mut drive = Drive {
        run,
        client,
        since: vec![now; plan.at_once() as usize],
        free: (0..plan.at_once()).rev().map(spare).collect(),
        next: None,
    };
    loop {
        while drive.next.is_none_or(|due| due <= now)
            && let Some((tag, request, response)) = drive.free.pop()
            && drive.begin(tag, request, response, now)
        {}
        let patience = drive.next.map(|due| sleep(now, due));
        match patience {
            None if drive.client.in_flight() == 0 => return drive.run.finish(),
            Some(patience) if drive.client.in_flight() == 0 => {
                drive.client.maintain(patience)?;
                now = Instant::now();
            }
            _ => {
                let mut first = drive.client.wait(patience)?.done();
                // Responses that arrive together share one time, as in `limit`.
                now = Instant::now();
                while let Some(Completion {
                    tag,
                    outcome,
                    request,
                    response,
                    .. // taken apart where it arrives: a copy would be measured
                }) = first.take().or_else(|| drive.client.next_done())
                {
                    let since = drive.since[tag as usize];
                    match outcome {
                        Ok(()) => drive.run.answered(response.status(), since, now),
                        Err(error) => drive.run.failed(&error),
                    }
                    drive.begin(tag, request, response, now);
                }
            }
        }
    }
}

struct Drive<C> {
    run: Run,
    client: C,
    /// The time at which the call of each tag was due.
    since: Vec<Instant>,
    /// Tags and buffers of calls that are not in flight.
    free: Vec<(u64, Request, Response)>,
    /// When the next call is due, if that is claimed.
    next: Option<Instant>,
}

impl<C: HttpClient> Drive<C> {
    /// Begins a call if one is due.
    fn begin(&mut self, tag: u64, request: Request, response: Response, now: Instant) -> bool {
        let due = self.next.take().or_else(|| self.run.claim(now));
        if let Some(due) = due.filter(|due| *due <= now) {
            self.since[tag as usize] = due;
            let call = Call::new(request, response).tag(tag);
            self.client.submit(call);
            return true;
        }
        self.next = due;
        self.free.push((tag, request, response));
        false
    }
}
