//! Connections that cannot be made, and the deadline of one call. Other limits in time are in
//! `engine/tests/all/scenarios`; deadlines and retries are in `engine/tests/sim`, and in the tables of
//! `engine/src/policy/{retry,timeouts}.rs`.
use std::time::Duration;

use courser::{
    Call, Completion, ErrorKind, HostClient, HostConfig, HttpClient, Misuse, PipelineClient,
    PipelineConfig, Request, Response, Shared, SharedConfig, TimeLimit, Upstream,
};
use tests::clients::{any_client, any_config, client};
use tests::script::{Server, connection};

/// A call that blocks has its own deadline and its own settings, whatever the client, through the trait of all.
#[test]
fn a_blocking_call_has_a_deadline_of_its_own() {
    let server = Server::every(connection().request());
    let limit = Duration::from_millis(30);
    let call = |target: String| {
        let request = Request::get(target);
        Call::new(request, Response::new()).timeout(limit).tag(7)
    };
    let assert_late = |done: Completion| {
        let error = done.outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Timeout(TimeLimit::Total));
        assert_eq!(done.tag, 7);
        assert!(done.report.timings().total >= limit);
    };
    let any = format!("http://{}/", server.address());
    let upstream = Upstream::tcp([server.address()]);
    let mut one_host = client(&server);
    let mut any_host = any_client(any_config());
    let mut pipelined = PipelineClient::new(upstream.clone(), PipelineConfig::default()).unwrap();
    let clients: [(&mut dyn HttpClient, &str); 3] = [
        (&mut one_host, "/"),
        (&mut any_host, &any),
        (&mut pipelined, "/"),
    ];
    for (client, target) in clients {
        assert_late(client.perform(call(target.to_owned())));
        assert_eq!(client.in_flight(), 0);
    }
    let build = move |_| HostClient::new(upstream.clone(), HostConfig::default());
    let shared = Shared::spawn(SharedConfig::default(), build).unwrap();
    assert_late(shared.perform(call("/".to_owned())));
    let streaming = shared.perform(call("/".to_owned()).streaming(true));
    let error = streaming.outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Misuse(Misuse::Streamed));
}
