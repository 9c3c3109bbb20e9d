//! Who may ask what: the Host, the origin, and the token or the session of a request.
//!
//! As long as the store has no token, everyone who reaches the service may do everything; it listens on loopback alone
//! then. With a token, everything but health, the login and its style needs one.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::header::{self, AsHeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::hmac;
use ring::rand::SystemRandom;

use super::answer::Refused;
use crate::watch::config::HttpConfig;
use crate::watch::tokens::{Holder, Tokens};

/// Who asks.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// For the notices.
    pub who: String,
    /// The part that names the token; the same for all who need none.
    pub id: String,
    /// Whether this one may change anything.
    pub may_write: bool,
    /// What forms carry in the field `csrf`.
    pub csrf: String,
}

/// What lets requests in.
#[derive(Debug)]
pub(super) struct Access {
    /// Of this process: sessions end with it.
    key: hmac::Key,
    tokens: Arc<Tokens>,
    /// How many sessions have begun: no two are the same.
    begun: AtomicU64,
    /// Sessions that were ended by their visitors, and when they would have ended.
    ended: Mutex<BTreeSet<(i64, String)>>,
}

impl Access {
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(tokens: Arc<Tokens>) -> io::Result<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| io::Error::other("the system has no random numbers"))?;
        Ok(Self {
            key,
            tokens,
            begun: AtomicU64::new(0),
            ended: Mutex::default(),
        })
    }

    pub(super) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Who sent the request, if it may be answered.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn admit(&self, http: &HttpConfig, request: &Parts) -> Result<Visitor, Refused> {
        let host = host_of(request)?;
        if !is_own(host, http) {
            let why = "the Host of the request is no name of this service: an address or localhost, or one of http.names";
            return Err(Refused::new(StatusCode::MISDIRECTED_REQUEST, why));
        }
        if size(request) > LARGEST_HEAD {
            let why = "the header fields are too large";
            return Err(Refused::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                why,
            ));
        }
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        if !is_read {
            check_origin(&request.headers, host)?;
            check_content(request)?;
        }
        if self.tokens.is_empty() {
            return Ok(self.visitor("loopback".to_owned(), true, NOBODY));
        }
        if is_open(request.uri.path()) {
            return Ok(self.visitor("nobody".to_owned(), false, NOBODY));
        }
        let holder = self.holder(request, is_read)?;
        if !is_read && !holder.may_write {
            return Err(Refused::insufficient_scope("the token allows no changes"));
        }
        let who = format!("token {}", holder.name);
        Ok(self.visitor(who, holder.may_write, &holder.id))
    }

    fn visitor(&self, who: String, may_write: bool, id: &str) -> Visitor {
        let csrf = self.code(&format!("form|{id}"));
        Visitor {
            who,
            id: id.to_owned(),
            may_write,
            csrf,
        }
    }

    /// # Errors
    /// There is no token that holds.
    fn holder(&self, request: &Parts, is_read: bool) -> Result<Holder, Refused> {
        let headers = &request.headers;
        let refused = |why: &str| Refused::new(StatusCode::UNAUTHORIZED, why);
        if headers.contains_key(header::AUTHORIZATION) {
            let bearer = only(headers, header::AUTHORIZATION).and_then(bearer);
            let holder = bearer.and_then(|token| self.holder_of(token));
            let why = "the token is none of the service, or has ended";
            return holder.ok_or_else(|| Refused::invalid_token(why));
        }
        // What pages of others can make a browser send is not enough for changes by the API.
        if !is_read && is_api(request.uri.path()) {
            return Err(refused("the API takes changes with a bearer token alone"));
        }
        let session = sessions(headers).find_map(|session| self.holder_of_session(session));
        session.ok_or_else(|| refused("a token is needed"))
    }

    /// Who has this token.
    pub(super) fn holder_of(&self, token: &str) -> Option<Holder> {
        self.tokens.holder(token, Timestamp::now(), &self.key)
    }

    fn holder_of_session(&self, session: &str) -> Option<Holder> {
        let (begin, code) = session.rsplit_once('.')?;
        if !self.is_code(&format!("session|{begin}"), code) {
            return None;
        }
        let (id, end) = begin.split_once('.')?;
        let now = Timestamp::now();
        let end = end_of(end)?;
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = end <= now.as_second() || ended.contains(&(end, begin.to_owned()));
        drop(ended);
        (!is_over)
            .then(|| self.tokens.holder_by_id(id, now))
            .flatten()
    }

    /// Ends the sessions of a request before their time.
    pub(super) fn end_sessions(&self, headers: &HeaderMap) {
        let now = Timestamp::now().as_second();
        for session in sessions(headers) {
            if self.holder_of_session(session).is_none() {
                continue;
            }
            let Some((begin, _)) = session.rsplit_once('.') else {
                continue;
            };
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.extend(end_of(begin).map(|end| (end, begin.to_owned())));
            // The first ones end by themselves.
            while let Some((end, _)) = ended.first()
                && (*end <= now || ended.len() > MOST_ENDED)
            {
                ended.pop_first();
            }
        }
    }

    /// The session of one who has shown a token: the value of a cookie.
    pub(super) fn session(&self, holder: &Holder) -> String {
        let end = Timestamp::now().as_second() + SESSION.as_secs() as i64;
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let begin = format!("{}.{number}-{end}", holder.id);
        let code = self.code(&format!("session|{begin}"));
        format!("{begin}.{code}")
    }

    fn code(&self, text: &str) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, text.as_bytes()))
    }

    fn is_code(&self, text: &str, code: &str) -> bool {
        let code = BASE64_URL_SAFE_NO_PAD.decode(code).unwrap_or_default();
        hmac::verify(&self.key, text.as_bytes(), &code).is_ok()
    }
}

