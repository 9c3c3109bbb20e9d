//! Names, from the URL to the connection: real name servers on loopback, the resolver's thread, the cache, the race.

use std::collections::HashSet;
use std::fs;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use courser::{
    Answer, Call, Client, Config, DnsConfig, DnsError, Error, ErrorKind, Family, HickoryResolver,
    NameServers, Phase, Reply as Answering, Request, Resolver, Response, Sent, SystemResolver,
    TimeLimit,
};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use tests::clients::{any_config, assert_none_left, named_client, run_any};
use tests::dns::{DnsServer, Reply, a, cname};
use tests::script::{Behaviour, PATIENCE, Server, connection, eventually, on_one_port};

use super::{CLOSING, OK};

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

// ---- answers and their time

#[test]
fn an_answer_is_used_as_long_as_it_holds() {
    let server = closing();
    let dns = DnsServer::start(|q| match q.name.as_str() {
        "hour.test." => Reply::found([a("hour.test.", 3600, "127.0.0.1")]),
        _ => Reply::found([a("never.test.", 0, "127.0.0.1")]),
    });
    let mut client = client_of(&dns, exact());
    for _ in 0..3 {
        get(&mut client, "hour.test", &server).unwrap();
        get(&mut client, "Hour.TEST", &server).unwrap();
        get(&mut client, "never.test", &server).unwrap();
    }
    assert_eq!((dns.asked("hour.test."), dns.asked("never.test.")), (1, 3));
    let counters = client.dns_counters();
    assert_eq!((counters.hits, counters.misses), (5, 4));
    assert_eq!((counters.asked, counters.failed), (4, 0));
    assert_eq!((counters.in_flight, counters.entries), (0, 2));
    assert_none_left(client, [&server]);
}

#[test]
fn a_name_that_moves_is_followed_when_its_time_is_over() {
    let both = on_one_port(&["127.0.0.1", "127.0.0.2"], |at| {
        Server::start_at(
            at,
            Behaviour::Every(connection().request().send(CLOSING).close()),
        )
    });
    let questions = AtomicUsize::new(0);
    let dns = DnsServer::start(move |q| {
        let again = q.kind == RecordType::A && questions.fetch_add(1, Ordering::SeqCst) > 0;
        let ip = if again { "127.0.0.2" } else { "127.0.0.1" };
        Reply::found([a("moving.test.", 1, ip)])
    });
    let mut client = client_of(&dns, exact());
    let began = Instant::now();
    assert_eq!(
        get(&mut client, "moving.test", &both[0]).unwrap(),
        "127.0.0.1"
    );
    eventually("the name has moved", || {
        get(&mut client, "moving.test", &both[0]).unwrap() == "127.0.0.2"
    });
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert!(both[1].accepted() > 0);
    assert_none_left(client, &both);
}

#[test]
fn flushed_names_are_asked_for_again() {
    let server = closing();
    let dns = DnsServer::start(|q| Reply::found([a(&q.name, 3600, "127.0.0.1")]));
    let mut client = client_of(&dns, exact());
    let both = |client: &mut Client| {
        get(client, "one.test", &server).unwrap();
        get(client, "two.test", &server).unwrap();
        (dns.asked("one.test."), dns.asked("two.test."))
    };
    assert_eq!(both(&mut client), (1, 1));
    assert_eq!(both(&mut client), (1, 1));
    client.flush_name("ONE.test");
    assert_eq!(both(&mut client), (2, 1));
    client.flush_names();
    assert_eq!(client.dns_counters().entries, 0);
    assert_eq!(both(&mut client), (3, 2));
}

#[test]
fn open_connections_need_no_name() {
    let server = Server::every(connection().always(OK));
    let dns = DnsServer::start(|_| Reply::found([a("once.test.", 0, "127.0.0.1")]));
    let mut client = client_of(&dns, exact());
    for _ in 0..3 {
        get(&mut client, "once.test", &server).unwrap();
    }
    assert_eq!((server.accepted(), dns.asked("once.test.")), (1, 1));
    assert_none_left(client, [&server]);
}

// ---- no addresses

