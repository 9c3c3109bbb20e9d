//! Handshakes with proxies, and TLS: what has to be said on a new connection before the connection can serve a call.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::conn::{Conn, ConnState};
use super::read::READS_PER_ITERATION;
use super::{Common, Opened, OpeningKey, ReactorEvent};
use crate::address::bare;
use crate::error::{ErrorKind, Phase, ProxyFault};
use crate::net::Net;
use crate::net::session::HandshakeProgress;
use crate::net::tls::{TlsIdentity, session};
use crate::net::transport::Transport;
use crate::proto::{Credentials, Handshake, Socks5, SocksTarget, Tunnel};
use crate::time::Time;

/// A handshake that the connections of a host need.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// TLS with the proxy, which has that name.
    ProxyTls(TlsIdentity, Box<str>),
    /// TLS with the server, which has that name.
    Tls(TlsIdentity, Box<str>),
    /// SOCKS5 to a name or an address, and a port.
    Socks {
        host: Box<str>,
        port: u16,
        credentials: Option<Credentials>,
    },
    /// CONNECT to `host:port`.
    Tunnel {
        host_port: Box<str>,
        user_agent: Option<Box<str>>,
        credentials: Option<Credentials>,
        headers: Box<[Header]>,
    },
}

/// A name and a value.
type Header = (Box<str>, Box<[u8]>);

/// A message between the client and a proxy about a tunnel: its head.
#[derive(Debug)]
pub(crate) enum ProxyMessage {
    Request(Box<[u8]>),
    /// With its status.
    Answer(u16, Box<[u8]>),
}

impl Step {
    /// The same steps, but the SOCKS5 proxy gets this address instead of a name.
    pub(crate) fn with_socks_address(steps: &[Self], ip: IpAddr) -> Arc<[Self]> {
        let mut steps = steps.to_vec();
        for step in &mut steps {
            if let Self::Socks { host, .. } = step {
                *host = ip.to_string().into();
            }
        }
        steps.into()
    }
}

/// The handshakes of one connection.
#[derive(Debug)]
pub(crate) struct Handshakes {
    pub(super) opening: OpeningKey,
    steps: Arc<[Step]>,
    /// The index of the present step.
    at: usize,
    machine: Machine,
    /// When the present step began.
    pub(super) since: Time,
    /// How long each step may take.
    pub(super) limit: Option<Duration>,
    /// How long the steps took, and what a proxy has answered.
    opened: Opened,
    /// Messages that the client has not got yet.
    messages: Vec<ProxyMessage>,
}

#[derive(Debug)]
enum Machine {
    /// The transport has the session.
    Tls,
    Proxy(Dialogue),
    Done,
}

/// A handshake with a proxy.
#[derive(Debug)]
enum Dialogue {
    Socks(Socks5),
    Tunnel(Box<Tunnel>),
}

impl Handshakes {
    /// Begins the present step.
    pub(super) fn begin<S>(&mut self, transport: &mut Transport<S>) -> Result<(), ErrorKind> {
        self.machine = match self.steps.get(self.at) {
            Some(Step::ProxyTls(identity, name) | Step::Tls(identity, name)) => {
                transport.secure(session(identity, name)?);
                Machine::Tls
            }
            Some(Step::Socks {
                host,
                port,
                credentials,
            }) => {
                let ip = bare(host).parse();
                let target = ip.map_or(SocksTarget::Name(host), SocksTarget::Ip);
                let socks = Socks5::new(target, *port, credentials.as_ref())?;
                Machine::Proxy(Dialogue::Socks(socks))
            }
            Some(Step::Tunnel {
                host_port,
                user_agent,
                credentials,
                headers,
            }) => {
                let tunnel = Tunnel::new(
                    host_port,
                    user_agent.as_deref(),
                    credentials.as_ref(),
                    headers,
                )?;
                self.messages
                    .push(ProxyMessage::Request(tunnel.request_head().into()));
                Machine::Proxy(Dialogue::Tunnel(tunnel.into()))
            }
            None => Machine::Done,
        };
        Ok(())
    }

    /// Drives the handshakes until all are done, the socket would block, or the budget of the iteration is used up.
    pub(super) fn drive<N: Net>(
        &mut self,
        transport: &mut Transport<N::Stream>,
        net: &mut N,
        buffer: &mut [u8],
        now: Time,
    ) -> Result<HandshakeProgress, ErrorKind> {
        loop {
            let progress = match &mut self.machine {
                Machine::Done => return Ok(HandshakeProgress::Done),
                Machine::Tls => transport.handshake(net, buffer)?,
                Machine::Proxy(dialogue) => {
                    let driven = drive_proxy(dialogue, transport, net, buffer);
                    let ended = matches!(driven, Ok(HandshakeProgress::Done) | Err(_));
                    if let Dialogue::Tunnel(tunnel) = dialogue
                        && let response = tunnel.response()
                        && ended
                        && response.status() > 0
                    {
                        let (status, head) = (response.status(), response.head());
                        self.messages
                            .push(ProxyMessage::Answer(status, head.into()));
                        self.opened.proxy_answer = Some((status, head.into()));
                    }
                    driven?
                }
            };
            if progress != HandshakeProgress::Done {
                return Ok(progress);
            }
            let took = now.saturating_duration_since(self.since);
            match self.steps.get(self.at) {
                Some(Step::Tls(..)) => self.opened.tls = Some(took),
                _ => *self.opened.proxy.get_or_insert_default() += took,
            }
            self.since = now;
            self.at += 1;
            self.begin(transport)?;
        }
    }

