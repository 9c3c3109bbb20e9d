//! The clients that are counted, and their bars.

use std::error::Error;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroUsize;

use courser::{
    Call, Client, Config, HostClient, HostConfig, HttpClient, PipelineClient, PipelineConfig,
    Request, Response, Upstream,
};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::server::ANSWER;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// A client, how it is used, and the highest costs of a request. The bars are a tenth above what was counted, or above
/// what must be: one write, one read, and a share of one wait; with pipelining, a share of each.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) connections: usize,
    /// Requests on a connection at a time.
    pub(crate) depth: usize,
    /// Each answer has another head. Else all heads are the same, as those that a server sends within a second may be.
    pub(crate) varies: bool,
    /// Without those of `limit`.
    pub(crate) instructions: f64,
    pub(crate) system_calls: f64,
    /// Runs it for so many rounds.
    pub(crate) run: fn(&Self, SocketAddr, usize) -> Outcome,
}

impl Subject {
    const HOST: Self = Self {
        name: "host",
        connections: 64,
        depth: 1,
        varies: false,
        instructions: 1_860.0,
        system_calls: 2.1,
        run: host,
    };

    /// `limit` first.
    pub(crate) const ALL: [Self; 5] = [
        Self {
            name: "limit",
            instructions: 0.0,
            run: limit,
            ..Self::HOST
        },
        Self::HOST,
        Self {
            name: "varied",
            varies: true,
            instructions: 2_550.0,
            ..Self::HOST
        },
        Self {
            name: "client",
            instructions: 2_140.0,
            run: |subject, server, rounds| {
                let config = Config {
                    host: subject.host_config(),
                    ..Config::default()
                };
                subject.drive(Client::new(config)?, &format!("http://{server}/"), rounds)
            },
            ..Self::HOST
        },
        Self {
            name: "pipeline",
            connections: 8,
            depth: 16,
            varies: false,
            instructions: 1_440.0,
            system_calls: 0.2,
            run: |subject, server, rounds| {
                let config = PipelineConfig {
                    host: subject.host_config(),
                    max_pending: NonZeroUsize::new(subject.depth).unwrap_or(NonZeroUsize::MIN),
                    ..PipelineConfig::default()
                };
                let client = PipelineClient::new(Upstream::tcp([server]), config)?;
                subject.drive(client, "/", rounds)
            },
        },
    ];

    fn host_config(&self) -> HostConfig {
        HostConfig {
            max_connections: NonZeroUsize::new(self.connections).unwrap_or(NonZeroUsize::MIN),
            ..HostConfig::default()
        }
    }

    /// Keeps all requests in flight, and sends a new one for each answer.
    fn drive(&self, mut client: impl HttpClient, target: &str, rounds: usize) -> Outcome {
        let at_once = self.connections * self.depth;
        for _ in 0..at_once {
            client.submit(Call::new(Request::get(target), Response::new()));
        }
        let (mut answers, mut left) = (0, at_once * (rounds - 1));
        while let Some(done) = client.wait(None)?.done() {
            done.outcome?;
            answers += usize::from(done.response.body() == b"Hello, world!");
            if left > 0 {
                left -= 1;
                client.submit(Call::new(done.request, done.response));
            }
        }
        match answers == at_once * rounds {
            true => Ok(()),
            false => Err("wrong answers".into()),
        }
    }
}

fn host(subject: &Subject, server: SocketAddr, rounds: usize) -> Outcome {
    let client = HostClient::new(Upstream::tcp([server]), subject.host_config())?;
    subject.drive(client, "/", rounds)
}

/// What every client has to do: a loop over raw sockets that writes, waits and reads, and knows the length of an answer.
fn limit(subject: &Subject, server: SocketAddr, rounds: usize) -> Outcome {
    let request = format!("GET / HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let mut poll = Poll::new()?;
    let mut streams = Vec::new();
    for at in 0..subject.connections {
        let stream = std::net::TcpStream::connect(server)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry()
            .register(&mut stream, Token(at), Interest::READABLE)?;
        assert_eq!(stream.write(request.as_bytes())?, request.len());
        streams.push(stream);
    }
    let mut left = subject.connections * (rounds - 1);
    let mut running = subject.connections;
    let mut events = Events::with_capacity(subject.connections);
    let mut buffer = [0; 1024];
    while running > 0 {
        poll.poll(&mut events, None)?;
        for event in &events {
            let stream = &mut streams[event.token().0];
            match stream.read(&mut buffer) {
                Ok(read) if read == ANSWER.len() => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                other => return Err(format!("no answer, but {other:?}").into()),
            }
            if left > 0 {
                left -= 1;
                assert_eq!(stream.write(request.as_bytes())?, request.len());
            } else {
                running -= 1;
            }
        }
    }
    Ok(())
}