#[test]
fn a_name_that_does_not_exist_is_asked_for_once() {
    let dns = DnsServer::start(|_| Reply::not_found(3600));
    let mut client = client_of(&dns, exact());
    let calls = (0..100).map(|tag| {
        let request = Request::get(format!("http://gone.test:1/{tag}"));
        Call::new(request, Response::new()).tag(tag)
    });
    for completion in run_any(&mut client, calls) {
        let error = completion.outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Dns(DnsError::NotFound)),
            "{error:?}"
        );
        assert_eq!(
            (error.phase(), error.sent()),
            (Phase::Resolve, Sent::Nothing)
        );
        assert_eq!(error.remote(), None);
    }
    let error = client.get("http://gone.test:2/", &mut Response::new());
    assert!(error.is_err());
    assert_eq!(dns.asked("gone.test."), 1);
    let counters = client.dns_counters();
    assert_eq!((counters.asked, counters.failed), (1, 1));
    assert!(counters.negative_hits > 0);
    assert_none_left(client, []);
}

#[test]
fn no_such_host_holds_for_its_own_time_and_a_name_may_come_back() {
    let server = closing();
    let there = Arc::new(AtomicBool::new(false));
    let seen = there.clone();
    let dns = DnsServer::start(move |_| match seen.load(Ordering::SeqCst) {
        true => Reply::found([a("new.test.", 3600, "127.0.0.1")]),
        false => Reply::not_found(0),
    });
    let mut client = client_of(&dns, exact());
    for asked in 1..=2 {
        let error = dns_error(get(&mut client, "new.test", &server));
        assert_eq!((error, dns.asked("new.test.")), (DnsError::NotFound, asked));
    }
    there.store(true, Ordering::SeqCst);
    get(&mut client, "new.test", &server).unwrap();
    assert_none_left(client, [&server]);
}

#[test]
fn a_name_without_addresses_is_another_error() {
    let server = closing();
    let dns = DnsServer::start(|_| Reply::Code(ResponseCode::NoError, Some(60)));
    let mut client = client_of(&dns, exact());
    let error = dns_error(get(&mut client, "mail.test", &server));
    assert_eq!(error, DnsError::NoAddresses);
    assert_eq!(server.accepted(), 0);
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
    let one = DnsServer::start(|_| Reply::failure());
    let other = DnsServer::start(|_| Reply::failure());
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
fn old_addresses_serve_while_the_servers_fail() {
    let server = closing();
    let broken = Arc::new(AtomicBool::new(false));
    let seen = broken.clone();
    let dns = DnsServer::start(move |_| match seen.load(Ordering::SeqCst) {
        true => Reply::failure(),
        false => Reply::found([a("old.test.", 0, "127.0.0.1")]),
    });
    let mut client = client_of(&dns, exact());
    get(&mut client, "old.test", &server).unwrap();
    broken.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(get(&mut client, "old.test", &server).unwrap(), "127.0.0.1");
    }
    assert!(client.dns_counters().failed > 0);
    // Without that leave, the failure is told.
    broken.store(false, Ordering::SeqCst);
    let strict = DnsConfig {
        stale_if_error: Duration::ZERO,
        ..exact()
    };
    let mut client = client_of(&dns, strict);
    get(&mut client, "old.test", &server).unwrap();
    broken.store(true, Ordering::SeqCst);
    let error = dns_error(get(&mut client, "old.test", &server));
    assert_eq!(error, DnsError::ServerFailure(2));
}

#[test]
fn a_silent_server_is_left_for_the_next_one() {
    let server = closing();
    let silent = DnsServer::start(|_| Reply::Silence);
    let good = DnsServer::start(|q| Reply::found([a(&q.name, 60, "127.0.0.1")]));
    let resolver = HickoryResolver::with_servers(NameServers {
        timeout: Duration::from_secs(1),
        ..servers([&silent, &good])
    });
    let mut client = named_client(config_of(exact()), resolver);
    get(&mut client, "one.test", &server).unwrap();
    assert!(silent.asked("one.test.") > 0);
}

