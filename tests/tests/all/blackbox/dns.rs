//! Resolvers with real name servers on loopback and real files. What the cache does with answers is in
//! `engine/src/policy/dns/tests.rs`, the order of addresses in `engine/src/client/names.rs`, and lookups beside each other
//! in `engine/src/net/resolve/lookup_queue/tests.rs`.

use std::fs;
use std::sync::mpsc;

use courser::error::DnsError;
use courser::{Answer, HickoryResolver, NameServers, Reply as Answering, Resolver, SystemResolver};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use tests::dns::{DnsServer, Reply, a};
use tests::script::PATIENCE;

/// These name servers, with more patience than any test has.
fn servers<'a>(servers: impl IntoIterator<Item = &'a DnsServer>) -> NameServers {
    NameServers {
        timeout: PATIENCE,
        ..NameServers::new(servers.into_iter().map(DnsServer::address))
    }
}

/// The addresses of a name, in order, with spaces between them.
fn ask(resolver: &mut impl Resolver, name: &str) -> Result<String, DnsError> {
    let mut ips = answer_to(resolver, name).addresses?;
    ips.sort();
    let ips: Vec<_> = ips.iter().map(ToString::to_string).collect();
    Ok(ips.join(" "))
}

fn answer_to(resolver: &mut impl Resolver, name: &str) -> Answer {
    let (sender, answer) = mpsc::channel();
    let reply = Answering::new(move |answer| drop(sender.send(answer)));
    resolver.lookup(name, reply);
    answer.recv_timeout(PATIENCE).unwrap()
}

// ---- servers that fail

#[test]
fn the_next_server_is_asked_and_stays_the_first() {
    let broken = DnsServer::start(|_| Reply::failure());
    let refusing = DnsServer::start(|_| Reply::Code(ResponseCode::Refused, None));
    let good = DnsServer::start(|q| Reply::found([a(&q.name, 60, "127.0.0.1")]));
    let mut resolver = HickoryResolver::with_servers(servers([&broken, &refusing, &good]));
    for (name, asked) in [("one.test", 1), ("two.test", 0)] {
        assert_eq!(ask(&mut resolver, name).unwrap(), "127.0.0.1");
        let name = format!("{name}.");
        assert_eq!((broken.asked(&name), refusing.asked(&name)), (asked, asked));
    }
}

#[test]
fn servers_that_all_fail_are_named_by_their_answer() {
    let [one, other] = [(); 2].map(|()| DnsServer::start(|_| Reply::failure()));
    let mut resolver = HickoryResolver::with_servers(servers([&one, &other]));
    let error = ask(&mut resolver, "any.test").unwrap_err();
    assert_eq!(error, DnsError::ServerFailure(2));
    // Two attempts at each.
    assert_eq!((one.asked("any.test."), other.asked("any.test.")), (2, 2));
}

// ---- what names lead to

#[test]
fn the_search_list_holds_for_short_names_and_not_with_a_last_dot() {
    let dns = DnsServer::start(|q| match q.name.as_str() {
        "db.corp.test." => Reply::found([a("db.corp.test.", 60, "127.0.0.1")]),
        "whole." | "part.whole." => Reply::found([a(&q.name, 60, "127.0.0.1")]),
        _ => Reply::not_found(60),
    });
    let mut resolver = HickoryResolver::with_servers(NameServers {
        search: vec!["nowhere.test".into(), "corp.test.".into()],
        ..servers([&dns])
    });
    ask(&mut resolver, "db").unwrap();
    assert_eq!((dns.asked("db.nowhere.test."), dns.asked("db.")), (1, 0));
    ask(&mut resolver, "part.whole").unwrap();
    assert_eq!(dns.asked("part.whole.corp.test."), 0);
    let error = ask(&mut resolver, "db.").unwrap_err();
    assert_eq!((error, dns.asked("db.")), (DnsError::NotFound, 1));
    ask(&mut resolver, "whole.").unwrap();
}

#[test]
fn the_hosts_file_goes_before_the_servers_and_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let (resolv_conf, hosts) = (
        directory.path().join("resolv.conf"),
        directory.path().join("hosts"),
    );
    fs::write(&resolv_conf, "nameserver not-an-address\n").unwrap();
    fs::write(&hosts, "127.0.0.1 db.internal db # the database\n").unwrap();
    let mut resolver = HickoryResolver::with_files(&resolv_conf, &hosts);
    for name in ["db.internal", "db"] {
        assert_eq!(ask(&mut resolver, name).unwrap(), "127.0.0.1");
    }
    // A configuration that cannot be used is told with its path, and mended by changing the file.
    let Err(DnsError::Config(what)) = ask(&mut resolver, "new.internal") else {
        panic!("not told");
    };
    let path = format!("{}: ", resolv_conf.display());
    assert!(what.starts_with(&path), "{what}");
    fs::write(&hosts, "127.0.0.1 db.internal\n127.0.0.1 new.internal\n").unwrap();
    ask(&mut resolver, "new.internal").unwrap();
    ask(&mut resolver, "db").unwrap_err();
}

#[test]
fn both_families_are_asked_for_and_one_is_enough() {
    let dns = DnsServer::start(|q| match (q.name.as_str(), q.kind) {
        // What does not fit into a datagram comes over TCP.
        ("large.test.", _) if !q.tcp => Reply::Truncated,
        ("half.test.", RecordType::AAAA) => Reply::failure(),
        ("mail.test.", _) => Reply::Code(ResponseCode::NoError, Some(60)),
        _ => Reply::found([a(&q.name, 60, "127.0.0.1"), a(&q.name, 60, "::1")]),
    });
    let mut resolver = HickoryResolver::with_servers(servers([&dns]));
    for (name, expected) in [
        ("both.test", Ok("127.0.0.1 ::1")),
        ("large.test", Ok("127.0.0.1 ::1")),
        ("half.test", Ok("127.0.0.1")),
        ("mail.test", Err(DnsError::NoAddresses)),
    ] {
        let expected = expected.map(str::to_owned);
        assert_eq!(ask(&mut resolver, name), expected, "{name}");
    }
}

#[test]
fn an_answer_may_be_kept_for_as_long_as_its_records_say() {
    let dns = DnsServer::start(|q| match (q.name.as_str(), q.kind) {
        ("many.test.", RecordType::A) => Reply::found([
            a("many.test.", 90, "127.0.0.1"),
            a("many.test.", 70, "127.0.0.2"),
        ]),
        ("half.test.", RecordType::A) => Reply::found([a("half.test.", 90, "127.0.0.1")]),
        ("gone.test.", _) => Reply::not_found(50),
        ("many.test.", _) => Reply::Code(ResponseCode::NoError, Some(80)),
        _ => Reply::failure(),
    });
    let mut resolver = HickoryResolver::with_servers(servers([&dns]));
    for (name, seconds) in [
        ("many.test", Some(70)),
        // The other family may come back.
        ("half.test", Some(30)),
        ("gone.test", Some(50)),
        ("down.test", None),
    ] {
        let kept = answer_to(&mut resolver, name).ttl;
        assert_eq!(kept.map(|ttl| ttl.as_secs()), seconds, "{name}");
    }
}

// ---- without name servers

#[test]
fn the_systems_resolver_answers() {
    let found = ask(&mut SystemResolver::default(), "localhost").unwrap();
    assert!(found.starts_with("127.0.0.1"), "{found}");
}
