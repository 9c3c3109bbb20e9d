//! A scenario: what the peers do, what both programs are told, and what came of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use memchr::memmem;

use super::peer::{Peer, Running, Step};

/// One thing that both programs do, against peers that behave alike for both.
///
/// In arguments, files, stdin and what the peers send, `{A}` is the address of the first peer, `{B}` of the second;
/// `{Ap}`, `{Bp}` are their ports.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    peers: Vec<Peer>,
    args: Vec<String>,
    files: Vec<(String, Vec<u8>)>,
    environment: Vec<(&'static str, String)>,
    stdin: Vec<u8>,
}

impl Scenario {
    /// Arguments are between spaces, or between two `'`.
    pub(crate) fn new(name: impl Into<String>, arguments: &str) -> Self {
        let mut args = Vec::new();
        for (number, part) in arguments.split('\'').enumerate() {
            match number % 2 {
                0 => args.extend(part.split_whitespace().map(str::to_owned)),
                _ => args.push(part.to_owned()),
            }
        }
        Self {
            name: name.into(),
            peers: Vec::new(),
            args,
            files: Vec::new(),
            environment: Vec::new(),
            stdin: Vec::new(),
        }
    }

    pub(crate) fn peer(mut self, peer: Peer) -> Self {
        self.peers.push(peer);
        self
    }

    /// A peer whose only connection follows these steps.
    pub(crate) fn play(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.peer(Peer::Play(vec![steps.into_iter().collect()]))
    }

    /// A peer that answers each target with its bytes.
    pub(crate) fn routes<T: Into<String>>(
        self,
        routes: impl IntoIterator<Item = (T, Vec<u8>)>,
    ) -> Self {
        let routes = routes.into_iter().map(|(t, b)| (t.into(), b));
        let routes = Arc::new(routes.collect());
        self.peer(Peer::Every(vec![Step::Routes(routes)]))
    }

