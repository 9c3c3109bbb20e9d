//! TLS over real sockets, with rustls's server as the peer: whose identity a call has, and ends of
//! connections. Certificates, versions, names, resumption, alerts and records are in `engine/src/net/tls/tests.rs`;
//! handshakes that stall are in `engine/tests/all/scenarios/one_host.rs`.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use courser::error::{PeerFault, RedirectFault, TlsFault};
use courser::policy::{Redirect, RedirectAction};
use courser::proto::UrlError;
use courser::{
    Call, Client, ErrorKind, Phase, Redirects, Request, Response, Sent, TlsConfig, TlsIdentity,
};
use tests::alone::{is_alone, itself};
use tests::clients::{any_client, any_config, assert_none_left, run};
use tests::script::{PATIENCE, Server, connection, eventually};
use tests::tls::{Acceptor, Authority};

use super::OK;

/// An authority, and a server of its for both names that tests use.
fn good() -> (Authority, Acceptor) {
    let authority = Authority::new("authority");
    let acceptor = authority.leaf(&["127.0.0.1", "a.example"]).acceptor();
    (authority, acceptor)
}

fn client(tls: TlsConfig) -> Client {
    let mut config = any_config();
    config.host.tls = tls;
    config.host.timeouts.total = Some(PATIENCE);
    let local = [[127, 0, 0, 1].into()];
    config.host.dns.resolve("*", None, local);
    any_client(config)
}

fn url(server: &Server) -> String {
    format!("https://{}/", server.address())
}

// ---- identities

#[test]
fn who_one_call_is_holds_for_it_alone() {
    let (authority, clients) = (Authority::new("authority"), Authority::new("clients"));
    let acceptor = authority.leaf(&["127.0.0.1"]).acceptor_demanding(&clients);
    let server = Server::every(connection().tls(&acceptor).always(OK));
    let identity = |name| {
        let own = TlsConfig {
            client: Some(clients.leaf(&[name]).for_client()),
            ..authority.trusted()
        };
        own.build().unwrap()
    };
    let (first, second) = (identity("first"), identity("second"));
    // The client has no identity of its own, and it does not trust the server.
    let mut client = client(TlsConfig::default());
    let mut run = |own: Option<&TlsIdentity>| {
        let mut call = Call::new(Request::get(url(&server)), Response::new());
        if let Some(own) = own {
            call = call.tls(own.clone());
        }
        run(&mut client, [call]).remove(0)
    };
    for own in [&first, &second, &first, &second] {
        run(Some(own)).outcome.unwrap();
    }
    // One connection for each, used twice; and a session of one is not resumed by the other.
    assert_eq!(server.sessions().len(), 2);
    for session in server.sessions() {
        assert!(session.client_certificates == 1 && !session.resumed);
    }
    assert_eq!(server.requests().len(), 4);
    let error = run(None).outcome.unwrap_err();
    assert_kind!(error, ErrorKind::Tls(TlsFault::UnknownIssuer));
    assert_eq!(client.hosts(), 3);
    assert_none_left(client, [&server]);
}

// ---- the log of keys

/// The variable is the process's: the test runs itself again with it.
#[test]
fn keys_are_logged() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("keys");
    let mut command = Command::new(itself());
    command.env("SSLKEYLOGFILE", &log);
    if !is_alone("blackbox::tls::keys_are_logged", &mut command) {
        let keys = std::fs::read_to_string(log).unwrap();
        assert!(keys.contains("CLIENT_TRAFFIC_SECRET_0 "), "{keys}");
        assert!(keys.contains("SERVER_TRAFFIC_SECRET_0 "), "{keys}");
        // One of the two clients has not logged.
        assert_eq!(keys.matches("CLIENT_HANDSHAKE_TRAFFIC_SECRET ").count(), 1);
        return;
    }
    let (authority, acceptor) = good();
    for key_log in [true, false] {
        let server = Server::play([connection().tls(&acceptor).always(OK)]);
        let mut client = client(TlsConfig {
            key_log,
            ..authority.trusted()
        });
        client.get(&url(&server), &mut Response::new()).unwrap();
    }
}

// ---- ends of connections

