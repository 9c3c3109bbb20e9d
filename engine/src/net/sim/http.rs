//! An HTTP/1.1 server for the simulation: it answers each request with the request's own id, in every framing that
//! the protocol has, misbehaves as often as told, and keeps a journal of what it heard.
//!
//! It reads requests by its own few lines rather than by the engine's parser, so that an error there cannot hide.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use super::random::{Odds, Random};
use super::server::{Peer, SimServer};

/// A server that echoes ids. Clones share the journal and the connections: one server may listen at several addresses.
///
/// A request names itself by an `X-Id` header with a decimal number. The answer carries the same `X-Id`, the length
/// of its body in `X-Body`, what arrived as the request's body in `X-Got` (by [`HttpServer::digest`]), and a body
/// that follows from id and length alone ([`HttpServer::body`]). So an answer that belongs to another request, and a
/// body with a byte missing, too many or in the wrong place, can be told, whatever the framing.
///
/// It is a proxy, too: it answers requests for whole URLs, and behind CONNECT, or behind SOCKS5 if its
/// [`Behaviour::socks`] says so, it answers in the place of whichever server the tunnel is for.
#[derive(Clone, Debug, Default)]
pub struct HttpServer(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    behaviour: Behaviour,
    connections: BTreeMap<u64, Conversation>,
    journal: Vec<Heard>,
}

/// One request as the server heard it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Heard {
    /// When its head was complete.
    pub at: Instant,
    /// On which connection.
    pub connection: u64,
    /// The method.
    pub method: String,
    /// The target; of a whole URL, the path.
    pub target: String,
    /// Whom it is for: what the URL says, else `Host`.
    pub host: String,
    /// The number in `X-Id`; 0 without one.
    pub id: u64,
    /// Head and body arrived in full.
    pub whole: bool,
}

/// How the server answers. Default: at once, keep-alive without a limit, bodies up to 200 bytes, no mischief.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Time between a request and its answer.
    pub think: RangeInclusive<Duration>,
    /// Size of answer bodies.
    pub body: RangeInclusive<usize>,
    /// Closes a connection that was idle for so long. Default: never.
    pub idle: Option<Duration>,
    /// Tells `idle` in a `Keep-Alive` header, rounded down to seconds.
    pub tells_idle: Odds,
    /// Answers with `Connection: close` and closes.
    pub close: Odds,
    /// Closes after an answer without having said so.
    pub silent_close: Odds,
    /// Answers as HTTP/1.0, with or without `Connection: keep-alive`.
    pub http10: Odds,
    /// Sends interim (1xx) responses first.
    pub interim: Odds,
    /// Answers before the request's body is in, and closes.
    pub early: Odds,
    /// Sends no `100 Continue` although asked to: the client has to send its body unasked.
    pub mute_expect: Odds,
    /// Stops reading for a while when a request's head is in.
    pub deaf: Odds,
    /// Pauses inside an answer.
    pub drip: Odds,
    /// Ends the connection (FIN) inside an answer, where the framing shows it.
    pub cut: Odds,
    /// Resets the connection inside an answer.
    pub reset: Odds,
    /// Goes silent inside an answer.
    pub stall: Odds,
    /// Sends bytes that are no response after an answer.
    pub surplus: Odds,
    /// Sends bytes, or an answer to nothing, on a connection that has been idle for a while.
    pub unasked: Odds,
    /// Sends an answer to nothing behind an answer, with an `X-Extra` header.
    pub extra: Odds,
    /// Sends bytes that are no response instead of an answer.
    pub garbage: Odds,
    /// Closes or resets a connection after its first moments, whatever it does by then.
    pub slam: Odds,
    /// Ends its side of a connection after an answer, and leaves the other side open.
    pub half_close: Odds,
    /// Sends a head of 4,000 bytes and more.
    pub bloat: Odds,
    /// Sends interim (1xx) responses without end.
    pub babble: Odds,
    /// Sends chunks without end.
    pub flood: Odds,
    /// Announces a longer body than it has, and ends or leaves it at that.
    pub lies: Odds,
    /// Answers 429, 502, 503 or 504.
    pub busy: Odds,
    /// Then it asks for so many seconds of patience, as they are or by a date; `X-Patience` tells them in any case.
    /// Default: it does not.
    pub patience: Option<RangeInclusive<u64>>,
    /// Expects SOCKS5 on its connections.
    pub socks: bool,
    /// As a proxy, refuses to connect.
    pub refuses: Odds,
    /// Redirects a request whose target ends in a number, to the same target with the next number.
    pub redirect: Odds,
    /// On which servers: the beginnings of URLs, like `http://other.sim:81`; an empty one is this server. Default:
    /// this server.
    pub redirect_to: Vec<String>,
    /// The number from which on nothing is redirected. Default 5.
    pub last_hop: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            think: Duration::ZERO..=Duration::ZERO,
            body: 0..=200,
            idle: None,
            tells_idle: Odds::NEVER,
            close: Odds::NEVER,
            silent_close: Odds::NEVER,
            http10: Odds::NEVER,
            interim: Odds::NEVER,
            early: Odds::NEVER,
            mute_expect: Odds::NEVER,
            deaf: Odds::NEVER,
            drip: Odds::NEVER,
            cut: Odds::NEVER,
            reset: Odds::NEVER,
            stall: Odds::NEVER,
            surplus: Odds::NEVER,
            unasked: Odds::NEVER,
            extra: Odds::NEVER,
            garbage: Odds::NEVER,
            slam: Odds::NEVER,
            half_close: Odds::NEVER,
            bloat: Odds::NEVER,
            babble: Odds::NEVER,
            flood: Odds::NEVER,
            lies: Odds::NEVER,
            busy: Odds::NEVER,
            patience: None,
            socks: false,
            refuses: Odds::NEVER,
            redirect: Odds::NEVER,
            redirect_to: vec![String::new()],
            last_hop: 5,
        }
    }
}

