//! The far side of a simulated connection: what a server is, and what it can do to a connection.

use std::time::{Duration, Instant};

use super::random::Random;

/// A scripted server. It is told what arrives and answers through the [`Peer`], at once or later in virtual time.
///
/// The callbacks run inside [`poll`](crate::net::Net::poll): they must not touch the [`SimNet`](super::SimNet).
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
    /// A connection has come up.
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        let _ = peer;
    }

    /// Bytes have arrived, in order, split anywhere.
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]);

    /// A [`Peer::timer`] has run out.
    fn on_timer(&mut self, peer: &mut Peer<'_>, timer: u64) {
        let _ = (peer, timer);
    }

    /// The connection is over: the client closed it, or the network broke it. Nothing sent from here on arrives.
    fn on_close(&mut self, peer: &mut Peer<'_>) {
        let _ = peer;
    }
}

/// The server's hold on one connection, during a callback.
///
/// What it does happens in order: [`wait`](Peer::wait) delays everything that is asked for after it, in this callback
/// and in later ones.
#[derive(Debug)]
pub struct Peer<'a> {
    pub(super) connection: u64,
    pub(super) now: Instant,
    pub(super) random: &'a mut Random,
    pub(super) steps: &'a mut Vec<Step>,
}

impl Peer<'_> {
    /// Which connection: a number that the simulation never gives again.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The run's source of chance.
    pub fn random(&mut self) -> &mut Random {
        self.random
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.steps.push(Step::Send(bytes.into()));
    }

    /// Does nothing for a while.
    pub fn wait(&mut self, time: Duration) {
        self.steps.push(Step::Wait(time));
    }

    /// Ends the sending side (FIN); what the client sends still arrives.
    pub fn shutdown(&mut self) {
        self.steps.push(Step::Shutdown);
    }

    /// Closes the connection: the client sees the end of the stream after what was sent, and a reset if it goes on
    /// sending or if bytes were left unread here.
    pub fn close(&mut self) {
        self.steps.push(Step::Close);
    }

    /// Breaks the connection off (RST).
    pub fn reset(&mut self) {
        self.steps.push(Step::Reset);
    }

    /// Stops taking bytes, so that the client's send window fills.
    pub fn stop_reading(&mut self) {
        self.steps.push(Step::Reading(false));
    }

    /// Takes bytes again.
    pub fn start_reading(&mut self) {
        self.steps.push(Step::Reading(true));
    }

    /// Calls [`SimServer::on_timer`] after a time, if the connection still stands then.
    pub fn timer(&mut self, after: Duration, timer: u64) {
        self.steps.push(Step::Timer(after, timer));
    }
}

/// What a server asked for.
#[derive(Debug)]
pub(super) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    Shutdown,
    Close,
    Reset,
    Reading(bool),
    Timer(Duration, u64),
}