#[test]
fn silence_ends_by_whichever_limit_is_first() {
    let server = closing();
    let silent = DnsServer::start(|_| Reply::Silence);
    let short = Duration::from_millis(50);

    // The resolver's.
    let resolver = HickoryResolver::with_servers(NameServers {
        timeout: short,
        attempts: 1,
        ..servers([&silent])
    });
    let mut client = named_client(config_of(exact()), resolver);
    assert_eq!(
        dns_error(get(&mut client, "a.test", &server)),
        DnsError::Timeout
    );
    assert_none_left(client, []);

    // The client's, for all calls that wait for the name.
    let mut config = config_of(exact());
    config.host.timeouts.resolve = Some(short);
    let resolver = HickoryResolver::with_servers(servers([&silent]));
    let mut client = named_client(config, resolver);
    let call = |tag| Call::new(Request::get(url("a.test", &server)), Response::new()).tag(tag);
    let began = Instant::now();
    for completion in run_any(&mut client, (0..10).map(call)) {
        let error = completion.outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Resolve)),
            "{error:?}"
        );
        assert_eq!(
            (error.phase(), error.sent()),
            (Phase::Resolve, Sent::Nothing)
        );
    }
    assert!(began.elapsed() >= short);
    assert_none_left(client, []);

    // The call's own.
    let resolver = HickoryResolver::with_servers(servers([&silent]));
    let mut client = named_client(config_of(exact()), resolver);
    let began = Instant::now();
    let done = run_any(&mut client, [call(0).timeout(short)]).remove(0);
    let error = done.outcome.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Timeout(TimeLimit::Total)),
        "{error:?}"
    );
    assert_eq!(
        (error.phase(), error.sent()),
        (Phase::Resolve, Sent::Nothing)
    );
    assert!(began.elapsed() >= short);
    // One that is cancelled while the name is looked up.
    let id = client.submit(call(1));
    assert!(client.wait(Some(Duration::ZERO)).unwrap().is_none());
    assert!(client.cancel(id));
    let done = client.wait(Some(PATIENCE)).unwrap().unwrap();
    assert!(matches!(
        done.outcome.unwrap_err().kind(),
        ErrorKind::Cancelled
    ));
    assert_none_left(client, []);
    assert_eq!(server.accepted(), 0);
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
fn aliases_are_followed_and_the_shortest_time_holds() {
    let server = closing();
    let dns = DnsServer::start(|q| match q.name.as_str() {
        "www.test." => Reply::found([
            cname("www.test.", 3600, "cdn.test."),
            cname("cdn.test.", 0, "host.test."),
            a("host.test.", 3600, "127.0.0.1"),
            // The client did not ask for this name.
            a("other.test.", 3600, "127.0.0.9"),
        ]),
        // The rest must be asked for.
        "piecewise.test." => Reply::found([cname("piecewise.test.", 3600, "host.test.")]),
        "host.test." => Reply::found([a("host.test.", 3600, "127.0.0.1")]),
        "round.test." => Reply::found([cname("round.test.", 3600, "about.test.")]),
        "about.test." => Reply::found([cname("about.test.", 3600, "round.test.")]),
        _ => Reply::not_found(60),
    });
    let mut client = client_of(&dns, exact());
    for asked in 1..=2 {
        assert_eq!(get(&mut client, "www.test", &server).unwrap(), "127.0.0.1");
        assert_eq!(dns.asked("www.test."), asked);
    }
    assert_eq!(
        get(&mut client, "piecewise.test", &server).unwrap(),
        "127.0.0.1"
    );
    let error = dns_error(get(&mut client, "round.test", &server));
    assert!(
        matches!(error, DnsError::NoAddresses | DnsError::Resolver(_)),
        "{error:?}"
    );
    assert_none_left(client, [&server]);
}

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
        Server::start_at(
            at,
            Behaviour::Every(connection().request().send(CLOSING).close()),
        )
    });
    let dns = DnsServer::start(|q| match (q.name.as_str(), q.kind) {
        ("half.test.", RecordType::AAAA) => Reply::failure(),
        _ => Reply::found([a(&q.name, 60, "127.0.0.1"), a(&q.name, 60, "::1")]),
    });
    let mut client = client_of(&dns, exact());
    assert_eq!(get(&mut client, "both.test", &both[0]).unwrap(), "::1");
    assert_eq!(
        get(&mut client, "half.test", &both[0]).unwrap(),
        "127.0.0.1"
    );
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

#[test]
fn connections_take_the_addresses_in_turn() {
    let ips = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    let all = on_one_port(&ips, |at| {
        Server::start_at(
            at,
            Behaviour::Every(connection().request().send(CLOSING).close()),
        )
    });
    let dns = DnsServer::start(move |q| Reply::found(ips.iter().map(|ip| a(&q.name, 60, ip))));
    let mut client = client_of(&dns, exact());
    for _ in 0..9 {
        get(&mut client, "many.test", &all[0]).unwrap();
    }
    let counts: Vec<usize> = all.iter().map(Server::accepted).collect();
    assert_eq!((counts, dns.asked("many.test.")), (vec![3, 3, 3], 1));
    assert_none_left(client, &all);
}

