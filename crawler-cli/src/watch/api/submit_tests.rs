//! Batches of URLs, over real connections.

use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use super::deed_tests::{count, done, refused};
use super::tests::filled;
use crate::store::StoreHandle as _;
use crate::watch::admin::served::Served;

#[test]
fn urls_are_submitted_and_what_is_wrong_is_said() {
    let served = filled();
    let body = json!({ "set": "more", "urls": [
        "https://a/1", "https://new/", "file:///etc/passwd", "https://user:word@[/", " https://new/2#part ",
    ]});
    let answer = done(&served, "urls", &body);
    let expected = json!({
        "set": "more", "new": 2, "known": 1, "gone": 0, "foreign": 0, "rejected": 2,
        "first_rejected": [
            { "index": 2, "url": "file:///etc/passwd", "why": "the scheme is not http or https" },
            { "index": 3, "url": "https://***@[/", "why": "not a URL" },
        ],
    });
    assert_eq!(answer, expected);
    assert_eq!(count(&served, "set=more"), 3);
    // Without a set, it is the one of the command line.
    let answer = done(&served, "urls", &json!({ "urls": ["https://new/"] }));
    assert_eq!(
        (&answer["set"], &answer["known"]),
        (&json!("added"), &json!(1))
    );
}

#[test]
fn a_batch_has_ten_thousand_urls() {
    let served = Served::start();
    let urls = |count: usize| {
        let urls = (0..count).map(|number| format!("https://a/{number}"));
        json!({ "urls": urls.collect::<Vec<_>>() })
    };
    assert_eq!(done(&served, "urls", &urls(10_000))["new"], 10_000);
    let more = refused(&served, "urls", "", &urls(10_001).to_string());
    assert_eq!(more, (413, "too-large".to_owned(), String::new()));
    // Of those that are wrong, the first hundred are named.
    let wrong = json!({ "urls": vec!["x".repeat(20_000); 300] });
    let answer = done(&served, "urls", &wrong);
    assert_eq!(answer["rejected"], 300);
    let named = answer["first_rejected"].as_array().expect("a list");
    assert_eq!(named.len(), 100);
    assert_eq!(
        named[0]["url"].as_str().map(|url| url.chars().count()),
        Some(201)
    );
    for path in ["urls/recheck", "urls/remove"] {
        let more = refused(&served, path, "", &urls(10_001).to_string());
        assert_eq!(more.0, 413, "{path}");
    }
    let value = done(&served, "urls/recheck", &urls(10_000));
    assert_eq!(value["not_watched"], 0, "{value}");
    let value = done(&served, "urls/remove", &json!({ "all": true }));
    assert_eq!(value, json!({ "removed": 10_000 }));
}

#[test]
fn lines_are_taken_with_a_token() {
    let served = Served::start();
    let token = served.token("program", true, None);
    let text = "\u{feff}https://a/\r\n\n# no\n https://b/ \nftp://c/";
    let send = |path: &str, text: &[u8]| {
        let mut request = format!(
            "POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: text/plain; charset=utf-8\r\nAuthorization: Bearer {token}\r\n\r\n",
            text.len()
        )
        .into_bytes();
        request.extend_from_slice(text);
        served.exchange(request)
    };
    let answer = send("urls?set=lines", text.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    for part in ["\"set\":\"lines\"", "\"new\":2", "\"index\":2", "ftp://c/"] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    for (path, text, status) in [
        ("urls", &b"# nothing\n"[..], 422),
        ("urls", b"https://\xff/", 400),
        ("urls?sets=a", b"https://a/", 400),
        ("urls/recheck", b"https://a/", 415),
        ("pause", b"", 415),
    ] {
        let answer = send(path, text);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{path}: {answer}"
        );
    }
}

