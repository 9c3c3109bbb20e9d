//! A random program: the configuration of the client, the servers with their faults, and the calls. All of it is drawn
//! from one seed.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use courser::error::DnsError;
use courser::net::Address;
use courser::net::sim::{Behaviour, Faults, Link, Probability, Random, ScriptedAnswer};
use courser::policy::{
    AdaptiveTimeout, BalanceConfig, BreakerConfig, FailureClass, LatePolicy, Overflow, Pipelined,
    RetryBudget, RetryHook, RetryOn, RetryRule, RetryVia, ReuseOrder, Spread, Statuses, WaitPolicy,
};
use courser::rustls::{self, ServerConfig, pki_types::PrivateKeyDer};
use courser::{
    Answer, Backoff, DnsConfig, HostConfig, Limits, PemOrDer, PipelineConfig, Rate, Retry,
    Timeouts, TlsConfig, TlsRoots,
};

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) mood: Mood,
    pub(crate) config: HostConfig,
    /// Many hosts, for a `Client`. Without it, all places are one upstream, for a `HostClient`.
    pub(crate) web: Option<Web>,
    /// For a `PipelineClient`; its `host` is `config`.
    pub(crate) pipeline: Option<PipelineConfig>,
    pub(crate) places: Vec<Place>,
    /// The servers of the upstream speak TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) descriptors: usize,
    pub(crate) early_wakeups: Probability,
    /// The reports to an observer are checked. This should not change the run.
    pub(crate) watched: bool,
    /// The client is driven while no call is in flight, too.
    pub(crate) maintains: bool,
    /// In the order of time.
    pub(crate) acts: Vec<(Duration, Act)>,
}

/// The kind of faults.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mood {
    /// Nothing fails: writes are cut short, wake-ups are spurious, everything takes time, and every call must succeed.
    Fair,
    /// Every fault happens now and then.
    Foul,
}

/// An address with its server.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: Address,
    pub(crate) link: Link,
    pub(crate) behaviour: Behaviour,
}

/// Hosts and their names.
#[derive(Debug)]
pub(crate) struct Web {
    pub(crate) max_connections: usize,
    /// How many redirects are followed.
    pub(crate) redirects: Option<u32>,
    /// The rate of the requests to all hosts together.
    pub(crate) rate: Option<Rate>,
    pub(crate) dns: DnsConfig,
    pub(crate) names: Vec<Name>,
    pub(crate) sites: Vec<Site>,
    /// The proxy for all calls: its URL, and whether tunnels are used.
    pub(crate) proxy: Option<(String, bool)>,
    pub(crate) slow_names: Option<SlowNames>,
}

/// Some names are slow, and the resolver has few slots. The other names are fast, and must stay so.
#[derive(Debug)]
pub(crate) struct SlowNames {
    /// How many lookups are in flight at a time.
    pub(crate) lookups: usize,
    /// The names that are fast, and the longest time that a lookup of one of them may take.
    pub(crate) fast: Vec<String>,
    pub(crate) most: Duration,
}

/// A scheme, host and port, whose connections have one limit. No two sites share an address, so that a connection shows
/// its site.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) origin: String,
    pub(crate) addresses: Vec<Address>,
}

/// A name, and the answers of its lookups.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    name: String,
    /// The first address always works.
    ips: Vec<IpAddr>,
    latency: RangeInclusive<Duration>,
    ttl: RangeInclusive<Duration>,
    never: Probability,
    lost: Probability,
    fails: Probability,
    /// Answers leave out some of the addresses.
    changes: Probability,
}

impl Name {
    /// Known at once and for ever.
    fn plain() -> Self {
        Self {
            name: String::new(),
            ips: Vec::new(),
            latency: Duration::ZERO..=Duration::ZERO,
            ttl: Duration::ZERO..=Duration::ZERO,
            never: Probability::NEVER,
            lost: Probability::NEVER,
            fails: Probability::NEVER,
            changes: Probability::NEVER,
        }
    }

    /// The answer at this time.
    pub(crate) fn ask(names: &[Self], random: &mut Random, asked: &str) -> ScriptedAnswer {
        let Some(name) = names.iter().find(|name| name.name == asked) else {
            panic!("nobody has a reason to ask for {asked}");
        };
        let after = random.duration(&name.latency);
        if random.roll(name.never) {
            return ScriptedAnswer::Never;
        }
        if random.roll(name.lost) {
            return ScriptedAnswer::Lost(after);
        }
        let failures = [
            DnsError::NotFound,
            DnsError::NoAddresses,
            DnsError::ServerFailure(2),
            DnsError::Timeout,
        ];
        if random.roll(name.fails) {
            let mut answer = Answer::failed(random.pick(&failures).clone());
            answer.ttl = random.roll(OFTEN).then(|| random.duration(&name.ttl));
            return ScriptedAnswer::After(after, answer);
        }
        let mut ips = name.ips[..1].to_vec();
        for ip in &name.ips[1..] {
            if !random.roll(name.changes) {
                ips.insert(random.within(0..=ips.len()), *ip);
            }
        }
        ScriptedAnswer::After(after, Answer::found(ips, random.duration(&name.ttl)))
    }
}

