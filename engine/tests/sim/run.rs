//! Runs a plan on a `HostClient<SimNet>` or a `Client<SimNet>`, and checks the invariants at each step.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use courser::error::{LimitExceeded, RedirectFault, TimeLimit};
use courser::net::sim::{Entry, HttpServer, ReceivedRequest, SimNet, TlsServer, Trace};
use courser::net::{Address, Net as _};
use courser::policy::{LatePolicy, Overflow, Pipelined, WaitPolicy};
use courser::{
    BodyRead, Call, CallId, Client, Completion, Config, Error, ErrorKind, HostClient, HostConfig,
    HttpClient, PipelineClient, PipelineConfig, Proxies, Proxy, Redirects, Report, Request,
    Response, Sent, Timeouts, Upstream, Waited,
};

use crate::plan::{
    Act, Consumer, Mood, NOT_IDEMPOTENT, Name, Plan, Spec, TLS_NAME, Upload, Web, most_attempts,
};
use crate::watch;

/// What must be equal in two runs of one seed.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) trace: Vec<Entry>,
    /// How each call ended, as text.
    pub(crate) ends: Vec<String>,
    /// Calls of the network, for choosing one that is to fail.
    pub(crate) net_calls: u64,
}

/// Runs a plan to its end. Panics if an invariant does not hold.
pub(crate) fn run(plan: &Plan, seed: u64, prepare: impl FnOnce(&SimNet)) -> Outcome {
    let net = SimNet::new(seed);
    net.set_descriptors(plan.descriptors);
    net.set_early_wakeups(plan.early_wakeups);
    prepare(&net);
    let servers = plan.places.iter().map(|place| {
        let server = HttpServer::new(place.behaviour.clone());
        let (address, link) = (place.address.clone(), place.link.clone());
        match &plan.tls {
            Some(tls) => net.listen(
                address,
                link,
                TlsServer::new(server.clone(), Arc::clone(tls)),
            ),
            None => net.listen(address, link, server.clone()),
        }
        server
    });
    let servers: Vec<_> = servers.collect();
    watch::begin(plan, &net);
    let client = client(plan, &net);
    let began = net.now();
    let mut run = Run {
        plan,
        caller_back_at: began,
        net,
        client,
        servers,
        calls: Vec::new(),
        by_id: BTreeMap::new(),
        agenda: BTreeMap::new(),
    };
    for (number, (at, _)) in plan.acts.iter().enumerate() {
        run.plan_for(began + *at, Todo::Act(number));
    }
    run.drive();
    run.finish()
}

fn client(plan: &Plan, net: &SimNet) -> AnyClient {
    let host = HostConfig {
        observer: plan.watched.then(watch::observer),
        ..plan.config.clone()
    };
    if let Some(config) = &plan.pipeline {
        let config = PipelineConfig {
            host,
            ..config.clone()
        };
        let client = PipelineClient::with_net(upstream(plan), config, net.clone());
        return AnyClient::Piped(client.expect("there is an address"));
    }
    let Some(web) = &plan.web else {
        let client = HostClient::with_net(upstream(plan), host, net.clone());
        return AnyClient::One(client.expect("there is an address"));
    };
    let names = web.names.clone();
    let resolver = net.resolver(move |random, asked| Name::ask(&names, random, asked));
    if let Some(slow) = &web.slow_names {
        net.set_lookups(slow.lookups);
    }
    let proxies = web.proxy.as_ref().map(|(url, tunnels)| {
        let proxy: Proxy = url.parse().expect("drawn so");
        Proxies::all(if *tunnels {
            proxy.with_tunnels()
        } else {
            proxy
        })
    });
    let config = Config {
        host: HostConfig {
            dns: web.dns.clone(),
            ..host
        },
        max_connections: NonZeroUsize::new(web.max_connections).expect("drawn so"),
        rate: web.rate,
        redirects: web.redirects.map_or(Redirects::none(), Redirects::limit),
        proxies: proxies.unwrap_or_default(),
        ..Config::default()
    };
    AnyClient::Many(Client::with_net(config, net.clone(), resolver).expect("it is in order"))
}

fn upstream(plan: &Plan) -> Upstream {
    let upstream = match &plan.places[0].address {
        Address::Unix(path) => Upstream::unix(path),
        Address::Tcp(_) => {
            Upstream::tcp(plan.places.iter().filter_map(|place| match place.address {
                Address::Tcp(address) => Some(address),
                Address::Unix(_) => None,
            }))
        }
    };
    match plan.tls {
        Some(_) => upstream.with_tls(TLS_NAME),
        None => upstream,
    }
}

/// One of the clients; the methods are the same.
#[expect(clippy::large_enum_variant, reason = "there is one of them in a run")]
enum AnyClient {
    One(HostClient<SimNet>),
    Many(Client<SimNet>),
    Piped(PipelineClient<SimNet>),
}

