//! The routes that change something, over real connections.

use serde_json::{Value, json};

use super::tests::filled;
use crate::store::StoreHandle as _;
use crate::watch::admin::served::Served;
use crate::watch::config::ScheduleConfig;
use crate::watch::control::Schedules;

/// Has something done, and returns what is answered.
#[track_caller]
pub(super) fn done(served: &Served, path: &str, body: &Value) -> Value {
    let (status, head, value) = served.api(path, "", &body.to_string());
    assert!(matches!(status, 200 | 202), "{path} {body}: {value}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    value
}

/// What is refused: the status, the last part of its type, and the part of the request that is named.
#[track_caller]
pub(super) fn refused(
    served: &Served,
    path: &str,
    fields: &str,
    body: &str,
) -> (u16, String, String) {
    let (status, head, problem) = served.api(path, fields, body);
    assert!(
        head.contains("content-type: application/problem+json\r\n"),
        "{head}"
    );
    assert_eq!(problem["status"], status, "{problem}");
    let kind = problem["type"].as_str().unwrap_or_default();
    let kind = kind.rsplit(':').next().unwrap_or_default().to_owned();
    let part = &problem["errors"][0];
    let named = ["pointer", "header", "parameter"];
    let named = named.iter().find_map(|name| part[name].as_str());
    (status, kind, named.unwrap_or_default().to_owned())
}

pub(super) fn get(served: &Served, path: &str) -> Value {
    let answer = served.get(path);
    let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
    serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON: {answer}"))
}

/// How many URLs are in a list.
pub(super) fn count(served: &Served, query: &str) -> usize {
    let list = get(served, &format!("/api/v1/urls?limit=1000&{query}"));
    list["items"].as_array().map_or(0, Vec::len)
}

#[test]
fn urls_are_removed_and_asked_again() {
    let served = filled();
    let value = done(
        &served,
        "urls/recheck",
        &json!({ "urls": ["https://a/1", "https://u:w@no/"] }),
    );
    assert_eq!(
        (&value["not_watched"], &value["first_not_watched"][0]),
        (&json!(1), &json!("https://***@no/"))
    );
    for body in [
        json!({ "host": "a" }),
        json!({ "host": "https://a/" }),
        json!({ "set": "docs" }),
        json!({ "state": "new" }),
        json!({ "all": true }),
        json!({ "all": true, "after": "3" }),
    ] {
        assert!(
            done(&served, "urls/recheck", &body)["made_due"].is_u64(),
            "{body}"
        );
    }
    let value = done(
        &served,
        "urls/remove",
        &json!({ "set": "docs", "urls": ["https://a/1"] }),
    );
    assert_eq!(value["removed"], 1);
    assert_eq!(count(&served, "set=docs"), 4);
    assert_eq!(
        done(&served, "urls/remove", &json!({ "host": "a" })),
        json!({ "removed": 1 })
    );
    assert_eq!(
        done(&served, "urls/remove", &json!({ "set": "docs" })),
        json!({ "removed": 3 })
    );
    assert_eq!(count(&served, "set=docs"), 0);
}

#[test]
fn holds_pauses_and_dead_letters_are_ended() {
    let served = filled();
    let value = done(&served, "hosts/release", &json!({ "host": "a" }));
    assert_eq!(
        value,
        json!({ "released": [{ "host": "https://a/", "urls": 0 }] })
    );
    let value = done(&served, "hosts/confirm", &json!({ "host": "http://b/" }));
    assert_eq!(
        value,
        json!({ "confirmed": [{ "host": "http://b/", "urls": 0 }] })
    );
    let (status, ..) = refused(&served, "hosts/confirm", "", r#"{"host":"a"}"#);
    assert_eq!(status, 404);

    let all = json!({ "all": true });
    assert_eq!(
        done(&served, "pause", &all),
        json!({ "paused": ["everything"] })
    );
    let host = json!({ "host": "a" });
    assert_eq!(
        done(&served, "pause", &host),
        json!({ "paused": ["https://a/"] })
    );
    assert_eq!(
        done(&served, "resume", &host),
        json!({ "resumed": ["https://a/"] })
    );
    assert_eq!(refused(&served, "resume", "", &host.to_string()).0, 404);
    assert_eq!(
        done(&served, "resume", &all),
        json!({ "resumed": ["everything"] })
    );

    let letters = get(&served, "/api/v1/dead-letters");
    let number = &letters["items"][0]["id"];
    let value = done(&served, "dead-letters/drop", &json!({ "number": number }));
    assert_eq!(value, json!({ "dropped": 1 }));
    let body = json!({ "number": number }).to_string();
    for path in ["dead-letters/drop", "dead-letters/replay"] {
        assert_eq!(refused(&served, path, "", &body).0, 404);
    }
    let value = done(
        &served,
        "dead-letters/replay",
        &json!({ "reason": "invalid_url" }),
    );
    assert_eq!(value, json!({ "replayed": 0, "passed": 2 }));
    let since = json!({ "since": "2999-01-01T00:00:00Z" });
    assert_eq!(
        done(&served, "dead-letters/drop", &since),
        json!({ "dropped": 0 })
    );
    assert_eq!(
        done(
            &served,
            "dead-letters/replay",
            &json!({ "since": "3d", "queue": "other" })
        ),
        json!({ "replayed": 0, "passed": 0 })
    );
    assert_eq!(
        done(&served, "dead-letters/drop", &all),
        json!({ "dropped": 2 })
    );
    // Who did what is written down.
    let notices = get(&served, "/api/v1/notices")["items"].to_string();
    for kind in ["release", "confirm", "pause", "resume", "drop"] {
        assert!(
            notices.contains(&format!("\"kind\":\"{kind}\"")),
            "{kind}: {notices}"
        );
    }
    assert!(notices.contains("loopback"), "{notices}");
}

#[test]
fn a_schedule_that_runs_is_not_started_again() {
    let schedule = |name: &str, overlap: &str| {
        format!(
            "[[schedule]]\nname = '{name}'\ncron = '@yearly'\noverlap = '{overlap}'\njob = {{ command = ['true'] }}\n"
        )
    };
    let config =
        schedule("one", "forbid") + &schedule("two", "queue_one") + &schedule("all", "allow");
    let served = Served::with(Default::default(), &config);
    let path = std::path::Path::new("watch.toml");
    let loaded = crate::watch::config::Loaded::parse(&config, path, &[]).expect("valid");
    let schedules: &[ScheduleConfig] = &loaded.config.schedules;
    *served.operator.schedules.write().expect("no panic") = Schedules::from(schedules);
    let run = |name: &str| {
        let (status, _, value) =
            served.api("schedules/run", "", &json!({ "name": name }).to_string());
        (
            status,
            value["detail"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let queued = || (202, String::new());
    assert_eq!(run("one"), queued());
    for _ in 0..30 {
        assert_eq!(run("one"), (409, "one waits to run already".to_owned()));
    }
    assert_eq!((run("two"), run("two")), (queued(), queued()));
    let why = "two waits to run already, and has 1 more runs waiting".to_owned();
    assert_eq!(run("two"), (409, why));
    for _ in 0..100 {
        assert_eq!(run("all"), queued());
    }
    assert_eq!(run("all").0, 409);
    let jobs = served
        .store
        .call(|engine| engine.job_counts("schedule/one"));
    assert_eq!(jobs.expect("read").waiting, 1);

    let one = json!({ "name": "one" });
    let value = done(&served, "schedules/pause", &one);
    assert_eq!(value, json!({ "schedule": "one", "is_paused": true }));
    assert_eq!(
        get(&served, "/api/v1/schedules")["items"][0]["is_paused"],
        true
    );
    done(&served, "schedules/resume", &one);
    let other = refused(&served, "schedules/run", "", r#"{"name":"other"}"#);
    assert_eq!(other.0, 404);
}

#[test]
fn wrong_bodies_are_problems() {
    let served = filled();
    for (path, body, status, named) in [
        ("urls", r#"{"urls":[]}"#, 422, "#/urls"),
        (
            "urls",
            r#"{"urls":["https://a/"],"sets":"x"}"#,
            422,
            "#/sets",
        ),
        ("urls", r#"{"urls":["https://a/"],"set":""}"#, 422, ""),
        (
            "urls",
            r#"{"urls":["https://a/"],"set":"../../<x>"}"#,
            422,
            "",
        ),
        ("urls", r#"{"urls":[7]}"#, 422, "#/urls/0"),
        ("urls", r#"{"set":"x"}"#, 422, "#/urls"),
        ("urls", "[]", 422, "#"),
        ("urls", "{", 400, ""),
        ("urls?set=x", r#"{"urls":["https://a/"]}"#, 400, "set"),
        ("urls/recheck", "{}", 422, "#"),
        ("urls/recheck", r#"{"all":true,"set":"docs"}"#, 422, "#"),
        ("urls/recheck", r#"{"all":"yes"}"#, 422, "#/all"),
        (
            "urls/recheck",
            r#"{"all":true,"after":"x"}"#,
            422,
            "#/after",
        ),
        ("urls/recheck", r#"{"urls":[]}"#, 422, "#/urls"),
        (
            "urls/recheck",
            r#"{"urls":["https://a/1"],"after":"3"}"#,
            422,
            "#/after",
        ),
        ("urls/recheck", r#"{"state":"dead"}"#, 422, ""),
        ("urls/recheck", r#"{"set":"other"}"#, 404, ""),
        ("urls/recheck", r#"{"host":"other"}"#, 404, ""),
        ("urls/remove", "{}", 422, "#"),
        ("urls/remove", r#"{"set":"other","all":true}"#, 404, ""),
        ("hosts/release", "{}", 422, "#/host"),
        ("hosts/release", r#"{"host":"other"}"#, 404, ""),
        ("pause", "{}", 422, "#"),
        ("pause", r#"{"all":true,"host":"a"}"#, 422, "#"),
        ("pause", r#"{"host":"other"}"#, 404, ""),
        ("resume", r#"{"all":true}"#, 404, ""),
        ("dead-letters/replay", "{}", 422, "#"),
        ("dead-letters/drop", "{}", 422, "#"),
        (
            "dead-letters/drop",
            r#"{"all":true,"reason":"x"}"#,
            422,
            "#",
        ),
        (
            "dead-letters/drop",
            r#"{"since":"yesterday"}"#,
            422,
            "#/since",
        ),
        ("dead-letters/drop", r#"{"number":"1"}"#, 422, "#/number"),
        ("dead-letters/drop", r#"{"host":""}"#, 422, "#/host"),
        ("dead-letters/drop", r#"{"host":"a b"}"#, 422, "#/host"),
        (
            "dead-letters/replay",
            r#"{"host":"http://["}"#,
            422,
            "#/host",
        ),
        (
            "schedules/run",
            r#"{"schedule":"yearly"}"#,
            422,
            "#/schedule",
        ),
        ("schedules/pause", r#"{"name":"other"}"#, 404, ""),
    ] {
        let (got, kind, part) = refused(&served, path, "", body);
        assert_eq!((got, &*part), (status, named), "{path} {body}");
        let expected = if status == 404 {
            "not-found"
        } else {
            "invalid-request"
        };
        assert_eq!(kind, expected, "{path} {body}");
    }
    for path in [
        "url",
        "host",
        "hosts",
        "holds",
        "dead-letters",
        "dead-letter",
        "schedules",
        "changes",
        "notices",
    ] {
        let (status, head, _) = served.api(path, "", "{}");
        assert_eq!(status, 405, "{path}");
        assert!(
            head.to_lowercase().contains("\r\nallow: get,head"),
            "{head}"
        );
    }
    let answer = served.get("/api/v1/urls/recheck");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert_eq!(count(&served, ""), 5);
}
