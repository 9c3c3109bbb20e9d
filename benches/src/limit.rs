//! What this machine can do at all: raw sockets and one epoll loop, with nothing parsed. The first exchange tells how
//! long an answer is; from then on bytes are counted. A client can come near to this, and not beyond.
//!
//! The server must keep connections alive and send answers of one length.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::measure::{Plan, Record, Run};

/// Measures the most that a client could do on this machine.
#[derive(clap::Parser, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: Plan,

    /// Print the record as JSON
    #[arg(long)]
    json: bool,
}

/// The tool.
///
/// # Errors
/// The server cannot be reached, or closed a connection.
pub fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    measure(&args.plan)?.print(args.json);
    Ok(())
}

fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n",
        plan.url.path, plan.url.authority
    );
    let length = answer_length(plan, request.as_bytes())?;
    let mut run = Run::new(plan)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut connections = Vec::new();
    let mut running = 0;
    for number in 0..plan.connections {
        let stream = TcpStream::connect(plan.url.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let edges = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &stream, EventData::new_u64(number.into()), edges)?;
        run.opened(1);
        let sent = Instant::now();
        if run.admit(sent) {
            send(&stream, request.as_bytes())?;
            running += 1;
        }
        connections.push(Connection {
            stream,
            left: length,
            sent,
        });
    }
    let mut buffer = vec![0; READ_BYTES];
    let mut events = Vec::with_capacity(plan.connections as usize);
    while running > 0 {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let now = Instant::now();
        for event in &events {
            let connection = &mut connections[event.data.u64() as usize];
            if !connection.receive(&mut buffer)? {
                continue;
            }
            run.completed(connection.sent, now);
            if run.admit(now) {
                connection.left = length;
                connection.sent = now;
                send(&connection.stream, request.as_bytes())?;
            } else {
                running -= 1;
            }
        }
    }
    run.finish("limit")
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the answer still to come.
    left: usize,
    sent: Instant,
}

impl Connection {
    /// Reads what is there; whether the answer is complete. A read that did not fill the buffer was the last one.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, Box<dyn Error>> {
        while self.left > 0 {
            let read = match rustix::net::recv(&self.stream, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err("the server closed a connection".into()),
                Ok((read, _)) => read,
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            self.left = self
                .left
                .checked_sub(read)
                .ok_or("answers differ in length")?;
            if read < buffer.len() {
                break;
            }
        }
        Ok(self.left == 0)
    }
}

fn send(stream: &TcpStream, request: &[u8]) -> Result<(), Box<dyn Error>> {
    if rustix::net::send(stream, request, SendFlags::NOSIGNAL)? == request.len() {
        Ok(())
    } else {
        Err("a request did not fit into the socket's buffer".into())
    }
}

/// One exchange by hand: the answer is what comes until the server has nothing more to say for a while.
fn answer_length(plan: &Plan, request: &[u8]) -> Result<usize, Box<dyn Error>> {
    let mut stream = TcpStream::connect(plan.url.address)?;
    stream.write_all(request)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut length = 0;
    stream.set_read_timeout(Some(FIRST_ANSWER))?;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err("the server closed the connection after its first answer".into()),
            Ok(read) => length += read,
            Err(error) if length > 0 && error.kind() == ErrorKind::WouldBlock => return Ok(length),
            Err(error) => return Err(error.into()),
        }
        stream.set_read_timeout(Some(QUIET))?;
    }
}

const READ_BYTES: usize = 64 << 10;
/// How long the first answer may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// The silence after which the first answer is complete.
const QUIET: Duration = Duration::from_millis(100);
