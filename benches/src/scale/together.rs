//! The cost of many calls that end at the same moment: by their deadline, by the caller, or with their connection. This
//! happens when everything else is slow, so the cost for each call must not depend on their number. On the simulated
//! network, whose time is excluded.

use std::error::Error;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

use courser::net::Address;
use courser::net::sim::{Link, Peer, SimNet, SimServer};
use courser::{
    Call, CallId, HostClient, HostConfig, Overflow, PipelineClient, PipelineConfig, Request,
    Response, Upstream,
};

use super::apart::{Apart, inside};
use crate::load::drive::Driven;

/// Prints the nanoseconds for each call, by the number of calls.
///
/// # Errors
/// A call ended in an unexpected way.
pub(super) fn report(levels: &[usize]) -> Result<(), Box<dyn Error>> {
    print!("| what ends |");
    levels.iter().for_each(|level| print!(" {level}: ns |"));
    println!(" growth |\n|---|{}--:|", "--:|".repeat(levels.len()));
    for (what, run) in CASES {
        print!("| {what} |");
        let mut all = Vec::new();
        for &calls in levels {
            let mut best = Duration::MAX;
            for _ in 0..ROUNDS {
                best = best.min(run(calls)?);
            }
            all.push(best.as_nanos() as f64 / calls as f64);
        }
        all.iter().for_each(|nanos| print!(" {nanos:.0} |"));
        match all[..] {
            [first, .., last] => println!(" {:.2} |", last / first),
            _ => println!(" – |"),
        }
    }
    Ok(())
}

type Case = (&'static str, fn(usize) -> Result<Duration, Box<dyn Error>>);

const CASES: [Case; 11] = [
    ("waiting for a connection, by time", |calls| {
        by_time(&mut host(1, Silent)?, calls + 1)
    }),
    ("the same, cancelled", |calls| {
        cancelled(&mut host(1, Silent)?, calls + 1)
    }),
    ("on a connection each, by time", |calls| {
        by_time(&mut host(calls, Silent)?, calls)
    }),
    ("on a connection each, cancelled", |calls| {
        cancelled(&mut host(calls, Silent)?, calls)
    }),
    ("pipelined and sent, by time", |calls| {
        by_time(&mut pipeline(calls, WIDE, Silent)?, calls)
    }),
    ("pipelined and sent, one after the other", |calls| {
        in_turn(&mut pipeline(calls, WIDE, Silent)?, calls)
    }),
    ("pipelined and sent, cancelled", |calls| {
        cancelled(&mut pipeline(calls, WIDE, Silent)?, calls)
    }),
    ("pipelined and unsent, by time", |calls| {
        by_time(&mut pipeline(calls, NARROW, Silent)?, calls)
    }),
    ("pipelined and unsent, cancelled", |calls| {
        cancelled(&mut pipeline(calls, NARROW, Silent)?, calls)
    }),
    ("pipelined and unsent, for newer ones", overflow),
    ("bodies of which something is there", bodies),
];

/// All calls reach the same deadline.
fn by_time(client: &mut impl Driven, calls: usize) -> Result<Duration, Box<dyn Error>> {
    submit(client, 0..calls);
    // Time to start the calls and to send as much as possible.
    client.wait(ON_THE_WAY)?;
    inside(|| ended(client, calls))
}

/// Each call reaches its own deadline, one after the other.
fn in_turn(client: &mut impl Driven, calls: usize) -> Result<Duration, Box<dyn Error>> {
    let mut timeout = TIMEOUT;
    for _ in 0..calls {
        let call = Call::new(Request::get("/"), Response::new());
        client.submit(call.timeout(timeout));
        timeout += BETWEEN;
    }
    client.wait(ON_THE_WAY)?;
    inside(|| ended(client, calls))
}

/// The caller drops streamed bodies that all have bytes to read, the newest first.
fn bodies(calls: usize) -> Result<Duration, Box<dyn Error>> {
    let mut client = host(calls, Dripping)?;
    for _ in 0..calls {
        let call = Call::new(Request::get("/"), Response::new());
        client.submit(call.timeout(TIMEOUT).streaming(true));
    }
    let mut bodies = Vec::new();
    while bodies.len() < calls {
        let done = Driven::wait(&mut client, ON_THE_WAY)?.ok_or("no head")?;
        bodies.push(done.body.ok_or("no body")?);
    }
    client.maintain(ON_THE_WAY)?;
    inside(|| {
        for &body in bodies.iter().rev() {
            client.cancel(body);
        }
        match client.in_flight() {
            0 => Ok(()),
            left => Err(format!("{left} bodies are left").into()),
        }
    })
}

/// The caller cancels one call after the other, the newest first.
fn cancelled(client: &mut impl Driven, calls: usize) -> Result<Duration, Box<dyn Error>> {
    let ids = submit(client, 0..calls);
    client.wait(ON_THE_WAY)?;
    inside(|| {
        for &id in ids.iter().rev() {
            client.cancel(id);
        }
        ended(client, calls)
    })
}

/// The same number of further calls; each replaces the oldest call that was not sent.
fn overflow(calls: usize) -> Result<Duration, Box<dyn Error>> {
    let mut client = pipeline(calls, NARROW, Silent)?;
    submit(&mut client, 0..calls);
    client.wait(Some(ON_THE_WAY))?;
    // The sent calls are not replaced.
    let more = calls / 2;
    inside(|| {
        submit(&mut client, 0..more);
        for _ in 0..more {
            let done = client
                .wait(Some(ON_THE_WAY))?
                .ok_or("a call was not dropped")?;
            done.outcome.err().ok_or("an answer from nowhere")?;
        }
        Ok(())
    })
    .map(|time| time * 2)
}

fn submit(client: &mut impl Driven, calls: Range<usize>) -> Vec<CallId> {
    let call = || Call::new(Request::get("/"), Response::new()).timeout(TIMEOUT);
    calls.map(|_| client.submit(call())).collect()
}

/// Takes this number of completions, which all are errors.
fn ended(client: &mut impl Driven, calls: usize) -> Result<(), Box<dyn Error>> {
    for _ in 0..calls {
        let done = client.wait(2 * TIMEOUT)?.ok_or("a call has not ended")?;
        done.outcome.err().ok_or("an answer from nowhere")?;
    }
    Ok(())
}

fn host(
    connections: usize,
    server: impl SimServer + 'static,
) -> Result<HostClient<Apart>, courser::Error> {
    HostClient::with_net(upstream(), host_config(connections), net(WIDE, server))
}

fn pipeline(
    calls: usize,
    window: usize,
    server: impl SimServer + 'static,
) -> Result<PipelineClient<Apart>, courser::Error> {
    let pending = NonZeroUsize::new(calls).unwrap_or(NonZeroUsize::MIN);
    let config = PipelineConfig {
        host: host_config(1),
        max_pending: pending,
        max_pending_total: pending,
        overflow: Overflow::DropOldestUnsent,
        ..PipelineConfig::default()
    };
    PipelineClient::with_net(upstream(), config, net(window, server))
}

fn host_config(connections: usize) -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::new(connections).unwrap_or(NonZeroUsize::MIN),
        max_waiting: usize::MAX,
        ..HostConfig::default()
    }
}

