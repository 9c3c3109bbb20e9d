//! `crawler-cli get` and what curl cannot be compared in: sockets of the abstract namespace, name servers, local ports,
//! and options that ask for more than there is.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_socket_of_the_abstract_namespace() {
    let name = format!("crawler-cli-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let server = thread::spawn(move || answer(listener.accept().unwrap().0));
    let done = get(&["--abstract-unix-socket", &name, "http://any.example/x"]);
    assert_eq!(stdout(&done), "hello", "{done:?}");
    let request = server.join().unwrap();
    assert!(
        request.starts_with("GET /x HTTP/1.1\r\nHost: any.example\r\n"),
        "{request}"
    );
}

#[test]
fn the_given_name_servers_are_asked() {
    let (listener, server) = tcp();
    let port = listener.port();
    let names = UdpSocket::bind("127.0.0.1:0").unwrap();
    let name_server = names.local_addr().unwrap().to_string();
    let asked = thread::spawn(move || answer_names(&names, Ipv4Addr::LOCALHOST));
    let url = format!("http://only-here.example:{port}/x");
    let done = get(&["-4", "--dns-servers", &name_server, &url]);
    assert_eq!(stdout(&done), "hello", "{done:?}");
    assert_eq!(asked.join().unwrap(), "only-here.example");
    let host = format!("Host: only-here.example:{port}\r\n");
    assert!(server.join().unwrap().contains(&host));
    let wrong = get(&["--dns-servers", "a.example", &url]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn the_local_port_is_the_first_free_one() {
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let first = taken.local_addr().unwrap().port();
    let (listener, server) = tcp();
    let url = format!("http://127.0.0.1:{}/", listener.port());
    let range = format!("{first}-{}", first.saturating_add(50));
    let done = get(&[
        "--local-port",
        &range,
        "-o",
        "/dev/null",
        "-w",
        "%{local_port}",
        &url,
    ]);
    assert!(done.status.success(), "{done:?}");
    let used: u16 = stdout(&done).parse().unwrap();
    assert!(
        used > first && used <= first + 50,
        "{used} is not in {range}"
    );
    server.join().unwrap();
    let none_free = get(&["--local-port", &first.to_string(), &url]);
    assert_eq!(none_free.status.code(), Some(45), "{none_free:?}");
}

#[test]
fn newer_versions_are_named_and_http_1_1_is_used() {
    for option in [
        "--http2",
        "--http2-prior-knowledge",
        "--http3",
        "--http3-only",
    ] {
        let (listener, server) = tcp();
        let url = format!("http://127.0.0.1:{}/", listener.port());
        let done = get(&[option, &url]);
        assert_eq!(stdout(&done), "hello", "{done:?}");
        let warning = format!("Warning: {option}: HTTP/1.1 is used\n");
        assert_eq!(String::from_utf8_lossy(&done.stderr), warning);
        let request = server.join().unwrap();
        assert!(request.starts_with("GET / HTTP/1.1\r\n") && !request.contains("Upgrade"));
    }
    let (listener, server) = tcp();
    let url = format!("http://127.0.0.1:{}/", listener.port());
    let silent = get(&["-s", "--http2", &url]);
    assert_eq!(
        (stdout(&silent), silent.stderr),
        ("hello".into(), Vec::new())
    );
    server.join().unwrap();
}

#[test]
fn the_exit_status_and_the_message_name_what_was_wrong() {
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["--interface", "if!none", "http://127.0.0.1:1/"],
            45,
            "--interface if!none",
        ),
        (
            &["--ciphers", "none", "https://127.0.0.1:1/"],
            59,
            "--ciphers: \"none\"",
        ),
        (
            &["--curves", "none", "https://127.0.0.1:1/"],
            59,
            "--curves: \"none\"",
        ),
        (
            &["--pinnedpubkey", "/none", "https://127.0.0.1:1/"],
            90,
            "pinned key in /none",
        ),
        (
            &["--capath", "/none", "https://127.0.0.1:1/"],
            77,
            "roots in /none",
        ),
        (
            &[
                "--cert",
                "/none",
                "--cert-type",
                "P12",
                "https://127.0.0.1:1/",
            ],
            58,
            "openssl pkcs12",
        ),
        (
            &["--disallow-username-in-url", "http://u:secret@h/"],
            67,
            "user name",
        ),
        (&["http://[fe80::1%25none]/"], 7, "\"none\""),
        (&["-0", "-T", "-", "http://127.0.0.1:1/"], 25, "HTTP/1.1"),
    ];
    for (args, code, text) in cases {
        let done = get(args);
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(*code), "{args:?}: {stderr}");
        assert!(
            stderr.contains(text) && !stderr.contains("secret"),
            "{args:?}: {stderr}"
        );
    }
}

// ---------------------------------------------------------------------------------------------- the program, servers

fn get(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crawler-cli"))
        .args(["get", "-q", "--no-progress-meter"])
        .args(args)
        .env_clear()
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

fn stdout(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned()
}

struct Port(u16);

impl Port {
    fn port(&self) -> u16 {
        self.0
    }
}

/// A server of one connection: its port, and the head that it got.
fn tcp() -> (Port, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Port(listener.local_addr().unwrap().port());
    (
        port,
        thread::spawn(move || answer(listener.accept().unwrap().0)),
    )
}

fn answer(mut socket: impl Read + Write) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if socket.read(&mut byte).unwrap() == 0 {
            break;
        }
        head.push(byte[0]);
    }
    socket.write_all(OK).unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

/// Answers the first question for an address (RFC 1035 §4) and returns its name.
fn answer_names(socket: &UdpSocket, address: Ipv4Addr) -> String {
    loop {
        let mut buffer = [0; 512];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        let (mut labels, mut at) = (Vec::new(), 12);
        while buffer[at] != 0 {
            let label = &buffer[at + 1..at + 1 + usize::from(buffer[at])];
            labels.push(String::from_utf8_lossy(label).into_owned());
            at += 1 + label.len();
        }
        let question = &buffer[12..at + 5];
        let is_a = buffer[at + 1..at + 3] == [0, 1];
        let answers = u8::from(is_a);
        let mut reply = [
            &buffer[..2],
            &[0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0],
            question,
        ]
        .concat();
        if is_a {
            // The name of the question, type A, class IN, 60 s, four bytes.
            reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            reply.extend(address.octets());
        }
        assert!(length >= at + 5);
        socket.send_to(&reply, from).unwrap();
        if is_a {
            return labels.join(".");
        }
    }
}