impl Visitor {
    /// Whether this is what the forms of the visitor carry. Both are codes of the same length, and one is known to the
    /// visitor alone: an unequal one is compared by codes of both.
    pub(super) fn has_csrf(&self, given: &str, access: &Access) -> bool {
        let code = hmac::sign(&access.key, self.csrf.as_bytes());
        hmac::verify(&access.key, given.as_bytes(), code.as_ref()).is_ok()
    }
}

/// When a session ends, in seconds since 1970.
fn end_of(session: &str) -> Option<i64> {
    session.rsplit_once('-')?.1.parse().ok()
}

/// Whether a path is one of the API: its refusals are problems in JSON.
pub(super) fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// What needs no token: health, the login, and files that are the same for all.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/login") || path.starts_with("/assets/")
}

/// The Host of a request.
///
/// # Errors
/// It has none, several, or another one in its target.
fn host_of(request: &Parts) -> Result<&str, Refused> {
    let host = only(&request.headers, header::HOST)
        .ok_or_else(|| Refused::new(StatusCode::BAD_REQUEST, "there is not one Host"))?;
    match request.uri.authority() {
        Some(authority) if !authority.as_str().eq_ignore_ascii_case(host) => {
            let why = "the Host is not that of the target";
            Err(Refused::new(StatusCode::MISDIRECTED_REQUEST, why))
        }
        _ => Ok(host),
    }
}

/// Whether a Host means this service. A name that somebody else owns may point here (DNS rebinding), an address does not.
fn is_own(host: &str, http: &HttpConfig) -> bool {
    let (name, rest) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or_default(),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    if !rest.is_empty() && !rest.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        let own = http.listen.ip();
        return address.is_loopback() || address == own || own.is_unspecified();
    }
    let is_it = |own: &str| name.eq_ignore_ascii_case(own);
    is_it("localhost") || http.names.iter().any(|own| is_it(own))
}

/// # Errors
/// A page of another site has sent the request.
fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), Refused> {
    let is_same = |origin: &str| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    };
    let has_origin = headers.contains_key(header::ORIGIN);
    let is_own = !has_origin || only(headers, header::ORIGIN).is_some_and(is_same);
    let has_site = headers.contains_key(SITE);
    let is_direct = !has_site || matches!(only(headers, SITE), Some("same-origin" | "none"));
    match is_own && is_direct {
        true => Ok(()),
        false => Err(Refused::new(
            StatusCode::FORBIDDEN,
            "a page of another site has sent the request",
        )),
    }
}

/// # Errors
/// The API is sent what forms of other sites can send, or something is packed.
fn check_content(request: &Parts) -> Result<(), Refused> {
    let refused = |why| Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    if request.headers.contains_key(header::CONTENT_ENCODING) {
        return refused("bodies are taken as they are, without Content-Encoding");
    }
    if request.method != Method::POST || !is_api(request.uri.path()) {
        return Ok(());
    }
    let has_token = request.headers.contains_key(header::AUTHORIZATION);
    match kind_of(&request.headers) {
        Some("application/json") => Ok(()),
        Some("text/plain") if has_token => Ok(()),
        _ => refused("the API takes application/json, and text/plain with a bearer token"),
    }
}

/// The content type, without parameters.
pub(in crate::watch) fn kind_of(headers: &HeaderMap) -> Option<&str> {
    let kind = only(headers, header::CONTENT_TYPE)?;
    Some(kind.split(';').next().unwrap_or_default().trim())
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_matches(' '))
}

fn sessions(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let cookies = cookies.filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';'));
    pairs.filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

/// The value of a field that is there once.
fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The size of the target and the header fields of a request.
fn size(request: &Parts) -> usize {
    let fields = request.headers.iter();
    let fields: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    let target = request.uri.path_and_query();
    fields + target.map_or(0, |target| target.as_str().len())
}

/// The largest target and header fields of a request, in bytes.
const LARGEST_HEAD: usize = 16 << 10;
/// The cookie of a session.
pub(super) const COOKIE: &str = "courser";
/// How long a session holds.
pub(super) const SESSION: Duration = Duration::from_secs(12 * 3600);
/// How many sessions are remembered that were ended before their time.
const MOST_ENDED: usize = 10_000;
/// Where a browser says which site has sent a request.
const SITE: &str = "sec-fetch-site";
/// In the place of a token's name in the forms of those who need none.
const NOBODY: &str = "open";
