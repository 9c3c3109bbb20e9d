//! The process runs out of descriptors: calls wait for a connection of the client, and no host is blamed. The limit is
//! per process, so each client here gets a process of its own, and the servers stay in the parent.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::process::Command;

use courser::policy::BreakerConfig;
use courser::shared::completions;
use courser::{
    Call, Client, Completion, Config, ErrorKind, HickoryResolver, HostClient, NameServers, Phase,
    Request, Response, Sent, Shared, SharedConfig, Upstream,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tests::alone::{descriptors, is_alone, itself};
use tests::clients::{any_config, config, run};
use tests::dns::{DnsServer, Reply, a};
use tests::script::{Server, connection, eventually};

use super::OK;

#[test]
fn calls_wait_for_the_connections_that_serve() {
    scarce("calls_wait_for_the_connections_that_serve", 1, |servers| {
        let mut client = HostClient::new(Upstream::tcp([servers[0]]), config()).unwrap();
        let before = descriptors();
        let limit = leave(20);
        let completions = run(&mut client, calls(200, |_| "/".into()));
        assert_all_served(completions, 200);
        client.close_idle();
        assert_eq!(descriptors(), before, "nothing is left of the attempts");
        // With descriptors again, the client opens as many connections as it wants.
        setrlimit(Resource::Nofile, limit).unwrap();
        eventually("the limit of the shortage is lifted", || {
            client.close_idle();
            assert_all_served(run(&mut client, calls(64, |_| "/".into())), 64);
            client.counters().open > 40
        });
        let now = client.counters();
        assert_eq!((now.busy, now.connecting, now.waiting), (0, 0, 0));
    });
}

#[test]
fn threads_leave_each_other_descriptors() {
    let name = "threads_leave_each_other_descriptors";
    scarce(name, 12, |servers| {
        let config = SharedConfig {
            threads: NonZeroUsize::new(4).unwrap(),
            ..SharedConfig::default()
        };
        let client = Shared::spawn(config, |_| Client::new(Config::default())).unwrap();
        leave(10);
        // One host after the other, so that the connections of one thread are idle when the next thread needs one.
        for round in 0..3 {
            let (sender, arrived) = completions();
            let target = |n| format!("http://{}/", servers[(n / 50 + round * 4) % 12]);
            for call in calls(200, target) {
                client.submit(call, &sender).unwrap();
            }
            drop(sender);
            assert_all_served(arrived.collect(), 200);
        }
    });
}

#[test]
fn a_client_that_cannot_be_made_names_the_limit() {
    let name = "a_client_that_cannot_be_made_names_the_limit";
    scarce(name, 0, |_| {
        leave(0);
        let error = Client::new(Config::default()).err().unwrap();
        assert_kind!(error, ErrorKind::Shortage(_));
    });
}

/// A resolver without a descriptor is no failure of the name, which is asked for again as soon as there is one.
#[test]
fn lookups_wait_for_descriptors_too() {
    scarce("lookups_wait_for_descriptors_too", 1, |servers| {
        let hosts = tempfile::NamedTempFile::new().unwrap();
        let from_file = HickoryResolver::with_files("/nonexistent", hosts.path());
        let name_server = DnsServer::start(|asked| Reply::found([a(&asked.name, 60, "127.0.0.1")]));
        let from_server = HickoryResolver::with_servers(NameServers::new([name_server.address()]));
        for resolver in [from_file, from_server] {
            let mut config = any_config();
            config.host.breaker = Some(nervous());
            let mut client = Client::with_resolver(config, resolver).unwrap();
            // The second time, the resolver runs already, and the file has changed.
            for name in ["first.test", "second.test"] {
                fs::write(hosts.path(), format!("127.0.0.1 {name}")).unwrap();
                let url = format!("http://{name}:{}/", servers[0].port());
                client.close_idle();
                let limit = leave(0);
                let error = client.get(&url, &mut Response::new()).unwrap_err();
                assert_kind!(error, ErrorKind::Shortage(_));
                let place = (error.phase(), error.sent());
                assert_eq!(place, (Phase::Resolve, Sent::Nothing));
                setrlimit(Resource::Nofile, limit).unwrap();
                client.get(&url, &mut Response::new()).unwrap();
            }
        }
    });
}

/// Opens at the first failure.
fn nervous() -> BreakerConfig {
    BreakerConfig {
        min_volume: NonZeroU32::MIN,
        ..BreakerConfig::default()
    }
}

fn calls(count: usize, target: impl Fn(usize) -> String) -> impl Iterator<Item = Call> {
    (0..count).map(move |n| Call::new(Request::get(target(n)), Response::new()).tag(n as u64))
}

fn assert_all_served(completions: Vec<Completion>, count: usize) {
    assert_eq!(completions.len(), count);
    for done in completions {
        done.outcome.unwrap();
    }
}

/// Leaves this process so many descriptors, and returns the limit before.
fn leave(count: usize) -> Rlimit {
    let numbers = fs::read_dir("/proc/self/fd").unwrap();
    let numbers = numbers.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let numbers: Vec<_> = numbers.collect();
    // The one that listed them is closed.
    let is_open = |number: &str| fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
    let open: HashSet<u64> = numbers
        .iter()
        .filter(|number| is_open(number))
        .map(|number| number.parse().unwrap())
        .collect();
    let mut free = (0..).filter(|number| !open.contains(number));
    let limit = getrlimit(Resource::Nofile);
    let current = free.nth(count);
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    limit
}

/// Runs the body of a test of this file in a process of its own, with servers in this process.
fn scarce(test: &str, servers: usize, body: impl FnOnce(&[SocketAddr])) {
    if let Ok(addresses) = env::var(SERVERS) {
        let addresses = addresses.split_whitespace().map(|one| one.parse().unwrap());
        return body(&addresses.collect::<Vec<_>>());
    }
    let servers: Vec<_> = (0..servers)
        .map(|_| Server::every(connection().always(OK)))
        .collect();
    let addresses: Vec<_> = servers.iter().map(|s| s.address().to_string()).collect();
    let mut command = Command::new(itself());
    command.env(SERVERS, addresses.join(" "));
    is_alone(&format!("blackbox::scarce::{test}"), &mut command);
}

const SERVERS: &str = "COURSER_TEST_SERVERS";