#[test]
fn the_same_request_is_done_once() {
    let served = Served::start();
    let send = |key: &str, urls: &str| {
        let (status, head, value) =
            served.api("urls", &format!("Idempotency-Key: {key}\r\n"), urls);
        (status, head.contains("idempotency-replayed: true"), value)
    };
    let (a, b) = (
        r#"{"urls":["https://a/","x"]}"#,
        r#"{"urls":["https://b/"]}"#,
    );
    let (status, is_again, first) = send("k1", a);
    assert_eq!((status, is_again, &first["new"]), (202, false, &json!(1)));
    assert_eq!(send("k1", a), (202, true, first));
    let (status, _, problem) = send("k1", b);
    assert_eq!(
        (status, &problem["errors"][0]["header"]),
        (422, &json!("Idempotency-Key"))
    );
    let (_, is_again, other) = send("k2", a);
    assert_eq!((is_again, &other["known"]), (false, &json!(1)));
    // A key is that of one token.
    let key = "Idempotency-Key: k1\r\n";
    for name in ["one", "two"] {
        let token = served.token(name, true, None);
        let fields = format!("{key}Authorization: Bearer {token}\r\n");
        let (_, head, _) = served.api("urls", &fields, a);
        assert!(!head.contains("idempotency-replayed"), "{head}");
        let (_, head, _) = served.api("urls", &fields, a);
        assert!(head.contains("idempotency-replayed: true"), "{head}");
    }
}

#[test]
fn keys_have_a_form() {
    let served = Served::start();
    let longest = "k".repeat(200);
    let body = r#"{"urls":["https://a/"]}"#;
    for keys in [
        "Idempotency-Key: \r\n".to_owned(),
        "Idempotency-Key: a b\r\n".to_owned(),
        "Idempotency-Key: \u{e9}\r\n".to_owned(),
        format!("Idempotency-Key: {longest}k\r\n"),
        "Idempotency-Key: a\r\nIdempotency-Key: a\r\n".to_owned(),
    ] {
        let (status, _, named) = refused(&served, "urls", &keys, body);
        assert_eq!((status, &*named), (400, "Idempotency-Key"), "{keys}");
    }
    let fields = format!("Idempotency-Key: {longest}\r\n");
    assert_eq!(served.api("urls", &fields, body).0, 202);
}

#[test]
fn a_key_that_is_under_way_and_too_much_that_waits_are_said() {
    let served = Served::start();
    // The writer waits for the test.
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().expect("no panic");
    let (store, waits) = (served.store.clone(), Arc::clone(&gate));
    let (begun, began) = std::sync::mpsc::channel();
    let blocker = thread::spawn(move || {
        store.call(move |_| {
            let _ = begun.send(());
            drop(waits.lock());
            Ok(())
        })
    });
    began.recv().expect("begun");
    let body = r#"{"urls":["https://a/"]}"#;
    let key = "Idempotency-Key: k\r\n";
    let answers = thread::scope(|scope| {
        let first = scope.spawn(|| served.api("urls", key, body).0);
        // Which of the two comes first does not matter: one waits, and the other is told so.
        let second = scope.spawn(|| served.api("urls", key, body).0);
        let others: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| served.api("pause", "", r#"{"all":true}"#)))
            .collect();
        // Those that find no place are answered while the writer waits: nine of all have one.
        while others.iter().filter(|other| other.is_finished()).count() < 11 {
            thread::yield_now();
        }
        while !first.is_finished() && !second.is_finished() {
            thread::yield_now();
        }
        drop(held);
        let mut keyed = [first, second].map(|request| request.join().expect("no panic"));
        keyed.sort_unstable();
        let others = others
            .into_iter()
            .map(|other| other.join().expect("no panic"));
        (keyed, others.collect::<Vec<_>>())
    });
    blocker.join().expect("no panic").expect("done");
    let (keyed, others) = answers;
    // The other may have found no place.
    assert!(matches!(keyed, [202 | 409 | 429, 409 | 429]), "{keyed:?}");
    let busy: Vec<_> = others
        .iter()
        .filter(|(status, ..)| *status == 429)
        .collect();
    assert!(busy.len() >= 11, "{}", busy.len());
    assert!(
        busy.iter()
            .all(|(_, head, _)| head.contains("retry-after: 1\r\n"))
    );
    assert!(
        others
            .iter()
            .all(|(status, ..)| matches!(status, 200 | 429))
    );
}