    /// The phase of the present step. TLS with a proxy belongs to the phase of the proxy.
    pub(crate) fn phase(&self) -> Phase {
        match self.steps.get(self.at) {
            Some(Step::Tls(..)) => Phase::Tls,
            _ => Phase::Proxy,
        }
    }
}

impl<N: Net> Conn<N> {
    /// Begins the handshakes of a connection that is up.
    pub(super) fn begin_handshakes<C>(
        &mut self,
        common: &mut Common<N, C>,
        opening: OpeningKey,
        steps: Arc<[Step]>,
        limit: Option<Duration>,
    ) -> Result<(), ErrorKind> {
        let mut handshakes = Box::new(Handshakes {
            opening,
            steps,
            at: 0,
            machine: Machine::Done,
            since: common.now,
            limit,
            opened: Opened::default(),
            messages: Vec::new(),
        });
        let begun = handshakes.begin(&mut self.stream);
        self.state = ConnState::Handshaking(handshakes);
        begun?;
        self.drive_handshakes(common)
    }

    /// Goes on with the handshakes.
    pub(super) fn drive_handshakes<C>(
        &mut self,
        common: &mut Common<N, C>,
    ) -> Result<(), ErrorKind> {
        let ConnState::Handshaking(handshakes) = &mut self.state else {
            return Ok(());
        };
        let (net, buffer) = (&mut common.net, &mut common.buffer);
        let driven = handshakes.drive(&mut self.stream, net, buffer, common.now);
        for message in handshakes.messages.drain(..) {
            let endpoints = Arc::clone(&self.endpoints);
            let tunnel = ReactorEvent::Tunnel { endpoints, message };
            common.events.push_back(tunnel);
        }
        match driven? {
            HandshakeProgress::Done => {
                let opening = handshakes.opening;
                let mut opened = std::mem::take(&mut handshakes.opened);
                opened.tls_info = self.stream.info();
                self.opened = Some(Box::new(opened));
                self.state = ConnState::AwaitingDecision;
                // Bytes that came together with the end of the handshake cause no event of their own.
                self.defer_read(common);
                let conn = self.key;
                let ready = ReactorEvent::Ready { opening, conn };
                common.events.push_back(ready);
            }
            progress => {
                if progress == HandshakeProgress::Budget {
                    self.defer_read(common);
                }
                self.arm_anew(common);
            }
        }
        Ok(())
    }
}

/// Gives a proxy the bytes of a handshake, and takes the bytes of its answers.
fn drive_proxy<N: Net>(
    dialogue: &mut Dialogue,
    transport: &mut Transport<N::Stream>,
    net: &mut N,
    buffer: &mut [u8],
) -> Result<HandshakeProgress, ErrorKind> {
    let would_block = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    for _ in 0..READS_PER_ITERATION {
        let out = match dialogue {
            Dialogue::Socks(socks) => socks.poll_send(),
            Dialogue::Tunnel(tunnel) => tunnel.poll_send()?,
        };
        if !out.is_empty() {
            match transport.write(net, buffer, &[IoSlice::new(out)]) {
                Ok(n) => match dialogue {
                    Dialogue::Socks(socks) => socks.handle_sent(n),
                    Dialogue::Tunnel(tunnel) => tunnel.handle_sent(n),
                },
                Err(error) if would_block(&error) => return Ok(HandshakeProgress::Blocked),
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        let n = match transport.read(net, buffer) {
            Ok(0) => return Err(ProxyFault::Closed.into()),
            Ok(n) => n,
            Err(error) if would_block(&error) && transport.has_more() => continue,
            Err(error) if would_block(&error) => return Ok(HandshakeProgress::Blocked),
            Err(error) => return Err(error.into()),
        };
        let handled = match dialogue {
            Dialogue::Socks(socks) => socks.handle_read(&buffer[..n]),
            Dialogue::Tunnel(tunnel) => tunnel.handle_read(&buffer[..n]),
        };
        match handled? {
            (used, Handshake::Done) if used == n => return Ok(HandshakeProgress::Done),
            // The server cannot have sent these bytes: no request was sent yet.
            (_, Handshake::Done) => return Err(ProxyFault::Surplus.into()),
            (_, Handshake::Pending) => {}
        }
    }
    Ok(HandshakeProgress::Budget)
}
