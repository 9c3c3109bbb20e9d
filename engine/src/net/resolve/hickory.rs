//! Asking name servers, with the protocol of `hickory-resolver`.
//!
//! From that crate we take the question to one server: UDP, and TCP where the answer does not fit. What a C library
//! does around it is ours: the files, the search list, the next server when one fails (the crate takes SERVFAIL for
//! an answer), and the two families at once with the resolution delay of RFC 8305 §3.

use std::fs;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as WireError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::sync::{Semaphore, mpsc};

use super::files::{Hosts, ResolvConf};
use super::{Answer, DnsError, Reply, Resolver};

/// Asks name servers, on a thread that begins with the first lookup and ends with the resolver.
///
/// By default it follows the system: the servers, the search list and the options `ndots`, `timeout`, `attempts` and
/// `rotate` of `/etc/resolv.conf`, and the names in `/etc/hosts`, both read again when they change. Neither
/// `nsswitch.conf` nor the environment (`LOCALDOMAIN`, `RES_OPTIONS`) is read; [`SystemResolver`](super::SystemResolver)
/// does all of that. A `resolv.conf` that is missing, names no server or names one by something that is no address
/// fails each lookup with [`DnsError::Config`] but for the names in `hosts`; no other server is asked in its place (the
/// C library would ask 127.0.0.1).
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
    source: Source,
    max_in_flight: usize,
    /// How long a question waits for its turn.
    patience: Duration,
    worker: Option<Worker>,
}

/// Name servers, and how they are asked.
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
    /// The servers, asked in this order; the one that answered last is asked first.
    pub servers: Vec<SocketAddr>,
    /// Domains that are tried behind a name without a last dot: before the name itself if it has fewer than `ndots`
    /// dots, after it otherwise. Default none.
    pub search: Vec<String>,
    /// Default 1.
    pub ndots: usize,
    /// How long one server may take for one question. Default 5 s.
    pub timeout: Duration,
    /// How often each server is asked before a lookup fails. Default 2.
    pub attempts: usize,
    /// Whether each question begins with another server. Default: no.
    pub rotate: bool,
}

impl NameServers {
    /// These servers, with the defaults of resolv.conf(5).
    pub fn new(servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        let ResolvConf {
            ndots,
            timeout,
            attempts,
            rotate,
            ..
        } = ResolvConf::default();
        Self {
            servers: servers.into_iter().collect(),
            search: Vec::new(),
            ndots,
            timeout,
            attempts,
            rotate,
        }
    }
}

#[derive(Clone, Debug)]
enum Source {
    Files {
        resolv_conf: PathBuf,
        hosts: PathBuf,
    },
    Given(NameServers),
}

impl HickoryResolver {
    /// The system's configuration.
    pub fn system() -> Self {
        Self::with_files("/etc/resolv.conf", "/etc/hosts")
    }

    /// The configuration in other files of these formats.
    pub fn with_files(resolv_conf: impl Into<PathBuf>, hosts: impl Into<PathBuf>) -> Self {
        Self::new(Source::Files {
            resolv_conf: resolv_conf.into(),
            hosts: hosts.into(),
        })
    }

    /// These servers, and no file.
    pub fn with_servers(servers: NameServers) -> Self {
        Self::new(Source::Given(servers))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            max_in_flight: DEFAULT_IN_FLIGHT,
            patience: PATIENCE,
            worker: None,
        }
    }

    /// Lookups that are under way at once; the others wait for their turn. Each has up to six sockets while its
    /// servers are slow. Default 256. Has an effect before the first lookup.
    pub fn max_in_flight(mut self, lookups: usize) -> Self {
        self.max_in_flight = lookups.max(1);
        self
    }
}

impl Resolver for HickoryResolver {
    fn lookup(&mut self, name: &str, reply: Reply) {
        if self.worker.is_none() {
            match Worker::start(self.source.clone(), self.max_in_flight, self.patience) {
                Ok(worker) => self.worker = Some(worker),
                Err(error) => return reply.answer(resolver_failed(&error)),
            }
        }
        if let Some(Worker {
            questions: Some(questions),
            ..
        }) = &self.worker
        {
            // A worker that has ended drops the reply, which is an answer.
            let _ = questions.send((name.into(), reply));
        }
    }
}

#[derive(Debug)]
struct Worker {
    /// Taken when the worker is to end.
    questions: Option<mpsc::UnboundedSender<Question>>,
    thread: Option<JoinHandle<()>>,
}

