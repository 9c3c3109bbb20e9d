//! One point of a curve, in a process of its own: one of courser's clients with a number of connections and calls, for a
//! time or for a number of requests, and the memory that it held meanwhile.
//!
//! The loop of [`load`](crate::load) keeps a client on this thread busy. Clients on several threads, of their own or of a
//! `Shared`, are measured from the time when all are warm until the time is over; the threads that call them are left out.

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
    /// Who is measured
    #[arg(long, value_enum)]
    subject: Subject,

    /// Threads with a client each
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,

    #[command(flatten)]
    plan: Plan,
}

/// Who is measured.
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
    /// `Shared<Client>`, with as many threads that submit calls and take completions as it has
    SharedSubmit,
}

impl Subject {
    /// As an option's value.
    #[must_use]
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// Of a client on this thread.
    Alone(Alone),
    /// Of clients on several threads.
    Crew(Crew),
}

/// What a client on this thread did, or the raw-socket limit, whose memory is not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// Times and allocations.
    pub record: Box<Record>,
    /// Bytes of the client and the calls in flight, at most.
    pub busy: Option<i64>,
    /// Bytes of the client when all calls were over.
    pub idle: Option<i64>,
}

/// What several threads did. Times are processor time, in microseconds for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crew {
    /// Answers per second.
    pub requests_per_second: f64,
    /// Answers.
    pub requests: u64,
    /// Of the threads with clients.
    pub clients_us: f64,
    /// Of the others.
    pub callers_us: f64,
}

impl Sample {
    fn to_json(&self) -> Value {
        match self {
            Self::Alone(Alone { record, busy, idle }) => {
                json!({ "record": report::json(record), "busy": busy, "idle": idle })
            }
            Self::Crew(crew) => json!({
                "requests_per_second": crew.requests_per_second,
                "requests": crew.requests,
                "clients_us": crew.clients_us,
                "callers_us": crew.callers_us,
            }),
        }
    }

    /// From what the tool has printed; `None` if it is not that.
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
        Some(Self::Crew(Crew {
            requests_per_second: value["requests_per_second"].as_f64()?,
            requests: value["requests"].as_u64()?,
            clients_us: value["clients_us"].as_f64()?,
            callers_us: value["callers_us"].as_f64()?,
        }))
    }
}

/// The tool.
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

    /// For a client that spreads its hosts over its threads: several names of the one server.
    fn urls(&self) -> Vec<String> {
        let (port, path) = (self.plan.url.address.port(), &self.plan.url.path);
        (0..HOSTS)
            .map(|host| format!("http://h{host}.test:{port}{path}"))
            .collect()
    }

    fn many_hosts(&self) -> Config {
        let mut config = own::config(&self.plan, &Asking::default());
        let address = self.plan.url.address.ip();
        config.dns.resolve("*", None, [address]);
        config
    }

    /// The calls of each thread.
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

/// Opens all connections, in groups that the server's queue of new connections can hold. A connection that the queue drops
/// would be tried again after a second, while others are measured already. No call is answered before the last connection
/// is open.
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

/// Bytes that the thread holds beyond what it held before the first call.
#[derive(Debug, Default)]
struct Heap {
    before: OnceCell<i64>,
    most: Cell<i64>,
    /// When the run was over, and the client still there.
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

    /// The last thing that a run asks for.
    fn opened(&self) -> u64 {
        self.heap.last.set(self.heap.held());
        self.client.opened()
    }
}

// ---- clients on several threads

impl Args {
    /// Clients of one thread each, which keep their own calls going.
    fn each<C: Driven>(
        &self,
        build: impl Fn() -> Result<(C, Vec<String>), courser::Error> + Sync,
    ) -> Result<Sample, Box<dyn Error>> {
        self.crew("client", self.threads.get(), || {
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

    /// A thread for each connection that calls and waits.
    fn blocking<C: Drive>(
        &self,
        shared: &Shared<C>,
        urls: &[String],
    ) -> Result<Sample, Box<dyn Error>> {
        let next = AtomicUsize::new(0);
        self.crew("caller", self.plan.connections as usize, || {
            let url = &urls[next.fetch_add(1, Ordering::Relaxed) % urls.len()];
            let mut response = Response::new();
            Ok(move || {
                shared.get(url, &mut response)?;
                Ok(())
            })
        })
    }

    /// As many threads as the client has that keep calls going through channels.
    fn submitting<C: Drive>(
        &self,
        shared: &Shared<C>,
        urls: &[String],
    ) -> Result<Sample, Box<dyn Error>> {
        self.crew("caller", self.threads.get(), || {
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

    /// Lets threads of that name work for the time of the plan. `begin` makes what a thread does for each answer.
    fn crew<W: FnMut() -> Result<(), Box<dyn Error>>>(
        &self,
        name: &str,
        workers: usize,
        begin: impl Fn() -> Result<W, Box<dyn Error>> + Sync,
    ) -> Result<Sample, Box<dyn Error>> {
        // All workers and this thread, when all are warm and when they have counted.
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
            // What the thread has used is read while it lives.
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
                    // The other threads would wait for this one without end.
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
        Ok(Sample::Crew(Crew {
            requests_per_second: requests as f64 / seconds,
            requests,
            clients_us: each(used.clients),
            callers_us: each(used.callers),
        }))
    }
}

/// Processor time of this process's threads, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Used {
    /// Of the threads that have a client.
    clients: u64,
    callers: u64,
}

impl Used {
    /// By the scheduler's statistics of each thread: those of proc(5) are too coarse.
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

/// Names of the one server, so that a client that spreads its hosts over its threads has some for each.
const HOSTS: u32 = 16;
/// Answers that a thread takes before it counts.
const WARM_UP: u32 = 100;
/// How long one look at a client may take.
const PATIENCE: Duration = Duration::from_millis(100);
const OPENED_AT_A_TIME: u32 = 512;
/// Longer than it takes to open connections under callgrind.
const LONG: Duration = Duration::from_secs(600);
