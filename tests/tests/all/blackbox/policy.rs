//! The guard against requests that are steered into one's own network: whatever a URL, a name or a redirect says, an
//! address that the policy refuses sees not even a connection. Which addresses that are is in `engine/src/policy/address.rs`.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courser::{
    AddressPolicy, Call, Config, ErrorKind, Proxies, Redirects, Request, Response, Sent,
};
use tests::clients::{any_config, assert_none_left, named_client, run_any, saying};
use tests::script::{Server, connection, on_one_port};

use super::OK;

/// A configuration with that policy.
fn guarded(policy: AddressPolicy) -> Config {
    let mut config = any_config();
    config.host.addresses = policy;
    config.redirects = Redirects::limit(5);
    config.host.dns.min_ttl = Duration::ZERO;
    config.host.dns.max_ttl = Duration::ZERO;
    config
}

fn denied(outcome: Result<impl std::fmt::Debug, courser::Error>) -> IpAddr {
    let error = outcome.unwrap_err();
    assert_eq!(error.sent(), Sent::Nothing);
    match error.kind() {
        ErrorKind::Denied(ip) => *ip,
        _ => panic!("{error:?}"),
    }
}

#[test]
fn what_is_allowed_is_used_and_the_rest_passed_over() {
    let both = on_one_port(&["127.0.0.1", "127.0.0.2"], |at| {
        Server::start_at(at, connection().always(OK))
    });
    let port = both[0].address().port();
    let policy = AddressPolicy::deny_private().allow("127.0.0.2".parse().unwrap());
    let config = guarded(policy);
    let mut client = named_client(config, saying(&["10.0.0.1", "127.0.0.1", "127.0.0.2"]));
    let url = format!("http://mixed.example:{port}/");
    client.get(&url, &mut Response::new()).unwrap();
    assert_eq!((both[0].accepted(), both[1].accepted()), (0, 1));
    assert_none_left(client, &both);
}

#[test]
fn redirects_lead_nowhere_private() {
    let secret = Server::every(connection().always(OK));
    let private = secret.address().port();
    let open = Server::answer(move |request| {
        let location = match request.target().as_str() {
            "/literal" => format!("http://127.0.0.1:{private}/"),
            "/mapped" => format!("http://[::ffff:127.0.0.1]:{private}/"),
            "/localhost" => format!("http://localhost:{private}/"),
            _ => format!("http://metadata.example:{private}/"),
        };
        format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into()
    });
    let public = open.address().port();
    // The port does not matter. A hook decides what is allowed here, and it sees the first address only.
    let first = Arc::new(Mutex::new(true));
    let hook = {
        let first = first.clone();
        move |_| std::mem::take(&mut *first.lock().unwrap())
    };
    let config = guarded(AddressPolicy::allow_all().hook(Arc::new(hook)));
    for path in ["literal", "mapped", "localhost", "name"] {
        for streaming in [false, true] {
            *first.lock().unwrap() = true;
            let mut client = named_client(config.clone(), saying(&["127.0.0.1"]));
            let request = Request::get(format!("http://127.0.0.1:{public}/{path}"));
            let call = Call::new(request, Response::new()).streaming(streaming);
            let done = run_any(&mut client, [call]).remove(0);
            let error = done.outcome.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::Denied(_)),
                "{path}: {error:?}"
            );
            assert_eq!(done.report.redirects().len(), 1, "{path}");
            assert_none_left(client, []);
        }
    }
    assert_eq!(secret.accepted(), 0);
}

#[test]
fn a_proxy_is_no_way_around() {
    let proxy = Server::every(connection().always(OK));
    let port = proxy.address().port();
    for scheme in ["http", "socks5", "socks5h"] {
        let mut config = guarded(AddressPolicy::deny_private());
        let url = format!("{scheme}://127.0.0.1:{port}");
        config.proxies = Proxies::all(url.parse().unwrap());
        let mut client = named_client(config, saying(&["10.0.0.1"]));
        // The proxy's own address, for which the policy on servers counts as for any other; `localhost` would be the
        // proxy's own, too.
        for host in [
            "127.0.0.1",
            "[::ffff:10.0.0.1]",
            "LOCALHOST.",
            "a.LocalHost",
        ] {
            for url in [format!("http://{host}/"), format!("https://{host}:{port}/")] {
                denied(client.get(&url, &mut Response::new()));
            }
        }
        if scheme == "socks5" {
            // We look the name up, so that we can judge it.
            denied(client.get("http://inside.example/", &mut Response::new()));
        }
        assert_none_left(client, []);
    }
    assert_eq!(proxy.accepted(), 0);
}

/// The user has chosen the proxy: by default, the policy on servers does not hold for it.
#[test]
fn a_proxy_may_be_private() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n";
    let proxy = Server::answer(move |request| match request.target().ends_with("/from") {
        true => moved.into(),
        false => OK.into(),
    });
    let proxies: Proxies = Proxies::all(format!("http://{}", proxy.address()).parse().unwrap());
    let client = guarded(AddressPolicy::deny_private());
    let mut client = named_client(client, saying(&["10.0.0.1"]));
    let mut run = |url: &str| {
        let call = Call::new(Request::get(url), Response::new());
        run_any(&mut client, [call.proxies(proxies.clone())]).remove(0)
    };
    // The address of the name is not known here.
    run("http://somewhere.example/").outcome.unwrap();
    denied(run("http://127.0.0.1:9/").outcome);
    // Nor does a redirect lead there.
    let error = run("http://somewhere.example/from").outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Denied(_));
    assert_eq!(proxy.requests().len(), 2);
    assert_none_left(client, [&proxy]);
}

/// A proxy may be refused as well, and the names that only the proxy looks up.
#[test]
fn a_policy_for_proxies_and_one_for_names() {
    let proxy = Server::every(connection().always(OK));
    let proxies: Proxies = Proxies::all(format!("http://{}", proxy.address()).parse().unwrap());
    let mut config = guarded(AddressPolicy::allow_all());
    config.proxies = proxies.clone();
    config.proxy_addresses = AddressPolicy::deny_private();
    let mut client = named_client(config, saying(&["10.0.0.1"]));
    let ip = denied(client.get("http://somewhere.example/", &mut Response::new()));
    assert_eq!(ip, proxy.address().ip());
    assert_none_left(client, []);

    let policy = AddressPolicy::deny_private().deny_unresolved();
    for scheme in ["http", "socks5h"] {
        let mut config = guarded(policy.clone());
        let url = format!("{scheme}://{}", proxy.address());
        config.proxies = Proxies::all(url.parse().unwrap());
        let mut client = named_client(config, saying(&["10.0.0.1"]));
        for url in ["http://somewhere.example/", "https://somewhere.example/"] {
            let error = client.get(url, &mut Response::new()).unwrap_err();
            assert_kind!(error, ErrorKind::DeniedName(name) if **name == *"somewhere.example");
            assert_eq!(error.sent(), Sent::Nothing);
        }
        assert_none_left(client, []);
    }
    assert_eq!(proxy.accepted(), 0);
    // Addresses are still judged, and names that are looked up here.
    let mut config = guarded(policy);
    config.proxies = proxies;
    let mut client = named_client(config, saying(&["10.0.0.1"]));
    client.get("http://8.8.8.8/", &mut Response::new()).unwrap();
    let socks = format!("socks5://{}", proxy.address());
    let call = Call::new(Request::get("http://somewhere.example/"), Response::new());
    let call = call.proxies(Proxies::all(socks.parse().unwrap()));
    denied(run_any(&mut client, [call]).remove(0).outcome);
    assert_none_left(client, [&proxy]);
}
