//! An HTTP/1.1 server for the simulation. It answers each request with the id of the request, in every framing that the
//! protocol has, misbehaves with given probabilities, and keeps a journal of the requests that it received.
//!
//! It parses requests with its own simple code, so that a fault in the engine's parser cannot hide here.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use super::random::{Probability, Random};
use super::server::{Peer, SimServer};

/// A server that echoes ids. Clones share the journal and the connections: one server may listen at several addresses.
///
/// A request has an `X-Id` header with a decimal number. The answer has the same `X-Id`, the length of its body in
/// `X-Body`, a digest of the request's body in `X-Got` (see [`HttpServer::digest`]), and a body that depends only on id
/// and length ([`HttpServer::body`]). So a test detects the answer to another request, and a body with a missing, added
/// or misplaced byte, in every framing.
///
/// The server is also a proxy: it answers requests for absolute URLs, and after CONNECT, or after SOCKS5 if
/// [`Behaviour::socks`] is set, it answers instead of the server that the tunnel is for.
#[derive(Clone, Debug, Default)]
pub struct HttpServer(Rc<RefCell<ServerState>>);

#[derive(Debug, Default)]
struct ServerState {
    behaviour: Behaviour,
    connections: BTreeMap<u64, Conversation>,
    journal: Vec<ReceivedRequest>,
}

/// One request that the server received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReceivedRequest {
    /// When the head was complete.
    pub at: Instant,
    /// The connection that the request came on.
    pub connection: u64,
    /// The method.
    pub method: String,
    /// The target; the path of an absolute URL.
    pub target: String,
    /// The server that the request is for: from the URL, otherwise from `Host`.
    pub host: String,
    /// The number in `X-Id`; 0 without one.
    pub id: u64,
    /// Head and body arrived completely.
    pub whole: bool,
    /// Not answered, because the connection ended with an answer before, and processed if `whole`
    /// ([`Behaviour::reads_on`]).
    pub ignored: bool,
}

