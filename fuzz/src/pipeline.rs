//! Pipelined responses: for any cut of the bytes, the calls get the same responses as exchanges one after another.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use courser::net::Address;
use courser::net::sim::{Link, Peer, SimNet, SimServer};
use courser::policy::Pipelined;
use courser::proto::steps::{BodyMode, CloseReason, Defaults, Exchange, Reuse};
use courser::{
    Call, HostConfig, Limits, PipelineClient, PipelineConfig, Request, Response, Retry, Timeouts,
    Upstream,
};

use crate::response::{Fields, all_fields};

/// The first four bytes choose the number of calls and their methods, the limits, the end of the connection, and how
/// the rest is cut. The server sends the rest when it has all requests.
pub fn pipeline(data: &[u8]) {
    let Some((&[calls, methods, mode, cut], input)) = data.split_first_chunk() else {
        return;
    };
    let calls = usize::from(calls) % MOST_CALLS + 1;
    let methods: Vec<u8> = (0..calls).map(|at| (methods >> (at % 4 * 2)) % 4).collect();
    let limits = match mode % 2 {
        0 => Limits::default(),
        _ => Limits {
            head_bytes: 200,
            header_count: 4,
            body_bytes: Some(64),
            interim_responses: 2,
            ..Limits::default()
        },
    };
    let closes = mode & 0x80 == 0;
    let expected = one_by_one(&methods, &limits, input, closes);
    let cut = usize::from(cut);
    for steps in [
        [input.len().max(1); 2],
        [cut + 1; 2],
        [cut % 16 + 1, cut / 16 * 8 + 1],
    ] {
        let got = piped(&methods, &limits, input, steps, closes);
        assert_eq!(got.len(), calls, "each call ends once");
        for (number, (got, expected)) in got.iter().zip(&expected).enumerate() {
            match expected {
                Err(None) => assert!(got.is_err(), "call {number} in pieces of {steps:?}"),
                // Behind an answer without a body, what is no status line is a body, and answers nobody.
                Err(Some(fault)) if fault == "Peer(BadStatusLine)" => {
                    let unsolicited = Err(Some("Peer(Unsolicited)".to_owned()));
                    assert!(
                        got == expected || *got == unsolicited,
                        "call {number} in pieces of {steps:?}: {got:?}"
                    );
                }
                _ => assert_eq!(got, expected, "call {number} in pieces of {steps:?}"),
            }
        }
    }
}

/// A complete response, or the error of the call whose response was broken, or `Err(None)` if the connection ended
/// before the response of this call.
type End = Result<(Fields, Vec<(u16, Fields)>, Vec<u8>), Option<String>>;

fn request(method: u8) -> Request {
    match method {
        0 => Request::get("/"),
        1 => Request::head("/"),
        2 => Request::post("/", "x"),
        _ => Request::new("DELETE", "/"),
    }
}

/// The result of each call if the connection is read by one exchange after another.
fn one_by_one(methods: &[u8], limits: &Limits, input: &[u8], closes: bool) -> Vec<End> {
    let (mut ends, mut rest) = (Vec::new(), input);
    let mut over = false;
    for &method in methods {
        if over {
            ends.push(Err(None));
            continue;
        }
        let mut request = request(method);
        request
            .encode(&Defaults::new("h", None))
            .expect("the request is valid");
        let mut exchange = Exchange::new(&request, BodyMode::Buffer);
        sent(&mut exchange, &mut request);
        let mut response = Response::new();
        let read = exchange.handle_read(rest, &mut response, limits);
        let mut error = match read {
            Ok(used) => {
                rest = &rest[used..];
                None
            }
            Err(kind) => Some(format!("{kind:?}")),
        };
        if error.is_none() && exchange.done().is_none() {
            error = match closes {
                true => exchange.handle_eof().err().map(|fault| peer(&fault)),
                false => Some("Timeout(Total)".to_owned()),
            };
        }
        // The surplus is the next response.
        let goes_on = matches!(
            exchange.done(),
            Some(Reuse::Keep | Reuse::Close(CloseReason::Surplus))
        );
        over = error.is_some() || !goes_on;
        ends.push(match error {
            Some(error) => Err(Some(error)),
            None => Ok(answer(response)),
        });
    }
    ends
}

