//! Names, from the URL to the connection: real name servers on loopback and the resolver's thread. What the cache does with
//! answers is in `engine/src/policy/dns/tests.rs`; lookups beside each other are in `net/resolve/lookup_queue/tests.rs`.

use std::fs;

use std::time::Duration;

use courser::{
    Client, Config, DnsConfig, DnsError, Error, ErrorKind, Family, HickoryResolver, NameServers,
    Phase, Reply as Answering, Resolver, Response, Sent, SystemResolver,
};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use tests::clients::{any_config, assert_none_left, named_client};
use tests::dns::{DnsServer, Reply, a};
use tests::script::{PATIENCE, Server, connection, on_one_port};

use super::CLOSING;

/// Answers hold exactly as long as the name server says, and not a moment longer.
fn exact() -> DnsConfig {
    DnsConfig {
        min_ttl: Duration::ZERO,
        stale_while_refresh: Duration::ZERO,
        ..DnsConfig::default()
    }
}

fn config_of(dns: DnsConfig) -> Config {
    let mut config = any_config();
    config.host.dns = dns;
    config
}

/// These name servers, with more patience than any test has.
fn servers<'a>(servers: impl IntoIterator<Item = &'a DnsServer>) -> NameServers {
    NameServers {
        timeout: PATIENCE,
        ..NameServers::new(servers.into_iter().map(DnsServer::address))
    }
}

fn client_of(dns: &DnsServer, config: DnsConfig) -> Client {
    named_client(
        config_of(config),
        HickoryResolver::with_servers(servers([dns])),
    )
}

/// A server that ends each connection, so that each call needs the name anew.
fn closing() -> Server {
    Server::every(connection().request().send(CLOSING).close())
}

fn url(name: &str, server: &Server) -> String {
    format!("http://{name}:{}/", server.address().port())
}

/// Gets the root of `server` by that name, and tells where it was.
fn get(client: &mut Client, name: &str, server: &Server) -> Result<String, Error> {
    let report = client.get(&url(name, server), &mut Response::new())?;
    let remote = report.remote().and_then(|remote| remote.ip());
    Ok(remote.map(|ip| ip.to_string()).unwrap_or_default())
}

fn dns_error(outcome: Result<String, Error>) -> DnsError {
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::Resolve, Sent::Nothing)
    );
    match error.kind() {
        ErrorKind::Dns(dns) => dns.clone(),
        _ => panic!("{error:?}"),
    }
}

// ---- servers that fail

#[test]
fn the_next_server_is_asked_and_stays_the_first() {
    let server = closing();
    let broken = DnsServer::start(|_| Reply::failure());
    let refusing = DnsServer::start(|_| Reply::Code(ResponseCode::Refused, None));
    let good = DnsServer::start(|q| Reply::found([a(&q.name, 60, "127.0.0.1")]));
    let resolver = HickoryResolver::with_servers(servers([&broken, &refusing, &good]));
    let mut client = named_client(config_of(exact()), resolver);
    get(&mut client, "one.test", &server).unwrap();
    assert_eq!(
        (broken.asked("one.test."), refusing.asked("one.test.")),
        (1, 1)
    );
    get(&mut client, "two.test", &server).unwrap();
    assert_eq!(
        (broken.asked("two.test."), refusing.asked("two.test.")),
        (0, 0)
    );
    assert_none_left(client, [&server]);
}

#[test]
fn servers_that_all_fail_are_named_by_their_answer_and_left_alone_for_a_while() {
    let server = closing();
    let [one, other] = [(); 2].map(|()| DnsServer::start(|_| Reply::failure()));
    let resolver = HickoryResolver::with_servers(servers([&one, &other]));
    let dns = DnsConfig {
        negative_ttl: Duration::from_secs(3600),
        max_negative_ttl: Duration::from_secs(3600),
        ..exact()
    };
    let mut client = named_client(config_of(dns), resolver);
    for _ in 0..3 {
        let error = dns_error(get(&mut client, "any.test", &server));
        assert_eq!(error, DnsError::ServerFailure(2));
    }
    // Two attempts at each.
    assert_eq!((one.asked("any.test."), other.asked("any.test.")), (2, 2));
}

#[test]
fn what_does_not_fit_into_a_datagram_comes_over_tcp() {
    let server = closing();
    let dns = DnsServer::start(|q| match q.tcp {
        true => Reply::found([a("large.test.", 60, "127.0.0.1")]),
        false => Reply::Truncated,
    });
    let mut client = client_of(&dns, exact());
    get(&mut client, "large.test", &server).unwrap();
    assert!(dns.questions().iter().any(|question| question.tcp));
    assert_none_left(client, [&server]);
}

