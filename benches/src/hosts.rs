//! What very many hosts cost a `Client`: memory for a host that is in use and for one that was, and time for a request
//! beside so many idle ones. On the simulated network, whose memory and time are left out: what is counted is the
//! client's alone.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, IoSlice};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use courser::net::sim::{Asked, Link, Peer, SimNet, SimResolver, SimServer};
use courser::net::{Address, Event, Net, SocketOptions, Token, Waker};
use courser::{
    Answer, Call, Client, Config, DnsConfig, HostConfig, Reply, Request, Resolver, Response,
};

use crate::alloc::{apart, held_by_this_thread, not_apart};

/// Measures what very many hosts cost.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Hosts that are visited, each once
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100_000..))]
    hosts: u64,

    /// Idle hosts beside which requests are timed: the last and most of these are those whose memory is told
    #[arg(long, value_delimiter = ',', default_value = "1,1000,100000")]
    idle: Vec<u64>,
}

/// The tool. The exit code tells whether memory is bounded, and time independent of the idle hosts.
///
/// # Errors
/// A call failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let visited = visit(args.hosts / 10, args.hosts)?;
    let most = args.idle.last().copied().unwrap_or(1);
    let live = live(most)?;
    println!("| hosts | |\n|---|--:|");
    println!("| visited, each once | {} |", args.hosts);
    println!("| entries kept, at most | {} |", visited.most_entries);
    println!("| bytes of the client after a tenth | {} |", visited.early);
    println!("| bytes of the client after all | {} |", visited.late);
    println!(
        "| bytes for a host that was visited | {:.2} |",
        visited.each
    );
    println!(
        "| bytes for one with an idle connection, of {most} | {:.0} |",
        live.connected
    );
    println!(
        "| bytes for one without, of {} | {:.0} |",
        live.unused_hosts, live.unused
    );
    println!(
        "| bytes for a name in the cache, of {} | {:.0} |\n",
        live.names, live.name
    );
    println!("| idle hosts | one of them, ns | all in turn, ns |\n|--:|--:|--:|");
    let mut times = Vec::new();
    for &idle in &args.idle {
        let [one, all] = time(idle)?;
        println!("| {idle} | {one:.0} | {all:.0} |");
        times.push(one);
    }
    let grown = times
        .last()
        .zip(times.first())
        .is_some_and(|(last, first)| last / first > GROWTH);
    for (broken, what) in [
        (
            visited.grows(),
            "hosts that are not used any more keep memory",
        ),
        (grown, "a request costs more beside idle hosts"),
    ] {
        if broken {
            eprintln!("hosts: {what}");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is left of hosts that were visited.
#[derive(Clone, Copy, Debug)]
pub struct Visited {
    /// Host entries at a time.
    pub most_entries: usize,
    /// Bytes of the client after the first hosts.
    pub early: i64,
    /// After all of them.
    pub late: i64,
    /// By how much each of the others has made it more.
    pub each: f64,
}

impl Visited {
    /// Whether memory is not bounded: it has become more by more than the last doubling of a table.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.late as f64 > self.early as f64 * MORE_TABLES
    }
}

/// Visits so many hosts, each once, and looks at the client's memory after the first of them, and in the end.
///
/// # Errors
/// A call failed.
pub fn visit(first: u64, hosts: u64) -> Result<Visited, Box<dyn Error>> {
    let before = held_by_this_thread();
    let mut client = client(Config::default())?;
    let mut most_entries = 0;
    ask(&mut client, 0..first, &mut most_entries)?;
    let early = held_by_this_thread() - before;
    ask(&mut client, first..hosts, &mut most_entries)?;
    let late = held_by_this_thread() - before;
    Ok(Visited {
        most_entries,
        early,
        late,
        each: (late - early) as f64 / (hosts - first) as f64,
    })
}

/// Bytes for what the client has.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// For a host with an idle connection.
    pub connected: f64,
    /// For one without.
    pub unused: f64,
    /// Of how many that was measured.
    pub unused_hosts: usize,
    /// For a name.
    pub name: f64,
    /// Of how many that was measured.
    pub names: usize,
}

/// Visits so many hosts, whose connections stay open.
///
/// # Errors
/// A call failed.
pub fn live(hosts: u64) -> Result<Live, Box<dyn Error>> {
    let before = held_by_this_thread();
    let mut client = client(roomy(hosts))?;
    ask(&mut client, 0..hosts, &mut 0)?;
    enough(&client, hosts)?;
    let all = held_by_this_thread();
    let names = client.dns_counters().entries;
    client.flush_names();
    let without_names = held_by_this_thread();
    drop(client);

    let few = hosts.min(UNUSED);
    let mut client = self::client(roomy(few))?;
    let empty = held_by_this_thread();
    ask(&mut client, 0..few, &mut 0)?;
    client.flush_names();
    client.close_idle();
    let unused_hosts = client.hosts();
    let unused = held_by_this_thread() - empty;
    Ok(Live {
        connected: (without_names - before) as f64 / hosts as f64,
        unused: unused as f64 / unused_hosts.max(1) as f64,
        unused_hosts,
        name: (all - without_names) as f64 / names.max(1) as f64,
        names,
    })
}

