//! A simulated network whose memory and time are excluded, so that only those of the client are measured.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use courser::net::sim::{SimNet, SimResolver};
use courser::net::{Address, Event, Net, SocketOptions, Token, Waker};
use courser::{Reply, Resolver};

use crate::alloc::{apart, not_apart};

/// The time of `work` without the time spent in the network.
pub(super) fn inside(
    work: impl FnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<Duration, Box<dyn Error>> {
    OUTSIDE.set(Duration::ZERO);
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().saturating_sub(OUTSIDE.get()))
}

/// The simulated network without its memory and time.
pub(super) struct Apart {
    net: SimNet,
    events: Vec<Event>,
}

thread_local! {
    /// Time spent in the network.
    static OUTSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn outside<T>(work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = apart(work);
    OUTSIDE.set(OUTSIDE.get() + began.elapsed());
    result
}

impl Apart {
    pub(super) fn new(net: SimNet) -> Self {
        Self {
            net,
            events: Vec::new(),
        }
    }
}

impl Net for Apart {
    type Stream = <SimNet as Net>::Stream;

    fn now(&self) -> Instant {
        self.net.now()
    }

    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<Self::Stream> {
        outside(|| self.net.connect(token, to, options))
    }

    fn connected(&mut self, stream: &Self::Stream) -> io::Result<bool> {
        outside(|| self.net.connected(stream))
    }

    fn read(&mut self, stream: &mut Self::Stream, buf: &mut [u8]) -> io::Result<usize> {
        outside(|| self.net.read(stream, buf))
    }

    fn read_append(&mut self, stream: &mut Self::Stream, buf: &mut Vec<u8>) -> io::Result<usize> {
        outside(|| self.net.read_append(stream, buf))
    }

    fn write(&mut self, stream: &mut Self::Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        outside(|| self.net.write(stream, parts))
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        let polled = outside(|| self.net.poll(&mut self.events, timeout));
        events.append(&mut self.events);
        polled
    }

    fn waker(&mut self) -> io::Result<Waker> {
        self.net.waker()
    }

    fn close(&mut self, stream: Self::Stream) {
        outside(|| self.net.close(stream));
    }

    fn local_address(&self, stream: &Self::Stream) -> Option<Address> {
        self.net.local_address(stream)
    }

    fn random(&mut self) -> u64 {
        self.net.random()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        apart(|| drop(std::mem::replace(&mut self.net, SimNet::new(0))));
    }
}

/// The resolver of the simulated network without its memory and time.
pub(super) struct ApartNames(pub(super) SimResolver);

impl Resolver for ApartNames {
    fn lookup(&mut self, name: &str, reply: Reply) {
        apart(|| {
            let reply = Reply::new(|answer| {
                not_apart(|| reply.answer(answer.clone()));
            });
            self.0.lookup(name, reply);
        });
    }

    fn cancel(&mut self, name: &str) {
        apart(|| self.0.cancel(name));
    }
}
