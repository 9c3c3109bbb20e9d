//! Many requests on one connection before their answers.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use courser::{Call, PipelineClient, PipelineConfig, Request, Response, Sent};
use tests::script::PATIENCE;

use crate::matrix::{Bench, Outcome, patient};
use crate::quirk::Quirk;
use crate::running::{Flavor, upstream};
use crate::site;

/// A hundred calls at once on one connection: each gets its own answer, in the order of the requests.
pub(crate) fn hundred(bench: &Bench<'_>) -> Option<Outcome> {
    let upstream = upstream(bench.server(Flavor::Plain)?);
    let mut config = PipelineConfig {
        host: patient(),
        max_pending: NonZeroUsize::new(100).unwrap(),
        ..PipelineConfig::default()
    };
    config.host.max_connections = NonZeroUsize::MIN;
    let mut client = PipelineClient::new(upstream, config).unwrap();
    for number in 0..site::NUMBERS {
        let request = Request::get(format!("/n/{number}"));
        let call = Call::new(request, Response::new());
        client.submit(call.tag(number).timeout(FORGOTTEN));
    }
    let mut done = 0;
    let mut unanswered = 0;
    let mut in_order = true;
    while let Some(completion) = client.wait(Some(PATIENCE)).unwrap().done() {
        done += 1;
        if let Err(error) = completion.outcome {
            assert!(error.is_timeout(), "{error:?}");
            assert_eq!(error.sent(), Sent::NoReplyByte);
            unanswered += 1;
            continue;
        }
        if completion.response.status() == 404 {
            return None;
        }
        let expected = completion.tag.to_string();
        assert_eq!(completion.response.body(), expected.as_bytes());
        in_order &= completion.tag + 1 == done;
    }
    assert_eq!(done, site::NUMBERS);
    if unanswered > 0 {
        one_at_a_time(&mut client);
        return Some(Outcome::Copes(Quirk::ForgetsRequests));
    }
    Some(match client.counters().opened {
        1 => {
            assert!(in_order, "answers in another order than the requests");
            assert!(!client.pipeline_counters().serial);
            Outcome::Works
        }
        _ => Outcome::Copes(Quirk::NoPipelining),
    })
}

/// The client learns that the server forgets requests, and then every call is answered.
fn one_at_a_time(client: &mut PipelineClient) {
    let began = Instant::now();
    while !client.pipeline_counters().serial {
        assert!(began.elapsed() < PATIENCE, "{:?}", client.counters());
        client.maintain(Duration::from_millis(10)).unwrap();
    }
    for number in 0..10 {
        let request = Request::get(format!("/n/{number}"));
        client.submit(Call::new(request, Response::new()).tag(number));
    }
    let mut done = 0;
    while let Some(completion) = client.wait(Some(PATIENCE)).unwrap().done() {
        completion.outcome.unwrap();
        let expected = completion.tag.to_string();
        assert_eq!(completion.response.body(), expected.as_bytes());
        done += 1;
    }
    assert_eq!(done, 10);
}

/// After which a call is held to be forgotten by the server, on a busy machine too.
const FORGOTTEN: Duration = Duration::from_secs(15);
