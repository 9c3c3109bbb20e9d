//! Name lookup by asking name servers, with the protocol code of `hickory-resolver`.
//!
//! That crate sends one question to one server: over UDP, or over TCP if the answer is too long. This file does what a
//! C library does around it: the files, the search list, the choice of the next server after a failure (the crate takes
//! SERVFAIL for an answer), and A and AAAA questions at the same time, with the resolution delay of RFC 8305 §3.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError as WireError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::files::{self, interface_index, name_servers};
use super::hickory_runtime::ServerRuntime;
use super::lookup_queue::{LookupLimits, LookupQueue, Step};
use super::{Answer, DnsError, Reply, Resolver, cannot_start};
use crate::error::Shortage;
use crate::net::shortage::{shortage_in, shortage_now};
use crate::time::Time;

/// Asks name servers. Its thread starts with the first lookup and ends with the resolver.
///
/// By default it uses the system's configuration: the servers, the search list and the options `ndots`, `timeout`,
/// `attempts` and `rotate` of `/etc/resolv.conf`, and the names in `/etc/hosts`. Changed files are read again. Not
/// used: `nsswitch.conf` and the environment (`LOCALDOMAIN`, `RES_OPTIONS`); [`SystemResolver`](super::SystemResolver)
/// uses these. Servers that are not usable are skipped: their address is not valid, or its interface does not exist. If
/// `resolv.conf` names no server, 127.0.0.1 is asked. If the file cannot be read, or no server in it is usable, each
/// lookup of a name that is not in `hosts` fails with [`DnsError::Config`], until the file or the interface is there.
///
/// ```
/// use courser::{HickoryResolver, NameServers};
///
/// let resolver = HickoryResolver::system();
/// let resolver = HickoryResolver::with_servers(NameServers::new(["127.0.0.1:5353".parse()?])).max_in_flight(16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HickoryResolver {
    source: ConfigSource,
    limits: LookupLimits,
    lookup_thread: Option<LookupThread>,
}

/// Name servers and how to ask them.
///
/// ```
/// use std::time::Duration;
/// use courser::NameServers;
///
/// let servers = NameServers {
///     timeout: Duration::from_secs(1),
///     search: vec!["corp.example".into()],
///     ..NameServers::new(["10.0.0.1:53".parse()?])
/// };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NameServers {
    /// The servers, in the order in which they are asked. The server that answered last is asked first.
    pub servers: Vec<SocketAddr>,
    /// Domains that are appended to a name without a dot at its end: before the name itself is tried if it has fewer
    /// than `ndots` dots, otherwise after it. Default: none.
    pub search: Vec<String>,
    /// The number of dots from which on a name is tried first without the search list. Default 1.
    pub ndots: usize,
    /// The longest that one server may take for one question. Default 5 s.
    pub timeout: Duration,
    /// How often each server is asked before a lookup fails; at least once. Default 2.
    pub attempts: usize,
    /// Whether each question starts with the next server. Default: no.
    pub rotate: bool,
}

impl NameServers {
    /// Uses these servers, with the defaults of resolv.conf(5).
    pub fn new(servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            servers: servers.into_iter().collect(),
            search: Vec::new(),
            ndots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
            rotate: false,
        }
    }
}

#[derive(Clone, Debug)]
enum ConfigSource {
    Files {
        resolv_conf: PathBuf,
        hosts: PathBuf,
    },
    Given(NameServers),
}

impl HickoryResolver {
    /// Uses the configuration of the system.
    pub fn system() -> Self {
        Self::with_files("/etc/resolv.conf", "/etc/hosts")
    }

    /// Uses other files of these formats.
    pub fn with_files(resolv_conf: impl Into<PathBuf>, hosts: impl Into<PathBuf>) -> Self {
        Self::new(ConfigSource::Files {
            resolv_conf: resolv_conf.into(),
            hosts: hosts.into(),
        })
    }

    /// Uses these servers and no file.
    pub fn with_servers(servers: NameServers) -> Self {
        Self::new(ConfigSource::Given(servers))
    }