// ---- very many names

#[test]
fn each_of_a_thousand_names_is_asked_for_once() {
    const NAMES: u64 = 1_000;
    let server = closing();
    let dns = DnsServer::start(|q| match q.name.ends_with("00.test.") {
        true => Reply::found([a(&q.name, 3600, "127.0.0.1")]),
        false => Reply::not_found(3600),
    });
    // A name waits for all those before it.
    let mut config = config_of(DnsConfig {
        max_negative_ttl: Duration::from_secs(3600),
        ..DnsConfig::default()
    });
    config.host.timeouts.resolve = None;
    let resolver = HickoryResolver::with_servers(servers([&dns])).max_time(PATIENCE);
    let mut client = named_client(config, resolver);
    let call = |tag: u64| {
        let name = format!("n{}.test", tag % NAMES);
        Call::new(Request::get(url(&name, &server)), Response::new()).tag(tag)
    };
    for completion in run_any(&mut client, (0..2 * NAMES).map(call)) {
        let there = (completion.tag % NAMES).is_multiple_of(100) && completion.tag % NAMES > 0;
        assert_eq!(completion.outcome.is_ok(), there, "{completion:?}");
    }
    let names: HashSet<String> = dns.questions().into_iter().map(|q| q.name).collect();
    assert_eq!(names.len() as u64, NAMES);
    let counters = client.dns_counters();
    assert_eq!((counters.asked, counters.in_flight), (NAMES, 0));
    assert_none_left(client, [&server]);
}

#[test]
fn only_so_many_names_are_looked_up_at_once() {
    const AT_ONCE: usize = 8;
    let answering = Arc::new(AtomicBool::new(false));
    let seen = answering.clone();
    let dns = DnsServer::start(move |_| match seen.load(Ordering::SeqCst) {
        true => Reply::not_found(60),
        false => Reply::Silence,
    });
    let resolver = HickoryResolver::with_servers(NameServers {
        timeout: Duration::from_millis(50),
        attempts: 1000,
        ..NameServers::new([dns.address()])
    });
    let resolver = resolver.max_in_flight(AT_ONCE);
    let mut client = named_client(config_of(exact()), resolver);
    for n in 0..200 {
        client.submit(Call::new(
            Request::get(format!("http://n{n}.test/")),
            Response::new(),
        ));
    }
    // Each of those under way has been asked for thrice: whatever else is under way has been asked for too.
    eventually("the questions are repeated", || {
        assert!(
            client
                .wait(Some(Duration::from_millis(1)))
                .unwrap()
                .is_none()
        );
        dns.questions()
            .iter()
            .filter(|q| q.kind == RecordType::A)
            .count()
            >= 3 * AT_ONCE
    });
    let names: HashSet<String> = dns.questions().into_iter().map(|q| q.name).collect();
    assert_eq!(names.len(), AT_ONCE);
    answering.store(true, Ordering::SeqCst);
    let mut failed = 0;
    while let Some(done) = client.wait(Some(PATIENCE)).unwrap() {
        let error = done.outcome.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Dns(DnsError::NotFound)),
            "{error:?}"
        );
        failed += 1;
    }
    assert_eq!(failed, 200);
    assert_none_left(client, []);
}

#[test]
fn names_beyond_the_cache_are_forgotten() {
    let server = closing();
    let dns = DnsServer::start(|q| Reply::found([a(&q.name, 3600, "127.0.0.1")]));
    let config = DnsConfig {
        max_entries: NonZeroUsize::new(2).unwrap(),
        ..exact()
    };
    let mut client = client_of(&dns, config);
    for name in ["a.test", "b.test", "c.test", "a.test"] {
        get(&mut client, name, &server).unwrap();
    }
    assert_eq!((dns.asked("a.test."), dns.asked("b.test.")), (2, 1));
    let counters = client.dns_counters();
    assert_eq!((counters.entries, counters.evicted), (2, 2));
}

// ---- without name servers

/// Fails the test when it is asked.
struct Nobody;

impl Resolver for Nobody {
    fn lookup(&mut self, name: &str, _: Answering) {
        panic!("{name} has been asked for");
    }
}

