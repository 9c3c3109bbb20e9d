//! The servers and the proxy that the tests of PostgreSQL use.

#[path = "common/cluster.rs"]
mod cluster;
#[path = "common/proxy.rs"]
mod proxy;

use std::env;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Cluster, QUICK, runs};
use postgres::{Client, NoTls};
use proxy::{Mode, Proxy};
use rustix::process::Pid;

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).expect("a connection")
}

fn number(client: &mut Client, query: &str) -> i64 {
    client.query_one(query, &[]).expect("a row").get(0)
}

/// Waits until it is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs postgresql"]
fn databases_are_empty_and_apart() {
    let cluster = Cluster::shared();
    let (one, two) = (cluster.database(), cluster.database());
    connect(&one)
        .batch_execute("CREATE TABLE t ()")
        .expect("made");
    connect(&two)
        .batch_execute("CREATE TABLE t ()")
        .expect("made");
    let order = "SELECT 'Z' < 'a' AND current_setting('server_encoding') = 'UTF8'";
    let is_plain: bool = connect(&one).query_one(order, &[]).expect("a row").get(0);
    assert!(is_plain);
}

/// What was committed with `fsync` outlives the death of all processes, and the server has its port again.
#[test]
#[ignore = "needs postgresql"]
fn a_server_is_stopped_killed_paused_and_started_again() {
    let cluster = Cluster::new(&[]);
    let url = cluster.database();
    let mut client = connect(&url);
    client
        .batch_execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (7)")
        .expect("stored");
    for stop in [Cluster::stop, Cluster::kill] {
        let first = cluster.first_process();
        stop(&cluster);
        assert!(!runs(first));
        assert!(Client::connect(&url, NoTls).is_err());
        assert!(client.simple_query("SELECT 1").is_err());
        cluster.start();
        client = connect(&url);
        assert_eq!(number(&mut client, "SELECT n FROM t"), 7);
    }
    cluster.pause();
    let answered = thread::spawn(move || number(&mut client, "SELECT n + 1 FROM t"));
    let state = format!("/proc/{}/stat", cluster.first_process().as_raw_pid());
    until("the server stops", || {
        std::fs::read_to_string(&state).is_ok_and(|stat| stat.contains(") T "))
    });
    assert!(!answered.is_finished());
    cluster.resume();
    assert_eq!(answered.join().expect("no panic"), 8);
    cluster.restart();
    assert_eq!(number(&mut connect(&url), "SELECT n FROM t"), 7);
}

/// Names the test below to be the owner of a server that is killed.
const OWNER: &str = "TEST_OWNS_A_SERVER";

#[test]
#[ignore = "needs postgresql"]
fn nothing_is_left_of_a_test_that_was_killed() {
    if env::var_os(OWNER).is_some() {
        let cluster = Cluster::new(&QUICK);
        cluster.pause();
        let pid = cluster.first_process().as_raw_pid();
        eprintln!("{pid} {}", cluster.folder().display());
        loop {
            thread::park();
        }
    }
    let mut owner = Command::new(env::current_exe().expect("a program"))
        .args(["--exact", "--ignored", "--nocapture"])
        .arg("nothing_is_left_of_a_test_that_was_killed")
        .env(OWNER, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let told = BufReader::new(owner.stderr.take().expect("piped")).read_line(&mut line);
    told.expect("a line");
    owner.kill().expect("killed");
    owner.wait().expect("ended");
    let (pid, folder) = line.trim().split_once(' ').expect("two words");
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("a process");
    until("the server ends", || !runs(pid));
    until("the folder is removed", || !Path::new(folder).exists());
}

/// A server that sends back what it gets, and a connection to it by way of the proxy.
fn echo() -> (Proxy, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = Proxy::new(listener.local_addr().expect("an address").port());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                // Ends with the connection.
                let _ = std::io::copy(&mut &stream, &mut &stream);
            });
        }
    });
    let client = TcpStream::connect(("127.0.0.1", proxy.port())).expect("accepted");
    (proxy, client)
}

fn answers(client: &mut TcpStream) -> std::io::Result<[u8; 4]> {
    client.write_all(b"ping")?;
    let mut answer = [0; 4];
    client.read_exact(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_proxy_passes_on_delays_and_stalls() {
    let (proxy, mut client) = echo();
    assert_eq!(answers(&mut client).expect("an answer"), *b"ping");
    proxy.set(Mode::Delay(Duration::from_millis(30)));
    let began = Instant::now();
    assert_eq!(answers(&mut client).expect("an answer"), *b"ping");
    assert!(began.elapsed() >= Duration::from_millis(60));
    for mode in [Mode::Stall, Mode::HoldAnswers] {
        proxy.set(mode);
        let limit = Some(Duration::from_millis(200));
        client.set_read_timeout(limit).expect("a socket");
        let error = answers(&mut client).expect_err("nothing comes");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        // What was kept comes late.
        client.set_read_timeout(None).expect("a socket");
        proxy.set(Mode::Through);
        client.read_exact(&mut [0; 4]).expect("the answer");
        assert_eq!(answers(&mut client).expect("an answer"), *b"ping");
    }
}

#[test]
fn a_proxy_cuts_and_refuses() {
    let (proxy, mut client) = echo();
    assert_eq!(answers(&mut client).expect("an answer"), *b"ping");
    proxy.set(Mode::Stall);
    client.write_all(b"lost").expect("sent");
    proxy.cut();
    let error = client.read(&mut [0]).expect_err("reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    proxy.set(Mode::Through);
    for _ in 0..3 {
        let mut kept = TcpStream::connect(("127.0.0.1", proxy.port())).expect("accepted");
        assert_eq!(answers(&mut kept).expect("an answer"), *b"ping");
        proxy.refuse();
        let error = TcpStream::connect(("127.0.0.1", proxy.port())).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(answers(&mut kept).expect("an answer"), *b"ping");
        proxy.accept();
    }
    assert_eq!(proxy.accepted(), 4);
}

/// What the server did is not known when its answer is lost: it has stored this.
#[test]
#[ignore = "needs postgresql"]
fn a_proxy_loses_the_answer_to_a_commit() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    let mut direct = connect(&url);
    direct
        .batch_execute("CREATE TABLE t (n BIGINT)")
        .expect("made");
    let proxy = Proxy::new(cluster.port());
    let mut client = connect(&proxy.url(&url));
    proxy.set(Mode::HoldAnswers);
    let stored = thread::spawn(move || client.batch_execute("INSERT INTO t VALUES (1)"));
    until("the server has stored it", || {
        number(&mut connect(&url), "SELECT count(*) FROM t") == 1
    });
    proxy.cut();
    let error = stored.join().expect("no panic").expect_err("lost");
    assert!(error.as_db_error().is_none(), "{error}");
}