    fn new(source: ConfigSource) -> Self {
        Self {
            source,
            limits: LookupLimits {
                in_flight: DEFAULT_IN_FLIGHT,
                waiting: DEFAULT_WAITING,
                time: Some(DEFAULT_TIME),
                can_stop: true,
            },
            lookup_thread: None,
        }
    }

    /// Sets how many lookups are in flight at once, at least 1; further lookups wait. Each has up to six sockets while
    /// its servers are slow. Default 256. Has no effect after the first lookup.
    ///
    /// Slow names do not hold other names: the names below one registrable domain (here the last two labels, or three
    /// as in `example.co.uk`) are in flight only while at least as many lookups could still start, and a lookup that
    /// takes longer than 250 ms to 1 s is stopped and asked again later if its place is needed.
    pub fn max_in_flight(mut self, lookups: usize) -> Self {
        self.limits.in_flight = lookups.max(1);
        self
    }

    /// Sets how many lookups wait until fewer than [`max_in_flight`](Self::max_in_flight) are in flight; of names below
    /// one registrable domain, half of them. Further ones fail with [`DnsError::QueueFull`]. Default 16,384. Has no
    /// effect after the first lookup.
    pub fn max_waiting(mut self, lookups: usize) -> Self {
        self.limits.waiting = lookups;
        self
    }

    /// Sets the longest time of a lookup, from the question to the answer: the wait, all servers, all attempts and the
    /// search list. Then it fails with [`DnsError::Timeout`], or with [`DnsError::NotAsked`] if it only waited.
    /// Default 30 s. Has no effect after the first lookup.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.limits.time = Some(time);
        self
    }
}

impl Resolver for HickoryResolver {
    fn lookup(&mut self, name: &str, reply: Reply) {
        let thread = match self.lookup_thread.take() {
            Some(thread) => thread,
            None => match LookupThread::start(self.source.clone(), self.limits) {
                Ok(thread) => thread,
                Err(error) => return reply.answer(cannot_start(&error)),
            },
        };
        // A thread that has ended drops the reply, which answers it.
        let _ = thread.messages.send(Message::Ask(name.into(), reply));
        self.lookup_thread = Some(thread);
    }

    fn cancel(&mut self, name: &str) {
        if let Some(thread) = &self.lookup_thread {
            let _ = thread.messages.send(Message::Cancel(name.into()));
        }
    }
}

#[derive(Debug)]
struct LookupThread {
    messages: mpsc::UnboundedSender<Message>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread of the lookups is told.
#[derive(Debug)]
enum Message {
    Ask(Box<str>, Reply),
    Cancel(Box<str>),
    /// A lookup has ended with this answer.
    Answered(Arc<str>, Answer),
    /// The resolver is dropped.
    End,
}

impl LookupThread {
    fn start(source: ConfigSource, limits: LookupLimits) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (messages, inbox) = mpsc::unbounded_channel();
        let lookups = Lookups {
            config: CurrentConfig::new(source),
            queue: LookupQueue::new(limits),
            running: HashMap::new(),
            messages: messages.clone(),
        };
        let thread = thread::Builder::new()
            .name("courser-dns".to_owned())
            .spawn(move || runtime.block_on(lookups.serve(inbox)))?;
        Ok(Self {
            messages,
            thread: Some(thread),
        })
    }
}