#[test]
fn fixed_addresses_are_never_asked_for() {
    let server = closing();
    let port = server.address().port();
    let local: IpAddr = "127.0.0.1".parse().unwrap();
    let mut dns = exact();
    dns.resolve("Fixed.test.", None, [local]);
    dns.resolve("port.test", Some(port), [local]);
    dns.resolve("none.test", None, []);
    let mut client = named_client(config_of(dns), Nobody);
    for name in [
        "fixed.test",
        "FIXED.test.",
        "port.test",
        "localhost",
        "a.localhost",
    ] {
        get(&mut client, name, &server).unwrap();
    }
    let hosts: Vec<_> = server
        .requests()
        .iter()
        .flat_map(|r| r.header("host"))
        .collect();
    assert_eq!(hosts[0], format!("fixed.test:{port}"));
    let error = dns_error(get(&mut client, "none.test", &server));
    assert_eq!(error, DnsError::NoAddresses);
    let counters = client.dns_counters();
    assert_eq!((counters.asked, counters.entries), (0, 0));

    let mut dns = exact();
    dns.resolve("*", None, [local]);
    let mut client = named_client(config_of(dns), Nobody);
    get(&mut client, "whatever.test", &server).unwrap();
    assert_none_left(client, [&server]);
}

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

/// Loses every other question.
struct Forgetful(usize);

impl Resolver for Forgetful {
    fn lookup(&mut self, _: &str, reply: Answering) {
        self.0 += 1;
        if self.0.is_multiple_of(2) {
            let local: IpAddr = "127.0.0.1".parse().unwrap();
            std::thread::spawn(move || reply.answer(Answer::found([local], Duration::ZERO)));
        }
    }
}

#[test]
fn a_lookup_that_is_lost_ends_the_calls_that_wait_for_it() {
    let server = closing();
    let dns = DnsConfig {
        negative_ttl: Duration::ZERO,
        ..exact()
    };
    let mut client = named_client(config_of(dns), Forgetful(0));
    let error = dns_error(get(&mut client, "lost.test", &server));
    assert_eq!(error, DnsError::Unanswered);
    get(&mut client, "lost.test", &server).unwrap();
    assert_none_left(client, [&server]);
}

#[test]
fn dropped_while_names_are_looked_up() {
    let silent = DnsServer::start(|_| Reply::Silence);
    let resolver = HickoryResolver::with_servers(NameServers {
        timeout: Duration::from_secs(3600),
        ..servers([&silent])
    });
    let mut client = named_client(config_of(exact()), resolver);
    client.submit(Call::new(Request::get("http://a.test/"), Response::new()));
    eventually("the question is out", || {
        client.wait(Some(Duration::from_millis(1))).unwrap();
        silent.asked("a.test.") > 0
    });
    // Else this test would take an hour.
    drop(client);
}

// ---- slow names beside fast ones

/// Silent for all names of `silent.test`, and for all zones `dead0.test`, `dead1.test`...
fn partly_silent() -> DnsServer {
    DnsServer::start(|q| {
        let silent = q.name.ends_with(".silent.test.") || q.name.contains("dead");
        match silent {
            true => Reply::Silence,
            false => Reply::found([a(&q.name, 60, "127.0.0.1")]),
        }
    })
}

fn ask(resolver: &mut impl Resolver, name: &str) -> mpsc::Receiver<Answer> {
    let (sender, answer) = mpsc::channel();
    let reply = Answering::new(move |answer| drop(sender.send(answer)));
    resolver.lookup(name, reply);
    answer
}

#[test]
fn a_silent_zone_does_not_hold_other_names() {
    for count in [256, 2_000] {
        let dns = partly_silent();
        let mut resolver = HickoryResolver::with_servers(servers([&dns]));
        let silent: Vec<_> = (0..count)
            .map(|n| ask(&mut resolver, &format!("n{n}.silent.test")))
            .collect();
        eventually("the zone is asked", || dns.questions().len() > 100);
        for n in 0..20 {
            let answer = ask(&mut resolver, &format!("fast{n}.test")).recv_timeout(PATIENCE);
            let addresses = answer.expect("an answer").addresses;
            assert_eq!(addresses, Ok(vec!["127.0.0.1".parse().unwrap()]));
        }
        // The fast names did not wait until a silent one had failed.
        assert!(silent.iter().all(|silent| silent.try_recv().is_err()));
    }
}

