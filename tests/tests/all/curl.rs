//! curl and `crawler-cli get` do the same things against servers that follow the same script. What the servers received,
//! what was printed, the files left behind and the exit code are compared. What differs on purpose is written in the
//! module `get`, and is in no scenario.
//!
//! `SCENARIO=tls` in the environment runs only the scenarios whose name begins so.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tests::program::PROGRAM;
use tests::script::{Request, Script, Server, connection};
use tests::tls::{Acceptor, Authority};

use Step::{Answer, Away, Fin, Next, Raw, Tls};

/// What a server does on its connections, one step after the other.
enum Step {
    /// Reads a request and sends these bytes.
    Answer(Vec<u8>),
    /// Reads so many bytes and sends these.
    Raw(usize, &'static [u8]),
    /// Goes on under TLS.
    Tls(Acceptor),
    /// Reads a request and redirects it to the second server.
    Away,
    Fin,
    /// The steps after this one are for the next connection.
    Next,
}

/// In the arguments, `{A}` is the address of the first server, and `{Ap}` its port. The second server answers 200 to all.
struct Scenario {
    name: &'static str,
    args: String,
    steps: Vec<Step>,
}

fn scenarios(certificates: &Certificates) -> Vec<Scenario> {
    let moved =
        |status: &str, to: &str| Answer(reply(status, &format!("Location: {to}\r\n"), "moved"));
    let busy = || Answer(reply("503 Busy", "", "busy"));
    let good = || Tls(certificates.good.clone());
    let granted = b"\x05\0\0\x01\x7f\0\0\x01\0\x50";
    let two = "-w '%{http_code} %{num_connects} ' http://{A}/1 http://{A}/2";
    let tale = "-L -w '|%{http_code} %{num_redirects} %{num_connects} %{url_effective}'";
    let with = |name, args: &str, steps| Scenario {
        name,
        args: args.replace("TALE", tale),
        steps,
    };
    let asks = |name, args: &str| with(name, args, vec![Answer(ok())]);
    let chunked = "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: 1\r\n\r\n";
    let begins = |rest: &str| Answer(format!("HTTP/1.1 200 OK\r\n{rest}").into_bytes());
    let long = "hello, hello, hello, world. ".repeat(400);
    vec![
        asks("request/none", "http://{A}/p?q"),
        asks("request/headers", "-A me -H 'X-A: b' -H Accept: {A}"),
        asks("request/user", "-u a:b:c http://{A}/"),
        asks("request/user-in-url", "http://a%40b:c%3ad@{A}/x"),
        asks("request/cookie", "-b a=b http://{A}/"),
        asks("request/range", "--range 0-4 http://{A}/"),
        asks("request/method", "--request DELETE http://{A}/"),
        asks("request/data", "-d a=b -d @data http://{A}/"),
        asks("request/binary", "--data-binary @data -X PUT http://{A}/"),
        asks("request/upload", "-H Expect: -T 'a b' http://{A}/dir/"),
        asks("request/upload-missing", "-T none http://{A}/"),
        asks(
            "request/resolve",
            "-4 --resolve s.example:{Ap}:[::1],127.0.0.1 http://s.example:{Ap}/x",
        ),
        with(
            "request/head",
            "-I http://{A}/",
            vec![Answer(head("200 OK", "Content-Length: 5\r\n"))],
        ),
        asks("refused/option", "--no-such-option http://{A}/"),
        asks("refused/scheme", "foo://{A}/"),
        asks(
            "refused/connection",
            "-w '%{http_code} %{exitcode}' http://127.0.0.1:1/",
        ),
        with("answer/chunked", "-i http://{A}/", vec![begins(chunked)]),
        with(
            "answer/interim",
            "-i http://{A}/",
            vec![Answer(
                b"HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx"
                    .to_vec(),
            )],
        ),
        with(
            "answer/404",
            "-f -i -w %{http_code} http://{A}/",
            vec![Answer(reply("404 No", "", "none"))],
        ),
        with(
            "answer/gzip",
            "--compressed -o out http://{A}/",
            vec![Answer(reply(
                "200 OK",
                "Content-Encoding: gzip\r\n",
                gzip(long.as_bytes()),
            ))],
        ),
        with(
            "broken/nothing",
            "http://{A}/",
            vec![Answer(Vec::new()), Fin],
        ),
        with(
            "broken/body",
            "-w %{size_download} http://{A}/",
            vec![begins("Content-Length: 10\r\n\r\nhello"), Fin],
        ),
        with(
            "broken/garbage",
            "http://{A}/",
            vec![Answer(b"garbage\r\n\r\n".to_vec()), Fin],
        ),
        with(
            "broken/late",
            "-m 1 -w %{http_code} http://{A}/",
            vec![Answer(Vec::new())],
        ),
        asks("limit/size", "--max-filesize 4 http://{A}/"),
        with(
            "output/two",
            "-o a -o b http://{A}/1 http://{A}/2",
            vec![Answer(ok()), Answer(ok())],
        ),
        asks("output/remote-name", "-O http://{A}/d/f.txt?q"),
        with("kept/two", two, vec![Answer(ok()), Answer(ok())]),
        with(
            "kept/next",
            "-d x http://{A}/ --next -i http://{A}/",
            vec![Answer(ok()), Answer(ok())],
        ),
        with(
            "redirect/get",
            "TALE -i http://{A}/a?b",
            vec![moved("301 M", "../x?y"), Answer(ok())],
        ),
        with(
            "redirect/post",
            "TALE -d x http://{A}/",
            vec![moved("302 M", "/to"), Answer(ok())],
        ),
        with(
            "redirect/put",
            "TALE -H Expect: -T five http://{A}/",
            vec![moved("307 M", "/to"), Answer(ok())],
        ),
        with(
            "redirect/limit",
            "TALE --max-redirs 1 http://{A}/",
            vec![moved("302 M", "/2"), moved("302 M", "/3")],
        ),
        with(
            "redirect/origin",
            "TALE -u u:p -H 'Cookie: a=b' http://{A}/",
            vec![Away],
        ),
        with(
            "retry/503",
            "--retry 1 -o out http://{A}/",
            vec![busy(), Fin, Next, Answer(ok())],
        ),
        asks(
            "proxy/user",
            "-x http://u:p@{A} -d abc http://some.example/x",
        ),
        with(
            "proxy/tunnel",
            "--cacert ca.pem -x http://u:p@{A} -A me https://localhost:99/x",
            vec![Answer(head("200 Established", "")), good(), Answer(ok())],
        ),
        with(
            "proxy/socks",
            "-x socks5h://{A} http://some.example:81/x",
            vec![
                Raw(3, b"\x05\0"),
                Raw(4 + 1 + 12 + 2, granted),
                Answer(ok()),
            ],
        ),
        with(
            "tls/client",
            "--cacert ca.pem -E client.pem --key client.key https://localhost:{Ap}/x",
            vec![Tls(certificates.asking.clone()), Answer(ok())],
        ),
        with("tls/unknown", "https://localhost:{Ap}/x", vec![good()]),
    ]
}

#[test]
#[ignore = "needs curl"]
fn the_same_as_curl() {
    let certificates = Certificates::new();
    let only = std::env::var("SCENARIO").unwrap_or_default();
    let mut complaints = String::new();
    for scenario in scenarios(&certificates) {
        if scenario.name.starts_with(&only) {
            let own = ["-q", "-sS", "--socks5-basic"];
            let curl = scenario.run(Path::new("curl"), &own, &certificates);
            let get = scenario.run(&PROGRAM, &["get", "-sS"], &certificates);
            if curl != get {
                let name = scenario.name;
                let _ = writeln!(complaints, "{name}\n curl {curl:#?}\n get {get:#?}");
            }
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

/// What came of one run, with names in place of ports and of the program.
#[derive(Debug, Eq, PartialEq)]
struct Outcome {
    exit: Option<i32>,
    stdout: String,
    /// The requests, each with the server and the connection that it came to.
    requests: Vec<String>,
    /// Those that are new, with their content.
    files: BTreeMap<String, String>,
    /// Whether there was a message.
    complains: bool,
}

impl Scenario {
    /// Runs one program, with `own` arguments before the scenario's, against fresh servers.
    fn run(&self, program: &Path, own: &[&str], certificates: &Certificates) -> Outcome {
        let second = Server::every(connection().always(ok()));
        let first = Server::play(self.scripts(&second.address().to_string()));
        let ports = [&first, &second].map(|server| server.address().port().to_string());
        let directory = tempfile::tempdir().expect("a directory");
        certificates.write_to(directory.path());
        for (name, content) in [("five", "12345"), ("a b", "12345"), ("data", "a\r\nb\nc")] {
            fs::write(directory.path().join(name), content).expect("a file");
        }
        let given = names(directory.path());
        let args = self.args.replace("{A}", "127.0.0.1:{Ap}");
        let output = Command::new(program)
            .args(own)
            .args(split(&args.replace("{Ap}", &ports[0])))
            .args(["-m", "60"].iter().filter(|_| !args.contains("-m ")))
            .current_dir(directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .output()
            .expect("run the program");
        let normal = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            text.replace(&ports[0], "{A}").replace(&ports[1], "{B}")
        };
        let requests = [('A', &first), ('B', &second)].map(|(letter, server)| {
            server.wait_all_ended();
            let requests = server.requests().into_iter().zip(server.served_by());
            requests.map(move |(request, number)| format!("{letter}{number} {}", ordered(&request)))
        });
        let new = names(directory.path()).into_iter();
        let files = new.filter(|name| !given.contains(name)).map(|name| {
            let content = fs::read(directory.path().join(&name)).expect("a file");
            (name, String::from_utf8_lossy(&content).into_owned())
        });
        Outcome {
            exit: output.status.code(),
            stdout: normal(&output.stdout),
            requests: requests
                .into_iter()
                .flatten()
                .map(|request| normal(request.as_bytes()))
                .collect(),
            files: files.collect(),
            complains: !output.stderr.is_empty(),
        }
    }

    /// The scripts of the connections to the first server.
    fn scripts(&self, second: &str) -> Vec<Script> {
        let mut done = Vec::new();
        let mut script = connection();
        for step in &self.steps {
            script = match step {
                Answer(bytes) => script.request().send(bytes),
                Away => {
                    let location = format!("Location: http://{second}/to\r\n");
                    script
                        .request()
                        .send(reply("302 Found", &location, "moved"))
                }
                Raw(length, bytes) => script.take(*length).send(bytes),
                Tls(acceptor) => script.tls(acceptor),
                Fin => script.half_close(),
                Next => {
                    done.push(script);
                    connection()
                }
            };
        }
        done.push(script);
        done
    }
}

/// A request with its fields sorted by name, which means nothing (RFC 9110 §5.3), without what tells the programs apart:
/// `User-Agent`, the order of codings, and `Proxy-Connection`, which only curl sends.
fn ordered(request: &Request) -> String {
    let head = request.head();
    let (line, fields) = head.split_once("\r\n").unwrap_or((&head, ""));
    let mut fields: Vec<&str> = fields.lines().filter(|field| !field.is_empty()).collect();
    let own = [
        "accept-encoding:",
        "user-agent: curl/",
        "user-agent: crawler-cli/",
        "proxy-connection:",
    ];
    fields.retain(|field| {
        !own.iter()
            .any(|own| field.to_ascii_lowercase().starts_with(own))
    });
    fields.sort_unstable();
    let body = String::from_utf8_lossy(request.body());
    format!("{line}|{}|{body}", fields.join("|"))
}

/// Arguments are between spaces, or between two `'`.
fn split(text: &str) -> Vec<String> {
    let mut args = Vec::new();
    for (number, part) in text.split('\'').enumerate() {
        match number % 2 {
            0 => args.extend(part.split_whitespace().map(str::to_owned)),
            _ => args.push(part.to_owned()),
        }
    }
    args
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    entries
        .map(|entry| name(entry).into_string().expect("text"))
        .collect()
}

fn head(status: &str, fields: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{fields}\r\n").into_bytes()
}

/// An answer that is framed by its length.
fn reply(status: &str, fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let fields = format!("{fields}Content-Length: {}\r\n", body.len());
    [&head(status, &fields), body].concat()
}

fn ok() -> Vec<u8> {
    reply("200 OK", "", "hello")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

struct Certificates {
    authority: Authority,
    good: Acceptor,
    /// Needs a certificate of the client by the same authority.
    asking: Acceptor,
}

impl Certificates {
    fn new() -> Self {
        let authority = Authority::new("Good");
        let leaf = authority.leaf(&["localhost"]);
        // curl would take HTTP/2.
        let plain = |acceptor: Acceptor| acceptor.edit(|config| config.alpn_protocols.clear());
        Self {
            good: plain(leaf.acceptor()),
            asking: plain(leaf.acceptor_demanding(&authority)),
            authority,
        }
    }

    fn write_to(&self, directory: &Path) {
        fs::write(directory.join("ca.pem"), self.authority.pem()).expect("a file");
        let written = self.authority.leaf(&["client"]).write_to(directory);
        let (chain, key) = written.expect("two files");
        fs::rename(chain, directory.join("client.pem")).expect("a file");
        fs::rename(key, directory.join("client.key")).expect("a file");
    }
}