impl Drop for LookupThread {
    /// Lookups in flight end with the runtime, at their next await.
    fn drop(&mut self) {
        let _ = self.messages.send(Message::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The lookups of a resolver, on its thread.
struct Lookups {
    config: CurrentConfig,
    queue: LookupQueue<Reply>,
    /// The tasks of the lookups in flight.
    running: HashMap<Arc<str>, AbortHandle>,
    /// For the answers of these tasks.
    messages: mpsc::UnboundedSender<Message>,
}

impl Lookups {
    /// Serves until the resolver is dropped. Dropping the queue then answers the replies that are left.
    async fn serve(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        loop {
            let message = match self.go_on() {
                None => inbox.recv().await,
                Some(until) => {
                    match tokio::time::timeout_at(until.instant().into(), inbox.recv()).await {
                        Ok(message) => message,
                        Err(_) => continue,
                    }
                }
            };
            match message {
                Some(Message::Ask(name, reply)) => self.ask(&name, reply),
                Some(Message::Cancel(name)) => drop(self.queue.cancel(&name)),
                Some(Message::Answered(name, answer)) => self.answered(&name, &answer),
                Some(Message::End) | None => return,
            }
        }
    }

    fn ask(&mut self, name: &str, reply: Reply) {
        if let Err(shortage) = self.config.refresh() {
            return reply.answer(Answer::failed(DnsError::Shortage(shortage)));
        }
        let bare = name.strip_suffix('.').unwrap_or(name);
        if let Some(addresses) = self.config.hosts.get(bare) {
            return reply.answer(Answer::found(addresses.iter().copied(), HOSTS_TTL));
        }
        if let Err(error) = &self.config.servers {
            return reply.answer(Answer::failed(error.clone()));
        }
        if let Err((reply, error)) = self.queue.ask(Time::of(Instant::now()), name, reply) {
            reply.answer(Answer::failed(error));
        }
    }

    /// Does what is due, and returns until when to wait.
    fn go_on(&mut self) -> Option<Time> {
        loop {
            match self.queue.poll(Time::of(Instant::now())) {
                Step::Start { name, instead_of } => {
                    if let Some(stopped) = instead_of {
                        self.stop(&stopped);
                    }
                    self.start(name);
                }
                Step::Fail {
                    name,
                    replies,
                    error,
                } => {
                    self.stop(&name);
                    let failed = Answer::new(Err(error), Some(LIMIT_TTL));
                    for reply in replies {
                        reply.answer(failed.clone());
                    }
                }
                Step::Wait(until) => return until,
            }
        }
    }

    fn start(&mut self, name: Arc<str>) {
        let servers = match &self.config.servers {
            Ok(servers) => servers.clone(),
            // The file has changed since the question.
            Err(error) => return self.answered(&name, &Answer::failed(error.clone())),
        };
        let (messages, asked) = (self.messages.clone(), name.clone());
        let task = tokio::spawn(async move {
            let answer = servers.search(&asked).await;
            let _ = messages.send(Message::Answered(asked, answer));
        });
        self.running.insert(name, task.abort_handle());
    }

    fn stop(&mut self, name: &str) {
        if let Some(task) = self.running.remove(name) {
            task.abort();
        }
    }

    fn answered(&mut self, name: &str, answer: &Answer) {
        self.stop(name);
        for reply in self.queue.finish(name) {
            reply.answer(answer.clone());
        }
    }
}

/// The configuration in use.
struct CurrentConfig {
    source: ConfigSource,
    /// The versions of the files when they were read.
    resolv_conf: Option<FileVersion>,
    hosts_file: Option<FileVersion>,
    servers: Result<Arc<Servers>, DnsError>,
    /// The network interfaces that `resolv.conf` names, with their indices when the file was read.
    interfaces: Vec<(Box<str>, Option<u32>)>,
    hosts: HashMap<Box<str>, Vec<IpAddr>>,
}

/// Time of change, length and inode: shows that a file has changed. `None`: there is no such file.
type FileVersion = Option<(SystemTime, u64, u64)>;

fn version_of(path: &Path) -> FileVersion {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

impl CurrentConfig {
    fn new(source: ConfigSource) -> Self {
        let servers = match &source {
            ConfigSource::Given(given) => {
                Servers::new(given.clone()).map_err(|what| DnsError::Config(what.into()))
            }
            ConfigSource::Files { .. } => Err(DnsError::Unanswered),
        };
        Self {
            source,
            resolv_conf: None,
            hosts_file: None,
            servers,
            interfaces: Vec::new(),
            hosts: HashMap::new(),
        }
    }

    /// Reads the files that have changed, or whose network interfaces have come or gone. Without a descriptor for a
    /// file, that file is read the next time.
    fn refresh(&mut self) -> Result<(), Shortage> {
        let ConfigSource::Files { resolv_conf, hosts } = &self.source else {
            return Ok(());
        };
        let version = Some(version_of(hosts));
        if version != self.hosts_file {
            // As in the C library, a missing or unreadable file has no names.
            self.hosts = files::hosts(&read(hosts)?.unwrap_or_default());
            self.hosts_file = version;
        }
        let version = Some(version_of(resolv_conf));
        let mut interfaces = self.interfaces.iter();
        let moved = interfaces.any(|(name, index)| interface_index(name) != *index);
        if version != self.resolv_conf || moved {
            let text = read(resolv_conf)?;
            self.resolv_conf = version;
            self.interfaces.clear();
            let names = &mut self.interfaces;
            let servers = text
                .map_err(|error| error.to_string())
                .and_then(|text| {
                    name_servers(&text, domain_of_this_host(), &interface_index, names)
                })
                .and_then(Servers::new);
            let path = resolv_conf.display();
            self.servers =
                servers.map_err(|what| DnsError::Config(format!("{path}: {what}").into()));
        }
        Ok(())
    }
}

/// Reads a file. Only a shortage is an error of this function.
fn read(path: &Path) -> Result<io::Result<Vec<u8>>, Shortage> {
    let text = fs::read(path);
    match text.as_ref().err().and_then(shortage_in) {
        Some(shortage) => Err(shortage),
        None => Ok(text),
    }
}

/// The default search list of the C library: the part of the host name after its first dot.
fn domain_of_this_host() -> Vec<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let domain = name.split_once('.').map(|(_, domain)| domain.to_owned());
    domain.into_iter().filter(|d| !d.is_empty()).collect()
}

/// A resolver that asks one server.
type OneServer = hickory_resolver::Resolver<ServerRuntime>;

/// Name servers, ready for questions.
struct Servers {
    /// One resolver for each server, so that the server can be chosen here. Not empty.
    each: Vec<OneServer>,
    /// The server to ask first.
    first: AtomicUsize,
    /// With a dot at the end.
    search: Vec<Name>,
    given: NameServers,
}

impl Servers {
    fn new(given: NameServers) -> Result<Arc<Self>, String> {
        if given.servers.is_empty() {
            return Err("no name server".to_owned());
        }
        let servers = given.servers.iter();
        let each: Result<_, NetError> = servers.map(|at| one_server(*at, given.timeout)).collect();
        let search = given.search.iter().map(|domain| {
            let name = domain.strip_suffix('.').unwrap_or(domain);
            Name::from_ascii(format!("{name}."))
                .map_err(|error| format!("search domain {domain:?}: {error}"))
        });
        Ok(Arc::new(Self {
            each: each.map_err(|error| error.to_string())?,
            first: AtomicUsize::new(0),
            search: search.collect::<Result<_, _>>()?,
            given,
        }))
    }

    /// Tries the name and its search list like res_search(3). The first candidate with addresses is the answer. If a
    /// candidate does not exist, or the servers fail, the next one is tried. A timeout ends the search.
    async fn search(self: &Arc<Self>, name: &str) -> Answer {
        let mut failures = Vec::new();
        for candidate in self.candidates(name) {
            let answer = self.ask(&candidate).await;
            let rank = match &answer.addresses {
                Ok(_) => return answer,
                Err(DnsError::NotFound) => 0,
                Err(DnsError::ServerFailure(_) | DnsError::Resolver(_)) => 1,
                Err(DnsError::NoAddresses) => 2,
                Err(_) => 3,
            };
            failures.push((rank, answer));
            if rank == 3 {
                break;
            }
        }
        // The first one of the highest rank.
        let failure = failures.into_iter().rev().max_by_key(|(rank, _)| *rank);
        failure.map_or_else(
            || Answer::failed(DnsError::InvalidName),
            |(_, answer)| answer,
        )
    }

    fn candidates(&self, name: &str) -> Vec<Name> {
        let absolute = name.ends_with('.');
        let dot = if absolute { "" } else { "." };
        let Ok(whole) = Name::from_ascii(format!("{name}{dot}")) else {
            return Vec::new();
        };
        if absolute || self.search.is_empty() {
            return vec![whole];
        }
        let mut relative = whole.clone();
        relative.set_fqdn(false);
        let within = |domain| relative.clone().append_domain(domain).ok();
        let mut all: Vec<_> = self.search.iter().filter_map(within).collect();
        let whole_first = name.bytes().filter(|b| *b == b'.').count() >= self.given.ndots;
        all.insert(if whole_first { 0 } else { all.len() }, whole);
        all
    }

    /// Asks for both families of addresses of one absolute name at the same time. Once one has come, the other has
    /// [`RESOLUTION_DELAY`] left.
    async fn ask(self: &Arc<Self>, name: &Name) -> Answer {
        let mut questions = JoinSet::new();
        for kind in [RecordType::A, RecordType::AAAA] {
            let (servers, name) = (Arc::clone(self), name.clone());
            questions.spawn(async move { (kind, servers.query(&name, kind).await) });
        }
        let first = questions.join_next().await;
        let second = match &first {
            Some(Ok((_, answer))) if answer.addresses.is_ok() => {
                let second = tokio::time::timeout(RESOLUTION_DELAY, questions.join_next()).await;
                second.unwrap_or_default()
            }
            _ => questions.join_next().await,
        };
        let [mut v4, mut v6] = [(); 2].map(|()| Answer::failed(DnsError::Unanswered));
        for (kind, answer) in [first, second].into_iter().flatten().flatten() {
            match kind {
                RecordType::A => v4 = answer,
                _ => v6 = answer,
            }
        }
        let ttl = v4.ttl.into_iter().chain(v6.ttl).min();
        // Addresses of one family are a complete answer only if the other family is known to be empty.
        let half = |found, ttl: Option<Duration>, missing: DnsError| {
            let longest = match missing.is_negative() {
                true => Duration::MAX,
                false => PARTIAL_TTL,
            };
            Answer::new(Ok(found), ttl.map(|ttl| ttl.min(longest)))
        };
        let rank = |error: &DnsError| match error {
            DnsError::NotFound => 0,
            DnsError::NoAddresses => 1,
            _ => 2,
        };
        match (v6.addresses, v4.addresses) {
            (Ok(found_v6), Ok(found_v4)) => Answer::new(Ok([found_v6, found_v4].concat()), ttl),
            (Ok(found), Err(missing)) => half(found, v6.ttl, missing),
            (Err(missing), Ok(found)) => half(found, v4.ttl, missing),
            // If the servers failed on one family, that failure is reported, since there may be addresses.
            (Err(error_v6), Err(error_v4)) => {
                let error = match rank(&error_v4) >= rank(&error_v6) {
                    true => error_v4,
                    false => error_v6,
                };
                let ttl = ttl.filter(|_| error.is_negative());
                Answer::new(Err(error), ttl)
            }
        }
    }

    /// Asks one question to one server after the other until one of them answers.
    async fn query(&self, name: &Name, kind: RecordType) -> Answer {
        let rotate = self.given.rotate;
        let first = match rotate {
            true => self.first.fetch_add(1, Ordering::Relaxed),
            false => self.first.load(Ordering::Relaxed),
        };
        let mut failure = Answer::failed(DnsError::Timeout);
        for attempt in 0..self.given.attempts.max(1) * self.each.len() {
            let server = (first.wrapping_add(attempt)) % self.each.len();
            let question = self.each[server].lookup(name.clone(), kind);
            let answer = match tokio::time::timeout(self.given.timeout, question).await {
                Ok(Ok(lookup)) => addresses_in(&lookup, name, kind),
                Ok(Err(error)) => no_addresses(error),
                Err(_) => Answer::failed(DnsError::Timeout),
            };
            let has_failed = |error: &DnsError| !error.is_negative();
            if !answer.addresses.as_ref().is_err_and(has_failed) {
                if !rotate {
                    self.first.store(server, Ordering::Relaxed);
                }
                return answer;
            }
            // An error that a server answered is reported before the silence of another server.
            if !matches!(failure.addresses, Err(DnsError::ServerFailure(_))) {
                failure = answer;
            }
        }
        failure
    }
}

fn one_server(at: SocketAddr, timeout: Duration) -> Result<OneServer, NetError> {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = at.port();
    }
    let server = NameServerConfig::new(at.ip(), true, connections);
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let mut builder = OneServer::builder_with_config(config, ServerRuntime::new(at));
    let options: &mut ResolverOpts = builder.options_mut();
    options.timeout = timeout;
    // Retries, files and the cache are not its task.
    options.attempts = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    options.max_active_requests = usize::from(u16::MAX);
    builder.build()
}

/// The addresses of one family. Follows the aliases from `name` (RFC 1034 §3.6.2) and ignores all other records. The
/// shortest time to live of all used records applies.
fn addresses_in(lookup: &Lookup, name: &Name, kind: RecordType) -> Answer {
    let mut names = vec![name];
    let mut ttl = u32::MAX;
    let mut at = 0;
    while let Some(alias) = names.get(at).copied() {
        at += 1;
        for record in lookup.answers().iter().filter(|r| r.name == *alias) {
            if let RData::CNAME(target) = &record.data
                && !names.contains(&&target.0)
            {
                names.push(&target.0);
                ttl = ttl.min(record.ttl);
            }
        }
    }
    let mut addresses = Vec::new();
    for record in lookup.answers() {
        if record.record_type() == kind && names.contains(&&record.name) {
            addresses.extend(record.data.ip_addr());
            ttl = ttl.min(record.ttl);
        }
    }
    match addresses.is_empty() {
        true => Answer::failed(DnsError::NoAddresses),
        false => Answer::found(addresses, time_to_live(ttl)),
    }
}

/// Why one family has no addresses.
fn no_addresses(error: NetError) -> Answer {
    Answer::failed(match &error {
        NetError::Dns(WireError::NoRecordsFound(none)) => {
            let error = match none.response_code {
                ResponseCode::NXDomain => DnsError::NotFound,
                ResponseCode::NoError => DnsError::NoAddresses,
                code => DnsError::ServerFailure(code.into()),
            };
            return Answer::new(Err(error), none.negative_ttl.map(time_to_live));
        }
        NetError::Dns(WireError::ResponseCode(code)) => DnsError::ServerFailure(u16::from(*code)),
        NetError::Timeout => DnsError::Timeout,
        NetError::Io(io) if io.kind() == io::ErrorKind::TimedOut => DnsError::Timeout,
        // The crate does not always keep the error of the socket.
        _ => match shortage_now() {
            Some(shortage) => DnsError::Shortage(shortage),
            None => DnsError::Resolver(error.to_string().into()),
        },
    })
}

/// Values with the highest bit set count as zero (RFC 2181 §8).
fn time_to_live(seconds: u32) -> Duration {
    let seconds = i32::try_from(seconds).unwrap_or(0);
    Duration::from_secs(seconds.unsigned_abs().into())
}

/// The time that the slower family has left (RFC 8305 §3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// Time to live of an answer with one family missing, so that it is soon asked for again.
const PARTIAL_TTL: Duration = Duration::from_secs(30);
/// Time to live of names in the hosts file, which has none; then the file is checked for changes.
const HOSTS_TTL: Duration = Duration::from_secs(10);
/// Time to live of a failure that a limit of this resolver has caused (the least of RFC 9520 §3.2).
const LIMIT_TTL: Duration = Duration::from_secs(1);
const DEFAULT_IN_FLIGHT: usize = 256;
const DEFAULT_WAITING: usize = 16_384;
/// As long as three silent servers take with the defaults of resolv.conf(5).
const DEFAULT_TIME: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::mpsc;

    use super::*;

    fn ask(resolver: &mut HickoryResolver, name: &str) -> mpsc::Receiver<Answer> {
        let (sender, answer) = mpsc::channel();
        resolver.lookup(name, Reply::new(move |answer| sender.send(answer).unwrap()));
        answer
    }

    #[test]
    fn a_server_that_is_not_usable_is_skipped() {
        let resolv_conf = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/net/resolve/testdata/resolv.conf"
        );
        let mut config = CurrentConfig::new(ConfigSource::Files {
            resolv_conf: resolv_conf.into(),
            hosts: "/nonexistent/hosts".into(),
        });
        config.refresh().unwrap();
        assert_eq!(
            config.servers.as_ref().map(|servers| servers.each.len()),
            Ok(1)
        );
        assert_eq!(config.interfaces, [("nonexistent0".into(), None)]);
        // The file is not read again while neither it nor the interface changes.
        let before = config.servers.clone().unwrap();
        config.refresh().unwrap();
        assert!(Arc::ptr_eq(&before, config.servers.as_ref().unwrap()));
        // As if the interface had come.
        config.interfaces[0].1 = Some(1);
        config.refresh().unwrap();
        assert!(!Arc::ptr_eq(&before, config.servers.as_ref().unwrap()));
    }