impl Behaviour {
    /// Where to, if this request is redirected.
    fn redirection(&self, random: &mut Random, request: &Request) -> Option<String> {
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
    /// A server that behaves so.
    pub fn new(behaviour: Behaviour) -> Self {
        Self(Rc::new(RefCell::new(State {
            behaviour,
            ..State::default()
        })))
    }

    /// What it heard so far, in order.
    pub fn journal(&self) -> Ref<'_, [Heard]> {
        Ref::map(self.0.borrow(), |state| state.journal.as_slice())
    }

    /// The body of the answer to request `id`, when it is `length` bytes long.
    pub fn body(id: u64, length: usize) -> Vec<u8> {
        let mut random = Random::new(id);
        let mut body = Vec::with_capacity(length + 8);
        while body.len() < length {
            body.extend_from_slice(&random.number().to_le_bytes());
        }
        body.truncate(length);
        body
    }

    /// What `X-Got` says of a request body: its length and its FNV-1a hash.
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
            let after = peer.random().duration(&(Duration::ZERO..=FIRST_MOMENTS));
            peer.timer(after, SLAM);
        }
        state.connections.insert(peer.connection(), conversation);
    }

    fn on_data(&mut self, peer: &mut Peer<'_>, data: &[u8]) {
        let State {
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
            // The end of a body that has stalled must not look like its proper end.
            SLAM if conversation.over || peer.random().within(0..=1) == 0 => {
                conversation.over = true;
                peer.reset();
            }
            SLAM => conversation.hang_up(peer),
            ENDLESS => conversation.go_on(peer),
            _ if conversation.received == timer => conversation.hang_up(peer),
            _ => {}
        }
    }

    fn on_close(&mut self, peer: &mut Peer<'_>) {
        self.0.borrow_mut().connections.remove(&peer.connection());
    }
}

/// One connection as the server sees it.
#[derive(Debug, Default)]
struct Conversation {
    buffer: Vec<u8>,
    /// The request whose body is being awaited.
    current: Option<Request>,
    /// How many pieces of data and requests came: the idle timer that was set before the last one is void.
    received: u64,
    /// Closed, or about to be.
    over: bool,
    /// What is sent again and again.
    endless: Option<Vec<u8>>,
    socks: Socks,
}

/// How far the handshake of a SOCKS5 proxy has got (RFC 1928).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Socks {
    #[default]
    Greeting,
    Request,
    Done,
}

#[derive(Debug)]
struct Request {
    /// Its place in the journal.
    entry: usize,
    id: u64,
    method: String,
    target: String,
    keep_alive: bool,
    body: Coding,
    got: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Coding {
    Length(usize),
    Chunked,
}

impl Conversation {
    /// One step on what has arrived; `false` when there is too little for one.
    fn advance(
        &mut self,
        peer: &mut Peer<'_>,
        behaviour: &Behaviour,
        journal: &mut Vec<Heard>,
    ) -> bool {
        if self.over {
            return false;
        }
        if behaviour.socks && self.socks != Socks::Done {
            return self.shake_hands(peer, behaviour);
        }
        let Some(mut request) = self.current.take() else {
            return self.hear(peer, behaviour, journal);
        };
        if !request.take_body(&mut self.buffer) {
            self.current = Some(request);
            return false;
        }
        if let Some(heard) = journal.get_mut(request.entry) {
            heard.whole = true;
        }
        self.answer(peer, behaviour, &request, request.keep_alive);
        true
    }

