//! Measures one point of a curve in its own process: a client of courser with a number of connections and calls, for a
//! time or a number of requests, and the memory that it holds.
//!
//! Clients on this thread are driven by the closed loop of [`load`](crate::load). Clients on several threads (one for
//! each thread, or a `Shared`) are measured from the end of all warm-ups to the end of the time, separately from the
//! threads that call them.

use std::cell::{Cell, OnceCell};
use std::error::Error;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use courser::{
    Call, CallId, Client, Completion, Config, Drive, HostClient, PipelineClient, PipelineConfig,
    Request, Response, Shared, SharedConfig, Upstream,
};
use serde_json::{Value, json};

use crate::alloc::held_by_this_thread;
use crate::load::asking::Asking;
use crate::load::drive::{self, Driven};
use crate::measure::{Plan, Record};
use crate::{own, report};

/// Measures one point of what `scale` prints.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// The client to measure
    #[arg(long, value_enum)]
    subject: Subject,

    /// Number of threads with a client each
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,

    #[command(flatten)]
    plan: Plan,
}

/// The measured client.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Subject {
    /// `HostClient`
    Host,
    /// `Client`
    Client,
    /// `PipelineClient`
    Pipeline,
    /// `HostClient`s, one on each thread
    Hosts,
    /// `Client`s, one on each thread
    Clients,
    /// `Shared<HostClient>`, with a thread that makes blocking calls for each connection
    SharedHost,
    /// `Shared<Client>`, in the same way
    SharedClient,
    /// `Shared<Client>`, with as many threads that submit calls and take completions as it has workers
    SharedSubmit,
}

impl Subject {
    /// The name as the value of an option.
    #[must_use]
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The result of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// The result of a client on this thread.
    Alone(Alone),
    /// The result of clients on several threads.
    Threads(Threads),
}

/// The result of a client on this thread, or of the raw-socket limit, whose memory is not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// Times and allocations.
    pub record: Box<Record>,
    /// Highest number of bytes of the client and the calls in flight.
    pub busy: Option<i64>,
    /// Bytes of the client after the end of all calls.
    pub idle: Option<i64>,
}

/// The result of several threads. Times are processor time, in microseconds for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threads {
    /// Responses per second.
    pub requests_per_second: f64,
    /// Number of responses.
    pub requests: u64,
    /// Time of the threads with clients.
    pub clients_us: f64,
    /// Time of the other threads.
    pub callers_us: f64,
}

impl Sample {
    fn to_json(&self) -> Value {
        match self {
            Self::Alone(Alone { record, busy, idle }) => {
                json!({ "record": report::json(record), "busy": busy, "idle": idle })
            }
            Self::Threads(threads) => json!({
                "requests_per_second": threads.requests_per_second,
                "requests": threads.requests,
                "clients_us": threads.clients_us,
                "callers_us": threads.callers_us,
            }),
        }
    }

    /// Reads a result from the output of the tool. `None` if the text is not a result.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        if let Some(record) = Record::from_json(&value["record"].to_string()) {
            return Some(Self::Alone(Alone {
                record: Box::new(record),
                busy: value["busy"].as_i64(),
                idle: value["idle"].as_i64(),
            }));
        }
        Some(Self::Threads(Threads {
            requests_per_second: value["requests_per_second"].as_f64()?,
            requests: value["requests"].as_u64()?,
            clients_us: value["clients_us"].as_f64()?,
            callers_us: value["callers_us"].as_f64()?,
        }))
    }
}

/// Runs the tool.
///
/// # Errors
/// Nothing could be measured, or a request failed.
pub fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    println!("{}", args.measure()?.to_json());
    Ok(())
}

