//! A server on a thread that answers requests in rounds: when it has so many, it answers all of them at once.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// Starts a server that ends when its last connection does. Its heads are all the same, or each is another.
pub(crate) fn start(round: usize, varies: bool) -> io::Result<SocketAddr> {
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = listener.local_addr()?;
    let poll = Poll::new()?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    let server = Server {
        listener,
        poll,
        round,
        varies,
        answers: 0,
        connections: HashMap::new(),
        asked: 0,
    };
    thread::spawn(move || server.run());
    Ok(address)
}

struct Server {
    listener: TcpListener,
    poll: Poll,
    round: usize,
    varies: bool,
    answers: usize,
    connections: HashMap<Token, Connection>,
    /// Requests on all connections that have no answer yet.
    asked: usize,
}

struct Connection {
    stream: TcpStream,
    asked: usize,
    /// The last four bytes.
    end: [u8; 4],
}

impl Server {
    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut next = LISTENER.0;
        while next == LISTENER.0 || !self.connections.is_empty() {
            if let Err(error) = self.poll.poll(&mut events, None)
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(error);
            }
            for event in &events {
                if event.token() != LISTENER {
                    self.read(event.token());
                    continue;
                }
                while let Ok((mut stream, _)) = self.listener.accept() {
                    next += 1;
                    stream.set_nodelay(true)?;
                    self.poll
                        .registry()
                        .register(&mut stream, Token(next), Interest::READABLE)?;
                    let connection = Connection {
                        stream,
                        asked: 0,
                        end: [0; 4],
                    };
                    self.connections.insert(Token(next), connection);
                }
            }
            if self.asked >= self.round {
                self.answer()?;
            }
        }
        Ok(())
    }

    /// Reads what there is, and counts the ends of requests, which have no bodies.
    fn read(&mut self, token: Token) {
        let mut buffer = [0; 16 << 10];
        while let Some(connection) = self.connections.get_mut(&token) {
            match connection.stream.read(&mut buffer) {
                Ok(0) => {
                    self.connections.remove(&token);
                }
                Ok(read) => {
                    for &byte in &buffer[..read] {
                        let [_, a, b, c] = connection.end;
                        connection.end = [a, b, c, byte];
                        if connection.end == *b"\r\n\r\n" {
                            connection.asked += 1;
                            self.asked += 1;
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.connections.remove(&token);
                }
            }
        }
    }

    fn answer(&mut self) -> io::Result<()> {
        self.asked = 0;
        for connection in self.connections.values_mut() {
            let mut answers = ANSWER.repeat(std::mem::take(&mut connection.asked));
            for answer in answers
                .chunks_exact_mut(ANSWER.len())
                .filter(|_| self.varies)
            {
                self.answers = (self.answers + 1) % 1_000_000;
                answer[NUMBER_AT..][..6].copy_from_slice(format!("{:06}", self.answers).as_bytes());
            }
            // The answers of a round fit into the buffer of the socket.
            connection.stream.write_all(&answers)?;
        }
        Ok(())
    }
}

const LISTENER: Token = Token(0);

/// Of the six bytes that are a number if the heads vary.
const NUMBER_AT: usize = "HTTP/1.1 200 OK\r\nServer: ".len();

pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: counts\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world!";
