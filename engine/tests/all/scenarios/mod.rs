//! Single scenarios on the simulated network with exact times in milliseconds. Random programs are in `sim`.

mod adaptive;
mod addresses;
mod balance;
mod batch;
mod cookies;
mod hooks;
mod hosts;
mod one_host;
mod rates;
mod redirects;
mod regression;
mod resilience;
mod streams;
mod trace;

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use courser::net::sim::{
    Faults, Link, Peer, Probability, ScriptedAnswer, SimNet, SimResolver, SimServer, SimStream,
    Trace,
};
use courser::net::{Address, Event, Net, SocketOptions, Token, Waker};
use courser::{
    Answer, BodyRead, Call, CallId, Client, Completion, Config, Error, HostClient, HostConfig,
    HttpClient, Request, Response, Upstream, Waited,
};

const MS: Duration = Duration::from_millis(1);

/// Runs a script on each piece of data.
struct Script<F>(F);

impl<F: FnMut(&mut Peer<'_>, &[u8])> SimServer for Script<F> {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        (self.0)(peer, data);
    }
}

fn ip(n: u8) -> IpAddr {
    [10, 0, 0, n].into()
}

fn place(n: u8) -> Address {
    Address::Tcp((ip(n), 80).into())
}

/// The first of these places.
fn upstream() -> Upstream {
    Upstream::tcp([(ip(1), 80).into()])
}

/// `n.sim` has the address 10.0.0.n, at once; `1.2.sim` has two, and so on.
fn numbered(net: &SimNet) -> SimResolver {
    net.resolver(|_, name| {
        let numbers = name.trim_end_matches(".sim").split('.');
        let all = numbers.map(|n| ip(n.parse().unwrap()));
        ScriptedAnswer::After(Duration::ZERO, Answer::found(all, 3_600_000 * MS))
    })
}

/// One connection at most.
fn one() -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::MIN,
        ..HostConfig::default()
    }
}

/// A client of the first place.
fn host_client(net: &SimNet, config: HostConfig) -> HostClient<SimNet> {
    HostClient::with_net(upstream(), config, net.clone()).unwrap()
}

/// The next completion.
fn next(client: &mut impl HttpClient) -> Completion {
    client.wait(None).unwrap().done().unwrap()
}

/// The completions until no call is in flight.
fn rest(client: &mut impl HttpClient) -> Vec<Completion> {
    std::iter::from_fn(|| client.wait(None).unwrap().done()).collect()
}

/// A GET.
fn call(target: impl Into<String>) -> Call {
    Call::new(Request::get(target), Response::new())
}

/// Reads a body to its end, and returns the request, if the call had kept it, and the length of the body.
fn read_to_end(
    client: &mut HostClient<SimNet>,
    id: CallId,
) -> Result<(Option<Request>, usize), Error> {
    let mut length = 0;
    loop {
        match client.read_body(id, &mut [0; 99])? {
            BodyRead::Data(n) => length += n,
            BodyRead::Pending => {
                assert!(matches!(client.wait(None).unwrap(), Waited::Readable));
                assert_eq!(client.readable_body(), Some(id));
            }
            BodyRead::End { request, .. } => return Ok((request, length)),
        }
    }
}

/// A client of these hosts.
fn client_of(net: &SimNet, config: Config) -> Client<SimNet> {
    Client::with_net(config, net.clone(), numbered(net)).unwrap()
}

/// The requests that servers have received: the number of the host, and the head.
type Heard = Rc<RefCell<Vec<(u8, String)>>>;

/// Listens at the first `hosts` places; `answer` gets the head of each request.
fn hear(net: &SimNet, hosts: u8, answer: impl Fn(&mut Peer<'_>, &str) + Clone + 'static) -> Heard {
    let heard = Heard::default();
    for host in 1..=hosts {
        let (heard, answer) = (Rc::clone(&heard), answer.clone());
        let script = move |peer: &mut Peer<'_>, data: &[u8]| {
            let head = String::from_utf8_lossy(data).into_owned();
            answer(peer, &head);
            heard.borrow_mut().push((host, head));
        };
        net.listen(place(host), near(), Script(script));
    }
    heard
}

/// The target of a request.
fn target(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

/// The value of a header; several values with a semicolon between them.
fn field(head: &str, name: &str) -> Option<String> {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let values = fields.filter(|(own, _)| own.eq_ignore_ascii_case(name));
    let values: Vec<_> = values.map(|(_, value)| value).collect();
    (!values.is_empty()).then(|| values.join("; "))
}

/// For each request: the host, and the value of that header.
fn told(heard: &Heard, name: &str) -> Vec<(u8, Option<String>)> {
    let heard = heard.borrow();
    let told = heard.iter().map(|(host, head)| (*host, field(head, name)));
    told.collect()
}

/// How often the network was asked to connect to an address.
fn connects(net: &SimNet, n: u8) -> usize {
    let trace = net.trace();
    let is = |what: &Trace| matches!(what, Trace::Connect(to) if *to == place(n));
    trace.iter().filter(|entry| is(&entry.what)).count()
}

/// No latency, one segment.
fn near() -> Link {
    Link {
        latency: Duration::ZERO..=Duration::ZERO,
        segment: usize::MAX..=usize::MAX,
        ..Link::default()
    }
}

/// Nothing answers.
fn silent() -> Link {
    Link {
        faults: Faults {
            black_hole: Probability::ALWAYS,
            ..Faults::default()
        },
        ..Link::default()
    }
}

/// A body of as many bytes as the test says are ready; it tells how many it has given.
#[derive(Default)]
struct Source {
    ready: Arc<AtomicUsize>,
    given: Arc<AtomicUsize>,
}

impl io::Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.ready.load(SeqCst) - self.given.load(SeqCst);
        let n = buffer.len().min(left);
        if n == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        buffer[..n].fill(b'x');
        self.given.fetch_add(n, SeqCst);
        Ok(n)
    }
}

/// A network whose polls fail when that function says so.
struct Failing<F> {
    net: SimNet,
    fails: F,
}

impl<F: FnMut() -> bool> Net for Failing<F> {
    type Stream = SimStream;

    fn now(&self) -> Instant {
        self.net.now()
    }

    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<SimStream> {
        self.net.connect(token, to, options)
    }

    fn connected(&mut self, stream: &SimStream) -> io::Result<bool> {
        self.net.connected(stream)
    }

    fn read(&mut self, stream: &mut SimStream, buf: &mut [u8]) -> io::Result<usize> {
        self.net.read(stream, buf)
    }

    fn read_append(&mut self, stream: &mut SimStream, buf: &mut Vec<u8>) -> io::Result<usize> {
        self.net.read_append(stream, buf)
    }

    fn write(&mut self, stream: &mut SimStream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.net.write(stream, parts)
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        match (self.fails)() {
            true => Err(io::ErrorKind::OutOfMemory.into()),
            false => self.net.poll(events, timeout),
        }
    }

    fn waker(&mut self) -> io::Result<Waker> {
        self.net.waker()
    }

    fn close(&mut self, stream: SimStream) {
        self.net.close(stream);
    }

    fn local_address(&self, stream: &SimStream) -> Option<Address> {
        self.net.local_address(stream)
    }

    fn random(&mut self) -> u64 {
        self.net.random()
    }
}