impl Args {
    fn measure(&self) -> Result<Sample, Box<dyn Error>> {
        let plan = &self.plan;
        let asking = Asking {
            timeout: Some(LONG),
            ..Asking::default()
        };
        let upstream = || Upstream::tcp([plan.url.address]).with_host(&plan.url.authority);
        match self.subject {
            Subject::Host => alone(plan, true, || {
                HostClient::new(upstream(), own::host_config(plan, &asking))
            }),
            Subject::Client => alone(plan, false, || Client::new(own::config(plan, &asking))),
            Subject::Pipeline => alone(plan, true, || {
                let config = PipelineConfig {
                    host: own::host_config(plan, &asking),
                    max_pending: at_least_one(plan.depth),
                    max_pending_total: at_least_one(plan.at_once()),
                    ..PipelineConfig::default()
                };
                PipelineClient::new(upstream(), config)
            }),
            Subject::Hosts => self.each(|| {
                let config = own::host_config(plan, &asking);
                let client = HostClient::new(upstream(), config)?;
                Ok((client, vec![plan.url.path.clone()]))
            }),
            Subject::Clients => self.each(|| Ok((Client::new(self.many_hosts())?, self.urls()))),
            Subject::SharedHost => {
                let (upstream, config) = (upstream(), own::host_config(plan, &asking));
                let build = move |_| HostClient::new(upstream.clone(), config.clone());
                self.blocking(&self.shared(build)?, std::slice::from_ref(&plan.url.path))
            }
            Subject::SharedClient => {
                let config = self.many_hosts();
                let shared = self.shared(move |_| Client::new(config.clone()))?;
                self.blocking(&shared, &self.urls())
            }
            Subject::SharedSubmit => {
                let config = self.many_hosts();
                let shared = self.shared(move |_| Client::new(config.clone()))?;
                self.submitting(&shared, &self.urls())
            }
        }
    }

    fn shared<C: Drive>(
        &self,
        build: impl Fn(usize) -> Result<C, courser::Error> + Send + Sync + 'static,
    ) -> Result<Shared<C>, courser::Error> {
        let config = SharedConfig {
            threads: self.threads,
            ..SharedConfig::default()
        };
        Shared::spawn(config, build)
    }

    /// URLs with several names of the same server, for a client that spreads its hosts over its threads.
    fn urls(&self) -> Vec<String> {
        let (port, path) = (self.plan.url.address.port(), &self.plan.url.path);
        (0..HOSTS)
            .map(|host| format!("http://h{host}.test:{port}{path}"))
            .collect()
    }

    fn many_hosts(&self) -> Config {
        let mut config = own::config(&self.plan, &Asking::default());
        // The threads of a `Shared` divide the limit, and the hosts are not spread evenly.
        config.max_connections = config.max_connections.saturating_mul(self.threads);
        let address = self.plan.url.address.ip();
        config.host.dns.resolve("*", None, [address]);
        config
    }

    /// The number of calls of each thread.
    fn share(&self) -> u32 {
        self.plan.connections / self.threads.get() as u32
    }
}

fn at_least_one(number: u32) -> NonZeroUsize {
    NonZeroUsize::new(number as usize).unwrap_or(NonZeroUsize::MIN)
}

// ---- a client on this thread

fn alone<C: Driven>(
    plan: &Plan,
    one_host: bool,
    client: impl FnOnce() -> Result<C, courser::Error>,
) -> Result<Sample, Box<dyn Error>> {
    let script = Asking::default().script(plan, one_host)?;
    let before = held_by_this_thread();
    let mut client = client()?;
    if plan.depth == 1 {
        open(&mut client, plan, one_host)?;
    }
    let new = held_by_this_thread() - before;
    let heap = Heap::default();
    let watched = Watched {
        client,
        heap: &heap,
    };
    let record = drive::closed(plan, Duration::ZERO, script, watched, "scale")?;
    if record.errors > 0 {
        let why = record.details.errors_by_kind;
        return Err(format!("{} errors: {why:?}", record.errors).into());
    }
    Ok(Sample::Alone(Alone {
        record: Box::new(record),
        busy: Some(new + heap.most.get()),
        idle: Some(new + heap.last.get()),
    }))
}

