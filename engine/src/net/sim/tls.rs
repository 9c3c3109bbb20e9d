//! TLS in front of a server of the simulation.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::server::{Peer, ServerAction, SimServer};

/// A server that speaks TLS: another one, behind a session for each connection. The network splits and delays the records.
/// What the other server resets is cut off without `close_notify`.
///
/// ```
/// # fn example(config: std::sync::Arc<courser::rustls::ServerConfig>) {
/// use courser::net::sim::{HttpServer, Link, SimNet, TlsServer};
///
/// let net = SimNet::new(17);
/// let server = TlsServer::new(HttpServer::default(), config);
/// net.listen(courser::Address::Tcp(([10, 0, 0, 1], 443).into()), Link::default(), server);
/// # }
/// ```
#[derive(Debug)]
pub struct TlsServer<S> {
    server: S,
    config: Arc<ServerConfig>,
    sessions: BTreeMap<u64, ServerConnection>,
}

impl<S: SimServer> TlsServer<S> {
    /// Puts TLS with this configuration in front of a server.
    pub fn new(server: S, config: Arc<ServerConfig>) -> Self {
        Self {
            server,
            config,
            sessions: BTreeMap::new(),
        }
    }

    /// Lets the server act, and encrypts what it sends.
    fn act(&mut self, peer: &mut Peer<'_>, act: impl FnOnce(&mut S, &mut Peer<'_>)) {
        let mut actions = Vec::new();
        act(
            &mut self.server,
            &mut Peer {
                connection: peer.connection,
                now: peer.now,
                random: peer.random,
                actions: &mut actions,
            },
        );
        let Some(session) = self.sessions.get_mut(&peer.connection) else {
            return;
        };
        for action in actions {
            match action {
                ServerAction::Send(bytes) => {
                    _ = session.writer().write_all(&bytes);
                    peer.send(encrypted(session));
                }
                ServerAction::SendAtOnce(bytes) => {
                    _ = session.writer().write_all(&bytes);
                    peer.send_at_once(encrypted(session));
                }
                ServerAction::Shutdown | ServerAction::Close => {
                    session.send_close_notify();
                    peer.send(encrypted(session));
                    peer.actions.push(action);
                }
                action => peer.actions.push(action),
            }
        }
    }
}

impl<S: SimServer> SimServer for TlsServer<S> {
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        match ServerConnection::new(Arc::clone(&self.config)) {
            Ok(mut session) => {
                session.set_buffer_limit(None);
                self.sessions.insert(peer.connection, session);
                self.act(peer, S::on_connect);
            }
            Err(_) => peer.reset(),
        }
    }

    fn on_data(&mut self, peer: &mut Peer<'_>, mut data: &[u8]) {
        while !data.is_empty()
            && let Some(session) = self.sessions.get_mut(&peer.connection)
        {
            // Reading from a slice does not fail, and takes some bytes of what is no longer than a record.
            let read = session.read_tls(&mut data).unwrap_or_default();
            let failed = read == 0 || session.process_new_packets().is_err();
            let mut plain = Vec::new();
            _ = session.reader().read_to_end(&mut plain); // `WouldBlock` after the bytes that are there
            peer.send(encrypted(session));
            if !plain.is_empty() {
                self.act(peer, |server, peer| server.on_data(peer, &plain));
            }
            if failed {
                return peer.close();
            }
        }
    }

    fn on_timer(&mut self, peer: &mut Peer<'_>, timer: u64) {
        self.act(peer, |server, peer| server.on_timer(peer, timer));
    }

    fn on_close(&mut self, peer: &mut Peer<'_>) {
        self.act(peer, S::on_close);
        self.sessions.remove(&peer.connection);
    }
}

/// What the session has to send.
fn encrypted(session: &mut ServerConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while session.wants_write() && session.write_tls(&mut records).is_ok() {}
    records
}