type Question = (Box<str>, Reply);

impl Worker {
    fn start(source: Source, max_in_flight: usize, patience: Duration) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (questions, asked) = mpsc::unbounded_channel();
        let thread = thread::Builder::new()
            .name("courser-dns".to_owned())
            .spawn(move || runtime.block_on(serve(source, max_in_flight, patience, asked)))?;
        Ok(Self {
            questions: Some(questions),
            thread: Some(thread),
        })
    }
}

impl Drop for Worker {
    /// Lookups in flight end with the runtime, at their next await.
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// For how long a question waits for its turn: as long as a client waits for the answer, by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes questions until the resolver is dropped.
async fn serve(
    source: Source,
    max_in_flight: usize,
    patience: Duration,
    mut asked: mpsc::UnboundedReceiver<Question>,
) {
    let turns = Arc::new(Semaphore::new(max_in_flight.min(Semaphore::MAX_PERMITS)));
    let mut setup = Setup::new(source);
    while let Some((name, reply)) = asked.recv().await {
        setup.refresh();
        if let Some(addresses) = setup.hosts.get(&name) {
            reply.answer(Answer::found(addresses.iter().copied(), HOSTS_TTL));
            continue;
        }
        let servers = match &setup.servers {
            Ok(servers) => servers.clone(),
            Err(error) => {
                reply.answer(Answer::failed(error.clone()));
                continue;
            }
        };
        let turns = turns.clone();
        tokio::spawn(async move {
            // Whoever has waited so long has given up; asking for nobody would keep the others waiting as well.
            let Ok(Ok(_turn)) = tokio::time::timeout(patience, turns.acquire()).await else {
                return reply.answer(Answer::failed(DnsError::Timeout));
            };
            let answer = servers.search(&name).await;
            reply.answer(answer);
        });
    }
}

/// The configuration in use.
struct Setup {
    source: Source,
    /// What the files looked like when they were read.
    resolv_conf: Option<Stamp>,
    hosts_file: Option<Stamp>,
    servers: Result<Arc<Servers>, DnsError>,
    hosts: Hosts,
}

/// Tells that a file is another one than before.
#[derive(Debug, Eq, PartialEq)]
struct Stamp(Option<(SystemTime, u64, u64)>);

impl Stamp {
    fn of(path: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        let stamp = |meta: fs::Metadata| Some((meta.modified().ok()?, meta.len(), meta.ino()));
        Self(fs::metadata(path).ok().and_then(stamp))
    }
}

impl Setup {
    fn new(source: Source) -> Self {
        let servers = match &source {
            Source::Given(servers) => Servers::new(servers),
            Source::Files { .. } => Err(DnsError::Unanswered),
        };
        Self {
            source,
            resolv_conf: None,
            hosts_file: None,
            servers,
            hosts: Hosts::default(),
        }
    }

    /// Reads the files that have changed.
    fn refresh(&mut self) {
        let Source::Files { resolv_conf, hosts } = &self.source else {
            return;
        };
        let stamp = Some(Stamp::of(hosts));
        if stamp != self.hosts_file {
            self.hosts_file = stamp;
            // As in the C library, names are looked up without a file that cannot be read.
            self.hosts = Hosts::parse(&fs::read(hosts).unwrap_or_default());
        }
        let stamp = Some(Stamp::of(resolv_conf));
        if stamp != self.resolv_conf {
            self.resolv_conf = stamp;
            self.servers = read_resolv_conf(resolv_conf);
        }
    }
}

fn read_resolv_conf(path: &Path) -> Result<Arc<Servers>, DnsError> {
    let failed = |what: String| DnsError::Config(format!("{}: {what}", path.display()).into());
    let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let conf = ResolvConf::parse(&text).map_err(failed)?;
    Servers::new(&NameServers {
        servers: conf.servers,
        search: conf.search.unwrap_or_else(domain_of_this_host),
        ndots: conf.ndots,
        timeout: conf.timeout,
        attempts: conf.attempts,
        rotate: conf.rotate,
    })
    .map_err(|error| match error {
        DnsError::Config(what) => failed(what.to_string()),
        error => error,
    })
}

/// What the C library searches by default: the host name behind its first dot.
fn domain_of_this_host() -> Vec<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let domain = name.split_once('.').map(|(_, domain)| domain.to_owned());
    domain.into_iter().filter(|d| !d.is_empty()).collect()
}

