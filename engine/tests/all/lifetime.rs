//! A client that has ended leaves nothing behind: no thread, no descriptor, no call. The test runs in a process of its
//! own, because it counts the threads and descriptors of the process.

use std::env;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use courser::shared::Sending;
use courser::{
    Call, Config, HickoryResolver, HostConfig, NameServers, Request, Response, Shared, SharedConfig,
};

use super::shared::server::Server;
use super::shared::{Explosive, quiet_panics};

type Client = Shared<courser::HostClient>;

#[test]
fn nothing_is_left_behind() {
    if !is_alone("lifetime::nothing_is_left_behind") {
        return;
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let before = counts();
    names_under_way(&silent);
    settles_at(before);

    round(drop);
    round(|client| _ = client.shutdown(Duration::from_secs(60)));
    round(|client| _ = client.shutdown_now());
    let futures = round(|client| {
        let futures: Vec<Sending> = (0..20).map(|_| client.send(held())).collect();
        drop(client);
        futures
    });
    // They hold no descriptor, although their completions were not taken.
    settles_at(before);
    drop(futures);

    // A future that outlives its client and is not polled; and the last handle dropped on another thread.
    round(|client| {
        let future = client.send(held());
        std::thread::spawn(move || drop(client)).join().unwrap();
        drop(future);
    });
    // One upstream has one thread, so the constructor can fail only on the first.
    let fails = |_| courser::HostClient::new(courser::Upstream::tcp([]), HostConfig::default());
    Shared::spawn(SharedConfig::default(), fails).unwrap_err();

    // A panic: the descriptors of the first client are closed, too.
    round(|client| {
        quiet_panics();
        let mut request = Request::new("POST", "/");
        request.body_stream(Explosive, None);
        client.call(&mut request, &mut Response::new()).unwrap_err();
        client.get("/", &mut Response::new()).unwrap();
    });
    settles_at(before);
}

/// Runs this test again in a process of its own. True in that process.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "COURSER_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no test is named {test}");
    false
}

/// Runs a server and a client; both have ended when it returns.
fn round<T>(story: impl FnOnce(Client) -> T) -> T {
    let server = Server::start();
    let client = server.client(SharedConfig::default(), HostConfig::default());
    client.get("/first", &mut Response::new()).unwrap();
    story(client)
}

/// Drops a client while its resolver waits for a name server that never answers.
fn names_under_way(silent: &UdpSocket) {
    let resolver = HickoryResolver::with_servers(NameServers {
        timeout: Duration::from_secs(3600),
        ..NameServers::new([silent.local_addr().unwrap()])
    });
    let mut client = courser::Client::with_resolver(Config::default(), resolver).unwrap();
    for n in 0..20 {
        client.submit(Call::new(
            Request::get(format!("http://n{n}.test/")),
            Response::new(),
        ));
    }
    assert!(client.wait(Some(Duration::ZERO)).unwrap().done().is_none());
    silent.recv(&mut [0; 512]).unwrap();
}

fn held() -> Call {
    Call::new(Request::get("/held"), Response::new())
}

/// Threads of servers end in their own time, and the system may list a thread for a moment after it was joined. So a count
/// that is too high is looked at again, far more often than a busy machine needs.
fn settles_at(expected: (usize, usize)) {
    let mut looks = 0;
    while counts() != expected {
        looks += 1;
        assert!(looks < 100_000, "{:?} instead of {expected:?}", counts());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Descriptors and threads of this process.
fn counts() -> (usize, usize) {
    let count = |directory| std::fs::read_dir(directory).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}
