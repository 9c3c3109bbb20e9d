//! What very many hosts cost a `Client`: memory for a host that is in use and for one that was, and time for a request
//! beside so many idle ones. On the simulated network, whose memory and time are left out: what is counted is the
//! client's alone.

use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Duration;

use courser::net::Address;
use courser::net::sim::{Asked, Link, Peer, SimNet, SimServer};
use courser::{Answer, Call, Client, Config, DnsConfig, HostConfig, Request, Response};

use super::apart::{Apart, ApartNames, inside};
use crate::alloc::{apart, held_by_this_thread};

/// Prints what that many hosts cost that are visited once each, and beside how many idle ones a request costs what. Tells
/// whether memory is bounded, and time independent of idle hosts.
///
/// # Errors
/// A call failed.
pub fn report(visited: &[u64], idle: &[u64]) -> Result<bool, Box<dyn Error>> {
    println!("| hosts visited, each once | entries kept, at most | client's bytes | ns for each |");
    println!("|--:|--:|--:|--:|");
    let steps = visit(visited)?;
    for step in &steps {
        let Visited {
            hosts,
            most_entries,
            bytes,
            nanos,
        } = step;
        println!("| {hosts} | {most_entries} | {bytes} | {nanos:.0} |");
    }
    println!(
        "\n| idle hosts | bytes for each | one of them again and again, ns | all in turn, ns |"
    );
    println!("|--:|--:|--:|--:|");
    let mut times = Vec::new();
    let mut name = None;
    for &hosts in idle {
        let mut idle = Idle::new(hosts)?;
        let [one, all] = idle.time()?;
        println!("| {hosts} | {:.0} | {one:.0} | {all:.0} |", idle.each);
        name = Some((idle.name, idle.names));
        times.push(one);
    }
    let unused = unused(FEW)?;
    print!(
        "\nA host without a connection takes {:.0} bytes",
        unused.each
    );
    match name {
        Some((each, names)) => println!(", a name in the cache {each:.0}, of {names}."),
        None => println!("."),
    }
    let mut held = true;
    if let [.., early, late] = steps[..]
        && late.grows_from(&early)
    {
        eprintln!("scale: hosts that are not used any more keep memory");
        held = false;
    }
    if let (Some(first), Some(last)) = (times.first(), times.last())
        && last / first > GROWTH
    {
        eprintln!("scale: a request costs more beside idle hosts");
        held = false;
    }
    Ok(held)
}

/// What is left of hosts that were visited.
#[derive(Clone, Copy, Debug)]
pub struct Visited {
    /// How many.
    pub hosts: u64,
    /// Host entries at a time.
    pub most_entries: usize,
    /// Bytes of the client.
    pub bytes: i64,
    /// Nanoseconds for each since the step before: the request, the name and the connection.
    pub nanos: f64,
}

impl Visited {
    /// Whether memory is not bounded: it has become more by more than the last doubling of a table.
    #[must_use]
    pub fn grows_from(&self, early: &Self) -> bool {
        self.bytes as f64 > early.bytes as f64 * MORE_TABLES
    }
}

/// Visits hosts, each once, and looks at the client whenever there have been as many as one of these numbers says.
///
/// # Errors
/// A call failed.
pub fn visit(steps: &[u64]) -> Result<Vec<Visited>, Box<dyn Error>> {
    let before = held_by_this_thread();
    let mut client = client(Config::default())?;
    let mut most_entries = 0;
    let mut visited = 0;
    let mut all = Vec::with_capacity(steps.len());
    for &hosts in steps {
        let inside = inside(|| ask(&mut client, visited..hosts, &mut most_entries))?;
        all.push(Visited {
            hosts,
            most_entries,
            bytes: held_by_this_thread() - before,
            nanos: inside.as_nanos() as f64 / (hosts - visited).max(1) as f64,
        });
        visited = hosts;
    }
    Ok(all)
}

/// Hosts that were visited and have an idle connection each.
pub struct Idle {
    client: SimClient,
    hosts: u64,
    /// Bytes for each.
    pub each: f64,
    /// Bytes for a name in the cache.
    pub name: f64,
    /// Of how many that was measured.
    pub names: usize,
}

impl Idle {
    /// Visits that many.
    ///
    /// # Errors
    /// A call failed.
    pub fn new(hosts: u64) -> Result<Self, Box<dyn Error>> {
        let before = held_by_this_thread();
        let mut client = client(roomy(hosts))?;
        ask(&mut client, 0..hosts, &mut 0)?;
        let idle = client.counters().idle as u64;
        if idle != hosts {
            return Err(format!("{idle} idle connections, not {hosts}").into());
        }
        let all = held_by_this_thread();
        let names = client.dns_counters().entries;
        client.flush_names();
        let without_names = held_by_this_thread();
        Ok(Self {
            client,
            hosts,
            each: (without_names - before) as f64 / hosts as f64,
            name: (all - without_names) as f64 / names.max(1) as f64,
            names,
        })
    }

    /// Nanoseconds for a request beside them: to one of them again and again, and to all in turn.
    fn time(&mut self) -> Result<[f64; 2], Box<dyn Error>> {
        let idle = self.hosts;
        let mut response = Response::new();
        let mut quickest = |host: &dyn Fn(u64) -> u64| -> Result<f64, Box<dyn Error>> {
            let urls: Vec<String> = (0..TIMED).map(|n| url(host(n))).collect();
            let mut best = f64::MAX;
            for batch in urls.chunks(TIMED_TOGETHER) {
                let inside = inside(|| {
                    for url in batch {
                        self.client.get(url, &mut response)?;
                    }
                    Ok(())
                })?;
                best = best.min(inside.as_nanos() as f64 / batch.len() as f64);
            }
            Ok(best)
        };
        // Neighbours in turn would be neighbours in memory.
        Ok([quickest(&|_| idle / 2)?, quickest(&|n| n * STRIDE % idle)?])
    }
}

/// Hosts without connections.
#[derive(Clone, Copy, Debug)]
pub struct Unused {
    /// How many of them the client remembers.
    pub hosts: usize,
    /// Bytes for each.
    pub each: f64,
}

/// Visits that many hosts and closes their connections.
///
/// # Errors
/// A call failed.
pub fn unused(hosts: u64) -> Result<Unused, Box<dyn Error>> {
    let mut client = client(roomy(hosts))?;
    let empty = held_by_this_thread();
    ask(&mut client, 0..hosts, &mut 0)?;
    client.flush_names();
    client.close_idle();
    let hosts = client.hosts();
    let bytes = held_by_this_thread() - empty;
    Ok(Unused {
        hosts,
        each: bytes as f64 / hosts.max(1) as f64,
    })
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
    Ok(Client::with_net(
        config,
        Apart::new(net),
        ApartNames(resolver),
    )?)
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

/// Calls in flight.
const AT_A_TIME: usize = 64;
/// Fewer than the client remembers without connections.
const FEW: u64 = 1000;
const TIMED: u64 = 50_000;
const TIMED_TOGETHER: usize = 500;
const STRIDE: u64 = 7919;
/// By how much memory may become more from one end of a run to the other: tables of hosts and names that come and go are
/// doubled some time, once.
const MORE_TABLES: f64 = 1.25;
/// By how much a request may seem to cost more beside idle hosts, for the sake of the machine's caches.
const GROWTH: f64 = 1.5;
