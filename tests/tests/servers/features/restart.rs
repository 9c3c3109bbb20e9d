//! A server that is stopped and started again while calls run.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use courser::policy::{FailureClass, RetryOn, RetryRule};
use courser::{Backoff, Call, HostClient, HostConfig, Request, Response, Retry};
use tests::script::PATIENCE;

use super::present;
use crate::matrix::{Bench, Outcome, patient};
use crate::running::Flavor;
use crate::site;

/// Idempotent calls with retries all succeed, each with its own answer.
pub(crate) fn under_load(bench: &Bench<'_>) -> Option<Outcome> {
    let mut server = bench.start(Flavor::Plain)?;
    let mut client = HostClient::new(server.upstream(), retrying()).unwrap();
    let mut response = Response::new();
    client.get("/n/7", &mut response).unwrap();
    present(&response)?;

    let restarted = AtomicBool::new(false);
    let mut load = Load {
        client,
        begun: 0,
        done: 0,
    };
    thread::scope(|scope| {
        load.run_until(|load| load.done >= ENOUGH);
        let restarting = scope.spawn(|| {
            server.restart();
            restarted.store(true, Ordering::Release);
        });
        load.run_until(|_| restarted.load(Ordering::Acquire) || restarting.is_finished());
        restarting.join().unwrap();
        let before = load.done;
        load.run_until(|load| load.done >= before + ENOUGH);
    });
    load.finish();
    Some(Outcome::Works)
}

/// Calls, always a few in flight.
struct Load {
    client: HostClient,
    begun: u64,
    done: u64,
}

impl Load {
    fn run_until(&mut self, over: impl Fn(&Self) -> bool) {
        while !over(self) {
            while self.client.in_flight() < IN_FLIGHT {
                let number = self.begun % site::NUMBERS;
                let request = Request::get(format!("/n/{number}"));
                self.client
                    .submit(Call::new(request, Response::new()).tag(number));
                self.begun += 1;
            }
            self.take(Duration::from_millis(10));
        }
    }

    fn finish(mut self) {
        while self.take(PATIENCE) {}
        assert_eq!(self.done, self.begun);
    }

    /// Takes one completion, if one comes within this time.
    fn take(&mut self, time: Duration) -> bool {
        let Some(completion) = self.client.wait(Some(time)).unwrap().done() else {
            return false;
        };
        completion.outcome.unwrap();
        let expected = completion.tag.to_string();
        assert_eq!(
            completion.response.status(),
            200,
            "{:?}",
            completion.response
        );
        assert_eq!(completion.response.body(), expected.as_bytes());
        self.done += 1;
        true
    }
}

/// Whatever a server that is down does to a call is tried again until the deadline.
fn retrying() -> HostConfig {
    let attempts = NonZeroU32::MAX;
    let classes = [
        FailureClass::Refused,
        FailureClass::Reset,
        FailureClass::Truncated,
    ];
    let rule = |class| RetryRule {
        attempts,
        backoff: Backoff {
            initial: Duration::from_millis(10),
            max: Duration::from_millis(100),
            ..Backoff::default()
        },
        ..RetryRule::new(RetryOn::Failure(class))
    };
    HostConfig {
        retry: Retry {
            max_attempts: attempts,
            rules: classes.map(rule).into(),
            ..Retry::default()
        },
        retry_budget: None,
        ..patient()
    }
}

/// Calls in flight at a time.
const IN_FLIGHT: usize = 16;
/// Calls before the server is stopped, and after it is back.
const ENOUGH: u64 = 200;
