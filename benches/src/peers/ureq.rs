//! ureq: it blocks, so there is a thread for each connection, each with an agent of its own.

use std::error::Error;
use std::thread;

use ureq::Agent;

use super::SharedRun;
use crate::measure::{Plan, Record};

/// Measures ureq.
///
/// # Errors
/// Nothing could be measured.
pub fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let run = SharedRun::new(plan)?;
    thread::scope(|scope| {
        for _ in 0..plan.connections {
            scope.spawn(|| {
                let agent = agent();
                run.work(|| exchange(&agent, &plan.url.url));
            });
        }
    });
    run.finish("ureq")
}

/// The client that is measured.
#[must_use]
pub fn agent() -> Agent {
    Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .build()
        .new_agent()
}

/// One request; the status, once the body has been read.
///
/// # Errors
/// As ureq says.
pub fn exchange(agent: &Agent, url: &str) -> Result<u16, ureq::Error> {
    let mut response = agent.get(url).call()?;
    response.body_mut().read_to_vec()?;
    Ok(response.status().as_u16())
}
