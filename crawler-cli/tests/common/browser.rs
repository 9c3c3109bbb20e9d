//! Headless Chromium, driven by WebDriver (https://www.w3.org/TR/webdriver2/) as a person would: it goes to pages, clicks
//! and types. What its console and its network have seen can be asked for.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::read_head;
use super::service::PATIENCE;

/// A browser with one tab, a profile of its own, and no way to names.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver runs");
        let lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let mut ports = lines.map_while(Result::ok).filter_map(|line| {
            let port = line.split_once("successfully on port ")?.1;
            port.trim_end_matches('.').parse().ok()
        });
        let port = ports.next().expect("chromedriver says its port");
        let profile = tempfile::tempdir().expect("a folder");
        let options = json!({
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                "--hide-scrollbars", "--force-device-scale-factor=1",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                format!("--user-data-dir={}", profile.path().display()),
            ],
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            _profile: profile,
        };
        let session = browser.ask("POST", "/session", &wanted);
        let id = session["sessionId"].as_str();
        browser.session = format!("/session/{}", id.expect("a session"));
        browser
    }

    pub(crate) fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// The result of the body of a function.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait_for(&self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        // A page may be on its way, and what is asked for not there yet.
        let script = format!("try {{ return !!({expression}) }} catch {{ return false }}");
        while self.run(&script) != Value::Bool(true) {
            let text = "return location.href + '\\n' + document.body.innerText";
            assert!(Instant::now() < end, "{expression}: {}", self.run(text));
            thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    #[track_caller]
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let element = self.find(selector);
        self.post(
            &format!("/element/{element}/value"),
            &json!({ "text": text }),
        );
    }

    /// Presses and lets go of a key, wherever the focus is.
    pub(crate) fn press(&self, key: char) {
        let actions = [
            json!({ "type": "keyDown", "value": key }),
            json!({ "type": "keyUp", "value": key }),
        ];
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("/actions", &json!({ "actions": [keyboard] }));
    }

    /// A command of the Chrome DevTools Protocol.
    pub(crate) fn tell(&self, command: &str, params: &Value) -> Value {
        self.post(
            "/goog/cdp/execute",
            &json!({ "cmd": command, "params": params }),
        )
    }

    /// The whole page as a PNG.
    pub(crate) fn shot(&self) -> Vec<u8> {
        let shot = self.tell(
            "Page.captureScreenshot",
            &json!({ "captureBeyondViewport": true }),
        );
        let data = shot["data"].as_str().expect("a picture");
        BASE64_STANDARD.decode(data).expect("Base64")
    }

    /// What was logged since the last question: errors and warnings of the console.
    pub(crate) fn console(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }));
        let entries = entries.as_array().expect("a list").iter();
        entries.map(|entry| entry["message"].to_string()).collect()
    }

    /// The addresses that were asked since the last question.
    pub(crate) fn requests(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({ "type": "performance" }));
        let entries = entries.as_array().expect("a list").iter();
        let events = entries.filter_map(|entry| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let is_request = event["message"]["method"] == "Network.requestWillBeSent";
            let url = event["message"]["params"]["request"]["url"].as_str()?;
            is_request.then(|| url.to_owned())
        });
        events.collect()
    }

    #[track_caller]
    fn find(&self, selector: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.post("/element", &wanted);
        let id = found
            .as_object()
            .and_then(|found| found.values().next()?.as_str());
        id.expect("an element").to_owned()
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("{}{path}", self.session), body)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (head, answer) = self
            .exchange(method, path, &body.to_string())
            .expect("answered");
        assert!(
            head.starts_with("HTTP/1.1 200 "),
            "{method} {path}: {answer}"
        );
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["value"].take()
    }

    /// The head and the body of an answer.
    fn exchange(&self, method: &str, path: &str, body: &str) -> io::Result<(String, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        // The driver does not close the connection.
        let mut reader = BufReader::new(stream);
        let head = read_head(&mut reader);
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|(_, value)| value.trim().parse().ok());
        let mut body = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
        reader.read_exact(&mut body)?;
        let body = String::from_utf8(body).map_err(io::Error::other)?;
        Ok((head, body))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends with its session, but not with its driver.
        let _ = self.exchange("DELETE", &self.session, "");
        // It may have ended.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