// ---- what names lead to

#[test]
fn the_search_list_holds_for_short_names_and_not_with_a_last_dot() {
    let server = closing();
    let dns = DnsServer::start(|q| match q.name.as_str() {
        "db.corp.test." => Reply::found([a("db.corp.test.", 60, "127.0.0.1")]),
        "whole." | "part.whole." => Reply::found([a(&q.name, 60, "127.0.0.1")]),
        _ => Reply::not_found(60),
    });
    let resolver = HickoryResolver::with_servers(NameServers {
        search: vec!["nowhere.test".into(), "corp.test.".into()],
        ..servers([&dns])
    });
    let mut client = named_client(config_of(exact()), resolver);
    get(&mut client, "db", &server).unwrap();
    assert_eq!((dns.asked("db.nowhere.test."), dns.asked("db.")), (1, 0));
    get(&mut client, "part.whole", &server).unwrap();
    assert_eq!(dns.asked("part.whole.corp.test."), 0);
    let error = dns_error(get(&mut client, "db.", &server));
    assert_eq!((error, dns.asked("db.")), (DnsError::NotFound, 1));
    get(&mut client, "whole.", &server).unwrap();
    assert_none_left(client, [&server]);
}

#[test]
fn the_hosts_file_goes_before_the_servers_and_is_read_again() {
    let server = closing();
    let directory = tempfile::tempdir().unwrap();
    let (resolv_conf, hosts) = (
        directory.path().join("resolv.conf"),
        directory.path().join("hosts"),
    );
    fs::write(&resolv_conf, "nameserver not-an-address\n").unwrap();
    fs::write(&hosts, "127.0.0.1 db.internal db # the database\n").unwrap();
    let resolver = HickoryResolver::with_files(&resolv_conf, &hosts);
    let mut client = named_client(config_of(exact()), resolver);
    get(&mut client, "db.internal", &server).unwrap();
    get(&mut client, "DB", &server).unwrap();
    // A configuration that cannot be used is told with its path, and mended by changing the file.
    let DnsError::Config(what) = dns_error(get(&mut client, "new.internal", &server)) else {
        panic!("not told");
    };
    assert!(
        what.starts_with(&format!("{}: ", resolv_conf.display())),
        "{what}"
    );
    fs::write(&hosts, "127.0.0.1 db.internal\n127.0.0.1 new.internal\n").unwrap();
    client.flush_names();
    get(&mut client, "new.internal", &server).unwrap();
    assert!(get(&mut client, "db", &server).is_err());
    assert_none_left(client, [&server]);
}

#[test]
fn both_families_are_asked_for_and_ipv6_comes_first() {
    let both = on_one_port(&["127.0.0.1", "::1"], |at| {
        Server::start_at(at, connection().request().send(CLOSING).close())
    });
    let dns = DnsServer::start(|q| match (q.name.as_str(), q.kind) {
        ("half.test.", RecordType::AAAA) => Reply::failure(),
        ("mail.test.", _) => Reply::Code(ResponseCode::NoError, Some(60)),
        _ => Reply::found([a(&q.name, 60, "127.0.0.1"), a(&q.name, 60, "::1")]),
    });
    let mut client = client_of(&dns, exact());
    assert_eq!(get(&mut client, "both.test", &both[0]).unwrap(), "::1");
    assert_eq!(
        get(&mut client, "half.test", &both[0]).unwrap(),
        "127.0.0.1"
    );
    let neither = dns_error(get(&mut client, "mail.test", &both[0]));
    assert_eq!(neither, DnsError::NoAddresses);
    let v4 = DnsConfig {
        family: Some(Family::V4),
        ..exact()
    };
    let mut client = client_of(&dns, v4);
    assert_eq!(
        get(&mut client, "both.test", &both[0]).unwrap(),
        "127.0.0.1"
    );
}

// ---- without name servers

/// Looks up `localhost` with the system's resolver, whatever the name is.
struct ByTheSystem(SystemResolver);

impl Resolver for ByTheSystem {
    fn lookup(&mut self, _: &str, reply: Answering) {
        self.0.lookup("localhost", reply);
    }
}

#[test]
fn the_systems_resolver_answers() {
    let server = closing();
    let resolver = ByTheSystem(SystemResolver::default());
    let mut client = named_client(config_of(exact()), resolver);
    let remote = get(&mut client, "system.test", &server).unwrap();
    assert_eq!(remote, "127.0.0.1");
    // It knows no times.
    get(&mut client, "system.test", &server).unwrap();
    assert_eq!(client.dns_counters().asked, 1);
    assert_none_left(client, [&server]);
}