#[derive(Debug)]
pub(crate) enum Act {
    Submit(Spec),
    /// A blocking call, or a blocking body if the spec has a consumer.
    Block(Spec),
    /// Cancels the n-th call, whatever has become of it.
    Cancel(usize),
    /// The caller is busy for a while and does not drive the client.
    Busy(Duration),
    CloseIdle,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) id: u64,
    /// Selects the site.
    pub(crate) site: usize,
    pub(crate) method: &'static str,
    pub(crate) body: Upload,
    pub(crate) expect: Option<Duration>,
    pub(crate) says_close: bool,
    pub(crate) timeout: Option<Duration>,
    /// Reads the body of the response.
    pub(crate) consumer: Option<Consumer>,
    /// The settings of this call, in place of the client's. A blocking call has none.
    pub(crate) own: Option<Box<Own>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) timeouts: Option<Timeouts>,
    pub(crate) limits: Option<Limits>,
    pub(crate) retry: Option<Retry>,
}

#[derive(Clone, Debug)]
pub(crate) enum Upload {
    None,
    Bytes(usize),
    /// Comes in pieces of at most `piece` bytes, with a pause before each `pause`.
    Stream {
        length: usize,
        declared: bool,
        piece: usize,
        pause: Option<Duration>,
        /// Can be opened again.
        opened: bool,
    },
}

impl Upload {
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Bytes(length) | Self::Stream { length, .. } => *length,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumer {
    pub(crate) piece: usize,
    pub(crate) pause: Duration,
    /// Stops reading after so many bytes.
    pub(crate) gives_up_after: usize,
}

/// Methods that must never be executed twice.
pub(crate) const NOT_IDEMPOTENT: [&str; 2] = ["POST", "PATCH"];
const IDEMPOTENT: [&str; 7] = ["GET", "GET", "GET", "HEAD", "PUT", "DELETE", "OPTIONS"];

impl Plan {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let random = &mut random;
        let mood = *random.pick(&[Mood::Fair, Mood::Foul, Mood::Foul]);
        let mut config = draw_config(random, mood);
        // Large bodies or small segments: both together only take time.
        let bulk = random.roll(OFTEN);
        let places: Vec<_> = draw_addresses(random)
            .into_iter()
            .map(|address| draw_place(random, mood, bulk, address))
            .collect();
        if places.len() > 1 && random.roll(OFTEN) {
            config.balance = Some(draw_balance(random));
        }
        let foul = mood == Mood::Foul;
        let acts = draw_acts(random, mood, bulk);
        forgo_steady_work(&mut config, &acts);
        let tls = draw_tls(seed, &places);
        if tls.is_some() {
            config.tls = CERTIFICATE.1.clone();
        }
        Self {
            tls,
            descriptors: draw_descriptors(seed, foul),
            early_wakeups: sometimes(random, 200),
            watched: !random.roll(RARELY),
            maintains: random.roll(OFTEN),
            acts,
            mood,
            config,
            web: None,
            pipeline: None,
            places,
        }
    }

    /// Several calls on a connection, if the rest of the plan allows it.
    pub(crate) fn draw_pipeline(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        let mut random = Random::new(!seed.rotate_left(16));
        let random = &mut random;
        let fair = plan.mood == Mood::Fair;
        let bulk = random.roll(RARELY);
        plan.acts = draw_acts(random, plan.mood, bulk);
        forgo_steady_work(&mut plan.config, &plan.acts);
        plan.config.max_connections = nonzero(random.within(1..=3));
        plan.config.balance = None;
        plan.config.wait = WaitPolicy::default();
        if fair {
            // A connection may end at any answer, together with the calls after it: repeatedly, until each call has its
            // own.
            plan.config.retry = Retry {
                max_attempts: NonZeroU32::MAX,
                hook: Some(Arc::new(|_| Some(Duration::ZERO))),
                ..Retry::default()
            };
            plan.config.retry_budget = None;
            plan.config.breaker = None;
        }
        for place in &mut plan.places {
            if random.roll(OFTEN) {
                place.behaviour.reads_on = Probability::per_mille(1000);
            }
        }
        for (_, act) in &mut plan.acts {
            let (Act::Submit(spec) | Act::Block(spec)) = act else {
                continue;
            };
            spec.consumer = None;
            spec.expect = None;
            spec.own = None;
            spec.body = match spec.body {
                Upload::Stream { length, .. } => Upload::Bytes(length),
                ref other => other.clone(),
            };
            if fair && NOT_IDEMPOTENT.contains(&spec.method) {
                spec.method = "PUT";
            }
        }
        let delay = *random.pick(&[0, 0, 30]);
        plan.pipeline = Some(PipelineConfig {
            host: plan.config.clone(),
            max_pending: nonzero(random.within(1..=10)),
            max_pending_total: nonzero(random.within(1..=20)),
            overflow: match random.within(0..=3) {
                0 if !fair => Overflow::RefuseNewest,
                1 if !fair => Overflow::DropOldestUnsent,
                _ => Overflow::Wait,
            },
            max_batch_delay: random.duration(&span(0, delay)),
            distrust: random.duration(&span(0, 2000)),
            methods: *random.pick(&[Pipelined::Idempotent, Pipelined::All]),
        });
        plan
    }

