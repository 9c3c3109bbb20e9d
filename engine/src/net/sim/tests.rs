use std::io::{ErrorKind, IoSlice};
use std::time::Duration;

use rustix::io::Errno;

use super::*;
use crate::error::Shortage;

/// Runs a script when data arrives.
struct Script<F>(F);

impl<F: FnMut(&mut Peer<'_>, &[u8])> SimServer for Script<F> {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        (self.0)(peer, data);
    }
}

fn address() -> Address {
    Address::Tcp("10.0.0.1:80".parse().unwrap())
}

fn net_with(link: Link, script: impl FnMut(&mut Peer<'_>, &[u8]) + 'static) -> SimNet {
    let net = SimNet::new(1);
    net.listen(address(), link, Script(script));
    net
}

fn poll(net: &mut SimNet, timeout: Option<Duration>) -> Vec<Event> {
    let mut events = Vec::new();
    net.poll(&mut events, timeout).unwrap();
    events
}

fn start(net: &mut SimNet) -> io::Result<SimStream> {
    net.connect(Token(9), &address(), &SocketOptions::default())
}

fn connect(net: &mut SimNet) -> SimStream {
    let stream = start(net).unwrap();
    while !net.connected(&stream).unwrap() {
        poll(net, None);
    }
    stream
}

fn write(net: &mut SimNet, stream: &mut SimStream, bytes: &[u8]) -> io::Result<usize> {
    net.write(stream, &[IoSlice::new(bytes)])
}

fn is_errno(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn read(net: &mut SimNet, stream: &mut SimStream, room: usize) -> io::Result<Vec<u8>> {
    let mut buf = vec![0; room];
    let n = net.read(stream, &mut buf)?;
    buf.truncate(n);
    Ok(buf)
}

fn shortage_of(error: io::Error) -> Option<Shortage> {
    error.downcast().ok()
}

#[test]
fn data_for_a_closed_server_comes_back_as_a_reset() {
    let mut net = net_with(Link::default(), |peer, _| peer.close());
    let mut stream = connect(&mut net);
    write(&mut net, &mut stream, b"1").unwrap();
    assert!(poll(&mut net, None)[0].closed);
    write(&mut net, &mut stream, b"2").unwrap();
    assert!(poll(&mut net, None)[0].closed);
    let error = write(&mut net, &mut stream, b"3").unwrap_err();
    assert!(is_errno(&error, Errno::PIPE));
    net.close(stream);
}

#[test]
fn a_reset_is_reported_once_and_keeps_data_or_always_and_drops_it() {
    let (mut kept, mut dropped) = (0, 0);
    for seed in 0..50 {
        let mut net = SimNet::new(seed);
        let script = |peer: &mut Peer<'_>, _: &[u8]| {
            peer.send("part");
            peer.reset();
        };
        net.listen(address(), Link::default(), Script(script));
        let mut stream = connect(&mut net);
        write(&mut net, &mut stream, b"?").unwrap();
        let mut all = Vec::new();
        let end = loop {
            match read(&mut net, &mut stream, 50) {
                Ok(piece) => all.extend(piece),
                Err(error) if error.kind() == ErrorKind::WouldBlock => drop(poll(&mut net, None)),
                Err(error) => break error,
            }
        };
        assert!(is_errno(&end, Errno::CONNRESET));
        match read(&mut net, &mut stream, 10) {
            Ok(end) => {
                assert!(end.is_empty() && all == b"part");
                kept += 1;
            }
            Err(error) => {
                assert!(is_errno(&error, Errno::CONNRESET));
                dropped += 1;
            }
        }
        net.close(stream);
    }
    assert!(kept > 0 && dropped > 0);
}

#[test]
#[should_panic(expected = "simulation deadlock")]
fn waiting_for_nothing_is_a_deadlock_and_a_waker_is_nothing() {
    let mut net = net_with(Link::default(), |_, _| {});
    let (_stream, _waker) = (connect(&mut net), net.waker().unwrap());
    poll(&mut net, None);
}

#[test]
#[should_panic(expected = "simulation livelock")]
fn polling_without_end_at_one_moment_is_a_livelock() {
    let mut net = SimNet::new(1);
    loop {
        poll(&mut net, Some(Duration::ZERO));
    }
}

#[test]
#[should_panic(expected = "one connection holds the client")]
fn reading_the_end_for_ever_is_a_livelock() {
    let mut net = net_with(Link::default(), |peer, _| peer.close());
    let mut stream = connect(&mut net);
    write(&mut net, &mut stream, b"?").unwrap();
    poll(&mut net, None);
    while read(&mut net, &mut stream, 1).is_ok() {}
}

#[test]
fn the_chosen_call_fails_and_no_other() {
    // Calls of this program: 0 connect, 1 connected (not yet), 2 connected, 3 write, 4 read.
    let program = |failing: Option<(u64, Failure)>| {
        let mut net = net_with(Link::default(), |peer, _| peer.send("hello"));
        if let Some((nth, failure)) = failing {
            net.fail_call(nth, failure);
        }
        let mut stream = start(&mut net)?;
        while !net.connected(&stream)? {
            poll(&mut net, None);
        }
        let mut sent = 0;
        while sent < 2 {
            match write(&mut net, &mut stream, &b"??"[sent..]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => drop(poll(&mut net, None)),
                result => sent += result?,
            }
        }
        let mut reads: Vec<Vec<u8>> = Vec::new();
        while reads.concat().len() < 5 {
            poll(&mut net, None);
            match read(&mut net, &mut stream, 10) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => reads.push(result?),
            }
        }
        net.close(stream);
        assert_eq!(net.open_streams(), 0);
        Ok::<_, io::Error>(reads)
    };
    assert_eq!(program(None).unwrap(), [b"hello"]);
    let error = program(Some((0, Failure::Error))).unwrap_err();
    assert!(matches!(
        shortage_of(error),
        Some(Shortage::Descriptors { .. })
    ));
    for (nth, errno) in [
        (2, Errno::CONNREFUSED),
        (3, Errno::CONNRESET),
        (4, Errno::CONNRESET),
    ] {
        let error = program(Some((nth, Failure::Error))).unwrap_err();
        assert!(is_errno(&error, errno), "call {nth}: {error}");
    }
    for nth in 1..5 {
        assert_eq!(program(Some((nth, Failure::NotNow))).unwrap(), [b"hello"]);
    }
    assert_eq!(
        program(Some((4, Failure::OneByte))).unwrap(),
        [&b"h"[..], b"ello"]
    );
}