/// Name servers, ready to be asked.
struct Servers {
    /// One resolver for each server, so that the choice among them is ours. Not empty.
    each: Vec<TokioResolver>,
    /// Which one is asked first.
    first: AtomicUsize,
    rotate: bool,
    /// With a last dot.
    search: Vec<Name>,
    ndots: usize,
    timeout: Duration,
    attempts: usize,
}

impl Servers {
    fn new(given: &NameServers) -> Result<Arc<Self>, DnsError> {
        let invalid = |what: String| DnsError::Config(what.into());
        if given.servers.is_empty() {
            return Err(invalid("no name server".to_owned()));
        }
        let each = given
            .servers
            .iter()
            .map(|at| one_server(*at, given.timeout));
        let search = given.search.iter().map(|domain| {
            let name = domain.strip_suffix('.').unwrap_or(domain);
            Name::from_ascii(format!("{name}."))
                .map_err(|error| invalid(format!("search domain {domain:?}: {error}")))
        });
        Ok(Arc::new(Self {
            each: each
                .collect::<Result<_, _>>()
                .map_err(|error| invalid(error.to_string()))?,
            first: AtomicUsize::new(0),
            rotate: given.rotate,
            search: search.collect::<Result<_, _>>()?,
            ndots: given.ndots,
            timeout: given.timeout,
            attempts: given.attempts.max(1),
        }))
    }

    /// Tries the name and its search list, as res_search(3) does: the first candidate with addresses is the answer,
    /// one that does not exist or that the servers fail on leads to the next, and a time-out ends it.
    async fn search(&self, name: &str) -> Answer {
        let mut nothing: Option<Answer> = None;
        for candidate in self.candidates(name) {
            let answer = self.ask(&candidate).await;
            let Err(error) = &answer.addresses else {
                return answer;
            };
            let rank = |error: &DnsError| match error {
                DnsError::NotFound => 0,
                DnsError::ServerFailure(_) | DnsError::Resolver(_) => 1,
                DnsError::NoAddresses => 2,
                _ => 3,
            };
            let given_up = rank(error) == 3;
            let told_before = nothing.as_ref().and_then(|a| a.addresses.as_ref().err());
            if told_before.is_none_or(|before| rank(before) < rank(error)) {
                nothing = Some(answer);
            }
            if given_up {
                break;
            }
        }
        nothing.unwrap_or_else(|| Answer::failed(DnsError::InvalidName))
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
        let mut all: Vec<_> = self
            .search
            .iter()
            .filter_map(|domain| relative.clone().append_domain(domain).ok())
            .collect();
        let whole_first = name.bytes().filter(|b| *b == b'.').count() >= self.ndots;
        all.insert(if whole_first { 0 } else { all.len() }, whole);
        all
    }

    /// The addresses of one absolute name, of both families.
    async fn ask(&self, name: &Name) -> Answer {
        let (v4, v6) = both(
            self.query(name, RecordType::A),
            self.query(name, RecordType::AAAA),
        )
        .await;
        let found = |half: &Half| matches!(half, Some(Ok(_)));
        // Addresses of one family alone are no whole answer unless the other is known to be empty.
        let partial = !(found(&v4) || is_empty(&v4)) || !(found(&v6) || is_empty(&v6));
        match (v6, v4) {
            (Some(Ok(v6)), Some(Ok(v4))) => {
                let ttl = v6.ttl.min(v4.ttl);
                Answer::found(v6.addresses.into_iter().chain(v4.addresses), ttl)
            }
            (Some(Ok(half)), _) | (_, Some(Ok(half))) => {
                let bound = if partial { PARTIAL_TTL } else { Duration::MAX };
                Answer::found(half.addresses, half.ttl.min(bound))
            }
            (v6, v4) => nothing(v6, v4),
        }
    }