/// Calls a method on the client, whichever it is.
macro_rules! either {
    ($self:expr, $client:ident => $does:expr) => {
        match $self {
            AnyClient::One($client) => $does,
            AnyClient::Many($client) => $does,
            AnyClient::Piped($client) => $does,
        }
    };
}

/// What all clients have in common.
impl Deref for AnyClient {
    type Target = dyn HttpClient;

    fn deref(&self) -> &Self::Target {
        either!(self, client => client)
    }
}

impl DerefMut for AnyClient {
    fn deref_mut(&mut self) -> &mut Self::Target {
        either!(self, client => client)
    }
}

impl AnyClient {
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Waited> {
        driving(|| either!(self, client => client.wait(timeout)))
    }

    fn maintain(&mut self, time: Duration) -> io::Result<()> {
        driving(|| either!(self, client => client.maintain(time)))
    }

    fn call(&mut self, request: &mut Request, response: &mut Response) -> Result<Report, Error> {
        driving(|| either!(self, client => client.call(request, response)))
    }

    /// Reads a body by `open`. Returns `None` if the consumer gave up.
    fn pull(
        &mut self,
        net: &SimNet,
        request: &mut Request,
        response: &mut Response,
        consumer: Consumer,
    ) -> Result<Option<Vec<u8>>, Error> {
        driving(|| {
            either!(self, client => {
                let mut body = client.open(request, response)?;
                let mut all = Vec::new();
                let mut buf = vec![0; consumer.piece];
                while all.len() < consumer.gives_up_after {
                    net.note_caller();
                    match body.read_some(&mut buf)? {
                        0 => return body.finish().map(|_| Some(all)),
                        n => all.extend_from_slice(&buf[..n]),
                    }
                }
                Ok(None)
            })
        })
    }

    fn close_idle(&mut self) -> usize {
        either!(self, client => client.close_idle())
    }
}

fn driving<T>(drive: impl FnOnce() -> T) -> T {
    watch::drives(true);
    let result = drive();
    watch::drives(false);
    result
}

struct Run<'p> {
    plan: &'p Plan,
    /// Until then the caller was busy and could not be notified.
    caller_back_at: Instant,
    net: SimNet,
    client: AnyClient,
    servers: Vec<HttpServer>,
    calls: Vec<Running>,
    by_id: BTreeMap<CallId, usize>,
    /// The actions of the caller, ordered by time and then as planned.
    agenda: BTreeMap<(Instant, usize), Todo>,
}

#[derive(Clone, Copy, Debug)]
enum Todo {
    Act(usize),
    /// A body source has another piece.
    Feed(usize),
    /// A consumer reads.
    Consume(usize),
}

struct Running {
    spec: Spec,
    /// `None` for a blocking call.
    id: Option<CallId>,
    /// When the client accepted the call, and its deadline.
    times: Option<(Instant, Instant)>,
    /// How much of the body the source may give.
    fed: Arc<AtomicUsize>,
    state: State,
    cancelled: bool,
    end: String,
}

enum State {
    Open,
    /// The head has come, and so many bytes of the body.
    Body {
        head: Response,
        body: Vec<u8>,
        planned: bool,
    },
    Over,
}