    /// Many hosts, and the calls spread over them.
    pub(crate) fn draw_web(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        // Not the generator that drew the plan.
        let mut random = Random::new(!seed.rotate_left(32));
        let random = &mut random;
        let bulk = random.roll(RARELY);
        plan.acts = draw_acts(random, plan.mood, bulk);
        let (web, places) = draw_web(random, plan.mood, bulk);
        let config = &mut plan.config;
        config.max_connections = nonzero(random.within(1..=4));
        config.balance = None;
        config.min_idle = 0;
        config.attempt_delay = random.duration(&span(1, 400));
        config.avoid_failed = random.duration(&span(0, 3000));
        if plan.mood == Mood::Foul {
            config.timeouts.resolve = maybe(random, 1, 1000);
        }
        let mut web = web;
        let mut places = places;
        if random.within(0..=3) == 0 {
            draw_slow_names(random, plan.mood, &mut web, &mut places);
        }
        for (_, act) in &mut plan.acts {
            if let Act::Submit(spec) | Act::Block(spec) = act {
                // One of them gets most calls.
                spec.site = if random.roll(OFTEN) {
                    0
                } else {
                    random.within(0..=web.sites.len() - 1)
                };
            }
        }
        plan.web = Some(web);
        plan.tls = None;
        plan.places = places;
        plan
    }

    /// The limits in time of a call.
    pub(crate) fn timeouts<'a>(&'a self, spec: &'a Spec) -> &'a Timeouts {
        let own = spec.own.as_ref().and_then(|own| own.timeouts.as_ref());
        own.unwrap_or(&self.config.timeouts)
    }

    /// The limits on the answers to a call.
    pub(crate) fn limits<'a>(&'a self, spec: &'a Spec) -> &'a Limits {
        let own = spec.own.as_ref().and_then(|own| own.limits.as_ref());
        own.unwrap_or(&self.config.limits)
    }

    /// The rules for retries.
    pub(crate) fn retry<'a>(&'a self, spec: &'a Spec) -> &'a Retry {
        let own = spec.own.as_ref().and_then(|own| own.retry.as_ref());
        own.unwrap_or(&self.config.retry)
    }

    /// Whether a throttle keeps calls back.
    pub(crate) fn holds_back(&self) -> bool {
        let config = &self.config;
        let all = self.web.as_ref().and_then(|web| web.rate);
        config.rate.or(all).is_some() || config.min_delay.is_some()
    }

    /// Whether calls may wait because no socket can be made.
    pub(crate) fn lacks_sockets(&self) -> bool {
        let never = Probability::NEVER;
        let mut faults = self.places.iter().map(|place| &place.link.faults);
        self.descriptors < usize::MAX
            || faults.any(|faults| {
                [faults.no_descriptor, faults.no_buffers, faults.no_port] != [never; 3]
            })
    }

    /// The target of a call.
    pub(crate) fn target(&self, spec: &Spec) -> String {
        match &self.web {
            Some(web) => format!("{}/{}/0", web.sites[spec.site].origin, spec.id),
            None => format!("/{}", spec.id),
        }
    }
}

/// How many sockets there may be at a time. In a fair world, calls wait for them and succeed. In a foul world there may
/// be none at all.
fn draw_descriptors(seed: u64, foul: bool) -> usize {
    // Not the generator that draws the plan.
    let mut random = Random::new(!seed.rotate_left(48));
    match random.roll(RARELY) {
        true => random.within(usize::from(!foul)..=4),
        false => usize::MAX,
    }
}

/// Records of any size from a few bytes on.
fn draw_tls(seed: u64, places: &[Place]) -> Option<Arc<ServerConfig>> {
    // Not the generator that draws the plan.
    let mut random = Random::new(!seed.rotate_left(32));
    let is_tcp = matches!(places[0].address, Address::Tcp(_));
    (is_tcp && random.roll(Probability::per_mille(50))).then(|| {
        let mut config = ServerConfig::clone(&CERTIFICATE.0);
        config.max_fragment_size = Some(*random.pick(&[32, 64, 1_000, 16_384]));
        Arc::new(config)
    })
}