/// How the server answers. Default: at once, keep-alive without a limit, bodies of up to 200 bytes, no faults.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Time between a request and its answer.
    pub think: RangeInclusive<Duration>,
    /// Size of the bodies of answers.
    pub body: RangeInclusive<usize>,
    /// Closes a connection that was idle for this long. Default: never.
    pub idle: Option<Duration>,
    /// Announces `idle` in a `Keep-Alive` header, rounded down to seconds.
    pub tells_idle: Probability,
    /// Answers with `Connection: close` and closes.
    pub close: Probability,
    /// Closes after an answer without announcing it.
    pub silent_close: Probability,
    /// When it closes after an answer, announced or not, it has processed the requests that came after that one, and does
    /// not answer them.
    pub reads_on: Probability,
    /// Answers as HTTP/1.0, with or without `Connection: keep-alive`.
    pub http10: Probability,
    /// Sends interim (1xx) responses first.
    pub interim: Probability,
    /// Answers before the body of the request has come, and closes.
    pub early: Probability,
    /// Sends no `100 Continue` although the request expects it: the client has to send its body after its wait.
    pub mute_expect: Probability,
    /// Stops reading for a while after the head of a request.
    pub deaf: Probability,
    /// Pauses inside an answer.
    pub drip: Probability,
    /// Ends the connection (FIN) inside an answer, where the framing reveals it.
    pub cut: Probability,
    /// Resets the connection inside an answer.
    pub reset: Probability,
    /// Sends nothing more, inside an answer.
    pub stall: Probability,
    /// Sends bytes that are not a response after an answer.
    pub surplus: Probability,
    /// Sends bytes, or an answer without a request, on a connection that was idle for a while.
    pub unasked: Probability,
    /// Sends an answer without a request directly after an answer, with an `X-Extra` header.
    pub extra: Probability,
    /// Sends bytes that are not a response instead of an answer.
    pub garbage: Probability,
    /// Closes or resets a connection shortly after its start, whatever happens on it then.
    pub slam: Probability,
    /// Ends its sending side of a connection after an answer, and keeps reading.
    pub half_close: Probability,
    /// Sends a head of more than 4,000 bytes.
    pub bloat: Probability,
    /// Sends endless interim (1xx) responses.
    pub babble: Probability,
    /// Sends endless chunks.
    pub flood: Probability,
    /// Of these chunks, the first 24 MiB arrive at once.
    pub torrent: Probability,
    /// Announces a longer body than it sends, and ends the connection or sends nothing more.
    pub lies: Probability,
    /// Answers 429, 502, 503 or 504.
    pub busy: Probability,
    /// Such an answer has `Retry-After` with so many seconds, as a number or as a date, and `X-Patience` with the
    /// number. Default: no `Retry-After`.
    pub patience: Option<RangeInclusive<u64>>,
    /// Expects a SOCKS5 handshake on its connections.
    pub socks: bool,
    /// As a proxy, refuses to connect to the target.
    pub refuses: Probability,
    /// Redirects a request whose target ends in a number to the same target with the next number.
    pub redirect: Probability,
    /// The servers to redirect to: the beginnings of URLs, like `http://other.sim:81`; an empty one is this server.
    /// Default: this server.
    pub redirect_to: Vec<String>,
    /// Numbers from this one on are not redirected. Default 5.
    pub last_hop: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            think: Duration::ZERO..=Duration::ZERO,
            body: 0..=200,
            idle: None,
            tells_idle: Probability::NEVER,
            close: Probability::NEVER,
            silent_close: Probability::NEVER,
            reads_on: Probability::NEVER,
            http10: Probability::NEVER,
            interim: Probability::NEVER,
            early: Probability::NEVER,
            mute_expect: Probability::NEVER,
            deaf: Probability::NEVER,
            drip: Probability::NEVER,
            cut: Probability::NEVER,
            reset: Probability::NEVER,
            stall: Probability::NEVER,
            surplus: Probability::NEVER,
            unasked: Probability::NEVER,
            extra: Probability::NEVER,
            garbage: Probability::NEVER,
            slam: Probability::NEVER,
            half_close: Probability::NEVER,
            bloat: Probability::NEVER,
            babble: Probability::NEVER,
            flood: Probability::NEVER,
            torrent: Probability::NEVER,
            lies: Probability::NEVER,
            busy: Probability::NEVER,
            patience: None,
            socks: false,
            refuses: Probability::NEVER,
            redirect: Probability::NEVER,
            redirect_to: vec![String::new()],
            last_hop: 5,
        }
    }
}

impl Behaviour {
    /// The `Location` of the answer, if this request is redirected.
    fn redirect_location(&self, random: &mut Random, request: &Request) -> Option<String> {
        if !random.roll(self.redirect) {
            return None;
        }
        let (path, hop) = request.target.rsplit_once('/')?;
        let hop: u64 = hop.parse().ok().filter(|hop| *hop < self.last_hop)?;
        Some(format!(
            "{}{path}/{}",
            random.pick(&self.redirect_to),
            hop + 1
        ))
    }
}

impl HttpServer {
    /// A server with this behaviour.
    pub fn new(behaviour: Behaviour) -> Self {
        Self(Rc::new(RefCell::new(ServerState {
            behaviour,
            ..ServerState::default()
        })))
    }

    /// The requests received so far, in order.
    pub fn journal(&self) -> Ref<'_, [ReceivedRequest]> {
        Ref::map(self.0.borrow(), |state| state.journal.as_slice())
    }

    /// The body of the answer to request `id` with this length.
    pub fn body(id: u64, length: usize) -> Vec<u8> {
        let mut random = Random::new(id);
        let mut body = Vec::with_capacity(length + 8);
        while body.len() < length {
            body.extend_from_slice(&random.number().to_le_bytes());
        }
        body.truncate(length);
        body
    }

    /// The value of `X-Got` for the body of a request: its length and its FNV-1a hash.
    pub fn digest(body: &[u8]) -> String {
        let hash = body.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{}-{hash:016x}", body.len())
    }
}