impl Run<'_> {
    fn drive(&mut self) {
        for turn in 0.. {
            assert!(turn < MOST_TURNS, "the run does not end");
            while let Some(entry) = self.agenda.first_entry()
                && entry.key().0 <= self.net.now()
            {
                let todo = entry.remove();
                self.perform(todo);
                self.check_counts();
            }
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            if next.is_none() && self.client.in_flight() == 0 && !self.has_open_calls() {
                return;
            }
            self.wait(next);
            self.check_counts();
            self.check_nobody_waits_in_vain();
        }
    }

    /// Drives the client until the next action.
    fn wait(&mut self, next: Option<Instant>) {
        let now = self.net.now();
        self.note_take_up(now);
        let timeout = next.map(|at| at.duration_since(now));
        match self
            .client
            .wait(timeout)
            .expect("poll never fails here")
            .done()
        {
            Some(done) => return self.complete(done),
            None if self.tell_consumers() => return,
            None => {}
        }
        let now = self.net.now();
        if self.client.in_flight() == 0 {
            let lost = self
                .calls
                .iter()
                .find(|call| matches!(call.state, State::Open));
            assert!(
                lost.is_none(),
                "never completed: {:?}",
                lost.map(|call| &call.spec)
            );
            if let Some(next) = next {
                let time = next.saturating_duration_since(now);
                if self.plan.maintains {
                    self.client.maintain(time).expect("poll never fails here");
                } else {
                    self.net.advance(time);
                }
            }
        } else {
            assert!(
                next.is_some_and(|next| now >= next),
                "wait returned early with nothing"
            );
        }
    }

    /// Reads the bodies that have something new; false if there is none.
    fn tell_consumers(&mut self) -> bool {
        let mut any = false;
        while let Some(id) = self.client.readable_body() {
            any = true;
            let call = self.by_id[&id];
            if let State::Body {
                planned: planned @ false,
                ..
            } = &mut self.calls[call].state
            {
                *planned = true;
                self.plan_for(self.net.now(), Todo::Consume(call));
            }
        }
        any
    }

    /// The time of a call begins with the first `wait` after its submission.
    fn note_take_up(&mut self, now: Instant) {
        let plan = self.plan;
        for call in self
            .calls
            .iter_mut()
            .rev()
            .take_while(|call| call.times.is_none())
        {
            let total = plan.timeouts(&call.spec).total;
            let limit = call.spec.timeout.or(total).expect("every plan has limits");
            call.times = Some((now, now + limit));
        }
    }

    fn has_open_calls(&self) -> bool {
        self.calls
            .iter()
            .any(|call| !matches!(call.state, State::Over))
    }

    fn plan_for(&mut self, at: Instant, todo: Todo) {
        let mut order = self.plan.acts.len();
        if let Todo::Act(number) = todo {
            order = number;
        }
        while self.agenda.contains_key(&(at, order)) {
            order += 1;
        }
        self.agenda.insert((at, order), todo);
    }

    fn perform(&mut self, todo: Todo) {
        let plan = self.plan;
        match todo {
            Todo::Act(number) => match &plan.acts[number].1 {
                Act::Submit(spec) => self.submit(spec),
                // A blocked caller cannot feed its other calls: in a fair world they must not need it.
                Act::Block(spec) if plan.mood == Mood::Fair && self.client.in_flight() > 0 => {
                    self.submit(spec);
                }
                Act::Block(spec) => self.block(spec),
                Act::Cancel(nth) => self.cancel(*nth),
                Act::CloseIdle => {
                    let idle = self.client.counters().idle;
                    assert_eq!(self.client.close_idle(), idle);
                    assert_eq!(self.client.counters().idle, 0);
                }
                Act::Busy(time) => {
                    self.net.advance(*time);
                    self.caller_back_at = self.net.now();
                }
            },
            Todo::Feed(call) => {
                let call = &self.calls[call];
                if let (Upload::Stream { piece, .. }, Some(id)) = (&call.spec.body, call.id) {
                    call.fed.fetch_add(*piece, Ordering::Relaxed);
                    self.client.resume(id);
                }
            }
            Todo::Consume(call) => self.consume(call),
        }
    }

    fn submit(&mut self, spec: &Spec) {
        let nth = self.calls.len();
        let (request, fed) = request_of(self.plan, spec);
        if let Upload::Stream {
            length,
            piece,
            pause: Some(pause),
            ..
        } = spec.body
        {
            fed.store(0, Ordering::Relaxed);
            // One more read than there are pieces: the end needs a read, too.
            for feeding in 1..=(length / piece + 2) {
                self.plan_for(self.net.now() + pause * feeding as u32, Todo::Feed(nth));
            }
        }
        let mut call = Call::new(request, Response::new())
            .tag(spec.id)
            .streaming(spec.consumer.is_some());
        if let Some(timeout) = spec.timeout {
            call = call.timeout(timeout);
        }
        if let Some(own) = spec.own.as_deref().cloned() {
            if let Some(timeouts) = own.timeouts {
                call = call.timeouts(timeouts);
            }
            if let Some(limits) = own.limits {
                call = call.limits(limits);
            }
            if let Some(retry) = own.retry {
                call = call.retry(retry);
            }
        }
        let id = self.client.submit(call);
        assert!(
            self.by_id.insert(id, nth).is_none(),
            "two calls have one id"
        );
        self.calls.push(Running {
            spec: spec.clone(),
            id: Some(id),
            times: None,
            fed,
            state: State::Open,
            cancelled: false,
            end: String::new(),
        });
    }

    /// Makes a blocking call. The other calls continue meanwhile.
    fn block(&mut self, spec: &Spec) {
        let begun = self.net.now();
        self.note_take_up(begun);
        let timeouts = &self.plan.config.timeouts;
        let until_head = timeouts.total.expect("every plan has limits");
        let total = match spec.consumer {
            None => until_head,
            Some(_) => timeouts.total_streamed.expect("every plan has limits"),
        };
        let nth = self.calls.len();
        let (mut request, fed) = request_of(self.plan, spec);
        self.calls.push(Running {
            spec: spec.clone(),
            id: None,
            times: Some((begun, begun + until_head)),
            fed,
            state: State::Over,
            cancelled: false,
            end: String::new(),
        });
        let mut response = Response::new();
        let result = match spec.consumer {
            None => {
                let result = self.client.call(&mut request, &mut response);
                result.map(|_| Some(response.take_body().into()))
            }
            Some(consumer) => self
                .client
                .pull(&self.net, &mut request, &mut response, consumer),
        };
        let now = self.net.now();
        assert!(
            now <= begun + total,
            "blocked for {:?}: {spec:?}",
            now - begun
        );
        assert!(came_back(&request, spec), "{spec:?}");
        match result {
            Ok(body) => {
                let length = body.as_ref().map(Vec::len);
                self.calls[nth].end = format!("{} {length:?} blocking", response.status());
                self.check_head(spec, &response);
                if let Some(body) = body {
                    self.check_body(spec, &response, &body);
                }
            }
            Err(error) => {
                self.calls[nth].end = failure(&error);
                self.check_error(nth, &error, now, None);
            }
        }
        // While the caller was blocked, it could not be notified of anything else.
        self.caller_back_at = now;
    }

    fn cancel(&mut self, nth: usize) {
        let Some(call) = self.calls.get_mut(nth) else {
            return;
        };
        let Some(id) = call.id else {
            return;
        };
        let did = self.client.cancel(id);
        assert!(
            !did || !matches!(call.state, State::Over),
            "cancelled a call that had ended"
        );
        if !did {
            return;
        }
        call.cancelled = true;
        if let State::Body { .. } = call.state {
            call.state = State::Over;
            call.end = "dropped".into();
        }
        assert!(!self.client.cancel(id), "cancelled twice");
    }

    // ---- completions

    fn complete(&mut self, done: Completion) {
        let now = self.net.now();
        let nth = *self.by_id.get(&done.id).expect("a call of ours");
        let call = &mut self.calls[nth];
        assert!(
            matches!(call.state, State::Open),
            "completed twice: {:?}",
            call.spec
        );
        assert_eq!(done.tag, call.spec.id);
        assert!(came_back(&done.request, &call.spec), "{:?}", call.spec);
        let (begun, deadline) = call.times.unwrap_or((now, now));
        let over_at = begun + done.report.timings().total;
        assert!(over_at <= now);
        assert!(
            over_at <= deadline.max(self.caller_back_at),
            "{:?} late: {:?}",
            over_at - deadline,
            call.spec,
        );
        let spec = call.spec.clone();
        let streamed = done.streamed();
        match (done.outcome, streamed) {
            (Err(error), body) => {
                assert!(body.is_none());
                call.state = State::Over;
                call.end = failure(&error);
                // After a redirect, the error is about the last request.
                let first = done.report.redirects().is_empty();
                let attempts = first.then(|| done.report.attempts());
                self.check_error(nth, &error, over_at, attempts);
            }
            (Ok(()), Some(_)) if call.cancelled => {
                call.state = State::Over;
                call.end = "dropped".into();
            }
            (Ok(()), Some(body)) => {
                assert_eq!(body, done.id);
                assert!(spec.consumer.is_some() && done.response.body().is_empty());
                self.check_head(&spec, &done.response);
                self.note_head(nth);
                self.calls[nth].state = State::Body {
                    head: done.response,
                    body: Vec::new(),
                    planned: true,
                };
                self.plan_for(now, Todo::Consume(nth));
            }
            (Ok(()), None) => {
                assert!(spec.consumer.is_none());
                call.state = State::Over;
                call.end = format!("{} {}", done.response.status(), done.response.body().len());
                self.check_head(&spec, &done.response);
                self.check_body(&spec, &done.response, done.response.body());
                let heard = self.heard(spec.id).len();
                assert!(
                    heard >= 1 || is_extra(&done.response),
                    "answered, but never heard: {spec:?}"
                );
                assert!(heard <= done.report.attempts() as usize);
            }
        }
    }

    /// From the head of a streamed response on, another total timeout counts.
    fn note_head(&mut self, nth: usize) {
        let call = &mut self.calls[nth];
        if call.spec.timeout.is_none()
            && let Some((begun, deadline)) = &mut call.times
        {
            let total = self.plan.timeouts(&call.spec).total_streamed;
            *deadline = *begun + total.expect("every plan has limits");
        }
    }

    fn consume(&mut self, nth: usize) {
        let now = self.net.now();
        let call = &mut self.calls[nth];
        let (
            State::Body {
                head,
                body,
                planned,
            },
            Some(consumer),
            Some(id),
        ) = (&mut call.state, call.spec.consumer, call.id)
        else {
            return;
        };
        *planned = false;
        let Consumer {
            piece,
            pause,
            gives_up_after,
        } = consumer;
        if body.len() >= gives_up_after {
            return self.cancel(nth);
        }
        let mut buf = vec![0; piece];
        self.net.note_caller();
        match self.client.read_body(id, &mut buf) {
            Ok(BodyRead::Data(n)) => {
                assert!((1..=piece).contains(&n));
                body.extend_from_slice(&buf[..n]);
                *planned = true;
                self.plan_for(now + pause, Todo::Consume(nth));
            }
            Ok(BodyRead::Pending) => {
                let deadline = call.times.expect("taken up").1.max(self.caller_back_at);
                assert!(
                    now <= deadline,
                    "still open after its deadline: {:?}",
                    call.spec
                );
            }
            Ok(BodyRead::End {
                report,
                trailers,
                request,
            }) => {
                check_trailers(&trailers);
                if let Some(request) = request {
                    assert_eq!(request.method(), call.spec.method, "the buffers came back");
                }
                let begun = call.times.expect("taken up").0;
                assert!(begun + report.timings().total <= now);
                call.end = format!("{} {} streamed", head.status(), body.len());
                let spec = call.spec.clone();
                let State::Body { head, body, .. } =
                    std::mem::replace(&mut call.state, State::Over)
                else {
                    return;
                };
                self.check_body(&spec, &head, &body);
            }
            Err(error) => {
                call.state = State::Over;
                call.end = failure(&error) + " in the body";
                self.check_error(nth, &error, now, None);
            }
        }
    }

    // ---- invariants

    fn check_counts(&self) {
        let counters = self.client.counters();
        let parts = counters.connecting + counters.busy + counters.draining + counters.idle;
        assert_eq!(counters.open, parts, "{counters:?}");
        let streams = self.net.open_streams();
        let cap = match &self.plan.web {
            Some(web) => {
                // An opening that waits for a name has no connection, and takes no room under the cap.
                let naming = counters.open.checked_sub(streams);
                assert!(
                    naming.is_some_and(|n| n <= counters.connecting),
                    "{streams} {counters:?}"
                );
                web.max_connections
            }
            None => {
                assert_eq!(counters.open, streams, "{counters:?}");
                self.plan.config.max_connections.get()
            }
        };
        let peak = self.net.peak_streams();
        assert!(peak <= cap, "{peak} over {cap}");
    }

    /// A waiting call has an opening, or the limits are reached by connections in use, or sockets are missing.
    fn check_nobody_waits_in_vain(&self) {
        let Some(web) = &self.plan.web else {
            return;
        };
        let counters = self.client.counters();
        let host_cap = self.plan.config.max_connections.get();
        let may_wait = self.plan.holds_back() || self.plan.lacks_sockets();
        if counters.waiting > counters.connecting && !may_wait {
            // Single hosts are not visible from here: below its cap no host can have reached it.
            let full = counters.open >= web.max_connections.min(host_cap);
            assert!(full, "{counters:?}");
            if host_cap >= web.max_connections {
                assert_eq!(counters.idle, 0, "{counters:?}");
            }
        }
    }

    /// The connections to one host never exceeded its limit, at no moment.
    fn check_caps_of_hosts(&self, web: &Web) {
        let cap = self.plan.config.max_connections.get();
        let mut site_of = BTreeMap::new();
        let mut open = vec![0; web.sites.len()];
        for entry in self.net.trace() {
            match entry.what {
                Trace::Connect(to) => {
                    let at = web
                        .sites
                        .iter()
                        .position(|site| site.addresses.contains(&to));
                    let at = at.expect("an address of somebody");
                    site_of.insert(entry.connection, at);
                    open[at] += 1;
                }
                Trace::ConnectError(_) | Trace::Close => open[site_of[&entry.connection]] -= 1,
                _ => continue,
            }
            assert!(
                open.iter().all(|n| *n <= cap),
                "{open:?} over {cap}, {:?}",
                entry.at
            );
        }
    }

    /// The answer belongs to this request.
    fn check_head(&self, spec: &Spec, response: &Response) {
        if is_extra(response) {
            return;
        }
        let id = spec.id.to_string();
        assert_eq!(
            text(response, "X-Id"),
            Some(id),
            "an answer to another request: {spec:?}"
        );
        let redirects = self
            .plan
            .web
            .as_ref()
            .is_some_and(|web| web.redirects.is_none());
        let status = response.status();
        assert!(
            [200, 204, 304, 404, 429, 502, 503, 504].contains(&status)
                || redirects && [301, 302, 303, 307, 308].contains(&status),
            "{status}"
        );
        assert!(
            response
                .interim()
                .all(|interim| [100, 102, 103].contains(&interim.status()))
        );
        let heard = self.heard(spec.id);
        if heard.iter().any(|heard| heard.whole) {
            // An early answer was sent before the body had come.
            let got = text(response, "X-Got").expect("every answer has it");
            // A redirect may have changed the request to a GET without a body.
            let as_sent = heard
                .last()
                .is_some_and(|heard| heard.method == spec.method);
            let length = if as_sent { spec.body.length() } else { 0 };
            let sent = HttpServer::digest(&HttpServer::body(spec.id, length));
            let early = heard.iter().any(|heard| !heard.whole);
            assert!(
                got == sent || early,
                "the request's body arrived otherwise: {spec:?}"
            );
        }
    }

    fn check_body(&self, spec: &Spec, head: &Response, body: &[u8]) {
        if is_extra(head) {
            return;
        }
        check_trailers(head);
        let length = text(head, "X-Body").and_then(|n| n.parse().ok());
        let length: usize = length.expect("every answer has it");
        assert_eq!(
            body.len(),
            length,
            "a body cut short was taken for whole: {spec:?}"
        );
        assert!(
            body == HttpServer::body(spec.id, length),
            "wrong bytes: {spec:?}"
        );
    }

    fn check_error(&self, nth: usize, error: &Error, over_at: Instant, attempts: Option<u32>) {
        let Running {
            spec,
            times,
            cancelled,
            ..
        } = &self.calls[nth];
        let config = &self.plan.config;
        let heard = self.heard(spec.id);
        let (begun, deadline) = times.unwrap_or((over_at, over_at));
        match error.kind() {
            ErrorKind::Cancelled => assert!(cancelled, "not cancelled: {spec:?}"),
            ErrorKind::Redirect {
                fault: RedirectFault::BodyNotReplayable,
                ..
            } => {
                assert!(
                    matches!(spec.body, Upload::Stream { opened: false, .. }),
                    "{spec:?}"
                );
                assert!(!heard.is_empty(), "not redirected: {spec:?}");
            }
            _ if self.plan.mood == Mood::Fair => {
                panic!("failed in a fair world: {error:?} {spec:?}")
            }
            ErrorKind::Misuse(misuse) => panic!("nothing was misused: {misuse} {spec:?}"),
            ErrorKind::Timeout(TimeLimit::Total) => {
                assert!(over_at >= deadline, "{:?} too early", deadline - over_at);
            }
            ErrorKind::Timeout(limit) => {
                let timeouts = self.plan.timeouts(spec);
                let least = match limit {
                    TimeLimit::Resolve | TimeLimit::Connect | TimeLimit::Handshake => None,
                    TimeLimit::Queue => timeouts.queue,
                    TimeLimit::Write => timeouts.write,
                    TimeLimit::FirstByte => timeouts.first_byte,
                    TimeLimit::Adaptive => config.adaptive.map(|adaptive| adaptive.min),
                    _ => timeouts.between_bytes,
                };
                // An opening that began for another call can serve this one, so its time may have begun earlier.
                let shared = matches!(
                    limit,
                    TimeLimit::Connect | TimeLimit::Resolve | TimeLimit::Handshake
                );
                assert!(
                    shared || over_at - begun >= least.expect("only limits that were set"),
                    "{limit:?} too early: {spec:?}"
                );
            }
            ErrorKind::Limit(LimitExceeded::Rate) => {
                assert!(self.plan.holds_back() && config.wait == WaitPolicy::FailFast);
            }
            ErrorKind::Limit(LimitExceeded::Connections(_)) => {
                assert_eq!(config.wait, WaitPolicy::FailFast);
            }
            ErrorKind::Limit(LimitExceeded::Waiting(max)) => assert_eq!(*max, config.max_waiting),
            ErrorKind::Limit(LimitExceeded::BodyBytes(max)) => {
                assert_eq!(Some(*max), self.plan.limits(spec).body_bytes);
            }
            ErrorKind::Limit(LimitExceeded::HeadBytes(max)) => {
                assert_eq!(*max, self.plan.limits(spec).head_bytes);
            }
            ErrorKind::Limit(LimitExceeded::InterimResponses(max)) => {
                assert_eq!(*max, self.plan.limits(spec).interim_responses);
            }
            ErrorKind::Limit(LimitExceeded::Pending(most)) => {
                let pipeline = self.plan.pipeline.as_ref().expect("pipelined");
                assert_ne!(pipeline.overflow, Overflow::Wait);
                assert_eq!(*most, pipeline.max_pending_total.get());
            }
            ErrorKind::Limit(LimitExceeded::Redirects(most)) => {
                let web = self.plan.web.as_ref();
                assert_eq!(web.and_then(|web| web.redirects), Some(*most));
            }
            ErrorKind::Limit(limit) => panic!("no answer passes a limit: {limit} {spec:?}"),
            _ => {}
        }
        if error.sent() == Sent::Nothing && attempts.is_some_and(|attempts| attempts <= 1) {
            assert!(
                heard.is_empty(),
                "sent in spite of the error: {error:?} {spec:?}"
            );
        }
    }

    fn heard(&self, id: u64) -> Vec<ReceivedRequest> {
        let all = self.servers.iter().flat_map(|server| {
            let journal = server.journal();
            journal
                .iter()
                .filter(|heard| heard.id == id)
                .cloned()
                .collect::<Vec<_>>()
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by(|a, b| (a.at, &a.target).cmp(&(b.at, &b.target)));
        all
    }

    // ---- the end

    fn finish(mut self) -> Outcome {
        self.check_executions();
        if let Some(web) = &self.plan.web {
            self.check_addressees(web);
            if web.proxy.is_none() {
                self.check_caps_of_hosts(web);
            }
        }
        self.sweep();
        let counters = self.client.counters();
        let left = (
            counters.busy,
            counters.draining,
            counters.idle,
            counters.waiting,
        );
        assert_eq!(left, (0, 0, 0, 0), "{counters:?}");
        if !self.keeps_idle() && self.limits_openings() {
            assert_eq!(counters.open, 0, "{counters:?}");
        }
        self.check_counts();
        self.check_names_and_hosts_are_gone();
        self.outcome()
    }

    fn outcome(self) -> Outcome {
        drop(self.client);
        assert_eq!(self.net.open_streams(), 0, "streams were leaked");
        watch::finish();
        Outcome {
            trace: self.net.trace(),
            ends: self.calls.into_iter().map(|call| call.end).collect(),
            net_calls: self.net.calls(),
        }
    }

    /// No request that must not be repeated reached a server twice, not even in part.
    fn check_executions(&self) {
        // With redirects, each request of a call has its own target.
        let mut times: BTreeMap<(u64, String), usize> = BTreeMap::new();
        for server in &self.servers {
            for heard in server.journal().iter() {
                let spec = &self.calls[heard.id as usize - 1].spec;
                let redirected = self.plan.web.is_some() && !heard.target.ends_with("/0");
                assert!(
                    heard.method == spec.method || redirected && heard.method == "GET",
                    "{heard:?} {spec:?}"
                );
                let pipeline = self.plan.pipeline.as_ref();
                if heard.ignored && !NOT_IDEMPOTENT.contains(&&*heard.method) {
                    continue; // moves on each time when a connection ends that way
                }
                assert!(
                    !heard.ignored || pipeline.is_none_or(|own| own.methods == Pipelined::All),
                    "sent with others: {heard:?} {spec:?}"
                );
                let times = times.entry((heard.id, heard.target.clone())).or_default();
                *times += 1;
                let retry = self.plan.retry(spec);
                let attempts = most_attempts(retry) as usize;
                let fails_over = &self.plan.config.balance;
                let asked_for = retry.rules.iter().any(|rule| rule.any_method);
                let most = match NOT_IDEMPOTENT.contains(&&*heard.method) {
                    true if !asked_for => 1,
                    false
                        if retry.hook.is_none()
                            && retry.rules.is_empty()
                            && fails_over.is_none() =>
                    {
                        2
                    }
                    _ => attempts.max(2),
                };
                assert!(*times <= most, "executed {times} times: {heard:?} {spec:?}");
            }
        }
    }

    /// A client of many hosts keeps no minimum of idle connections.
    fn keeps_idle(&self) -> bool {
        self.plan.web.is_none() && self.plan.config.min_idle > 0
    }

    /// Every server received only requests for it.
    fn check_addressees(&self, web: &Web) {
        for (server, place) in self.servers.iter().zip(&self.plan.places) {
            for heard in server.journal().iter() {
                let site = web.sites.iter().find(|site| {
                    let host = site.origin.trim_start_matches("http://");
                    let host = host.strip_suffix(":80").unwrap_or(host);
                    host.eq_ignore_ascii_case(&heard.host)
                });
                let site = site.unwrap_or_else(|| panic!("for nobody: {heard:?}"));
                assert!(
                    web.proxy.is_some() || site.addresses.contains(&place.address),
                    "came to {}: {heard:?}",
                    place.address
                );
            }
        }
    }

    /// Without such limits, an opening for which no call waits may go on without end. A handshake of TLS takes long if the
    /// network is slow.
    fn limits_openings(&self) -> bool {
        let web = self.plan.web.as_ref();
        let proxied = web.is_some_and(|web| web.proxy.is_some());
        let most = Duration::from_secs(match self.plan.tls {
            Some(_) => 1,
            None => u64::MAX,
        });
        let are_limited = |timeouts: &Timeouts| {
            timeouts.connect.is_some()
                && (web.is_none() || timeouts.resolve.is_some())
                && (!proxied && self.plan.tls.is_none()
                    || timeouts.handshake.is_some_and(|limit| limit <= most))
        };
        let of_calls = self.calls.iter().filter_map(|call| call.spec.own.as_ref());
        let mut own = of_calls.filter_map(|own| own.timeouts.as_ref());
        are_limited(&self.plan.config.timeouts) && own.all(are_limited)
    }

    /// No hosts are left, and no names except those that the cache may hold.
    fn check_names_and_hosts_are_gone(&mut self) {
        let limits_openings = self.limits_openings();
        let (Some(web), AnyClient::Many(client)) = (&self.plan.web, &mut self.client) else {
            return;
        };
        let dns = client.dns_counters();
        assert_eq!(dns.in_flight, self.net.open_questions(), "{dns:?}");
        if let Some(slow) = &web.slow_names {
            for name in &slow.fast {
                let took = self.net.longest_lookup(name);
                assert!(
                    took <= slow.most,
                    "held by slow names: the lookup of {name} took {took:?}, of {:?} at most",
                    slow.most
                );
            }
        }
        assert!(
            dns.entries <= dns.in_flight + web.dns.max_entries.get(),
            "{dns:?}"
        );
        if !limits_openings {
            return;
        }
        // As long as it takes to forget hosts, plus the open time of their breakers.
        let breaker = self.plan.config.breaker.as_ref();
        let open = breaker.map_or(Duration::ZERO, |breaker| breaker.max_open_for);
        client
            .maintain(Duration::from_secs(30) + open)
            .expect("poll never fails here");
        client
            .maintain(Duration::ZERO)
            .expect("poll never fails here");
        assert_eq!(client.hosts(), 0);
        if web.slow_names.is_some() {
            let dns = client.dns_counters();
            assert_eq!(dns.in_flight, 0, "looked up for no call: {dns:?}");
        }
    }

    /// Waits for what continues without a call: late answers that are drained, openings whose calls were served
    /// otherwise, idle connections that expire.
    fn sweep(&mut self) {
        self.await_slow_names();
        let config = &self.plan.config;
        let drain = match config.late {
            LatePolicy::Drain { up_to } => up_to,
            LatePolicy::Close if self.plan.pipeline.is_some() => Duration::from_secs(5),
            LatePolicy::Close => Duration::ZERO,
        };
        // One after the other if they share a connection.
        let drain = match self.plan.pipeline {
            Some(_) => drain * self.calls.len() as u32,
            None => drain,
        };
        // A fair world has long limits and does not need them.
        let timeouts = &config.timeouts;
        let most = Duration::from_secs(1);
        let connect = timeouts.connect.unwrap_or_default().min(most);
        let resolve = timeouts.resolve.unwrap_or_default().min(most);
        let handshake = timeouts.handshake.unwrap_or_default().min(most);
        // A SOCKS proxy may be asked for three addresses, one after the other.
        let open = 3 * (connect + resolve + 2 * handshake);
        let pause = drain.max(open) + config.idle_timeout;
        self.client.maintain(pause).expect("poll never fails here");
        if !self.keeps_idle() && self.limits_openings() {
            assert_eq!(self.client.counters().idle, 0, "idle for too long");
        }
        self.client.close_idle();
    }

    /// Openings whose calls were served otherwise go on, and may wait for slow names: in a fair world, without a limit.
    fn await_slow_names(&mut self) {
        let web = self.plan.web.as_ref();
        let has_slow_names = web.is_some_and(|web| web.slow_names.is_some());
        if !has_slow_names || !self.limits_openings() {
            return;
        }
        let second = Duration::from_secs(1);
        for _ in 0..MOST_SECONDS_OF_LOOKUPS {
            if self.net.open_questions() == 0 {
                return;
            }
            self.client.maintain(second).expect("poll never fails here");
        }
        panic!("the lookups do not end");
    }
}

fn request_of(plan: &Plan, spec: &Spec) -> (Request, Arc<AtomicUsize>) {
    let mut request = Request::new(spec.method, plan.target(spec));
    request.add_header("X-Id", spec.id.to_string());
    if spec.says_close {
        request.add_header("Connection", "close");
    }
    if let Some(wait) = spec.expect {
        request.expect_continue(wait);
    }
    let fed = Arc::new(AtomicUsize::new(usize::MAX));
    let body = HttpServer::body(spec.id, spec.body.length());
    match spec.body {
        Upload::None => {}
        Upload::Bytes(_) => {
            request.body(body);
        }
        Upload::Stream {
            length,
            declared,
            piece,
            opened,
            ..
        } => {
            let source = Source {
                body,
                at: 0,
                piece,
                fed: Arc::clone(&fed),
            };
            let length = declared.then_some(length as u64);
            match opened {
                true => request.body_opened(move || Ok(source.clone()), length),
                false => request.body_stream(source, length),
            };
        }
    }
    (request, fed)
}

/// Whether a completion has the request of its call, or an empty one because the call with a streamed response still sends
/// the request.
fn came_back(request: &Request, spec: &Spec) -> bool {
    request.method() == spec.method || spec.consumer.is_some() && request.target().is_empty()
}

fn check_trailers(response: &Response) {
    let expected = ("X-Trailer", &b"1"[..]);
    assert!(response.trailers().all(|trailer| trailer == expected));
}

/// An answer to nothing, which came after the next request had been sent: no client can tell it from the answer to that request.
fn is_extra(response: &Response) -> bool {
    response.header("X-Extra").is_some()
}

/// The text of an error, equal in each run.
fn failure(error: &Error) -> String {
    match error.kind() {
        ErrorKind::BreakerOpen(_) => "Error: the breaker is open".to_owned(),
        _ => format!("{error:?}"),
    }
}

fn text(response: &Response, name: &str) -> Option<String> {
    response
        .header(name)
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

/// A request body that comes in pieces, and returns `WouldBlock` between them.
#[derive(Clone)]
struct Source {
    body: Vec<u8>,
    at: usize,
    piece: usize,
    fed: Arc<AtomicUsize>,
}

impl io::Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let fed = self.fed.load(Ordering::Relaxed);
        // The end shows only after the whole body was fed: a source does not know it before.
        if fed <= self.at {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let end = self.body.len().min(fed).min(self.at + self.piece);
        let n = (&self.body[self.at..end]).read(buf)?;
        self.at += n;
        Ok(n)
    }
}

/// Far more than the lookups of all slow names take that share two slots and stop one another.
const MOST_SECONDS_OF_LOOKUPS: u32 = 1_000;

/// A number that only a run without progress reaches.
const MOST_TURNS: u32 = 100_000;
