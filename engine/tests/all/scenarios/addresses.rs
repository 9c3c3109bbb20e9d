//! The guard against requests that are steered into one's own network: whatever a URL, a name or a redirect says, an
//! address that the policy refuses sees not even a connection. Which addresses that are is in `engine/src/policy/address.rs`.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use courser::net::sim::SimNet;
use courser::{
    AddressPolicy, Config, ErrorKind, HostClient, HostConfig, Proxies, Redirects, Request,
    Response, Sent,
};

use super::{call, client_of, connects, hear, ip, next, numbered, place, target};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn guarded(addresses: AddressPolicy) -> Config {
    let mut config = Config {
        redirects: Redirects::limit(5),
        ..Config::default()
    };
    config.host.addresses = addresses;
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

/// A proxy at the first place.
fn proxy(scheme: &str) -> Proxies {
    let url = format!("{scheme}://10.0.0.1:80");
    Proxies::all(url.parse().unwrap())
}

#[test]
fn what_is_allowed_is_used_and_the_rest_passed_over() {
    let net = SimNet::new(1);
    hear(&net, 2, |peer, _| peer.send(OK));
    let policy = AddressPolicy::deny_private().allow("10.0.0.2".parse().unwrap());
    let mut client = client_of(&net, guarded(policy));
    let report = client.call(&mut Request::get("http://3.1.2.sim/"), &mut Response::new());
    assert_eq!(report.unwrap().remote(), Some(place(2)));
    assert_eq!(net.peak_streams(), 1);
    denied(client.get("http://1.3.sim/", &mut Response::new()));
}

#[test]
fn redirects_lead_nowhere_private() {
    for to in ["10.0.0.2", "[::ffff:10.0.0.2]", "localhost", "2.sim"] {
        for streaming in [false, true] {
            let net = SimNet::new(1);
            hear(&net, 2, move |peer, _| {
                peer.send(format!(
                    "HTTP/1.1 302 Found\r\nLocation: http://{to}/\r\nContent-Length: 0\r\n\r\n"
                ));
            });
            // A hook decides what is allowed here, and it allows the first address only.
            let is_first = AtomicBool::new(true);
            let hook = move |_| is_first.swap(false, Ordering::SeqCst);
            let config = guarded(AddressPolicy::allow_all().hook(Arc::new(hook)));
            let mut client = client_of(&net, config);
            client.submit(call("http://1.sim/").streaming(streaming));
            let done = next(&mut client);
            let error = done.outcome.unwrap_err();
            assert_kind!(error, ErrorKind::Denied(_));
            assert_eq!(done.report.redirects().len(), 1, "{to}");
            assert_eq!((connects(&net, 1), net.peak_streams()), (1, 1), "{to}");
        }
    }
}

#[test]
fn a_proxy_is_no_way_around() {
    for scheme in ["http", "socks5", "socks5h"] {
        let net = SimNet::new(1);
        let mut config = guarded(AddressPolicy::deny_private());
        config.proxies = proxy(scheme);
        let mut client = client_of(&net, config);
        // The proxy's own address, for which the policy on servers counts as for any other; `localhost` would be the
        // proxy's own, too.
        for host in ["10.0.0.1", "[::ffff:10.0.0.1]", "LOCALHOST.", "a.LocalHost"] {
            for url in [format!("http://{host}/"), format!("https://{host}:80/")] {
                denied(client.get(&url, &mut Response::new()));
            }
        }
        if scheme == "socks5" {
            // We look the name up, so that we can judge it.
            denied(client.get("http://2.sim/", &mut Response::new()));
        }
        assert_eq!(net.peak_streams(), 0);
    }
}

/// The user has chosen the proxy: by default, the policy on servers does not hold for it.
#[test]
fn a_proxy_may_be_private() {
    let net = SimNet::new(1);
    let heard = hear(&net, 1, |peer, head| {
        peer.send(match target(head).ends_with("/from") {
            true => "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.2/\r\nContent-Length: 0\r\n\r\n",
            false => OK,
        });
    });
    let mut client = client_of(&net, guarded(AddressPolicy::deny_private()));
    let mut run = |url: &str| client.perform(call(url).proxies(proxy("http")));
    // The address of the name is not known here.
    run("http://2.sim/").outcome.unwrap();
    denied(run("http://10.0.0.2/").outcome);
    // Nor does a redirect lead there.
    let error = run("http://2.sim/from").outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Denied(_));
    assert_eq!(heard.borrow().len(), 2);
}

/// A client of one host has the same guard, and the same fixed names, for which it asks nobody.
#[test]
fn a_client_of_one_host_is_guarded_too() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| peer.send(OK));
    let get = |upstream: &str, change: fn(&mut HostConfig)| {
        let mut config = HostConfig::default();
        change(&mut config);
        let (upstream, names) = (upstream.parse().unwrap(), numbered(&net));
        let client = HostClient::with_net_and_resolver(upstream, config, net.clone(), names);
        client.unwrap().get("/", &mut Response::new())
    };
    get("api.sim", |config| {
        config.dns.resolve("api.sim", None, [ip(1)]);
    })
    .unwrap();
    for upstream in ["1.sim", "10.0.0.1"] {
        let outcome = get(upstream, |config| {
            config.addresses = AddressPolicy::deny_private();
        });
        assert_eq!(denied(outcome), ip(1));
    }
    assert_eq!(connects(&net, 1), 1);
}

/// A proxy may be refused as well, and the names that only the proxy looks up.
#[test]
fn a_policy_for_proxies_and_one_for_names() {
    let net = SimNet::new(1);
    hear(&net, 1, |peer, _| peer.send(OK));
    let mut config = guarded(AddressPolicy::allow_all());
    config.proxies = proxy("http");
    config.proxy_addresses = AddressPolicy::deny_private();
    let mut client = client_of(&net, config);
    let ip = denied(client.get("http://2.sim/", &mut Response::new()));
    assert_eq!(ip.to_string(), "10.0.0.1");

    let policy = AddressPolicy::deny_private().deny_unresolved();
    for scheme in ["http", "socks5h"] {
        let mut config = guarded(policy.clone());
        config.proxies = proxy(scheme);
        let mut client = client_of(&net, config);
        for url in ["http://2.sim/", "https://2.sim/"] {
            let error = client.get(url, &mut Response::new()).unwrap_err();
            assert_kind!(error, ErrorKind::DeniedName(name) if **name == *"2.sim");
            assert_eq!(error.sent(), Sent::Nothing);
        }
    }
    assert_eq!(net.peak_streams(), 0);
    // Addresses are still judged, and names that are looked up here.
    let mut config = guarded(policy);
    config.proxies = proxy("http");
    let mut client = client_of(&net, config);
    client.get("http://8.8.8.8/", &mut Response::new()).unwrap();
    let done = client.perform(call("http://2.sim/").proxies(proxy("socks5")));
    denied(done.outcome);
}