/// RFC 9112 §9.8: only `close_notify` ends a body that has no other end.
#[test]
fn rfc_9112_close_notify_ends_a_body_and_fin_alone_does_not() {
    let (authority, acceptor) = good();
    let until_close = "HTTP/1.1 200 OK\r\n\r\nall of it";
    let with_length = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nall of it";
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nall of it\r\n0\r\n\r\n";
    let half_length = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nall of it";
    let half_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nall of it\r\n";
    // The reply, and whether it is whole with and without close_notify.
    for (reply, with, without) in [
        (until_close, true, false),
        (with_length, true, true),
        (chunked, true, true),
        (half_length, false, false),
        (half_chunk, false, false),
    ] {
        for (notify, whole) in [(true, with), (false, without)] {
            let mut script = connection().tls(&acceptor).request().send(reply);
            if notify {
                script = script.close_notify();
            }
            let server = Server::play([script.half_close()]);
            let (mut client, mut response) = (client(authority.trusted()), Response::new());
            match client.get(&url(&server), &mut response) {
                Ok(_) => {
                    assert!(whole, "{reply:?} {notify}");
                    assert_eq!(response.body(), b"all of it");
                }
                Err(error) => {
                    assert!(!whole, "{reply:?} {notify}: {error:?}");
                    let expected = match error.kind() {
                        ErrorKind::Peer(PeerFault::Truncated) => reply != until_close,
                        ErrorKind::Tls(TlsFault::Truncated) => reply == until_close,
                        _ => false,
                    };
                    assert!(expected, "{reply:?} {notify}: {error:?}");
                    assert_eq!(
                        (error.phase(), error.sent()),
                        (Phase::Body, Sent::ReplyBegun)
                    );
                }
            }
            assert_none_left(client, [&server]);
        }
    }
}

#[test]
fn an_idle_connection_that_the_server_ends_is_dropped() {
    let (authority, acceptor) = good();
    let first = || connection().tls(&acceptor).request().send(OK);
    for ending in [
        first().close_notify(),
        first().half_close(),
        first().reset(),
        // An answer without a request.
        first().send("HTTP/1.1 408 Request Timeout\r\n\r\n"),
    ] {
        let server = Server::play([ending, connection().tls(&acceptor).always(OK)]);
        let mut client = client(authority.trusted());
        let answered = client.get(&url(&server), &mut Response::new());
        answered.unwrap();
        eventually("the connection is dropped", || {
            client.maintain(Duration::from_millis(1)).unwrap();
            client.counters().open == 0
        });
        let mut request = Request::post(url(&server), "not to be repeated");
        client.call(&mut request, &mut Response::new()).unwrap();
        assert_eq!(server.served_by(), [0, 1]);
        assert_none_left(client, [&server]);
    }
}

// ---- with the rest of the client

#[test]
fn a_redirect_from_https_to_http_can_be_refused() {
    let (authority, acceptor) = good();
    let found = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://127.0.0.1/\r\n\r\n";
    let server = Server::every(connection().tls(&acceptor).request().send(found));
    let not_https = RedirectFault::Url(UrlError::NotHttps);
    for (https_only, action, fault) in [
        (true, RedirectAction::Follow, not_https),
        (false, RedirectAction::Refuse, RedirectFault::Refused),
    ] {
        let steer = move |redirect: &mut Redirect<'_>| {
            assert!(redirect.leaves_tls);
            action
        };
        let mut config = any_config();
        config.host.tls = authority.trusted();
        config.https_only = https_only;
        config.redirects = Redirects::limit(3).hook(Arc::new(steer));
        let (url, mut response) = (url(&server).replace("https", "HTTPS"), Response::new());
        let error = any_client(config).get(&url, &mut response).unwrap_err();
        assert!(error.to_string().ends_with(&fault.to_string()), "{error}");
        assert_eq!(response.status(), 302);
    }
}

/// A redirect to another origin takes neither the client's certificate along nor that of the call, nor a session that
/// began with one.
#[test]
fn a_client_certificate_stays_with_its_origin() {
    let (authority, clients) = (Authority::new("authority"), Authority::new("clients"));
    let acceptor = authority.leaf(&["127.0.0.1"]).acceptor_asking(&clients);
    let own = TlsConfig {
        client: Some(clients.leaf(&["me"]).for_client()),
        ..authority.trusted()
    };
    for by_call in [false, true] {
        let there = Server::every(connection().tls(&acceptor).always(OK));
        let found = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation";
        let found = format!("{found}: {}\r\n\r\n", url(&there));
        let here = Server::every(connection().tls(&acceptor).request().send(found));
        let mut config = any_config();
        config.redirects = Redirects::limit(3);
        config.host.tls = if by_call {
            authority.trusted()
        } else {
            own.clone()
        };
        let mut client = any_client(config);
        let identity = own.build().unwrap();
        for url in [url(&there), url(&here)] {
            let mut call = Call::new(Request::get(url), Response::new());
            if by_call {
                call = call.tls(identity.clone());
            }
            run(&mut client, [call]).remove(0).outcome.unwrap();
        }
        assert_eq!(here.sessions()[0].client_certificates, 1);
        let sessions = there.sessions();
        let seen = sessions
            .iter()
            .map(|it| (it.client_certificates, it.resumed));
        assert_eq!(seen.collect::<Vec<_>>(), [(1, false), (0, false)]);
        assert_none_left(client, [&here, &there]);
    }
}