impl SimServer for HttpServer {
    fn on_connect(&mut self, peer: &mut Peer<'_>) {
        let mut state = self.0.borrow_mut();
        let idle = state.behaviour.idle;
        let conversation = Conversation::default();
        conversation.watch_idle(peer, idle);
        if peer.random().roll(state.behaviour.slam) {
            let after = peer.random().duration(&(Duration::ZERO..=SLAM_WITHIN));
            peer.timer(after, SLAM);
        }
        state.connections.insert(peer.connection(), conversation);
    }

    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let ServerState {
            behaviour,
            connections,
            journal,
        } = &mut *self.0.borrow_mut();
        let conversation = connections.entry(peer.connection()).or_default();
        conversation.received += 1;
        conversation.buffer.extend_from_slice(data);
        while conversation.advance(peer, behaviour, journal) {}
    }

    fn on_timer(&mut self, peer: &mut Peer<'_>, timer: u64) {
        let mut state = self.0.borrow_mut();
        let Some(conversation) = state.connections.get_mut(&peer.connection()) else {
            return;
        };
        match timer {
            // The end of a stalled body must not look like its regular end.
            SLAM if conversation.closed || peer.random().within(0..=1) == 0 => {
                conversation.closed = true;
                peer.reset();
            }
            SLAM => conversation.hang_up(peer),
            ENDLESS => conversation.send_endless_piece(peer),
            _ if conversation.received == timer => conversation.hang_up(peer),
            _ => {}
        }
    }

    fn on_close(&mut self, peer: &mut Peer<'_>) {
        self.0.borrow_mut().connections.remove(&peer.connection());
    }
}

/// One connection, from the server's side.
#[derive(Debug, Default)]
struct Conversation {
    buffer: Vec<u8>,
    /// The request whose body has not come completely.
    current: Option<Request>,
    /// Counts pieces of data and requests: an idle timer with an older count is void.
    received: u64,
    /// The connection is closed, or about to be.
    closed: bool,
    /// A piece that is sent again and again.
    endless: Option<Vec<u8>>,
    socks: Socks,
}

/// The progress of a SOCKS5 handshake (RFC 1928).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Socks {
    #[default]
    Greeting,
    Request,
    Done,
}

#[derive(Debug)]
struct Request {
    /// Its index in the journal.
    entry: usize,
    id: u64,
    method: String,
    target: String,
    keep_alive: bool,
    body: BodyFraming,
    got: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum BodyFraming {
    Length(usize),
    Chunked,
}

impl Conversation {
    /// Processes the next part of what has arrived. Returns `false` if there is too little.
    fn advance(
        &mut self,
        peer: &mut Peer<'_>,
        behaviour: &Behaviour,
        journal: &mut Vec<ReceivedRequest>,
    ) -> bool {
        if self.closed {
            return false;
        }
        if behaviour.socks && self.socks != Socks::Done {
            return self.socks_handshake(peer, behaviour);
        }
        let Some(mut request) = self.current.take() else {
            return self.receive_request(peer, behaviour, journal);
        };
        if !request.take_body(&mut self.buffer) {
            self.current = Some(request);
            return false;
        }
        if let Some(received_request) = journal.get_mut(request.entry) {
            received_request.whole = true;
        }
        self.answer(peer, behaviour, journal, &request);
        true
    }

