//! A scenario: what the peers do, what both programs are told, and what came of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use memchr::memmem;

use crate::digest;
use crate::peer::{Peer, Running, Step};

/// One thing that both programs do, against peers that behave alike for both.
///
/// In arguments, files, stdin and what the peers send, `{A}` is the address of the first peer, `{B}` of the second and so on;
/// `{Ap}`, `{Bp}` are their ports. In arguments, `{dir}` is the directory that the programs run in.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    peers: Vec<Peer>,
    args: Vec<Vec<u8>>,
    folders: Vec<String>,
    files: Vec<(String, Vec<u8>)>,
    /// A certificate, and the folder in which it gets a name of `c_rehash`.
    hashed: Vec<(String, String)>,
    /// The times of files, in seconds.
    times: Vec<(String, u64)>,
    environment: Vec<(&'static str, String)>,
    stdin: Vec<u8>,
    /// The programs get no arguments but the scenario's.
    pub(crate) bare: bool,
    /// The programs have no terminal to ask for a password on.
    detached: bool,
}

impl Scenario {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            peers: Vec::new(),
            args: Vec::new(),
            folders: Vec::new(),
            files: Vec::new(),
            hashed: Vec::new(),
            times: Vec::new(),
            environment: Vec::new(),
            stdin: Vec::new(),
            bare: false,
            detached: false,
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
    pub(crate) fn routes<T: Into<String>, B: Into<Vec<u8>>>(
        self,
        routes: impl IntoIterator<Item = (T, B)>,
    ) -> Self {
        let routes = routes.into_iter().map(|(t, b)| (t.into(), b.into()));
        let routes = Arc::new(routes.collect());
        self.peer(Peer::Every(vec![Step::Routes(routes)]))
    }