/// Nanoseconds for a request beside so many idle hosts: to one of them again and again, and to all in turn.
fn time(idle: u64) -> Result<[f64; 2], Box<dyn Error>> {
    let mut client = client(roomy(idle))?;
    ask(&mut client, 0..idle, &mut 0)?;
    enough(&client, idle)?;
    let mut response = Response::new();
    let mut quickest = |url: &dyn Fn(u64) -> u64| -> Result<f64, Box<dyn Error>> {
        let urls: Vec<String> = (0..TIMED).map(|n| self::url(url(n))).collect();
        let mut best = f64::MAX;
        for batch in urls.chunks(TIMED_TOGETHER) {
            OUTSIDE.set(Duration::ZERO);
            let began = Instant::now();
            for url in batch {
                client.get(url, &mut response)?;
            }
            let inside = began.elapsed().saturating_sub(OUTSIDE.get());
            best = best.min(inside.as_nanos() as f64 / batch.len() as f64);
        }
        Ok(best)
    };
    // Neighbours in turn would be neighbours in memory.
    Ok([quickest(&|_| idle / 2)?, quickest(&|n| n * STRIDE % idle)?])
}

type SimClient = Client<Apart>;

fn client(config: Config) -> Result<SimClient, Box<dyn Error>> {
    let (net, resolver) = apart(|| {
        let net = SimNet::new(1);
        net.set_tracing(false);
        let address = Address::Tcp(([10, 0, 0, 1], 80).into());
        net.listen(address, Link::default(), Answering);
        let resolver = net.resolver(|_, _| {
            let answer = Answer::found([[10, 0, 0, 1].into()], Duration::from_secs(60));
            Asked::After(Duration::from_millis(1), answer)
        });
        (net, resolver)
    });
    let net = Apart {
        net,
        events: Vec::new(),
    };
    Ok(Client::with_net(config, net, ApartNames(resolver))?)
}

/// Room for so many hosts with a connection each, for long.
fn roomy(hosts: u64) -> Config {
    let room = usize::try_from(hosts).unwrap_or(usize::MAX);
    Config {
        max_connections: NonZeroUsize::new(room).unwrap_or(NonZeroUsize::MIN),
        host: HostConfig {
            idle_timeout: Duration::from_secs(86_400),
            ..HostConfig::default()
        },
        dns: DnsConfig::default(),
        ..Config::default()
    }
}

fn url(host: u64) -> String {
    format!("http://h{host}.sim/")
}

/// Asks each of these hosts once, several at a time, and notes how many entries there were at most.
fn ask(
    client: &mut SimClient,
    mut hosts: std::ops::Range<u64>,
    most_entries: &mut usize,
) -> Result<(), Box<dyn Error>> {
    for host in hosts.by_ref().take(AT_A_TIME) {
        client.submit(Call::new(Request::get(url(host)), Response::new()));
    }
    while let Some(done) = client.wait(None)? {
        done.outcome?;
        *most_entries = client.hosts().max(*most_entries);
        if let Some(host) = hosts.next() {
            let mut request = done.request;
            request.set_target(&url(host));
            client.submit(Call::new(request, done.response));
        }
    }
    Ok(())
}

fn enough(client: &SimClient, hosts: u64) -> Result<(), Box<dyn Error>> {
    let idle = client.counters().idle as u64;
    if idle == hosts {
        return Ok(());
    }
    Err(format!("{idle} idle connections, not {hosts}").into())
}

/// Answers each request at once.
struct Answering;

impl SimServer for Answering {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        // A request is one segment.
        if data.ends_with(b"\r\n\r\n") {
            peer.send(*b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!");
        }
    }
}

/// The simulated network, whose memory and time are no part of the client's.
struct Apart {
    net: SimNet,
    events: Vec<Event>,
}

thread_local! {
    /// Spent in the network.
    static OUTSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn outside<T>(work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = apart(work);
    OUTSIDE.set(OUTSIDE.get() + began.elapsed());
    result
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

/// Its resolver.
struct ApartNames(SimResolver);

impl Resolver for ApartNames {
    fn lookup(&mut self, name: &str, reply: Reply) {
        apart(|| {
            let reply = Reply::new(|answer| {
                not_apart(|| reply.answer(answer.clone()));
            });
            self.0.lookup(name, reply);
        });
    }
}

/// Calls in flight.
const AT_A_TIME: usize = 64;
/// Fewer than the client remembers without connections.
const UNUSED: u64 = 1000;
const TIMED: u64 = 50_000;
const TIMED_TOGETHER: usize = 500;
const STRIDE: u64 = 7919;
/// By how much memory may become more from one end of a run to the other: tables of hosts and names that come and go are
/// doubled some time, once.
const MORE_TABLES: f64 = 1.25;
/// By how much a request may seem to cost more beside idle hosts, for the sake of the machine's caches.
const GROWTH: f64 = 1.5;
