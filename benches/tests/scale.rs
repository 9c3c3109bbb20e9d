//! Memory is bounded for any number of hosts, connections and calls: short runs of the `scale` tool, with results that
//! do not depend on the machine.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use benches::alloc::{held_by_this_thread, on_this_thread};
use benches::memory::raise_descriptors;
use benches::scale::hosts::{Idle, unused, visit};
use benches::serve::Server;
use courser::{
    Call, Completion, HostClient, HostConfig, PipelineClient, PipelineConfig, Request, Response,
    Upstream,
};

#[test]
fn hosts_that_were_visited_leave_nothing() {
    let steps = visit(&[20_000, 60_000]).expect("answers");
    println!("{steps:?}");
    let [early, late] = steps[..] else {
        panic!("two steps")
    };
    // Hosts with connections, hosts that recently had connections, and hosts with calls.
    assert!(late.most_entries <= 900 + 1024 + 64, "{late:?}");
    // The cache of names is full before the first count.
    assert!(!late.grows_from(&early), "{steps:?}");
}

#[test]
fn a_live_host_is_small() {
    let idle = Idle::new(2000).expect("answers");
    println!("{} bytes, and {} for a name", idle.each, idle.name);
    assert!(idle.each <= 2048.0, "{}", idle.each);
    let unused = unused(1000).expect("answers");
    println!("{unused:?}");
    assert!(unused.each <= 2048.0, "{unused:?}");
}

#[test]
fn a_connection_takes_no_more_beside_more_of_them() {
    raise_descriptors().expect("a limit");
    let upstream = server();
    let held = |connections: usize| {
        let before = held_by_this_thread();
        let client = HostClient::new(upstream.clone(), host_config(connections));
        let mut client = client.expect("a client");
        for _ in 0..connections {
            let request = Request::get(format!("/gather/{connections}"));
            client.submit(Call::new(request, Response::new()));
        }
        while let Some(done) = client.wait(None).expect("an event queue") {
            done.outcome.expect("an answer");
        }
        assert_eq!(client.counters().idle, connections);
        held_by_this_thread() - before
    };
    // The memory of a client without connections is the same in all three cases.
    let (one, few, many) = (held(1), held(256), held(2048));
    let (of_few, of_many) = ((few - one) / 255, (many - one) / 2047);
    println!("{of_few} bytes for one of 256, {of_many} for one of 2048");
    assert!(of_many <= 1024 && of_many <= of_few + of_few / 4);
}

#[test]
fn answers_allocate_nothing_beside_many_pending() {
    let upstream = server();
    for pending in [1, 64, 1500] {
        let pending = NonZeroUsize::new(pending).expect("not zero");
        let config = PipelineConfig {
            host: host_config(2),
            max_pending: pending,
            ..PipelineConfig::default()
        };
        let mut client = PipelineClient::new(upstream.clone(), config).expect("a client");
        let all = 2 * pending.get();
        for _ in 0..all {
            client.submit(Call::new(Request::get("/13"), Response::new()));
        }
        let mut round = || {
            let before = on_this_thread();
            for _ in 0..4 * all {
                let done = client.wait(None).expect("an event queue");
                let done: Completion = done.expect("a completion");
                done.outcome.expect("an answer");
                client.submit(Call::new(done.request, done.response));
            }
            on_this_thread() - before
        };
        // The final sizes of buffers depend on how many responses one read returns. More than a thousand calls in one
        // iteration leave tables that shrink again, once for all calls.
        let steady = (0..8).map(|_| round()).min();
        let least = steady.unwrap_or(u64::MAX);
        assert!(200 * least <= 4 * all as u64, "{pending} pending: {least}");
    }
}

/// A server that runs until the test program ends.
fn server() -> Upstream {
    let server = Server::bind(0).expect("a loopback port");
    let upstream = Upstream::tcp([server.address()]);
    thread::spawn(move || server.run(None));
    upstream
}

fn host_config(connections: usize) -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::new(connections).expect("not zero"),
        idle_timeout: Duration::from_secs(600),
        ..HostConfig::default()
    }
}