/// The name of all servers that speak TLS.
pub(crate) const TLS_NAME: &str = "sim.example";

/// A server with a certificate whose signatures always have the same length, and a client that trusts it.
static CERTIFICATE: LazyLock<(ServerConfig, TlsConfig)> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let parameters = rcgen::CertificateParams::new([TLS_NAME.to_owned()]).expect("a valid name");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let client = TlsConfig {
        roots: TlsRoots::None,
        extra_roots: vec![PemOrDer::Bytes(certificate.pem().into_bytes())],
        ..TlsConfig::default()
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions that there are")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key);
    (server.expect("the key of the certificate"), client)
});

/// Over hours, an event in every second would be most of a run.
fn forgo_steady_work(config: &mut HostConfig, acts: &[(Duration, Act)]) {
    if acts.last().is_some_and(|(at, _)| at.as_secs() > 600) {
        config.min_idle = 0;
    }
}

fn draw_web(random: &mut Random, mood: Mood, bulk: bool) -> (Web, Vec<Place>) {
    let foul = mood == Mood::Foul;
    let (mut names, mut sites, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for n in 1..=random.within(1..=5) as u8 {
        let count = random.within(1..=3) as u8;
        let ips: Vec<IpAddr> = (1..=count).map(|m| draw_ip(random, n, m)).collect();
        let name = match random.within(0..=3) {
            // An IP address as the host.
            0 => None,
            1 => Some(format!("host{n}.sim.")),
            _ => Some(format!("host{n}.sim")),
        };
        for port in 80..=80 + u16::from(random.roll(OFTEN)) {
            let ips = if name.is_some() { &ips[..] } else { &ips[..1] };
            let addresses = ips
                .iter()
                .map(|ip| Address::Tcp((*ip, port).into()))
                .collect::<Vec<_>>();
            let host = match (&name, ips[0]) {
                (Some(name), _) => name.to_uppercase(),
                (None, IpAddr::V4(ip)) => ip.to_string(),
                (None, IpAddr::V6(ip)) => format!("[{ip}]"),
            };
            sites.push(Site {
                origin: format!("http://{host}:{port}"),
                addresses: addresses.clone(),
            });
            places.extend(
                addresses
                    .into_iter()
                    .enumerate()
                    .filter_map(|(n, address)| {
                        let mut place = draw_place(random, mood, bulk, address);
                        // All addresses but the first may be dead.
                        match random.within(0..=3) {
                            0 if n > 0 => return None,
                            1 if n > 0 => place.link.faults.black_hole = Probability::ALWAYS,
                            _ => {}
                        }
                        Some(place)
                    }),
            );
        }
        let slow = *random.pick(&[0, 10, 400]);
        names.extend(name.map(|name| {
            let mut name = Name {
                name,
                ips,
                latency: span(0, slow),
                ttl: span(0, 3000),
                ..Name::plain()
            };
            if foul {
                name.never = sometimes(random, 200);
                name.lost = sometimes(random, 200);
                name.fails = sometimes(random, 500);
            }
            name.changes = sometimes(random, 500);
            name
        }));
    }
    let origins: Vec<_> = sites
        .iter()
        .map(|site| site.origin.clone())
        .chain([String::new()])
        .collect();
    for place in &mut places {
        place.behaviour.redirect = sometimes(random, 600);
        place.behaviour.redirect_to = origins.clone();
    }
    let proxy = (random.within(0..=4) == 0).then(|| {
        let named = random.roll(OFTEN);
        let ip: IpAddr = [10, 1, 0, 1].into();
        if named {
            names.push(Name {
                name: "proxy.sim".into(),
                ips: vec![ip],
                ..names.first().cloned().unwrap_or_else(Name::plain)
            });
        }
        let mut place = draw_place(random, mood, bulk, Address::Tcp((ip, 3128).into()));
        place.behaviour.redirect = sometimes(random, 600);
        place.behaviour.redirect_to = origins;
        if foul {
            place.behaviour.refuses = seldom(random, 300);
        }
        let scheme = *random.pick(&["http", "socks5", "socks5h"]);
        place.behaviour.socks = scheme != "http";
        places.push(place);
        let host = if named {
            "proxy.sim".into()
        } else {
            ip.to_string()
        };
        let tunnels = scheme == "http" && random.roll(OFTEN);
        (format!("{scheme}://{host}:3128"), tunnels)
    });
    let dns = DnsConfig {
        min_ttl: random.duration(&span(0, 1000)),
        negative_ttl: random.duration(&span(0, 1000)),
        max_negative_ttl: random.duration(&span(0, 1000)),
        stale_while_refresh: random.duration(&span(0, 1000)),
        stale_if_error: random.duration(&span(0, 1000)),
        max_entries: nonzero(random.within(1..=3)),
        max_addresses: nonzero(8),
        ..DnsConfig::default()
    };
    let redirects = match random.within(0..=3) {
        0 => None,
        1 if foul => Some(random.within(0..=3) as u32),
        _ => Some(10),
    };
    let max_connections = random.within(1..=4);
    (
        Web {
            max_connections,
            redirects,
            rate: draw_rate(random),
            dns,
            names,
            sites,
            proxy,
            slow_names: None,
        },
        places,
    )
}

/// Makes all names fast, and adds slow ones: below one domain, or each with a domain of its own.
fn draw_slow_names(random: &mut Random, mood: Mood, web: &mut Web, places: &mut Vec<Place>) {
    let fast = Duration::from_millis(50);
    for name in &mut web.names {
        name.latency = Duration::ZERO..=fast;
        name.never = Probability::NEVER;
        name.lost = Probability::NEVER;
    }
    let lookups = random.within(2..=4);
    let one_domain = random.roll(OFTEN);
    // Few more domains than slots: the slots are often all taken, and the others are soon at the front.
    let count = match one_domain {
        true => random.within(lookups..=8),
        false => lookups + random.within(0..=1),
    };
    let fast_names: Vec<_> = web.names.iter().map(|name| name.name.clone()).collect();
    // One slow domain leaves a slot to the others. Slow names that have taken all slots give one after a second at most,
    // and all other domains may come before.
    let most = match one_domain {
        true => fast * (fast_names.len() as u32 + 1),
        false => {
            let zones = fast_names.len() + count;
            Duration::from_secs(1) * zones.div_ceil(lookups) as u32 + fast
        }
    };
    web.slow_names = Some(SlowNames {
        lookups,
        most,
        fast: fast_names,
    });
    let latency = random
        .pick(&[span(300, 5000), span(10_000, 20_000)])
        .clone();
    for n in 0..count as u8 {
        let name = match one_domain {
            true => format!("host{n}.slow.sim"),
            false => format!("slow{n}.sim"),
        };
        let ip: IpAddr = [10, 2, 0, n].into();
        let address = Address::Tcp((ip, 80).into());
        places.push(draw_place(random, mood, false, address.clone()));
        web.sites.push(Site {
            origin: format!("http://{name}:80"),
            addresses: vec![address],
        });
        web.names.push(Name {
            ips: vec![ip],
            latency: latency.clone(),
            ttl: span(0, 3000),
            never: match mood {
                Mood::Fair => Probability::NEVER,
                Mood::Foul => *random.pick(&[Probability::NEVER, Probability::ALWAYS]),
            },
            name,
            ..Name::plain()
        });
    }
}

fn draw_ip(random: &mut Random, n: u8, m: u8) -> IpAddr {
    match random.within(0..=2) {
        0 => [0xfd00, 0, 0, 0, 0, 0, u16::from(n), u16::from(m)].into(),
        _ => [10, 0, n, m].into(),
    }
}

fn draw_config(random: &mut Random, mood: Mood) -> HostConfig {
    let foul = mood == Mood::Foul;
    HostConfig {
        max_connections: nonzero(random.within(1..=6)),
        max_waiting: if foul && random.roll(RARELY) {
            random.within(0..=5)
        } else {
            10_000
        },
        wait: if foul && random.roll(RARELY) {
            WaitPolicy::FailFast
        } else {
            WaitPolicy::Wait
        },
        reuse: *random.pick(&[ReuseOrder::Lifo, ReuseOrder::Fifo]),
        idle_timeout: random.duration(&span(1, 3000)),
        max_age: maybe(random, 1, 2000),
        max_requests: random
            .roll(OFTEN)
            .then(|| NonZeroU64::new(random.within(1..=8) as u64))
            .flatten(),
        min_idle: if random.roll(RARELY) {
            random.within(1..=3)
        } else {
            0
        },
        timeouts: if foul {
            draw_timeouts(random)
        } else {
            patient()
        },
        late: match random.within(0..=1) {
            0 => LatePolicy::Close,
            _ => LatePolicy::Drain {
                up_to: random.duration(&span(1, 2000)),
            },
        },
        retry: draw_retry(random),
        retry_budget: draw_budget(random),
        breaker: random.roll(OFTEN).then(|| draw_breaker(random, mood)),
        adaptive: (random.within(0..=2) == 0).then(|| draw_adaptive(random, mood)),
        limits: draw_limits(random, mood),
        rate: draw_rate(random),
        min_delay: random.roll(RARELY).then(|| random.duration(&span(0, 300))),
        ..HostConfig::default()
    }
}

fn draw_retry(random: &mut Random) -> Retry {
    let count = *random.pick(&[0, 0, 1, 3]);
    Retry {
        max_attempts: some(random, 1, 5),
        safe_cases: !random.roll(RARELY),
        rules: (0..count).map(|_| draw_rule(random)).collect(),
        max_elapsed: random.roll(RARELY).then(|| random.duration(&span(1, 3000))),
        max_retry_after: random.duration(&span(0, 3000)),
        hook: random.roll(RARELY).then(|| {
            let longest = *random.pick(&[0, 300]);
            let pause = random.duration(&span(0, longest));
            let hook: RetryHook =
                Arc::new(move |failed| failed.request.is_idempotent().then_some(pause));
            hook
        }),
    }
}

fn draw_rule(random: &mut Random) -> RetryRule {
    use FailureClass::{
        ConnectTimeout, Dns, FirstByteTimeout, ReadTimeout, Refused, Reset, Truncated,
    };
    let classes = [
        Refused,
        Reset,
        Dns,
        ConnectTimeout,
        FirstByteTimeout,
        ReadTimeout,
        Truncated,
    ];
    let busy = Statuses::none().and(429..=429).and(502..=504);
    let on = match random.within(0..=1) {
        0 => RetryOn::Failure(*random.pick(&classes)),
        _ => RetryOn::Status(busy),
    };
    RetryRule {
        attempts: some(random, 1, 5),
        backoff: Backoff {
            initial: random.duration(&span(0, 500)),
            factor: *random.pick(&[1.0, 2.0, 3.5]),
            max: random.duration(&span(0, 2000)),
        },
        any_method: random.roll(RARELY),
        via: *random.pick(&[RetryVia::Any, RetryVia::Fresh, RetryVia::OtherAddress]),
        ..RetryRule::new(on)
    }
}

fn draw_budget(random: &mut Random) -> Option<RetryBudget> {
    if random.within(0..=2) == 0 {
        return None;
    }
    Some(RetryBudget {
        ratio: *random.pick(&[0.0, 0.2, 0.5, 1.0]),
        floor: random.roll(OFTEN).then(|| {
            let every = Rate::every(random.duration(&span(100, 3000)));
            every.burst(NonZeroU64::MIN.saturating_add(random.within(0..=2) as u64))
        }),
        reserve: random.within(0..=3) as u32,
        most: random.within(0..=5) as u32,
    })
}

/// Nothing fails in a fair world, so this breaker must never open.
fn draw_breaker(random: &mut Random, mood: Mood) -> BreakerConfig {
    let open_for = random.duration(&span(1, 3000));
    BreakerConfig {
        window: random.duration(&span(100, 10_000)),
        min_volume: some(random, 1, 10),
        failure_ratio: *random.pick(&[0.1, 0.5, 0.9]),
        consecutive: random.roll(OFTEN).then(|| some(random, 1, 4)),
        open_for,
        max_open_for: open_for * random.within(1..=40) as u32,
        probes: some(random, 1, 3),
        successes: some(random, 1, 3),
        statuses: match mood {
            Mood::Fair => Statuses::none(),
            Mood::Foul if random.roll(OFTEN) => Statuses::none().and(502..=504),
            Mood::Foul => Statuses::none().and(429..=429).and(503..=503),
        },
    }
}

fn draw_rate(random: &mut Random) -> Option<Rate> {
    (random.within(0..=4) == 0).then(|| Rate {
        count: NonZeroU64::MIN.saturating_add(random.within(0..=20) as u64),
        per: random.duration(&span(100, 2000)),
        burst: NonZeroU64::MIN.saturating_add(random.within(0..=4) as u64),
    })
}

fn draw_adaptive(random: &mut Random, mood: Mood) -> AdaptiveTimeout {
    let min = match mood {
        Mood::Fair => patient().total.unwrap_or_default(),
        Mood::Foul => random.duration(&span(1, 1000)),
    };
    AdaptiveTimeout {
        factor: *random.pick(&[1.0, 3.0]),
        min,
        max: min + random.duration(&span(0, 5000)),
        min_samples: random.within(1..=10) as u32,
        half_life: random.duration(&span(1, 10_000)),
    }
}

/// For several addresses that share the calls.
fn draw_balance(random: &mut Random) -> BalanceConfig {
    BalanceConfig {
        spread: *random.pick(&[Spread::RoundRobin, Spread::LeastInFlight]),
        eject_after: random.roll(OFTEN).then(|| some(random, 1, 4)),
        slow_factor: random.roll(OFTEN).then_some(3.0),
        eject_for: random.duration(&span(1, 3000)),
        max_eject_for: random.duration(&span(3000, 20_000)),
        panic_below: *random.pick(&[0.0, 0.3, 0.6]),
        fail_over: !random.roll(RARELY),
        ..BalanceConfig::default()
    }
}

fn draw_limits(random: &mut Random, mood: Mood) -> Limits {
    let strict = mood == Mood::Foul && random.roll(RARELY);
    Limits {
        body_bytes: strict.then_some(100),
        head_bytes: if mood == Mood::Foul && random.roll(OFTEN) {
            3_000
        } else {
            Limits::default().head_bytes
        },
        ..Limits::default()
    }
}

/// Every call must end by itself, since a server may be silent for ever.
fn draw_timeouts(random: &mut Random) -> Timeouts {
    let total = random.duration(&span(1, 5000));
    Timeouts {
        total: Some(total),
        total_streamed: Some(total + random.duration(&span(0, 2000))),
        queue: maybe(random, 1, 2000),
        connect: maybe(random, 1, 1000),
        handshake: maybe(random, 1, 1000),
        write: maybe(random, 1, 1000),
        first_byte: maybe(random, 1, 1000),
        between_bytes: maybe(random, 1, 1000),
        ..Timeouts::none()
    }
}

/// Far more than a fair world needs.
fn patient() -> Timeouts {
    let long = Some(Duration::from_secs(1_000_000));
    Timeouts {
        total: long,
        total_streamed: long,
        queue: long,
        connect: long,
        handshake: long,
        write: long,
        first_byte: long,
        between_bytes: long,
        resolve: long,
    }
}

fn draw_addresses(random: &mut Random) -> Vec<Address> {
    if random.roll(RARELY) {
        return vec![Address::Unix(Path::new("/sim").into())];
    }
    let count = random.within(1..=3) as u8;
    (1..=count)
        .map(|n| Address::Tcp(([10, 0, 0, n], 80).into()))
        .collect()
}

fn draw_place(random: &mut Random, mood: Mood, bulk: bool, address: Address) -> Place {
    let foul = mood == Mood::Foul;
    let segment = *random.pick(if bulk {
        &[1460, 1460, 16_384, 100_000]
    } else {
        &[1, 7, 60, 1460]
    });
    let mut faults = Faults {
        short_read: sometimes(random, 400),
        short_write: sometimes(random, 400),
        would_block: sometimes(random, 300),
        spurious: sometimes(random, 300),
        ..Faults::default()
    };
    // A shortage of this machine is no fault of a server.
    faults.no_descriptor = sometimes(random, 50);
    faults.no_buffers = sometimes(random, 50);
    if foul {
        faults.no_port = sometimes(random, 100);
        faults.refused = sometimes(random, 500);
        faults.unreachable = sometimes(random, 200);
        faults.black_hole = sometimes(random, 300);
        // For each segment: small segments give many chances.
        faults.reset = sometimes(random, if segment < 60 { 5 } else { 60 });
        faults.stall = sometimes(random, if segment < 60 { 3 } else { 30 });
    }
    let latency = *random.pick(&[0, 1, 20, 300]);
    Place {
        address,
        link: Link {
            latency: random.duration(&span(0, latency))..=Duration::from_millis(latency),
            segment: if bulk { segment / 2 } else { 1 }..=segment,
            window: *random.pick(if bulk {
                &[3_000, 65_536, 1_000_000]
            } else {
                &[16, 300, 5_000]
            }),
            faults,
        },
        behaviour: draw_behaviour(random, foul, bulk),
    }
}

fn draw_behaviour(random: &mut Random, foul: bool, bulk: bool) -> Behaviour {
    let think = *random.pick(&[0, 5, 200, 1500]);
    let body = *random.pick(if bulk {
        &[0, 3_000, 40_000, 200_000]
    } else {
        &[0, 50, 300, 700]
    });
    let mut behaviour = Behaviour {
        think: Duration::ZERO..=Duration::from_millis(think),
        body: 0..=body,
        close: sometimes(random, 300),
        http10: sometimes(random, 300),
        interim: sometimes(random, 300),
        mute_expect: sometimes(random, 500),
        deaf: sometimes(random, 200),
        drip: sometimes(random, 300),
        busy: sometimes(random, 700),
        patience: random.roll(OFTEN).then_some(0..=4),
        ..Behaviour::default()
    };
    if foul {
        behaviour.idle = maybe(random, 1, 3000);
        behaviour.tells_idle = sometimes(random, 500);
        behaviour.silent_close = sometimes(random, 300);
        behaviour.reads_on = sometimes(random, 1000);
        behaviour.early = sometimes(random, 300);
        behaviour.cut = sometimes(random, 150);
        behaviour.reset = sometimes(random, 150);
        behaviour.stall = sometimes(random, 150);
        behaviour.surplus = sometimes(random, 150);
        behaviour.garbage = sometimes(random, 100);
        behaviour.unasked = seldom(random, 300);
        behaviour.extra = seldom(random, 300);
        behaviour.slam = seldom(random, 500);
        behaviour.half_close = seldom(random, 300);
        behaviour.bloat = seldom(random, 200);
        behaviour.babble = seldom(random, 200);
        behaviour.flood = seldom(random, 200);
        behaviour.torrent = Probability::per_mille(500);
        behaviour.lies = seldom(random, 200);
    }
    behaviour
}

fn draw_acts(random: &mut Random, mood: Mood, bulk: bool) -> Vec<(Duration, Act)> {
    let count = random.within(1..=25);
    let pace = *random.pick(&[0, 0, 1, 1, 50, 50, 1000, 1000, HOURS]);
    let mut at = Duration::ZERO;
    let mut acts: Vec<_> = (0..count)
        .map(|n| {
            at += random.duration(&span(0, pace));
            let mut spec = draw_spec(random, mood, bulk, n as u64 + 1);
            let act = if random.roll(RARELY) {
                spec.own = None;
                Act::Block(spec)
            } else {
                Act::Submit(spec)
            };
            (at, act)
        })
        .collect();
    let end = (at * 2).max(Duration::from_millis(1000));
    for _ in 0..random.within(0..=6) {
        let when = random.duration(&(Duration::ZERO..=end));
        let act = match random.within(0..=3) {
            0 => Act::Busy(random.duration(&span(1, 500))),
            1 => Act::CloseIdle,
            _ => Act::Cancel(random.within(0..=count - 1)),
        };
        acts.push((when, act));
    }
    acts.sort_by_key(|(at, _)| *at);
    acts
}

fn draw_spec(random: &mut Random, mood: Mood, bulk: bool, id: u64) -> Spec {
    let uploads = random.within(0..=2) == 0;
    let method = match uploads {
        true => *random.pick(&["POST", "PATCH", "PUT"]),
        false if random.roll(RARELY) => *random.pick(&NOT_IDEMPOTENT),
        false => *random.pick(&IDEMPOTENT),
    };
    let length = *random.pick(if bulk {
        &[0, 10, 5_000, 150_000]
    } else {
        &[0, 10, 400]
    });
    let length = random.within(0..=length);
    let body = match random.within(0..=1) {
        _ if !uploads => Upload::None,
        0 => Upload::Bytes(length),
        _ => {
            let declared = random.roll(OFTEN);
            let piece = random.within(1..=length.max(1)).max(length / 50);
            let pause = maybe(random, 1, 100);
            Upload::Stream {
                length,
                declared,
                piece,
                pause,
                // A second reading would need further pauses.
                opened: pause.is_none() && length.is_multiple_of(2),
            }
        }
    };
    let foul = mood == Mood::Foul;
    Spec {
        id,
        site: 0,
        method,
        expect: (uploads && random.roll(RARELY)).then(|| random.duration(&span(1, 1000))),
        body,
        says_close: random.roll(RARELY),
        timeout: if foul { maybe(random, 1, 3000) } else { None },
        consumer: (random.within(0..=3) == 0).then(|| Consumer {
            piece: *random.pick(&[1_000, 4_000, 65_536]),
            pause: random.duration(&span(0, 100)),
            gives_up_after: if random.roll(RARELY) {
                random.within(0..=2_000)
            } else {
                usize::MAX
            },
        }),
        own: random.roll(RARELY).then(|| {
            Box::new(Own {
                timeouts: (foul && random.roll(OFTEN)).then(|| draw_timeouts(random)),
                limits: random.roll(OFTEN).then(|| draw_limits(random, mood)),
                retry: random.roll(OFTEN).then(|| draw_retry(random)),
            })
        }),
    }
}

fn span(from_ms: u64, to_ms: u64) -> RangeInclusive<Duration> {
    Duration::from_millis(from_ms)..=Duration::from_millis(to_ms)
}

fn maybe(random: &mut Random, from_ms: u64, to_ms: u64) -> Option<Duration> {
    random
        .roll(OFTEN)
        .then(|| random.duration(&span(from_ms, to_ms)))
}

/// Usually never; otherwise up to so many times in a thousand.
fn sometimes(random: &mut Random, up_to: u16) -> Probability {
    if random.roll(OFTEN) {
        return Probability::NEVER;
    }
    Probability::per_mille(random.within(0..=usize::from(up_to)) as u16)
}

/// Nearly always never.
fn seldom(random: &mut Random, up_to: u16) -> Probability {
    match random.within(0..=3) {
        0 => sometimes(random, up_to),
        _ => Probability::NEVER,
    }
}

fn some(random: &mut Random, from: usize, to: usize) -> NonZeroU32 {
    NonZeroU32::new(random.within(from..=to) as u32).unwrap_or(NonZeroU32::MIN)
}

fn nonzero(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap_or(NonZeroUsize::MIN)
}

/// Between two calls, in milliseconds: a few such runs take a day of virtual time.
const HOURS: u64 = 3_600_000;

const OFTEN: Probability = Probability::per_mille(500);
const RARELY: Probability = Probability::per_mille(120);

/// The most attempts that a call may have: those of the rule with the most, or of failures without a rule.
pub(crate) fn most_attempts(retry: &Retry) -> u32 {
    let of_rules = retry.rules.iter().map(|rule| rule.attempts);
    of_rules.fold(retry.max_attempts, NonZeroU32::max).get()
}
