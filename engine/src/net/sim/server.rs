//! The server's side of a simulated connection: the trait of servers, and what they can do to a connection.

use std::time::{Duration, Instant};

use super::random::Random;

/// A scripted server. Callbacks pass it what arrives. It answers through the [`Peer`], at once or later in virtual
/// time.
///
/// The callbacks run inside [`poll`](crate::net::Net::poll) and must not use the [`SimNet`](super::SimNet).
///
/// ```
/// use std::time::Duration;
/// use courser::net::sim::{Peer, SimServer};
///
/// /// Answers each piece of data in two halves with a second between them, then resets.
/// struct Slow;
///
/// impl SimServer for Slow {
///     fn on_data(&mut self, peer: &mut Peer<'_>, _data: &[u8]) {
///         peer.send("HTTP/1.1 200 OK\r\n");
///         peer.wait(Duration::from_secs(1));
///         peer.send("Content-Length: 5\r\n\r\nhel");
///         peer.reset();
///     }
/// }
/// ```
pub trait SimServer {
    /// A connection was established.
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        let _ = peer;
    }

    /// Bytes have arrived, in order, split anywhere.
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]);

    /// A [`Peer::timer`] has run out.
    fn on_timer(&mut self, peer: &mut Peer<'_>, timer: u64) {
        let _ = (peer, timer);
    }

    /// The connection is over: the client closed it, or the network reset it. Nothing that is sent from now on arrives.
    fn on_close(&mut self, peer: &mut Peer<'_>) {
        let _ = peer;
    }
}

/// The server's access to one connection, during a callback.
///
/// Actions happen in their order. [`wait`](Peer::wait) delays all actions after it, in this callback and in later ones.
#[derive(Debug)]
pub struct Peer<'a> {
    pub(super) connection: u64,
    pub(super) now: Instant,
    pub(super) random: &'a mut Random,
    pub(super) actions: &'a mut Vec<ServerAction>,
}

impl Peer<'_> {
    /// The number of the connection. The simulation uses each number once.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The random numbers of the run.
    pub fn random(&mut self) -> &mut Random {
        self.random
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.actions.push(ServerAction::Send(bytes.into()));
    }

    /// Sends bytes that arrive all at once, however many they are: a peer that is faster than the client.
    pub fn send_at_once(&mut self, bytes: impl Into<Vec<u8>>) {
        self.actions.push(ServerAction::SendAtOnce(bytes.into()));
    }

    /// Delays the next actions.
    pub fn wait(&mut self, time: Duration) {
        self.actions.push(ServerAction::Wait(time));
    }

    /// Ends the sending side (FIN). Bytes from the client still arrive.
    pub fn shutdown(&mut self) {
        self.actions.push(ServerAction::Shutdown);
    }

    /// Closes the connection. The client reads the end of the stream after the sent bytes, and gets a reset if it sends
    /// more or if bytes were left unread here.
    pub fn close(&mut self) {
        self.actions.push(ServerAction::Close);
    }

    /// Resets the connection (RST).
    pub fn reset(&mut self) {
        self.actions.push(ServerAction::Reset);
    }

    /// Stops reading, so that the client's send window fills.
    pub fn stop_reading(&mut self) {
        self.actions.push(ServerAction::Reading(false));
    }

    /// Reads again.
    pub fn start_reading(&mut self) {
        self.actions.push(ServerAction::Reading(true));
    }

    /// Calls [`SimServer::on_timer`] after this time, if the connection is still open then.
    pub fn timer(&mut self, after: Duration, timer: u64) {
        self.actions.push(ServerAction::Timer(after, timer));
    }
}

/// An action of a server.
#[derive(Debug)]
pub(super) enum ServerAction {
    Send(Vec<u8>),
    SendAtOnce(Vec<u8>),
    Wait(Duration),
    Shutdown,
    Close,
    Reset,
    Reading(bool),
    Timer(Duration, u64),
}
