//! courser's `HostClient`: all connections on one thread, by `submit` and `wait`.

use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Instant;

use courser::{Call, HostClient, HostConfig, Request, Response, Upstream};

use crate::measure::{Plan, Record, Run};

/// Measures courser.
///
/// # Errors
/// Nothing could be measured.
pub fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let mut client = client(plan)?;
    let mut run = Run::new(plan)?;
    // When the call of each tag was submitted last.
    let mut sent = vec![Instant::now(); plan.connections as usize];
    for tag in 0..plan.connections {
        if run.admit(Instant::now()) {
            let call = Call::new(Request::get(plan.url.path.as_str()), Response::new());
            client.submit(call.tag(tag.into()));
        }
    }
    while let Some(done) = client.wait(None)? {
        let now = Instant::now();
        let sent = &mut sent[done.tag as usize];
        match done.outcome {
            Ok(()) => run.answered(done.response.status(), *sent, now),
            Err(error) => run.failed(&error),
        }
        if run.admit(now) {
            *sent = now;
            client.submit(Call::new(done.request, done.response).tag(done.tag));
        }
    }
    run.opened(client.counters().opened);
    run.finish("host")
}

fn client(plan: &Plan) -> Result<HostClient, Box<dyn Error>> {
    let upstream = Upstream::tcp([plan.url.address]).with_host(&plan.url.authority);
    let max_connections = NonZeroUsize::new(plan.connections as usize).ok_or("no connection")?;
    let config = HostConfig {
        max_connections,
        ..HostConfig::default()
    };
    Ok(HostClient::new(upstream, config)?)
}
