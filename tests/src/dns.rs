//! A scripted name server for one test: it answers over UDP and TCP with what the test makes of each question.
//!
//! ```
//! use tests::dns::{DnsServer, Reply, a};
//!
//! let server = DnsServer::start(|question| match question.name.as_str() {
//!     "www.test." => Reply::found([a("www.test.", 60, "127.0.0.1")]),
//!     _ => Reply::not_found(1),
//! });
//! assert_eq!(server.questions().len(), 0);
//! ```

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::script::PATIENCE;

/// A name server on a free loopback port. Dropping it ends it.
pub struct DnsServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A question as it came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question {
    /// In lower case, with the last dot.
    pub name: String,
    /// What is asked for.
    pub kind: RecordType,
    /// Whether it came over TCP.
    pub tcp: bool,
}

/// What the server says.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Those of these records that fit the question, and all aliases.
    Records(Vec<Record>),
    /// This code and no record; with a time, a SOA record that says how long it holds (RFC 2308 §5).
    Code(ResponseCode, Option<u32>),
    /// An empty answer that does not fit into a datagram.
    Truncated,
}

impl Reply {
    /// These records, as far as they fit the question.
    pub fn found(records: impl IntoIterator<Item = Record>) -> Self {
        Self::Records(records.into_iter().collect())
    }

    /// NXDOMAIN, for so many seconds.
    pub fn not_found(ttl: u32) -> Self {
        Self::Code(ResponseCode::NXDomain, Some(ttl))
    }

    /// SERVFAIL.
    pub fn failure() -> Self {
        Self::Code(ResponseCode::ServFail, None)
    }
}

/// An address record, of whichever family.
pub fn a(owner: &str, ttl: u32, address: &str) -> Record {
    let address: IpAddr = address.parse().expect("an address");
    Record::from_rdata(name(owner), ttl, address.into())
}

fn name(text: &str) -> Name {
    Name::from_ascii(text).expect("a name")
}

struct Shared {
    answer: Box<dyn Fn(&Question) -> Reply + Send + Sync>,
    log: Mutex<Vec<Question>>,
    stopping: AtomicBool,
}

impl DnsServer {
    /// A server that answers each question with what `answer` makes of it, one after the other.
    pub fn start(answer: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().expect("a bound address");
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            log: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        let (over_udp, over_tcp) = (shared.clone(), shared.clone());
        let threads = vec![
            thread::spawn(move || serve_udp(&udp, &over_udp)),
            thread::spawn(move || serve_tcp(&tcp, &over_tcp)),
        ];
        Self {
            address,
            shared,
            threads,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All questions so far.
    pub fn questions(&self) -> Vec<Question> {
        let log = self.shared.log.lock();
        log.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often addresses of IPv4 were asked for under that name.
    pub fn asked(&self, name: &str) -> usize {
        let fits = |q: &&Question| q.name == name && q.kind == RecordType::A;
        self.questions().iter().filter(fits).count()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // One datagram and one connection, to wake the threads.
        if let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) {
            let _ = socket.send_to(&[], self.address);
        }
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// UDP and TCP on the same free port.
fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind on loopback");
        let address = udp.local_addr().expect("a bound address");
        if let Ok(tcp) = TcpListener::bind(address) {
            return (udp, tcp);
        }
    }
    panic!("no port is free for both UDP and TCP");
}

fn serve_udp(socket: &UdpSocket, shared: &Shared) {
    let mut buffer = [0; 4096];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        if let Some(reply) = shared.reply(&buffer[..length], false) {
            let _ = socket.send_to(&reply, from);
        }
    }
}

fn serve_tcp(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((mut stream, _)) = listener.accept() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        // An end by either side is the end of this connection alone.
        thread::spawn(move || _ = serve_stream(&mut stream, &shared));
    }
}

fn serve_stream(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut question)?;
        if let Some(reply) = shared.reply(&question, true) {
            let mut framed = (reply.len() as u16).to_be_bytes().to_vec();
            framed.extend(reply);
            stream.write_all(&framed)?;
        }
    }
}

impl Shared {
    fn reply(&self, bytes: &[u8], tcp: bool) -> Option<Vec<u8>> {
        let asked = Message::from_vec(bytes).ok()?;
        let query = asked.queries.first()?;
        let question = Question {
            name: query.name().to_ascii().to_ascii_lowercase(),
            kind: query.query_type(),
            tcp,
        };
        let log = self.log.lock();
        log.unwrap_or_else(PoisonError::into_inner)
            .push(question.clone());
        let mut reply = Message::response(asked.metadata.id, OpCode::Query);
        reply.metadata.recursion_desired = asked.metadata.recursion_desired;
        reply.metadata.recursion_available = true;
        reply.add_query(query.clone());
        match (self.answer)(&question) {
            Reply::Records(records) => {
                let fits = |record: &Record| {
                    let kind = record.record_type();
                    kind == question.kind || kind == RecordType::CNAME
                };
                reply.add_answers(records.into_iter().filter(fits));
            }
            Reply::Code(code, ttl) => {
                reply.metadata.response_code = code;
                if let Some(ttl) = ttl {
                    let zone = name("test.");
                    let soa = SOA::new(zone.clone(), zone.clone(), 1, 1, 1, 1, ttl);
                    reply.add_authority(Record::from_rdata(zone, ttl, RData::SOA(soa)));
                }
            }
            Reply::Truncated => reply.metadata.truncation = true,
        }
        reply.to_vec().ok()
    }
}
