//! The routes, over real connections.

use jiff::Timestamp;
use serde_json::Value;

use crate::check::guard::Hold;
use crate::store::{Buried, HostHold, NewDeadLetter, Notice, StoreHandle as _};
use crate::watch::admin::served::Served;
use crate::watch::control::{By, Command, Schedules, perform};

/// The status, the head and the value of an answer.
fn get(served: &Served, path: &str) -> (u16, String, Value) {
    let answer = served.get(path);
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let value = serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON: {answer}"));
    (
        head[9..12].parse().expect("a status"),
        head.to_owned(),
        value,
    )
}

fn good(served: &Served, path: &str) -> Value {
    let (status, head, value) = get(served, path);
    assert_eq!(status, 200, "{path}: {value}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    value
}

/// A store with three hosts that are held, five URLs, three dead letters and some notices.
pub(super) fn filled() -> Served {
    let served = Served::with(
        Default::default(),
        "[[schedule]]\nname = 'yearly'\ncron = '@yearly'\njob = { command = ['true'] }\n",
    );
    let urls = [
        "https://a/1",
        "http://b/",
        "https://a/2",
        "https://c/",
        "https://c/1",
    ];
    let stored = served.store.call(move |engine| {
        let now = Timestamp::UNIX_EPOCH;
        let by = By {
            who: "me".to_owned(),
            now,
        };
        for url in urls {
            let (set, urls) = ("docs".to_owned(), vec![url.to_owned()]);
            perform(
                engine,
                &Command::Add { set, urls },
                &by,
                &Schedules::default(),
            )?;
        }
        for root in ["https://a/", "http://b/", "https://c/"] {
            let host = engine.host(root)?.expect("known").host.id;
            let (sampled_at, was_sample_good) = (None, false);
            let hold = Hold {
                since: now,
                sampled_at,
                was_sample_good,
            };
            engine.save_hold(&HostHold {
                host,
                root: root.to_owned(),
                hold,
                held: 0,
                ending: None,
            })?;
        }
        for text in ["x", "y\u{202e}", "z"] {
            let letter = NewDeadLetter {
                reason: "invalid_url".to_owned(),
                attempts: 1,
                last: String::new(),
                first_at: now,
                last_at: now,
            };
            engine.bury(&Buried::Text(text.to_owned()), &letter)?;
            let (kind, text) = ("guard".to_owned(), text.to_owned());
            let (host, who) = (None, None);
            engine.note(&Notice {
                at: now,
                kind,
                host,
                who,
                text,
            })?;
        }
        Ok(())
    });
    stored.expect("stored");
    served
}

#[test]
fn lists_are_walked_without_gaps_or_repeats() {
    let served = filled();
    for (path, rows) in [
        ("urls?", 5),
        ("urls?set=docs&", 5),
        ("urls?host=https%3A%2F%2Fa%2F&", 2),
        ("urls?state=NEW&", 5),
        ("urls?state=GONE&", 0),
        ("urls?set=other&", 0),
        ("hosts?", 3),
        ("hosts?name=a&", 1),
        ("holds?", 3),
        ("dead-letters?", 3),
        ("dead-letters?reason=invalid_url&", 3),
        ("dead-letters?reason=attempts&", 0),
        ("notices?", 3),
    ] {
        let all = good(&served, &format!("/api/v1/{path}"));
        let all = all["items"].as_array().expect("items").clone();
        assert_eq!(all.len(), rows, "{path}");
        let (mut walked, mut next) = (Vec::new(), String::new());
        loop {
            let page = good(&served, &format!("/api/v1/{path}limit=1{next}"));
            let items = page["items"].as_array().expect("items");
            assert!(items.len() <= 1, "{page}");
            walked.extend(items.iter().cloned());
            // A log has always a next place.
            let is_end = path.starts_with("notices") && items.is_empty();
            match page["next"].as_str().filter(|_| !is_end) {
                Some(after) => next = format!("&after={}", after.replace("://", "%3A%2F%2F")),
                None => break,
            }
        }
        assert_eq!(walked, all, "{path}");
    }
}

#[test]
fn one_thing_is_told_with_all_that_is_known() {
    let served = filled();
    let url = good(&served, "/api/v1/url?url=https%3A%2F%2Fa%2F1");
    assert_eq!(url["state"], "NEW");
    assert_eq!(url["sets"][0], "docs");
    assert!(url["changes"].is_array() && url["dead_letters"].is_array());
    let host = good(&served, "/api/v1/host?root=https%3A%2F%2Fa%2F");
    assert_eq!(
        (&host["host"], &host["urls"]),
        (&"https://a/".into(), &2.into())
    );
    assert_eq!(host["limits"]["requests_per_second"], 1.0);
    assert_eq!(host["limits"]["robots_delay_ms"], 3_000);
    assert_eq!(host["not_asked"][0]["reason"], "held");
    let hosts = good(&served, "/api/v1/hosts?name=a");
    assert_eq!(hosts["items"][0], host);
    let status = good(&served, "/api/v1/status");
    assert_eq!((&status["urls"], &status["hosts"]), (&5.into(), &3.into()));
    let letters = good(&served, "/api/v1/dead-letters?limit=1");
    let letter = &letters["items"][0];
    assert_eq!(letter["text"], "z");
    let path = format!("/api/v1/dead-letter?number={}", letter["id"]);
    assert_eq!(good(&served, &path), *letter);
    let schedules = good(&served, "/api/v1/schedules");
    let firings = &schedules["items"][0]["next_firings"];
    assert_eq!(firings.as_array().map(Vec::len), Some(3), "{schedules}");
    assert_eq!(
        good(&served, "/api/v1")["version"],
        env!("CARGO_PKG_VERSION")
    );
}

#[test]
fn text_of_others_cannot_act_on_a_terminal() {
    let served = filled();
    let answer = served.get("/api/v1/dead-letters");
    assert!(
        answer.contains("y\\u202e") && !answer.contains('\u{202e}'),
        "{answer}"
    );
    let answer = served.get("/api/v1/urls?%1b%5b2J=%e2%80%ae");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(
        !answer.contains('\u{1b}') && !answer.contains('\u{202e}'),
        "{answer}"
    );
}

#[test]
fn wrong_requests_are_problems() {
    let served = filled();
    for (path, status, parameter) in [
        ("status?x=1", 400, "x"),
        ("urls?limit=0", 400, "limit"),
        ("urls?limit=1001", 400, "limit"),
        ("urls?state=dead", 400, "state"),
        ("urls?host=a", 400, "host"),
        ("urls?after=x", 400, "after"),
        ("urls?set=a&set=b", 400, "set"),
        ("url", 400, "url"),
        ("host", 400, "root"),
        ("host?root=a", 400, "root"),
        ("hosts?after=1&sort=wait", 400, "sort"),
        ("holds?after=x", 400, "after"),
        ("dead-letters?since=yesterday", 400, "since"),
        ("dead-letters?since=", 400, "since"),
        ("dead-letters?host=", 400, "host"),
        ("dead-letters?host=a%20b", 400, "host"),
        ("dead-letters?host=http%3A%2F%2F%5B", 400, "host"),
        ("dead-letter", 400, "number"),
        ("changes?after=-1", 400, "after"),
        ("notices?after=x", 400, "after"),
        ("url?url=https%3A%2F%2Fa%2Fother", 404, ""),
        ("host?root=https%3A%2F%2Fother%2F", 404, ""),
        ("dead-letter?number=99", 404, ""),
        ("dead-letter?number=-9223372036854775808", 404, ""),
    ] {
        let (got, head, problem) = get(&served, &format!("/api/v1/{path}"));
        assert_eq!(got, status, "{path}: {problem}");
        assert!(
            head.contains("content-type: application/problem+json\r\n"),
            "{head}"
        );
        assert_eq!(problem["status"], status);
        let name = if status == 400 {
            "invalid-request"
        } else {
            "not-found"
        };
        assert_eq!(problem["type"], format!("urn:courser:problem:{name}"));
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        let named = problem["errors"][0]["parameter"].as_str();
        assert_eq!(named.unwrap_or_default(), parameter, "{problem}");
    }
}