/// More zones than there are slots.
#[test]
fn many_silent_zones_do_not_hold_other_names() {
    let dns = partly_silent();
    let mut resolver = HickoryResolver::with_servers(servers([&dns])).max_in_flight(16);
    let silent: Vec<_> = (0..64)
        .map(|n| ask(&mut resolver, &format!("www.dead{n}.test")))
        .collect();
    eventually("all slots are taken", || dns.questions().len() > 16);
    for n in 0..3 {
        let answer = ask(&mut resolver, &format!("fast{n}.test")).recv_timeout(PATIENCE);
        assert!(answer.expect("an answer").addresses.is_ok());
    }
    assert!(silent.iter().all(|silent| silent.try_recv().is_err()));
    // The silent names are asked for again and again.
    eventually("all names are asked for", || {
        (0..64).all(|n| dns.asked(&format!("www.dead{n}.test.")) > 0)
    });
}

#[test]
fn calls_to_silent_names_do_not_hold_other_calls_and_leave_no_lookup() {
    let server = closing();
    let dns = partly_silent();
    // Many more silent names than connections.
    let mut config = config_of(exact());
    config.max_connections = NonZeroUsize::new(16).unwrap();
    let resolver = HickoryResolver::with_servers(servers([&dns])).max_waiting(1_000);
    let mut client = named_client(config, resolver);
    let silent = |n| {
        let request = Request::get(format!("http://n{n}.silent.test/"));
        client_call(request).tag(n)
    };
    let ids: Vec<_> = (0..2_000).map(|n| client.submit(silent(n))).collect();
    // Half of the slots and half of the queue are for one zone. To be refused says nothing about these names.
    let mut refused = 0;
    while refused < 2_000 - 128 - 500 {
        let done = client
            .wait(Some(PATIENCE))
            .unwrap()
            .expect("refused at once");
        let error = done.outcome.unwrap_err();
        let full = ErrorKind::Dns(DnsError::QueueFull(1_000));
        assert_eq!(format!("{:?}", error.kind()), format!("{full:?}"));
        refused += 1;
    }
    assert_eq!(get(&mut client, "fast.test", &server).unwrap(), "127.0.0.1");
    let counters = client.dns_counters();
    assert_eq!(counters.in_flight, 2_000 - refused as usize);
    assert_eq!((counters.negative_hits, counters.cancelled), (0, 0));
    for id in ids {
        client.cancel(id);
    }
    let counters = client.dns_counters();
    assert_eq!(
        (counters.in_flight, counters.cancelled),
        (0, 2_000 - refused)
    );
    // The name is asked for again, and its lookup is cancelled with the deadline of its call.
    let id = client.submit(silent(0).timeout(Duration::from_millis(50)));
    while client.wait(Some(PATIENCE)).unwrap().expect("it ends").id != id {}
    assert_eq!(client.dns_counters().in_flight, 0);
    assert_none_left(client, [&server]);
}

/// Keeps the questions until the test answers them.
struct Held(mpsc::Sender<Answering>);

impl Resolver for Held {
    fn lookup(&mut self, _name: &str, reply: Answering) {
        self.0.send(reply).unwrap();
    }
}

#[test]
fn names_found_at_the_same_time_share_the_room_for_connections() {
    let server = Server::every(connection().always(OK));
    let (sender, asked) = mpsc::channel();
    let mut config = any_config();
    config.max_connections = NonZeroUsize::new(2).unwrap();
    let mut client = named_client(config, Held(sender));
    for n in 0..6 {
        client.submit(client_call(Request::get(url(
            &format!("n{n}.test"),
            &server,
        ))));
    }
    client.maintain(Duration::ZERO).unwrap();
    let replies: Vec<_> = asked.try_iter().collect();
    assert_eq!(replies.len(), 6);
    for reply in replies {
        let here = "127.0.0.1".parse().unwrap();
        reply.answer(Answer::found([here], Duration::from_secs(60)));
    }
    for _ in 0..6 {
        let done = client.wait(Some(PATIENCE)).unwrap().expect("an answer");
        assert!(done.outcome.is_ok(), "{:?}", done.outcome);
        let counters = client.counters();
        assert!(counters.open <= 2, "{counters:?}");
    }
    assert_eq!(server.accepted(), 6);
    assert!(asked.try_recv().is_err(), "a name was asked for again");
    assert_none_left(client, [&server]);
}

fn client_call(request: Request) -> Call {
    Call::new(request, Response::new())
}
