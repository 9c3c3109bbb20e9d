//! The crawl of one host over the engine: moves requests from the frontier to the client and replies back, and
//! translates between their words. It decides nothing itself.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use courser::{
    Call, Completion, ErrorKind, HostClient, HostConfig, PeerFault, Phase, Request, Response,
    Timeouts, Upstream,
};
use url::{Host, Url};

use super::frontier::{Ask, Blame, BodyEnd, Cause, Failure, FetchId, Frontier, Policy, Reply};
use super::{Run, Transfer};

impl Run<'_> {
    /// Searches the trees of `starts`, all on the host of `origin`.
    pub(super) fn host(
        &mut self,
        origin: &Url,
        starts: &[Url],
        policy: &Policy,
        transfer: Transfer,
    ) {
        let mut frontier = Frontier::new(origin, policy.clone());
        for start in starts {
            frontier.add_start(start.path());
        }
        match connect(origin, transfer) {
            Ok(client) => {
                let mut crawl = Crawl {
                    frontier,
                    client,
                    transfer,
                    spare: Vec::new(),
                };
                crawl.run(self);
                frontier = crawl.frontier;
            }
            Err(cause) => frontier.abandon(&cause, &mut |finding| self.finding(finding)),
        }
        self.turn(frontier.counts());
        self.finished = self.finished + frontier.counts();
    }
}

struct Crawl {
    frontier: Frontier,
    client: HostClient,
    transfer: Transfer,
    /// Buffers of finished calls.
    spare: Vec<(Request, Response)>,
}

impl Crawl {
    fn run(&mut self, run: &mut Run<'_>) {
        loop {
            self.submit();
            if self.frontier.is_done() {
                return;
            }
            run.turn(self.frontier.counts());
            if run.stopped {
                return;
            }
            if let Err(error) = self.wait(run) {
                let cause = Cause::Transfer(Box::new(error));
                return self
                    .frontier
                    .abandon(&cause, &mut |finding| run.finding(finding));
            }
        }
    }

    fn has_room(&self) -> bool {
        self.client.in_flight() < self.transfer.connections.get()
    }

    fn submit(&mut self) {
        while self.has_room()
            && let Some(fetch) = self.frontier.poll_request(Instant::now())
        {
            let (mut request, response) = self.spare.pop().unwrap_or_else(blank);
            request.set_method(match fetch.ask {
                Ask::List => "GET",
                Ask::Probe => "HEAD",
            });
            request.set_target(fetch.target);
            let call = Call::new(request, response).tag(fetch.id.0);
            self.client.submit(call);
        }
    }

    /// Until a reply comes, a postponed request is due, or it is time to show progress. Then takes the replies that
    /// are there already, at most one per connection, so that a fast server cannot hold up the results.
    fn wait(&mut self, run: &mut Run<'_>) -> io::Result<()> {
        let due = self.frontier.poll_timeout().filter(|_| self.has_room());
        let until_due = due.map(|due| due.saturating_duration_since(Instant::now()));
        let mut timeout = until_due.map_or(TURN, |wait| wait.min(TURN));
        if self.client.in_flight() == 0 {
            thread::sleep(timeout);
            return Ok(());
        }
        for _ in 0..self.transfer.connections.get() {
            let Some(done) = self.client.wait(Some(timeout))? else {
                break;
            };
            let buffers = answer(&mut self.frontier, done, run);
            self.spare.push(buffers);
            self.submit();
            timeout = Duration::ZERO;
        }
        Ok(())
    }
}

fn connect(origin: &Url, transfer: Transfer) -> Result<HostClient, Cause> {
    if origin.scheme() != "http" {
        return Err(Cause::Scheme(origin.scheme().to_owned()));
    }
    match origin.host() {
        Some(Host::Domain(name)) if !name.eq_ignore_ascii_case("localhost") => {
            return Err(Cause::HostName(name.to_owned()));
        }
        _ => {}
    }
    let authority = &origin[url::Position::BeforeHost..url::Position::AfterPort];
    let transfer_error = |error: courser::Error| Cause::Transfer(Box::new(error));
    let upstream: Upstream = authority.parse().map_err(transfer_error)?;
    let mut config = HostConfig {
        max_connections: transfer.connections,
        timeouts: Timeouts {
            total: Some(transfer.timeout),
            connect: Some(transfer.timeout.min(LONGEST_CONNECT)),
            ..Timeouts::none()
        },
        ..HostConfig::default()
    };
    config.limits.body_bytes = Some(transfer.max_body);
    HostClient::new(upstream, config).map_err(transfer_error)
}

fn blank() -> (Request, Response) {
    let mut request = Request::get("/");
    request.header("Accept", "text/html,*/*;q=0.1");
    (request, Response::new())
}

/// Hands a completion to the frontier and gives its buffers back.
fn answer(frontier: &mut Frontier, done: Completion, run: &mut Run<'_>) -> (Request, Response) {
    let (now, id) = (Instant::now(), FetchId(done.tag));
    let sink = &mut |finding: super::frontier::Finding<'_>| run.finding(finding);
    match done.outcome {
        Ok(()) => frontier.handle_reply(now, id, &reply(&done.response), sink),
        Err(error) => frontier.handle_failure(now, id, failure(error), sink),
    }
    (done.request, done.response)
}

fn reply(response: &Response) -> Reply<'_> {
    let framed = ["Content-Length", "Transfer-Encoding"]
        .iter()
        .any(|name| response.header(name).is_some());
    Reply {
        status: response.status(),
        location: response.header("Location"),
        retry_after: response.header("Retry-After"),
        date: response.header("Date"),
        content_type: response.header("Content-Type"),
        content_encoding: response.header("Content-Encoding"),
        end: if framed {
            BodyEnd::Framed
        } else {
            BodyEnd::Closed
        },
        body: response.body(),
    }
}

fn failure(error: courser::Error) -> Failure {
    let blame = match error.kind() {
        ErrorKind::Io(_) | ErrorKind::Timeout(_) if error.phase() == Phase::Connect => Blame::Host,
        ErrorKind::Io(_) | ErrorKind::Timeout(_) => Blame::Request,
        ErrorKind::Peer(PeerFault::Empty | PeerFault::Truncated) => Blame::Request,
        _ => Blame::Final,
    };
    Failure {
        cause: Cause::Transfer(Box::new(error)),
        blame,
    }
}

/// A host that has not accepted a connection by then is away; this leaves time to try again.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

/// Longest wait between two moments at which progress is shown and a stop is noticed.
const TURN: Duration = Duration::from_millis(100);