fn peer(fault: &courser::error::PeerFault) -> String {
    format!("Peer({fault:?})")
}

fn sent(exchange: &mut Exchange, request: &mut Request) {
    use courser::proto::steps::SendStep::Write;
    while let Ok(Write([head, body])) = exchange.poll_send(request) {
        let n = head.len() + body.len();
        exchange.handle_sent(n);
    }
}

fn answer(mut response: Response) -> (Fields, Vec<(u16, Fields)>, Vec<u8>) {
    let reason = vec![("reason".to_owned(), response.reason().to_vec())];
    (reason, all_fields(&response), response.take_body().into())
}

/// The result of each call with a client that sends all of them at once.
fn piped(
    methods: &[u8],
    limits: &Limits,
    input: &[u8],
    steps: [usize; 2],
    closes: bool,
) -> Vec<End> {
    let net = SimNet::new(1);
    net.set_tracing(false);
    let address: SocketAddr = ([10, 0, 0, 1], 80).into();
    let whole = Link {
        latency: Duration::ZERO..=Duration::ZERO,
        segment: usize::MAX..=usize::MAX,
        ..Link::default()
    };
    let server = Answers {
        awaited: methods.len(),
        input: input.to_vec(),
        steps,
        closes,
        connections: 0,
        received: Vec::new(),
    };
    net.listen(Address::Tcp(address), whole, server);
    let config = PipelineConfig {
        host: HostConfig {
            max_connections: NonZeroUsize::MIN,
            limits: limits.clone(),
            timeouts: Timeouts {
                total: Some(Duration::from_secs(10)),
                ..Timeouts::none()
            },
            retry: Retry {
                max_attempts: NonZeroU32::MIN,
                safe_cases: false,
                ..Retry::default()
            },
            ..HostConfig::default()
        },
        // The server waits for all requests, so a POST must not go alone.
        methods: Pipelined::All,
        ..PipelineConfig::default()
    };
    let mut client =
        PipelineClient::with_net(Upstream::tcp([address]), config, net.clone()).expect("sound");
    for (tag, &method) in methods.iter().enumerate() {
        client.submit(Call::new(request(method), Response::new()).tag(tag as u64));
    }
    let mut ends: Vec<Option<End>> = methods.iter().map(|_| None).collect();
    while let Some(done) = client.wait(None).expect("a simulation").done() {
        let place = &mut ends[done.tag as usize];
        assert!(place.is_none(), "a call ends twice");
        *place = Some(match done.outcome {
            Ok(()) => Ok(answer(done.response)),
            Err(error) => Err(Some(format!("{:?}", error.kind()))),
        });
    }
    drop(client);
    assert_eq!(net.open_streams(), 0);
    ends.into_iter().flatten().collect()
}

/// A server that sends when it has all requests of its first connection. It closes later connections at once.
struct Answers {
    awaited: usize,
    input: Vec<u8>,
    steps: [usize; 2],
    closes: bool,
    connections: usize,
    received: Vec<u8>,
}

impl SimServer for Answers {
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        self.connections += 1;
        if self.connections > 1 {
            peer.reset();
        }
    }

    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        if self.connections > 1 || self.awaited == 0 {
            return;
        }
        self.received.extend_from_slice(data);
        let heads = self.received.windows(4).filter(|end| end == b"\r\n\r\n");
        if heads.count() < self.awaited {
            return;
        }
        self.awaited = 0;
        let (mut rest, mut sizes) = (&self.input[..], self.steps.into_iter().cycle());
        while !rest.is_empty() {
            let size = sizes.next().map_or(rest.len(), |size| size.min(rest.len()));
            let (piece, behind) = rest.split_at(size);
            rest = behind;
            peer.send(piece);
            peer.wait(Duration::from_micros(1));
        }
        if self.closes {
            peer.shutdown();
        }
    }
}

const MOST_CALLS: usize = 8;
