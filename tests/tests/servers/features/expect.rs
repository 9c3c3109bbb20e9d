//! `Expect: 100-continue` (RFC 9110 §10.1.1).

use std::time::Duration;

use courser::{Request, Response};

use super::bodies::next_is_right;
use super::present;
use super::uploads::{body, echoed};
use crate::matrix::{Bench, Outcome};
use crate::quirk::Quirk;

/// The server asks for the body with 100 (Continue), and gets it whole.
pub(crate) fn accepted(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let body = body(100_000);
    let mut request = Request::post("/echo", body.clone());
    request.expect_continue(WAIT);
    let mut response = Response::new();
    client.call(&mut request, &mut response).unwrap();
    present(&response)?;
    assert_eq!(
        (response.status(), response.body()),
        (200, &echoed(&body)[..])
    );
    next_is_right(bench, &mut client);
    let asked = response.interim().any(|head| head.status() == 100);
    Some(match asked {
        true => Outcome::Works,
        false => Outcome::Copes(Quirk::NeverContinues),
    })
}

/// The server refuses the body, and the client does not send it.
pub(crate) fn refused(bench: &Bench<'_>) -> Option<Outcome> {
    let mut client = bench.client()?;
    let mut request = Request::post("/reject", body(100_000));
    request.expect_continue(WAIT);
    let mut response = Response::new();
    let report = client.call(&mut request, &mut response).unwrap();
    present(&response)?;
    assert_eq!(response.status(), 413, "{response:?}");
    next_is_right(bench, &mut client);
    if response.interim().any(|head| head.status() == 100) {
        return Some(Outcome::Copes(Quirk::ContinuesThenRefuses));
    }
    Some(match report.bytes_out() {
        0..1000 => Outcome::Works,
        _ => Outcome::Copes(Quirk::NeverContinues),
    })
}

/// How long the client waits for 100 (Continue). Servers that never send it cost this time.
const WAIT: Duration = Duration::from_secs(10);