    /// One question, to one server after the other until one answers.
    async fn query(&self, name: &Name, kind: RecordType) -> Result<Records, Nothing> {
        let first = match self.rotate {
            true => self.first.fetch_add(1, Ordering::Relaxed),
            false => self.first.load(Ordering::Relaxed),
        };
        let mut failure = Nothing::from(DnsError::Timeout);
        for turn in 0..self.attempts * self.each.len() {
            let server = (first.wrapping_add(turn)) % self.each.len();
            let question = self.each[server].lookup(name.clone(), kind);
            let answer = match tokio::time::timeout(self.timeout, question).await {
                Ok(Ok(lookup)) => Records::of(&lookup, name, kind),
                Ok(Err(error)) => Err(Nothing::of(error)),
                Err(_) => Err(DnsError::Timeout.into()),
            };
            match answer {
                Err(nothing) if !nothing.error.is_negative() => {
                    // What a server said is told before that another said nothing.
                    if !matches!(failure.error, DnsError::ServerFailure(_)) {
                        failure = nothing;
                    }
                }
                answer => {
                    if !self.rotate {
                        self.first.store(server, Ordering::Relaxed);
                    }
                    return answer;
                }
            }
        }
        Err(failure)
    }
}

fn one_server(at: SocketAddr, timeout: Duration) -> Result<TokioResolver, NetError> {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = at.port();
    }
    let server = NameServerConfig::new(at.ip(), true, connections);
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options: &mut ResolverOpts = builder.options_mut();
    options.timeout = timeout;
    // Repetition, files and the cache are not its business.
    options.attempts = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    options.max_active_requests = usize::from(u16::MAX);
    builder.build()
}

/// The addresses of one family.
struct Records {
    addresses: Vec<IpAddr>,
    ttl: Duration,
}

impl Records {
    /// Follows the aliases from `name` (RFC 1034 §3.6.2); what else the answer holds is not asked for. The shortest
    /// time on the way holds for all.
    fn of(lookup: &Lookup, name: &Name, kind: RecordType) -> Result<Self, Nothing> {
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
            true => Err(DnsError::NoAddresses.into()),
            false => Ok(Self {
                addresses,
                ttl: time_to_live(ttl),
            }),
        }
    }
}

/// A family without addresses.
struct Nothing {
    error: DnsError,
    ttl: Option<Duration>,
}

impl Nothing {
    fn of(error: NetError) -> Self {
        let failed = match &error {
            NetError::Dns(WireError::NoRecordsFound(none)) => {
                let kind = match none.response_code {
                    ResponseCode::NXDomain => DnsError::NotFound,
                    ResponseCode::NoError => DnsError::NoAddresses,
                    code => DnsError::ServerFailure(code.into()),
                };
                return Self {
                    error: kind,
                    ttl: none.negative_ttl.map(time_to_live),
                };
            }
            NetError::Dns(WireError::ResponseCode(code)) => {
                DnsError::ServerFailure(u16::from(*code))
            }
            NetError::Timeout => DnsError::Timeout,
            NetError::Io(io) if io.kind() == io::ErrorKind::TimedOut => DnsError::Timeout,
            _ => DnsError::Resolver(error.to_string().into()),
        };
        failed.into()
    }
}

impl From<DnsError> for Nothing {
    fn from(error: DnsError) -> Self {
        Self { error, ttl: None }
    }
}

/// `None`: not known yet.
type Half = Option<Result<Records, Nothing>>;

fn is_empty(half: &Half) -> bool {
    matches!(half, Some(Err(nothing)) if nothing.error.is_negative())
}

/// What is told of a name that has no address of either family: that the servers failed on one goes before that the
/// other is empty, since there may be addresses.
fn nothing(v6: Half, v4: Half) -> Answer {
    let mut told: Option<Nothing> = None;
    for nothing in [v4, v6].into_iter().flatten().filter_map(Result::err) {
        let rank = |error: &DnsError| match error {
            DnsError::NotFound => 0,
            DnsError::NoAddresses => 1,
            _ => 2,
        };
        let ttl = match &told {
            Some(before) => before.ttl.min(nothing.ttl).or(nothing.ttl).or(before.ttl),
            None => nothing.ttl,
        };
        let telling = told
            .take()
            .filter(|before| rank(&before.error) >= rank(&nothing.error))
            .unwrap_or(nothing);
        told = Some(Nothing { ttl, ..telling });
    }
    match told {
        Some(Nothing { error, ttl }) if error.is_negative() => Answer {
            addresses: Err(error),
            ttl,
        },
        Some(Nothing { error, .. }) => Answer::failed(error),
        None => Answer::failed(DnsError::Unanswered),
    }
}