/// Opens all connections, in groups that fit into the accept queue of the server: the system would retry dropped
/// connections after a second, during the measurement. The server responds to no call before the last one has arrived.
fn open(client: &mut impl Driven, plan: &Plan, one_host: bool) -> Result<(), Box<dyn Error>> {
    let path = format!("/gather/{}", plan.connections);
    let target = match one_host {
        true => path,
        false => plan.url.with_path(&path),
    };
    let mut answered = 0;
    let mut take = |client: &mut dyn Driven| {
        if let Some(done) = client.wait(PATIENCE)? {
            done.outcome?;
            answered += 1;
        }
        Ok::<_, Box<dyn Error>>(answered)
    };
    for number in 1..=plan.connections {
        client.submit(Call::new(Request::get(&target), Response::new()));
        if number % OPENED_AT_A_TIME == 0 {
            take(client)?;
            while client.connecting() > 0 {
                take(client)?;
            }
        }
    }
    while take(client)? < plan.connections {}
    Ok(())
}

/// A client whose memory is measured.
struct Watched<'a, C> {
    client: C,
    heap: &'a Heap,
}

/// The bytes that the thread holds beyond those before the first call.
#[derive(Debug, Default)]
struct Heap {
    before: OnceCell<i64>,
    most: Cell<i64>,
    /// The bytes at the end of the run, with the client.
    last: Cell<i64>,
}

impl Heap {
    fn held(&self) -> i64 {
        held_by_this_thread() - self.before.get().copied().unwrap_or_default()
    }
}

impl<C: Driven> Driven for Watched<'_, C> {
    #[inline]
    fn submit(&mut self, call: Call) -> CallId {
        self.heap.before.get_or_init(held_by_this_thread);
        self.client.submit(call)
    }

    fn cancel(&mut self, call: CallId) -> bool {
        self.client.cancel(call)
    }

    #[inline]
    fn wait(&mut self, patience: Duration) -> io::Result<Option<Completion>> {
        self.heap
            .most
            .set(self.heap.held().max(self.heap.most.get()));
        self.client.wait(patience)
    }

    #[inline]
    fn next_done(&mut self) -> Option<Completion> {
        self.client.next_done()
    }

    fn maintain(&mut self, time: Duration) -> io::Result<()> {
        self.client.maintain(time)
    }

    fn in_flight(&self) -> usize {
        self.client.in_flight()
    }

    fn connecting(&self) -> usize {
        self.client.connecting()
    }

    /// A run calls this last, so the memory at the end is measured here.
    fn opened(&self) -> u64 {
        self.heap.last.set(self.heap.held());
        self.client.opened()
    }
}

// ---- clients on several threads

impl Args {
    /// Measures clients on one thread each, which drive their own calls.
    fn each<C: Driven>(
        &self,
        build: impl Fn() -> Result<(C, Vec<String>), courser::Error> + Sync,
    ) -> Result<Sample, Box<dyn Error>> {
        self.run_threads("client", self.threads.get(), || {
            let (mut client, urls) = build()?;
            for number in 0..self.share() as usize {
                let request = Request::get(&urls[number % urls.len()]);
                client.submit(Call::new(request, Response::new()));
            }
            Ok(move || {
                let done = loop {
                    if let Some(done) = client.wait(PATIENCE)? {
                        break done;
                    }
                };
                done.outcome?;
                client.submit(Call::new(done.request, done.response));
                Ok(())
            })
        })
    }

    /// Measures with one thread for each connection, which makes blocking calls.
    fn blocking<C: Drive>(
        &self,
        shared: &Shared<C>,
        urls: &[String],
    ) -> Result<Sample, Box<dyn Error>> {
        let next = AtomicUsize::new(0);
        self.run_threads("caller", self.plan.connections as usize, || {
            let url = &urls[next.fetch_add(1, Ordering::Relaxed) % urls.len()];
            let mut response = Response::new();
            Ok(move || {
                shared.get(url, &mut response)?;
                Ok(())
            })
        })
    }

    /// Measures with as many threads as the client has workers. They submit calls and take completions through
    /// channels.
    fn submitting<C: Drive>(
        &self,
        shared: &Shared<C>,
        urls: &[String],
    ) -> Result<Sample, Box<dyn Error>> {
        self.run_threads("caller", self.threads.get(), || {
            let (sender, arrived) = courser::completions();
            for number in 0..self.share() as usize {
                let request = Request::get(&urls[number % urls.len()]);
                shared.submit(Call::new(request, Response::new()), &sender)?;
            }
            Ok(move || {
                let done = arrived.wait(None).ok_or("the client is gone")?;
                done.outcome?;
                shared.submit(Call::new(done.request, done.response), &sender)?;
                Ok(())
            })
        })
    }