fn upstream() -> Upstream {
    Upstream::tcp([([10, 0, 0, 1], 80).into()])
}

fn net(window: usize, server: impl SimServer + 'static) -> Apart {
    let net = SimNet::new(1);
    net.set_tracing(false);
    let address = Address::Tcp(([10, 0, 0, 1], 80).into());
    let latency = match window {
        WIDE => Duration::from_millis(1),
        _ => SLOW,
    };
    let link = Link {
        latency: latency..=latency,
        window,
        ..Link::default()
    };
    net.listen(address, link, server);
    Apart::new(net)
}

/// A server that reads everything and sends nothing.
struct Silent;

impl SimServer for Silent {
    fn on_data(&mut self, _peer: &mut Peer<'_>, _data: &[u8]) {}
}

/// A server that sends a head, and later one byte of the body.
struct Dripping;

impl SimServer for Dripping {
    fn on_data(&mut self, peer: &mut Peer<'_>, _data: &[u8]) {
        peer.send(*b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n");
        peer.wait(ON_THE_WAY / 2);
        peer.send(*b"H");
    }
}

/// Measurements of each case; the best one counts.
const ROUNDS: u32 = 3;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time from one deadline to the next.
const BETWEEN: Duration = Duration::from_millis(1);
/// Time after which the connections are open and requests were sent.
const ON_THE_WAY: Duration = Duration::from_secs(9);
/// Bytes that the network accepts at once: all requests, or only a few, of which the first are still in transit.
const WIDE: usize = 16 << 20;
const NARROW: usize = 256;
const SLOW: Duration = Duration::from_secs(4);