    /// All IPv6 addresses of this machine: link-local ones are reached through their interface only (RFC 4007).
    #[test]
    fn a_server_is_asked_through_its_interface() {
        let table = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        for line in table.lines() {
            let mut words = line.split_whitespace();
            let mut number = || u128::from_str_radix(words.next().unwrap(), 16).unwrap();
            let (ip, index) = (std::net::Ipv6Addr::from(number()), number() as u32);
            let at = std::net::SocketAddrV6::new(ip, 0, 0, index);
            let Ok(server) = UdpSocket::bind(at) else {
                continue;
            };
            let mut at = at;
            at.set_port(server.local_addr().unwrap().port());
            let mut resolver = patient_resolver(at.into());
            let answer = ask(&mut resolver, "scoped.test");
            server.set_nonblocking(true).unwrap();
            // Until the question has come, or the lookup has failed without it.
            let received = loop {
                let has_failed = answer.try_recv().is_ok();
                match server.recv(&mut [0; 512]) {
                    Err(_) if !has_failed => thread::yield_now(),
                    received => break received,
                }
            };
            assert!(received.is_ok(), "{at}: {received:?}");
        }
    }

    /// A resolver that waits for this server without end.
    fn patient_resolver(server: std::net::SocketAddr) -> HickoryResolver {
        let hour = Duration::from_secs(3600);
        let servers = NameServers {
            timeout: hour,
            ..NameServers::new([server])
        };
        HickoryResolver::with_servers(servers).max_time(hour)
    }

