//! Commands that come at the worst moment: while the client's thread polls without sleeping.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser::net::os::{OsNet, Stream};
use courser::net::{Address, Event, Net, SocketOptions, Token, Waker};
use courser::{HostClient, HostConfig, Shared, SharedConfig, Timeouts};

use super::call;
use super::server::Server;

/// An iteration polls twice if its last poll was long ago. The first poll takes the wake of a command that was not read
/// yet, and the second poll must not sleep then.
#[test]
fn a_wake_that_an_extra_poll_takes_is_not_lost() {
    let server = Server::start();
    let upstream = server.upstream();
    let (reached, halted) = channel();
    let (go_on, released) = channel();
    let halt = Arc::new(Mutex::new(Some(Halt { reached, released })));
    let is_armed = Arc::new(AtomicBool::new(false));
    // Only a command ends the sleep of the thread.
    let config = HostConfig {
        idle_timeout: Duration::MAX,
        timeouts: Timeouts::none(),
        ..HostConfig::default()
    };
    let client = Shared::spawn(SharedConfig::default(), {
        let is_armed = is_armed.clone();
        move |_| {
            let net = Hasty {
                net: OsNet::new().unwrap(),
                looks: Cell::new(0),
                halt: halt.clone(),
                is_armed: is_armed.clone(),
            };
            HostClient::with_net(upstream.clone(), config.clone(), net)
        }
    })
    .unwrap();
    let (sender, arrived) = courser::completions();
    let over = client.submit(call("/first"), &sender).unwrap();
    arrived.wait(None).unwrap().outcome.unwrap();
    is_armed.store(true, Ordering::SeqCst);
    // A command that only causes an iteration, in whose first poll the thread halts. The next command comes meanwhile.
    over.cancel();
    halted.recv().unwrap();
    client.submit(call("/second"), &sender).unwrap();
    go_on.send(()).unwrap();
    let done = arrived
        .wait(Some(PATIENCE))
        .expect("the completion is in the queue");
    assert_eq!(done.response.body(), b"/second");
}

/// Without the wake, the thread sleeps for ever. No busy machine takes as long.
const PATIENCE: Duration = Duration::from_secs(600);

/// The point where the thread halts once, until the test lets it continue.
struct Halt {
    reached: Sender<()>,
    released: Receiver<()>,
}

/// The system's network, with a clock on which every poll was long ago.
struct Hasty {
    net: OsNet,
    looks: Cell<u32>,
    halt: Arc<Mutex<Option<Halt>>>,
    /// The next poll that may not sleep halts.
    is_armed: Arc<AtomicBool>,
}

impl Net for Hasty {
    type Stream = Stream;

    fn now(&self) -> Instant {
        self.looks.set(self.looks.get() + 1);
        self.net.now() + Duration::from_millis(5) * self.looks.get()
    }

    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<Stream> {
        self.net.connect(token, to, options)
    }

    fn connected(&mut self, stream: &Stream) -> io::Result<bool> {
        self.net.connected(stream)
    }

    fn read(&mut self, stream: &mut Stream, buf: &mut [u8]) -> io::Result<usize> {
        self.net.read(stream, buf)
    }

    fn read_append(&mut self, stream: &mut Stream, buf: &mut Vec<u8>) -> io::Result<usize> {
        self.net.read_append(stream, buf)
    }

    fn write(&mut self, stream: &mut Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.net.write(stream, parts)
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        if timeout == Some(Duration::ZERO)
            && self.is_armed.load(Ordering::SeqCst)
            && let Some(halt) = self.halt.lock().unwrap().take()
        {
            halt.reached.send(()).unwrap();
            halt.released.recv().unwrap();
        }
        self.net.poll(events, timeout)
    }

    fn waker(&mut self) -> io::Result<Waker> {
        self.net.waker()
    }

    fn close(&mut self, stream: Stream) {
        self.net.close(stream);
    }

    fn local_address(&self, stream: &Stream) -> Option<Address> {
        self.net.local_address(stream)
    }

    fn random(&mut self) -> u64 {
        self.net.random()
    }
}