    /// A file in the directory that both programs run in.
    pub(crate) fn file(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into(), bytes.into()));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Whether a time-out is no surprise.
    pub(crate) fn is_limited(&self) -> bool {
        let limits = ["-m", "--connect-timeout"];
        self.args.iter().any(|arg| limits.contains(&arg.as_str()))
    }

    /// Runs one program, with `own` arguments before the scenario's, against fresh peers.
    pub(crate) fn run(&self, program: &Path, own: &[&str]) -> Outcome {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cell = Arc::new(OnceLock::new());
        let running: Vec<Running> = self
            .peers
            .iter()
            .map(|peer| peer.clone().listen(&cell).expect("a free port"))
            .collect();
        let places = Places(running.iter().map(Running::address).collect());
        let _ = cell.set(places.clone());
        for (name, bytes) in &self.files {
            fs::write(directory.path().join(name), places.fill(bytes)).expect("write a file");
        }
        let mut command = Command::new(program);
        command.args(own);
        if !self.is_limited() {
            command.args(["-m", HANG]);
        }
        let filled = |text: &str| OsString::from_vec(places.fill(text.as_bytes()));
        command
            .args(self.args.iter().map(|arg| filled(arg)))
            .current_dir(directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in &self.environment {
            command.env(name, filled(value));
        }
        let mut child = command.spawn().expect("run the program");
        if let Some(mut stdin) = child.stdin.take() {
            // A program that needs no input may be gone.
            let _ = stdin.write_all(&places.fill(&self.stdin));
        }
        let output = child.wait_with_output().expect("wait for the program");
        let received = running.into_iter().map(|peer| {
            let connections = peer.settle().into_iter();
            connections
                .map(|bytes| ordered(&places.normal(&bytes)))
                .collect()
        });
        Outcome {
            exit: output.status.code(),
            stdout: places.normal(&output.stdout),
            received: received.collect(),
            verbose: ordered(&verbose_lines(&places.normal(&output.stderr))),
            files: self.files_left(directory.path(), &places),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The files that are new or changed.
    fn files_left(&self, directory: &Path, places: &Places) -> BTreeMap<String, Vec<u8>> {
        let mut left = BTreeMap::new();
        for entry in fs::read_dir(directory).expect("list the directory") {
            let entry = entry.expect("list the directory");
            let name = String::from_utf8_lossy(entry.file_name().as_bytes()).into_owned();
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let mut given = self.files.iter().filter(|(given, _)| *given == name);
            if !given.any(|(_, given)| places.fill(given) == bytes) {
                left.insert(name, places.normal(&bytes));
            }
        }
        left
    }
}

/// What came of one run, with addresses, ports and the program's name replaced by placeholders.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// By peer and connection.
    pub(crate) received: Vec<Vec<Vec<u8>>>,
    /// The lines of `-v` that show heads.
    pub(crate) verbose: Vec<u8>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// For messages alone.
    pub(crate) stderr: String,
}

/// Where the peers are.
#[derive(Clone)]
pub(crate) struct Places(Vec<SocketAddr>);

impl Places {
    /// `text` with addresses for the placeholders.
    pub(crate) fn fill(&self, text: &[u8]) -> Vec<u8> {
        let mut filled = text.to_vec();
        for (letter, address) in ('A'..).zip(&self.0) {
            let port = address.port().to_string();
            filled = replace(&filled, &format!("{{{letter}}}"), &address.to_string());
            filled = replace(&filled, &format!("{{{letter}p}}"), &port);
        }
        filled
    }

    /// `bytes` with placeholders for ports, and for what tells the two programs apart.
    fn normal(&self, bytes: &[u8]) -> Vec<u8> {
        let mut normal = bytes.to_vec();
        for (letter, address) in ('A'..).zip(&self.0) {
            let port = address.port().to_string();
            normal = replace(&normal, &port, &format!("{{{letter}p}}"));
        }
        let ours = concat!("User-Agent: crawler-cli/", env!("CARGO_PKG_VERSION"));
        for agent in [ours, "User-Agent: curl/7.88.1"] {
            normal = replace(&normal, agent, "User-Agent: {agent}");
        }
        normal
    }
}

fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, from.as_bytes()) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(to.as_bytes());
        rest = &rest[at + from.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

/// The fields of each request's head, sorted by name, their values without the space around: neither that order nor
/// that space means anything (RFC 9110 §5.3, §5.5), and the engine puts the fields that it makes elsewhere than curl.
/// Equal names stay in their order. `Proxy-Connection`, which only curl sends, is left out: it was never standard (RFC
/// 9112 §C.2.2). A TLS handshake, which is random, is not shown.
fn ordered(bytes: &[u8]) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(bytes.len());
    if bytes.starts_with(&[0x16, 3]) {
        return b"{TLS}".to_vec();
    }
    let mut fields: Vec<Vec<u8>> = Vec::new();
    let mut in_head = false;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if [" HTTP/1.1\r\n", " HTTP/1.1\n", " HTTP/1.0\r\n"]
            .iter()
            .any(|end| line.ends_with(end.as_bytes()))
        {
            in_head = true;
        } else if let Some(colon) = line.iter().position(|b| *b == b':').filter(|_| in_head) {
            let (name, value) = line.split_at(colon + 1);
            if name == b"Proxy-Connection:" || name == b"> Proxy-Connection:" {
                continue;
            }
            fields.push([name, b" ", value.trim_ascii(), b"\r\n"].concat());
            continue;
        } else {
            in_head = false;
            fields.sort_by_key(|line| {
                line.split(|b| *b == b':')
                    .next()
                    .map(<[u8]>::to_ascii_lowercase)
            });
            ordered.extend(fields.drain(..).flatten());
        }
        ordered.extend_from_slice(line);
    }
    ordered.extend(fields.into_iter().flatten());
    ordered
}

fn verbose_lines(stderr: &[u8]) -> Vec<u8> {
    let shown = |line: &&[u8]| line.starts_with(b"> ") || line.starts_with(b"< ");
    let lines = stderr.split_inclusive(|b| *b == b'\n').filter(shown);
    replace(&lines.collect::<Vec<_>>().concat(), "\r\n", "\n")
}

/// Seconds after which a program is held to hang, on a busy machine too; its exit code, 28, fails the scenario.
const HANG: &str = "60";