    /// Runs threads with this name for the time of the plan. `begin` creates the function that a thread calls for each
    /// response.
    fn run_threads<W: FnMut() -> Result<(), Box<dyn Error>>>(
        &self,
        name: &str,
        workers: usize,
        begin: impl Fn() -> Result<W, Box<dyn Error>> + Sync,
    ) -> Result<Sample, Box<dyn Error>> {
        // Barriers for all workers and this thread: after the warm-up, and after the counting.
        let (warm, counted) = (Barrier::new(workers + 1), Barrier::new(workers + 1));
        let (over, measured) = (AtomicBool::new(false), Barrier::new(workers + 1));
        let requests = AtomicU64::new(0);
        let failed = Mutex::new(None);
        let work = || {
            let warmed_up = begin().and_then(|mut work| {
                (0..WARM_UP).try_for_each(|_| work())?;
                Ok(work)
            });
            warm.wait();
            let worked = warmed_up.and_then(|mut work| {
                let mut count = 0;
                while !over.load(Ordering::Relaxed) {
                    work()?;
                    count += 1;
                }
                requests.fetch_add(count, Ordering::Relaxed);
                Ok(work)
            });
            counted.wait();
            // The processor time of a thread can be read only while the thread runs.
            measured.wait();
            if let Err(error) = worked {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error.to_string());
            }
        };
        let (used, seconds) = thread::scope(|scope| {
            for number in 0..workers {
                let thread = thread::Builder::new().name(format!("{name}-{number}"));
                if let Err(error) = thread.spawn_scoped(scope, work) {
                    // The other threads would wait for this one forever.
                    eprintln!("scale: no thread: {error}");
                    std::process::exit(1);
                }
            }
            warm.wait();
            let (before, began) = (Used::now(), Instant::now());
            thread::sleep(self.plan.duration);
            over.store(true, Ordering::Relaxed);
            counted.wait();
            let (after, seconds) = (Used::now(), began.elapsed().as_secs_f64());
            measured.wait();
            (after.and_then(|after| Ok(after - before?)), seconds)
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        let (used, requests) = (used?, requests.into_inner());
        let each = |nanos: u64| nanos as f64 / 1e3 / requests.max(1) as f64;
        Ok(Sample::Threads(Threads {
            requests_per_second: requests as f64 / seconds,
            requests,
            clients_us: each(used.clients),
            callers_us: each(used.callers),
        }))
    }
}

/// Processor time of the threads of this process, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Used {
    /// Time of the threads with a client.
    clients: u64,
    callers: u64,
}

impl Used {
    /// The times from the scheduler statistics of each thread; the clock ticks of proc(5) are too coarse.
    fn now() -> Result<Self, Box<dyn Error>> {
        let mut used = Self {
            clients: 0,
            callers: 0,
        };
        for task in fs::read_dir("/proc/self/task")? {
            let task = task?.path();
            let name = fs::read_to_string(task.join("comm"))?;
            let statistics = fs::read_to_string(task.join("schedstat"))?;
            let ran = statistics
                .split(' ')
                .next()
                .unwrap_or_default()
                .parse::<u64>()?;
            if name.starts_with("client-") || name.starts_with("courser-") {
                used.clients += ran;
            } else {
                used.callers += ran;
            }
        }
        Ok(used)
    }
}

impl std::ops::Sub for Used {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            clients: self.clients.saturating_sub(before.clients),
            callers: self.callers.saturating_sub(before.callers),
        }
    }
}

/// Number of names of the server, enough for a client that spreads its hosts over its threads.
const HOSTS: u32 = 16;
/// Responses of a thread before it counts.
const WARM_UP: u32 = 100;
/// Longest wait for a completion before the end of the time is checked.
const PATIENCE: Duration = Duration::from_millis(100);
const OPENED_AT_A_TIME: u32 = 512;
/// Longer than it takes to open connections under callgrind.
const LONG: Duration = Duration::from_secs(600);