/// Runs both questions at once. Once one has brought addresses, the other gets [`RESOLUTION_DELAY`] more.
async fn both(
    v4: impl Future<Output = Result<Records, Nothing>>,
    v6: impl Future<Output = Result<Records, Nothing>>,
) -> (Half, Half) {
    let (mut v4, mut v6) = (pin!(v4), pin!(v6));
    let mut delay = pin!(None);
    let (mut have_v4, mut have_v6): (Half, Half) = (None, None);
    poll_fn(|cx| {
        if have_v4.is_none()
            && let Poll::Ready(half) = v4.as_mut().poll(cx)
        {
            have_v4 = Some(half);
        }
        if have_v6.is_none()
            && let Poll::Ready(half) = v6.as_mut().poll(cx)
        {
            have_v6 = Some(half);
        }
        let found = |half: &Half| matches!(half, Some(Ok(_)));
        if have_v4.is_some() && have_v6.is_some() {
            return Poll::Ready(());
        }
        if !found(&have_v4) && !found(&have_v6) {
            return Poll::Pending;
        }
        if delay.is_none() {
            delay.set(Some(tokio::time::sleep(RESOLUTION_DELAY)));
        }
        match delay.as_mut().as_pin_mut() {
            Some(delay) => delay.poll(cx),
            None => Poll::Pending,
        }
    })
    .await;
    (have_v4, have_v6)
}

/// RFC 2181 §8: the highest bit is not used; a time that has it is none.
fn time_to_live(seconds: u32) -> Duration {
    let seconds = if seconds > i32::MAX as u32 {
        0
    } else {
        seconds
    };
    Duration::from_secs(seconds.into())
}

fn resolver_failed(error: &io::Error) -> Answer {
    Answer::failed(DnsError::Resolver(
        format!("the resolver cannot start: {error}").into(),
    ))
}

/// RFC 8305 §3.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// How long an answer holds whose other family is missing, so that it gets another chance soon.
const PARTIAL_TTL: Duration = Duration::from_secs(30);
/// Names in the hosts file have no time of their own; the file is looked at again after that.
const HOSTS_TTL: Duration = Duration::from_secs(10);
const DEFAULT_IN_FLIGHT: usize = 256;

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
    fn a_missing_resolv_conf_is_told_and_hosts_hold() {
        let hosts = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/net/resolve/testdata/hosts"
        );
        let mut resolver = HickoryResolver::with_files("/nonexistent/resolv.conf", hosts);
        let answer = ask(&mut resolver, "db.internal").recv().unwrap();
        assert_eq!(
            answer,
            Answer::found(["10.0.0.7".parse().unwrap()], HOSTS_TTL)
        );
        let answer = ask(&mut resolver, "other.internal").recv().unwrap();
        let Err(DnsError::Config(what)) = answer.addresses else {
            panic!("{answer:?}");
        };
        assert!(what.starts_with("/nonexistent/resolv.conf: "), "{what}");
    }

    /// Names that nobody answers for hold all places; questions do not pile up behind them, to be asked for nobody.
    #[test]
    fn questions_that_wait_too_long_for_their_turn_are_dropped() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let servers = NameServers {
            timeout: Duration::from_secs(3600),
            ..NameServers::new([silent.local_addr().unwrap()])
        };
        let mut resolver = HickoryResolver::with_servers(servers).max_in_flight(1);
        resolver.patience = Duration::from_millis(20);
        let dead = ask(&mut resolver, "dead.example");
        silent.recv(&mut [0; 512]).unwrap(); // it has its turn
        for n in 0..100 {
            let answer = ask(&mut resolver, &format!("n{n}.example"));
            if n % 33 == 0 {
                assert_eq!(answer.recv(), Ok(Answer::failed(DnsError::Timeout)));
            }
        }
        assert!(dead.try_recv().is_err());
        silent.set_nonblocking(true).unwrap();
        let mut packet = [0; 512];
        while let Ok(n) = silent.recv(&mut packet) {
            let asked = String::from_utf8_lossy(&packet[..n]).into_owned();
            assert!(asked.contains("dead"), "{asked:?}");
        }
    }

    #[test]
    fn dropped_with_lookups_in_flight() {
        // It takes questions and never answers.
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut resolver = HickoryResolver::with_servers(NameServers {
            timeout: Duration::from_secs(3600),
            ..NameServers::new([silent.local_addr().unwrap()])
        });
        let first = ask(&mut resolver, "a.example");
        let second = ask(&mut resolver, "b.example");
        silent.recv(&mut [0; 512]).unwrap();
        drop(resolver);
        for answer in [first, second] {
            assert_eq!(answer.recv(), Ok(Answer::failed(DnsError::Unanswered)));
        }
    }
}
