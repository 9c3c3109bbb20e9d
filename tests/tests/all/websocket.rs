//! The example of a WebSocket client, with a server of aiohttp: plain, and under TLS.

#[path = "../../../engine/examples/websocket.rs"]
#[expect(dead_code, reason = "the example has a server of its own, too")]
mod example;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use courser::Config;
use tests::tls::Authority;

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(environment: &[(&str, &std::path::Path)]) -> Self {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/data/servers/websocket_server.py"
        );
        let mut command = Command::new("/usr/bin/python3");
        let command = command
            .arg(script)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 runs");
        let out = child.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("a port");
        let port = line.trim().parse().expect("a port");
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs python3-aiohttp"]
fn texts_come_back_from_aiohttp() {
    let server = Server::start(&[]);
    let url = format!("http://127.0.0.1:{}/talk", server.port);
    example::talk(Config::default(), &url).expect("the texts come back");
    let missing = format!("http://127.0.0.1:{}/other", server.port);
    let error = example::talk(Config::default(), &missing).unwrap_err();
    assert!(
        error.to_string().ends_with("the server answered 404"),
        "{error}"
    );
}

#[test]
#[ignore = "needs python3-aiohttp"]
fn texts_come_back_from_aiohttp_under_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new("authority");
    let leaf = authority.leaf(&["127.0.0.1"]);
    let (chain, key) = leaf.write_to(folder.path()).expect("two files");
    let server = Server::start(&[("CHAIN", &chain), ("KEY", &key)]);
    let mut config = Config::default();
    config.host.tls = authority.trusted();
    let url = format!("https://127.0.0.1:{}/talk", server.port);
    example::talk(config, &url).expect("the texts come back");
}