    /// One step of SOCKS5, without authentication. Returns `false` if there is too little.
    fn socks_handshake(&mut self, peer: &mut Peer<'_>, behaviour: &Behaviour) -> bool {
        let Some(&second) = self.buffer.get(1) else {
            return false;
        };
        let length = match (self.socks, self.buffer.get(3..5)) {
            (Socks::Greeting, _) => 2 + usize::from(second),
            (_, Some([1, _])) => 10,
            (_, Some([4, _])) => 22,
            (_, Some([_, name])) => 7 + usize::from(*name),
            _ => return false,
        };
        if self.buffer.len() < length {
            return false;
        }
        self.buffer.drain(..length);
        let think = peer.random().duration(&behaviour.think);
        peer.wait(think);
        if self.socks == Socks::Greeting {
            peer.send([5, 0]);
            self.socks = Socks::Request;
            return true;
        }
        let refused = peer.random().roll(behaviour.refuses);
        let code = if refused {
            *peer.random().pick(&[1, 2, 3, 4, 5, 8])
        } else {
            0
        };
        peer.send([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
        if refused {
            self.hang_up(peer);
        }
        self.socks = Socks::Done;
        true
    }

    /// Answers CONNECT: opens the tunnel or refuses it.
    fn connect(&mut self, peer: &mut Peer<'_>, behaviour: &Behaviour) {
        let think = peer.random().duration(&behaviour.think);
        peer.wait(think);
        if peer.random().roll(behaviour.refuses) {
            let status = *peer.random().pick(&[403, 407, 502]);
            peer.send(format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n"));
            return self.hang_up(peer);
        }
        peer.send("HTTP/1.1 200 Connected\r\n\r\n");
    }

    /// Sends the endless piece once more.
    fn send_endless_piece(&mut self, peer: &mut Peer<'_>) {
        if let Some(piece) = &self.endless {
            peer.send(piece.clone());
            let pause = peer.random().duration(&(Duration::ZERO..=ENDLESS_PAUSE));
            peer.timer(pause, ENDLESS);
        }
    }

    /// Parses the head of a request. Returns `false` if it is not complete.
    fn receive_request(
        &mut self,
        peer: &mut Peer<'_>,
        behaviour: &Behaviour,
        journal: &mut Vec<ReceivedRequest>,
    ) -> bool {
        let Some(head) = self.take_head() else {
            return false;
        };
        // The request may have come together with the one before. The idle timer was set after the answer to that one.
        self.received += 1;
        if head.starts_with("CONNECT ") {
            self.connect(peer, behaviour);
            return true;
        }
        let mut request = Request::parse(&head, peer, journal);
        if peer.random().roll(behaviour.deaf) {
            let pause = peer.random().duration(&behaviour.think);
            peer.stop_reading();
            peer.wait(pause);
            peer.start_reading();
        }
        let has_body = !matches!(request.body, BodyFraming::Length(0));
        if has_body && peer.random().roll(behaviour.early) {
            request.keep_alive = false;
            self.answer(peer, behaviour, journal, &request);
            return false;
        }
        if value(&head, "Expect").is_some() && !peer.random().roll(behaviour.mute_expect) {
            let think = peer.random().duration(&behaviour.think);
            peer.wait(think);
            peer.send("HTTP/1.1 100 Continue\r\n\r\n");
        }
        self.current = Some(request);
        true
    }

    /// Answers the request, and ends the connection if the answer says so.
    fn answer(
        &mut self,
        peer: &mut Peer<'_>,
        behaviour: &Behaviour,
        journal: &mut Vec<ReceivedRequest>,
        request: &Request,
    ) {
        let think = peer.random().duration(&behaviour.think);
        peer.wait(think);
        if peer.random().roll(behaviour.garbage) {
            peer.send("SSH-2.0-OpenSSH_9.9\r\n");
            return self.hang_up(peer);
        }
        if peer.random().roll(behaviour.babble) {
            return self.send_endlessly(peer, "HTTP/1.1 102 Processing\r\n\r\n");
        }
        let has_body = request.method != "HEAD";
        if has_body && peer.random().roll(behaviour.flood) {
            let (id, got) = (request.id, HttpServer::digest(&request.got));
            peer.send(format!(
                "HTTP/1.1 200 Simulated\r\nX-Id: {id}\r\nX-Body: 0\r\nX-Got: {got}\r\n\
                 Transfer-Encoding: chunked\r\n\r\n"
            ));
            if peer.random().roll(behaviour.torrent) {
                let chunk = format!("1000\r\n{}\r\n", "e".repeat(0x1000));
                peer.send_at_once(chunk.repeat(TORRENT / chunk.len()));
            }
            return self.send_endlessly(peer, "8\r\nendless!\r\n");
        }
        let answer = Answer::draw(peer.random(), behaviour, request);
        let end = answer.send(peer, behaviour);
        match end {
            AnswerEnd::Whole => {}
            AnswerEnd::Stalled => return self.closed = true,
            AnswerEnd::Fin => return self.hang_up(peer),
            AnswerEnd::Reset => {
                self.closed = true;
                return peer.reset();
            }
        }
        // After a body that ends with the connection, these bytes would belong to the body.
        if !answer.until_close && peer.random().roll(behaviour.surplus) {
            peer.send("\0surplus");
        }
        // A client that has sent its next request by then takes this for the answer. So the server sends no other
        // answer.
        if !answer.until_close && peer.random().roll(behaviour.extra) {
            self.closed = true;
            return peer.send(EXTRA);
        }
        if answer.closes || peer.random().roll(behaviour.silent_close) {
            if request.is_whole(journal) && peer.random().roll(behaviour.reads_on) {
                self.process_silently(peer, journal);
            }
            return self.hang_up(peer);
        }
        if peer.random().roll(behaviour.half_close) {
            self.closed = true;
            return peer.shutdown();
        }
        if peer.random().roll(behaviour.unasked) {
            let pause = peer.random().duration(&(Duration::ZERO..=SLAM_WITHIN));
            peer.wait(pause);
            let what = *peer.random().pick(&["\0", EXTRA]);
            self.closed = true;
            return peer.send(what);
        }
        self.watch_idle(peer, behaviour.idle);
    }

    /// Takes the requests that have come, without answers.
    fn process_silently(&mut self, peer: &Peer<'_>, journal: &mut Vec<ReceivedRequest>) {
        while let Some(head) = self.take_head() {
            let mut request = Request::parse(&head, peer, journal);
            let received = &mut journal[request.entry];
            received.ignored = true;
            received.whole = request.take_body(&mut self.buffer);
            if !received.whole {
                return;
            }
        }
    }

    /// Removes the head of a request from the buffer, if it is complete.
    fn take_head(&mut self) -> Option<String> {
        let end = self.buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        Some(String::from_utf8_lossy(&head).into_owned())
    }

    fn send_endlessly(&mut self, peer: &mut Peer<'_>, piece: &str) {
        self.closed = true;
        self.endless = Some(piece.into());
        self.send_endless_piece(peer);
    }

    fn hang_up(&mut self, peer: &mut Peer<'_>) {
        self.closed = true;
        peer.close();
    }

    fn watch_idle(&self, peer: &mut Peer<'_>, idle: Option<Duration>) {
        if let Some(idle) = idle {
            peer.timer(idle, self.received);
        }
    }
}

impl Request {
    /// Parses a head, and adds the request to the journal.
    fn parse(head: &str, peer: &Peer<'_>, journal: &mut Vec<ReceivedRequest>) -> Self {
        let mut words = head.split([' ', '\r']);
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        // A proxy gets an absolute URL.
        let url = target.strip_prefix("http://");
        let url = url.map(|rest| rest.split_at(rest.find('/').unwrap_or(rest.len())));
        let (host, target) = url.unwrap_or((value(head, "Host").unwrap_or_default(), target));
        let (host, target) = (host.to_owned(), target.to_owned());
        let id = value(head, "X-Id")
            .and_then(|id| id.parse().ok())
            .unwrap_or(0);
        let body = match value(head, "Content-Length") {
            _ if value(head, "Transfer-Encoding").is_some() => BodyFraming::Chunked,
            length => BodyFraming::Length(length.and_then(|n| n.parse().ok()).unwrap_or(0)),
        };
        let request = Self {
            entry: journal.len(),
            id,
            method: method.clone(),
            target: target.clone(),
            keep_alive: value(head, "Connection") != Some("close"),
            body,
            got: Vec::new(),
        };
        journal.push(ReceivedRequest {
            at: peer.now(),
            connection: peer.connection(),
            method,
            target,
            host,
            id,
            whole: false,
            ignored: false,
        });
        request
    }

    fn is_whole(&self, journal: &[ReceivedRequest]) -> bool {
        journal
            .get(self.entry)
            .is_some_and(|received| received.whole)
    }

    /// Moves the bytes of the body out of the buffer. Returns `true` once the body is complete.
    fn take_body(&mut self, buffer: &mut Vec<u8>) -> bool {
        match self.body {
            BodyFraming::Length(length) => {
                let n = buffer.len().min(length - self.got.len());
                self.got.extend(buffer.drain(..n));
                self.got.len() == length
            }
            BodyFraming::Chunked => {
                while let Some((line, size)) = chunk_line(buffer) {
                    let end = line + size + 2;
                    if size == 0 {
                        return take_trailers(buffer, line);
                    }
                    if buffer.len() < end {
                        return false;
                    }
                    self.got.extend_from_slice(&buffer[line..end - 2]);
                    buffer.drain(..end);
                }
                false
            }
        }
    }
}

/// An answer, decided completely before its first byte is sent.
struct Answer {
    interim: usize,
    head: String,
    body: Vec<u8>,
    /// The body goes out as it is, or in chunks.
    chunked: bool,
    /// The end of the body is the end of the connection.
    until_close: bool,
    closes: bool,
    /// The head announces a longer body than is sent.
    lies: bool,
}

/// How the sending of an answer ended.
enum AnswerEnd {
    Whole,
    Stalled,
    Fin,
    Reset,
}

impl Answer {
    fn draw(random: &mut Random, behaviour: &Behaviour, request: &Request) -> Self {
        let location = behaviour.redirect_location(random, request);
        let busy = location.is_none() && random.roll(behaviour.busy);
        let status = match location {
            Some(_) => *random.pick(&[301, 302, 303, 307, 308]),
            None if busy => *random.pick(&[429, 502, 503, 504]),
            None => *random.pick(&[200, 200, 200, 200, 204, 304, 404, 503]),
        };
        let http10 = random.roll(behaviour.http10);
        let says_close = !request.keep_alive || random.roll(behaviour.close);
        let length = random.within(behaviour.body.clone());
        let lies = random.roll(behaviour.lies);
        let bodiless = request.method == "HEAD" || status == 204 || status == 304;
        // 0: Content-Length, 1: chunked, 2: until close.
        let framing = random.within(0..=2);
        let chunked = framing == 1 && !http10 && status != 204;
        let until_close = framing == 2 && !bodiless;
        let keeps_10 = http10 && random.within(0..=1) == 1;
        let closes = says_close || until_close || (http10 && !keeps_10);

        let mut head = format!(
            "HTTP/1.{} {status} Simulated\r\nX-Id: {}\r\nX-Body: {}\r\nX-Got: {}\r\n",
            u8::from(!http10),
            request.id,
            if bodiless { 0 } else { length },
            HttpServer::digest(&request.got),
        );
        if let Some(location) = location {
            head.push_str(&format!("Location: {location}\r\n"));
        }
        if let Some(patience) = behaviour.patience.as_ref().filter(|_| busy) {
            head.push_str(&retry_after(random, patience));
        }
        if random.roll(behaviour.bloat) {
            head.push_str(&format!("X-Bloat: {}\r\n", "x".repeat(4_000)));
        }
        if chunked {
            head.push_str("Transfer-Encoding: chunked\r\n");
        } else if !until_close && status != 204 {
            let more = if lies { random.within(1..=100) } else { 0 };
            head.push_str(&format!("Content-Length: {}\r\n", length + more));
        }
        if says_close || (closes && !http10 && random.within(0..=1) == 1) {
            head.push_str("Connection: close\r\n");
        } else if keeps_10 && !closes {
            head.push_str("Connection: keep-alive\r\n");
        }
        if let Some(idle) = behaviour.idle
            && random.roll(behaviour.tells_idle)
        {
            head.push_str(&format!("Keep-Alive: timeout={}\r\n", idle.as_secs()));
        }
        head.push_str("\r\n");
        let interim = if random.roll(behaviour.interim) {
            random.within(1..=3)
        } else {
            0
        };
        let body = if bodiless {
            Vec::new()
        } else {
            HttpServer::body(request.id, length)
        };
        Self {
            interim,
            head,
            body,
            chunked: chunked && !bodiless,
            until_close,
            closes,
            lies: lies && !bodiless && !chunked && !until_close,
        }
    }

    fn send(&self, peer: &mut Peer<'_>, behaviour: &Behaviour) -> AnswerEnd {
        let mut bytes = Vec::new();
        for _ in 0..self.interim {
            let status =
                *peer
                    .random()
                    .pick(&["100 Continue", "102 Processing", "103 Early Hints"]);
            bytes
                .extend_from_slice(format!("HTTP/1.1 {status}\r\nX-Interim: 1\r\n\r\n").as_bytes());
        }
        bytes.extend_from_slice(self.head.as_bytes());
        if self.chunked {
            push_chunks(&mut bytes, &self.body, peer.random());
        } else {
            bytes.extend_from_slice(&self.body);
        }
        let end = self.draw_end(peer.random(), behaviour);
        if !matches!(end, AnswerEnd::Whole) && !self.lies {
            let keep = peer.random().within(0..=bytes.len() - 1);
            bytes.truncate(keep);
        }
        if peer.random().roll(behaviour.drip) {
            let at = peer.random().within(0..=bytes.len());
            let rest = bytes.split_off(at);
            peer.send(std::mem::replace(&mut bytes, rest));
            let pause = peer.random().duration(&behaviour.think);
            peer.wait(pause);
        }
        peer.send(bytes);
        end
    }

    fn draw_end(&self, random: &mut Random, behaviour: &Behaviour) -> AnswerEnd {
        // A body that ends with the connection must not end early by FIN, which looks like a shorter body: it is reset.
        if self.lies {
            return if random.within(0..=1) == 0 {
                AnswerEnd::Fin
            } else {
                AnswerEnd::Stalled
            };
        }
        if random.roll(behaviour.reset) || (self.until_close && random.roll(behaviour.cut)) {
            AnswerEnd::Reset
        } else if !self.until_close && random.roll(behaviour.cut) {
            AnswerEnd::Fin
        } else if random.roll(behaviour.stall) {
            AnswerEnd::Stalled
        } else {
            AnswerEnd::Whole
        }
    }
}

/// `Retry-After` with a random time, in seconds or as a date after the `Date` of the answer.
fn retry_after(random: &mut Random, seconds: &RangeInclusive<u64>) -> String {
    let (first, last) = (*seconds.start() as usize, *seconds.end() as usize);
    let seconds = random.within(first..=last) as u64;
    let plain = format!("X-Patience: {seconds}\r\n");
    if random.within(0..=1) == 0 {
        return format!("{plain}Retry-After: {seconds}\r\n");
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let until = now + Duration::from_secs(seconds);
    let [now, until] = [now, until].map(httpdate::fmt_http_date);
    format!("{plain}Date: {now}\r\nRetry-After: {until}\r\n")
}

/// Chunks of any size, some with an extension, sometimes with trailers at the end.
fn push_chunks(bytes: &mut Vec<u8>, mut body: &[u8], random: &mut Random) {
    while !body.is_empty() {
        let (chunk, rest) = body.split_at(random.within(1..=body.len()));
        let extension = *random.pick(&["", "", ";a=b", ";q=\"x;y\""]);
        bytes.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        body = rest;
    }
    bytes.extend_from_slice(
        random
            .pick(&["0\r\n\r\n", "0\r\nX-Trailer: 1\r\n\r\n"])
            .as_bytes(),
    );
}

/// The value of the first header with this name in a head, ignoring case.
fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Where the data of the first chunk begins, and its length.
fn chunk_line(buffer: &[u8]) -> Option<(usize, usize)> {
    let end = buffer.windows(2).position(|w| w == b"\r\n")?;
    let digits = std::str::from_utf8(&buffer[..end]).ok()?;
    Some((end + 2, usize::from_str_radix(digits, 16).ok()?))
}

/// Removes the last chunk and the trailers from the buffer, if they are complete.
fn take_trailers(buffer: &mut Vec<u8>, line: usize) -> bool {
    // The empty line after the trailers follows the line end of the last chunk or of a trailer.
    let end = buffer[line - 2..].windows(4).position(|w| w == b"\r\n\r\n");
    match end {
        Some(at) => {
            buffer.drain(..line - 2 + at + 4);
            true
        }
        None => false,
    }
}

/// An answer to no request.
const EXTRA: &str = "HTTP/1.1 408 Request Timeout\r\nX-Extra: 1\r\nContent-Length: 0\r\n\r\n";

/// Timers other than the idle timer.
const SLAM: u64 = u64::MAX;
const ENDLESS: u64 = u64::MAX - 1;

/// The latest time at which a connection is slammed, or at which unasked bytes come.
const SLAM_WITHIN: Duration = Duration::from_millis(500);

/// Bytes that arrive at once: far more than a client may read in one iteration.
const TORRENT: usize = 24 * 1024 * 1024;
/// The longest pause between endless pieces.
const ENDLESS_PAUSE: Duration = Duration::from_millis(100);
