//! How many connections there are, and how long they live: that the options reach the pool. What it does with them is in
//! `engine/src/policy/pool/tests.rs`, beside a model.

use std::num::NonZeroU64;
use std::time::Duration;

use courser::{HostConfig, Response};
use tests::clients::{assert_nothing_left, client_with, config, drive_until};
use tests::script::{Server, connection};

use super::OK;

#[test]
fn p08b_a_connection_serves_no_more_than_its_requests() {
    let server = Server::every(connection().always(OK));
    let config = HostConfig {
        max_requests: NonZeroU64::new(3),
        ..config()
    };
    let mut client = client_with(&server, config);
    for _ in 0..7 {
        client.get("/", &mut Response::new()).unwrap();
    }
    assert_eq!(server.served_by(), [0, 0, 0, 1, 1, 1, 2]);
    assert_nothing_left(client, &server);
}

#[test]
fn p08d_the_server_s_keep_alive_timeout_is_honoured() {
    let hinted = "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1, max=5\r\nContent-Length: 0\r\n\r\n";
    let server = Server::every(connection().always(hinted));
    let config = HostConfig {
        idle_timeout: Duration::from_secs(3600),
        ..config()
    };
    let mut client = client_with(&server, config);
    client.get("/", &mut Response::new()).unwrap();
    drive_until(&mut client, "it has expired", |client, _| {
        client.counters().idle == 0
    });
    assert_nothing_left(client, &server);
}