    /// A server that never answers, and a resolver that asks it.
    fn silent_server() -> (UdpSocket, HickoryResolver) {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let resolver = patient_resolver(silent.local_addr().unwrap());
        (silent, resolver)
    }

    #[test]
    fn a_cancelled_lookup_gives_its_slot_at_once() {
        let (silent, resolver) = silent_server();
        let mut resolver = resolver.max_in_flight(1);
        let cancelled = ask(&mut resolver, "cancelled.test");
        let waits = ask(&mut resolver, "waits.test");
        let dropped = ask(&mut resolver, "dropped.test");
        resolver.cancel("dropped.test");
        assert_eq!(dropped.recv(), Ok(Answer::failed(DnsError::Unanswered)));
        resolver.cancel("cancelled.test");
        assert_eq!(cancelled.recv(), Ok(Answer::failed(DnsError::Unanswered)));
        let mut packet = [0; 512];
        loop {
            let n = silent.recv(&mut packet).unwrap();
            if packet[..n].windows(5).any(|word| word == b"waits") {
                break;
            }
        }
        assert!(waits.try_recv().is_err());
    }

    #[test]
    fn lookups_in_flight_are_answered_when_the_resolver_is_dropped() {
        let (silent, mut resolver) = silent_server();
        let first = ask(&mut resolver, "a.example");
        let second = ask(&mut resolver, "b.example");
        silent.recv(&mut [0; 512]).unwrap();
        drop(resolver);
        for answer in [first, second] {
            assert_eq!(answer.recv(), Ok(Answer::failed(DnsError::Unanswered)));
        }
    }
}
