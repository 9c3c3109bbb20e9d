//! The costs of very many hosts for a `Client`: memory for a host in use and for a former host, and time for a request
//! with many idle hosts. On the simulated network, whose memory and time are excluded.

use std::error::Error;
use std::num::NonZeroUsize;
use std::time::Duration;

use courser::net::Address;
use courser::net::sim::{Link, Peer, ScriptedAnswer, SimNet, SimServer};
use courser::{Answer, Call, Client, Config, HostConfig, Request, Response};

use super::apart::{Apart, ApartNames, inside};
use crate::alloc::{apart, held_by_this_thread};

/// Prints the costs of `visited` hosts that get one request each, and the cost of a request with `idle` idle hosts.
/// Returns whether memory is bounded and time does not depend on idle hosts.
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

/// The client after visits to a number of hosts.
#[derive(Clone, Copy, Debug)]
pub struct Visited {
    /// Number of visited hosts.
    pub hosts: u64,
    /// Highest number of host entries.
    pub most_entries: usize,
    /// Bytes of the client.
    pub bytes: i64,
    /// Nanoseconds for each host since the previous step, for name lookup, connection and request.
    pub nanos: f64,
}

impl Visited {
    /// Whether memory has grown by more than a doubling of tables explains, so that it is not bounded.
    #[must_use]
    pub fn grows_from(&self, early: &Self) -> bool {
        self.bytes as f64 > early.bytes as f64 * MORE_TABLES
    }
}

/// Sends one request to each host, and measures the client after each of these numbers of hosts.
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

/// Visited hosts with an idle connection each.
pub struct Idle {
    client: SimClient,
    hosts: u64,
    /// Bytes for each host.
    pub each: f64,
    /// Bytes for a name in the cache.
    pub name: f64,
    /// Number of names of this measurement.
    pub names: usize,
}

impl Idle {
    /// Visits this number of hosts.
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

    /// Nanoseconds for a request with these idle hosts: always to the same host, and to all hosts in turn.
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
        // A stride, because consecutive hosts would also be neighbours in memory.
        Ok([quickest(&|_| idle / 2)?, quickest(&|n| n * STRIDE % idle)?])
    }
}

/// Hosts without connections.
#[derive(Clone, Copy, Debug)]
pub struct Unused {
    /// Number of hosts that the client remembers.
    pub hosts: usize,
    /// Bytes for each host.
    pub each: f64,
}

/// Visits this number of hosts and closes their connections.
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
            ScriptedAnswer::After(Duration::from_millis(1), answer)
        });
        (net, resolver)
    });
    Ok(Client::with_net(
        config,
        Apart::new(net),
        ApartNames(resolver),
    )?)
}

/// A configuration with room for this number of hosts with an idle connection each, for a long time.
fn roomy(hosts: u64) -> Config {
    let room = usize::try_from(hosts).unwrap_or(usize::MAX);
    Config {
        max_connections: NonZeroUsize::new(room).unwrap_or(NonZeroUsize::MIN),
        host: HostConfig {
            idle_timeout: Duration::from_secs(86_400),
            ..HostConfig::default()
        },
        ..Config::default()
    }
}

fn url(host: u64) -> String {
    format!("http://h{host}.sim/")
}

/// Sends one request to each of these hosts, several at a time. Returns the highest number of host entries.
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

/// A server that responds to each request at once.
struct Answering;

impl SimServer for Answering {
    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        // A request is one segment.
        if data.ends_with(b"\r\n\r\n") {
            peer.send(*b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!");
        }
    }
}

/// Simultaneous calls.
const AT_A_TIME: usize = 64;
/// A number of hosts below the number that the client remembers without connections.
const FEW: u64 = 1000;
const TIMED: u64 = 50_000;
const TIMED_TOGETHER: usize = 500;
const STRIDE: u64 = 7919;
/// Highest growth of memory over a run: tables of hosts and names may be doubled once.
const MORE_TABLES: f64 = 1.25;
/// Highest growth of the cost of a request with idle hosts, because of the caches of the processor.
const GROWTH: f64 = 1.5;