    /// A step of SOCKS5, without authentication; `false` when there is too little for one.
    fn shake_hands(&mut self, peer: &mut Peer<'_>, behaviour: &Behaviour) -> bool {
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

    /// Opens a tunnel, or not.
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

    /// Sends one more of what has no end.
    fn go_on(&mut self, peer: &mut Peer<'_>) {
        if let Some(piece) = &self.endless {
            peer.send(piece.clone());
            let pause = peer.random().duration(&(Duration::ZERO..=ENDLESS_PAUSE));
            peer.timer(pause, ENDLESS);
        }
    }

    /// Takes a head off the buffer.
    fn hear(
        &mut self,
        peer: &mut Peer<'_>,
        behaviour: &Behaviour,
        journal: &mut Vec<Heard>,
    ) -> bool {
        let end = self.buffer.windows(4).position(|w| w == b"\r\n\r\n");
        let Some(end) = end.map(|at| at + 4) else {
            return false;
        };
        // It may have come together with the one before, after whose answer the idle timer was set.
        self.received += 1;
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let head = String::from_utf8_lossy(&head);
        let mut words = head.split([' ', '\r']);
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        if method == "CONNECT" {
            self.connect(peer, behaviour);
            return true;
        }
        // Of a whole URL, what a proxy is asked for.
        let url = target.strip_prefix("http://");
        let url = url.map(|rest| rest.split_at(rest.find('/').unwrap_or(rest.len())));
        let (host, target) = url.unwrap_or((value(&head, "Host").unwrap_or_default(), target));
        let (host, target) = (host.to_owned(), target.to_owned());
        let id = value(&head, "X-Id")
            .and_then(|id| id.parse().ok())
            .unwrap_or(0);
        let body = match value(&head, "Content-Length") {
            _ if value(&head, "Transfer-Encoding").is_some() => Coding::Chunked,
            length => Coding::Length(length.and_then(|n| n.parse().ok()).unwrap_or(0)),
        };
        let request = Request {
            entry: journal.len(),
            id,
            method: method.clone(),
            target: target.clone(),
            keep_alive: value(&head, "Connection") != Some("close"),
            body,
            got: Vec::new(),
        };
        journal.push(Heard {
            at: peer.now(),
            connection: peer.connection(),
            method,
            target,
            host,
            id,
            whole: false,
        });
        if peer.random().roll(behaviour.deaf) {
            let pause = peer.random().duration(&behaviour.think);
            peer.stop_reading();
            peer.wait(pause);
            peer.start_reading();
        }
        let has_body = !matches!(body, Coding::Length(0));
        if has_body && peer.random().roll(behaviour.early) {
            self.answer(peer, behaviour, &request, false);
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

    /// Answers, and ends the connection if the answer says so.
    fn answer(
        &mut self,
        peer: &mut Peer<'_>,
        behaviour: &Behaviour,
        request: &Request,
        keep_alive: bool,
    ) {
        let think = peer.random().duration(&behaviour.think);
        peer.wait(think);
        if peer.random().roll(behaviour.garbage) {
            peer.send("SSH-2.0-OpenSSH_9.9\r\n");
            return self.hang_up(peer);
        }
        if peer.random().roll(behaviour.babble) {
            return self.never_end(peer, "HTTP/1.1 102 Processing\r\n\r\n");
        }
        let has_body = request.method != "HEAD";
        if has_body && peer.random().roll(behaviour.flood) {
            let (id, got) = (request.id, HttpServer::digest(&request.got));
            peer.send(format!(
                "HTTP/1.1 200 Simulated\r\nX-Id: {id}\r\nX-Body: 0\r\nX-Got: {got}\r\n\
                 Transfer-Encoding: chunked\r\n\r\n"
            ));
            return self.never_end(peer, "8\r\nendless!\r\n");
        }
        let answer = Answer::draw(peer.random(), behaviour, request, keep_alive);
        let end = answer.send(peer, behaviour);
        match end {
            End::Whole => {}
            End::Stalled => return self.over = true,
            End::Fin => return self.hang_up(peer),
            End::Reset => {
                self.over = true;
                return peer.reset();
            }
        }
        // Behind a body that ends with the connection, they would be more of the body.
        if !answer.until_close && peer.random().roll(behaviour.surplus) {
            peer.send("\0surplus");
        }
        // Whoever has sent the next request by then cannot tell it from the answer to that. There is no other.
        if !answer.until_close && peer.random().roll(behaviour.extra) {
            self.over = true;
            return peer.send(EXTRA);
        }
        if answer.closes || peer.random().roll(behaviour.silent_close) {
            return self.hang_up(peer);
        }
        if peer.random().roll(behaviour.half_close) {
            self.over = true;
            return peer.shutdown();
        }
        if peer.random().roll(behaviour.unasked) {
            let pause = peer.random().duration(&(Duration::ZERO..=FIRST_MOMENTS));
            peer.wait(pause);
            let what = *peer.random().pick(&["\0", EXTRA]);
            self.over = true;
            return peer.send(what);
        }
        self.watch_idle(peer, behaviour.idle);
    }

    fn never_end(&mut self, peer: &mut Peer<'_>, piece: &str) {
        self.over = true;
        self.endless = Some(piece.into());
        self.go_on(peer);
    }

    fn hang_up(&mut self, peer: &mut Peer<'_>) {
        self.over = true;
        peer.close();
    }

    fn watch_idle(&self, peer: &mut Peer<'_>, idle: Option<Duration>) {
        if let Some(idle) = idle {
            peer.timer(idle, self.received);
        }
    }
}

impl Request {
    /// Moves what has arrived of the body out of the buffer; `true` once it is whole.
    fn take_body(&mut self, buffer: &mut Vec<u8>) -> bool {
        match self.body {
            Coding::Length(length) => {
                let n = buffer.len().min(length - self.got.len());
                self.got.extend(buffer.drain(..n));
                self.got.len() == length
            }
            Coding::Chunked => {
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

/// An answer, decided in full before its first byte is sent.
struct Answer {
    interim: usize,
    head: String,
    body: Vec<u8>,
    /// The body goes out as it is, or in chunks.
    chunked: bool,
    /// Its end is the end of the connection.
    until_close: bool,
    closes: bool,
    /// The body is longer than that, it says.
    lies: bool,
}

/// How the sending of an answer ended.
enum End {
    Whole,
    Stalled,
    Fin,
    Reset,
}

impl Answer {
    fn draw(
        random: &mut Random,
        behaviour: &Behaviour,
        request: &Request,
        keep_alive: bool,
    ) -> Self {
        let location = behaviour.redirection(random, request);
        let busy = location.is_none() && random.roll(behaviour.busy);
        let status = match location {
            Some(_) => *random.pick(&[301, 302, 303, 307, 308]),
            None if busy => *random.pick(&[429, 502, 503, 504]),
            None => *random.pick(&[200, 200, 200, 200, 204, 304, 404, 503]),
        };
        let http10 = random.roll(behaviour.http10);
        let says_close = !keep_alive || random.roll(behaviour.close);
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

    fn send(&self, peer: &mut Peer<'_>, behaviour: &Behaviour) -> End {
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
            put_chunks(&mut bytes, &self.body, peer.random());
        } else {
            bytes.extend_from_slice(&self.body);
        }
        let end = self.draw_end(peer.random(), behaviour);
        if !matches!(end, End::Whole) && !self.lies {
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

    fn draw_end(&self, random: &mut Random, behaviour: &Behaviour) -> End {
        // Nobody can tell a close-delimited body that ends early by FIN from a shorter one: that one is reset.
        if self.lies {
            return if random.within(0..=1) == 0 {
                End::Fin
            } else {
                End::Stalled
            };
        }
        if random.roll(behaviour.reset) || (self.until_close && random.roll(behaviour.cut)) {
            End::Reset
        } else if !self.until_close && random.roll(behaviour.cut) {
            End::Fin
        } else if random.roll(behaviour.stall) {
            End::Stalled
        } else {
            End::Whole
        }
    }
}

/// Asks for patience, by seconds or by a date after the answer's own.
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

/// Chunks of any size, some with an extension, sometimes with a trailer at the end.
fn put_chunks(bytes: &mut Vec<u8>, mut body: &[u8], random: &mut Random) {
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

/// The first value of a header in a head, by its exact name without regard to case.
fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Where the first chunk's data begins, and how long it is.
fn chunk_line(buffer: &[u8]) -> Option<(usize, usize)> {
    let end = buffer.windows(2).position(|w| w == b"\r\n")?;
    let digits = std::str::from_utf8(&buffer[..end]).ok()?;
    Some((end + 2, usize::from_str_radix(digits, 16).ok()?))
}

/// Takes the last chunk and the trailers off the buffer, if they are all there.
fn take_trailers(buffer: &mut Vec<u8>, line: usize) -> bool {
    // The empty line that ends the trailers follows the last chunk's line end, or a trailer's.
    let end = buffer[line - 2..].windows(4).position(|w| w == b"\r\n\r\n");
    match end {
        Some(at) => {
            buffer.drain(..line - 2 + at + 4);
            true
        }
        None => false,
    }
}

/// An answer that nobody has asked for.
const EXTRA: &str = "HTTP/1.1 408 Request Timeout\r\nX-Extra: 1\r\nContent-Length: 0\r\n\r\n";

/// Timers that are not about idleness.
const SLAM: u64 = u64::MAX;
const ENDLESS: u64 = u64::MAX - 1;

/// How soon a connection is slammed, and how late something comes unasked.
const FIRST_MOMENTS: Duration = Duration::from_millis(500);

/// The longest pause in what has no end.
const ENDLESS_PAUSE: Duration = Duration::from_millis(100);
