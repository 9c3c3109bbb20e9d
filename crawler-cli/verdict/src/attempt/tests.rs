use proptest::prelude::*;

use super::*;

/// The requests for a URL of an unknown host that gets these answers, and what follows from the last one.
fn ask(answers: &[Evidence]) -> (Vec<Ask>, Step) {
    let facts = HeadFacts::default();
    let mut attempt = Attempt::new(Ask::Head);
    let mut asks = Vec::new();
    for (at, evidence) in answers.iter().enumerate() {
        asks.push(attempt.begin_request(&facts));
        let step = attempt.handle(*evidence);
        if at + 1 == answers.len() {
            return (asks, step);
        }
        match step {
            Step::Confirm | Step::Parked => {}
            Step::Failed(_) => attempt.begin_again(),
            _ => panic!("{step:?} after {at} of {answers:?}"),
        }
    }
    panic!("no answers");
}

fn status(status: u16) -> Evidence {
    Evidence::Answer(ResponseFacts::of_status(status))
}

fn later(status: u16) -> Evidence {
    Evidence::Answer(ResponseFacts {
        retry_after: true,
        ..ResponseFacts::of_status(status)
    })
}

const fn failure(cause: Cause) -> Evidence {
    Evidence::Failure(cause)
}

const OK: Step = Step::Judged(Verdict::Ok);

const fn bad(cause: Cause) -> Step {
    Step::Judged(Verdict::Failed(cause))
}

use Ask::{FirstByte, Get, Head as Hd};

#[test]
fn head_first_and_every_negative_confirmed_by_get() {
    #[rustfmt::skip]
    let table: &[(&[Evidence], &[Ask], Step)] = &[
        // 2xx and 304 are final, and so are 401 and 407.
        (&[status(200)], &[Hd], OK),
        (&[status(299)], &[Hd], OK),
        (&[status(304)], &[Hd], OK),
        (&[status(401)], &[Hd], bad(Cause::Auth)),
        (&[status(407)], &[Hd], bad(Cause::Auth)),
        (&[status(301)], &[Hd], Step::Redirected),
        (&[status(308)], &[Hd], Step::Redirected),
        // 429, and 503 with Retry-After: parked, never doubled by a GET.
        (&[status(429)], &[Hd], Step::Parked),
        (&[later(503)], &[Hd], Step::Parked),
        (&[later(503), status(429), status(200)], &[Hd, Hd, Hd], OK),
        // 405 and 501: GET.
        (&[status(405), status(200)], &[Hd, FirstByte], OK),
        (&[status(501), status(206)], &[Hd, FirstByte], OK),
        // Any other status from 400 on: a GET of the first byte. 200, 206 and 416 are alive.
        (&[status(404), status(404)], &[Hd, FirstByte], bad(Cause::Status404)),
        (&[status(410), status(410)], &[Hd, FirstByte], bad(Cause::Status410)),
        (&[status(404), status(200)], &[Hd, FirstByte], OK),
        (&[status(410), status(206)], &[Hd, FirstByte], OK),
        (&[status(403), status(416)], &[Hd, FirstByte], OK),
        (&[status(999), status(999)], &[Hd, FirstByte], bad(Cause::Blocked)),
        (&[status(451), status(451)], &[Hd, FirstByte], bad(Cause::Blocked)),
        (&[status(418), status(418)], &[Hd, FirstByte], bad(Cause::Status4xx(418))),
        (&[status(500), status(404)], &[Hd, FirstByte], bad(Cause::Status404)),
        (&[status(404), status(302)], &[Hd, FirstByte], Step::Redirected),
        (&[status(404), status(401)], &[Hd, FirstByte], bad(Cause::Auth)),
        (&[status(404), status(429), status(404)], &[Hd, FirstByte, FirstByte], bad(Cause::Status404)),
        // Reset, the end of the connection and garbage after HEAD: the same.
        (&[failure(Cause::Reset), status(200)], &[Hd, FirstByte], OK),
        (&[failure(Cause::Truncated), status(200)], &[Hd, FirstByte], OK),
        (&[failure(Cause::Protocol), status(410)], &[Hd, FirstByte], bad(Cause::Status410)),
        (&[failure(Cause::Reset), failure(Cause::Reset)], &[Hd, FirstByte], Step::Failed(Cause::Reset)),
        // 400, 403, 406 or 5xx to the ranged form: once more without Range.
        (&[status(404), status(400), status(200)], &[Hd, FirstByte, Get], OK),
        (&[status(404), status(406), status(404)], &[Hd, FirstByte, Get], bad(Cause::Status404)),
        (&[status(403), status(403), status(403)], &[Hd, FirstByte, Get], bad(Cause::Blocked)),
        (&[status(500), status(500), status(200)], &[Hd, FirstByte, Get], OK),
        (&[status(500), status(503), status(500)], &[Hd, FirstByte, Get], Step::Failed(Cause::Status5xx(500))),
        (&[status(503), status(503), status(503)], &[Hd, FirstByte, Get], Step::Failed(Cause::Status5xx(503))),
        (&[status(405), status(405)], &[Hd, FirstByte], bad(Cause::Status4xx(405))),
        // 416 means something only after a ranged GET.
        (&[status(400), status(400), status(416)], &[Hd, FirstByte, Get], bad(Cause::Status4xx(416))),
        (&[status(416), status(416)], &[Hd, FirstByte], OK),
        // After a timeout the next attempt uses GET.
        (&[failure(Cause::FirstByteTimeout)], &[Hd], Step::Failed(Cause::FirstByteTimeout)),
        (&[failure(Cause::FirstByteTimeout), status(200)], &[Hd, FirstByte], OK),
        (&[failure(Cause::Timeout), failure(Cause::Timeout)], &[Hd, FirstByte], Step::Failed(Cause::Timeout)),
        // Without a connection, HEAD was not at fault.
        (&[failure(Cause::Refused), status(200)], &[Hd, Hd], OK),
        (&[failure(Cause::ConnectTimeout), status(200)], &[Hd, Hd], OK),
        (&[failure(Cause::DnsServfail), status(200)], &[Hd, Hd], OK),
        (&[failure(Cause::DnsNxdomain)], &[Hd], bad(Cause::DnsNxdomain)),
        (&[failure(Cause::TlsExpired)], &[Hd], Step::Failed(Cause::TlsExpired)),
        // What follows a failed GET is another GET.
        (&[failure(Cause::Reset), failure(Cause::Reset), status(200)], &[Hd, FirstByte, FirstByte], OK),
        (&[status(500), status(500), status(500), status(200)], &[Hd, FirstByte, Get, Get], OK),
        // No status of HTTP.
        (&[status(600), status(600)], &[Hd, FirstByte], bad(Cause::Protocol)),
        (&[status(300), status(300)], &[Hd, FirstByte], bad(Cause::Protocol)),
        (&[status(306), status(200)], &[Hd, FirstByte], OK),
    ];
    for (answers, asks, step) in table {
        assert_eq!(ask(answers), (asks.to_vec(), *step), "{answers:?}");
    }
}