    pub(crate) fn args<T: AsRef<[u8]>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().to_vec()));
        self
    }

    /// A file in the directory that both programs run in.
    pub(crate) fn file(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into(), bytes.into()));
        self
    }

    /// A folder in that directory.
    pub(crate) fn folder(mut self, name: impl Into<String>) -> Self {
        self.folders.push(name.into());
        self
    }

    /// Names a certificate in a folder by its subject, as OpenSSL looks for it.
    pub(crate) fn hashed(mut self, certificate: &str, folder: &str) -> Self {
        self.hashed.push((certificate.into(), folder.into()));
        self
    }

    /// Sets the time of a file.
    pub(crate) fn time(mut self, name: impl Into<String>, seconds: u64) -> Self {
        self.times.push((name.into(), seconds));
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

    /// Both programs get these arguments alone, so that the first one is theirs.
    pub(crate) fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// Both programs run in a session of their own.
    pub(crate) fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Whether one of the arguments is one of these options.
    pub(crate) fn uses(&self, options: &[&str]) -> bool {
        self.args
            .iter()
            .any(|arg| options.iter().any(|option| option.as_bytes() == &arg[..]))
    }

    /// Runs one program, with `own` arguments before the common ones, against fresh peers.
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
        for name in &self.folders {
            fs::create_dir(directory.path().join(name)).expect("make a folder");
        }
        for (name, bytes) in &self.files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("make a directory");
            fs::write(path, places.fill(bytes)).expect("write a file");
        }
        for (certificate, folder) in &self.hashed {
            let path = directory.path().join(certificate);
            let openssl = Command::new("openssl")
                .args(["x509", "-noout", "-hash", "-in"])
                .arg(&path)
                .output()
                .expect("run openssl");
            let hash = String::from_utf8_lossy(&openssl.stdout).trim().to_owned();
            let name = directory.path().join(folder).join(format!("{hash}.0"));
            fs::copy(&path, name).expect("copy the certificate");
        }
        for (name, seconds) in &self.times {
            let mut options = fs::File::options();
            let file = options.append(true).open(directory.path().join(name));
            let time = UNIX_EPOCH + Duration::from_secs(*seconds);
            let file = file.expect("open a file");
            file.set_modified(time).expect("date a file");
        }
        let here = directory.path().to_str().expect("a readable path");
        let mut command = match self.detached {
            true => {
                let mut command = Command::new("setsid");
                command.arg("--wait").arg(program);
                command
            }
            false => Command::new(program),
        };
        command.args(own);
        if !self.uses(LIMITS) && !self.bare {
            command.args(["-m", HANG]);
        }
        command
            .args(self.args.iter().map(|a| {
                let filled = replace(&places.fill(a), "{dir}", here);
                OsString::from_vec(filled)
            }))
            .current_dir(directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in &self.environment {
            let value = places.fill(value.as_bytes());
            command.env(name, OsString::from_vec(value));
        }
        let mut child = command.spawn().expect("run the program");
        if let Some(mut stdin) = child.stdin.take() {
            // A program that needs no input may be gone.
            let _ = stdin.write_all(&places.fill(&self.stdin));
        }
        let output = child.wait_with_output().expect("wait for the program");
        let received = running.into_iter().map(Running::settle);
        let received = received.map(|peer| {
            let connections = peer
                .iter()
                .map(|bytes| ordered(&without_boundaries(&places.normal(&digest::checked(bytes)))));
            connections.collect()
        });
        Outcome {
            exit: output.status.code(),
            stdout: replace(&places.normal(&output.stdout), here, "{dir}"),
            received: received.collect(),
            verbose: ordered(&verbose_lines(&places.normal(&output.stderr))),
            files: self.files_left(directory.path(), &places),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The files that are new or changed, by their paths. Old times and unusual modes stand behind the path.
    fn files_left(&self, directory: &Path, places: &Places) -> BTreeMap<String, Vec<u8>> {
        let mut left = BTreeMap::new();
        for (name, _) in &self.files {
            if !directory.join(name).exists() {
                left.insert(format!("{name} removed"), Vec::new());
            }
        }
        let mut directories = vec![directory.to_owned()];
        while let Some(next) = directories.pop() {
            for entry in fs::read_dir(next).expect("list the directory") {
                let path = entry.expect("list the directory").path();
                let metadata = path.metadata().expect("the metadata of a file");
                if metadata.is_dir() {
                    // A folder of the scenario has what was given, and copies.
                    if !self.folders.iter().any(|name| path == directory.join(name)) {
                        directories.push(path);
                    }
                    continue;
                }
                let name = path.strip_prefix(directory).expect("a path below");
                let mut name = String::from_utf8_lossy(name.as_os_str().as_bytes()).into_owned();
                let bytes = fs::read(&path).unwrap_or_default();
                let mut given = self.files.iter().filter(|(given, _)| *given == name);
                let is_as_given = given.any(|(_, given)| places.fill(given) == bytes);
                if is_as_given {
                    continue;
                }
                let time = metadata.modified().expect("the time of a file");
                if time.elapsed().is_ok_and(|age| age > LONG_AGO) {
                    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default();
                    name.push_str(&format!(" of {}", seconds.as_secs()));
                }
                let mode = metadata.permissions().mode() & 0o777;
                if mode != 0o644 {
                    name.push_str(&format!(" mode {mode:o}"));
                }
                left.insert(name, without_comments(&places.normal(&bytes)));
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
    pub(crate) fn address(&self, peer: usize) -> SocketAddr {
        self.0[peer]
    }

    /// `text` with addresses for the placeholders.
    pub(crate) fn fill(&self, text: &[u8]) -> Vec<u8> {
        let mut filled = text.to_vec();
        for (letter, address) in ('A'..).zip(&self.0) {
            filled = replace(&filled, &format!("{{{letter}}}"), &address.to_string());
            filled = replace(
                &filled,
                &format!("{{{letter}p}}"),
                &address.port().to_string(),
            );
        }
        filled
    }

    /// `bytes` with placeholders for ports, and for what tells the two programs apart.
    fn normal(&self, bytes: &[u8]) -> Vec<u8> {
        let mut normal = bytes.to_vec();
        for (letter, address) in ('A'..).zip(&self.0) {
            normal = replace(
                &normal,
                &address.port().to_string(),
                &format!("{{{letter}p}}"),
            );
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

/// The boundaries of forms are random: 24 dashes and 16 digits.
fn without_boundaries(bytes: &[u8]) -> Vec<u8> {
    const DASHES: &[u8] = b"------------------------";
    let mut normal = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, DASHES) {
        let dashes = rest[at..].iter().take_while(|b| **b == b'-').count();
        let (before, after) = rest.split_at(at + dashes);
        normal.extend_from_slice(before);
        let digits = after.iter().take(16).take_while(|b| b.is_ascii_hexdigit());
        let digits = digits.count();
        if digits == 16 {
            normal.extend_from_slice(b"{boundary}");
        } else {
            normal.extend_from_slice(&after[..digits]);
        }
        rest = &after[digits..];
    }
    normal.extend_from_slice(rest);
    normal
}

fn verbose_lines(stderr: &[u8]) -> Vec<u8> {
    let shown = |line: &&[u8]| line.starts_with(b"> ") || line.starts_with(b"< ");
    let lines = stderr.split_inclusive(|b| *b == b'\n').filter(shown);
    replace(&lines.collect::<Vec<_>>().concat(), "\r\n", "\n")
}

/// A cookie file's comments name the program that wrote it.
fn without_comments(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|b| *b == b'\n');
    let kept = lines.filter(|line| !line.starts_with(b"# ") && *line != b"\n");
    kept.collect::<Vec<_>>().concat()
}

/// Options after which a time-out is no surprise.
pub(crate) const LIMITS: &[&str] = &["-m", "--connect-timeout", "--retry", "-y"];

/// Files of this age were not written by the programs, unless they dated them.
const LONG_AGO: Duration = Duration::from_secs(3600);

/// Seconds after which a program is held to hang; its exit code, 28, fails the scenario.
const HANG: &str = "20";
