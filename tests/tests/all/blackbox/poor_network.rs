//! A network with too few ports, which belongs to the test alone. What else may happen to a connection is in
//! `engine/tests/sim`, and its errors are in the tables of `engine/src/proto/tests.rs`.

use std::fs;
use std::process::Command;
use std::time::Duration;

use courser::{BatchConfig, Call, Request, Response};
use tests::alone::{descriptors, is_alone, itself};
use tests::clients::{assert_none_left, client, drive_all};
use tests::script::{Gate, Server, connection, eventually};

use super::OK;

/// In a network namespace that has nothing but loopback. Needs root, or user namespaces.
#[test]
#[ignore = "needs a network namespace"]
fn ports_run_out() {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let set_up = "ip link set lo up && exec \"$0\" \"$@\"";
    command.args(["--net", "sh", "-c", set_up]).arg(itself());
    if !is_alone("blackbox::poor_network::ports_run_out", &mut command) {
        return;
    }
    let gate = Gate::new();
    let held = connection().request().wait(&gate).send(OK).always(OK);
    let server = Server::every(held);
    let mut client = client(&server);
    let before = descriptors();
    let ports = "/proc/sys/net/ipv4/ip_local_port_range";
    let usual = fs::read_to_string(ports).unwrap();
    fs::write(ports, "40000 40007").unwrap();
    for tag in 0..64 {
        client.submit(Call::new(Request::get("/"), Response::new()).tag(tag));
    }
    eventually("all ports are in use", || {
        let done = client.wait(Some(Duration::from_millis(1)));
        assert!(done.unwrap().done().is_none());
        gate.arrived() == 8
    });
    assert_eq!((client.in_flight(), client.counters().open), (64, 8));
    gate.open();
    let completions = drive_all(&mut client);
    assert_eq!(completions.len(), 64);
    for done in completions {
        done.outcome.unwrap();
    }
    // With ports again, it is as if nothing had been.
    fs::write(ports, usual).unwrap();
    let calls = (0..64).map(|tag| Call::new(Request::get("/"), Response::new()).tag(tag));
    for (_, done) in client.call_many(calls, BatchConfig::default()) {
        done.outcome.unwrap();
    }
    client.close_idle();
    server.wait_all_ended();
    // Those of the server are closed by threads that end in their own time, and one of them may have been counted before.
    eventually("all connections are gone", || descriptors() <= before);
    assert_none_left(client, [&server]);
}