#[test]
fn accepted_statuses_are_good_and_challenges_are_blocked() {
    let accepted = |status| {
        Evidence::Answer(ResponseFacts {
            is_accepted: true,
            ..ResponseFacts::of_status(status)
        })
    };
    for code in [403, 404, 429, 500, 999] {
        assert_eq!(ask(&[accepted(code)]), (vec![Hd], OK), "{code}");
    }
    let blocked = |status| {
        Evidence::Answer(ResponseFacts {
            is_blocked: true,
            ..ResponseFacts::of_status(status)
        })
    };
    assert_eq!(ask(&[blocked(200)]), (vec![Hd], bad(Cause::Blocked)));
    let twice = [blocked(503), blocked(503), blocked(503)];
    assert_eq!(ask(&twice), (vec![Hd, FirstByte, Get], bad(Cause::Blocked)));
}

#[test]
fn what_the_answers_say_about_head() {
    use HeadVerdict::*;
    #[rustfmt::skip]
    let table: &[(&[Evidence], Option<HeadVerdict>)] = &[
        (&[status(200)], Some(Sufficient)),
        (&[status(302)], Some(Sufficient)),
        (&[status(401)], Some(Sufficient)),
        (&[status(429)], None),
        (&[status(405)], Some(Refused)),
        (&[status(404)], None),
        (&[status(404), status(404)], Some(Confirmed)),
        (&[status(404), status(200)], Some(Lied)),
        (&[status(404), status(302)], Some(Lied)),
        (&[status(500), status(404)], Some(Confirmed)),
        (&[status(500), status(500), status(500)], None),
        (&[failure(Cause::Reset), failure(Cause::Reset)], None),
        (&[failure(Cause::Reset), status(200)], Some(Lied)),
        (&[failure(Cause::FirstByteTimeout)], None),
        (&[failure(Cause::FirstByteTimeout), status(200)], Some(Lied)),
        (&[failure(Cause::Refused)], None),
    ];
    for (answers, expected) in table {
        let facts = HeadFacts::default();
        let mut attempt = Attempt::new(Ask::Head);
        for evidence in *answers {
            attempt.begin_request(&facts);
            if let Step::Failed(_) = attempt.handle(*evidence) {
                attempt.begin_again();
            }
        }
        assert_eq!(attempt.take_head_verdict(), *expected, "{answers:?}");
    }
}

proptest! {
    /// Whatever a server answers: at most three requests an attempt, HEAD at most once, and an end.
    #[test]
    fn at_most_three_requests_an_attempt(
        first in prop::sample::select(vec![Ask::Head, Ask::FirstByte, Ask::Get]),
        answers in prop::collection::vec((prop::option::of(100u16..1000), any::<[bool; 3]>()), 4),
    ) {
        let facts = HeadFacts::default();
        let mut attempt = Attempt::new(first);
        let mut asks = Vec::new();
        for (code, [retry_after, is_blocked, is_accepted]) in answers {
            asks.push(attempt.begin_request(&facts));
            let evidence = match code {
                Some(status) => Evidence::Answer(ResponseFacts {
                    status,
                    retry_after,
                    is_blocked,
                    is_accepted,
                }),
                None if retry_after => Evidence::Failure(Cause::Reset),
                None => Evidence::Failure(Cause::FirstByteTimeout),
            };
            match attempt.handle(evidence) {
                Step::Confirm => {}
                Step::Parked => {
                    asks.pop();
                }
                _ => {
                    prop_assert!(asks.len() <= usize::from(MOST_REQUESTS));
                    return Ok(());
                }
            }
            prop_assert!(asks.len() < usize::from(MOST_REQUESTS), "{asks:?}");
            let heads = asks.iter().filter(|ask| **ask == Ask::Head).count();
            prop_assert!(heads <= 1);
        }
    }
}
