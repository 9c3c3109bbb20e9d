//! The judged responses of llhttp's and h11's test suites (`data`), over real sockets: each case sent whole,
//! and each sent byte by byte. The verdict may not depend on it.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use courser::{HostConfig, Request, Response, Timeouts};
use serde_json::Value;
use tests::clients::{assert_nothing_left, client_with, config, look_away};
use tests::script::{Gate, PATIENCE, Script, Server, connection, eventually};

use super::OK;

#[test]
fn llhttp_responses() {
    examine("llhttp-response.jsonl", 69);
}

#[test]
fn h11_responses() {
    examine("h11-client.jsonl", 49);
}

struct Case {
    id: String,
    method: String,
    path: String,
    reply: Vec<u8>,
    close_after: bool,
    /// The verdict that we want.
    expected: Verdict,
    /// Verdicts that are right too.
    tolerated: Vec<Verdict>,
    no_reuse: bool,
}

#[derive(Clone, Debug)]
struct Verdict {
    ok: bool,
    status: Option<u64>,
    body: Option<Vec<u8>>,
}

fn examine(file: &str, count: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(file);
    let text = fs::read_to_string(path).unwrap();
    let cases: Vec<Case> = text.lines().map(Case::parse).collect();
    assert_eq!(cases.len(), count);
    let mut wrong = Vec::new();
    for case in &cases {
        let whole: fn(Script, &[u8]) -> Script = |script, bytes| script.send(bytes);
        let dripped: fn(Script, &[u8]) -> Script = |script, bytes| script.drip(bytes);
        for (how, send) in [("whole", whole), ("byte by byte", dripped)] {
            if let Err(verdict) = case.judge(send) {
                wrong.push(format!("{} sent {how}: {verdict}", case.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl Case {
    fn parse(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            id: text(&value["id"]),
            method: text(&value["request"]["method"]),
            path: text(&value["request"]["path"]),
            reply: decode_base64(value["response_b64"].as_str().unwrap()),
            close_after: value["close_after"].as_bool().unwrap(),
            expected: Verdict::parse(&value["expect"]),
            tolerated: value["expect_alt"]
                .as_array()
                .map(|verdicts| verdicts.iter().map(Verdict::parse).collect())
                .unwrap_or_default(),
            no_reuse: value["no_reuse"].as_bool().unwrap_or(false),
        }
    }

    fn judge(&self, send: fn(Script, &[u8]) -> Script) -> Result<(), String> {
        let sent = Gate::new();
        let script = send(connection().request(), &self.reply);
        let script = if self.close_after {
            script.half_close().wait(&sent)
        } else {
            script.wait(&sent).request().send(OK)
        };
        let server = Server::play([script, connection().always(OK)]);
        let config = HostConfig {
            timeouts: Timeouts {
                total: Some(PATIENCE),
                ..Timeouts::default()
            },
            ..config()
        };
        let mut client = client_with(&server, config);
        let mut response = Response::new();
        let mut request = Request::new(self.method.as_str(), self.path.as_str());
        let outcome = client.call(&mut request, &mut response);
        // Either all is sent, or the client has seen enough and closed.
        eventually("the reply is sent", || {
            sent.arrived() == 1 || server.ended() == 1
        });
        look_away();
        sent.open();
        if let Err(error) = &outcome
            && error.is_timeout()
        {
            return Err(format!("hangs: {error:?}"));
        }
        let right = |verdict: &Verdict| verdict.matches(outcome.is_ok(), &response);
        if !right(&self.expected) && !self.tolerated.iter().any(right) {
            let body = String::from_utf8_lossy(response.body());
            return Err(format!(
                "{outcome:?} {} {body:?} instead of {:?}",
                response.status(),
                self.expected
            ));
        }
        if let Err(error) = client.get("/next", &mut response) {
            return Err(format!("the next call: {error:?}"));
        }
        if response.body() != b"ok" {
            return Err("the next call got an answer that is not its own".to_owned());
        }
        if self.no_reuse && server.served_by() != [0, 1] {
            return Err("the connection was reused".to_owned());
        }
        assert_nothing_left(client, &server);
        Ok(())
    }
}

impl Verdict {
    fn parse(value: &Value) -> Self {
        Self {
            ok: value["ok"].as_bool().unwrap(),
            status: value["status"].as_u64(),
            body: value["body_b64"].as_str().map(decode_base64),
        }
    }

    fn matches(&self, ok: bool, response: &Response) -> bool {
        if !self.ok || !ok {
            return self.ok == ok;
        }
        self.status
            .is_none_or(|status| status == u64::from(response.status()))
            && self
                .body
                .as_ref()
                .is_none_or(|body| body == response.body())
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).expect("base64")
}
